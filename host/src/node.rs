//! A node: one engine, its journal, and a thread of its own between them.
//!
//! Clients on any thread call it and wait for their reply. What arrives while a sync runs is
//! decided together and becomes one frame: group commit without a timer. The node executes nothing;
//! effects go to whoever holds the [`Effects`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pinfold_core::engine::{Config, Effect, Engine, Input, RecoverError, Reply, Request, Ticket};
use pinfold_core::host::Host;
use pinfold_core::id::Epoch;
use pinfold_core::policy::Genesis;

use crate::journal_file::{AppendError, Journal, JournalError, JournalFile};

/// A running engine on a data folder. Dropping it stops it.
#[derive(Debug)]
pub struct Node {
    inbox: Option<Sender<Message>>,
    thread: Option<JoinHandle<Result<(), AppendError>>>,
    job: Genesis,
}

/// The effects of a node, in the order in which they became durable.
pub type Effects = Receiver<Effect>;

/// What recovery found and cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Records read back.
    pub records: u64,
    /// Bytes of a torn tail that were cut.
    pub cut_bytes: u64,
    /// From opening the journal to an engine that answers.
    pub took: Duration,
}

/// What a node has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Requests answered.
    pub requests: u64,
    /// Frames appended and synced.
    pub syncs: u64,
    /// Bytes of those frames.
    pub journal_bytes: u64,
    /// The most bytes that checkpoints with a record held at once, seen at each sync.
    pub peak_bytes: u64,
}

enum Message {
    Request(Epoch, Request, Sender<Reply>),
    Inspect(Look),
    Stop,
}

/// What looks at the engine between two requests.
type Look = Box<dyn FnOnce(&Engine, NodeStats) + Send>;

/// A way to call a node, one per thread.
#[derive(Clone, Debug)]
pub struct NodeClient {
    inbox: Sender<Message>,
    epoch: Epoch,
}

/// Why a node cannot start, or how it ended.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The journal cannot be made or opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal's records cannot be used.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// An append failed.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The thread cannot be started.
    #[error("the node's thread cannot be started: {0}")]
    Thread(std::io::Error),
    /// The thread panicked: what was answered is durable, and nothing else is known.
    #[error("the node's thread panicked; what it answered before is in the journal: open it again")]
    Panicked,
}

/// The node is gone or poisoned: nothing is known of what the request would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node is gone: open it again from its journal, and repeat the request")]
pub struct Gone;

impl Node {
    /// Begins a job in a folder without a journal, which is created when it is missing: the genesis
    /// is durable when this returns.
    ///
    /// # Errors
    /// [`NodeError`] when the folder holds a journal already, or cannot be written.
    pub fn create(dir: &Path, genesis: Genesis) -> Result<(Self, Effects), NodeError> {
        let epoch = genesis.epoch;
        let engine = Engine::create(Config::default(), genesis)?;
        let journal = JournalFile::create(dir, epoch)?;
        Self::start(engine, journal)
    }

    /// Goes on with the job of a folder.
    ///
    /// # Errors
    /// [`NodeError`] when there is no journal, somebody else has it open, or it is damaged.
    pub fn open(dir: &Path) -> Result<(Self, Effects, Recovery), NodeError> {
        Self::open_if(dir, |_| Ok(()))
    }

    /// Goes on with the job of a folder, if the caller agrees with it.
    ///
    /// No record is appended before the caller agrees. The journal was opened by then: a torn tail
    /// is cut, and the last frame written again with its own bytes.
    ///
    /// # Errors
    /// The caller's own, and as for [`open`](Self::open).
    pub fn open_if<E: From<NodeError>>(
        dir: &Path,
        agree: impl FnOnce(&Genesis) -> Result<(), E>,
    ) -> Result<(Self, Effects, Recovery), E> {
        let began = Instant::now();
        let (journal, recovered) = JournalFile::open(dir).map_err(NodeError::from)?;
        let records = recovered.records().map(|(_, record)| record);
        let engine = Engine::recover(Config::default(), records).map_err(NodeError::from)?;
        agree(engine.catalog().job())?;
        let (node, effects) = Self::start(engine, journal)?;
        let recovery = Recovery {
            records: recovered.next_sequence,
            cut_bytes: recovered.cut_bytes,
            took: began.elapsed(),
        };
        Ok((node, effects, recovery))
    }

