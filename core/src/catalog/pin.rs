//! Pins: take one for a load, release one of a save, mark one as doubtful.
//!
//! A pin is a named, durable hold without lease or time-out. It obeys only the incarnation that
//! took it, or an operator, and it ends exactly once.

use super::slab::{NONE, Slot};
use super::{Catalog, Change, Ruling, Sender};
use crate::bounds::{MAX_ANSWERS, MAX_CANDIDATES};
use crate::few::Few;
use crate::id::{CheckpointId, EndpointId, Generation, Incarnation, OpId, PinId};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Field, Limit, Malformed, Outcome, Pinned, Problem, Rejection};

impl Catalog {
    pub(super) fn form_pin(candidates: &[EndpointId], limit: u32) -> Result<(), Malformed> {
        let refuse = |field, problem| Err(Malformed { field, problem });
        if candidates.is_empty() || candidates.iter().any(EndpointId::is_empty) {
            return refuse(Field::Candidates, Problem::Empty);
        }
        if candidates.len() > MAX_CANDIDATES as usize {
            return refuse(Field::Candidates, Problem::TooLarge);
        }
        for (place, candidate) in candidates.iter().enumerate() {
            if candidates[..place].contains(candidate) {
                return refuse(Field::Candidates, Problem::Duplicate);
            }
        }
        match limit {
            0 => refuse(Field::Limit, Problem::Zero),
            limit if limit > MAX_ANSWERS => refuse(Field::Limit, Problem::TooLarge),
            _ => Ok(()),
        }
    }

    pub(super) fn decide_pin(
        &self,
        sender: &Sender,
        candidates: &[EndpointId],
        limit: u32,
    ) -> Ruling {
        let mut answers = Few::new();
        let mut bytes = 0;
        for candidate in candidates {
            let Some(slot) = self.restorable(*candidate) else { continue };
            let row = &self.table.checkpoints[slot];
            if row.pins == NONE {
                bytes += self.table.shapes.bytes(row.shape);
            }
            if !answers.push(row.id()) || answers.len() == limit as usize {
                break;
            }
        }
        self.check_limit(Limit::Candidates, candidates.len() as u64)?;
        self.check_limit(Limit::Answers, u64::from(limit))?;
        self.check_pin_limits(sender, answers.len() as u64, bytes)?;
        Ok(Change::Pinned { checkpoints: answers })
    }

    /// The oldest restorable checkpoint of an endpoint.
    pub(super) fn restorable(&self, endpoint: EndpointId) -> Option<Slot> {
        self.table
            .generations(endpoint)
            .filter(|slot| self.table.checkpoints[*slot].is_restorable())
            .min_by_key(|slot| self.table.checkpoints[*slot].generation)
    }

    /// The bounds that every new pin keeps; `bytes` is what it would newly hold.
    pub(super) fn check_pin_limits(
        &self,
        sender: &Sender,
        pins: u64,
        bytes: u64,
    ) -> Result<(), Rejection> {
        if pins == 0 {
            return Ok(());
        }
        let table = &self.table;
        let of_owner = table.owners[sender.owner].pins;
        self.check_limit(Limit::PinsPerOwner, u64::from(of_owner) + pins)?;
        self.check_limit(Limit::Pins, u64::from(table.pins.len()) + pins)?;
        let pinned = table.counters.bytes_pinned + u128::from(bytes);
        self.check_limit(Limit::BytesPinned, pinned)?;
        self.check_limit(Limit::BytesInDoubt, table.counters.bytes_in_doubt)
    }

    pub(super) fn apply_pinned(
        &mut self,
        sender: &Sender,
        op: OpId,
        checkpoints: &[CheckpointId],
    ) -> Outcome {
        let mut answers = Few::new();
        for (id, place) in checkpoints.iter().zip(0_u8..) {
            let slot = self.add_load_pin(sender, PinId { op, place }, *id);
            let digest = slot.map(|slot| self.table.checkpoints[slot].digest).unwrap_or_default();
            if !answers.push(Pinned { checkpoint: *id, digest }) {
                break;
            }
        }
        Outcome::Pinned(answers)
    }

