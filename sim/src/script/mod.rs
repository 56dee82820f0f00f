//! Scripts: a small language for what happens to a job, and for what is observed of it.
//!
//! A counterexample, a shrunk seed and a regression test are the same text file. Its first line is
//! a comment that says what it shows. Its header says where it runs: `job key=value ...` on the
//! bench (see [`mod@bench`]), where a script without a header runs too, or `world key=value ...` in
//! a World. Then come blocks: command lines, a line `----`, the observed outputs, an empty line.
//! A command line is `[names =] verb words... key=value...`; a verb of an owner stands behind its
//! sender, as in `w1 collect 4`. Lines that are indented belong to the command line above them.
//! `#` begins a comment line outside of outputs. In a World's script a block may expect nothing,
//! and the last one needs no line `----`.
//!
//! Names stand for identities: `w1` an owner, `A1` an attempt, `E1` an endpoint, `C1/T1` a turn,
//! `p1` a pin that a line bound, `c3` the checkpoint of generation 3 (`E1@3` before it was seen),
//! `0/2` object 2 of shard 0. `w1:2#5` is the operation with sequence 5 of incarnation 2, and the
//! pin that it took; `w1:2#5.1` its second pin. An identity without a name is its own digits, and
//! `empty` is the empty one. What is shown with these names can be read with them again.
//!
//! | command | what |
//! |---|---|
//! | `prepare A1 E1 [shape=2x100,1x50 shards=0,1 digest=D1]` | objects x bytes, by shard |
//! | `settle p1 EVIDENCE [shard=0]` | `success` `failure` `in-doubt` `not-exposed` ... |
//! | `publish p1 [C1/T1]`, `release p1`, `doubt p1 yes` | without a turn: unscoped |
//! | `pin E1 E2 [limit=8]` | |
//! | `lost c1 0/2 absent` | or `shared/7`; `wrong-size` `wrong-bytes` `unreadable` |
//! | `collect 9`, `deleted c1 0/0 gone 0/1 unknown` | |
//! | `configure turns=1 limits.pins=3`, `forget C1`, `drop c1` | |
//! | `fence w1:2`, `retire w1` | |
//! | `job`, `gauges`, `blockers c1`, `audit c1/0/0 ...` | queries |
//!
//! It never decides anything of the protocol: it reads and shows, and the bench asks the real
//! engine.

pub mod bench;
mod names;
mod reader;
mod show;
mod verbs;
mod words;
pub mod world;

pub use names::Names;
pub use reader::{Block, Fault, Kind, Line, Script};
pub(crate) use show::show_gauges;
pub use show::{show_objects, show_rejection};
pub use verbs::Verbs;
