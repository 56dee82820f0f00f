//! The collector: asks for delete work, deletes by whole keys, and reports each outcome.
//!
//! It never probes a key before it deletes it, and it never retries by itself: what was refused or
//! is unknown comes back with a later round.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::node::{Effects, Gone};
use crate::owner::{Owner, OwnerError};
use crate::store::ObjectStore;
use pinfold_core::catalog::Command;
use pinfold_core::engine::Effect;
use pinfold_core::id::CheckpointId;
use pinfold_core::outcome::{DeleteOutcome, Outcome};
use pinfold_core::policy::Genesis;

/// Objects per round.
const ROUND: u32 = 256;
/// How long a round waits for work that was handed out.
const PATIENCE: Duration = Duration::from_secs(10);

/// An owner that collects: the only one whose work comes through its effects.
#[derive(Debug)]
pub struct Collector {
    owner: Owner,
    effects: Effects,
    store: Store,
    job: Genesis,
    collected: Vec<CheckpointId>,
    patience: Duration,
}

struct Store(Arc<dyn ObjectStore>);

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Checkpoints whose every object is gone now.
    pub checkpoints: u64,
    /// Objects deleted.
    pub objects: u64,
    /// Objects that were not deleted, or nobody knows.
    pub left: u64,
    /// There is more to collect.
    pub more: bool,
}

impl Collector {
    /// A collector of a job, which gets the node's effects.
    #[must_use]
    pub fn new(owner: Owner, effects: Effects, store: Arc<dyn ObjectStore>, job: Genesis) -> Self {
        Self { owner, effects, store: Store(store), job, collected: Vec::new(), patience: PATIENCE }
    }

    /// Gives the node's effects back.
    #[must_use]
    pub fn into_effects(self) -> Effects {
        self.effects
    }

    /// The checkpoints whose every object is gone since this was asked last.
    #[must_use]
    pub fn take_collected(&mut self) -> Vec<CheckpointId> {
        std::mem::take(&mut self.collected)
    }

