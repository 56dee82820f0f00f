//! What the views answer, beside those of [`pinfold_host::view`].

use pinfold_core::id::Namespace;
use pinfold_core::policy::{Gauges, Limits};
use pinfold_host::view::{
    BlockerCount, CheckpointView, ConversationView, OwnerView, PinView, PolicyView, WhyView,
};
use serde::Serialize;

use super::survey::Listed;

/// The job: what a worker has to know before it registers.
#[derive(Debug, Serialize)]
pub(super) struct JobAnswer {
    pub(super) version: &'static str,
    pub(super) namespace: Namespace,
    pub(super) epoch: String,
    pub(super) operator: String,
    pub(super) policy: PolicyView,
    pub(super) limits: Limits,
    pub(super) totals: Gauges,
}

/// All that the job holds at a glance, the lists as far as they were asked for.
#[derive(Debug, Serialize)]
pub(super) struct InspectionAnswer {
    pub(super) namespace: Namespace,
    pub(super) epoch: String,
    pub(super) operator: String,
    pub(super) policy: PolicyView,
    pub(super) totals: Gauges,
    pub(super) limits: Limits,
    /// How long ago a large job was looked at.
    pub(super) age_seconds: u64,
    pub(super) blockers: Vec<BlockerCount>,
    /// In doubt, collecting, quarantined or lost, by generation.
    pub(super) stuck: Listed<CheckpointView>,
    /// By generation.
    pub(super) quarantined: Listed<CheckpointView>,
    /// Most bytes first.
    pub(super) conversations: Listed<ConversationView>,
    /// Most bytes pinned first.
    pub(super) owners: Listed<OwnerView>,
}

/// A pin and its age.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PinAnswer {
    #[serde(flatten)]
    pub(super) pin: PinView,
    /// For how long it has been there; where it is older than this process, for how long at least.
    pub(super) age_seconds: u64,
    /// It was there before this process.
    pub(super) at_least: bool,
}

/// Live pins, the oldest first or by id, as far as they were asked for.
#[derive(Debug, Serialize)]
pub(super) struct PinsAnswer {
    /// How many there are in all.
    pub(super) total: u64,
    /// By id: behind what the next page begins; none at the end.
    pub(super) next: Option<String>,
    /// The oldest first: those whose memory may still be touched.
    pub(super) in_doubt: Listed<PinAnswer>,
    pub(super) pins: Vec<PinAnswer>,
}

/// The live turns of a conversation, in order of first publication.
#[derive(Debug, Serialize)]
pub(super) struct LedgerAnswer {
    pub(super) conversation: String,
    pub(super) turns: Vec<TurnAnswer>,
    pub(super) expired_turns: u32,
    pub(super) forgotten: bool,
    pub(super) bytes: u64,
}

/// One turn, and a checkpoint that it refers to.
#[derive(Debug, Serialize)]
pub(super) struct TurnAnswer {
    pub(super) turn: String,
    pub(super) checkpoint: u64,
}

/// Why checkpoints of an endpoint are still here.
#[derive(Debug, Serialize)]
pub(super) struct EndpointAnswer {
    pub(super) checkpoints: Vec<WhyView>,
}
