//! Beside a running owner: what is shown is durable, whole, and never older than what was seen.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use pinfold_core::catalog::Role;
use pinfold_host::journal::JournalOptions;
use serde_json::Value;

use super::job::{Owner, create, turn};
use crate::scene::Scene;

/// Segments roll and snapshots replace them all the time, so files come and go under the reader.
const BUSY: JournalOptions =
    JournalOptions { first_segment_bytes: 4096, segment_bytes: 4096, snapshot_bytes: 16 << 10 };

/// A look at a catalog takes time in its size, so a writer that nothing held back would starve the
/// reader on a slow machine: it may be this many checkpoints ahead.
const LEAD: u64 = 200;

/// Ends the writer, also where an assertion of the reader fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Each checkpoint is published before the next one is prepared: one may be unreferenced, no more.
#[test]
fn a_writing_node_is_read() {
    let scene = Scene::in_memory();
    let (node, _effects) = create(&scene.path("job"), BUSY);
    let owner = Owner::register(&node, "w1", Role::Worker);
    let (stop, written, looks) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let number = written.load(Ordering::Relaxed);
                if number >= (looks.load(Ordering::Relaxed) + 1) * LEAD {
                    thread::yield_now();
                    continue;
                }
                let name = number.to_string();
                owner.save(&name, 100, turn(&format!("conversation {}", number / 2), &name));
                written.store(number + 1, Ordering::Relaxed);
            }
        });
        let _end = StopAtEnd(&stop);
        let (mut records, mut rounds) = (0, 0);
        while rounds < 4 || written.load(Ordering::Relaxed) < LEAD || node.snapshots().taken < 2 {
            let all = scene.json("inspect job");
            let seen = all["journal"]["records"].as_u64().unwrap();
            assert!(seen >= records, "{seen} after {records}");
            records = seen;
            let totals = &all["totals"];
            let (count, turns) = (totals["checkpoints"].as_u64(), totals["turns"].as_u64());
            assert!((0..=1).contains(&(count.unwrap() - turns.unwrap())), "{totals}");
            let found = scene.json("journal verify job");
            assert!(found["verdict"] != "damaged", "{found}");
            let mut next = 0;
            for line in scene.prints("journal dump job --json").lines() {
                let row: Value = serde_json::from_str(line).unwrap();
                let number = |name: &str| row[name].as_u64();
                let first = number("record").or(number("first")).unwrap();
                assert_eq!(first, next);
                next = number("record").or(number("last")).unwrap() + 1;
            }
            assert!(next >= records, "{next} after {records}");
            scene.prints("why job 1");
            rounds += 1;
            looks.store(rounds, Ordering::Relaxed);
            assert!(rounds < 100, "{:?}", node.snapshots());
        }
    });
    assert_eq!(node.snapshots().failure, None);
    node.stop().unwrap();
}

/// A replay in another process is looked at while it serves, and is none the worse for it.
#[test]
fn a_replay_in_another_process_is_read() {
    let scene = Scene::in_memory();
    let words = "replay --data job --workers 2 --bytes-per-checkpoint 128 --json";
    let mut command = scene.command(words);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (mut looks, mut last) = (0, 0);
    while child.try_wait().unwrap().is_none() {
        let ended = scene.run("inspect job --json");
        if ended.code == Some(2) && last == 0 {
            continue;
        }
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        let all: Value = serde_json::from_str(&ended.out).unwrap();
        let records = all["journal"]["records"].as_u64().unwrap();
        assert!(records >= last);
        last = records;
        looks += 1;
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["violations"], 0);
    assert!(looks > 0);
    let all = scene.json("inspect job");
    assert_eq!(all["totals"]["bytes_retained"], report["bytes_retained"]);
}
