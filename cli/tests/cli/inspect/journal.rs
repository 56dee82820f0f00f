//! `journal verify` and `journal dump`: every file judged, every record in words.

use std::fs::{self, OpenOptions};

use pinfold_core::catalog::Role;
use pinfold_core::journal::record::Header;
use pinfold_host::journal::JournalOptions;
use serde_json::{Value, json};

use super::files::{flip, used};
use super::job::{KnownJob, Owner, create, turn};
use crate::scene::Scene;

/// Many small segments, and no snapshot.
const SEGMENTS: JournalOptions =
    JournalOptions { first_segment_bytes: 1024, segment_bytes: 1024, snapshot_bytes: u64::MAX };

/// A job of so many turns in a journal of these sizes, closed again.
fn closed(scene: &Scene, turns: u64, options: JournalOptions) {
    let (node, _effects) = create(&scene.path("job"), options);
    let owner = Owner::register(&node, "w1", Role::Worker);
    for number in 0..turns {
        let name = number.to_string();
        owner.save(&name, 100, turn("A", &name));
    }
    node.stop().unwrap();
}

/// The journal's last record, which is also how many there are but one.
fn last(scene: &Scene) -> u64 {
    scene.json("inspect job")["journal"]["records"].as_u64().unwrap() - 1
}

#[test]
fn a_whole_journal_is_whole() {
    let scene = Scene::in_memory();
    closed(&scene, 20, SEGMENTS);
    let found = scene.json("journal verify job");
    assert_eq!((&found["verdict"], &found["damage"]), (&json!("whole"), &json!([])));
    assert_eq!((&found["torn"], &found["records"]), (&Value::Null, &json!(last(&scene) + 1)));
    let segments = scene.segments();
    let files: Vec<_> = found["files"].as_array().unwrap().iter().collect();
    let held = files.iter().filter(|file| file["holds"] == "segment");
    assert_eq!(held.count(), segments.len());
    assert!(segments.len() > 5);
    let mut next = 0;
    for (file, path) in files.iter().zip(&segments) {
        let number = |name: &str| file[name].as_u64().unwrap();
        assert_eq!(scene.path(file["file"].as_str().unwrap()), *path);
        assert_eq!((number("first_record"), number("used_bytes")), (next, used(path) as u64));
        assert_eq!(number("bytes"), fs::metadata(path).unwrap().len());
        next += number("records");
    }
    assert_eq!(next, last(&scene) + 1);
    let out = scene.prints("journal verify job");
    assert!(out.ends_with("\nEvery file is as it was written\n"), "{out}");
    // Room for the next segment is in every healthy job, and is called so.
    fs::write(scene.path("job/journal/next.tmp"), [0; 7]).unwrap();
    fs::write(scene.path("job/journal/snapshot.tmp"), [0; 7]).unwrap();
    let out = scene.prints("journal verify job");
    let line = |name: &str| out.lines().find(|line| line.contains(name)).unwrap().to_string();
    assert!(line("next.tmp").contains("room for the next segment"), "{out}");
    assert!(line("snapshot.tmp").contains("unfinished"), "{out}");
}

/// A torn end is exit code 0 and says what would be cut; nothing is.
#[test]
fn a_torn_end_is_told_and_left() {
    let scene = Scene::in_memory();
    closed(&scene, 3, JournalOptions::default());
    let path = scene.segments().remove(0);
    let length = used(&path) as u64 - 2;
    OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
    let before = scene.job();
    let found = scene.json("journal verify job");
    assert_eq!(found["verdict"], "torn");
    let torn = |name: &str| found["torn"][name].as_u64().unwrap();
    assert_eq!(torn("byte") + torn("bytes"), length);
    let out = scene.prints("journal verify job");
    let words = format!("{} bytes at byte {} of ", torn("bytes"), torn("byte"));
    for words in [words.as_str(), "The next opening cuts them", "or the file cut short"] {
        assert!(out.contains(words), "no {words:?} in {out}");
    }
    assert!(out.ends_with("Everything in front of the torn end is as it was written\n"), "{out}");
    let inspected = scene.json("inspect job");
    assert_eq!(inspected["journal"]["torn"], found["torn"]);
    assert!(scene.prints("inspect job").contains("torn, or being written"));
    assert_eq!(scene.job(), before);
}

