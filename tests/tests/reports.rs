//! Replays every report in `testdata/reports`: a fault that happened elsewhere goes right in a
//! World, and goes wrong under the deliberate bug that its script names.
//!
//! A report says in its first line what must not happen and what is right, and in its second line
//! the mutant that gets it wrong. Its expected lines show the point; the last one is the verdict.
//! Only a build with `cfg(pinfold_mutants)` has the bugs: there each is armed in its turn.

use std::collections::BTreeSet;

use pinfold_sim::judges::Bench;
use pinfold_sim::script::Script;
use pinfold_sim::script::world::{Replayed, replay};
use pinfold_tests::{Report, reports};

/// The last line that a report expects.
const HELD: &str = "held";

fn all() -> Vec<Report> {
    let found = reports().expect("readable reports");
    assert!(!found.is_empty(), "no reports");
    found
}

fn read(report: &Report) -> Script {
    let path = &report.path;
    Script::read(&report.text)
        .unwrap_or_else(|fault| panic!("{path}:{}: {}", fault.line, fault.what))
}

/// The number of a report, from its name: `tests/testdata/reports/b07-some-words.txt`.
fn number(report: &Report) -> Option<u32> {
    let name = report.path.rsplit('/').next()?.strip_prefix('b')?.strip_suffix(".txt")?;
    name.split_once('-')?.0.parse().ok()
}

/// What is wrong with a replay, file and line first, and what was observed instead.
fn fault_of(path: &str, replayed: &Replayed) -> Option<String> {
    let mut faults = Vec::new();
    if let Some((step, line, what)) = &replayed.diverged {
        faults.push(format!("{path}:{line}: step {step}: {what}"));
    }
    if let Some(found) = &replayed.found {
        faults.push(format!("{path}: step {}: {}", found.step, found.violation));
    }
    let missing = replayed.missing.iter();
    faults.extend(missing.map(|(line, text)| format!("{path}:{line}: not observed: {text}")));
    if faults.is_empty() {
        return None;
    }
    let observed = replayed.observed.iter().flatten().map(|line| format!("\n  {line}"));
    Some(faults.join("\n") + "\nobserved:" + &observed.collect::<String>())
}

/// Replays a report with all judges.
fn judge(report: &Report) -> Result<(), String> {
    let path = &report.path;
    let replayed = replay(&read(report), Bench::ALL, &mut ())
        .map_err(|fault| format!("{path}:{}: {}", fault.line, fault.what))?;
    fault_of(path, &replayed).map_or(Ok(()), Err)
}

/// One test, because an armed mutant is armed for the whole process.
#[test]
fn every_report_goes_right_and_goes_wrong_under_its_mutant() {
    let faults: Vec<_> = all().iter().filter_map(|report| judge(report).err()).collect();
    assert!(faults.is_empty(), "{} reports failed:\n{}", faults.len(), faults.join("\n"));
    #[cfg(pinfold_mutants)]
    {
        use pinfold_core::mutant::{Mutant, arm};

        let survives = |report: &Report| {
            let named = Mutant::ALL.into_iter().find(|mutant| mutant.name() == report.mutant);
            arm(Some(named.expect("a mutant of this name")));
            let goes_right = judge(report).is_ok();
            arm(None);
            goes_right.then(|| format!("{}: {} goes right, too", report.path, report.mutant))
        };
        let faults: Vec<_> = all().iter().filter_map(survives).collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

#[test]
fn every_report_names_a_mutant() {
    // Only one build has the mutants, so their names are read from the text.
    let rows = include_str!("../../core/src/mutant.rs").lines();
    let rows = rows.filter(|line| line.trim_start().starts_with("(Mutant::"));
    let names: BTreeSet<&str> = rows.filter_map(|line| line.split('"').nth(1)).collect();
    assert!(names.len() > 50, "the table of mutants is written another way: {names:?}");
    for Report { path, mutant, .. } in all() {
        let what = "write # Mutant: and the name of one in core/src/mutant.rs";
        assert!(names.contains(mutant.as_str()), "{path}:2: no mutant {mutant:?}: {what}");
    }
}

#[test]
fn every_report_has_a_number_of_its_own_and_shows_its_point() {
    let mut numbers = BTreeSet::new();
    for report in all() {
        let path = &report.path;
        let number =
            number(&report).unwrap_or_else(|| panic!("{path}: name it b07-some-words.txt"));
        assert!(numbers.insert(number), "{path}: {number} is another report's, too");
        let script = read(&report);
        let begins = format!("B{number}: ");
        assert!(script.about.starts_with(&begins), "{path}:1: begin it with {begins}");
        let last = script.blocks.last().expect("a block");
        let recovers = last.commands.last().is_some_and(|line| line.words == ["recover"]);
        assert!(recovers, "{path}: end with recover, so that nothing is left hanging");
        let expected = &last.expected;
        let shows = expected.len() > 1 && expected.last().is_some_and(|line| line == HELD);
        assert!(shows, "{path}: expect what shows its point, and then {HELD}");
    }
}
