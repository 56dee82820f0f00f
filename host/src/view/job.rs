//! A job at a glance: its figures, and everything that it holds.

use std::cmp::Reverse;

use pinfold_core::catalog::{Blocker, Catalog, ConversationFacts, OwnerFacts, PinFacts, Role};
use pinfold_core::id::{
    CheckpointId, ConversationId, EndpointId, Epoch, Generation, Incarnation, Namespace, OwnerId,
    PinId,
};
use pinfold_core::policy::{Gauges, Limits, Policy, Quarantine};
use serde::{Deserialize, Serialize};

use super::{TornView, Word};
use crate::dto::text;
use crate::journal::Reading;

/// A data folder's job, and how far its journal is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inspection {
    /// The journal.
    pub journal: JournalView,
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
}

/// How far a journal is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JournalView {
    /// How many records it has.
    pub records: u64,
    /// How many of them a snapshot stands for.
    pub snapshot_records: u64,
    /// The bad frame at its end, if there is one.
    pub torn: Option<TornView>,
}

/// A job and everything that it holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobView {
    /// The job's namespace, the first part of every key.
    #[serde(with = "text")]
    pub namespace: Namespace,
    /// The job's life, the second part of every key.
    #[serde(with = "text")]
    pub epoch: Epoch,
    /// The first operator.
    #[serde(with = "text")]
    pub operator: OwnerId,
    /// What stays.
    pub policy: PolicyView,
    /// The running sums.
    pub totals: Gauges,
    /// What they may be at most, among the other bounds.
    pub limits: Limits,
    /// How much each kind of blocker keeps, in the order of an answer of `why`.
    pub blockers: Vec<BlockerCount>,
    /// Every conversation that was seen, most bytes first.
    pub conversations: Vec<ConversationView>,
    /// Every owner, most bytes pinned first.
    pub owners: Vec<OwnerView>,
    /// Every live pin, by owner, incarnation and operation.
    pub pins: Vec<PinView>,
    /// Every checkpoint with a record, by generation.
    pub checkpoints: Vec<CheckpointView>,
}

/// Which checkpoints stay.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyView {
    /// N: live turns of one conversation.
    pub turns: u32,
    /// The budget of one conversation in bytes; none means unbounded.
    pub conversation_bytes: Option<u64>,
    /// The budget of the job in bytes; none means unbounded.
    pub job_bytes: Option<u64>,
    /// What a quarantined checkpoint bars: its `generation` or its `endpoint`.
    pub quarantine: Word,
}

/// How much one kind of blocker keeps. A checkpoint with several blockers counts at each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockerCount {
    /// The blocker's name.
    pub name: Word,
    /// Checkpoints that have it.
    pub checkpoints: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A conversation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ConversationView {
    /// The conversation.
    #[serde(with = "text")]
    pub conversation: ConversationId,
    /// Live turns.
    pub turns: u32,
    /// Bytes of the checkpoints that they refer to, each once.
    pub bytes: u64,
    /// Expired turns whose identities are kept.
    pub expired_turns: u32,
    /// It is over for ever.
    pub forgotten: bool,
}

/// An owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OwnerView {
    /// The owner.
    #[serde(with = "text")]
    pub owner: OwnerId,
    /// `worker` or `operator`.
    pub role: Word,
    /// Its current incarnation; 0 before the first.
    pub incarnation: Incarnation,
    /// Its current incarnation is barred.
    pub fenced: bool,
    /// Live pins, over all its incarnations.
    pub pins: u32,
    /// Bytes of the checkpoints that they hold, each once.
    pub bytes_pinned: u64,
}

/// A live pin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PinView {
    /// The pin: owner, incarnation, operation and place.
    #[serde(with = "text")]
    pub pin: PinId,
    /// Whose it is.
    #[serde(with = "text")]
    pub owner: OwnerId,
    /// Of which registration.
    pub incarnation: Incarnation,
    /// `save` or `load`.
    pub purpose: Word,
    /// What it holds.
    pub checkpoint: Generation,
    /// The bytes that it stands for: its shards' for a save, all for a load.
    pub bytes: u64,
    /// The memory may still be touched.
    pub in_doubt: bool,
}

/// A checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointView {
    /// Its generation, by which it is named.
    pub checkpoint: Generation,
    /// The position that it keeps.
    #[serde(with = "text")]
    pub endpoint: EndpointId,
    /// How far it has come.
    pub state: Word,
    /// An object of it is gone or wrong.
    pub lost: bool,
    /// Its bytes, over all shards.
    pub bytes: u64,
    /// Its private objects, over all shards.
    pub objects: u32,
    /// Objects whose deletion has an unknown outcome: with any of them it is quarantined.
    pub unknown: u32,
    /// The names of what keeps it, each once.
    pub blockers: Vec<Word>,
}

