//! A coordinator that comes back: empty, half-way through deletes, or from a snapshot.

use std::collections::BTreeSet;
use std::fs;

use pinfold_core::catalog::{Blocker, Verdict};
use pinfold_core::engine::{Config, Effect, Engine, Input, Query, Reply, Request, Ticket};
use pinfold_core::host::Host;
use pinfold_core::id::ObjectId;
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome, Rejection};
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::journal::{self, AppendError, Journal, SegmentLog};
use pinfold_host::node::Node;

use super::{FIRST, all_read, begin, blockers, delete, is_absent, keys, open, put_all, turns_in};
use crate::job::{self, Owner, SMALL, endpoint, prepare, turn};
use crate::process::Process;
use crate::wire::Verb;

/// A host that keeps replies.
struct Replies {
    log: SegmentLog,
    replies: Vec<Reply>,
}

impl Host for Replies {
    type Error = AppendError;

    fn append(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        self.log.append(bytes)
    }

    fn start(&mut self, effect: Effect) {
        panic!("nobody asked for {effect:?}");
    }

    fn reply(&mut self, _: Ticket, reply: Reply) {
        self.replies.push(reply);
    }
}

/// B26: a coordinator came back at once and empty, and took messages of its former life for new
/// ones. Here each is refused by its epoch and leaves no byte.
#[test]
fn b26_a_message_of_the_former_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let (old, _effects, mut client) = begin(dir.path(), job::genesis("old"));
    let mut worker = Owner::worker("w", &mut client);
    let (pin, checkpoint) = worker.save(1, &mut client);
    old.stop().unwrap();
    fs::remove_dir_all(dir.path().join("journal")).unwrap();
    let (new, _effects, mut client) = begin(dir.path(), job::genesis("new"));
    // The same names again: only the epoch tells the two lives apart.
    Owner::worker("w", &mut client);
    new.stop().unwrap();

    let (log, recovered) = SegmentLog::open(dir.path(), SMALL).unwrap();
    let mut engine = Engine::resume(Config::default(), recovered.replay).unwrap();
    let mut host = Replies { log, replies: Vec::new() };
    engine.drive(&mut host).unwrap();
    let (before, records) = (fs::read(dir.path().join(FIRST)).unwrap(), host.log.next_sequence());
    let evidence = Evidence::QuiescedSuccess;
    let late = [
        Verb::Settle { pin, evidence },
        Verb::Publish { pin, turn: Some(turn(1, 1)) },
        Verb::Release { pin },
        Verb::Collect { limit: 9 },
        Verb::Deleted { checkpoint, outcomes: vec![(ObjectId::default(), DeleteOutcome::Gone)] },
        prepare(endpoint(1), 9),
    ];
    let mut requests: Vec<_> = late.map(|verb| worker.next(verb).request()).to_vec();
    requests.push(Request::Query(Query::Gauges));
    for (request, ticket) in requests.into_iter().zip((0..).map(Ticket)) {
        engine.submit(Input { ticket, epoch: job::genesis("old").epoch, request });
        engine.drive(&mut host).unwrap();
    }
    let refused = Reply::Command(Err(Rejection::WrongEpoch));
    assert_eq!(host.replies, [vec![refused; 6], vec![Reply::WrongEpoch]].concat());
    assert_eq!(host.log.next_sequence(), records);
    assert_eq!(fs::read(dir.path().join(FIRST)).unwrap(), before);
    assert_eq!(engine.catalog().gauges().checkpoints, 0);
}

/// B31: a cache that had lost its metadata named new files like old ones, and served old bytes as
/// new. Here a lost journal is a new epoch: other keys, and nothing of the old is found or touched.
#[test]
fn b31_a_lost_journal_and_a_full_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
    let (old_job, new_job) = (job::genesis("old"), job::genesis("new"));
    let (node, _effects, mut client) = begin(dir.path(), old_job.clone());
    let mut worker = Owner::worker("w", &mut client);
    let (old, _) = worker.publish(1, turn(1, 1), &mut client);
    put_all(&store, &keys(&old_job, old), b"old bytes");
    node.stop().unwrap();
    fs::remove_dir_all(dir.path().join("journal")).unwrap();
    assert!(Node::open(dir.path()).is_err());

    let (node, _effects, mut client) = begin(dir.path(), new_job.clone());
    let mut worker = Owner::worker("w", &mut client);
    let found = worker.ask(Verb::Pin { candidates: vec![endpoint(1)], limit: 8 }, &mut client);
    assert!(matches!(found, Ok(Outcome::Pinned(none)) if none.is_empty()), "{found:?}");
    let (new, _) = worker.publish(1, turn(1, 1), &mut client);
    assert_eq!(new, old, "the same position, and the first generation once more");
    is_absent(&store, &keys(&new_job, new));
    put_all(&store, &keys(&new_job, new), b"new bytes");
    all_read(&store, &keys(&old_job, old), b"old bytes");
    all_read(&store, &keys(&new_job, new), b"new bytes");
    // What the old job left is none of the new one's.
    let old_keys = keys(&old_job, old);
    let audited = Request::Query(Query::Audit(old_keys.clone()));
    let verdicts = Reply::Audit(vec![Verdict::NotOurs; old_keys.len()]);
    assert_eq!(client.call(audited), Ok(verdicts));
    node.stop().unwrap();
}