    fn start(engine: Engine, journal: JournalFile) -> Result<(Self, Effects), NodeError> {
        let (inbox, messages) = channel();
        let (out, effects) = channel();
        let job = engine.catalog().job().clone();
        let mut work = Loop {
            engine,
            io: Io { journal, effects: out, waiting: BTreeMap::new(), stats: NodeStats::default() },
            next_ticket: 0,
        };
        // Genesis or recovery is durable before the first answer.
        work.engine.drive(&mut work.io)?;
        let thread = thread::Builder::new()
            .name("pinfold-node".into())
            .spawn(move || work.run(&messages))
            .map_err(NodeError::Thread)?;
        Ok((Self { inbox: Some(inbox), thread: Some(thread), job }, effects))
    }

    /// The job as it was when the node started: namespace and epoch never change.
    #[must_use]
    pub const fn job(&self) -> &Genesis {
        &self.job
    }

    /// A way to call this node.
    ///
    /// # Errors
    /// [`Gone`] after it was stopped.
    pub fn client(&self) -> Result<NodeClient, Gone> {
        let inbox = self.inbox.clone().ok_or(Gone)?;
        Ok(NodeClient { inbox, epoch: self.job.epoch })
    }

    /// Answers what was sent before, and ends the thread.
    ///
    /// # Errors
    /// [`NodeError::Append`] with the append that failed, if one did; the journal ends before it.
    /// [`NodeError::Panicked`] when the thread did.
    pub fn stop(mut self) -> Result<(), NodeError> {
        if let Some(inbox) = self.inbox.take() {
            // A thread that is gone already tells why below.
            let _ = inbox.send(Message::Stop);
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result.map_err(NodeError::Append),
            Some(Err(_)) => Err(NodeError::Panicked),
            None => Ok(()),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.take() {
            let _ = inbox.send(Message::Stop);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl NodeClient {
    /// Sends a request and waits for its reply, which is durable.
    ///
    /// # Errors
    /// [`Gone`] when the node ended or is poisoned. The same operation may be sent again later.
    pub fn call(&self, request: Request) -> Result<Reply, Gone> {
        let (reply, answer) = channel();
        let message = Message::Request(self.epoch, request, reply);
        self.inbox.send(message).map_err(|_| Gone)?;
        match answer.recv() {
            Ok(Reply::Poisoned) | Err(_) => Err(Gone),
            Ok(reply) => Ok(reply),
        }
    }

    /// Looks at the engine between two requests, when everything is durable.
    ///
    /// # Errors
    /// [`Gone`] when the node ended.
    pub fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Engine, NodeStats) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (seen, answer) = channel();
        let look = move |engine: &Engine, stats: NodeStats| {
            // Nobody waits for the answer any more: nothing is lost.
            let _ = seen.send(look(engine, stats));
        };
        self.inbox.send(Message::Inspect(Box::new(look))).map_err(|_| Gone)?;
        answer.recv().map_err(|_| Gone)
    }
}

/// The node's thread.
struct Loop {
    engine: Engine,
    io: Io,
    next_ticket: u64,
}

/// What the engine calls back.
struct Io {
    journal: JournalFile,
    effects: Sender<Effect>,
    waiting: BTreeMap<Ticket, Sender<Reply>>,
    stats: NodeStats,
}

impl Loop {
    fn run(mut self, messages: &Receiver<Message>) -> Result<(), AppendError> {
        loop {
            let Some(first) = self.wait(messages)? else { return Ok(()) };
            let mut next = Some(first);
            let mut stop = false;
            while let Some(message) = next.take() {
                match message {
                    Message::Stop => stop = true,
                    Message::Inspect(look) => {
                        self.engine.drive(&mut self.io)?;
                        look(&self.engine, self.io.stats);
                    }
                    Message::Request(epoch, request, reply) => self.submit(epoch, request, reply),
                }
                if !stop && !self.engine.is_full() {
                    next = messages.try_recv().ok();
                }
            }
            let bytes = self.engine.catalog().gauges().bytes;
            self.io.stats.peak_bytes = self.io.stats.peak_bytes.max(bytes);
            self.engine.drive(&mut self.io)?;
            if stop {
                return Ok(());
            }
        }
    }

    /// The next message; follow-ups go on while there is none. None when nobody can send any more.
    fn wait(&mut self, messages: &Receiver<Message>) -> Result<Option<Message>, AppendError> {
        loop {
            match messages.try_recv() {
                Ok(message) => return Ok(Some(message)),
                Err(TryRecvError::Disconnected) => return Ok(None),
                Err(TryRecvError::Empty) => {}
            }
            if !self.engine.follow_up() {
                self.engine.drive(&mut self.io)?;
                return Ok(messages.recv().ok());
            }
            if self.engine.is_full() {
                self.engine.drive(&mut self.io)?;
            }
        }
    }

    fn submit(&mut self, epoch: Epoch, request: Request, reply: Sender<Reply>) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.io.waiting.insert(ticket, reply);
        self.engine.submit(Input { ticket, epoch, request });
    }
}

impl Host for Io {
    type Error = AppendError;

