//! The observer: what the job must hold, judged from outside.
//!
//! It knows only what was acknowledged and what the store lists, never what the catalog thinks. It
//! counts how often the two contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::id::{CheckpointId, ConversationId, Key};
use pinfold_core::outcome::TurnKey;
use pinfold_core::policy::Genesis;
use pinfold_host::store::{ListError, ObjectStore};

/// What was acknowledged so far.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Every acknowledged publication: a turn and its checkpoints.
    published: BTreeMap<TurnKey, BTreeSet<CheckpointId>>,
    /// Every turn whose expiry was acknowledged.
    expired: BTreeSet<TurnKey>,
    /// Conversations with a past that this observer has not seen.
    before: BTreeSet<ConversationId>,
    /// Bytes of each checkpoint, as its writer confirmed them.
    written: BTreeMap<CheckpointId, u64>,
}

/// A contradiction between what was acknowledged and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise, and what was seen instead.
    pub what: String,
}

impl Observer {
    /// A publication was acknowledged, and with it perhaps an expiry.
    pub fn saw_published(
        &mut self,
        turn: TurnKey,
        checkpoint: CheckpointId,
        expired: Option<TurnKey>,
    ) {
        self.published.entry(turn).or_default().insert(checkpoint);
        self.expired.extend(expired);
    }

    /// A turn was live when this observer began: the only thing it takes the catalog's word for.
    pub fn saw_before(&mut self, turn: TurnKey, checkpoint: CheckpointId) {
        self.published.entry(turn).or_default().insert(checkpoint);
        self.before.insert(turn.conversation);
    }

    /// A checkpoint's private objects were written and confirmed.
    pub fn saw_written(&mut self, checkpoint: CheckpointId, bytes: u64) {
        self.written.insert(checkpoint, bytes);
    }

    /// Live turns: published and not expired.
    fn live(&self) -> impl Iterator<Item = (&TurnKey, &BTreeSet<CheckpointId>)> {
        self.published.iter().filter(|(turn, _)| !self.expired.contains(turn))
    }

    /// Compares the acknowledged turns with what the store has of this job's epoch. With `drained`,
    /// nothing else of it may be left.
    ///
    /// # Errors
    /// [`ListError`] when the store cannot be listed.
    pub fn judge(
        &self,
        store: &dyn ObjectStore,
        job: &Genesis,
        turns: u32,
        drained: bool,
    ) -> Result<Vec<Violation>, ListError> {
        let mut there: BTreeMap<CheckpointId, u64> = BTreeMap::new();
        store.list(&mut |text, bytes| {
            if let Ok(key) = text.parse::<Key>()
                && (&key.namespace, key.epoch) == (&job.namespace, job.epoch)
            {
                *there.entry(key.checkpoint).or_default() += bytes;
            }
        })?;
        let mut violations = self.judge_ledgers(turns);
        let mut retained = BTreeSet::new();
        for (turn, checkpoints) in self.live() {
            for checkpoint in checkpoints {
                retained.insert(*checkpoint);
                let stored = there.get(checkpoint);
                if self.written.get(checkpoint).is_some_and(|bytes| Some(bytes) != stored) {
                    let what = format!(
                        "I1: turn {turn} is retained, and checkpoint {checkpoint} is not whole"
                    );
                    violations.push(Violation { what });
                }
            }
        }
        if drained {
            let left = there.keys().filter(|checkpoint| !retained.contains(checkpoint));
            violations.extend(left.map(|checkpoint| Violation {
                what: format!("L1: nothing holds checkpoint {checkpoint}, and it is still there"),
            }));
        }
        Ok(violations)
    }

