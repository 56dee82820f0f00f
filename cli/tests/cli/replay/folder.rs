//! The data folder: what it keeps, how a job goes on, and when it is refused untouched.

use std::fs;

use super::traces::{FIVE, assert_figures};
use crate::scene::Scene;

const JOURNAL: &str = "job/journal/00000000000000000000.log";

/// The journal's first segment without the room that is set aside behind its last frame.
fn journal(scene: &Scene) -> Vec<u8> {
    used(fs::read(scene.path(JOURNAL)).unwrap())
}

fn used(mut segment: Vec<u8>) -> Vec<u8> {
    segment.truncate(segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    segment
}

/// Makes these bytes the whole journal.
fn replace_journal(scene: &Scene, bytes: &[u8]) {
    for entry in fs::read_dir(scene.path("job/journal")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            fs::remove_file(path).unwrap();
        }
    }
    fs::write(scene.path(JOURNAL), bytes).unwrap();
}

#[test]
fn a_data_folder_keeps_journal_and_objects() {
    let scene = Scene::with(FIVE);
    scene.replay("--data deep/er/job");
    assert!(scene.path("deep/er").join(JOURNAL).metadata().unwrap().len() > 1000);
    assert_eq!(scene.private("deep/er/job").len(), 6);
    assert!(scene.tree("tmp").is_empty());
    // Nothing is left of puts: each object has its key.
    let attempts = scene.tree("deep/er/job/objects/.tmp");
    assert!(attempts.keys().all(|path| path.is_dir()));
}

/// A second job in a folder is refused, in words that say what to do, and nothing changes.
#[test]
fn a_job_is_not_begun_over_another() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let before = scene.tree("job");
    let expected = ["job holds a journal already", "--resume", "another folder"];
    scene.refuses("replay trace.jsonl --data job", 2, &expected);
    scene.refuses("replay --data job --turns 3 --json", 2, &expected);
    assert!(scene.tree("job") == before);
}

/// Going on with the same trace: every turn restores what is kept of itself, nothing is written.
#[test]
fn a_job_goes_on() {
    let scene = Scene::with(FIVE);
    let first = scene.replay("--data job");
    let objects = scene.private("job");
    let second = scene.replay("--data job --resume");
    assert_eq!([&first["another_trace"], &second["another_trace"]], [false, false]);
    let expected = [
        ("restores", 4),
        ("restore_misses", 0),
        ("restore_failures", 0),
        ("tokens_saved", 512 * (2 + 3 + 3 + 1)),
        ("checkpoints_written", 0),
        ("already_published", 4),
        ("bytes_written", 0),
        ("turns_expired", 0),
    ];
    assert_figures(&second, &expected);
    assert_eq!(second["bytes_retained"], first["bytes_retained"]);
    assert_eq!(scene.private("job"), objects);
}

/// A trace may go on where another ended: its conversations are known by their prefix.
#[test]
fn a_job_goes_on_with_another_trace() {
    let scene = Scene::with(&[(1024, &[1, 2])]);
    scene.replay("--data job");
    scene.write("trace.jsonl", &super::traces::mooncake(&[(1536, &[1, 2, 3])]));
    let report = scene.replay("--data job --resume");
    assert_figures(&report, &[("restores", 1), ("tokens_saved", 1024), ("checkpoints_written", 1)]);
    assert_eq!(report["another_trace"], true);
    let words = "replay trace.jsonl --bytes-per-checkpoint 256 --data job --resume";
    let ended = scene.run(&format!("{words} --report page.html"));
    let page = fs::read_to_string(scene.path("page.html")).unwrap();
    for text in [&ended.out, &page] {
        assert!(text.contains("another trace than the job began with"), "{text}");
        assert!(text.contains("equal block ids count as equal prefixes"), "{text}");
    }
}

