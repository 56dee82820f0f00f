//! The judgement of a layout by itself.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::{
    Coverage, Group, GroupId, Layout, LayoutError, MAX_OBJECT_BYTES, MAX_PLACEMENTS, MAX_SHARDS,
    MAX_TEXT_BYTES, Member, RoleRow, Scope, Sharing,
};
use crate::id::ShardIndex;

/// Refuses the first thing that is wrong: the frame, then each group, then the role table.
pub(super) fn check(layout: &Layout) -> Result<(), LayoutError> {
    check_frame(layout)?;
    let mut ids = BTreeSet::new();
    let mut placements = 0_u64;
    for group in &layout.groups {
        if !ids.insert(group.id) {
            return Err(LayoutError::RepeatedGroup { group: group.id });
        }
        check_group(layout, group)?;
        let added = (group.members.len() as u64).saturating_mul(group.shards.len() as u64);
        placements = placements.saturating_add(added);
    }
    if placements > MAX_PLACEMENTS {
        return Err(LayoutError::TooLarge { field: "groups", most: MAX_PLACEMENTS });
    }
    check_roles(layout)
}

fn check_frame(layout: &Layout) -> Result<(), LayoutError> {
    if layout.representation.is_empty() {
        return Err(LayoutError::Empty { field: "representation" });
    }
    check_text("hash_chain", None, &layout.hash_chain)?;
    if layout.tokens_per_block == 0 {
        return Err(LayoutError::Empty { field: "tokens_per_block" });
    }
    if layout.shards.is_empty() {
        return Err(LayoutError::Empty { field: "shards" });
    }
    if layout.shards.len() > MAX_SHARDS as usize {
        return Err(LayoutError::TooLarge { field: "shards", most: u64::from(MAX_SHARDS) });
    }
    let mut seen = BTreeSet::new();
    for coordinates in &layout.shards {
        if !seen.insert(coordinates) {
            return Err(LayoutError::RepeatedShard { coordinates: *coordinates });
        }
    }
    if layout.groups.is_empty() {
        return Err(LayoutError::Empty { field: "groups" });
    }
    Ok(())
}

fn check_group(layout: &Layout, group: &Group) -> Result<(), LayoutError> {
    check_holders(layout, group)?;
    check_coverage(layout, group)?;
    let mut seen = BTreeSet::new();
    for member in &group.members {
        check_text("role", Some(group.id), &member.role)?;
        check_text("element", Some(group.id), &member.element)?;
        let Member { layer, role, .. } = member;
        if !seen.insert((*layer, role.as_str())) {
            return Err(repeated_role(group, member, group.shards.first()));
        }
        if member.bytes_per_page == 0 {
            return Err(LayoutError::EmptyMember {
                group: group.id,
                layer: *layer,
                role: role.clone(),
            });
        }
    }
    if group.members.is_empty() {
        return Err(LayoutError::EmptyGroup { group: group.id, field: "members" });
    }
    check_scales(group)?;
    let pages = group.span(layout.tokens_per_block).map_or(1, |span| u64::from(span.pages));
    match group.page_bytes().and_then(|bytes| bytes.checked_mul(pages)) {
        Some(bytes) if bytes <= MAX_OBJECT_BYTES => Ok(()),
        _ => Err(LayoutError::ObjectTooLarge { group: group.id }),
    }
}

fn check_holders(layout: &Layout, group: &Group) -> Result<(), LayoutError> {
    let mut seen = BTreeSet::new();
    for &shard in &group.shards {
        if usize::from(shard.0) >= layout.shards.len() {
            return Err(LayoutError::UnknownShard { group: group.id, shard });
        }
        if !seen.insert(shard) {
            return Err(LayoutError::RepeatedHolder { group: group.id, shard });
        }
    }
    if group.shards.is_empty() {
        return Err(LayoutError::EmptyGroup { group: group.id, field: "shards" });
    }
    match group.scope {
        Scope::ReplicatedOnce { owner } if !seen.contains(&owner) => {
            Err(LayoutError::ForeignOwner { group: group.id, owner })
        }
        Scope::ReplicatedOnce { .. } | Scope::PerShard => Ok(()),
    }
}

fn check_coverage(layout: &Layout, group: &Group) -> Result<(), LayoutError> {
    let span = group.span(layout.tokens_per_block);
    let misfit = LayoutError::PageSpan {
        group: group.id,
        tokens_per_page: group.tokens_per_page,
        tokens_per_block: layout.tokens_per_block,
    };
    let Some(span) = span else { return Err(misfit) };
    let window_blocks = |window: u32| window.saturating_sub(1).div_ceil(layout.tokens_per_block);
    match (&group.coverage, group.window_tokens) {
        (Coverage::Other(word), _) => {
            Err(LayoutError::UnknownCoverage { group: group.id, found: word.clone() })
        }
        (_, Some(0)) => Err(LayoutError::EmptyGroup { group: group.id, field: "window_tokens" }),
        (Coverage::Trailing { blocks: 0 }, _) => {
            Err(LayoutError::EmptyGroup { group: group.id, field: "coverage" })
        }
        (Coverage::Trailing { blocks }, Some(window)) if *blocks < window_blocks(window) => {
            let needed_blocks = window_blocks(window);
            Err(LayoutError::SlidingWindow { group: group.id, window, needed_blocks })
        }
        (Coverage::EveryBlock | Coverage::EndpointOnly, Some(window)) => {
            let needed_blocks = window_blocks(window).max(1);
            Err(LayoutError::SlidingWindow { group: group.id, window, needed_blocks })
        }
        (Coverage::EndpointOnly, None) if group.sharing == Sharing::SharedContent => {
            Err(LayoutError::SharedState { group: group.id })
        }
        (Coverage::Trailing { blocks }, _) if !blocks.is_multiple_of(span.blocks) => Err(misfit),
        (Coverage::EndpointOnly, None) if span.blocks != 1 || span.pages != 1 => Err(misfit),
        (Coverage::Trailing { .. }, _) | (Coverage::EveryBlock | Coverage::EndpointOnly, None) => {
            Ok(())
        }
    }
}

