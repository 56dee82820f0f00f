//! The model that a replay serves: a small hybrid whose state is a pure function of the prefix.
//!
//! It has one attention layer, whose pages are shared by everybody with the same prefix, and one
//! recurrent layer, whose state is private to its position. Because the bytes follow from the
//! position alone, anyone can tell from outside whether restored bytes are the right ones.

use pinfold_core::id::{ChainValue, Endpoint, EndpointId, RepresentationDigest, ShardIndex};
use pinfold_core::layout::{
    Coordinates, Coverage, Group, GroupId, Layout, Location, Member, Necessity, Page, PageTable,
    Region, RoleRow, Scope, Sharing,
};
use pinfold_core::manifest::Manifest;
use pinfold_core::plan::{Move, MoveError, PlanError, plan};
use pinfold_core::representation::{Ingredient, Representation, RepresentationError};

/// Bytes of one attention page, keys and values together.
const PAGE_BYTES: u64 = 256;
/// Bytes of the convolution part of a state.
const CONVOLUTION_BYTES: u64 = 64;

const ATTENTION: GroupId = GroupId(0);
const STATE: GroupId = GroupId(1);
const SHARD: ShardIndex = ShardIndex(0);

/// The model: its layout, and what a worker's memory looks like.
#[derive(Clone, Debug)]
pub struct Model {
    layout: Layout,
    state_bytes: u64,
    block_tokens: u32,
}

/// Why a model cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The state is too small to hold anything.
    #[error("a checkpoint needs at least {} bytes", CONVOLUTION_BYTES * 2)]
    TooSmall,
    /// An ingredient of the representation is wrong.
    #[error(transparent)]
    Representation(#[from] RepresentationError),
    /// The layout cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Layout, page table and memory disagree.
    #[error(transparent)]
    Move(#[from] MoveError),
}

impl Model {
    /// A model whose private state takes `state_bytes` at each position.
    ///
    /// # Errors
    /// [`ModelError::TooSmall`] under 128 bytes.
    pub fn new(block_tokens: u32, state_bytes: u64) -> Result<Self, ModelError> {
        if state_bytes < CONVOLUTION_BYTES * 2 {
            return Err(ModelError::TooSmall);
        }
        let mut layout = layout(block_tokens, state_bytes, RepresentationDigest::default());
        layout.representation = representation(&layout)?.digest();
        layout.validate().map_err(PlanError::from)?;
        Ok(Self { layout, state_bytes, block_tokens })
    }

    /// The position after this many of a chain's blocks, at least one.
    #[must_use]
    pub fn endpoint(&self, chain: &[ChainValue], blocks: usize) -> Option<Endpoint> {
        let chain = *chain.get(blocks.checked_sub(1)?)?;
        let tokens = u64::try_from(blocks).ok()? * u64::from(self.block_tokens);
        Some(Endpoint { representation: self.layout.representation, chain, tokens })
    }

    /// Every position of a chain, longest first, at most `most` of them.
    #[must_use]
    pub fn endpoints(&self, chain: &[ChainValue], most: usize) -> Vec<EndpointId> {
        let blocks = (1..=chain.len()).rev().take(most);
        blocks.filter_map(|blocks| Some(self.endpoint(chain, blocks)?.id())).collect()
    }

    /// The manifest of the position after this many blocks.
    ///
    /// # Errors
    /// [`PlanError`] when the chain does not reach so far.
    pub fn manifest(&self, chain: &[ChainValue], blocks: usize) -> Result<Manifest, PlanError> {
        let tokens = u64::try_from(blocks).unwrap_or(u64::MAX);
        plan(&self.layout, chain, tokens.saturating_mul(u64::from(self.block_tokens)), &[])
    }

    /// What a worker holds for one conversation: room for its pages and its state.
    #[must_use]
    pub fn memory(&self, blocks: usize) -> Memory {
        let pages = PAGE_BYTES * u64::try_from(blocks).unwrap_or(0);
        let bytes = usize::try_from(pages + self.state_bytes).unwrap_or(usize::MAX);
        Memory { bytes: vec![0; bytes], blocks }
    }

    /// Computes what the model holds after this chain: the same bytes on every worker.
    pub fn prefill(&self, chain: &[ChainValue], memory: &mut Memory) {
        let (pages, state) = memory.split();
        let page_bytes = usize::try_from(PAGE_BYTES).unwrap_or(usize::MAX);
        for (page, value) in pages.chunks_exact_mut(page_bytes).zip(chain) {
            fill(value, 1, page);
        }
        if let Some(last) = chain.last() {
            fill(last, 2, state);
        }
    }

    /// The moves of a checkpoint between the store and a memory.
    ///
    /// # Errors
    /// [`MoveError`] when the memory is smaller than the manifest.
    pub fn moves(&self, manifest: &Manifest, memory: &Memory) -> Result<Vec<Move>, MoveError> {
        let slots = u32::try_from(memory.blocks).unwrap_or(u32::MAX);
        let blocks = manifest.tokens() / u64::from(self.block_tokens);
        let pages = (0..blocks)
            .map(|ordinal| Page { ordinal, slot: u32::try_from(ordinal).unwrap_or(u32::MAX) })
            .collect();
        let state = Page { ordinal: blocks.saturating_sub(1), slot: 0 };
        let table = PageTable { groups: vec![(ATTENTION, pages), (STATE, vec![state])] };
        manifest.shard(SHARD)?.moves(&self.location(slots), &table)
    }

    /// Where pages and state are in a [`Memory`], whose first byte has address 0.
    fn location(&self, slots: u32) -> Location {
        let region = |group: &Group, base, slots, size_bytes| Region {
            group: group.id,
            necessity: Necessity::Required,
            base,
            stride: size_bytes,
            slots,
            size_bytes,
            mapping: None,
            members: group.members.iter().map(|m| (m.layer, m.role.clone())).collect(),
        };
        let [attention, state] = &self.layout.groups[..] else {
            return Location { shard: SHARD, regions: Vec::new() };
        };
        let regions = vec![
            region(attention, 0, slots, PAGE_BYTES),
            region(state, PAGE_BYTES * u64::from(slots), 1, self.state_bytes),
        ];
        Location { shard: SHARD, regions }
    }
}

/// A worker's memory for one conversation: attention pages, then the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    bytes: Vec<u8>,
    blocks: usize,
}

