//! One worker serves one request: restore the longest kept prefix, prefill, save, publish.
//!
//! The order and the evidence are the transfers', and their runtime does the steps. The bytes
//! really move between the worker's memory and the store, and every adopted byte is compared with
//! what the model computes for that position: what a restore adopts is judged from outside.

use std::sync::Arc;

use pinfold_core::catalog::Command;
use pinfold_core::id::{AttemptId, ChainValue, CheckpointId, ConversationId, ShardIndex, TurnId};
use pinfold_core::manifest::ObjectName;
use pinfold_core::outcome::{Limit, Rejection, TurnKey};
use pinfold_core::policy::Genesis;
use pinfold_core::transfer::{
    Candidate, Ended, Fault, LoadRequest, Miss, Publication, Published, SaveRequest, Step,
    Transfer, TransferError,
};
use pinfold_host::node::Gone;
use pinfold_host::owner::{Owner, OwnerError};
use pinfold_host::runtime::{Freight, Porter, Runtime, RuntimeError, RuntimeOptions, Unfinished};
use pinfold_host::store::{ObjectStore, Why};

use serde::{Deserialize, Serialize};

use crate::freight::{Inbound, Outbound};
use crate::link::TraceTag;
use crate::model::{Memory, Model, ModelError};

/// The only shard of the model.
const SHARD: ShardIndex = ShardIndex(0);

/// One turn to serve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// Its conversation and itself.
    pub key: TurnKey,
    /// The host's id of this try.
    pub attempt: AttemptId,
    /// The chain value after each full block, at least one.
    pub chain: Vec<ChainValue>,
}

impl Turn {
    /// The turn of a request of a trace, by numbers; another life of the worker takes another
    /// attempt.
    #[must_use]
    pub fn new(
        tag: TraceTag,
        conversation: u32,
        request: u32,
        life: u64,
        chain: Vec<ChainValue>,
    ) -> Self {
        let tag = tag.0;
        let conversation = Self::conversation(TraceTag(tag), conversation);
        let turn = TurnId::of_name(&format!("turn {tag} {request}"));
        let attempt = AttemptId::of_name(&format!("attempt {tag} {request} {life}"));
        Self { key: TurnKey { conversation, turn }, attempt, chain }
    }

    /// A conversation of a trace, by the number of its root.
    #[must_use]
    pub fn conversation(tag: TraceTag, root: u32) -> ConversationId {
        ConversationId::of_name(&format!("conversation {} {root}", tag.0))
    }
}

/// What became of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Blocks of the restored prefix; none when nothing was adopted.
    pub restored_blocks: Option<u32>,
    /// Why a checkpoint that was there could not be restored.
    pub restore_failed: Option<Why>,
    /// Adopted bytes that are not what the model computes: must never be.
    pub wrong_bytes: u64,
    /// The checkpoint that the turn now refers to.
    pub published: Option<CheckpointId>,
    /// The turn that expired with the publication.
    pub expired: Option<TurnKey>,
    /// The checkpoint whose every object was written and confirmed, whatever became of its
    /// publication; none when the position was kept already, or nothing could be kept.
    pub written: Option<CheckpointId>,
    /// Why nothing was kept of the turn.
    pub unsaved: Option<Unsaved>,
    /// Bytes of the private objects of the written checkpoint.
    pub private_bytes: u64,
    /// Shared pages that were put, in bytes; most are there already.
    pub shared_bytes: u64,
}

/// Why nothing was kept of a turn: no fault of the worker, which goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unsaved {
    /// The turn had expired before, and an expired turn stays so.
    Expired,
    /// Another save of this very position was under way.
    InFlight,
    /// The position is kept with another manifest: another trace gave its block ids to other
    /// prefixes.
    Mismatch,
    /// The checkpoint is larger than a byte budget: nothing was written.
    OverBudget {
        /// Its bytes.
        needed: u64,
    },
    /// The store failed, or what it held is lost.
    StoreFailed(Why),
}

/// Why a worker cannot start, or a turn could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The worker's runtime cannot start.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The catalog cannot be asked.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The model cannot be described.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A transfer cannot be made.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The catalog refused what it never should have here.
    #[error("the catalog refused: {0}")]
    Refused(Rejection),
    /// A transfer ended as a lone worker's cannot.
    #[error("a transfer ended as a lone worker's cannot: this is a fault of pinfold")]
    Stuck,
    /// A step of a transfer panicked.
    #[error("{0}")]
    Panicked(Why),
}

