//! The coordinator as a process: what it says, who may ask it, and what is left when it is killed.

mod config;
mod crowd;
mod disk;
#[path = "../../../../http/tests/http/faulty/drain.rs"]
mod drain;
mod fleet;
#[path = "../../../../http/tests/http/faulty/judge.rs"]
mod judge;
mod logged;
mod operators;
mod reports;
#[path = "../../../../http/examples/save_and_load.rs"]
#[allow(dead_code, reason = "the example has an end of its own")]
mod save_and_load;
#[path = "../../../../tests/tests/durability/small_disk.rs"]
mod small_disk;
mod stalls;
mod tls;
#[path = "../../../../http/tests/http/faulty/worker.rs"]
mod worker;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pinfold_core::catalog::{Command as Asks, Prepare, Role, Shape, ShardShape};
use pinfold_core::id::{
    AttemptId, CheckpointId, EndpointId, ManifestDigest, OwnerId, PinId, ShardIndex, StartId,
};
use pinfold_core::outcome::{Evidence, Outcome};
use pinfold_host::owner::Owner;
use pinfold_http::client::{Client, ClientOptions};
use serde_json::Value;

use crate::scene::{Ended, Scene};

/// A coordinator that runs.
pub(crate) struct Served {
    child: Child,
    pub(super) said: Value,
}

impl Served {
    pub(crate) fn start(scene: &Scene, words: &str) -> Self {
        Self::spawn(scene.command(&format!("serve --json {words}")))
    }

