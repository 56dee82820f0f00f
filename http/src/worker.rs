//! A worker: one engine's process that saves and loads checkpoints of a job, whose coordinator is
//! elsewhere.
//!
//! It bundles a [`Client`], the [`Owner`] that asks through it, and the [`Runtime`] that drives
//! transfers over a store. [`Worker::save`] and [`Worker::load`] wait for the end: one round trip
//! to the coordinator before the bytes move, and one after. They protect the evidence: whatever is
//! not answered or not certain comes back as a transfer under way, which still holds its pins, and
//! goes on under the same operations. Nothing is settled, published or released by dropping
//! something. It never tries an object again, never takes silence for an answer, and never goes
//! over to another life of its job.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pinfold_core::catalog::Role;
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{CheckpointId, ShardIndex, StartId};
use pinfold_core::manifest::ObjectName;
use pinfold_core::outcome::{Evidence, Loss, Rejection, TurnKey};
use pinfold_core::policy::Genesis;
use pinfold_core::representation::Difference;
use pinfold_core::transfer::{
    Ended, Fault, LoadRequest, Miss, Published, SaveRequest, Transfer, TransferError,
};
use pinfold_host::owner::{Owner, OwnerError};
use pinfold_host::runtime::{
    Finished, Freight, Full, Handle, Runtime, RuntimeError, RuntimeOptions, Shutdown, Trouble,
    Unfinished, Unsettled,
};
use pinfold_host::store::ObjectStore;

use crate::client::{Client, ClientError, ClientOptions};

/// How long a transfer waits until it looks again whether there is room for it.
const A_MOMENT: Duration = Duration::from_millis(5);

/// How a worker works.
#[derive(Clone, Debug, Default)]
pub struct WorkerOptions {
    /// How it asks the coordinator. Its patience is how long a save or a load waits for one that
    /// does not answer.
    pub client: ClientOptions,
    /// How much it moves at once.
    pub runtime: RuntimeOptions,
}

/// A worker of a job. See the [module](self). Any number of threads may save and load at once.
///
/// Dropping it is [`Self::shutdown`] whose transfers go to those who hold them.
#[derive(Debug)]
pub struct Worker {
    url: String,
    options: ClientOptions,
    client: Mutex<Client>,
    owner: Arc<Owner>,
    runtime: Runtime,
    job: Genesis,
}

/// Why a worker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The coordinator cannot be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// It may not register, or the coordinator went away meanwhile.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// Its movers cannot be started.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The system has no random numbers, from which each start of a process gets its mark.
    #[error("no random start: {0}")]
    Random(getrandom::Error),
}

/// How a save ended. Nobody reads the memory that it was saved from any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Saved {
    /// Every object was put and confirmed, and what was to be published is.
    Saved {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The turn that expired with it, if one did.
        expired: Option<TurnKey>,
    },
    /// The position was kept already; no byte was moved, and what was to be published is.
    AlreadyThere {
        /// The checkpoint that keeps it.
        checkpoint: CheckpointId,
        /// The turn that expired with it, if one did.
        expired: Option<TurnKey>,
    },
    /// Nothing is kept of it.
    Refused(Refused),
}

/// How a load ended. Nobody writes the memory that was to be filled any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Loaded {
    /// Every object of one checkpoint arrived, was verified, and was adopted as a whole.
    Loaded {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// No candidate is kept: compute it.
    NotThere,
    /// An object is gone or wrong. It was reported, so that nobody is served this checkpoint again.
    Lost {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The first such object.
        object: ObjectName,
        /// What is wrong with it.
        why: Loss,
    },
    /// Nothing was adopted.
    Refused(Refused),
}

