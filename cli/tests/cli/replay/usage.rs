//! What is printed where, what repeats, and how bad usage is refused.

use std::fs;

use serde_json::Value;

use super::traces::{FIVE, mooncake};
use crate::scene::Scene;

/// One line with one object on standard output, nothing on standard error.
#[test]
fn json_is_one_object_and_nothing_else() {
    let scene = Scene::with(FIVE);
    let ended = scene.run("replay trace.jsonl --json");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert_eq!(ended.out.matches('\n').count(), 1);
    assert!(ended.out.ends_with("}\n"));
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    for name in [
        "trace",
        "requests",
        "conversations",
        "workers",
        "turns_kept",
        "turns",
        "violations",
        "violation_texts",
        "restores",
        "tokens_saved",
        "bytes_retained",
        "bytes_peak",
        "left",
        "time",
    ] {
        assert!(report.get(name).is_some(), "no {name} in {report}");
    }
    assert_eq!((&report["requests"], &report["violations"]), (&Value::from(5), &Value::from(0)));
}

/// Every key of the JSON object is explained on the page of the main job.
#[test]
fn every_key_is_explained() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results/replay.md");
    let page = fs::read_to_string(path).unwrap();
    let report = Scene::with(FIVE).replay("--turns 1");
    let mut keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    keys.extend(report["time"].as_object().unwrap().keys());
    keys.extend(report["left"].as_object().unwrap().keys());
    keys.extend(report["left"]["lifts"]["retained"].as_object().unwrap().keys());
    for rows in ["timeline", "depths"] {
        keys.extend(report[rows][0].as_object().unwrap().keys());
    }
    let missing: Vec<_> = keys.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Without --json the table alone, with the figures of the report.
