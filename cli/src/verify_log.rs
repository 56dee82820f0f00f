//! `pinfold verify-log`: judge what some host logged.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;

use clap::Args;
use pinfold_workload::foreign_log::{Finding, LogError, Report, Verdict, verify};

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
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Exit codes:
  0  every line is one that a correct run allows
  1  a line is not: its place, the rule, and what a correct run would have said
  2  no log, or one that contradicts itself: the line and the field are named
  3  nothing is known to be wrong, and not all could be judged: lines are missing, an answer is
     not known, or the log does not begin with the job

Examples:
  pinfold replay --log job.log && pinfold verify-log job.log
  pinfold verify-log job.log --json | jq .finding.rule";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let path = arguments.log.display();
    let input = |what: String| Failure::Input(format!("{path}: {what}"));
    if arguments.log.is_dir() {
        return Err(input("is a folder, not a log".into()));
    }
    let file = File::open(&arguments.log).map_err(|error| input(error.to_string()))?;
    let report = verify(BufReader::new(file)).map_err(|error| match error {
        LogError::Io { .. } => Failure::Incomplete(format!("{path}: {error}")),
        LogError::Line { .. } | LogError::Empty => input(error.to_string()),
    })?;
    print(|out| if arguments.json { json(out, &report) } else { show(out, &report) })?;
    Ok(match report.verdict {
        Verdict::Held => Ending::Held,
        Verdict::Violated => Ending::Violated,
        Verdict::Incomplete => Ending::Incomplete,
    })
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
        ("inputs without an answer", counts.unanswered),
        ("moves of bytes", counts.moves),
        ("deletes", counts.deletes),
        ("crashes", counts.crashes),
    ] {
        table.row([name.into(), grouped(count)]);
    }
    table.write(out)?;
    if !report.unjudged.is_empty() {
        let mut table = Table::new("Not judged", &["#", ""]);
        for one in &report.unjudged {
            table.row([grouped(one.count), one.what.into()]);
        }
        table.write(out)?;
    }
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

/// A terminal obeys what a line may hold.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
