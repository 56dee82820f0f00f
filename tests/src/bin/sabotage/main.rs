//! `cargo sabotage`: arms each deliberate bug of pinfold-core, and asks every judge of the
//! simulator whether it sees it.
//!
//! It is of use only in a build that has the bugs, which only the alias makes. Any other build says
//! so, and fails.
#![forbid(unsafe_code)]

#[cfg(pinfold_mutants)]
mod checked;
#[cfg(pinfold_mutants)]
mod places;
#[cfg(pinfold_mutants)]
mod suite;
#[cfg(pinfold_mutants)]
mod table;

use std::process::ExitCode;

#[cfg(pinfold_mutants)]
fn main() -> ExitCode {
    table::main()
}

#[cfg(not(pinfold_mutants))]
fn main() -> ExitCode {
    eprintln!("this build has no deliberate bugs: only `cargo sabotage` makes one that has them");
    ExitCode::from(2)
}
