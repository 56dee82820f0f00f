//! Fuzzing the decoders: whatever bytes come from a disk or a person, they are taken or refused.
//!
//! Each target decodes an input as it is, and once more behind checksums and lengths that were
//! made to fit, so that what a checksum guards is reached too. It fails on a panic, on a broken
//! promise about what was accepted, and on memory out of proportion to the input. An input that
//! fails is kept in the target's corpus, which every run judges first.
//!
//! `cargo test` judges the corpus and a fixed number of mutations of it, always the same ones:
//! `PINFOLD_FUZZ_RUNS` sets the number, `PINFOLD_FUZZ_SEED` chooses others. `cargo bolero` drives
//! the same targets by coverage, from `tests/guided` (CONTRIBUTING, "Fuzz a decoder").
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

mod mutate;
mod run;
mod seeds;
mod targets;

use run::run;

#[test]
fn answer() {
    run(&targets::ANSWER);
}

#[test]
fn call() {
    run(&targets::CALL);
}

#[test]
fn journal() {
    run(&targets::JOURNAL);
}

#[test]
fn snapshot() {
    run(&targets::SNAPSHOT);
}

#[test]
fn log() {
    run(&targets::LOG);
}

#[test]
fn manifest() {
    run(&targets::MANIFEST);
}

#[test]
fn object() {
    run(&targets::OBJECT);
}

#[test]
fn trace() {
    run(&targets::TRACE);
}
