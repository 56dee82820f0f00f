//! Why a layout is refused.

use alloc::string::String;

use super::{Coordinates, GroupId};
use crate::id::ShardIndex;

/// Why a layout is refused: what was wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Something that must be there is empty or zero.
    #[error("{field} is empty: a layout without it plans nothing, state it")]
    Empty {
        /// Which field.
        field: &'static str,
    },
    /// There is more of something than fits.
    #[error("{field} has too many entries: at most {most} fit, split the layout")]
    TooLarge {
        /// Which field.
        field: &'static str,
        /// How many would fit.
        most: u64,
    },
    /// A role, element type or hash-chain id is no name.
    #[error("{field} {found:?}{} is no name: use 1 to 64 visible ASCII characters", In(*group))]
    Text {
        /// Which field.
        field: &'static str,
        /// In which group, if in one.
        group: Option<GroupId>,
        /// What it began with.
        found: String,
    },
    /// Two shards have the same coordinates.
    #[error("two shards are {coordinates}: list every rank of the expected set once")]
    RepeatedShard {
        /// The coordinates.
        coordinates: Coordinates,
    },
    /// A group names a shard outside the expected set.
    #[error("group {group} names shard {shard}, which is not in the expected set: add it there")]
    UnknownShard {
        /// The group.
        group: GroupId,
        /// The shard.
        shard: ShardIndex,
    },
    /// A group names a holder twice.
    #[error("group {group} names shard {shard} twice: list each holder once")]
    RepeatedHolder {
        /// The group.
        group: GroupId,
        /// The shard.
        shard: ShardIndex,
    },
    /// The owner of replicated bytes does not hold them.
    #[error("group {group} is stored by shard {owner}, which does not hold it: name a holder")]
    ForeignOwner {
        /// The group.
        group: GroupId,
        /// The shard named.
        owner: ShardIndex,
    },
    /// Two groups have one number.
    #[error("two groups have the number {group}: number each group once")]
    RepeatedGroup {
        /// The number.
        group: GroupId,
    },
    /// A group has no shards, members or blocks.
    #[error("group {group} has no {field}: leave the group out or state them")]
    EmptyGroup {
        /// The group.
        group: GroupId,
        /// What is empty.
        field: &'static str,
    },
    /// A member has no bytes.
    #[error("group {group}: layer {layer} role {role} has 0 bytes per page: state its size")]
    EmptyMember {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
    },
    /// An object of the group would be too large.
    #[error("an object of group {group} has over 4294967296 bytes: split the group")]
    ObjectTooLarge {
        /// The group.
        group: GroupId,
    },
    /// The coverage is none that we know.
    #[error(
        "group {group} has the unknown coverage {found:?}: only every block, trailing and \
         endpoint only can be planned"
    )]
    UnknownCoverage {
        /// The group.
        group: GroupId,
        /// The host's word for it.
        found: String,
    },
    /// A sliding window is not declared as trailing, or by too few blocks.
    #[error(
        "group {group} has a sliding window of {window} tokens: declare it as trailing with at \
         least {needed_blocks} blocks"
    )]
    SlidingWindow {
        /// The group.
        group: GroupId,
        /// The window in tokens.
        window: u32,
        /// How many trailing blocks it needs.
        needed_blocks: u32,
    },
    /// Pages and blocks do not fit together.
    #[error(
        "group {group} has {tokens_per_page} tokens a page and {tokens_per_block} a block: pages \
         must divide blocks, or be whole blocks that divide what is trailing; a state has one page"
    )]
    PageSpan {
        /// The group.
        group: GroupId,
        /// Tokens that one of its pages stands for.
        tokens_per_page: u32,
        /// Tokens in a block.
        tokens_per_block: u32,
    },
    /// State of one position is declared as shared.
    #[error(
        "group {group} covers the endpoint only and is shared: shared objects are never \
         collected, declare it private"
    )]
    SharedState {
        /// The group.
        group: GroupId,
    },
    /// A scale whose payload is not in its group.
    #[error(
        "group {group}: layer {layer} role {role} scales {payload}, which is no payload of that \
         layer in the group: a scale travels with its payload"
    )]
    ScaleWithoutPayload {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The scale's role.
        role: String,
        /// The payload's role.
        payload: String,
    },
    /// Two rows of the role table are the same.
    #[error("layer {layer} role {role} is in the role table twice: list it once")]
    RepeatedRow {
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
    },
    /// A row of the role table names a stage without shards.
    #[error("layer {layer} role {role} is of stage {stage}, which has no shard: name another")]
    UnknownStage {
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
        /// The stage.
        stage: u16,
    },
    /// A required role that no group of a shard holds.
    #[error(
        "layer {layer} role {role} is in no group of shard {shard}: plan it or its data is lost"
    )]
    MissingRole {
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
        /// The shard.
        shard: ShardIndex,
    },
    /// A role that the table does not know at all.
    #[error("group {group}: layer {layer} has the unknown role {role}: add it to the role table")]
    UnknownRole {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
    },
    /// A role that the table knows, though not for this layer or not on this shard.
    #[error(
        "group {group}: layer {layer} role {role} is not expected{}: correct the role table or \
         the group", On(*shard)
    )]
    ExtraRole {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
        /// The shard, when only it is wrong.
        shard: Option<ShardIndex>,
    },
    /// A role that one shard would hold twice.
    #[error("group {group}: shard {shard} holds layer {layer} role {role} twice: plan it once")]
    RepeatedRole {
        /// The second group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
        /// The shard.
        shard: ShardIndex,
    },
    /// Replicated bytes that a per-shard group would store once a shard.
    #[error(
        "group {group}: layer {layer} role {role} is the same on every shard but unplanned as \
         such: give the group the scope replicated once"
    )]
    UnplannedReplicated {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
    },
    /// Bytes of their own on each shard that a replicated group would store for one only.
    #[error(
        "group {group}: layer {layer} role {role} differs between shards but only one would store \
         it: give the group the scope per shard"
    )]
    NotReplicated {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
    },
}

