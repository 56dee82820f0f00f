//! Linking: which request of a trace continues which earlier one.
//!
//! Where a trace names what a request continues, that is what it is linked to. Where it does not,
//! the block ids show it: a request is linked to the longest earlier request whose chain of full
//! blocks, two or more, is a prefix of its own; of several with that same chain, to the latest. The
//! rule demands two blocks because the first one is often a system prompt that strangers share.
//!
//! A conversation is a root, which is a request linked to nothing, with everything that descends
//! from it; each request is one turn of it. The endpoint of a request is its last full block, the
//! position from which a later turn can resume.
//!
//! Linking looks only backwards and only at full blocks: answers are not hashed, so it never
//! guesses at what a model said, and it never sees two requests as one.

use std::collections::BTreeMap;

use pinfold_core::id::ChainValue;

use crate::trace::{Continues, Request, Trace};

/// The fewest full blocks by which a request can be continued.
const MIN_LINK_BLOCKS: usize = 2;

/// A node of a [`RadixTree`]: one block together with everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Every chain of blocks of a trace, shared beginnings kept once.
#[derive(Clone, Debug, Default)]
pub struct RadixTree {
    children: BTreeMap<(Option<NodeId>, u64), NodeId>,
    nodes: Vec<(Option<NodeId>, u64)>,
}

impl RadixTree {
    /// How many nodes there are: how many different blocks the trace has.
    #[must_use]
    pub fn node_count(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// The node of the blocks before this one; none for a first block.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.nodes.get(node.index()).and_then(|&(parent, _)| parent)
    }

    /// The ids of the blocks from the first to this node's own.
    #[must_use]
    pub fn chain(&self, node: NodeId) -> Vec<u64> {
        let mut blocks = Vec::new();
        let mut next = Some(node);
        while let Some(&(parent, block)) = next.and_then(|node| self.nodes.get(node.index())) {
            blocks.push(block);
            next = parent;
        }
        blocks.reverse();
        blocks
    }

    /// The node of a block after another, which is added if it is new.
    fn child(&mut self, parent: Option<NodeId>, block: u64) -> NodeId {
        let next = NodeId(self.node_count());
        let node = *self.children.entry((parent, block)).or_insert(next);
        if node == next {
            self.nodes.push((parent, block));
        }
        node
    }
}

/// What linking found out about one request.
///
/// Requests are named by their place in the trace, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The request that this one continues; none for a root.
    pub parent: Option<u32>,
    /// The first request of its conversation; itself for a root.
    pub root: u32,
    /// How many links lead from it to its root; 0 for a root.
    pub depth: u32,
    /// How many requests of its conversation arrived before it; branches make it exceed the depth.
    pub turn: u32,
    /// The node of its last full block; none when its prompt is too short to have one.
    pub endpoint: Option<NodeId>,
    /// Whether its full blocks, at least one, are exactly those of its parent: a prompt sent again
    /// or changed only within the last, partial block.
    pub repeats: bool,
}

/// A linked trace.
#[derive(Clone, Debug)]
pub struct Links {
    /// One for every request, in the order of the trace.
    pub requests: Vec<Linked>,
    /// All chains of the trace, those of partial blocks included.
    pub tree: RadixTree,
}

/// Links the requests of a trace.
///
/// Takes time in proportion to the number of blocks, times the logarithm of the different ones.
#[must_use]
pub fn link(trace: &Trace) -> Links {
    let mut linker = Linker::default();
    for (place, request) in (0..).zip(&trace.requests) {
        linker.add(place, request, trace.block_tokens);
    }
    Links { requests: linker.requests, tree: linker.tree }
}

#[derive(Default)]
struct Linker {
    requests: Vec<Linked>,
    tree: RadixTree,
    /// For each node, the latest request whose endpoint it is.
    latest: Vec<Option<u32>>,
    /// For each request that is a root, how many turns its conversation has.
    turns: Vec<u32>,
}

impl Linker {
    fn add(&mut self, place: u32, request: &Request, block_tokens: u32) {
        let full_count = request.full_blocks(block_tokens).len();
        let mut node = None;
        let mut endpoint = None;
        let mut found = None;
        for (count, &block) in (1..).zip(&request.blocks) {
            let child = self.tree.child(node, block);
            node = Some(child);
            self.latest.resize(self.tree.nodes.len(), None);
            if count <= full_count {
                endpoint = Some(child);
            }
            if let Some(latest) = self.latest[child.index()]
                && (MIN_LINK_BLOCKS..=full_count).contains(&count)
            {
                found = Some(latest);
            }
        }
        let parent = match request.continues {
            Continues::Unsaid => found,
            Continues::Nothing => None,
            Continues::Request(parent) => Some(parent).filter(|parent| *parent < place),
        };
        self.push(place, parent, endpoint);
    }

