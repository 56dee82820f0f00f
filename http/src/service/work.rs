//! Delete work that was handed out and is not reported yet: whose it is, and since when.
//!
//! It is volatile. Work that is forgotten here, with the process or with its holder's fence, is
//! handed out again by a later `Collect`; so the list is for those who delete, and for a person who
//! asks what is outstanding, and nothing depends on it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pinfold_core::engine::Effect;
use pinfold_core::id::{CheckpointId, Incarnation, Key, ObjectId, OpId, OwnerId};
use pinfold_core::policy::Genesis;
use pinfold_host::dto::{WorkItem, WorkObject};
use tokio::sync::Notify;

/// Whose work somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) owner: OwnerId,
    pub(super) incarnation: Incarnation,
}

#[derive(Debug)]
struct Held {
    number: u64,
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

#[derive(Debug)]
struct List {
    last: u64,
    held: Vec<Held>,
}

impl Work {
    pub(super) fn new(job: Genesis) -> Self {
        // Numbers of an earlier process are lower, so nobody who asks for what is behind one of
        // them misses anything.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let last = u64::try_from(since_1970.as_micros()).unwrap_or(0);
        let list = Mutex::new(List { last, held: Vec::new() });
        Self { job, list, came: Notify::new() }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work leaves the node. What the same objects were handed out for before is over.
    pub(super) fn handed_out(&self, effect: Effect) {
        let Effect::Delete { by, checkpoint, objects } = effect;
        let mut list = self.list();
        list.strike(checkpoint, &objects);
        list.last += 1;
        let (number, since) = (list.last, Instant::now());
        list.held.push(Held { number, by, checkpoint, objects, since });
        drop(list);
        self.came.notify_waiters();
    }

    /// Somebody reported these objects.
    pub(super) fn reported(&self, checkpoint: CheckpointId, objects: &[ObjectId]) {
        self.list().strike(checkpoint, objects);
    }

    /// Nobody hears from this incarnation any more.
    pub(super) fn fenced(&self, whose: Whose) {
        self.list().held.retain(|it| !is_of(it, whose));
    }

    /// What is outstanding behind a number: of somebody, or of all.
    pub(super) fn behind(&self, number: u64, whose: Option<Whose>) -> Vec<WorkItem> {
        let list = self.list();
        let asked = list.held.iter().filter(|it| it.number > number);
        asked
            .filter(|it| whose.is_none_or(|whose| is_of(it, whose)))
            .map(|it| self.item(it))
            .collect()
    }

    /// How many pieces, how many objects, and for how many seconds the oldest.
    pub(super) fn totals(&self) -> [u64; 3] {
        let list = self.list();
        let objects = list.held.iter().map(|it| it.objects.len() as u64).sum();
        let oldest = list.held.iter().map(|it| it.since.elapsed().as_secs()).max();
        [list.held.len() as u64, objects, oldest.unwrap_or(0)]
    }

    fn item(&self, held: &Held) -> WorkItem {
        let Held { number, by, checkpoint, objects, since } = held;
        let effect = Effect::Delete { by: *by, checkpoint: *checkpoint, objects: objects.clone() };
        let objects = objects.iter().zip(effect.keys(&self.job));
        let object =
            |(object, key): (&ObjectId, Key)| WorkObject { object: *object, key: key.to_string() };
        WorkItem {
            number: *number,
            owner: by.owner,
            incarnation: by.incarnation,
            by: *by,
            checkpoint: *checkpoint,
            objects: objects.map(object).collect(),
            age_seconds: since.elapsed().as_secs(),
        }
    }
}

fn is_of(held: &Held, whose: Whose) -> bool {
    (held.by.owner, held.by.incarnation) == (whose.owner, whose.incarnation)
}

impl List {
    fn strike(&mut self, checkpoint: CheckpointId, objects: &[ObjectId]) {
        for it in self.held.iter_mut().filter(|it| it.checkpoint == checkpoint) {
            it.objects.retain(|object| !objects.contains(object));
        }
        self.held.retain(|it| !it.objects.is_empty());
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
        work.handed_out(effect(1, 7, 2));
        work.handed_out(effect(2, 8, 3));
        assert_eq!(work.totals()[..2], [2, 5]);
        let mine = work.behind(0, Some(whose(2)));
        assert_eq!((mine.len(), mine[0].objects.len()), (1, 3));
        assert!(mine[0].objects[1].key.starts_with("work/"), "{mine:?}");
        assert_eq!(work.behind(mine[0].number, None), []);
        assert_eq!(work.behind(mine[0].number - 1, None), mine);
        work.reported(checkpoint(8), &[object(0), object(2)]);
        assert_eq!(work.behind(0, Some(whose(2)))[0].objects[0].object, object(1));
        // The same object goes out again, to somebody else.
        work.handed_out(effect(1, 8, 2));
        assert_eq!(work.behind(0, Some(whose(2))), []);
        work.fenced(whose(1));
        assert_eq!(work.totals(), [0, 0, 0]);
    }
}
