//! Expiry: forget, drop, and the follow-ups that finish what one event may not.
//!
//! One event expires at most one turn, always the oldest of its conversation. What is due is a
//! function of the state, so a crash between two follow-ups changes nothing.

use serde::{Deserialize, Serialize};

use super::slab::{NONE, Slot};
use super::table::Unscoped;
use super::{Catalog, Change, Ruling, Sender};
use crate::id::{CheckpointId, ConversationId, PinId};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Evidence, Limit, Outcome, Rejection, TurnKey};

/// How many identities of a forgotten conversation one follow-up drops.
const PURGE: u32 = 64;
/// How many conversations one follow-up looks at for a lowered bound.
const TRIM: u32 = 256;

/// One bounded piece of work that an earlier event made due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FollowUp {
    /// Ends one pin of a fenced incarnation; what is not final becomes `QuiescedFailure`.
    EndPin {
        /// The pin.
        pin: PinId,
    },
    /// Expires the oldest turn of a conversation, or of the job.
    Expire {
        /// The turn.
        turn: TurnKey,
    },
    /// Drops identities of a forgotten conversation's turns, which it now stands for.
    Purge {
        /// The conversation.
        conversation: ConversationId,
        /// How many.
        turns: u32,
    },
    /// Nothing is due for a conversation any more.
    Settle {
        /// The conversation.
        conversation: ConversationId,
    },
    /// Carries a lowered bound on to another conversation, by its number in first-seen order.
    Trim {
        /// The next conversation to look at; none when all were.
        next: Option<u32>,
    },
}

impl Catalog {
    /// The next follow-up, if one waits. It is a function of the state.
    #[must_use]
    pub fn next_follow_up(&self) -> Option<FollowUp> {
        let table = &self.table;
        if !table.fencing.is_empty() {
            let first = table.lives[table.fencing.head].pins;
            return Some(FollowUp::EndPin { pin: table.pin_id(first) });
        }
        if !table.due.is_empty() {
            return Some(self.due_follow_up(table.due.head));
        }
        if let Some(from) = table.trim {
            return Some(self.trim_follow_up(from));
        }
        let over = table.job.policy.job_bytes.is_some_and(|budget| {
            table.counters.bytes_retained > u128::from(budget)
                && table.turns.head != table.turns.tail
        });
        over.then(|| FollowUp::Expire { turn: table.turn_key(table.turns.head) })
    }

    fn due_follow_up(&self, conversation: Slot) -> FollowUp {
        let row = &self.table.conversations[conversation];
        if row.head != NONE && (row.forgotten || self.is_over(conversation)) {
            FollowUp::Expire { turn: self.table.turn_key(row.head) }
        } else if row.forgotten && row.expired_count > 0 {
            FollowUp::Purge { conversation: row.id, turns: row.expired_count.min(PURGE) }
        } else {
            FollowUp::Settle { conversation: row.id }
        }
    }

    fn trim_follow_up(&self, from: Slot) -> FollowUp {
        let end = self.table.conversations.end();
        let until = from.saturating_add(TRIM).min(end);
        match (from..until).find(|slot| self.is_over(*slot)) {
            Some(over) => {
                let head = self.table.conversations[over].head;
                FollowUp::Expire { turn: self.table.turn_key(head) }
            }
            None => FollowUp::Trim { next: (until < end).then_some(until) },
        }
    }

    /// More live turns than N, or more bytes than the budget allows beside the newest turn.
    pub(super) fn is_over(&self, conversation: Slot) -> bool {
        let policy = &self.table.job.policy;
        let row = &self.table.conversations[conversation];
        let over_bytes = policy.conversation_bytes.is_some_and(|budget| row.bytes > budget);
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::OneTurnMore) && row.turns == policy.turns.saturating_add(1) {
            return over_bytes && row.turns > 1;
        }
        row.turns > policy.turns || over_bytes && row.turns > 1
    }

    pub(super) fn apply_follow_up(&mut self, follow_up: &FollowUp) {
        match *follow_up {
            FollowUp::EndPin { pin } => {
                if let Some(slot) = self.table.pin(pin) {
                    let is_save = self.table.pins[slot].is_save();
                    self.settle_pin(slot, None, Evidence::QuiescedFailure);
                    if is_save {
                        self.table.end_pin(slot);
                    }
                }
            }
            FollowUp::Expire { turn } => self.expire(turn),
            FollowUp::Purge { conversation, turns } => {
                if let Some(slot) = self.table.conversation(conversation) {
                    self.table.purge_expired(slot, turns);
                }
            }
            FollowUp::Settle { conversation } => {
                if let Some(slot) = self.table.conversation(conversation) {
                    self.table.clear_due(slot);
                }
            }
            FollowUp::Trim { next } => self.table.trim = next,
        }
    }

    /// Expires a turn, which is the oldest of its conversation.
    pub(super) fn expire(&mut self, turn: TurnKey) {
        if let Some(conversation) = self.table.conversation(turn.conversation) {
            debug_assert_eq!(
                self.table.turn_key(self.table.conversations[conversation].head),
                turn
            );
            #[cfg(pinfold_mutants)]
            self.put_newest_first(conversation);
            self.table.expire_oldest(conversation);
            #[cfg(pinfold_mutants)]
            if is_armed(Mutant::ExpiredForgotten) {
                self.table.purge_expired(conversation, 1);
            }
        }
    }

    pub(super) fn decide_forget(&self, by: Slot, conversation: ConversationId) -> Ruling {
        self.check_operator(by)?;
        if self.table.conversation(conversation).is_none() {
            let conversations = u64::from(self.table.conversations.len());
            self.check_limit(Limit::Conversations, conversations + 1)?;
            self.check_expired_limit()?;
        }
        Ok(Change::Forgotten { conversation })
    }

    pub(super) fn apply_forgotten(&mut self, id: ConversationId) -> Outcome {
        let slot = match self.table.conversation(id) {
            Some(slot) => slot,
            None => self.table.add_conversation(id),
        };
        let row = &self.table.conversations[slot];
        let due = row.head != NONE || row.expired_count > 0;
        #[cfg(pinfold_mutants)]
        let due = due && !is_armed(Mutant::ForgetNeverDue);
        if !row.forgotten {
            self.table.forget(slot);
            if due {
                self.table.mark_due(slot);
            }
        }
        Outcome::Forgotten
    }

    pub(super) fn decide_drop(&self, sender: &Sender, checkpoint: CheckpointId) -> Ruling {
        self.check_operator(sender.owner)?;
        self.table.checkpoint(checkpoint).ok_or(Rejection::UnknownCheckpoint)?;
        Ok(Change::Dropped { checkpoint })
    }

    pub(super) fn apply_dropped(&mut self, checkpoint: CheckpointId) -> Outcome {
        if let Some(slot) = self.table.checkpoint(checkpoint) {
            #[cfg(pinfold_mutants)]
            if is_armed(Mutant::DropIgnoresLost) && self.table.checkpoints[slot].lost {
                return Outcome::Dropped;
            }
            self.table.set_unscoped(slot, Unscoped::Dropped);
        }
        Outcome::Dropped
    }
}
