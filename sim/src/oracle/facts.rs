//! What the durable records say: owners, checkpoints, pins and turns, in plain maps.
//!
//! Each record is followed in order, so that after it the facts are what was true when the next
//! one was decided. It protects what a pin stands for: a pin ends once, by whoever may end it, and
//! on final evidence (I8).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pinfold_core::catalog::{Change, FollowUp, Prepare, Role, Shape};
use pinfold_core::id::{
    CheckpointId, Generation, Incarnation, ManifestDigest, ObjectId, OpId, OwnerId, PinId,
    ShardIndex, StartId,
};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{DeleteOutcome, Evidence, TurnKey};
use pinfold_core::policy::Policy;

use super::ledger::Ledger;
use super::{Judged, broken, demand};

/// An owner that registered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) role: Role,
    pub(super) start: StartId,
    /// The current incarnation; 0 when it was retired.
    pub(super) current: Incarnation,
    /// The highest sequence that was decided in the current incarnation.
    pub(super) highest: u64,
    fenced: BTreeSet<Incarnation>,
}

/// A shard of a checkpoint: who claimed it, and what is known of its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Shard {
    pub(super) claimed_by: Option<PinId>,
    pub(super) evidence: Option<Evidence>,
}

impl Shard {
    fn settle(&mut self, evidence: Evidence) {
        if !self.evidence.is_some_and(Evidence::is_final) {
            self.evidence = Some(evidence);
        }
    }
}

/// A checkpoint with a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Checkpoint {
    pub(super) digest: ManifestDigest,
    pub(super) shape: Shape,
    pub(super) shards: Vec<Shard>,
    pub(super) lost: bool,
    pub(super) published: bool,
    pub(super) unscoped: bool,
    /// The intent to delete it is durable.
    pub(super) collected: bool,
    pub(super) gone: BTreeSet<ObjectId>,
}

impl Checkpoint {
    /// Why it may not be served, if so.
    pub(super) fn unservable(&self) -> Option<&'static str> {
        let success = |shard: &Shard| shard.evidence == Some(Evidence::QuiescedSuccess);
        if self.collected {
            Some("it is being collected")
        } else if self.lost {
            Some("it is lost")
        } else if !self.shards.iter().all(success) {
            Some("not every shard has succeeded")
        } else {
            None
        }
    }

    /// Whether a shard ended otherwise than by success.
    pub(super) fn has_failed(&self) -> bool {
        let evidence = self.shards.iter().filter_map(|shard| shard.evidence);
        evidence.into_iter().any(|it| it.is_final() && it != Evidence::QuiescedSuccess)
    }
}

/// A live pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pin {
    pub(super) checkpoint: CheckpointId,
    pub(super) save: bool,
}

/// A pin that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ended {
    pub(super) checkpoint: CheckpointId,
    /// By the incarnation that took it.
    pub(super) by_itself: bool,
}

/// Something that keeps a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Hold {
    Turn(TurnKey),
    Unscoped,
    Pin(PinId),
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(turn) => write!(f, "turn {turn}"),
            Self::Unscoped => f.write_str("its unscoped mark"),
            Self::Pin(pin) => write!(f, "pin {pin}"),
        }
    }
}

/// What is durable. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Facts {
    pub(super) ledger: Ledger,
    pub(super) owners: BTreeMap<OwnerId, Owner>,
    pub(super) checkpoints: BTreeMap<CheckpointId, Checkpoint>,
    pub(super) pins: BTreeMap<PinId, Pin>,
    pub(super) ended: BTreeMap<PinId, Ended>,
    /// The last generation that was minted.
    pub(super) minted: Generation,
}

