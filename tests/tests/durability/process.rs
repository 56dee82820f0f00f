//! A node in a process of its own, which can be killed: this very test program, started again.
//!
//! It opens the job of a folder, or begins one, and then does what it is told, one thread for each
//! client. Nothing of it survives a kill but its folder, and what it wrote into the pipe before.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pinfold_core::engine::{Effect, Reply};
use pinfold_core::id::{CheckpointId, ObjectId};
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::journal::SegmentLog;
use pinfold_host::node::{Effects, Node, NodeClient, NodeError};
use pinfold_host::store::{ObjectStore, PutOutcome};

use crate::job::{self, Calls};
use crate::wire::{self, Answer, Ask, Sent, Told};

/// The data folder of a node's process.
const NODE: &str = "PINFOLD_TESTS_NODE";
/// The data folder of a store's process, and what it puts.
const STORE: &str = "PINFOLD_TESTS_STORE";
const BODY: &str = "PINFOLD_TESTS_BODY";
/// How long a test waits for a process that ought to say something.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that the test started.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    told: Receiver<Told>,
    /// Delete work that was handed out.
    pub(crate) work: Vec<(CheckpointId, Vec<ObjectId>)>,
}

/// A command that starts this test program again, as the process that an entry below is.
fn again(program: &Path, entry: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", entry, "--ignored", "--test-threads=1"]);
    command
}

/// The same, under a limit on the size of files. Its signal is ignored, so that the write fails.
fn with_small_files(blocks: u32, entry: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    let script = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
    command.args(["-c", script, "sh", &blocks.to_string()]).arg(this_program());
    command.args(["--exact", entry, "--ignored", "--test-threads=1"]);
    command
}

pub(crate) fn this_program() -> PathBuf {
    env::current_exe().expect("a test program has a path")
}

impl Process {
    /// A node in this folder.
    pub(crate) fn node(dir: &Path) -> Self {
        let mut command = again(&this_program(), "process::is_a_node");
        command.env(NODE, dir);
        Self::start(command)
    }

    /// A node that cannot make any file larger than so many blocks of 512 bytes.
    pub(crate) fn node_with_small_files(dir: &Path, blocks: u32) -> Self {
        let mut command = with_small_files(blocks, "process::is_a_node");
        command.env(NODE, dir);
        Self::start(command)
    }

    /// A node of another user, who runs a copy of this program.
    #[cfg(unix)]
    pub(crate) fn node_of(user: u32, program: &Path, dir: &Path) -> Self {
        use std::os::unix::process::CommandExt;

        let mut command = again(program, "process::is_a_node");
        command.uid(user).gid(user).env(NODE, dir).current_dir("/");
        Self::start(command)
    }

    /// A process that puts objects of this body into the store of a folder, under the same keys as
    /// every other.
    pub(crate) fn writer(dir: &Path, body: u8) -> Self {
        let mut command = again(&this_program(), "process::is_a_writer");
        command.env(STORE, dir).env(BODY, body.to_string());
        Self::start(command)
    }

    /// One that cannot make any file larger than so many blocks of 512 bytes.
    pub(crate) fn writer_with_small_files(dir: &Path, blocks: u32) -> Self {
        let mut command = with_small_files(blocks, "process::is_a_writer");
        command.env(STORE, dir).env(BODY, "1");
        Self::start(command)
    }

    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = loop {
            match command.spawn() {
                Ok(child) => break child,
                // A process that is just being started still holds the copy as it was written.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                Err(error) => panic!("{command:?}: {error}"),
            }
        };
        let reader = child.stdout.take().expect("a pipe");
        let (sender, told) = channel();
        thread::spawn(move || listen(reader, &sender));
        let input = child.stdin.take();
        Self { child, input, told, work: Vec::new() }
    }

    pub(crate) fn send(&mut self, client: u8, ask: Ask) {
        if let Some(input) = &mut self.input {
            // It may be dead already.
            let _ = wire::write(&Sent { client, ask }, input);
        }
    }

    /// What it says next, within this time; none when it says nothing, or nothing any more.
    pub(crate) fn told_within(&mut self, time: Duration) -> Option<Told> {
        self.told.recv_timeout(time).ok()
    }

    pub(crate) fn told(&mut self) -> Told {
        self.told_within(PATIENCE).unwrap_or_else(|| panic!("{:?} says nothing", self.child))
    }

    /// Waits until it is about to open its folder.
    pub(crate) fn starts(&mut self) {
        assert_eq!(self.told(), Told::Starts);
    }

    /// Waits until it answers; how many bytes it cut, or why it refuses.
    pub(crate) fn opened(&mut self) -> Result<u64, String> {
        let told = match self.told() {
            Told::Starts => self.told(),
            told => told,
        };
        match told {
            Told::Opened { cut_bytes } => Ok(cut_bytes),
            Told::Ended { why } => Err(why),
            other => panic!("first of all it said {other:?}"),
        }
    }

    /// Kills it with SIGKILL, and gives what it still said.
    pub(crate) fn kill(mut self) -> Vec<Told> {
        let ended = self.child.try_wait().expect("a process of ours");
        assert_eq!(ended, None, "it ended by itself");
        self.child.kill().expect("a process of ours may be killed");
        self.child.wait().expect("it ended");
        self.told.iter().collect()
    }

    /// Lets it end in good order, and gives what it still said.
    pub(crate) fn end(mut self) -> Vec<Told> {
        self.input = None;
        let status = self.child.wait().expect("it ended");
        assert!(status.success(), "{status}");
        self.told.iter().collect()
    }

    /// Tells a writer to begin.
    pub(crate) fn begin(&mut self) {
        let input = self.input.as_mut().expect("a writer has not begun");
        input.write_all(b"\n").expect("it waits");
    }

    /// The keys under which a writer stored something.
    pub(crate) fn stored(&mut self) -> Vec<String> {
        match self.told() {
            Told::Stored { keys } => keys,
            other => panic!("instead of keys it said {other:?}"),
        }
    }
}

