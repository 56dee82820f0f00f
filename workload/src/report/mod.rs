//! What a replay did, as data: the figures behind the table, the page and `--json`.
//!
//! The names of the fields are the keys of the JSON object. A key keeps its name and meaning; more
//! may be added.

mod depth;
mod timeline;

use std::collections::BTreeMap;
use std::time::Duration;

use pinfold_core::catalog::Blocker;
use pinfold_core::engine::Engine;
use pinfold_host::node::NodeStats;
use serde::Serialize;

use crate::serve::{Served, Unsaved};

pub(crate) use depth::Depths;
pub use depth::{DEEPEST, Depth};
pub(crate) use timeline::Timeline;
pub use timeline::{POINTS, Point};

/// The result of a replay. With one worker, everything but [`time`](Self::time) repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The trace's name.
    pub trace: String,
    /// The URL of the coordinator, where it is a process of its own; null where the replay had its
    /// own. What only its machine can tell is 0 then: recoveries, syncs and bytes of its journal.
    pub coordinator: Option<String>,
    /// The job that is gone on with began with another trace: equal block ids of the two count as
    /// equal prefixes.
    pub another_trace: bool,
    /// Requests in it.
    pub requests: u32,
    /// Roots of linked requests.
    pub conversations: u32,
    /// Workers that served.
    pub workers: u32,
    /// N: live turns per conversation.
    pub turns_kept: u32,
    /// The byte budget of each conversation; null without one.
    pub conversation_bytes: Option<u64>,
    /// The byte budget of the job; null without one.
    pub job_bytes: Option<u64>,
    /// Bytes of private state of each checkpoint, as the model has them: without the manifest and
    /// the trailers, which come on top in every other figure.
    pub bytes_per_checkpoint: u64,
    /// How often the process state was thrown away.
    pub crashes: u32,
    /// Requests that were turns: those with at least one full block.
    pub turns: u32,
    /// Broken promises: must be 0.
    pub violations: u64,
    /// The first of them in words.
    pub violation_texts: Vec<String>,
    /// Why the store failed the first of the saves that it failed; null when there is none.
    pub store_failure_text: Option<String>,
    /// Why the first restore failed; null when none did.
    pub restore_failure_text: Option<String>,
    /// Turns that expired: with a publication, or after it by a budget.
    pub turns_expired: u64,
    /// Bytes that nobody confirmed in this replay, as they were seen first in the store: those of a
    /// job that is gone on with, and what saves had put that were thrown away under way. Found and
    /// written bytes together are the collected ones and those that are left.
    pub bytes_found: u64,
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
    /// Turns and restores by the place of a turn in its conversation.
    pub depths: Vec<Depth>,
    /// What the job held while it was serving.
    pub timeline: Vec<Point>,
    /// How many requests were done at each recovery; [`Time::recovery_us`] has its time.
    pub recovered_at: Vec<u32>,
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
    /// Turns that nothing was kept for, other than by a budget: the sum of the next four.
    pub unsaved: u32,
    /// Of those: the turn had expired before.
    pub unsaved_expired: u32,
    /// Of those: another save of that position was under way.
    pub unsaved_in_flight: u32,
    /// Of those: the position is kept with another manifest, because another trace gave its block
    /// ids to other prefixes.
    pub unsaved_mismatches: u32,
    /// Of those: the store failed. What was promised may have held, and the replay is incomplete.
    pub store_failures: u32,
    /// Turns that nothing was kept for because their checkpoint is larger than a budget.
    pub over_budget: u32,
    /// The most bytes that such a checkpoint has; 0 without one.
    pub over_budget_bytes: u64,
    /// Bytes of the private objects that were written and confirmed, published or not.
    pub bytes_written: u64,
    /// Of those: bytes for turns that were not kept in the end, because they had expired before or
    /// the checkpoint was lost at once. They are collected again.
    pub bytes_unkept: u64,
    /// Shared pages put, in bytes; most were there already.
    pub shared_bytes_put: u64,
    /// Saves that were thrown away half-way with their process; collected later.
    pub thrown_away: u64,
    /// Checkpoints whose every object was deleted.
    pub checkpoints_collected: u64,
    /// Objects deleted.
    pub objects_collected: u64,
    /// Bytes of the collected checkpoints, as they were written or first seen in the store.
    pub bytes_collected: u64,
}

impl Report {
    /// The verdict in one sentence: broken promises before all else, then what is missing.
    #[must_use]
    pub fn verdict(&self) -> String {
        match (self.violations, self.tally.store_failures) {
            (0, 0) => "Every promise held.".to_string(),
            (0, 1) => "Incomplete: the store failed 1 save.".to_string(),
            (0, failures) => format!("Incomplete: the store failed {failures} saves."),
            (violations, _) => format!("Broken promises: {violations}."),
        }
    }

