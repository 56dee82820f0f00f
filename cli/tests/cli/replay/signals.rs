//! A replay that is told to end: by Ctrl-C or a polite kill.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::traces::mooncake;
use crate::scene::Scene;

const PATIENCE: Duration = Duration::from_secs(30);

/// A scene with a trace that takes a while: many conversations of one turn.
fn long() -> Scene {
    let scene = Scene::in_memory();
    let blocks: Vec<u64> = (0..40_000).collect();
    let rows: Vec<_> = blocks.chunks(2).map(|blocks| (1024, blocks)).collect();
    scene.write("trace.jsonl", &mooncake(&rows));
    scene
}

fn start(scene: &Scene, words: &str) -> Child {
    let mut command = scene.command(&format!("replay trace.jsonl --workers 2 {words}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The files below a folder in which a program is at work, so that any may be gone by now.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Whether so many states are stored below a folder: the objects of index 1.
fn states(folder: &Path, count: usize) -> bool {
    files(folder).iter().filter(|path| path.ends_with("00000001")).count() >= count
}

fn wait_for(what: &str, there: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The number behind "stopped after".
fn stopped_after(err: &str) -> u32 {
    let (_, rest) = err.split_once("pinfold: stopped after ").unwrap_or_else(|| panic!("{err}"));
    rest.split_once(" requests").unwrap().0.parse().unwrap()
}

/// The temporary folder goes, one line says how far it came, and the code is that of a replay that
/// is not whole.
#[test]
fn a_stopped_replay_leaves_no_temporary_folder() {
    for name in ["INT", "TERM"] {
        let scene = long();
        let mut running = start(&scene, "");
        wait_for("a state", || states(&scene.path("tmp"), 1));
        let folder = fs::read_dir(scene.path("tmp")).unwrap().next().unwrap().unwrap();
        assert!(folder.file_name().to_string_lossy().starts_with("pinfold-replay-"));
        assert!(running.try_wait().unwrap().is_none());
        signal(&running, name);
        let output = running.wait_with_output().unwrap();
        let err = err(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{name}: {err}");
        assert_eq!((err.lines().count(), err.contains("--resume")), (1, false), "{err}");
        assert!((1..20_000).contains(&stopped_after(&err)), "{err}");
        assert!(scene.tree("tmp").is_empty());
    }
}

/// With a folder of one's own everything stays, and the job goes on where it was.
#[test]
fn a_stopped_job_goes_on() {
    let scene = long();
    let words = "--bytes-per-checkpoint 256 --data job";
    let running = start(&scene, words);
    wait_for("states", || states(&scene.path("job"), 20));
    signal(&running, "INT");
    let output = running.wait_with_output().unwrap();
    let err = err(&output);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.ends_with(" requests; go on with --resume\n"), "{err}");
    let served = stopped_after(&err);
    // The rest of the trace is long; its beginning is enough to see that everything is there.
    let trace = fs::read_to_string(scene.path("trace.jsonl")).unwrap();
    let first: Vec<&str> = trace.lines().take(10).collect();
    scene.write("trace.jsonl", &(first.join("\n") + "\n"));
    let report = scene.replay("--data job --resume");
    assert!(served > 10, "{served}");
    assert_eq!((&report["restores"], &report["restore_failures"]), (&10.into(), &0.into()));
}

/// Who does not want to wait sends another one.
#[test]
fn a_second_signal_ends_it_at_once() {
    use std::os::unix::process::ExitStatusExt;
    let scene = long();
    // Behind its pages comes a state that takes a worker longer than the second signal needs.
    let running = start(&scene, "--bytes-per-checkpoint 256MiB");
    wait_for("a page", || {
        files(&scene.path("tmp")).iter().any(|path| path.to_string_lossy().contains("/shared/"))
    });
    signal(&running, "INT");
    // Longer than the first one's echoes are taken for it.
    thread::sleep(Duration::from_millis(150));
    signal(&running, "INT");
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(2), "{:?}: {}", output.status, err(&output));
}

/// `timeout` sends its signal to the program and then to its group: that is one wish, not two.
#[test]
fn an_echo_of_the_signal_is_no_second_one() {
    let scene = long();
    let running = start(&scene, "--bytes-per-checkpoint 16MiB");
    wait_for("a state", || states(&scene.path("tmp"), 1));
    signal(&running, "TERM");
    signal(&running, "TERM");
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{:?}: {}", output.status, err(&output));
    assert!(scene.tree("tmp").is_empty());
}
