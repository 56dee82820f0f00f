//! Data folders as they are met in earnest: forbidden, linked, contested, and with something else
//! where a file or a folder should be.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pinfold_core::outcome::Outcome;
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::journal;
use pinfold_host::node::{Node, NodeError};
use pinfold_host::store::{ObjectStore, Presence, PutOutcome};

use crate::job::{self, Owner, turn};
use crate::process::Process;

const FIRST: &str = "journal/00000000000000000000.log";

/// A job with one turn, at rest.
fn job_in(dir: &Path) {
    let (node, _effects) = Node::create_with(dir, job::genesis("folders"), job::SMALL).unwrap();
    let mut client = node.client();
    let (_, published) = Owner::worker("w", &mut client).publish(1, turn(1, 1), &mut client);
    assert!(published.is_ok());
    node.stop().unwrap();
}

/// Goes on with it, publishes another turn, and says how many there are.
fn go_on_in(dir: &Path) -> u64 {
    let (node, _effects, _) = Node::open(dir).unwrap();
    let mut client = node.client();
    let mut worker = Owner::worker("another", &mut client);
    let (_, published) = worker.publish(2, turn(2, 2), &mut client);
    assert!(matches!(published, Ok(Outcome::Published { .. })), "{published:?}");
    node.stop().unwrap();
    journal::read(dir).unwrap().catalog.gauges().turns
}

/// Every file below a folder, with its bytes; folders have none.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
            found.insert(path.display().to_string(), Vec::new());
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap_or_default());
        }
    }
    found
}

/// Neither opens nor begins, names the path in both answers, and changes nothing; an empty lock
/// may be new.
fn is_refused(dir: &Path, named: &Path) {
    let before = contents(dir);
    let opened = Node::open(dir).map(drop).unwrap_err().to_string();
    let began = Node::create(dir, job::genesis("other")).map(drop).unwrap_err().to_string();
    for why in [opened, began] {
        assert!(why.contains(&named.display().to_string()), "{why}");
    }
    let mut after = contents(dir);
    let lock = dir.join("journal/lock").display().to_string();
    if !before.contains_key(&lock) {
        after.remove(&lock);
    }
    assert_eq!(after, before);
}

#[test]
fn a_file_in_place_of_the_journals_folder_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    fs::write(&path, b"notes").unwrap();
    is_refused(dir.path(), &path);
}

#[test]
fn a_folder_in_place_of_a_segment_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FIRST);
    fs::create_dir_all(&path).unwrap();
    is_refused(dir.path(), &path);
}

#[test]
fn a_folder_in_place_of_the_lock_is_named() {
    let dir = tempfile::tempdir().unwrap();
    job_in(dir.path());
    let path = dir.path().join("journal/lock");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    is_refused(dir.path(), &path);
}

#[test]
fn a_file_in_place_of_the_data_folder_is_named() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("data");
    fs::write(&dir, b"notes").unwrap();
    let error = Node::create(&dir, job::genesis("other")).unwrap_err().to_string();
    assert!(error.contains(&dir.display().to_string()), "{error}");
    let error = Node::open(&dir).unwrap_err().to_string();
    assert!(error.contains(&dir.display().to_string()), "{error}");
    assert_eq!(fs::read(&dir).unwrap(), b"notes");
}

#[test]
fn a_file_in_place_of_the_stores_folder_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("objects");
    fs::write(&path, b"notes").unwrap();
    for opened in [
        FileStore::create(dir.path(), FileStoreOptions::default()),
        FileStore::open(dir.path(), FileStoreOptions::default()),
    ] {
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"notes");
}

/// A folder that leads elsewhere is the folder it leads to, the lock included.
#[cfg(unix)]
#[test]
fn a_link_is_the_folder_it_leads_to() {
    let above = tempfile::tempdir().unwrap();
    let (real, link) = (above.path().join("real"), above.path().join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    job_in(&link);
    let (node, _effects, _) = Node::open(&real).unwrap();
    let error = Node::open(&link).unwrap_err().to_string();
    assert!(error.contains("link/journal/lock is locked"), "{error}");
    node.stop().unwrap();
    assert_eq!(go_on_in(&link), 2);
    assert_eq!(journal::read(&real).unwrap().catalog.gauges().turns, 2);
}

/// Paths are taken as they are, by this process and by another.
#[test]
fn a_path_may_have_spaces_and_any_letters() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("Über uns/данные 会話 ✓/it's \"here\"");
    let mut process = Process::node(&dir);
    process.opened().unwrap();
    let mut worker = Owner::worker("w", &mut process);
    assert!(worker.publish(1, turn(1, 1), &mut process).1.is_ok());
    process.kill();
    assert_eq!(go_on_in(&dir), 2);
    let store = FileStore::create(&dir, FileStoreOptions { sync_objects: true }).unwrap();
    assert_eq!(store.put("job/1", &[b"x"]), PutOutcome::Stored);
    let store = FileStore::open(&dir, FileStoreOptions::default()).unwrap();
    assert_eq!(store.size("job/1"), Presence::Present { bytes: 1 });
}

