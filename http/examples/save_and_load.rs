//! An engine saves one position of a conversation through a coordinator elsewhere, and loads it.
//!
//! ```text
//! pinfold serve --data ./job --store ./objects
//! cargo run -p pinfold-http --example save_and_load -- http://127.0.0.1:7311 ./objects
//! ```
//!
//! What an engine brings is its [`Memory`], the [`layout`] of it and the hashes of its blocks. The
//! model here is one page of attention and one state of some bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pinfold_core::id::{
    AttemptId, ChainValue, CheckpointId, ConversationId, ObjectId, RepresentationDigest,
    ShardIndex, TurnId,
};
use pinfold_core::layout::{
    Coordinates, Coverage, Group, GroupId, Layout, Member, Necessity, RoleRow, Scope, Sharing,
};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::outcome::TurnKey;
use pinfold_core::plan::plan;
use pinfold_core::transfer::{Candidate, LoadRequest, Publication, SaveRequest};
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::runtime::{Freight, Placed};
use pinfold_http::worker::{Loaded, Saved, Worker, WorkerOptions};

const SHARD: ShardIndex = ShardIndex(0);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, dir] = &arguments[..] else {
        eprintln!("usage: save_and_load URL DIR, a coordinator and the folder of its store");
        return ExitCode::from(2);
    };
    match run(url, Path::new(dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("save_and_load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Saves, and loads into other memory.
pub(crate) fn run(url: &str, dir: &Path) -> Result<(), Box<dyn Error>> {
    let store = Arc::new(FileStore::open(dir, FileStoreOptions::default())?);
    let worker = Worker::connect(url, "rank 0", store, WorkerOptions::default())?;
    let manifest = manifest(&[b"block 0"])?;

    let computed = Memory::computed(&manifest, 42);
    match worker.save(save(&manifest, 1), Arc::new(computed))? {
        Saved::Saved { checkpoint, expired } => println!("saved {checkpoint}, expired {expired:?}"),
        Saved::AlreadyThere { checkpoint, .. } => println!("{checkpoint} is kept already"),
        Saved::Refused(why) => return Err(format!("not saved: {why:?}").into()),
    }

    let memory = Arc::new(Memory::default());
    match worker.load(load(&manifest), memory.clone())? {
        Loaded::Loaded { checkpoint } if memory.is_adopted() => {
            println!("loaded {checkpoint}: {} objects", memory.contents().len());
        }
        Loaded::Loaded { checkpoint } => return Err(format!("{checkpoint}: not adopted").into()),
        // Anything else: compute it.
        Loaded::NotThere => println!("not kept"),
        Loaded::Lost { checkpoint, object, why } => println!("{checkpoint}: {object}: {why:?}"),
        Loaded::Refused(why) => println!("not loaded: {why:?}"),
    }
    println!("unsettled: {:?}", worker.shutdown().unsettled);
    Ok(())
}

/// A save of a turn, under a first try.
pub(crate) fn save(manifest: &Arc<Manifest>, turn: u64) -> SaveRequest {
    SaveRequest {
        attempt: AttemptId::of_name(&format!("turn {turn}, first try")),
        manifest: Arc::clone(manifest),
        shards: vec![SHARD],
        publication: Publication::Turn(TurnKey {
            conversation: ConversationId::of_name("a conversation"),
            turn: TurnId::of_name(&format!("turn {turn}")),
        }),
        has_peers: false,
    }
}

/// A load of this position; an engine names all that it could begin from, longest first.
pub(crate) fn load(manifest: &Arc<Manifest>) -> LoadRequest {
    LoadRequest {
        candidates: vec![Candidate::planned(Arc::clone(manifest))],
        limit: 1,
        shards: vec![SHARD],
        has_peers: false,
        explains: true,
    }
}

/// The whole checkpoint of a position, from the layout and the hashes of its blocks.
pub(crate) fn manifest(blocks: &[&[u8]]) -> Result<Arc<Manifest>, Box<dyn Error>> {
    let chain = blocks.iter().map(|block| ChainValue::new(block));
    let chain = chain.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(plan(&layout(), &chain, 64 * chain.len() as u64, &[])?))
}

/// A worker's memory, object by object. In earnest `manifest.shard(s)?.moves(…)` tells where in
/// device memory each one lies.
#[derive(Default)]
pub(crate) struct Memory {
    objects: Mutex<BTreeMap<ObjectName, Vec<u8>>>,
    adopted: AtomicBool,
}

impl Memory {
    /// What the model computed for a position; object 0 is the manifest itself.
    pub(crate) fn computed(manifest: &Manifest, byte: u8) -> Self {
        let length = |bytes| usize::try_from(bytes).unwrap_or(0);
        let shared = manifest.shared_objects().map(|object| {
            (ObjectName::Shared(object.name), vec![byte; length(object.payload_bytes)])
        });
        let own = ObjectName::Private(ObjectId { shard: SHARD, index: 0 });
        let state = ObjectName::Private(ObjectId { shard: SHARD, index: 1 });
        let private = [(own, manifest.encode().to_vec()), (state, vec![byte; 4096])];
        let objects = Mutex::new(shared.chain(private).collect());
        Self { objects, adopted: AtomicBool::new(false) }
    }

    /// Whether it is this checkpoint's, as a whole.
    pub(crate) fn is_adopted(&self) -> bool {
        self.adopted.load(Ordering::Acquire)
    }

    /// What lies in it; the manifest is no part of a model's memory.
    pub(crate) fn contents(&self) -> BTreeMap<ObjectName, Vec<u8>> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner).clone();
        objects.remove(&ObjectName::Private(ObjectId { shard: SHARD, index: 0 }));
        objects
    }
}

impl Freight for Memory {
    fn parts(&self, object: ObjectName) -> Option<Vec<Cow<'_, [u8]>>> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(&object).map(|payload| vec![Cow::Owned(payload.clone())])
    }

    fn place(&self, object: ObjectName, payload: &[u8]) -> Placed {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.insert(object, payload.to_vec());
        Placed::Whole
    }

    fn adopt(&self, _: CheckpointId) {
        self.adopted.store(true, Ordering::Release);
    }
}

/// One layer of attention, whose pages all share, and one recurrent layer with a private state.
fn layout() -> Layout {
    let layer = |id, role: &str, coverage, sharing, bytes_per_page| Group {
        id: GroupId(id),
        shards: vec![SHARD],
        coverage,
        sharing,
        scope: Scope::PerShard,
        necessity: Necessity::Required,
        tokens_per_page: 64,
        window_tokens: None,
        members: vec![Member {
            layer: u32::from(id),
            role: role.into(),
            element: "u8".into(),
            bytes_per_page,
            scale_of: None,
        }],
    };
    let role =
        |layer, role: &str| RoleRow { layer, role: role.into(), stage: 0, replicated: false };
    Layout {
        // The digest of a `Representation` in earnest.
        representation: RepresentationDigest::of_name("weights, layout, types"),
        hash_chain: "example-v1".into(),
        tokens_per_block: 64,
        shards: vec![Coordinates::default()],
        roles: vec![role(0, "kv"), role(1, "state")],
        groups: vec![
            layer(0, "kv", Coverage::EveryBlock, Sharing::SharedContent, 1024),
            layer(1, "state", Coverage::EndpointOnly, Sharing::EndpointPrivate, 4096),
        ],
    }
}
