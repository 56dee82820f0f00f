//! From a layout and a chain to a manifest, and from a manifest and memory to moves.
//!
//! [`plan`] is a pure function of what every rank knows, so every rank computes the same manifest
//! of the whole checkpoint, all shards included, before a byte moves. A [`Shard`] of it then meets
//! one rank's [`Location`](crate::layout::Location) and
//! [`PageTable`](crate::layout::PageTable) and becomes [`Move`]s. Both refuse by name, and as a
//! unit, whatever would leave a page, scale or replicated part unplanned, or take it from the
//! wrong slot.
//!
//! Neither starts a transfer, and no address gets from a move into a manifest.

mod moves;
mod refusal;

#[cfg(test)]
pub(crate) mod examples;

use alloc::collections::BTreeSet;

use crate::id::ChainValue;
use crate::layout::{GroupId, Layout, Necessity};
use crate::manifest::Manifest;

pub use moves::{Move, Piece, Shard};
pub use refusal::{MoveError, PlanError};

/// The manifest of the checkpoint after so many tokens of the conversation with this chain.
///
/// Of the layout's optional groups exactly those in `optional` are part of it, in whatever order
/// they are named; so all ranks must name the same, and a load names what the save did. What is
/// left out leaves no trace in the manifest. A chain longer than the endpoint is used up to it.
///
/// # Errors
/// The first thing that is wrong with the layout, the endpoint, the chain or the choice of groups.
pub fn plan(
    layout: &Layout,
    chain: &[ChainValue],
    endpoint_tokens: u64,
    optional: &[GroupId],
) -> Result<Manifest, PlanError> {
    layout.validate()?;
    if endpoint_tokens == 0 {
        return Err(PlanError::ZeroEndpoint);
    }
    let tokens_per_block = u64::from(layout.tokens_per_block);
    if !endpoint_tokens.is_multiple_of(tokens_per_block) {
        let (tokens, unit) = (endpoint_tokens, tokens_per_block);
        return Err(PlanError::UnalignedEndpoint { tokens, unit, group: None });
    }
    let blocks = endpoint_tokens / tokens_per_block;
    let covered = usize::try_from(blocks).ok().and_then(|blocks| chain.get(..blocks));
    let Some(prefix) = covered else {
        return Err(PlanError::UncoveredEndpoint { blocks, chain: chain.len() as u64 });
    };
    Manifest::new(choose(layout, optional)?, prefix.to_vec(), endpoint_tokens)
}

/// The layout without the optional groups that were not named.
fn choose(layout: &Layout, optional: &[GroupId]) -> Result<Layout, PlanError> {
    let mut named = BTreeSet::new();
    for &group in optional {
        match layout.group(group) {
            None => return Err(PlanError::UnknownGroup { group }),
            Some(known) if known.necessity == Necessity::Required => {
                return Err(PlanError::RequiredGroup { group });
            }
            Some(_) if !named.insert(group) => return Err(PlanError::RepeatedGroup { group }),
            Some(_) => {}
        }
    }
    let mut chosen = layout.clone();
    chosen
        .groups
        .retain(|group| group.necessity == Necessity::Required || named.contains(&group.id));
    let members = chosen.groups.iter().flat_map(|group| &group.members);
    let held: BTreeSet<_> = members.map(|member| (member.layer, member.role.as_str())).collect();
    chosen.roles.retain(|row| held.contains(&(row.layer, row.role.as_str())));
    Ok(chosen)
}

#[cfg(test)]
mod tests;
