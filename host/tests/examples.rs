//! The examples from outside: what they print, and what they say of a folder that they cannot use.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of an example, which cargo builds beside the tests of the whole package.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap().join("examples");
    let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "run `cargo build -p pinfold-host --examples` first");
    program
}

/// How an example ends, and what it says on standard output and standard error.
fn run(name: &str, dir: Option<&Path>) -> (Option<i32>, String, String) {
    let output = Command::new(program(name)).args(dir).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_folder_is_used_once_and_then_refused_in_words() {
    for (name, expected) in [
        ("life", "still here: retained; to lift it: publish newer turns"),
        ("worker", "2 objects are back: a page of attention and the state"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("job");
        let (code, out, err) = run(name, Some(&dir));
        assert_eq!((code, err.as_str()), (Some(0), ""), "{name}: {out}");
        assert!(out.contains(expected), "{name}: {out}");
        let (code, _, err) = run(name, Some(&dir));
        let words = format!("{name}: {} already holds a", dir.display());
        assert!(code == Some(1) && err.starts_with(&words), "{name}: {err}");
        assert!(!err.contains('{') && err.lines().count() == 1, "{name}: {err}");
    }
}

#[test]
fn without_a_folder_the_usage_is_said() {
    for name in ["life", "worker"] {
        let usage = format!("usage: {name} DIR, a folder that holds no job yet\n");
        assert_eq!(run(name, None), (Some(2), String::new(), usage));
    }
}