impl LayoutError {
    /// The refusal's stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.names().0
    }

    /// The stable name of the layout's field that was wrong.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.names().1
    }

    const fn names(&self) -> (&'static str, &'static str) {
        match self {
            Self::Empty { field } => ("empty_field", field),
            Self::TooLarge { field, .. } => ("layout_too_large", field),
            Self::Text { field, .. } => ("malformed_name", field),
            Self::RepeatedShard { .. } => ("repeated_shard", "shards"),
            Self::UnknownShard { .. } => ("unknown_shard", "groups.shards"),
            Self::RepeatedHolder { .. } => ("repeated_holder", "groups.shards"),
            Self::ForeignOwner { .. } => ("foreign_owner", "groups.scope"),
            Self::RepeatedGroup { .. } => ("repeated_group", "groups.id"),
            Self::EmptyGroup { .. } => ("empty_group", "groups"),
            Self::EmptyMember { .. } => ("empty_member", "groups.members.bytes_per_page"),
            Self::ObjectTooLarge { .. } => ("object_too_large", "groups.members.bytes_per_page"),
            Self::UnknownCoverage { .. } => ("unknown_coverage", "groups.coverage"),
            Self::SlidingWindow { .. } => ("sliding_window", "groups.coverage"),
            Self::PageSpan { .. } => ("page_span", "groups.tokens_per_page"),
            Self::SharedState { .. } => ("shared_state", "groups.sharing"),
            Self::ScaleWithoutPayload { .. } => {
                ("scale_without_payload", "groups.members.scale_of")
            }
            Self::RepeatedRow { .. } => ("repeated_row", "roles"),
            Self::UnknownStage { .. } => ("unknown_stage", "roles.stage"),
            Self::MissingRole { .. } => ("missing_role", "groups.members"),
            Self::UnknownRole { .. } => ("unknown_role", "groups.members.role"),
            Self::ExtraRole { .. } => ("extra_role", "groups.members.role"),
            Self::RepeatedRole { .. } => ("repeated_role", "groups.members.role"),
            Self::UnplannedReplicated { .. } => ("unplanned_replicated", "groups.scope"),
            Self::NotReplicated { .. } => ("not_replicated", "groups.scope"),
        }
    }
}

/// " in group n", where there is one.
struct In(Option<GroupId>);

impl core::fmt::Display for In {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.map_or(Ok(()), |group| write!(f, " in group {group}"))
    }
}

/// " on shard n", where there is one.
struct On(Option<ShardIndex>);

impl core::fmt::Display for On {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.map_or(Ok(()), |shard| write!(f, " on shard {shard}"))
    }
}
