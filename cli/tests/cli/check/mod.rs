//! The model checker's command from outside: what it prints, what it refuses, and how it ends.

use serde_json::Value;

use crate::scene::Scene;

#[test]
fn a_small_configuration_is_exhaustive_for_a_person_and_for_a_program() {
    let scene = Scene::new();
    let text = scene.prints("check basics");
    assert!(text.contains("EXHAUSTIVE: all 15 states, 32 transitions, without faults"), "{text}");
    assert!(text.contains("I12  not reached"), "{text}");
    let json = scene.json("check basics");
    assert_eq!(json["complete"], Value::Bool(true));
    assert_eq!((&json["violations"], &json["states"]), (&0.into(), &15.into()));
    assert_eq!(json["transitions"], 32);
    let [configuration] = json["configurations"].as_array().unwrap().as_slice() else { panic!() };
    assert_eq!(configuration["verdict"], "EXHAUSTIVE");
    assert_eq!(configuration["properties"]["I4"], "held");
    assert!(configuration["longest_recovery_steps"].as_u64().unwrap() > 0);
    assert!(scene.files(".").is_empty(), "nothing is written where nothing is broken");
}

#[test]
fn what_was_not_seen_is_incomplete() {
    let scene = Scene::new();
    let ended = scene.run("check retention --time 0s --json");
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(json["complete"], Value::Bool(false));
    assert_eq!(json["configurations"][0]["stopped"], "its time was spent");
    let ended = scene.run("check retention --memory 1MiB");
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert!(ended.out.contains("INCOMPLETE: its memory was spent at depth"), "{}", ended.out);
}

#[test]
fn every_way_to_check_agrees() {
    let scene = Scene::new();
    let text = scene.prints("check --self-check basics");
    assert!(text.contains("stateright, breadth first") && text.ends_with("All agree.\n"), "{text}");
    assert_eq!(scene.json("check --self-check basics")["agree"], Value::Bool(true));
}

#[test]
fn the_list_says_what_each_is_about() {
    let scene = Scene::new();
    let text = scene.prints("check --list");
    for expected in ["retention", "deletes", "delete-unknown", "every small bound"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json = scene.json("check --list");
    assert!(json["configurations"].as_array().unwrap().len() > 15);
}

#[test]
fn bad_usage_says_what_is_expected() {
    let scene = Scene::new();
    scene.refuses("check nothing", 2, &["invalid value 'nothing'", "--help"]);
    scene.refuses("check basics --time 5", 2, &["with s, m or h behind it"]);
    scene.refuses("check basics --threads 0", 2, &["from 1 to 256"]);
    scene.refuses("check --self-check ci", 2, &["more than one configuration"]);
    scene.refuses("check basics --explore 0.0.0.0:0", 2, &["only an address of this machine"]);
}
