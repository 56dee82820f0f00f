//! How a broken promise is shown, in the build of `cargo sabotaged`: its core has deliberate bugs.
//!
//! Protects whoever meets a real one: what is written then must show it again, without the way by
//! which it was found.

use std::fs;

use serde_json::Value;

use crate::scene::{Ended, Scene};

/// Runs the program with a bug armed.
fn armed(scene: &Scene, bug: &str, words: &str) -> Ended {
    let mut command = scene.command(words);
    command.env("PINFOLD_MUTANT", bug);
    Scene::end(command, words)
}

/// A script shows a broken promise while the bug is armed, and holds without it.
fn shows(scene: &Scene, bug: &str, script: &str, promise: &str) {
    let again = armed(scene, bug, &format!("sim --script {script}"));
    assert_eq!(again.code, Some(1), "{}{}", again.out, again.err);
    assert!(again.out.contains("goes another way  no"), "{}", again.out);
    let text = fs::read_to_string(scene.path(script)).unwrap();
    assert!(text.starts_with(&format!("# {promise}: ")), "{text}");
    assert!(text.contains(&format!("violated {promise}")), "{text}");
    let without = scene.run(&format!("sim --script {script}"));
    assert_eq!(without.code, Some(4), "without the bug it goes another way: {}", without.out);
}

#[test]
fn the_checker_shows_what_is_broken_by_a_step() {
    let scene = Scene::new();
    let ended = armed(&scene, "serve-lost", "check lies --report page.html");
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
    for expected in ["VIOLATED within", "  I9: ", "no way to it is shorter than these", "shrunk to"]
    {
        assert!(ended.out.contains(expected), "no {expected:?} in {}", ended.out);
    }
    shows(&scene, "serve-lost", "pinfold-check-lies.txt", "I9");
    shows(&scene, "serve-lost", "pinfold-check-lies-short.txt", "I9");
    let page = fs::read_to_string(scene.path("page.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("I9"));

    let json = armed(&scene, "serve-lost", "check lies --json");
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&json["violations"], &json["complete"]), (&1.into(), &Value::Bool(false)));
    let found = &json["configurations"][0]["violation"];
    assert_eq!((&found["invariant"], &found["by_recovery"]), (&"I9".into(), &Value::Bool(false)));
    assert_eq!(found["way"].as_array().unwrap().len() as u64, found["steps"].as_u64().unwrap());
}

#[test]
fn the_checker_shows_what_is_broken_by_the_recovery() {
    let scene = Scene::new();
    let ended = armed(&scene, "forget-never-due", "check basics");
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("steps, and then the recovery"), "{}", ended.out);
    shows(&scene, "forget-never-due", "pinfold-check-basics.txt", "I11");
}

#[test]
fn the_simulator_shows_what_is_broken() {
    let scene = Scene::new();
    let ended = armed(&scene, "serve-lost", "sim --seeds 0..400 --shrink --report page.html");
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
    let scripts = scene.files(".");
    let names = scripts.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
    let scripts: Vec<_> = names.filter(|name| name.ends_with(".txt")).collect();
    assert!(scripts.iter().any(|name| name.ends_with("-short.txt")), "{scripts:?}");
    for script in scripts {
        shows(&scene, "serve-lost", script, "I9");
    }
    assert!(fs::read_to_string(scene.path("page.html")).unwrap().contains("<svg"));
}
