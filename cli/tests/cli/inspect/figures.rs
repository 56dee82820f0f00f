//! `inspect`: every figure is what was done, and what the store holds.

use std::collections::BTreeMap;
use std::fs;

use pinfold_core::id::{ConversationId, Generation, Key, OwnerId};
use serde_json::{Value, json};

use super::job::KnownJob;
use crate::scene::Scene;

#[test]
fn the_totals_are_what_was_done() {
    let scene = Scene::in_memory();
    let job = KnownJob::new(&scene.path("job"));
    let all = scene.json("inspect job");
    let totals = json!({
        "checkpoints": 9,
        "bytes": 200 + 400 + 1000 + 50 + 3000 + 3001 + 3002 + 30 + 70,
        "bytes_retained": 200 + 400 + 1000 + 3001 + 3002,
        "bytes_pinned": 1000 + 30,
        "bytes_unscoped": 50,
        "bytes_in_doubt": 10,
        "bytes_quarantined": 3000,
        "turns": 5,
        "expired_turns": 2 + 1,
        "conversations": 4,
        "owners": 4,
        "pins": 2,
        "collectable": 2,
    });
    assert_eq!(all["totals"], totals);
    assert_eq!(all["namespace"], "known");
    assert_eq!(all["epoch"], job.node.job().epoch.to_string());
    assert_eq!(all["operator"], job.operator.id().to_string());
    let policy = json!({
        "turns": 2, "conversation_bytes": null, "job_bytes": null, "quarantine": "generation",
    });
    assert_eq!(all["policy"], policy);
    let records = job.node.client().inspect(|engine, _| engine.position()).unwrap();
    assert_eq!(all["journal"], json!({"records": records, "snapshot_records": 0, "torn": null}));
    let blockers: Vec<_> = all["blockers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["checkpoints"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("retained", 5),
        ("unscoped", 1),
        ("pinned", 2),
        ("waiting for shard", 1),
        ("in flight", 2),
        ("in doubt", 1),
        ("collectable", 1),
        ("collecting", 1),
        ("quarantined", 1),
        ("lost", 1),
    ];
    assert_eq!(blockers, expected);
}

#[test]
fn every_list_has_what_is_held() {
    let scene = Scene::in_memory();
    let job = KnownJob::new(&scene.path("job"));
    let all = scene.json("inspect job");
    let conversation = |name: &str, turns: u64, bytes: u64, expired: u64, forgotten: bool| {
        json!({
            "conversation": ConversationId::of_name(name).to_string(), "turns": turns,
            "bytes": bytes, "expired_turns": expired, "forgotten": forgotten,
        })
    };
    let conversations = [
        conversation("C", 2, 6003, 1, false),
        conversation("B", 1, 1000, 0, false),
        conversation("A", 2, 600, 1, false),
        conversation("D", 0, 0, 0, true),
    ];
    assert_eq!(all["conversations"], Value::from(conversations.to_vec()));
    let owners = all["owners"].as_array().unwrap();
    let owner = |row: &Value| {
        let pins = row["pins"].as_u64().unwrap();
        (row["owner"].as_str().unwrap().to_string(), pins, row["bytes_pinned"].as_u64().unwrap())
    };
    let first: Vec<_> = owners.iter().take(2).map(owner).collect();
    let name = |name: &str| OwnerId::of_name(name).to_string();
    assert_eq!(first, [(name("w1"), 1, 1000), (name("w3"), 1, 30)]);
    let roles = owners.iter().filter(|row| row["role"] == "operator").count();
    assert_eq!((owners.len(), roles), (4, 1));

    let pin = |id: pinfold_core::id::PinId, purpose: &str, checkpoint: u64, bytes: u64| {
        json!({
            "pin": id.to_string(), "owner": id.op.owner.to_string(),
            "incarnation": id.op.incarnation.0, "purpose": purpose, "checkpoint": checkpoint,
            "bytes": bytes, "in_doubt": purpose == "save",
        })
    };
    let mut pins = [pin(job.load, "load", 4, 1000), pin(job.doubted, "save", 9, 10)];
    pins.sort_by_key(|pin| pin["pin"].to_string());
    assert_eq!(all["pins"], Value::from(pins.to_vec()));

    let seen: Vec<_> = all["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let blockers = row["blockers"].as_array().unwrap().iter();
            let blockers: Vec<_> = blockers.map(|name| name.as_str().unwrap()).collect();
            let state = row["state"].as_str().unwrap().to_string();
            let (number, bytes) = (row["checkpoint"].as_u64(), row["bytes"].as_u64());
            (number.unwrap(), bytes.unwrap(), state, blockers.join(", "))
        })
        .collect();
    let row = |number, bytes, state: &str, blockers: &str| {
        (number, bytes, state.to_string(), blockers.to_string())
    };
    let expected = [
        row(2, 200, "published", "retained"),
        row(3, 400, "published", "retained"),
        row(4, 1000, "published", "retained, pinned, in flight, lost"),
        row(5, 50, "published", "unscoped"),
        row(6, 3000, "collecting", "collecting, quarantined"),
        row(7, 3001, "published", "retained"),
        row(8, 3002, "published", "retained"),
        row(9, 30, "prepared", "pinned, waiting for shard, in flight, in doubt"),
        row(10, 70, "failed", "collectable"),
    ];
    assert_eq!(seen, expected);
}

