//! The `pinfold` program: arguments in, tables out. The logic is in the libraries.

mod replay;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
}

const EXIT_CODES: &str = "\
Exit codes:
  0  everything that was promised held
  1  a promise was broken
  2  bad usage or input
  3  incomplete: something outside failed, such as a disk";

/// What a verb ends with.
enum Ending {
    Held,
    Violated,
}

/// Why a verb ended early, in words that say what to do.
enum Failure {
    Input(String),
    Incomplete(String),
}

fn main() -> ExitCode {
    let ended = match Arguments::parse().command {
        Verb::Replay(arguments) => replay::run(&arguments),
    };
    match ended {
        Ok(Ending::Held) => ExitCode::SUCCESS,
        Ok(Ending::Violated) => ExitCode::from(1),
        Err(Failure::Input(what)) => {
            eprintln!("pinfold: {what}");
            ExitCode::from(2)
        }
        Err(Failure::Incomplete(what)) => {
            eprintln!("pinfold: {what}");
            ExitCode::from(3)
        }
    }
}