/// Who would not have it, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The coordinator's catalog, in its words.
    ByCatalog(Rejection),
    /// The store: an object failed, or nobody knows what became of it.
    ByStore {
        /// The first such object.
        object: ObjectName,
        /// What was wrong.
        fault: Fault,
        /// What went wrong on the way, the freight's part included.
        troubles: Vec<Trouble>,
    },
    /// Another rank: it stands at another checkpoint, or missed.
    ByPeer {
        /// This rank's checkpoint.
        checkpoint: CheckpointId,
    },
    /// An operator had settled a shard before it was done.
    ByOperator {
        /// The shard.
        shard: ShardIndex,
        /// The evidence that stands.
        stands: Evidence,
    },
    /// This worker: what is kept has another geometry than it planned.
    Geometry {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// In which fields, where the load explains that.
        differences: Vec<Difference>,
    },
    /// This worker: it gave the transfer up.
    GivenUp,
}

/// Why the end of a save or a load cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum NotEnded<T> {
    /// It was never begun: the request is not one.
    #[error(transparent)]
    NotBegun(#[from] TransferError),
    /// It was never begun: the coordinator that was lost does not answer again.
    #[error("the coordinator does not answer: nothing was begun")]
    NotReached,
    /// Somebody may still touch its memory: bring the [proof](UnderWay::retired), and
    /// [wait](Worker::wait) again. Its pins stay until then.
    #[error("memory is in doubt: prove that nobody touches it any more, and wait again")]
    InDoubt(UnderWay<T>),
    /// The coordinator did not answer in the client's time. Nothing is lost: [wait](Worker::wait)
    /// again, and every command is asked again under its operation.
    #[error("the coordinator does not answer: wait again, under the same operations")]
    NotAnswered(UnderWay<T>),
    /// Another life of the job answers at the URL, or another job. Nothing of this one counts
    /// there: drop this worker with what it holds, connect a new one, and start over. Or wait
    /// again when the right one is back. None when nothing was begun.
    #[error("another life of the job answers: connect a new worker, and start over")]
    OtherJob(Option<UnderWay<T>>),
    /// The worker was shut down meanwhile: its shutdown gave back what is not settled, unless the
    /// worker was dropped, which gives it to whoever waits.
    #[error("the worker was shut down: its transfer holds its pins until a runtime resumes it")]
    ShutDown(Option<Box<Unsettled>>),
}

/// A save or a load whose end is not known yet. It holds its pins; dropping it loses nothing.
#[must_use = "its memory is not free, and its pins stay, until its end is known"]
pub struct UnderWay<T> {
    handle: Handle,
    ends_as: PhantomData<fn() -> T>,
}

impl<T> UnderWay<T> {
    /// The proof that nobody writes an object's memory any more which the freight had placed in
    /// doubt.
    pub fn retired(&self, object: ObjectName) {
        self.handle.retired(object);
    }

    /// Begins nothing more of it.
    pub fn cancel(&self) {
        self.handle.cancel();
    }
}

impl<T> fmt::Debug for UnderWay<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnderWay").field(&self.handle).finish()
    }
}

impl Worker {
    /// A worker of the job whose coordinator is at a URL, once that has answered. Its name is its
    /// own in the job; another start of it is another incarnation.
    ///
    /// # Errors
    /// [`WorkerError`] says why it cannot start.
    pub fn connect(
        url: &str,
        name: &str,
        store: Arc<dyn ObjectStore>,
        options: WorkerOptions,
    ) -> Result<Self, WorkerError> {
        let client = Client::connect(url, options.client.clone())?;
        let Reply::Job(job) = client.ask(&Request::Query(Query::Job))? else {
            return Err(OwnerError::Unexpected.into());
        };
        let mut start = [0; 16];
        getrandom::fill(&mut start).map_err(WorkerError::Random)?;
        let start = StartId::from_u128(u128::from_be_bytes(start));
        let owner = Arc::new(Owner::register(client.clone(), name, Role::Worker, start)?);
        let runtime = Runtime::new(Arc::clone(&owner), store, job.clone(), options.runtime)?;
        let (url, options, client) = (url.to_string(), options.client, Mutex::new(client));
        Ok(Self { url, options, client, owner, runtime, job })
    }

    /// The job as it was when the worker connected.
    #[must_use]
    pub const fn job(&self) -> &Genesis {
        &self.job
    }

