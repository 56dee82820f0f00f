//! Owners: who they are, which incarnation obeys, and what was answered already.
//!
//! Everything in front of a command's ids is judged here, and leaves no trace.

use std::sync::Arc;

use pinfold_core::catalog::{Command, Event, PROTOCOL_VERSION, Register};
use pinfold_core::id::{Epoch, Incarnation, OpId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{Limit, Outcome, Rejection};

use super::lists::{Owner, Receipt};
use super::{Answer, Records, Spec, Stop, broken, form, within};

impl Spec {
    /// Form, epoch, owner, receipt, fence, incarnation: none when the command is to be decided.
    pub(super) fn admit(
        &self,
        epoch: Epoch,
        op: OpId,
        command: &Command,
    ) -> Result<Option<Answer>, Rejection> {
        let window = self.job.limits.unanswered;
        form::command(op, command, window).map_err(Rejection::Malformed)?;
        if epoch != self.job.epoch {
            return Err(Rejection::WrongEpoch);
        }
        let owner = self.owner(op.owner).ok_or(Rejection::UnknownOwner)?;
        let current = owner.current();
        if op.incarnation == current {
            if owner.has_forgotten(op.sequence, window) {
                return Err(Rejection::ReceiptForgotten);
            }
            if let Some(receipt) = owner.receipts.get(&op.sequence) {
                let is_same = receipt.command == *command;
                return if is_same { Ok(Some(receipt.answer)) } else { Err(Rejection::OpConflict) };
            }
        }
        if owner.is_fenced(op.incarnation) == Some(true) {
            return Err(Rejection::Fenced);
        }
        if op.incarnation < current {
            return Err(Rejection::StaleIncarnation { current });
        }
        if op.incarnation > current { Err(Rejection::UnknownIncarnation) } else { Ok(None) }
    }

    /// Keeps a decided command's answer; the last W stay.
    pub(super) fn keep_receipt(&mut self, op: OpId, command: &Command, answer: Answer) {
        let window = self.job.limits.unanswered;
        // Who retired itself has nobody left to ask.
        let Some(owner) = self.owner_mut(op.owner) else { return };
        owner.highest = owner.highest.max(op.sequence);
        let receipt = Arc::new(Receipt { command: command.clone(), answer });
        owner.receipts.insert(op.sequence, receipt);
        while let Some(first) = owner.receipts.first_entry() {
            if owner.highest - first.key() < u64::from(window) {
                break;
            }
            first.remove();
        }
    }

    /// A registration: answered at once, or a new incarnation as its record says.
    pub(super) fn registration(
        &mut self,
        epoch: Epoch,
        register: &Register,
        records: &mut Records<'_>,
    ) -> Result<Answer, Stop> {
        match self.judge_registration(epoch, register) {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(Some(incarnation)) => return Ok(Ok(Outcome::Registered { incarnation })),
            Ok(None) => {}
        }
        let Register { owner, role, start, .. } = *register;
        let incarnation = Incarnation(self.incarnation.0 + 1);
        let expected = Event::Registered { owner, role, start, incarnation };
        let is_its = |event: &Event| match event {
            Event::Registered { owner: of, start: by, .. } => (*of, *by) == (owner, start),
            Event::Genesis(_) | Event::Recovered | Event::Decided { .. } | Event::FollowedUp(_) => {
                false
            }
        };
        let record = records.next(is_its)?;
        if *record != expected {
            let what = format!("{register:?}: expected {expected:?}, recorded {record:?}");
            return Err(Stop::Broken(broken(Invariant::I12, what)));
        }
        self.incarnation = incarnation;
        if self.owner(owner).is_none() {
            self.owners.push(Owner::new(owner, role));
            self.owners.sort_by_key(|owner| owner.id);
        }
        if let Some(owner) = self.owner_mut(owner) {
            owner.start = start;
            owner.lives.push((incarnation, false));
            owner.highest = 0;
            owner.receipts.clear();
        }
        Ok(Ok(Outcome::Registered { incarnation }))
    }

    /// The incarnation that this start has already; none for a new one.
    fn judge_registration(
        &self,
        epoch: Epoch,
        register: &Register,
    ) -> Result<Option<Incarnation>, Rejection> {
        form::registration(register).map_err(Rejection::Malformed)?;
        if register.version != PROTOCOL_VERSION {
            return Err(Rejection::UnknownVersion { known: PROTOCOL_VERSION });
        }
        if epoch != self.job.epoch {
            return Err(Rejection::WrongEpoch);
        }
        let owner = self.owner(register.owner);
        if owner.is_some_and(|owner| owner.role != register.role) {
            return Err(Rejection::RoleMismatch);
        }
        if let Some(owner) = owner
            && let Some((current, fenced)) = owner.lives.last()
            && owner.start == register.start
        {
            return if *fenced { Err(Rejection::Fenced) } else { Ok(Some(*current)) };
        }
        let current = owner.map_or(Incarnation(0), Owner::current);
        if register.after != current {
            return Err(Rejection::StaleIncarnation { current });
        }
        if register.expected_policy.is_some_and(|expected| expected != self.job.policy) {
            return Err(Rejection::PolicyMismatch);
        }
        if owner.is_none() {
            let bound = u64::from(self.job.limits.owners);
            within(Limit::Owners, bound, self.owners.len() as u64 + 1)?;
        }
        Ok(None)
    }
}
