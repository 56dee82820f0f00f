//! The fuzz targets of the workspace, for `cargo bolero`: it looks for inputs by the code that they
//! reach. Plain `cargo test` here only tries a few random bytes.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

#[path = "../../tests/fuzz/targets/mod.rs"]
mod targets;

#[test]
fn answer() {
    bolero::check!().for_each(|input: &[u8]| {
        targets::ANSWER.judge(input);
    });
}

#[test]
fn call() {
    bolero::check!().for_each(|input: &[u8]| {
        targets::CALL.judge(input);
    });
}

#[test]
fn journal() {
    bolero::check!().for_each(|input: &[u8]| {
        targets::JOURNAL.judge(input);
    });
}

#[test]
fn snapshot() {
    bolero::check!().for_each(|input: &[u8]| {
        targets::SNAPSHOT.judge(input);
    });
}

#[test]
fn log() {
    bolero::check!().for_each(|input: &[u8]| {
        targets::LOG.judge(input);
    });
}

#[test]
fn manifest() {
    bolero::check!().for_each(|input: &[u8]| {
        targets::MANIFEST.judge(input);
    });
}

#[test]
fn object() {
    bolero::check!().for_each(|input: &[u8]| {
        targets::OBJECT.judge(input);
    });
}

#[test]
fn trace() {
    bolero::check!().for_each(|input: &[u8]| {
        targets::TRACE.judge(input);
    });
}
