//! The oracle: what everybody was promised, judged by one who looks on from outside.
//!
//! It hears [`Seen`] and keeps what that must mean: which records are durable, what was answered,
//! what moves between memory and store, and what the store holds. Records are judged in the order
//! in which the disk has them, so each is judged in the very situation in which it was decided.
//! It protects the promises of the protocol (I1 to I10, I12, I14 to I18, L1, L2) from the machine
//! that keeps them: it never asks that machine, and shares no predicate with it.
//!
//! It never cries wolf: where a fault leaves two readings of what was seen, it takes the one in
//! which nothing is wrong.

mod answers;
mod deletes;
mod desk;
mod facts;
mod ledger;
mod memory;
mod moves;
mod records;
#[cfg(test)]
mod tests;
mod views;

use pinfold_core::catalog::Event;
use pinfold_core::invariant::Invariant;
use pinfold_core::policy::Genesis;

use crate::seen::Seen;
use crate::shared::Shared;
use crate::store::StoreKey;
use crate::violation::{Judge, Violation};

use desk::Desk;
use facts::Facts;
use moves::Moves;

/// What a judgement gives: nothing, or the promise that does not hold.
type Judged = Result<(), Violation>;

/// The judge from outside. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Oracle {
    facts: Shared<Facts>,
    moves: Shared<Moves>,
    desk: Shared<Desk>,
    /// The disk failed to sync, so nothing may wait any more.
    failed: bool,
}

impl Oracle {
    /// The oracle of a new job, which nothing was asked of yet.
    #[must_use]
    pub fn new(genesis: &Genesis) -> Self {
        Self {
            facts: Shared::new(Facts::new(genesis.policy)),
            moves: Shared::default(),
            desk: Shared::new(Desk::new(genesis.epoch, genesis.limits.unanswered)),
            failed: false,
        }
    }

    /// Takes in the next thing that was seen, and judges it.
    ///
    /// # Errors
    /// The promise that it breaks. What comes after a broken promise is not judged soundly.
    pub fn see(&mut self, seen: &Seen) -> Result<(), Violation> {
        match seen {
            Seen::Submitted { ticket, input } => self.submitted(*ticket, input),
            Seen::Idled | Seen::Recovered | Seen::OwnerDied { .. } => {}
            Seen::Synced { events } => return self.synced(events),
            Seen::Replied { ticket, reply } => return self.replied(*ticket, reply),
            Seen::HandedOut { effect } => return self.handed_out(effect),
            Seen::SyncFailed => self.failed = true,
            Seen::Crashed => return self.crashed(),
            Seen::Compares { pin } => self.moves.compares(*pin, None),
            Seen::Compared { pin, same } => self.moves.compares(*pin, Some(*same)),
            Seen::Missed { pin: _, key } => self.moves.missed(*key),
            Seen::MoveBegan { .. }
            | Seen::PutSucceeded { .. }
            | Seen::Confirmed { .. }
            | Seen::Retired { .. }
            | Seen::SourceReused { .. }
            | Seen::DestinationReused { .. }
            | Seen::Adopted { .. } => return self.touched(seen),
            Seen::Landed { id: _, key, content } => self.moves.landed(*key, *content),
            Seen::Deleted { key, cause } => return self.deleted(*key, *cause),
            Seen::StoreLost { key } => self.moves.lost(*key),
            Seen::Returned { key } => self.moves.returned(*key),
            Seen::FalseProof { owner, incarnation } => {
                self.moves.lied_about.insert((*owner, *incarnation));
            }
            Seen::Listed { ticket, keys } => self.desk.list(*ticket, keys),
        }
        Ok(())
    }

    /// Judges a World at rest: faults have stopped, everything was recovered, and collectors and
    /// audits have done all that they can.
    ///
    /// # Errors
    /// L2 when a request was never answered; L1 when the store still has a private object that
    /// neither a reference nor a pin holds.
    pub fn end(&self) -> Result<(), Violation> {
        if let Some(ticket) = self.desk.unanswered() {
            return broken(Invariant::L2, format!("ticket {} was never answered", ticket.0));
        }
        for key in &self.moves.stored {
            if let StoreKey::Private(checkpoint, object) = key
                && self.facts.holder_of(*checkpoint).is_none()
            {
                let what = format!("nothing holds {checkpoint}, and the store has {object} of it");
                return broken(Invariant::L1, what);
            }
        }
        Ok(())
    }

    /// Whether the store holds no private object of this job, as far as was seen: what an operator
    /// must be able to reach from everywhere (L3).
    #[must_use]
    pub fn is_empty_of_ours(&self) -> bool {
        !self.moves.stored.iter().any(|key| matches!(key, StoreKey::Private(..)))
    }

    /// What waits when a coordinator dies is never answered; after a failed sync all of it was.
    fn crashed(&mut self) -> Judged {
        if core::mem::take(&mut self.failed)
            && let Some(ticket) = self.desk.unanswered()
        {
            let what = format!("ticket {} was not answered after a failed sync", ticket.0);
            return broken(Invariant::L2, what);
        }
        self.desk.crash();
        Ok(())
    }

    /// Follows durable records.
    fn synced(&mut self, events: &[Event]) -> Judged {
        events.iter().try_for_each(|event| self.follow(event))?;
        if events.contains(&Event::Recovered) {
            // All that the disk held before is told: nothing of it can still show up.
            self.desk.bury();
        }
        Ok(())
    }

    fn follow(&mut self, event: &Event) -> Judged {
        match event {
            Event::Genesis(_) | Event::Recovered => {}
            Event::Registered { owner, role, start, incarnation } => {
                self.desk.registered(*owner, *start, *incarnation)?;
                self.facts.registered(*owner, *role, *start, *incarnation)?;
            }
            Event::Decided { op, fingerprint: _, change } => self.decided(*op, change)?,
            Event::FollowedUp(follow_up) => self.facts.followed_up(follow_up)?,
        }
        self.desk.look(&self.facts);
        Ok(())
    }
}

/// A promise does not hold.
fn broken(invariant: Invariant, what: String) -> Judged {
    Err(Violation { invariant, judge: Judge::Oracle, what })
}

/// Demands that a promise holds; what is said when it does not is worded only then.
fn demand(holds: bool, invariant: Invariant, what: impl FnOnce() -> String) -> Judged {
    if holds { Ok(()) } else { broken(invariant, what()) }
}