/// A worker: an owner with memory and a store.
pub struct Worker {
    /// With one mover, so that a lone worker does everything in the same order every time.
    runtime: Runtime,
    porter: Porter,
    model: Arc<Model>,
    job: Genesis,
}

impl Worker {
    /// A worker of a job.
    ///
    /// # Errors
    /// [`ServeError::Runtime`] when its thread cannot be started.
    pub fn new(
        owner: Owner,
        model: Arc<Model>,
        store: Arc<dyn ObjectStore>,
        job: Genesis,
    ) -> Result<Self, ServeError> {
        let owner = Arc::new(owner);
        let porter = Porter::new(Arc::clone(&owner), Arc::clone(&store), job.clone());
        let options = RuntimeOptions { threads: 1, transfers: 1 };
        let runtime = Runtime::new(owner, store, job.clone(), options)?;
        Ok(Self { runtime, porter, model, job })
    }

    /// Serves a turn.
    ///
    /// # Errors
    /// [`ServeError`] when the catalog is gone, or an answer contradicts the protocol.
    pub fn serve(&mut self, turn: &Turn) -> Result<Served, ServeError> {
        let mut served = Served::default();
        let mut memory = self.restore(turn, &mut served)?;
        self.model.prefill(&turn.chain, &mut memory);
        self.save(turn, memory, &mut served)?;
        Ok(served)
    }

    /// The longest kept prefix of a turn, in memory with room for all of it.
    fn restore(&self, turn: &Turn, served: &mut Served) -> Result<Memory, ServeError> {
        let most = usize::try_from(self.job.limits.candidates).unwrap_or(usize::MAX);
        let endpoints = self.model.endpoints(&turn.chain, most);
        let load = Transfer::load(LoadRequest {
            candidates: endpoints.iter().copied().map(Candidate::described_later).collect(),
            limit: 1,
            shards: vec![SHARD],
            has_peers: false,
            explains: false,
        })?;
        let inbound = Inbound::new(Arc::clone(&self.model), turn.chain.clone(), endpoints);
        let inbound = Arc::new(inbound);
        let ended = self.run(load, inbound.clone());
        if let Some(error) = inbound.take_failure() {
            return Err(error.into());
        }
        let (ended, trouble) = ended?;
        match ended {
            Ended::Restored { .. } => {
                let restored = inbound.take_restored().ok_or(ServeError::Stuck)?;
                served.restored_blocks = Some(restored.blocks);
                served.wrong_bytes = restored.wrong_bytes;
                Ok(restored.memory)
            }
            Ended::Missed(miss) => {
                served.restore_failed = trouble.or_else(|| missed(miss));
                Ok(self.model.memory(turn.chain.len()))
            }
            _ => Err(ServeError::Stuck),
        }
    }

    fn save(&self, turn: &Turn, memory: Memory, served: &mut Served) -> Result<(), ServeError> {
        let (save, outbound) = self.begin_save(turn, memory)?;
        let outbound = Arc::new(outbound);
        let (ended, trouble) = self.run(save, outbound.clone())?;
        served.shared_bytes = outbound.shared_bytes();
        let (checkpoint, published) = match ended {
            Ended::Saved { checkpoint, published } => {
                served.written = Some(checkpoint);
                served.private_bytes = outbound.private_bytes();
                (checkpoint, published)
            }
            Ended::AlreadyPublished { checkpoint, published } => (checkpoint, published),
            Ended::Failed { object, why, .. } => {
                let why = trouble.unwrap_or_else(|| faulty(object, why));
                served.unsaved = Some(Unsaved::StoreFailed(why));
                return Ok(());
            }
            Ended::Skipped(rejection) => {
                served.unsaved = Some(skipped(rejection)?);
                return Ok(());
            }
            _ => return Err(ServeError::Stuck),
        };
        match published {
            Published::Here { expired, .. } => {
                served.published = Some(checkpoint);
                served.expired = expired;
            }
            Published::Refused(Rejection::TurnExpired) => served.unsaved = Some(Unsaved::Expired),
            Published::Refused(Rejection::Lost) => {
                let why = Why::new(format!("checkpoint {checkpoint} was found lost"));
                served.unsaved = Some(Unsaved::StoreFailed(why));
            }
            Published::Refused(rejection) => return Err(ServeError::Refused(rejection)),
            Published::Elsewhere | Published::Withheld => return Err(ServeError::Stuck),
        }
        Ok(())
    }

