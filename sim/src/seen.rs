//! What can be seen of a World from outside: the one language in which it talks to its judges.
//!
//! Nothing here is a predicate of the machine. A judge learns what reached the coordinator's door
//! and in which order, which records the disk has synced, what left the coordinator, and what the
//! store and the workers' memory went through.

use pinfold_core::catalog::Event;
use pinfold_core::engine::{Effect, Input, Reply, Ticket};
use pinfold_core::id::{CheckpointId, Incarnation, ManifestDigest, OwnerId, PinId, ShardIndex};
use pinfold_core::manifest::ObjectName;

use crate::store::{Content, StoreKey};

/// One move of bytes between a worker's memory and the store; its name is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MoveId(pub u64);

/// Which way bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From a worker's memory into the store.
    Put,
    /// From the store into a worker's memory.
    Get,
}

/// Why a delete was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Work that `Collect` handed out.
    Work,
    /// An audit named the key a stray.
    Stray,
}

/// One thing that was seen. The order in which they are told is the order in which they happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// An input reached the coordinator, which decided it at once.
    Submitted {
        /// The host's name for it, never used again.
        ticket: Ticket,
        /// What was asked.
        input: Input,
    },
    /// The coordinator, without input, did a follow-up if one waited.
    Idled,
    /// The disk has synced these records, in order.
    Synced {
        /// The records, as events.
        events: Vec<Event>,
    },
    /// A reply left the coordinator.
    Replied {
        /// To which input.
        ticket: Ticket,
        /// What it says.
        reply: Reply,
    },
    /// Delete work left the coordinator.
    HandedOut {
        /// The work.
        effect: Effect,
    },
    /// The disk failed to sync. Whatever waits is answered, and the coordinator is over.
    SyncFailed,
    /// The coordinator is gone, and with it whatever the disk has not synced.
    Crashed,
    /// The coordinator is back with what the disk holds.
    Recovered,
    /// A process of an owner began to live, or died. What it had begun to move goes on moving.
    OwnerDied {
        /// Whose process.
        owner: OwnerId,
        /// Its incarnation, if it had registered.
        incarnation: Option<Incarnation>,
    },
    /// A rank holds something that it must compare with the other ranks before anything moves, or
    /// before anything is adopted.
    Compares {
        /// The pin by which it holds it.
        pin: PinId,
    },
    /// A rank has compared, or has given up.
    Compared {
        /// The pin by which it holds it.
        pin: PinId,
        /// All ranks hold the same.
        same: bool,
    },
    /// A worker learned for certain that an object is absent, or is not what it must be.
    Missed {
        /// Under which pin it asked.
        pin: PinId,
        /// The object.
        key: StoreKey,
    },
    /// A move began: from now on somebody may touch the worker's memory.
    MoveBegan {
        /// Which move.
        id: MoveId,
        /// Which way.
        way: Way,
        /// What is moved.
        key: StoreKey,
        /// For which checkpoint.
        checkpoint: CheckpointId,
        /// Under which pin.
        pin: PinId,
    },
    /// A put's bytes are in the store now.
    Landed {
        /// Which move.
        id: MoveId,
        /// Under this key.
        key: StoreKey,
        /// These bytes.
        content: Content,
    },
    /// The worker learned that its put was a clean success.
    PutSucceeded {
        /// Which move.
        id: MoveId,
    },
    /// The worker learned by a check that an object of a save is there with its size.
    Confirmed {
        /// Under which pin it asked.
        pin: PinId,
        /// The object.
        key: StoreKey,
    },
    /// Nobody touches the memory of this move any more.
    Retired {
        /// Which move.
        id: MoveId,
    },
    /// A delete reached the store.
    Deleted {
        /// The key.
        key: StoreKey,
        /// Why it was deleted.
        cause: Cause,
    },
    /// The store lost an object by itself, or somebody else damaged it.
    StoreLost {
        /// The key.
        key: StoreKey,
    },
    /// An object that the store had lost is back.
    Returned {
        /// The key.
        key: StoreKey,
    },
    /// A worker gave the memory of a shard that it was saving to somebody else.
    SourceReused {
        /// The pin of the save.
        pin: PinId,
        /// The shard.
        shard: ShardIndex,
    },
    /// A worker gave the memory that it was loading into to somebody else.
    DestinationReused {
        /// The pin of the load.
        pin: PinId,
    },
    /// A worker adopted what a load had brought.
    Adopted {
        /// The pin of the load.
        pin: PinId,
        /// Of which checkpoint.
        checkpoint: CheckpointId,
        /// The digest of the manifest by which it was loaded; none where nobody says.
        digest: Option<ManifestDigest>,
        /// Every object that it must have brought, and what its memory holds of it now.
        memory: Vec<(ObjectName, Option<Content>)>,
    },
    /// An operator asserted the proof that a pin's, or an incarnation's, memory is done with,
    /// although it was not.
    FalseProof {
        /// Whose.
        owner: OwnerId,
        /// Which incarnation.
        incarnation: Incarnation,
    },
    /// The store was listed; these are all of its keys.
    Listed {
        /// The audit's input.
        ticket: Ticket,
        /// The keys, in the order in which they are asked about.
        keys: Vec<StoreKey>,
    },
}

impl Seen {
    /// True for what is asked of the coordinator, and what becomes of it and leaves it; false for
    /// what happens to bytes, memory and processes.
    #[must_use]
    pub const fn is_of_the_coordinator(&self) -> bool {
        match self {
            Self::Submitted { .. }
            | Self::Idled
            | Self::Synced { .. }
            | Self::Replied { .. }
            | Self::HandedOut { .. }
            | Self::SyncFailed
            | Self::Crashed
            | Self::Recovered => true,
            Self::OwnerDied { .. }
            | Self::Compares { .. }
            | Self::Compared { .. }
            | Self::Missed { .. }
            | Self::MoveBegan { .. }
            | Self::Landed { .. }
            | Self::PutSucceeded { .. }
            | Self::Confirmed { .. }
            | Self::Retired { .. }
            | Self::Deleted { .. }
            | Self::StoreLost { .. }
            | Self::Returned { .. }
            | Self::SourceReused { .. }
            | Self::DestinationReused { .. }
            | Self::Adopted { .. }
            | Self::FalseProof { .. }
            | Self::Listed { .. } => false,
        }
    }
}
