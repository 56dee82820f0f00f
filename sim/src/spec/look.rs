//! Queries: every figure is counted when it is asked for.

use pinfold_core::catalog::{Blocker, Blockers, Verdict};
use pinfold_core::engine::{Query, Reply};
use pinfold_core::id::{CheckpointId, Key, ObjectId, ShardIndex};
use pinfold_core::outcome::DeleteOutcome;
use pinfold_core::policy::Gauges;

use super::Spec;
use super::lists::{Checkpoint, Pin, Stage, Unscoped};

impl Spec {
    pub(super) fn look(&self, query: &Query) -> Reply {
        match query {
            Query::Job => Reply::Job(self.job.clone()),
            Query::Gauges => Reply::Gauges(self.gauges()),
            Query::Blockers(checkpoint) => Reply::Blockers(self.blockers(*checkpoint)),
            Query::Audit(keys) => Reply::Audit(keys.iter().map(|key| self.audit(key)).collect()),
        }
    }

    fn sum(&self, counts: impl Fn(&Checkpoint) -> bool) -> u64 {
        self.checkpoints.iter().filter(|there| counts(there)).map(Checkpoint::bytes).sum()
    }

    pub(super) fn bytes_pinned(&self) -> u64 {
        self.sum(|there| self.is_pinned(there.id))
    }

    pub(super) fn bytes_unscoped(&self) -> u64 {
        self.sum(|there| there.unscoped == Unscoped::Marked)
    }

    pub(super) fn bytes_quarantined(&self) -> u64 {
        self.sum(Checkpoint::is_quarantined)
    }

    pub(super) fn bytes_in_doubt(&self) -> u64 {
        let doubtful = self.pins.iter().filter(|pin| self.is_in_doubt(pin));
        doubtful.map(|pin| self.pin_bytes(pin)).sum()
    }

    fn gauges(&self) -> Gauges {
        let unheld = self.checkpoints.iter().filter(|there| !self.is_held(there));
        Gauges {
            owners: self.owners.len() as u64,
            pins: self.pins.len() as u64,
            bytes_pinned: self.bytes_pinned(),
            bytes_unscoped: self.bytes_unscoped(),
            bytes_in_doubt: self.bytes_in_doubt(),
            bytes_quarantined: self.bytes_quarantined(),
            checkpoints: self.checkpoints.len() as u64,
            bytes: self.sum(|_| true),
            bytes_retained: self.bytes_retained(None, None),
            turns: self.turns.len() as u64,
            conversations: self.conversations.len() as u64,
            expired_turns: self.expired_records(),
            collectable: unheld.count() as u64,
        }
    }

    /// Everything that keeps a checkpoint, in the order of the protocol.
    fn blockers(&self, id: CheckpointId) -> Option<Blockers> {
        let there = self.checkpoint(id)?;
        let mut turns: Vec<_> =
            self.turns.iter().filter(|turn| turn.on.contains(&id)).map(|turn| turn.key).collect();
        turns.sort_unstable();
        let mut blockers: Vec<_> =
            turns.into_iter().map(|turn| Blocker::Retained { turn }).collect();
        if there.unscoped == Unscoped::Marked {
            blockers.push(Blocker::Unscoped);
        }
        let pinned = |pin: &Pin| Blocker::Pinned { pin: pin.id, save: pin.is_save() };
        blockers.extend(self.pins_on(id).map(pinned));
        for (shard, number) in there.shards.iter().zip(0..=u16::MAX) {
            if there.stage == Stage::Prepared && !shard.claimed {
                blockers.push(Blocker::WaitingForShard { shard: ShardIndex(number) });
            }
        }
        for pin in self.pins_on(id) {
            if !pin.is_save() {
                blockers.push(Blocker::InFlight { pin: pin.id, shard: None });
            }
            let open =
                pin.shards.iter().filter(|shard| !there.shards[usize::from(shard.0)].is_final());
            blockers
                .extend(open.map(|shard| Blocker::InFlight { pin: pin.id, shard: Some(*shard) }));
        }
        let doubtful = self.pins_on(id).filter(|pin| self.is_in_doubt(pin));
        blockers.extend(doubtful.map(|pin| Blocker::InDoubt { pin: pin.id }));
        if there.stage == Stage::Collecting {
            let refused = objects_with(there, DeleteOutcome::Refused);
            blockers.push(Blocker::Collecting { left: there.left(), refused });
        } else if !self.is_held(there) {
            blockers.push(Blocker::Collectable);
        }
        if there.is_quarantined() {
            let objects = objects_with(there, DeleteOutcome::Unknown);
            blockers.push(Blocker::Quarantined { objects });
        }
        if there.lost {
            blockers.push(Blocker::Lost);
        }
        Some(Blockers { checkpoint: id, bytes: there.bytes(), blockers })
    }

    /// What a listed key is to this job.
    fn audit(&self, text: &str) -> Verdict {
        let Ok(key) = text.parse::<Key>() else { return Verdict::NotOurs };
        let is_of_job = key.namespace == self.job.namespace && key.epoch == self.job.epoch;
        if !is_of_job || !self.was_minted(key.checkpoint) {
            return Verdict::NotOurs;
        }
        let Some(there) = self.checkpoint(key.checkpoint) else { return Verdict::Stray };
        match there.place(key.object) {
            None => Verdict::NotOurs,
            Some(place) if there.is_gone(place) => Verdict::Stray,
            Some(_) => Verdict::Counted,
        }
    }
}

fn objects_with(checkpoint: &Checkpoint, outcome: DeleteOutcome) -> Vec<ObjectId> {
    let objects = checkpoint.all_objects().zip(&checkpoint.outcomes);
    objects.filter(|(_, there)| **there == Some(outcome)).map(|(object, _)| object).collect()
}
