//! Byte budgets and crashes from the command line: what is taken, what is refused, what repeats.

use serde_json::Value;

use super::traces::{FIVE, Rows, assert_figures, figure};
use crate::scene::Scene;

/// A chain of four turns, and a turn of somebody else.
const CHAIN: Rows<'static> = &[
    (1024, &[1, 2]),
    (1536, &[1, 2, 3]),
    (2048, &[1, 2, 3, 4]),
    (1024, &[8, 9]),
    (2560, &[1, 2, 3, 4, 5]),
];

/// The bytes of private objects that a data folder holds.
fn held(scene: &Scene, data: &str) -> u64 {
    scene.private(data).iter().map(|path| path.metadata().unwrap().len()).sum()
}

#[test]
fn budgets_bound_what_the_folder_holds() {
    let scene = Scene::with(CHAIN);
    scene.replay("--data all");
    assert_eq!(scene.private("all").len(), 10);
    for (number, flag) in
        ["--conversation-bytes 1KiB", "--job-bytes 1024", "--job-bytes 2kib"].iter().enumerate()
    {
        let report = scene.replay(&format!("--data job-{number} {flag}"));
        let budget = if flag.contains('2') && !flag.contains("1024") { 2048 } else { 1024 };
        assert!(figure(&report, "turns_expired") > 0, "{report}");
        assert_eq!(figure(&report, "bytes_retained"), held(&scene, &format!("job-{number}")));
        // The conversation's budget leaves the other conversation's turn alone.
        let others = if flag.contains("conversation") { 1024 } else { 0 };
        assert!(held(&scene, &format!("job-{number}")) <= budget + others, "{flag}: {report}");
    }
}

/// What is larger than a budget is counted apart, in the table too; the replay goes well.
#[test]
fn what_is_too_large_is_counted_apart() {
    let scene = Scene::with(CHAIN);
    let report = scene.replay("--conversation-bytes 300 --data job");
    let expected = [("over_budget", 5), ("unsaved", 0), ("checkpoints_written", 0), ("turns", 5)];
    assert_figures(&report, &expected);
    let figures = (&report["bytes_retained"], &report["conversation_bytes"]);
    assert_eq!(figures, (&Value::from(0), &Value::from(300)));
    assert_eq!(scene.tree("job/objects").values().map(Vec::len).sum::<usize>(), 0);
    let ended = scene.run("replay trace.jsonl --job-bytes 1B");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let line = ended.out.lines().find(|line| line.contains("larger than a budget")).unwrap();
    assert!(line.ends_with(" 5"), "{line}");
}

#[test]
fn a_job_goes_on_under_its_own_budgets() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job --conversation-bytes 10KiB");
    let before = scene.tree("job");
    let expected = ["budget of 10240 bytes", "use --conversation-bytes 10240"];
    let again = "replay trace.jsonl --data job --resume";
    scene.refuses(again, 2, &expected);
    scene.refuses(&format!("{again} --conversation-bytes 1MiB"), 2, &["not 1048576 bytes"]);
    let words = "--conversation-bytes 10240 --job-bytes 1GiB";
    scene.refuses(&format!("{again} {words}"), 2, &["no budget", "leave out --job-bytes"]);
    assert!(scene.tree("job") == before);
    scene.replay("--data job --conversation-bytes 10240 --resume");
}

#[test]
fn bad_numbers_are_refused() {
    let scene = Scene::with(FIVE);
    let form = "expected a whole number of bytes such as";
    for (words, expected) in [
        ("--conversation-bytes 0", "--conversation-bytes must be at least 1"),
        ("--job-bytes 0KiB", "--job-bytes must be at least 1"),
        ("--crash-every 0", "expected a whole number from 1 to 4294967295"),
        ("--crash-every -1", "-1"),
        ("--crash-every often", "often"),
        ("--crash-every", "--crash-every"),
        ("--job-bytes 1.5GiB", form),
        ("--job-bytes 10MB", form),
        ("--conversation-bytes KiB", form),
        ("--bytes-per-checkpoint 64K", form),
        ("--bytes-per-checkpoint 16EiB", "less than 16EiB"),
        ("--bytes-per-checkpoint 0", "at least 128 bytes"),
    ] {
        scene.refuses(&format!("replay trace.jsonl --data job {words}"), 2, &[expected]);
        assert!(!scene.path("job").exists(), "{words}");
    }
}

/// A size with a unit is the same size without.
#[test]
fn a_size_may_have_a_unit() {
    let scene = Scene::with(FIVE);
    let report = |words: &str| {
        let ended = scene.run(&format!("replay trace.jsonl --workers 1 --json {words}"));
        let mut report: Value = serde_json::from_str(&ended.out).unwrap();
        report.as_object_mut().unwrap().remove("time");
        report
    };
    assert_eq!(report("--bytes-per-checkpoint 1KiB"), report("--bytes-per-checkpoint 1024"));
    assert_eq!(report("")["bytes_per_checkpoint"], 65_536);
}

