//! One worker serves one request: restore the longest kept prefix, prefill, save, publish.
//!
//! The bytes really move between the worker's memory and the store, and every restored byte is
//! compared with what the model computes for that position: what a restore adopts is judged from
//! outside.

use std::sync::Arc;

use pinfold_core::catalog::{Command, Prepare, Shape};
use pinfold_core::id::{
    AttemptId, ChainValue, CheckpointId, ConversationId, Key, ObjectId, PinId, ShardIndex, TurnId,
};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::object::{Digest, TRAILER_BYTES, seal, verify};
use pinfold_core::outcome::{Evidence, Loss, LostObject, Outcome, Pinned, Rejection, TurnKey};
use pinfold_core::plan::Move;
use pinfold_core::policy::Genesis;
use pinfold_host::store::{GetOutcome, ObjectStore, Presence, PutOutcome};

use crate::fleet::{Owner, OwnerError};
use crate::model::{Memory, Model, ModelError};

/// The positions that one look-up asks for.
const CANDIDATES: usize = 256;

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
    /// The turn of a request, by numbers; another life of the worker takes another attempt.
    #[must_use]
    pub fn new(conversation: u32, request: u32, life: u64, chain: Vec<ChainValue>) -> Self {
        let conversation = ConversationId::of_name(&format!("conversation {conversation}"));
        let turn = TurnId::of_name(&format!("turn {request}"));
        let attempt = AttemptId::of_name(&format!("attempt {request} {life}"));
        Self { key: TurnKey { conversation, turn }, attempt, chain }
    }
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Blocks of the restored prefix; none when nothing was kept.
    pub restored_blocks: Option<u32>,
    /// A pinned checkpoint could not be restored.
    pub restore_failed: bool,
    /// Restored bytes that are not what the model computes: must never be.
    pub wrong_bytes: u64,
    /// The checkpoint that the turn now refers to.
    pub published: Option<CheckpointId>,
    /// The turn that expired with the publication.
    pub expired: Option<TurnKey>,
    /// The checkpoint was kept already, and nothing was written.
    pub already: bool,
    /// Private bytes written, and shared bytes put.
    pub private_bytes: u64,
    /// Shared pages put, in bytes; most are there already.
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
    /// The catalog refused what it never should have here.
    #[error("the catalog refused {verb}: {rejection}")]
    Refused {
        /// The verb.
        verb: &'static str,
        /// Its answer.
        rejection: Rejection,
    },
}