/// Settings of an older pinfold name no trace, and nothing is said of it; ones that name nonsense
/// are damaged.
#[test]
fn settings_without_a_trace_are_taken_as_they_are() {
    let scene = Scene::with(&[(1024, &[1, 2])]);
    scene.replay("--data job");
    let written = fs::read_to_string(scene.path("job/replay.json")).unwrap();
    let tag = written.split('"').rev().nth(1).unwrap();
    assert!(tag.len() == 16 && u64::from_str_radix(tag, 16).is_ok(), "{written}");
    scene.write("trace.jsonl", &super::traces::mooncake(&[(1536, &[1, 2, 3])]));
    scene.write("job/replay.json", "{\"bytes_per_checkpoint\":256}");
    assert_eq!(scene.replay("--data job --resume")["another_trace"], false);
    for trace in ["7", "\"none\"", "[]"] {
        let damaged = format!("{{\"bytes_per_checkpoint\":256,\"trace\":{trace}}}");
        scene.write("job/replay.json", &damaged);
        let words = "replay trace.jsonl --bytes-per-checkpoint 256 --data job --resume";
        scene.refuses(words, 2, &["replay.json is damaged"]);
    }
}

/// Block ids mean something within one trace alone: another one may give an id to another prefix.
/// Then nothing is restored or kept for it, and nothing breaks.
#[test]
fn a_foreign_trace_breaks_nothing() {
    let scene = Scene::with(&[(1024, &[1, 2])]);
    scene.replay("--data job");
    scene.write("trace.jsonl", &super::traces::mooncake(&[(1024, &[3, 2])]));
    let report = scene.replay("--data job --resume");
    assert_figures(&report, &[("restores", 0), ("restore_failures", 1), ("unsaved", 1)]);
    assert_figures(&report, &[("unsaved_mismatches", 1), ("store_failures", 0)]);
    let reason = report["restore_failure_text"].as_str().unwrap();
    assert!(reason.contains("another trace gave its block ids to other prefixes"), "{reason}");
}

/// An expired turn stays expired (I7): going on with a job that keeps one turn serves all turns
/// again, and only the newest may be published.
#[test]
fn expired_turns_do_not_return() {
    let scene = Scene::with(FIVE);
    let first = scene.replay("--data job --turns 1");
    let objects = scene.private("job");
    for _ in 0..2 {
        let again = scene.replay("--data job --turns 1 --resume");
        let expected = [("checkpoints_written", 0), ("already_published", 2), ("unsaved", 2)];
        assert_figures(&again, &expected);
        assert_figures(&again, &[("unsaved_expired", 2)]);
        assert_eq!(again["bytes_retained"], first["bytes_retained"]);
        assert_eq!(scene.private("job"), objects);
    }
}

#[test]
fn going_on_needs_a_job() {
    let scene = Scene::with(FIVE);
    fs::create_dir(scene.path("empty")).unwrap();
    for folder in ["empty", "none"] {
        let words = format!("replay trace.jsonl --resume --data {folder}");
        scene.refuses(&words, 2, &[folder, "no journal", "leave out --resume"]);
    }
    assert!(scene.tree("empty").is_empty() && !scene.path("none").exists());
    scene.refuses("replay trace.jsonl --resume", 2, &["--data <DIR>"]);
}

/// The policy is the job's: another N is refused by name, and the objects stay.
#[test]
fn a_job_goes_on_under_its_own_policy() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job --turns 3");
    let objects = scene.tree("job/objects");
    let expected = ["keeps 3 turns", "not 2", "--turns 3"];
    scene.refuses("replay trace.jsonl --data job --resume --turns 2", 2, &expected);
    scene.refuses("replay trace.jsonl --data job --resume", 2, &["keeps 3 turns", "not 5"]);
    assert!(scene.tree("job/objects") == objects);
    scene.replay("--data job --turns 3 --resume");
}

/// States of another size are other bytes: the job is not gone on with, and told why.
#[test]
fn another_size_is_refused() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let before = scene.tree("job");
    let words = ["256 bytes", "512"];
    let line = "replay trace.jsonl --data job --resume --bytes-per-checkpoint 512";
    scene.refuses(line, 2, &words);
    assert!(scene.tree("job") == before);
}

/// A flipped bit in any frame but the last is damage: refused with the offset, nothing changed.
#[test]
fn a_damaged_journal_is_refused() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let whole = journal(&scene);
    for place in [40, whole.len() / 3, whole.len() / 2] {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        replace_journal(&scene, &damaged);
        let before = scene.tree("job");
        let expected = [JOURNAL, "damaged at byte ", "Nothing was changed", "new epoch"];
        scene.refuses("replay trace.jsonl --data job --resume", 1, &expected);
        assert!(scene.tree("job") == before, "byte {place}");
    }
    replace_journal(&scene, &whole);
    scene.replay("--data job --resume");
}