    /// Who asks for it, for commands of other kinds.
    #[must_use]
    pub const fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Why the coordinator gave no answer the last time that it was asked, if it gave none.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.client().trouble()
    }

    /// Saves a checkpoint and publishes it: prepare; every object put and confirmed; settle,
    /// publish and release. Waits while as many transfers are under way as may be.
    ///
    /// # Errors
    /// [`NotEnded`] says why the end is not known, and holds what is under way.
    pub fn save(
        &self,
        request: SaveRequest,
        freight: Arc<dyn Freight>,
    ) -> Result<Saved, NotEnded<Saved>> {
        self.run(Transfer::save(request)?, freight)
    }

    /// Loads the longest candidate that is kept: pin; every object got and verified; adopt; settle,
    /// which lets go. Waits while as many transfers are under way as may be.
    ///
    /// # Errors
    /// [`NotEnded`] says why the end is not known, and holds what is under way.
    pub fn load(
        &self,
        request: LoadRequest,
        freight: Arc<dyn Freight>,
    ) -> Result<Loaded, NotEnded<Loaded>> {
        self.run(Transfer::load(request)?, freight)
    }

    fn run<T: From<Finished>>(
        &self,
        mut transfer: Transfer,
        mut freight: Arc<dyn Freight>,
    ) -> Result<T, NotEnded<T>> {
        loop {
            // Transfers without a coordinator would take all the room for ever.
            self.connected().map_err(|why| why.of(None))?;
            match self.runtime.try_start(transfer, freight) {
                Ok(handle) => return self.end(UnderWay { handle, ends_as: PhantomData }),
                Err(full) => Full { transfer, freight } = *full,
            }
            thread::sleep(A_MOMENT);
        }
    }

    /// Goes on with what had no end: connects again where the coordinator was lost, asks every
    /// command again under its operation, and waits.
    ///
    /// # Errors
    /// [`NotEnded`] says why its end is still not known.
    pub fn wait<T: From<Finished>>(&self, under_way: UnderWay<T>) -> Result<T, NotEnded<T>> {
        match self.connected() {
            Ok(()) => self.end(under_way),
            Err(why) => Err(why.of(Some(under_way))),
        }
    }

    fn end<T: From<Finished>>(&self, under_way: UnderWay<T>) -> Result<T, NotEnded<T>> {
        let mut looked = false;
        loop {
            match under_way.handle.wait_or_doubt() {
                Ok(Some(finished)) => return Ok(finished.into()),
                Ok(None) => return Err(NotEnded::InDoubt(under_way)),
                Err(Unfinished::NodeGone) if !looked => {
                    // The client had its patience; one look tells who is there now.
                    looked = true;
                    if let Err(why) = self.reconnect(Duration::ZERO) {
                        return Err(why.of(Some(under_way)));
                    }
                }
                Err(Unfinished::NodeGone | Unfinished::Unexpected) => {
                    return Err(NotEnded::NotAnswered(under_way));
                }
                Err(Unfinished::HandedOver) => return Err(NotEnded::ShutDown(None)),
                Err(Unfinished::Unsettled(unsettled)) => {
                    return Err(NotEnded::ShutDown(Some(unsettled)));
                }
            }
        }
    }

    /// Connects again where a call found no coordinator.
    fn connected(&self) -> Result<(), Lost> {
        if self.owner.is_connected() { Ok(()) } else { self.reconnect(self.options.give_up_after) }
    }

    /// One thread connects for all.
    fn reconnect(&self, give_up_after: Duration) -> Result<(), Lost> {
        let mut client = self.client();
        if self.owner.is_connected() {
            return Ok(());
        }
        let options = ClientOptions { give_up_after, ..self.options.clone() };
        let seen = Client::connect(&self.url, options).map_err(|_| Lost::NotAnswered)?;
        if seen.epoch() != client.epoch() || seen.namespace() != client.namespace() {
            return Err(Lost::OtherJob);
        }
        *client = seen.patient(self.options.give_up_after);
        match self.runtime.reconnect(client.clone()) {
            Ok(()) => Ok(()),
            Err(OwnerError::OtherJob) => Err(Lost::OtherJob),
            Err(_) => Err(Lost::NotAnswered),
        }
    }

    fn client(&self) -> MutexGuard<'_, Client> {
        // It is replaced as a whole.
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels what is under way, waits until every move is retired, and delivers the evidence.
    /// What cannot be told, or is in doubt, is given back.
    pub fn shutdown(self) -> Shutdown {
        self.runtime.shutdown()
    }
}

