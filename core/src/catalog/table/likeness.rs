//! A state as those hash it who rename what only grows: rows in logical order, and each owner with
//! its pins apart.
//!
//! A model checker takes two situations for one when they differ in names alone. The rows here
//! hold whatever can make a difference, and nothing that only counts up: which numbers were minted
//! last, and receipts. A receipt makes a difference to those alone who can still ask for it, so it
//! is asked for by its operation. Every row is taken apart by all of its fields, so that a new one
//! has to be thought of here; counts, links and indexes follow from the others, which `check`
//! recounts.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use super::{
    Assembly, Checkpoint, Claim, Claimant, Conversation, Disposal, Expired, Life, Owner, Pin,
    Reference, Table,
};
use crate::catalog::receipt::Known;
use crate::catalog::slab::{NONE, Slot};
use crate::catalog::{Catalog, Command, fingerprint};
use crate::id::{Incarnation, Minted, OpId, OwnerId};
use crate::outcome::{Outcome, Rejection};

impl Catalog {
    /// Hashes everything but the owners with their pins and receipts.
    pub fn hash_rows<H: Hasher>(&self, state: &mut H) {
        let table = &self.table;
        (table.job.policy, table.job.limits).hash(state);
        hash_checkpoints(table, state);
        hash_conversations(table, state);
        hash_waiting(table, state);
    }

    /// Hashes an owner with its pins and without its receipts; of its earlier incarnations only
    /// those that `matters` names.
    pub fn hash_owner<H: Hasher>(
        &self,
        owner: OwnerId,
        matters: impl Fn(Incarnation) -> bool,
        state: &mut H,
    ) {
        let Some(slot) = self.table.owner(owner) else { return };
        let Owner { id, role, current: _, start, incarnations, pins: _, receipts } =
            &self.table.owners[slot];
        let current = self.table.current(slot);
        (id, role, start).hash(state);
        for it in incarnations.iter().filter(|it| it.0 == current || matters(it.0)) {
            it.hash(state);
        }
        hash_lives(&self.table, slot, state);
        // The word of a sequence follows the word of its incarnation.
        current.hash(state);
        state.write_u128(Minted::Sequence.word(receipts.highest()));
    }

    /// Whether an incarnation is current, or has pins.
    #[must_use]
    pub fn has_life(&self, incarnation: Incarnation) -> bool {
        let table = &self.table;
        table.lives.slots().any(|slot| table.lives[slot].number == incarnation)
    }

    /// What an operation with this content would be answered without being decided; none when it
    /// would be decided.
    #[must_use]
    pub fn receipt(&self, op: OpId, command: &Command) -> Option<Result<Outcome, Rejection>> {
        let slot = self.table.owner(op.owner)?;
        if op.incarnation != self.table.current(slot) {
            return None;
        }
        let window = self.table.job.limits.unanswered;
        let receipts = &self.table.owners[slot].receipts;
        match receipts.look_up(op.sequence, fingerprint(command), window) {
            Ok(Known::New) => None,
            Ok(Known::Answered(answer)) => Some(answer),
            Err(rejection) => Some(Err(rejection)),
        }
    }
}

fn hash_checkpoints<H: Hasher>(table: &Table, state: &mut H) {
    let mut slots: Vec<Slot> = table.checkpoints.slots().collect();
    slots.sort_unstable_by_key(|slot| table.checkpoints[*slot].generation);
    slots.len().hash(state);
    for slot in slots {
        let row = &table.checkpoints[slot];
        let Checkpoint {
            endpoint: _,
            generation: _,
            attempt,
            digest,
            shape,
            link: _,
            pins: _,
            stage,
            lost,
            unscoped,
            idle: _,
        } = *row;
        (row.id(), attempt, digest).hash(state);
        table.shapes.shape(shape).hash(state);
        (stage, lost, unscoped).hash(state);
    }
}