    /// The broken promises that are worded, and how many more there are.
    #[must_use]
    pub fn violation_lines(&self) -> Vec<String> {
        let mut lines = self.violation_texts.clone();
        match self.violations - (lines.len() as u64).min(self.violations) {
            0 => {}
            more => lines.push(format!("and {more} more")),
        }
        lines
    }
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
            None if served.restore_failed.is_some() => self.restore_failures += 1,
            None => self.restore_misses += 1,
        }
        self.wrong_restores += u64::from(served.wrong_bytes > 0);
        match &served.unsaved {
            Some(unsaved) => self.saw_unsaved(unsaved),
            None if served.written.is_some() => self.checkpoints_written += 1,
            None => self.already_published += 1,
        }
        self.bytes_written += served.private_bytes;
        self.bytes_unkept += served.unsaved.as_ref().map_or(0, |_| served.private_bytes);
        self.shared_bytes_put += served.shared_bytes;
    }

    fn saw_unsaved(&mut self, unsaved: &Unsaved) {
        let count = match unsaved {
            Unsaved::OverBudget { needed } => {
                self.over_budget += 1;
                self.over_budget_bytes = self.over_budget_bytes.max(*needed);
                return;
            }
            Unsaved::Expired => &mut self.unsaved_expired,
            Unsaved::InFlight => &mut self.unsaved_in_flight,
            Unsaved::Mismatch => &mut self.unsaved_mismatches,
            Unsaved::StoreFailed(_) => &mut self.store_failures,
        };
        *count += 1;
        self.unsaved += 1;
    }
}

/// How many checkpoints each kind of blocker keeps; one checkpoint may have several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// By the blocker's name.
    pub blockers: BTreeMap<&'static str, u64>,
    /// How each of them is lifted.
    pub lifts: BTreeMap<&'static str, Lift>,
}

/// How a blocker is lifted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lift {
    /// What has to be done.
    pub how: &'static str,
    /// Who may: `policy`, `owner`, `collector`, `operator`; the usual one first.
    pub by: Vec<&'static str>,
}

impl Left {
    /// Asks `blockers` about every checkpoint with a record.
    #[must_use]
    pub fn of(engine: &Engine) -> Self {
        let catalog = engine.catalog();
        let mut left = Self::default();
        for checkpoint in catalog.checkpoints() {
            left.add(catalog.blockers(checkpoint).map(|all| all.blockers).unwrap_or_default());
        }
        left
    }

    /// Counts what keeps one checkpoint.
    pub(crate) fn add(&mut self, mut blockers: Vec<Blocker>) {
        blockers.dedup_by_key(|blocker| blocker.name());
        for blocker in blockers {
            *self.blockers.entry(blocker.name()).or_default() += 1;
            let by = blocker.lifters().iter().map(|lifter| lifter.name()).collect();
            self.lifts.insert(blocker.name(), Lift { how: blocker.lift(), by });
        }
    }
}

/// What depends on the machine and the hour, and on how many requests share a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Time {
    /// From opening the folder to the last judgement, in milliseconds.
    pub wall_ms: u64,
    /// Requests that the catalog answered, per second.
    pub commands_per_second: u64,
    /// Frames appended and synced.
    pub journal_syncs: u64,
    /// Bytes of those frames.
    pub journal_bytes: u64,
    /// Snapshots that the journal took beside the work.
    pub journal_snapshots: u64,
    /// Why the last one that failed did; a later one may have been taken.
    pub snapshot_failure: Option<String>,
    /// How long each recovery took, in microseconds: from opening the journal to an engine that
    /// answers. The first is that of `--resume`, if the job was gone on with.
    pub recovery_us: Vec<u64>,
    /// When each recovery was over, in milliseconds since the beginning.
    pub recovered_ms: Vec<u64>,
    /// When each point of the timeline was taken, in milliseconds since the beginning.
    pub timeline_ms: Vec<u64>,
}

impl Time {
    /// Figures of a run that took `wall`.
    pub(crate) fn of(wall: Duration, stats: &NodeStats) -> Self {
        let wall_ms = millis(wall);
        Self {
            wall_ms,
            commands_per_second: stats.requests.saturating_mul(1000) / wall_ms.max(1),
            journal_syncs: stats.syncs,
            journal_bytes: stats.journal_bytes,
            ..Self::default()
        }
    }

    /// A recovery that took so long was over then.
    pub(crate) fn recovered(&mut self, took: Duration, over: Duration) {
        self.recovery_us.push(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.recovered_ms.push(millis(over));
    }
}

/// Whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
