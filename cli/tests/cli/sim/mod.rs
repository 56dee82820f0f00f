//! The simulator's command from outside: what it prints, what repeats, and how it ends.

mod scripts;
mod seeds;
mod signals;
mod usage;