/// An owner's incarnations that are current or have pins, the oldest first, each with its pins.
fn hash_lives<H: Hasher>(table: &Table, owner: Slot, state: &mut H) {
    let of_it = |slot: &Slot| table.lives[*slot].owner == owner;
    let mut slots: Vec<Slot> = table.lives.slots().filter(of_it).collect();
    slots.sort_unstable_by_key(|slot| table.lives[*slot].number);
    slots.len().hash(state);
    for slot in slots {
        let Life {
            owner: _,
            number,
            current: _,
            fenced,
            pins,
            pin_count,
            bytes_unsettled: _,
            bytes_doubted: _,
            fencing: _,
        } = table.lives[slot];
        (number, fenced, pin_count).hash(state);
        let mut pin = pins;
        while pin != NONE {
            hash_pin(table, pin, state);
            pin = table.pins[pin].of_life.next;
        }
    }
}

fn hash_pin<H: Hasher>(table: &Table, slot: Slot, state: &mut H) {
    let pin = &table.pins[slot];
    let Pin {
        sequence: _,
        place: _,
        doubted,
        load_in_doubt,
        life: _,
        checkpoint,
        assembly,
        claims: _,
        open: _,
        in_doubt: _,
        bytes: _,
        of_checkpoint: _,
        of_life: _,
    } = *pin;
    (table.pin_id(slot), table.checkpoints[checkpoint].id()).hash(state);
    (pin.is_save(), doubted, load_in_doubt).hash(state);
    if pin.is_save() {
        let Assembly { savers: _, missing: _, shards } = &table.assemblies[assembly];
        for Claim { by, evidence, next: _ } in shards {
            match by {
                Claimant::Nobody => 0_u8.hash(state),
                Claimant::Ended => 1_u8.hash(state),
                Claimant::Pin(pin) => table.pin_id(*pin).hash(state),
            }
            evidence.hash(state);
        }
    }
}

/// Conversations in first-seen order, each with its ledger and with its expired turns.
fn hash_conversations<H: Hasher>(table: &Table, state: &mut H) {
    table.conversations.end().hash(state);
    for slot in table.conversations.slots() {
        let Conversation {
            id,
            bytes: _,
            head: _,
            tail: _,
            turns,
            expired,
            expired_count,
            forgotten,
            is_due: _,
            due: _,
        } = table.conversations[slot];
        (id, forgotten, turns, expired_count).hash(state);
        for reference in table.ledger(slot) {
            let Reference {
                turn,
                conversation: _,
                checkpoint,
                next_in_ledger: _,
                of_checkpoint: _,
                in_job: _,
            } = table.references[reference];
            (turn, table.checkpoints[checkpoint].id()).hash(state);
        }
        let mut slot = expired;
        while slot != NONE {
            let Expired { turn, conversation: _, next } = table.expired[slot];
            turn.hash(state);
            slot = next;
        }
    }
}

/// What waits, each in its order: turns by publication, follow-ups, and deletion.
fn hash_waiting<H: Hasher>(table: &Table, state: &mut H) {
    // Where one list ends and the next one begins.
    let end = u64::MAX;
    let mut slot = table.turns.head;
    while slot != NONE {
        table.references[slot].conversation.hash(state);
        slot = table.references[slot].in_job.next;
    }
    (end, table.trim).hash(state);
    let mut slot = table.due.head;
    while slot != NONE {
        slot.hash(state);
        slot = table.conversations[slot].due.next;
    }
    end.hash(state);
    let mut slot = table.fencing.head;
    while slot != NONE {
        table.lives[slot].number.hash(state);
        slot = table.lives[slot].fencing.next;
    }
    end.hash(state);
    let mut slot = table.queue.head;
    while slot != NONE {
        let Disposal { checkpoint, queue, cursor, left: _, unknown: _, outcomes } =
            &table.disposals[slot];
        table.checkpoints[*checkpoint].id().hash(state);
        (cursor, outcomes).hash(state);
        slot = queue.next;
    }
}
