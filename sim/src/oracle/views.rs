//! What the coordinator shows of itself: blockers and audits (I3, I6, I7, I8, I10, I17).
//!
//! A question is answered by the state at which it was asked, and leaves when all of that is
//! durable. So an answer lies between two durable situations: what held in both must be in it, and
//! what held in neither, nor between them, must not.

use pinfold_core::catalog::{Blocker, Blockers, Verdict};
use pinfold_core::id::{CheckpointId, Generation, ObjectId};
use pinfold_core::invariant::Invariant;

use super::facts::Hold;
use super::{Judged, Oracle, broken, demand};
use crate::store::StoreKey;

impl Oracle {
    pub(super) fn judge_blockers(
        &self,
        id: CheckpointId,
        [at_first, since]: [&[Hold]; 2],
        blockers: Option<&Blockers>,
    ) -> Judged {
        let blockers = blockers.map_or(&[][..], |it| it.blockers.as_slice());
        let shown = || blockers.iter().filter_map(hold);
        for hold in shown() {
            if !since.contains(&hold) {
                let what = format!("{id} is shown as held by {hold}, which no record says");
                return broken(self.wrongly_shown(hold), what);
            }
        }
        let now: Vec<Hold> = self.facts.holds_of(id).collect();
        for hold in at_first.iter().filter(|hold| now.contains(hold)) {
            let promise = match hold {
                Hold::Turn(_) | Hold::Unscoped => Invariant::I6,
                Hold::Pin(_) => Invariant::I8,
            };
            demand(shown().any(|it| it == *hold), promise, || {
                format!("{id} is held by {hold}, and that is not shown")
            })?;
        }
        Ok(())
    }

    fn wrongly_shown(&self, hold: Hold) -> Invariant {
        match hold {
            Hold::Turn(turn) if self.facts.ledger.is_over(turn) => Invariant::I7,
            Hold::Pin(pin) if self.facts.ended.contains_key(&pin) => Invariant::I8,
            Hold::Turn(_) | Hold::Unscoped | Hold::Pin(_) => Invariant::I10,
        }
    }

    pub(super) fn judge_audit(
        &self,
        minted: Generation,
        listed: &[StoreKey],
        verdicts: &[Verdict],
    ) -> Judged {
        for (key, verdict) in listed.iter().zip(verdicts) {
            match key {
                StoreKey::Private(id, object) => match verdict {
                    Verdict::Counted => {}
                    Verdict::Stray => self.judge_stray(*id, *object)?,
                    Verdict::NotOurs => {
                        let ours = id.generation <= minted && self.moves.was_put(*id, *object);
                        demand(!ours, Invariant::I17, || {
                            format!("{object} of {id} was put by a worker, and is called not ours")
                        })?;
                    }
                },
                StoreKey::Shared(_) | StoreKey::Foreign(_) => match verdict {
                    Verdict::NotOurs => {}
                    Verdict::Stray => {
                        return broken(Invariant::I3, format!("{key:?} is called a stray"));
                    }
                    Verdict::Counted => {
                        return broken(Invariant::I17, format!("{key:?} is called counted"));
                    }
                },
            }
        }
        Ok(())
    }

    /// A stray is what nothing counts: no record of its generation, or it is gone in it.
    fn judge_stray(&self, id: CheckpointId, object: ObjectId) -> Judged {
        demand(id.generation <= self.facts.minted, Invariant::I10, || {
            format!("{id} is called a stray, and was not minted durably")
        })?;
        let row = self.facts.checkpoints.get(&id);
        demand(row.is_none_or(|row| row.gone.contains(&object)), Invariant::I3, || {
            format!("{object} of {id} is called a stray, and a record counts it")
        })
    }
}

/// What a blocker names as holding the checkpoint.
fn hold(blocker: &Blocker) -> Option<Hold> {
    match blocker {
        Blocker::Retained { turn } => Some(Hold::Turn(*turn)),
        Blocker::Unscoped => Some(Hold::Unscoped),
        Blocker::Pinned { pin, .. } => Some(Hold::Pin(*pin)),
        Blocker::WaitingForShard { .. }
        | Blocker::InFlight { .. }
        | Blocker::InDoubt { .. }
        | Blocker::Collectable
        | Blocker::Collecting { .. }
        | Blocker::Quarantined { .. }
        | Blocker::Lost => None,
    }
}