    /// The coordinator that a command starts.
    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line).unwrap_or_else(|error| {
            let mut err = String::new();
            child.stderr.as_mut().unwrap().read_to_string(&mut err).unwrap();
            panic!("{error}: {line}{err}")
        });
        Self { child, said }
    }

    pub(crate) fn url(&self) -> &str {
        self.said["url"].as_str().unwrap()
    }

    /// The address, for another start.
    pub(crate) fn listen(&self) -> String {
        self.url().trim_start_matches("http://").to_string()
    }

    pub(super) fn owner(&self, name: &str) -> Owner {
        let client = Client::connect(self.url(), ClientOptions::default()).unwrap();
        Owner::register(client, name, Role::Worker, StartId::of_name(name)).unwrap()
    }

    /// The same start of an owner's, or another one.
    pub(super) fn owner_of(&self, name: &str, start: &str) -> Owner {
        let client = Client::connect(self.url(), ClientOptions::default()).unwrap();
        Owner::register(client, name, Role::Worker, StartId::of_name(start)).unwrap()
    }

    /// A client that soon gives up.
    pub(super) fn impatient_client(&self) -> Client {
        let (try_within, give_up_after) = (Duration::from_millis(200), Duration::from_millis(600));
        let options = ClientOptions { try_within, give_up_after, ..ClientOptions::default() };
        eventually_some(|| Client::connect(self.url(), options.clone()).ok())
    }

    pub(super) fn impatient_owner(&self, name: &str) -> Owner {
        eventually_some(|| {
            let client = self.impatient_client();
            Owner::register(client, name, Role::Worker, StartId::of_name(name)).ok()
        })
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn terminate(self) -> Ended {
        self.signal("-TERM");
        self.ends()
    }

    /// Waits until it has ended by itself.
    fn ends(mut self) -> Ended {
        let code = self.child.wait().unwrap().code();
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        Ended { code, out, err }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that ended by itself is no trouble.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A save of a position, of one shard.
fn asked(endpoint: EndpointId, attempt: u128) -> Prepare {
    Prepare {
        attempt: AttemptId::from_u128(attempt),
        endpoint,
        digest: ManifestDigest::from_bytes([1; 32]),
        shape: Shape::new(&[ShardShape { objects: 2, bytes: 1000 }]).unwrap(),
        shards: vec![ShardIndex(0)],
    }
}

/// Prepares a checkpoint of one shard.
pub(super) fn prepare(owner: &Owner, number: u128) -> (PinId, CheckpointId) {
    match owner.ask(Asks::Prepare(asked(EndpointId::from_u128(number), number))).unwrap().unwrap() {
        Outcome::Prepared { pin, checkpoint } => (pin, checkpoint),
        other => panic!("{other:?}"),
    }
}

fn fail(owner: &Owner, pin: PinId) {
    let evidence = Evidence::QuiescedFailure;
    owner.ask(Asks::Settle { pin, shard: None, evidence }).unwrap().unwrap();
    owner.ask(Asks::Release { pin }).unwrap().unwrap();
}

#[test]
fn the_first_start_makes_the_job_and_later_ones_go_on_with_it() {
    let scene = Scene::in_memory();
    let words = "--data job --listen 127.0.0.1:0 --namespace n1 --turns 3 --descriptor d.json";
    let served = Served::start(&scene, words);
    assert_eq!(
        (&served.said["namespace"], &served.said["recovered_records"]),
        (&"n1".into(), &Value::Null)
    );
    let described: Value =
        serde_json::from_slice(&std::fs::read(scene.path("d.json")).unwrap()).unwrap();
    assert_eq!(
        (&described["url"], &described["epoch"]),
        (&served.said["url"], &served.said["epoch"])
    );
    let (epoch, listen) = (served.said["epoch"].clone(), served.listen());
    let ended = served.terminate();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(!scene.path("d.json").exists(), "nobody is there any more");

    let served = Served::start(&scene, &format!("--data job --listen {listen} --turns 3"));
    assert_eq!(served.said["epoch"], epoch, "the same life");
    assert!(served.said["recovered_records"].as_u64() > Some(0));
    let second = scene.run("serve --data job --listen 127.0.0.1:0");
    assert_eq!(second.code, Some(3), "{}", second.err);
    assert!(second.err.contains("is open already"), "{}", second.err);
    let other = scene.run(&format!("serve --data other --listen {listen}"));
    assert_eq!(other.code, Some(3), "{}", other.err);
    assert!(other.err.contains("cannot listen on"), "{}", other.err);
    served.kill();
    let wrong = "serve --data job --listen 127.0.0.1:0 --turns 4 --namespace n2";
    scene.refuses(wrong, 2, &["--namespace n2, and it has n1", "--turns 4, and it has 3"]);
    scene.refuses("serve --data j2 --listen 0.0.0.0:0", 2, &["give it a token"]);
    assert!(!scene.path("j2").exists(), "a start that is refused makes no job");
    scene.write("weak", "12345");
    scene.refuses("serve --data j2 --token-file weak", 2, &["5 characters"]);
}

/// It deletes by itself what nothing holds any more.
#[test]
fn a_coordinator_with_a_store_empties_it() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --store objects --listen 127.0.0.1:0");
    let worker = served.owner("w");
    let (pin, checkpoint) = prepare(&worker, 1);
    fail(&worker, pin);
    let why = format!("why --server {} {}", served.url(), checkpoint.generation);
    eventually(|| scene.prints(&why).contains("it was collected"));

    // One that is barred is followed by another.
    let at = format!("--server {}", served.url());
    let collector = OwnerId::of_name("pinfold serve").to_string();
    let owners = scene.json(&format!("inspect {at}"))["owners"].clone();
    let its = owners.as_array().unwrap().iter().find(|it| it["owner"] == collector).unwrap();
    scene.prints(&format!("fence {collector} {} --yes {at}", its["incarnation"]));
    let (pin, checkpoint) = prepare(&worker, 2);
    fail(&worker, pin);
    let why = format!("why {at} {}", checkpoint.generation);
    eventually(|| scene.prints(&why).contains("it was collected"));

    // A store that is not there is none from which everything is gone.
    served.kill();
    std::fs::rename(scene.path("objects"), scene.path("elsewhere")).unwrap();
    let again = "serve --data job --store objects --listen 127.0.0.1:0";
    scene.refuses(again, 2, &["--store objects"]);
    assert!(!scene.path("objects").exists());
}

/// The example of the docs, as an engine's process would run it; and again, when all is there.
#[test]
fn an_engine_saves_and_loads_through_it() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --store objects --listen 127.0.0.1:0");
    for _ in 0..2 {
        save_and_load::run(served.url(), &scene.path("objects")).unwrap();
    }
    let all = scene.json(&format!("inspect --server {}", served.url()));
    let checkpoints = all["checkpoints"].as_array().unwrap();
    assert_eq!((checkpoints.len(), &all["pins"]), (1, &serde_json::json!([])), "{all}");
    assert_eq!(all["totals"]["turns"], 1, "{all}");
    assert!(matches!(served.terminate().code, Some(0)));
}

fn eventually(is_so: impl Fn() -> bool) {
    eventually_some(|| is_so().then_some(()));
}

fn eventually_some<T>(is_so: impl Fn() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(so) = is_so() {
            return so;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it never came to that");
}

#[test]
fn a_token_is_asked_for_and_found_by_the_descriptor() {
    let scene = Scene::in_memory();
    scene.write("token", &"a1".repeat(20));
    let served = Served::start(
        &scene,
        "--data job --listen 127.0.0.1:0 --token-file token --descriptor d.json",
    );
    let url = served.url().to_string();
    scene.refuses(&format!("inspect --server {url}"), 2, &["the token is missing or wrong"]);
    assert!(scene.prints("inspect --descriptor d.json").contains("Totals"));
    assert!(scene.prints(&format!("inspect --server {url} --token-file token")).contains("Totals"));
    scene.refuses("why --descriptor d.json 9", 2, &["was never minted"]);
    scene.refuses("inspect --descriptor none.json", 2, &["none.json"]);
    scene.refuses("why --descriptor d.json job 9", 2, &["expected <DIR> <CHECKPOINT>"]);
}
