use super::examples::{self, BLOCK, chain, location, page_table};
use super::*;
use crate::id::{ObjectId, ShardIndex};
use crate::layout::{Coverage, LayoutError, Location, Mapping, Page, PageTable, Region};
use crate::manifest::{ObjectName, SharedScope};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

const END: u64 = 8;
const TOKENS: u64 = END * BLOCK as u64;

fn planned(layout: &Layout) -> Manifest {
    plan(layout, &chain(END), TOKENS, &[]).unwrap()
}

/// A hybrid's first shard with its memory and pages, to be spoiled.
fn scene() -> (Manifest, Location, PageTable) {
    let manifest = planned(&examples::hybrid());
    let memory = location(&manifest, ShardIndex(0));
    let pages = page_table(&manifest, ShardIndex(0));
    (manifest, memory, pages)
}

#[track_caller]
fn refuse(manifest: &Manifest, memory: &Location, pages: &PageTable, expected: &MoveError) {
    let shard = manifest.shard(ShardIndex(0)).unwrap();
    assert_eq!(shard.moves(memory, pages).unwrap_err(), *expected);
    assert!(expected.to_string().contains(": "), "says what to do: {expected}");
}

fn refuse_pages(spoil: impl Fn(&mut PageTable), expected: &MoveError) {
    let (manifest, memory, mut pages) = scene();
    spoil(&mut pages);
    refuse(&manifest, &memory, &pages, expected);
}

fn refuse_memory(spoil: impl Fn(&mut Vec<Region>), expected: &MoveError) {
    let (manifest, mut memory, pages) = scene();
    spoil(&mut memory.regions);
    refuse(&manifest, &memory, &pages, expected);
}

#[test]
fn every_worked_layout_is_planned_equally_and_moved_on_every_rank() {
    for (name, layout) in examples::all() {
        let manifest = planned(&layout);
        for index in 0..manifest.shape().len() {
            let shard = ShardIndex(u16::try_from(index).unwrap());
            // A rank may list what carries no order in its own order.
            let mut own = layout.clone();
            own.groups.rotate_left(index % layout.groups.len());
            own.roles.reverse();
            own.groups.iter_mut().for_each(|group| group.shards.reverse());
            let same = plan(&own, &chain(END + 1), TOKENS, &[]).unwrap();
            assert_eq!(same.digest(), manifest.digest(), "{name}");
            assert_eq!(own.fingerprint(), layout.fingerprint(), "{name}");

            let (memory, pages) = (location(&same, shard), page_table(&same, shard));
            let moves = same.shard(shard).unwrap().moves(&memory, &pages).unwrap();
            check_moves(&same, shard, &memory, &pages, &moves);
        }
    }
}

/// The pieces of each move are the object's parts in order, wherever they lie.
fn check_moves(
    manifest: &Manifest,
    shard: ShardIndex,
    memory: &Location,
    pages: &PageTable,
    moves: &[Move],
) {
    let held = manifest.layout().groups.iter().filter(|group| group.is_held_by(shard));
    let mut expected = Vec::new();
    for group in held {
        let list = &pages.groups.iter().find(|(id, _)| *id == group.id).unwrap().1;
        let parts: Vec<_> = manifest.parts(group.id).collect();
        let per_object = parts.last().unwrap().page as usize + 1;
        for pages in list.chunks(per_object) {
            let bytes = parts.iter().map(|part| {
                let slot = pages[part.page as usize].slot;
                (address(memory, group.id, part.member, slot), part.member.bytes_per_page)
            });
            expected.push(merged(bytes));
        }
    }
    let found: Vec<_> = moves
        .iter()
        .map(|one| merged(one.pieces.iter().map(|piece| (piece.address, piece.bytes))))
        .collect();
    assert_eq!(found, expected);
    for one in moves {
        assert_eq!(one.pieces.iter().map(|piece| piece.bytes).sum::<u64>(), one.payload_bytes);
        for piece in &one.pieces {
            let mapping = memory.regions[0].mapping.unwrap();
            let part = |address: u64| (address - mapping.base) / mapping.bytes;
            assert_eq!(part(piece.address), part(piece.address + piece.bytes - 1));
        }
    }
}

fn address(memory: &Location, group: GroupId, member: &crate::layout::Member, slot: u32) -> u64 {
    let name = (member.layer, member.role.clone());
    let here = |region: &&Region| region.group == group && region.members.contains(&name);
    let region = memory.regions.iter().find(here).unwrap();
    // The example's regions hold members of one size.
    region.base + region.stride * u64::from(slot) + offset(region, &name)
}

