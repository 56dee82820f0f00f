//! An operator's ways out.

use pinfold_core::catalog::Command;
use pinfold_core::engine::Effect;
use pinfold_core::id::{CheckpointId, ConversationId, EndpointId, ObjectId, OwnerId, ShardIndex};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::store::{ObjectStore, PutOutcome};

use super::{Served, eventually, fail, prepare};
use crate::scene::Scene;

#[test]
fn a_dead_workers_pins_end_by_proof_alone() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --listen 127.0.0.1:0 --descriptor d.json");
    let worker = served.owner("w7");
    let (first, _) = prepare(&worker, 1);
    prepare(&worker, 2);
    let bench = "worker-bench --seconds 1 --descriptor d.json";
    scene.refuses(bench, 2, &["holds 2 checkpoints", "Nothing was done", "--yes"]);
    let (id, incarnation) = worker.identity();
    let settle = format!("settle {first} failed --descriptor d.json");
    scene.refuses(&settle, 2, &["nothing was done", "nothing touches its memory", "--yes"]);
    assert!(scene.prints(&format!("{settle} --dry-run")).contains("By that you say"));
    assert_eq!(
        scene.prints(&format!("{settle} --yes")),
        "settled: QuiescedFailure stands\nand its pin is released\n"
    );
    let doubt = scene.json(&format!("doubt {first} --descriptor d.json --dry-run"));
    assert_eq!((&doubt["done"], &doubt["answer"]), (&false.into(), &serde_json::Value::Null));
    let fence = format!("fence w7 {incarnation} --descriptor d.json --yes");
    assert_eq!(scene.prints(&fence), "fenced: 1 pins end\n");
    let again = scene.json(&format!("fence {id} {incarnation} --descriptor d.json --yes"));
    assert_eq!(again["done"], true);
    let unknown = scene.run("fence w8 1 --descriptor d.json --yes");
    assert_eq!(unknown.code, Some(1), "{}", unknown.err);
    assert!(unknown.out.starts_with("refused: "), "{}", unknown.out);
    assert!(worker.ask(Command::Collect { limit: 1 }).unwrap().is_err(), "it is barred");
    // Each line is written right after its answer.
    let read = || std::fs::read_to_string(scene.path("job/audit.jsonl")).unwrap();
    eventually(|| read().lines().count() == 5);
    let audit = read();
    let lines: Vec<serde_json::Value> =
        audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verbs: Vec<_> = lines
        .iter()
        .map(|it| it["command"].as_object().unwrap().keys().next().unwrap().as_str())
        .collect();
    assert_eq!(verbs, ["settle", "release", "fence", "fence", "fence"], "{audit}");
    assert_eq!(lines[0]["answer"]["ok"]["settled"]["evidence"], "quiesced_failure", "{audit}");
    assert_eq!(lines[2]["command"]["fence"]["owner"], id.to_string());
    assert!(lines[4]["answer"]["refused"] == "unknown_owner", "{audit}");
    assert!(lines[0]["at"].as_str().unwrap().ends_with('Z'), "{audit}");
    for _ in 0..100 {
        if scene.json("inspect --descriptor d.json")["pins"] == serde_json::json!([]) {
            let retired = scene.run("retire w7 --descriptor d.json --yes");
            assert_eq!(retired.code, Some(0), "{}{}", retired.out, retired.err);
            return;
        }
    }
    panic!("its pins never end");
}

/// A load takes everything away that it brought, so that the next one finds the job as the first.
#[test]
fn a_load_leaves_nothing_behind() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --listen 127.0.0.1:0 --turns 64");
    let at = format!("--server {}", served.url());
    for _ in 0..2 {
        let report = scene.json(&format!("worker-bench --clients 4 --seconds 1 {at}"));
        assert!(report["cycles"].as_u64().unwrap() > 0, "{report}");
        let held = scene.json(&format!("inspect {at}"));
        assert_eq!(held["checkpoints"], serde_json::json!([]), "{held}");
        assert_eq!(held["pins"], serde_json::json!([]), "{held}");
    }
}

