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

/// An answer that no World gets, and why.
pub struct Unreachable(pub &'static str, pub &'static str, pub &'static str);

/// Answers that no World gets; a test shows that they stay away.
pub const UNREACHABLE: [Unreachable; 0] = [];

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
    (Kind::PutUnretired, &phase::STATES),
    (Kind::PutNotStarted, &phase::STATES),
    (Kind::PutFailed, &phase::STATES),
    (Kind::PutInDoubt, &phase::STATES),
    (Kind::PutLies, &phase::STATES),
    (Kind::Land, &phase::STATES),
    (Kind::GetUnretired, &phase::STATES),
    (Kind::GetFailed, &phase::STATES),
    (Kind::GetInDoubt, &phase::STATES),
    (Kind::DeleteRefused, &phase::STATES),
    (Kind::DeleteUnknown, &phase::STATES),
    (Kind::LandDelete, &phase::STATES),
    (Kind::DropWork, &phase::STATES),
    (Kind::Vanish, &phase::STATES),
    (Kind::Return, &phase::STATES),
    (Kind::Damage, &phase::STATES),
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
    cells.retain(|cell| !is_unreachable(*cell));
    cells.extend(Blocker::NAMES.map(Cell::Blocker));
    cells.extend(names::VERDICTS.map(Cell::Verdict));
    cells.extend(names::FOLLOW_UPS.map(Cell::FollowUp));
    cells.extend(names::ENDS.map(Cell::End));
    for (kind, phases) in HITS {
        cells.extend(phases.iter().map(|phase| Cell::Phase(kind, phase)));
    }
    cells
}

fn is_unreachable(cell: Cell) -> bool {
    UNREACHABLE.iter().any(|it| cell == Cell::Answer(it.0, it.1))
}
