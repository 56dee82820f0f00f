//! One World: real engines and transfers, a store, a disk and a network of our own, in which
//! everything that can go wrong is a choice.
//!
//! A model checker enumerates the choices, the simulator draws them from a seed, and a script
//! replays them. Judges look on: the oracle from outside, the naive spec in lock-step.
#![forbid(unsafe_code)]

pub mod blame;
pub mod caught;
pub mod coverage;
pub mod digest;
pub mod draws;
pub mod judges;
pub mod likeness;
pub mod oracle;
pub mod page;
pub mod protocol;
pub mod recovery;
pub mod run;
pub mod schedule;
pub mod script;
pub mod seen;
pub mod shared;
pub mod shrink;
pub mod spec;
pub mod store;
pub mod swarm;
pub mod sweep;
pub mod trace;
pub mod violation;
pub mod world;
