//! "Why is this still here?": everything that keeps a checkpoint, completely, in a fixed order.

use alloc::vec::Vec;

use super::Catalog;
use super::slab::{NONE, Slot};
use super::table::{Claimant, Holds, Stage, Unscoped};
use crate::id::{CheckpointId, ObjectId, PinId, ShardIndex};
use crate::outcome::{DeleteOutcome, Evidence, TurnKey};

/// One reason why a checkpoint has a record. The order of the variants is the order of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocker {
    /// A live turn refers to it.
    Retained {
        /// The turn.
        turn: TurnKey,
    },
    /// An unscoped publication holds it.
    Unscoped,
    /// A pin holds it.
    Pinned {
        /// The pin, which names its owner and incarnation.
        pin: PinId,
        /// For a save; else for a load.
        save: bool,
    },
    /// Nobody has claimed this shard yet.
    WaitingForShard {
        /// The shard.
        shard: ShardIndex,
    },
    /// A pin's transfer has not been settled.
    InFlight {
        /// The pin.
        pin: PinId,
        /// The shard that it saves; none for a load.
        shard: Option<ShardIndex>,
    },
    /// An unsettled pin is marked, settled `InDoubt`, or of a fenced or older incarnation.
    InDoubt {
        /// The pin.
        pin: PinId,
    },
    /// Nothing holds it: the next `Collect` takes it in its turn.
    Collectable,
    /// It is being deleted.
    Collecting {
        /// How many objects are not gone.
        left: u32,
        /// Those whose last delete was refused.
        refused: Vec<ObjectId>,
    },
    /// Deletes of these objects have an unknown outcome.
    Quarantined {
        /// The objects.
        objects: Vec<ObjectId>,
    },
    /// It is lost, and never served again.
    Lost,
}

/// Who may lift a blocker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lifter {
    /// Retention, by a later publication or a lower bound.
    Policy,
    /// The owner of the pin.
    Owner,
    /// A collector.
    Collector,
    /// An operator.
    Operator,
}

impl Blocker {
    /// Every name, in the order of an answer.
    pub const NAMES: [&'static str; 10] = [
        "retained",
        "unscoped",
        "pinned",
        "waiting for shard",
        "in flight",
        "in doubt",
        "collectable",
        "collecting",
        "quarantined",
        "lost",
    ];

    /// The blocker's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Retained { .. } => "retained",
            Self::Unscoped => "unscoped",
            Self::Pinned { .. } => "pinned",
            Self::WaitingForShard { .. } => "waiting for shard",
            Self::InFlight { .. } => "in flight",
            Self::InDoubt { .. } => "in doubt",
            Self::Collectable => "collectable",
            Self::Collecting { .. } => "collecting",
            Self::Quarantined { .. } => "quarantined",
            Self::Lost => "lost",
        }
    }

    /// How it is lifted.
    #[must_use]
    pub const fn lift(&self) -> &'static str {
        match self {
            Self::Retained { .. } => {
                "publish newer turns, lower a bound with Configure, or Forget the conversation"
            }
            Self::Unscoped => "Drop the checkpoint",
            Self::Pinned { .. } => {
                "its owner settles it and releases a save; or, on proof, an operator does or fences"
            }
            Self::WaitingForShard { .. } => "the missing rank joins, or the pins end",
            Self::InFlight { .. } => {
                "its owner settles the transfer's end; or, on proof made outside, an operator does"
            }
            Self::InDoubt { .. } => {
                "its owner settles it; or, on proof made outside, an operator settles or fences it"
            }
            Self::Collectable => "Collect",
            Self::Collecting { .. } => "Collect again, and report each outcome with Deleted",
            Self::Quarantined { .. } => "repeat the delete or probe, and report with Deleted",
            Self::Lost => "nothing: it goes when nothing holds it any more",
        }
    }

    /// Who may lift it, the usual one first.
    #[must_use]
    pub const fn lifters(&self) -> &'static [Lifter] {
        match self {
            Self::Retained { .. } => &[Lifter::Policy, Lifter::Operator],
            Self::Pinned { .. } | Self::InFlight { .. } | Self::InDoubt { .. } => {
                &[Lifter::Owner, Lifter::Operator]
            }
            Self::WaitingForShard { .. } => &[Lifter::Owner],
            Self::Unscoped => &[Lifter::Operator],
            Self::Collectable | Self::Collecting { .. } | Self::Quarantined { .. } => {
                &[Lifter::Collector]
            }
            Self::Lost => &[],
        }
    }
}