fn offset(region: &Region, name: &(u32, String)) -> u64 {
    let place = region.members.iter().position(|member| member == name).unwrap() as u64;
    place * (region.size_bytes / region.members.len() as u64)
}

/// Neighbouring pieces joined, so that only the order of the bytes counts.
fn merged(pieces: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (address, bytes) in pieces {
        match merged.last_mut() {
            Some((start, length)) if *start + *length == address => *length += bytes,
            _ => merged.push((address, bytes)),
        }
    }
    merged
}

/// One checkpoint of the 93-layer model: 428.6 MiB of state over its eight shards.
#[test]
fn replicated_pages_are_stored_once_and_read_by_all() {
    let manifest = planned(&examples::latent_and_kda());
    let shared: Vec<_> = manifest.shared_objects().collect();
    assert_eq!(shared.len() as u64, END);
    assert!(shared.iter().all(|object| object.name.scope == SharedScope::Replicated));
    let states = |shard| manifest.private_objects(ShardIndex(shard)).skip(1);
    let bytes: u64 = (0..8).flat_map(states).map(|object| object.payload_bytes).sum();
    assert_eq!(bytes, 69 * ((6 << 20) + (216 << 10)));
    for shard in [0, 5].map(ShardIndex) {
        let (memory, pages) = (location(&manifest, shard), page_table(&manifest, shard));
        let moves = manifest.shard(shard).unwrap().moves(&memory, &pages).unwrap();
        let stored = moves.iter().filter(|one| one.stored_here).count() as u64;
        assert_eq!(moves.len() as u64, END + 1);
        assert_eq!(stored, if shard == ShardIndex(0) { END + 1 } else { 1 });
        let state = ObjectName::Private(ObjectId { shard, index: 1 });
        assert_eq!(moves.last().map(|one| one.object), Some(state));
    }
}

/// An indexer page that stands for four blocks is named by the last of them.
#[test]
fn compressed_pages_span_blocks() {
    let manifest = planned(&examples::indexed());
    let index = manifest.shared_objects().filter(|object| object.name.group == GroupId(1));
    let chains: Vec<_> = index.map(|object| object.name.chain).collect();
    assert_eq!(chains, [chain(END)[3], chain(END)[7]]);
    let short = plan(&examples::indexed(), &chain(6), 6 * u64::from(BLOCK), &[]);
    let (tokens, unit) = (6 * u64::from(BLOCK), 4 * u64::from(BLOCK));
    let group = Some(GroupId(1));
    assert_eq!(short.unwrap_err(), PlanError::UnalignedEndpoint { tokens, unit, group });
}

#[test]
fn small_pages_share_the_object_of_their_block() {
    let manifest = planned(&examples::pipelined());
    assert_eq!(manifest.pages(GroupId(2)), Some(0..2 * END));
    let small = manifest.shared_objects().filter(|object| object.name.group == GroupId(2));
    let small: Vec<_> = small.collect();
    assert_eq!(small.len() as u64, 2 * END);
    assert_eq!((small[1].first_page, small[1].pages, small[1].payload_bytes), (2, 2, 8192));
    let offsets: Vec<_> = manifest.parts(GroupId(2)).map(|part| part.offset).collect();
    assert_eq!(offsets, [0, 2048, 4096, 6144]);
}

/// A window covers its last blocks, or all of a shorter prefix.
#[test]
fn trailing_pages_are_the_last_ones() {
    let layout = examples::sliding();
    assert_eq!(planned(&layout).pages(GroupId(1)), Some(END - 2..END));
    let short = plan(&layout, &chain(1), u64::from(BLOCK), &[]).unwrap();
    assert_eq!(short.pages(GroupId(1)), Some(0..1));
}

