//! Traces, and what can be seen of their replays.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::scene::Scene;

/// Rows of a trace: tokens of the prompt, and its block ids.
pub(crate) type Rows<'a> = &'a [(u32, &'a [u64])];

/// A conversation of two turns, a request without a full block, the second turn's prompt again,
/// and a request of somebody else.
pub(crate) const FIVE: Rows<'static> =
    &[(1100, &[1, 2, 3]), (1600, &[1, 2, 4, 5]), (100, &[9]), (1536, &[1, 2, 4]), (600, &[20, 21])];

impl Scene {
    /// A scene with a trace in `trace.jsonl`.
    pub(crate) fn with(rows: Rows<'_>) -> Self {
        let scene = Self::new();
        scene.write("trace.jsonl", &mooncake(rows));
        scene
    }

    /// Starts `pinfold` with these words, unheard.
    pub(crate) fn start(&self, words: &str) -> Child {
        self.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
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

    /// The private objects that a data folder holds: all but the shared pages.
    pub(crate) fn private(&self, data: &str) -> Vec<PathBuf> {
        self.objects(data).into_iter().filter(|path| !is_shared(path)).collect()
    }

    /// The shared pages that a data folder holds.
    pub(crate) fn shared(&self, data: &str) -> Vec<PathBuf> {
        self.objects(data).into_iter().filter(|path| is_shared(path)).collect()
    }

    fn objects(&self, data: &str) -> Vec<PathBuf> {
        self.files(&format!("{data}/objects/replay"))
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
