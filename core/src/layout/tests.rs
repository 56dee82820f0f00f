use super::*;
use crate::plan::examples::{self, attention, member, scale, staged};
use alloc::string::ToString;
use alloc::vec;

#[track_caller]
fn refuse(layout: Layout, spoil: impl Fn(&mut Layout), expected: &LayoutError) {
    assert_eq!(layout.validate(), Ok(()), "sound before it is spoiled");
    let mut layout = layout;
    spoil(&mut layout);
    assert_eq!(layout.validate().unwrap_err(), *expected);
    assert!(expected.to_string().contains([':', ',']), "says what to do: {expected}");
    assert!(!expected.code().is_empty() && !expected.field().is_empty());
}

#[track_caller]
fn refuse_hybrid(spoil: impl Fn(&mut Layout), expected: &LayoutError) {
    refuse(examples::hybrid(), spoil, expected);
}

const ATTENTION: GroupId = GroupId(0);
const STATE: GroupId = GroupId(1);

#[test]
fn worked_layouts_are_sound() {
    for (name, layout) in examples::all() {
        assert_eq!(layout.validate(), Ok(()), "{name}");
    }
}

#[test]
fn frame_must_be_whole() {
    let empty = |field| LayoutError::Empty { field };
    let zero = RepresentationDigest::from_bytes([0; 16]);
    refuse_hybrid(|layout| layout.representation = zero, &empty("representation"));
    refuse_hybrid(|layout| layout.tokens_per_block = 0, &empty("tokens_per_block"));
    refuse_hybrid(|layout| layout.shards.clear(), &empty("shards"));
    refuse_hybrid(|layout| layout.groups.clear(), &empty("groups"));
    let coordinates = Coordinates::default();
    let repeated = LayoutError::RepeatedShard { coordinates };
    refuse_hybrid(|layout| layout.shards[1] = coordinates, &repeated);
    let large = LayoutError::TooLarge { field: "shards", most: 65_536 };
    refuse_hybrid(|layout| layout.shards.resize(65_537, coordinates), &large);
}

#[test]
fn names_must_be_visible_and_short() {
    for found in ["", "a b", "schlüssel", &"x".repeat(65)] {
        let cut: alloc::string::String = found.chars().take(64).collect();
        let text = |field, group| LayoutError::Text { field, group, found: cut.clone() };
        let name = || found.to_string();
        refuse_hybrid(|layout| layout.hash_chain = name(), &text("hash_chain", None));
        let role = |layout: &mut Layout| layout.groups[0].members[0].role = name();
        refuse_hybrid(role, &text("role", Some(ATTENTION)));
        let element = |layout: &mut Layout| layout.groups[1].members[0].element = name();
        refuse_hybrid(element, &text("element", Some(STATE)));
        refuse_hybrid(|layout| layout.roles[0].role = name(), &text("roles", None));
    }
}

#[test]
fn groups_must_be_numbered_held_and_filled() {
    let group = ATTENTION;
    let repeated = LayoutError::RepeatedGroup { group };
    refuse_hybrid(|layout| layout.groups[1].id = group, &repeated);
    let shard = ShardIndex(2);
    let unknown = LayoutError::UnknownShard { group, shard };
    refuse_hybrid(|layout| layout.groups[0].shards.push(shard), &unknown);
    let twice = LayoutError::RepeatedHolder { group, shard: ShardIndex(1) };
    refuse_hybrid(|layout| layout.groups[0].shards[0].0 = 1, &twice);
    let empty = |field| LayoutError::EmptyGroup { group, field };
    refuse_hybrid(|layout| layout.groups[0].shards.clear(), &empty("shards"));
    refuse_hybrid(|layout| layout.groups[0].members.clear(), &empty("members"));
    refuse_hybrid(|layout| layout.groups[0].window_tokens = Some(0), &empty("window_tokens"));
    let none = Coverage::Trailing { blocks: 0 };
    refuse_hybrid(|layout| layout.groups[0].coverage = none.clone(), &empty("coverage"));
    let (layer, role) = (1, "key".to_string());
    let hollow = LayoutError::EmptyMember { group, layer, role };
    refuse_hybrid(|layout| layout.groups[0].members[0].bytes_per_page = 0, &hollow);
    for bytes in [MAX_OBJECT_BYTES, u64::MAX] {
        let large = LayoutError::ObjectTooLarge { group };
        refuse_hybrid(|layout| layout.groups[0].members[0].bytes_per_page = bytes, &large);
    }
}