/// Why there is no coordinator.
#[derive(Clone, Copy)]
enum Lost {
    NotAnswered,
    OtherJob,
}

impl Lost {
    fn of<T>(self, under_way: Option<UnderWay<T>>) -> NotEnded<T> {
        match (self, under_way) {
            (Self::NotAnswered, Some(under_way)) => NotEnded::NotAnswered(under_way),
            (Self::NotAnswered, None) => NotEnded::NotReached,
            (Self::OtherJob, under_way) => NotEnded::OtherJob(under_way),
        }
    }
}

impl From<Finished> for Saved {
    fn from(finished: Finished) -> Self {
        let Finished { ended, troubles, .. } = finished;
        let kept = |published| match published {
            Published::Here { expired, .. } => Ok(expired),
            Published::Elsewhere => Ok(None),
            Published::Refused(why) => Err(Self::Refused(Refused::ByCatalog(why))),
            Published::Withheld => Err(Self::Refused(Refused::GivenUp)),
        };
        match ended {
            Ended::Saved { checkpoint, published } => {
                kept(published).map_or_else(|no| no, |expired| Self::Saved { checkpoint, expired })
            }
            Ended::AlreadyPublished { checkpoint, published } => kept(published)
                .map_or_else(|no| no, |expired| Self::AlreadyThere { checkpoint, expired }),
            Ended::Skipped(why) | Ended::Barred { why, .. } => {
                Self::Refused(Refused::ByCatalog(why))
            }
            Ended::Disagreed { checkpoint } => Self::Refused(Refused::ByPeer { checkpoint }),
            Ended::Failed { object, why: fault, .. } => {
                Self::Refused(Refused::ByStore { object, fault, troubles })
            }
            Ended::Overruled { shard, stands, .. } => {
                Self::Refused(Refused::ByOperator { shard, stands })
            }
            // A save is neither restored nor missed.
            Ended::Cancelled { .. } | Ended::Restored { .. } | Ended::Missed(_) => {
                Self::Refused(Refused::GivenUp)
            }
        }
    }
}

impl From<Finished> for Loaded {
    fn from(finished: Finished) -> Self {
        let Finished { ended, troubles, differences, .. } = finished;
        let miss = match ended {
            Ended::Restored { checkpoint } => return Self::Loaded { checkpoint },
            Ended::Missed(miss) => miss,
            // A load ends in one of these two ways.
            Ended::Saved { .. }
            | Ended::AlreadyPublished { .. }
            | Ended::Skipped(_)
            | Ended::Disagreed { .. }
            | Ended::Failed { .. }
            | Ended::Overruled { .. }
            | Ended::Cancelled { .. }
            | Ended::Barred { .. } => Miss::Cancelled,
        };
        match miss {
            Miss::NothingPinned => Self::NotThere,
            Miss::Refused(why) | Miss::Barred(why) => Self::Refused(Refused::ByCatalog(why)),
            Miss::ManifestMismatch { checkpoint } => {
                Self::Refused(Refused::Geometry { checkpoint, differences })
            }
            Miss::Object { checkpoint, object, why: fault } => match fault.loss() {
                Some(why) => Self::Lost { checkpoint, object, why },
                None => Self::Refused(Refused::ByStore { object, fault, troubles }),
            },
            Miss::PeersMissed { checkpoint } => Self::Refused(Refused::ByPeer { checkpoint }),
            Miss::NothingChosen | Miss::Declined | Miss::Cancelled => {
                Self::Refused(Refused::GivenUp)
            }
        }
    }
}
