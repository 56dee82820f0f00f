//! The immutable, address-free description of one checkpoint.
//!
//! A [`Manifest`] protects a load against the wrong bytes: it fixes the position, the expected set
//! and every object with its roles and sizes, in order, before a byte moves. Equal digests mean
//! interchangeable bytes; unequal ones can be explained field by field.
//!
//! It holds the planned part of the layout and the chain, and derives the objects from them, so
//! there is no list of objects that could contradict the geometry. It names no generation, owner,
//! slot, address or key, and never changes.

mod explain;
mod name;

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::catalog::ShardShape;
use crate::id::{ChainValue, Endpoint, ManifestDigest, ObjectId, ShardIndex};
use crate::layout::{Extent, Group, GroupId, Layout, Member, Sharing};
use crate::object::TRAILER_BYTES;
use crate::plan::{MoveError, PlanError, Shard};

pub use name::{ObjectName, SharedName, SharedScope};

/// The version byte that canonical bytes begin with.
const VERSION: u8 = 1;

/// The description of a checkpoint; made by [`plan`](crate::plan::plan) or read back from bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Manifest {
    body: Body,
    endpoint: Endpoint,
    extents: Vec<Extent>,
    shape: Vec<ShardShape>,
    bytes: Vec<u8>,
}

/// What the canonical bytes say: postcard of these fields in this order.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Body {
    tokens: u64,
    layout: Layout,
    chain: Vec<ChainValue>,
}

/// One private object of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateObject {
    /// Its shard and place.
    pub id: ObjectId,
    /// The group whose pages it holds; none for the manifest itself.
    pub group: Option<GroupId>,
    /// The first of its pages; 0 for the manifest.
    pub first_page: u64,
    /// How many pages it holds; 0 for the manifest.
    pub pages: u32,
    /// Its bytes before the trailer.
    pub payload_bytes: u64,
}

impl PrivateObject {
    /// Its bytes in the store, the trailer included.
    #[must_use]
    pub const fn stored_bytes(&self) -> u64 {
        self.payload_bytes.saturating_add(TRAILER_BYTES as u64)
    }
}

/// One shared object of the checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedObject {
    /// What it is, by content.
    pub name: SharedName,
    /// The shard that stores it.
    pub stored_by: ShardIndex,
    /// The first of its pages.
    pub first_page: u64,
    /// How many pages it holds.
    pub pages: u32,
    /// Its bytes in the store; a shared object has no trailer.
    pub payload_bytes: u64,
}

/// A payload or scale inside an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Which of the object's pages, from 0.
    pub page: u32,
    /// What it is.
    pub member: &'a Member,
    /// Where in the object it begins.
    pub offset: u64,
}

impl Manifest {
    /// The longest canonical form in bytes.
    pub const MAX_BYTES: u32 = 1 << 24;

    /// Judges everything together; the only way to a manifest.
    pub(crate) fn new(
        mut layout: Layout,
        chain: Vec<ChainValue>,
        tokens: u64,
    ) -> Result<Self, PlanError> {
        layout.validate()?;
        layout.sort();
        let blocks = blocks(&layout, &chain, tokens)?;
        check_distinct(&chain)?;
        let extents = extents(&layout, tokens, blocks)?;
        let last = *chain.last().ok_or(PlanError::ZeroEndpoint)?;
        let endpoint = Endpoint { representation: layout.representation, chain: last, tokens };
        let body = Body { tokens, layout, chain };
        let mut bytes = postcard::to_extend(&body, alloc::vec![VERSION])
            .map_err(|_| PlanError::TooLarge { field: "manifest" })?;
        bytes.shrink_to_fit();
        if bytes.len() > Self::MAX_BYTES as usize {
            return Err(PlanError::TooLarge { field: "manifest" });
        }
        let shape = shape(&body.layout, &extents, bytes.len() as u64)?;
        Ok(Self { body, endpoint, extents, shape, bytes })
    }

