//! Publish: a turn, or the unscoped mark, refers to a whole checkpoint.
//!
//! The first successful publication decides a turn's place. One publication expires at most one
//! turn; what else is due is finished by follow-ups.

use super::slab::{NONE, Slot};
use super::table::{Checkpoint, Stage, TurnState, Unscoped};
use super::{Catalog, Change, Ruling, Sender};
use crate::id::{CheckpointId, PinId};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Field, Limit, Malformed, Outcome, Problem, Rejection, TurnKey};

impl Catalog {
    pub(super) fn form_publish(turn: Option<TurnKey>) -> Result<(), Malformed> {
        let refuse = |field| Err(Malformed { field, problem: Problem::Empty });
        match turn {
            Some(key) if key.conversation.is_empty() => refuse(Field::Conversation),
            Some(key) if key.turn.is_empty() => refuse(Field::Turn),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn decide_publish(
        &self,
        sender: &Sender,
        pin: PinId,
        turn: Option<TurnKey>,
    ) -> Ruling {
        let slot = self.table.pins[self.check_own_pin(sender, pin)?].checkpoint;
        let row = &self.table.checkpoints[slot];
        match row.stage {
            Stage::Whole => {}
            Stage::Prepared | Stage::Failed | Stage::Collecting => {
                return Err(Rejection::NotComplete);
            }
        }
        if row.lost {
            return Err(Rejection::Lost);
        }
        let checkpoint = row.id();
        match turn {
            None => self.decide_unscoped(slot),
            Some(key) => self.decide_turn(slot, key),
        }
        .map(|expired| Change::Published { checkpoint, turn, expired })
    }

    fn decide_unscoped(&self, slot: Slot) -> Result<Option<TurnKey>, Rejection> {
        let row = &self.table.checkpoints[slot];
        match row.unscoped {
            Unscoped::Marked => {}
            Unscoped::Dropped => return Err(Rejection::Dropped),
            Unscoped::Never => {
                let bytes = self.table.shapes.bytes(row.shape);
                let unscoped = self.table.counters.bytes_unscoped + u128::from(bytes);
                self.check_limit(Limit::BytesUnscoped, unscoped)?;
            }
        }
        Ok(None)
    }

    fn decide_turn(&self, slot: Slot, key: TurnKey) -> Result<Option<TurnKey>, Rejection> {
        let bytes = self.table.shapes.bytes(self.table.checkpoints[slot].shape);
        let Some(conversation) = self.table.conversation(key.conversation) else {
            self.check_budgets(bytes)?;
            let conversations = u64::from(self.table.conversations.len());
            self.check_limit(Limit::Conversations, conversations + 1)?;
            self.check_expired_limit()?;
            return Ok(self.over_job_after(slot));
        };
        let forgotten = self.table.conversations[conversation].forgotten;
        #[cfg(pinfold_mutants)]
        let forgotten = forgotten && !is_armed(Mutant::ForgottenTakesTurns);
        if forgotten {
            return Err(Rejection::TurnExpired);
        }
        match self.table.turn(conversation, key.turn) {
            TurnState::Expired => Err(Rejection::TurnExpired),
            TurnState::Unknown => {
                self.check_budgets(bytes)?;
                self.check_expired_limit()?;
                Ok(self.expired_by_new_turn(conversation, slot))
            }
            TurnState::Live(first) if self.refers(first, slot) => Ok(None),
            TurnState::Live(first) => {
                self.check_budgets(bytes)?;
                let stay = self.staying_references(first, slot);
                self.check_limit(Limit::ReferencesPerTurn, stay + 1)?;
                Ok(None)
            }
        }
    }

    /// Every live turn becomes an expired one in the end, so both count when one is added.
    pub(super) fn check_expired_limit(&self) -> Result<(), Rejection> {
        let turns = u64::from(self.table.expired_turns()) + u64::from(self.table.counters.turns);
        self.check_limit(Limit::ExpiredTurns, turns + 1)
    }

    /// A checkpoint larger than a budget could never be kept.
    pub(super) fn check_budgets(&self, bytes: u64) -> Result<(), Rejection> {
        let policy = &self.table.job.policy;
        let budgets = [
            (Limit::ConversationBytes, policy.conversation_bytes),
            (Limit::JobBytes, policy.job_bytes),
        ];
        for (limit, budget) in budgets {
            if let Some(bound) = budget.filter(|bound| bytes > *bound) {
                return Err(Rejection::LimitExceeded { limit, bound, needed: bytes });
            }
        }
        Ok(())
    }

    fn refers(&self, first: Slot, checkpoint: Slot) -> bool {
        let references = &self.table.references;
        self.table.turn_references(first).any(|slot| references[slot].checkpoint == checkpoint)
    }

    /// How many references a turn keeps when it is published on `checkpoint`.
    fn staying_references(&self, first: Slot, checkpoint: Slot) -> u64 {
        let endpoint = self.table.checkpoints[checkpoint].endpoint;
        let stays = |slot: &Slot| {
            let row = &self.table.checkpoints[self.table.references[*slot].checkpoint];
            !(row.lost && row.endpoint == endpoint)
        };
        self.table.turn_references(first).filter(stays).count() as u64
    }

    /// The turn that a new turn on `checkpoint` expires in the same event.
    fn expired_by_new_turn(&self, conversation: Slot, checkpoint: Slot) -> Option<TurnKey> {
        let policy = &self.table.job.policy;
        let row = &self.table.conversations[conversation];
        let oldest = (row.head != NONE).then(|| self.table.turn_key(row.head));
        #[cfg(pinfold_mutants)]
        let oldest = oldest.map(|oldest| self.expired_instead(oldest));
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::OneTurnMore) && row.turns == policy.turns {
            return self.over_job_after(checkpoint);
        }
        if row.turns >= policy.turns {
            return oldest;
        }
        if let Some(budget) = policy.conversation_bytes {
            let references = &self.table.references;
            let mut refers = self.table.ledger(conversation);
            let counted = refers.any(|slot| references[slot].checkpoint == checkpoint);
            let shape = self.table.checkpoints[checkpoint].shape;
            let added = if counted { 0 } else { self.table.shapes.bytes(shape) };
            if row.bytes.saturating_add(added) > budget {
                return oldest;
            }
        }
        self.over_job_after(checkpoint)
    }

    /// The job's oldest turn, when a new turn on `checkpoint` puts the job over its budget.
    fn over_job_after(&self, checkpoint: Slot) -> Option<TurnKey> {
        let budget = self.table.job.policy.job_bytes?;
        let row = &self.table.checkpoints[checkpoint];
        let added = if row.references() == NONE { self.table.shapes.bytes(row.shape) } else { 0 };
        let bytes = self.table.counters.bytes_retained + u128::from(added);
        let oldest = self.table.turns.head;
        (bytes > u128::from(budget) && oldest != NONE).then(|| self.table.turn_key(oldest))
    }

    pub(super) fn apply_published(
        &mut self,
        checkpoint: CheckpointId,
        turn: Option<TurnKey>,
        expired: Option<TurnKey>,
    ) -> Outcome {
        if let Some(slot) = self.table.checkpoint(checkpoint) {
            match turn {
                None => self.table.set_unscoped(slot, Unscoped::Marked),
                Some(key) => self.publish_turn(slot, key, expired),
            }
        }
        Outcome::Published { expired, follow_ups: self.next_follow_up().is_some() }
    }

    fn publish_turn(&mut self, slot: Slot, key: TurnKey, expired: Option<TurnKey>) {
        let conversation = match self.table.conversation(key.conversation) {
            Some(conversation) => conversation,
            None => self.table.add_conversation(key.conversation),
        };
        match self.table.turn(conversation, key.turn) {
            TurnState::Expired => {}
            TurnState::Unknown => self.table.add_turn(conversation, key.turn, slot),
            TurnState::Live(first) => self.publish_again(first, slot),
        }
        if let Some(expired) = expired {
            self.expire(expired);
        }
        if self.is_over(conversation) {
            self.table.mark_due(conversation);
        }
    }

    /// Lets a live turn refer to one more checkpoint; Lost ones of the same endpoint leave it.
    fn publish_again(&mut self, first: Slot, checkpoint: Slot) {
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::RepublishMoves) {
            self.make_newest(first);
        }
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::SecondPublicationReplaces) && !self.refers(first, checkpoint) {
            self.table.replace_references(first, checkpoint, |_| true);
            return;
        }
        let endpoint = self.table.checkpoints[checkpoint].endpoint;
        let id = self.table.checkpoints[checkpoint].id();
        let lost = |row: &Checkpoint| row.lost && row.endpoint == endpoint;
        let references = &self.table.references;
        let rows = &self.table.checkpoints;
        let is_lost = |slot: Slot| lost(&rows[references[slot].checkpoint]);
        let any_lost = self.table.turn_references(first).any(is_lost);
        if any_lost {
            // One it has already stands for itself again, in the place of the first that leaves.
            let leaves = |row: &Checkpoint| lost(row) || row.id() == id;
            self.table.replace_references(first, checkpoint, leaves);
        } else if !self.refers(first, checkpoint) {
            self.table.add_turn_reference(first, checkpoint);
        }
    }
}
