//! A folder in which the program runs, and what can be seen of it from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// A folder of its own, removed in the end. The program's temporary folders go into `tmp` there.
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

impl Scene {
    pub(crate) fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// A scene in memory where the machine has that: a journal of many syncs is slow on a disk.
    pub(crate) fn in_memory() -> Self {
        Self::in_folder(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn in_folder(dir: TempDir) -> Self {
        fs::create_dir(dir.path().join("tmp")).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Every file below a folder with its bytes, and every folder with none.
    pub(crate) fn tree(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.path(name)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let bytes = if path.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
                if path.is_dir() {
                    folders.push(path.clone());
                }
                found.insert(path, bytes);
            }
        }
        found
    }

    /// Every file below a folder.
    pub(crate) fn files(&self, name: &str) -> Vec<PathBuf> {
        self.tree(name).into_keys().filter(|path| path.is_file()).collect()
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.args(words.split_whitespace());
        command.current_dir(self.dir.path()).env("TMPDIR", self.path("tmp"));
        command
    }

    /// Runs `pinfold` with these words.
    pub(crate) fn run(&self, words: &str) -> Ended {
        Self::end(self.command(words), words)
    }

    /// Runs a command of these words to its end.
    pub(crate) fn end(mut command: Command, words: &str) -> Ended {
        let output = command.output().unwrap();
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
}