    /// A conversation keeps its newest N turns: no more, and no fewer while it had so many.
    fn judge_ledgers(&self, turns: u32) -> Vec<Violation> {
        let mut ledgers: BTreeMap<ConversationId, (u32, u32)> = BTreeMap::new();
        for turn in self.published.keys() {
            let (published, live) = ledgers.entry(turn.conversation).or_default();
            *published += 1;
            *live += u32::from(!self.expired.contains(turn));
        }
        let wrong = ledgers.into_iter().filter(|(conversation, (published, live))| {
            let known = !self.before.contains(conversation);
            *live > turns || known && *live != (*published).min(turns)
        });
        wrong
            .map(|(conversation, (published, live))| Violation {
                what: format!(
                    "I6: conversation {conversation} published {published} turns and keeps {live}"
                ),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use pinfold_core::id::{EndpointId, Epoch, Generation, ObjectId, OwnerId, ShardIndex, TurnId};
    use pinfold_core::policy::{Limits, Policy};
    use pinfold_host::file_store::{FileStore, FileStoreOptions};
    use pinfold_host::store::{DeleteOutcome, PutOutcome};

    use super::*;

    const TURNS: u32 = 2;

    /// A store, what was acknowledged, and what the observer says about the two.
    struct Scene {
        dir: tempfile::TempDir,
        store: FileStore,
        observer: Observer,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let store = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
            Self { dir, store, observer: Observer::default() }
        }

        fn put(&self, checkpoint: CheckpointId, index: u32, bytes: usize) {
            let stored = self.store.put(&key("job", checkpoint, index), &[&vec![7; bytes]]);
            assert_eq!(stored, PutOutcome::Stored);
        }

        fn delete(&self, checkpoint: CheckpointId, index: u32) {
            let deleted = self.store.delete(&key("job", checkpoint, index));
            assert_eq!(deleted, DeleteOutcome::Gone);
        }

        /// A turn is published on a checkpoint of two objects with 30 bytes, which is written.
        fn keep(&mut self, turn: TurnKey, checkpoint: CheckpointId, expired: Option<TurnKey>) {
            self.put(checkpoint, 1, 20);
            self.put(checkpoint, 0, 10);
            self.observer.saw_written(checkpoint, 30);
            self.observer.saw_published(turn, checkpoint, expired);
        }

        fn judge(&self, drained: bool) -> Vec<String> {
            let found = self.observer.judge(&self.store, &job(), TURNS, drained).unwrap();
            found.into_iter().map(|violation| violation.what).collect()
        }

        /// The same words whether all is collected or not.
        fn both(&self) -> Vec<String> {
            let found = self.judge(false);
            assert_eq!(found, self.judge(true));
            found
        }
    }

    fn job() -> Genesis {
        Genesis {
            namespace: "job".parse().unwrap(),
            epoch: Epoch::of_name("life"),
            operator: OwnerId::of_name("operator"),
            policy: Policy::default(),
            limits: Limits::default(),
        }
    }

    fn key(namespace: &str, checkpoint: CheckpointId, index: u32) -> String {
        let namespace = namespace.parse().unwrap();
        let epoch = Epoch::of_name("life");
        let object = ObjectId { shard: ShardIndex(0), index };
        Key { namespace, epoch, checkpoint, object }.to_string()
    }

    fn turn(conversation: u128, turn: u128) -> TurnKey {
        let conversation = ConversationId::from_u128(conversation);
        TurnKey { conversation, turn: TurnId::from_u128(turn) }
    }

    fn checkpoint(number: u64) -> CheckpointId {
        let endpoint = EndpointId::from_u128(u128::from(number));
        CheckpointId { endpoint, generation: Generation(number) }
    }

    /// Three turns of which two stay, and the checkpoint of the third is gone.
    fn three_turns() -> Scene {
        let mut scene = Scene::new();
        scene.keep(turn(1, 1), checkpoint(1), None);
        scene.keep(turn(1, 2), checkpoint(2), None);
        scene.keep(turn(1, 3), checkpoint(3), Some(turn(1, 1)));
        for index in 0..2 {
            scene.delete(checkpoint(1), index);
        }
        scene
    }

    fn i1(turn: TurnKey, checkpoint: CheckpointId) -> String {
        format!("I1: turn {turn} is retained, and checkpoint {checkpoint} is not whole")
    }

    fn l1(checkpoint: CheckpointId) -> String {
        format!("L1: nothing holds checkpoint {checkpoint}, and it is still there")
    }

    #[test]
    fn what_is_as_it_was_promised_is_no_violation() {
        assert!(Scene::new().both().is_empty());
        assert!(three_turns().both().is_empty());
    }

    /// I1: an object of a retained turn is gone, or all are.
    #[test]
    fn a_missing_object_of_a_retained_turn_is_seen() {
        for index in 0..2 {
            let scene = three_turns();
            scene.delete(checkpoint(2), index);
            assert_eq!(scene.both(), [i1(turn(1, 2), checkpoint(2))]);
        }
        let scene = three_turns();
        for (number, index) in [(2, 0), (2, 1), (3, 0), (3, 1)] {
            scene.delete(checkpoint(number), index);
        }
        let expected = [i1(turn(1, 2), checkpoint(2)), i1(turn(1, 3), checkpoint(3))];
        assert_eq!(scene.both(), expected);
    }

    /// I1: an object has another size than was confirmed, or there is one more.
    #[test]
    fn an_object_of_another_size_is_seen() {
        for bytes in [0, 19, 21] {
            let scene = three_turns();
            scene.delete(checkpoint(3), 1);
            scene.put(checkpoint(3), 1, bytes);
            assert_eq!(scene.both(), [i1(turn(1, 3), checkpoint(3))]);
        }
        let scene = three_turns();
        scene.put(checkpoint(3), 2, 1);
        assert_eq!(scene.both(), [i1(turn(1, 3), checkpoint(3))]);
    }

    /// A second turn holds a checkpoint after the first one's expiry.
    #[test]
    fn a_checkpoint_of_two_turns_is_retained_by_either() {
        let mut scene = Scene::new();
        scene.keep(turn(1, 1), checkpoint(1), None);
        scene.observer.saw_published(turn(1, 2), checkpoint(1), None);
        scene.observer.saw_published(turn(1, 3), checkpoint(1), Some(turn(1, 1)));
        assert!(scene.both().is_empty());
        scene.delete(checkpoint(1), 0);
        let expected = [i1(turn(1, 2), checkpoint(1)), i1(turn(1, 3), checkpoint(1))];
        assert_eq!(scene.both(), expected);
    }

    /// L1: what no live turn refers to may be there until all is collected, and no longer.
    #[test]
    fn what_nothing_holds_is_seen_once_all_is_collected() {
        let mut scene = three_turns();
        scene.put(checkpoint(1), 1, 20);
        assert!(scene.judge(false).is_empty());
        assert_eq!(scene.judge(true), [l1(checkpoint(1))]);
        // Written, never published.
        scene.put(checkpoint(9), 0, 1);
        scene.observer.saw_written(checkpoint(9), 1);
        assert!(scene.judge(false).is_empty());
        assert_eq!(scene.judge(true), [l1(checkpoint(1)), l1(checkpoint(9))]);
    }

    #[test]
    fn what_is_not_the_jobs_is_not_judged() {
        let scene = three_turns();
        for foreign in [key("other", checkpoint(7), 0), "job/notes".into(), "x/y".into()] {
            assert_eq!(scene.store.put(&foreign, &[b"theirs"]), PutOutcome::Stored);
        }
        let shared = key("job", checkpoint(7), 0).replace("/0000000000000007/", "/shared/");
        assert_eq!(scene.store.put_shared(&shared, &[b"page"]), PutOutcome::Stored);
        assert!(scene.both().is_empty());
    }

    /// I6: more than N live turns, or fewer although there were as many.
    #[test]
    fn too_many_or_too_few_live_turns_are_seen() {
        let words = |published: u32, live: u32| {
            let conversation = turn(1, 0).conversation;
            format!("I6: conversation {conversation} published {published} turns and keeps {live}")
        };
        let mut scene = Scene::new();
        for number in 1..=3 {
            scene.keep(turn(1, number.into()), checkpoint(number), None);
        }
        assert_eq!(scene.both(), [words(3, 3)]);
        scene.observer.saw_published(turn(1, 3), checkpoint(3), Some(turn(1, 1)));
        assert!(scene.judge(false).is_empty());
        scene.observer.saw_published(turn(1, 3), checkpoint(3), Some(turn(1, 2)));
        assert_eq!(scene.judge(false), [words(3, 1)]);
    }

    /// Each conversation has a ledger of its own.
    #[test]
    fn conversations_are_counted_apart() {
        let mut scene = Scene::new();
        for number in 1..=4 {
            scene.keep(turn(u128::from(number) / 2, number.into()), checkpoint(number), None);
        }
        assert!(scene.both().is_empty());
    }

    /// Of a conversation with a past nobody knows how many turns it had: it may have fewer than N
    /// turns, but never more.
    #[test]
    fn a_conversation_with_a_past_may_have_fewer_turns() {
        let mut scene = Scene::new();
        for number in 1..=2 {
            scene.put(checkpoint(number), 0, 5);
            scene.observer.saw_before(turn(1, number.into()), checkpoint(number));
        }
        assert!(scene.both().is_empty());
        // Turns that expired unseen leave one that was live before.
        scene.observer.saw_published(turn(1, 3), checkpoint(2), Some(turn(1, 1)));
        scene.observer.saw_published(turn(1, 3), checkpoint(2), Some(turn(1, 2)));
        assert!(scene.judge(false).is_empty());
        assert_eq!(scene.judge(true), [l1(checkpoint(1))]);
        for number in 4..=5 {
            scene.observer.saw_published(turn(1, number), checkpoint(2), None);
        }
        assert_eq!(scene.judge(false).len(), 1);
        assert!(scene.judge(false)[0].ends_with("published 5 turns and keeps 3"));
    }

    /// Retained does not mean present: what was written in a life that nobody watched may be lost.
    #[test]
    fn a_checkpoint_of_before_may_be_lost() {
        let mut scene = Scene::new();
        scene.observer.saw_before(turn(1, 1), checkpoint(1));
        assert!(scene.both().is_empty());
        scene.observer.saw_written(checkpoint(1), 30);
        assert_eq!(scene.both(), [i1(turn(1, 1), checkpoint(1))]);
    }

    /// What cannot be listed is not judged: an unmounted store is not an empty one.
    #[test]
    fn a_store_that_cannot_be_listed_is_no_verdict() {
        let scene = three_turns();
        std::fs::remove_file(scene.dir.path().join("objects/.pinfold-objects")).unwrap();
        assert!(scene.observer.judge(&scene.store, &job(), TURNS, true).is_err());
    }
}
