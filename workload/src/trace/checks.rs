//! What every format promises of its requests, checked one by one.
//!
//! Protects linking and replay: blocks cover the prompt, a block id is a prefix hash, and nothing
//! arrives before what it follows. It knows no format and never changes a request.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::fault::RowFault;
use super::{Continues, Request};

/// Where an id was seen first.
struct FirstSeen {
    parent: Option<u64>,
    line: u64,
}

/// The checks of one trace, in the middle of it.
pub(super) struct Checks {
    block_tokens: u32,
    first_seen: BTreeMap<u64, FirstSeen>,
}

impl Checks {
    pub(super) fn new(block_tokens: u32) -> Self {
        Self { block_tokens, first_seen: BTreeMap::new() }
    }

    /// Judges the request that comes after these.
    pub(super) fn admit(
        &mut self,
        line: u64,
        earlier: &[Request],
        request: &Request,
    ) -> Result<(), RowFault> {
        place(earlier)?;
        admit_arrival(earlier, request)?;
        self.admit_block_count(request)?;
        let mut parent = None;
        for &block in &request.blocks {
            self.admit_block(line, parent, block)?;
            parent = Some(block);
        }
        Ok(())
    }

    fn admit_block_count(&self, request: &Request) -> Result<(), RowFault> {
        let Self { block_tokens, .. } = *self;
        let input_tokens = request.input_tokens;
        let expected = u64::from(input_tokens.div_ceil(block_tokens.max(1)));
        let found = u64::try_from(request.blocks.len()).unwrap_or(u64::MAX);
        if found == expected && block_tokens > 0 {
            return Ok(());
        }
        Err(RowFault::BlockCount { input_tokens, block_tokens, expected, found })
    }

    fn admit_block(&mut self, line: u64, found: Option<u64>, block: u64) -> Result<(), RowFault> {
        match self.first_seen.entry(block) {
            Entry::Vacant(vacant) => {
                vacant.insert(FirstSeen { parent: found, line });
                Ok(())
            }
            Entry::Occupied(occupied) if occupied.get().parent == found => Ok(()),
            Entry::Occupied(occupied) => {
                let &FirstSeen { parent: expected, line: first_line } = occupied.get();
                Err(RowFault::TwoParents { block, first_line, expected, found })
            }
        }
    }
}

/// The place that the request after these has, from 0.
pub(super) fn place(earlier: &[Request]) -> Result<u32, RowFault> {
    let limit = u32::MAX;
    let place = u32::try_from(earlier.len()).ok().filter(|place| *place < limit);
    place.ok_or(RowFault::TooMany { limit })
}

/// The request at a place.
pub(super) fn at(requests: &[Request], place: u32) -> Option<&Request> {
    requests.get(usize::try_from(place).ok()?)
}

fn admit_arrival(earlier: &[Request], request: &Request) -> Result<(), RowFault> {
    let follows = match request.continues {
        Continues::Unsaid => earlier.last(),
        Continues::Nothing => None,
        Continues::Request(place) => Some(at(earlier, place).ok_or(RowFault::ContinuesLater {
            earlier: u32::try_from(earlier.len()).unwrap_or(u32::MAX),
            found: u64::from(place) + 1,
        })?),
    };
    not_before(follows.map_or(0, |follows| follows.arrival_ms), request.arrival_ms)
}

/// Refuses an arrival before another one.
pub(super) fn not_before(previous_ms: u64, found_ms: u64) -> Result<(), RowFault> {
    if found_ms < previous_ms {
        return Err(RowFault::Backwards { previous_ms, found_ms });
    }
    Ok(())
}