    fn append(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        self.journal.append(bytes)?;
        self.stats.syncs += 1;
        self.stats.journal_bytes += bytes.len() as u64;
        Ok(())
    }

    fn start(&mut self, effect: Effect) {
        // Without a collector the work stays in the queue and is handed out again.
        let _ = self.effects.send(effect);
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply) {
        self.stats.requests += 1;
        if let Some(waiting) = self.waiting.remove(&ticket) {
            // A client that went away asks again under the same operation id.
            let _ = waiting.send(reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use pinfold_core::catalog::{Command, PROTOCOL_VERSION, Register, Role};
    use pinfold_core::engine::Query;
    use pinfold_core::id::{Incarnation, OpId, OwnerId, StartId};
    use pinfold_core::outcome::Outcome;
    use pinfold_core::policy::{Limits, Policy};

    use super::*;

    fn genesis() -> Genesis {
        Genesis {
            namespace: "node".parse().unwrap(),
            epoch: Epoch::of_name("node test"),
            operator: OwnerId::of_name("operator"),
            policy: Policy::default(),
            limits: Limits::default(),
        }
    }

    fn register(name: &str) -> Request {
        Request::Register(Register {
            owner: OwnerId::of_name(name),
            role: Role::Worker,
            after: Incarnation(0),
            start: StartId::of_name(name),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        })
    }

    /// What a client saw is there after the node is opened again, and answers the same.
    #[test]
    fn answers_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (node, _effects) = Node::create(dir.path(), genesis()).unwrap();
        let client = node.client().unwrap();
        let registered = client.call(register("w1")).unwrap();
        let incarnation = Incarnation(1);
        assert_eq!(registered, Reply::Command(Ok(Outcome::Registered { incarnation })));
        let op = OpId { owner: OwnerId::of_name("w1"), incarnation, sequence: 1 };
        let collect = || Request::Command(op, Command::Collect { limit: 5 });
        let first = client.call(collect()).unwrap();
        node.stop().unwrap();
        assert_eq!(client.call(collect()), Err(Gone));
        let (node, _effects, recovery) = Node::open(dir.path()).unwrap();
        assert_eq!(recovery.records, 3);
        let client = node.client().unwrap();
        assert_eq!(client.call(register("w1")).unwrap(), registered);
        assert_eq!(client.call(collect()).unwrap(), first);
        assert_eq!(client.call(Request::Query(Query::Job)).unwrap(), Reply::Job(genesis()));
    }

    /// Many clients at once share syncs, and each gets its own answer.
    #[test]
    fn clients_share_syncs() {
        let dir = tempfile::tempdir().unwrap();
        let (node, _effects) = Node::create(dir.path(), genesis()).unwrap();
        thread::scope(|scope| {
            for number in 0..8 {
                let client = node.client().unwrap();
                scope.spawn(move || {
                    let reply = client.call(register(&format!("w{number}"))).unwrap();
                    assert!(matches!(reply, Reply::Command(Ok(Outcome::Registered { .. }))));
                });
            }
        });
        let client = node.client().unwrap();
        let stats = client.inspect(|_, stats| stats).unwrap();
        assert_eq!(stats.requests, 8);
        assert!(stats.syncs <= 9);
    }

    /// A panic of the node's thread is told, and what was answered before is there.
    #[test]
    fn a_panic_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (node, _effects) = Node::create(dir.path(), genesis()).unwrap();
        let client = node.client().unwrap();
        let registered = client.call(register("w1")).unwrap();
        assert_eq!(client.inspect(|_, _| panic!("a look that fails")), Err::<(), _>(Gone));
        assert_eq!(client.call(register("w1")), Err(Gone));
        assert!(matches!(node.stop(), Err(NodeError::Panicked)));
        let (node, _effects, _) = Node::open(dir.path()).unwrap();
        assert_eq!(node.client().unwrap().call(register("w1")).unwrap(), registered);
        node.stop().unwrap();
    }
}
