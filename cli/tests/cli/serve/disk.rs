//! A coordinator whose disk is full: it says so and ends, nothing that it acknowledged is lost, and
//! with room again everybody goes on.

use pinfold_core::catalog::Command;
use pinfold_host::owner::OwnerError;

use super::crowd::{finish, publications};
use super::fleet::{AllHeard, WorkerProcess};
use super::judge::judge;
use super::small_disk::{NO_SPACE, SmallDisk};
use super::{Served, eventually};
use crate::scene::Scene;

#[test]
fn a_full_disk_ends_the_coordinator_and_loses_nothing() {
    // Room for the first segment, and none for the second one.
    let Some(disk) = SmallDisk::mount(2 << 10) else { return };
    let scene = Scene::in_memory();
    let data = disk.path().join("job");
    let words = format!("--data {} --store objects --turns 3", data.display());
    let served = Served::start(&scene, &format!("{words} --listen 127.0.0.1:0"));
    let words = format!("{words} --listen {}", served.listen());
    let (url, heard) = (served.url().to_string(), AllHeard::default());
    let workers: Vec<_> =
        (0..2).map(|number| WorkerProcess::start(&scene, &url, number, number, &heard)).collect();
    eventually(|| publications(&heard) > 3);
    disk.fill();
    let filler = served.impatient_owner("filler");
    let gone = loop {
        // Whatever is left of the segment, they take it.
        if let Err(gone) = filler.ask_all(vec![Command::Collect { limit: 1 }; 64]) {
            break gone;
        }
    };
    assert!(matches!(gone, OwnerError::Gone(_)), "{gone}");
    let ended = served.ends();
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert!(ended.err.contains(NO_SPACE) && ended.err.contains("journal/"), "{}", ended.err);
    let before = heard.lock().unwrap().clone();
    judge(&data, &before).unwrap();

    // Still full: a start refuses, or ends as soon as anybody asks.
    let still = scene.run(&format!("serve {words}"));
    assert_eq!(still.code, Some(3), "{}", still.err);
    assert!(still.err.contains(NO_SPACE), "{}", still.err);
    judge(&data, &heard.lock().unwrap().clone()).unwrap();

    disk.make_room();
    assert!(disk.run("mount", &["-o", "remount,size=16m"]));
    let served = Served::start(&scene, &words);
    let at_least = publications(&heard) + 10;
    eventually(|| publications(&heard) > at_least);
    workers.into_iter().for_each(WorkerProcess::end);
    let heard = heard.lock().unwrap().clone();
    let found = finish(&scene, &data, &served, &heard);
    assert!(found.publications > at_least);
    // Its own collector was fenced with everybody else, and may have said so.
    let ended = served.terminate();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}
