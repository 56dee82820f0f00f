//! Why an endpoint is not planned, and why a shard is not moved.

use alloc::string::String;

use crate::id::ShardIndex;
use crate::layout::{GroupId, LayoutError};

/// Why there is no manifest: what was wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The layout itself is wrong.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The endpoint is before the first token.
    #[error("the endpoint is at 0 tokens: there is nothing to keep, give a later one")]
    ZeroEndpoint,
    /// The endpoint is inside a block, or inside a page of a group.
    #[error(
        "the endpoint at {tokens} tokens is no multiple of {unit}{}: a state exists at exact \
         positions only, give an aligned one", Of(*group)
    )]
    UnalignedEndpoint {
        /// Where the endpoint is.
        tokens: u64,
        /// What it should be a multiple of.
        unit: u64,
        /// The group whose page is that long; none for the block.
        group: Option<GroupId>,
    },
    /// The chain is shorter than the endpoint.
    #[error("the endpoint has {blocks} blocks and the chain {chain}: give every block's value")]
    UncoveredEndpoint {
        /// Blocks up to the endpoint.
        blocks: u64,
        /// Values in the chain.
        chain: u64,
    },
    /// Two blocks have one chain value, so their shared pages would have one name.
    #[error("block {ordinal} repeats the chain value of block {first}: check the hash chain")]
    RepeatedChain {
        /// The later block.
        ordinal: u64,
        /// The earlier one.
        first: u64,
    },
    /// An optional group was named that the layout does not have.
    #[error("the optional group {group} is not in the layout: leave it out or describe it")]
    UnknownGroup {
        /// The group.
        group: GroupId,
    },
    /// An optional group was named twice.
    #[error("the optional group {group} is named twice: name it once")]
    RepeatedGroup {
        /// The group.
        group: GroupId,
    },
    /// A required group was named as an optional one.
    #[error("group {group} is required: name optional groups only")]
    RequiredGroup {
        /// The group.
        group: GroupId,
    },
    /// A shard would have more objects or bytes than can be counted, or the manifest is too long.
    #[error("the checkpoint is too large in its {field}: give an earlier endpoint")]
    TooLarge {
        /// What is too large.
        field: &'static str,
    },
}

impl PlanError {
    /// The refusal's stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.names().0
    }

    /// The stable name of the field that was wrong.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.names().1
    }

    const fn names(&self) -> (&'static str, &'static str) {
        match self {
            Self::Layout(error) => (error.code(), error.field()),
            Self::ZeroEndpoint => ("zero_endpoint", "endpoint_tokens"),
            Self::UnalignedEndpoint { .. } => ("unaligned_endpoint", "endpoint_tokens"),
            Self::UncoveredEndpoint { .. } => ("uncovered_endpoint", "chain"),
            Self::RepeatedChain { .. } => ("repeated_chain", "chain"),
            Self::UnknownGroup { .. } => ("unknown_group", "optional"),
            Self::RepeatedGroup { .. } => ("repeated_group", "optional"),
            Self::RequiredGroup { .. } => ("required_group", "optional"),
            Self::TooLarge { field } => ("checkpoint_too_large", field),
        }
    }
}

