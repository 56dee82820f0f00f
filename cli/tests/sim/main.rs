//! The simulator's command from outside: what it prints, what repeats, and how it ends.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

mod scene;
mod scripts;
mod seeds;
mod signals;
mod usage;
