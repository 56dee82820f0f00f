//! What a checkpoint is made of, as data: shards, groups of pages, the roles that must be there.
//!
//! A [`Layout`] is the same on every rank and says nothing about memory; [`Location`] says where
//! one rank keeps it. Together they protect against a checkpoint that looks whole and is not: a
//! component nobody planned, a scale without its payload, a replicated part stored by nobody.
//! Whatever is not understood is refused by name and never skipped.
//!
//! A layout knows no model and no kind of layer. Attention pages, recurrent states, convolution
//! tails, indexers and scales are all pages of a group; what sets them apart is the group's
//! [`Coverage`], [`Sharing`] and [`Scope`].

mod check;
mod location;
mod refusal;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::id::{RepresentationDigest, ShardIndex};

pub use location::{Location, Mapping, Page, PageTable, Region};
pub use refusal::LayoutError;

/// The most bytes that one object's payload may have.
pub const MAX_OBJECT_BYTES: u64 = 1 << 32;

/// The most shards that a layout may have; each is a [`ShardIndex`].
pub const MAX_SHARDS: u32 = 1 << 16;

/// The most (member, shard) pairs that a layout may have.
pub const MAX_PLACEMENTS: u64 = 1 << 22;

/// The longest role, element type or hash-chain id in bytes.
pub const MAX_TEXT_BYTES: u32 = 64;

/// The number by which keys, page tables and locations name a group.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct GroupId(pub u16);

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The geometry of every checkpoint of one representation, equal on every rank.
///
/// The order of groups, rows and holders carries no meaning; the order of a group's members does,
/// because it is the order of the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Digest of everything that makes bytes interchangeable; it covers [`Layout::fingerprint`].
    pub representation: RepresentationDigest,
    /// Which algorithm and version made the chain values; open vocabulary.
    pub hash_chain: String,
    /// Tokens in a block, for which the host's chain has one value.
    pub tokens_per_block: u32,
    /// The expected set: a shard's index is its place here.
    pub shards: Vec<Coordinates>,
    /// The role table: what must be there, so that what is missing can be named.
    pub roles: Vec<RoleRow>,
    /// Where each of the roles is.
    pub groups: Vec<Group>,
}

/// A shard's place in the parallel shape.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Coordinates {
    /// Rank of tensor parallelism.
    pub tensor: u16,
    /// Stage of the pipeline.
    pub stage: u16,
    /// Rank of context parallelism during decoding.
    pub context: u16,
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tp{} pp{} dcp{}", self.tensor, self.stage, self.context)
    }
}

/// One row of the role table: every shard of the stage holds this role of this layer exactly once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RoleRow {
    /// The layer, counted over the whole model.
    pub layer: u32,
    /// What it is; open vocabulary.
    pub role: String,
    /// The pipeline stage whose shards hold it.
    pub stage: u16,
    /// Its bytes are the same on every shard that holds it.
    pub replicated: bool,
}

/// Pages with one life cycle, one size and one numbering of slots.
///
/// A layer may be in several groups: attention and recurrent state side by side are two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The group's number, unique in the layout.
    pub id: GroupId,
    /// The shards that hold it.
    pub shards: Vec<ShardIndex>,
    /// For which blocks of the prefix there are pages.
    pub coverage: Coverage,
    /// Who may use its objects.
    pub sharing: Sharing,
    /// Whether each shard stores its own bytes.
    pub scope: Scope,
    /// Whether a checkpoint may do without it.
    pub necessity: Necessity,
    /// Tokens that one page stands for: a divisor or a multiple of the tokens per block.
    ///
    /// A cache that folds r tokens into one entry and keeps the block's number of entries in a page
    /// has r times the tokens per block; one whose pages are smaller has a fraction of it.
    pub tokens_per_page: u32,
    /// Sliding attention window in tokens, where there is one. Its coverage must be trailing.
    pub window_tokens: Option<u32>,
    /// What one page consists of, in the order of the bytes.
    pub members: Vec<Member>,
}

/// One payload or scale in a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The layer, counted over the whole model.
    pub layer: u32,
    /// What it is; open vocabulary.
    pub role: String,
    /// The type of its elements; open vocabulary.
    pub element: String,
    /// Its bytes in one page of one shard.
    pub bytes_per_page: u64,
    /// For a scale: the payload role, of the same layer and group, that it scales.
    pub scale_of: Option<String>,
}

/// For which blocks of the prefix a group has pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coverage {
    /// For every block from the first to the endpoint's last: attention.
    EveryBlock,
    /// For the last blocks only, or all of a shorter prefix: a sliding window.
    Trailing {
        /// How many blocks.
        blocks: u32,
    },
    /// One page, for the endpoint itself: recurrent and convolution state.
    EndpointOnly,
    /// What the host calls by a word that means none of the above: always refused, by that word.
    Other(String),
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EveryBlock => f.write_str("every block"),
            Self::Trailing { blocks } => write!(f, "trailing {blocks} blocks"),
            Self::EndpointOnly => f.write_str("endpoint only"),
            Self::Other(word) => write!(f, "{word:?}"),
        }
    }
}

/// Who may use a group's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sharing {
    /// Everybody with the same prefix: named by content, never collected by us.
    SharedContent,
    /// This checkpoint alone: its key is derived, and it is collected.
    EndpointPrivate,
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SharedContent => "shared content",
            Self::EndpointPrivate => "endpoint private",
        })
    }
}

