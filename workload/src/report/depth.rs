//! Restores by the place of a turn in its conversation.

use serde::Serialize;

use crate::serve::Served;

/// The deepest place that is counted apart; what is deeper counts with it.
pub const DEEPEST: u32 = 24;

/// The turns at one place of their conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// The place: 1 for a conversation's first turn, 2 for one that continues it, and so on;
    /// [`DEEPEST`] also for what is deeper.
    pub depth: u32,
    /// Turns served.
    pub turns: u32,
    /// Those that resumed from a kept checkpoint.
    pub restores: u32,
    /// Input tokens of those turns.
    pub input_tokens: u64,
    /// Prefill tokens that their restores saved.
    pub tokens_saved: u64,
}

/// Counts turns by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Depths(Vec<Depth>);

impl Depths {
    /// Adds a served turn so many links from its conversation's first one.
    pub(crate) fn saw(&mut self, links: u32, served: &Served, tokens: u64, block_tokens: u64) {
        let place = links.min(DEEPEST - 1) as usize;
        while self.0.len() <= place {
            let depth = self.0.last().map_or(1, |deepest| deepest.depth + 1);
            self.0.push(Depth { depth, ..Depth::default() });
        }
        let Some(depth) = self.0.get_mut(place) else { return };
        depth.turns += 1;
        depth.input_tokens += tokens;
        if let Some(blocks) = served.restored_blocks {
            depth.restores += 1;
            depth.tokens_saved += u64::from(blocks) * block_tokens;
        }
    }

    /// One row for each place up to the deepest that was seen.
    pub(crate) fn into_rows(self) -> Vec<Depth> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places without a turn have a row, and everything from the deepest on shares one.
    #[test]
    fn turns_are_counted_by_their_place() {
        let restored = Served { restored_blocks: Some(2), ..Served::default() };
        let mut depths = Depths::default();
        depths.saw(0, &Served::default(), 100, 10);
        depths.saw(2, &restored, 50, 10);
        for links in [DEEPEST - 1, DEEPEST, u32::MAX] {
            depths.saw(links, &restored, 50, 10);
        }
        let rows = depths.into_rows();
        assert_eq!(rows.len(), 24);
        let row = |depth, turns, restores, input_tokens, tokens_saved| Depth {
            depth,
            turns,
            restores,
            input_tokens,
            tokens_saved,
        };
        assert_eq!(rows[..3], [row(1, 1, 0, 100, 0), row(2, 0, 0, 0, 0), row(3, 1, 1, 50, 20)]);
        assert_eq!(rows[23], row(24, 3, 3, 150, 60));
    }
}
