//! The store: what it holds, and what is under way to and from it.
//!
//! It is as unreliable as a real one: a put's answer and its bytes may differ, a delete's outcome
//! may be unknown, an object may vanish, come back or be damaged. It decides nothing; each way in
//! which it can go is a choice of the World.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::id::{CheckpointId, ObjectId, OpId, PinId};
use pinfold_core::manifest::{ObjectName, SharedName};
use pinfold_core::outcome::DeleteOutcome;

use crate::seen::{MoveId, Way};
use crate::world::choice::JobId;

/// What a stored value is named by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreKey {
    /// A private object of this job, by its derived key.
    Private(CheckpointId, ObjectId),
    /// An attention page, written by many.
    Shared(SharedName),
    /// Somebody else's.
    Foreign(u8),
}

impl StoreKey {
    /// The key of an object of a checkpoint.
    #[must_use]
    pub const fn of(checkpoint: CheckpointId, object: ObjectName) -> Self {
        match object {
            ObjectName::Private(object) => Self::Private(checkpoint, object),
            ObjectName::Shared(name) => Self::Shared(name),
        }
    }
}

/// What a stored value's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// The bytes that belong under this key, with a trailer that says so.
    Of(StoreKey),
    /// Anything else of the right size: its trailer does not fit.
    Garbage,
}

/// A stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    /// What its bytes are.
    pub content: Content,
    /// How many.
    pub bytes: u64,
}

/// A move of one object between a worker's memory and the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// Its number.
    pub id: MoveId,
    /// For which transfer.
    pub job: JobId,
    /// Under which pin.
    pub pin: PinId,
    /// Which way.
    pub way: Way,
    /// The object.
    pub object: ObjectName,
    /// Its key.
    pub key: StoreKey,
    /// Its size in the store.
    pub bytes: u64,
    /// The worker has its answer.
    pub answered: bool,
    /// The worker's memory may still be touched.
    pub exposed: bool,
    /// A put's bytes that are still to land.
    pub lands: bool,
}

/// A check of an object's presence and size, on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// Its number.
    pub id: MoveId,
    /// For which transfer.
    pub job: JobId,
    /// The object.
    pub object: ObjectName,
    /// Its key.
    pub key: StoreKey,
    /// The size that it must have.
    pub bytes: u64,
}

/// Delete work in somebody's hands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Work {
    /// Its number.
    pub number: u16,
    /// Who asked for it.
    pub by: OpId,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// What is to be deleted, in order.
    pub objects: Vec<ObjectId>,
    /// What became of the first of them.
    pub outcomes: Vec<(ObjectId, DeleteOutcome)>,
}

/// The store. See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    /// What is stored.
    pub objects: BTreeMap<StoreKey, Stored>,
    /// What it lost by itself, and may find again.
    pub vanished: BTreeMap<StoreKey, Stored>,
    /// Moves that somebody still works on, in the order in which they began.
    pub moves: Vec<Move>,
    /// Checks without an answer.
    pub checks: Vec<Check>,
    /// Deletes whose answer is lost and that may still take effect.
    pub late_deletes: BTreeSet<(CheckpointId, ObjectId)>,
    /// Delete work in somebody's hands.
    pub work: Vec<Work>,
    /// Keys that an audit named strays.
    pub strays: BTreeSet<(CheckpointId, ObjectId)>,
}

impl Store {
    /// The place of a move among those under way.
    #[must_use]
    pub fn place_of(&self, id: MoveId) -> Option<usize> {
        self.moves.iter().position(|it| it.id == id)
    }

    /// True while somebody reads an object: work on it is refused. Deletes that take effect late,
    /// and sweeps of strays, take no notice.
    #[must_use]
    pub fn is_leased(&self, key: StoreKey) -> bool {
        self.moves.iter().any(|it| it.way == Way::Get && it.key == key && it.exposed)
    }

    /// Forgets a move that nothing more can come of.
    pub fn settle(&mut self, place: usize) {
        let it = self.moves[place];
        if it.answered && !it.exposed && !it.lands {
            self.moves.remove(place);
        }
    }
}
