//! Which events can follow a state: what replay asks of a record before it is followed.
//!
//! A checksum says that a record's bytes are those that were written, not that they make sense
//! where they stand. What is asked here is structure alone: that what an event names is there and
//! in a stage in which the event can find it, and that its numbers are the next ones. Who may
//! decide what is a rule, and rules may change; they never judge history.

use super::slab::{NONE, Slot};
use super::table::{Claimant, Holds, Stage, TurnState, Unscoped};
use super::{Catalog, Change, DeleteWork, Event, FollowUp, Prepare, Role};
use crate::bounds::MAX_GENERATIONS;
use crate::id::{
    CheckpointId, ConversationId, Generation, Incarnation, ObjectId, OpId, OwnerId, PinId,
    ShardIndex, StartId,
};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{DeleteOutcome, Evidence, LostObject, TurnKey};
use crate::policy::{Limits, Policy};

impl Catalog {
    /// Whether an event can follow this state. Of one that cannot, [`apply`](Self::apply) promises
    /// nothing.
    #[must_use]
    pub fn fits(&self, event: &Event) -> bool {
        match event {
            Event::Genesis(_) => false,
            Event::Recovered => true,
            Event::Registered { owner, role, start, incarnation } => {
                self.registered_fits(*owner, *role, *start, *incarnation)
            }
            Event::Decided { op, fingerprint: _, change } => {
                self.may_decide(*op) && self.change_fits(*op, change)
            }
            Event::FollowedUp(follow_up) => self.follow_up_fits(follow_up),
        }
    }

    fn registered_fits(
        &self,
        owner: OwnerId,
        role: Role,
        start: StartId,
        incarnation: Incarnation,
    ) -> bool {
        let next = self.table.incarnation.0.checked_add(1) == Some(incarnation.0);
        if owner.is_empty() || start.is_empty() || !next {
            return false;
        }
        let Some(slot) = self.table.owner(owner) else { return true };
        let row = &self.table.owners[slot];
        let begins = row.current == NONE || row.start != start;
        row.role == role && begins
    }

    /// Whether an operation can be decided now: it was not before, and its sender's incarnation is
    /// current and not fenced.
    fn may_decide(&self, op: OpId) -> bool {
        let Some(owner) = self.table.owner(op.owner) else { return false };
        #[cfg(pinfold_mutants)]
        if self.fits_wrongly_obeyed(owner, op) {
            return true;
        }
        let row = &self.table.owners[owner];
        let obeys = row.current != NONE
            && self.table.lives[row.current].number == op.incarnation
            && self.table.lives[row.current].is_live();
        let window = self.table.job.limits.unanswered;
        obeys && op.sequence > 0 && !row.receipts.was_decided(op.sequence, window)
    }

    fn change_fits(&self, op: OpId, change: &Change) -> bool {
        match change {
            Change::Refused(_) => true,
            Change::Prepared { prepare, generation } => {
                self.prepared_fits(op, prepare, *generation)
            }
            Change::Joined { checkpoint, shards } => self.joined_fits(op, *checkpoint, shards),
            Change::AlreadyPublished { checkpoint } => {
                self.pinned_fits(op, core::slice::from_ref(checkpoint))
            }
            Change::Pinned { checkpoints } => self.pinned_fits(op, checkpoints),
            Change::Settled { pin, shard, evidence } => self.settled_fits(*pin, *shard, *evidence),
            Change::Released { pin } => self.released_fits(*pin),
            Change::Published { checkpoint, turn, expired } => {
                self.published_fits(*checkpoint, *turn, *expired)
            }
            Change::Lost { checkpoint, object, why: _ } => self.lost_fits(*checkpoint, *object),
            Change::Doubted { pin, doubtful: _ } => self.table.pin(*pin).is_some(),
            Change::Collected { work, more: _ } => self.collected_fits(work),
            Change::Deleted { checkpoint, outcomes } => self.deleted_fits(*checkpoint, outcomes),
            Change::Configured { policy, limits, trim } => {
                self.configured_fits(policy, limits, *trim)
            }
            Change::Forgotten { conversation } => !conversation.is_empty(),
            Change::Dropped { checkpoint } => self.table.checkpoint(*checkpoint).is_some(),
            Change::Fenced { owner, incarnation } => self.fenced_fits(*owner, *incarnation),
            Change::Retired { owner } => self.retired_fits(*owner),
        }
    }

