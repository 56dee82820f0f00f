//! Steps on checkpoints, and on the queue of those that nothing holds.

use alloc::vec::Vec;

use super::{Assembly, Checkpoint, Claim, Claimant, Disposal, Holds, Stage, Table, Unscoped};
use crate::catalog::index::hash_id;
use crate::catalog::list::Links;
use crate::catalog::shape::Shape;
use crate::catalog::slab::{NONE, Slot};
use crate::id::{AttemptId, CheckpointId, EndpointId, ManifestDigest};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{DeleteOutcome, Evidence};

/// What a record begins with, beside its shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewCheckpoint {
    pub(crate) id: CheckpointId,
    pub(crate) attempt: AttemptId,
    pub(crate) digest: ManifestDigest,
}

impl Table {
    pub(crate) fn checkpoint(&self, id: CheckpointId) -> Option<Slot> {
        self.endpoint_index
            .find(hash_id(id.endpoint.as_bytes()), |slot| self.checkpoints[slot].id() == id)
    }

    /// Every record of an endpoint, in no particular order.
    pub(crate) fn generations(&self, endpoint: EndpointId) -> impl Iterator<Item = Slot> + use<'_> {
        let hash = hash_id(endpoint.as_bytes());
        let same = move |slot: &Slot| self.checkpoints[*slot].endpoint == endpoint;
        self.endpoint_index.candidates(hash).filter(same)
    }

    pub(crate) fn attempt(&self, id: AttemptId) -> Option<Slot> {
        let hash = hash_id(id.as_bytes());
        self.attempt_index.find(hash, |slot| self.checkpoints[slot].attempt == id)
    }

    /// A new record with an empty assembly; the caller pins it at once.
    pub(crate) fn add_checkpoint(&mut self, new: NewCheckpoint, shape: &Shape) -> Slot {
        let assembly = match self.assemblies.reuse() {
            Some(slot) => slot,
            None => self.assemblies.push(Assembly::default()),
        };
        let shards = shape.shards().len();
        let row = &mut self.assemblies[assembly];
        row.savers = 0;
        row.missing = u32::try_from(shards).unwrap_or(u32::MAX);
        let free = Claim { by: Claimant::Nobody, evidence: None, next: NONE };
        row.shards.resize(shards, free);
        let slot = self.insert_checkpoint(new, shape);
        self.checkpoints[slot].link = assembly;
        slot
    }

    fn insert_checkpoint(&mut self, new: NewCheckpoint, shape: &Shape) -> Slot {
        let NewCheckpoint { id: CheckpointId { endpoint, generation }, attempt, digest } = new;
        let shape = self.shapes.hold(shape);
        self.counters.bytes += u128::from(self.shapes.bytes(shape));
        let slot = self.checkpoints.insert(Checkpoint {
            endpoint,
            attempt,
            digest,
            generation,
            shape,
            link: NONE,
            pins: NONE,
            stage: Stage::Prepared,
            lost: false,
            unscoped: Unscoped::Never,
            idle: false,
        });
        let rows = &self.checkpoints;
        let hash_of = |slot| hash_id(rows[slot].endpoint.as_bytes());
        self.endpoint_index.insert(hash_id(endpoint.as_bytes()), slot, hash_of);
        let hash_of = |slot| hash_id(rows[slot].attempt.as_bytes());
        self.attempt_index.insert(hash_id(attempt.as_bytes()), slot, hash_of);
        slot
    }

    /// Puts back a record that nobody saves, as a whole one without any holder.
    pub(crate) fn restore_checkpoint(&mut self, new: NewCheckpoint, shape: &Shape) -> Slot {
        let slot = self.insert_checkpoint(new, shape);
        self.checkpoints[slot].stage = Stage::Whole;
        slot
    }

    /// Sets a stage as a snapshot has it; a whole checkpoint's link is its references'.
    pub(crate) fn set_stage(&mut self, slot: Slot, stage: Stage) {
        let row = &mut self.checkpoints[slot];
        let keeps_link = matches!(row.holds(), Holds::Assembly(_))
            && matches!(stage, Stage::Prepared | Stage::Failed);
        row.stage = stage;
        if !keeps_link {
            row.link = NONE;
        }
    }

    /// Puts back a claim whose pin has ended; none when no save pin knows the claims.
    pub(crate) fn restore_ended_claim(
        &mut self,
        checkpoint: Slot,
        shard: u16,
        evidence: Option<Evidence>,
    ) -> Option<()> {
        // Settling other shards may have made it whole already; its save pins know the assembly.
        let mut saver = self.checkpoints[checkpoint].pins;
        while saver != NONE && !self.pins[saver].is_save() {
            saver = self.pins[saver].of_checkpoint.next;
        }
        if saver == NONE {
            return None;
        }
        let row = &mut self.assemblies[self.pins[saver].assembly];
        let success = u32::from(evidence == Some(Evidence::QuiescedSuccess));
        row.missing = row.missing.checked_sub(success)?;
        row.shards[usize::from(shard)] = Claim { by: Claimant::Ended, evidence, next: NONE };
        Some(())
    }

    /// Forgets a checkpoint whose every object is gone.
    pub(crate) fn remove_checkpoint(&mut self, slot: Slot) {
        self.leave_queue(slot);
        let row = self.checkpoints[slot];
        self.counters.bytes -= u128::from(self.shapes.bytes(row.shape));
        self.shapes.release(row.shape);
        let rows = &self.checkpoints;
        let hash_of = |slot| hash_id(rows[slot].endpoint.as_bytes());
        self.endpoint_index.remove(hash_id(row.endpoint.as_bytes()), slot, hash_of);
        let hash_of = |slot| hash_id(rows[slot].attempt.as_bytes());
        self.attempt_index.remove(hash_id(row.attempt.as_bytes()), slot, hash_of);
        self.checkpoints.remove(slot);
    }

    /// Sets or clears what an unscoped publication left.
    pub(crate) fn set_unscoped(&mut self, slot: Slot, mark: Unscoped) {
        let row = &mut self.checkpoints[slot];
        let bytes = self.shapes.bytes(row.shape);
        let was = core::mem::replace(&mut row.unscoped, mark);
        #[cfg(pinfold_mutants)]
        let was = if is_armed(Mutant::DroppedBytesStay) { Unscoped::Never } else { was };
        if was == Unscoped::Marked {
            self.counters.bytes_unscoped -= u128::from(bytes);
        }
        if mark == Unscoped::Marked {
            self.counters.bytes_unscoped += u128::from(bytes);
        }
        self.join_queue_if_unheld(slot);
    }

    /// Whether neither pin, reference nor mark holds a checkpoint that is not in the queue yet.
    pub(crate) fn is_unheld(&self, slot: Slot) -> bool {
        let row = &self.checkpoints[slot];
        !row.idle
            && row.pins == NONE
            && row.references() == NONE
            && row.unscoped != Unscoped::Marked
    }

    pub(super) fn join_queue_if_unheld(&mut self, slot: Slot) {
        if self.is_unheld(slot) {
            self.join_queue(slot);
        }
    }

    pub(crate) fn join_queue(&mut self, slot: Slot) -> Slot {
        let objects = self.shapes.shape(self.checkpoints[slot].shape).objects();
        let disposal = match self.disposals.reuse() {
            Some(disposal) => disposal,
            None => self.disposals.push(Disposal {
                checkpoint: slot,
                queue: Links::UNLINKED,
                cursor: 0,
                left: 0,
                unknown: 0,
                outcomes: Vec::new(),
            }),
        };
        let row = &mut self.disposals[disposal];
        row.checkpoint = slot;
        row.cursor = 0;
        row.left = objects;
        row.unknown = 0;
        row.outcomes.clear();
        self.queue.push(&mut self.disposals, disposal, |row| &mut row.queue);
        let row = &mut self.checkpoints[slot];
        row.idle = true;
        row.link = disposal;
        disposal
    }

    /// Takes a checkpoint out of the queue, if it is there.
    pub(super) fn leave_queue(&mut self, slot: Slot) {
        let row = &mut self.checkpoints[slot];
        let Holds::Disposal(disposal) = row.holds() else { return };
        row.idle = false;
        row.link = NONE;
        if self.disposals[disposal].unknown > 0 {
            self.counters.bytes_quarantined -= u128::from(self.shapes.bytes(row.shape));
        }
        self.queue.unlink(&mut self.disposals, disposal, |row| &mut row.queue);
        self.disposals.remove(disposal);
    }

    /// The intent to delete is durable: nothing may hold this checkpoint any more.
    pub(crate) fn begin_collecting(&mut self, slot: Slot, disposal: Slot) {
        let row = &mut self.checkpoints[slot];
        if row.stage == Stage::Collecting {
            return;
        }
        row.stage = Stage::Collecting;
        let objects = self.disposals[disposal].left;
        self.disposals[disposal].outcomes.resize(objects as usize, None);
    }

    /// Puts a checkpoint at the queue's end, to go on there at an object.
    pub(crate) fn requeue(&mut self, disposal: Slot, cursor: u32) {
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::RefusedStaysInFront)
            && self.disposals[disposal].outcomes.contains(&Some(DeleteOutcome::Refused))
        {
            self.disposals[disposal].cursor = cursor;
            return;
        }
        self.queue.unlink(&mut self.disposals, disposal, |row| &mut row.queue);
        self.queue.push(&mut self.disposals, disposal, |row| &mut row.queue);
        self.disposals[disposal].cursor = cursor;
    }

    /// Takes one object's outcome; `Gone` absorbs.
    pub(crate) fn take_outcome(&mut self, disposal: Slot, place: u32, outcome: DeleteOutcome) {
        let row = &mut self.disposals[disposal];
        let before = row.outcomes[place as usize];
        if before == Some(DeleteOutcome::Gone) {
            return;
        }
        row.outcomes[place as usize] = Some(outcome);
        let was_quarantined = row.unknown > 0;
        row.unknown -= u32::from(before == Some(DeleteOutcome::Unknown));
        row.unknown += u32::from(outcome == DeleteOutcome::Unknown);
        row.left -= u32::from(outcome == DeleteOutcome::Gone);
        let is_quarantined = row.unknown > 0;
        let bytes = self.shapes.bytes(self.checkpoints[row.checkpoint].shape);
        match (was_quarantined, is_quarantined) {
            (false, true) => self.counters.bytes_quarantined += u128::from(bytes),
            (true, false) => self.counters.bytes_quarantined -= u128::from(bytes),
            (false, false) | (true, true) => {}
        }
    }
}