#[test]
fn unknown_coverage_is_refused_by_its_word() {
    let found = "every_other_block".to_string();
    let coverage = Coverage::Other(found.clone());
    let unknown = LayoutError::UnknownCoverage { group: STATE, found };
    refuse_hybrid(|layout| layout.groups[1].coverage = coverage.clone(), &unknown);
}

/// A window is trailing by enough blocks: a window of 128 tokens reads 127 before its own.
#[test]
fn sliding_windows_must_be_declared_as_trailing() {
    let (group, window) = (STATE, 128);
    let sliding = |needed_blocks| LayoutError::SlidingWindow { group, window, needed_blocks };
    for coverage in [Coverage::EveryBlock, Coverage::EndpointOnly] {
        let spoil = |layout: &mut Layout| layout.groups[1].coverage = coverage.clone();
        refuse(examples::sliding(), spoil, &sliding(2));
    }
    let short = Coverage::Trailing { blocks: 1 };
    let spoil = |layout: &mut Layout| layout.groups[1].coverage = short.clone();
    refuse(examples::sliding(), spoil, &sliding(2));
}

#[test]
fn pages_must_divide_blocks_or_be_whole_blocks() {
    let misfit = |group, tokens_per_page| LayoutError::PageSpan {
        group,
        tokens_per_page,
        tokens_per_block: 64,
    };
    for tokens in [0, 48, 96, u32::MAX] {
        let spoil = |layout: &mut Layout| layout.groups[0].tokens_per_page = tokens;
        refuse_hybrid(spoil, &misfit(ATTENTION, tokens));
    }
    for tokens in [32, 128] {
        let spoil = |layout: &mut Layout| layout.groups[1].tokens_per_page = tokens;
        refuse_hybrid(spoil, &misfit(STATE, tokens));
    }
    let odd = |layout: &mut Layout| layout.groups[1].tokens_per_page = 256;
    refuse(examples::sliding(), odd, &misfit(GroupId(1), 256));
}

#[test]
fn state_of_one_position_is_private() {
    let shared = LayoutError::SharedState { group: STATE };
    refuse_hybrid(|layout| layout.groups[1].sharing = Sharing::SharedContent, &shared);
}

/// Quantised values without their scales look right and are wrong; so do scales of nothing.
#[test]
fn scales_travel_with_their_payload() {
    let (group, layer) = (ATTENTION, 0);
    let role = "key_block_scale".to_string();
    let (key, value) = ("key".to_string(), "value_block_scale".to_string());
    let quantised = examples::quantised;
    let lone = LayoutError::ScaleWithoutPayload { group, layer, role: role.clone(), payload: key };
    refuse(quantised(), |layout| drop(layout.groups[0].members.remove(0)), &lone);
    refuse(quantised(), |layout| layout.groups[0].members[0].layer = 4, &lone);
    let chained = LayoutError::ScaleWithoutPayload {
        group,
        layer,
        role: role.clone(),
        payload: value.clone(),
    };
    let of_scale = |layout: &mut Layout| layout.groups[0].members[2].scale_of = Some(value.clone());
    refuse(quantised(), of_scale, &chained);

    let missing = LayoutError::MissingRole { layer, role: role.clone(), shard: ShardIndex(0) };
    refuse(quantised(), |layout| drop(layout.groups[0].members.remove(2)), &missing);
    let unscaled = |layout: &mut Layout| layout.roles.retain(|row| row.role != role);
    let unknown = LayoutError::UnknownRole { group, layer, role: role.clone() };
    refuse(quantised(), unscaled, &unknown);
}

/// A component that nobody planned is named, on the very shard that lacks it.
#[test]
fn every_required_role_is_on_every_shard_of_its_stage() {
    let (layer, role) = (2, "ssm_state".to_string());
    let missing = |shard| LayoutError::MissingRole { layer, role: role.clone(), shard };
    let forget = |layout: &mut Layout| drop(layout.groups[1].members.pop());
    refuse_hybrid(forget, &missing(ShardIndex(0)));
    let (layer, role) = (0, "conv_state".to_string());
    let missing = LayoutError::MissingRole { layer, role, shard: ShardIndex(1) };
    refuse_hybrid(|layout| layout.groups[1].shards.truncate(1), &missing);
    let dropped =
        LayoutError::MissingRole { layer: 0, role: "conv_state".to_string(), shard: ShardIndex(0) };
    refuse_hybrid(|layout| drop(layout.groups.pop()), &dropped);
}

