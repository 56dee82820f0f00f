//! A node: one engine, its journal, and everybody who calls it.
//!
//! Protects the order of the gate: a reply or an effect leaves only after the frame that it depends
//! on is synced. Callers decide under one lock; one thread commits: it takes what was decided as
//! one frame, writes and syncs it without the lock, and lets out what that makes durable. So
//! whatever is decided during a sync shares the next one; a lone caller that waits commits by
//! itself. The node has no clock and executes nothing; effects go to whoever holds the [`Effects`].

mod committer;
mod shared;
#[cfg(test)]
mod tests;
mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pinfold_core::engine::{Config, Effect, Engine, Reply, Request};
use pinfold_core::id::Epoch;
use pinfold_core::policy::Genesis;
use pinfold_core::replay::RecoverError;

use crate::journal::{
    AppendError, Journal, JournalError, JournalOptions, SegmentLog, SnapshotReport,
};
use shared::Shared;

pub use watch::{Late, Watch};

/// A running engine with its journal. Dropping it stops it.
#[derive(Debug)]
pub struct Node {
    shared: Arc<Shared>,
    committer: Option<JoinHandle<Result<(), AppendError>>>,
    job: Genesis,
    snapshots: Arc<Mutex<SnapshotReport>>,
}

/// The effects of a node, in the order in which they became durable; they end with the node.
pub type Effects = Receiver<Effect>;

/// What recovery found and cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Records that the journal has had so far.
    pub records: u64,
    /// How many of them a snapshot stood for.
    pub snapshot_records: u64,
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
    /// The engine or its journal panicked: what was answered is durable, and nothing else is known.
    #[error("the node panicked; what it answered before is in the journal: open it again")]
    Panicked,
}

/// The node is gone or poisoned: nothing is known of what the request would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node is gone: open it again from its journal, and repeat the request")]
pub struct Gone;

/// A request was not sent.
#[derive(Debug)]
pub enum Unsent {
    /// The node is gone.
    Gone,
    /// There is no room, or somebody is to look at the engine first: it would have to wait. The
    /// request.
    Busy(Box<Request>),
}

impl From<Gone> for Unsent {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

impl Node {
    /// Begins a job in a folder without a journal, which is created when it is missing: the genesis
    /// is durable when this returns.
    ///
    /// # Errors
    /// [`NodeError`] when the folder holds a journal already, or cannot be written.
    pub fn create(dir: &Path, genesis: Genesis) -> Result<(Self, Effects), NodeError> {
        Self::create_with(dir, genesis, JournalOptions::default())
    }

    /// Begins a job with a journal of these sizes.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_with(
        dir: &Path,
        genesis: Genesis,
        options: JournalOptions,
    ) -> Result<(Self, Effects), NodeError> {
        let epoch = genesis.epoch;
        let engine = Engine::create(Config::default(), genesis)?;
        let journal = SegmentLog::create(dir, epoch, options)?;
        let snapshots = journal.snapshots();
        Self::start(engine, Box::new(journal), snapshots)
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
        Self::open_with(dir, JournalOptions::default(), agree)
    }

    /// Goes on with the job of a folder, if the caller agrees with it, and with these sizes of the
    /// journal from now on.
    ///
    /// # Errors
    /// As for [`open_if`](Self::open_if).
    pub fn open_with<E: From<NodeError>>(
        dir: &Path,
        options: JournalOptions,
        agree: impl FnOnce(&Genesis) -> Result<(), E>,
    ) -> Result<(Self, Effects, Recovery), E> {
        let began = Instant::now();
        let (journal, recovered) = SegmentLog::open(dir, options).map_err(NodeError::from)?;
        let records = recovered.replay.position();
        let (snapshot_records, cut_bytes) = (recovered.snapshot_records, recovered.cut_bytes);
        let engine =
            Engine::resume(Config::default(), recovered.replay).map_err(NodeError::from)?;
        agree(engine.catalog().job())?;
        let snapshots = journal.snapshots();
        let (node, effects) = Self::start(engine, Box::new(journal), snapshots)?;
        let took = began.elapsed();
        Ok((node, effects, Recovery { records, snapshot_records, cut_bytes, took }))
    }

    /// Runs an engine on a journal of another kind, which holds what the engine was made from.
    ///
    /// # Errors
    /// [`NodeError`] when the first append fails: the genesis, or that the engine recovered.
    pub fn with_journal(
        engine: Engine,
        journal: Box<dyn Journal>,
    ) -> Result<(Self, Effects), NodeError> {
        Self::start(engine, journal, Arc::default())
    }

