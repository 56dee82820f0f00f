//! The main job: a fleet serves a trace through the real engine, journal and store.
//!
//! Half-way the process state is thrown away, with transfers under way, and recovered from disk.
//! What the fleet acknowledged and adopted is judged from outside, before and after.

mod job;

use std::path::PathBuf;
use std::time::Instant;

use pinfold_core::id::{Epoch, Namespace};
use pinfold_core::outcome::Rejection;
use pinfold_core::policy::Limits;
use pinfold_host::file_store::FileStoreError;
use pinfold_host::journal::JournalError;
use pinfold_host::node::{Gone, NodeError};
use pinfold_host::owner::OwnerError;
use pinfold_host::store::ListError;

use crate::model::ModelError;
use crate::report::Report;
use crate::serve::ServeError;
use crate::trace::Trace;

use job::Job;

/// How a trace is replayed.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    /// Where journal and objects live.
    pub dir: PathBuf,
    /// Go on with the job that the folder holds.
    pub resume: bool,
    /// N: live turns per conversation.
    pub turns: u32,
    /// Workers that serve at once; with one, every figure repeats.
    pub workers: u32,
    /// Bytes of private state at each position.
    pub bytes_per_checkpoint: u64,
    /// The namespace and epoch of a new job.
    pub namespace: Namespace,
    /// See `namespace`: 128 random bits, or derived from a seed so that a replay repeats.
    pub epoch: Epoch,
    /// The name of the trace, for the report.
    pub trace_name: String,
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
    #[error("the job keeps {found} turns per conversation, not {expected}: use --turns {found}")]
    Policy {
        /// What was asked.
        expected: u32,
        /// What the job has.
        found: u32,
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
    /// The replay's settings cannot be written.
    #[error("could not write {}: {source}", .path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
    /// A number is zero, or larger than a job allows.
    #[error("{what} must be between 1 and {most}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// The largest that is allowed.
        most: u32,
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
    /// A worker's thread ended without a word.
    #[error("a worker's thread died: this is a fault of pinfold")]
    Died,
}

/// Replays a trace. `progress` is told how many requests are done, from any thread.
///
/// # Errors
/// [`ReplayError`] says what was wrong and what to do. Broken promises are no error: they are
/// counted in the report.
pub fn replay(
    config: &ReplayConfig,
    trace: &Trace,
    progress: &(dyn Fn(u32) + Sync),
) -> Result<Report, ReplayError> {
    let limits = Limits::default();
    // An operator and a collector register beside the workers.
    let bounds =
        [("workers", config.workers, limits.owners - 2), ("turns", config.turns, limits.turns)];
    for (what, number, most) in bounds {
        if !(1..=most).contains(&number) {
            return Err(ReplayError::OutOfRange { what, most });
        }
    }
    let began = Instant::now();
    let mut job = Job::open(config, trace)?;
    let all = job.requests();
    job.serve(all / 2, progress)?;
    job.throw_away()?;
    job.serve(all, progress)?;
    job.finish(began)
}