    fn push(&mut self, place: u32, parent: Option<u32>, endpoint: Option<NodeId>) {
        let of_parent = parent.and_then(|parent| self.requests.get(index(parent)));
        let root = of_parent.map_or(place, |linked| linked.root);
        let depth = of_parent.map_or(0, |linked| linked.depth + 1);
        let repeats =
            endpoint.is_some() && of_parent.is_some_and(|linked| linked.endpoint == endpoint);
        self.turns.push(0);
        let turn = self.turns[index(root)];
        self.turns[index(root)] += 1;
        if let Some(node) = endpoint {
            self.latest[node.index()] = Some(place);
        }
        self.requests.push(Linked { parent, root, depth, turn, endpoint, repeats });
    }
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// The figures by which traces are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many requests there are.
    pub requests: u32,
    /// From the earliest arrival to the latest, in milliseconds.
    pub span_ms: u64,
    /// How many blocks the requests have, partial ones included.
    pub blocks: u64,
    /// How many of them are different.
    pub unique_blocks: u32,
    /// Blocks that an earlier request already had, in order from the first, per thousand blocks,
    /// rounded to the nearest. In a radix tree those are all blocks but the first of each kind.
    pub hit_per_mille: u32,
    /// How many requests continue an earlier one.
    pub links: u32,
    /// How many do not: the number of conversations.
    pub roots: u32,
    /// The most links between a request and its root.
    pub depth_max: u32,
    /// How many endpoints are continued by more than one request. Requests with the same endpoint
    /// count as one parent here: under the latest-of-equals rule a repeat hands its parent's
    /// children on, so counting by parent request would hide most branches.
    pub branching: u32,
    /// How many requests repeat their parent's endpoint ([`Linked::repeats`]).
    pub repeats: u32,
    /// How many requests have no full block.
    pub too_short: u32,
}

impl Figures {
    /// The figures of a trace and its links.
    #[must_use]
    pub fn of(trace: &Trace, links: &Links) -> Self {
        let arrivals = || trace.requests.iter().map(|request| request.arrival_ms);
        let (earliest, latest) = (arrivals().min().unwrap_or(0), arrivals().max().unwrap_or(0));
        let block_count = |request: &Request| u64::try_from(request.blocks.len()).unwrap_or(0);
        let blocks = trace.requests.iter().map(block_count).sum();
        let unique_blocks = links.tree.node_count();
        let count = |wanted: fn(&Linked) -> bool| {
            let found = links.requests.iter().filter(|linked| wanted(linked)).count();
            u32::try_from(found).unwrap_or(u32::MAX)
        };
        Self {
            requests: count(|_| true),
            span_ms: latest - earliest,
            blocks,
            unique_blocks,
            hit_per_mille: per_mille(blocks.saturating_sub(u64::from(unique_blocks)), blocks),
            links: count(|linked| linked.parent.is_some()),
            roots: count(|linked| linked.parent.is_none()),
            depth_max: links.requests.iter().map(|linked| linked.depth).max().unwrap_or(0),
            branching: branching(links),
            repeats: count(|linked| linked.repeats),
            too_short: count(|linked| linked.endpoint.is_none()),
        }
    }
}

/// Endpoints that more than one request continues.
fn branching(links: &Links) -> u32 {
    let mut continued = BTreeMap::<NodeId, u32>::new();
    for linked in &links.requests {
        let parent = linked.parent.and_then(|parent| links.requests.get(index(parent)));
        if let Some(endpoint) = parent.and_then(|parent| parent.endpoint) {
            *continued.entry(endpoint).or_default() += 1;
        }
    }
    u32::try_from(continued.values().filter(|&&times| times > 1).count()).unwrap_or(u32::MAX)
}

/// A ratio in thousandths, rounded to the nearest; 0 of nothing.
fn per_mille(part: u64, whole: u64) -> u32 {
    let rounded = (part.saturating_mul(1000).saturating_add(whole / 2)).checked_div(whole);
    u32::try_from(rounded.unwrap_or(0)).unwrap_or(u32::MAX)
}

