//! Journals of earlier versions, as files: each stays readable for ever, and goes on.
//!
//! `tests/journals/NAME` holds a journal's files as they were written, and `expected.txt` with what
//! they mean, in figures that a later format has too. `UPDATE_EXPECT=1` writes what is observed;
//! the files themselves are never made anew.

#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use pinfold_core::catalog::Catalog;
use pinfold_host::journal::{self, JournalError};
use pinfold_host::node::{Node, NodeError};

fn journals() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("journals");
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 2, "{paths:?}");
    paths
}

/// A data folder with this journal in it.
fn copy(journal: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("journal")).unwrap();
    for entry in fs::read_dir(journal).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension != "txt") {
            fs::copy(&path, dir.path().join("journal").join(path.file_name().unwrap())).unwrap();
        }
    }
    dir
}

/// What a state means, in words.
fn meaning(records: u64, catalog: &Catalog) -> String {
    let job = catalog.job();
    let mut text = format!("{} of epoch {}, {records} records\n", job.namespace, job.epoch);
    writeln!(text, "{:?}\n{:?}", job.policy, catalog.gauges()).unwrap();
    for checkpoint in catalog.checkpoints() {
        let blockers = catalog.blockers(checkpoint).unwrap();
        writeln!(text, "{checkpoint}: {:?}", blockers.blockers).unwrap();
    }
    text
}

/// It means what it meant, from beside and as it is opened; and what is appended to it is there.
#[test]
fn old_journals_are_read_and_go_on() {
    for journal in journals() {
        let dir = copy(&journal);
        let reading = journal::read(dir.path()).unwrap();
        let seen = meaning(reading.records, &reading.catalog);
        let expected = journal.join("expected.txt");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&expected, &seen).unwrap();
        }
        assert_eq!(seen, fs::read_to_string(&expected).unwrap(), "{}", journal.display());
        for life in 1..4 {
            let (node, _effects, recovery) = Node::open(dir.path()).unwrap();
            assert_eq!(recovery.records, reading.records + life - 1, "one for each recovery");
            let check = node.client().inspect(|engine, _| engine.check()).unwrap();
            assert_eq!(check, Ok(()));
            node.stop().unwrap();
        }
        let after = journal::read(dir.path()).unwrap();
        assert_eq!(meaning(reading.records, &after.catalog), seen);
    }
}

/// Where each kind of file says its version: of a segment, of its first frame, of a snapshot.
const VERSIONS: [(&str, usize); 3] = [("log", 8), ("log", 44), ("snapshot", 8)];

/// A journal that a newer version wrote is refused by name, and left as it is.
#[test]
fn newer_journals_are_refused_by_name() {
    let mut refused = 0;
    for journal in journals() {
        for (ending, place) in VERSIONS {
            let dir = copy(&journal);
            let entries = fs::read_dir(dir.path().join("journal")).unwrap();
            let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
            paths.retain(|path| path.extension().is_some_and(|extension| extension == ending));
            paths.sort();
            let Some(path) = paths.pop() else { continue };
            let mut bytes = fs::read(&path).unwrap();
            bytes[place] = 2;
            fs::write(&path, &bytes).unwrap();
            let opened = Node::open(dir.path()).map(|_| ()).unwrap_err();
            assert!(
                matches!(
                    &opened,
                    NodeError::Journal(JournalError::UnknownVersion { version: 2, .. })
                ),
                "{opened}"
            );
            let text = opened.to_string();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(text.contains(&name) && text.contains("version 2"), "{text}");
            assert!(text.contains("open it with a version that does"), "{text}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
            assert!(journal::read(dir.path()).is_err());
            refused += 1;
        }
    }
    assert_eq!(refused, 5, "two kinds of version in each journal, and a snapshot's");
}