    /// One round: a `Collect`, its deletes, and their outcomes.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone.
    pub fn round(&mut self) -> Result<Round, OwnerError> {
        let mut round = Round::default();
        let answer = self.owner.ask(Command::Collect { limit: ROUND })?;
        let Ok(Outcome::Collected { objects, more }) = answer else {
            return Err(OwnerError::Unexpected);
        };
        round.more = more;
        if objects == 0 {
            return Ok(round);
        }
        let mut outcomes: BTreeMap<CheckpointId, Vec<_>> = BTreeMap::new();
        let mut missing = objects as usize;
        while missing > 0 {
            // They left before the reply did, so they are here or on their way; unless they were
            // lost with the process that handed them out. Then they come again with a later round.
            let effect = match self.effects.recv_timeout(self.patience) {
                Ok(effect) => effect,
                Err(RecvTimeoutError::Timeout) => {
                    round.left += missing as u64;
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Gone.into()),
            };
            let Effect::Delete { checkpoint, objects, .. } = &effect;
            missing = missing.saturating_sub(objects.len());
            let keys = effect.keys(&self.job);
            for (key, object) in keys.zip(objects) {
                let outcome = DeleteOutcome::from(self.store.0.delete(&key.to_string()));
                round.objects += u64::from(outcome == DeleteOutcome::Gone);
                round.left += u64::from(outcome != DeleteOutcome::Gone);
                outcomes.entry(*checkpoint).or_default().push((*object, outcome));
            }
        }
        let checkpoints: Vec<CheckpointId> = outcomes.keys().copied().collect();
        let reports = outcomes.into_iter().map(|(checkpoint, mut outcomes)| {
            outcomes.sort_by_key(|(object, _)| *object);
            Command::Deleted { checkpoint, outcomes }
        });
        let answers = self.owner.ask_all(reports.collect())?;
        for (checkpoint, answer) in checkpoints.into_iter().zip(answers) {
            match answer {
                Some(Ok(Outcome::Deleted { left: 0 })) => {
                    round.checkpoints += 1;
                    self.collected.push(checkpoint);
                }
                Some(Ok(Outcome::Deleted { .. })) => {}
                _ => return Err(OwnerError::Unexpected),
            }
        }
        Ok(round)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use pinfold_core::catalog::{Prepare, Role, Shape, ShardShape};
    use pinfold_core::engine::Query;
    use pinfold_core::id::{
        AttemptId, EndpointId, Epoch, Key, ManifestDigest, ObjectId, OwnerId, ShardIndex, StartId,
    };
    use pinfold_core::outcome::Evidence;
    use pinfold_core::policy::{Limits, Policy};

    use super::*;
    use crate::node::Node;
    use crate::store::{self, GetOutcome, ListError, Presence, PutOutcome, Why};

    /// A store that deletes, unless it is told to answer something else.
    #[derive(Default)]
    struct Shelf {
        deleted: Mutex<Vec<String>>,
        /// Answers of the deletes that come next.
        moods: Mutex<Vec<store::DeleteOutcome>>,
    }

    impl ObjectStore for Shelf {
        fn put(&self, _: &str, _: &[&[u8]]) -> PutOutcome {
            PutOutcome::Failed(Why::new("a shelf takes nothing"))
        }

        fn put_shared(&self, key: &str, parts: &[&[u8]]) -> PutOutcome {
            self.put(key, parts)
        }

        fn size(&self, key: &str) -> Presence {
            panic!("{key} is never probed before it is deleted")
        }

        fn get(&self, key: &str, _: &mut [u8]) -> GetOutcome {
            panic!("{key} is never read before it is deleted")
        }

        fn delete(&self, key: &str) -> store::DeleteOutcome {
            if let Some(mood) = self.moods.lock().unwrap().pop() {
                return mood;
            }
            self.deleted.lock().unwrap().push(key.to_string());
            store::DeleteOutcome::Gone
        }

        fn list(&self, _: &mut dyn FnMut(&str, u64)) -> Result<(), ListError> {
            Ok(())
        }
    }

    struct Scene {
        node: Node,
        worker: Owner,
        collector: Collector,
        shelf: Arc<Shelf>,
        _dir: tempfile::TempDir,
    }

    fn refused() -> store::DeleteOutcome {
        store::DeleteOutcome::Refused(Why::new("leased"))
    }

    fn unknown() -> store::DeleteOutcome {
        store::DeleteOutcome::Unknown(Why::new("timed out"))
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let genesis = Genesis {
                namespace: "collect".parse().unwrap(),
                epoch: Epoch::of_name("collector test"),
                operator: OwnerId::of_name("operator"),
                policy: Policy::default(),
                limits: Limits::default(),
            };
            let (node, effects) = Node::create(dir.path(), genesis.clone()).unwrap();
            let start = StartId::from_u128(1);
            let owner = |name| Owner::register(node.client(), name, Role::Worker, start);
            let worker = owner("worker").unwrap();
            let shelf = Arc::new(Shelf::default());
            let collector =
                Collector::new(owner("collector").unwrap(), effects, shelf.clone(), genesis);
            Self { node, worker, collector, shelf, _dir: dir }
        }

        /// Prepares a checkpoint of so many objects; with `fails`, nothing holds it afterwards.
        fn prepare(&mut self, number: u128, objects: u32, fails: bool) {
            let prepare = Prepare {
                attempt: AttemptId::from_u128(number),
                endpoint: EndpointId::from_u128(number),
                digest: ManifestDigest::from_bytes([1; 32]),
                shape: Shape::new(&[ShardShape { objects, bytes: 1000 }]).unwrap(),
                shards: vec![ShardIndex(0)],
            };
            let answer = self.worker.ask(Command::Prepare(prepare)).unwrap();
            let Ok(Outcome::Prepared { pin, .. }) = answer else { panic!("{answer:?}") };
            if fails {
                let evidence = Evidence::QuiescedFailure;
                let settle = Command::Settle { pin, shard: None, evidence };
                self.worker.ask(settle).unwrap().unwrap();
                self.worker.ask(Command::Release { pin }).unwrap().unwrap();
            }
        }

        fn round(&mut self) -> Round {
            self.collector.round().unwrap()
        }

        fn checkpoints(&self) -> u64 {
            let client = self.node.client();
            client.inspect(|engine, _| engine.catalog().gauges().checkpoints).unwrap()
        }
    }

    #[test]
    fn nothing_to_collect_is_an_empty_round() {
        let mut scene = Scene::new();
        scene.prepare(1, 2, false);
        assert_eq!((scene.round(), scene.checkpoints()), (Round::default(), 1));
    }

    /// Whole derived keys of what nothing holds, and no other; the rest stays.
    #[test]
    fn a_round_deletes_what_nothing_holds() {
        let mut scene = Scene::new();
        scene.prepare(1, 2, true);
        scene.prepare(2, 2, false);
        scene.prepare(3, 1, true);
        let round = Round { checkpoints: 2, objects: 3, left: 0, more: false };
        assert_eq!(scene.round(), round);
        assert_eq!(scene.round(), Round::default());
        assert_eq!(scene.checkpoints(), 1);
        let collected = scene.collector.take_collected();
        let generations: Vec<u64> = collected.iter().map(|one| one.generation.0).collect();
        assert_eq!((generations, scene.collector.take_collected()), (vec![1, 3], Vec::new()));
        let deleted = scene.shelf.deleted.lock().unwrap();
        let keys: Vec<Key> = deleted.iter().map(|key| key.parse().unwrap()).collect();
        let objects = keys.iter().map(|key| {
            assert_eq!(key.namespace.as_str(), "collect");
            assert_eq!(key.epoch, Epoch::of_name("collector test"));
            (key.checkpoint.generation.0, key.object)
        });
        let object = |index| ObjectId { shard: ShardIndex(0), index };
        assert_eq!(objects.collect::<Vec<_>>(), [(1, object(0)), (1, object(1)), (3, object(0))]);
    }

