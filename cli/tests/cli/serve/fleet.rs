//! Workers as processes of their own, which can be killed: this very test program, started again.
//!
//! Each tells what it was told in lines, so that what it acknowledged outlives it.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command as Process, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{ConversationId, EndpointId, TurnId};
use pinfold_core::outcome::{Outcome, TurnKey};
use pinfold_core::policy::Genesis;
use pinfold_host::dto::{Answer, ListedCommand};
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_http::client::{Client, ClientOptions};

use super::worker::{Heard, Place, Worker};
use crate::scene::Scene;

/// Where a worker's process finds what it works with.
const URL: &str = "PINFOLD_TESTS_URL";
const STORE: &str = "PINFOLD_TESTS_STORE";
const NUMBER: &str = "PINFOLD_TESTS_NUMBER";
const SEED: &str = "PINFOLD_TESTS_SEED";
/// How many positions a worker saves that all others save, too; then it ends.
const CONTESTED: &str = "PINFOLD_TESTS_CONTESTED";
/// How long its client waits for one answer.
const TRY_WITHIN: Duration = Duration::from_secs(5);

/// What all workers were told so far.
pub(super) type AllHeard = Arc<Mutex<Vec<Heard>>>;

/// A worker that runs.
pub(super) struct WorkerProcess {
    child: Child,
    /// It goes on until this is closed.
    input: Option<ChildStdin>,
    listens: Option<JoinHandle<()>>,
}

impl WorkerProcess {
    /// A worker that does what its seed says until it is told to end.
    pub(super) fn start(
        scene: &Scene,
        url: &str,
        number: u64,
        seed: u64,
        heard: &AllHeard,
    ) -> Self {
        Self::start_with(scene, url, [number, seed, 0], heard)
    }

    /// A worker that saves so many positions that all others save, too.
    pub(super) fn contest(
        scene: &Scene,
        url: &str,
        number: u64,
        positions: u64,
        heard: &AllHeard,
    ) -> Self {
        Self::start_with(scene, url, [number, number, positions], heard)
    }

    fn start_with(scene: &Scene, url: &str, numbers: [u64; 3], heard: &AllHeard) -> Self {
        let mut process = Process::new(env::current_exe().unwrap());
        process.args(["--exact", "serve::fleet::is_a_worker", "--ignored", "--test-threads=1"]);
        process.env(URL, url).env(STORE, scene.path("objects"));
        for (name, number) in [NUMBER, SEED, CONTESTED].into_iter().zip(numbers) {
            process.env(name, number.to_string());
        }
        let piped = process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = piped.spawn().unwrap();
        let (lines, heard) = (BufReader::new(child.stdout.take().unwrap()), Arc::clone(heard));
        let listens = thread::spawn(move || {
            // A kill may leave half a line, and the runner has words of its own.
            for told in lines.lines().map_while(Result::ok).filter_map(|line| read(&line)) {
                heard.lock().unwrap().push(told);
            }
        });
        let input = child.stdin.take();
        Self { child, input, listens: Some(listens) }
    }

    /// Kills it with SIGKILL; what it said before is heard.
    pub(super) fn kill(mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it ended by itself");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.listens.take().unwrap().join().unwrap();
    }

    /// Lets it end, and hears what it said.
    pub(super) fn end(mut self) {
        self.input = None;
        let status = self.child.wait().unwrap();
        assert!(status.success(), "a worker ended with {status}");
        self.listens.take().unwrap().join().unwrap();
    }
}

impl Drop for WorkerProcess {
    /// A test that failed leaves no process.
    fn drop(&mut self) {
        // One that ended by itself is no trouble.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(told: Heard) {
    let Heard { op, command, answer } = told;
    let answer = Answer::from(Reply::Command(answer));
    let line = serde_json::to_string(&(ListedCommand { op, command }, answer)).unwrap() + "\n";
    let mut out = std::io::stdout().lock();
    // Who listened may be gone, and then this process is about to end.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

fn read(line: &str) -> Option<Heard> {
    let (asked, answer): (ListedCommand, Answer) = serde_json::from_str(line).ok()?;
    let Reply::Command(answer) = answer.into_reply()? else { return None };
    Some(Heard { op: asked.op, command: asked.command, answer })
}

/// The job that a coordinator serves.
pub(super) fn job(url: &str) -> Genesis {
    let client = Client::connect(url, options()).unwrap();
    match client.ask(&Request::Query(Query::Job)).unwrap() {
        Reply::Job(job) => job,
        other => panic!("{other:?}"),
    }
}

pub(super) fn options() -> ClientOptions {
    ClientOptions { try_within: TRY_WITHIN, ..ClientOptions::default() }
}

/// The entry of a worker's process.
#[test]
#[ignore = "a process of its own, which the other tests start"]
fn is_a_worker() {
    let Ok(url) = env::var(URL) else { return };
    let number = |name| env::var(name).unwrap().parse::<u64>().unwrap();
    // The runner's own words may stand in this line already.
    std::io::stdout().lock().write_all(b"\n").unwrap();
    let dir = env::var(STORE).unwrap();
    let store = FileStore::open(dir.as_ref(), FileStoreOptions::default()).unwrap();
    let place = Place { url: url.clone(), options: options(), store: &store, job: job(&url) };
    let mut worker = Worker::start(place, number(NUMBER), number(SEED), say);
    let contested = number(CONTESTED);
    if contested > 0 {
        (0..contested).for_each(|position| contest(&mut worker, number(NUMBER), position));
        return;
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            std::io::stdin().lines().for_each(drop);
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) {
            worker.step();
        }
    });
}

/// Saves a position for a turn of its own conversation, or publishes the one of whoever was faster.
fn contest(worker: &mut Worker<'_>, number: u64, position: u64) {
    let endpoint = EndpointId::from_u128(u128::from(position + 1));
    let turn = TurnKey {
        conversation: ConversationId::from_u128(u128::from(number + 1)),
        turn: TurnId::from_u128(u128::from(position + 1)),
    };
    while worker.save_for(endpoint, turn, true).is_none() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether somebody was told that a turn is published.
pub(super) fn is_publication(heard: &Heard) -> bool {
    matches!(heard.answer, Ok(Outcome::Published { .. }))
}
