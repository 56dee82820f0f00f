//! A worker saves one position of a conversation, loses its memory, and restores it.
//!
//! `cargo run -p pinfold-host --example worker -- DIR`, with a folder that holds no job yet. Node,
//! store and runtime are those of a real worker; the model is one page and one state of some bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use pinfold_core::catalog::Role;
use pinfold_core::id::{
    AttemptId, ChainValue, CheckpointId, ConversationId, Epoch, ObjectId, OwnerId,
    RepresentationDigest, ShardIndex, StartId, TurnId,
};
use pinfold_core::layout::{
    Coordinates, Coverage, Group, GroupId, Layout, Member, Necessity, RoleRow, Scope, Sharing,
};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::outcome::TurnKey;
use pinfold_core::plan::plan;
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_core::transfer::{Candidate, LoadRequest, Publication, SaveRequest, Transfer};
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::node::Node;
use pinfold_host::owner::Owner;
use pinfold_host::runtime::{Freight, Placed, Runtime, RuntimeOptions};

const SHARD: ShardIndex = ShardIndex(0);

/// A worker's memory, object by object. In earnest `manifest.shard(s)?.moves(…)` tells where in
/// device memory each one lies.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<ObjectName, Vec<u8>>>);

impl Freight for Memory {
    fn parts(&self, object: ObjectName) -> Option<Vec<Cow<'_, [u8]>>> {
        let objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(&object).map(|payload| vec![Cow::Owned(payload.clone())])
    }

    fn place(&self, object: ObjectName, payload: &[u8]) -> Placed {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        objects.insert(object, payload.to_vec());
        Placed::Whole
    }

    fn adopt(&self, checkpoint: CheckpointId) {
        println!("adopted {checkpoint}: every byte arrived and was verified");
    }
}

/// What the model computed for a position; object 0 is the manifest itself.
fn computed(manifest: &Manifest) -> Memory {
    let shared = manifest.shared_objects().map(|object| {
        (
            ObjectName::Shared(object.name),
            vec![7; usize::try_from(object.payload_bytes).unwrap_or(0)],
        )
    });
    let own = ObjectName::Private(ObjectId { shard: SHARD, index: 0 });
    let state = ObjectName::Private(ObjectId { shard: SHARD, index: 1 });
    let private = [(own, manifest.encode().to_vec()), (state, vec![42; 4096])];
    Memory(Mutex::new(shared.chain(private).collect()))
}

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1) else {
        eprintln!("usage: worker DIR, a folder that holds no job yet");
        return ExitCode::from(2);
    };
    match work(Path::new(&dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(dir: &Path) -> Result<(), Box<dyn Error>> {
    let job = Genesis {
        namespace: "example".parse()?,
        // 128 random bits in earnest: a used epoch is never used again.
        epoch: Epoch::of_name("an example's epoch"),
        operator: OwnerId::of_name("operator"),
        policy: Policy::default(),
        limits: Limits::default(),
    };
    let store = FileStore::create(dir, FileStoreOptions::default())?;
    // A job that exists already is gone on with by `Node::open`.
    let (node, _effects) = Node::create(dir, job.clone())?;
    // Random in earnest: it tells one start of the process from every other.
    let start = StartId::of_name("first start");
    let owner = Owner::register(node.client(), "worker", Role::Worker, start)?;
    let options = RuntimeOptions { threads: 4, transfers: 2 };
    let runtime = Runtime::new(Arc::new(owner), Arc::new(store), job, options)?;

    let manifest = Arc::new(plan(&layout(), &[ChainValue::new(b"block 0")?], 64, &[])?);
    let save = Transfer::save(SaveRequest {
        attempt: AttemptId::of_name("first try"),
        manifest: Arc::clone(&manifest),
        shards: vec![SHARD],
        publication: Publication::Turn(TurnKey {
            conversation: ConversationId::of_name("a conversation"),
            turn: TurnId::of_name("its first turn"),
        }),
        has_peers: false,
    })?;
    println!("{:?}", runtime.start(save, Arc::new(computed(&manifest))).wait()?.ended);

    let load = Transfer::load(LoadRequest {
        candidates: vec![Candidate::planned(Arc::clone(&manifest))],
        limit: 1,
        shards: vec![SHARD],
        has_peers: false,
        explains: true,
    })?;
    let memory = Arc::new(Memory::default());
    println!("{:?}", runtime.start(load, memory.clone()).wait()?.ended);
    let restored = memory.0.lock().unwrap_or_else(PoisonError::into_inner).len();
    println!("{restored} objects are back: a page of attention and the state");

    // With the node there, everything under way is cancelled and told; nothing is left.
    println!("unsettled: {:?}", runtime.shutdown().unsettled);
    node.stop()?;
    Ok(())
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
