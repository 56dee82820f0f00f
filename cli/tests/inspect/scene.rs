//! A folder for one test, and the program run in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde_json::Value;
use tempfile::TempDir;

/// A folder of its own, removed in the end; the job lies in `job` there.
pub(crate) struct Scene {
    dir: TempDir,
}

/// How the program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Files with their bytes and folders without, each with the time of its last change.
pub(crate) type Tree = BTreeMap<PathBuf, (Vec<u8>, SystemTime)>;

impl Scene {
    /// In memory where the machine has that: a journal of many syncs is slow on a disk.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.args(words.split_whitespace()).current_dir(self.dir.path());
        command
    }

    /// Runs `pinfold` with these words.
    pub(crate) fn run(&self, words: &str) -> Ended {
        let output = self.command(words).output().unwrap();
        let ended = Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        };
        assert!(!ended.err.contains("panicked"), "{words}: {}", ended.err);
        ended
    }

    /// Runs `pinfold`, which must succeed without a word on standard error; what it prints.
    pub(crate) fn prints(&self, words: &str) -> String {
        let ended = self.run(words);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{words}: {}", ended.out);
        ended.out
    }

    /// The same for one JSON object in one line.
    pub(crate) fn json(&self, words: &str) -> Value {
        let out = self.prints(&format!("{words} --json"));
        assert_eq!((out.matches('\n').count(), out.ends_with("}\n")), (1, true), "{out}");
        serde_json::from_str(&out).unwrap()
    }

    /// Runs `pinfold`, which must end so on standard error alone, in words that hold all of these.
    pub(crate) fn refuses(&self, words: &str, code: i32, expected: &[&str]) {
        let ended = self.run(words);
        assert_eq!((ended.code, ended.out.as_str()), (Some(code), ""), "{words}: {}", ended.err);
        for expected in expected {
            assert!(ended.err.contains(expected), "{words}: no {expected:?} in {}", ended.err);
        }
    }

    /// Everything in the folder of the job.
    pub(crate) fn tree(&self) -> Tree {
        let mut found = Tree::new();
        let mut folders = vec![self.path("job")];
        while let Some(folder) = folders.pop() {
            let changed = fs::metadata(&folder).unwrap().modified().unwrap();
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let changed = fs::metadata(&path).unwrap().modified().unwrap();
                    found.insert(path.clone(), (fs::read(&path).unwrap(), changed));
                }
            }
            found.insert(folder, (Vec::new(), changed));
        }
        found
    }

    /// The job's segments, in order.
    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("job/journal")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "log"));
        paths.sort();
        paths
    }
}

/// Changes one byte of a file.
pub(crate) fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Where the bytes of a file that are not zero end.
pub(crate) fn used(path: &Path) -> usize {
    fs::read(path).unwrap().iter().rposition(|byte| *byte != 0).unwrap() + 1
}
