//! What the one who started a transfer holds of it, and what is told at its end.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pinfold_core::manifest::ObjectName;
use pinfold_core::representation::Difference;
use pinfold_core::transfer::{Completion, Ended, Transfer};

use super::freight::Freight;
use super::pool::Pool;
use super::porter::{Trouble, Waiting};
use super::proofs::Proofs;
use crate::owner::{Owner, Unanswered};

/// A transfer under way. Dropping it loses nothing: the transfer goes on to its end.
///
/// Any number of threads may wait and cancel at once.
pub struct Handle {
    pub(super) pool: Arc<Pool>,
    pub(super) number: u64,
    pub(super) notice: Arc<Notice>,
    pub(super) proofs: Arc<Proofs>,
}

/// A transfer at its end: nobody touches its freight any more.
#[derive(Clone)]
pub struct Finished {
    /// How it ended.
    pub ended: Ended,
    /// The freight that was handed in.
    pub freight: Arc<dyn Freight>,
    /// What went wrong on the way, in the order in which it came.
    pub troubles: Vec<Trouble>,
    /// In which fields a stored manifest differs from the own plan, where a load explains that.
    pub differences: Vec<Difference>,
}

/// Why a transfer's end cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum Unfinished {
    /// A command of it waits for the node. Nothing is lost: reconnect, and wait again.
    #[error("the node is gone: open it again, reconnect the runtime, and wait again")]
    NodeGone,
    /// The node answered something else than a command of it asked. Nothing is lost: reconnect to a
    /// node of this version, and wait again.
    #[error("the node answered something else: reconnect the runtime to a node of this version")]
    Unexpected,
    /// Its runtime was shut down before the end: it is among what
    /// [`Runtime::shutdown`](super::Runtime::shutdown) gave back, or was given to another waiter.
    #[error("the runtime was shut down: let another one resume what it gave back")]
    HandedOver,
    /// Its runtime was dropped before the end.
    #[error("the runtime was dropped: let another one resume this transfer")]
    Unsettled(Box<Unsettled>),
}

/// A transfer that could not come to its end, because the node is gone or memory is in doubt.
///
/// It still holds its pins. [`Runtime::resume`](super::Runtime::resume) goes on with it, over the
/// same owner; dropping it leaves its pins to the operator's fence.
#[must_use = "its pins stay until a runtime resumes it"]
pub struct Unsettled {
    pub(super) owner: Arc<Owner>,
    pub(super) transfer: Transfer,
    pub(super) freight: Arc<dyn Freight>,
    pub(super) proofs: Arc<Proofs>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) troubles: Vec<Trouble>,
}

/// What is known of a transfer's end.
#[derive(Default)]
pub(super) enum Told {
    #[default]
    UnderWay,
    /// Only a proof ends it.
    InDoubt,
    Unanswered(Unanswered),
    Finished(Finished),
    HandedOver,
    Unsettled(Box<Unsettled>),
}

/// Where a transfer's end is told.
#[derive(Default)]
pub(super) struct Notice {
    told: Mutex<Told>,
    changed: Condvar,
}

impl Notice {
    pub(super) fn tell(&self, told: Told) {
        *self.lock() = told;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        // What is told is replaced as a whole.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handle {
    /// Waits for the end. May be called again, and from several threads.
    ///
    /// # Errors
    /// [`Unfinished`] when the node is gone, or the runtime was.
    pub fn wait(&self) -> Result<Finished, Unfinished> {
        let mut told = self.notice.lock();
        loop {
            if let Some(end) = end(&mut told) {
                return end;
            }
            told = self.notice.changed.wait(told).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the end, or until only a [proof](Self::retired) brings it: none then.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_or_doubt(&self) -> Result<Option<Finished>, Unfinished> {
        let mut told = self.notice.lock();
        loop {
            if matches!(*told, Told::InDoubt) {
                return Ok(None);
            }
            if let Some(end) = end(&mut told) {
                return end.map(Some);
            }
            told = self.notice.changed.wait(told).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What [`Self::wait`] would give now; none while it would wait.
    #[must_use]
    pub fn try_wait(&self) -> Option<Result<Finished, Unfinished>> {
        end(&mut self.notice.lock())
    }

    /// Begins nothing more of it. Its end comes when what began is retired and its evidence is
    /// delivered; what was adopted or saved by then stays so.
    pub fn cancel(&self) {
        self.pool.cancel(self.number);
    }

    /// The proof that nobody writes an object's memory any more which was
    /// [placed in doubt](super::Placed::InDoubt).
    ///
    /// It counts whenever it comes. After a shutdown it waits for the runtime that resumes the
    /// transfer, and every handle of the transfer takes it.
    pub fn retired(&self, object: ObjectName) {
        self.proofs.bring(object);
    }
}

fn end(told: &mut Told) -> Option<Result<Finished, Unfinished>> {
    match std::mem::replace(told, Told::HandedOver) {
        Told::UnderWay => {
            *told = Told::UnderWay;
            None
        }
        Told::InDoubt => {
            *told = Told::InDoubt;
            None
        }
        Told::Unanswered(why) => {
            *told = Told::Unanswered(why);
            Some(Err(match why {
                Unanswered::Gone => Unfinished::NodeGone,
                Unanswered::Unexpected => Unfinished::Unexpected,
            }))
        }
        Told::Finished(finished) => {
            *told = Told::Finished(finished.clone());
            Some(Ok(finished))
        }
        Told::HandedOver => Some(Err(Unfinished::HandedOver)),
        // It can go on only once, so only one is told.
        Told::Unsettled(unsettled) => Some(Err(Unfinished::Unsettled(unsettled))),
    }
}

impl Unsettled {
    /// The proof that nobody writes an object's memory any more which was
    /// [placed in doubt](super::Placed::InDoubt). What a [`Handle`] takes meanwhile counts too,
    /// once it is resumed.
    pub fn retired(&mut self, object: ObjectName) {
        self.transfer.completed(object, Completion::Retired);
    }

    /// The transfer: what it holds, and what is known of its bytes.
    pub const fn transfer(&self) -> &Transfer {
        &self.transfer
    }

    /// Its freight, which may be touched still where the transfer says so.
    #[must_use]
    pub const fn freight(&self) -> &Arc<dyn Freight> {
        &self.freight
    }

    /// The commands that wait for their answers, in the order of their list; none when memory in
    /// doubt waits for its proof.
    #[must_use]
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("number", &self.number).finish_non_exhaustive()
    }
}

impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Finished");
        shown.field("ended", &self.ended).field("troubles", &self.troubles);
        shown.field("differences", &self.differences).finish_non_exhaustive()
    }
}

impl fmt::Debug for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Unsettled");
        shown.field("checkpoint", &self.transfer.checkpoint());
        shown.field("waiting", &self.waiting).finish_non_exhaustive()
    }
}
