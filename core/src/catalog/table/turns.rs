//! Steps on conversations, their ledgers, and the identities of expired turns.

use super::{Checkpoint, Conversation, EXPIRED, Expired, Reference, Table, TurnState, turn_hash};
use crate::catalog::index::{Index, hash_id};
use crate::catalog::list::{self, Links};
use crate::catalog::slab::{NONE, Slot};
use crate::id::{ConversationId, TurnId};
use crate::outcome::TurnKey;

impl Table {
    pub(crate) fn conversation(&self, id: ConversationId) -> Option<Slot> {
        let hash = hash_id(id.as_bytes());
        self.conversation_index.find(hash, |slot| self.conversations[slot].id == id)
    }

    pub(crate) fn add_conversation(&mut self, id: ConversationId) -> Slot {
        let slot = self.conversations.push(Conversation {
            id,
            bytes: 0,
            head: NONE,
            tail: NONE,
            turns: 0,
            expired: NONE,
            expired_count: 0,
            forgotten: false,
            is_due: false,
            due: Links::UNLINKED,
        });
        let rows = &self.conversations;
        let hash_of = |slot| hash_id(rows[slot].id.as_bytes());
        self.conversation_index.insert(hash_id(id.as_bytes()), slot, hash_of);
        slot
    }

    pub(crate) fn turn(&self, conversation: Slot, turn: TurnId) -> TurnState {
        let hash = turn_hash(conversation, turn);
        let found = self.turn_index.find(hash, |slot| self.turn_at(slot) == (conversation, turn));
        match found {
            None => TurnState::Unknown,
            Some(slot) if slot & EXPIRED != 0 => TurnState::Expired,
            Some(slot) => TurnState::Live(slot),
        }
    }

    fn turn_at(&self, entry: Slot) -> (Slot, TurnId) {
        if entry & EXPIRED == 0 {
            let row = &self.references[entry];
            (row.conversation, row.turn)
        } else {
            let row = &self.expired[entry & !EXPIRED];
            (row.conversation, row.turn)
        }
    }

    pub(crate) fn turn_key(&self, first: Slot) -> TurnKey {
        let row = &self.references[first];
        TurnKey { conversation: self.conversations[row.conversation].id, turn: row.turn }
    }

