//! The full recount: every counter, list and index against the rows themselves.
//!
//! It is for tests, simulators and doubts, never for deciding: its cost is the whole state. It
//! names the invariant that is broken and what it saw.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Catalog;
use super::list::Ends;
use super::slab::{NONE, Slot};
use super::table::{Claimant, Counters, Holds, Stage, Table, TurnState, Unscoped};
use crate::id::Incarnation;
use crate::invariant::Invariant;
use crate::outcome::{DeleteOutcome, Evidence};

/// A broken invariant: a fault in this machine, never in its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} ({}) is broken: {what}", .invariant.promise())]
pub struct Broken {
    /// Which promise.
    pub invariant: Invariant,
    /// What was seen.
    pub what: &'static str,
}

fn require(holds: bool, invariant: Invariant, what: &'static str) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { invariant, what }) }
}

impl Catalog {
    /// Recounts everything.
    ///
    /// # Errors
    /// [`Broken`] names the first promise that does not hold.
    pub fn check(&self) -> Result<(), Broken> {
        let table = &self.table;
        check_lives(table)?;
        check_pins(table)?;
        check_checkpoints(table)?;
        check_assemblies(table)?;
        check_queue(table)?;
        check_turns(table)?;
        check_ledgers(self)?;
        check_indexes(table)?;
        let counters = recount(table);
        require(counters == table.counters, Invariant::I13, "a running sum is off")
    }
}

fn walk(ends: Ends, next: impl Fn(Slot) -> Slot) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut slot = ends.head;
    while slot != NONE {
        slots.push(slot);
        slot = next(slot);
    }
    slots
}

fn recount(table: &Table) -> Counters {
    let mut sums = Counters::default();
    for slot in table.checkpoints.slots() {
        let row = &table.checkpoints[slot];
        let bytes = table.shapes.bytes(row.shape);
        let count = |holds: bool| if holds { u128::from(bytes) } else { 0 };
        sums.bytes += u128::from(bytes);
        sums.bytes_pinned += count(row.pins != NONE);
        sums.bytes_unscoped += count(row.unscoped == Unscoped::Marked);
        sums.bytes_retained += count(row.references() != NONE);
        if let Holds::Disposal(disposal) = row.holds() {
            let outcomes = &table.disposals[disposal].outcomes;
            sums.bytes_quarantined += count(outcomes.contains(&Some(DeleteOutcome::Unknown)));
        }
    }
    for slot in table.pins.slots() {
        let pin = &table.pins[slot];
        let stale = pin.is_unsettled() && !table.lives[pin.life].is_live();
        if pin.is_doubted() || stale {
            sums.bytes_in_doubt += u128::from(pin.bytes);
        }
    }
    for slot in 0..table.conversations.end() {
        sums.turns += table.conversations[slot].turns;
        sums.forgotten += u32::from(table.conversations[slot].forgotten);
    }
    sums
}

fn check_lives(table: &Table) -> Result<(), Broken> {
    let mut minted = Vec::new();
    for slot in table.owners.slots() {
        let owner = &table.owners[slot];
        if owner.current != NONE {
            let life = &table.lives[owner.current];
            require(life.current && life.owner == slot, Invariant::I13, "a current incarnation")?;
        }
        let last = owner.incarnations.last().map_or(Incarnation(0), |(number, _)| *number);
        require(
            last == table.current(slot),
            Invariant::I12,
            "the last incarnation is not current",
        )?;
        let ascend = owner.incarnations.windows(2).all(|pair| pair[0].0 < pair[1].0);
        require(ascend, Invariant::I12, "incarnations out of order")?;
        minted.extend(owner.incarnations.iter().map(|(number, _)| *number));
    }
    minted.sort_unstable();
    let first = minted.first().is_none_or(|first| *first > Incarnation(0));
    let last = minted.last().is_none_or(|last| *last <= table.incarnation);
    require(first && last, Invariant::I12, "an unminted incarnation")?;
    let once = minted.windows(2).all(|pair| pair[0] < pair[1]);
    require(once, Invariant::I12, "an incarnation of two owners")?;
    for slot in table.lives.slots() {
        let life = &table.lives[slot];
        let is_current = table.owners[life.owner].current == slot;
        require(life.current == is_current, Invariant::I13, "two current incarnations")?;
        let used = life.current || life.pins != NONE;
        require(used, Invariant::I13, "an incarnation that nobody needs")?;
        require(life.number <= table.incarnation, Invariant::I12, "an unminted incarnation")?;
        let listed = table.is_fenced(life.owner, life.number);
        require(listed == Some(life.fenced), Invariant::I12, "a fence that is not remembered")?;
    }
    let fencing = walk(table.fencing, |slot| table.lives[slot].fencing.next);
    let due = |slot: &Slot| table.lives[*slot].fenced && table.lives[*slot].pins != NONE;
    require(fencing.iter().all(due), Invariant::I11, "a fence waits without pins")?;
    let waiting = table.lives.slots().filter(due).count();
    require(waiting == fencing.len(), Invariant::I11, "a fence is not carried out")
}

