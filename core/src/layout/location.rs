//! Where one rank keeps its pages: addresses, which never leave the worker.

use alloc::string::String;
use alloc::vec::Vec;

use super::{GroupId, Necessity};
use crate::id::ShardIndex;

/// The memory of one rank: never in a manifest, a key or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Whose memory it is.
    pub shard: ShardIndex,
    /// All its regions, those of a group that a plan left out included.
    pub regions: Vec<Region>,
}

/// Equal slots, side by side, that hold some members of one group.
///
/// The page in slot n begins at `base + stride * n`; its members follow one another without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The group whose pages it holds.
    pub group: GroupId,
    /// Whether a plan may leave its group out. A region of a required group must be planned.
    pub necessity: Necessity,
    /// Address of slot 0.
    pub base: u64,
    /// Bytes from one slot to the next.
    pub stride: u64,
    /// How many slots there are.
    pub slots: u32,
    /// Bytes of one page here: what its members add up to, at most the stride.
    pub size_bytes: u64,
    /// The mapping boundaries that no piece may cross, where there are any.
    pub mapping: Option<Mapping>,
    /// (layer, role) of the members that it holds, in the order of the addresses.
    pub members: Vec<(u32, String)>,
}

/// Memory that was mapped in equal parts: a transfer may touch one part at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where the reservation begins, at or below the region's base.
    pub base: u64,
    /// Bytes of one part, at least [`Mapping::MIN_BYTES`].
    pub bytes: u64,
}

impl Mapping {
    /// The smallest part that may be declared.
    pub const MIN_BYTES: u64 = 4096;
}

/// Which slot of a group holds which page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The page's place in the conversation, from 0; with one page a block, the block's.
    ///
    /// A state's is the block after whose last token it was taken. One that was taken inside a
    /// block has none and cannot be listed.
    pub ordinal: u64,
    /// Its slot in every region of the group.
    pub slot: u32,
}

/// The pages of one shard: for each of its groups, the planned ones in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTable {
    /// Groups in any order, each once.
    pub groups: Vec<(GroupId, Vec<Page>)>,
}