/// Damage is exit code 1, with file and byte; the other verbs refuse by the same words.
#[test]
fn damage_has_a_place() {
    let scene = Scene::in_memory();
    closed(&scene, 20, SEGMENTS);
    let path = scene.segments().remove(2);
    flip(&path, Header::BYTES + 40);
    let name = path.file_name().unwrap().to_str().unwrap();
    let ended = scene.run("journal verify job --json");
    assert_eq!((ended.code, ended.err.as_str()), (Some(1), ""));
    let found: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&found["verdict"], &found["records"]), (&json!("damaged"), &Value::Null));
    let damage = found["damage"].as_array().unwrap();
    assert_eq!((damage.len(), &damage[0]["byte"]), (1, &json!(Header::BYTES)));
    assert!(damage[0]["file"].as_str().unwrap().ends_with(name));
    let damaged = |file: &&Value| file["holds"] == "damaged";
    assert_eq!(found["files"].as_array().unwrap().iter().filter(damaged).count(), 1);

    let ended = scene.run("journal verify job");
    assert_eq!((ended.code, ended.err.as_str()), (Some(1), ""));
    let words = format!("{name} is damaged at byte {}", Header::BYTES);
    assert!(ended.out.contains(&words), "{}", ended.out);
    assert!(ended.out.ends_with("The journal cannot be opened\n"), "{}", ended.out);
    scene.refuses("inspect job", 1, &[&words, "begin a new epoch"]);
    scene.refuses("why job 1", 1, &[&words]);
    // What is in front of the damage is shown.
    let ended = scene.run("journal dump job");
    let first: u64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    assert_eq!((ended.code, ended.out.lines().count() as u64), (Some(1), first));
    assert!(ended.err.contains(&words), "{}", ended.err);

    fs::remove_file(&path).unwrap();
    let words = format!("lacks the records from {first} on");
    let ended = scene.run("journal verify job");
    assert!(ended.code == Some(1) && ended.out.contains(&words), "{}", ended.out);
}

/// A small job has one segment: of that, too, what is in front of the damage is shown.
#[test]
fn one_damaged_segment_is_shown_up_to_the_damage() {
    let scene = Scene::in_memory();
    closed(&scene, 4, JournalOptions::default());
    let all = scene.prints("journal dump job");
    let path = scene.segments().remove(0);
    flip(&path, used(&path) / 2);
    let place = scene.run("journal verify job --json").out;
    let place: Value = serde_json::from_str(&place).unwrap();
    let byte = place["damage"][0]["byte"].as_u64().unwrap();
    assert!(byte > Header::BYTES as u64);
    let ended = scene.run("journal dump job");
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains(&format!("is damaged at byte {byte}")), "{}", ended.err);
    let shown = ended.out.lines().count();
    assert!(all.starts_with(&ended.out) && shown > 3, "{}", ended.out);
    assert!(shown < all.lines().count());
    let rows = scene.run("journal dump job --json");
    assert_eq!((rows.code, rows.out.lines().count()), (Some(1), shown));
}

#[test]
fn every_record_is_one_line_of_words() {
    let scene = Scene::in_memory();
    let job = KnownJob::new(&scene.path("job"));
    let out = scene.prints("journal dump job");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len() as u64, last(&scene) + 1);
    for (number, line) in lines.iter().enumerate() {
        let (found, words) = line.trim_start().split_once("  ").unwrap();
        assert_eq!(found, number.to_string());
        assert!(!words.contains('{') && line.len() < 140, "{line}");
    }
    let [w1, w2, w3] =
        job.workers.each_ref().map(|worker| worker.id().to_string()[..8].to_string());
    let doubted = format!("{w3}.4.{}.0", job.doubted.op.sequence);
    for words in [
        "genesis of job known, epoch ".to_string(),
        format!("{w1} registered as worker, incarnation 2"),
        format!("{w2}.3.1 prepared checkpoint 4 for shard 0: 1 shard, 2 objects, 1000 bytes, "),
        format!("{w1}.2.2 settled pin {w1}.2.1.0, shard 0: success"),
        format!("{w1}.2.4 released pin {w1}.2.1.0"),
        "published checkpoint 5 without a conversation".into(),
        "published checkpoint 3 for turn ".into(),
        " expired".into(),
        "handed out for deletion: objects 0 to 1 of checkpoint 1".into(),
        "deleted of checkpoint 1: 2 gone".into(),
        "deleted of checkpoint 6: 1 refused, 1 unknown".into(),
        format!("settled pin {doubted}, shard 0: in doubt"),
        "pinned checkpoint 4".into(),
        "marked checkpoint 4 lost: object 0/1 has wrong bytes".into(),
        "forgot conversation ".into(),
    ] {
        assert!(lines.iter().any(|line| line.contains(&words)), "no {words:?} in {out}");
    }
}