/// Which trace a block id comes from, so that equal ids of two traces stay different.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceTag(pub u64);

impl TraceTag {
    /// A tag that another trace hardly has: FNV-1a over every request's length and blocks.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let numbers = trace.requests.iter().flat_map(|request| {
            let blocks = request.blocks.iter().copied();
            std::iter::once(u64::from(request.input_tokens)).chain(blocks)
        });
        let step = |hash: u64, number: u64| {
            number.to_le_bytes().iter().fold(hash, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
        };
        Self(numbers.fold(0xcbf2_9ce4_8422_2325, step))
    }
}

/// The chain value of a block: 16 bytes, the trace tag and the block id, most significant first.
///
/// A block id has one id before it wherever it occurs, so it alone names a whole prefix and nothing
/// needs hashing; the value is unique within a trace, and readable.
#[must_use]
pub fn chain_value(tag: TraceTag, block: u64) -> ChainValue {
    let number = (u128::from(tag.0) << 64) | u128::from(block);
    ChainValue::new(&number.to_be_bytes()).expect("16 bytes are between 1 and 32")
}

/// The chain value after each full block of a request, in order; the n-th, from 1, stands at
/// n · `block_tokens` tokens.
#[must_use]
pub fn chain_values(tag: TraceTag, request: &Request, block_tokens: u32) -> Vec<ChainValue> {
    request.full_blocks(block_tokens).iter().map(|&block| chain_value(tag, block)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::trace::{read_trace, write_trace};

    /// A trace of 10-token blocks: tokens and blocks of each request.
    fn trace(requests: &[(u32, &[u64])]) -> Trace {
        let request = |&(input_tokens, blocks): &(u32, &[u64])| Request {
            input_tokens,
            blocks: blocks.to_vec(),
            ..Request::default()
        };
        let trace = Trace { block_tokens: 10, requests: requests.iter().map(request).collect() };
        trace.check().unwrap();
        trace
    }

    fn parents(links: &Links) -> Vec<Option<u32>> {
        links.requests.iter().map(|linked| linked.parent).collect()
    }

    #[test]
    fn the_longest_chain_wins() {
        let links = link(&trace(&[
            (20, &[0, 1]),
            (30, &[0, 1, 2]),
            (45, &[0, 1, 2, 3, 4]),
            (31, &[0, 1, 5, 6]),
        ]));
        assert_eq!(parents(&links), [None, Some(0), Some(1), Some(0)]);
        let depths: Vec<_> = links.requests.iter().map(|linked| linked.depth).collect();
        assert_eq!(depths, [0, 1, 2, 1]);
        let turns: Vec<_> = links.requests.iter().map(|linked| linked.turn).collect();
        assert_eq!(turns, [0, 1, 2, 3]);
        assert!(links.requests.iter().all(|linked| linked.root == 0));
        let endpoint = links.requests[2].endpoint.unwrap();
        assert_eq!(links.tree.chain(endpoint), [0, 1, 2, 3]);
        assert_eq!(links.tree.parent(endpoint), links.requests[1].endpoint);
    }

    #[test]
    fn the_latest_of_equals_wins_and_repeats_are_marked() {
        let requests: &[(u32, &[u64])] =
            &[(20, &[0, 1]), (20, &[0, 1]), (29, &[0, 1, 7]), (30, &[0, 1, 2])];
        let trace = trace(requests);
        let links = link(&trace);
        assert_eq!(parents(&links), [None, Some(0), Some(1), Some(2)]);
        let repeats: Vec<_> = links.requests.iter().map(|linked| linked.repeats).collect();
        assert_eq!(repeats, [false, true, true, false]);
        let figures = Figures::of(&trace, &links);
        assert_eq!((figures.branching, figures.repeats), (1, 2));
        assert_eq!((figures.links, figures.roots, figures.depth_max), (3, 1, 3));
    }

    #[test]
    fn one_full_block_or_a_partial_one_links_nothing() {
        let trace = trace(&[
            (10, &[0]),
            (10, &[0]),
            (25, &[0, 1, 2]),
            (19, &[0, 8]),
            (9, &[9]),
            (9, &[9]),
            (25, &[0, 1, 2]),
        ]);
        let links = link(&trace);
        assert_eq!(parents(&links), [None, None, None, None, None, None, Some(2)]);
        let figures = Figures::of(&trace, &links);
        assert_eq!(figures.too_short, 2);
        assert_eq!((figures.blocks, figures.unique_blocks, figures.hit_per_mille), (12, 5, 583));
    }

    /// Names decide: neither a shared prefix nor the lack of one links anything.
    #[test]
    fn what_a_request_names_is_what_it_continues() {
        let mut trace = trace(&[
            (20, &[0, 1]),
            (30, &[0, 1, 2]),
            (20, &[7, 8]),
            (5, &[9]),
            (5, &[9]),
            (30, &[0, 1, 2]),
        ]);
        let named = [
            Continues::Nothing,
            Continues::Nothing,
            Continues::Request(0),
            Continues::Request(2),
            Continues::Request(3),
            Continues::Request(1),
        ];
        let arrivals = [5, 9, 40, 40, 70, 10];
        for ((request, continues), arrival) in trace.requests.iter_mut().zip(named).zip(arrivals) {
            (request.continues, request.arrival_ms) = (continues, arrival);
        }
        trace.check().unwrap();
        let links = link(&trace);
        assert_eq!(parents(&links), [None, None, Some(0), Some(2), Some(3), Some(1)]);
        let roots: Vec<_> =
            links.requests.iter().map(|linked| (linked.root, linked.turn)).collect();
        assert_eq!(roots, [(0, 0), (1, 0), (0, 1), (0, 2), (0, 3), (1, 1)]);
        let figures = Figures::of(&trace, &links);
        // Two prompts without a full block are not the same one.
        assert_eq!((figures.repeats, figures.too_short, figures.depth_max), (1, 2, 3));
        assert_eq!((figures.links, figures.roots, figures.span_ms), (4, 2, 65));
    }

    #[test]
    fn chain_values_are_golden_and_cover_full_blocks_only() {
        let request = Request { input_tokens: 25, blocks: vec![0, 258, 3], ..Request::default() };
        let values = chain_values(TraceTag(0xfe), &request, 10);
        let shown: Vec<_> = values.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["00000000000000fe0000000000000000", "00000000000000fe0000000000000102"]);
        assert_ne!(chain_value(TraceTag(1), 0), chain_value(TraceTag(2), 0));
    }

    #[test]
    fn an_empty_trace_has_no_figures() {
        let trace = Trace { block_tokens: 10, requests: Vec::new() };
        assert_eq!(Figures::of(&trace, &link(&trace)), Figures::default());
    }

    /// The figures of a published trace in the folder that `PINFOLD_TRACES` names.
    fn published(name: &str) -> Option<Figures> {
        let Some(folder) = std::env::var_os("PINFOLD_TRACES") else {
            eprintln!("skipped: PINFOLD_TRACES does not name a folder with {name}");
            return None;
        };
        let bytes = fs::read(Path::new(&folder).join(name)).unwrap();
        let trace = read_trace(bytes.as_slice()).unwrap();
        let mut written = Vec::new();
        write_trace(&trace, &mut written).unwrap();
        assert!(written == bytes.trim_ascii_end().iter().chain(b"\n").copied().collect::<Vec<_>>());
        let started = std::time::Instant::now();
        let links = link(&trace);
        eprintln!("{name}: linked in {:?}", started.elapsed());
        Some(Figures::of(&trace, &links))
    }

    #[test]
    fn the_published_conversation_trace_has_its_known_figures() {
        let Some(found) = published("mooncake_conversation_trace.jsonl") else { return };
        let known = Figures {
            requests: 12_031,
            span_ms: 3_536_999,
            blocks: 288_500,
            unique_blocks: 182_790,
            hit_per_mille: 366,
            links: 3_975,
            roots: 8_056,
            depth_max: 42,
            branching: 462,
            repeats: 1_045,
            too_short: 0,
        };
        assert_eq!(found, known);
    }

    #[test]
    fn the_published_synthetic_trace_has_its_known_figures() {
        let Some(found) = published("mooncake_synthetic_trace.jsonl") else { return };
        let known = Figures {
            requests: 3_993,
            span_ms: 1_022_025,
            blocks: 121_877,
            unique_blocks: 43_924,
            hit_per_mille: 640,
            links: 1_444,
            roots: 2_549,
            depth_max: 23,
            branching: 250,
            repeats: 1_278,
            too_short: 1_107,
        };
        assert_eq!(found, known);
    }
}
