use super::*;
use crate::id::{Epoch, Key, Namespace, RepresentationDigest};
use crate::layout::{Coverage, LayoutError, Necessity, Scope};
use crate::plan::examples::{self, BLOCK, attention, chain, location, member, page_table, scale};
use crate::plan::plan;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;
use proptest::prelude::*;

const END: u64 = 8;

fn planned(layout: &Layout) -> Manifest {
    plan(layout, &chain(END), END * u64::from(BLOCK), &[]).unwrap()
}

/// A change here is a new version of the canonical form: no old manifest would be found again.
#[test]
fn digests_are_golden() {
    let golden = [
        ("hybrid", "7057f8714025e7aac58783cd48fc968cf27c0bd5d66d0ef5153cdaf71cfff714"),
        ("latent_and_kda", "9991467d0b07818d17d01d3c5d8eb473e5c4f8f5dfb3c065f5a6c6617bbcea24"),
        ("quantised", "a68156c57e92e3cece4fada1349b9a847526c4c5c60c1cd071c7b2031edfc660"),
        ("parallel_layers", "dcf3699579f62286acae4753ca77e8848511515455bf02ae32d14aa66cffa387"),
        ("convolutions", "a9a50e170e393561afe1d9e19e7fb8f3aef7c52adffb6e435370256ca8d5782c"),
        ("sliding", "f086728d453c6faf5588507f0bef95a86b889e9efa5e5a20152ff80e3e85069f"),
        ("indexed", "f5bc65d9bdbff12c45eb53c426ef6adbc9de1392f63c9907d0289d1dabdf9fc9"),
        ("drafted", "7057f8714025e7aac58783cd48fc968cf27c0bd5d66d0ef5153cdaf71cfff714"),
        ("pipelined", "224629c772200413d5ad7d23fb343dc1ba653a7bb0cc0905124dcd938b6edeaa"),
    ];
    let found = examples::all().into_iter();
    let found = found.map(|(name, layout)| (name, planned(&layout).digest().to_string()));
    assert_eq!(found.collect::<Vec<_>>(), golden.map(|(name, hex)| (name, hex.to_string())));
}

#[test]
fn endpoint_is_the_last_block() {
    let manifest = planned(&examples::hybrid());
    let endpoint = manifest.endpoint();
    assert_eq!(endpoint.chain, chain(END)[7]);
    assert_eq!((endpoint.tokens, manifest.tokens()), (512, 512));
    assert_eq!(endpoint.representation, manifest.layout().representation);
}