#[test]
fn the_table_has_the_figures() {
    let scene = Scene::with(FIVE);
    let ended = scene.run("replay trace.jsonl --workers 1 --turns 1 --bytes-per-checkpoint 256");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(ended.out.starts_with("Trace: trace.jsonl\n"), "{}", ended.out);
    let value = |name: &str| {
        let mut lines = ended.out.lines().filter_map(|line| line.trim().strip_prefix(name));
        lines.next().unwrap_or_else(|| panic!("no {name} in {}", ended.out)).trim().to_string()
    };
    for (name, expected) in [
        ("requests", "5"),
        ("conversations in the trace", "3"),
        ("turns", "4"),
        ("too short to keep", "1"),
        ("restored", "2"),
        ("of them with wrong bytes", "0"),
        ("nothing kept", "2"),
        ("prefill tokens saved", "2560 (52.9 %)"),
        ("written", "3"),
        ("kept already", "1"),
        ("collected", "1"),
        ("turns expired", "2"),
        ("retained", "2"),
        ("policy or operator:", "publish newer turns, lower a bound with Configure,"),
        ("crashes", "1"),
        ("invariant violations", "0"),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    assert!(!ended.out.contains('{') && !ended.out.contains('!'), "{}", ended.out);
    assert!(ended.out.lines().all(|line| line.trim_end() == line && line.len() < 80));
}

/// With one worker and a seed every figure but the time repeats; another seed is another trace.
#[test]
fn a_seed_repeats_and_another_differs() {
    let scene = Scene::in_memory();
    let report = &|seed: u32| {
        let words = "replay --workers 1 --bytes-per-checkpoint 128 --json --seed";
        let ended = scene.run(&format!("{words} {seed}"));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let mut report: Value = serde_json::from_str(&ended.out).unwrap();
        assert!(report.as_object_mut().unwrap().remove("time").is_some());
        report
    };
    let reports = std::thread::scope(|scope| {
        let running = [7, 7, 8].map(|seed| scope.spawn(move || report(seed)));
        running.map(|report| report.join().unwrap())
    });
    let [first, again, other] = reports;
    assert_eq!(first["trace"], "generated, seed 7");
    assert_eq!(first, again);
    assert_ne!(
        (&first["turns"], &first["input_tokens"]),
        (&other["turns"], &other["input_tokens"])
    );
}

/// The temporary folder is removed, whether the replay went well or not.
#[test]
fn temporary_folders_are_removed() {
    let scene = Scene::with(FIVE);
    scene.replay("");
    assert!(scene.tree("tmp").is_empty());
    scene.refuses("replay trace.jsonl --workers 0", 2, &["a whole number from 1 to 4094"]);
    scene.refuses("replay trace.jsonl --bytes-per-checkpoint 1", 2, &["at least 128 bytes"]);
    assert!(scene.tree("tmp").is_empty());
}

/// Without a place for temporary files the answer says what else there is.
#[test]
fn a_missing_temporary_folder_is_named() {
    let scene = Scene::with(FIVE);
    fs::remove_dir(scene.path("tmp")).unwrap();
    scene.refuses("replay trace.jsonl", 3, &["temporary folder", "tmp", "--data"]);
    scene.replay("--data job");
}

#[test]
fn bad_usage_is_refused() {
    let scene = Scene::with(FIVE);
    for (words, expected) in [
        ("", "Usage: pinfold"),
        ("repaly", "replay"),
        ("replay --turn-around", "--turn-around"),
        ("replay --turns", "--turns"),
        ("replay --turns -1", "'-1' for '--turns <N>': expected a whole number from 1 to 1024"),
        ("replay --turns many", "expected a whole number from 1 to 1024"),
        ("replay --turns 4294967296", "4294967296"),
        ("replay --workers 1.5", "expected a whole number from 1 to 4094"),
        ("replay --crash-every -3", "expected a whole number from 1 to 4294967295"),
        ("replay --job-bytes -5", "expected a whole number of bytes such as 65536"),
        ("replay --job-bytes -5KiB", "expected a whole number of bytes such as 65536"),
        ("replay --bytes-per-checkpoint -5", "expected a whole number of bytes"),
        ("replay --seed abc", "expected a whole number from 0 to 18446744073709551615"),
        ("replay --seed 0x1", "0x1"),
        ("replay one two", "two"),
        ("replay --resume", "--data"),
        ("replay trace.jsonl --turns 0", "--turns <N>': expected a whole number from 1 to 1024"),
        ("replay trace.jsonl --workers 0", "expected a whole number from 1 to 4094"),
        ("replay trace.jsonl --bytes-per-checkpoint 1", "at least 128 bytes"),
        ("replay trace.jsonl --bytes-per-checkpoint 18446744073709551615", "bytes"),
    ] {
        scene.refuses(words, 2, &[expected]);
        assert!(!scene.path("job").exists());
    }
    for words in ["--turns 0", "--workers 0", "--bytes-per-checkpoint 127"] {
        scene.refuses(&format!("replay trace.jsonl --data job {words}"), 2, &[]);
        assert!(!scene.path("job").exists(), "{words}");
    }
}

#[test]
fn help_explains_by_examples() {
    let scene = Scene::new();
    for words in ["replay --help", "replay -h"] {
        let ended = scene.run(words);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        for expected in [
            "Examples:",
            "Exit codes:",
            "pinfold replay trace.jsonl --turns 3",
            "pinfold replay --job-bytes 10MiB",
            "pinfold replay --crash-every 100",
            "pinfold replay --report replay.html",
            "--conversation-bytes <BYTES>",
            "--resume",
            "--json",
        ] {
            assert!(ended.out.contains(expected), "no {expected} in {}", ended.out);
        }
    }
    let ended = scene.run("--help");
    for expected in ["replay", "Exit codes:", "a promise was broken"] {
        assert!(ended.out.contains(expected), "no {expected} in {}", ended.out);
    }
    let ended = scene.run("--version");
    assert_eq!((ended.code, ended.out.starts_with("pinfold ")), (Some(0), true));
}

/// A bad row is refused with file, line and what was expected, before anything is written.
#[test]
fn a_bad_trace_is_refused_before_anything_is_written() {
    let scene = Scene::new();
    let good = mooncake(FIVE);
    for (from, to, expected) in [
        ("1536", "9999", "expected 20 hash_ids"),
        ("[9]", "[2]", "expected block 2 after block 1 as on line 1"),
        ("[20, 21]", "[20, -1]", "expected u64"),
        ("\"timestamp\": 3", "\"timestamp\": 0", "expected a timestamp of at least 2 ms"),
        ("\"timestamp\": 3, ", "", "missing field `timestamp`"),
        ("{\"timestamp\": 3", "[\"timestamp\": 3", "expected one JSON object"),
        ("[20, 21]}", "[20, 21]", "EOF"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        let line = 1 + good.lines().zip(bad.lines()).position(|(good, bad)| good != bad).unwrap();
        scene.write("bad.jsonl", &bad);
        let at = format!("bad.jsonl: line {line}: ");
        scene.refuses("replay bad.jsonl --data job", 2, &[&at, expected]);
        assert!(!scene.path("job").exists(), "{expected}");
    }
    scene.write("empty.jsonl", "\n\n");
    scene.refuses("replay empty.jsonl --data job", 2, &["empty.jsonl: "]);
    scene.refuses("replay none.jsonl --data job", 2, &["none.jsonl: "]);
    scene.refuses("replay tmp --data job", 2, &["tmp: "]);
    assert!(!scene.path("job").exists());
}

/// A report that cannot be written is no success.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_the_report_is_said() {
    let scene = Scene::with(FIVE);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = scene.command("replay trace.jsonl --json").stdout(full).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("the output cannot be written"), "{err}");
}

/// A prompt that no checkpoint can be planned for is bad input, named before anything is written.
#[test]
fn a_prompt_beyond_all_bounds_is_named() {
    let scene = Scene::with(FIVE);
    let blocks: Vec<String> = (1_000_000..2_000_000).map(|block| block.to_string()).collect();
    let row = format!(
        r#"{{"timestamp": 9, "input_length": 512000000, "output_length": 1, "hash_ids": [{}]}}"#,
        blocks.join(",")
    );
    let trace = format!("{}{row}\n", super::traces::mooncake(FIVE));
    scene.write("trace.jsonl", &trace);
    let requests = trace.lines().count();
    let expected = [&format!("request {requests} of the trace")[..], "too large"];
    scene.refuses("replay trace.jsonl --data job", 2, &expected);
    assert!(!scene.path("job").exists());
}
