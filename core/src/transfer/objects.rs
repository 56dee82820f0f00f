//! The objects of a transfer and how far each has come.
//!
//! An object is moved once and checked once. Everything that is counted is a sum over the objects,
//! so that late, duplicate and reordered completions cannot make a count drift.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use super::{CheckAnswer, Completion, Fault, GetAnswer, PutAnswer, Step};
use crate::id::ShardIndex;
use crate::layout::Group;
use crate::manifest::{Manifest, ObjectName};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Evidence, LostObject};

/// What a transfer knows of one object beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Item {
    name: ObjectName,
    /// Its bytes in the store.
    bytes: u64,
    /// Its place among the shared objects of the manifest; 0 for a private one.
    place: u32,
    /// The row of its shard.
    row: u32,
    part: Part,
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// Moved and checked.
    Ordinary,
    /// Moved last of its shard, then checked.
    Last,
    /// Only checked.
    Checked,
}

/// How far a move or a check has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Nothing to do.
    Unneeded,
    Waiting,
    Started,
    /// The host could not even begin.
    NotStarted,
    Good,
    Bad,
}

/// How far one object has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Progress {
    movement: Stage,
    check: Stage,
    /// Somebody may still touch the worker's memory for it.
    exposed: bool,
}

/// The sums over the objects of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Tally {
    /// Not yet moved and checked.
    left: u32,
    /// Not yet checked.
    unchecked: u32,
    /// Moves that ever began.
    started: u32,
    /// Moves whose memory may still be touched.
    exposed: u32,
    /// Of those, the ones that were answered: nobody follows them any more.
    doubtful: u32,
    /// Moves and checks that somebody still works on.
    open: u32,
}

/// The objects of one shard of a save, or of a whole load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    tally: Tally,
    /// The object that is moved last.
    last: Option<u32>,
    /// Stopped before it was whole; nothing that comes later makes it so.
    given_up: bool,
}

/// A place from which a search begins. It saves time and never changes what is found.
#[derive(Clone, Copy, Debug, Default)]
struct Hint(u32);

impl PartialEq for Hint {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Hint {}

impl Hash for Hint {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    /// Put, then check.
    ToStore,
    /// Check all, then get.
    ToMemory,
}

/// The objects of a transfer. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Objects {
    way: Way,
    /// By name, each once.
    items: Arc<[Item]>,
    progress: Vec<Progress>,
    rows: Vec<Row>,
    /// Nothing more begins.
    stopped: bool,
    next_move: Hint,
    next_check: Hint,
}

impl Objects {
    /// What these shards store: a row for each.
    pub(super) fn to_store(manifest: &Manifest, shards: &[ShardIndex]) -> Self {
        let mut items = Vec::new();
        for (shard, row) in shards.iter().zip(0..) {
            items.extend(manifest.private_objects(*shard).map(|object| Item {
                name: ObjectName::Private(object.id),
                bytes: object.stored_bytes(),
                place: 0,
                row,
                part: if object.id.index == 0 { Part::Last } else { Part::Ordinary },
            }));
        }
        for (object, place) in manifest.shared_objects().zip(0..) {
            if let Ok(row) = shards.binary_search(&object.stored_by) {
                let row = u32::try_from(row).unwrap_or(u32::MAX);
                let (name, bytes) = (ObjectName::Shared(object.name), object.payload_bytes);
                items.push(Item { name, bytes, place, row, part: Part::Ordinary });
            }
        }
        Self::new(Way::ToStore, items, shards.len())
    }