#[test]
fn records_are_chosen_by_number() {
    let scene = Scene::in_memory();
    let _job = KnownJob::new(&scene.path("job"));
    let all = scene.prints("journal dump job");
    let last = last(&scene);
    let lines = |from: usize, to: usize| {
        let chosen = all.lines().skip(from).take(to - from + 1);
        chosen.map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(scene.prints("journal dump job --from 3 --to 5"), lines(3, 5));
    assert_eq!(scene.prints("journal dump job --to 0"), lines(0, 0));
    let end = usize::try_from(last).unwrap();
    assert_eq!(scene.prints(&format!("journal dump job --from {last}")), lines(end, end));
    assert_eq!(scene.prints(&format!("journal dump job --to {}", u64::MAX)), all);
    let beyond = format!("journal dump job --from {}", last + 1);
    let words = format!("there is no record {}: the last one is {last}", last + 1);
    scene.refuses(&beyond, 2, &[&words]);
    scene.refuses("journal dump job --from 5 --to 4", 2, &["--from 5 is behind --to 4"]);
    scene.refuses("journal dump job --from x", 2, &["--from"]);
}

#[test]
fn programs_get_one_object_a_line() {
    let scene = Scene::in_memory();
    let job = KnownJob::new(&scene.path("job"));
    let out = scene.prints("journal dump job --json");
    let rows: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<_> = rows.iter().map(|row| row["record"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..=last(&scene)).collect::<Vec<_>>());
    assert_eq!(rows[0]["kind"], "genesis");
    assert!(rows.iter().all(|row| row["text"].as_str().is_some_and(|text| !text.is_empty())));
    let of = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of("prepared").len(), 10);
    assert_eq!(of("published").len(), 8);
    assert_eq!(of("registered").len(), 4);
    let pinned = of("pinned");
    assert_eq!((pinned.len(), &pinned[0]["checkpoints"]), (1, &json!([4])));
    assert_eq!(pinned[0]["owner"], job.workers[0].id().to_string());
    assert_eq!(pinned[0]["operation"], job.load.op.sequence);
    let settled = of("settled");
    assert!(settled.iter().any(|row| row["pin"] == job.doubted.to_string()));
    let fourth = of("published").into_iter().find(|row| row["checkpoints"] == json!([4]));
    let id = pinfold_core::id::ConversationId::of_name("B").to_string();
    assert_eq!(fourth.unwrap()["conversation"], id);
}

/// Records that a snapshot stands for are said to be in it.
#[test]
fn replaced_records_are_said_to_be_gone() {
    let scene = Scene::in_memory();
    let options = JournalOptions { snapshot_bytes: 2048, ..SEGMENTS };
    let (node, _effects) = create(&scene.path("job"), options);
    let owner = Owner::register(&node, "w1", Role::Worker);
    let mut number = 0;
    while node.snapshots().taken == 0 {
        let name = number.to_string();
        owner.save(&name, 100, turn("A", &name));
        number += 1;
        assert!(number < 10_000, "{:?}", node.snapshots());
    }
    node.stop().unwrap();
    let inspected = scene.json("inspect job");
    let gone = inspected["journal"]["snapshot_records"].as_u64().unwrap() - 1;
    assert!(gone > 0);
    let out = scene.prints("journal dump job");
    let mut lines = out.lines();
    let words = format!("records 0 to {gone} are in the snapshot");
    assert_eq!(lines.next(), Some(words.as_str()));
    assert!(lines.next().unwrap().trim_start().starts_with(&format!("{}  ", gone + 1)));
    assert_eq!(lines.count() as u64, last(&scene) - gone - 1);
    assert_eq!(scene.prints("journal dump job --to 1"), "records 0 to 1 are in the snapshot\n");
    assert_eq!(scene.prints("journal dump job --from 1 --to 1"), "record 1 is in the snapshot\n");
    let row = scene.json("journal dump job --from 1 --to 2");
    assert_eq!(
        (&row["kind"], &row["first"], &row["last"]),
        (&json!("in snapshot"), &json!(1), &json!(2))
    );
    let found = scene.json("journal verify job");
    assert_eq!(found["snapshot_records"], gone + 1);
    let snapshot = |file: &&Value| file["holds"] == "snapshot";
    assert_eq!(found["files"].as_array().unwrap().iter().filter(snapshot).count(), 1);
    // Damage of the snapshot is damage.
    let file = found["files"].as_array().unwrap().iter().find(snapshot).unwrap();
    let path = scene.path(file["file"].as_str().unwrap());
    flip(&path, 60);
    let ended = scene.run("journal verify job");
    assert_eq!(ended.code, Some(1));
    assert!(ended.out.contains("the snapshot is damaged"), "{}", ended.out);
}