    fn start(
        engine: Engine,
        journal: Box<dyn Journal>,
        snapshots: Arc<Mutex<SnapshotReport>>,
    ) -> Result<(Self, Effects), NodeError> {
        let (out, effects) = channel();
        let job = engine.catalog().job().clone();
        let shared = Arc::new(Shared::new(engine, out, journal));
        // Genesis or recovery is durable before the first answer.
        committer::commit_all(&shared)?;
        let commits = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("pinfold-commit".into())
            .spawn(move || committer::run(&commits))
            .map_err(NodeError::Thread)?;
        Ok((Self { shared, committer: Some(thread), job, snapshots }, effects))
    }

    /// The job as it was when the node started: namespace and epoch never change.
    #[must_use]
    pub const fn job(&self) -> &Genesis {
        &self.job
    }

    /// What became of the journal's snapshots since this node started. One that fails costs disk
    /// space and a longer recovery, and is for a person to look at.
    #[must_use]
    pub fn snapshots(&self) -> SnapshotReport {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets somebody look on at everything that the engine takes and lets out, in that order.
    ///
    /// The node calls while it holds its lock, so a watcher is quick and never calls the node.
    ///
    /// # Errors
    /// [`Late`] once a request was taken: a watcher sees everything of this node, or nothing.
    pub fn watch(&self, watch: Box<dyn Watch>) -> Result<(), Late> {
        self.shared.lock().watch(watch)
    }

    /// A way to call this node; after its end it answers [`Gone`].
    #[must_use]
    pub fn client(&self) -> NodeClient {
        NodeClient { shared: Arc::clone(&self.shared), epoch: self.job.epoch }
    }

    /// Answers what was sent before, and ends.
    ///
    /// # Errors
    /// [`NodeError::Append`] with the append that failed, if one did; the journal ends before it.
    /// [`NodeError::Panicked`] when the engine or the journal did.
    pub fn stop(mut self) -> Result<(), NodeError> {
        self.shared.stop();
        let ended = match self.committer.take().map(JoinHandle::join) {
            Some(Ok(result)) => result.map_err(NodeError::Append),
            Some(Err(_)) => Err(NodeError::Panicked),
            None => Ok(()),
        };
        if self.shared.panicked() { Err(NodeError::Panicked) } else { ended }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.committer.take() {
            let _ = thread.join();
        }
    }
}

/// A way to call a node, from any thread.
#[derive(Clone, Debug)]
pub struct NodeClient {
    shared: Arc<Shared>,
    epoch: Epoch,
}

impl NodeClient {
    /// Sends a request and waits for its reply, which is durable.
    ///
    /// # Errors
    /// [`Gone`] when the node ended or is poisoned. The same operation may be sent again later.
    pub fn call(&self, request: Request) -> Result<Reply, Gone> {
        self.shared.call(self.epoch, request)
    }

    /// The same way for a client that believes in this epoch, whichever the node's is.
    #[must_use]
    pub fn believing(&self, epoch: Epoch) -> Self {
        Self { shared: Arc::clone(&self.shared), epoch }
    }

    /// Whether the node has ended, and nothing can be asked of it any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.shared.is_over()
    }

    /// Sends a request without waiting for others or for the disk, and tells its reply once that is
    /// durable. `tell` runs on the thread that makes it durable, so it is quick and never calls the
    /// node; it is dropped uncalled when the node ends first, and then nobody knows what became of
    /// the request.
    ///
    /// # Errors
    /// [`Unsent`] when the node is gone, or the caller would have to wait.
    pub fn send(
        &self,
        request: Request,
        tell: impl FnOnce(Reply) + Send + 'static,
    ) -> Result<(), Unsent> {
        self.shared.send(self.epoch, request, Box::new(tell))
    }

    /// Looks at the engine between two requests, when everything is durable.
    ///
    /// Everybody else waits meanwhile, so a look is short. One that calls its own node gets
    /// [`Gone`], for nobody could answer it. One that panics does so on the thread that asked.
    ///
    /// # Errors
    /// [`Gone`] when the node ended.
    pub fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Engine, NodeStats) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (seen, answer) = channel();
        self.shared.look(Box::new(move |engine, stats| {
            // It changes nothing, so the engine is as good as before.
            let looked = catch_unwind(AssertUnwindSafe(|| look(engine, stats)));
            // When nobody waits for the answer any more, nothing is lost.
            let _ = seen.send(looked);
        }))?;
        match answer.recv() {
            Ok(Ok(seen)) => Ok(seen),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => Err(Gone),
        }
    }
}