impl Memory {
    /// The bytes behind a piece of a move.
    #[must_use]
    pub fn piece(&self, address: u64, bytes: u64) -> &[u8] {
        range(address, bytes).and_then(|range| self.bytes.get(range)).unwrap_or_default()
    }

    /// The same, to be written.
    pub fn piece_mut(&mut self, address: u64, bytes: u64) -> &mut [u8] {
        range(address, bytes).and_then(|range| self.bytes.get_mut(range)).unwrap_or_default()
    }

    fn split(&mut self) -> (&mut [u8], &mut [u8]) {
        let pages = usize::try_from(PAGE_BYTES).unwrap_or(0) * self.blocks;
        self.bytes.split_at_mut(pages)
    }
}

fn range(address: u64, bytes: u64) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(address).ok()?;
    Some(start..start.checked_add(usize::try_from(bytes).ok()?)?)
}

fn layout(block_tokens: u32, state_bytes: u64, representation: RepresentationDigest) -> Layout {
    let member = |layer, role: &str, element: &str, bytes_per_page| Member {
        layer,
        role: role.into(),
        element: element.into(),
        bytes_per_page,
        scale_of: None,
    };
    let group = |id, coverage, sharing, members| Group {
        id,
        shards: vec![SHARD],
        coverage,
        sharing,
        scope: Scope::PerShard,
        necessity: Necessity::Required,
        tokens_per_page: block_tokens,
        window_tokens: None,
        members,
    };
    let attention =
        vec![member(0, "key", "u8", PAGE_BYTES / 2), member(0, "value", "u8", PAGE_BYTES / 2)];
    let state = vec![
        member(1, "conv_state", "u8", CONVOLUTION_BYTES),
        member(1, "ssm_state", "u8", state_bytes - CONVOLUTION_BYTES),
    ];
    let groups = vec![
        group(ATTENTION, Coverage::EveryBlock, Sharing::SharedContent, attention),
        group(STATE, Coverage::EndpointOnly, Sharing::EndpointPrivate, state),
    ];
    let members = groups.iter().flat_map(|group: &Group| &group.members);
    let roles = members
        .map(|m| RoleRow { layer: m.layer, role: m.role.clone(), stage: 0, replicated: false })
        .collect();
    Layout {
        representation,
        hash_chain: "trace-block-ids-v1".into(),
        tokens_per_block: block_tokens,
        shards: vec![Coordinates::default()],
        roles,
        groups,
    }
}

