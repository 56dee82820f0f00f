//! What a replay did, for a person and for a program.

use std::time::Duration;

use pinfold_core::engine::Engine;
use pinfold_host::node::NodeStats;
use serde::Serialize;

use crate::serve::Served;

/// The result of a replay. With one worker, everything but [`time`](Self::time) repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The trace's name.
    pub trace: String,
    /// Requests in it.
    pub requests: u32,
    /// Roots of linked requests.
    pub conversations: u32,
    /// Workers that served.
    pub workers: u32,
    /// N: live turns per conversation.
    pub turns_kept: u32,
    /// Requests that were turns: those with at least one full block.
    pub turns: u32,
    /// Broken promises: must be 0.
    pub violations: u64,
    /// The first of them in words.
    pub violation_texts: Vec<String>,
    /// Bytes that live turns refer to at the end.
    pub bytes_retained: u64,
    /// Checkpoints with a record at the end.
    pub checkpoints_retained: u64,
    /// The most bytes that checkpoints with a record held at once.
    pub bytes_peak: u64,
    /// Requests that the catalog answered; a list is one.
    pub commands: u64,
    /// What `blockers` says about everything that is left.
    pub left: Left,
    /// What the workers saw.
    #[serde(flatten)]
    pub tally: Tally,
    /// What depends on the machine and the hour.
    pub time: Time,
}

/// Sums of what the workers saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Requests without a full block: served, nothing to keep.
    pub too_short: u32,
    /// Turns that resumed from a kept checkpoint.
    pub restores: u32,
    /// Turns for which nothing was kept.
    pub restore_misses: u32,
    /// Turns whose pinned checkpoint could not be restored.
    pub restore_failures: u32,
    /// Restores that adopted a wrong byte: must be 0.
    pub wrong_restores: u64,
    /// Input tokens of all turns.
    pub input_tokens: u64,
    /// Prefill tokens that restores saved.
    pub tokens_saved: u64,
    /// Checkpoints written and published.
    pub checkpoints_written: u32,
    /// Turns that were published on a checkpoint which was there already.
    pub already_published: u32,
    /// Turns that nothing was kept for: another save of that position was under way, the store
    /// failed, or the turn had expired before.
    pub unsaved: u32,
    /// Bytes of the private objects that were put.
    pub bytes_written: u64,
    /// Shared pages put, in bytes; most were there already.
    pub shared_bytes_put: u64,
    /// Turns that expired with a publication.
    pub turns_expired: u32,
    /// Saves that were thrown away half-way with their process; collected later.
    pub thrown_away: u64,
    /// Checkpoints whose every object was deleted.
    pub checkpoints_collected: u64,
    /// Objects deleted.
    pub objects_collected: u64,
}

impl Tally {
    /// Adds a served turn of so many input tokens.
    pub fn saw(&mut self, served: &Served, tokens: u64, block_tokens: u64) {
        self.input_tokens += tokens;
        match served.restored_blocks {
            Some(blocks) => {
                self.restores += 1;
                self.tokens_saved += u64::from(blocks) * block_tokens;
            }
            None if served.restore_failed => self.restore_failures += 1,
            None => self.restore_misses += 1,
        }
        self.wrong_restores += u64::from(served.wrong_bytes > 0);
        match (served.published.is_some(), served.already) {
            (true, false) => self.checkpoints_written += 1,
            (true, true) => self.already_published += 1,
            (false, _) => self.unsaved += 1,
        }
        self.bytes_written += served.private_bytes;
        self.shared_bytes_put += served.shared_bytes;
        self.turns_expired += u32::from(served.expired.is_some());
    }
}

/// How many checkpoints each kind of blocker keeps; one checkpoint may have several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// By the blocker's name.
    pub blockers: std::collections::BTreeMap<&'static str, u64>,
}

impl Left {
    /// Asks `blockers` about every checkpoint with a record.
    #[must_use]
    pub fn of(engine: &Engine) -> Self {
        let catalog = engine.catalog();
        let mut left = Self::default();
        for checkpoint in catalog.checkpoints() {
            let blockers = catalog.blockers(checkpoint).map(|all| all.blockers);
            let mut names: Vec<_> = blockers.iter().flatten().map(|one| one.name()).collect();
            names.dedup();
            for name in names {
                *left.blockers.entry(name).or_default() += 1;
            }
        }
        left
    }
}

/// What depends on the machine and the hour, and on how many requests share a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Time {
    /// From opening the folder to the last judgement.
    pub wall_ms: u64,
    /// Requests that the catalog answered, per second.
    pub commands_per_second: u64,
    /// Frames appended and synced.
    pub journal_syncs: u64,
    /// Bytes of those frames.
    pub journal_bytes: u64,
    /// How long each recovery took.
    pub recovery_us: Vec<u64>,
}

impl Time {
    pub(crate) fn of(wall: Duration, stats: &NodeStats, recoveries: &[Duration]) -> Self {
        let millis = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        let micros = |took: &Duration| u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        Self {
            wall_ms: millis,
            commands_per_second: stats.requests.saturating_mul(1000) / millis.max(1),
            journal_syncs: stats.syncs,
            journal_bytes: stats.journal_bytes,
            recovery_us: recoveries.iter().map(micros).collect(),
        }
    }
}
