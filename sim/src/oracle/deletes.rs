//! What is deleted, and what the coordinator hands out to be deleted (I1, I2, I3, I10).
//!
//! A delete that hits something retained, pinned or moving is silent corruption, so each is judged
//! when it leaves the coordinator and again when it reaches the store.

use pinfold_core::engine::Effect;
use pinfold_core::id::{CheckpointId, Generation, ObjectId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::Outcome;

use super::facts::Hold;
use super::{Judged, Oracle, broken, demand};
use crate::seen::Cause;
use crate::store::StoreKey;

impl Oracle {
    /// Delete work leaves the coordinator.
    pub(super) fn handed_out(&mut self, effect: &Effect) -> Judged {
        let Effect::Delete { by, checkpoint, objects } = effect;
        let id = *checkpoint;
        if let Some(receipt) = self.desk.receipts.get(by) {
            let collects = matches!(receipt.answer, Ok(Outcome::Collected { .. }));
            demand(collects, Invariant::I10, || {
                format!("{by} collects nothing, and hands work out")
            })?;
        } else {
            demand(self.desk.is_forgotten(*by, &self.facts), Invariant::I10, || {
                format!("{by} hands work out, and its intent is not durable")
            })?;
        }
        demand(!objects.is_empty(), Invariant::I3, || format!("{by} hands out no object of {id}"))?;
        self.judge_objects(id, objects)?;
        self.moves.handed_out(id, objects);
        self.judge_unheld(id)
    }

    /// The objects are the checkpoint's own, and the intent to delete them is durable.
    fn judge_objects(&self, id: CheckpointId, objects: &[ObjectId]) -> Judged {
        let Some(row) = self.facts.checkpoints.get(&id) else {
            // All of it is gone already, or it never was.
            let minted = (Generation(1)..=self.facts.minted).contains(&id.generation);
            return demand(minted, Invariant::I3, || {
                format!("{id} is to be deleted, and was never minted")
            });
        };
        let none_of_it = objects.iter().find(|object| row.shape.place_of(**object).is_none());
        if let Some(object) = none_of_it {
            return broken(Invariant::I3, format!("{object} is handed out, and {id} has no such"));
        }
        demand(row.collected, Invariant::I3, || {
            format!("{id} is to be deleted, and no durable record says so")
        })
    }

    /// A delete reaches the store.
    pub(super) fn deleted(&mut self, key: StoreKey, cause: Cause) -> Judged {
        self.moves.stored.remove(&key);
        match key {
            StoreKey::Private(checkpoint, object) => {
                self.judge_unheld(checkpoint)?;
                let asked = cause == Cause::Stray || self.moves.was_handed_out(checkpoint, object);
                demand(asked, Invariant::I3, || {
                    format!("{object} of {checkpoint} is deleted, and was never handed out")
                })
            }
            StoreKey::Shared(_) | StoreKey::Foreign(_) => {
                broken(Invariant::I3, format!("{key:?} is deleted, and is not ours to delete"))
            }
        }
    }

    /// Neither a turn nor a pin nor a move needs a checkpoint any more.
    fn judge_unheld(&self, id: CheckpointId) -> Judged {
        if let Some(hold) = self.facts.holder_of(id) {
            let promise = match hold {
                Hold::Turn(_) | Hold::Unscoped => Invariant::I1,
                Hold::Pin(_) => Invariant::I2,
            };
            return broken(promise, format!("{id} is deleted, and {hold} keeps it"));
        }
        let moving = self.moves.under_way.iter().find(|moving| {
            matches!(moving.key, StoreKey::Private(of, _) if of == id)
                && !self.moves.was_lied_about(moving.pin)
        });
        moving.map_or(Ok(()), |moving| {
            let what = format!("{id} is deleted, and {:?} still touches memory", moving.id);
            broken(Invariant::I2, what)
        })
    }
}
