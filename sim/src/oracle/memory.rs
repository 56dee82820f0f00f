//! The workers' memory: what is moved from and to it, reused and adopted (I4, I15, I16, I17).
//!
//! A lie about a proof that an operator made outside excuses what the catalog then does, and never
//! what a worker does with its own memory.

use pinfold_core::id::{CheckpointId, ManifestDigest, ObjectId, PinId, ShardIndex};
use pinfold_core::invariant::Invariant;
use pinfold_core::manifest::{ObjectName, SharedScope};

use super::moves::{Moving, Proven};
use super::{Judged, Oracle, broken, demand};
use crate::seen::{Seen, Way};
use crate::store::{Content, StoreKey};

impl Oracle {
    /// Something happened to a worker's memory.
    pub(super) fn touched(&mut self, seen: &Seen) -> Judged {
        match seen {
            Seen::MoveBegan { id, way, key, checkpoint, pin } => {
                let (id, way, key) = (*id, *way, *key);
                let moving = Moving { id, way, key, checkpoint: *checkpoint, pin: *pin };
                self.judge_beginning(&moving)?;
                let first = self.moves.began(moving);
                demand(first, Invariant::I17, || format!("{key:?} is put a second time, by {pin}"))
            }
            Seen::PutSucceeded { id } => {
                let proven = self.moves.succeeded(*id);
                self.proven(proven)
            }
            Seen::Confirmed { pin, key } => {
                let proven = self.moves.confirmed(*pin, *key);
                self.proven(proven)
            }
            Seen::Retired { id } => {
                let proven = self.moves.retired(*id);
                self.proven(proven)
            }
            Seen::SourceReused { pin, shard } => self.source_reused(*pin, *shard),
            Seen::DestinationReused { pin } => self.judge_destination(*pin, "reused"),
            Seen::Adopted { pin, checkpoint, digest, memory } => {
                self.adopted(*pin, *checkpoint, *digest, memory)
            }
            Seen::Submitted { .. }
            | Seen::Idled
            | Seen::Synced { .. }
            | Seen::Replied { .. }
            | Seen::HandedOut { .. }
            | Seen::SyncFailed
            | Seen::Crashed
            | Seen::Recovered
            | Seen::OwnerDied { .. }
            | Seen::Landed { .. }
            | Seen::Deleted { .. }
            | Seen::StoreLost { .. }
            | Seen::Returned { .. }
            | Seen::Compares { .. }
            | Seen::Compared { .. }
            | Seen::Missed { .. }
            | Seen::FalseProof { .. }
            | Seen::Listed { .. } => Ok(()),
        }
    }

    /// A put was proven. If that makes its checkpoint whole, a publication that was asked before
    /// came too early.
    fn proven(&mut self, proven: Option<Proven>) -> Judged {
        let Some(Proven { checkpoint, pin }) = proven else { return Ok(()) };
        if let Some(row) = self.facts.checkpoints.get(&checkpoint)
            && self.desk.awaits_publication()
            && row.shards.iter().any(|shard| shard.claimed_by == Some(pin))
            && self.moves.unproven(checkpoint, row).is_none()
        {
            self.desk.became_whole(checkpoint);
        }
        Ok(())
    }

    /// Nothing is put before the ranks agree, and a shard's manifest is put when all else is there.
    fn judge_beginning(&self, moving: &Moving) -> Judged {
        let Moving { way, key, checkpoint, pin, .. } = *moving;
        if way == Way::Get {
            return Ok(());
        }
        demand(self.moves.may_go_on(pin), Invariant::I4, || {
            format!("{key:?} is put by {pin}, whose ranks did not agree")
        })?;
        let StoreKey::Private(_, ObjectId { shard, index: 0 }) = key else { return Ok(()) };
        let Some(row) = self.facts.checkpoints.get(&checkpoint) else { return Ok(()) };
        let own: Vec<_> = row.shape.objects_from(0).filter(|it| it.shard == shard).collect();
        demand(self.moves.is_last(pin, checkpoint, &own), Invariant::I4, || {
            format!("the manifest of shard {shard} of {checkpoint} is put before the rest")
        })
    }

    fn source_reused(&self, pin: PinId, shard: ShardIndex) -> Judged {
        let of_shard = |key: &StoreKey| match key {
            StoreKey::Private(_, object) => object.shard == shard,
            StoreKey::Shared(name) => match name.scope {
                SharedScope::Shard(of) => of == shard,
                // It may be another shard's of this pin.
                SharedScope::Replicated => false,
            },
            StoreKey::Foreign(_) => false,
        };
        let read = self.under_way(pin, Way::Put).find(|moving| of_shard(&moving.key));
        read.map_or(Ok(()), |moving| {
            let key = moving.key;
            let what = format!("memory of shard {shard} is reused, and {key:?} still reads it");
            broken(Invariant::I16, what)
        })
    }

    /// Nothing writes any more into what a load brings.
    fn judge_destination(&self, pin: PinId, how: &str) -> Judged {
        let writes = self.under_way(pin, Way::Get).next();
        writes.map_or(Ok(()), |moving| {
            let what = format!("memory of {pin} is {how}, and {:?} still writes it", moving.key);
            broken(Invariant::I16, what)
        })
    }

    fn under_way(&self, pin: PinId, way: Way) -> impl Iterator<Item = &Moving> {
        let moves = self.moves.under_way.iter();
        moves.filter(move |moving| (moving.pin, moving.way) == (pin, way))
    }

    fn adopted(
        &self,
        pin: PinId,
        id: CheckpointId,
        digest: Option<ManifestDigest>,
        memory: &[(ObjectName, Option<Content>)],
    ) -> Judged {
        let held = match (self.facts.pins.get(&pin), self.facts.ended.get(&pin)) {
            (Some(live), _) => live.checkpoint == id,
            // Another one's word may have ended it under a worker that still runs.
            (None, Some(ended)) => ended.checkpoint == id && !ended.by_itself,
            (None, None) => false,
        };
        demand(held, Invariant::I15, || {
            format!("{id} is adopted by {pin}, which does not hold it")
        })?;
        demand(self.moves.may_go_on(pin), Invariant::I15, || {
            format!("{id} is adopted by {pin}, whose ranks did not agree")
        })?;
        for (object, content) in memory {
            let key = match object {
                ObjectName::Private(object) => StoreKey::Private(id, *object),
                ObjectName::Shared(name) => StoreKey::Shared(*name),
            };
            // A page has no trailer: what somebody spoiled in the store is found by nobody.
            let excused = match object {
                ObjectName::Private(_) => false,
                ObjectName::Shared(name) => content.is_some() && self.moves.is_spoiled(name),
            };
            demand(excused || *content == Some(Content::Of(key)), Invariant::I15, || {
                format!("{id} is adopted by {pin}, and its {object} is {content:?}")
            })?;
        }
        if let Some(row) = self.facts.checkpoints.get(&id) {
            demand(digest.is_none_or(|it| it == row.digest), Invariant::I15, || {
                format!("{id} is adopted by {pin} as what another manifest describes")
            })?;
            let is_there = |object: &ObjectId| {
                object.index == 0 || memory.iter().any(|it| it.0 == ObjectName::Private(*object))
            };
            let mut objects = row.shape.objects_from(0);
            let missing = objects.find(|object| !is_there(object));
            demand(missing.is_none(), Invariant::I15, || {
                format!("{id} is adopted by {pin} without {missing:?}")
            })?;
        }
        self.judge_destination(pin, "adopted")
    }
}
