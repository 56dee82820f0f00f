//! Logs from outside: honest ones hold, and each lie is found at its line, by its rule.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

mod claims;
mod honest;
mod incomplete;
mod lies;
mod log;
mod rubbish;
mod scribe;
mod story;
