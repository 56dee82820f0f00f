//! One worker serves one request: restore the longest kept prefix, prefill, save, publish.
//!
//! The order and the evidence are the transfers'; this is their host. The bytes really move between
//! the worker's memory and the store, and every adopted byte is compared with what the model
//! computes for that position: what a restore adopts is judged from outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinfold_core::catalog::Command;
use pinfold_core::id::{
    AttemptId, ChainValue, CheckpointId, ConversationId, EndpointId, Key, ObjectId, ShardIndex,
    TurnId,
};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::object::{Digest, TRAILER_BYTES, seal, verify};
use pinfold_core::outcome::{Limit, Rejection, TurnKey};
use pinfold_core::plan::Piece;
use pinfold_core::policy::Genesis;
use pinfold_core::transfer::{
    Candidate, Completion, Ended, GetAnswer, LoadRequest, Miss, Publication, Published, PutAnswer,
    SaveRequest, Step, Transfer, TransferError,
};
use pinfold_host::store::{GetOutcome, ObjectStore};

use crate::fleet::{Owner, OwnerError};
use crate::link::TraceTag;
use crate::model::{Memory, Model, ModelError};

/// The only shard of the model.
const SHARD: ShardIndex = ShardIndex(0);

/// One turn to serve.
#[derive(Clone, Debug)]
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
        let conversation = ConversationId::of_name(&format!("conversation {tag} {conversation}"));
        let turn = TurnId::of_name(&format!("turn {tag} {request}"));
        let attempt = AttemptId::of_name(&format!("attempt {tag} {request} {life}"));
        Self { key: TurnKey { conversation, turn }, attempt, chain }
    }
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Blocks of the restored prefix; none when nothing was adopted.
    pub restored_blocks: Option<u32>,
    /// A pinned checkpoint could not be restored.
    pub restore_failed: bool,
    /// Adopted bytes that are not what the model computes: must never be.
    pub wrong_bytes: u64,
    /// The checkpoint that the turn now refers to.
    pub published: Option<CheckpointId>,
    /// The turn that expired with the publication.
    pub expired: Option<TurnKey>,
    /// The position was kept already, and nothing was written.
    pub already: bool,
    /// The checkpoint is larger than a byte budget: nothing was written.
    pub over_budget: bool,
    /// Bytes of the private objects that were put.
    pub private_bytes: u64,
    /// Shared pages that were put, in bytes; most are there already.
    pub shared_bytes: u64,
}

/// Why a turn could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
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
    /// A transfer asks for what a lone worker cannot do.
    #[error("a transfer waits for what a lone worker cannot do: this is a fault of pinfold")]
    Stuck,
}

/// A worker: an owner with memory and a store.
pub struct Worker {
    owner: Owner,
    model: Arc<Model>,
    store: Arc<dyn ObjectStore>,
    job: Genesis,
}

/// What one transfer moves: which memory holds which object.
struct Freight {
    memory: Memory,
    pieces: BTreeMap<ObjectName, Vec<Piece>>,
    /// The manifest's own bytes, which are object 0.
    manifest: Vec<u8>,
    private_bytes: u64,
    shared_bytes: u64,
}

