//! What moves between memory and store, what was proven of each put, and what the store holds.
//!
//! It knows the physical side alone, by what the World shows of it. It never looks at a record.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::id::{CheckpointId, Incarnation, ObjectId, OwnerId, PinId, ShardIndex};
use pinfold_core::manifest::SharedName;

use super::facts::{Checkpoint, Shard};
use crate::seen::{MoveId, Way};
use crate::store::{Content, StoreKey};

/// A move whose memory may still be touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Moving {
    pub(super) id: MoveId,
    pub(super) way: Way,
    pub(super) key: StoreKey,
    pub(super) checkpoint: CheckpointId,
    pub(super) pin: PinId,
}

/// What is known of one put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Put {
    checkpoint: CheckpointId,
    succeeded: bool,
    confirmed: bool,
    retired: bool,
}

impl Put {
    const fn is_proven(&self) -> bool {
        self.succeeded && self.confirmed && self.retired
    }
}

/// A put whose last proof has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proven {
    pub(super) checkpoint: CheckpointId,
    pub(super) pin: PinId,
}

/// The physical side. See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Moves {
    pub(super) under_way: Vec<Moving>,
    /// By the pin under which it was put, and its key.
    puts: BTreeMap<(PinId, StoreKey), Put>,
    /// The puts by their moves.
    by_move: BTreeMap<MoveId, (PinId, StoreKey)>,
    /// Every private key that was ever put.
    put_once: BTreeSet<(CheckpointId, ObjectId)>,
    /// The keys that the store holds, as far as was seen.
    pub(super) stored: BTreeSet<StoreKey>,
    /// Shared objects whose bytes somebody spoiled; they carry no trailer that would show it.
    spoiled: BTreeSet<SharedName>,
    /// What each rank that must compare with others has found; none before it has.
    compared: BTreeMap<PinId, Option<bool>>,
    /// What was handed out to be deleted.
    handed: BTreeSet<(CheckpointId, ObjectId)>,
    /// Private objects that a worker found absent or wrong.
    missed: BTreeSet<(CheckpointId, ObjectId)>,
    /// Incarnations whose memory was declared done with, although it was not.
    pub(super) lied_about: BTreeSet<(OwnerId, Incarnation)>,
}

impl Moves {
    /// A move begins; false when it puts a private key that was put before.
    pub(super) fn began(&mut self, moving: Moving) -> bool {
        self.under_way.push(moving);
        let Moving { id, way, key, checkpoint, pin } = moving;
        match way {
            Way::Get => true,
            Way::Put => {
                self.by_move.insert(id, (pin, key));
                self.puts.insert((pin, key), Put { checkpoint, ..Put::default() });
                match key {
                    StoreKey::Private(checkpoint, object) => {
                        self.put_once.insert((checkpoint, object))
                    }
                    StoreKey::Shared(_) | StoreKey::Foreign(_) => true,
                }
            }
        }
    }

    pub(super) fn was_put(&self, checkpoint: CheckpointId, object: ObjectId) -> bool {
        self.put_once.contains(&(checkpoint, object))
    }

    /// A rank must compare, or has compared.
    pub(super) fn compares(&mut self, pin: PinId, same: Option<bool>) {
        self.compared.insert(pin, same);
    }

    /// A rank that must compare has found that all hold the same.
    pub(super) fn may_go_on(&self, pin: PinId) -> bool {
        self.compared.get(&pin).is_none_or(|same| *same == Some(true))
    }

    pub(super) fn handed_out(&mut self, checkpoint: CheckpointId, objects: &[ObjectId]) {
        self.handed.extend(objects.iter().map(|object| (checkpoint, *object)));
    }

    pub(super) fn was_handed_out(&self, checkpoint: CheckpointId, object: ObjectId) -> bool {
        self.handed.contains(&(checkpoint, object))
    }

    pub(super) fn missed(&mut self, key: StoreKey) {
        if let StoreKey::Private(checkpoint, object) = key {
            self.missed.insert((checkpoint, object));
        }
    }

    pub(super) fn was_missed(&self, checkpoint: CheckpointId, object: ObjectId) -> bool {
        self.missed.contains(&(checkpoint, object))
    }

