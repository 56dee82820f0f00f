//! Follow-ups: what an event left to do, and whether what was done was due.
//!
//! The protocol gives them no order: each is judged by itself.

use pinfold_core::catalog::FollowUp;
use pinfold_core::id::{ConversationId, PinId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::TurnKey;

use super::lists::Conversation;
use super::{Spec, broken};
use crate::violation::Violation;

impl Spec {
    /// Whether anything waits for a follow-up.
    #[must_use]
    pub fn due(&self) -> bool {
        self.trim.is_some()
            || self.pins.iter().any(|pin| self.is_of_fenced(pin))
            || self.conversations.iter().any(|there| there.due || self.must_shrink(there))
            || self.is_job_over()
    }

    /// Forgotten with live turns, or over a bound.
    fn must_shrink(&self, there: &Conversation) -> bool {
        if there.forgotten {
            self.ledger(there.id).next().is_some()
        } else {
            self.is_over(there.id)
        }
    }

    /// Takes a follow-up.
    ///
    /// # Errors
    /// One that the protocol does not allow here.
    pub fn followed_up(&mut self, follow_up: &FollowUp) -> Result<(), Violation> {
        let refused = match *follow_up {
            FollowUp::EndPin { pin } => self.fenced_pin_ended(pin).err(),
            FollowUp::Expire { turn } => self.turn_expired(turn).err(),
            FollowUp::Purge { conversation, turns } => self.purged(conversation, turns).err(),
            FollowUp::Settle { conversation } => self.conversation_settled(conversation).err(),
            FollowUp::Trim { next } => self.trimmed(next).err(),
        };
        match refused {
            Some((invariant, why)) => {
                Err(broken(invariant, format!("{follow_up:?} was done, and {why}")))
            }
            None => {
                self.queue_what_nothing_holds();
                Ok(())
            }
        }
    }

    fn fenced_pin_ended(&mut self, id: PinId) -> Result<(), Refused> {
        let pin = self.pins.iter().find(|pin| pin.id == id);
        let pin = pin.ok_or((Invariant::I8, "no such pin is live"))?;
        if !self.is_of_fenced(pin) {
            return Err((Invariant::I8, "its incarnation is not fenced"));
        }
        self.end_fenced_pin(id);
        Ok(())
    }

    fn turn_expired(&mut self, turn: TurnKey) -> Result<(), Refused> {
        let oldest = self.ledger(turn.conversation).next().map(|turn| turn.key);
        if oldest != Some(turn) {
            return Err((Invariant::I6, "it is not the oldest live turn of its conversation"));
        }
        let is_due = self.conversation(turn.conversation).is_some_and(|it| self.must_shrink(it));
        let is_first = self.turns.first().is_some_and(|first| first.key == turn);
        let is_over_job = is_first && self.is_job_over();
        if !is_due && !is_over_job {
            return Err((Invariant::I6, "no bound asks for it"));
        }
        self.expire(turn);
        Ok(())
    }

    fn purged(&mut self, id: ConversationId, turns: u32) -> Result<(), Refused> {
        let is_forgotten = self.conversation(id).is_some_and(|there| there.due && there.forgotten);
        if !is_forgotten {
            return Err((Invariant::I7, "the conversation is not one to forget"));
        }
        let expired = &mut self.conversation_mut(id).expired;
        if turns == 0 || turns as usize > expired.len() {
            return Err((Invariant::I7, "it has not so many expired turns"));
        }
        for _ in 0..turns {
            // Which ones go shows nowhere: the conversation stands for all of them.
            expired.pop_first();
        }
        Ok(())
    }

    fn conversation_settled(&mut self, id: ConversationId) -> Result<(), Refused> {
        let there = self.conversation(id).filter(|there| there.due);
        let there = there.ok_or((Invariant::I11, "nothing was due for it"))?;
        if self.must_shrink(there) || there.forgotten && !there.expired.is_empty() {
            return Err((Invariant::I6, "something still is due for it"));
        }
        self.conversation_mut(id).due = false;
        Ok(())
    }

    /// A lowered bound was carried on, past no conversation that it has work in.
    fn trimmed(&mut self, next: Option<u32>) -> Result<(), Refused> {
        let from = self.trim.ok_or((Invariant::I11, "no bound was lowered"))? as usize;
        let end = self.conversations.len();
        let until = next.map_or(end, |next| next as usize);
        if next.is_some() && !(from < until && until < end) {
            return Err((Invariant::I11, "it does not go on"));
        }
        let waits = |there: &Conversation| !there.due && self.is_over(there.id);
        if self.conversations[from.min(until)..until].iter().any(waits) {
            return Err((Invariant::I6, "it passes a conversation that is over its bound"));
        }
        self.trim = next;
        Ok(())
    }
}

/// Which promise a follow-up breaks, and why.
type Refused = (Invariant, &'static str);
