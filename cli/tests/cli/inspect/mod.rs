//! The operator's commands from outside: what they print about a job whose contents are known, and
//! that they change nothing.

mod beside;
mod figures;
mod files;
mod job;
mod journal;
mod usage;
mod why;
