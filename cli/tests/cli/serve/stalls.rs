//! A coordinator that is stopped and not dead, a second one on the same folder, and one that has
//! few files.

use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use pinfold_core::catalog::Command as Asks;
use pinfold_core::outcome::Outcome;
use pinfold_host::owner::OwnerError;

use super::judge::judge;
use super::worker::Heard;
use super::{Served, fail, prepare};
use crate::scene::Scene;

/// Its clients give up in time; when it goes on, what they asked meanwhile, several times each, was
/// decided once. Nobody was taken for dead by a coordinator that had slept itself.
#[test]
fn a_stalled_coordinator_answers_once_when_it_goes_on() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --listen 127.0.0.1:0");
    let patient = served.owner("w1");
    let (pin, _) = prepare(&patient, 1);
    let owner = served.impatient_owner("w2");
    served.signal("-STOP");
    let began = Instant::now();
    let command = Asks::Collect { limit: 3 };
    // The signal takes a moment.
    let op = loop {
        let op = owner.begin(command.clone()).unwrap();
        match owner.send(op) {
            Ok(_) => {}
            Err(OwnerError::Gone(_)) => break op,
            Err(other) => panic!("{other}"),
        }
    };
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let [(unanswered, _)] = owner.unanswered()[..] else { panic!("{:?}", owner.unanswered()) };
    assert_eq!(unanswered, op);
    // It is silent, and still the only one.
    refuse_a_second(&scene);
    served.signal("-CONT");
    owner.reconnect(served.impatient_client()).unwrap();
    let answer = owner.send(op).unwrap();
    assert_eq!(answer, Ok(Outcome::Collected { objects: 0, more: false }));
    let all = scene.json(&format!("inspect --server {}", served.url()));
    assert_eq!(all["pins"].as_array().unwrap().len(), 1, "{all}");
    let owners = all["owners"].as_array().unwrap();
    assert!(owners.iter().all(|it| it["fenced"] == false), "{all}");
    fail(&patient, pin);
    judge(&scene.path("job"), &[Heard { op, command, answer }]).unwrap();
}

/// A second coordinator of one folder is refused in words, changes nothing, and the first one goes
/// on as if nobody had come.
#[test]
fn there_is_one_coordinator_of_a_folder() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --listen 127.0.0.1:0 --descriptor d.json");
    let owner = served.owner("w");
    let (pin, _) = prepare(&owner, 1);
    let before = scene.tree("job");
    refuse_a_second(&scene);
    let described = std::fs::read(scene.path("d.json")).unwrap();
    let again = scene.run("serve --data job --listen 127.0.0.1:0 --descriptor d.json");
    assert_eq!(again.code, Some(3), "{}", again.err);
    assert!(scene.tree("job") == before, "a start that is refused changes nothing");
    assert_eq!(std::fs::read(scene.path("d.json")).unwrap(), described);
    fail(&owner, pin);
    scene.prints("inspect --descriptor d.json");
    let ended = served.terminate();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    // A lock file is no lock: only a process holds one.
    assert!(scene.path("job/journal/lock").exists());
    drop(Served::start(&scene, "--data job --listen 127.0.0.1:0"));
}

fn refuse_a_second(scene: &Scene) {
    let words = "serve --data job --listen 127.0.0.1:0";
    scene.refuses(words, 3, &["job/journal/lock", "is open already", "fuser"]);
}

/// However many connect, files are left for the journal: those who are connected are served, a new
/// segment can begin, and nothing is lost.
#[test]
fn connections_leave_files_for_the_journal() {
    let scene = Scene::in_memory();
    let mut command = Command::new("/bin/sh");
    let limited = r#"ulimit -n 150; exec "$0" "$@""#;
    command.args(["-c", limited, env!("CARGO_BIN_EXE_pinfold")]);
    command.args("serve --json --data job --listen 127.0.0.1:0".split(' '));
    command.current_dir(scene.path("."));
    let served = Served::spawn(command);
    let owner = served.owner("w");
    let crowd: Vec<_> = (0..100).map(|_| TcpStream::connect(served.listen())).collect();
    // More than the first segment holds.
    let lists = (0..900).map(|_| owner.ask_all(vec![Asks::Collect { limit: 1 }; 64]).unwrap());
    assert!(lists.flatten().all(|it| it.is_some_and(|it| it.is_ok())));
    let (pin, _) = prepare(&owner, 1);
    drop(crowd);
    let segments = scene.files("job/journal").into_iter();
    assert!(segments.filter(|it| it.extension().is_some_and(|it| it == "log")).count() > 1);
    let found = judge(&scene.path("job"), &[]).unwrap();
    assert_eq!(found.catalog.pins().len(), 1);
    fail(&owner, pin);
    let ended = served.terminate();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}
