//! A worker's runtime: it runs many transfers at once on a fixed number of threads.
//!
//! Whoever starts a transfer gives it the [`Freight`] whose memory is filled or emptied, and waits
//! for its end. The runtime takes every [`Step`](pinfold_core::transfer::Step) and does it: asks
//! the owner's node, moves objects between store and freight, pauses, and asks again. It protects
//! evidence: a command that found no node keeps its operation and is repeated, a panic counts as a
//! failure, no proof is lost between two runtimes, and what cannot be delivered at a shutdown is
//! handed back and never dropped. It admits no more transfers than it was told. It never retries an
//! object and never decides what a step means: that is the [`Transfer`].

mod freight;
mod handle;
mod pool;
mod porter;
mod proofs;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use pinfold_core::policy::Genesis;
use pinfold_core::transfer::Transfer;

use crate::coordinator::Coordinator;
use crate::owner::{Owner, OwnerError};
use crate::store::ObjectStore;
use handle::{Notice, Told};
use pool::Pool;

pub use freight::{Choice, Freight, Placed, Waited};
pub use handle::{Finished, Handle, Unfinished, Unsettled};
pub use porter::{Porter, Trouble, Waiting};

/// How much a runtime does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeOptions {
    /// Movers: threads that each do one step at a time, a call to the store or the node. With one,
    /// the steps of a lone transfer come in the same order every time. With several ranks there
    /// are more movers than transfers, because each may wait in one for another rank.
    pub threads: u32,
    /// The most transfers under way at once; whoever starts one more waits.
    pub transfers: u32,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self { threads: 8, transfers: 4 }
    }
}

/// Movers over one owner and one store. See the [module](self).
///
/// Dropping it is a [shutdown](Self::shutdown) whose unsettled transfers go to their
/// [handles](Unfinished::Unsettled); of those without a handle, the pins stay until a fence. A
/// freight must not own its runtime.
pub struct Runtime {
    pool: Arc<Pool>,
    movers: Vec<JoinHandle<()>>,
}

/// What a shutdown could not bring to its end.
#[derive(Debug)]
#[must_use = "the transfers in it hold pins until a runtime resumes them"]
pub struct Shutdown {
    /// In the order in which they were started. Empty when all evidence is delivered.
    pub unsettled: Vec<Unsettled>,
}

/// Why a runtime cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// Nobody would move anything.
    #[error("a runtime needs at least one thread: set `threads`")]
    NoThread,
    /// Nothing could ever be started.
    #[error("a runtime needs room for at least one transfer: set `transfers`")]
    NoTransfer,
    /// A thread cannot be started.
    #[error("a mover's thread cannot be started: {0}")]
    Thread(std::io::Error),
}

/// As many transfers are under way as may be; this one was not begun.
#[derive(thiserror::Error)]
#[error("as many transfers are under way as may be: wait for one, or call `start`, which waits")]
pub struct Full {
    /// The transfer.
    pub transfer: Transfer,
    /// Its freight.
    pub freight: Arc<dyn Freight>,
}

/// Only the owner that asked can go on with a transfer; this one is untouched.
#[derive(Debug, thiserror::Error)]
#[error("this transfer was begun by another owner: resume it over that one")]
pub struct OtherOwner(pub Box<Unsettled>);

impl Runtime {
    /// Starts the movers.
    ///
    /// # Errors
    /// [`RuntimeError`] when the options leave nothing to do, or a thread cannot be started.
    pub fn new(
        owner: Arc<Owner>,
        store: Arc<dyn ObjectStore>,
        job: Genesis,
        options: RuntimeOptions,
    ) -> Result<Self, RuntimeError> {
        let RuntimeOptions { threads, transfers } = options;
        if threads == 0 {
            return Err(RuntimeError::NoThread);
        }
        if transfers == 0 {
            return Err(RuntimeError::NoTransfer);
        }
        let pool = Arc::new(Pool::new(Porter::new(owner, store, job), transfers));
        let mut runtime = Self { pool, movers: Vec::new() };
        for number in 0..threads {
            let pool = Arc::clone(&runtime.pool);
            let mover = thread::Builder::new()
                .name(format!("pinfold-mover-{number}"))
                .spawn(move || pool.work())
                .map_err(RuntimeError::Thread)?;
            runtime.movers.push(mover);
        }
        Ok(runtime)
    }

    /// Starts a transfer of which no step was taken yet; waits while as many are under way as may
    /// be.
    ///
    /// While the node is gone nothing ends that has something to ask, so this may wait for a
    /// [reconnect](Self::reconnect) from another thread.
    pub fn start(&self, transfer: Transfer, freight: Arc<dyn Freight>) -> Handle {
        self.pool.admit(self.fresh(transfer, freight))
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// [`Full`] gives both back when as many are under way as may be.
    pub fn try_start(
        &self,
        transfer: Transfer,
        freight: Arc<dyn Freight>,
    ) -> Result<Handle, Box<Full>> {
        let admitted = self.pool.try_admit(Box::new(self.fresh(transfer, freight)));
        admitted.map_err(|unsettled| {
            let Unsettled { transfer, freight, .. } = *unsettled;
            Box::new(Full { transfer, freight })
        })
    }

    /// Goes on with what another runtime of the same owner could not end; waits as
    /// [`Self::start`] does. Its command is repeated under its operation, and the proofs that its
    /// handles got meanwhile are taken.
    ///
    /// # Errors
    /// [`OtherOwner`] gives it back.
    pub fn resume(&self, unsettled: Unsettled) -> Result<Handle, OtherOwner> {
        if !Arc::ptr_eq(&unsettled.owner, self.pool.porter.owner()) {
            return Err(OtherOwner(Box::new(unsettled)));
        }
        Ok(self.pool.admit(unsettled))
    }

    /// Goes on with a node that was opened again: every command without an answer is repeated under
    /// its operation.
    ///
    /// # Errors
    /// [`OwnerError`] when this node is gone too; nothing changed then.
    pub fn reconnect(&self, client: impl Coordinator + 'static) -> Result<(), OwnerError> {
        self.pool.porter.owner().reconnect(client)?;
        self.pool.reconnected();
        Ok(())
    }

    /// Cancels what is under way, waits until every move is retired and all evidence is delivered,
    /// and ends the movers.
    ///
    /// It waits for calls into the store and the freight, and for nothing else: what the node
    /// cannot be told because it is gone is given back, and so is what holds memory in doubt.
    pub fn shutdown(mut self) -> Shutdown {
        let left = self.close().into_iter();
        let unsettled = left.map(|(unsettled, notice)| {
            notice.tell(Told::HandedOver);
            unsettled
        });
        Shutdown { unsettled: unsettled.collect() }
    }

    fn close(&mut self) -> Vec<(Unsettled, Arc<Notice>)> {
        if self.movers.is_empty() {
            return Vec::new();
        }
        let left = self.pool.close();
        for mover in self.movers.drain(..) {
            // A mover ends by returning; there is nothing to learn from how.
            let _ = mover.join();
        }
        left
    }

    fn fresh(&self, transfer: Transfer, freight: Arc<dyn Freight>) -> Unsettled {
        let owner = Arc::clone(self.pool.porter.owner());
        let (proofs, waiting, troubles) = Default::default();
        Unsettled { owner, transfer, freight, proofs, waiting, troubles }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for (unsettled, notice) in self.close() {
            notice.tell(Told::Unsettled(Box::new(unsettled)));
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("movers", &self.movers.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("transfer", &self.transfer).finish_non_exhaustive()
    }
}
