//! What the views answer, beside those of [`pinfold_host::view`].

use pinfold_core::id::Namespace;
use pinfold_core::policy::{Gauges, Limits};
use pinfold_host::view::{PinView, PolicyView, WhyView};
use serde::Serialize;

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

/// A pin and its age.
#[derive(Debug, Serialize)]
pub(super) struct PinAnswer {
    #[serde(flatten)]
    pub(super) pin: PinView,
    /// For how long it has been there; where it is older than this process, for how long at least.
    pub(super) age_seconds: u64,
    /// It was there before this process.
    pub(super) at_least: bool,
}

/// Live pins, the oldest first.
#[derive(Debug, Serialize)]
pub(super) struct PinsAnswer {
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
