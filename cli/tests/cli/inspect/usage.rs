//! How bad usage and bad folders are refused, what is left unchanged, and who has read enough.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::job::{KnownJob, create};
use crate::scene::Scene;

const VERBS: [&str; 4] = ["inspect job", "why job 1", "journal verify job", "journal dump job"];

/// Not a byte, name or time in the folder changes.
#[test]
fn nothing_is_changed() {
    let scene = Scene::in_memory();
    KnownJob::new(&scene.path("job")).node.stop().unwrap();
    let before = scene.job();
    for verb in VERBS {
        for json in ["", " --json"] {
            scene.prints(&format!("{verb}{json}"));
            assert_eq!(scene.job(), before, "{verb}");
        }
    }
}

/// A folder that may not be written is read like any other.
#[cfg(unix)]
#[test]
fn a_read_only_folder_is_read() {
    use std::os::unix::fs::PermissionsExt;

    let scene = Scene::in_memory();
    KnownJob::new(&scene.path("job")).node.stop().unwrap();
    let before = scene.job();
    let set = |[folder, file]: [u32; 2]| {
        for path in before.keys() {
            let mode = if path.is_dir() { folder } else { file };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set([0o555, 0o444]);
    for verb in VERBS {
        scene.prints(verb);
    }
    assert_eq!(scene.job(), before);
    set([0o755, 0o644]);
}

/// Verbs that only read never advise to create what is not there.
#[test]
fn a_folder_without_a_journal_is_bad_input() {
    let scene = Scene::in_memory();
    let refused = |dir: &str, expected: &str| {
        for verb in VERBS {
            let verb = verb.replace(" job", &format!(" {dir}"));
            scene.refuses(&verb, 2, &[expected]);
            assert!(!scene.run(&verb).err.contains("create"), "{verb}");
        }
    };
    refused("job", "job does not exist: check the path");
    assert!(!scene.path("job").exists());
    fs::create_dir_all(scene.path("job/journal")).unwrap();
    refused("job", "job holds no journal: check the path");
    assert_eq!(fs::read_dir(scene.path("job/journal")).unwrap().count(), 0);
    let (node, _effects) = create(&scene.path("job"), Default::default());
    node.stop().unwrap();
    refused("job/journal", "job/journal is the journal's own folder: name the folder above it");
    refused("job/journal/lock", "lock is a file: name the data folder, which holds `journal`");
}

/// What cannot be read is neither damaged nor whole.
#[test]
fn what_cannot_be_read_is_incomplete() {
    let scene = Scene::in_memory();
    let (node, _effects) = create(&scene.path("job"), Default::default());
    node.stop().unwrap();
    let path = scene.segments().remove(0);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    for verb in VERBS {
        scene.refuses(verb, 3, &["could not read", "00000000000000000000.log"]);
    }
}

/// A file of a newer version is neither damaged nor read.
#[test]
fn newer_files_need_a_newer_program() {
    let scene = Scene::in_memory();
    let (node, _effects) = create(&scene.path("job"), Default::default());
    node.stop().unwrap();
    let path = scene.segments().remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 2;
    fs::write(&path, bytes).unwrap();
    for verb in VERBS {
        scene.refuses(verb, 2, &["has version 2 at byte 8"]);
    }
    fs::write(scene.path("job/journal/index.log"), b"").unwrap();
    for verb in VERBS {
        scene.refuses(verb, 2, &["index.log", "newer pinfold"]);
    }
}

/// A program is told in JSON that there is nothing to judge, with the exit code of the words.
#[test]
fn programs_are_told_why_nothing_was_judged() {
    let scene = Scene::in_memory();
    let told = |code: i32| {
        let ended = scene.run("journal verify job --json");
        assert_eq!((ended.code, ended.out.matches('\n').count()), (Some(code), 1), "{ended:?}");
        let told: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(ended.err, format!("pinfold: {}\n", told["error"].as_str().unwrap()));
        let plain = scene.run("journal verify job");
        assert_eq!((plain.code, plain.out.as_str(), &plain.err), (Some(code), "", &ended.err));
        (told["verdict"].clone(), told["byte"].clone(), told["file"].clone())
    };
    assert_eq!(told(2), (json!("missing"), Value::Null, json!("job")));
    let (node, _effects) = create(&scene.path("job"), Default::default());
    node.stop().unwrap();
    let path = scene.segments().remove(0);
    let mut newer = fs::read(&path).unwrap();
    newer[8] = 99;
    fs::write(&path, newer).unwrap();
    let file = json!("job/journal/00000000000000000000.log");
    assert_eq!(told(2), (json!("another version"), json!(8), file.clone()));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(told(3), (json!("unreadable"), Value::Null, file));
}

#[test]
fn bad_usage_is_refused() {
    let scene = Scene::in_memory();
    for (words, expected) in [
        ("inspect", "<DIR>"),
        (
            "inspect job --top -1",
            "'-1' for '--top <N>': expected a whole number from 0 to 4294967295",
        ),
        ("inspect job --top 4294967296", "expected a whole number from 0 to 4294967295"),
        ("inspect job --top many", "'many' for '--top <N>': expected a whole number from 0"),
        (
            "why job -1",
            "'-1' for '<CHECKPOINT>': a checkpoint is named by its generation, a decimal",
        ),
        ("journal dump job --from -1", "number, a whole number from 0 to 18446744073709551615"),
        ("journal dump job --to x", "'x' for '--to <N>': expected a record's number"),
        ("inspect job other", "other"),
        ("why job", "<CHECKPOINT>"),
        ("journal", "Usage: pinfold journal"),
        ("journal repair job", "repair"),
        ("journal dump", "<DIR>"),
        ("journal verify job --from 1", "--from"),
    ] {
        scene.refuses(words, 2, &[expected]);
    }
}

#[test]
fn help_explains_by_examples() {
    let scene = Scene::in_memory();
    for (words, expected) in [
        ("inspect", "pinfold inspect ./job --top 100"),
        ("why", "pinfold why ./job 7"),
        ("journal verify", "pinfold journal verify ./job --json"),
        ("journal dump", "--from 52 --to 60"),
    ] {
        let help = scene.prints(&format!("{words} --help"));
        assert!(help.contains("Examples:") && help.contains(expected), "{help}");
        assert!(help.contains("--json"), "{help}");
    }
    let help = scene.prints("inspect --help").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("add up to more than the totals"), "{help}");
    let help = scene.prints("journal --help");
    assert!(help.contains("verify") && help.contains("dump"), "{help}");
    for words in ["inspect", "why", "journal", "journal verify", "journal dump"] {
        let help = scene.prints(&format!("{words} --help"));
        assert!(help.contains("Exit codes:\n  0  ") && help.contains("\n  3  "), "{help}");
    }
    let help = scene.prints("--help");
    for verb in ["inspect", "why", "journal", "or a journal is damaged"] {
        assert!(help.contains(verb), "{help}");
    }
}

/// Whoever closes the pipe has read enough.
#[test]
fn a_closed_pipe_is_no_error() {
    let scene = Scene::in_memory();
    let _job = KnownJob::new(&scene.path("job"));
    for verb in VERBS {
        for json in ["", " --json"] {
            let mut command = scene.command(&format!("{verb}{json}"));
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            drop(child.stdout.take());
            let output = child.wait_with_output().unwrap();
            let err = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{verb}");
        }
    }
}

/// Output that cannot be written is no success.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_the_output_is_said() {
    let scene = Scene::in_memory();
    let _job = KnownJob::new(&scene.path("job"));
    for verb in VERBS {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = scene.command(verb).stdout(full).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{err}");
        assert!(err.contains("the output cannot be written"), "{err}");
    }
}
