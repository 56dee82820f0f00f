//! Serving traces, the worker fleet that replays them through a real node, and what came of it.
//!
//! Recorded or generated request rows become conversations, and those the main job. It never
//! invents contents: a request is known only by its block hashes and the names that its format
//! gives it, and a trace that contradicts itself is refused as a whole.

mod audit;
mod chart;
mod fleet;
pub mod foreign_log;
mod freight;
pub mod generate;
pub mod link;
pub mod model;
mod observer;
mod outside;
pub mod page;
pub mod processes;
pub mod replay;
pub mod report;
pub mod serve;
pub mod summary;
pub mod trace;
pub mod unit;
