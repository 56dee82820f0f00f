//! The main job: a fleet serves a trace through the real engine, journal and store.
//!
//! Half-way, or again and again, the process state is thrown away, with transfers under way, and
//! recovered from disk. What the fleet acknowledged and adopted is judged from outside each time,
//! and at the end.

mod job;
mod judge;
mod logged;
mod settings;

use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pinfold_core::id::{Epoch, Namespace};
use pinfold_core::outcome::Rejection;
use pinfold_core::policy::Limits;
use pinfold_host::file_store::FileStoreError;
use pinfold_host::journal::JournalError;
use pinfold_host::node::{Gone, NodeError};
use pinfold_host::owner::OwnerError;
use pinfold_host::store::ListError;

use crate::link::{TraceTag, chain_values};
use crate::model::{Model, ModelError};
use crate::report::Report;
use crate::serve::ServeError;
use crate::trace::{Request, Trace};

use job::Job;
pub use settings::Difference;

/// How a trace is replayed.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    /// Where journal and objects live.
    pub dir: PathBuf,
    /// Go on with the job that the folder holds.
    pub resume: bool,
    /// N: live turns per conversation.
    pub turns: u32,
    /// How many bytes the live turns of one conversation may hold; none means unbounded.
    pub conversation_bytes: Option<u64>,
    /// How many bytes the live turns of the whole job may hold; none means unbounded.
    pub job_bytes: Option<u64>,
    /// After how many requests the process state is thrown away, again and again; none means once,
    /// half-way.
    pub crash_every: Option<u32>,
    /// Workers that serve at once; with one, every figure repeats.
    pub workers: u32,
    /// Bytes of private state at each position.
    pub bytes_per_checkpoint: u64,
    /// Whether the store syncs each object; see
    /// [`FileStoreOptions`](pinfold_host::file_store::FileStoreOptions).
    pub sync_objects: bool,
    /// The namespace and epoch of a new job.
    pub namespace: Namespace,
    /// See `namespace`: 128 random bits, or derived from a seed so that a replay repeats.
    pub epoch: Epoch,
    /// The name of the trace, for the report.
    pub trace_name: String,
    /// The file for a log of the replay, which must not be there yet; none means no log.
    pub log: Option<PathBuf>,
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The folder holds a job, and nobody asked to go on with it.
    #[error(
        "{} holds a journal already: go on with it by --resume, or name another folder",
        .dir.display()
    )]
    Exists {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder holds no job to go on with.
    #[error("{} holds no journal: leave out --resume to begin one there", .dir.display())]
    Missing {
        /// The folder.
        dir: PathBuf,
    },
    /// The job of the folder has another policy.
    #[error("{}", settings::worded(.differences))]
    Policy {
        /// Where the two differ, at least once.
        differences: Vec<Difference>,
    },
    /// The job of the folder has states of another size.
    #[error(
        "the job has {found} bytes per checkpoint, not {expected}: \
         use --bytes-per-checkpoint {found}"
    )]
    Size {
        /// What was asked.
        expected: u64,
        /// What the job has.
        found: u64,
    },
    /// The replay's settings say nothing that can be read.
    #[error(
        "{} is damaged: write {{\"bytes_per_checkpoint\": BYTES}} into it, with the number that \
         the job began with",
        .path.display()
    )]
    DamagedSettings {
        /// The file.
        path: PathBuf,
    },
    /// The replay's settings cannot be read or written.
    #[error("could not use {}: {source}", .path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
    /// The file for the log cannot be made.
    #[error("the log {}: {}", .path.display(), not_made(.source))]
    NoLog {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
    /// The log cannot be written.
    #[error("the log {}: {source}", .path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
    /// A number is zero, or larger than a job allows.
    #[error("{what} must be between 1 and {most}")]
    OutOfRange {
        /// The flag.
        what: &'static str,
        /// The largest that is allowed.
        most: u32,
    },
    /// A number is zero where that would keep nothing, or never go on.
    #[error("{what} must be at least 1; leave out {what} to do without")]
    Zero {
        /// The flag.
        what: &'static str,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The node cannot start, or ended badly.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The node is gone.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] FileStoreError),
    /// The store cannot be listed.
    #[error(transparent)]
    List(#[from] ListError),
    /// A prompt is longer than a checkpoint can be planned for.
    #[error("request {number} of the trace cannot be planned: {why}")]
    Prompt {
        /// Which one, from 1.
        number: u64,
        /// Why not.
        why: ModelError,
    },
    /// The model cannot be described.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A turn could not be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// An owner cannot go on.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The operator was refused.
    #[error("the operator was refused: {0}")]
    Refused(Rejection),
    /// Whoever started it wished it to end; what is in the folder can be gone on with.
    #[error("stopped after {requests} requests")]
    Stopped {
        /// How many requests were served.
        requests: u32,
    },
    /// A worker's process cannot go on.
    #[error("worker {number}: {what}")]
    Process {
        /// Which one.
        number: u32,
        /// What it said, or what became of it.
        what: String,
    },
    /// The coordinator elsewhere cannot be asked.
    #[error("{0}")]
    Coordinator(String),
    /// A worker's thread ended without a word.
    #[error("a worker's thread died: this is a fault of pinfold")]
    Died,
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests that are done.
    pub done: u32,
    /// How often the process state was thrown away so far.
    pub crashes: u32,
}

/// Replays a trace. `progress` is told how far it is after each request, from any thread.
///
/// # Errors
/// [`ReplayError`] says what was wrong and what to do. Broken promises are no error: they are
/// counted in the report.
pub fn replay(
    config: &ReplayConfig,
    trace: &Trace,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, ReplayError> {
    replay_until(config, trace, &AtomicBool::new(false), progress)
}

/// Replays a trace until `stop` is set, by a signal for example: then each worker ends the request
/// that it has, and the job's state is durable, so that it can be gone on with.
///
/// # Errors
/// As [`replay`], and [`ReplayError::Stopped`] when requests were left.
pub fn replay_until(
    config: &ReplayConfig,
    trace: &Trace,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, ReplayError> {
    check(config)?;
    let mut job = Job::open(config, trace, stop)?;
    let report = serve(&mut job, config, progress).and_then(|()| job.finish());
    report.map_err(|error| job.cause(error))
}

fn serve(
    job: &mut Job<'_>,
    config: &ReplayConfig,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), ReplayError> {
    if config.resume {
        job.take_over()?;
    }
    job.take_point(0)?;
    let all = job.requests();
    let (mut until, every) = match config.crash_every {
        Some(every) => (every, every),
        None => (all / 2, all),
    };
    while until < all {
        job.serve(until, progress)?;
        job.throw_away()?;
        until = until.saturating_add(every);
    }
    job.serve(all, progress)
}

/// How many turns a conversation may keep: as many as a job allows.
#[must_use]
pub fn turns_range() -> RangeInclusive<u32> {
    1..=Limits::default().turns
}

/// How many workers may serve: an operator and a collector register beside them.
#[must_use]
pub fn workers_range() -> RangeInclusive<u32> {
    1..=Limits::default().owners - 2
}

/// Why the file for a log cannot be made, and what to do.
fn not_made(source: &std::io::Error) -> String {
    match source.kind() {
        ErrorKind::AlreadyExists => {
            "it is there already, and no log is written over: name a new file".to_string()
        }
        _ => format!("{source}: name a file that can be made"),
    }
}

/// Judges every number before anything is written.
fn check(config: &ReplayConfig) -> Result<(), ReplayError> {
    let bounds =
        [("--workers", config.workers, workers_range()), ("--turns", config.turns, turns_range())];
    for (what, number, range) in bounds {
        if !range.contains(&number) {
            return Err(ReplayError::OutOfRange { what, most: *range.end() });
        }
    }
    let options = [
        ("--conversation-bytes", config.conversation_bytes),
        ("--job-bytes", config.job_bytes),
        ("--crash-every", config.crash_every.map(u64::from)),
    ];
    match options.into_iter().find(|(_, number)| *number == Some(0)) {
        Some((what, _)) => Err(ReplayError::Zero { what }),
        None => Ok(()),
    }
}

/// The longest prompt must have a manifest; then all have. Judged before anything is written.
pub(crate) fn check_longest(model: &Model, trace: &Trace) -> Result<(), ReplayError> {
    let blocks = |request: &Request| request.full_blocks(trace.block_tokens).len();
    let Some((number, longest)) =
        (1..).zip(&trace.requests).max_by_key(|(_, request)| blocks(request))
    else {
        return Ok(());
    };
    let chain = chain_values(TraceTag::default(), longest, trace.block_tokens);
    if chain.is_empty() {
        return Ok(());
    }
    let planned = model.manifest(&chain, chain.len()).map_err(ModelError::from);
    planned.map(drop).map_err(|why| ReplayError::Prompt { number, why })
}