impl Drop for Process {
    /// A test that failed leaves no process.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Calls for Process {
    fn answer_to(&mut self, ask: Ask) -> Option<Answer> {
        self.send(0, ask);
        loop {
            match self.told() {
                Told::Answer { client: 0, answer } => return answer,
                Told::Work { checkpoint, objects } => self.work.push((checkpoint, objects)),
                other => panic!("instead of an answer it said {other:?}"),
            }
        }
    }
}

fn listen(reader: ChildStdout, told: &Sender<Told>) {
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if let Some(message) = wire::read(&line) {
            // The test may have what it wanted.
            let _ = told.send(message);
        }
        line.clear();
    }
}

fn tell(told: &Told) {
    // Who listened may be gone, and then this process is about to end.
    let _ = wire::write(told, &mut io::stdout().lock());
}

/// The runner's own words may stand in this line already.
fn begin_a_line() {
    let mut out = io::stdout().lock();
    out.write_all(b"\n").and_then(|()| out.flush()).expect("somebody listens");
}

/// The entry of a node's process.
#[test]
#[ignore = "a process of its own, which the other tests start"]
fn is_a_node() {
    let Some(dir) = env::var_os(NODE).map(PathBuf::from) else { return };
    begin_a_line();
    tell(&Told::Starts);
    match open_or_begin(&dir) {
        Ok((node, effects, cut_bytes)) => {
            tell(&Told::Opened { cut_bytes });
            serve(&node, effects);
            if let Err(error) = node.stop() {
                tell(&Told::Ended { why: error.to_string() });
            }
        }
        Err(error) => tell(&Told::Ended { why: error.to_string() }),
    }
}

fn open_or_begin(dir: &Path) -> Result<(Node, Effects, u64), NodeError> {
    if SegmentLog::exists(dir)? {
        let agreed = |_: &_| Ok::<_, NodeError>(());
        let (node, effects, recovery) = Node::open_with(dir, job::SMALL, agreed)?;
        return Ok((node, effects, recovery.cut_bytes));
    }
    let (node, effects) = Node::create_with(dir, job::genesis("processes"), job::SMALL)?;
    Ok((node, effects, 0))
}

/// Does what it is told until nobody tells it any more.
fn serve(node: &Node, effects: Effects) {
    let effects = Arc::new(Mutex::new(effects));
    let mut clients: BTreeMap<u8, Sender<Ask>> = BTreeMap::new();
    thread::scope(|scope| {
        for line in io::stdin().lines() {
            let line = line.expect("somebody tells") + "\n";
            let Sent { client, ask } = wire::read(&line).expect("a whole line");
            let asks = clients.entry(client).or_insert_with(|| {
                let (sender, asks) = channel();
                let effects = Arc::clone(&effects);
                let calls = node.client();
                scope.spawn(move || answer_one(client, &calls, &effects, &asks));
                sender
            });
            asks.send(ask).expect("a client's thread ends last");
        }
        clients.clear();
    });
}

fn answer_one(client: u8, calls: &NodeClient, effects: &Mutex<Effects>, asks: &Receiver<Ask>) {
    for ask in asks {
        let answer = match calls.call(ask.request()) {
            Ok(Reply::Command(answer)) => Some(answer),
            Ok(other) => panic!("a command was answered with {other:?}"),
            Err(_) => None,
        };
        let effects = effects.lock().unwrap_or_else(PoisonError::into_inner);
        for Effect::Delete { checkpoint, objects, .. } in effects.try_iter() {
            tell(&Told::Work { checkpoint, objects });
        }
        tell(&Told::Answer { client, answer });
    }
}

/// The keys that every writer puts.
pub(crate) fn contested_keys() -> impl Iterator<Item = String> {
    (0..60).map(|number| format!("job/00e1/0abc/{number:04x}/0000"))
}

/// The size of every body: more than one write.
pub(crate) const BODY_BYTES: usize = 100_000;

/// The entry of a store's process.
#[test]
#[ignore = "a process of its own, which the other tests start"]
fn is_a_writer() {
    let Some(dir) = env::var_os(STORE).map(PathBuf::from) else { return };
    begin_a_line();
    let body: u8 = env::var(BODY).expect("a body").parse().expect("a byte");
    let store = FileStore::open(&dir, FileStoreOptions::default()).expect("a store");
    let body = vec![body; BODY_BYTES];
    // All are ready before one begins.
    tell(&Told::Opened { cut_bytes: 0 });
    io::stdin().lines().next();
    let put = |key: &String| match store.put(key, &[&body]) {
        PutOutcome::Stored => true,
        PutOutcome::Failed(_) => false,
        PutOutcome::Unknown(why) => panic!("{key}: {why}"),
    };
    tell(&Told::Stored { keys: contested_keys().filter(put).collect() });
}
