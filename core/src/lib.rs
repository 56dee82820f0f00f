//! The pure core of pinfold: which checkpoints of long conversations stay in a fleet's shared
//! store, and which go.
//!
//! Everything here is a state machine over values. There is no clock, thread, I/O, randomness,
//! floating point or unordered map, so the model checker, the simulator and a production host all
//! drive this very code.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bounds;
pub mod catalog;
pub mod engine;
pub mod few;
pub mod host;
pub mod id;
pub mod invariant;
pub mod journal;
pub mod layout;
pub mod manifest;
#[cfg(pinfold_mutants)]
pub mod mutant;
pub mod object;
pub mod outcome;
pub mod plan;
pub mod policy;
pub mod replay;
pub mod representation;
pub mod transfer;