/// What is left out leaves no trace; what is named is planned.
#[test]
fn optional_groups_are_planned_when_named() {
    let layout = examples::drafted();
    let without = planned(&layout);
    assert_eq!(without.digest(), planned(&examples::hybrid()).digest());
    let with = plan(&layout, &chain(END), TOKENS, &[GroupId(9)]).unwrap();
    assert_eq!(with.pages(GroupId(9)), Some(0..END));
    assert_ne!(with.digest(), without.digest());

    // The rank's memory has the draft's region either way; a required one must be planned.
    let mut memory = location(&with, ShardIndex(0));
    let pages = page_table(&without, ShardIndex(0));
    let shard = without.shard(ShardIndex(0)).unwrap();
    assert!(shard.moves(&memory, &pages).is_ok());
    memory.regions.last_mut().unwrap().necessity = Necessity::Required;
    let field = "location.regions";
    refuse(&without, &memory, &pages, &MoveError::UnknownGroup { field, group: GroupId(9) });

    let choose = |optional: &[GroupId]| plan(&layout, &chain(END), TOKENS, optional).unwrap_err();
    assert_eq!(choose(&[GroupId(8)]), PlanError::UnknownGroup { group: GroupId(8) });
    assert_eq!(choose(&[GroupId(0)]), PlanError::RequiredGroup { group: GroupId(0) });
    let repeated = PlanError::RepeatedGroup { group: GroupId(9) };
    assert_eq!(choose(&[GroupId(9), GroupId(9)]), repeated);
}

/// Protocol 8: zero tokens, not block-aligned, not covered by its chain.
#[test]
fn impossible_endpoints_are_refused() {
    let layout = examples::hybrid();
    let refused =
        |blocks: u64, tokens: u64| plan(&layout, &chain(blocks), tokens, &[]).unwrap_err();
    assert_eq!(refused(8, 0), PlanError::ZeroEndpoint);
    let unaligned = PlanError::UnalignedEndpoint { tokens: 100, unit: 64, group: None };
    assert_eq!(refused(8, 100), unaligned);
    assert_eq!((unaligned.code(), unaligned.field()), ("unaligned_endpoint", "endpoint_tokens"));
    let uncovered = PlanError::UncoveredEndpoint { blocks: 9, chain: 8 };
    assert_eq!(refused(8, 9 * 64), uncovered);
    let far = u64::MAX / 64 * 64;
    assert_eq!(refused(8, far), PlanError::UncoveredEndpoint { blocks: far / 64, chain: 8 });
    let mut looped = chain(8);
    looped[5] = looped[2];
    let repeated = PlanError::RepeatedChain { ordinal: 5, first: 2 };
    assert_eq!(plan(&layout, &looped, TOKENS, &[]), Err(repeated));
    let layout = Layout { tokens_per_block: 0, ..layout };
    let empty = LayoutError::Empty { field: "tokens_per_block" };
    assert_eq!(plan(&layout, &chain(8), TOKENS, &[]), Err(PlanError::Layout(empty)));
}

#[test]
fn pages_must_be_exactly_the_planned_ones_in_order() {
    let group = GroupId(0);
    let missing = |ordinal| MoveError::MissingOrdinal { group, ordinal };
    refuse_pages(|pages| pages.groups[0].1.retain(|page| page.ordinal != 3), &missing(3));
    refuse_pages(|pages| pages.groups[0].1.truncate(7), &missing(END - 1));
    refuse_pages(|pages| pages.groups[0].1.clear(), &missing(0));
    let repeat = |pages: &mut PageTable| pages.groups[0].1[3].ordinal = 2;
    refuse_pages(repeat, &MoveError::RepeatedOrdinal { group, ordinal: 2 });
    let unordered = MoveError::UnorderedOrdinal { group, ordinal: 2, after: 3 };
    refuse_pages(|pages| pages.groups[0].1.swap(2, 3), &unordered);
    let surplus = MoveError::SurplusOrdinal { group, ordinal: END, first: 0, end: END };
    refuse_pages(|pages| pages.groups[0].1.push(Page { ordinal: END, slot: 1 }), &surplus);
}

/// A state that was taken at another position is refused, whatever its page is called.
#[test]
fn state_of_another_block_is_refused() {
    let group = GroupId(1);
    let foreign = |ordinal| MoveError::ForeignState { group, ordinal, slot: 2, last: END - 1 };
    refuse_pages(|pages| pages.groups[1].1[0].ordinal = END - 2, &foreign(END - 2));
    refuse_pages(|pages| pages.groups[1].1[0].ordinal = END, &foreign(END));
    refuse_pages(
        |pages| pages.groups[1].1.clear(),
        &MoveError::MissingOrdinal { group, ordinal: END - 1 },
    );
    refuse_pages(
        |pages| pages.groups[1].1.push(Page { ordinal: END - 1, slot: 0 }),
        &MoveError::RepeatedOrdinal { group, ordinal: END - 1 },
    );
}