/// A worker: an owner with memory and a store.
pub struct Worker {
    owner: Owner,
    model: Arc<Model>,
    store: Arc<dyn ObjectStore>,
    job: Genesis,
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
        self.save(turn, &memory, &mut served)?;
        Ok(served)
    }

    /// Prepares a turn's checkpoint, puts its first private object, and stops there, as a process
    /// does that is killed.
    ///
    /// # Errors
    /// [`ServeError`] when the catalog is gone.
    pub fn begin_and_vanish(&mut self, turn: &Turn) -> Result<(), ServeError> {
        let manifest = self.manifest(turn, turn.chain.len())?;
        let mut memory = self.model.memory(turn.chain.len());
        self.model.prefill(&turn.chain, &mut memory);
        if let Ok(Outcome::Prepared { checkpoint, .. }) = self.prepare(turn, &manifest)? {
            let moves = self.model.moves(&manifest, &memory).map_err(ModelError::from)?;
            let private = moves.iter().find(|one| matches!(one.object, ObjectName::Private(_)));
            if let Some(one) = private {
                self.put(checkpoint, one, &memory);
            }
        }
        Ok(())
    }

    fn manifest(&self, turn: &Turn, blocks: usize) -> Result<Manifest, ServeError> {
        Ok(self.model.manifest(&turn.chain, blocks).map_err(ModelError::from)?)
    }

    fn key(&self, checkpoint: CheckpointId, object: ObjectId) -> Key {
        let Genesis { namespace, epoch, .. } = &self.job;
        Key { namespace: namespace.clone(), epoch: *epoch, checkpoint, object }
    }

    /// Memory for the turn, with the longest kept prefix in it.
    fn restore(&mut self, turn: &Turn, served: &mut Served) -> Result<Memory, ServeError> {
        let candidates = self.model.endpoints(&turn.chain, CANDIDATES);
        let memory = self.model.memory(turn.chain.len());
        let answer = self.owner.ask(Command::Pin { candidates: candidates.clone(), limit: 1 })?;
        let (op, answers) = match answer {
            Ok(Outcome::Pinned(answers)) => (self.owner.last_op(), answers),
            Ok(_) => return Err(OwnerError::Unexpected.into()),
            Err(rejection) => return Err(ServeError::Refused { verb: "Pin", rejection }),
        };
        let Some(pinned) = answers.first() else { return Ok(memory) };
        let pin = PinId { op, place: 0 };
        let place = candidates.iter().position(|id| *id == pinned.checkpoint.endpoint);
        let blocks = turn.chain.len() - place.unwrap_or(turn.chain.len());
        let manifest = self.manifest(turn, blocks)?;
        // Bytes go into memory that nobody has adopted; all of it is adopted, or nothing.
        let mut fresh = self.model.memory(turn.chain.len());
        let loaded = self.load(&manifest, pinned, &mut fresh)?;
        let evidence = match loaded {
            Ok(()) => Evidence::QuiescedSuccess,
            Err(lost) => {
                if let Some((object, why)) = lost {
                    let checkpoint = pinned.checkpoint;
                    self.ask("Lost", Command::Lost { checkpoint, object, why })?;
                }
                Evidence::QuiescedFailure
            }
        };
        self.ask("Settle", Command::Settle { pin, shard: None, evidence })?;
        if loaded.is_err() {
            served.restore_failed = true;
            return Ok(memory);
        }
        served.restored_blocks = u32::try_from(blocks).ok();
        served.wrong_bytes = self.wrong_bytes(turn, &manifest, &fresh)?;
        Ok(fresh)
    }

    /// Moves a checkpoint's bytes into fresh memory and verifies them; or says what was lost.
    fn load(
        &self,
        manifest: &Manifest,
        pinned: &Pinned,
        fresh: &mut Memory,
    ) -> Result<Result<(), Option<(LostObject, Loss)>>, ServeError> {
        if manifest.digest() != pinned.digest {
            return Ok(Err(None));
        }
        let moves = self.model.moves(manifest, fresh).map_err(ModelError::from)?;
        let mut shared = 0;
        for one in &moves {
            let (key, trailer, object) = match one.object {
                ObjectName::Private(id) => {
                    let key = self.key(pinned.checkpoint, id);
                    (key.to_string(), TRAILER_BYTES, LostObject::Private(id))
                }
                ObjectName::Shared(name) => {
                    shared += 1;
                    let key = name.key(&self.job.namespace, &self.job.epoch);
                    (key, 0, LostObject::Shared(shared - 1))
                }
            };
            let bytes = one.payload_bytes + u64::from(trailer);
            let mut read = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
            let why = match self.store.get(&key, &mut read) {
                GetOutcome::Read => None,
                GetOutcome::Absent => Some(Loss::Absent),
                GetOutcome::WrongSize { .. } => Some(Loss::WrongSize),
                GetOutcome::Unreadable(_) => Some(Loss::Unreadable),
                GetOutcome::Unknown(_) => return Ok(Err(None)),
            };
            if let Some(why) = why {
                return Ok(Err(Some((object, why))));
            }
            let payload = match one.object {
                ObjectName::Shared(_) => Ok(&read[..]),
                ObjectName::Private(id) => verify(&self.key(pinned.checkpoint, id), &read),
            };
            let Ok(mut payload) = payload else {
                return Ok(Err(Some((object, Loss::WrongBytes))));
            };
            for piece in &one.pieces {
                let place = fresh.piece_mut(piece.address, piece.bytes);
                let (now, rest) = payload.split_at(place.len());
                place.copy_from_slice(now);
                payload = rest;
            }
        }
        Ok(Ok(()))
    }

    /// Bytes of a restored prefix that differ from what the model computes.
    fn wrong_bytes(
        &self,
        turn: &Turn,
        manifest: &Manifest,
        restored: &Memory,
    ) -> Result<u64, ServeError> {
        let blocks = manifest.chain().len();
        let mut expected = self.model.memory(turn.chain.len());
        self.model.prefill(&turn.chain[..blocks], &mut expected);
        let moves = self.model.moves(manifest, restored).map_err(ModelError::from)?;
        let pieces = moves.iter().flat_map(|one| &one.pieces);
        let wrong = pieces.map(|piece| {
            let left = restored.piece(piece.address, piece.bytes);
            let right = expected.piece(piece.address, piece.bytes);
            left.iter().zip(right).filter(|(left, right)| left != right).count() as u64
        });
        Ok(wrong.sum())
    }

    fn prepare(
        &mut self,
        turn: &Turn,
        manifest: &Manifest,
    ) -> Result<Result<Outcome, Rejection>, ServeError> {
        let shape = Shape::new(manifest.shape()).map_err(Rejection::Malformed);
        let shape =
            shape.map_err(|rejection| ServeError::Refused { verb: "Prepare", rejection })?;
        let prepare = Prepare {
            attempt: turn.attempt,
            endpoint: manifest.endpoint().id(),
            digest: manifest.digest(),
            shape,
            shards: vec![ShardIndex(0)],
        };
        Ok(self.owner.ask(Command::Prepare(prepare))?)
    }

    fn save(
        &mut self,
        turn: &Turn,
        memory: &Memory,
        served: &mut Served,
    ) -> Result<(), ServeError> {
        let manifest = self.manifest(turn, turn.chain.len())?;
        match self.prepare(turn, &manifest)? {
            Ok(Outcome::Prepared { pin, checkpoint }) => {
                let moves = self.model.moves(&manifest, memory).map_err(ModelError::from)?;
                let stored = self.put_all(checkpoint, &manifest, &moves, memory, served);
                let evidence =
                    if stored { Evidence::QuiescedSuccess } else { Evidence::QuiescedFailure };
                let shard = Some(ShardIndex(0));
                self.ask("Settle", Command::Settle { pin, shard, evidence })?;
                if stored {
                    self.publish(pin, checkpoint, turn, served)?;
                }
                self.ask("Release", Command::Release { pin })?;
            }
            Ok(Outcome::AlreadyPublished { pin, checkpoint }) => {
                served.already = true;
                self.publish(pin, checkpoint, turn, served)?;
                let evidence = Evidence::NotExposed;
                self.ask("Settle", Command::Settle { pin, shard: None, evidence })?;
            }
            Ok(_) => return Err(OwnerError::Unexpected.into()),
            // Somebody else saves this very position: the turn goes unsaved, as the host decides.
            Err(Rejection::InFlight) => {}
            Err(rejection) => return Err(ServeError::Refused { verb: "Prepare", rejection }),
        }
        Ok(())
    }

    fn publish(
        &mut self,
        pin: PinId,
        checkpoint: CheckpointId,
        turn: &Turn,
        served: &mut Served,
    ) -> Result<(), ServeError> {
        match self.owner.ask(Command::Publish { pin, turn: Some(turn.key) })? {
            Ok(Outcome::Published { expired, .. }) => {
                served.published = Some(checkpoint);
                served.expired = expired;
                Ok(())
            }
            Ok(_) => Err(OwnerError::Unexpected.into()),
            Err(Rejection::TurnExpired | Rejection::Lost) => Ok(()),
            Err(rejection) => Err(ServeError::Refused { verb: "Publish", rejection }),
        }
    }

    /// Puts and confirms every object, the manifest last.
    fn put_all(
        &self,
        checkpoint: CheckpointId,
        manifest: &Manifest,
        moves: &[Move],
        memory: &Memory,
        served: &mut Served,
    ) -> bool {
        for one in moves {
            let Some(bytes) = self.put(checkpoint, one, memory) else { return false };
            match one.object {
                ObjectName::Private(_) => served.private_bytes += bytes,
                ObjectName::Shared(_) => served.shared_bytes += bytes,
            }
        }
        let key = self.key(checkpoint, ObjectId { shard: ShardIndex(0), index: 0 });
        let body = manifest.encode();
        let trailer = seal(&key, body.len() as u64, Digest::of(body));
        let key = key.to_string();
        let stored =
            self.confirm(&key, &self.store.put(&key, &[body, &trailer]), &[body, &trailer]);
        served.private_bytes += stored.unwrap_or(0);
        stored.is_some()
    }

    /// Puts one object from memory; its stored bytes when that is confirmed.
    fn put(&self, checkpoint: CheckpointId, one: &Move, memory: &Memory) -> Option<u64> {
        let pieces = one.pieces.iter().map(|piece| memory.piece(piece.address, piece.bytes));
        let mut parts: Vec<&[u8]> = pieces.collect();
        match one.object {
            ObjectName::Shared(name) => {
                let key = name.key(&self.job.namespace, &self.job.epoch);
                self.confirm(&key, &self.store.put_shared(&key, &parts), &parts)
            }
            ObjectName::Private(id) => {
                let key = self.key(checkpoint, id);
                let trailer = seal(&key, one.payload_bytes, Digest::of(&parts.concat()));
                parts.push(&trailer);
                let key = key.to_string();
                self.confirm(&key, &self.store.put(&key, &parts), &parts)
            }
        }
    }

    /// Confirmed means: that one put answered ok, and then the size agreed.
    fn confirm(&self, key: &str, put: &PutOutcome, parts: &[&[u8]]) -> Option<u64> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let stored = *put == PutOutcome::Stored;
        (stored && self.store.size(key) == Presence::Present { bytes }).then_some(bytes)
    }

    fn ask(&mut self, verb: &'static str, command: Command) -> Result<Outcome, ServeError> {
        self.owner.ask(command)?.map_err(|rejection| ServeError::Refused { verb, rejection })
    }
}
