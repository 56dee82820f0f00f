//! A worker's memory as the freight of its transfers.
//!
//! What goes out is read where it lies; what comes in goes into memory that nobody has adopted, and
//! is told wrong or right from outside, by what the model computes for its position.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinfold_core::id::{ChainValue, CheckpointId, EndpointId, ObjectId, ShardIndex};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::object::TRAILER_BYTES;
use pinfold_core::plan::Piece;
use pinfold_host::runtime::{Freight, Placed};

use crate::model::{Memory, Model, ModelError};

/// The object of the model's only shard that is the manifest itself.
const MANIFEST: ObjectName = ObjectName::Private(ObjectId { shard: ShardIndex(0), index: 0 });

type Pieces = BTreeMap<ObjectName, Vec<Piece>>;

/// Where the objects of a checkpoint lie in a memory.
fn pieces(model: &Model, manifest: &Manifest, memory: &Memory) -> Result<Pieces, ModelError> {
    let moves = model.moves(manifest, memory)?;
    Ok(moves.into_iter().map(|one| (one.object, one.pieces)).collect())
}

/// What a save puts.
pub(crate) struct Outbound {
    memory: Memory,
    pieces: Pieces,
    manifest: Arc<Manifest>,
    private_bytes: AtomicU64,
    shared_bytes: AtomicU64,
}

impl Outbound {
    pub(crate) fn new(
        model: &Model,
        manifest: Arc<Manifest>,
        memory: Memory,
    ) -> Result<Self, ModelError> {
        let pieces = pieces(model, &manifest, &memory)?;
        let (private_bytes, shared_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { memory, pieces, manifest, private_bytes, shared_bytes })
    }

    /// Bytes of the private objects that were put, trailers included.
    pub(crate) fn private_bytes(&self) -> u64 {
        self.private_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the shared pages that were put.
    pub(crate) fn shared_bytes(&self) -> u64 {
        self.shared_bytes.load(Ordering::Relaxed)
    }
}

impl Freight for Outbound {
    fn parts(&self, object: ObjectName) -> Option<Vec<Cow<'_, [u8]>>> {
        let parts = if object == MANIFEST {
            vec![self.manifest.encode()]
        } else {
            let pieces = self.pieces.get(&object)?.iter();
            pieces.map(|piece| self.memory.piece(piece.address, piece.bytes)).collect()
        };
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let (total, trailer) = match object {
            ObjectName::Private(_) => (&self.private_bytes, TRAILER_BYTES),
            ObjectName::Shared(_) => (&self.shared_bytes, 0),
        };
        total.fetch_add(bytes + u64::from(trailer), Ordering::Relaxed);
        Some(parts.into_iter().map(Cow::Borrowed).collect())
    }

    fn place(&self, _: ObjectName, _: &[u8]) -> Placed {
        Placed::Failed
    }

    fn adopt(&self, _: CheckpointId) {}
}

/// What a load gets.
pub(crate) struct Inbound {
    model: Arc<Model>,
    chain: Vec<ChainValue>,
    /// The positions of the chain, longest first.
    endpoints: Vec<EndpointId>,
    landing: Mutex<Landing>,
}

/// Memory that nobody has adopted yet.
struct Landing {
    memory: Memory,
    pieces: Pieces,
    manifest: Option<Arc<Manifest>>,
    /// Why the position could not be planned.
    failed: Option<ModelError>,
    adopted: bool,
}

/// What was adopted.
pub(crate) struct Restored {
    pub(crate) memory: Memory,
    pub(crate) blocks: u32,
    /// Bytes that are not what the model computes: must never be.
    pub(crate) wrong_bytes: u64,
}

impl Inbound {
    pub(crate) fn new(
        model: Arc<Model>,
        chain: Vec<ChainValue>,
        endpoints: Vec<EndpointId>,
    ) -> Self {
        let landing = Mutex::new(Landing {
            memory: model.memory(chain.len()),
            pieces: Pieces::new(),
            manifest: None,
            failed: None,
            adopted: false,
        });
        Self { model, chain, endpoints, landing }
    }

    fn landing(&self) -> MutexGuard<'_, Landing> {
        self.landing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The manifest of one of the positions, and where its objects lie.
    fn plan(
        &self,
        endpoint: EndpointId,
        memory: &Memory,
    ) -> Result<Option<(Arc<Manifest>, Pieces)>, ModelError> {
        let place = self.endpoints.iter().position(|there| *there == endpoint);
        let Some(place) = place else { return Ok(None) };
        let manifest = self.model.manifest(&self.chain, self.chain.len() - place)?;
        let pieces = pieces(&self.model, &manifest, memory)?;
        Ok(Some((Arc::new(manifest), pieces)))
    }

    /// Why the load's position could not be planned, if that is how it failed.
    pub(crate) fn take_failure(&self) -> Option<ModelError> {
        self.landing().failed.take()
    }

    /// What was adopted, which is then nobody else's; none when nothing was.
    pub(crate) fn take_restored(&self) -> Option<Restored> {
        let mut landing = self.landing();
        let manifest = landing.manifest.clone().filter(|_| landing.adopted)?;
        let blocks = manifest.chain().len();
        let mut expected = self.model.memory(self.chain.len());
        self.model.prefill(self.chain.get(..blocks)?, &mut expected);
        let wrong = landing.pieces.values().flatten().map(|piece| {
            let left = landing.memory.piece(piece.address, piece.bytes);
            let right = expected.piece(piece.address, piece.bytes);
            left.iter().zip(right).filter(|(left, right)| left != right).count() as u64
        });
        let wrong_bytes = wrong.sum();
        landing.adopted = false;
        let memory = mem::replace(&mut landing.memory, self.model.memory(0));
        Some(Restored { memory, blocks: u32::try_from(blocks).ok()?, wrong_bytes })
    }
}

impl Freight for Inbound {
    fn parts(&self, _: ObjectName) -> Option<Vec<Cow<'_, [u8]>>> {
        None
    }

    fn place(&self, object: ObjectName, mut payload: &[u8]) -> Placed {
        let mut landing = self.landing();
        let Landing { memory, pieces, .. } = &mut *landing;
        for piece in pieces.get(&object).into_iter().flatten() {
            let place = memory.piece_mut(piece.address, piece.bytes);
            let Some((now, rest)) = payload.split_at_checked(place.len()) else {
                return Placed::Failed;
            };
            place.copy_from_slice(now);
            payload = rest;
        }
        if payload.is_empty() { Placed::Whole } else { Placed::Failed }
    }

    fn adopt(&self, _: CheckpointId) {
        self.landing().adopted = true;
    }

    fn describe(&self, endpoint: EndpointId) -> Option<Arc<Manifest>> {
        let mut landing = self.landing();
        match self.plan(endpoint, &landing.memory) {
            Ok(planned) => {
                let (manifest, pieces) = planned?;
                landing.pieces = pieces;
                landing.manifest = Some(Arc::clone(&manifest));
                Some(manifest)
            }
            Err(error) => {
                landing.failed = Some(error);
                None
            }
        }
    }
}
