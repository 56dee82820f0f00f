//! What is known of a replay outside of its catalog: what the workers saw, put together.
//!
//! It counts and keeps, and never asks the catalog.

use std::collections::BTreeSet;

use pinfold_core::id::CheckpointId;
use pinfold_host::collector::Round;
use pinfold_host::store::Why;

use crate::observer::{Moment, Observer, Violation};
use crate::report::{Depths, Tally, Timeline};
use crate::serve::{Served, Turn, Unsaved};

/// What is known outside of the catalog.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(crate) observer: Observer,
    pub(crate) tally: Tally,
    pub(crate) depths: Depths,
    pub(crate) timeline: Timeline,
    /// Restores that adopted wrong bytes.
    pub(crate) wrong: Vec<Violation>,
    /// Checkpoints that were collected before their worker said what they have: a turn that had
    /// expired, or expires at once, may be faster gone than its save is told.
    early: BTreeSet<CheckpointId>,
    /// Why the first save that the store failed went unsaved.
    pub(crate) store_failure: Option<Why>,
    /// Why the first restore failed.
    pub(crate) restore_failure: Option<Why>,
}

/// Where a turn stands in its trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// Input tokens of the request.
    pub(crate) tokens: u64,
    /// Links from its root.
    pub(crate) depth: u32,
    /// Tokens of a block.
    pub(crate) block: u64,
}

impl Outside {
    /// Nothing yet, with a timeline for so many requests.
    pub(crate) fn of(requests: u32) -> Self {
        Self { timeline: Timeline::of(requests), ..Self::default() }
    }

    /// A turn was served, and was asked for then.
    pub(crate) fn saw(&mut self, turn: &Turn, standing: Standing, served: &Served, asked: Moment) {
        let Standing { tokens, depth, block } = standing;
        self.tally.saw(served, tokens, block);
        self.depths.saw(depth, served, tokens, block);
        if served.wrong_bytes > 0 {
            let (turn, bytes) = (turn.key, served.wrong_bytes);
            let what = format!("I15: the restore of turn {turn} adopted {bytes} wrong bytes");
            self.wrong.push(Violation { what });
        }
        if let Some(checkpoint) = served.written {
            self.observer.saw_written(checkpoint, served.private_bytes);
            if self.early.remove(&checkpoint) {
                self.tally.bytes_collected += served.private_bytes;
            }
        }
        if let Some(why) = &served.restore_failed {
            self.restore_failure.get_or_insert_with(|| why.clone());
        }
        if let Some(Unsaved::StoreFailed(why)) = &served.unsaved {
            self.store_failure.get_or_insert_with(|| why.clone());
        }
        if let Some(checkpoint) = served.published {
            self.observer.saw_published(turn.key, checkpoint, served.expired, asked);
        }
    }

    /// A round of collection, and the checkpoints whose every object it saw gone.
    pub(crate) fn saw_round(&mut self, round: &Round, collected: Vec<CheckpointId>) {
        for checkpoint in collected {
            match self.observer.bytes(checkpoint) {
                Some(bytes) => self.tally.bytes_collected += bytes,
                None => drop(self.early.insert(checkpoint)),
            }
        }
        self.tally.checkpoints_collected += round.checkpoints;
        self.tally.objects_collected += round.objects;
    }
}