/// Everything that makes the model's bytes interchangeable; what it has not is said to be none.
fn representation(layout: &Layout) -> Result<Representation, RepresentationError> {
    let none = || Ingredient::from("none");
    let known = [
        ("convolution_form", Ingredient::from("fused")),
        ("element_types", Ingredient::from("u8")),
        ("hash_chain", Ingredient::from(layout.hash_chain.as_str())),
        ("kernel_abi", Ingredient::from("pinfold-replay-1")),
        ("layout", Ingredient::Text(layout.fingerprint())),
        ("parallel_shape", Ingredient::from("tp=1 pp=1 dcp=1")),
        ("tokens_per_block", Ingredient::Integer(i64::from(layout.tokens_per_block))),
        ("weights", Ingredient::from("pinfold-replay")),
    ];
    let missing = Representation::REQUIRED
        .into_iter()
        .filter(|name| known.iter().all(|(there, _)| there != name))
        .map(|name| (name.to_string(), none()))
        .collect::<Vec<_>>();
    let known = known.map(|(name, ingredient)| (name.to_string(), ingredient));
    Representation::new(known.into_iter().chain(missing))
}

/// Fills memory with a stream of words that the chain value and a salt decide.
fn fill(chain: &ChainValue, salt: u64, memory: &mut [u8]) {
    let seed = chain.as_bytes().iter().fold(salt ^ 0x9e37_79b9_7f4a_7c15, |seed, byte| {
        (seed ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    });
    // Marsaglia's xorshift64: any nonzero start gives 2⁶⁴ − 1 different words.
    let mut word = seed | 1;
    for chunk in memory.chunks_mut(8) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(blocks: u64) -> Vec<ChainValue> {
        (1..=blocks).map(|block| ChainValue::new(&block.to_be_bytes()).unwrap()).collect()
    }

    /// Every byte of a memory belongs to exactly one piece of one move.
    #[test]
    fn moves_cover_the_memory() {
        let model = Model::new(512, 4096).unwrap();
        let chain = chain(3);
        let manifest = model.manifest(&chain, 3).unwrap();
        let memory = model.memory(3);
        let moves = model.moves(&manifest, &memory).unwrap();
        let mut pieces: Vec<_> = moves.iter().flat_map(|one| one.pieces.clone()).collect();
        pieces.sort();
        let end = pieces.iter().fold(0, |end, piece| {
            assert_eq!(piece.address, end);
            end + piece.bytes
        });
        assert_eq!(end, memory.bytes.len() as u64);
        assert_eq!(moves.len(), 4);
    }

    /// The same prefix gives the same bytes, another one does not.
    #[test]
    fn bytes_follow_from_the_position() {
        let model = Model::new(512, 4096).unwrap();
        let filled = |chain: &[ChainValue]| {
            let mut memory = model.memory(2);
            model.prefill(chain, &mut memory);
            memory
        };
        assert_eq!(filled(&chain(2)), filled(&chain(2)));
        let other = [chain(2)[0], ChainValue::new(&[9]).unwrap()];
        assert_ne!(filled(&chain(2)), filled(&other));
    }
}