    /// A refused or unknown delete is reported as such, keeps the record, and comes back.
    #[test]
    fn what_was_not_deleted_comes_back() {
        for mood in [refused, unknown] {
            let mut scene = Scene::new();
            scene.prepare(1, 2, true);
            scene.shelf.moods.lock().unwrap().push(mood());
            assert_eq!(scene.round(), Round { checkpoints: 0, objects: 1, left: 1, more: false });
            let client = scene.node.client();
            let gauges = client.call(pinfold_core::engine::Request::Query(Query::Gauges)).unwrap();
            let pinfold_core::engine::Reply::Gauges(gauges) = gauges else { panic!() };
            assert_eq!(gauges.bytes_quarantined > 0, mood() == unknown());
            assert_eq!(scene.checkpoints(), 1);
            assert_eq!(scene.round(), Round { checkpoints: 1, objects: 1, left: 0, more: false });
            assert_eq!(scene.checkpoints(), 0);
            // What was gone is not deleted twice.
            assert_eq!(scene.shelf.deleted.lock().unwrap().len(), 2);
        }
    }

    /// A large checkpoint goes in slices, many small ones in several rounds.
    #[test]
    fn a_round_is_bounded() {
        let mut scene = Scene::new();
        scene.prepare(1, 300, true);
        assert_eq!(scene.round(), Round { checkpoints: 0, objects: 256, left: 0, more: true });
        assert_eq!(scene.round(), Round { checkpoints: 1, objects: 44, left: 0, more: false });
        for number in 2..22 {
            scene.prepare(number, 2, true);
        }
        let rounds: Vec<Round> = (0..4).map(|_| scene.round()).collect();
        assert!(rounds[..3].iter().all(|round| round.more && round.checkpoints == 6));
        assert_eq!((rounds[3].checkpoints, rounds[3].more), (2, false));
        assert_eq!(scene.checkpoints(), 0);
    }

    /// Refused ones go to the back, so that the next round has others.
    #[test]
    fn refused_ones_starve_nobody() {
        let mut scene = Scene::new();
        for number in 1..=20 {
            scene.prepare(number, 1, true);
        }
        scene.shelf.moods.lock().unwrap().extend((0..6).map(|_| refused()));
        assert_eq!(scene.round(), Round { checkpoints: 0, objects: 0, left: 6, more: true });
        while scene.round().more {}
        let deleted = scene.shelf.deleted.lock().unwrap().clone();
        for early in 1..=6_u64 {
            let generation = format!("/{early:016x}/");
            assert!(deleted[14..].iter().any(|key| key.contains(&generation)), "{deleted:?}");
        }
        assert_eq!(scene.checkpoints(), 0);
    }

    /// Work that was handed out and never came is not deleted, and comes again.
    #[test]
    fn lost_work_counts_as_left() {
        let mut scene = Scene::new();
        scene.prepare(1, 2, true);
        let (_nobody, nothing) = std::sync::mpsc::channel();
        let effects = std::mem::replace(&mut scene.collector.effects, nothing);
        scene.collector.patience = Duration::from_millis(20);
        assert_eq!(scene.round(), Round { checkpoints: 0, objects: 0, left: 2, more: false });
        assert_eq!(effects.try_iter().count(), 1, "it is lost");
        scene.collector.effects = effects;
        scene.collector.patience = PATIENCE;
        assert_eq!(scene.round(), Round { checkpoints: 1, objects: 2, left: 0, more: false });
        assert_eq!(scene.checkpoints(), 0);
    }

    /// The effects are the node's: who takes them over goes on.
    #[test]
    fn another_collector_goes_on() {
        let mut scene = Scene::new();
        scene.prepare(1, 2, true);
        scene.shelf.moods.lock().unwrap().push(unknown());
        scene.round();
        let Scene { node, collector, shelf, _dir, .. } = scene;
        let effects = collector.into_effects();
        let client = node.client();
        let start = StartId::from_u128(1);
        let owner = Owner::register(client, "next", Role::Worker, start).unwrap();
        let mut next = Collector::new(owner, effects, shelf, node.job().clone());
        let round = Round { checkpoints: 1, objects: 1, left: 0, more: false };
        assert_eq!(next.round(), Ok(round));
    }

    #[test]
    fn a_collector_hears_that_its_node_is_gone() {
        let Scene { node, mut collector, _dir, .. } = Scene::new();
        node.stop().unwrap();
        assert_eq!(collector.round(), Err(OwnerError::Gone(Gone)));
    }
}
