//! Delete work that was handed out and is not reported yet: whose it is, and since when.
//!
//! It is volatile. Work that is forgotten here, with the process or with its holder's fence, is
//! handed out again by a later `Collect`; so the list is for those who delete, and for a person who
//! asks what is outstanding, and nothing depends on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pinfold_core::engine::Effect;
use pinfold_core::id::{CheckpointId, Incarnation, Key, ObjectId, OpId, OwnerId};
use pinfold_core::policy::Genesis;
use pinfold_host::dto::{WorkItem, WorkObject};
use tokio::sync::Notify;

/// Pieces in one answer; what is behind the last of them is asked for next.
const PIECES: usize = 1000;

/// Whose work somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) owner: OwnerId,
    pub(super) incarnation: Incarnation,
}

#[derive(Debug)]
struct Held {
    by: OpId,
    checkpoint: CheckpointId,
    objects: Vec<ObjectId>,
    since: Instant,
}

/// All outstanding work. See the [module](self).
#[derive(Debug)]
pub(super) struct Work {
    job: Genesis,
    list: Mutex<List>,
    /// There is more of it.
    pub(super) came: Notify,
}

/// Pieces by their number, and which of them belong to what.
#[derive(Debug, Default)]
struct List {
    last: u64,
    held: BTreeMap<u64, Held>,
    by: BTreeSet<(OpId, u64)>,
    of: BTreeSet<(CheckpointId, u64)>,
}

impl Work {
    pub(super) fn new(job: Genesis) -> Self {
        // Numbers of an earlier process are lower, so nobody who asks for what is behind one of
        // them misses anything.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let last = u64::try_from(since_1970.as_micros()).unwrap_or(0);
        let list = Mutex::new(List { last, ..List::default() });
        Self { job, list, came: Notify::new() }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work leaves the node. What the same objects were handed out for before is over.
    pub(super) fn handed_out(&self, effect: &Effect) {
        let Effect::Delete { by, checkpoint, objects } = effect;
        let mut list = self.list();
        list.strike(*checkpoint, objects, |_| true);
        list.last += 1;
        let (number, since) = (list.last, Instant::now());
        list.by.insert((*by, number));
        list.of.insert((*checkpoint, number));
        let (by, checkpoint, objects) = (*by, *checkpoint, objects.clone());
        list.held.insert(number, Held { by, checkpoint, objects, since });
        drop(list);
        self.came.notify_waiters();
    }

    /// Somebody reported these objects. What was handed out to the same incarnation later than it
    /// reported is outstanding still: the report is one that it repeats.
    pub(super) fn reported(&self, op: OpId, checkpoint: CheckpointId, objects: &[ObjectId]) {
        let is_before = |by: OpId| {
            (by.owner, by.incarnation) != (op.owner, op.incarnation) || by.sequence < op.sequence
        };
        self.list().strike(checkpoint, objects, is_before);
    }

    /// An owner is no more, in any incarnation.
    pub(super) fn retired(&self, owner: OwnerId) {
        let mut list = self.list();
        let from = |incarnation| OpId { owner, incarnation: Incarnation(incarnation), sequence: 0 };
        let of_it = list.by.range((from(0), 0)..(from(u64::MAX), 0));
        for number in of_it.map(|it| it.1).collect::<Vec<_>>() {
            list.remove(number);
        }
    }

    /// Nobody hears from this incarnation any more.
    pub(super) fn fenced(&self, whose: Whose) {
        let mut list = self.list();
        for number in list.of_whom(whose).collect::<Vec<_>>() {
            list.remove(number);
        }
    }

    /// What is outstanding behind a number, of somebody or of all: the first pieces of it, as many
    /// as one answer has.
    pub(super) fn behind(&self, number: u64, whose: Option<Whose>) -> Vec<WorkItem> {
        let list = self.list();
        let mut numbers: Vec<u64> = match whose {
            Some(whose) => list.of_whom(whose).filter(|it| *it > number).collect(),
            None => {
                let behind = list.held.range(number.saturating_add(1)..);
                behind.take(PIECES).map(|it| *it.0).collect()
            }
        };
        numbers.sort_unstable();
        numbers.into_iter().take(PIECES).filter_map(|number| self.item(&list, number)).collect()
    }

    /// What an operation handed out, and nobody reported yet.
    pub(super) fn of_op(&self, op: OpId) -> Vec<WorkItem> {
        let list = self.list();
        let numbers = list.by.range((op, 0)..=(op, u64::MAX));
        numbers.filter_map(|(_, number)| self.item(&list, *number)).collect()
    }

    /// How many pieces, how many objects, and for how many seconds the oldest.
    pub(super) fn totals(&self) -> [u64; 3] {
        let list = self.list();
        let objects = list.held.values().map(|it| it.objects.len() as u64).sum();
        let oldest = list.held.values().map(|it| it.since.elapsed().as_secs()).max();
        [list.held.len() as u64, objects, oldest.unwrap_or(0)]
    }

    fn item(&self, list: &List, number: u64) -> Option<WorkItem> {
        let Held { by, checkpoint, objects, since } = list.held.get(&number)?;
        let effect = Effect::Delete { by: *by, checkpoint: *checkpoint, objects: objects.clone() };
        let objects = objects.iter().zip(effect.keys(&self.job));
        let object =
            |(object, key): (&ObjectId, Key)| WorkObject { object: *object, key: key.to_string() };
        Some(WorkItem {
            number,
            owner: by.owner,
            incarnation: by.incarnation,
            by: *by,
            checkpoint: *checkpoint,
            objects: objects.map(object).collect(),
            age_seconds: since.elapsed().as_secs(),
        })
    }
}

impl List {
    /// The numbers of somebody's pieces, by operation.
    fn of_whom(&self, Whose { owner, incarnation }: Whose) -> impl Iterator<Item = u64> {
        let op = |sequence| OpId { owner, incarnation, sequence };
        self.by.range((op(0), 0)..=(op(u64::MAX), u64::MAX)).map(|it| it.1)
    }