    /// What these shards hold, whoever stores it: one row.
    pub(super) fn to_memory(manifest: &Manifest, shards: &[ShardIndex]) -> Self {
        let groups = &manifest.layout().groups;
        let held = |group: &&Group| shards.iter().any(|shard| group.is_held_by(*shard));
        let stored = groups.iter().filter(held).flat_map(|group| {
            let holders = shards.iter().filter(|shard| group.is_held_by(**shard));
            holders.map(|shard| (group.id, group.stored_by(*shard)))
        });
        let stored: BTreeSet<_> = stored.collect();
        let storing: BTreeSet<_> = stored.iter().map(|(_, shard)| *shard).collect();
        let read: BTreeSet<_> = storing.iter().chain(shards).copied().collect();
        let mut items = Vec::new();
        for object in read.into_iter().flat_map(|shard| manifest.private_objects(shard)) {
            let part = match object.group {
                None => Part::Checked,
                Some(group) if stored.contains(&(group, object.id.shard)) => Part::Ordinary,
                Some(_) => continue,
            };
            let (name, bytes) = (ObjectName::Private(object.id), object.stored_bytes());
            items.push(Item { name, bytes, place: 0, row: 0, part });
        }
        for (object, place) in manifest.shared_objects().zip(0..) {
            if stored.contains(&(object.name.group, object.stored_by)) {
                let (name, bytes) = (ObjectName::Shared(object.name), object.payload_bytes);
                items.push(Item { name, bytes, place, row: 0, part: Part::Ordinary });
            }
        }
        Self::new(Way::ToMemory, items, 1)
    }

    fn new(way: Way, mut items: Vec<Item>, rows: usize) -> Self {
        items.sort_unstable_by_key(|item| item.name);
        items.dedup_by_key(|item| item.name);
        let empty = Row { tally: Tally::default(), last: None, given_up: false };
        let mut rows = vec![empty; rows];
        let mut progress = Vec::with_capacity(items.len());
        for (item, index) in items.iter().zip(0..) {
            let movement = match item.part {
                Part::Ordinary | Part::Last => Stage::Waiting,
                Part::Checked => Stage::Unneeded,
            };
            let fresh = Progress { movement, check: Stage::Waiting, exposed: false };
            if let Some(row) = rows.get_mut(item.row as usize) {
                row.tally = row.tally.plus(&fresh.tally());
                if item.part == Part::Last {
                    row.last = Some(index);
                }
            }
            progress.push(fresh);
        }
        let (next_move, next_check) = (Hint(0), Hint(0));
        Self { way, items: items.into(), progress, rows, stopped: false, next_move, next_check }
    }

    /// The next move or check that may begin, begun.
    pub(super) fn begin_next(&mut self) -> Option<Step> {
        if self.stopped {
            return None;
        }
        #[cfg(pinfold_mutants)]
        if let Some(step) = self.put_again() {
            return Some(step);
        }
        match self.way {
            Way::ToStore => self.begin_check().or_else(|| self.begin_move()),
            Way::ToMemory if self.rows.iter().any(|row| row.tally.unchecked > 0) => {
                self.begin_check()
            }
            Way::ToMemory => self.begin_move(),
        }
    }

    fn begin_check(&mut self) -> Option<Step> {
        let end = match self.way {
            Way::ToStore => self.next_move.0,
            Way::ToMemory => u32::try_from(self.items.len()).unwrap_or(u32::MAX),
        };
        let ready = |index: u32| {
            let progress = self.progress.get(index as usize);
            progress.is_some_and(|progress| match self.way {
                Way::ToStore => progress.movement == Stage::Good,
                Way::ToMemory => true,
            } && progress.check == Stage::Waiting)
        };
        let from = self.next_check.0.min(end);
        let found = (from..end).find(|index| ready(*index));
        let of_rows = || self.rows.iter().filter_map(|row| row.last).find(|index| ready(*index));
        let (found, next) = match found {
            Some(index) => (Some(index), index.saturating_add(1)),
            None => (of_rows(), end),
        };
        self.next_check = Hint(next);
        let index = found?;
        self.change(index, |progress| progress.check = Stage::Started);
        let item = self.items.get(index as usize)?;
        Some(Step::Check { object: item.name, bytes: item.bytes })
    }

