//! Collection: what nothing holds, in which order it goes, and what is known of its objects.
//!
//! Work is the front of one long list: every object that is not gone, of every checkpoint in the
//! queue, from where its last slice ended.

use pinfold_core::bounds::MAX_PIECES;
use pinfold_core::catalog::{Change, DeleteWork};
use pinfold_core::engine::Effect;
use pinfold_core::few::Few;
use pinfold_core::id::{CheckpointId, Generation, ObjectId, OpId};
use pinfold_core::outcome::{DeleteOutcome, Rejection};

use super::Spec;
use super::lists::{Checkpoint, Stage};
use super::ruling::Ruling;

impl Spec {
    /// The work of a `Collect`. Among what became free together, the order is the recorded one.
    pub(super) fn rule_collect(&self, limit: u32, recorded: &Change) -> Change {
        let chosen: &[DeleteWork] = match recorded {
            Change::Collected { work, .. } => work,
            Change::Refused(_)
            | Change::Prepared { .. }
            | Change::Joined { .. }
            | Change::AlreadyPublished { .. }
            | Change::Pinned { .. }
            | Change::Settled { .. }
            | Change::Released { .. }
            | Change::Published { .. }
            | Change::Lost { .. }
            | Change::Doubted { .. }
            | Change::Deleted { .. }
            | Change::Configured { .. }
            | Change::Forgotten { .. }
            | Change::Dropped { .. }
            | Change::Fenced { .. }
            | Change::Retired { .. } => &[],
        };
        let mut work = Few::<DeleteWork, { MAX_PIECES as usize }>::new();
        let mut room = limit;
        for checkpoint in self.queued(chosen) {
            for (first, length) in runs(checkpoint) {
                let piece =
                    DeleteWork { checkpoint: checkpoint.id, first, count: length.min(room) };
                if piece.count == 0 || !work.push(piece) {
                    return Change::Collected { work, more: true };
                }
                room -= piece.count;
                if piece.count < length {
                    return Change::Collected { work, more: true };
                }
            }
        }
        Change::Collected { work, more: false }
    }

    /// The queue, oldest first, with the order that was chosen where there is none.
    fn queued(&self, chosen: &[DeleteWork]) -> Vec<&Checkpoint> {
        let rank = |id: &CheckpointId| chosen.iter().position(|piece| piece.checkpoint == *id);
        let mut ids = Vec::with_capacity(self.queue.len());
        for together in &self.queue {
            let from = ids.len();
            ids.extend(together);
            ids[from..].sort_by_key(|id| rank(id).unwrap_or(usize::MAX));
        }
        ids.into_iter().filter_map(|id| self.checkpoint(id)).collect()
    }

    /// A piece of work as it leaves.
    pub(super) fn delete(&self, by: OpId, piece: &DeleteWork) -> Effect {
        let objects = self.checkpoint(piece.checkpoint).map_or(Vec::new(), |there| {
            there.all_objects().skip(piece.first as usize).take(piece.count as usize).collect()
        });
        Effect::Delete { by, checkpoint: piece.checkpoint, objects }
    }

    /// The intent stands: what is begun is collected to its end, and what was handed out wholly
    /// goes to the back.
    pub(super) fn hand_out(&mut self, work: &[DeleteWork]) {
        for (piece, place) in work.iter().zip(1..) {
            let Some(there) = self.checkpoint_mut(piece.checkpoint) else { continue };
            there.stage = Stage::Collecting;
            there.outcomes.resize(there.objects() as usize, None);
            there.next = piece.first + piece.count;
            let is_cut = runs(there).next().is_some();
            if !is_cut {
                there.next = 0;
                self.move_in_queue(piece.checkpoint, true);
            } else if work.get(place).is_none_or(|next| next.checkpoint != piece.checkpoint) {
                self.move_in_queue(piece.checkpoint, false);
            }
        }
    }

    /// Takes a checkpoint out of the queue, and puts it by itself at the back or at the front.
    fn move_in_queue(&mut self, id: CheckpointId, back: bool) {
        self.leave_queue(id);
        let place = if back { self.queue.len() } else { 0 };
        self.queue.insert(place, vec![id]);
    }

    fn leave_queue(&mut self, id: CheckpointId) {
        for together in &mut self.queue {
            together.retain(|there| *there != id);
        }
        self.queue.retain(|together| !together.is_empty());
    }

    /// After every event: what lost its last holder joins the queue, what found one leaves it.
    pub(super) fn queue_what_nothing_holds(&mut self) {
        let mut free = Vec::new();
        let mut held = Vec::new();
        for checkpoint in &self.checkpoints {
            let is_queued = self.queue.iter().any(|there| there.contains(&checkpoint.id));
            match (self.is_held(checkpoint), is_queued) {
                (false, false) => free.push(checkpoint.id),
                (true, true) => held.push(checkpoint.id),
                (true, false) | (false, true) => {}
            }
        }
        for id in held {
            self.leave_queue(id);
        }
        if !free.is_empty() {
            self.queue.push(free);
        }
    }

    pub(super) fn rule_deleted(
        &self,
        id: CheckpointId,
        outcomes: &[(ObjectId, DeleteOutcome)],
    ) -> Ruling {
        let change = Change::Deleted { checkpoint: id, outcomes: outcomes.to_vec() };
        let Some(there) = self.checkpoint(id) else {
            // What was minted and has no record is gone already.
            let is_late = self.was_minted(id);
            return if is_late { Ok(change) } else { Err(Rejection::UnknownCheckpoint) };
        };
        if outcomes.iter().any(|(object, _)| there.place(*object).is_none()) {
            return Err(Rejection::UnknownObject);
        }
        if there.stage != Stage::Collecting { Err(Rejection::NotCollecting) } else { Ok(change) }
    }

    pub(super) fn was_minted(&self, id: CheckpointId) -> bool {
        Generation(0) < id.generation && id.generation <= self.generation
    }

    /// Takes outcomes, and says how many objects are not gone. Gone is for good.
    pub(super) fn take_outcomes(
        &mut self,
        id: CheckpointId,
        outcomes: &[(ObjectId, DeleteOutcome)],
    ) -> u32 {
        let Some(there) = self.checkpoint_mut(id) else { return 0 };
        for (object, outcome) in outcomes {
            if let Some(place) = there.place(*object).filter(|place| !there.is_gone(*place)) {
                there.outcomes[place as usize] = Some(*outcome);
            }
        }
        let left = there.left();
        let is_round_over = runs(there).next().is_none();
        if is_round_over {
            there.next = 0;
        }
        let stays = outcomes.iter().any(|(_, outcome)| *outcome != DeleteOutcome::Gone);
        if left == 0 {
            self.leave_queue(id);
            self.checkpoints.retain(|there| there.id != id);
        } else if is_round_over || stays {
            self.move_in_queue(id, true);
        }
        left
    }
}

/// The runs of objects that are not gone, from where the last slice ended.
fn runs(checkpoint: &Checkpoint) -> impl Iterator<Item = (u32, u32)> {
    let objects = checkpoint.objects();
    let mut from = checkpoint.next;
    std::iter::from_fn(move || {
        let first = (from..objects).find(|place| !checkpoint.is_gone(*place))?;
        let end = (first..objects).find(|place| checkpoint.is_gone(*place)).unwrap_or(objects);
        from = end;
        Some((first, end - first))
    })
}