    fn remove(&mut self, number: u64) {
        if let Some(held) = self.held.remove(&number) {
            self.by.remove(&(held.by, number));
            self.of.remove(&(held.checkpoint, number));
        }
    }

    /// Objects of a checkpoint are outstanding no more, in the pieces of some operations.
    fn strike(
        &mut self,
        checkpoint: CheckpointId,
        objects: &[ObjectId],
        is_meant: impl Fn(OpId) -> bool,
    ) {
        let pieces = self.of.range((checkpoint, 0)..=(checkpoint, u64::MAX));
        for number in pieces.map(|it| it.1).collect::<Vec<_>>() {
            let Some(held) = self.held.get_mut(&number).filter(|it| is_meant(it.by)) else {
                continue;
            };
            held.objects.retain(|object| !objects.contains(object));
            if held.objects.is_empty() {
                self.remove(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pinfold_core::id::{EndpointId, Epoch, Generation, ShardIndex};
    use pinfold_core::policy::{Limits, Policy};

    use super::*;

    fn effect(owner: u128, generation: u64, objects: u32) -> Effect {
        let owner = OwnerId::from_u128(owner);
        Effect::Delete {
            by: OpId { owner, incarnation: Incarnation(2), sequence: 3 },
            checkpoint: checkpoint(generation),
            objects: (0..objects).map(object).collect(),
        }
    }

    fn checkpoint(generation: u64) -> CheckpointId {
        CheckpointId { endpoint: EndpointId::from_u128(5), generation: Generation(generation) }
    }

    fn object(index: u32) -> ObjectId {
        ObjectId { shard: ShardIndex(0), index }
    }

    #[test]
    fn work_is_outstanding_until_it_is_reported_or_its_holder_fenced() {
        let work = Work::new(Genesis {
            namespace: "work".parse().unwrap(),
            epoch: Epoch::of_name("work"),
            operator: OwnerId::of_name("operator"),
            policy: Policy::default(),
            limits: Limits::default(),
        });
        let whose = |owner| Whose { owner: OwnerId::from_u128(owner), incarnation: Incarnation(2) };
        work.handed_out(&effect(1, 7, 2));
        work.handed_out(&effect(2, 8, 3));
        assert_eq!(work.totals()[..2], [2, 5]);
        let mine = work.behind(0, Some(whose(2)));
        assert_eq!((mine.len(), mine[0].objects.len()), (1, 3));
        assert!(mine[0].objects[1].key.starts_with("work/"), "{mine:?}");
        assert_eq!(work.behind(mine[0].number, None), []);
        assert_eq!(work.behind(mine[0].number - 1, None), mine);
        assert_eq!(work.of_op(mine[0].by), mine);
        let report = |sequence| OpId { sequence, ..mine[0].by };
        // An answer that came twice, to a report on what was handed out earlier.
        work.reported(report(2), checkpoint(8), &[object(0), object(2)]);
        assert_eq!(work.behind(0, Some(whose(2))), mine);
        work.reported(report(4), checkpoint(8), &[object(0), object(2)]);
        assert_eq!(work.behind(0, Some(whose(2)))[0].objects[0].object, object(1));
        // The same object goes out again, to somebody else.
        work.handed_out(&effect(1, 8, 2));
        assert_eq!(work.behind(0, Some(whose(2))), []);
        work.handed_out(&effect(3, 9, 1));
        work.fenced(whose(1));
        assert_eq!(work.totals()[..2], [1, 1]);
        work.retired(OwnerId::from_u128(3));
        assert_eq!(work.totals(), [0, 0, 0]);
    }
}