#[test]
fn slots_must_exist_and_be_distinct() {
    let group = GroupId(0);
    let range = MoveError::SlotRange { group, ordinal: 1, slot: 11, slots: 11 };
    refuse_pages(|pages| pages.groups[0].1[1].slot = 11, &range);
    let aliased =
        MoveError::AliasedSlot { group, ordinal: 4, slot: 7, other_group: group, other_ordinal: 2 };
    refuse_pages(|pages| pages.groups[0].1[4].slot = pages.groups[0].1[2].slot, &aliased);
}

/// Two groups in one pool may not have one slot.
#[test]
fn slots_of_different_groups_may_not_overlap() {
    let (manifest, mut memory, pages) = scene();
    let state = memory.regions.iter().position(|region| region.group == GroupId(1)).unwrap();
    memory.regions[state].base = memory.regions[0].base + 2 * memory.regions[0].stride;
    let shard = manifest.shard(ShardIndex(0)).unwrap();
    let error = shard.moves(&memory, &pages).unwrap_err();
    assert_eq!((error.code(), error.field()), ("aliased_slot", "pages.slot"));
}

#[test]
fn page_lists_must_be_those_of_the_held_groups() {
    let group = GroupId(1);
    refuse_pages(|pages| drop(pages.groups.pop()), &MoveError::MissingGroup { group });
    let repeat = |pages: &mut PageTable| pages.groups.push(pages.groups[1].clone());
    refuse_pages(repeat, &MoveError::RepeatedGroup { group });
    let unknown = MoveError::UnknownGroup { field: "pages", group: GroupId(5) };
    refuse_pages(|pages| pages.groups.push((GroupId(5), vec![])), &unknown);

    let manifest = planned(&examples::pipelined());
    let (mut memory, mut pages) =
        (location(&manifest, ShardIndex(0)), page_table(&manifest, ShardIndex(0)));
    pages.groups.push((GroupId(2), vec![]));
    let extra = MoveError::ExtraGroup { field: "pages", group: GroupId(2) };
    refuse(&manifest, &memory, &pages, &extra);
    memory.regions.extend(location(&manifest, ShardIndex(2)).regions);
    let extra = MoveError::ExtraGroup { field: "location.regions", group: GroupId(2) };
    refuse(&manifest, &memory, &pages, &extra);
}

#[test]
fn regions_must_hold_each_planned_member_once() {
    let group = GroupId(0);
    let (layer, role) = (3, "value".to_string());
    let missing = MoveError::MissingRole { group, layer, role: role.clone() };
    refuse_memory(
        |regions| drop(regions.remove(0)),
        &MoveError::MissingRole { group, layer: 1, role: "key".to_string() },
    );
    let cut = |regions: &mut Vec<Region>| {
        regions[0].members.remove(0);
        regions[0].size_bytes -= 32_768;
    };
    refuse_memory(cut, &missing);
    let repeated = MoveError::RepeatedRole { group, layer, role };
    refuse_memory(|regions| regions.push(regions[0].clone()), &repeated);
    let unplanned = MoveError::UnplannedRole { group, layer: 3, role: "index_key".to_string() };
    refuse_memory(|regions| regions[0].members[0].1 = "index_key".to_string(), &unplanned);
    let size = MoveError::RegionSize { group, planned: 131_072, found: 131_071 };
    refuse_memory(|regions| regions[0].size_bytes -= 1, &size);
}

#[test]
fn regions_must_fit_the_address_space() {
    let (_, memory, _) = scene();
    let Region { group, base, stride, slots, .. } = memory.regions[0];
    let range = |base, stride, slots| MoveError::RegionRange { group, base, stride, slots };
    refuse_memory(|regions| regions[0].slots = 0, &range(base, stride, 0));
    refuse_memory(|regions| regions[0].stride = 9, &range(base, 9, slots));
    refuse_memory(|regions| regions[0].stride = u64::MAX, &range(base, u64::MAX, slots));
    refuse_memory(|regions| regions[0].base = u64::MAX, &range(u64::MAX, stride, slots));
    let bad = |base, bytes| MoveError::MappingRange { group, base, bytes };
    let small = Mapping { base: 0, bytes: 4095 };
    refuse_memory(|regions| regions[0].mapping = Some(small), &bad(0, 4095));
    let above = Mapping { base: base + 1, bytes: 1 << 21 };
    refuse_memory(|regions| regions[0].mapping = Some(above), &bad(base + 1, 1 << 21));
}

