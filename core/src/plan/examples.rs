//! Worked layouts of real kinds of models, and memory for them.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::id::{ChainValue, RepresentationDigest, ShardIndex};
use crate::layout::{
    Coordinates, Coverage, Group, GroupId, Layout, Location, Mapping, Member, Necessity, Page,
    PageTable, Region, RoleRow, Scope, Sharing,
};
use crate::manifest::Manifest;

pub(crate) const BLOCK: u32 = 64;

pub(crate) fn chain(blocks: u64) -> Vec<ChainValue> {
    (0..blocks).map(|block| ChainValue::new(&(block + 1).to_be_bytes()).unwrap()).collect()
}

pub(crate) fn member(layer: u32, role: &str, element: &str, bytes_per_page: u64) -> Member {
    let (role, element) = (role.to_string(), element.to_string());
    Member { layer, role, element, bytes_per_page, scale_of: None }
}

pub(crate) fn scale(layer: u32, role: &str, of: &str, bytes_per_page: u64) -> Member {
    Member { scale_of: Some(of.to_string()), ..member(layer, role, "e8m0", bytes_per_page) }
}

/// Attention: every block, shared, each shard its own heads.
pub(crate) fn attention(id: u16, shards: u16, members: Vec<Member>) -> Group {
    Group {
        id: GroupId(id),
        shards: (0..shards).map(ShardIndex).collect(),
        coverage: Coverage::EveryBlock,
        sharing: Sharing::SharedContent,
        scope: Scope::PerShard,
        necessity: Necessity::Required,
        tokens_per_page: BLOCK,
        window_tokens: None,
        members,
    }
}

/// State: the endpoint only, private, each shard its own heads.
pub(crate) fn state(id: u16, shards: u16, members: Vec<Member>) -> Group {
    Group {
        coverage: Coverage::EndpointOnly,
        sharing: Sharing::EndpointPrivate,
        ..attention(id, shards, members)
    }
}

/// A layout of one pipeline stage, whose role table is what its groups hold.
pub(crate) fn layout(shards: u16, groups: Vec<Group>) -> Layout {
    let coordinates = |tensor| Coordinates { tensor, ..Coordinates::default() };
    staged((0..shards).map(coordinates).collect(), groups)
}

pub(crate) fn staged(shards: Vec<Coordinates>, groups: Vec<Group>) -> Layout {
    let rows = groups.iter().flat_map(|group| {
        let stage = shards[usize::from(group.shards[0].0)].stage;
        let replicated = group.scope != Scope::PerShard;
        group.members.iter().map(move |member| RoleRow {
            layer: member.layer,
            role: member.role.clone(),
            stage,
            replicated,
        })
    });
    Layout {
        representation: RepresentationDigest::from_u128(0xbeef),
        hash_chain: "blake2b-16-v1".to_string(),
        tokens_per_block: BLOCK,
        roles: rows.collect(),
        shards,
        groups,
    }
}

fn keys_and_values(layers: &[u32], bytes: u64) -> Vec<Member> {
    let both =
        |&layer: &u32| [member(layer, "key", "bf16", bytes), member(layer, "value", "bf16", bytes)];
    layers.iter().flat_map(both).collect()
}

/// Grouped-query attention and Mamba2 in turns, on two shards.
pub(crate) fn hybrid() -> Layout {
    let mamba = |layer: u32| {
        let conv = member(layer, "conv_state", "bf16", 18_432);
        [conv, member(layer, "ssm_state", "f32", 1 << 20)]
    };
    let states = [0, 2].into_iter().flat_map(mamba).collect();
    layout(2, vec![attention(0, 2, keys_and_values(&[1, 3], 32_768)), state(1, 2, states)])
}

/// Latent attention, stored once, and KDA: 93 layers on eight shards.
pub(crate) fn latent_and_kda() -> Layout {
    let is_latent = |layer: &u32| layer % 4 == 3 || *layer == 92;
    let latent = |layer: u32| member(layer, "key", "bf16", 576 * 2 * u64::from(BLOCK));
    let kda = |layer: u32| {
        let conv = member(layer, "conv_state", "bf16", (216 << 10) / 8);
        [conv, member(layer, "ssm_state", "f32", (6 << 20) / 8)]
    };
    let owner = ShardIndex(0);
    let pages = attention(0, 8, (0..93).filter(is_latent).map(latent).collect());
    let pages = Group { scope: Scope::ReplicatedOnce { owner }, ..pages };
    let states = (0..93).filter(|layer| !is_latent(layer)).flat_map(kda).collect();
    layout(8, vec![pages, state(1, 8, states)])
}

/// FP8 attention with block scales, and a state.
pub(crate) fn quantised() -> Layout {
    let members = vec![
        member(0, "key", "e4m3", 4096),
        member(0, "value", "e4m3", 4096),
        scale(0, "key_block_scale", "key", 128),
        scale(0, "value_block_scale", "value", 128),
    ];
    let states = vec![member(1, "ssm_state", "f32", 65_536)];
    layout(1, vec![attention(0, 1, members), state(1, 1, states)])
}