fn check_pins(table: &Table) -> Result<(), Broken> {
    let (mut of_life, mut of_checkpoint) = (0, 0);
    for slot in table.lives.slots() {
        let mut count = 0;
        let mut pin = table.lives[slot].pins;
        let (mut unsettled, mut doubted) = (0_u128, 0_u128);
        while pin != NONE {
            let row = &table.pins[pin];
            require(row.life == slot, Invariant::I13, "a pin in another's list")?;
            let bytes = u128::from(row.bytes);
            unsettled += if row.is_unsettled() { bytes } else { 0 };
            doubted += if row.is_doubted() { bytes } else { 0 };
            count += 1;
            pin = row.of_life.next;
        }
        let life = &table.lives[slot];
        let same = (life.pin_count, life.bytes_unsettled, life.bytes_doubted)
            == (count, unsettled, doubted);
        require(same, Invariant::I13, "an incarnation's sums are off")?;
        of_life += count;
    }
    for slot in table.checkpoints.slots() {
        let mut pin = table.checkpoints[slot].pins;
        while pin != NONE {
            require(table.pins[pin].checkpoint == slot, Invariant::I13, "a pin elsewhere")?;
            of_checkpoint += 1;
            pin = table.pins[pin].of_checkpoint.next;
        }
    }
    let pins = table.pins.len();
    require(of_life == pins && of_checkpoint == pins, Invariant::I8, "a pin is in no list")?;
    let of_owners: u32 = table.owners.slots().map(|slot| table.owners[slot].pins).sum();
    require(of_owners == pins, Invariant::I13, "an owner's pins are off")
}

fn check_checkpoints(table: &Table) -> Result<(), Broken> {
    let mut users = BTreeMap::new();
    let mut last = Vec::new();
    for slot in table.checkpoints.slots() {
        let row = &table.checkpoints[slot];
        *users.entry(row.shape).or_insert(0) += 1;
        last.push(row.generation);
        let held = row.pins != NONE || row.references() != NONE || row.unscoped == Unscoped::Marked;
        let queued = matches!(row.holds(), Holds::Disposal(_));
        require(held != queued, Invariant::I2, "held and collectable, or neither")?;
        let collecting = row.stage == Stage::Collecting;
        require(!collecting || queued, Invariant::I2, "collecting while held")?;
        let referred = row.references() != NONE || row.unscoped == Unscoped::Marked;
        require(!referred || row.stage == Stage::Whole, Invariant::I4, "published, not whole")?;
        let prepared = row.stage == Stage::Prepared;
        require(!prepared || row.pins != NONE, Invariant::I8, "prepared without a pin")?;
    }
    last.sort_unstable();
    require(last.windows(2).all(|pair| pair[0] < pair[1]), Invariant::I17, "generation twice")?;
    let minted = last.last().is_none_or(|last| *last <= table.generation);
    require(minted, Invariant::I17, "an unminted generation")?;
    for slot in table.shapes.slots() {
        let same = users.get(&slot) == Some(&table.shapes.users(slot));
        require(same, Invariant::I13, "a shape's users are off")?;
    }
    Ok(())
}

