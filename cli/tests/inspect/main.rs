//! The operator's commands from outside: what they print about a job whose contents are known, and
//! that they change nothing.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

mod beside;
mod figures;
mod job;
mod journal;
mod scene;
mod usage;
mod why;
