//! What the catalog holds, for those who look on: an operator, a page, a metric.
//!
//! Each answer is made when it is asked for and follows logical order, never slots. It decides
//! nothing, and no decision looks here.

use alloc::vec::Vec;

use super::slab::{NONE, Slot};
use super::table::{Holds, Stage, Unscoped};
use super::{Catalog, Role};
use crate::id::{
    CheckpointId, ConversationId, EndpointId, Generation, Incarnation, OwnerId, PinId, TurnId,
};
use crate::outcome::TurnKey;

/// How far a checkpoint has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Its shards are being saved.
    Prepared,
    /// A shard failed, or the last pin ended too early.
    Failed,
    /// Every shard succeeded, and nothing refers to it.
    Complete,
    /// Every shard succeeded, and a live turn or the unscoped mark refers to it.
    Published,
    /// It is being deleted.
    Collecting,
}

impl State {
    /// The state's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Failed => "failed",
            Self::Complete => "complete",
            Self::Published => "published",
            Self::Collecting => "collecting",
        }
    }
}

/// A checkpoint with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointFacts {
    /// The checkpoint.
    pub id: CheckpointId,
    /// How far it has come.
    pub state: State,
    /// An object of it is gone or wrong: it is never served again.
    pub lost: bool,
    /// Its bytes, over all shards.
    pub bytes: u64,
    /// Its private objects, over all shards.
    pub objects: u32,
    /// Objects whose deletion has an unknown outcome; any of them makes it quarantined.
    pub unknown: u32,
}

/// What became of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was never minted: no checkpoint had this number yet.
    NeverMinted,
    /// Every object of its checkpoint is gone, and so is the record.
    Collected,
    /// Its checkpoint has a record.
    Counted(CheckpointId),
}

/// A live pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinFacts {
    /// The pin, which names its owner and incarnation.
    pub id: PinId,
    /// What it holds.
    pub checkpoint: CheckpointId,
    /// For a save; else for a load.
    pub save: bool,
    /// Unsettled, and marked, settled `InDoubt`, or of a fenced or older incarnation.
    pub in_doubt: bool,
    /// What it stands for: the bytes of the shards that it saves, or of the whole checkpoint.
    pub bytes: u64,
}

/// A registered owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerFacts {
    /// The owner.
    pub id: OwnerId,
    /// What it may do.
    pub role: Role,
    /// Its current incarnation; 0 before the first.
    pub incarnation: Incarnation,
    /// Its current incarnation is barred.
    pub fenced: bool,
    /// Live pins, over all its incarnations.
    pub pins: u32,
    /// Bytes of the checkpoints that they hold, each once.
    pub bytes_pinned: u64,
}

/// A conversation that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationFacts {
    /// The conversation.
    pub id: ConversationId,
    /// Live turns.
    pub turns: u32,
    /// Bytes of the checkpoints that they refer to, each once.
    pub bytes: u64,
    /// Expired turns whose identities are kept.
    pub expired_turns: u32,
    /// It is over for ever.
    pub forgotten: bool,
}

impl Catalog {
    /// The last generation that was minted; 0 before the first.
    #[must_use]
    pub const fn last_generation(&self) -> Generation {
        self.table.generation
    }

    /// What became of a generation. It looks at every record.
    #[must_use]
    pub fn fate(&self, generation: Generation) -> Fate {
        if generation == Generation(0) || generation > self.table.generation {
            return Fate::NeverMinted;
        }
        let rows = &self.table.checkpoints;
        let found = rows.slots().find(|slot| rows[*slot].generation == generation);
        found.map_or(Fate::Collected, |slot| Fate::Counted(rows[slot].id()))
    }

    /// A checkpoint; none when it has no record.
    #[must_use]
    pub fn checkpoint(&self, id: CheckpointId) -> Option<CheckpointFacts> {
        let slot = self.table.checkpoint(id)?;
        let row = &self.table.checkpoints[slot];
        let shape = self.table.shapes.shape(row.shape);
        let has_reference = row.references() != NONE || row.unscoped == Unscoped::Marked;
        let state = match row.stage {
            Stage::Prepared => State::Prepared,
            Stage::Failed => State::Failed,
            Stage::Whole if has_reference => State::Published,
            Stage::Whole => State::Complete,
            Stage::Collecting => State::Collecting,
        };
        let unknown = match row.holds() {
            Holds::Disposal(disposal) => self.table.disposals[disposal].unknown,
            Holds::Assembly(_) | Holds::References(_) => 0,
        };
        let bytes = self.table.shapes.bytes(row.shape);
        let (lost, objects) = (row.lost, shape.objects());
        Some(CheckpointFacts { id, state, lost, bytes, objects, unknown })
    }

    /// Every live turn and a checkpoint that it refers to, each pair once, in order.
    #[must_use]
    pub fn live_turns(&self) -> Vec<(TurnKey, CheckpointId)> {
        let references = &self.table.references;
        let of = |slot: Slot| {
            let checkpoint = self.table.checkpoints[references[slot].checkpoint].id();
            (self.table.turn_key(slot), checkpoint)
        };
        let mut turns: Vec<_> = references.slots().map(of).collect();
        turns.sort_unstable();
        turns
    }

    /// True while this pin holds a checkpoint.
    #[must_use]
    pub fn has_pin(&self, pin: PinId) -> bool {
        self.table.pin(pin).is_some()
    }

    /// Every live pin, by owner, incarnation and operation.
    #[must_use]
    pub fn pins(&self) -> Vec<PinFacts> {
        let slots = self.table.pins.slots();
        let mut pins: Vec<_> = slots.map(|slot| self.pin_facts(slot)).collect();
        pins.sort_by_key(|pin| pin.id);
        pins
    }

