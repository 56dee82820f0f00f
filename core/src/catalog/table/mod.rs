//! Records, and the only code that changes what is linked, indexed or counted.
//!
//! A *step* here keeps every index, list and counter true by itself; it decides nothing. What a
//! verb means is in the family files, which are made of these steps.

mod checkpoints;
mod likeness;
mod owners;
mod pins;
mod turns;

pub(crate) use checkpoints::NewCheckpoint;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::index::{Index, hash_id, hash_words};
use super::list::{Ends, Links};
use super::receipt::Receipts;
use super::shape::Shapes;
use super::slab::{NONE, Slab, Slot};
use crate::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Generation, Incarnation, ManifestDigest,
    OwnerId, StartId, TurnId,
};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{DeleteOutcome, Evidence};
use crate::policy::Genesis;

use super::owner::Role;

/// The whole state. Rows are found by identity, through one index per kind.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// What the job began with; policy and limits as they are now.
    pub(crate) job: Genesis,
    pub(crate) generation: Generation,
    pub(crate) incarnation: Incarnation,

    pub(crate) owners: Slab<Owner>,
    owner_index: Index,
    /// Incarnations that are current or still have pins.
    pub(crate) lives: Slab<Life>,
    /// Those among them that are not current, by number: no two owners share one.
    older_lives: BTreeMap<Incarnation, Slot>,
    pub(crate) pins: Slab<Pin>,
    pin_index: Index,

    pub(crate) checkpoints: Slab<Checkpoint>,
    endpoint_index: Index,
    attempt_index: Index,
    pub(crate) shapes: Shapes,
    pub(crate) assemblies: Slab<Assembly>,
    pub(crate) disposals: Slab<Disposal>,
    /// Every collectable or collecting checkpoint, in the order in which `Collect` takes them.
    pub(crate) queue: Ends,

    /// Never freed: a conversation is known for the job's life. Slot order is first-seen order.
    pub(crate) conversations: Slab<Conversation>,
    conversation_index: Index,
    pub(crate) references: Slab<Reference>,
    /// Every live turn of the job in order of first publication.
    pub(crate) turns: Ends,
    pub(crate) expired: Slab<Expired>,
    /// Live turns by reference slot, expired ones by slot with [`EXPIRED`] set.
    turn_index: Index,

    /// Conversations with follow-ups due, in order.
    pub(crate) due: Ends,
    /// Fenced incarnations that still have pins, in order.
    pub(crate) fencing: Ends,
    /// The conversation from which a lowered bound still has to be applied.
    pub(crate) trim: Option<Slot>,

    pub(crate) counters: Counters,
}

/// Running sums; each equals its recount (I13). Rows times bytes may exceed 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) bytes: u128,
    pub(crate) bytes_pinned: u128,
    pub(crate) bytes_unscoped: u128,
    pub(crate) bytes_in_doubt: u128,
    pub(crate) bytes_quarantined: u128,
    pub(crate) bytes_retained: u128,
    pub(crate) turns: u32,
    pub(crate) forgotten: u32,
}

/// A registered owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) id: OwnerId,
    pub(crate) role: Role,
    /// Its current incarnation's row; none before the first registration.
    pub(crate) current: Slot,
    pub(crate) start: StartId,
    /// Every incarnation that it ever had, ascending, and whether it is fenced.
    pub(crate) incarnations: Vec<(Incarnation, bool)>,
    pub(crate) pins: u32,
    pub(crate) receipts: Receipts,
}

/// One incarnation, while it is current or has pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) owner: Slot,
    pub(crate) number: Incarnation,
    pub(crate) current: bool,
    pub(crate) fenced: bool,
    pub(crate) pins: Slot,
    pub(crate) pin_count: u32,
    /// Bytes of its unsettled pins, and of those among them that are marked or in doubt.
    pub(crate) bytes_unsettled: u128,
    pub(crate) bytes_doubted: u128,
    pub(crate) fencing: Links,
}

impl Life {
    /// True while its pins are healthy and only explicit doubt counts.
    pub(crate) const fn is_live(&self) -> bool {
        self.current && !self.fenced
    }

    const fn bytes_in_doubt(&self) -> u128 {
        if self.is_live() { self.bytes_doubted } else { self.bytes_unsettled }
    }
}

