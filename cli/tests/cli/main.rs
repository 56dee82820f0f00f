//! The program as a person or a script meets it: what it prints, what it keeps, what it refuses,
//! and how it ends.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

mod check;
mod inspect;
mod replay;
#[cfg(pinfold_mutants)]
mod sabotaged;
mod scene;
mod serve;
mod sim;