/// B60: a crash between deleting and noting it left names of deleted files, which were believed to
/// be there. Here a node is killed between the two: nothing of the half-deleted checkpoint is
/// served, the position is written anew under fresh keys, and the deletes are handed out again.
#[test]
fn b60_killed_between_deletes_and_their_report() {
    let dir = tempfile::tempdir().unwrap();
    let job = job::genesis("processes");
    let store = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
    let mut node = Process::node(dir.path());
    node.opened().unwrap();
    let mut worker = Owner::worker("w", &mut node);
    let (pin, old) = worker.save(1, &mut node);
    put_all(&store, &keys(&job, old), b"old");
    worker.ask(Verb::Release { pin }, &mut node).unwrap();
    worker.ask(Verb::Collect { limit: 9 }, &mut node).unwrap();
    let work = node.work.pop().expect("delete work");
    assert_eq!((work.0, work.1.len()), (old, 3));
    // One of three is deleted, and nobody is told.
    delete(&store, &job, (old, work.1[..1].to_vec()));
    node.kill();

    let mut node = Process::node(dir.path());
    node.opened().unwrap();
    let pin = Verb::Pin { candidates: vec![endpoint(1)], limit: 8 };
    let found = worker.ask(pin, &mut node);
    assert!(matches!(found, Ok(Outcome::Pinned(none)) if none.is_empty()), "{found:?}");
    let left = [Blocker::Collecting { left: 3, refused: Vec::new() }];
    assert_eq!(blockers(dir.path(), old), left);
    let (new, published) = worker.publish(1, turn(1, 1), &mut node);
    assert!(published.is_ok() && new.generation > old.generation, "{new:?}");
    is_absent(&store, &keys(&job, new));
    put_all(&store, &keys(&job, new), b"new");
    worker.ask(Verb::Collect { limit: 9 }, &mut node).unwrap();
    let work = node.work.pop().expect("the same work again");
    assert_eq!((work.0, work.1.len()), (old, 3));
    let reported = worker.ask(delete(&store, &job, work), &mut node);
    assert_eq!(reported, Ok(Outcome::Deleted { left: 0 }));
    node.kill();
    is_absent(&store, &keys(&job, old));
    all_read(&store, &keys(&job, new), b"new");
    assert_eq!(turns_in(dir.path()), BTreeSet::from([turn(1, 1)]));
}

/// B66: the note that something was deleted was dropped when the log was compacted, and a late
/// message brought it back. Here a turn stays expired after a restart, and after a snapshot has
/// taken the place of the segments that say so.
#[test]
fn b66_an_expired_turn_after_compaction() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _effects, mut client) = begin(dir.path(), job::genesis("b66"));
    let mut worker = Owner::worker("w", &mut client);
    for number in 0..=2 {
        assert!(worker.publish(number, turn(1, number), &mut client).1.is_ok());
    }
    let expired = Err(Rejection::TurnExpired);
    let mut number = 10;
    while node.snapshots().taken == 0 || dir.path().join(FIRST).exists() {
        number += 1;
        assert!(worker.publish(number, turn(number, 0), &mut client).1.is_ok());
    }
    assert_eq!(worker.publish(3, turn(1, 0), &mut client).1, expired);
    node.stop().unwrap();
    for restart in 0..2 {
        let (node, _effects, mut client) = open(dir.path());
        assert!(journal::read(dir.path()).unwrap().snapshot_records > 0);
        let mut slow = Owner::worker(&format!("slow {restart}"), &mut client);
        assert_eq!(slow.publish(20_000 + restart, turn(1, 0), &mut client).1, expired);
        node.stop().unwrap();
    }
    let kept: BTreeSet<_> = turns_in(dir.path());
    assert!(
        kept.contains(&turn(1, 1)) && kept.contains(&turn(1, 2)) && !kept.contains(&turn(1, 0))
    );
}
