//! Several processes write into one store.

use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::store::{ObjectStore, Presence};

use super::all_read;
use crate::process::{BODY_BYTES, Process, contested_keys};

/// B24: two writers of one file gave it the same temporary name, and each renamed a mixture of both
/// into place. Here two processes put the same keys: of each key one put is stored, and whole.
#[test]
fn b24_two_processes_write_one_key() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
    let mut writers = [1, 2].map(|body| Process::writer(dir.path(), body));
    writers.iter_mut().for_each(|writer| assert_eq!(writer.opened(), Ok(0)));
    writers.iter_mut().for_each(Process::begin);
    let stored = writers.each_mut().map(Process::stored);
    for key in contested_keys() {
        let by: Vec<u8> =
            (1..).zip(&stored).filter(|(_, keys)| keys.contains(&key)).map(|it| it.0).collect();
        let [winner] = by[..] else { panic!("{key} was stored by {by:?}") };
        all_read(&store, &[key], &[winner; BODY_BYTES]);
    }
    assert_eq!(store.remove_leftovers().unwrap(), 0);
}

/// A killed writer leaves no object that is not whole, and nothing in the way of the next one.
#[test]
fn b24_a_writer_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
    let mut writer = Process::writer(dir.path(), 1);
    writer.opened().unwrap();
    writer.begin();
    let last = contested_keys().nth(10).unwrap();
    while store.size(&last) == Presence::Absent {}
    writer.kill();
    let mut there = Vec::new();
    store.list(&mut |key, bytes| there.push((key.to_owned(), bytes))).unwrap();
    for (key, bytes) in &there {
        assert_eq!(*bytes, BODY_BYTES as u64, "{key}");
    }
    let mut next = Process::writer(dir.path(), 2);
    next.opened().unwrap();
    next.begin();
    assert_eq!(next.stored().len() + there.len(), contested_keys().count());
    store.remove_leftovers().unwrap();
}
