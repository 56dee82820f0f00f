//! Settle: what is known about a transfer's end. Lost: what is known about an object.
//!
//! Only evidence ends a pin. The first final value stands, and answers whatever comes later.

use super::slab::{NONE, Slot};
use super::{Catalog, Change, Ruling, Sender};
use crate::id::{CheckpointId, PinId, ShardIndex};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Evidence, Loss, LostObject, Outcome, Rejection};

use super::table::Stage;

impl Catalog {
    pub(super) fn decide_settle(
        &self,
        sender: &Sender,
        pin: PinId,
        shard: Option<ShardIndex>,
        evidence: Evidence,
    ) -> Ruling {
        let slot = self.check_obeying_pin(sender, pin)?;
        let row = &self.table.pins[slot];
        let foreign = row.life != sender.life;
        #[cfg(pinfold_mutants)]
        let foreign = foreign && !is_armed(Mutant::OperatorSettlesSuccess);
        // Nobody but the incarnation that moved the bytes can know that all of them arrived.
        if foreign && evidence == Evidence::QuiescedSuccess {
            return Err(Rejection::ForeignPin);
        }
        if let Some(shard) = shard
            && !self.claims_of(slot).any(|claimed| claimed == u32::from(shard.0))
        {
            return Err(Rejection::ShardNotClaimed { shard });
        }
        #[cfg(pinfold_mutants)]
        let evidence = self.misread_evidence(evidence)?;
        match evidence {
            Evidence::Active | Evidence::Quiescing => Err(Rejection::NotFinal),
            Evidence::NotExposed
            | Evidence::QuiescedSuccess
            | Evidence::QuiescedFailure
            | Evidence::InDoubt => Ok(Change::Settled { pin, shard, evidence }),
        }
    }

    /// The shards that a save pin claims, ascending.
    pub(super) fn claims_of(&self, pin: Slot) -> impl Iterator<Item = Slot> + use<'_> {
        let row = self.table.pins[pin];
        let mut next = if row.is_save() { row.claims } else { NONE };
        core::iter::from_fn(move || {
            let shard = next;
            if shard == NONE {
                return None;
            }
            next = self.table.assemblies[row.assembly].shards[shard as usize].next;
            Some(shard)
        })
    }

    /// What stands for a shard of a save pin; for the whole pin the first of its shards' evidence
    /// that is no success, if there is one.
    fn standing(&self, pin: Slot, shard: Option<ShardIndex>) -> Option<Evidence> {
        let claims = &self.table.assemblies[self.table.pins[pin].assembly].shards;
        let mut asked = self
            .claims_of(pin)
            .filter(|claimed| shard.is_none_or(|shard| *claimed == u32::from(shard.0)))
            .filter_map(|claimed| claims[claimed as usize].evidence);
        let first = asked.next()?;
        let rest = core::iter::once(first).chain(asked);
        Some(rest.into_iter().find(|one| *one != Evidence::QuiescedSuccess).unwrap_or(first))
    }

    pub(super) fn apply_settled(
        &mut self,
        pin: PinId,
        shard: Option<ShardIndex>,
        evidence: Evidence,
    ) -> Outcome {
        let Some(slot) = self.table.pin(pin) else { return Outcome::Settled { evidence } };
        let save = self.table.pins[slot].is_save();
        self.settle_pin(slot, shard, evidence);
        let stands = if save { self.standing(slot, shard) } else { None };
        Outcome::Settled { evidence: stands.unwrap_or(evidence) }
    }

    /// Settles the shards of a save pin that are not final, or ends a load pin.
    pub(super) fn settle_pin(&mut self, slot: Slot, only: Option<ShardIndex>, evidence: Evidence) {
        let row = self.table.pins[slot];
        if !row.is_save() {
            #[cfg(pinfold_mutants)]
            let evidence = self.end_of_load(slot, evidence);
            if evidence.is_final() {
                self.table.end_pin(slot);
            } else {
                self.table.change_pin(slot, |pin| pin.load_in_doubt = true);
            }
            return;
        }
        let mut shard = only.map_or(row.claims, |only| u32::from(only.0));
        while shard != NONE {
            #[cfg(pinfold_mutants)]
            self.forget_failure(slot, shard, evidence);
            let claim = self.table.assemblies[row.assembly].shards[shard as usize];
            let settled = claim.evidence.is_some_and(Evidence::is_final);
            if !settled && claim.evidence != Some(evidence) {
                self.table.settle_shard(slot, shard, evidence);
            }
            shard = if only.is_some() { NONE } else { claim.next };
        }
        #[cfg(pinfold_mutants)]
        if evidence == Evidence::QuiescedSuccess {
            self.settle_other_ranks(row.assembly);
        }
    }

    pub(super) fn decide_lost(
        &self,
        sender: &Sender,
        checkpoint: CheckpointId,
        object: LostObject,
        why: Loss,
    ) -> Ruling {
        let slot = self.table.checkpoint(checkpoint).ok_or(Rejection::UnknownCheckpoint)?;
        if let LostObject::Private(object) = object {
            let shape = self.table.shapes.shape(self.table.checkpoints[slot].shape);
            shape.place_of(object).ok_or(Rejection::UnknownObject)?;
        }
        if self.check_operator(sender.owner).is_err() && !self.holds_pin(sender, slot) {
            return Err(Rejection::NotHolder);
        }
        if self.table.checkpoints[slot].stage == Stage::Collecting {
            return Err(Rejection::Collecting);
        }
        Ok(Change::Lost { checkpoint, object, why })
    }

    fn holds_pin(&self, sender: &Sender, checkpoint: Slot) -> bool {
        let mut pin = self.table.lives[sender.life].pins;
        while pin != NONE {
            let row = &self.table.pins[pin];
            if row.checkpoint == checkpoint {
                return true;
            }
            pin = row.of_life.next;
        }
        false
    }

    pub(super) fn apply_lost(&mut self, checkpoint: CheckpointId) -> Outcome {
        if let Some(slot) = self.table.checkpoint(checkpoint) {
            self.table.checkpoints[slot].lost = true;
        }
        Outcome::Lost
    }
}
