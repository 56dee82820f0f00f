//! A store that fails while the journal holds: no promise is broken, and the replay is not called
//! whole either.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::traces::{FIVE, assert_figures};
use crate::scene::{Ended, Scene};

/// Runs `pinfold` where no file can be made larger than 2 MiB: room for the journal's first
/// segment, and none for a state of 4 MiB.
fn run_with_small_files(scene: &Scene, words: &str) -> Ended {
    let shell = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" \"$@\"";
    let program = scene.command(words);
    let mut command = Command::new("sh");
    command.args(["-c", shell]).arg(program.get_program()).args(program.get_args());
    command.current_dir(scene.path("")).env("TMPDIR", scene.path("tmp"));
    let output = command.output().unwrap();
    Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

const WORDS: &str = "replay trace.jsonl --workers 1 --bytes-per-checkpoint 4MiB";

/// The row of a table, with the note below it.
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = table.lines().skip_while(|line| !line.trim().starts_with(name));
    let row = lines.next().unwrap_or_else(|| panic!("no {name} in {table}"));
    [row].into_iter().chain(lines.take_while(|line| line.starts_with("    "))).collect()
}

#[cfg(unix)]
#[test]
fn saves_that_the_store_failed_are_no_success() {
    let scene = Scene::with(FIVE);
    let ended = run_with_small_files(&scene, &format!("{WORDS} --json --report page.html"));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let expected = [
        ("violations", 0),
        ("store_failures", 4),
        ("unsaved", 4),
        ("unsaved_expired", 0),
        ("checkpoints_written", 0),
        ("checkpoints_retained", 0),
        ("bytes_written", 0),
    ];
    assert_figures(&report, &expected);
    let reason = report["store_failure_text"].as_str().unwrap();
    assert!(reason.starts_with("put of replay/") && reason.contains("too large"), "{reason}");
    assert_eq!(report["restore_failure_text"], Value::Null);
    let page = fs::read_to_string(scene.path("page.html")).unwrap();
    for words in ["<p class=\"broken\">Incomplete: the store failed 4 saves.", "too large"] {
        assert!(page.contains(words), "no {words}");
    }
    assert!(!page.contains("Every promise held"));
}

#[cfg(unix)]
#[test]
fn the_table_says_why_a_save_failed() {
    let scene = Scene::with(FIVE);
    let ended = run_with_small_files(&scene, WORDS);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let found = row(&ended.out, "not kept: the store failed");
    assert!(found[0].ends_with(" 4") && found[1].trim() == "the first: put of", "{found:?}");
    assert!(found.last().unwrap().contains("too large"), "{found:?}");
    assert_eq!(row(&ended.out, "not kept: expired before").len(), 1);
    assert_eq!(row(&ended.out, "nothing is left"), ["  nothing is left"]);
}

/// A broken promise is worse than a failed save: it decides how the program ends.
#[cfg(unix)]
#[test]
fn a_broken_promise_comes_first() {
    let scene = Scene::with(FIVE);
    let ended = scene.run(&format!("{WORDS} --data job"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // A state that is gone is saved again, which fails here; and a stray breaks a promise.
    let states = scene.private("job");
    let of_first = |path: &str| path.contains("/0000000000000001/") && path.ends_with("00000001");
    let state = states.iter().find(|path| of_first(&path.to_string_lossy())).unwrap();
    fs::rename(state, state.with_file_name("0000000f")).unwrap();
    let ended = run_with_small_files(&scene, &format!("{WORDS} --data job --resume --json"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_figures(&report, &[("store_failures", 1), ("restore_failures", 1)]);
    let reason = report["restore_failure_text"].as_str().unwrap();
    assert!(reason.contains("is not in the store") || reason.contains("absent"), "{reason}");
}