/// Crashes again and again change nothing that is kept, and are all in the report.
#[test]
fn crashes_change_nothing_that_is_kept() {
    let scene = Scene::with(CHAIN);
    let calm = scene.replay("--turns 2 --data calm --crash-every 100");
    assert_figures(&calm, &[("crashes", 0), ("thrown_away", 0)]);
    let wild = scene.replay("--turns 2 --data wild --crash-every 1");
    assert_figures(&wild, &[("crashes", 4), ("thrown_away", 4)]);
    assert_eq!(wild["recovered_at"], serde_json::json!([1, 2, 3, 4]));
    assert_eq!(wild["time"]["recovery_us"].as_array().unwrap().len(), 4);
    for name in ["restores", "tokens_saved", "turns_expired", "bytes_retained", "bytes_written"] {
        assert_eq!(calm[name], wild[name], "{name}");
    }
    assert_eq!(held(&scene, "calm"), held(&scene, "wild"));
    let resumed = scene.replay("--turns 2 --data wild --crash-every 2 --resume");
    assert_eq!(resumed["recovered_at"], serde_json::json!([0, 2, 4]));
}

/// With one worker and a seed every figure but the time repeats, follow-ups and crashes included.
#[test]
fn budgets_and_crashes_repeat() {
    let scene = Scene::in_memory();
    let report = &|| {
        let words = "replay --workers 1 --bytes-per-checkpoint 128 --json --seed 7 \
                     --crash-every 200 --conversation-bytes 1KiB --job-bytes 40KiB";
        let ended = scene.run(words);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let mut report: Value = serde_json::from_str(&ended.out).unwrap();
        assert!(report.as_object_mut().unwrap().remove("time").is_some());
        report
    };
    let reports = std::thread::scope(|scope| {
        let running = [(); 3].map(|()| scope.spawn(report));
        running.map(|report| report.join().unwrap())
    });
    assert!(figure(&reports[0], "crashes") > 4 && figure(&reports[0], "turns_expired") > 500);
    assert_eq!(reports[0], reports[1]);
    assert_eq!(reports[0], reports[2]);
}

/// What was there, what was written, what went and what stays fit together, whatever the workers'
/// order, and also when every turn had expired before and so everything that is written goes again.
#[test]
fn bytes_add_up() {
    let scene = Scene::in_memory();
    let sum = |report: &Value, names: [&str; 2]| -> u64 {
        names.iter().map(|name| figure(report, name)).sum()
    };
    for (workers, crash_every) in [(1, 5000), (8, 900)] {
        let words = format!(
            "replay --workers {workers} --seed 5 --bytes-per-checkpoint 128 --turns 1 --json \
             --crash-every {crash_every} --job-bytes 40KiB --data job-{workers}"
        );
        for resume in ["", " --resume"] {
            let ended = scene.run(&format!("{words}{resume}"));
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let report: Value = serde_json::from_str(&ended.out).unwrap();
            let left = report["left"]["blockers"].as_object().unwrap();
            assert_eq!(left.keys().collect::<Vec<_>>(), ["retained"], "{report}");
            let came = sum(&report, ["bytes_found", "bytes_written"]);
            let went = sum(&report, ["bytes_collected", "bytes_retained"]);
            assert_eq!(came, went, "{workers} workers{resume}: {report}");
            if !resume.is_empty() {
                assert!(figure(&report, "unsaved_expired") > 400, "{report}");
                assert!(figure(&report, "bytes_unkept") > 50_000, "{report}");
            }
            let unkept = figure(&report, "checkpoints_written") == 0;
            assert!(!unkept || report["bytes_unkept"] == report["bytes_written"], "{report}");
        }
    }
}

/// A budget below one checkpoint keeps nothing, and the table says how large one is.
#[test]
fn a_budget_below_a_checkpoint_is_explained() {
    let scene = Scene::with(FIVE);
    let report = scene.replay("--job-bytes 300");
    assert_figures(&report, &[("over_budget", 4), ("checkpoints_retained", 0)]);
    let needed = figure(&report, "over_budget_bytes");
    assert!((300..1024).contains(&needed), "{needed}");
    // So much is enough for each of them alone.
    let report = scene.replay(&format!("--job-bytes {needed}"));
    assert_figures(&report, &[("over_budget", 0), ("over_budget_bytes", 0)]);
    let words = "replay trace.jsonl --workers 1 --bytes-per-checkpoint 256 --job-bytes 300";
    let ended = scene.run(words);
    let note =
        format!("    4 turns are larger than the budget: a checkpoint has about {needed} B\n");
    assert!(ended.out.contains(&note), "{}", ended.out);
    assert!(ended.out.contains("\n  nothing is left\n"), "{}", ended.out);
}