/// A durable hold of one incarnation on one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) sequence: u64,
    pub(crate) place: u8,
    pub(crate) doubted: bool,
    /// A load pin that was settled `InDoubt`.
    pub(crate) load_in_doubt: bool,
    pub(crate) life: Slot,
    pub(crate) checkpoint: Slot,
    /// The assembly with this save pin's shards; none for a load pin.
    pub(crate) assembly: Slot,
    /// The first of the shards that it claims.
    pub(crate) claims: Slot,
    /// Claimed shards that are not final, and those in doubt among them; 1 and 0 for a load pin.
    pub(crate) open: u32,
    pub(crate) in_doubt: u32,
    /// What it stands for: its shards' bytes, or the whole checkpoint's for a load pin.
    pub(crate) bytes: u64,
    pub(crate) of_checkpoint: Links,
    pub(crate) of_life: Links,
}

impl Pin {
    pub(crate) const fn is_save(&self) -> bool {
        self.assembly != NONE
    }

    pub(crate) const fn is_unsettled(&self) -> bool {
        self.open > 0
    }

    pub(crate) const fn is_doubted(&self) -> bool {
        self.is_unsettled() && (self.doubted || self.load_in_doubt || self.in_doubt > 0)
    }

    /// Its bytes while it is unsettled, and while it is doubted.
    const fn bytes_open(&self) -> [u64; 2] {
        let unsettled = if self.is_unsettled() { self.bytes } else { 0 };
        let doubted = if self.is_doubted() { self.bytes } else { 0 };
        [unsettled, doubted]
    }
}

/// How far a checkpoint has come. `Published` is `Whole` with a reference.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub(crate) enum Stage {
    Prepared,
    Failed,
    Whole,
    Collecting,
}

/// One attempt to keep a position. 88 bytes: there are millions of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) endpoint: EndpointId,
    pub(crate) attempt: AttemptId,
    pub(crate) digest: ManifestDigest,
    pub(crate) generation: Generation,
    pub(crate) shape: Slot,
    /// What `holds` says.
    link: Slot,
    pub(crate) pins: Slot,
    pub(crate) stage: Stage,
    pub(crate) lost: bool,
    pub(crate) unscoped: Unscoped,
    /// In the queue: without pin and reference.
    idle: bool,
}

/// Whether an unscoped publication holds a checkpoint.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub(crate) enum Unscoped {
    Never,
    Marked,
    Dropped,
}

/// What a checkpoint's one link leads to; the three never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Its shards' claims, while it is prepared or failed and has a pin.
    Assembly(Slot),
    /// The first reference to it, while it is whole and has a pin or a reference.
    References(Slot),
    /// Its place in the queue, while it has neither.
    Disposal(Slot),
}

impl Checkpoint {
    pub(crate) const fn id(&self) -> CheckpointId {
        CheckpointId { endpoint: self.endpoint, generation: self.generation }
    }

    pub(crate) const fn holds(&self) -> Holds {
        match (self.idle, self.stage) {
            (true, _) => Holds::Disposal(self.link),
            (false, Stage::Prepared | Stage::Failed) => Holds::Assembly(self.link),
            (false, Stage::Whole | Stage::Collecting) => Holds::References(self.link),
        }
    }

    /// The first reference of a live turn to it.
    pub(crate) const fn references(&self) -> Slot {
        match self.holds() {
            Holds::References(first) => first,
            Holds::Assembly(_) | Holds::Disposal(_) => NONE,
        }
    }

    /// May be served: whole, not lost, not being collected.
    pub(crate) fn is_restorable(&self) -> bool {
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::ServeLost) && self.stage == Stage::Whole {
            return true;
        }
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::ServeCollecting) && self.stage == Stage::Collecting {
            return !self.lost;
        }
        matches!(self.stage, Stage::Whole) && !self.lost
    }
}

/// The shards of a checkpoint while somebody saves it. Rows are reused with their buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assembly {
    /// Live save pins.
    pub(crate) savers: u32,
    /// Shards that have not succeeded.
    pub(crate) missing: u32,
    pub(crate) shards: Vec<Claim>,
}

/// One shard's claim and evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) by: Claimant,
    pub(crate) evidence: Option<Evidence>,
    /// The next shard of the same pin.
    pub(crate) next: Slot,
}

/// Who claimed a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimant {
    Nobody,
    Pin(Slot),
    /// A pin that has ended since.
    Ended,
}

/// A collectable checkpoint's place in the queue, and how far its deletion is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disposal {
    pub(crate) checkpoint: Slot,
    pub(crate) queue: Links,
    /// The next object to hand out in this round.
    pub(crate) cursor: u32,
    /// Objects that are not gone.
    pub(crate) left: u32,
    pub(crate) unknown: u32,
    /// The latest outcome of each object; empty until the first `Collect`.
    pub(crate) outcomes: Vec<Option<DeleteOutcome>>,
}

