//! `why`: every blocker in order, in words, with who may lift it and how.

use pinfold_core::catalog::{Blocker, Command};
use pinfold_core::id::{ConversationId, EndpointId, TurnId};
use pinfold_core::outcome::Evidence;
use serde_json::{Value, json};

use super::job::KnownJob;
use crate::scene::Scene;

fn names(why: &Value) -> Vec<&str> {
    why["blockers"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn every_blocker_is_told_in_order() {
    let scene = Scene::in_memory();
    let job = KnownJob::new(&scene.path("job"));
    let why = scene.json("why job 4");
    assert_eq!(names(&why), ["retained", "pinned", "in flight", "lost"]);
    assert_eq!((&why["checkpoint"], &why["state"]), (&json!(4), &json!("published")));
    assert_eq!((&why["bytes"], &why["objects"]), (&json!(1000), &json!(2)));
    assert_eq!(why["endpoint"], EndpointId::of_name("4").to_string());
    let [retained, pinned, in_flight, lost] = [0, 1, 2, 3].map(|place| &why["blockers"][place]);
    assert_eq!(retained["conversation"], ConversationId::of_name("B").to_string());
    assert_eq!(retained["turn"], TurnId::of_name("1").to_string());
    assert_eq!(retained["who"], json!(["policy", "operator"]));
    assert_eq!(lost["who"], json!([]));
    for blocker in [pinned, in_flight] {
        assert_eq!(blocker["pin"], job.load.to_string());
        assert_eq!(blocker["owner"], job.load.op.owner.to_string());
        assert_eq!(blocker["who"], json!(["owner", "operator"]));
    }
    for (blocker, name) in why["blockers"].as_array().unwrap().iter().zip(names(&why)) {
        assert!(Blocker::NAMES.contains(&name));
        assert!(!blocker["what"].as_str().unwrap().is_empty());
        assert!(!blocker["how"].as_str().unwrap().is_empty());
    }

    let why = scene.json("why job 9");
    assert_eq!(names(&why), ["pinned", "waiting for shard", "in flight", "in doubt"]);
    assert_eq!(why["blockers"][1]["shard"], 1);
    assert_eq!(why["blockers"][2]["shard"], 0);
    assert_eq!(why["blockers"][3]["pin"], job.doubted.to_string());

    let why = scene.json("why job 6");
    assert_eq!(names(&why), ["collecting", "quarantined"]);
    assert_eq!(why["blockers"][0]["left"], 2);
    assert_eq!(why["blockers"][0]["objects"], json!(["0/0"]));
    assert_eq!(why["blockers"][1]["objects"], json!(["0/1"]));
    assert_eq!(names(&scene.json("why job 5")), ["unscoped"]);
    assert_eq!(names(&scene.json("why job 10")), ["collectable"]);
}

#[test]
fn a_person_reads_it() {
    let scene = Scene::in_memory();
    let _job = KnownJob::new(&scene.path("job"));
    let out = scene.prints("why job 6");
    let endpoint = EndpointId::of_name("6");
    let expected = format!(
        "\
Checkpoint 6: collecting, 2.9 KiB, endpoint {endpoint}
  collecting
    what  2 of 2 objects not gone yet; refused: 0/0
    who   collector
    how   Collect again, and report each outcome with Deleted
  quarantined
    what  the deletion of 1 object may still happen: 0/1
    who   collector
    how   repeat the delete or probe, and report with Deleted
"
    );
    assert_eq!(out, expected);
    assert!(scene.prints("why job 4").contains("\n  lost\n    what  an object is gone or wrong"));
}

/// Never minted, collected, and no number at all are three answers.
#[test]
fn what_is_not_there_has_three_answers() {
    let scene = Scene::in_memory();
    let _job = KnownJob::new(&scene.path("job"));
    let out = scene.prints("why job 1");
    assert_eq!(
        out,
        "Checkpoint 1 has no record any more: it was collected, and every object of it is gone\n"
    );
    let why = scene.json("why job 1");
    assert_eq!((&why["state"], &why["blockers"]), (&json!("collected"), &json!([])));
    for words in ["why job 11", "why job 0", "why job 18446744073709551615 --json"] {
        scene.refuses(words, 2, &["was never minted", "the last one so far is 10"]);
    }
    for text in ["x", "0x4", "4.0", "18446744073709551616", "65e49185ed34831f1b7b25fd83543b96"] {
        let words = format!("why job {text}");
        scene.refuses(&words, 2, &["named by its generation, a decimal number", text]);
    }
}

/// What was said to lift a blocker does so.
#[test]
fn what_lifts_a_blocker_is_true() {
    let scene = Scene::in_memory();
    let job = KnownJob::new(&scene.path("job"));
    let (pin, shard) = (job.doubted, None);
    let evidence = Evidence::QuiescedFailure;
    job.operator.ask(Command::Settle { pin, shard, evidence }).unwrap();
    assert_eq!(names(&scene.json("why job 9")), ["pinned"]);
    job.operator.ask(Command::Release { pin }).unwrap();
    assert_eq!(names(&scene.json("why job 9")), ["collectable"]);
    let conversation = ConversationId::of_name("B");
    job.operator.ask(Command::Forget { conversation }).unwrap();
    let follow_ups = || names(&scene.json("why job 4")) == ["pinned", "in flight", "lost"];
    let begin = std::time::Instant::now();
    while !follow_ups() {
        assert!(begin.elapsed().as_secs() < 20, "the turn never expires");
    }
}
