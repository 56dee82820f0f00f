//! `pinfold why`: what keeps one checkpoint.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pinfold_core::id::Generation;
use pinfold_host::journal;
use pinfold_host::view::WhyView;

use pinfold_workload::unit::bytes;

use crate::number::generation;
use crate::server::Server;
use crate::table::{json, print};
use crate::{Ending, Failure};

/// Say why a checkpoint is still here: everything that keeps it, who may lift that, and how.
///
/// From the folder it reads the journal and changes nothing, also while a process has it open. A
/// checkpoint that has no record any more was collected, which is an answer; one that was never
/// minted is bad input.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The job's data folder, which holds `journal`, and the checkpoint's generation, a decimal
    /// number, as `inspect` shows it; with --server or --descriptor the generation alone
    #[arg(value_names = ["DIR", "CHECKPOINT"], num_args = 1..=2, required = true)]
    #[arg(allow_negative_numbers = true)]
    of: Vec<PathBuf>,
    #[command(flatten)]
    server: Server,
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
  pinfold why --server http://127.0.0.1:7311 7

In a key the generation is the fourth part, in hexadecimal: .../0000000000000102/... is 258.";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let why = match (arguments.of.as_slice(), arguments.server.is_given()) {
        ([dir, checkpoint], false) => {
            let checkpoint = number(checkpoint)?;
            let reading = journal::read(dir)?;
            WhyView::of(&reading.catalog, Generation(checkpoint))
                .map_err(|never| Failure::Input(never.to_string()))?
        }
        ([checkpoint], true) => {
            let checkpoint = number(checkpoint)?;
            arguments.server.view(&format!("/v1/checkpoints/{checkpoint}"))?
        }
        _ => {
            let what = "expected <DIR> <CHECKPOINT>, or --server <URL> <CHECKPOINT>";
            return Err(Failure::Input(what.into()));
        }
    };
    print(|out| if arguments.json { json(out, &why) } else { show(out, &why) })?;
    Ok(Ending::Held)
}

fn number(text: &Path) -> Result<u64, Failure> {
    let text = text.to_string_lossy();
    let wrong = |what: String| Failure::Input(format!("'{text}' for '<CHECKPOINT>': {what}"));
    generation(&text).map_err(wrong)
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