#[test]
fn what_is_kept_can_be_changed() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --listen 127.0.0.1:0 --turns 4");
    let at = format!("--server {}", served.url());
    let configure = format!("configure --turns 2 --job-bytes 1MiB --yes {at}");
    scene.prints(&configure);
    let policy = scene.json(&format!("inspect {at}"))["policy"].clone();
    assert_eq!((&policy["turns"], &policy["job_bytes"]), (&2.into(), &1_048_576.into()));
    scene.prints(&format!("configure --job-bytes none --yes {at}"));
    let policy = scene.json(&format!("inspect {at}"))["policy"].clone();
    assert_eq!((&policy["turns"], &policy["job_bytes"]), (&2.into(), &serde_json::Value::Null));
    let refused = scene.run(&format!("configure --turns 0 --yes {at}"));
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    let conversation = ConversationId::of_name("c");
    assert_eq!(scene.prints(&format!("forget {conversation} --yes {at}")), "done: Forgotten\n");
    let all = scene.json(&format!("inspect {at}"));
    assert_eq!(all["conversations"][0]["forgotten"], true);
    scene.refuses(&format!("drop 5 --yes {at}"), 2, &["was never minted"]);
    let nobody = "fence w 1 --yes --server http://127.0.0.1:1";
    let ended = scene.run(nobody);
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert!(ended.err.contains("no answer from http://127.0.0.1:1"), "{}", ended.err);
}

/// An audit names what nobody counts, and sweeps it; a collector deletes what nothing holds.
#[test]
fn a_store_is_audited_swept_and_emptied() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --listen 127.0.0.1:0 --namespace audited");
    let store = FileStore::create(&scene.path("objects"), FileStoreOptions::default()).unwrap();
    let worker = served.owner("w");
    let (pin, checkpoint) = prepare(&worker, 1);
    let job = served.said["epoch"].as_str().unwrap();
    let effect = |checkpoint, objects: u32| {
        let object = |index| ObjectId { shard: ShardIndex(0), index };
        Effect::Delete { by: pin.op, checkpoint, objects: (0..objects).map(object).collect() }
    };
    // The generation was minted, and never for this endpoint.
    let never = CheckpointId { endpoint: EndpointId::from_u128(9), ..checkpoint };
    let genesis = Genesis {
        namespace: "audited".parse().unwrap(),
        epoch: job.parse().unwrap(),
        operator: OwnerId::of_name("operator"),
        policy: Policy::default(),
        limits: Limits::default(),
    };
    for effect in [effect(checkpoint, 2), effect(never, 1)] {
        for key in effect.keys(&genesis) {
            assert_eq!(store.put(&key.to_string(), &[b"bytes"]), PutOutcome::Stored);
        }
    }
    store.put("somebody/elses", &[b"!"]);
    let audit = format!("audit --server {} --store objects", served.url());
    let found = scene.run(&format!("{audit} --json"));
    assert_eq!(found.code, Some(1), "{}", found.err);
    let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(
        (&found["counted"], &found["not_ours"], &found["bytes_astray"]),
        (&2.into(), &1.into(), &5.into())
    );
    assert!(found["strays"][0]["key"].as_str().unwrap().starts_with("audited/"));
    scene.refuses(&format!("{audit} --sweep"), 2, &["--yes"]);
    assert_eq!(scene.json(&format!("{audit} --sweep --yes"))["deleted"], 1);
    assert_eq!(scene.json(&audit)["strays"], serde_json::json!([]));

    let collect = format!("collect --server {} --store objects", served.url());
    assert_eq!(scene.json(&collect)["objects"], 0, "its worker holds it");
    fail(&worker, pin);
    let done = scene.prints(&collect);
    assert_eq!(done, "1 checkpoints collected, 2 objects deleted, 0 not deleted\n");
    let mut left = Vec::new();
    store.list(&mut |key, _| left.push(key.to_string())).unwrap();
    assert_eq!(left, ["somebody/elses"]);
    let nowhere = format!("collect --server {} --store nowhere", served.url());
    scene.refuses(&nowhere, 2, &["--store nowhere"]);
}