/// A journal of a later version, or no journal at all, is refused by what it is.
#[test]
fn a_strange_journal_is_refused() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let whole = journal(&scene);
    let mut other = whole.clone();
    other[0] = b'Q';
    for (bytes, expected) in [
        (&other[..], "is not a journal as it was written"),
        (&whole[..20], "is not a journal as it was written"),
        (b"", "is not a journal as it was written"),
    ] {
        replace_journal(&scene, bytes);
        scene.refuses("replay trace.jsonl --data job --resume", 1, &[JOURNAL, expected]);
        assert!(fs::read(scene.path(JOURNAL)).unwrap() == bytes);
    }
    replace_journal(&scene, &whole);
    fs::write(scene.path("job/journal/42.log"), &whole).unwrap();
    let expected = ["job/journal/42.log", "newer pinfold"];
    scene.refuses("replay trace.jsonl --data job --resume", 2, &expected);
}

/// A torn tail is cut, wherever it was torn, and the job goes on without what was in it.
#[test]
fn a_torn_tail_is_cut() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let whole = journal(&scene);
    for cut in [1, 7, 30] {
        replace_journal(&scene, &whole[..whole.len() - cut]);
        let report = scene.replay("--data job --resume");
        assert_figures(&report, &[("restores", 4), ("restore_failures", 0)]);
    }
    // Zeros behind the last frame, as a file system may leave them after a power cut.
    let padded = [&whole[..], &[0; 100]].concat();
    replace_journal(&scene, &padded);
    scene.replay("--data job --resume");
}

/// A journal that lost all but its header never began: it is as if there were none.
#[test]
fn a_journal_without_a_record_is_refused() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let whole = journal(&scene);
    replace_journal(&scene, &whole[..40]);
    scene.refuses("replay trace.jsonl --data job --resume", 2, &["job holds no journal"]);
}

/// A place where no folder can be is named, on standard error, and never a panic.
#[test]
fn an_impossible_folder_is_named() {
    let scene = Scene::with(FIVE);
    scene.write("file", "not a folder");
    let expected = "--data file: is a file, name a folder";
    scene.refuses("replay trace.jsonl --data file", 2, &[expected]);
    fs::create_dir_all(scene.path("half")).unwrap();
    scene.write("half/journal", "not a folder");
    fs::create_dir_all(scene.path("other")).unwrap();
    scene.write("other/objects", "not a folder");
    for (folder, named) in
        [("file/below", "file/below"), ("half", "half/journal"), ("other", "other/objects")]
    {
        let words = format!("replay trace.jsonl --data {folder}");
        scene.refuses(&words, 3, &[named]);
    }
    assert_eq!(fs::read(scene.path("file")).unwrap(), b"not a folder");
}

/// An object store that is not there any more is not an empty one.
#[test]
fn a_missing_store_is_not_an_empty_one() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let before = journal(&scene);
    fs::rename(scene.path("job/objects"), scene.path("elsewhere")).unwrap();
    scene.refuses("replay trace.jsonl --data job --resume", 3, &["job/objects"]);
    assert!(journal(&scene) == before);
    fs::rename(scene.path("elsewhere"), scene.path("job/objects")).unwrap();
    scene.replay("--data job --resume");
}

/// Two programs never write one journal: while it is locked, it is refused by name.
#[test]
fn a_folder_in_use_is_refused() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let lock = fs::OpenOptions::new().write(true).open(scene.path("job/journal/lock")).unwrap();
    lock.try_lock().unwrap();
    let before = scene.tree("job");
    let expected = ["job/journal/lock", "another process"];
    scene.refuses("replay trace.jsonl --data job --resume", 3, &expected);
    assert!(scene.tree("job") == before);
    drop(lock);
    scene.replay("--data job --resume");
}

