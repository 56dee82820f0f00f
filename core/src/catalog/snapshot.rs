//! The canonical form of a catalog: equal situations are equal snapshots, byte for byte.
//!
//! It follows logical order (generation, first publication, position in a queue) and never slots.
//! Reading one back rebuilds every index and counter with the table's own steps.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::receipt::Receipt;
use super::slab::{NONE, Slot};
use super::table::{Claim, Claimant, Holds, NewCheckpoint, Stage, Table, Unscoped};
use super::{Catalog, Role, Shape};
use crate::bounds::MAX_GENERATIONS;
use crate::id::{
    AttemptId, CheckpointId, ConversationId, Generation, Incarnation, ManifestDigest, OwnerId,
    PinId, StartId, TurnId,
};
use crate::outcome::{DeleteOutcome, Evidence};
use crate::policy::Genesis;

/// Everything a catalog knows, in logical order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Snapshot {
    job: Genesis,
    generation: Generation,
    incarnation: Incarnation,
    /// By id.
    owners: Vec<OwnerRow>,
    /// By number.
    lives: Vec<LifeRow>,
    /// Fenced incarnations that still have pins, in order.
    fencing: Vec<Incarnation>,
    /// By generation.
    checkpoints: Vec<CheckpointRow>,
    /// By incarnation, and in it in the order in which they were taken.
    pins: Vec<PinRow>,
    /// In first-seen order.
    conversations: Vec<ConversationRow>,
    /// The conversation of each live turn, in the job's order of first publication.
    turns: Vec<u32>,
    due: Vec<u32>,
    trim: Option<u32>,
    queue: Vec<DisposalRow>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct OwnerRow {
    id: OwnerId,
    role: Role,
    start: StartId,
    current: Incarnation,
    incarnations: Vec<(Incarnation, bool)>,
    receipts: Vec<Receipt>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct LifeRow {
    owner: OwnerId,
    number: Incarnation,
    fenced: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct CheckpointRow {
    id: CheckpointId,
    attempt: AttemptId,
    digest: ManifestDigest,
    shape: Shape,
    stage: Stage,
    lost: bool,
    unscoped: Unscoped,
    /// While a save pin lives: who claimed each shard, and the evidence.
    claims: Option<Vec<(ClaimantRow, Option<Evidence>)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum ClaimantRow {
    Nobody,
    Pin(PinId),
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct PinRow {
    id: PinId,
    checkpoint: CheckpointId,
    save: bool,
    doubted: bool,
    load_in_doubt: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct ConversationRow {
    id: ConversationId,
    forgotten: bool,
    /// Oldest first; each with the checkpoints that it refers to.
    turns: Vec<(TurnId, Vec<CheckpointId>)>,
    expired: Vec<TurnId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct DisposalRow {
    checkpoint: CheckpointId,
    cursor: u32,
    outcomes: Vec<Option<DeleteOutcome>>,
}

/// A snapshot that no catalog could have given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the snapshot contradicts itself: {what}")]
pub struct Inconsistent {
    /// What does not fit.
    pub what: &'static str,
}

impl Catalog {
    /// The canonical form of the state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let table = &self.table;
        let list = |ends: super::list::Ends, next: fn(&Table, Slot) -> Slot| {
            let mut slots = Vec::new();
            let mut slot = ends.head;
            while slot != NONE {
                slots.push(slot);
                slot = next(table, slot);
            }
            slots
        };
        let fencing = list(table.fencing, |table, slot| table.lives[slot].fencing.next);
        let turns = list(table.turns, |table, slot| table.references[slot].in_job.next);
        let due = list(table.due, |table, slot| table.conversations[slot].due.next);
        let queue = list(table.queue, |table, slot| table.disposals[slot].queue.next);
        Snapshot {
            job: table.job.clone(),
            generation: table.generation,
            incarnation: table.incarnation,
            owners: owner_rows(table),
            lives: life_rows(table).into_iter().map(|(row, _)| row).collect(),
            fencing: fencing.into_iter().map(|slot| table.lives[slot].number).collect(),
            checkpoints: checkpoint_rows(table),
            pins: pin_rows(table),
            conversations: (0..table.conversations.end())
                .map(|slot| conversation_row(table, slot))
                .collect(),
            turns: turns.into_iter().map(|slot| table.references[slot].conversation).collect(),
            due,
            trim: table.trim,
            queue: queue.into_iter().map(|slot| disposal_row(table, slot)).collect(),
        }
    }

    /// The state that gave this snapshot.
    ///
    /// # Errors
    /// [`Inconsistent`] when no state can have given it.
    pub fn restore(snapshot: &Snapshot) -> Result<Self, Inconsistent> {
        if snapshot.job.form().is_err() {
            return Err(Inconsistent { what: "the job's genesis cannot be used" });
        }
        if snapshot.generation.0 == u64::MAX || snapshot.incarnation.0 == u64::MAX {
            return Err(Inconsistent { what: "more numbers minted than can be counted" });
        }
        let mut table = Table::new(snapshot.job.clone());
        table.generation = snapshot.generation;
        let lives = restore_owners(&mut table, snapshot)?;
        restore_checkpoints(&mut table, snapshot)?;
        restore_pins(&mut table, snapshot, &lives)?;
        restore_conversations(&mut table, snapshot)?;
        restore_queue(&mut table, snapshot)?;
        restore_follow_ups(&mut table, snapshot, &lives)?;
        let catalog = Self { table };
        catalog.check().map_err(|broken| Inconsistent { what: broken.what })?;
        // Rows in another order, twice or left out: what is accepted encodes as it was read.
        let same = catalog.snapshot() == *snapshot;
        #[cfg(pinfold_mutants)]
        let catalog = catalog.badly_read_back();
        if same { Ok(catalog) } else { Err(Inconsistent { what: "its rows are not canonical" }) }
    }
}

impl PartialEq for Catalog {
    fn eq(&self, other: &Self) -> bool {
        self.table.has_same_places(&other.table) || self.snapshot() == other.snapshot()
    }
}

impl Eq for Catalog {}

impl core::hash::Hash for Catalog {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.snapshot().hash(state);
    }
}

fn owner_rows(table: &Table) -> Vec<OwnerRow> {
    let row = |slot| {
        let owner = &table.owners[slot];
        let window = table.job.limits.unanswered;
        OwnerRow {
            id: owner.id,
            role: owner.role,
            start: owner.start,
            current: table.current(slot),
            incarnations: owner.incarnations.clone(),
            receipts: owner.receipts.kept(window).collect(),
        }
    };
    let mut rows: Vec<_> = table.owners.slots().map(row).collect();
    rows.sort_by_key(|row| row.id);
    rows
}

fn life_rows(table: &Table) -> Vec<(LifeRow, Slot)> {
    // A row is in use exactly when its owner points at it or it has pins.
    let row = |slot| {
        let life = &table.lives[slot];
        let owner = table.owners[life.owner].id;
        (LifeRow { owner, number: life.number, fenced: life.fenced }, slot)
    };
    let mut rows: Vec<_> = table.lives.slots().map(row).collect();
    rows.sort_by_key(|(row, _)| row.number);
    rows
}

fn checkpoint_rows(table: &Table) -> Vec<CheckpointRow> {
    let mut claims = BTreeMap::new();
    for slot in table.pins.slots() {
        let pin = &table.pins[slot];
        if pin.is_save() {
            claims.entry(pin.checkpoint).or_insert_with(|| claim_rows(table, pin.assembly));
        }
    }
    let row = |slot| {
        let checkpoint = &table.checkpoints[slot];
        CheckpointRow {
            id: checkpoint.id(),
            attempt: checkpoint.attempt,
            digest: checkpoint.digest,
            shape: table.shapes.shape(checkpoint.shape).clone(),
            stage: checkpoint.stage,
            lost: checkpoint.lost,
            unscoped: checkpoint.unscoped,
            claims: claims.get(&slot).cloned(),
        }
    };
    let mut rows: Vec<_> = table.checkpoints.slots().map(row).collect();
    rows.sort_by_key(|row| row.id.generation);
    rows
}

fn claim_rows(table: &Table, assembly: Slot) -> Vec<(ClaimantRow, Option<Evidence>)> {
    let row = |claim: &Claim| {
        let by = match claim.by {
            Claimant::Nobody => ClaimantRow::Nobody,
            Claimant::Pin(pin) => ClaimantRow::Pin(table.pin_id(pin)),
            Claimant::Ended => ClaimantRow::Ended,
        };
        (by, claim.evidence)
    };
    table.assemblies[assembly].shards.iter().map(row).collect()
}

fn pin_rows(table: &Table) -> Vec<PinRow> {
    let mut rows = Vec::new();
    for (_, life) in life_rows(table) {
        let first = rows.len();
        let mut slot = table.lives[life].pins;
        while slot != NONE {
            let pin = &table.pins[slot];
            rows.push(PinRow {
                id: table.pin_id(slot),
                checkpoint: table.checkpoints[pin.checkpoint].id(),
                save: pin.is_save(),
                doubted: pin.doubted,
                load_in_doubt: pin.load_in_doubt,
            });
            slot = pin.of_life.next;
        }
        // The list has the newest first.
        rows[first..].reverse();
    }
    rows
}

fn conversation_row(table: &Table, slot: Slot) -> ConversationRow {
    let row = &table.conversations[slot];
    let mut turns: Vec<(TurnId, Vec<CheckpointId>)> = Vec::new();
    for reference in table.ledger(slot) {
        let reference = &table.references[reference];
        let checkpoint = table.checkpoints[reference.checkpoint].id();
        match turns.last_mut() {
            Some((turn, checkpoints)) if *turn == reference.turn => checkpoints.push(checkpoint),
            _ => turns.push((reference.turn, alloc::vec![checkpoint])),
        }
    }
    let mut expired = Vec::new();
    let mut next = row.expired;
    while next != NONE {
        expired.push(table.expired[next].turn);
        next = table.expired[next].next;
    }
    ConversationRow { id: row.id, forgotten: row.forgotten, turns, expired }
}

fn disposal_row(table: &Table, slot: Slot) -> DisposalRow {
    let row = &table.disposals[slot];
    DisposalRow {
        checkpoint: table.checkpoints[row.checkpoint].id(),
        cursor: row.cursor,
        outcomes: row.outcomes.clone(),
    }
}

fn restore_owners(
    table: &mut Table,
    snapshot: &Snapshot,
) -> Result<BTreeMap<Incarnation, Slot>, Inconsistent> {
    let window = snapshot.job.limits.unanswered;
    for row in &snapshot.owners {
        let slot = match table.owner(row.id) {
            Some(_) if row.id == snapshot.job.operator && row.role != Role::Operator => {
                return Err(Inconsistent { what: "the job's operator has another role" });
            }
            Some(slot) if row.id == snapshot.job.operator => slot,
            Some(_) => return Err(Inconsistent { what: "an owner stands twice" }),
            None => table.add_owner(row.id, row.role),
        };
        let owner = &mut table.owners[slot];
        owner.start = row.start;
        owner.incarnations.clone_from(&row.incarnations);
        for receipt in &row.receipts {
            owner.receipts.keep(receipt.sequence, receipt.fingerprint, &receipt.answer, window);
        }
    }
    let mut lives = BTreeMap::new();
    for row in &snapshot.lives {
        let owner = table.owner(row.owner);
        let owner = owner.ok_or(Inconsistent { what: "an incarnation without an owner" })?;
        let current = snapshot.owners.binary_search_by_key(&row.owner, |row| row.id);
        let current = current.is_ok_and(|place| snapshot.owners[place].current == row.number);
        let life = table.add_life(owner, row.number, current);
        table.lives[life].fenced = row.fenced;
        if current {
            table.owners[owner].current = life;
        }
        if lives.insert(row.number, life).is_some() {
            return Err(Inconsistent { what: "an incarnation stands twice" });
        }
    }
    table.incarnation = snapshot.incarnation;
    Ok(lives)
}

fn restore_checkpoints(table: &mut Table, snapshot: &Snapshot) -> Result<(), Inconsistent> {
    for row in &snapshot.checkpoints {
        if table.checkpoint(row.id).is_some() || table.attempt(row.attempt).is_some() {
            return Err(Inconsistent { what: "a checkpoint stands twice" });
        }
        if table.generations(row.id.endpoint).count() >= MAX_GENERATIONS as usize {
            return Err(Inconsistent { what: "an endpoint with too many checkpoints" });
        }
        let new = NewCheckpoint { id: row.id, attempt: row.attempt, digest: row.digest };
        match row.claims {
            Some(_) => table.add_checkpoint(new, &row.shape),
            None => table.restore_checkpoint(new, &row.shape),
        };
    }
    Ok(())
}

fn restore_pins(
    table: &mut Table,
    snapshot: &Snapshot,
    lives: &BTreeMap<Incarnation, Slot>,
) -> Result<(), Inconsistent> {
    for row in &snapshot.pins {
        let checkpoint = find(table, row.checkpoint)?;
        let life = lives.get(&row.id.op.incarnation);
        let life = *life.ok_or(Inconsistent { what: "a pin without an incarnation" })?;
        let owner = table.lives[life].owner;
        if table.owners[owner].id != row.id.op.owner || table.pin(row.id).is_some() {
            return Err(Inconsistent { what: "a pin of another owner, or twice" });
        }
        let assembly = matches!(table.checkpoints[checkpoint].holds(), Holds::Assembly(_));
        if row.save && !assembly {
            return Err(Inconsistent { what: "a save pin without claims" });
        }
        table.add_pin(life, row.id, checkpoint, row.save);
    }
    for row in &snapshot.checkpoints {
        let slot = find(table, row.id)?;
        if let Some(claims) = &row.claims {
            restore_claims(table, slot, claims)?;
        }
        // The claims say how far it has come, and no other stage fits them.
        let begun = table.checkpoints[slot].stage;
        let shards_ended = row.claims.is_some() && begun == Stage::Whole;
        if shards_ended && row.stage != Stage::Whole {
            return Err(Inconsistent { what: "every shard arrived, and it is not whole" });
        }
        table.set_stage(slot, row.stage);
        table.checkpoints[slot].lost = row.lost;
        match row.unscoped {
            Unscoped::Marked => table.set_unscoped(slot, Unscoped::Marked),
            Unscoped::Never | Unscoped::Dropped => table.checkpoints[slot].unscoped = row.unscoped,
        }
    }
    for row in &snapshot.pins {
        if let Some(pin) = table.pin(row.id) {
            table.change_pin(pin, |pin| {
                pin.doubted = row.doubted;
                pin.load_in_doubt = row.load_in_doubt;
            });
        }
    }
    Ok(())
}

fn restore_claims(
    table: &mut Table,
    checkpoint: Slot,
    claims: &[(ClaimantRow, Option<Evidence>)],
) -> Result<(), Inconsistent> {
    let wrong = Inconsistent { what: "claims that do not fit the shape or the pins" };
    let shape = table.checkpoints[checkpoint].shape;
    if table.shapes.shape(shape).shards().len() != claims.len() {
        return Err(wrong);
    }
    for (place, (by, evidence)) in claims.iter().enumerate().rev() {
        let shard = u16::try_from(place).map_err(|_| wrong)?;
        match by {
            ClaimantRow::Nobody => {}
            ClaimantRow::Ended => {
                table.restore_ended_claim(checkpoint, shard, *evidence).ok_or(wrong)?;
            }
            ClaimantRow::Pin(id) => {
                let pin = table.pin(*id).ok_or(wrong)?;
                let row = &table.pins[pin];
                if row.checkpoint != checkpoint || !row.is_save() {
                    return Err(wrong);
                }
                table.claim(pin, shard);
                if let Some(evidence) = evidence {
                    table.settle_shard(pin, u32::from(shard), *evidence);
                }
            }
        }
    }
    Ok(())
}

fn restore_conversations(table: &mut Table, snapshot: &Snapshot) -> Result<(), Inconsistent> {
    for row in &snapshot.conversations {
        if table.conversation(row.id).is_some() {
            return Err(Inconsistent { what: "a conversation stands twice" });
        }
        let slot = table.add_conversation(row.id);
        if row.forgotten {
            table.forget(slot);
        }
        for turn in row.expired.iter().rev() {
            table.remember_expired(slot, *turn);
        }
    }
    let mut ledgers: Vec<_> = snapshot.conversations.iter().map(|row| row.turns.iter()).collect();
    for slot in &snapshot.turns {
        let ledger = ledgers.get_mut(*slot as usize);
        let turn = ledger.and_then(Iterator::next);
        let (turn, checkpoints) =
            turn.ok_or(Inconsistent { what: "the job's order names an unknown turn" })?;
        let (first, more) = checkpoints
            .split_first()
            .ok_or(Inconsistent { what: "a live turn without a checkpoint" })?;
        let checkpoint = find_whole(table, *first)?;
        table.add_turn(*slot, *turn, checkpoint);
        let head = table.turns.tail;
        for checkpoint in more.iter().rev() {
            let checkpoint = find_whole(table, *checkpoint)?;
            table.add_turn_reference(head, checkpoint);
        }
    }
    if ledgers.iter_mut().any(|ledger| ledger.next().is_some()) {
        return Err(Inconsistent { what: "a live turn is missing in the job's order" });
    }
    Ok(())
}

fn restore_queue(table: &mut Table, snapshot: &Snapshot) -> Result<(), Inconsistent> {
    let wrong = Inconsistent { what: "the queue does not fit its checkpoints" };
    for row in &snapshot.queue {
        let slot = find(table, row.checkpoint)?;
        let objects = table.shapes.shape(table.checkpoints[slot].shape).objects();
        let fits = row.outcomes.is_empty() || row.outcomes.len() == objects as usize;
        if !table.is_unheld(slot) || !fits || row.cursor > objects {
            return Err(wrong);
        }
        let disposal = table.join_queue(slot);
        table.disposals[disposal].cursor = row.cursor;
        table.disposals[disposal].outcomes.resize(row.outcomes.len(), None);
        for (outcome, place) in row.outcomes.iter().zip(0..) {
            if let Some(outcome) = outcome {
                table.take_outcome(disposal, place, *outcome);
            }
        }
    }
    Ok(())
}

fn restore_follow_ups(
    table: &mut Table,
    snapshot: &Snapshot,
    lives: &BTreeMap<Incarnation, Slot>,
) -> Result<(), Inconsistent> {
    for slot in &snapshot.due {
        if *slot >= table.conversations.end() {
            return Err(Inconsistent { what: "an unknown conversation is due" });
        }
        table.mark_due(*slot);
    }
    let mut fencing = BTreeSet::new();
    for number in &snapshot.fencing {
        if !fencing.insert(*number) {
            return Err(Inconsistent { what: "a fence stands twice" });
        }
        let life = lives.get(number).ok_or(Inconsistent { what: "an unknown fence" })?;
        table.restore_fencing(*life);
    }
    table.trim = snapshot.trim;
    Ok(())
}

fn find(table: &Table, id: CheckpointId) -> Result<Slot, Inconsistent> {
    table.checkpoint(id).ok_or(Inconsistent { what: "an unknown checkpoint is named" })
}

fn find_whole(table: &Table, id: CheckpointId) -> Result<Slot, Inconsistent> {
    let slot = find(table, id)?;
    match table.checkpoints[slot].stage {
        Stage::Whole => Ok(slot),
        Stage::Prepared | Stage::Failed | Stage::Collecting => {
            Err(Inconsistent { what: "a live turn refers to what is not whole" })
        }
    }
}