/// The tables have the same figures; long lists are cut and say so.
#[test]
fn the_tables_show_the_largest_first() {
    let scene = Scene::in_memory();
    let job = KnownJob::new(&scene.path("job"));
    let out = scene.prints("inspect job");
    let figure = |name: &str| {
        let mut lines = out.lines().filter_map(|line| line.trim().strip_prefix(name));
        let cells = lines.next().unwrap_or_else(|| panic!("no {name} in {out}"));
        let cells: Vec<_> = cells.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect();
        cells.join(" | ")
    };
    for (name, expected) in [
        ("bytes with a record", "10.5 KiB"),
        ("bytes retained", "7.4 KiB"),
        ("bytes pinned", "1.0 KiB | 1.0 PiB"),
        ("bytes unscoped", "50 B | 64.0 TiB"),
        ("bytes in doubt", "10 B | 64.0 TiB"),
        ("bytes quarantined", "2.9 KiB | 64.0 TiB"),
        ("checkpoints", "9"),
        ("collectable or collecting", "2"),
        ("live turns", "5"),
        ("expired turns", "3 | 268,435,456"),
        ("conversations", "4 | 16,777,216"),
        ("turns kept per conversation", "2"),
        ("waiting for shard", "1 | 30 B"),
    ] {
        assert_eq!(figure(name), expected, "{name}");
    }
    let line = |words: &[&str]| {
        let fits = |line: &&str| words.iter().all(|word| line.contains(word));
        assert!(out.lines().any(|line| fits(&line)), "no {words:?} in {out}");
    };
    let [load, doubted] = [job.load, job.doubted].map(|pin| pin.to_string());
    line(&[&load, "load", " 4 ", "1000 B"]);
    line(&[&doubted, "save", " 9 ", "10 B", "in doubt"]);
    line(&[&ConversationId::of_name("D").to_string(), "forgotten"]);
    line(&[" 6 ", "2.9 KiB", " 2 ", " 1"]);
    assert!(!out.contains("more;"), "{out}");
    assert!(out.lines().all(|line| line.trim_end() == line && line.len() < 100), "{out}");

    let cut = scene.prints("inspect job --top 1");
    let conversations = cut.split("Conversations").nth(1).unwrap();
    let mut lines = conversations.lines().skip(2);
    assert!(lines.next().unwrap().contains(&ConversationId::of_name("C").to_string()));
    assert_eq!(lines.next().unwrap(), "  and 3 more; --top 4 shows all");
    assert_eq!(scene.prints("inspect job --top 4"), out);
    assert!(scene.prints("inspect job --top 0").contains("  and 4 more; --top 4 shows all"));
}

/// What the records count is what lies in the store, checkpoint by checkpoint.
#[test]
fn the_bytes_are_those_in_the_store() {
    let scene = Scene::in_memory();
    let words = "replay --data job --workers 2 --bytes-per-checkpoint 256 --turns 2 --json";
    let report: Value = serde_json::from_str(&scene.prints(words)).unwrap();
    let all = scene.json("inspect job");
    assert_eq!(all["totals"]["bytes_retained"], report["bytes_retained"]);
    assert_eq!(all["totals"]["checkpoints"], report["checkpoints_retained"]);

    let root = scene.path("job/objects");
    let mut stored: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for path in scene.files("job") {
        let Ok(name) = path.strip_prefix(&root) else { continue };
        let Ok(key) = name.to_str().unwrap().parse::<Key>() else { continue };
        assert_eq!(all["epoch"], key.epoch.to_string());
        let Generation(number) = key.checkpoint.generation;
        let (objects, bytes) = stored.entry(number).or_default();
        *objects += 1;
        *bytes += fs::metadata(&path).unwrap().len();
    }
    let counted: BTreeMap<u64, (u64, u64)> = all["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let figure = |name: &str| row[name].as_u64().unwrap();
            (figure("checkpoint"), (figure("objects"), figure("bytes")))
        })
        .collect();
    assert!(counted.len() > 100);
    assert_eq!(counted, stored);
    let sum = |figure: &str| {
        let rows = all["conversations"].as_array().unwrap();
        rows.iter().map(|row| row[figure].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(sum("turns"), all["totals"]["turns"].as_u64().unwrap());
    assert!(sum("bytes") >= all["totals"]["bytes_retained"].as_u64().unwrap());
}
