//! Where the seeds of manifests and objects come from: a replay's model, and one with groups of
//! every kind.

use std::fs;
use std::path::Path;

use pinfold_core::id::{
    ChainValue, CheckpointId, Epoch, Generation, Key, ObjectId, RepresentationDigest, ShardIndex,
};
use pinfold_core::layout::{
    Coordinates, Coverage, Group, GroupId, Layout, Member, Necessity, RoleRow, Scope, Sharing,
};
use pinfold_core::manifest::Manifest;
use pinfold_core::object::{Digest, seal};
use pinfold_core::plan::plan;
use pinfold_host::dto::{Answer, Call};
use pinfold_workload::model::Model;
use serde::Serialize;
use serde::de::DeserializeOwned;

const BLOCK: u32 = 64;

/// `UPDATE_EXPECT=1` writes them.
#[test]
fn seeds_are_what_is_written_today() {
    let (replay, mixed) = (replayed(), mixed());
    let state = sealed(&replay, 1, b"a state is any bytes, here a few");
    let seeds = [
        ("manifest/seed-replay", replay.encode().to_vec()),
        ("manifest/seed-mixed", mixed.encode().to_vec()),
        ("object/seed-manifest", sealed(&mixed, 0, mixed.encode())),
        ("object/seed-state", state),
        ("object/seed-empty", sealed(&replay, 2, b"")),
    ];
    for (name, bytes) in seeds {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name}: UPDATE_EXPECT=1 rewrites it");
    }
}

/// Each request and answer has its seed in both encodings.
#[test]
fn seeds_of_forms_are_in_both_encodings() {
    both::<Call>("call");
    both::<Answer>("answer");
}

fn both<T: Serialize + DeserializeOwned>(target: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    for name in names.iter().filter(|name| name.starts_with("seed-")) {
        let text = fs::read(folder.join(name)).unwrap();
        let Ok(form) = serde_json::from_slice::<T>(&text) else { continue };
        let path = folder.join(format!("seed-postcard-{}", name.trim_start_matches("seed-")));
        let bytes = postcard::to_allocvec(&form).unwrap();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name}: UPDATE_EXPECT=1 rewrites it");
    }
}

fn chain(blocks: u32) -> Vec<ChainValue> {
    (1..=blocks).map(|block| ChainValue::new(&block.to_be_bytes()).unwrap()).collect()
}

fn sealed(manifest: &Manifest, index: u32, payload: &[u8]) -> Vec<u8> {
    let checkpoint = CheckpointId { endpoint: manifest.endpoint().id(), generation: Generation(7) };
    let key = Key {
        namespace: "seeds".parse().unwrap(),
        epoch: Epoch::of_name("seeds"),
        checkpoint,
        object: ObjectId { shard: ShardIndex(0), index },
    };
    [payload, &seal(&key, payload.len() as u64, Digest::of(payload))].concat()
}

fn replayed() -> Manifest {
    Model::new(512, 65_536).unwrap().manifest(&chain(3), 3).unwrap()
}

/// Two stages of two shards: quantised attention with scales, a window, pages of half a block and
/// of four, pages that one shard stores for all, a state, and a draft that may be left out.
fn mixed() -> Manifest {
    let member = |layer, role: &str, bytes_per_page| Member {
        layer,
        role: role.into(),
        element: "u8".into(),
        bytes_per_page,
        scale_of: None,
    };
    let scale = Member { scale_of: Some("key".into()), ..member(0, "key_block_scale", 128) };
    let shared = |id, shards: [u16; 2], members| Group {
        id: GroupId(id),
        shards: shards.map(ShardIndex).to_vec(),
        coverage: Coverage::EveryBlock,
        sharing: Sharing::SharedContent,
        scope: Scope::PerShard,
        necessity: Necessity::Required,
        tokens_per_page: BLOCK,
        window_tokens: None,
        members,
    };
    let private =
        |coverage, group: Group| Group { coverage, sharing: Sharing::EndpointPrivate, ..group };
    let once = Scope::ReplicatedOnce { owner: ShardIndex(3) };
    let window = shared(2, [0, 1], vec![member(2, "key", 512)]);
    let groups = vec![
        shared(0, [0, 1], vec![member(0, "key", 4096), scale]),
        private(Coverage::EndpointOnly, shared(1, [0, 1], vec![member(1, "ssm_state", 65_536)])),
        Group { window_tokens: Some(128), ..private(Coverage::Trailing { blocks: 2 }, window) },
        Group { tokens_per_page: BLOCK / 2, ..shared(3, [2, 3], vec![member(3, "key", 2048)]) },
        Group {
            scope: once,
            tokens_per_page: 4 * BLOCK,
            ..shared(4, [2, 3], vec![member(4, "index_key", 8448)])
        },
        Group { necessity: Necessity::Optional, ..shared(5, [2, 3], vec![member(5, "key", 1024)]) },
    ];
    let rows = groups.iter().flat_map(|group| {
        let stage = group.shards[0].0 / 2;
        let replicated = group.scope != Scope::PerShard;
        group.members.iter().map(move |member| RoleRow {
            layer: member.layer,
            role: member.role.clone(),
            stage,
            replicated,
        })
    });
    let coordinates = |shard: u16| Coordinates { tensor: shard % 2, stage: shard / 2, context: 0 };
    let layout = Layout {
        representation: RepresentationDigest::from_u128(0xbeef),
        hash_chain: "seeds-v1".into(),
        tokens_per_block: BLOCK,
        shards: (0..4).map(coordinates).collect(),
        roles: rows.collect(),
        groups,
    };
    let tokens = 8 * u64::from(BLOCK);
    plan(&layout, &chain(8), tokens, &[GroupId(5)]).unwrap()
}