    /// Every other object of a shard was put under this pin, and answered well.
    pub(super) fn is_last(&self, pin: PinId, checkpoint: CheckpointId, of: &[ObjectId]) -> bool {
        of.iter().filter(|object| object.index > 0).all(|object| {
            let put = self.puts.get(&(pin, StoreKey::Private(checkpoint, *object)));
            put.is_some_and(|put| put.succeeded)
        })
    }

    /// A put answered well; what that completes.
    pub(super) fn succeeded(&mut self, id: MoveId) -> Option<Proven> {
        let place = *self.by_move.get(&id)?;
        self.prove(place, |put| put.succeeded = true)
    }

    /// A check counts only after the put answered well.
    pub(super) fn confirmed(&mut self, pin: PinId, key: StoreKey) -> Option<Proven> {
        self.prove((pin, key), |put| put.confirmed |= put.succeeded)
    }

    pub(super) fn retired(&mut self, id: MoveId) -> Option<Proven> {
        self.under_way.retain(|moving| moving.id != id);
        let place = *self.by_move.get(&id)?;
        self.prove(place, |put| put.retired = true)
    }

    /// Takes one more proof of a put; given back when it was the last one.
    fn prove(&mut self, place: (PinId, StoreKey), prove: impl FnOnce(&mut Put)) -> Option<Proven> {
        let put = self.puts.get_mut(&place)?;
        let before = put.is_proven();
        prove(put);
        let proven = Proven { checkpoint: put.checkpoint, pin: place.0 };
        (!before && put.is_proven()).then_some(proven)
    }

    /// Nobody asks for the proofs of a checkpoint any more: all of it is gone.
    pub(super) fn forget(&mut self, checkpoint: CheckpointId) {
        self.puts.retain(|_, put| put.checkpoint != checkpoint);
        let puts = &self.puts;
        self.by_move.retain(|_, place| puts.contains_key(place));
    }

    pub(super) fn landed(&mut self, key: StoreKey, content: Content) {
        self.stored.insert(key);
        if let StoreKey::Shared(name) = key
            && content != Content::Of(key)
        {
            self.spoiled.insert(name);
        }
    }

    pub(super) fn lost(&mut self, key: StoreKey) {
        self.stored.remove(&key);
        if let StoreKey::Shared(name) = key {
            self.spoiled.insert(name);
        }
    }

    pub(super) fn returned(&mut self, key: StoreKey) {
        self.stored.insert(key);
    }

    pub(super) fn is_spoiled(&self, name: &SharedName) -> bool {
        self.spoiled.contains(name)
    }

    /// The first shard of a checkpoint that is not proven whole: every object of it put by the pin
    /// that claimed it, answered well, confirmed and retired, the shared ones that it put as well.
    pub(super) fn unproven(&self, id: CheckpointId, row: &Checkpoint) -> Option<ShardIndex> {
        let shapes = row.shape.shards();
        let places = row.shards.iter().zip(shapes).zip(0..);
        let found = places.into_iter().find(|((shard, shape), number)| {
            !self.is_proven(id, shard, ShardIndex(*number), shape.objects)
        });
        found.map(|(_, number)| ShardIndex(number))
    }

    fn is_proven(&self, id: CheckpointId, row: &Shard, shard: ShardIndex, objects: u32) -> bool {
        let Some(pin) = row.claimed_by else { return false };
        let proven = |index: u32| {
            let key = StoreKey::Private(id, ObjectId { shard, index });
            self.puts.get(&(pin, key)).is_some_and(Put::is_proven)
        };
        let first = StoreKey::Private(CheckpointId::default(), ObjectId::default());
        let of_pin = self.puts.range((pin, first)..).take_while(|((by, _), _)| *by == pin);
        let mut shared = of_pin.filter(|((_, key), _)| matches!(key, StoreKey::Shared(_)));
        (0..objects).all(proven) && shared.all(|(_, put)| put.is_proven())
    }

    /// Whether the proof of a pin's end was a lie.
    pub(super) fn was_lied_about(&self, pin: PinId) -> bool {
        self.lied_about.contains(&(pin.op.owner, pin.op.incarnation))
    }
}