    /// A turn's references, from its first.
    pub(crate) fn turn_references(&self, first: Slot) -> impl Iterator<Item = Slot> + use<'_> {
        let turn = self.references[first].turn;
        let mut next = first;
        core::iter::from_fn(move || {
            let slot = next;
            if slot == NONE || self.references[slot].turn != turn {
                return None;
            }
            next = self.references[slot].next_in_ledger;
            Some(slot)
        })
    }

    /// All references of a conversation's live turns, oldest turn first.
    pub(crate) fn ledger(&self, conversation: Slot) -> impl Iterator<Item = Slot> + use<'_> {
        let mut next = self.conversations[conversation].head;
        core::iter::from_fn(move || {
            let slot = next;
            if slot == NONE {
                return None;
            }
            next = self.references[slot].next_in_ledger;
            Some(slot)
        })
    }

    /// Publishes a turn for the first time: at the end of its ledger and of the job's order.
    pub(crate) fn add_turn(&mut self, conversation: Slot, turn: TurnId, checkpoint: Slot) {
        let tail = self.conversations[conversation].tail;
        let slot = self.add_reference(conversation, turn, checkpoint, tail);
        self.turns.push(&mut self.references, slot, |row| &mut row.in_job);
        self.index_turn(slot);
        self.conversations[conversation].turns += 1;
        self.counters.turns += 1;
    }

    fn index_turn(&mut self, entry: Slot) {
        let (conversation, turn) = self.turn_at(entry);
        let mut index = core::mem::replace(&mut self.turn_index, Index::new());
        index.insert(turn_hash(conversation, turn), entry, |entry| {
            let (conversation, turn) = self.turn_at(entry);
            turn_hash(conversation, turn)
        });
        self.turn_index = index;
    }

    /// One more reference of a live turn, behind its first.
    pub(crate) fn add_turn_reference(&mut self, first: Slot, checkpoint: Slot) {
        let Reference { turn, conversation, .. } = self.references[first];
        self.add_reference(conversation, turn, checkpoint, first);
    }

    fn add_reference(
        &mut self,
        conversation: Slot,
        turn: TurnId,
        checkpoint: Slot,
        behind: Slot,
    ) -> Slot {
        let is_last = self.conversations[conversation].tail == behind;
        let next_in_ledger = if is_last { NONE } else { self.references[behind].next_in_ledger };
        let slot = self.references.insert(Reference {
            turn,
            conversation,
            checkpoint: NONE,
            next_in_ledger,
            of_checkpoint: Links::UNLINKED,
            in_job: Links::UNLINKED,
        });
        let row = &mut self.conversations[conversation];
        match behind {
            NONE => row.head = slot,
            behind => self.references[behind].next_in_ledger = slot,
        }
        if is_last {
            row.tail = slot;
        }
        self.refer(slot, checkpoint);
        slot
    }

    /// Points a reference that refers to nothing at a checkpoint.
    fn refer(&mut self, slot: Slot, checkpoint: Slot) {
        self.leave_queue(checkpoint);
        let conversation = self.references[slot].conversation;
        let bytes = self.shapes.bytes(self.checkpoints[checkpoint].shape);
        if self.checkpoints[checkpoint].link == NONE {
            self.counters.bytes_retained += u128::from(bytes);
        }
        if !self.conversation_refers(conversation, checkpoint) {
            self.conversations[conversation].bytes += bytes;
        }
        self.references[slot].checkpoint = checkpoint;
        let head = &mut self.checkpoints[checkpoint].link;
        list::push_front(&mut self.references, head, slot, |row| &mut row.of_checkpoint);
    }

    /// Takes a reference's checkpoint away from it.
    fn unrefer(&mut self, slot: Slot) {
        let Reference { checkpoint, conversation, .. } = self.references[slot];
        let head = &mut self.checkpoints[checkpoint].link;
        list::unlink(&mut self.references, head, slot, |row| &mut row.of_checkpoint);
        self.references[slot].checkpoint = NONE;
        let bytes = self.shapes.bytes(self.checkpoints[checkpoint].shape);
        if !self.conversation_refers(conversation, checkpoint) {
            self.conversations[conversation].bytes -= bytes;
        }
        if self.checkpoints[checkpoint].link == NONE {
            self.counters.bytes_retained -= u128::from(bytes);
            self.join_queue_if_unheld(checkpoint);
        }
    }

    /// Whether a live turn of the conversation refers to a checkpoint that is not idle. The ledger
    /// is walked only when somebody refers to it at all.
    fn conversation_refers(&self, conversation: Slot, checkpoint: Slot) -> bool {
        self.checkpoints[checkpoint].link != NONE
            && self.ledger(conversation).any(|slot| self.references[slot].checkpoint == checkpoint)
    }

    /// Takes away those references of a live turn that `leaves`, and puts one to `checkpoint` in
    /// the place of the first of them.
    pub(crate) fn replace_references(
        &mut self,
        first: Slot,
        checkpoint: Slot,
        leaves: impl Fn(&Checkpoint) -> bool,
    ) {
        let leaving = |table: &Self, slot: Slot| {
            leaves(&table.checkpoints[table.references[slot].checkpoint])
        };
        let found = self.turn_references(first).find(|slot| leaving(self, *slot));
        let Some(place) = found else { return };
        self.unrefer(place);
        self.refer(place, checkpoint);
        let turn = self.references[place].turn;
        let mut before = place;
        loop {
            let slot = self.references[before].next_in_ledger;
            if slot == NONE || self.references[slot].turn != turn {
                return;
            }
            if leaving(self, slot) {
                self.unrefer(slot);
                self.remove_behind(before);
            } else {
                before = slot;
            }
        }
    }

    /// Frees the reference behind another one of the same turn; it refers to nothing.
    fn remove_behind(&mut self, before: Slot) {
        let slot = self.references[before].next_in_ledger;
        let Reference { next_in_ledger, conversation, .. } = self.references[slot];
        self.references[before].next_in_ledger = next_in_ledger;
        let row = &mut self.conversations[conversation];
        if row.tail == slot {
            row.tail = before;
        }
        self.references.remove(slot);
    }

    /// Expires a conversation's oldest live turn: its identity stays, its references go.
    pub(crate) fn expire_oldest(&mut self, conversation: Slot) {
        let first = self.conversations[conversation].head;
        if first == NONE {
            return;
        }
        let turn = self.references[first].turn;
        self.turns.unlink(&mut self.references, first, |row| &mut row.in_job);
        let mut slot = first;
        while slot != NONE && self.references[slot].turn == turn {
            self.unrefer(slot);
            let next = self.references[slot].next_in_ledger;
            let row = &mut self.conversations[conversation];
            row.head = next;
            if next == NONE {
                row.tail = NONE;
            }
            self.references.remove(slot);
            slot = next;
        }
        self.conversations[conversation].turns -= 1;
        self.counters.turns -= 1;
        let slot = self.add_expired(conversation, turn);
        self.turn_index.replace(turn_hash(conversation, turn), first, slot | EXPIRED);
    }

    pub(crate) fn remember_expired(&mut self, conversation: Slot, turn: TurnId) {
        let slot = self.add_expired(conversation, turn);
        self.index_turn(slot | EXPIRED);
    }

    fn add_expired(&mut self, conversation: Slot, turn: TurnId) -> Slot {
        let row = &mut self.conversations[conversation];
        let next = row.expired;
        let slot = self.expired.insert(Expired { turn, conversation, next });
        row.expired = slot;
        row.expired_count += 1;
        slot
    }

    /// Drops up to `most` identities of a forgotten conversation's expired turns: the conversation
    /// itself stands for them.
    pub(crate) fn purge_expired(&mut self, conversation: Slot, most: u32) {
        for _ in 0..most {
            let slot = self.conversations[conversation].expired;
            if slot == NONE {
                return;
            }
            let Expired { turn, next, .. } = self.expired[slot];
            let mut index = core::mem::replace(&mut self.turn_index, Index::new());
            index.remove(turn_hash(conversation, turn), slot | EXPIRED, |entry| {
                let (conversation, turn) = self.turn_at(entry);
                turn_hash(conversation, turn)
            });
            self.turn_index = index;
            self.expired.remove(slot);
            let row = &mut self.conversations[conversation];
            row.expired = next;
            row.expired_count -= 1;
        }
    }

    pub(crate) fn forget(&mut self, conversation: Slot) {
        self.conversations[conversation].forgotten = true;
        self.counters.forgotten += 1;
    }

    pub(crate) fn mark_due(&mut self, conversation: Slot) {
        let row = &mut self.conversations[conversation];
        if !core::mem::replace(&mut row.is_due, true) {
            self.due.push(&mut self.conversations, conversation, |row| &mut row.due);
        }
    }

    pub(crate) fn clear_due(&mut self, conversation: Slot) {
        let row = &mut self.conversations[conversation];
        if core::mem::replace(&mut row.is_due, false) {
            self.due.unlink(&mut self.conversations, conversation, |row| &mut row.due);
        }
    }
}
