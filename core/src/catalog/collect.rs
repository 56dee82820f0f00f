//! Collection: hand out delete work, take its outcomes, and judge listings.
//!
//! Only a checkpoint without pin and reference is ever in the queue, its intent to be deleted is
//! durable before any work leaves, and work names derived keys alone. Because no key is used twice,
//! the same work may be handed out again at any time, to anyone.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::slab::{NONE, Slot};
use super::table::{Holds, Stage};
use super::{Catalog, Change, Ruling};
use crate::bounds::{MAX_COLLECT, MAX_PIECES};
use crate::few::Few;
use crate::id::{CheckpointId, Generation, Key, ObjectId};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
#[cfg(pinfold_mutants)]
use crate::outcome::Limit;
use crate::outcome::{DeleteOutcome, Field, Malformed, Outcome, Problem, Rejection};

/// Pieces of work in one event.
pub(super) const PICKS: usize = MAX_PIECES as usize;

/// Delete work: a run of private objects of one checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeleteWork {
    /// The checkpoint, which nothing can hold any more.
    pub checkpoint: CheckpointId,
    /// The first object, by its place in the order of all objects of the shape.
    pub first: u32,
    /// How many objects, at least one.
    pub count: u32,
}

/// What a key in a listing is to this job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// A record still counts it: leave it alone.
    Counted,
    /// Nothing counts it any more: it may be deleted by whole key, at any time.
    Stray,
    /// Not a private key of this job: none of our business.
    NotOurs,
}

