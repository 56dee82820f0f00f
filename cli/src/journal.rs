//! `pinfold journal`: a journal's files, and its records one by one.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pinfold_host::journal::{self, JournalError, Shown};
use pinfold_host::view::{FileView, Identities, RecordView, UnverifiedView, VerificationView};
use serde_json::json;

use crate::number::{grouped, record};
use crate::table::{Table, json, print};
use crate::{Ending, Failure};

/// Look at a job's journal: is it whole, and what is in it?
#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Verify(VerifyArguments),
    Dump(DumpArguments),
}

/// Read every file of the journal and say whether it is as it was written.
///
/// Changes nothing and may run beside the process that has the journal open. A torn end is a bad
/// last frame with nothing behind it: one that was being written when the process or the machine
/// stopped, or is being written at this moment. The next opening cuts it. Changed bytes in the last
/// frame, and a last segment that was cut short by hand, look the same: see docs/operating.md.
#[derive(Args)]
#[command(after_help = VERIFY_EXAMPLES)]
struct VerifyArguments {
    /// The job's data folder, which holds `journal`
    dir: PathBuf,
    /// Print one JSON object, whatever became of it: also for a journal that cannot be judged
    #[arg(long)]
    json: bool,
}

/// Print the journal's records, one a line: its number and what was decided.
///
/// Changes nothing and may run beside the process that has the journal open; what is shown is
/// durable. Records that a snapshot has replaced are gone, and are said to be. Identities are cut
/// to their first 8 digits; --json has them whole. An operation is owner.incarnation.number, and a
/// pin the operation that took it and its place among the answers: owner.incarnation.number.place.
#[derive(Args)]
#[command(after_help = DUMP_EXAMPLES)]
struct DumpArguments {
    /// The job's data folder, which holds `journal`
    dir: PathBuf,
    /// The first record to print
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = record)]
    #[arg(allow_negative_numbers = true)]
    from: u64,
    /// The last record to print; without it the journal's last
    #[arg(long, value_name = "N", value_parser = record, allow_negative_numbers = true)]
    to: Option<u64>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  whole, or torn at the end; or the records were printed
  1  damaged: the file and the byte are named
  2  no journal there, or one of another version; or no such record
  3  something could not be read";

const VERIFY_EXAMPLES: &str = "\
Exit codes:
  0  whole, or torn at the end
  1  damaged: the file and the byte are named
  2  no journal there, or one of another version
  3  something could not be read

Examples:
  pinfold journal verify ./job
  pinfold journal verify ./job --json | jq .verdict";

const DUMP_EXAMPLES: &str = "\
Exit codes:
  0  the records were printed
  1  damaged: the file and the byte are named
  2  no journal there, or one of another version; or no such record
  3  something could not be read

Examples:
  pinfold journal dump ./job | tail              the newest decisions
  pinfold journal dump ./job --from 52 --to 60
  pinfold journal dump ./job --json | jq 'select(.checkpoints // [] | index(7))'";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    match &arguments.verb {
        Verb::Verify(arguments) => verify(arguments),
        Verb::Dump(arguments) => dump(arguments),
    }
}

fn verify(arguments: &VerifyArguments) -> Result<Ending, Failure> {
    let verification = match journal::verify(&arguments.dir) {
        Ok(verification) => VerificationView::of(&verification),
        Err(error) => {
            if arguments.json {
                print(|out| json(out, &UnverifiedView::of(&error)))?;
            }
            return Err(error.into());
        }
    };
    print(|out| if arguments.json { json(out, &verification) } else { show(out, &verification) })?;
    Ok(if verification.damage.is_empty() { Ending::Held } else { Ending::Violated })
}

fn show(out: &mut dyn Write, verification: &VerificationView) -> std::io::Result<()> {
    let columns = ["file", "holds", "#first record", "#records", "#used bytes", "#bytes", ""];
    let mut table = Table::new("Files", &columns);
    table.rows(&verification.files, usize::MAX, |file: &FileView| {
        let count = |number: Option<u64>| number.map(grouped).unwrap_or_default();
        let name = Path::new(&file.file).file_name().unwrap_or_default();
        [
            name.to_string_lossy().into_owned(),
            file.holds.into(),
            file.first_record.map(|number| number.to_string()).unwrap_or_default(),
            count(file.records),
            count(file.used_bytes),
            grouped(file.bytes),
            if file.covered { "covered by a snapshot".into() } else { String::new() },
        ]
    });
    table.write(out)?;
    writeln!(out)?;
    if let (Some(epoch), Some(records)) = (verification.epoch, verification.records) {
        writeln!(out, "Epoch {epoch}, {} records", grouped(records))?;
    }
    if let Some(torn) = &verification.torn {
        writeln!(
            out,
            "Torn, or being written at this moment: {} bytes at byte {} of {} ({}). The next \
             opening cuts them. Did neither the process nor the machine stop? Then these bytes \
             may have been changed, or the file cut short: see docs/operating.md",
            torn.bytes, torn.byte, torn.file, torn.why
        )?;
    }
    for damage in &verification.damage {
        writeln!(out, "Damaged: {}", damage.what)?;
    }
    writeln!(
        out,
        "{}",
        match (verification.damage.is_empty(), &verification.torn, verification.records) {
            (true, None, _) => "Every file is as it was written",
            (true, Some(_), _) => "Everything in front of the torn end is as it was written",
            (false, _, Some(_)) => {
                "The journal can be opened: what is damaged is covered by a snapshot"
            }
            (false, _, None) => "The journal cannot be opened",
        }
    )
}

fn dump(arguments: &DumpArguments) -> Result<Ending, Failure> {
    let DumpArguments { dir, from, to, json } = arguments;
    let to = to.unwrap_or(u64::MAX);
    if to < *from {
        return Err(Failure::Input(format!("--from {from} is behind --to {to}")));
    }
    let mut end = 0;
    let mut read: Result<(), JournalError> = Ok(());
    print(|out| {
        let mut written = Ok(());
        read = journal::records(dir, &mut |shown| {
            let (first, last) = match shown {
                Shown::InSnapshot { first, last } => (first, last),
                Shown::Record { sequence, .. } => (sequence, sequence),
            };
            if first > to {
                return ControlFlow::Break(());
            }
            end = last;
            if last < *from {
                return ControlFlow::Continue(());
            }
            written = match shown {
                Shown::InSnapshot { .. } => gone(out, first.max(*from), last.min(to), *json),
                Shown::Record { sequence, event } if *json => {
                    crate::table::json(out, &RecordView::of(sequence, event, Identities::Whole))
                }
                Shown::Record { sequence, event } => {
                    let record = RecordView::of(sequence, event, Identities::Short);
                    writeln!(out, "{sequence:>8}  {}", record.text)
                }
            };
            if written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        written
    })?;
    read?;
    if end < *from {
        return Err(Failure::Input(format!("there is no record {from}: the last one is {end}")));
    }
    Ok(Ending::Held)
}

/// Says of these records that a snapshot stands for them.
fn gone(out: &mut dyn Write, first: u64, last: u64, as_json: bool) -> std::io::Result<()> {
    let text = if first == last {
        format!("record {first} is in the snapshot")
    } else {
        format!("records {first} to {last} are in the snapshot")
    };
    if as_json {
        json(out, &json!({"kind": "in snapshot", "first": first, "last": last, "text": text}))
    } else {
        writeln!(out, "{text}")
    }
}
