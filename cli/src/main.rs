//! The `pinfold` program: arguments in, tables out. The logic is in the libraries.

mod check;
mod counterexample;
mod deleting;
mod inspect;
mod journal;
mod number;
mod operate;
mod random;
mod replay;
mod report_file;
mod serve;
mod server;
mod shell;
mod signals;
mod sim;
mod store_place;
mod table;
mod verify_log;
mod why;
mod worker_bench;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;
use pinfold_host::journal::JournalError;

/// A model checker's threads do little but copy small values: a fourth of its time is saved by it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Decides which checkpoints of long conversations stay in a fleet's shared store, and which go.
#[derive(Parser)]
#[command(version, about, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Replay(replay::Arguments),
    #[command(hide = true)]
    ReplayWorker(replay::WorkerArguments),
    Serve(serve::Arguments),
    Sim(sim::Arguments),
    Check(check::Arguments),
    #[command(flatten)]
    Operate(operate::Act),
    Collect(deleting::CollectArguments),
    Audit(deleting::AuditArguments),
    Inspect(inspect::Arguments),
    Why(why::Arguments),
    Journal(journal::Arguments),
    VerifyLog(verify_log::Arguments),
    WorkerBench(worker_bench::Arguments),
}

const EXIT_CODES: &str = "\
Exit codes:
  0  everything that was promised held
  1  a promise was broken, or a journal is damaged
  2  bad usage or input
  3  incomplete: something outside failed, such as a disk, or it was told to stop
  4  a seed, a script or a configuration went another way than before (sim, check)
  5  something that had to happen never did (sim --require-coverage)";

/// What a verb ends with.
enum Ending {
    Held,
    Violated,
    /// All was served, and something outside failed on the way.
    Incomplete,
    /// What should repeat did not.
    Differed,
    /// What had to happen never did.
    Uncovered,
}

/// Why a verb ended early, in words that say what to do.
enum Failure {
    Violated(String),
    Input(String),
    Incomplete(String),
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let text = error.to_string();
        match error {
            JournalError::BadHeader { .. }
            | JournalError::Damaged { .. }
            | JournalError::TornInside { .. }
            | JournalError::Foreign { .. }
            | JournalError::Lacking { .. }
            | JournalError::BadSnapshot { .. }
            | JournalError::BadRecord { .. } => Self::Violated(text),
            JournalError::Io { .. } | JournalError::Locked { .. } => Self::Incomplete(text),
            JournalError::AlreadyExists { .. }
            | JournalError::Missing { .. }
            | JournalError::Unexpected { .. }
            | JournalError::UnknownVersion { .. } => Self::Input(text),
        }
    }
}

/// In the build of `cargo sabotaged` alone: arms the bug that the environment names, so that there
/// is something to find.
#[cfg(pinfold_mutants)]
fn arm() {
    use pinfold_core::mutant::{Mutant, arm};
    let name = std::env::var("PINFOLD_MUTANT").ok();
    arm(Mutant::ALL.into_iter().find(|it| name.as_deref() == Some(it.name())));
}

fn main() -> ExitCode {
    #[cfg(pinfold_mutants)]
    arm();
    let ended = match Arguments::parse().command {
        Verb::Replay(arguments) => replay::run(&arguments),
        Verb::ReplayWorker(arguments) => replay::work(&arguments),
        Verb::Serve(arguments) => serve::run(&arguments),
        Verb::Sim(arguments) => sim::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Operate(act) => operate::run(&act),
        Verb::Collect(arguments) => deleting::collect(&arguments),
        Verb::Audit(arguments) => deleting::audit(&arguments),
        Verb::Inspect(arguments) => inspect::run(&arguments),
        Verb::Why(arguments) => why::run(&arguments),
        Verb::Journal(arguments) => journal::run(&arguments),
        Verb::VerifyLog(arguments) => verify_log::run(&arguments),
        Verb::WorkerBench(arguments) => worker_bench::run(&arguments),
    };
    let (what, code) = match ended {
        Ok(Ending::Held) => return ExitCode::SUCCESS,
        Ok(Ending::Violated) => return ExitCode::from(1),
        Ok(Ending::Incomplete) => return ExitCode::from(3),
        Ok(Ending::Differed) => return ExitCode::from(4),
        Ok(Ending::Uncovered) => return ExitCode::from(5),
        Err(Failure::Violated(what)) => (what, 1),
        Err(Failure::Input(what)) => (what, 2),
        Err(Failure::Incomplete(what)) => (what, 3),
    };
    eprintln!("pinfold: {what}");
    ExitCode::from(code)
}