    pub(super) fn pin_facts(&self, slot: Slot) -> PinFacts {
        let row = &self.table.pins[slot];
        PinFacts {
            id: self.table.pin_id(slot),
            checkpoint: self.table.checkpoints[row.checkpoint].id(),
            save: row.is_save(),
            in_doubt: self.table.is_in_doubt(slot),
            bytes: row.bytes,
        }
    }

    /// Every owner, by id.
    #[must_use]
    pub fn owners(&self) -> Vec<OwnerFacts> {
        let holds = self.holds_by_owner();
        let weighed = |slot: Slot| {
            let from = holds.partition_point(|(owner, _)| *owner < slot);
            let own = holds[from..].iter().take_while(|(owner, _)| *owner == slot);
            let bytes = own.map(|(_, checkpoint)| {
                self.table.shapes.bytes(self.table.checkpoints[*checkpoint].shape)
            });
            let bytes_pinned = bytes.fold(0, u64::saturating_add);
            OwnerFacts { bytes_pinned, ..self.owner_facts(slot) }
        };
        let mut owners: Vec<_> = self.table.owners.slots().map(weighed).collect();
        owners.sort_by_key(|owner| owner.id);
        owners
    }

    /// The same without the bytes that their pins hold, which are 0 here: those take a look at
    /// every pin.
    #[must_use]
    pub fn owners_unweighed(&self) -> Vec<OwnerFacts> {
        let slots = self.table.owners.slots();
        let mut owners: Vec<_> = slots.map(|slot| self.owner_facts(slot)).collect();
        owners.sort_by_key(|owner| owner.id);
        owners
    }

    /// An owner without the bytes that its pins hold.
    fn owner_facts(&self, slot: Slot) -> OwnerFacts {
        let row = &self.table.owners[slot];
        let incarnation = self.table.current(slot);
        OwnerFacts {
            id: row.id,
            role: row.role,
            incarnation,
            fenced: self.table.is_fenced(slot, incarnation) == Some(true),
            pins: row.pins,
            bytes_pinned: 0,
        }
    }

    /// Every conversation that was seen, in that order.
    pub fn conversations(&self) -> impl Iterator<Item = ConversationFacts> + use<'_> {
        self.conversations_after(0)
    }

    pub(super) fn conversation_facts(&self, slot: Slot) -> ConversationFacts {
        let row = &self.table.conversations[slot];
        ConversationFacts {
            id: row.id,
            turns: row.turns,
            bytes: row.bytes,
            expired_turns: row.expired_count,
            forgotten: row.forgotten,
        }
    }

    /// A conversation, and its live turns in order of first publication, each with every checkpoint
    /// that it refers to; none of one that was never seen.
    #[must_use]
    pub fn ledger(
        &self,
        conversation: ConversationId,
    ) -> Option<(ConversationFacts, Vec<(TurnId, CheckpointId)>)> {
        let slot = self.table.conversation(conversation)?;
        let mut turns = Vec::new();
        let mut next = self.table.conversations[slot].head;
        while next != NONE {
            let row = &self.table.references[next];
            turns.push((row.turn, self.table.checkpoints[row.checkpoint].id()));
            next = row.next_in_ledger;
        }
        Some((self.conversation_facts(slot), turns))
    }

    /// Every checkpoint of a position, by generation.
    #[must_use]
    pub fn checkpoints_of(&self, endpoint: EndpointId) -> Vec<CheckpointId> {
        let slots = self.table.generations(endpoint);
        let mut ids: Vec<_> = slots.map(|slot| self.table.checkpoints[slot].id()).collect();
        ids.sort_unstable_by_key(|id| id.generation);
        ids
    }

    /// Which owner pins which checkpoint, each pair once.
    fn holds_by_owner(&self) -> Vec<(Slot, Slot)> {
        let hold = |slot| {
            let row = &self.table.pins[slot];
            (self.table.lives[row.life].owner, row.checkpoint)
        };
        let mut holds: Vec<_> = self.table.pins.slots().map(hold).collect();
        holds.sort_unstable();
        holds.dedup();
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Event, PROTOCOL_VERSION, Register};
    use crate::id::{Epoch, StartId};
    use crate::policy::{Genesis, Limits, Policy};

    /// A new job has its operator and nothing else, and no generation yet.
    #[test]
    fn a_new_job_holds_its_operator() {
        let (epoch, operator) = (Epoch::from_u128(1), OwnerId::from_u128(2));
        let mut catalog = Catalog::new(Genesis {
            namespace: "a".parse().unwrap(),
            epoch,
            operator,
            policy: Policy::default(),
            limits: Limits::default(),
        })
        .unwrap();
        assert_eq!(catalog.last_generation(), Generation(0));
        for number in [0, 1, u64::MAX] {
            assert_eq!(catalog.fate(Generation(number)), Fate::NeverMinted);
        }
        assert_eq!(catalog.checkpoint(CheckpointId::default()), None);
        assert_eq!((catalog.pins().len(), catalog.conversations().count()), (0, 0));
        assert!(catalog.live_turns().is_empty());
        let facts = |incarnation| OwnerFacts {
            id: operator,
            role: Role::Operator,
            incarnation: Incarnation(incarnation),
            fenced: false,
            pins: 0,
            bytes_pinned: 0,
        };
        assert_eq!(catalog.owners(), [facts(0)]);
        let register = Register {
            owner: operator,
            role: Role::Operator,
            after: Incarnation(0),
            start: StartId::from_u128(3),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        let decision = catalog.decide_registration(epoch, &register);
        let crate::catalog::Decision::Event(event @ Event::Registered { .. }) = decision else {
            panic!("{decision:?}");
        };
        catalog.apply(&event);
        assert_eq!(catalog.owners(), [facts(1)]);
    }
}
