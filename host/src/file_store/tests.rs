use tempfile::TempDir;

use super::*;
use crate::store::contract::contract;

const KEY: &str = "job/00e1/0abc/0001/0000/0000";

fn store() -> (TempDir, FileStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
    (dir, store)
}

fn keys(store: &FileStore) -> Vec<String> {
    let mut keys = Vec::new();
    store.list(&mut |key, _| keys.push(key.to_owned())).unwrap();
    keys.sort();
    keys
}

#[test]
fn keeps_the_contract() {
    contract(&store().1);
}

#[test]
fn keeps_the_contract_when_it_syncs() {
    let dir = tempfile::tempdir().unwrap();
    let options = FileStoreOptions { sync_objects: true };
    contract(&FileStore::create(dir.path(), options).unwrap());
}

/// Scenario B24: two processes in one folder keep the contract between them.
#[test]
fn two_stores_share_one_folder() {
    let (dir, first) = store();
    let second = FileStore::open(dir.path(), FileStoreOptions::default()).unwrap();
    contract(&first);
    contract(&second);
    assert_eq!(first.put(KEY, &[b"one"]), PutOutcome::Stored);
    assert!(matches!(second.put(KEY, &[b"two"]), PutOutcome::Failed(_)));
    assert_eq!(second.size(KEY), Presence::Present { bytes: 3 });
}

/// Nothing but our alphabet gets near the file system.
#[test]
fn any_other_text_is_no_key() {
    let (dir, store) = store();
    let (long_part, long_key) = ("a".repeat(256), ["a"; 600].join("/"));
    let many_parts = ["a"; 17].join("/");
    for bad in [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "../a",
        "a/../b",
        "a/./b",
        "A",
        "a_b",
        "a.b",
        "a\\b",
        "a b",
        "a\0b",
        "é",
        ".tmp/x",
        &long_part,
        &long_key,
        &many_parts,
    ] {
        assert!(matches!(store.put(bad, &[b"x"]), PutOutcome::Failed(_)), "{bad}");
        assert!(matches!(store.put_shared(bad, &[b"x"]), PutOutcome::Failed(_)), "{bad}");
        assert!(matches!(store.size(bad), Presence::Unknown(_)), "{bad}");
        assert!(matches!(store.get(bad, &mut [0]), GetOutcome::Unknown(_)), "{bad}");
        assert!(matches!(store.delete(bad), DeleteOutcome::Refused(_)), "{bad}");
    }
    assert_eq!(keys(&store), [""; 0]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn keys_at_the_bounds_are_taken() {
    let (_dir, store) = store();
    for good in ["a".repeat(255), ["a"; 16].join("/"), "-".to_owned()] {
        assert_eq!(store.put(&good, &[b"x"]), PutOutcome::Stored);
        assert_eq!(keys(&store), [good.as_str()]);
        assert_eq!(store.delete(&good), DeleteOutcome::Gone);
    }
}

/// How many attempts lie about.
fn attempts(dir: &Path) -> usize {
    let folders = fs::read_dir(dir.join("objects/.tmp")).unwrap();
    folders.map(|folder| fs::read_dir(folder.unwrap().path()).unwrap().count()).sum()
}

/// What a put that never ended leaves is no object, and can be removed.
#[test]
fn leftovers_are_no_objects() {
    let (dir, store) = store();
    fs::write(dir.path().join("objects/.tmp/3/1-2-3"), b"half").unwrap();
    assert_eq!(keys(&store), [""; 0]);
    assert_eq!(store.put(KEY, &[b"x"]), PutOutcome::Stored);
    assert_eq!(attempts(dir.path()), 1, "a put leaves nothing of its own");
    assert_eq!(store.remove_leftovers().unwrap(), 4);
    assert_eq!(keys(&store), [KEY]);
}

#[test]
fn failed_puts_leave_nothing() {
    let (dir, store) = store();
    assert_eq!(store.put(KEY, &[b"x"]), PutOutcome::Stored);
    assert!(matches!(store.put(KEY, &[b"y"]), PutOutcome::Failed(_)));
    assert!(matches!(store.put("job/00e1", &[b"y"]), PutOutcome::Failed(_)));
    assert!(matches!(store.put(&format!("{KEY}/1"), &[b"y"]), PutOutcome::Failed(_)));
    assert_eq!(attempts(dir.path()), 0);
    assert_eq!(keys(&store), [KEY]);
}

/// A key that begins others, or goes on behind an object, is no object itself.
#[test]
fn folders_and_what_lies_behind_objects_are_absent() {
    for sync_objects in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::create(dir.path(), FileStoreOptions { sync_objects }).unwrap();
        assert_eq!(store.put(KEY, &[b"x"]), PutOutcome::Stored);
        for absent in ["job/00e1", &format!("{KEY}/0001"), &format!("{KEY}/0001/0002")] {
            assert_eq!(store.size(absent), Presence::Absent);
            assert_eq!(store.get(absent, &mut [0]), GetOutcome::Absent);
            assert_eq!(store.delete(absent), DeleteOutcome::Gone);
        }
        assert_eq!(store.size(KEY), Presence::Present { bytes: 1 });
    }
}

#[test]
fn empty_folders_go_with_their_last_object() {
    let (dir, store) = store();
    let sibling = "job/00e1/0abc/0002/0000/0000";
    for key in [KEY, sibling] {
        assert_eq!(store.put(key, &[b"x"]), PutOutcome::Stored);
    }
    assert_eq!(store.delete(KEY), DeleteOutcome::Gone);
    assert!(!dir.path().join("objects/job/00e1/0abc/0001").exists());
    assert_eq!(keys(&store), [sibling]);
    assert_eq!(store.delete(sibling), DeleteOutcome::Gone);
    assert!(!dir.path().join("objects/job").exists());
    assert_eq!(store.put(KEY, &[b"x"]), PutOutcome::Stored);
}

/// Folders that come and go under their feet don't make puts fail.
#[test]
fn puts_and_deletes_in_one_folder_do_not_disturb_each_other() {
    for sync_objects in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::create(dir.path(), FileStoreOptions { sync_objects }).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for round in 0..100 {
                        let key = format!("job/00e1/{writer}-{round}");
                        assert_eq!(store.put(&key, &[b"x"]), PutOutcome::Stored);
                        assert_eq!(store.delete(&key), DeleteOutcome::Gone);
                    }
                });
            }
        });
        assert_eq!(keys(&store), [""; 0]);
    }
}

