//! The observer over a real store: what it says of each way in which a promise can be broken.

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
    job: Genesis,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
        Self { dir, store, observer: Observer::default(), job: job() }
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
        self.published(turn, checkpoint, expired);
    }

    /// Asked for and answered before the next.
    fn published(&mut self, turn: TurnKey, checkpoint: CheckpointId, expired: Option<TurnKey>) {
        let asked = self.observer.begins();
        self.observer.saw_published(turn, checkpoint, expired, asked);
    }

    fn judge(&mut self, drained: bool) -> Vec<String> {
        let found = self.observer.judge(&self.store, &self.job, drained).unwrap();
        found.into_iter().map(|violation| violation.what).collect()
    }

    /// The same words whether all is collected or not.
    fn both(&mut self) -> Vec<String> {
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
        policy: Policy { turns: TURNS, ..Policy::default() },
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
        let mut scene = three_turns();
        scene.delete(checkpoint(2), index);
        assert_eq!(scene.both(), [i1(turn(1, 2), checkpoint(2))]);
    }
    let mut scene = three_turns();
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
        let mut scene = three_turns();
        scene.delete(checkpoint(3), 1);
        scene.put(checkpoint(3), 1, bytes);
        assert_eq!(scene.both(), [i1(turn(1, 3), checkpoint(3))]);
    }
    let mut scene = three_turns();
    scene.put(checkpoint(3), 2, 1);
    assert_eq!(scene.both(), [i1(turn(1, 3), checkpoint(3))]);
}