impl Catalog {
    /// Work for up to `limit` objects, from the front of the queue.
    pub(super) fn decide_collect(&self, limit: u32) -> Ruling {
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::LimitRefusesCollect) {
            self.check_limit(Limit::BytesQuarantined, self.table.counters.bytes_quarantined)?;
        }
        let mut work = Few::<DeleteWork, PICKS>::new();
        let mut room = limit;
        let mut disposal = self.table.queue.head;
        let mut cut_short = false;
        while disposal != NONE && room > 0 && !work.is_full() {
            let row = &self.table.disposals[disposal];
            #[cfg(pinfold_mutants)]
            if is_armed(Mutant::LostPassedOver) && self.table.checkpoints[row.checkpoint].lost {
                disposal = row.queue.next;
                continue;
            }
            let mut from = row.cursor;
            while let Some((first, run)) = self.next_run(disposal, from) {
                let count = run.min(room);
                let checkpoint = self.table.checkpoints[row.checkpoint].id();
                cut_short = count == 0 || !work.push(DeleteWork { checkpoint, first, count });
                if cut_short {
                    break;
                }
                room -= count;
                from = first + count;
            }
            disposal = row.queue.next;
        }
        Ok(Change::Collected { work, more: cut_short || disposal != NONE })
    }

    /// The next run of objects that are not gone, from a place on.
    pub(super) fn next_run(&self, disposal: Slot, from: u32) -> Option<(u32, u32)> {
        let row = &self.table.disposals[disposal];
        let objects = if row.outcomes.is_empty() {
            row.left
        } else {
            u32::try_from(row.outcomes.len()).unwrap_or(u32::MAX)
        };
        let gone = |place: &u32| {
            row.outcomes.get(*place as usize).copied().flatten() == Some(DeleteOutcome::Gone)
        };
        let first = (from..objects).find(|place| !gone(place))?;
        let end = (first..objects).find(gone).unwrap_or(objects);
        Some((first, end - first))
    }

    pub(super) fn apply_collected(&mut self, work: &[DeleteWork], more: bool) -> Outcome {
        for piece in work {
            let Some(slot) = self.table.checkpoint(piece.checkpoint) else { continue };
            let Holds::Disposal(disposal) = self.table.checkpoints[slot].holds() else { continue };
            self.table.begin_collecting(slot, disposal);
            let cursor = piece.first + piece.count;
            if self.next_run(disposal, cursor).is_some() {
                self.table.disposals[disposal].cursor = cursor;
            } else {
                self.table.requeue(disposal, 0);
            }
        }
        let objects = work.iter().map(|piece| piece.count).sum();
        Outcome::Collected { objects, more }
    }

    /// The objects of a piece of work, while its checkpoint has a record.
    pub fn objects_of(&self, work: DeleteWork) -> impl Iterator<Item = ObjectId> + use<'_> {
        let slot = self.table.checkpoint(work.checkpoint);
        let shape = slot.map(|slot| self.table.shapes.shape(self.table.checkpoints[slot].shape));
        let objects = shape.into_iter().flat_map(move |shape| shape.objects_from(work.first));
        objects.take(work.count as usize)
    }

    pub(super) fn form_deleted(
        checkpoint: CheckpointId,
        outcomes: &[(ObjectId, DeleteOutcome)],
    ) -> Result<(), Malformed> {
        let refuse = |field, problem| Err(Malformed { field, problem });
        if checkpoint.generation == Generation(0) {
            return refuse(Field::Generation, Problem::Zero);
        }
        if outcomes.is_empty() {
            return refuse(Field::Objects, Problem::Empty);
        }
        if outcomes.len() > MAX_COLLECT as usize {
            return refuse(Field::Objects, Problem::TooLarge);
        }
        if outcomes.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return refuse(Field::Objects, Problem::Duplicate);
        }
        if outcomes.windows(2).any(|pair| pair[0].0 > pair[1].0) {
            return refuse(Field::Objects, Problem::Unordered);
        }
        Ok(())
    }

    pub(super) fn decide_deleted(
        &self,
        checkpoint: CheckpointId,
        outcomes: Vec<(ObjectId, DeleteOutcome)>,
    ) -> Ruling {
        #[cfg(pinfold_mutants)]
        let outcomes = Self::misread_outcomes(outcomes);
        let Some(slot) = self.table.checkpoint(checkpoint) else {
            // Everything of a minted generation without a record is gone already.
            let late = self.was_minted(checkpoint);
            let change = Change::Deleted { checkpoint, outcomes };
            return if late { Ok(change) } else { Err(Rejection::UnknownCheckpoint) };
        };
        let row = &self.table.checkpoints[slot];
        let shape = self.table.shapes.shape(row.shape);
        let objects = outcomes.iter().map(|(object, _)| *object);
        if shape.places(objects).any(|place| place.is_none()) {
            return Err(Rejection::UnknownObject);
        }
        if row.stage != Stage::Collecting {
            return Err(Rejection::NotCollecting);
        }
        Ok(Change::Deleted { checkpoint, outcomes })
    }

    pub(super) fn apply_deleted(
        &mut self,
        checkpoint: CheckpointId,
        outcomes: &[(ObjectId, DeleteOutcome)],
    ) -> Outcome {
        if let Some(slot) = self.table.checkpoint(checkpoint)
            && let Holds::Disposal(disposal) = self.table.checkpoints[slot].holds()
        {
            self.take_outcomes(slot, disposal, outcomes);
        }
        Outcome::Deleted { left: self.objects_left(checkpoint) }
    }

    fn take_outcomes(
        &mut self,
        slot: Slot,
        disposal: Slot,
        outcomes: &[(ObjectId, DeleteOutcome)],
    ) {
        let shape = self.table.shapes.shape(self.table.checkpoints[slot].shape).clone();
        let places = shape.places(outcomes.iter().map(|(object, _)| *object));
        for (place, (_, outcome)) in places.zip(outcomes) {
            if let Some(place) = place {
                self.table.take_outcome(disposal, place, *outcome);
            }
        }
        let stays = outcomes.iter().any(|(_, outcome)| *outcome != DeleteOutcome::Gone);
        if self.table.disposals[disposal].left == 0 {
            self.table.remove_checkpoint(slot);
            return;
        }
        let cursor = self.table.disposals[disposal].cursor;
        if self.next_run(disposal, cursor).is_none() {
            // What was still to be handed out in this round went by itself: the next one begins.
            self.table.requeue(disposal, 0);
        } else if stays {
            // A leased object must not starve the rest.
            self.table.requeue(disposal, cursor);
        }
    }

    /// How many objects of a checkpoint are not gone; 0 when it has no record.
    fn objects_left(&self, checkpoint: CheckpointId) -> u32 {
        let slot = self.table.checkpoint(checkpoint);
        slot.map_or(0, |slot| match self.table.checkpoints[slot].holds() {
            Holds::Disposal(disposal) => self.table.disposals[disposal].left,
            Holds::Assembly(_) | Holds::References(_) => 0,
        })
    }

    /// What a key in a listing is to this job. Ask it at the durable position.
    #[must_use]
    pub fn audit(&self, text: &str) -> Verdict {
        let Ok(key) = text.parse::<Key>() else { return Verdict::NotOurs };
        let job = &self.table.job;
        let ours = key.namespace == job.namespace && key.epoch == job.epoch;
        if !ours || !self.was_minted(key.checkpoint) {
            return Verdict::NotOurs;
        }
        #[cfg(pinfold_mutants)]
        if let Some(verdict) = self.misjudged(key.checkpoint) {
            return verdict;
        }
        let Some(slot) = self.table.checkpoint(key.checkpoint) else { return Verdict::Stray };
        let row = &self.table.checkpoints[slot];
        let Some(place) = self.table.shapes.shape(row.shape).place_of(key.object) else {
            return Verdict::NotOurs;
        };
        let Holds::Disposal(disposal) = row.holds() else { return Verdict::Counted };
        let outcome = self.table.disposals[disposal].outcomes.get(place as usize);
        if outcome == Some(&Some(DeleteOutcome::Gone)) { Verdict::Stray } else { Verdict::Counted }
    }
}