/// An unmounted store has lost nothing: no answer may say so.
#[test]
fn without_its_mark_nothing_is_absent_or_gone() {
    let (dir, store) = store();
    assert_eq!(store.put(KEY, &[b"x"]), PutOutcome::Stored);
    let (root, away) = (dir.path().join("objects"), dir.path().join("away"));
    fs::rename(&root, &away).unwrap();
    for mounted_over in [false, true] {
        if mounted_over {
            fs::create_dir(&root).unwrap();
        }
        assert!(matches!(store.size(KEY), Presence::Unknown(_)));
        assert!(matches!(store.get(KEY, &mut [0]), GetOutcome::Unknown(_)));
        assert!(matches!(store.delete(KEY), DeleteOutcome::Unknown(_)));
        assert!(matches!(store.put(KEY, &[b"x"]), PutOutcome::Failed(_)));
        assert!(matches!(store.put_shared(KEY, &[b"x"]), PutOutcome::Failed(_)));
        assert!(store.list(&mut |_, _| {}).is_err());
        let opened = FileStore::open(dir.path(), FileStoreOptions::default());
        assert!(matches!(opened, Err(FileStoreError::Missing { .. })));
    }
    fs::remove_dir(&root).unwrap();
    fs::rename(&away, &root).unwrap();
    assert_eq!(store.size(KEY), Presence::Present { bytes: 1 });
}

#[test]
fn create_keeps_a_store_that_is_there() {
    let (dir, store) = store();
    assert_eq!(store.put(KEY, &[b"x"]), PutOutcome::Stored);
    let again = FileStore::create(dir.path(), FileStoreOptions::default()).unwrap();
    assert_eq!(keys(&again), [KEY]);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let (dir, store) = store();
    let secret = dir.path().join("secret");
    fs::write(&secret, b"x").unwrap();
    std::os::unix::fs::symlink(&secret, dir.path().join("objects/link")).unwrap();
    assert!(matches!(store.size("link"), Presence::Unknown(_)));
    assert!(matches!(store.get("link", &mut [0]), GetOutcome::Unknown(_)));
    assert!(matches!(store.put("link", &[b"y"]), PutOutcome::Failed(_)));
    assert_eq!(keys(&store), [""; 0]);
    assert_eq!(store.delete("link"), DeleteOutcome::Gone);
    assert_eq!(fs::read(&secret).unwrap(), b"x");
}

/// A folder that may not be changed refuses; root may change any, and then there is nothing to see.
#[cfg(unix)]
#[test]
fn a_forbidden_delete_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let (dir, store) = store();
    assert_eq!(store.put("job/1", &[b"x"]), PutOutcome::Stored);
    let folder = dir.path().join("objects/job");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let forbidden = fs::write(folder.join("probe"), b"").is_err();
    let put = store.put("job/2", &[b"x"]);
    let outcome = store.delete("job/1");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    if forbidden {
        assert!(matches!(put, PutOutcome::Failed(_)), "{put:?}");
        assert!(matches!(outcome, DeleteOutcome::Refused(_)), "{outcome:?}");
        assert_eq!(store.size("job/1"), Presence::Present { bytes: 1 });
    }
}

/// A folder above that somebody else created, and that cannot be synced, leaves a put unknown; root
/// may open any, and then there is nothing to see.
#[cfg(unix)]
#[test]
fn stored_means_that_all_folders_above_are_synced() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::create(dir.path(), FileStoreOptions { sync_objects: true }).unwrap();
    let folder = dir.path().join("objects/job");
    fs::create_dir_all(folder.join("00e1")).unwrap();
    assert_eq!(store.put("job/00e1/1", &[b"x"]), PutOutcome::Stored);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o333)).unwrap();
    let forbidden = File::open(&folder).is_err();
    let (private, shared) =
        (store.put("job/00e1/2", &[b"x"]), store.put_shared("job/00e1/1", &[b"x"]));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    for put in [private, shared] {
        assert_eq!(matches!(put, PutOutcome::Unknown(_)), forbidden, "{put:?}");
    }
}

/// Reasons tell what was tried, where, and what came back.
#[test]
fn reasons_are_for_people() {
    let (dir, store) = store();
    fs::remove_dir_all(dir.path().join("objects/.tmp")).unwrap();
    let PutOutcome::Failed(why) = store.put(KEY, &[b"x"]) else { panic!("stored") };
    assert!(why.as_str().starts_with("could not create /"), "{why}");
    assert!(why.as_str().ends_with("No such file or directory (os error 2)"), "{why}");
}
