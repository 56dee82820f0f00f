//! One shard of a manifest meets one rank's memory.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::MoveError;
use crate::id::{ObjectId, ShardIndex};
use crate::layout::{
    Coverage, Extent, Group, GroupId, Location, Mapping, Member, Necessity, Page, PageTable,
    Region, Sharing,
};
use crate::manifest::{Manifest, ObjectName};

/// One shard of a manifest.
#[derive(Clone, Copy, Debug)]
pub struct Shard<'a> {
    manifest: &'a Manifest,
    index: ShardIndex,
}

/// One object between the store and this rank's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which object.
    pub object: ObjectName,
    /// This shard stores it. Otherwise another one does, and this shard only reads it.
    pub stored_here: bool,
    /// What the pieces add up to: the object without any trailer.
    pub payload_bytes: u64,
    /// The memory that holds it, in the order of the object's bytes.
    pub pieces: Vec<Piece>,
}

/// Contiguous memory inside one mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// Where it begins.
    pub address: u64,
    /// How long it is.
    pub bytes: u64,
}

impl<'a> Shard<'a> {
    pub(crate) const fn new(manifest: &'a Manifest, index: ShardIndex) -> Self {
        Self { manifest, index }
    }

    /// Which shard it is.
    #[must_use]
    pub const fn index(&self) -> ShardIndex {
        self.index
    }

    /// A move for every object of the groups that the shard holds: by group, then place.
    ///
    /// A save takes those that are [stored here](Move::stored_here), a load all of them. The
    /// manifest's own object, index 0, is no device memory and so no move.
    ///
    /// # Errors
    /// The first thing in which location, page table and manifest disagree; there are no moves
    /// then at all.
    pub fn moves(&self, location: &Location, pages: &PageTable) -> Result<Vec<Move>, MoveError> {
        if location.shard != self.index {
            let (shard, found) = (self.index, location.shard);
            return Err(MoveError::OtherShard { shard, found });
        }
        let places = self.places(location)?;
        let lists = self.lists(pages)?;
        let mut taken = Vec::new();
        for (group, extent) in self.held() {
            let list = *lists.get(&group.id).ok_or(MoveError::MissingGroup { group: group.id })?;
            check_ordinals(group, extent, list)?;
            let places = places.get(&group.id).map_or(&[][..], Vec::as_slice);
            take(group, places, list, &mut taken)?;
        }
        check_aliases(taken)?;
        let mut moves = Vec::new();
        for (group, extent) in self.held() {
            let list = lists.get(&group.id).copied().unwrap_or_default();
            let places = places.get(&group.id).map_or(&[][..], Vec::as_slice);
            self.add_moves((group, extent), places, list, &mut moves)?;
        }
        Ok(moves)
    }

    fn held(&self) -> impl Iterator<Item = (&'a Group, &'a Extent)> {
        let index = self.index;
        self.manifest.planned().filter(move |(group, _)| group.is_held_by(index))
    }