    fn begin_move(&mut self) -> Option<Step> {
        let waits = |index: u32| {
            let progress = self.progress.get(index as usize);
            progress.is_some_and(|progress| progress.movement == Stage::Waiting)
        };
        let end = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        let from = self.next_move.0.min(end);
        let found = (from..end).find(|index| {
            let item = self.items.get(*index as usize);
            item.is_some_and(|item| item.part == Part::Ordinary) && waits(*index)
        });
        let lonely = self.rows.iter().filter(|row| row.tally.left == 1);
        let mut of_rows = lonely.filter_map(|row| row.last).filter(|index| waits(*index));
        let (found, next) = match found {
            Some(index) => (Some(index), index.saturating_add(1)),
            None => (of_rows.next(), end),
        };
        self.next_move = Hint(next);
        let index = found?;
        self.change(index, |progress| {
            progress.movement = Stage::Started;
            progress.exposed = true;
        });
        let item = self.items.get(index as usize)?;
        let (object, bytes) = (item.name, item.bytes);
        Some(match self.way {
            Way::ToStore => Step::Put { object, bytes },
            Way::ToMemory => Step::Get { object, bytes },
        })
    }

    /// Takes a completion. What is late, doubled or unknown changes nothing; a fault is given back.
    pub(super) fn completed(
        &mut self,
        object: ObjectName,
        completion: Completion,
    ) -> Option<Fault> {
        let index = self.items.binary_search_by_key(&object, |item| item.name).ok()?;
        let item = *self.items.get(index)?;
        let index = u32::try_from(index).ok()?;
        match completion {
            Completion::Put { answer, retired } if self.way == Way::ToStore => {
                let result = judge_put(answer);
                self.moved(index, result, retired)
            }
            Completion::Got { answer, retired } if self.way == Way::ToMemory => {
                let result = judge_get(&item, answer);
                self.moved(index, result, retired)
            }
            Completion::Put { .. } | Completion::Got { .. } => None,
            Completion::Checked(answer) => self.checked(index, judge_check(&item, answer)),
            Completion::Retired => {
                self.retire(index);
                None
            }
        }
    }

    fn moved(&mut self, index: u32, result: Result<(), Fault>, retired: bool) -> Option<Fault> {
        #[cfg(pinfold_mutants)]
        if self.waits_for_another_put(index, result, retired) {
            return None;
        }
        if self.progress.get(index as usize)?.movement != Stage::Started {
            // The first answer stands, but a proof of retirement is always welcome.
            if retired {
                self.retire(index);
            }
            return None;
        }
        // What was retired before had begun, whatever its answer says.
        let unbegun = result == Err(Fault::NotStarted) && self.is_exposed(index);
        let stage = match result {
            Ok(()) => Stage::Good,
            Err(_) if unbegun => Stage::NotStarted,
            Err(_) => Stage::Bad,
        };
        self.change(index, |progress| {
            progress.movement = stage;
            progress.exposed &= !retired && !unbegun;
        });
        self.next_check = Hint(self.next_check.0.min(index));
        result.err()
    }

    fn checked(&mut self, index: u32, result: Result<(), Fault>) -> Option<Fault> {
        if self.progress.get(index as usize)?.check != Stage::Started {
            return None;
        }
        let stage = if result.is_ok() { Stage::Good } else { Stage::Bad };
        self.change(index, |progress| progress.check = stage);
        result.err()
    }

    fn is_exposed(&self, index: u32) -> bool {
        self.progress.get(index as usize).is_some_and(|progress| progress.exposed)
    }

    fn retire(&mut self, index: u32) {
        self.change(index, |progress| progress.exposed = false);
    }

    fn change(&mut self, index: u32, change: impl FnOnce(&mut Progress)) {
        let Some(progress) = self.progress.get_mut(index as usize) else { return };
        let before = progress.tally();
        change(progress);
        let after = progress.tally();
        let row = self.items.get(index as usize).map_or(0, |item| item.row);
        if let Some(row) = self.rows.get_mut(row as usize) {
            row.tally = row.tally.minus(&before).plus(&after);
        }
    }