/// A scale travels with its payload: same layer, same group, and no scale itself.
fn check_scales(group: &Group) -> Result<(), LayoutError> {
    let payloads = group.members.iter().filter(|member| member.scale_of.is_none());
    let payloads: BTreeSet<_> = payloads.map(|member| (member.layer, &member.role)).collect();
    for member in &group.members {
        if let Some(payload) = &member.scale_of
            && !payloads.contains(&(member.layer, payload))
        {
            return Err(LayoutError::ScaleWithoutPayload {
                group: group.id,
                layer: member.layer,
                role: member.role.clone(),
                payload: payload.clone(),
            });
        }
    }
    Ok(())
}

type Placement<'a> = (&'a Group, &'a Member);

/// Every row of the table is held exactly once by each shard of its stage, and nothing else is.
fn check_roles(layout: &Layout) -> Result<(), LayoutError> {
    let mut rows: BTreeMap<(u32, &str), &RoleRow> = BTreeMap::new();
    for row in &layout.roles {
        check_text("roles", None, &row.role)?;
        if rows.insert((row.layer, &row.role), row).is_some() {
            return Err(LayoutError::RepeatedRow { layer: row.layer, role: row.role.clone() });
        }
    }
    let mut placements: BTreeMap<(u32, &str), Vec<Placement<'_>>> = BTreeMap::new();
    for group in &layout.groups {
        for member in &group.members {
            let place = (member.layer, member.role.as_str());
            match rows.get(&place) {
                Some(row) => check_replication(group, member, row)?,
                None => return Err(unexpected_role(layout, group, member, None)),
            }
            placements.entry(place).or_default().push((group, member));
        }
    }
    let stages = stages(layout);
    for row in &layout.roles {
        let holders = stages.get(&row.stage).map_or(&[][..], Vec::as_slice);
        let places = placements.get(&(row.layer, row.role.as_str()));
        check_row(layout, row, holders, places.map_or(&[][..], Vec::as_slice))?;
    }
    Ok(())
}

fn check_replication(group: &Group, member: &Member, row: &RoleRow) -> Result<(), LayoutError> {
    let (group_id, layer, role) = (group.id, member.layer, member.role.clone());
    match (row.replicated, group.scope) {
        (true, Scope::PerShard) => {
            Err(LayoutError::UnplannedReplicated { group: group_id, layer, role })
        }
        (false, Scope::ReplicatedOnce { .. }) => {
            Err(LayoutError::NotReplicated { group: group_id, layer, role })
        }
        (true, Scope::ReplicatedOnce { .. }) | (false, Scope::PerShard) => Ok(()),
    }
}

fn check_row(
    layout: &Layout,
    row: &RoleRow,
    holders: &[ShardIndex],
    places: &[Placement<'_>],
) -> Result<(), LayoutError> {
    if holders.is_empty() {
        let (layer, role) = (row.layer, row.role.clone());
        return Err(LayoutError::UnknownStage { layer, role, stage: row.stage });
    }
    if let [(group, _)] = places
        && group.shards == holders
    {
        return Ok(());
    }
    let mut held = BTreeSet::new();
    for (group, member) in places {
        for shard in &group.shards {
            if holders.binary_search(shard).is_err() {
                return Err(unexpected_role(layout, group, member, Some(*shard)));
            }
            if !held.insert(*shard) {
                return Err(repeated_role(group, member, Some(shard)));
            }
        }
    }
    match holders.iter().find(|shard| !held.contains(shard)) {
        Some(&shard) => {
            Err(LayoutError::MissingRole { layer: row.layer, role: row.role.clone(), shard })
        }
        None => Ok(()),
    }
}

/// The shards of each pipeline stage, ascending.
fn stages(layout: &Layout) -> BTreeMap<u16, Vec<ShardIndex>> {
    let mut stages: BTreeMap<u16, Vec<ShardIndex>> = BTreeMap::new();
    for (index, coordinates) in (0..=u16::MAX).zip(&layout.shards) {
        stages.entry(coordinates.stage).or_default().push(ShardIndex(index));
    }
    stages
}

/// A role that the table knows for other layers or stages is extra, any other one unknown.
fn unexpected_role(
    layout: &Layout,
    group: &Group,
    member: &Member,
    shard: Option<ShardIndex>,
) -> LayoutError {
    let (group, layer, role) = (group.id, member.layer, member.role.clone());
    if layout.roles.iter().any(|row| row.role == role) {
        LayoutError::ExtraRole { group, layer, role, shard }
    } else {
        LayoutError::UnknownRole { group, layer, role }
    }
}

fn repeated_role(group: &Group, member: &Member, shard: Option<&ShardIndex>) -> LayoutError {
    LayoutError::RepeatedRole {
        group: group.id,
        layer: member.layer,
        role: member.role.clone(),
        shard: shard.copied().unwrap_or_default(),
    }
}

fn check_text(field: &'static str, group: Option<GroupId>, text: &str) -> Result<(), LayoutError> {
    let fits = (1..=MAX_TEXT_BYTES as usize).contains(&text.len());
    if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let found = text.chars().take(MAX_TEXT_BYTES as usize).collect::<String>();
    Err(LayoutError::Text { field, group, found })
}