    /// Takes a load pin on a whole checkpoint; one that waits in the queue is revived.
    pub(super) fn add_load_pin(
        &mut self,
        sender: &Sender,
        pin: PinId,
        checkpoint: CheckpointId,
    ) -> Option<Slot> {
        let slot = self.table.checkpoint(checkpoint)?;
        #[cfg(pinfold_mutants)]
        self.revive_collecting(slot);
        self.table.add_pin(sender.life, pin, slot, false);
        Some(slot)
    }

    /// The live pin of this id, or why there is none.
    pub(super) fn check_pin(&self, id: PinId) -> Result<Slot, Rejection> {
        if let Some(slot) = self.table.pin(id) {
            return Ok(slot);
        }
        let OpId { owner, incarnation, sequence } = id.op;
        let Some(owner) = self.table.owner(owner) else {
            // A retired owner had no pins; what its incarnations took has ended.
            let minted = (Incarnation(1)..=self.table.incarnation).contains(&incarnation);
            return Err(if minted { Rejection::PinEnded } else { Rejection::UnknownPin });
        };
        let current = self.table.current(owner);
        let window = self.table.job.limits.unanswered;
        let receipts = &self.table.owners[owner].receipts;
        let decided = incarnation < current
            || incarnation == current && receipts.was_decided(sequence, window);
        Err(if decided && sequence > 0 { Rejection::PinEnded } else { Rejection::UnknownPin })
    }

    /// The live pin of this id, which must be the sender's own.
    pub(super) fn check_own_pin(&self, sender: &Sender, id: PinId) -> Result<Slot, Rejection> {
        let slot = self.check_pin(id)?;
        let is_own = self.table.pins[slot].life == sender.life;
        if is_own { Ok(slot) } else { Err(Rejection::ForeignPin) }
    }

    /// The live pin of this id, which must be the sender's own or the sender an operator.
    pub(super) fn check_obeying_pin(&self, sender: &Sender, id: PinId) -> Result<Slot, Rejection> {
        match self.check_own_pin(sender, id) {
            Err(Rejection::ForeignPin) if self.check_operator(sender.owner).is_ok() => {
                self.check_pin(id)
            }
            other => other,
        }
    }

    pub(super) fn decide_release(&self, sender: &Sender, pin: PinId) -> Ruling {
        let slot = self.check_obeying_pin(sender, pin)?;
        let row = &self.table.pins[slot];
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::LimitRefusesRelease) {
            self.check_limit(Limit::Pins, u64::from(self.table.pins.len()) + 1)?;
        }
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::ReleaseUnsettled) && row.is_save() {
            return Ok(Change::Released { pin });
        }
        // A load pin is ended by its settle; a live one has not had it.
        if !row.is_save() || row.is_unsettled() {
            return Err(Rejection::NotFinal);
        }
        Ok(Change::Released { pin })
    }

    pub(super) fn apply_released(&mut self, pin: PinId) -> Outcome {
        if let Some(slot) = self.table.pin(pin) {
            self.table.end_pin(slot);
        }
        Outcome::Released
    }

    pub(super) fn decide_doubt(&self, sender: &Sender, pin: PinId, doubtful: bool) -> Ruling {
        if doubtful {
            self.check_pin(pin)?;
        } else {
            self.check_obeying_pin(sender, pin)?;
        }
        Ok(Change::Doubted { pin, doubtful })
    }

    pub(super) fn apply_doubted(&mut self, pin: PinId, doubtful: bool) -> Outcome {
        if let Some(slot) = self.table.pin(pin) {
            #[cfg(pinfold_mutants)]
            if is_armed(Mutant::DoubtMarkEndsPin) && doubtful && !self.table.pins[slot].is_save() {
                self.table.end_pin(slot);
                return Outcome::Doubted;
            }
            self.table.change_pin(slot, |pin| pin.doubted = doubtful);
        }
        Outcome::Doubted
    }

    /// Whether an id names a generation that was minted.
    pub(super) fn was_minted(&self, id: CheckpointId) -> bool {
        (Generation(1)..=self.table.generation).contains(&id.generation)
    }
}