    /// The position that it describes.
    #[must_use]
    pub const fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// How many tokens precede the position.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.body.tokens
    }

    /// The chain values of all blocks before the position.
    #[must_use]
    pub fn chain(&self) -> &[ChainValue] {
        &self.body.chain
    }

    /// The planned part of the layout: the optional groups that were left out are not in it.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.body.layout
    }

    /// The canonical bytes: a version byte, then everything in a fixed order.
    #[must_use]
    pub fn encode(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads canonical bytes back, judging them as strictly as a plan.
    ///
    /// # Errors
    /// When they are not exactly what [`Self::encode`] gives for some manifest.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (&version, rest) = bytes.split_first().ok_or(DecodeError::Malformed)?;
        if version != VERSION {
            return Err(DecodeError::UnknownVersion { version });
        }
        if bytes.len() > Self::MAX_BYTES as usize {
            return Err(DecodeError::TooLong { bytes: bytes.len() as u64 });
        }
        let (body, rest): (Body, _) =
            postcard::take_from_bytes(rest).map_err(|_| DecodeError::Malformed)?;
        if !rest.is_empty() {
            return Err(DecodeError::TrailingBytes { bytes: rest.len() as u64 });
        }
        let read = Self::new(body.layout, body.chain, body.tokens)?;
        if read.bytes == bytes { Ok(read) } else { Err(DecodeError::NotCanonical) }
    }

    /// The digest under which a checkpoint is prepared, published and compared.
    #[must_use]
    pub fn digest(&self) -> ManifestDigest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"pinfold manifest v1\0").update(&self.bytes);
        ManifestDigest::from_bytes(*hasher.finalize().as_bytes())
    }

    /// For each shard of the expected set, in order, how many private objects and bytes it stores.
    #[must_use]
    pub fn shape(&self) -> &[ShardShape] {
        &self.shape
    }

    /// The ordinals of the pages that a holder of this group must list; none if it is not planned.
    #[must_use]
    pub fn pages(&self, group: GroupId) -> Option<Range<u64>> {
        let (_, extent) = self.planned().find(|(planned, _)| planned.id == group)?;
        Some(extent.pages())
    }

    /// The payloads and scales of each object of this group, in the order of the bytes.
    pub fn parts(&self, group: GroupId) -> impl Iterator<Item = Part<'_>> {
        let planned = self.planned().find(|(planned, _)| planned.id == group);
        let pages = planned.map_or(0, |(_, extent)| extent.span.pages);
        let members = planned.map_or(&[][..], |(group, _)| group.members.as_slice());
        let every = (0..pages).flat_map(move |page| members.iter().map(move |m| (page, m)));
        every.scan(0_u64, |next, (page, member)| {
            let offset = *next;
            *next = next.checked_add(member.bytes_per_page)?;
            Some(Part { page, member, offset })
        })
    }

    /// The private objects of a shard by index, the manifest first.
    pub fn private_objects(&self, shard: ShardIndex) -> impl Iterator<Item = PrivateObject> {
        let known = usize::from(shard.0) < self.body.layout.shards.len();
        let manifest = known.then_some(PrivateObject {
            id: ObjectId { shard, index: 0 },
            group: None,
            first_page: 0,
            pages: 0,
            payload_bytes: self.bytes.len() as u64,
        });
        let private = self.planned().filter(move |(group, _)| is_stored(group, shard));
        let objects = private.flat_map(|(group, extent)| {
            let pages = extent.span.pages;
            (extent.first..extent.end).map(move |object| (group.id, object, pages, extent))
        });
        let numbered = (1..=u32::MAX).zip(objects);
        let rest = numbered.map(move |(index, (group, object, pages, extent))| PrivateObject {
            id: ObjectId { shard, index },
            group: Some(group),
            first_page: object.saturating_mul(u64::from(pages)),
            pages,
            payload_bytes: extent.payload_bytes,
        });
        manifest.into_iter().chain(rest)
    }

    /// The shared objects of all shards, by group, then storing shard, then place.
    pub fn shared_objects(&self) -> impl Iterator<Item = SharedObject> {
        let shared = self.planned().filter(|(group, _)| group.sharing == Sharing::SharedContent);
        let shards = shared.flat_map(|(group, extent)| {
            group.storing_shards().iter().map(move |shard| (group, extent, *shard))
        });
        shards.flat_map(move |(group, extent, stored_by)| {
            (extent.first..extent.end).filter_map(move |object| {
                Some(SharedObject {
                    name: self.shared_name(group, extent, stored_by, object)?,
                    stored_by,
                    first_page: object.saturating_mul(u64::from(extent.span.pages)),
                    pages: extent.span.pages,
                    payload_bytes: extent.payload_bytes,
                })
            })
        })
    }

    /// One shard of it, to meet that rank's memory.
    ///
    /// # Errors
    /// [`MoveError::UnknownShard`] when it is not in the expected set.
    pub fn shard(&self, index: ShardIndex) -> Result<Shard<'_>, MoveError> {
        let shards = u32::try_from(self.shape.len()).unwrap_or(u32::MAX);
        if u32::from(index.0) >= shards {
            return Err(MoveError::UnknownShard { shard: index, shards });
        }
        Ok(Shard::new(self, index))
    }

    /// The groups by number, each with its objects.
    pub(crate) fn planned(&self) -> impl Iterator<Item = (&Group, &Extent)> {
        self.body.layout.groups.iter().zip(&self.extents)
    }

    /// The name of a group's shared object.
    pub(crate) fn shared_name(
        &self,
        group: &Group,
        extent: &Extent,
        stored_by: ShardIndex,
        object: u64,
    ) -> Option<SharedName> {
        let block = usize::try_from(extent.last_block(object)).ok()?;
        Some(SharedName {
            representation: self.body.layout.representation,
            group: group.id,
            scope: SharedScope::of(group, stored_by),
            chain: *self.body.chain.get(block)?,
        })
    }

    /// The index in its shard of the first private object of a group.
    pub(crate) fn first_index(&self, group: GroupId, stored_by: ShardIndex) -> u64 {
        let before = self.planned().take_while(|(earlier, _)| earlier.id != group);
        let stored = before.filter(|(earlier, _)| is_stored(earlier, stored_by));
        stored.fold(1, |index, (_, extent)| index.saturating_add(extent.objects()))
    }
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Manifest");
        shown.field("digest", &self.digest()).field("tokens", &self.body.tokens);
        shown.field("layout", &self.body.layout).field("shape", &self.shape).finish()
    }
}

