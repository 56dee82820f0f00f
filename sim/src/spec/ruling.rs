//! What a command of a current owner changes, or why it is refused: ids, then state, then limits.
//!
//! It changes nothing, and knows nothing of receipts.

use pinfold_core::catalog::{Change, Command};
use pinfold_core::few::Few;
use pinfold_core::id::{
    CheckpointId, ConversationId, EndpointId, Incarnation, OpId, OwnerId, PinId, ShardIndex,
};
use pinfold_core::outcome::{Evidence, Limit, Loss, LostObject, Rejection};
use pinfold_core::policy::{Limits, Policy};

use super::lists::{Checkpoint, Pin, Stage};
use super::{Spec, within};

/// What a command changes, or why not.
pub(super) type Ruling = Result<Change, Rejection>;

impl Spec {
    /// What a command changes, in the words of its record. The record is asked only where the
    /// protocol leaves a choice.
    pub(super) fn rule(&self, op: OpId, command: &Command, recorded: &Change) -> Ruling {
        match command {
            Command::Prepare(prepare) => self.rule_prepare(op, prepare),
            Command::Settle { pin, shard, evidence } => {
                self.rule_settle(op, *pin, *shard, *evidence)
            }
            Command::Publish { pin, turn } => self.rule_publish(op, *pin, *turn),
            Command::Release { pin } => self.rule_release(op, *pin),
            Command::Pin { candidates, limit } => self.rule_pin(op, candidates, *limit),
            Command::Lost { checkpoint, object, why } => {
                self.rule_lost(op, *checkpoint, *object, *why)
            }
            Command::Doubt { pin, doubtful } => {
                if *doubtful {
                    self.live_pin(*pin)?;
                } else {
                    self.obeying_pin(op, *pin)?;
                }
                Ok(Change::Doubted { pin: *pin, doubtful: *doubtful })
            }
            Command::Collect { limit } => Ok(self.rule_collect(*limit, recorded)),
            Command::Deleted { checkpoint, outcomes } => self.rule_deleted(*checkpoint, outcomes),
            Command::Configure { policy, limits } => {
                self.operator_only(op)?;
                Ok(self.rule_configure(*policy, *limits))
            }
            Command::Forget { conversation } => self.rule_forget(op, *conversation),
            Command::Drop { checkpoint } => {
                self.operator_only(op)?;
                self.checkpoint(*checkpoint).ok_or(Rejection::UnknownCheckpoint)?;
                Ok(Change::Dropped { checkpoint: *checkpoint })
            }
            Command::Fence { owner, incarnation } => self.rule_fence(op, *owner, *incarnation),
            Command::Retire { owner } => self.rule_retire(op, *owner),
        }
    }

    fn operator_only(&self, op: OpId) -> Result<(), Rejection> {
        if self.is_operator(op.owner) { Ok(()) } else { Err(Rejection::NotOperator) }
    }

    /// The live pin of this id. One that is not live has ended when its operation was decided.
    fn live_pin(&self, id: PinId) -> Result<&Pin, Rejection> {
        if let Some(pin) = self.pins.iter().find(|pin| pin.id == id) {
            return Ok(pin);
        }
        let OpId { owner, incarnation, sequence } = id.op;
        let decided = match self.owner(owner) {
            // Who retired had no pins left.
            None => Incarnation(0) < incarnation && incarnation <= self.incarnation,
            Some(owner) if incarnation == owner.current() => {
                let window = self.job.limits.unanswered;
                sequence > 0
                    && (owner.has_forgotten(sequence, window)
                        || owner.receipts.contains_key(&sequence))
            }
            Some(owner) => sequence > 0 && incarnation < owner.current(),
        };
        Err(if decided { Rejection::PinEnded } else { Rejection::UnknownPin })
    }

    /// A live pin that the sender's own incarnation took.
    pub(super) fn own_pin(&self, op: OpId, id: PinId) -> Result<&Pin, Rejection> {
        let pin = self.live_pin(id)?;
        if is_of(pin, op) { Ok(pin) } else { Err(Rejection::ForeignPin) }
    }

    /// A live pin that the sender's own incarnation took, or any if it is an operator.
    fn obeying_pin(&self, op: OpId, id: PinId) -> Result<&Pin, Rejection> {
        let pin = self.live_pin(id)?;
        let obeys = is_of(pin, op) || self.is_operator(op.owner);
        if obeys { Ok(pin) } else { Err(Rejection::ForeignPin) }
    }

    fn rule_settle(
        &self,
        op: OpId,
        id: PinId,
        shard: Option<ShardIndex>,
        evidence: Evidence,
    ) -> Ruling {
        let pin = self.obeying_pin(op, id)?;
        if evidence == Evidence::QuiescedSuccess && !is_of(pin, op) {
            return Err(Rejection::ForeignPin);
        }
        if let Some(shard) = shard.filter(|shard| !pin.shards.contains(shard)) {
            return Err(Rejection::ShardNotClaimed { shard });
        }
        match evidence {
            Evidence::Active | Evidence::Quiescing => Err(Rejection::NotFinal),
            Evidence::NotExposed
            | Evidence::QuiescedSuccess
            | Evidence::QuiescedFailure
            | Evidence::InDoubt => Ok(Change::Settled { pin: id, shard, evidence }),
        }
    }