    fn begin_save(&self, turn: &Turn, memory: Memory) -> Result<(Transfer, Outbound), ServeError> {
        let manifest = self.model.manifest(&turn.chain, turn.chain.len());
        let manifest = Arc::new(manifest.map_err(ModelError::from)?);
        let outbound = Outbound::new(&self.model, Arc::clone(&manifest), memory)?;
        let save = Transfer::save(SaveRequest {
            attempt: turn.attempt,
            manifest,
            shards: vec![SHARD],
            publication: Publication::Turn(turn.key),
            has_peers: false,
        })?;
        Ok((save, outbound))
    }

    /// How a transfer ends, and the first that went wrong on its way.
    fn run(
        &self,
        transfer: Transfer,
        freight: Arc<dyn Freight>,
    ) -> Result<(Ended, Option<Why>), ServeError> {
        let finished = match self.runtime.start(transfer, freight).wait() {
            Ok(finished) => finished,
            Err(Unfinished::NodeGone) => return Err(OwnerError::Gone(Gone).into()),
            Err(Unfinished::Unexpected) => return Err(OwnerError::Unexpected.into()),
            Err(Unfinished::HandedOver | Unfinished::Unsettled(_)) => {
                return Err(ServeError::Stuck);
            }
        };
        if let Some(trouble) = finished.troubles.iter().find(|trouble| trouble.panicked) {
            return Err(ServeError::Panicked(trouble.why.clone()));
        }
        let first = finished.troubles.into_iter().next().map(|trouble| trouble.why);
        Ok((finished.ended, first))
    }

    /// Begins a turn's save and stops after its first private put, as a killed process does. It
    /// never gets as far as a publication. False when there was nothing to put.
    ///
    /// # Errors
    /// [`ServeError`] when the catalog is gone.
    pub fn begin_and_vanish(&mut self, turn: &Turn) -> Result<bool, ServeError> {
        let mut memory = self.model.memory(turn.chain.len());
        self.model.prefill(&turn.chain, &mut memory);
        let (mut save, outbound) = self.begin_save(turn, memory)?;
        while let Some(step) = save.next_step() {
            if matches!(step, Step::Ask(Command::Publish { .. })) {
                break;
            }
            let is_put = matches!(step, Step::Put { object: ObjectName::Private(_), .. });
            self.porter.step(&mut save, step, &outbound)?;
            if is_put {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What a save that the catalog did not let begin means for its turn.
fn skipped(rejection: Rejection) -> Result<Unsaved, ServeError> {
    match rejection {
        Rejection::InFlight => Ok(Unsaved::InFlight),
        Rejection::ManifestMismatch => Ok(Unsaved::Mismatch),
        Rejection::LimitExceeded {
            limit: Limit::ConversationBytes | Limit::JobBytes,
            needed,
            ..
        } => Ok(Unsaved::OverBudget { needed }),
        rejection => Err(ServeError::Refused(rejection)),
    }
}

/// Why nothing was adopted of what was there; none when nothing was there.
fn missed(miss: Miss) -> Option<Why> {
    let words = match miss {
        Miss::NothingPinned => return None,
        Miss::Object { object, why, .. } => return Some(faulty(object, why)),
        Miss::ManifestMismatch { checkpoint } => format!(
            "checkpoint {checkpoint} has another manifest: another trace gave its block ids to \
             other prefixes"
        ),
        Miss::Refused(rejection) | Miss::Barred(rejection) => {
            format!("the catalog refused: {rejection}")
        }
        Miss::NothingChosen | Miss::PeersMissed { .. } | Miss::Declined | Miss::Cancelled => {
            "the load was given up".to_string()
        }
    };
    Some(Why::new(words))
}

/// What was wrong with an object, in words.
fn faulty(object: ObjectName, why: Fault) -> Why {
    let words = match why {
        Fault::NotStarted => "was never moved".to_string(),
        Fault::Unknown => "got no clear answer from the store".to_string(),
        Fault::Absent => "is not in the store".to_string(),
        Fault::WrongSize { bytes } => format!("has another size: {bytes} bytes"),
        Fault::WrongBytes => "has other bytes than were written".to_string(),
        Fault::Unreadable => "cannot be read".to_string(),
        Fault::Unverified => "was not verified".to_string(),
    };
    Why::new(format!("object {object} {words}"))
}
