//! Golden scripts: a small language that drives the real engine and compares what is observed.

pub(crate) mod executor;
mod journal;
mod names;
pub(crate) mod reader;
mod save;
mod show;
mod store;
mod verbs;
mod watch;