    fn rule_release(&self, op: OpId, id: PinId) -> Ruling {
        let pin = self.obeying_pin(op, id)?;
        if self.is_unsettled(pin) {
            return Err(Rejection::NotFinal);
        }
        Ok(Change::Released { pin: id })
    }

    fn rule_pin(&self, op: OpId, candidates: &[EndpointId], limit: u32) -> Ruling {
        let mut checkpoints = Few::new();
        let mut bytes = 0;
        for endpoint in candidates {
            let served =
                |there: &&Checkpoint| there.id.endpoint == *endpoint && there.is_restorable();
            let Some(oldest) = self.checkpoints.iter().find(served) else { continue };
            if checkpoints.len() == limit as usize || !checkpoints.push(oldest.id) {
                break;
            }
            bytes += self.newly_pinned(oldest);
        }
        let limits = &self.job.limits;
        let asked = candidates.len() as u64;
        within(Limit::Candidates, u64::from(limits.candidates), asked)?;
        within(Limit::Answers, u64::from(limits.answers), u64::from(limit))?;
        if !checkpoints.is_empty() {
            self.within_pin_limits(op, checkpoints.len() as u64, bytes)?;
        }
        Ok(Change::Pinned { checkpoints })
    }

    /// The bytes that a pin on a checkpoint would add to those pinned.
    pub(super) fn newly_pinned(&self, checkpoint: &Checkpoint) -> u64 {
        if self.is_pinned(checkpoint.id) { 0 } else { checkpoint.bytes() }
    }

    /// What every new pin keeps, on so many bytes that no pin held yet.
    pub(super) fn within_pin_limits(
        &self,
        op: OpId,
        pins: u64,
        bytes: u64,
    ) -> Result<(), Rejection> {
        let Limits { pins_per_owner, pins: most, bytes_pinned, bytes_in_doubt, .. } =
            self.job.limits;
        let of_owner = self.pins.iter().filter(|pin| pin.id.op.owner == op.owner).count() as u64;
        within(Limit::PinsPerOwner, u64::from(pins_per_owner), of_owner + pins)?;
        within(Limit::Pins, u64::from(most), self.pins.len() as u64 + pins)?;
        within(Limit::BytesPinned, bytes_pinned, self.bytes_pinned() + bytes)?;
        within(Limit::BytesInDoubt, bytes_in_doubt, self.bytes_in_doubt())
    }

    fn rule_lost(&self, op: OpId, id: CheckpointId, object: LostObject, why: Loss) -> Ruling {
        let checkpoint = self.checkpoint(id).ok_or(Rejection::UnknownCheckpoint)?;
        if let LostObject::Private(object) = object {
            checkpoint.place(object).ok_or(Rejection::UnknownObject)?;
        }
        if !self.is_operator(op.owner) && !self.pins_on(id).any(|pin| is_of(pin, op)) {
            return Err(Rejection::NotHolder);
        }
        if checkpoint.stage == Stage::Collecting {
            return Err(Rejection::Collecting);
        }
        Ok(Change::Lost { checkpoint: id, object, why })
    }

    /// A lowered bound of conversations has to be carried to each of them.
    fn rule_configure(&self, policy: Policy, limits: Limits) -> Change {
        let now = &self.job.policy;
        let bytes = |policy: &Policy| policy.conversation_bytes.unwrap_or(u64::MAX);
        let is_new = policy.conversation_bytes.is_some() && now.conversation_bytes.is_none();
        let trim = policy.turns < now.turns || is_new || bytes(&policy) < bytes(now);
        Change::Configured { policy, limits, trim }
    }

    fn rule_forget(&self, op: OpId, conversation: ConversationId) -> Ruling {
        self.operator_only(op)?;
        if self.conversation(conversation).is_none() {
            self.within_conversations()?;
            self.within_expired_turns()?;
        }
        Ok(Change::Forgotten { conversation })
    }

    /// One conversation more.
    pub(super) fn within_conversations(&self) -> Result<(), Rejection> {
        let bound = u64::from(self.job.limits.conversations);
        within(Limit::Conversations, bound, self.conversations.len() as u64 + 1)
    }

    /// One record more that expires in the end, as every live turn does.
    pub(super) fn within_expired_turns(&self) -> Result<(), Rejection> {
        let needed = self.expired_records() + self.turns.len() as u64 + 1;
        within(Limit::ExpiredTurns, u64::from(self.job.limits.expired_turns), needed)
    }

    fn rule_fence(&self, op: OpId, id: OwnerId, incarnation: Incarnation) -> Ruling {
        self.operator_only(op)?;
        let owner = self.owner(id).ok_or(Rejection::UnknownOwner)?;
        owner.is_fenced(incarnation).ok_or(Rejection::UnknownIncarnation)?;
        Ok(Change::Fenced { owner: id, incarnation })
    }

    fn rule_retire(&self, op: OpId, owner: OwnerId) -> Ruling {
        self.operator_only(op)?;
        self.owner(owner).ok_or(Rejection::UnknownOwner)?;
        if owner == self.job.operator {
            return Err(Rejection::GenesisOperator);
        }
        if self.pins.iter().any(|pin| pin.id.op.owner == owner) {
            return Err(Rejection::OwnerHasPins);
        }
        Ok(Change::Retired { owner })
    }
}

/// Whether the sender's own incarnation took the pin.
fn is_of(pin: &Pin, op: OpId) -> bool {
    (pin.id.op.owner, pin.id.op.incarnation) == (op.owner, op.incarnation)
}
