//! Publication: which turn refers to what, and which one has to go for it.
//!
//! The job's list of live turns, in order of first publication, is all that it asks.

use std::collections::BTreeSet;

use pinfold_core::catalog::Change;
use pinfold_core::id::{CheckpointId, ConversationId, OpId, PinId};
use pinfold_core::outcome::{Limit, Rejection, TurnKey};

use super::lists::{Checkpoint, Conversation, Stage, Turn, Unscoped};
use super::ruling::Ruling;
use super::{Spec, within};

impl Spec {
    pub(super) fn rule_publish(&self, op: OpId, pin: PinId, turn: Option<TurnKey>) -> Ruling {
        let id = self.own_pin(op, pin)?.checkpoint;
        let Some(checkpoint) = self.checkpoint(id).filter(|there| there.stage == Stage::Whole)
        else {
            return Err(Rejection::NotComplete);
        };
        if checkpoint.lost {
            return Err(Rejection::Lost);
        }
        let expired = match turn {
            None => self.rule_unscoped(checkpoint)?,
            Some(key) => self.rule_turn(checkpoint, key)?,
        };
        Ok(Change::Published { checkpoint: id, turn, expired })
    }

    fn rule_unscoped(&self, checkpoint: &Checkpoint) -> Result<Option<TurnKey>, Rejection> {
        match checkpoint.unscoped {
            Unscoped::Marked => {}
            Unscoped::Dropped => return Err(Rejection::Dropped),
            Unscoped::Never => {
                let bytes = self.bytes_unscoped() + checkpoint.bytes();
                within(Limit::BytesUnscoped, self.job.limits.bytes_unscoped, bytes)?;
            }
        }
        Ok(None)
    }

    fn rule_turn(
        &self,
        checkpoint: &Checkpoint,
        key: TurnKey,
    ) -> Result<Option<TurnKey>, Rejection> {
        let conversation = self.conversation(key.conversation);
        let is_over = |there: &Conversation| there.forgotten || there.expired.contains(&key.turn);
        if conversation.is_some_and(is_over) {
            return Err(Rejection::TurnExpired);
        }
        if let Some(turn) = self.turn(key) {
            if !turn.on.contains(&checkpoint.id) {
                self.within_budgets(checkpoint.bytes())?;
                let stay = turn.on.iter().filter(|on| !self.is_lost_at(**on, checkpoint.id));
                let references = stay.count() as u64 + 1;
                let bound = u64::from(self.job.limits.references_per_turn);
                within(Limit::ReferencesPerTurn, bound, references)?;
            }
            return Ok(None);
        }
        self.within_budgets(checkpoint.bytes())?;
        if conversation.is_none() {
            self.within_conversations()?;
        }
        self.within_expired_turns()?;
        Ok(self.expired_by_new_turn(key.conversation, checkpoint.id))
    }

    /// A lost checkpoint of the endpoint of another one: a turn published on that one leaves it.
    fn is_lost_at(&self, on: CheckpointId, other: CheckpointId) -> bool {
        on.endpoint == other.endpoint && self.checkpoint(on).is_some_and(|there| there.lost)
    }

    /// The oldest turn of the first scope that a new turn puts over its bound: the conversation
    /// by N or by its budget, then the job.
    fn expired_by_new_turn(&self, id: ConversationId, added: CheckpointId) -> Option<TurnKey> {
        let policy = &self.job.policy;
        let over = |budget: Option<u64>, within: Option<ConversationId>| {
            budget.is_some_and(|budget| self.bytes_retained(within, Some(added)) > budget)
        };
        let live = self.ledger(id).count();
        if live >= policy.turns as usize || over(policy.conversation_bytes, Some(id)) {
            return self.ledger(id).next().map(|turn| turn.key);
        }
        let oldest = self.turns.first().map(|turn| turn.key);
        oldest.filter(|_| over(policy.job_bytes, None))
    }

    /// Lets a turn refer to a checkpoint; what its conversation holds beyond a bound is due.
    pub(super) fn publish(&mut self, id: CheckpointId, key: TurnKey, expired: Option<TurnKey>) {
        self.conversation_mut(key.conversation);
        let lost: Vec<_> = self.turn(key).map_or(Vec::new(), |turn| {
            turn.on.iter().copied().filter(|on| self.is_lost_at(*on, id)).collect()
        });
        match self.turns.iter_mut().find(|turn| turn.key == key) {
            None => self.turns.push(Turn { key, on: vec![id] }),
            Some(turn) => {
                turn.on.retain(|on| !lost.contains(on) && *on != id);
                turn.on.push(id);
                turn.on.sort_unstable();
            }
        }
        if let Some(expired) = expired {
            self.expire(expired);
        }
        if self.is_over(key.conversation) {
            self.conversation_mut(key.conversation).due = true;
        }
    }

    /// A turn leaves its ledger for ever.
    pub(super) fn expire(&mut self, key: TurnKey) {
        self.turns.retain(|turn| turn.key != key);
        self.conversation_mut(key.conversation).expired.insert(key.turn);
    }

    /// A conversation, from now on seen.
    pub(super) fn conversation_mut(&mut self, id: ConversationId) -> &mut Conversation {
        let place = self.conversations.iter().position(|there| there.id == id);
        let place = place.unwrap_or_else(|| {
            let expired = BTreeSet::new();
            self.conversations.push(Conversation { id, expired, forgotten: false, due: false });
            self.conversations.len() - 1
        });
        &mut self.conversations[place]
    }
}
