//! `pinfold verify-log`: judge what some host logged.

use std::fs::File;
use std::io::{BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pinfold_workload::foreign_log::{
    Finding, Gap, LogError, Refusal, Report, SPEC_INPUTS, Verdict, verify,
};

use crate::number::grouped;
use crate::table::{Table, json, print};
use crate::{Ending, Failure};

/// Judge a log that some host wrote: name the first line that no correct run allows.
///
/// The log has what a coordinator took and answered, and what its workers and its store did. Its
/// inputs are replayed in their order through the real engine, each answer is compared, and the
/// rules about keys, moves and memory are applied to what is there. What could not be judged is
/// counted and said. The format is in docs/log-format.md; `pinfold replay --log` writes one.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The log, JSON objects, one a line
    log: PathBuf,
    /// Print one JSON object, whatever became of it: also for a file that is no log
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Exit codes:
  0  every line is one that a correct run allows
  1  a line is not: its place, the rule, and what a correct run would have said
  2  no log, or one that contradicts itself: the line and the field are named
  3  nothing is known to be wrong, and not all could be judged: lines are missing, an answer is
     not known, the log does not begin with the job, or nothing is logged

Examples:
  rm -f job.log && pinfold replay --log job.log && pinfold verify-log job.log
  pinfold verify-log job.log --json | jq .finding.rule";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let report = match judge(&arguments.log) {
        Ok(report) => report,
        Err((refusal, failure)) => {
            if arguments.json {
                print(|out| json(out, &refusal))?;
            }
            return Err(failure);
        }
    };
    print(|out| if arguments.json { json(out, &report) } else { show(out, &report) })?;
    Ok(match report.verdict {
        Verdict::Held => Ending::Held,
        Verdict::Violated => Ending::Violated,
        Verdict::Incomplete => Ending::Incomplete,
    })
}

/// Judges the file; or what is said of one that cannot be judged, in both forms.
fn judge(path: &Path) -> Result<Report, (Refusal, Failure)> {
    let shown = path.display();
    let unreadable = |error: String| {
        let failure = Failure::Input(format!("{shown}: {error}"));
        (Refusal { verdict: "unreadable", line: None, error }, failure)
    };
    if path.is_dir() {
        return Err(unreadable("is a folder, not a log".into()));
    }
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let bar = progress(file.metadata().map_or(0, |file| file.len()));
    let judged = verify(BufReader::new(bar.wrap_read(file)));
    bar.finish_and_clear();
    judged.map_err(|error| {
        let what = format!("{shown}: {error}");
        let failure = match error {
            LogError::Io { .. } => Failure::Incomplete(what),
            LogError::Line { .. } | LogError::Empty => Failure::Input(what),
        };
        (Refusal::of(&error), failure)
    })
}

/// A bar on standard error where a person looks at it; elsewhere nothing.
fn progress(bytes: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(bytes), target);
    match ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn show(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    let counts = &report.counts;
    let mut table = Table::new("Read", &["", "#"]);
    for (name, count) in [
        ("lines", counts.lines),
        ("inputs", counts.inputs),
        ("commands", counts.commands),
        ("answers", counts.replies),
        ("answers compared", counts.compared),
        ("inputs judged by the spec", counts.by_spec),
        ("inputs without an answer", counts.unanswered),
        ("moves of bytes", counts.moves),
        ("deletes", counts.deletes),
        ("saves that no put shows", counts.saves_unshown),
        ("deletes reported that no line shows", counts.deletes_unshown),
        ("crashes", counts.crashes),
    ] {
        table.row([name.into(), grouped(count)]);
    }
    table.write(out)?;
    if !report.unjudged.is_empty() {
        let mut table = Table::new("Not judged", &["#", "", "#first at line"]);
        for one in &report.unjudged {
            table.row([grouped(one.count), one.what.into(), one.first_line.to_string()]);
        }
        table.write(out)?;
    }
    show_reach(out, report)?;
    match (&report.finding, report.verdict) {
        (Some(finding), _) => show_finding(out, finding),
        (None, Verdict::Incomplete) => {
            writeln!(out, "INCOMPLETE: nothing is known to be wrong, and not all could be judged")
        }
        (None, Verdict::Held | Verdict::Violated) => {
            writeln!(out, "HELD: every line is one that a correct run allows")?;
            if !report.moves_logged {
                writeln!(
                    out,
                    "  The log does not promise every move of bytes: those were judged alone"
                )?;
            }
            Ok(())
        }
    }
}

/// How far each of those who judge came.
fn show_reach(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    if let Some(Gap { line, first, last }) = report.first_gap {
        let before = line - 1;
        let missing = if first == last {
            format!("n {first} is missing")
        } else {
            format!("n {first} to {last} are missing")
        };
        writeln!(out, "First gap: between the lines {before} and {line}, where {missing}")?;
    }
    if let Some(line) = report.only_rules_from {
        writeln!(out, "From line {line} on only the rules judged that need no state")?;
    }
    let counts = &report.counts;
    if counts.by_spec == SPEC_INPUTS && counts.inputs > SPEC_INPUTS {
        let (judged, inputs) = (grouped(SPEC_INPUTS), grouped(counts.inputs));
        writeln!(out, "Judged by the spec: the first {judged} inputs of {inputs}")?;
    }
    Ok(())
}

fn show_finding(out: &mut dyn Write, finding: &Finding) -> std::io::Result<()> {
    let Finding { line, n, rule, promise, judge, what, expected, text } = finding;
    writeln!(out, "VIOLATED at line {line} (n {n}) by {rule}: {promise}")?;
    writeln!(out, "  {judge}: {what}")?;
    writeln!(out, "  found     {}", printable(text))?;
    if let Some(expected) = expected {
        writeln!(out, "  expected  {expected}")?;
    }
    Ok(())
}

/// How much is shown of a line; `--json` has all of it.
const SHOWN_LETTERS: usize = 500;

/// A terminal obeys what a line may hold, and nobody reads one of many screens.
fn printable(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let shown: String = text.chars().take(SHOWN_LETTERS).map(plain).collect();
    if text.chars().nth(SHOWN_LETTERS).is_some() { shown + "…" } else { shown }
}