    /// Begins nothing more. What is not whole yet will never be.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        for row in &mut self.rows {
            row.given_up |= row.tally.left > 0;
        }
    }

    /// What is known about a row.
    pub(super) fn evidence(&self, row: usize) -> Evidence {
        let Some(Row { tally, given_up, .. }) = self.rows.get(row) else {
            return Evidence::NotExposed;
        };
        let whole = tally.left == 0 && !given_up;
        #[cfg(pinfold_mutants)]
        if let Some(evidence) = self.misjudged(tally, whole) {
            return evidence;
        }
        if whole && tally.exposed == 0 {
            Evidence::QuiescedSuccess
        } else if !self.stopped {
            Evidence::Active
        } else if tally.exposed == 0 {
            if tally.started == 0 { Evidence::NotExposed } else { Evidence::QuiescedFailure }
        } else if tally.doubtful > 0 {
            Evidence::InDoubt
        } else {
            Evidence::Quiescing
        }
    }

    #[cfg(pinfold_mutants)]
    fn misjudged(&self, tally: &Tally, whole: bool) -> Option<Evidence> {
        if is_armed(Mutant::SettleBeforeRetired) && whole {
            Some(Evidence::QuiescedSuccess)
        } else if is_armed(Mutant::NotExposedAfterStart) && self.stopped && tally.exposed > 0 {
            Some(Evidence::NotExposed)
        } else if is_armed(Mutant::DoubtIsFailure) && self.stopped && tally.doubtful > 0 {
            Some(Evidence::QuiescedFailure)
        } else {
            None
        }
    }

    /// Takes the first failure of a put for no answer. Its check, which no object needs that was
    /// not put, stands for "once more".
    #[cfg(pinfold_mutants)]
    fn waits_for_another_put(
        &mut self,
        index: u32,
        result: Result<(), Fault>,
        retired: bool,
    ) -> bool {
        let Some(progress) = self.progress.get(index as usize).copied() else { return false };
        let is_save = self.way == Way::ToStore && !self.stopped;
        if !is_armed(Mutant::PutAgain) || !is_save || progress.movement != Stage::Started {
            return false;
        }
        let again = result == Err(Fault::Unknown) && progress.check == Stage::Waiting;
        self.change(index, |progress| {
            progress.check = if again { Stage::NotStarted } else { Stage::Waiting };
            if again {
                progress.movement = Stage::Waiting;
                progress.exposed &= !retired;
            }
        });
        again
    }

    #[cfg(pinfold_mutants)]
    fn put_again(&mut self) -> Option<Step> {
        let waits = |it: &Progress| (it.movement, it.check) == (Stage::Waiting, Stage::NotStarted);
        let index = self.progress.iter().position(waits)?;
        self.change(u32::try_from(index).ok()?, |progress| {
            progress.movement = Stage::Started;
            progress.exposed = true;
        });
        let item = self.items.get(index)?;
        Some(Step::Put { object: item.name, bytes: item.bytes })
    }

    /// True when nothing of it may be touched any more.
    pub(super) fn is_retired(&self) -> bool {
        self.rows.iter().all(|row| row.tally.exposed == 0)
    }

    /// True when everything arrived, is checked, and is retired.
    pub(super) fn is_whole(&self) -> bool {
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::AdoptEarly) || is_armed(Mutant::AdoptBeforeRetired) {
            let missing = u32::from(is_armed(Mutant::AdoptEarly));
            return self.rows.iter().all(|row| row.tally.left <= missing && !row.given_up);
        }
        let whole = |row: &Row| row.tally.left == 0 && row.tally.exposed == 0 && !row.given_up;
        self.rows.iter().all(whole)
    }

    /// Moves and checks that somebody still works on.
    pub(super) fn in_flight(&self) -> u32 {
        self.rows.iter().fold(0, |sum, row| sum.saturating_add(row.tally.open))
    }

    /// The name by which a catalog knows an object of this transfer.
    pub(super) fn lost_name(&self, object: ObjectName) -> Option<LostObject> {
        let index = self.items.binary_search_by_key(&object, |item| item.name).ok()?;
        Some(match object {
            ObjectName::Shared(_) => LostObject::Shared(self.items.get(index)?.place),
            ObjectName::Private(id) => LostObject::Private(id),
        })
    }

    /// True when the counts are the sums that they stand for.
    #[cfg(test)]
    pub(super) fn is_consistent(&self) -> bool {
        let recount = |number: u32| {
            let own = self.items.iter().zip(&self.progress).filter(|(item, _)| item.row == number);
            own.fold(Tally::default(), |sum, (_, progress)| sum.plus(&progress.tally()))
        };
        self.rows.iter().zip(0..).all(|(row, number)| row.tally == recount(number))
    }
}