/// Whether each holder stores its own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Every holder has bytes of its own and stores them.
    PerShard,
    /// Every holder has the same bytes: one stores them, all read them.
    ReplicatedOnce {
        /// The holder that stores them.
        owner: ShardIndex,
    },
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerShard => f.write_str("per shard"),
            Self::ReplicatedOnce { owner } => write!(f, "replicated, stored by shard {owner}"),
        }
    }
}

/// Whether a checkpoint may do without a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Necessity {
    /// Part of every checkpoint.
    Required,
    /// Part of those checkpoints whose plan names it, such as the pages of a draft model.
    Optional,
}

impl fmt::Display for Necessity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Required => "required",
            Self::Optional => "optional",
        })
    }
}

impl Layout {
    /// Judges the layout by itself, before any endpoint or memory is known.
    ///
    /// # Errors
    /// The first thing that is wrong, by name.
    pub fn validate(&self) -> Result<(), LayoutError> {
        check::check(self)
    }

    /// The group of this number.
    #[must_use]
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.iter().find(|group| group.id == id)
    }

    /// Digest of the geometry without the representation's own digest: the `layout` ingredient.
    ///
    /// A representation that contains it differs as soon as any size, order or role does, so equal
    /// shared keys imply equal geometry. 64 hexadecimal digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut plain = self.clone();
        plain.representation = RepresentationDigest::from_bytes([0; 16]);
        plain.sort();
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"pinfold layout v1\0");
        hasher.update(&postcard::to_allocvec(&plain).unwrap_or_default());
        String::from(hasher.finalize().to_hex().as_str())
    }

    /// Puts in order what carries no order, so that equal layouts have equal bytes.
    pub(crate) fn sort(&mut self) {
        self.groups.sort_by_key(|group| group.id);
        self.roles.sort();
        for group in &mut self.groups {
            group.shards.sort_unstable();
        }
    }
}

impl Group {
    /// True when this shard has pages of the group.
    #[must_use]
    pub fn is_held_by(&self, shard: ShardIndex) -> bool {
        self.shards.contains(&shard)
    }

    /// The shard that stores what this holder has: itself, or the owner of replicated bytes.
    #[must_use]
    pub const fn stored_by(&self, holder: ShardIndex) -> ShardIndex {
        match self.scope {
            Scope::PerShard => holder,
            Scope::ReplicatedOnce { owner } => owner,
        }
    }

    /// The shards that store objects of the group.
    #[must_use]
    pub fn storing_shards(&self) -> &[ShardIndex] {
        match &self.scope {
            Scope::PerShard => &self.shards,
            Scope::ReplicatedOnce { owner } => core::slice::from_ref(owner),
        }
    }

    /// Bytes of one page: the sum over its members; none when it overflows.
    #[must_use]
    pub fn page_bytes(&self) -> Option<u64> {
        let mut sizes = self.members.iter().map(|member| member.bytes_per_page);
        sizes.try_fold(0_u64, u64::checked_add)
    }

    /// The member that is this role of this layer.
    #[must_use]
    pub fn member(&self, layer: u32, role: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.layer == layer && member.role == role)
    }

    /// How pages, blocks and objects of the group relate; none when the page is no divisor and no
    /// multiple of the block.
    #[must_use]
    pub fn span(&self, tokens_per_block: u32) -> Option<Span> {
        let page = self.tokens_per_page;
        if page == 0 || tokens_per_block == 0 {
            return None;
        }
        if tokens_per_block.is_multiple_of(page) {
            Some(Span { blocks: 1, pages: tokens_per_block / page })
        } else if page.is_multiple_of(tokens_per_block) {
            Some(Span { blocks: page / tokens_per_block, pages: 1 })
        } else {
            None
        }
    }

    /// Which objects there are after so many blocks; none when blocks and pages do not fit.
    #[must_use]
    pub fn extent(&self, tokens_per_block: u32, blocks: u64) -> Option<Extent> {
        let span = self.span(tokens_per_block)?;
        let per_object = u64::from(span.blocks);
        if blocks == 0 || !blocks.is_multiple_of(per_object) {
            return None;
        }
        let end = blocks / per_object;
        let first = match &self.coverage {
            Coverage::EveryBlock => 0,
            Coverage::Trailing { blocks } => end.saturating_sub(u64::from(*blocks) / per_object),
            Coverage::EndpointOnly => end - 1,
            Coverage::Other(_) => return None,
        };
        let payload_bytes = self.page_bytes()?.checked_mul(u64::from(span.pages))?;
        end.checked_mul(u64::from(span.pages))?;
        Some(Extent { first, end, span, payload_bytes })
    }
}

/// What one object of a group stands for: whole blocks and whole pages, one of the two alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Blocks that one object covers.
    pub blocks: u32,
    /// Pages that one object holds.
    pub pages: u32,
}

/// The objects of a group at one endpoint; its n-th covers the n-th span of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first object.
    pub first: u64,
    /// After the last object.
    pub end: u64,
    /// What each stands for.
    pub span: Span,
    /// Bytes of each, without any trailer.
    pub payload_bytes: u64,
}

impl Extent {
    /// How many objects there are.
    #[must_use]
    pub const fn objects(&self) -> u64 {
        self.end.saturating_sub(self.first)
    }

    /// The ordinals of all pages, which a page table must list in order.
    #[must_use]
    pub fn pages(&self) -> Range<u64> {
        let pages = u64::from(self.span.pages);
        self.first.saturating_mul(pages)..self.end.saturating_mul(pages)
    }

    /// The last block that an object covers, whose chain value names it.
    #[must_use]
    pub fn last_block(&self, object: u64) -> u64 {
        object.saturating_add(1).saturating_mul(u64::from(self.span.blocks)).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests;
