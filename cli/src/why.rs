//! `pinfold why`: what keeps one checkpoint.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use pinfold_core::id::Generation;
use pinfold_host::journal;
use pinfold_host::view::WhyView;

use pinfold_workload::unit::bytes;

use crate::number::generation;
use crate::table::{json, print};
use crate::{Ending, Failure};

/// Say why a checkpoint is still here: everything that keeps it, who may lift that, and how.
///
/// Reads the journal and changes nothing, also while a process has it open. A checkpoint that has
/// no record any more was collected, which is an answer; one that was never minted is bad input.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The job's data folder, which holds `journal`
    dir: PathBuf,
    /// The checkpoint's generation, a decimal number, as `inspect` shows it
    #[arg(value_parser = generation, allow_negative_numbers = true)]
    checkpoint: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Exit codes:
  0  it was read
  1  the journal is damaged: the file and the byte are named
  2  no journal there, or one of another version; or no such checkpoint ever
  3  something could not be read

Examples:
  pinfold why ./job 7
  pinfold why ./job 7 --json | jq '.blockers[].name'

In a key the generation is the fourth part, in hexadecimal: .../0000000000000102/... is 258.";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let reading = journal::read(&arguments.dir)?;
    let why = WhyView::of(&reading.catalog, Generation(arguments.checkpoint))
        .map_err(|never| Failure::Input(never.to_string()))?;
    print(|out| if arguments.json { json(out, &why) } else { show(out, &why) })?;
    Ok(Ending::Held)
}

fn show(out: &mut dyn Write, why: &WhyView) -> std::io::Result<()> {
    let Some(endpoint) = why.endpoint else {
        let what = "has no record any more: it was collected, and every object of it is gone";
        return writeln!(out, "Checkpoint {} {what}", why.checkpoint);
    };
    let size = bytes(why.bytes);
    writeln!(out, "Checkpoint {}: {}, {size}, endpoint {endpoint}", why.checkpoint, why.state)?;
    for blocker in &why.blockers {
        let who = match blocker.who.as_slice() {
            [] => "nobody".into(),
            who => who.join(", "),
        };
        writeln!(out, "  {}", blocker.name)?;
        writeln!(out, "    what  {}", blocker.what)?;
        writeln!(out, "    who   {who}")?;
        writeln!(out, "    how   {}", blocker.how)?;
    }
    Ok(())
}
