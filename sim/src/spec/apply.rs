//! What a decided command changes, and how it is answered.
//!
//! It trusts the change, which was compared with the ruling before.

use pinfold_core::catalog::{Change, Prepare};
use pinfold_core::few::Few;
use pinfold_core::id::{
    CheckpointId, ConversationId, Generation, Incarnation, OpId, OwnerId, PinId, ShardIndex,
};
use pinfold_core::outcome::{Evidence, Outcome, Pinned};

use super::lists::{Checkpoint, Pin, Shard, Stage, Unscoped};
use super::{Answer, Spec};

impl Spec {
    pub(super) fn apply(&mut self, op: OpId, change: &Change) -> Answer {
        let mut outcome = match change {
            Change::Refused(refusal) => return Err(*refusal),
            Change::Prepared { prepare, generation } => self.mint(op, prepare, *generation),
            Change::Joined { checkpoint, shards } => self.join(op, *checkpoint, shards),
            Change::AlreadyPublished { checkpoint } => {
                let pin = PinId { op, place: 0 };
                self.take_pin(pin, *checkpoint, &[]);
                Outcome::AlreadyPublished { pin, checkpoint: *checkpoint }
            }
            Change::Pinned { checkpoints } => self.pin_all(op, checkpoints),
            Change::Settled { pin, shard, evidence } => {
                Outcome::Settled { evidence: self.settle(*pin, *shard, *evidence) }
            }
            Change::Released { pin } => {
                self.end_pin(*pin);
                Outcome::Released
            }
            Change::Published { checkpoint, turn, expired } => {
                match turn {
                    Some(key) => self.publish(*checkpoint, *key, *expired),
                    None => self.set_unscoped(*checkpoint, Unscoped::Marked),
                }
                Outcome::Published { expired: *expired, follow_ups: false }
            }
            Change::Lost { checkpoint, .. } => {
                if let Some(there) = self.checkpoint_mut(*checkpoint) {
                    there.lost = true;
                }
                Outcome::Lost
            }
            Change::Doubted { pin, doubtful } => {
                if let Some(pin) = self.pin_mut(*pin) {
                    pin.doubted = *doubtful;
                }
                Outcome::Doubted
            }
            Change::Collected { work, more } => {
                let objects = work.iter().map(|piece| piece.count).sum();
                self.hand_out(work);
                Outcome::Collected { objects, more: *more }
            }
            Change::Deleted { checkpoint, outcomes } => {
                Outcome::Deleted { left: self.take_outcomes(*checkpoint, outcomes) }
            }
            Change::Configured { policy, limits, trim } => {
                self.job.policy = *policy;
                self.job.limits = *limits;
                self.trim = if *trim { Some(0) } else { self.trim };
                Outcome::Configured
            }
            Change::Forgotten { conversation } => self.forget(*conversation),
            Change::Dropped { checkpoint } => {
                self.set_unscoped(*checkpoint, Unscoped::Dropped);
                Outcome::Dropped
            }
            Change::Fenced { owner, incarnation } => self.fence(*owner, *incarnation),
            Change::Retired { owner } => {
                self.owners.retain(|there| there.id != *owner);
                Outcome::Retired
            }
        };
        self.queue_what_nothing_holds();
        if let Outcome::Published { follow_ups, .. } = &mut outcome {
            *follow_ups = self.due();
        }
        Ok(outcome)
    }

    fn mint(&mut self, op: OpId, asked: &Prepare, generation: Generation) -> Outcome {
        self.generation = generation;
        let id = CheckpointId { endpoint: asked.endpoint, generation };
        self.checkpoints.push(Checkpoint {
            id,
            attempt: asked.attempt,
            digest: asked.digest,
            shape: asked.shape.clone(),
            stage: Stage::Prepared,
            lost: false,
            unscoped: Unscoped::Never,
            shards: vec![Shard::default(); asked.shape.shards().len()],
            outcomes: Vec::new(),
            next: 0,
        });
        self.join(op, id, &asked.shards)
    }

    fn join(&mut self, op: OpId, checkpoint: CheckpointId, shards: &[ShardIndex]) -> Outcome {
        let pin = PinId { op, place: 0 };
        self.take_pin(pin, checkpoint, shards);
        if let Some(there) = self.checkpoint_mut(checkpoint) {
            for shard in shards {
                there.shards[usize::from(shard.0)].claimed = true;
            }
        }
        Outcome::Prepared { pin, checkpoint }
    }