    fn prepared_fits(&self, op: OpId, prepare: &Prepare, generation: Generation) -> bool {
        let Limits { shards, objects_per_checkpoint, .. } = self.table.job.limits;
        let shape = &prepare.shape;
        // What a shape costs in memory is bounded by the limits under which it was prepared.
        let is_bounded = shape.shards().len() as u64 <= u64::from(shards)
            && shape.objects() <= objects_per_checkpoint
            && self.table.generations(prepare.endpoint).count() < MAX_GENERATIONS as usize;
        let is_next = self.table.generation.0.checked_add(1) == Some(generation.0);
        #[cfg(pinfold_mutants)]
        let is_next = is_next || self.reused_generation() == Some(generation);
        is_next
            && prepare.form().is_ok()
            && is_bounded
            && self.table.attempt(prepare.attempt).is_none()
            && self.may_pin(op, 0)
    }

    fn joined_fits(&self, op: OpId, checkpoint: CheckpointId, shards: &[ShardIndex]) -> bool {
        let Some(slot) = self.table.checkpoint(checkpoint) else { return false };
        let row = &self.table.checkpoints[slot];
        let Holds::Assembly(assembly) = row.holds() else { return false };
        let claims = &self.table.assemblies[assembly].shards;
        let is_free = |shard: &ShardIndex| {
            claims.get(usize::from(shard.0)).is_some_and(|claim| claim.by == Claimant::Nobody)
        };
        #[cfg(pinfold_mutants)]
        let is_free =
            |shard: &ShardIndex| is_free(shard) || self.table.is_wrongly_free(assembly, *shard);
        row.stage == Stage::Prepared
            && !shards.is_empty()
            && shards.windows(2).all(|pair| pair[0] < pair[1])
            && shards.iter().all(is_free)
            && self.may_pin(op, 0)
    }

    /// Load pins on different checkpoints that may be served.
    fn pinned_fits(&self, op: OpId, checkpoints: &[CheckpointId]) -> bool {
        let slot = |id: &CheckpointId| {
            let slot = self.table.checkpoint(*id)?;
            self.table.checkpoints[slot].is_restorable().then_some(slot)
        };
        let repeats = checkpoints.iter().enumerate().any(|(n, id)| checkpoints[..n].contains(id));
        !repeats
            && checkpoints.iter().all(|id| slot(id).is_some())
            && (0..).zip(checkpoints).all(|(place, _)| self.may_pin(op, place))
    }

    /// Whether there is no such pin yet.
    fn may_pin(&self, op: OpId, place: u8) -> bool {
        self.table.pin(PinId { op, place }).is_none()
    }

    fn settled_fits(&self, pin: PinId, shard: Option<ShardIndex>, evidence: Evidence) -> bool {
        let Some(slot) = self.table.pin(pin) else { return false };
        let is_claimed =
            |shard: ShardIndex| self.claims_of(slot).any(|claimed| claimed == u32::from(shard.0));
        let settles = match evidence {
            Evidence::Active | Evidence::Quiescing => false,
            Evidence::NotExposed
            | Evidence::QuiescedSuccess
            | Evidence::QuiescedFailure
            | Evidence::InDoubt => true,
        };
        settles && shard.is_none_or(is_claimed)
    }

