//! A replay's log, and what `verify-log` says of it.

use std::fs;

use serde_json::Value;

use super::traces::FIVE;
use crate::scene::Scene;

/// A replay with a log in `job.log`.
fn logged(words: &str) -> Scene {
    let scene = Scene::with(FIVE);
    scene.replay(&format!("--log job.log {words}"));
    scene
}

/// The log's text, changed.
fn change(scene: &Scene, change: impl FnOnce(&str) -> String) {
    let text = fs::read_to_string(scene.path("job.log")).unwrap();
    scene.write("job.log", &change(&text));
}

/// What `verify-log --json` says, and its exit code.
fn judged(scene: &Scene) -> (i32, Value) {
    let ended = scene.run("verify-log job.log --json");
    assert_eq!(ended.err, "");
    (ended.code.unwrap(), serde_json::from_str(&ended.out).unwrap())
}

#[test]
fn a_replay_writes_a_log_that_holds() {
    for words in ["", "--crash-every 1 --turns 1", "--job-bytes 600 --crash-every 2"] {
        let scene = logged(words);
        let (code, report) = judged(&scene);
        assert_eq!((code, &report["verdict"]), (0, &Value::from("held")), "{report}");
        assert_eq!(report["counts"]["compared"], report["counts"]["replies"]);
        let table = scene.run("verify-log job.log").out;
        assert!(table.starts_with("Read\n  lines"), "{table}");
        assert!(table.contains("\nHELD: every line is one that a correct run allows\n"), "{table}");
    }
}

#[test]
fn a_lie_is_named_with_its_line_and_its_rule() {
    let scene = logged("");
    let text = fs::read_to_string(scene.path("job.log")).unwrap();
    let settled = text.lines().position(|line| line.contains("\"ok\":{\"settled\"")).unwrap();
    let honest = text.lines().nth(settled).unwrap();
    let lie = honest.replace("quiesced_success", "in_doubt");
    assert_ne!(lie, honest);
    scene.write("job.log", &text.replacen(honest, &lie, 1));
    let line = settled + 1;
    let (code, report) = judged(&scene);
    let finding = &report["finding"];
    assert_eq!((code, &finding["rule"], &finding["line"]), (1, &"I8".into(), &line.into()));
    let ended = scene.run("verify-log job.log");
    assert_eq!(ended.code, Some(1));
    for words in [
        format!("VIOLATED at line {line} (n {}) by I8: a transfer in doubt keeps", line - 1),
        "  expected  {\"list\":[{\"ok\":{\"settled\":{\"evidence\":\"quiesced_success\"}}},"
            .to_string(),
    ] {
        assert!(ended.out.contains(&words), "{}", ended.out);
    }
}

#[test]
fn what_could_not_be_judged_is_said() {
    let scene = logged("");
    change(&scene, |text| {
        text.lines()
            .filter(|line| !line.starts_with("{\"n\":9,"))
            .fold(String::new(), |text, line| text + line + "\n")
    });
    let ended = scene.run("verify-log job.log");
    assert_eq!(ended.code, Some(3), "{}", ended.out);
    for words in [
        "Not judged\n",
        "  1  line that is missing, by a gap in n ",
        "First gap: between the lines 9 and 10, where n 9 is missing\n",
        "From line 10 on only the rules judged that need no state\n",
        "INCOMPLETE: nothing is known",
    ] {
        assert!(ended.out.contains(words), "no {words:?} in {}", ended.out);
    }
    let report = judged(&scene).1;
    assert_eq!(report["first_gap"], serde_json::json!({"line": 10, "first": 9, "last": 9}));
    assert_eq!(report["only_rules_from"], 10);
}

#[test]
fn a_resumed_job_is_logged_from_the_middle() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    scene.replay("--data job --resume --log job.log");
    let (code, report) = judged(&scene);
    assert_eq!((code, &report["from_genesis"]), (3, &Value::from(false)), "{report}");
}

#[test]
fn what_is_no_log_is_bad_input() {
    let scene = logged("");
    scene.refuses("verify-log trace.jsonl", 2, &["trace.jsonl: line 1: ", "unknown field"]);
    scene.refuses("verify-log nowhere", 2, &["nowhere: "]);
    scene.refuses("verify-log tmp", 2, &["tmp: is a folder, not a log"]);
    change(&scene, |text| text.replacen("\"n\":3,", "\"n\":2,", 1));
    scene.refuses("verify-log job.log", 2, &["line 4: n: expected more than 2, found 2"]);
    let ended = scene.run("verify-log job.log --json");
    assert_eq!(ended.code, Some(2));
    let refusal: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&refusal["verdict"], &refusal["line"]), (&"refused".into(), &4.into()));
    assert!(ended.err.contains(refusal["error"].as_str().unwrap()), "{}", ended.err);
    let ended = scene.run("verify-log nowhere --json");
    let refusal: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((ended.code, &refusal["verdict"]), (Some(2), &"unreadable".into()));
    // A log is never written over, nor the trace.
    let before = scene.tree("");
    for log in ["job.log", "trace.jsonl"] {
        let words = format!("replay trace.jsonl --data job --log {log}");
        let said = format!("the log {log}: it is there already, and no log is written over");
        scene.refuses(&words, 2, &[&said]);
    }
    scene.refuses("replay trace.jsonl --data job --log no/where", 2, &["the log no/where: "]);
    assert_eq!(scene.tree(""), before);
}

#[test]
fn the_help_has_examples_and_exit_codes() {
    let help = Scene::new().run("verify-log --help").out;
    for words in ["Exit codes:", "Examples:", "pinfold replay --log job.log", "docs/log-format.md"]
    {
        assert!(help.contains(words), "{help}");
    }
}
