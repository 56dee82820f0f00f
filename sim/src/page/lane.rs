//! The lanes of the picture: who takes part, what it did at a step, and how it was after it.

use super::Now;
use super::part::Part;
use crate::seen::Seen;
use crate::world::World;
use crate::world::job::Doing;
use crate::world::setup::Setup;

/// Somebody who takes part. From left to right: the store, the processes, the coordinator, its
/// disk; so bytes go to the left and messages to the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// The store.
    Store,
    /// A process of an owner.
    Process(u8),
    /// The coordinator.
    Coordinator,
    /// The coordinator's disk.
    Disk,
}

impl Lane {
    /// All of them, in order.
    pub(super) fn all(processes: u8) -> impl Iterator<Item = Self> {
        let ends = [Self::Coordinator, Self::Disk];
        core::iter::once(Self::Store).chain((0..processes).map(Self::Process)).chain(ends)
    }

    /// Its place from the left.
    pub(super) const fn column(self, processes: u8) -> u8 {
        match self {
            Self::Store => 0,
            Self::Process(process) => 1 + process,
            Self::Coordinator => 1 + processes,
            Self::Disk => 2 + processes,
        }
    }

    /// Its head.
    pub(super) fn name(self, setup: &Setup) -> String {
        match self {
            Self::Store => "store".to_string(),
            Self::Process(process) => setup.process_name(process),
            Self::Coordinator => "coordinator".to_string(),
            Self::Disk => "disk".to_string(),
        }
    }
}

/// How somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It takes part.
    Live,
    /// A process that is not registered.
    Waiting,
    /// A coordinator that is over: its sync failed.
    Over,
    /// It is not there.
    Gone,
}

impl State {
    /// How each lane is after a step, in the order of the columns.
    pub(super) fn of(world: &World) -> Vec<Self> {
        let processes = world.processes.iter().map(|process| match process.incarnation {
            Some(_) => Self::Live,
            None => Self::Waiting,
        });
        let coordinator = match &world.coordinator.engine {
            Some(engine) if engine.is_poisoned() => Self::Over,
            Some(_) => Self::Live,
            None => Self::Gone,
        };
        core::iter::once(Self::Live).chain(processes).chain([coordinator, Self::Live]).collect()
    }

    /// How a lane is before the first step.
    pub(super) const fn before(lane: Lane) -> Self {
        match lane {
            Lane::Process(_) => Self::Waiting,
            Lane::Store | Lane::Coordinator | Lane::Disk => Self::Live,
        }
    }

    /// Its class on the page; none when nothing is drawn.
    pub(super) const fn class(self) -> Option<&'static str> {
        match self {
            Self::Live => Some("live"),
            Self::Waiting => Some("waiting"),
            Self::Over => Some("over"),
            Self::Gone => None,
        }
    }
}

/// What is marked on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    /// Somebody did something.
    Point,
    /// A worker adopted what a load had brought.
    Adopted,
    /// Something is back.
    Back,
    /// The store lost or damaged something, or an operator said what is not so.
    Harm,
    /// It died, or failed.
    Break,
}

impl Sign {
    /// Its class on the page.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Adopted => "adopted",
            Self::Back => "back",
            Self::Harm => "harm",
            Self::Break => "break",
        }
    }
}

/// What a step marks: what was seen of it, and otherwise who did something.
pub(super) fn signs(now: &Now<'_>) -> Vec<(Lane, Sign)> {
    let mut signs: Vec<(Lane, Sign)> = Vec::new();
    for seen in now.seen {
        if let Some(sign) = sign_of(now, seen).filter(|sign| !signs.contains(sign)) {
            signs.push(sign);
        }
    }
    for lane in doers(now) {
        if signs.iter().all(|(marked, _)| *marked != lane) {
            signs.push((lane, Sign::Point));
        }
    }
    signs
}

fn sign_of(now: &Now<'_>, seen: &Seen) -> Option<(Lane, Sign)> {
    Some(match seen {
        Seen::SyncFailed | Seen::Crashed => (Lane::Coordinator, Sign::Break),
        Seen::Recovered => (Lane::Coordinator, Sign::Back),
        Seen::OwnerDied { owner, .. } => (now.lane_of(*owner)?, Sign::Break),
        Seen::StoreLost { .. } => (Lane::Store, Sign::Harm),
        Seen::Returned { .. } => (Lane::Store, Sign::Back),
        Seen::Adopted { pin, .. } => (now.lane_of(pin.op.owner)?, Sign::Adopted),
        Seen::FalseProof { owner, .. } => (now.lane_of(*owner)?, Sign::Harm),
        Seen::Submitted { .. }
        | Seen::Idled
        | Seen::Synced { .. }
        | Seen::Replied { .. }
        | Seen::HandedOut { .. }
        | Seen::Compares { .. }
        | Seen::Compared { .. }
        | Seen::Missed { .. }
        | Seen::MoveBegan { .. }
        | Seen::Landed { .. }
        | Seen::PutSucceeded { .. }
        | Seen::Confirmed { .. }
        | Seen::Retired { .. }
        | Seen::Deleted { .. }
        | Seen::SourceReused { .. }
        | Seen::DestinationReused { .. }
        | Seen::Listed { .. } => return None,
    })
}

/// Who does something by itself; where something arrives, the arrow says it.
fn doers(now: &Now<'_>) -> Vec<Lane> {
    match Part::of(now.choice) {
        Part::Done(lane) => vec![lane],
        Part::Agreed(attempt) => ranks(now, attempt),
        Part::Written => vec![Lane::Coordinator],
        Part::Carried(..) | Part::Replayed(_) | Part::Synced | Part::Stored => Vec::new(),
    }
}

/// The processes with a rank of an attempt.
fn ranks(now: &Now<'_>, attempt: u16) -> Vec<Lane> {
    let is_rank = |doing| matches!(doing, Doing::Saves { attempt: own, .. } if own == attempt);
    let processes = now.world.processes.iter().zip(0..);
    let ranks = processes.filter(|(it, _)| it.jobs.iter().any(|job| is_rank(job.doing)));
    ranks.map(|(_, process)| Lane::Process(process)).collect()
}