/// Why a rank's memory does not fit its shard of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// The manifest has no such shard.
    #[error("shard {shard} is not in the manifest's expected set of {shards}: check the rank")]
    UnknownShard {
        /// The shard.
        shard: ShardIndex,
        /// How many there are.
        shards: u32,
    },
    /// The location is another rank's.
    #[error("the location is of shard {found}, not {shard}: give this rank's own")]
    OtherShard {
        /// Whose it should be.
        shard: ShardIndex,
        /// Whose it is.
        found: ShardIndex,
    },
    /// A region or page list of a group that the manifest does not have.
    #[error("{field} names group {group}, which the manifest does not plan: plan it")]
    UnknownGroup {
        /// Which input.
        field: &'static str,
        /// The group.
        group: GroupId,
    },
    /// A region or page list of a group that this shard does not hold.
    #[error("{field} names group {group}, which this shard does not hold: leave it out")]
    ExtraGroup {
        /// Which input.
        field: &'static str,
        /// The group.
        group: GroupId,
    },
    /// Two page lists of one group.
    #[error("the page table lists group {group} twice: list it once")]
    RepeatedGroup {
        /// The group.
        group: GroupId,
    },
    /// No page list of a group that this shard holds.
    #[error("the page table lacks group {group}: list its pages")]
    MissingGroup {
        /// The group.
        group: GroupId,
    },
    /// No region holds a planned member.
    #[error("group {group}: no region holds layer {layer} role {role}: add its region")]
    MissingRole {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
    },
    /// A region holds what the group does not plan.
    #[error("group {group}: a region holds layer {layer} role {role}, which is unplanned: plan it")]
    UnplannedRole {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
    },
    /// A member is in two places.
    #[error("group {group}: layer {layer} role {role} is in two places: name its one place")]
    RepeatedRole {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: u32,
        /// The role.
        role: String,
    },
    /// A region's page is not as long as its members.
    #[error(
        "a region of group {group} has {found} bytes a page and its members {planned}: correct it"
    )]
    RegionSize {
        /// The group.
        group: GroupId,
        /// What its members add up to.
        planned: u64,
        /// What the region says.
        found: u64,
    },
    /// A region's slots overlap, are none, or pass the largest address.
    #[error(
        "a region of group {group} at {base:#x} has {slots} slots of {stride} bytes: slots must \
         exist, hold a page and stay below the largest address"
    )]
    RegionRange {
        /// The group.
        group: GroupId,
        /// The region's base.
        base: u64,
        /// Its stride.
        stride: u64,
        /// Its slots.
        slots: u32,
    },
    /// A mapping's parts are tiny or begin above the region.
    #[error(
        "a region of group {group} has mapping parts of {bytes} bytes from {base:#x}: parts have \
         at least 4096 bytes and begin at or below the region"
    )]
    MappingRange {
        /// The group.
        group: GroupId,
        /// Where the mapping begins.
        base: u64,
        /// Bytes of a part.
        bytes: u64,
    },
    /// A planned page is not listed.
    #[error("group {group}: page {ordinal} is missing: list every planned page")]
    MissingOrdinal {
        /// The group.
        group: GroupId,
        /// The page.
        ordinal: u64,
    },
    /// A page is listed twice.
    #[error("group {group}: page {ordinal} is listed twice: list it once")]
    RepeatedOrdinal {
        /// The group.
        group: GroupId,
        /// The page.
        ordinal: u64,
    },
    /// Pages are not in order.
    #[error("group {group}: page {ordinal} comes after page {after}: list pages in order")]
    UnorderedOrdinal {
        /// The group.
        group: GroupId,
        /// The page.
        ordinal: u64,
        /// The one before it.
        after: u64,
    },
    /// A page that is not planned.
    #[error("group {group}: page {ordinal} is outside {first}..{end}: list planned pages only")]
    SurplusOrdinal {
        /// The group.
        group: GroupId,
        /// The page.
        ordinal: u64,
        /// The first planned page.
        first: u64,
        /// After the last planned page.
        end: u64,
    },
    /// A state of another position than the endpoint.
    #[error(
        "group {group}: slot {slot} holds the state after block {ordinal}, the endpoint is after \
         block {last}: only the state at exactly the endpoint belongs to it"
    )]
    ForeignState {
        /// The group.
        group: GroupId,
        /// The block that the state is of.
        ordinal: u64,
        /// Its slot.
        slot: u32,
        /// The endpoint's last block.
        last: u64,
    },
    /// A slot that a region does not have.
    #[error("group {group}: page {ordinal} is in slot {slot} of {slots}: give an existing slot")]
    SlotRange {
        /// The group.
        group: GroupId,
        /// The page.
        ordinal: u64,
        /// The slot.
        slot: u32,
        /// How many there are.
        slots: u32,
    },
    /// Two pages share memory.
    #[error(
        "group {group}: page {ordinal} in slot {slot} shares memory with page {other_ordinal} of \
         group {other_group}: every page has memory of its own"
    )]
    AliasedSlot {
        /// The group.
        group: GroupId,
        /// The page.
        ordinal: u64,
        /// Its slot.
        slot: u32,
        /// The other page's group.
        other_group: GroupId,
        /// The other page.
        other_ordinal: u64,
    },
}

impl MoveError {
    /// The refusal's stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.names().0
    }

    /// The stable name of the field that was wrong.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.names().1
    }

    const fn names(&self) -> (&'static str, &'static str) {
        match self {
            Self::UnknownShard { .. } => ("unknown_shard", "shard"),
            Self::OtherShard { .. } => ("other_shard", "location.shard"),
            Self::UnknownGroup { field, .. } => ("unknown_group", field),
            Self::ExtraGroup { field, .. } => ("extra_group", field),
            Self::RepeatedGroup { .. } => ("repeated_group", "pages"),
            Self::MissingGroup { .. } => ("missing_group", "pages"),
            Self::MissingRole { .. } => ("missing_role", "location.regions"),
            Self::UnplannedRole { .. } => ("unplanned_role", "location.regions.members"),
            Self::RepeatedRole { .. } => ("repeated_role", "location.regions.members"),
            Self::RegionSize { .. } => ("region_size", "location.regions.size_bytes"),
            Self::RegionRange { .. } => ("region_range", "location.regions"),
            Self::MappingRange { .. } => ("mapping_range", "location.regions.mapping"),
            Self::MissingOrdinal { .. } => ("missing_ordinal", "pages.ordinal"),
            Self::RepeatedOrdinal { .. } => ("repeated_ordinal", "pages.ordinal"),
            Self::UnorderedOrdinal { .. } => ("unordered_ordinal", "pages.ordinal"),
            Self::SurplusOrdinal { .. } => ("surplus_ordinal", "pages.ordinal"),
            Self::ForeignState { .. } => ("foreign_state", "pages.ordinal"),
            Self::SlotRange { .. } => ("slot_range", "pages.slot"),
            Self::AliasedSlot { .. } => ("aliased_slot", "pages.slot"),
        }
    }
}

/// ", the page of group n", where there is one.
struct Of(Option<GroupId>);

impl core::fmt::Display for Of {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.map_or(Ok(()), |group| write!(f, ", the page of group {group}"))
    }
}