impl Inspection {
    /// The job of a journal that was read.
    #[must_use]
    pub fn of(reading: &Reading) -> Self {
        let journal = JournalView {
            records: reading.records,
            snapshot_records: reading.snapshot_records,
            torn: reading.torn.as_ref().map(TornView::of),
        };
        Self { journal, job: JobView::of(&reading.catalog) }
    }
}

impl JobView {
    /// The job as a catalog has it.
    #[must_use]
    pub fn of(catalog: &Catalog) -> Self {
        let job = catalog.job();
        let checkpoints = checkpoints(catalog);
        let mut conversations: Vec<_> = catalog.conversations().map(ConversationView::of).collect();
        // Both sorts are stable: equals stay in first-seen order, and by id.
        conversations.sort_by_key(|conversation| Reverse(conversation.bytes));
        let mut owners: Vec<_> = catalog.owners().into_iter().map(OwnerView::of).collect();
        owners.sort_by_key(|owner| Reverse(owner.bytes_pinned));
        Self {
            namespace: job.namespace.clone(),
            epoch: job.epoch,
            operator: job.operator,
            policy: PolicyView::of(&job.policy),
            totals: catalog.gauges(),
            limits: job.limits,
            blockers: count(&checkpoints),
            conversations,
            owners,
            pins: pins(catalog),
            checkpoints,
        }
    }
}

impl PolicyView {
    /// A policy as it is shown.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        let Policy { turns, conversation_bytes, job_bytes, quarantine } = *policy;
        let quarantine = match quarantine {
            Quarantine::Generation => "generation",
            Quarantine::Endpoint => "endpoint",
        };
        Self { turns, conversation_bytes, job_bytes, quarantine: quarantine.into() }
    }
}

impl ConversationView {
    /// A conversation as it is shown.
    #[must_use]
    pub const fn of(facts: ConversationFacts) -> Self {
        let ConversationFacts { id, turns, bytes, expired_turns, forgotten } = facts;
        Self { conversation: id, turns, bytes, expired_turns, forgotten }
    }
}

impl OwnerView {
    /// An owner as it is shown.
    #[must_use]
    pub fn of(facts: OwnerFacts) -> Self {
        let OwnerFacts { id, role, incarnation, fenced, pins, bytes_pinned } = facts;
        let role = role_name(role).into();
        Self { owner: id, role, incarnation, fenced, pins, bytes_pinned }
    }
}

/// A role in one word.
pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Worker => "worker",
        Role::Operator => "operator",
    }
}

impl PinView {
    /// A pin as it is shown.
    #[must_use]
    pub fn of(facts: &PinFacts) -> Self {
        Self {
            pin: facts.id,
            owner: facts.id.op.owner,
            incarnation: facts.id.op.incarnation,
            purpose: if facts.save { "save" } else { "load" }.into(),
            checkpoint: facts.checkpoint.generation,
            bytes: facts.bytes,
            in_doubt: facts.in_doubt,
        }
    }
}

impl CheckpointView {
    /// A checkpoint as it is shown; none when it has no record.
    #[must_use]
    pub fn of(catalog: &Catalog, id: CheckpointId) -> Option<Self> {
        let facts = catalog.checkpoint(id)?;
        let blockers = catalog.blockers(id).map(|all| all.blockers).unwrap_or_default();
        let mut names: Vec<Word> = blockers.iter().map(|it| it.name().into()).collect();
        names.dedup();
        Some(Self {
            checkpoint: id.generation,
            endpoint: id.endpoint,
            state: facts.state.name().into(),
            lost: facts.lost,
            bytes: facts.bytes,
            objects: facts.objects,
            unknown: facts.unknown,
            blockers: names,
        })
    }
}

impl BlockerCount {
    /// Of every kind, nothing yet, in the order of an answer of `why`.
    #[must_use]
    pub fn nothing() -> Vec<Self> {
        let none = |name: &'static str| Self { name: name.into(), checkpoints: 0, bytes: 0 };
        Blocker::NAMES.into_iter().map(none).collect()
    }

    /// Counts a checkpoint, where it is kept by this.
    pub fn add(&mut self, checkpoint: &CheckpointView) {
        if checkpoint.blockers.contains(&self.name) {
            self.checkpoints += 1;
            self.bytes = self.bytes.saturating_add(checkpoint.bytes);
        }
    }
}

fn pins(catalog: &Catalog) -> Vec<PinView> {
    catalog.pins().iter().map(PinView::of).collect()
}

fn checkpoints(catalog: &Catalog) -> Vec<CheckpointView> {
    let ids = catalog.checkpoints().into_iter();
    ids.filter_map(|id| CheckpointView::of(catalog, id)).collect()
}

/// What each kind of blocker keeps, where it keeps anything.
fn count(checkpoints: &[CheckpointView]) -> Vec<BlockerCount> {
    let mut counts = BlockerCount::nothing();
    for checkpoint in checkpoints {
        counts.iter_mut().for_each(|count| count.add(checkpoint));
    }
    counts.retain(|count| count.checkpoints > 0);
    counts
}
