//! Owners: register, retire, fence, configure.
//!
//! An owner obeys only while its incarnation is current and not fenced; nothing here is proved by
//! time or silence.

use serde::{Deserialize, Serialize};

use super::slab::{NONE, Slot};
use super::{Catalog, Change, Decision, Event, Ruling};
use crate::id::{Epoch, Incarnation, OwnerId, StartId};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Field, Limit, Malformed, Outcome, Problem, Rejection};
use crate::policy::{Limits, Policy};

/// The protocol version that this catalog speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// What an owner may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Moves bytes.
    Worker,
    /// May also configure, forget, drop, fence, retire, and end another's pins. The host vouches.
    Operator,
}

/// Begins a new incarnation of an owner. It carries no operation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register {
    /// Who registers.
    pub owner: OwnerId,
    /// What the host says it may do.
    pub role: Role,
    /// The incarnation that it follows; 0 for none.
    pub after: Incarnation,
    /// Random, one per start of the process: the same start gets the same answer.
    pub start: StartId,
    /// The client's protocol version.
    pub version: u32,
    /// The policy that the client expects the job to have, if it cares.
    pub expected_policy: Option<Policy>,
}

impl Catalog {
    pub(super) fn decide_register(&self, epoch: Epoch, register: &Register) -> Decision {
        match self.judge_register(epoch, register) {
            Ok(decision) => decision,
            Err(rejection) => Decision::Answer(Err(rejection)),
        }
    }

    fn judge_register(&self, epoch: Epoch, register: &Register) -> Result<Decision, Rejection> {
        let Register { owner, role, after, start, version, expected_policy } = *register;
        let empty = |field| Rejection::Malformed(Malformed { field, problem: Problem::Empty });
        if owner.is_empty() {
            return Err(empty(Field::Owner));
        }
        if start.is_empty() {
            return Err(empty(Field::Start));
        }
        if version != PROTOCOL_VERSION {
            return Err(Rejection::UnknownVersion { known: PROTOCOL_VERSION });
        }
        self.check_epoch(epoch)?;
        let known = self.table.owner(owner);
        let current = known.map_or(Incarnation(0), |slot| self.table.current(slot));
        if let Some(slot) = known {
            let row = &self.table.owners[slot];
            if row.role != role {
                return Err(Rejection::RoleMismatch);
            }
            if row.current != NONE && row.start == start {
                if self.table.lives[row.current].fenced {
                    return Err(Rejection::Fenced);
                }
                return Ok(Decision::Answer(Ok(Outcome::Registered { incarnation: current })));
            }
        }
        #[cfg(pinfold_mutants)]
        let after = if is_armed(Mutant::AnyoneSucceeds) { current } else { after };
        if after != current {
            return Err(Rejection::StaleIncarnation { current });
        }
        if expected_policy.is_some_and(|expected| expected != self.table.job.policy) {
            return Err(Rejection::PolicyMismatch);
        }
        if known.is_none() {
            self.check_limit(Limit::Owners, u64::from(self.table.owners.len()) + 1)?;
        }
        let incarnation = Incarnation(self.table.incarnation.0 + 1);
        Ok(Decision::Event(Event::Registered { owner, role, start, incarnation }))
    }

    pub(super) fn apply_registered(
        &mut self,
        owner: OwnerId,
        role: Role,
        start: StartId,
        incarnation: Incarnation,
    ) {
        let slot = match self.table.owner(owner) {
            Some(slot) => slot,
            None => self.table.add_owner(owner, role),
        };
        #[cfg(pinfold_mutants)]
        self.end_pins_of_current(slot);
        self.table.succeed(slot, start, incarnation);
    }

    pub(super) fn check_operator(&self, owner: Slot) -> Result<(), Rejection> {
        match self.table.owners[owner].role {
            Role::Operator => Ok(()),
            Role::Worker => Err(Rejection::NotOperator),
        }
    }

    pub(super) fn decide_fence(
        &self,
        by: Slot,
        owner: OwnerId,
        incarnation: Incarnation,
    ) -> Ruling {
        self.check_operator(by)?;
        let slot = self.table.owner(owner).ok_or(Rejection::UnknownOwner)?;
        self.table.is_fenced(slot, incarnation).ok_or(Rejection::UnknownIncarnation)?;
        Ok(Change::Fenced { owner, incarnation })
    }

    pub(super) fn apply_fenced(&mut self, owner: OwnerId, incarnation: Incarnation) -> Outcome {
        let mut pins = 0;
        if let Some(slot) = self.table.owner(owner) {
            self.table.fence(slot, incarnation);
            #[cfg(pinfold_mutants)]
            if is_armed(Mutant::FenceTakesTheCurrent) {
                self.table.fence(slot, self.table.current(slot));
            }
            let life = self.table.life(slot, incarnation);
            pins = life.map_or(0, |life| self.table.lives[life].pin_count);
        }
        Outcome::Fenced { pins }
    }

    pub(super) fn decide_retire(&self, by: Slot, owner: OwnerId) -> Ruling {
        self.check_operator(by)?;
        let slot = self.table.owner(owner).ok_or(Rejection::UnknownOwner)?;
        if owner == self.table.job.operator {
            return Err(Rejection::GenesisOperator);
        }
        if self.table.owners[slot].pins > 0 {
            return Err(Rejection::OwnerHasPins);
        }
        Ok(Change::Retired { owner })
    }

    pub(super) fn apply_retired(&mut self, owner: OwnerId) -> Outcome {
        if let Some(slot) = self.table.owner(owner) {
            self.table.remove_owner(slot);
        }
        Outcome::Retired
    }

    /// W stays what genesis made it: owners count on the receipts that it promises.
    pub(super) fn form_configure(&self, policy: &Policy, limits: &Limits) -> Result<(), Malformed> {
        limits.form()?;
        policy.form(limits)?;
        if limits.unanswered != self.table.job.limits.unanswered {
            let field = Field::Bound(Limit::Unanswered);
            return Err(Malformed { field, problem: Problem::OutOfRange });
        }
        Ok(())
    }

    pub(super) fn decide_configure(&self, by: Slot, policy: Policy, limits: Limits) -> Ruling {
        self.check_operator(by)?;
        let now = &self.table.job.policy;
        let lower = |new: Option<u64>, old: Option<u64>| {
            new.is_some_and(|new| old.is_none_or(|old| new < old))
        };
        let trim =
            policy.turns < now.turns || lower(policy.conversation_bytes, now.conversation_bytes);
        Ok(Change::Configured { policy, limits, trim })
    }

    pub(super) fn apply_configured(
        &mut self,
        policy: Policy,
        limits: Limits,
        trim: bool,
    ) -> Outcome {
        self.table.job.policy = policy;
        self.table.job.limits = limits;
        #[cfg(pinfold_mutants)]
        let trim = trim && !is_armed(Mutant::LoweredBoundForgotten);
        if trim {
            self.table.trim = Some(0);
        }
        Outcome::Configured
    }
}
