//! `cargo sabotage`: the deliberate bugs of pinfold-core.
//!
//! It is of use only in a build that has them. Any other one says so, and fails.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// How to call it.
const USAGE: &str = "Usage: cargo sabotage --list";

#[cfg(pinfold_mutants)]
fn main() -> ExitCode {
    use pinfold_core::mutant::Mutant;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["--list"] {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    for mutant in Mutant::ALL {
        println!("{:<4} {}", mutant.invariant().to_string(), mutant.name());
    }
    ExitCode::SUCCESS
}

#[cfg(not(pinfold_mutants))]
fn main() -> ExitCode {
    eprintln!("this build has no deliberate bugs: only the alias makes one that has them\n{USAGE}");
    ExitCode::from(2)
}