/// Why bytes are no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes begin with a version that this build does not know.
    #[error("manifest version {version} is unknown: read it with a newer build")]
    UnknownVersion {
        /// The version found.
        version: u8,
    },
    /// There are more bytes than a manifest may have.
    #[error("{bytes} bytes are no manifest: at most 16777216 fit, check what was read")]
    TooLong {
        /// How many there are.
        bytes: u64,
    },
    /// The bytes end early or mean nothing.
    #[error("the bytes are no manifest: check what was read")]
    Malformed,
    /// More bytes follow the manifest.
    #[error("{bytes} bytes follow the manifest: cut them off")]
    TrailingBytes {
        /// How many follow.
        bytes: u64,
    },
    /// The same manifest is written differently.
    #[error("the manifest is not in its canonical form: ask its writer to encode it again")]
    NotCanonical,
    /// What they describe could not have been planned.
    #[error("the manifest contradicts itself: {0}")]
    Inconsistent(#[from] PlanError),
}

impl DecodeError {
    /// The error's stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownVersion { .. } => "unknown_version",
            Self::TooLong { .. } => "manifest_too_long",
            Self::Malformed => "malformed_manifest",
            Self::TrailingBytes { .. } => "trailing_bytes",
            Self::NotCanonical => "not_canonical",
            Self::Inconsistent(error) => error.code(),
        }
    }

    /// The stable name of the field that was wrong.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Inconsistent(error) => error.field(),
            Self::UnknownVersion { .. }
            | Self::TooLong { .. }
            | Self::Malformed
            | Self::TrailingBytes { .. }
            | Self::NotCanonical => "manifest",
        }
    }
}

fn is_stored(group: &Group, shard: ShardIndex) -> bool {
    group.sharing == Sharing::EndpointPrivate && group.storing_shards().contains(&shard)
}

/// The blocks up to an endpoint, which the chain must cover exactly.
fn blocks(layout: &Layout, chain: &[ChainValue], tokens: u64) -> Result<u64, PlanError> {
    let unit = u64::from(layout.tokens_per_block);
    let blocks = tokens.checked_div(unit).unwrap_or_default();
    if tokens == 0 {
        return Err(PlanError::ZeroEndpoint);
    }
    if !tokens.is_multiple_of(unit) {
        return Err(PlanError::UnalignedEndpoint { tokens, unit, group: None });
    }
    if blocks != chain.len() as u64 {
        return Err(PlanError::UncoveredEndpoint { blocks, chain: chain.len() as u64 });
    }
    Ok(blocks)
}

fn check_distinct(chain: &[ChainValue]) -> Result<(), PlanError> {
    let mut sorted: Vec<(&ChainValue, u64)> = chain.iter().zip(0..).collect();
    sorted.sort_unstable();
    match sorted.array_windows().find(|[(one, _), (other, _)]| one == other) {
        Some(&[(_, first), (_, ordinal)]) => Err(PlanError::RepeatedChain { ordinal, first }),
        None => Ok(()),
    }
}

fn extents(layout: &Layout, tokens: u64, blocks: u64) -> Result<Vec<Extent>, PlanError> {
    let extent = |group: &Group| {
        let unit = u64::from(group.tokens_per_page.max(layout.tokens_per_block));
        let unaligned = PlanError::UnalignedEndpoint { tokens, unit, group: Some(group.id) };
        group.extent(layout.tokens_per_block, blocks).ok_or(unaligned)
    };
    layout.groups.iter().map(extent).collect()
}

fn shape(
    layout: &Layout,
    extents: &[Extent],
    manifest_bytes: u64,
) -> Result<Vec<ShardShape>, PlanError> {
    let trailer = u64::from(TRAILER_BYTES);
    let manifest = ShardShape { objects: 1, bytes: manifest_bytes.saturating_add(trailer) };
    let mut shape = alloc::vec![manifest; layout.shards.len()];
    let private = |group: &Group| group.sharing == Sharing::EndpointPrivate;
    for (group, extent) in layout.groups.iter().zip(extents).filter(|(group, _)| private(group)) {
        for shard in group.storing_shards() {
            let Some(row) = shape.get_mut(usize::from(shard.0)) else { continue };
            let objects = u32::try_from(extent.objects()).ok();
            let objects = objects.and_then(|added| row.objects.checked_add(added));
            row.objects = objects.ok_or(PlanError::TooLarge { field: "objects" })?;
            let stored = extent.payload_bytes.checked_add(trailer);
            let added = stored.and_then(|stored| stored.checked_mul(extent.objects()));
            let bytes = added.and_then(|added| row.bytes.checked_add(added));
            row.bytes = bytes.ok_or(PlanError::TooLarge { field: "bytes" })?;
        }
    }
    Ok(shape)
}

#[cfg(test)]
mod tests;
