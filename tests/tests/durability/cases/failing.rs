//! A journal that fails under its node, before or after it has written.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use std::{io, thread};

use pinfold_core::catalog::Blocker;
use pinfold_core::engine::{Config, Effect, Engine};
use pinfold_core::outcome::Outcome;
use pinfold_core::policy::{Genesis, Policy};
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::journal::{AppendError, Journal, SegmentLog};
use pinfold_host::node::{Effects, Node, NodeError};

use super::{all_read, begin, blockers, keys, open, put_all, turns_in};
use crate::job::{self, Calls, Owner, SMALL, endpoint, prepare, turn};
use crate::judge::whole;
use crate::wire::{Ask, Verb};

/// The segments of a job, until it is told to fail: then the frame is written first, or it isn't.
struct Failing {
    log: SegmentLog,
    when: Arc<AtomicU8>,
}

const WELL: u8 = 0;
const REFUSE: u8 = 1;
const WRITE_AND_FAIL: u8 = 2;

impl Journal for Failing {
    fn append(&mut self, frame: &[u8]) -> Result<(), AppendError> {
        let when = self.when.load(Ordering::SeqCst);
        if when != REFUSE {
            self.log.append(frame)?;
        }
        if when == WELL {
            return Ok(());
        }
        Err(AppendError::Other(Box::new(io::Error::other("the sync failed"))))
    }
}

/// Opens a job on a journal that can be told to fail.
fn open_failing(dir: &Path) -> (Node, Effects, Arc<AtomicU8>) {
    let (log, recovered) = SegmentLog::open(dir, SMALL).unwrap();
    let engine = Engine::resume(Config::default(), recovered.replay).unwrap();
    let when = Arc::new(AtomicU8::new(WELL));
    let journal = Failing { log, when: Arc::clone(&when) };
    let (node, effects) = Node::with_journal(engine, Box::new(journal)).unwrap();
    (node, effects, when)
}

/// B32: objects were deleted before it was durable that they would be. Here the journal refuses the
/// record of a collect: no delete leaves, and after recovery the checkpoint is what it was.
#[test]
fn b32_the_intent_to_collect_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let job = job::genesis("b32");
    let store = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
    let (node, _effects, mut client) = begin(dir.path(), job.clone());
    let mut worker = Owner::worker("w", &mut client);
    let (pin, checkpoint) = worker.save(1, &mut client);
    put_all(&store, &keys(&job, checkpoint), b"bytes");
    worker.ask(Verb::Release { pin }, &mut client).unwrap();
    node.stop().unwrap();

    let (node, effects, when) = open_failing(dir.path());
    let mut client = node.client();
    assert_eq!(blockers(dir.path(), checkpoint), [Blocker::Collectable]);
    when.store(REFUSE, Ordering::SeqCst);
    assert_eq!(client.answer_to(worker.next(Verb::Collect { limit: 9 })), None);
    assert!(matches!(node.stop(), Err(NodeError::Append(AppendError::Other(_)))));
    assert_eq!(effects.try_iter().count(), 0);

    let (node, effects, mut client) = open(dir.path());
    assert_eq!(blockers(dir.path(), checkpoint), [Blocker::Collectable]);
    all_read(&store, &keys(&job, checkpoint), b"bytes");
    let again = worker.ask(prepare(endpoint(1), 99), &mut client);
    assert!(
        matches!(again, Ok(Outcome::AlreadyPublished { checkpoint: id, .. }) if id == checkpoint)
    );
    node.stop().unwrap();
    assert_eq!(effects.try_iter().count(), 0);
}

