//! A sweep that is told to end.
#![cfg(unix)]

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::scene::Scene;

/// What was done by then is told, and the code says that it is not all.
#[test]
fn a_stopped_sweep_tells_how_far_it_came() {
    let scene = Scene::new();
    let mut command = scene.command("sim --seeds 0..1000000000 --steps 20 --json");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(500));
    let status = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(status.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(3), 0), "{out}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["verdict"], "held so far");
    assert!(report["seeds"].as_u64().unwrap() < 1_000_000_000, "{out}");
}