impl Lifter {
    /// The lifter's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Owner => "owner",
            Self::Collector => "collector",
            Self::Operator => "operator",
        }
    }
}

/// All blockers of one checkpoint, in order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blockers {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Its bytes, over all shards.
    pub bytes: u64,
    /// Why it is here.
    pub blockers: Vec<Blocker>,
}

impl Catalog {
    /// Everything that keeps a checkpoint; none when it has no record.
    #[must_use]
    pub fn blockers(&self, checkpoint: CheckpointId) -> Option<Blockers> {
        let slot = self.table.checkpoint(checkpoint)?;
        let row = &self.table.checkpoints[slot];
        let mut blockers = self.references_to(slot);
        if row.unscoped == Unscoped::Marked {
            blockers.push(Blocker::Unscoped);
        }
        self.push_pins(slot, &mut blockers);
        if let Holds::Assembly(assembly) = row.holds() {
            let claims = &self.table.assemblies[assembly].shards;
            // The end is in the range: there may be a shard of every number.
            for (claim, number) in claims.iter().zip(0..=u16::MAX) {
                if claim.by == Claimant::Nobody && row.stage == Stage::Prepared {
                    blockers.push(Blocker::WaitingForShard { shard: ShardIndex(number) });
                }
            }
        }
        if let Holds::Disposal(disposal) = row.holds() {
            self.push_disposal(slot, disposal, &mut blockers);
        }
        if row.lost {
            blockers.push(Blocker::Lost);
        }
        blockers.sort();
        Some(Blockers { checkpoint, bytes: self.table.shapes.bytes(row.shape), blockers })
    }

    /// Every checkpoint with a record, by generation.
    #[must_use]
    pub fn checkpoints(&self) -> Vec<CheckpointId> {
        let slots = self.table.checkpoints.slots();
        let mut ids: Vec<_> = slots.map(|slot| self.table.checkpoints[slot].id()).collect();
        ids.sort_by_key(|id| id.generation);
        ids
    }

    fn references_to(&self, slot: Slot) -> Vec<Blocker> {
        let mut blockers = Vec::new();
        let mut reference = self.table.checkpoints[slot].references();
        while reference != NONE {
            let turn = self.table.turn_key(reference);
            blockers.push(Blocker::Retained { turn });
            reference = self.table.references[reference].of_checkpoint.next;
        }
        blockers
    }

    fn push_pins(&self, slot: Slot, blockers: &mut Vec<Blocker>) {
        let mut next = self.table.checkpoints[slot].pins;
        while next != NONE {
            let row = &self.table.pins[next];
            let pin = self.table.pin_id(next);
            blockers.push(Blocker::Pinned { pin, save: row.is_save() });
            for shard in self.claims_of(next) {
                let claim = self.table.assemblies[row.assembly].shards[shard as usize];
                if !claim.evidence.is_some_and(Evidence::is_final) {
                    let shard = ShardIndex(u16::try_from(shard).unwrap_or(u16::MAX));
                    blockers.push(Blocker::InFlight { pin, shard: Some(shard) });
                }
            }
            if !row.is_save() {
                blockers.push(Blocker::InFlight { pin, shard: None });
            }
            if self.table.is_in_doubt(next) {
                blockers.push(Blocker::InDoubt { pin });
            }
            next = row.of_checkpoint.next;
        }
    }

    fn push_disposal(&self, slot: Slot, disposal: Slot, blockers: &mut Vec<Blocker>) {
        let row = &self.table.disposals[disposal];
        if self.table.checkpoints[slot].stage != Stage::Collecting {
            blockers.push(Blocker::Collectable);
            return;
        }
        let shape = self.table.shapes.shape(self.table.checkpoints[slot].shape);
        let with = |outcome: DeleteOutcome| -> Vec<ObjectId> {
            let outcomes = row.outcomes.iter().zip(0..);
            let places = outcomes.filter(|(there, _)| **there == Some(outcome));
            places.filter_map(|(_, place)| shape.object_at(place)).collect()
        };
        let refused = with(DeleteOutcome::Refused);
        blockers.push(Blocker::Collecting { left: row.left, refused });
        if row.unknown > 0 {
            blockers.push(Blocker::Quarantined { objects: with(DeleteOutcome::Unknown) });
        }
    }
}