/// Protocol 3: no shared key is ever taken for a private one.
#[test]
fn shared_keys_are_golden_and_never_private() {
    let namespace: Namespace = "prod".parse().unwrap();
    let key = |layout: &Layout| {
        let object = planned(layout).shared_objects().nth(1).unwrap();
        object.name.key(&namespace, &Epoch::from_u128(0xE0))
    };
    let start = "prod/000000000000000000000000000000e0/shared/\
                 0000000000000000000000000000beef/g0000/";
    assert_eq!(key(&examples::hybrid()), alloc::format!("{start}0000/0000000000000002"));
    let replicated = alloc::format!("{start}replicated/0000000000000002");
    assert_eq!(key(&examples::latent_and_kda()), replicated);
    for (_, layout) in examples::all() {
        for object in planned(&layout).shared_objects() {
            let text = object.name.key(&namespace, &Epoch::from_u128(0xE0));
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }
}

/// A shard stores its payloads, the manifest, and a trailer for each.
#[test]
fn shape_counts_what_the_store_holds() {
    let manifest = planned(&examples::hybrid());
    let state = 2 * (18_432 + (1 << 20)) + 208;
    let own = manifest.encode().len() as u64 + 208;
    let row = ShardShape { objects: 2, bytes: state + own };
    assert_eq!(manifest.shape(), [row; 2]);
    let objects: Vec<_> = manifest.private_objects(ShardIndex(1)).collect();
    assert_eq!(objects[0].stored_bytes(), own);
    assert_eq!((objects[1].group, objects[1].first_page), (Some(GroupId(1)), END - 1));
    assert_eq!(manifest.private_objects(ShardIndex(2)).count(), 0);
}

#[test]
fn manifest_of_a_long_conversation_stays_small() {
    let layout = examples::latent_and_kda();
    let tokens = 16_384 * u64::from(BLOCK);
    let manifest = plan(&layout, &chain(16_384), tokens, &[]).unwrap();
    assert!(manifest.encode().len() < 160_000, "{}", manifest.encode().len());
    assert_eq!(manifest.shape()[7].objects, 2);
}

#[test]
fn decode_names_what_is_wrong() {
    let manifest = planned(&examples::hybrid());
    let bytes = manifest.encode().to_vec();
    assert_eq!(Manifest::decode(&bytes), Ok(manifest));
    assert_eq!(Manifest::decode(&[]), Err(DecodeError::Malformed));
    let mut newer = bytes.clone();
    newer[0] = 9;
    assert_eq!(Manifest::decode(&newer), Err(DecodeError::UnknownVersion { version: 9 }));
    let longer = [&bytes[..], &[0, 0]].concat();
    let trailing = Err(DecodeError::TrailingBytes { bytes: 2 });
    assert_eq!(Manifest::decode(&longer), trailing);
    for end in 1..bytes.len() {
        assert_eq!(Manifest::decode(&bytes[..end]), Err(DecodeError::Malformed));
    }
    let huge = vec![VERSION; (1 << 24) + 1];
    assert_eq!(Manifest::decode(&huge).unwrap_err().code(), "manifest_too_long");
    // The token count, 512, once more with a needless byte.
    assert_eq!(bytes[1..3], [0x80, 4]);
    let padded = [&[VERSION, 0x80, 0x84, 0], &bytes[3..]].concat();
    assert_eq!(Manifest::decode(&padded), Err(DecodeError::NotCanonical));
}

/// A manifest that could not have been planned is none.
#[test]
fn decode_judges_as_strictly_as_a_plan() {
    let body = planned(&examples::hybrid()).body;
    let decode = |spoil: &dyn Fn(&mut Body)| {
        let mut body = body.clone();
        spoil(&mut body);
        Manifest::decode(&postcard::to_extend(&body, vec![VERSION]).unwrap()).unwrap_err()
    };
    assert_eq!(decode(&|body| body.layout.groups.reverse()), DecodeError::NotCanonical);
    assert_eq!(decode(&|body| body.layout.roles.reverse()), DecodeError::NotCanonical);
    let plan = |error: PlanError| DecodeError::Inconsistent(error);
    assert_eq!(decode(&|body| body.tokens = 0), plan(PlanError::ZeroEndpoint));
    let uncovered = PlanError::UncoveredEndpoint { blocks: 8, chain: 9 };
    assert_eq!(decode(&|body| body.chain = chain(9)), plan(uncovered));
    let unaligned = PlanError::UnalignedEndpoint { tokens: 513, unit: 64, group: None };
    assert_eq!(decode(&|body| body.tokens = 513), plan(unaligned));
    let coverage = Coverage::Other("all".to_string());
    let error = decode(&|body| body.layout.groups[0].coverage = coverage.clone());
    assert_eq!((error.code(), error.field()), ("unknown_coverage", "groups.coverage"));
    let missing =
        LayoutError::MissingRole { layer: 0, role: "conv_state".to_string(), shard: ShardIndex(0) };
    let error = decode(&|body| drop(body.layout.groups.pop()));
    assert_eq!(error, plan(PlanError::Layout(missing)));
}

#[test]
fn manifest_and_its_counts_are_bounded() {
    let mut layout = examples::sliding();
    layout.tokens_per_block = 1;
    for group in &mut layout.groups {
        group.tokens_per_page = 1;
    }
    layout.groups[1].coverage = Coverage::Trailing { blocks: 128 };
    let error = plan(&layout, &chain(1 << 21), 1 << 21, &[]).unwrap_err();
    assert_eq!(error, PlanError::TooLarge { field: "manifest" });
}

#[test]
fn explain_reads_like_a_reason() {
    let ours = planned(&examples::hybrid());
    assert_eq!(ours.explain(&ours), vec![]);
    let mut layout = examples::hybrid();
    layout.representation = RepresentationDigest::from_u128(1);
    layout.groups[1].members[1].bytes_per_page /= 2;
    layout.groups[1].members[1].element = "bf16".to_string();
    layout.groups[0].members.swap(0, 1);
    let mut other = chain(END + 1);
    other[6] = ChainValue::new(b"other").unwrap();
    let theirs = plan(&layout, &other, (END + 1) * u64::from(BLOCK), &[]).unwrap();
    let lines: Vec<String> = ours.explain(&theirs).iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "endpoint.tokens: ours is 512, theirs is 576",
            "groups.1.members.layer 0.ssm_state: ours is 1048576 bytes of f32, \
             theirs is 524288 bytes of bf16",
            "representation: ours is 0000000000000000000000000000beef, \
             theirs is 00000000000000000000000000000001",
            "chain.block 6: ours is 0000000000000007, theirs is 6f74686572",
            "groups.0.members.order.0: ours is layer 1 key, theirs is layer 1 value",
        ]
    );
}

#[derive(Clone, Debug)]
struct Sketch {
    coverage: u8,
    shared: bool,
    owner: Option<u16>,
    pages: u8,
    optional: bool,
    sizes: Vec<u64>,
    scaled: bool,
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let choices = (0..3_u8, any::<bool>(), prop::option::of(0..4_u16), 0..4_u8, any::<bool>());
    let contents = (prop::collection::vec(1..5000_u64, 1..4), any::<bool>());
    (choices, contents).prop_map(|((coverage, shared, owner, pages, optional), contents)| {
        let (sizes, scaled) = contents;
        Sketch { coverage, shared, owner, pages, optional, sizes, scaled }
    })
}