    /// For each group, where its members are, in the order of the object's bytes.
    fn places<'l>(
        &self,
        location: &'l Location,
    ) -> Result<BTreeMap<GroupId, Vec<Place<'l>>>, MoveError> {
        let mut found = BTreeMap::new();
        for region in &location.regions {
            let Some(group) = self.manifest.layout().group(region.group) else {
                match region.necessity {
                    Necessity::Optional => continue,
                    Necessity::Required => {
                        let field = "location.regions";
                        return Err(MoveError::UnknownGroup { field, group: region.group });
                    }
                }
            };
            if !group.is_held_by(self.index) {
                let field = "location.regions";
                return Err(MoveError::ExtraGroup { field, group: region.group });
            }
            check_region(region)?;
            find_members(group, region, &mut found)?;
        }
        self.held().map(|(group, _)| Ok((group.id, in_order(group, &found)?))).collect()
    }

    fn lists<'p>(&self, pages: &'p PageTable) -> Result<BTreeMap<GroupId, &'p [Page]>, MoveError> {
        let mut lists = BTreeMap::new();
        for (id, list) in &pages.groups {
            let (field, group) = ("pages", *id);
            match self.manifest.layout().group(group) {
                None => return Err(MoveError::UnknownGroup { field, group }),
                Some(known) if !known.is_held_by(self.index) => {
                    return Err(MoveError::ExtraGroup { field, group });
                }
                Some(_) => {}
            }
            if lists.insert(group, list.as_slice()).is_some() {
                return Err(MoveError::RepeatedGroup { group });
            }
        }
        Ok(lists)
    }

    /// The list is known to hold exactly the extent's pages, in order.
    fn add_moves(
        &self,
        (group, extent): (&Group, &Extent),
        places: &[Place<'_>],
        list: &[Page],
        moves: &mut Vec<Move>,
    ) -> Result<(), MoveError> {
        let stored_by = group.stored_by(self.index);
        let first_index = self.manifest.first_index(group.id, stored_by);
        let pages = list.chunks(extent.span.pages.max(1) as usize);
        for ((object, place), pages) in (extent.first..extent.end).zip(0_u64..).zip(pages) {
            let missing = MoveError::MissingOrdinal { group: group.id, ordinal: object };
            let name = match group.sharing {
                Sharing::SharedContent => {
                    let name = self.manifest.shared_name(group, extent, stored_by, object);
                    name.map(ObjectName::Shared)
                }
                Sharing::EndpointPrivate => {
                    let index = first_index.checked_add(place).map(u32::try_from);
                    let index = index.and_then(Result::ok);
                    index.map(|index| ObjectName::Private(ObjectId { shard: stored_by, index }))
                }
            };
            let mut pieces = Vec::new();
            for page in pages {
                for place in places {
                    split(place.at(page.slot)?, place.region.mapping, &mut pieces);
                }
            }
            moves.push(Move {
                object: name.ok_or(missing)?,
                stored_here: stored_by == self.index,
                payload_bytes: extent.payload_bytes,
                pieces,
            });
        }
        Ok(())
    }
}

/// Neighbouring members in one region.
#[derive(Clone, Copy)]
struct Place<'l> {
    region: &'l Region,
    offset: u64,
    bytes: u64,
}

impl Place<'_> {
    /// The memory of the members in this slot.
    fn at(&self, slot: u32) -> Result<Piece, MoveError> {
        let start = self.region.stride.checked_mul(u64::from(slot));
        let start = start.and_then(|start| start.checked_add(self.offset));
        let start = start.and_then(|start| start.checked_add(self.region.base));
        match start.filter(|start| start.checked_add(self.bytes).is_some()) {
            Some(address) => Ok(Piece { address, bytes: self.bytes }),
            None => Err(out_of_range(self.region)),
        }
    }
}

type Found<'l> = BTreeMap<(GroupId, u32, &'l str), Place<'l>>;

fn out_of_range(region: &Region) -> MoveError {
    let Region { group, base, stride, slots, .. } = *region;
    MoveError::RegionRange { group, base, stride, slots }
}

fn check_region(region: &Region) -> Result<(), MoveError> {
    let Region { group, base, stride, slots, size_bytes, .. } = *region;
    let last = u64::from(slots).checked_sub(1).and_then(|last| last.checked_mul(stride));
    let end = last.and_then(|last| last.checked_add(base));
    let end = end.and_then(|start| start.checked_add(size_bytes));
    if end.is_none() || stride < size_bytes {
        return Err(out_of_range(region));
    }
    match region.mapping {
        Some(Mapping { base: from, bytes }) if bytes < Mapping::MIN_BYTES || from > base => {
            Err(MoveError::MappingRange { group, base: from, bytes })
        }
        Some(_) | None => Ok(()),
    }
}

/// Notes where the region holds which member.
fn find_members<'l>(
    group: &Group,
    region: &'l Region,
    found: &mut Found<'l>,
) -> Result<(), MoveError> {
    let id = group.id;
    let mut offset = 0_u64;
    for (layer, role) in &region.members {
        let Some(Member { bytes_per_page: bytes, .. }) = group.member(*layer, role) else {
            let (layer, role) = (*layer, role.clone());
            return Err(MoveError::UnplannedRole { group: id, layer, role });
        };
        let place = Place { region, offset, bytes: *bytes };
        if found.insert((id, *layer, role), place).is_some() {
            let (layer, role) = (*layer, role.clone());
            return Err(MoveError::RepeatedRole { group: id, layer, role });
        }
        offset = offset.checked_add(*bytes).ok_or_else(|| out_of_range(region))?;
    }
    if offset != region.size_bytes {
        let (planned, found) = (offset, region.size_bytes);
        return Err(MoveError::RegionSize { group: id, planned, found });
    }
    Ok(())
}