/// A second turn holds a checkpoint after the first one's expiry.
#[test]
fn a_checkpoint_of_two_turns_is_retained_by_either() {
    let mut scene = Scene::new();
    scene.keep(turn(1, 1), checkpoint(1), None);
    scene.published(turn(1, 2), checkpoint(1), None);
    scene.published(turn(1, 3), checkpoint(1), Some(turn(1, 1)));
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
    let mut scene = three_turns();
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
    scene.published(turn(1, 3), checkpoint(3), Some(turn(1, 1)));
    assert!(scene.judge(false).is_empty());
    scene.published(turn(1, 3), checkpoint(3), Some(turn(1, 2)));
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
    scene.published(turn(1, 3), checkpoint(2), Some(turn(1, 1)));
    scene.published(turn(1, 3), checkpoint(2), Some(turn(1, 2)));
    assert!(scene.judge(false).is_empty());
    assert_eq!(scene.judge(true), [l1(checkpoint(1))]);
    for number in 4..=5 {
        scene.published(turn(1, number), checkpoint(2), None);
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
    let mut scene = three_turns();
    std::fs::remove_file(scene.dir.path().join("objects/.pinfold-objects")).unwrap();
    assert!(scene.observer.judge(&scene.store, &scene.job, true).is_err());
}

/// A scene with room for ten turns and these budgets.
fn budgets(conversation_bytes: Option<u64>, job_bytes: Option<u64>) -> Scene {
    let mut scene = Scene::new();
    scene.job.policy = Policy { turns: 10, conversation_bytes, job_bytes, ..Policy::default() };
    scene
}

/// The catalog says that these turns are live.
fn retains(scene: &mut Scene, turns: &[TurnKey]) -> Vec<String> {
    let found = scene.observer.saw_retained(&turns.iter().copied().collect());
    found.into_iter().map(|violation| violation.what).collect()
}

fn shorter(conversation: u128, published: u32, live: u32) -> String {
    let conversation = turn(conversation, 0).conversation;
    format!("I6: conversation {conversation} published {published} turns and keeps {live}")
}

/// Checkpoints of 30 bytes: two fit into 70 bytes and a third does not.
#[test]
fn a_conversation_keeps_what_fits_its_budget() {
    let mut scene = budgets(Some(70), None);
    for number in 1..=4 {
        scene.keep(turn(1, number.into()), checkpoint(number), None);
    }
    let over =
        format!("budget: conversation {} holds 120 bytes, more than 70", turn(1, 0).conversation);
    assert_eq!(scene.judge(false), [over]);
    assert!(retains(&mut scene, &[turn(1, 3), turn(1, 4)]).is_empty());
    assert!(scene.judge(false).is_empty());
    assert_eq!(scene.observer.expired_turns(), 2);
    // One fewer than had to go.
    assert!(retains(&mut scene, &[turn(1, 4)]).is_empty());
    assert_eq!(scene.judge(false), [shorter(1, 4, 1)]);
    // The newest turn is never expired by it.
    retains(&mut scene, &[]);
    assert_eq!(scene.judge(false), [shorter(1, 4, 0)]);
}

/// The bound of N holds beside a budget that would allow more.
#[test]
fn a_budget_allows_no_more_than_n() {
    let mut scene = budgets(Some(1000), Some(1000));
    scene.job.policy.turns = 2;
    for number in 1..=3 {
        scene.keep(turn(1, number.into()), checkpoint(number), None);
    }
    assert_eq!(scene.judge(false), [shorter(1, 3, 3)]);
    // Every budget has room: an expiry beyond N is not explained.
    retains(&mut scene, &[turn(1, 3)]);
    assert_eq!(scene.judge(false), [shorter(1, 3, 1)]);
}

/// A ledger is the newest end of its order: one kept turn is older than an expired one.
#[test]
fn a_hole_in_a_ledger_is_seen() {
    let mut scene = budgets(Some(70), None);
    for number in 1..=3 {
        scene.keep(turn(1, number.into()), checkpoint(number), None);
    }
    retains(&mut scene, &[turn(1, 1), turn(1, 3)]);
    let hole = format!(
        "I6: conversation {} keeps a turn that is older than an expired one",
        turn(1, 0).conversation
    );
    assert_eq!(scene.judge(false), [hole]);
}

/// Two turns that were served at once: whichever came first, either may be the newest.
#[test]
fn an_order_that_nobody_saw_is_not_demanded() {
    for newest in 1..=2 {
        let mut scene = budgets(Some(50), None);
        let asked = [scene.observer.begins(), scene.observer.begins()];
        for (number, asked) in (1..=2).zip(asked) {
            scene.put(checkpoint(number), 0, 30);
            scene.observer.saw_written(checkpoint(number), 30);
            scene.observer.saw_published(turn(1, number.into()), checkpoint(number), None, asked);
        }
        retains(&mut scene, &[turn(1, newest)]);
        assert!(scene.judge(false).is_empty());
    }
}

/// The job's budget takes the oldest turn of all conversations, an idle one's last turn too.
#[test]
fn the_job_keeps_what_fits_its_budget() {
    let mut scene = budgets(None, Some(100));
    for (conversation, number) in [(1, 1), (2, 2), (2, 3), (3, 4)] {
        scene.keep(turn(conversation, number.into()), checkpoint(number), None);
    }
    assert_eq!(scene.judge(false), ["budget: the job holds 120 bytes, more than 100"]);
    let mut other = scene.observer.clone();
    retains(&mut scene, &[turn(2, 2), turn(2, 3), turn(3, 4)]);
    assert!(scene.judge(false).is_empty());
    // Not the oldest one.
    std::mem::swap(&mut scene.observer, &mut other);
    retains(&mut scene, &[turn(1, 1), turn(2, 3), turn(3, 4)]);
    assert_eq!(scene.judge(false), [shorter(2, 2, 1)]);
    // The turn that was published last is spared.
    std::mem::swap(&mut scene.observer, &mut other);
    retains(&mut scene, &[]);
    assert_eq!(scene.judge(false), [shorter(2, 2, 0), shorter(3, 1, 0)]);
}

/// A checkpoint of two turns counts once in each scope.
#[test]
fn a_shared_checkpoint_counts_once() {
    let mut scene = budgets(Some(30), Some(30));
    scene.keep(turn(1, 1), checkpoint(1), None);
    scene.published(turn(1, 2), checkpoint(1), None);
    scene.published(turn(2, 3), checkpoint(1), None);
    assert!(scene.both().is_empty());
    retains(&mut scene, &[turn(1, 2), turn(2, 3)]);
    assert_eq!(scene.judge(false), [shorter(1, 2, 1)]);
}

/// I7 and I4: the catalog's word for what is live is judged as well.
#[test]
fn a_turn_that_returns_or_was_never_published_is_seen() {
    let mut scene = three_turns();
    let live = [turn(1, 2), turn(1, 3)];
    assert!(retains(&mut scene, &live).is_empty());
    let returned = retains(&mut scene, &[turn(1, 1), turn(1, 2), turn(1, 3)]);
    assert_eq!(returned, [format!("I7: turn {} has expired, and is retained", turn(1, 1))]);
    let unknown = retains(&mut scene, &[turn(1, 2), turn(1, 3), turn(9, 9)]);
    let expected =
        format!("I4: turn {} is retained, and nobody was told of its publication", turn(9, 9));
    assert_eq!(unknown, [expected]);
    // Without a budget nothing but N expires a turn.
    retains(&mut scene, &[turn(1, 3)]);
    assert_eq!(scene.judge(false), [shorter(1, 3, 1)]);
}

/// What nobody confirmed has the size that the store listed first, also after it is gone.
#[test]
fn sizes_are_learned_from_the_store() {
    let mut scene = Scene::new();
    scene.put(checkpoint(1), 1, 20);
    scene.put(checkpoint(1), 0, 5);
    scene.observer.list(&scene.store, &scene.job).unwrap();
    scene.delete(checkpoint(1), 1);
    scene.keep(turn(1, 2), checkpoint(2), None);
    scene.judge(false);
    let bytes = [1, 2, 3].map(|number| scene.observer.bytes(checkpoint(number)));
    assert_eq!(bytes, [Some(25), Some(30), None]);
}
