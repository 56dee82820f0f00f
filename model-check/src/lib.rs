//! Every state of small Worlds, with the real core.
//!
//! A *configuration* says how large a World is and what may happen in it. Its states are those of
//! `pinfold-sim`'s World: real engines and transfers, a store, a disk and a network. The explorer
//! visits all of them level by level, judges every step, and tries the recovery from every state;
//! stateright does the same beside it, where it can. Nothing here decides a rule of the protocol.
#![forbid(unsafe_code)]

pub mod configuration;
pub mod explore;
mod level;
pub mod menu;
pub mod model;
pub mod named;
pub mod node;
pub mod plan;
pub mod properties;
mod recoveries;
pub mod selfcheck;
mod table;
mod tree;
pub mod verdict;
pub mod watchdog;
