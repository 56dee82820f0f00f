//! Replays over a coordinator that runs already, whose workers are processes: what they say, and
//! what is left in the store and in the job, whoever is killed meanwhile.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use pinfold_workload::generate::{GeneratorConfig, generate};
use pinfold_workload::trace::write_trace;
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::serve::Served;

const SERVE: &str = "--data job --turns 3 --listen 127.0.0.1:0";
const REPLAY: &str = "replay trace.jsonl --store objects --workers 4 --bytes-per-checkpoint 4096";

/// A generated trace of some conversations, and a coordinator without a collector.
fn begun() -> (Scene, Served) {
    let scene = Scene::in_memory();
    let config = GeneratorConfig { conversations: 40, ..GeneratorConfig::default() };
    let mut trace = Vec::new();
    write_trace(&generate(&config).unwrap(), &mut trace).unwrap();
    fs::write(scene.path("trace.jsonl"), trace).unwrap();
    let served = Served::start(&scene, SERVE);
    (scene, served)
}

fn started(scene: &Scene, served: &Served, words: &str) -> Child {
    let mut command = scene.command(&format!("{REPLAY} --server {} {words} --json", served.url()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Value {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert_eq!((status.code(), &*err), (Some(0), ""), "{out}");
    serde_json::from_str(&out).unwrap()
}

/// Everything held; and what is left is what live turns refer to, and nobody of the replay.
fn is_clean(scene: &Scene, served: &Served, report: &Value) {
    assert_eq!(report["violations"], 0, "{report}");
    for none in ["wrong_restores", "store_failures", "unsaved"] {
        assert_eq!(report[none], 0, "{none}: {report}");
    }
    assert!(report["restores"].as_u64() > Some(0) && report["turns_expired"].as_u64() > Some(0));
    assert_eq!(report["coordinator"], served.url());
    let at = format!("--server {}", served.url());
    let job = scene.json(&format!("inspect {at}"));
    assert_eq!((&job["pins"], &job["totals"]["collectable"]), (&json!([]), &json!(0)));
    assert_eq!(job["totals"]["owners"], 1, "the job has forgotten the replay: {}", job["owners"]);
    assert_eq!(job["totals"]["checkpoints"], report["checkpoints_retained"]);
    assert_eq!(report["left"]["blockers"]["retained"], report["checkpoints_retained"]);
    // The store, by its own list: nothing that the job does not count, and nothing is missing.
    let audit = scene.json(&format!("audit {at} --store objects"));
    assert_eq!(audit["strays"], json!([]), "{audit}");
    assert_eq!(audit["counted"].as_u64(), job["totals"]["checkpoints"].as_u64().map(|it| it * 2));
}

#[test]
fn processes_serve_a_trace_over_one_coordinator() {
    let (scene, served) = begun();
    let report = ended(started(&scene, &served, ""));
    is_clean(&scene, &served, &report);
    assert_eq!((&report["crashes"], &report["turns_kept"]), (&json!(1), &json!(3)));
    assert!(report["thrown_away"].as_u64() > Some(0), "they were killed under way: {report}");
    // Again, on what is kept: nothing of it is taken for lost, or for somebody else's.
    let again = ended(started(&scene, &served, "--crash-every 60"));
    assert_eq!(again["violations"], 0, "{again}");
    let crashes = again["requests"].as_u64().unwrap().div_ceil(60) - 1;
    assert_eq!(again["crashes"].as_u64(), Some(crashes));
    assert!(again["unsaved_expired"].as_u64() > Some(0) && again["restores"].as_u64() > Some(0));
    let words = format!("{REPLAY} --server {} --report page.html", served.url());
    let told = scene.run(&words);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.contains(served.url()) && !told.out.contains("journal syncs"), "{}", told.out);
    assert!(fs::read_to_string(scene.path("page.html")).unwrap().contains("<svg"));
}

/// The coordinator is killed and comes back, and so is a worker's process, by somebody else.
#[test]
fn whoever_is_killed_nothing_is_lost() {
    let (scene, mut served) = begun();
    let again = format!("--data job --listen {}", served.listen());
    let replay = started(&scene, &served, "--crash-every 1000");
    for turns in [2, 20] {
        await_turns(&scene, &served, turns);
        served.kill();
        let workers = children(replay.id());
        assert_eq!(workers.len(), 4);
        kill(workers[0]);
        served = Served::start(&scene, &again);
    }
    let report = ended(replay);
    is_clean(&scene, &served, &report);
    assert_eq!(report["crashes"], 2, "each process that died was replaced: {report}");
}

/// Waits until so many turns are live.
fn await_turns(scene: &Scene, served: &Served, turns: u64) -> Value {
    loop {
        let job = scene.json(&format!("inspect --server {}", served.url()));
        if job["totals"]["turns"].as_u64() >= Some(turns) {
            return job;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Somebody ends a conversation under the replay: what was acknowledged is not kept, and the judge
/// says so.
#[test]
fn a_promise_that_somebody_breaks_is_found() {
    let (scene, served) = begun();
    let replay = started(&scene, &served, "--crash-every 100000");
    let job = await_turns(&scene, &served, 1);
    let conversation = job["conversations"][0]["conversation"].as_str().unwrap();
    scene.prints(&format!("forget {conversation} --yes --server {}", served.url()));
    let Output { status, stdout, .. } = replay.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!((status.code(), &report["violations"]), (Some(1), &json!(1)), "{report}");
    let text = report["violation_texts"][0].as_str().unwrap();
    assert!(text.contains("I6") && text.contains(conversation), "{text}");
}

fn kill(process: u32) {
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
}

/// The processes that a process started, and that are not over.
fn children(parent: u32) -> Vec<u32> {
    let listed = Command::new("ps").args(["-A", "-o", "pid=,ppid=,stat="]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let lines = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_it = lines.filter(|it| it[1] == parent.to_string() && !it[2].starts_with('Z'));
    of_it.map(|it| it[0].parse().unwrap()).collect()
}

#[test]
fn what_is_the_coordinators_is_refused() {
    let (scene, served) = begun();
    let at = format!("{REPLAY} --server {}", served.url());
    for (flag, why) in [
        ("--data d", "the journal is the coordinator's"),
        ("--turns 3", "the coordinator's policy is in force"),
        ("--job-bytes 1MiB", "the coordinator's policy is in force"),
        ("--conversation-bytes 1MiB", "the coordinator's policy is in force"),
        ("--log l", "only the coordinator sees"),
    ] {
        let name = flag.split(' ').next().unwrap();
        scene.refuses(&format!("{at} {flag}"), 2, &[name, "does not go with --server", why]);
    }
    assert!(
        !scene.path("d").exists() && !scene.path("l").exists() && !scene.path("objects").exists()
    );
    let no_store = format!("replay --server {}", served.url());
    scene.refuses(&no_store, 2, &["--store STORE"]);
    scene.refuses(&format!("{no_store} --store s3://b"), 2, &["s3 is no store that is known"]);
    scene.refuses("replay --store objects", 2, &["--store goes with --server"]);
    scene.write("token", &"b2".repeat(20));
    let guarded = "--data other --listen 127.0.0.1:0 --token-file token --descriptor d.json";
    let _guarded = Served::start(&scene, guarded);
    scene.refuses(&format!("{REPLAY} --descriptor d.json --token-file t"), 2, &["--token-file t"]);
    let told = scene.run(&format!("{REPLAY} --descriptor d.json --json"));
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "the workers bring the token, too");
}