fn draw(id: u16, shards: u16, sketch: &Sketch) -> Group {
    let layers = (u32::from(id) * 10..).zip(&sketch.sizes);
    let mut members: Vec<_> =
        layers.map(|(layer, bytes)| member(layer, "key", "bf16", *bytes)).collect();
    if sketch.scaled {
        members.insert(1, scale(u32::from(id) * 10, "key_scale", "key", 7));
    }
    let (coverage, state) = match sketch.coverage {
        0 => (Coverage::EveryBlock, false),
        1 => (Coverage::Trailing { blocks: 4 }, false),
        _ => (Coverage::EndpointOnly, true),
    };
    let private = state || !sketch.shared;
    Group {
        coverage,
        sharing: if private { Sharing::EndpointPrivate } else { Sharing::SharedContent },
        scope: sketch.owner.map_or(Scope::PerShard, |owner| Scope::ReplicatedOnce {
            owner: ShardIndex(owner % shards),
        }),
        necessity: if sketch.optional { Necessity::Optional } else { Necessity::Required },
        tokens_per_page: if state { BLOCK } else { (BLOCK / 2) << sketch.pages },
        ..attention(id, shards, members)
    }
}

/// A sound layout, the optional groups to plan, and a number of blocks that fits all pages.
fn sound() -> impl Strategy<Value = (Layout, Vec<GroupId>, u64)> {
    let groups = prop::collection::vec((sketch(), any::<bool>()), 1..6);
    (1..5_u16, groups, 1..5_u64).prop_map(|(shards, mut sketches, fours)| {
        sketches[0].0.optional = false;
        let groups = (0..).zip(&sketches).map(|(id, (sketch, _))| draw(id, shards, sketch));
        let layout = examples::layout(shards, groups.collect());
        let optional = layout.groups.iter().zip(&sketches);
        let optional =
            optional.filter(|(group, (_, named))| *named && group.necessity == Necessity::Optional);
        let optional = optional.map(|(group, _)| group.id).collect();
        (layout, optional, fours * 4)
    })
}

proptest! {
    /// Equal on every rank, equal when planned again, equal when read back, countable, movable.
    #[test]
    fn sound_layouts_plan_alike_and_round_trip((layout, optional, blocks) in sound()) {
        let tokens = blocks * u64::from(BLOCK);
        let manifest = plan(&layout, &chain(blocks), tokens, &optional).unwrap();
        let mut own = layout;
        own.groups.reverse();
        own.roles.reverse();
        let named: Vec<_> = optional.iter().rev().copied().collect();
        let again = plan(&own, &chain(blocks + 3), tokens, &named).unwrap();
        prop_assert_eq!(&again, &manifest);
        prop_assert_eq!(again.digest(), manifest.digest());
        prop_assert_eq!(again.explain(&manifest), vec![]);
        prop_assert_eq!(Manifest::decode(manifest.encode()), Ok(again));

        let shared: Vec<_> = manifest.shared_objects().collect();
        let names: BTreeSet<_> = shared.iter().map(|object| object.name).collect();
        prop_assert_eq!(names.len(), shared.len());
        let mut stored = 0;
        for (index, row) in (0..).zip(manifest.shape()) {
            let shard = ShardIndex(index);
            let objects: Vec<_> = manifest.private_objects(shard).collect();
            prop_assert_eq!(objects.len(), row.objects as usize);
            let bytes: u64 = objects.iter().map(PrivateObject::stored_bytes).sum();
            prop_assert_eq!(bytes, row.bytes);
            prop_assert!((0..).zip(&objects).all(|(index, object)| object.id.index == index));

            let (memory, pages) = (location(&manifest, shard), page_table(&manifest, shard));
            let moves = manifest.shard(shard).unwrap().moves(&memory, &pages).unwrap();
            for one in &moves {
                let bytes: u64 = one.pieces.iter().map(|piece| piece.bytes).sum();
                prop_assert_eq!(bytes, one.payload_bytes);
            }
            stored += moves.iter().filter(|one| one.stored_here).count() + 1;
        }
        let private: usize = manifest.shape().iter().map(|row| row.objects as usize).sum();
        prop_assert_eq!(stored, private + shared.len(), "each object is stored by one shard");
    }

    /// Any damage to the bytes is refused or is another canonical manifest; nothing panics.
    #[test]
    fn decode_of_damaged_bytes_never_panics(
        (layout, optional, blocks) in sound(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        let tokens = blocks * u64::from(BLOCK);
        let manifest = plan(&layout, &chain(blocks), tokens, &optional).unwrap();
        let mut bytes = manifest.encode().to_vec();
        for (place, byte, kind) in damage {
            let place = place.index(bytes.len());
            match kind {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => bytes.truncate(place + 1),
            }
        }
        if let Ok(read) = Manifest::decode(&bytes) {
            prop_assert_eq!(read.encode(), &bytes[..]);
        }
    }

    #[test]
    fn decode_of_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let versioned = [&[VERSION], &bytes[..]].concat();
        prop_assert!(Manifest::decode(&versioned).is_err());
    }
}
