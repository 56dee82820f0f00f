//! Serving traces: what requests a fleet receives, and which of them continue one another.
//!
//! This crate turns recorded or generated request rows into conversations that the rest of the
//! project replays. It never invents contents: a request is known only by its block hashes and the
//! names that its format gives it, and a trace that contradicts itself is refused as a whole.

pub mod chart;
pub mod collector;
pub mod fleet;
mod freight;
pub mod generate;
pub mod link;
pub mod model;
pub mod observer;
pub mod page;
pub mod replay;
pub mod report;
pub mod serve;
pub mod summary;
pub mod trace;
pub mod unit;