/// Two processes begin and open the same job at the same time: one has it, the other is told who.
#[test]
fn of_two_owners_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let mut both = [Process::node(dir.path()), Process::node(dir.path())];
        let opened = both.each_mut().map(Process::opened);
        let lost: Vec<_> = opened.iter().filter_map(|opened| opened.as_ref().err()).collect();
        let [why] = lost[..] else { panic!("round {round}: {opened:?}") };
        assert!(why.contains("journal/lock is locked"), "round {round}: {why}");
        let [first, second] = both;
        let (mut winner, loser) = if opened[0].is_ok() { (first, second) } else { (second, first) };
        loser.end();
        let mut worker = Owner::worker(&format!("w{round}"), &mut winner);
        let (_, published) = worker.publish(round, turn(round, 0), &mut winner);
        assert!(published.is_ok(), "round {round}: {published:?}");
        winner.kill();
    }
    let reading = journal::read(dir.path()).unwrap();
    assert_eq!(reading.catalog.gauges().turns, 20);
    reading.catalog.check().unwrap();
}

/// Who comes second changes no byte of the owner's.
#[test]
fn the_second_owner_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut owner = Process::node(dir.path());
    owner.opened().unwrap();
    let mut worker = Owner::worker("w", &mut owner);
    assert!(worker.publish(1, turn(1, 1), &mut owner).1.is_ok());
    let before = contents(dir.path());
    let why = Process::node(dir.path()).opened().unwrap_err();
    assert!(why.contains("journal/lock is locked"), "{why}");
    assert!(matches!(
        Node::create(dir.path(), job::genesis("other")),
        Err(NodeError::Journal(journal::JournalError::Locked { .. }))
    ));
    assert_eq!(contents(dir.path()), before);
    assert!(worker.publish(2, turn(2, 2), &mut owner).1.is_ok());
}

/// What a person without rights meets.
#[cfg(unix)]
mod rights {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;
    use crate::process::this_program;

    const NOBODY: u32 = 65_534;

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A folder that others may enter, and a program in it that they may run.
    fn for_others() -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        allow(dir.path(), 0o755);
        let program = dir.path().join("program");
        fs::copy(this_program(), &program).unwrap();
        (dir, program)
    }

    /// A node of a user who is not root: root may do everything.
    fn start(dir: &Path, program: &Path) -> Process {
        let user = fs::metadata(program).unwrap().uid();
        if user == 0 { Process::node_of(NOBODY, program, dir) } else { Process::node(dir) }
    }

    #[test]
    fn a_folder_that_may_not_be_written_is_named() {
        let (above, program) = for_others();
        let dir = above.path().join("data");
        fs::create_dir(&dir).unwrap();
        allow(&dir, 0o555);
        let why = start(&dir, &program).opened().unwrap_err();
        allow(&dir, 0o755);
        assert!(why.contains("data/journal") && why.contains("Permission denied"), "{why}");
        assert_eq!(contents(&dir), BTreeMap::new());
    }

    /// A journal that may be read and not written is refused as it is, and goes on afterwards.
    #[test]
    fn a_journal_that_may_not_be_written_is_named() {
        let (above, program) = for_others();
        let dir = above.path().join("data");
        job_in(&dir);
        let before = contents(&dir);
        let paths = [dir.join(FIRST), dir.join("journal/lock"), dir.join("journal"), dir.clone()];
        paths.iter().for_each(|path| allow(path, 0o555));
        let why = start(&dir, &program).opened().unwrap_err();
        paths.iter().for_each(|path| allow(path, 0o755));
        assert!(why.contains("journal/lock") && why.contains("Permission denied"), "{why}");
        assert_eq!(contents(&dir), before);
        assert_eq!(go_on_in(&dir), 2);
    }

    #[test]
    fn a_journal_that_may_not_be_read_is_named() {
        let (above, program) = for_others();
        let dir = above.path().join("data");
        job_in(&dir);
        allow(&dir.join("journal/lock"), 0o666);
        allow(&dir.join(FIRST), 0o000);
        let why = start(&dir, &program).opened().unwrap_err();
        allow(&dir.join(FIRST), 0o644);
        assert!(why.contains(FIRST) && why.contains("Permission denied"), "{why}");
        assert_eq!(go_on_in(&dir), 2);
    }
}