impl Worker {
    /// A worker of a job.
    #[must_use]
    pub fn new(owner: Owner, model: Arc<Model>, store: Arc<dyn ObjectStore>, job: Genesis) -> Self {
        Self { owner, model, store, job }
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
    fn restore(&mut self, turn: &Turn, served: &mut Served) -> Result<Memory, ServeError> {
        let most = usize::try_from(self.job.limits.candidates).unwrap_or(usize::MAX);
        let endpoints = self.model.endpoints(&turn.chain, most);
        let candidates = endpoints.iter().copied().map(Candidate::described_later).collect();
        let mut load = Transfer::load(LoadRequest {
            candidates,
            limit: 1,
            shards: vec![SHARD],
            has_peers: false,
            explains: false,
        })?;
        // Bytes go into memory that nobody has adopted; all of it is adopted, or nothing.
        let mut freight = Freight::empty(self.model.memory(turn.chain.len()));
        let mut adopted = None;
        while let Some(step) = load.next_step() {
            match step {
                Step::Describe { endpoint } => {
                    let manifest = self.plan(turn, &endpoints, endpoint)?;
                    freight.fill(&self.model, &manifest)?;
                    load.described(&manifest);
                    adopted = Some(manifest);
                }
                Step::Adopt { .. } => {
                    served.restored_blocks = adopted
                        .as_ref()
                        .and_then(|manifest| u32::try_from(manifest.chain().len()).ok());
                }
                step => self.do_step(&mut load, step, &mut freight)?,
            }
        }
        match load.report() {
            Some(Ended::Restored { .. }) => {}
            Some(Ended::Missed(miss)) => {
                served.restore_failed = !matches!(miss, Miss::NothingPinned);
                return Ok(self.model.memory(turn.chain.len()));
            }
            _ => return Err(ServeError::Stuck),
        }
        if let Some(manifest) = adopted {
            served.wrong_bytes = self.wrong_bytes(turn, &manifest, &freight)?;
        }
        Ok(freight.memory)
    }

    /// The manifest of one of the turn's positions, which stand longest first.
    fn plan(
        &self,
        turn: &Turn,
        endpoints: &[EndpointId],
        endpoint: EndpointId,
    ) -> Result<Manifest, ServeError> {
        let place = endpoints.iter().position(|there| *there == endpoint);
        let blocks = turn.chain.len() - place.ok_or(ServeError::Stuck)?;
        Ok(self.model.manifest(&turn.chain, blocks).map_err(ModelError::from)?)
    }

    /// Adopted bytes that differ from what the model computes.
    fn wrong_bytes(
        &self,
        turn: &Turn,
        manifest: &Manifest,
        freight: &Freight,
    ) -> Result<u64, ServeError> {
        let blocks = manifest.chain().len();
        let mut expected = self.model.memory(turn.chain.len());
        self.model.prefill(&turn.chain[..blocks], &mut expected);
        let pieces = freight.pieces.values().flatten();
        let wrong = pieces.map(|piece| {
            let left = freight.memory.piece(piece.address, piece.bytes);
            let right = expected.piece(piece.address, piece.bytes);
            left.iter().zip(right).filter(|(left, right)| left != right).count() as u64
        });
        Ok(wrong.sum())
    }

    fn save(&mut self, turn: &Turn, memory: Memory, served: &mut Served) -> Result<(), ServeError> {
        let (mut save, mut freight) = self.begin_save(turn, memory)?;
        while let Some(step) = save.next_step() {
            self.do_step(&mut save, step, &mut freight)?;
        }
        served.private_bytes = freight.private_bytes;
        served.shared_bytes = freight.shared_bytes;
        let (checkpoint, published) = match save.report() {
            Some(Ended::Saved { checkpoint, published }) => (checkpoint, published),
            Some(Ended::AlreadyPublished { checkpoint, published }) => {
                served.already = true;
                (checkpoint, published)
            }
            // Somebody else saves this very position, the store failed, or another trace gave its
            // block ids to other prefixes: the turn goes unsaved.
            Some(
                Ended::Skipped(Rejection::InFlight | Rejection::ManifestMismatch)
                | Ended::Failed { .. },
            ) => return Ok(()),
            Some(Ended::Skipped(Rejection::LimitExceeded {
                limit: Limit::ConversationBytes | Limit::JobBytes,
                ..
            })) => {
                served.over_budget = true;
                return Ok(());
            }
            Some(Ended::Skipped(rejection)) => return Err(ServeError::Refused(rejection)),
            _ => return Err(ServeError::Stuck),
        };
        match published {
            Published::Here { expired, .. } => {
                served.published = Some(checkpoint);
                served.expired = expired;
                Ok(())
            }
            Published::Refused(Rejection::TurnExpired | Rejection::Lost) => Ok(()),
            Published::Refused(rejection) => Err(ServeError::Refused(rejection)),
            Published::Elsewhere | Published::Withheld => Err(ServeError::Stuck),
        }
    }

    fn begin_save(&self, turn: &Turn, memory: Memory) -> Result<(Transfer, Freight), ServeError> {
        let manifest = self.model.manifest(&turn.chain, turn.chain.len());
        let manifest = Arc::new(manifest.map_err(ModelError::from)?);
        let mut freight = Freight::empty(memory);
        freight.fill(&self.model, &manifest)?;
        let save = Transfer::save(SaveRequest {
            attempt: turn.attempt,
            manifest,
            shards: vec![SHARD],
            publication: Publication::Turn(turn.key),
            has_peers: false,
        })?;
        Ok((save, freight))
    }

    /// Begins a turn's save and stops after its first private put, as a killed process
    /// does. It
    /// never gets as far as a publication.
    ///
    /// # Errors
    /// [`ServeError`] when the catalog is gone.
    pub fn begin_and_vanish(&mut self, turn: &Turn) -> Result<(), ServeError> {
        let mut memory = self.model.memory(turn.chain.len());
        self.model.prefill(&turn.chain, &mut memory);
        let (mut save, mut freight) = self.begin_save(turn, memory)?;
        while let Some(step) = save.next_step() {
            if matches!(step, Step::Ask(Command::Publish { .. })) {
                break;
            }
            let is_put = matches!(step, Step::Put { object: ObjectName::Private(_), .. });
            self.do_step(&mut save, step, &mut freight)?;
            if is_put {
                break;
            }
        }
        Ok(())
    }

    /// Does what any transfer asks of a lone worker, and reports it.
    fn do_step(
        &mut self,
        transfer: &mut Transfer,
        step: Step,
        freight: &mut Freight,
    ) -> Result<(), ServeError> {
        match step {
            Step::Ask(command) => {
                let answer = self.owner.ask(command)?;
                transfer.answered(self.owner.last_op(), answer);
            }
            Step::Put { object, .. } => {
                let checkpoint = transfer.checkpoint().ok_or(ServeError::Stuck)?;
                let answer = self.put(checkpoint, object, freight);
                transfer.completed(object, Completion::Put { answer, retired: true });
            }
            Step::Get { object, bytes } => {
                let checkpoint = transfer.checkpoint().ok_or(ServeError::Stuck)?;
                let answer = self.get(checkpoint, object, bytes, freight);
                transfer.completed(object, Completion::Got { answer, retired: true });
            }
            Step::Check { object, .. } => {
                let checkpoint = transfer.checkpoint().ok_or(ServeError::Stuck)?;
                let presence = self.store.size(&self.key(checkpoint, object));
                transfer.completed(object, Completion::Checked((&presence).into()));
            }
            Step::Agree { .. }
            | Step::Wait
            | Step::Choose
            | Step::Describe { .. }
            | Step::ReadManifest { .. }
            | Step::Adopt { .. } => return Err(ServeError::Stuck),
        }
        Ok(())
    }

    fn private_key(&self, checkpoint: CheckpointId, object: ObjectId) -> Key {
        let Genesis { namespace, epoch, .. } = &self.job;
        Key { namespace: namespace.clone(), epoch: *epoch, checkpoint, object }
    }

    fn key(&self, checkpoint: CheckpointId, object: ObjectName) -> String {
        match object {
            ObjectName::Private(id) => self.private_key(checkpoint, id).to_string(),
            ObjectName::Shared(name) => name.key(&self.job.namespace, &self.job.epoch),
        }
    }

    fn put(
        &self,
        checkpoint: CheckpointId,
        object: ObjectName,
        freight: &mut Freight,
    ) -> PutAnswer {
        let mut parts = freight.parts(object);
        let key = self.key(checkpoint, object);
        let outcome = match object {
            ObjectName::Shared(_) => self.store.put_shared(&key, &parts),
            ObjectName::Private(id) => {
                let payload = parts.concat();
                let key = self.private_key(checkpoint, id);
                let trailer = seal(&key, payload.len() as u64, Digest::of(&payload));
                parts.push(&trailer);
                let outcome = self.store.put(&key.to_string(), &parts);
                freight.private_bytes += payload.len() as u64 + u64::from(TRAILER_BYTES);
                return (&outcome).into();
            }
        };
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        freight.shared_bytes += bytes as u64;
        (&outcome).into()
    }

    fn get(
        &self,
        checkpoint: CheckpointId,
        object: ObjectName,
        bytes: u64,
        freight: &mut Freight,
    ) -> GetAnswer {
        let Ok(length) = usize::try_from(bytes) else { return GetAnswer::NotStarted };
        let mut read = vec![0; length];
        match self.store.get(&self.key(checkpoint, object), &mut read) {
            GetOutcome::Read => {}
            GetOutcome::Absent => return GetAnswer::Absent,
            GetOutcome::WrongSize { bytes } => return GetAnswer::WrongSize { bytes },
            GetOutcome::Unreadable(_) => return GetAnswer::Unreadable,
            GetOutcome::Unknown(_) => return GetAnswer::Failed,
        }
        let (payload, answer) = match object {
            ObjectName::Shared(_) => (&read[..], GetAnswer::Arrived { bytes }),
            ObjectName::Private(id) => match verify(&self.private_key(checkpoint, id), &read) {
                Ok(payload) => (payload, GetAnswer::Verified { bytes }),
                Err(error) => return error.into(),
            },
        };
        freight.scatter(object, payload);
        answer
    }
}

impl Freight {
    const fn empty(memory: Memory) -> Self {
        Self {
            memory,
            pieces: BTreeMap::new(),
            manifest: Vec::new(),
            private_bytes: 0,
            shared_bytes: 0,
        }
    }

    /// Plans where the objects of a checkpoint lie in the memory.
    fn fill(&mut self, model: &Model, manifest: &Manifest) -> Result<(), ServeError> {
        let moves = model.moves(manifest, &self.memory).map_err(ModelError::from)?;
        self.pieces = moves.into_iter().map(|one| (one.object, one.pieces)).collect();
        self.manifest = manifest.encode().to_vec();
        Ok(())
    }

    fn parts(&self, object: ObjectName) -> Vec<&[u8]> {
        if object == ObjectName::Private(ObjectId { shard: SHARD, index: 0 }) {
            return vec![&self.manifest];
        }
        let pieces = self.pieces.get(&object).into_iter().flatten();
        pieces.map(|piece| self.memory.piece(piece.address, piece.bytes)).collect()
    }

    fn scatter(&mut self, object: ObjectName, mut payload: &[u8]) {
        for piece in self.pieces.get(&object).into_iter().flatten() {
            let place = self.memory.piece_mut(piece.address, piece.bytes);
            let (now, rest) = payload.split_at(place.len().min(payload.len()));
            place[..now.len()].copy_from_slice(now);
            payload = rest;
        }
    }
}
