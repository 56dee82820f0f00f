//! Which cells must not be empty after enough runs, and those that no World can fill.

use core::fmt;

use pinfold_core::catalog::Blocker;

use super::verbs::{ANY, VERBS};
use super::{Cell, effect, names, phase};
use crate::world::Kind;

/// A required cell that is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole(pub Cell);

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cell::Injected(kind) => write!(f, "{} never happened: {}", kind.name(), kind.about()),
            Cell::Effect(kind) => {
                write!(f, "{} made no difference: never was it seen that ", kind.name())?;
                f.write_str(effect::words(kind))
            }
            Cell::Answer(verb, answer) => write!(f, "{verb} was never answered {answer}"),
            Cell::Blocker(name) => write!(f, "no checkpoint was ever {name}"),
            Cell::Verdict(name) => write!(f, "no audit ever found a key {name}"),
            Cell::FollowUp(name) => write!(f, "no follow-up {name} ever became durable"),
            Cell::End(name) => write!(f, "no transfer ever ended as: {name}"),
            Cell::Phase(kind, phase) => write!(f, "{} never hit: {phase}", kind.name()),
        }
    }
}

/// An answer that runs need not show: the verb, the answer, and why.
pub struct LeftOut(pub &'static str, pub &'static str, pub &'static str);

/// Answers that no World gets; a test shows that they stay away.
pub const UNREACHABLE: [LeftOut; 5] = [
    LeftOut("Fence", "Malformed", "incarnations begin with 1"),
    LeftOut("Register", "Malformed", REGISTERS_WELL),
    LeftOut("Register", "PolicyMismatch", REGISTERS_WELL),
    LeftOut("Register", "RoleMismatch", REGISTERS_WELL),
    LeftOut("Register", "UnknownVersion", REGISTERS_WELL),
];

const REGISTERS_WELL: &str = "a process registers in the one right form";

/// The verbs that messages carry.
const CARRIED: [&str; 16] = [
    names::REGISTER,
    "Collect",
    "Configure",
    "Deleted",
    "Doubt",
    "Drop",
    "Fence",
    "Forget",
    "Lost",
    "Pin",
    "Prepare",
    "Publish",
    "Release",
    "Retire",
    "Settle",
    names::LIST,
];

/// What a put is for: its shard cannot have succeeded before it did. (What a false fence let go too
/// early may be hit later, by chance.)
const PUT: [&str; 2] = ["prepared", "failed"];

/// What a late put is for: its shard has failed, which need not be on record yet.
const LANDED: [&str; 4] = ["prepared", "failed", "collecting", "no record"];

/// What a get is for: a whole checkpoint.
const GET: [&str; 2] = ["complete", "published"];

/// What an object is of that the store loses.
const HELD: [&str; 6] = ["prepared", "failed", "complete", "published", "collecting", "lost"];

/// What a delete is for.
const DELETE: [&str; 2] = ["collecting", "no record"];

/// In which phases each fault must hit.
const HITS: [(Kind, &[&str]); 25] = [
    (Kind::Duplicate, &CARRIED),
    (Kind::Replay, &CARRIED),
    (Kind::Lose, &CARRIED),
    (Kind::Misaddress, &CARRIED),
    (Kind::DuplicateAnswer, &CARRIED),
    (Kind::LoseAnswer, &CARRIED),
    (Kind::Crash, &phase::CRASHES),
    (Kind::FailSync, &phase::WRITTEN),
    (Kind::Die, &phase::DEATHS),
    (Kind::PutUnretired, &PUT),
    (Kind::PutNotStarted, &PUT),
    (Kind::PutFailed, &PUT),
    (Kind::PutInDoubt, &PUT),
    (Kind::PutLies, &PUT),
    (Kind::Land, &LANDED),
    (Kind::GetUnretired, &GET),
    (Kind::GetFailed, &GET),
    (Kind::GetInDoubt, &GET),
    (Kind::DeleteRefused, &DELETE),
    (Kind::DeleteUnknown, &DELETE),
    (Kind::LandDelete, &DELETE),
    (Kind::DropWork, &DELETE),
    (Kind::Vanish, &HELD),
    (Kind::Return, &phase::STATES),
    (Kind::Damage, &HELD),
];

/// Every cell that must not be empty, in the order in which they are shown.
#[must_use]
pub fn required() -> Vec<Cell> {
    let mut cells: Vec<Cell> =
        Kind::all().flat_map(|kind| [Cell::Injected(kind), Cell::Effect(kind)]).collect();
    for row in &VERBS {
        let answers = row.1.iter().chain(row.2);
        cells.extend(answers.map(|answer| Cell::Answer(row.0, answer)));
    }
    cells.push(Cell::Answer(names::LIST, names::NOT_TRIED));
    cells.push(Cell::Answer(ANY, names::POISONED));
    for left_out in &UNREACHABLE {
        cells.retain(|cell| *cell != Cell::Answer(left_out.0, left_out.1));
    }
    cells.extend(Blocker::NAMES.map(Cell::Blocker));
    cells.extend(names::VERDICTS.map(Cell::Verdict));
    cells.extend(names::FOLLOW_UPS.map(Cell::FollowUp));
    cells.extend(names::ENDS.map(Cell::End));
    for (kind, phases) in HITS {
        cells.extend(phases.iter().map(|phase| Cell::Phase(kind, phase)));
    }
    cells
}