/// A conversation: its ledger, its bytes and its expired turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversation {
    pub(crate) id: ConversationId,
    pub(crate) bytes: u64,
    /// The ledger's first and last reference; a turn's references stand together.
    pub(crate) head: Slot,
    pub(crate) tail: Slot,
    pub(crate) turns: u32,
    pub(crate) expired: Slot,
    pub(crate) expired_count: u32,
    pub(crate) forgotten: bool,
    pub(crate) is_due: bool,
    pub(crate) due: Links,
}

/// One reference of a live turn to a checkpoint. The first one of a turn stands for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) turn: TurnId,
    pub(crate) conversation: Slot,
    pub(crate) checkpoint: Slot,
    pub(crate) next_in_ledger: Slot,
    pub(crate) of_checkpoint: Links,
    pub(crate) in_job: Links,
}

/// The identity of an expired turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    pub(crate) turn: TurnId,
    pub(crate) conversation: Slot,
    pub(crate) next: Slot,
}

/// Marks an entry of the turn index as a slot of [`Expired`].
const EXPIRED: Slot = 1 << 31;

/// What is known of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnState {
    Unknown,
    Live(Slot),
    Expired,
}

impl Table {
    pub(crate) fn new(job: Genesis) -> Self {
        let operator = job.operator;
        let mut table = Self {
            job,
            generation: Generation(0),
            incarnation: Incarnation(0),
            owners: Slab::new(),
            owner_index: Index::new(),
            lives: Slab::new(),
            older_lives: BTreeMap::new(),
            pins: Slab::new(),
            pin_index: Index::new(),
            checkpoints: Slab::new(),
            endpoint_index: Index::new(),
            attempt_index: Index::new(),
            shapes: Shapes::new(),
            assemblies: Slab::new(),
            disposals: Slab::new(),
            queue: Ends::EMPTY,
            conversations: Slab::new(),
            conversation_index: Index::new(),
            references: Slab::new(),
            turns: Ends::EMPTY,
            expired: Slab::new(),
            turn_index: Index::new(),
            due: Ends::EMPTY,
            fencing: Ends::EMPTY,
            trim: None,
            counters: Counters::default(),
        };
        table.add_owner(operator, Role::Operator);
        table
    }

    /// Whether every row is the same and in the same place. Then the states are equal, and none of
    /// it has to be put in order to see that; equal states may differ here.
    pub(crate) fn has_same_places(&self, other: &Self) -> bool {
        let Self {
            job,
            generation,
            incarnation,
            owners,
            owner_index: _,
            lives,
            older_lives,
            pins,
            pin_index: _,
            checkpoints,
            endpoint_index: _,
            attempt_index: _,
            shapes,
            assemblies,
            disposals,
            queue,
            conversations,
            conversation_index: _,
            references,
            turns,
            expired,
            turn_index: _,
            due,
            fencing,
            trim,
            counters,
        } = self;
        *job == other.job
            && *generation == other.generation
            && *incarnation == other.incarnation
            && *owners == other.owners
            && *lives == other.lives
            && *older_lives == other.older_lives
            && *pins == other.pins
            && *checkpoints == other.checkpoints
            && shapes.has_same_places(&other.shapes)
            && *assemblies == other.assemblies
            && *disposals == other.disposals
            && *queue == other.queue
            && *conversations == other.conversations
            && *references == other.references
            && *turns == other.turns
            && *expired == other.expired
            && *due == other.due
            && *fencing == other.fencing
            && *trim == other.trim
            && *counters == other.counters
    }

    /// Expired turns and forgotten conversations remembered.
    pub(crate) fn expired_turns(&self) -> u32 {
        self.expired.len() + self.counters.forgotten
    }

    /// How many entries each index holds: owners, pins, endpoints, attempts, conversations, turns.
    pub(crate) fn index_lengths(&self) -> [u32; 6] {
        [
            self.owner_index.len(),
            self.pin_index.len(),
            self.endpoint_index.len(),
            self.attempt_index.len(),
            self.conversation_index.len(),
            self.turn_index.len(),
        ]
    }
}

/// An incarnation belongs to one owner, so it stands for both.
fn pin_hash(incarnation: Incarnation, sequence: u64, place: u8) -> u64 {
    hash_words(incarnation.0 ^ (u64::from(place) << 56), sequence)
}

fn turn_hash(conversation: Slot, turn: TurnId) -> u64 {
    hash_words(hash_id(turn.as_bytes()), u64::from(conversation))
}