/// A program that is killed while it serves: what was acknowledged is there, is restored with every
/// byte right, and the job goes on.
#[test]
fn a_killed_program_goes_on() {
    let scene = Scene::in_memory();
    scene.write("trace.jsonl", &super::traces::mooncake(FIVE));
    for (number, bytes) in [5_000, 40_000].into_iter().enumerate() {
        let words = "replay --workers 4 --seed 3 --bytes-per-checkpoint 256 --data";
        let mut running = scene.start(&format!("{words} job-{number}"));
        let journal = scene.path(&JOURNAL.replace("job", &format!("job-{number}")));
        let length = || fs::read(&journal).map_or(0, |segment| used(segment).len());
        while length() < bytes {
            assert!(running.try_wait().unwrap().is_none(), "it ended at {} bytes", length());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        running.kill().unwrap();
        running.wait().unwrap();
        let (_, report) = scene.judged(&format!("--data job-{number} --resume"));
        assert_figures(&report, &[("turns", 4), ("wrong_restores", 0), ("restore_failures", 0)]);
        let texts = report["violation_texts"].as_array().unwrap();
        let is_damage = |text: &&serde_json::Value| !text.as_str().unwrap().starts_with("L1: ");
        assert_eq!(texts.iter().find(is_damage), None);
        assert!(report["left"]["blockers"]["retained"].as_u64().unwrap() > 2, "{report}");
    }
}

/// Objects that are synced one by one are the same objects.
#[test]
fn objects_may_be_synced() {
    let scene = Scene::with(FIVE);
    let synced = scene.replay("--data job --sync-objects --seed 1");
    let plain = scene.replay("--data other --seed 1");
    for figure in ["bytes_written", "checkpoints_written", "bytes_retained", "restores"] {
        assert_eq!(synced[figure], plain[figure], "{figure}");
    }
    scene.replay("--data job --sync-objects --resume");
}

/// A journal that is missing counts as none: a new job has a new epoch and so new keys, and what an
/// old epoch left in the store is none of its business.
#[test]
fn objects_of_an_old_epoch_are_not_the_new_ones() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    fs::remove_dir_all(scene.path("job/journal")).unwrap();
    scene.replay("--data job");
}

/// More turns than the limit are bad input: exit 2, in words that name the option or the bound, and
/// nothing is written.
#[test]
fn too_many_turns_are_bad_input() {
    let scene = Scene::with(FIVE);
    scene.refuses("replay trace.jsonl --data job --turns 2000", 2, &["turns", "1024"]);
    assert!(!scene.path("job").exists());
}

/// More workers than a job may have owners are bad input, too.
#[test]
fn too_many_workers_are_bad_input() {
    let scene = Scene::with(FIVE);
    scene.refuses("replay trace.jsonl --data job --workers 5000", 2, &["workers"]);
    assert!(!scene.path("job").exists());
}

/// A refusal changes nothing, the journal included.
#[test]
fn another_policy_leaves_the_journal_as_it_is() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let before = scene.tree("job");
    scene.refuses("replay trace.jsonl --data job --resume --turns 3", 2, &["keeps 5 turns"]);
    assert!(scene.tree("job") == before);
}

/// A job that was killed before its genesis was durable can be begun again by the same command.
#[test]
fn a_journal_without_a_record_is_begun_again() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let whole = journal(&scene);
    replace_journal(&scene, &whole[..40]);
    fs::remove_dir_all(scene.path("job/objects/replay")).unwrap();
    scene.replay("--data job");
}

/// Nobody means to keep a job among the segments of another: the folder above it is named.
#[test]
fn a_journals_own_folder_is_no_place_for_a_job() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let before = scene.tree("job");
    for words in ["--data job/journal", "--data job/journal --resume"] {
        let words = format!("replay trace.jsonl {words}");
        scene.refuses(&words, 2, &["job/journal", "name the folder above it"]);
    }
    assert!(scene.tree("job") == before);
}

/// Settings that are missing are written by whoever goes on with the job.
#[test]
fn missing_settings_are_written_anew() {
    let scene = Scene::with(FIVE);
    scene.replay("--data job");
    let settings = scene.path("job/replay.json");
    let text = fs::read_to_string(&settings).unwrap();
    fs::rename(&settings, scene.path("job/replay.json.tmp")).unwrap();
    scene.replay("--data job --resume");
    assert_eq!(fs::read_to_string(&settings).unwrap(), text);
    assert!(!scene.path("job/replay.json.tmp").exists());
}
