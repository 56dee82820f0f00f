//! Replays: what they print and keep, what they refuse, and that they say so when a promise is
//! broken.

mod broken_store;
mod budgets;
mod figures;
mod folder;
mod formats;
mod log;
mod losses;
mod processes;
mod report;
mod signals;
mod traces;
mod usage;