impl Progress {
    fn tally(&self) -> Tally {
        let one = u32::from;
        let answered = self.movement != Stage::Started;
        let began = matches!(self.movement, Stage::Started | Stage::Good | Stage::Bad);
        let moved = matches!(self.movement, Stage::Good | Stage::Unneeded);
        let checked = self.check == Stage::Good;
        #[cfg(pinfold_mutants)]
        let checked = checked || is_armed(Mutant::Unconfirmed);
        Tally {
            left: one(!moved || !checked),
            unchecked: one(self.check != Stage::Good),
            started: one(began),
            exposed: one(self.exposed),
            doubtful: one(self.exposed && answered),
            open: one(!answered || self.exposed) + one(self.check == Stage::Started),
        }
    }
}

impl Tally {
    fn each(&self, other: &Self, sum: impl Fn(u32, u32) -> u32) -> Self {
        Self {
            left: sum(self.left, other.left),
            unchecked: sum(self.unchecked, other.unchecked),
            started: sum(self.started, other.started),
            exposed: sum(self.exposed, other.exposed),
            doubtful: sum(self.doubtful, other.doubtful),
            open: sum(self.open, other.open),
        }
    }

    fn plus(&self, other: &Self) -> Self {
        self.each(other, u32::saturating_add)
    }

    fn minus(&self, other: &Self) -> Self {
        self.each(other, u32::saturating_sub)
    }
}

const fn judge_put(answer: PutAnswer) -> Result<(), Fault> {
    match answer {
        PutAnswer::Stored => Ok(()),
        PutAnswer::NotStarted => Err(Fault::NotStarted),
        PutAnswer::Failed => Err(Fault::Unknown),
    }
}

fn judge_check(item: &Item, answer: CheckAnswer) -> Result<(), Fault> {
    match answer {
        CheckAnswer::Present { bytes } => judge_size(item, bytes),
        CheckAnswer::Absent => Err(Fault::Absent),
        CheckAnswer::Unreadable => Err(Fault::Unreadable),
        CheckAnswer::Unknown => Err(Fault::Unknown),
    }
}

fn judge_get(item: &Item, answer: GetAnswer) -> Result<(), Fault> {
    let is_private = matches!(item.name, ObjectName::Private(_));
    match answer {
        GetAnswer::Verified { bytes } if is_private => judge_size(item, bytes),
        GetAnswer::Arrived { bytes } if !is_private => judge_size(item, bytes),
        GetAnswer::Verified { .. } | GetAnswer::Arrived { .. } => Err(Fault::Unverified),
        GetAnswer::Absent => Err(Fault::Absent),
        GetAnswer::WrongSize { bytes } => Err(Fault::WrongSize { bytes }),
        #[cfg(pinfold_mutants)]
        GetAnswer::WrongBytes if is_armed(Mutant::WrongBytesAdopted) => Ok(()),
        GetAnswer::WrongBytes => Err(Fault::WrongBytes),
        GetAnswer::Unreadable => Err(Fault::Unreadable),
        GetAnswer::NotStarted => Err(Fault::NotStarted),
        GetAnswer::Failed => Err(Fault::Unknown),
    }
}

fn judge_size(item: &Item, bytes: u64) -> Result<(), Fault> {
    if bytes == item.bytes { Ok(()) } else { Err(Fault::WrongSize { bytes }) }
}
