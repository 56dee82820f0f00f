//! Disks with no room left, or that may only be read.
//!
//! A small file system of its own where this process may mount one; elsewhere a limit on the size
//! of files, or a folder in the way, and then it says so.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::id::Epoch;
use pinfold_core::outcome::Outcome;
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::journal::{self, JournalOptions};
use pinfold_host::node::{Node, NodeError};
use pinfold_host::store::{DeleteOutcome, GetOutcome, ObjectStore, PutOutcome};
use pinfold_workload::replay::{ReplayConfig, replay};
use pinfold_workload::trace::{Request, Trace};

use crate::job::{self, Owner, turn};
use crate::life::Life;
use crate::process::{Process, contested_keys};
use crate::small_disk::{NO_SPACE, SmallDisk};
use crate::wire::Told;

const PATIENCE: Duration = Duration::from_secs(30);

/// Protocol 7: a disk that is full poisons the node. Nobody is told what is not there, what was
/// acknowledged is there, and with room again the job goes on.
#[test]
fn a_job_outlives_a_full_disk() {
    let disk = SmallDisk::mount(36);
    let plain = tempfile::tempdir().unwrap();
    let dir = disk.as_ref().map_or(plain.path(), SmallDisk::path).join("job");
    let start = || match disk {
        Some(_) => Process::node(&dir),
        None => Process::node_with_small_files(&dir, 20),
    };
    let mut life = Life::new(&dir, 1);
    let mut node = start();
    assert_eq!(node.opened(), Ok(0));
    life.load_until_gone(&mut node).unwrap();
    let said = node.end();
    let [Told::Ended { why }] = &said[..] else { panic!("it ended with {said:?}") };
    let reason = if disk.is_some() { NO_SPACE } else { "File too large" };
    assert!(why.contains(reason) && why.contains("journal/"), "{why}");
    life.judge_journal().unwrap();

    // Still full: whatever becomes of the next start, nothing is lost.
    let mut node = start();
    if node.opened().is_ok() {
        life.resume_until_gone(&mut node).unwrap();
    }
    drop(node);
    life.judge_journal().unwrap();

    if let Some(disk) = &disk {
        assert!(disk.run("mount", &["-o", "remount,size=8m"]));
    }
    let mut node = Process::node(&dir);
    node.opened().unwrap();
    life.resume(&mut node).unwrap();
    life.judge_at_rest(&mut node).unwrap();
    life.load(&mut node, Instant::now() + Duration::from_millis(300)).unwrap();
    for told in node.kill() {
        life.hear(told).unwrap();
    }
    life.judge_journal().unwrap();
}

/// A replay whose journal finds no room names the file and the reason.
#[test]
fn a_replay_names_the_full_disk() {
    // Room for the first segment and the objects, and none for the second segment.
    let Some(disk) = SmallDisk::mount(2 << 10) else { return };
    let request = Request { input_tokens: 1024, blocks: vec![1, 2], ..Request::default() };
    let trace = Trace { block_tokens: 512, requests: vec![request; 5000] };
    let config = ReplayConfig {
        dir: disk.path().join("job"),
        resume: false,
        turns: 2,
        conversation_bytes: None,
        job_bytes: None,
        crash_every: None,
        workers: 4,
        bytes_per_checkpoint: 256,
        sync_objects: false,
        namespace: "replay".parse().unwrap(),
        epoch: Epoch::of_name("full disk"),
        trace_name: "full".to_string(),
        log: None,
    };
    let why = replay(&config, &trace, &|_| ()).unwrap_err().to_string();
    assert!(why.contains(NO_SPACE) && why.contains("journal/"), "{why}");
}

/// A snapshot that does not fit is told, costs no commit, and is taken once there is room.
#[test]
fn a_snapshot_without_room_is_told() {
    if let Some(disk) = SmallDisk::mount(4 << 10) {
        let dir = disk.path().join("job");
        let why = fail_a_snapshot(&dir, || disk.fill(), || disk.make_room());
        assert!(why.contains(NO_SPACE), "{why}");
    }
}

/// The same when it cannot be written for another reason: a folder has its temporary name.
#[test]
fn a_snapshot_that_cannot_be_written_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let in_the_way = dir.path().join("journal/snapshot.tmp");
    let why = fail_a_snapshot(
        dir.path(),
        || fs::create_dir(&in_the_way).unwrap(),
        || fs::remove_dir(&in_the_way).unwrap(),
    );
    assert!(why.contains("Is a directory"), "{why}");
}

/// Runs a node whose first snapshot fails and whose next one does not; why it failed.
fn fail_a_snapshot(dir: &Path, block: impl Fn(), unblock: impl Fn()) -> String {
    let size = 64 << 10;
    let options =
        JournalOptions { first_segment_bytes: size, segment_bytes: size, snapshot_bytes: size / 2 };
    let (node, _effects) = Node::create_with(dir, job::genesis("full"), options).unwrap();
    let mut client = node.client();
    let mut worker = Owner::worker("w", &mut client);
    let mut number = 0;
    let mut save = || {
        number += 1;
        let (_, published) = worker.publish(number, turn(number, 0), &mut client);
        assert!(matches!(published, Ok(Outcome::Published { .. })), "{published:?}");
    };
    // The room for the next segment is there before the disk is full, so that it can begin.
    let next = dir.join("journal/next.tmp");
    wait_for("the next segment's room", || {
        save();
        fs::metadata(&next).is_ok_and(|file| file.len() == size)
    });
    thread::sleep(Duration::from_millis(50));
    block();
    wait_for("another segment", || {
        save();
        segments(dir) == 2
    });
    wait_for("a word about the snapshot", || node.snapshots().failure.is_some());
    let report = node.snapshots();
    let why = report.failure.unwrap_or_default();
    assert!(report.taken == 0 && why.contains("snapshot.tmp"), "{why}");
    (0..5).for_each(|_| save());
    unblock();
    wait_for("a snapshot", || {
        save();
        node.snapshots().taken > 0
    });
    assert_eq!(node.snapshots().failure, None);
    node.stop().unwrap();
    let (node, _effects, recovery) = Node::open(dir).unwrap();
    assert!(recovery.snapshot_records > 0, "{recovery:?}");
    node.stop().unwrap();
    let reading = journal::read(dir).unwrap();
    assert_eq!(reading.catalog.gauges().turns, number);
    reading.catalog.check().unwrap();
    why
}

