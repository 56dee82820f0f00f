//! What a host of pinfold needs on a real machine: a durable journal, and stores for the objects.
//!
//! It does the I/O that the core only asks for, and decides nothing.
#![forbid(unsafe_code)]

pub mod collector;
pub mod coordinator;
pub mod disk;
pub mod dto;
pub mod file_store;
mod folder;
pub mod journal;
pub mod log;
pub mod node;
pub mod owner;
pub mod runtime;
pub mod store;
pub mod view;
