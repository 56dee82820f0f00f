//! A folder in which the program runs, and what can be seen of it from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Rows of a trace: tokens of the prompt, and its block ids.
pub(crate) type Rows<'a> = &'a [(u32, &'a [u64])];

/// A conversation of two turns, a request without a full block, the second turn's prompt again,
/// and a request of somebody else.
pub(crate) const FIVE: Rows<'static> =
    &[(1100, &[1, 2, 3]), (1600, &[1, 2, 4, 5]), (100, &[9]), (1536, &[1, 2, 4]), (600, &[20, 21])];

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

    /// A scene in memory where the machine has that: a journal of thousands of syncs is slow on a
    /// disk.
    pub(crate) fn in_memory() -> Self {
        Self::in_folder(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn in_folder(dir: TempDir) -> Self {
        fs::create_dir(dir.path().join("tmp")).unwrap();
        Self { dir }
    }

    /// A scene with a trace in `trace.jsonl`.
    pub(crate) fn with(rows: Rows<'_>) -> Self {
        let scene = Self::new();
        scene.write("trace.jsonl", &mooncake(rows));
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
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

    /// Starts `pinfold` with these words, unheard.
    pub(crate) fn start(&self, words: &str) -> Child {
        self.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.args(words.split_whitespace());
        command.current_dir(self.dir.path()).env("TMPDIR", self.path("tmp"));
        command
    }

    /// Replays `trace.jsonl` with one worker and small checkpoints; everything must hold.
    pub(crate) fn replay(&self, words: &str) -> Value {
        let (code, report) = self.judged(words);
        assert_eq!((code, &report["violations"]), (0, &Value::from(0)), "{report}");
        report
    }

    /// The same, whatever the replay ends with.
    pub(crate) fn judged(&self, words: &str) -> (i32, Value) {
        let fixed = "replay trace.jsonl --workers 1 --bytes-per-checkpoint 256 --json";
        let ended = self.run(&format!("{fixed} {words}"));
        assert_eq!(ended.err, "", "{words}");
        (ended.code.unwrap(), serde_json::from_str(&ended.out).unwrap())
    }

    /// Runs `pinfold`, which must refuse on standard error alone, in words that hold all of these.
    pub(crate) fn refuses(&self, words: &str, code: i32, expected: &[&str]) {
        let ended = self.run(words);
        assert_eq!((ended.code, ended.out.as_str()), (Some(code), ""), "{words}: {}", ended.err);
        for expected in expected {
            assert!(ended.err.contains(expected), "{words}: no {expected:?} in {}", ended.err);
        }
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

    /// The private objects that a data folder holds: all but the shared pages.
    pub(crate) fn private(&self, data: &str) -> Vec<PathBuf> {
        self.objects(data).into_iter().filter(|path| !is_shared(path)).collect()
    }

    /// The shared pages that a data folder holds.
    pub(crate) fn shared(&self, data: &str) -> Vec<PathBuf> {
        self.objects(data).into_iter().filter(|path| is_shared(path)).collect()
    }

    fn objects(&self, data: &str) -> Vec<PathBuf> {
        let below = self.tree(&format!("{data}/objects/replay"));
        below.into_keys().filter(|path| path.is_file()).collect()
    }
}

fn is_shared(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "shared")
}

/// Requests a millisecond apart, in the format of the Mooncake traces.
pub(crate) fn mooncake(rows: Rows<'_>) -> String {
    let row = |(number, (tokens, blocks)): (usize, &(u32, &[u64]))| {
        format!(
            "{{\"timestamp\": {number}, \"input_length\": {tokens}, \"output_length\": 5, \
             \"hash_ids\": {blocks:?}}}\n"
        )
    };
    rows.iter().enumerate().map(row).collect()
}

/// A report's figure.
pub(crate) fn figure(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("no {name} in {report}"))
}

/// Fails with the name of each figure that is not what was computed by hand.
pub(crate) fn assert_figures(report: &Value, expected: &[(&str, u64)]) {
    let wrong: Vec<_> = expected
        .iter()
        .map(|(name, expected)| (name, expected, figure(report, name)))
        .filter(|(_, expected, found)| *expected != found)
        .collect();
    assert!(wrong.is_empty(), "(figure, expected, found): {wrong:?} in {report}");
}