fn segments(dir: &Path) -> usize {
    let names = fs::read_dir(dir.join("journal")).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".log")).count()
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
    }
}

/// A node that finds no room for its first segment says so, and leaves no job behind.
#[test]
fn a_job_that_finds_no_room_never_began() {
    let Some(disk) = SmallDisk::mount(64) else { return no_room_by_a_limit() };
    let dir = disk.path().join("job");
    disk.fill();
    let error = Node::create(&dir, job::genesis("full")).unwrap_err();
    assert!(
        matches!(error, NodeError::Journal(_)) && error.to_string().contains(NO_SPACE),
        "{error}"
    );
    disk.make_room();
    let (node, _effects) = Node::create_with(&dir, job::genesis("room"), job::SMALL).unwrap();
    assert_eq!(node.job().epoch, job::genesis("room").epoch);
    node.stop().unwrap();
}

fn no_room_by_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let why = Process::node_with_small_files(dir.path(), 1).opened().unwrap_err();
    assert!(why.contains("File too large"), "{why}");
    Process::node(dir.path()).opened().unwrap();
}

/// A put that finds no room definitely failed, and leaves nothing: no object, no part of one.
#[test]
fn a_full_store_has_no_half_objects() {
    for sync_objects in [false, true] {
        let Some(disk) = SmallDisk::mount(400) else { return half_objects_by_a_limit() };
        let store = FileStore::create(disk.path(), FileStoreOptions { sync_objects }).unwrap();
        let body = vec![9; 50_000];
        let mut stored = Vec::new();
        for key in contested_keys().take(20) {
            match store.put(&key, &[&body]) {
                PutOutcome::Stored => stored.push(key),
                PutOutcome::Failed(why) => assert!(why.as_str().contains(NO_SPACE), "{why}"),
                PutOutcome::Unknown(why) => panic!("{key}: {why}"),
            }
        }
        assert!((1..20).contains(&stored.len()), "{stored:?}");
        assert_eq!(whole_objects(&store, body.len()), stored);
        assert_eq!(store.remove_leftovers().unwrap(), 0);
        store.delete(&stored[0]);
        let key = contested_keys().last().unwrap();
        assert_eq!(store.put(&key, &[&body]), PutOutcome::Stored);
    }
}

fn half_objects_by_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
    let mut writer = Process::writer_with_small_files(dir.path(), 20);
    writer.opened().unwrap();
    writer.begin();
    assert_eq!(writer.stored(), [""; 0]);
    assert_eq!(whole_objects(&store, 0), [""; 0]);
    assert_eq!(store.remove_leftovers().unwrap(), 0);
}

/// A file system that may only be read: the job is read and not opened, puts fail and deletes are
/// refused; and all goes on once it may be written.
#[test]
fn a_disk_that_may_only_be_read_is_named() {
    // Elsewhere the folders that forbid it stand in for it.
    let Some(disk) = SmallDisk::mount(1 << 10) else { return };
    let dir = disk.path();
    let store = FileStore::create(dir, FileStoreOptions::default()).unwrap();
    assert_eq!(store.put("job/1", &[b"x"]), PutOutcome::Stored);
    let (node, _effects) = Node::create_with(dir, job::genesis("read"), job::SMALL).unwrap();
    let mut client = node.client();
    let mut worker = Owner::worker("w", &mut client);
    assert!(worker.publish(1, turn(1, 1), &mut client).1.is_ok());
    node.stop().unwrap();

    // A process that is just being started still holds what was open for writing.
    wait_for("a disk at rest", || disk.run("mount", &["-o", "remount,ro"]));
    let why = Node::open(dir).unwrap_err().to_string();
    assert!(why.contains("journal/lock") && why.contains("Read-only file system"), "{why}");
    assert_eq!(journal::read(dir).unwrap().catalog.gauges().turns, 1);
    let store = FileStore::open(dir, FileStoreOptions::default()).unwrap();
    assert_eq!(whole_objects(&store, 1), ["job/1"]);
    assert!(matches!(store.put("job/2", &[b"x"]), PutOutcome::Failed(_)));
    assert!(matches!(store.delete("job/1"), DeleteOutcome::Refused(_)));

    assert!(disk.run("mount", &["-o", "remount,rw"]));
    let (node, _effects, recovery) = Node::open(dir).unwrap();
    assert_eq!(recovery.cut_bytes, 0);
    node.stop().unwrap();
    assert_eq!(whole_objects(&store, 1), ["job/1"]);
}

/// Every object of a store, each of which must have this size and be readable.
fn whole_objects(store: &FileStore, bytes: usize) -> Vec<String> {
    let mut keys = Vec::new();
    store.list(&mut |key, _| keys.push(key.to_owned())).unwrap();
    for key in &keys {
        assert_eq!(store.get(key, &mut vec![0; bytes]), GetOutcome::Read, "{key}");
    }
    keys.sort();
    keys
}