/// B63: the only copy was deleted before the one that replaces it was durable. Here, with one turn
/// to keep, a crash takes the newer publication or keeps it; one of the two is whole either way.
#[test]
fn b63_the_older_turn_stays_until_the_newer_is_durable() {
    for when_it_fails in [REFUSE, WRITE_AND_FAIL] {
        let dir = tempfile::tempdir().unwrap();
        let genesis =
            Genesis { policy: Policy { turns: 1, ..Policy::default() }, ..job::genesis("b63") };
        let (node, _effects, mut client) = begin(dir.path(), genesis);
        let mut worker = Owner::worker("w", &mut client);
        let (older, _) = worker.publish(1, turn(1, 1), &mut client);
        node.stop().unwrap();

        let (node, effects, when) = open_failing(dir.path());
        let mut client = node.client();
        let (pin, newer) = worker.save(2, &mut client);
        let publish = worker.next(Verb::Publish { pin, turn: Some(turn(1, 2)) });
        when.store(when_it_fails, Ordering::SeqCst);
        assert_eq!(client.answer_to(publish.clone()), None);
        assert_eq!(client.answer_to(worker.next(Verb::Collect { limit: 9 })), None);
        node.stop().unwrap_err();
        assert_eq!(effects.try_iter().count(), 0, "nothing may be deleted");

        let there = if when_it_fails == REFUSE { turn(1, 1) } else { turn(1, 2) };
        assert_eq!(turns_in(dir.path()), BTreeSet::from([there]));
        let (node, effects, mut client) = open(dir.path());
        let published = Outcome::Published { expired: Some(turn(1, 1)), follow_ups: false };
        assert_eq!(
            client.answer_to(publish),
            Some(Ok(published)),
            "whatever became of the first try"
        );
        assert_eq!(turns_in(dir.path()), BTreeSet::from([turn(1, 2)]));
        worker.ask(Verb::Collect { limit: 9 }, &mut client).unwrap();
        node.stop().unwrap();
        let deleted: Vec<_> =
            effects.try_iter().map(|Effect::Delete { checkpoint, .. }| checkpoint).collect();
        assert_eq!(deleted, [older]);
        assert_ne!(older, newer);
    }
}

/// B68: a failed sync was tried again, succeeded, and was believed; the bytes were gone. Here the
/// sync fails under several callers: each is told that the node is gone, no effect leaves, and what
/// is there the next opening decides.
#[test]
fn b68_a_failed_sync_under_several_callers() {
    for when_it_fails in [REFUSE, WRITE_AND_FAIL] {
        let dir = tempfile::tempdir().unwrap();
        let (node, _effects, mut client) = begin(dir.path(), job::genesis("b68"));
        let workers: Vec<_> =
            (0..6).map(|number| Owner::worker(&format!("w{number}"), &mut client)).collect();
        node.stop().unwrap();
        let (node, effects, when) = open_failing(dir.path());
        let calls = |number: u64, mut worker: Owner| {
            let mut client = node.client();
            move || {
                let mut answered: Vec<(Ask, _)> = Vec::new();
                for round in 0.. {
                    let attempt = u128::from(round * 6 + number) + 1;
                    let verb = prepare(endpoint(round * 6 + number), attempt);
                    let collect = round % 3 == 0;
                    let ask = worker.next(if collect { Verb::Collect { limit: 5 } } else { verb });
                    match client.answer_to(ask.clone()) {
                        Some(answer) => answered.push((ask, answer)),
                        None => return (ask, answered),
                    }
                }
                unreachable!("the node never ends")
            }
        };
        let ended = thread::scope(|scope| {
            let callers: Vec<_> = (0..)
                .zip(workers)
                .map(|(number, worker)| scope.spawn(calls(number, worker)))
                .collect();
            thread::sleep(Duration::from_millis(100));
            when.store(when_it_fails, Ordering::SeqCst);
            callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
        });
        let error = node.stop().unwrap_err().to_string();
        assert!(error.contains("the sync failed"), "{error}");
        assert_eq!(effects.try_iter().count(), 0);
        let (reading, records) = whole(dir.path()).unwrap();
        reading.catalog.check().unwrap();
        assert!(!records.is_empty());

        let (node, _effects, mut client) = open(dir.path());
        for (unanswered, answered) in ended {
            assert!(!answered.is_empty());
            for (ask, answer) in answered.iter().rev().take(job::W as usize - 1) {
                assert_eq!(client.answer_to(ask.clone()).as_ref(), Some(answer), "{ask:?}");
            }
            let decided = client.answer_to(unanswered.clone());
            assert!(matches!(decided, Some(Ok(_))), "{decided:?}");
            assert_eq!(client.answer_to(unanswered), decided);
        }
        node.stop().unwrap();
    }
}