#[test]
fn roles_outside_the_table_are_refused() {
    let group = STATE;
    let unknown = LayoutError::UnknownRole { group, layer: 0, role: "index_key".to_string() };
    let add = |layout: &mut Layout| {
        layout.groups[1].members.push(member(0, "index_key", "bf16", 64));
    };
    refuse_hybrid(add, &unknown);
    let role = "key".to_string();
    let extra = LayoutError::ExtraRole { group, layer: 0, role: role.clone(), shard: None };
    let add = |layout: &mut Layout| layout.groups[1].members.push(member(0, "key", "bf16", 64));
    refuse_hybrid(add, &extra);
    let shard = Some(ShardIndex(2));
    let extra = LayoutError::ExtraRole { group: ATTENTION, layer: 0, role, shard };
    let add = |layout: &mut Layout| layout.groups[0].shards.push(ShardIndex(2));
    refuse(examples::pipelined(), add, &extra);
}

#[test]
fn no_role_is_held_twice() {
    let (layer, role, shard) = (1, "key".to_string(), ShardIndex(0));
    let twice = |group| LayoutError::RepeatedRole { group, layer, role: role.clone(), shard };
    let key = || member(1, "key", "bf16", 64);
    refuse_hybrid(|layout| layout.groups[0].members.push(key()), &twice(ATTENTION));
    refuse_hybrid(|layout| layout.groups[1].members.push(key()), &twice(STATE));
    let row = LayoutError::RepeatedRow { layer, role: role.clone() };
    refuse_hybrid(|layout| layout.roles.push(layout.roles[0].clone()), &row);
    let stage = LayoutError::UnknownStage { layer, role: role.clone(), stage: 3 };
    refuse_hybrid(|layout| layout.roles[0].stage = 3, &stage);
}

/// A role may be split over groups whose holders are different shards.
#[test]
fn role_may_be_in_two_groups_of_different_shards() {
    let half = |id, shard, bytes| Group {
        shards: vec![ShardIndex(shard)],
        ..attention(id, 1, vec![member(0, "key", "bf16", bytes)])
    };
    let mut layout = examples::layout(2, vec![half(0, 0, 64), half(1, 1, 32)]);
    layout.roles.truncate(1);
    assert_eq!(layout.validate(), Ok(()));
}

/// Index pages that are equal on every shard are stored once, and nothing else is.
#[test]
fn replicated_roles_and_replicated_groups_go_together() {
    let (layer, role) = (0, "index_key".to_string());
    let unplanned = LayoutError::UnplannedReplicated { group: GroupId(1), layer, role };
    let spoil = |layout: &mut Layout| layout.groups[1].scope = Scope::PerShard;
    refuse(examples::indexed(), spoil, &unplanned);
    let once = Scope::ReplicatedOnce { owner: ShardIndex(0) };
    let lost =
        LayoutError::NotReplicated { group: STATE, layer: 0, role: "conv_state".to_string() };
    refuse_hybrid(|layout| layout.groups[1].scope = once, &lost);
    let owner = ShardIndex(4);
    let foreign = LayoutError::ForeignOwner { group: GroupId(1), owner };
    let spoil = |layout: &mut Layout| layout.groups[1].scope = Scope::ReplicatedOnce { owner };
    refuse(examples::indexed(), spoil, &foreign);
}

#[test]
fn members_times_shards_are_bounded() {
    let shards = (0..=u16::MAX).map(|tensor| Coordinates { tensor, ..Coordinates::default() });
    let members = (0..65).map(|layer| member(layer, "key", "bf16", 1)).collect();
    let group = attention(0, 1, members);
    let mut layout = staged(shards.collect(), vec![group]);
    layout.groups[0].shards = (0..=u16::MAX).map(ShardIndex).collect();
    let large = LayoutError::TooLarge { field: "groups", most: MAX_PLACEMENTS };
    assert_eq!(layout.validate(), Err(large));
}

#[test]
fn fingerprint_follows_geometry_alone() {
    let layout = examples::quantised();
    let mut other = layout.clone();
    other.representation = RepresentationDigest::from_u128(1);
    assert_eq!(other.fingerprint(), layout.fingerprint());
    other.groups[0].members.swap(0, 1);
    assert_ne!(other.fingerprint(), layout.fingerprint());
    other.groups[0].members.swap(0, 1);
    other.groups[0].members[2] = scale(0, "key_block_scale", "key", 129);
    assert_ne!(other.fingerprint(), layout.fingerprint());
    assert_eq!(
        layout.fingerprint(),
        "cd7930cca7486e8bffef096e0d4fa46427c4c2fe5589743609218ceaab978610"
    );
}