/// Attention and state side by side in each layer.
pub(crate) fn parallel_layers() -> Layout {
    let states = (0..3).map(|layer| member(layer, "ssm_state", "f32", 3 << 20)).collect();
    layout(2, vec![attention(0, 2, keys_and_values(&[0, 1, 2], 8192)), state(7, 2, states)])
}

/// Short convolutions and nothing recurrent besides.
pub(crate) fn convolutions() -> Layout {
    let tails = [0, 1, 3].map(|layer| member(layer, "conv_state", "bf16", 12_288));
    layout(1, vec![attention(0, 1, keys_and_values(&[2], 4096)), state(1, 1, tails.to_vec())])
}

/// Full and sliding attention; the window of 128 tokens needs two trailing blocks.
pub(crate) fn sliding() -> Layout {
    let window = Group {
        coverage: Coverage::Trailing { blocks: 2 },
        window_tokens: Some(128),
        sharing: Sharing::EndpointPrivate,
        ..attention(1, 1, keys_and_values(&[1], 4096))
    };
    layout(1, vec![attention(0, 1, keys_and_values(&[0], 4096)), window])
}

/// Latent attention with an indexer that folds four tokens into one entry; both stored once.
pub(crate) fn indexed() -> Layout {
    let once = Scope::ReplicatedOnce { owner: ShardIndex(1) };
    let pages = attention(0, 4, vec![member(0, "key", "bf16", 73_728)]);
    let index = attention(1, 4, vec![member(0, "index_key", "e4m3", 8448)]);
    let index = Group { scope: once, tokens_per_page: 4 * BLOCK, ..index };
    let states = vec![member(1, "ssm_state", "f32", 65_536)];
    layout(4, vec![Group { scope: once, ..pages }, index, state(2, 4, states)])
}

/// The hybrid with the pages of a draft model, which a checkpoint may do without.
pub(crate) fn drafted() -> Layout {
    let mut groups = hybrid().groups;
    let draft = attention(9, 2, keys_and_values(&[100], 1024));
    groups.push(Group { necessity: Necessity::Optional, ..draft });
    layout(2, groups)
}

/// Two pipeline stages of two shards, with pages of half a block.
pub(crate) fn pipelined() -> Layout {
    let shard = |stage, tensor| Coordinates { tensor, stage, context: 0 };
    let second = |group: Group| Group { shards: vec![ShardIndex(2), ShardIndex(3)], ..group };
    let small = attention(2, 2, keys_and_values(&[2], 2048));
    let small = Group { tokens_per_page: BLOCK / 2, ..small };
    let groups = vec![
        attention(0, 2, keys_and_values(&[0], 4096)),
        state(1, 2, vec![member(1, "ssm_state", "f32", 65_536)]),
        second(small),
        second(state(3, 2, vec![member(3, "ssm_state", "f32", 65_536)])),
    ];
    staged(vec![shard(0, 0), shard(0, 1), shard(1, 0), shard(1, 1)], groups)
}

/// Every worked layout by name.
pub(crate) fn all() -> Vec<(&'static str, Layout)> {
    vec![
        ("hybrid", hybrid()),
        ("latent_and_kda", latent_and_kda()),
        ("quantised", quantised()),
        ("parallel_layers", parallel_layers()),
        ("convolutions", convolutions()),
        ("sliding", sliding()),
        ("indexed", indexed()),
        ("drafted", drafted()),
        ("pipelined", pipelined()),
    ]
}

/// Memory of a shard: a region for each (group, element type), members in reverse order.
pub(crate) fn location(manifest: &Manifest, shard: ShardIndex) -> Location {
    let mapping = Mapping { base: 0x7000_0000_3000, bytes: 2 << 20 };
    let mut base = mapping.base + 12_288;
    let mut regions = Vec::new();
    for group in &manifest.layout().groups {
        let slots = u32::try_from(manifest.pages(group.id).unwrap().count()).unwrap() + 3;
        let mut by_element: BTreeMap<&str, Vec<&Member>> = BTreeMap::new();
        for member in group.members.iter().rev() {
            by_element.entry(&member.element).or_default().push(member);
        }
        for members in by_element.values().filter(|_| group.is_held_by(shard)) {
            let size_bytes = members.iter().map(|member| member.bytes_per_page).sum();
            let stride = size_bytes + 256;
            regions.push(Region {
                group: group.id,
                necessity: group.necessity,
                base,
                stride,
                slots,
                size_bytes,
                mapping: Some(mapping),
                members: members.iter().map(|m| (m.layer, m.role.clone())).collect(),
            });
            base += stride * u64::from(slots);
        }
    }
    Location { shard, regions }
}

/// The planned pages of a shard in slots that run backwards.
pub(crate) fn page_table(manifest: &Manifest, shard: ShardIndex) -> PageTable {
    let held = manifest.layout().groups.iter().filter(|group| group.is_held_by(shard));
    let list = |group: &Group| {
        let pages = manifest.pages(group.id).unwrap();
        let slots = (0..u32::try_from(pages.clone().count()).unwrap()).rev();
        let list = pages.zip(slots).map(|(ordinal, slot)| Page { ordinal, slot: slot + 2 });
        (group.id, list.collect())
    };
    PageTable { groups: held.map(list).collect() }
}