impl Facts {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            ledger: Ledger::new(&policy),
            owners: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            pins: BTreeMap::new(),
            ended: BTreeMap::new(),
            minted: Generation(0),
        }
    }

    /// Everything that keeps a checkpoint.
    pub(super) fn holds_of(&self, checkpoint: CheckpointId) -> impl Iterator<Item = Hold> {
        let marked = self.checkpoints.get(&checkpoint).is_some_and(|row| row.unscoped);
        let pins = self.pins.iter().filter(move |(_, pin)| pin.checkpoint == checkpoint);
        let turns = self.ledger.turns_on(checkpoint).map(Hold::Turn);
        turns.chain(marked.then_some(Hold::Unscoped)).chain(pins.map(|(id, _)| Hold::Pin(*id)))
    }

    /// What surely keeps a checkpoint from being deleted; none when nothing does.
    pub(super) fn holder_of(&self, checkpoint: CheckpointId) -> Option<Hold> {
        let is_sure = |hold: &Hold| match hold {
            Hold::Turn(turn) => self.ledger.is_retained(*turn),
            Hold::Unscoped | Hold::Pin(_) => true,
        };
        self.holds_of(checkpoint).find(is_sure)
    }

    pub(super) fn is_operator(&self, owner: OwnerId) -> bool {
        self.owners.get(&owner).is_some_and(|row| row.role == Role::Operator)
    }

    pub(super) fn is_fenced(&self, owner: OwnerId, incarnation: Incarnation) -> bool {
        self.owners.get(&owner).is_some_and(|row| row.fenced.contains(&incarnation))
    }

    pub(super) fn registered(
        &mut self,
        owner: OwnerId,
        role: Role,
        start: StartId,
        incarnation: Incarnation,
    ) -> Judged {
        let known = self.owners.get(&owner).map(|row| row.current);
        demand(known.is_none_or(|current| current < incarnation), Invariant::I12, || {
            format!(
                "owner {owner} is registered as incarnation {incarnation}, which is no newer one"
            )
        })?;
        let fenced = self.owners.remove(&owner).map(|row| row.fenced).unwrap_or_default();
        let row = Owner { role, start, current: incarnation, highest: 0, fenced };
        self.owners.insert(owner, row);
        Ok(())
    }

    /// Follows what a decided command changed.
    pub(super) fn follow(&mut self, op: OpId, change: &Change) -> Judged {
        if let Some(owner) = self.owners.get_mut(&op.owner) {
            owner.highest = owner.highest.max(op.sequence);
        }
        match change {
            Change::Refused(_) | Change::Doubted { .. } => {}
            Change::Prepared { prepare, generation } => self.minted(op, prepare, *generation),
            Change::Joined { checkpoint, shards } => self.claim(op, *checkpoint, shards),
            Change::AlreadyPublished { checkpoint } => {
                self.pin(PinId { op, place: 0 }, *checkpoint);
            }
            Change::Pinned { checkpoints } => {
                for (checkpoint, place) in checkpoints.iter().zip(0..) {
                    self.pin(PinId { op, place }, *checkpoint);
                }
            }
            Change::Settled { pin, shard, evidence } => {
                return self.settled(op, *pin, *shard, *evidence);
            }
            Change::Released { pin } => return self.released(op, *pin),
            Change::Published { checkpoint, turn, expired } => {
                return self.published(*checkpoint, *turn, *expired);
            }
            Change::Lost { checkpoint, .. } => self.change(*checkpoint, |row| row.lost = true),
            Change::Collected { work, .. } => {
                for piece in work {
                    self.change(piece.checkpoint, |row| row.collected = true);
                }
            }
            Change::Deleted { checkpoint, outcomes } => self.deleted(*checkpoint, outcomes),
            Change::Configured { policy, .. } => self.ledger.configure(policy),
            Change::Forgotten { conversation } => self.ledger.forget(*conversation),
            Change::Dropped { checkpoint } => self.change(*checkpoint, |row| row.unscoped = false),
            Change::Fenced { owner, incarnation } => {
                if let Some(owner) = self.owners.get_mut(owner) {
                    owner.fenced.insert(*incarnation);
                }
            }
            Change::Retired { owner } => return self.retired(*owner),
        }
        Ok(())
    }

    /// Follows due work.
    pub(super) fn followed_up(&mut self, follow_up: &FollowUp) -> Judged {
        match follow_up {
            FollowUp::EndPin { pin } => {
                let OpId { owner, incarnation, .. } = pin.op;
                demand(self.is_fenced(owner, incarnation), Invariant::I8, || {
                    format!("pin {pin} ends as if its incarnation were fenced")
                })?;
                self.settle_claims(*pin, None, Evidence::QuiescedFailure);
                self.end(*pin, false)
            }
            FollowUp::Expire { turn } => self.expire(*turn),
            FollowUp::Purge { .. } | FollowUp::Settle { .. } | FollowUp::Trim { .. } => Ok(()),
        }
    }

    fn change(&mut self, id: CheckpointId, change: impl FnOnce(&mut Checkpoint)) {
        if let Some(row) = self.checkpoints.get_mut(&id) {
            change(row);
        }
    }

    fn minted(&mut self, op: OpId, prepare: &Prepare, generation: Generation) {
        self.minted = self.minted.max(generation);
        let id = CheckpointId { endpoint: prepare.endpoint, generation };
        let row = Checkpoint {
            digest: prepare.digest,
            shape: prepare.shape.clone(),
            shards: vec![Shard::default(); prepare.shape.shards().len()],
            lost: false,
            published: false,
            unscoped: false,
            collected: false,
            gone: BTreeSet::new(),
        };
        self.checkpoints.insert(id, row);
        self.claim(op, id, &prepare.shards);
    }

    fn claim(&mut self, op: OpId, checkpoint: CheckpointId, shards: &[ShardIndex]) {
        let pin = PinId { op, place: 0 };
        self.pins.insert(pin, Pin { checkpoint, save: true });
        self.change(checkpoint, |row| {
            for shard in shards {
                if let Some(shard) = row.shards.get_mut(usize::from(shard.0)) {
                    shard.claimed_by = Some(pin);
                }
            }
        });
    }

    fn pin(&mut self, pin: PinId, checkpoint: CheckpointId) {
        self.pins.insert(pin, Pin { checkpoint, save: false });
    }

    fn settled(
        &mut self,
        op: OpId,
        pin: PinId,
        shard: Option<ShardIndex>,
        evidence: Evidence,
    ) -> Judged {
        self.may_end(op, pin, evidence == Evidence::QuiescedSuccess)?;
        let save = self.pins.get(&pin).is_some_and(|row| row.save);
        if save {
            self.settle_claims(pin, shard, evidence);
        } else if evidence.is_final() {
            self.end(pin, is_own(op, pin))?;
        }
        Ok(())
    }

    fn settle_claims(&mut self, pin: PinId, only: Option<ShardIndex>, evidence: Evidence) {
        let Some(Pin { checkpoint, .. }) = self.pins.get(&pin).copied() else { return };
        self.change(checkpoint, |row| {
            for (shard, number) in row.shards.iter_mut().zip(0..) {
                let asked = only.is_none_or(|only| only == ShardIndex(number));
                if asked && shard.claimed_by == Some(pin) {
                    shard.settle(evidence);
                }
            }
        });
    }

    fn released(&mut self, op: OpId, pin: PinId) -> Judged {
        self.may_end(op, pin, false)?;
        let row = self.pins.get(&pin).and_then(|pin| self.checkpoints.get(&pin.checkpoint));
        let open = |shard: &Shard| {
            shard.claimed_by == Some(pin) && !shard.evidence.is_some_and(Evidence::is_final)
        };
        let open = row.is_some_and(|row| row.shards.iter().any(open));
        demand(!open, Invariant::I8, || format!("pin {pin} is released without final evidence"))?;
        self.end(pin, is_own(op, pin))
    }

    /// Whether an operation may say something about a pin's end.
    fn may_end(&self, op: OpId, pin: PinId, as_success: bool) -> Judged {
        demand(self.pins.contains_key(&pin), Invariant::I8, || {
            format!("{op} ends pin {pin}, which does not live")
        })?;
        let operator = self.is_operator(op.owner);
        let may = is_own(op, pin) || operator && !as_success;
        demand(may, Invariant::I8, || format!("{op} speaks for pin {pin}, which is not its own"))
    }

    fn end(&mut self, pin: PinId, by_itself: bool) -> Judged {
        let Some(Pin { checkpoint, .. }) = self.pins.remove(&pin) else {
            return broken(Invariant::I8, format!("pin {pin} ends, and does not live"));
        };
        self.ended.insert(pin, Ended { checkpoint, by_itself });
        Ok(())
    }

    fn published(
        &mut self,
        checkpoint: CheckpointId,
        turn: Option<TurnKey>,
        expired: Option<TurnKey>,
    ) -> Judged {
        self.change(checkpoint, |row| {
            row.published = true;
            row.unscoped |= turn.is_none();
        });
        if let Some(turn) = turn {
            let rows = &self.checkpoints;
            let is_lost = |id: CheckpointId| rows.get(&id).is_none_or(|row| row.lost);
            self.ledger.publish(turn, checkpoint, is_lost);
        }
        expired.map_or(Ok(()), |turn| self.expire(turn))
    }

    fn expire(&mut self, turn: TurnKey) -> Judged {
        let rows = &self.checkpoints;
        self.ledger.expire(turn, |id| rows.get(&id).map_or(0, |row| row.shape.bytes()))
    }

    fn deleted(&mut self, id: CheckpointId, outcomes: &[(ObjectId, DeleteOutcome)]) {
        let Some(row) = self.checkpoints.get_mut(&id) else { return };
        let gone = outcomes.iter().filter(|(_, outcome)| *outcome == DeleteOutcome::Gone);
        row.gone.extend(gone.map(|(object, _)| *object));
        if row.collected && row.gone.len() as u64 == u64::from(row.shape.objects()) {
            self.checkpoints.remove(&id);
        }
    }

    fn retired(&mut self, owner: OwnerId) -> Judged {
        let pin = self.pins.keys().find(|pin| pin.op.owner == owner);
        demand(pin.is_none(), Invariant::I8, || {
            format!("owner {owner} is retired, and still has pins")
        })?;
        if let Some(row) = self.owners.get_mut(&owner) {
            row.current = Incarnation(0);
        }
        Ok(())
    }
}

/// Whether the incarnation that took a pin speaks.
fn is_own(op: OpId, pin: PinId) -> bool {
    (op.owner, op.incarnation) == (pin.op.owner, pin.op.incarnation)
}