    fn released_fits(&self, pin: PinId) -> bool {
        let Some(slot) = self.table.pin(pin) else { return false };
        let row = &self.table.pins[slot];
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::ReleaseUnsettled) {
            return row.is_save();
        }
        row.is_save() && !row.is_unsettled()
    }

    /// A checkpoint is published while a pin holds it; a turn that is new may expire another one.
    fn published_fits(
        &self,
        checkpoint: CheckpointId,
        turn: Option<TurnKey>,
        expired: Option<TurnKey>,
    ) -> bool {
        let Some(slot) = self.table.checkpoint(checkpoint) else { return false };
        let row = &self.table.checkpoints[slot];
        if !row.is_restorable() || row.pins == NONE || Self::form_publish(turn).is_err() {
            return false;
        }
        let Some(key) = turn else {
            return row.unscoped != Unscoped::Dropped && expired.is_none();
        };
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::ForgottenTakesTurns) {
            return expired.is_none_or(|turn| self.oldest(turn).is_some());
        }
        let state = match self.table.conversation(key.conversation) {
            Some(there) if self.table.conversations[there].forgotten => TurnState::Expired,
            Some(there) => self.table.turn(there, key.turn),
            None => TurnState::Unknown,
        };
        match state {
            TurnState::Unknown => expired.is_none_or(|turn| self.oldest(turn).is_some()),
            TurnState::Live(_) => expired.is_none(),
            TurnState::Expired => false,
        }
    }

    /// The conversation of a turn that is its oldest live one.
    fn oldest(&self, turn: TurnKey) -> Option<Slot> {
        let conversation = self.table.conversation(turn.conversation)?;
        let head = self.table.conversations[conversation].head;
        (head != NONE && self.table.turn_key(head) == turn).then_some(conversation)
    }

    fn lost_fits(&self, checkpoint: CheckpointId, object: LostObject) -> bool {
        let Some(slot) = self.table.checkpoint(checkpoint) else { return false };
        let row = &self.table.checkpoints[slot];
        let is_there = match object {
            LostObject::Private(object) => {
                self.table.shapes.shape(row.shape).place_of(object).is_some()
            }
            LostObject::Shared(_) => true,
        };
        is_there && row.stage != Stage::Collecting
    }

    /// Each piece is a run of the objects of a checkpoint that nothing holds.
    fn collected_fits(&self, work: &[DeleteWork]) -> bool {
        let fits = |piece: &DeleteWork| {
            let Some(slot) = self.table.checkpoint(piece.checkpoint) else { return false };
            let row = &self.table.checkpoints[slot];
            let idle = match row.holds() {
                Holds::Disposal(_) => true,
                Holds::Assembly(_) | Holds::References(_) => false,
            };
            let objects = self.table.shapes.shape(row.shape).objects();
            let end = piece.first.checked_add(piece.count);
            idle && piece.count > 0 && end.is_some_and(|end| end <= objects)
        };
        let sum = work.iter().try_fold(0_u32, |sum, piece| sum.checked_add(piece.count));
        work.iter().all(fits) && sum.is_some()
    }

    fn deleted_fits(
        &self,
        checkpoint: CheckpointId,
        outcomes: &[(ObjectId, DeleteOutcome)],
    ) -> bool {
        if Self::form_deleted(checkpoint, outcomes).is_err() {
            return false;
        }
        let Some(slot) = self.table.checkpoint(checkpoint) else {
            return self.was_minted(checkpoint);
        };
        let row = &self.table.checkpoints[slot];
        let shape = self.table.shapes.shape(row.shape);
        row.stage == Stage::Collecting
            && outcomes.iter().all(|(object, _)| shape.place_of(*object).is_some())
    }

    /// What was lowered for conversations has to be carried to each of them.
    fn configured_fits(&self, policy: &Policy, limits: &Limits, trim: bool) -> bool {
        let now = &self.table.job.policy;
        let bytes = |policy: &Policy| policy.conversation_bytes.unwrap_or(u64::MAX);
        let lowered = policy.turns < now.turns || bytes(policy) < bytes(now);
        self.form_configure(policy, limits).is_ok() && (trim || !lowered)
    }

    fn fenced_fits(&self, owner: OwnerId, incarnation: Incarnation) -> bool {
        let Some(slot) = self.table.owner(owner) else { return false };
        self.table.is_fenced(slot, incarnation).is_some()
    }

    fn retired_fits(&self, owner: OwnerId) -> bool {
        let is_free = |slot: Slot| self.table.owners[slot].pins == 0;
        owner != self.table.job.operator && self.table.owner(owner).is_some_and(is_free)
    }

    fn follow_up_fits(&self, follow_up: &FollowUp) -> bool {
        match *follow_up {
            FollowUp::EndPin { pin } => self
                .table
                .pin(pin)
                .is_some_and(|slot| self.table.lives[self.table.pins[slot].life].fenced),
            FollowUp::Expire { turn } => {
                self.oldest(turn).is_some_and(|slot| self.may_expire(slot))
            }
            FollowUp::Purge { conversation, turns } => self.due(conversation).is_some_and(|slot| {
                let row = &self.table.conversations[slot];
                row.forgotten && (1..=row.expired_count).contains(&turns)
            }),
            FollowUp::Settle { conversation } => self.due(conversation).is_some_and(|slot| {
                let row = &self.table.conversations[slot];
                let ended = row.head == NONE && row.expired == NONE;
                !self.is_over(slot) && (!row.forgotten || ended)
            }),
            FollowUp::Trim { next } => self.trim_fits(next),
        }
    }

    /// A conversation that is marked as due.
    fn due(&self, id: ConversationId) -> Option<Slot> {
        self.table.conversation(id).filter(|slot| self.table.conversations[*slot].is_due)
    }

    /// A turn expires by a follow-up of its conversation, of a lowered bound, or of the job, which
    /// begins with its oldest turn.
    fn may_expire(&self, conversation: Slot) -> bool {
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::SnapshotDropsTrim) {
            return true;
        }
        let row = &self.table.conversations[conversation];
        let trims = self.table.trim.is_some_and(|from| conversation >= from);
        row.is_due || trims || self.table.turns.head == row.head
    }

    /// A lowered bound goes forward, and past no conversation that is over it.
    fn trim_fits(&self, next: Option<Slot>) -> bool {
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::SnapshotDropsTrim) && self.table.trim.is_none() {
            return true;
        }
        let Some(from) = self.table.trim else { return false };
        let end = self.table.conversations.end();
        let forward = next.is_none_or(|next| (from..end).contains(&next) && next > from);
        let waits = |slot: Slot| self.is_over(slot) && !self.table.conversations[slot].is_due;
        forward && !(from..next.unwrap_or(end)).any(waits)
    }
}