fn check_assemblies(table: &Table) -> Result<(), Broken> {
    let mut savers = BTreeMap::new();
    for slot in table.pins.slots() {
        let pin = &table.pins[slot];
        let checkpoint = &table.checkpoints[pin.checkpoint];
        let fits = match checkpoint.stage {
            Stage::Prepared | Stage::Failed => {
                pin.is_save() && checkpoint.holds() == Holds::Assembly(pin.assembly)
            }
            Stage::Whole => true,
            Stage::Collecting => false,
        };
        require(fits, Invariant::I8, "a pin that does not fit its checkpoint's stage")?;
        if pin.is_save() {
            *savers.entry((pin.assembly, pin.checkpoint)).or_insert(0) += 1;
            let claims = &table.assemblies[pin.assembly].shards;
            let own = claims.iter().filter(|claim| claim.by == Claimant::Pin(slot));
            let (mut open, mut in_doubt) = (0, 0);
            for claim in own {
                open += u32::from(!claim.evidence.is_some_and(Evidence::is_final));
                in_doubt += u32::from(claim.evidence == Some(Evidence::InDoubt));
            }
            let same = (open, in_doubt) == (pin.open, pin.in_doubt);
            require(same, Invariant::I13, "a save pin's open shards are off")?;
        }
    }
    for ((assembly, checkpoint), count) in &savers {
        let row = &table.assemblies[*assembly];
        require(row.savers == *count, Invariant::I13, "an assembly's savers are off")?;
        let success =
            |claim: &&super::table::Claim| claim.evidence == Some(Evidence::QuiescedSuccess);
        let done = row.shards.iter().filter(success).count();
        let missing = row.shards.len() - done;
        require(row.missing as usize == missing, Invariant::I13, "missing shards are off")?;
        let stage = table.checkpoints[*checkpoint].stage;
        let whole = stage == Stage::Whole;
        require(!whole || missing == 0, Invariant::I4, "whole without every shard")?;
        let complete = missing == 0;
        require(!complete || whole, Invariant::I4, "every shard arrived, and it is not whole")?;
        let failed = row.shards.iter().filter_map(|claim| claim.evidence).any(is_failure);
        let same = failed == (stage == Stage::Failed);
        require(same, Invariant::I4, "failed without a failed shard, or not failed with one")?;
    }
    let assemblies = table.assemblies.len() as usize;
    require(assemblies == savers.len(), Invariant::I13, "an assembly without a saver")
}

fn is_failure(evidence: Evidence) -> bool {
    evidence.is_final() && evidence != Evidence::QuiescedSuccess
}

fn check_queue(table: &Table) -> Result<(), Broken> {
    let queue = walk(table.queue, |slot| table.disposals[slot].queue.next);
    for slot in &queue {
        let row = &table.disposals[*slot];
        let checkpoint = &table.checkpoints[row.checkpoint];
        let home = checkpoint.holds() == Holds::Disposal(*slot);
        require(home, Invariant::I13, "a queue entry of something held")?;
        let objects = table.shapes.shape(checkpoint.shape).objects();
        let gone = row.outcomes.iter().filter(|there| **there == Some(DeleteOutcome::Gone));
        let left = objects - u32::try_from(gone.count()).unwrap_or(u32::MAX);
        let unknown =
            row.outcomes.iter().filter(|there| **there == Some(DeleteOutcome::Unknown)).count();
        let same = row.left == left && row.unknown as usize == unknown && left > 0;
        require(same, Invariant::I13, "a deletion's counts are off")?;
        let begun = checkpoint.stage == Stage::Collecting;
        let noted = row.outcomes.len() == if begun { objects as usize } else { 0 };
        require(noted, Invariant::I3, "outcomes before the intent")?;
        let is_gone = |there: &Option<DeleteOutcome>| *there == Some(DeleteOutcome::Gone);
        let ahead = row.outcomes.get(row.cursor as usize..).unwrap_or_default();
        let reachable = if begun { !ahead.iter().all(is_gone) } else { row.cursor < objects };
        require(reachable, Invariant::L1, "a deletion that Collect would pass over")?;
    }
    let rows = table.disposals.len() as usize;
    require(queue.len() == rows, Invariant::I13, "a deletion that is in no queue")
}

fn check_turns(table: &Table) -> Result<(), Broken> {
    let turns = walk(table.turns, |slot| table.references[slot].in_job.next);
    let same = turns.len() == table.counters.turns as usize;
    require(same, Invariant::I13, "the job's order misses a turn")?;
    for slot in &turns {
        let row = &table.references[*slot];
        let live = table.turn(row.conversation, row.turn) == TurnState::Live(*slot);
        require(live, Invariant::I7, "a live turn that the index does not know as live")?;
    }
    for slot in table.expired.slots() {
        let row = &table.expired[slot];
        let known = table.turn(row.conversation, row.turn) == TurnState::Expired;
        require(known, Invariant::I7, "an expired turn that the index does not know")?;
    }
    let mut references = 0;
    for slot in table.checkpoints.slots() {
        let mut next = table.checkpoints[slot].references();
        while next != NONE {
            let row = &table.references[next];
            require(row.checkpoint == slot, Invariant::I1, "a reference elsewhere")?;
            references += 1;
            next = row.of_checkpoint.next;
        }
    }
    let all = table.references.len();
    require(references == all, Invariant::I1, "a live turn's reference holds nothing")
}

