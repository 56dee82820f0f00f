//! Arguments in, a table out.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use pinfold_core::mutant::Mutant;
use pinfold_sim::violation::Judge;
use serde_json::{Value, json};

use crate::checked::{Checked, Found, search};
use crate::suite::{Bug, Sight, Verdict, look_for, reports_that_go_right};

/// A mutant survived.
const SURVIVED: u8 = 6;
/// Bad usage.
const USAGE: u8 = 2;

/// Arms each deliberate bug of pinfold-core, and asks every judge of the simulator, and the model
/// checker, whether it sees it.
///
/// Exit codes: 0 every bug was caught by the promise that it names, and (without --only) by each
/// script in tests/testdata/reports that names it; 2 bad usage, or a build without bugs; 6 a bug
/// survived, or such a script went right.
#[derive(Debug, Parser)]
#[command(
    name = "cargo sabotage",
    after_help = "Examples:\n  cargo sabotage\n  cargo sabotage \
    --only serve-lost --seeds 5000\n  cargo sabotage --list"
)]
struct Arguments {
    /// Only lists the bugs, with the promise that each breaks.
    #[arg(long)]
    list: bool,
    /// Only this bug, by its name; may be given more than once.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// In how many seeds each judge looks for each bug.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// Looks for a bug that is none: it must survive, and the program end with 6.
    #[arg(long)]
    canary: bool,
    /// Looks for each bug in the model checker's `ci` set, the smallest configuration first, up to
    /// one that names the bug's promise, and says which find it.
    #[arg(long, conflicts_with_all = ["json", "list"])]
    search: bool,
    /// The table as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let bugs = match bugs(&arguments) {
        Ok(bugs) => bugs,
        Err(name) => {
            eprintln!("there is no bug named {name}: --list shows them");
            return ExitCode::from(USAGE);
        }
    };
    if arguments.list {
        for bug in bugs {
            println!("{:<4} {}", bug.invariant().to_string(), bug.name());
        }
        return ExitCode::SUCCESS;
    }
    // A bug that falls over is shown in the table; its backtrace helps nobody.
    std::panic::set_hook(Box::new(|_| {}));
    if arguments.search {
        bugs.into_iter().for_each(search_for);
        return ExitCode::SUCCESS;
    }
    let mut verdicts = Vec::new();
    if !arguments.json {
        println!("{}", heading());
    }
    for bug in bugs {
        let verdict = look_for(bug, arguments.seeds);
        if !arguments.json {
            println!("{}", row(&verdict));
            let _ = std::io::stdout().flush();
        }
        verdicts.push(verdict);
    }
    let is_whole = arguments.only.is_empty() && !arguments.canary;
    let reports = if is_whole { reports_that_go_right() } else { Vec::new() };
    let survivors: Vec<_> = verdicts.iter().filter(|verdict| !verdict.is_caught()).collect();
    if arguments.json {
        let rows: Vec<Value> = verdicts.iter().map(as_json).collect();
        let sum = json!({
            "mutants": rows,
            "survivors": survivors.len(),
            "reports_that_go_right": reports,
        });
        println!("{sum:#}");
    } else {
        println!("{} bugs, {} survived", verdicts.len(), survivors.len());
        for verdict in &survivors {
            println!("survived: {} ({})", verdict.bug.name(), verdict.bug.invariant());
        }
        for report in &reports {
            println!("a report goes right, too: {report}");
        }
    }
    if survivors.is_empty() && reports.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(SURVIVED)
    }
}

fn search_for(bug: Bug) {
    println!("{:<4} {}", bug.invariant().to_string(), bug.name());
    for found in search(bug) {
        println!("       {}", words(&found));
    }
    let _ = std::io::stdout().flush();
}

/// How the checker found a bug.
fn words(found: &Found) -> String {
    let Found { configuration, invariant, states, steps } = found;
    match invariant {
        Some(invariant) => {
            format!("{invariant} in {configuration}: {steps} steps, {states} states")
        }
        None => format!("fell over in {configuration}"),
    }
}

fn bugs(arguments: &Arguments) -> Result<Vec<Bug>, String> {
    if arguments.canary {
        return Ok(vec![Bug::Canary]);
    }
    let all = Mutant::ALL.map(Bug::Mutant);
    if arguments.only.is_empty() {
        return Ok(all.into());
    }
    let named =
        |name: &String| all.into_iter().find(|bug| bug.name() == name).ok_or_else(|| name.clone());
    arguments.only.iter().map(named).collect()
}

fn heading() -> String {
    let judges = Judge::ALL.map(|judge| format!(" {:>12}", judge.name())).concat();
    format!("{:<4} {:<28}{judges} {:>8}  model checker", "", "bug", "shortest")
}

/// The first seed in which a judge saw it; with the promise that it named where that is another.
fn cell(verdict: &Verdict, sight: Sight) -> String {
    match (sight.panicked, sight.first, sight.named) {
        (Some(seed), ..) => format!("fell at {seed}"),
        (None, None, _) => "-".to_string(),
        (None, Some((seed, invariant)), _) if invariant == verdict.bug.invariant() => {
            seed.to_string()
        }
        (None, Some((seed, invariant)), None) => format!("{seed} {invariant}"),
        (None, Some((seed, invariant)), Some(named)) => format!("{named} ({seed} {invariant})"),
    }
}

fn row(verdict: &Verdict) -> String {
    let cells = verdict.sights.iter().map(|sight| format!(" {:>12}", cell(verdict, *sight)));
    let shortest = verdict.shortest.map_or("-".to_string(), |steps| steps.to_string());
    let survived = if verdict.is_caught() { "" } else { "  SURVIVED" };
    let cells: String = cells.collect();
    let name = verdict.bug.name();
    let checked = match &verdict.checked {
        Checked::Found(found) => words(found),
        Checked::CannotBe(why) => format!("cannot have it: {why}"),
        Checked::Missed(name) => format!("MISSED: {name}"),
    };
    let promise = verdict.bug.invariant().to_string();
    format!("{promise:<4} {name:<28}{cells} {shortest:>8}  {checked}{survived}")
}

fn checked_json(checked: &Checked) -> Value {
    match checked {
        Checked::Found(Found { configuration, invariant, states, steps }) => json!({
            "configuration": configuration,
            "invariant": invariant.map(|it| it.to_string()),
            "states": states,
            "steps": steps,
        }),
        Checked::CannotBe(why) => json!({ "cannot_have_it": why }),
        Checked::Missed(name) => json!({ "missed_in": name }),
    }
}

fn as_json(verdict: &Verdict) -> Value {
    let sights = Judge::ALL.iter().zip(&verdict.sights).map(|(judge, sight)| {
        let first = sight
            .first
            .map(|(seed, invariant)| json!({ "seed": seed, "invariant": invariant.to_string() }));
        (judge.name().to_string(), json!({ "first": first, "named_at_seed": sight.named }))
    });
    json!({
        "name": verdict.bug.name(),
        "invariant": verdict.bug.invariant().to_string(),
        "caught": verdict.is_caught(),
        "panicked_at_seed": verdict.panicked(),
        "judges": sights.collect::<serde_json::Map<_, _>>(),
        "shortest_steps": verdict.shortest,
        "model_checker": checked_json(&verdict.checked),
    })
}