#[test]
fn only_the_rank_itself_is_moved() {
    let (manifest, mut memory, pages) = scene();
    memory.shard = ShardIndex(1);
    let other = MoveError::OtherShard { shard: ShardIndex(0), found: ShardIndex(1) };
    refuse(&manifest, &memory, &pages, &other);
    let unknown = MoveError::UnknownShard { shard: ShardIndex(2), shards: 2 };
    assert_eq!(manifest.shard(ShardIndex(2)).unwrap_err(), unknown);
}

/// Unknown coverage reaches a plan as the host's own word and is refused by it.
#[test]
fn unknown_coverage_is_refused_by_its_word() {
    let mut layout = examples::hybrid();
    layout.groups[0].coverage = Coverage::Other("ring".to_string());
    let error = plan(&layout, &chain(END), TOKENS, &[]).unwrap_err();
    assert_eq!((error.code(), error.field()), ("unknown_coverage", "groups.coverage"));
    assert!(error.to_string().contains("\"ring\""));
}

/// Numbers near every edge of their type, and small ones that may be sound.
fn wild() -> impl Strategy<Value = u64> {
    let near = prop::sample::select(vec![0, 1, 64, 4096, 1 << 21, 1 << 32, 1 << 47, u64::MAX]);
    let edge = (near, -2..3_i64).prop_map(|(near, by): (u64, i64)| near.wrapping_add_signed(by));
    prop_oneof![edge, any::<u64>(), 0..12_u64]
}

/// The low half of a wild number.
fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap()
}

proptest! {
    /// Whatever the numbers of a location and a page table are, they are judged and never believed.
    #[test]
    fn moves_of_wild_numbers_never_panic(
        changes in prop::collection::vec((0..8_u8, any::<prop::sample::Index>(), wild()), 1..5),
    ) {
        let manifest = planned(&examples::quantised());
        let shard = manifest.shard(ShardIndex(0)).unwrap();
        let mut memory = location(&manifest, ShardIndex(0));
        let mut pages = page_table(&manifest, ShardIndex(0));
        for (field, place, number) in changes {
            let at = place.index(memory.regions.len());
            let region = &mut memory.regions[at];
            let (_, list) = &mut pages.groups[at % 2];
            let at = place.index(list.len());
            match field {
                0 => region.base = number,
                1 => region.stride = number,
                2 => region.slots = low(number),
                3 => region.size_bytes = number,
                4 => region.mapping = Some(Mapping { base: number, bytes: 4096 }),
                5 => region.mapping = Some(Mapping { base: 0, bytes: number }),
                6 => list[at].ordinal = number,
                _ => list[at].slot = low(number),
            }
        }
        if let Ok(moves) = shard.moves(&memory, &pages) {
            for one in moves {
                let bytes: u64 = one.pieces.iter().map(|piece| piece.bytes).sum();
                prop_assert_eq!(bytes, one.payload_bytes);
            }
        }
    }

    /// Whatever the numbers of a layout are, a plan of it is refused or reads back the same.
    #[test]
    fn plans_of_wild_numbers_never_panic(
        changes in prop::collection::vec((0..10_u8, any::<prop::sample::Index>(), wild()), 1..5),
        tokens in prop_oneof![wild(), Just(TOKENS)],
    ) {
        let mut layout = examples::pipelined();
        for (field, place, number) in changes {
            let short = u16::try_from(number & 0xffff).unwrap();
            let at = place.index(layout.groups.len());
            let group = &mut layout.groups[at];
            match field {
                0 => layout.tokens_per_block = low(number),
                1 => group.tokens_per_page = low(number),
                2 => group.window_tokens = Some(low(number)),
                3 => group.coverage = Coverage::Trailing { blocks: low(number) },
                4 => group.members[0].bytes_per_page = number,
                5 => group.members[0].layer = low(number),
                6 => group.shards[0] = ShardIndex(short),
                7 => group.id = GroupId(short),
                8 => layout.roles[at].stage = short,
                _ => group.sharing = crate::layout::Sharing::EndpointPrivate,
            }
        }
        if let Ok(manifest) = plan(&layout, &chain(END), tokens, &[]) {
            prop_assert_eq!(Manifest::decode(manifest.encode()), Ok(manifest));
        }
    }
}