    fn pin_all(&mut self, op: OpId, checkpoints: &[CheckpointId]) -> Outcome {
        let mut answers = Few::new();
        for (checkpoint, place) in checkpoints.iter().zip(0..) {
            self.take_pin(PinId { op, place }, *checkpoint, &[]);
            let there = self.checkpoint(*checkpoint);
            let digest = there.map(|there| there.digest).unwrap_or_default();
            if !answers.push(Pinned { checkpoint: *checkpoint, digest }) {
                break;
            }
        }
        Outcome::Pinned(answers)
    }

    fn take_pin(&mut self, id: PinId, checkpoint: CheckpointId, shards: &[ShardIndex]) {
        let pin = Pin { id, checkpoint, shards: shards.to_vec(), doubted: false, in_doubt: false };
        let place = self.pins.partition_point(|there| there.id < id);
        self.pins.insert(place, pin);
    }

    /// Takes evidence where none is final, and says what stands.
    fn settle(&mut self, id: PinId, only: Option<ShardIndex>, evidence: Evidence) -> Evidence {
        let Some(pin) = self.pins.iter().find(|pin| pin.id == id).cloned() else {
            return evidence;
        };
        if !pin.is_save() {
            if evidence == Evidence::InDoubt {
                self.change_pin(id, |pin| pin.in_doubt = true);
            } else {
                self.end_pin(id);
            }
            return evidence;
        }
        let was_unsettled = self.is_unsettled(&pin);
        let mut stands = Evidence::QuiescedSuccess;
        if let Some(checkpoint) = self.checkpoint_mut(pin.checkpoint) {
            for number in pin.shards.iter().filter(|there| only.is_none_or(|only| only == **there))
            {
                let shard = &mut checkpoint.shards[usize::from(number.0)];
                if !shard.is_final() {
                    shard.evidence = Some(evidence);
                }
                if stands == Evidence::QuiescedSuccess {
                    stands = shard.evidence.unwrap_or(evidence);
                }
            }
            judge_save(checkpoint);
        }
        if was_unsettled && !self.is_unsettled(&pin) {
            self.change_pin(id, |pin| pin.doubted = false);
        }
        stands
    }

    fn change_pin(&mut self, id: PinId, change: impl FnOnce(&mut Pin)) {
        if let Some(pin) = self.pin_mut(id) {
            change(pin);
        }
    }

    /// Ends a pin; what nobody saves any more has failed if it is not whole.
    fn end_pin(&mut self, id: PinId) {
        let Some(place) = self.pins.iter().position(|pin| pin.id == id) else { return };
        let checkpoint = self.pins.remove(place).checkpoint;
        let is_saved = self.pins_on(checkpoint).any(Pin::is_save);
        if let Some(there) = self.checkpoint_mut(checkpoint)
            && there.stage == Stage::Prepared
            && !is_saved
        {
            there.stage = Stage::Failed;
        }
    }

    /// A fence's end of a pin: what is not final becomes a failure.
    pub(super) fn end_fenced_pin(&mut self, id: PinId) {
        self.settle(id, None, Evidence::QuiescedFailure);
        self.end_pin(id);
    }

    fn set_unscoped(&mut self, id: CheckpointId, mark: Unscoped) {
        if let Some(there) = self.checkpoint_mut(id) {
            there.unscoped = mark;
        }
    }

    fn forget(&mut self, id: ConversationId) -> Outcome {
        let is_live = self.ledger(id).next().is_some();
        let conversation = self.conversation_mut(id);
        if !conversation.forgotten {
            conversation.forgotten = true;
            conversation.due |= is_live || !conversation.expired.is_empty();
        }
        Outcome::Forgotten
    }

    fn fence(&mut self, id: OwnerId, incarnation: Incarnation) -> Outcome {
        if let Some(owner) = self.owner_mut(id) {
            for (number, fenced) in &mut owner.lives {
                *fenced |= *number == incarnation;
            }
        }
        let of_it = |pin: &&Pin| (pin.id.op.owner, pin.id.op.incarnation) == (id, incarnation);
        let pins = self.pins.iter().filter(of_it).count();
        Outcome::Fenced { pins: u32::try_from(pins).unwrap_or(u32::MAX) }
    }
}

/// Whole with every shard's success, failed with the first other end.
fn judge_save(checkpoint: &mut Checkpoint) {
    if checkpoint.stage != Stage::Prepared {
        return;
    }
    let has_succeeded = |shard: &Shard| shard.evidence == Some(Evidence::QuiescedSuccess);
    if checkpoint.shards.iter().all(has_succeeded) {
        checkpoint.stage = Stage::Whole;
    } else if checkpoint.shards.iter().any(|shard| shard.is_final() && !has_succeeded(shard)) {
        checkpoint.stage = Stage::Failed;
    }
}