fn check_ledgers(catalog: &Catalog) -> Result<(), Broken> {
    let table = &catalog.table;
    // The job's order, cut by conversation, is every ledger's order.
    let mut firsts: BTreeMap<Slot, Vec<Slot>> = BTreeMap::new();
    for slot in walk(table.turns, |slot| table.references[slot].in_job.next) {
        firsts.entry(table.references[slot].conversation).or_default().push(slot);
    }
    let due = walk(table.due, |slot| table.conversations[slot].due.next);
    for slot in 0..table.conversations.end() {
        let row = &table.conversations[slot];
        let ledger: Vec<Slot> = table.ledger(slot).collect();
        let mut heads = Vec::new();
        let mut last = None;
        for reference in &ledger {
            let turn = table.references[*reference].turn;
            if last.replace(turn) != Some(turn) {
                heads.push(*reference);
            }
        }
        let order = firsts.remove(&slot).unwrap_or_default();
        require(heads == order, Invariant::I6, "a ledger is not in order of publication")?;
        let ends = row.tail == ledger.last().copied().unwrap_or(NONE);
        require(ends, Invariant::I13, "a ledger's end is off")?;
        let same = row.turns as usize == heads.len();
        require(same, Invariant::I13, "a conversation's turns are off")?;
        let mut held: Vec<Slot> =
            ledger.iter().map(|reference| table.references[*reference].checkpoint).collect();
        held.sort_unstable();
        held.dedup();
        let bytes = |slot: &Slot| table.shapes.bytes(table.checkpoints[*slot].shape);
        let sum: u64 = held.iter().map(bytes).sum();
        require(row.bytes == sum, Invariant::I13, "a conversation's bytes are off")?;
        require(row.is_due == due.contains(&slot), Invariant::I11, "a mark that is not due")?;
        let waits = row.is_due || table.trim.is_some_and(|from| slot >= from);
        let over = catalog.is_over(slot);
        require(!over || waits, Invariant::I6, "over its bounds, and no follow-up waits")?;
        let ended = !row.forgotten || row.is_due || row.head == NONE && row.expired == NONE;
        require(ended, Invariant::I7, "a forgotten conversation with turns")?;
    }
    let from = table.trim.unwrap_or(0);
    let known = from == 0 || from < table.conversations.end();
    require(known, Invariant::I6, "a lowered bound is due for no conversation")?;
    require(firsts.is_empty(), Invariant::I6, "a turn of no conversation")
}

fn check_indexes(table: &Table) -> Result<(), Broken> {
    let [owners, pins, endpoints, attempts, conversations, turns] = table.index_lengths();
    let checkpoints = table.checkpoints.len();
    let same = owners == table.owners.len()
        && pins == table.pins.len()
        && endpoints == checkpoints
        && attempts == checkpoints
        && conversations == table.conversations.len()
        && turns == table.counters.turns + table.expired.len();
    require(same, Invariant::I13, "an index has too few or too many entries")?;
    for slot in table.checkpoints.slots() {
        let row = &table.checkpoints[slot];
        let found =
            table.checkpoint(row.id()) == Some(slot) && table.attempt(row.attempt) == Some(slot);
        require(found, Invariant::I13, "a checkpoint is not found by its identity")?;
    }
    for slot in table.pins.slots() {
        let found = table.pin(table.pin_id(slot)) == Some(slot);
        require(found, Invariant::I13, "a pin is not found by its identity")?;
    }
    for slot in table.owners.slots() {
        let found = table.owner(table.owners[slot].id) == Some(slot);
        require(found, Invariant::I13, "an owner is not found by its identity")?;
    }
    for slot in 0..table.conversations.end() {
        let found = table.conversation(table.conversations[slot].id) == Some(slot);
        require(found, Invariant::I13, "a conversation is not found by its identity")?;
    }
    Ok(())
}
