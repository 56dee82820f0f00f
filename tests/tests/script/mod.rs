//! Golden scripts: a small language that drives the real engine and compares what is observed.
//!
//! Names stand for identities: `w1` an owner, `A1` an attempt, `E1` an endpoint, `C1/T1` a turn,
//! `p1` a pin that a line bound, `c3` the checkpoint of generation 3 (`E1@3` before it was seen),
//! `0/2` object 2 of shard 0. A sender is `w1`, or with numbers of its own `w1:2#5`: incarnation
//! 2, sequence 5; the same text names the pin that this operation took.
//!
//! | line | what |
//! |---|---|
//! | `register w1 [role= after= start= version= turns=]` | a new incarnation |
//! | `p1 = w1 prepare A1 E1 [shape=2x100,1x50 shards=0,1 digest=D1]` | objects x bytes, by shard |
//! | `w1 settle p1 EVIDENCE [shard=0]` | `success` `failure` `in-doubt` `not-exposed` ... |
//! | `w1 publish p1 [C1/T1]`, `w1 release p1`, `w1 doubt p1 yes` | |
//! | `p1 p2 = w1 pin E1 E2 [limit=8]` | |
//! | `w1 lost c1 0/2 absent` | or `shared/7`; `wrong-size` `wrong-bytes` `unreadable` |
//! | `w1 collect 9`, `w1 deleted c1 0/0 gone 0/1 unknown` | |
//! | `op configure turns=1 limits.pins=3`, `op forget C1`, `op drop c1` | |
//! | `op fence w1:2`, `op retire w1` | |
//! | `[p1 =] w1 save A1 E1 [C1/T1, unscoped]` | a whole save; released unless the pin is named |
//! | `list`, commands below it indented | sent together |
//! | `repeat w1#3` | the same operation again |
//! | `... epoch=e2` | any of these with another epoch |
//! | `job`, `gauges [names]`, `blockers c1`, `audit [keys]` | queries; `audit` alone: the store |
//! | `hold`, `go`, `sync` | ends and begins the sync after every line; one sync |
//! | `take`, `commit [quiet=yes]`, `fail-sync [written=yes]` | a batch by hand |
//! | `crash [written=yes]`, `snapshot` | recover from the durable records; from a snapshot |
//! | `follow-up`, `idle` | one follow-up; all of them |
//! | `put c1 [0/0 ...]`, `remove c1 [0/0 ...]`, `store` | the store that watches |
//! | `delete 1 gone`, `delete 1 0/0 unknown [by= applied=yes]` | does work `d1`, reports |

pub(crate) mod executor;
mod journal;
mod names;
pub(crate) mod reader;
mod save;
mod show;
mod store;
mod verbs;
mod watch;
