//! The program as a person or a script meets it: what it prints, what it keeps, what it refuses,
//! and that it says so when a promise is broken.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

mod broken_store;
mod budgets;
mod figures;
mod folder;
mod formats;
mod log;
mod losses;
mod report;
mod scene;
mod signals;
mod usage;