/// The places of a group's members in the members' order; neighbours in memory become one.
fn in_order<'l>(group: &Group, found: &Found<'l>) -> Result<Vec<Place<'l>>, MoveError> {
    let mut places: Vec<Place<'l>> = Vec::new();
    for Member { layer, role, .. } in &group.members {
        let Some(place) = found.get(&(group.id, *layer, role.as_str())) else {
            let (layer, role) = (*layer, role.clone());
            return Err(MoveError::MissingRole { group: group.id, layer, role });
        };
        match places.last_mut() {
            Some(last)
                if core::ptr::eq(last.region, place.region)
                    && last.offset.checked_add(last.bytes) == Some(place.offset) =>
            {
                last.bytes = last.bytes.saturating_add(place.bytes);
            }
            Some(_) | None => places.push(*place),
        }
    }
    Ok(places)
}

/// The list holds exactly the planned pages, in order.
fn check_ordinals(group: &Group, extent: &Extent, list: &[Page]) -> Result<(), MoveError> {
    let planned = extent.pages();
    if planned.clone().eq(list.iter().map(|page| page.ordinal)) {
        return Ok(());
    }
    let (id, first, end) = (group.id, planned.start, planned.end);
    let mut seen = BTreeSet::new();
    let mut after = None;
    for &Page { ordinal, slot } in list {
        if !planned.contains(&ordinal) && group.coverage == Coverage::EndpointOnly {
            let last = end.saturating_sub(1);
            return Err(MoveError::ForeignState { group: id, ordinal, slot, last });
        }
        if !planned.contains(&ordinal) {
            return Err(MoveError::SurplusOrdinal { group: id, ordinal, first, end });
        }
        if !seen.insert(ordinal) {
            return Err(MoveError::RepeatedOrdinal { group: id, ordinal });
        }
        if let Some(after) = after.filter(|after| *after > ordinal) {
            return Err(MoveError::UnorderedOrdinal { group: id, ordinal, after });
        }
        after = Some(ordinal);
    }
    // Distinct, ascending and inside: the first gap is where place and page part.
    let listed = list.iter().map(|page| Some(page.ordinal)).chain([None]);
    match planned.zip(listed).find(|(ordinal, listed)| *listed != Some(*ordinal)) {
        Some((ordinal, _)) => Err(MoveError::MissingOrdinal { group: id, ordinal }),
        None => Ok(()),
    }
}

/// Memory in use, and by which page.
struct Taken {
    piece: Piece,
    group: GroupId,
    page: Page,
}

/// Notes the memory of every listed page, whose slots must exist.
fn take(
    group: &Group,
    places: &[Place<'_>],
    list: &[Page],
    taken: &mut Vec<Taken>,
) -> Result<(), MoveError> {
    for &page in list {
        for place in places {
            let (group, Page { ordinal, slot }, slots) = (group.id, page, place.region.slots);
            if slot >= slots {
                return Err(MoveError::SlotRange { group, ordinal, slot, slots });
            }
            taken.push(Taken { piece: place.at(slot)?, group, page });
        }
    }
    Ok(())
}

/// No two pages share memory, in whichever groups and regions they are.
fn check_aliases(mut taken: Vec<Taken>) -> Result<(), MoveError> {
    taken.sort_unstable_by_key(|Taken { piece, group, page }| (*piece, *group, page.ordinal));
    for [earlier, later] in taken.array_windows() {
        let end = earlier.piece.address.saturating_add(earlier.piece.bytes);
        if later.piece.address < end {
            return Err(MoveError::AliasedSlot {
                group: later.group,
                ordinal: later.page.ordinal,
                slot: later.page.slot,
                other_group: earlier.group,
                other_ordinal: earlier.page.ordinal,
            });
        }
    }
    Ok(())
}

/// Cuts memory where a mapping's parts meet.
fn split(piece: Piece, mapping: Option<Mapping>, pieces: &mut Vec<Piece>) {
    let Some(Mapping { base, bytes: part }) = mapping else {
        pieces.push(piece);
        return;
    };
    let Piece { mut address, bytes: mut left } = piece;
    while left > 0 {
        let inside = address.saturating_sub(base).checked_rem(part).unwrap_or_default();
        let bytes = left.min(part.saturating_sub(inside)).max(1);
        pieces.push(Piece { address, bytes });
        address = address.saturating_add(bytes);
        left -= bytes;
    }
}
