//! What the spec remembers: plain lists in an order that says something, and simple questions.
//!
//! Nothing here is a sum or a link. Each list stands in the one order that its content gives, so
//! that equal situations are equal values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pinfold_core::catalog::{Command, Role, Shape};
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, Generation, Incarnation, ManifestDigest, ObjectId,
    OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, TurnKey};
use pinfold_core::policy::Genesis;

use super::Answer;

/// The protocol's catalog, as lists. See the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Policy and limits are those of now.
    pub(super) job: Genesis,
    /// The last generation that was minted.
    pub(super) generation: Generation,
    /// The last incarnation that was minted.
    pub(super) incarnation: Incarnation,
    /// By id.
    pub(super) owners: Vec<Owner>,
    /// By generation.
    pub(super) checkpoints: Vec<Checkpoint>,
    /// The live ones, by id.
    pub(super) pins: Vec<Pin>,
    /// The job's live turns, by first publication.
    pub(super) turns: Vec<Turn>,
    /// By when they were first seen.
    pub(super) conversations: Vec<Conversation>,
    /// What nothing holds, in the order in which `Collect` takes it. What became free in one event
    /// stands together, and the protocol gives it no order.
    pub(super) queue: Vec<Vec<CheckpointId>>,
    /// A bound was lowered: the first conversation that was not looked at since.
    pub(super) trim: Option<u32>,
}

/// A registered owner, or genesis' operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) id: OwnerId,
    pub(super) role: Role,
    /// Of its last registration.
    pub(super) start: StartId,
    /// Every incarnation that it had, and whether it is fenced; the last one is current.
    pub(super) lives: Vec<(Incarnation, bool)>,
    /// The highest sequence that was decided in the current incarnation; 0 for none.
    pub(super) highest: u64,
    /// What was decided, by sequence.
    pub(super) receipts: BTreeMap<u64, Arc<Receipt>>,
}

/// A command and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Receipt {
    pub(super) command: Command,
    pub(super) answer: Answer,
}

impl Owner {
    pub(super) fn new(id: OwnerId, role: Role) -> Self {
        Self {
            id,
            role,
            start: StartId::default(),
            lives: Vec::new(),
            highest: 0,
            receipts: BTreeMap::new(),
        }
    }

    /// 0 before the first registration.
    pub(super) fn current(&self) -> Incarnation {
        self.lives.last().map_or(Incarnation(0), |(number, _)| *number)
    }

    /// Whether an incarnation is fenced; none if the owner never had it.
    pub(super) fn is_fenced(&self, incarnation: Incarnation) -> Option<bool> {
        let life = self.lives.iter().find(|(number, _)| *number == incarnation);
        life.map(|(_, fenced)| *fenced)
    }

    /// W or more below the highest: answered, and nobody knows what any more.
    pub(super) fn has_forgotten(&self, sequence: u64, window: u32) -> bool {
        self.highest.checked_sub(sequence).is_some_and(|below| below >= u64::from(window))
    }
}

/// How far a checkpoint has come; what is published is whole and has a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stage {
    Prepared,
    Failed,
    Whole,
    Collecting,
}

/// What became of the unscoped mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Unscoped {
    Never,
    Marked,
    Dropped,
}

/// One attempt to keep a position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Checkpoint {
    pub(super) id: CheckpointId,
    pub(super) attempt: AttemptId,
    pub(super) digest: ManifestDigest,
    pub(super) shape: Shape,
    pub(super) stage: Stage,
    pub(super) lost: bool,
    pub(super) unscoped: Unscoped,
    pub(super) shards: Vec<Shard>,
    /// What is known of each object's deletion; empty before the first `Collect` of it.
    pub(super) outcomes: Vec<Option<DeleteOutcome>>,
    /// The first object that was not handed out since it came to its place in the queue.
    pub(super) next: u32,
}

/// A shard of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Shard {
    pub(super) claimed: bool,
    pub(super) evidence: Option<Evidence>,
}

impl Shard {
    pub(super) fn is_final(self) -> bool {
        match self.evidence {
            Some(Evidence::NotExposed | Evidence::QuiescedSuccess | Evidence::QuiescedFailure) => {
                true
            }
            Some(Evidence::Active | Evidence::Quiescing | Evidence::InDoubt) | None => false,
        }
    }
}

impl Checkpoint {
    pub(super) fn bytes(&self) -> u64 {
        self.shape.shards().iter().map(|shard| shard.bytes).sum()
    }

    /// How many objects it has.
    pub(super) fn objects(&self) -> u32 {
        self.shape.shards().iter().map(|shard| shard.objects).sum()
    }

    /// An object's place among all of them: shard by shard, by index.
    pub(super) fn place(&self, object: ObjectId) -> Option<u32> {
        let shards = self.shape.shards();
        let shard = usize::from(object.shard.0);
        let before: u32 = shards.get(..shard)?.iter().map(|shard| shard.objects).sum();
        (object.index < shards.get(shard)?.objects).then_some(before + object.index)
    }

    /// All objects in the order of their places.
    pub(super) fn all_objects(&self) -> impl Iterator<Item = ObjectId> {
        let shards = self.shape.shards().iter().zip(0..=u16::MAX);
        shards.flat_map(|(shard, number)| {
            (0..shard.objects).map(move |index| ObjectId { shard: ShardIndex(number), index })
        })
    }

    pub(super) fn outcome(&self, place: u32) -> Option<DeleteOutcome> {
        self.outcomes.get(place as usize).copied().flatten()
    }

    pub(super) fn is_gone(&self, place: u32) -> bool {
        self.outcome(place) == Some(DeleteOutcome::Gone)
    }

    /// How many objects are not gone.
    pub(super) fn left(&self) -> u32 {
        (0..self.objects()).map(|place| u32::from(!self.is_gone(place))).sum()
    }

    /// A deletion has an unknown outcome.
    pub(super) fn is_quarantined(&self) -> bool {
        self.outcomes.contains(&Some(DeleteOutcome::Unknown))
    }

    /// Whole, not lost, and nobody collects it.
    pub(super) fn is_restorable(&self) -> bool {
        self.stage == Stage::Whole && !self.lost
    }
}

/// A live hold of one incarnation on one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pin {
    pub(super) id: PinId,
    pub(super) checkpoint: CheckpointId,
    /// What a save claims; a load claims nothing.
    pub(super) shards: Vec<ShardIndex>,
    pub(super) doubted: bool,
    /// A load that was settled `InDoubt`.
    pub(super) in_doubt: bool,
}

impl Pin {
    pub(super) fn is_save(&self) -> bool {
        !self.shards.is_empty()
    }
}

/// A live turn and what it refers to, by id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Turn {
    pub(super) key: TurnKey,
    pub(super) on: Vec<CheckpointId>,
}

/// A conversation that was ever published into, or forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Conversation {
    pub(super) id: ConversationId,
    /// The expired turns that are remembered one by one.
    pub(super) expired: BTreeSet<TurnId>,
    pub(super) forgotten: bool,
    /// An event left something to do for it.
    pub(super) due: bool,
}

impl Spec {
    /// The state right after a job's genesis.
    #[must_use]
    pub fn new(genesis: &Genesis) -> Self {
        Self {
            job: genesis.clone(),
            generation: Generation(0),
            incarnation: Incarnation(0),
            owners: vec![Owner::new(genesis.operator, Role::Operator)],
            checkpoints: Vec::new(),
            pins: Vec::new(),
            turns: Vec::new(),
            conversations: Vec::new(),
            queue: Vec::new(),
            trim: None,
        }
    }

    pub(super) fn owner(&self, id: OwnerId) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.id == id)
    }

    pub(super) fn owner_mut(&mut self, id: OwnerId) -> Option<&mut Owner> {
        self.owners.iter_mut().find(|owner| owner.id == id)
    }

    pub(super) fn is_operator(&self, id: OwnerId) -> bool {
        self.owner(id).is_some_and(|owner| owner.role == Role::Operator)
    }

    pub(super) fn checkpoint(&self, id: CheckpointId) -> Option<&Checkpoint> {
        self.checkpoints.iter().find(|there| there.id == id)
    }

    pub(super) fn checkpoint_mut(&mut self, id: CheckpointId) -> Option<&mut Checkpoint> {
        self.checkpoints.iter_mut().find(|there| there.id == id)
    }

    pub(super) fn pin_mut(&mut self, id: PinId) -> Option<&mut Pin> {
        self.pins.iter_mut().find(|pin| pin.id == id)
    }

    pub(super) fn pins_on(&self, id: CheckpointId) -> impl Iterator<Item = &Pin> {
        self.pins.iter().filter(move |pin| pin.checkpoint == id)
    }

    pub(super) fn conversation(&self, id: ConversationId) -> Option<&Conversation> {
        self.conversations.iter().find(|there| there.id == id)
    }

    pub(super) fn turn(&self, key: TurnKey) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.key == key)
    }

    /// The live turns of a conversation, oldest first.
    pub(super) fn ledger(&self, id: ConversationId) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(move |turn| turn.key.conversation == id)
    }

    pub(super) fn bytes(&self, id: CheckpointId) -> u64 {
        self.checkpoint(id).map_or(0, Checkpoint::bytes)
    }

    pub(super) fn is_pinned(&self, id: CheckpointId) -> bool {
        self.pins.iter().any(|pin| pin.checkpoint == id)
    }

    pub(super) fn is_referred_to(&self, id: CheckpointId) -> bool {
        self.turns.iter().any(|turn| turn.on.contains(&id))
    }

    /// A pin, a live turn or the unscoped mark holds it.
    pub(super) fn is_held(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.unscoped == Unscoped::Marked
            || self.is_pinned(checkpoint.id)
            || self.is_referred_to(checkpoint.id)
    }

    /// A claimed shard, or a load, has no final evidence.
    pub(super) fn is_unsettled(&self, pin: &Pin) -> bool {
        let Some(checkpoint) = self.checkpoint(pin.checkpoint) else { return false };
        let is_open = |shard: &ShardIndex| !checkpoint.shards[usize::from(shard.0)].is_final();
        !pin.is_save() || pin.shards.iter().any(is_open)
    }

    /// It, or one of its shards, was settled `InDoubt`.
    pub(super) fn has_doubtful_end(&self, pin: &Pin) -> bool {
        let Some(checkpoint) = self.checkpoint(pin.checkpoint) else { return false };
        let evidence = |shard: &ShardIndex| checkpoint.shards[usize::from(shard.0)].evidence;
        pin.in_doubt || pin.shards.iter().any(|shard| evidence(shard) == Some(Evidence::InDoubt))
    }

    /// Of a current incarnation that is not fenced.
    pub(super) fn is_obeying(&self, pin: &Pin) -> bool {
        let Some(owner) = self.owner(pin.id.op.owner) else { return false };
        owner.lives.last() == Some(&(pin.id.op.incarnation, false))
    }

    pub(super) fn is_of_fenced(&self, pin: &Pin) -> bool {
        let owner = self.owner(pin.id.op.owner);
        owner.is_some_and(|owner| owner.is_fenced(pin.id.op.incarnation) == Some(true))
    }

    /// Unsettled, and marked, settled `InDoubt`, or of a fenced or older incarnation.
    pub(super) fn is_in_doubt(&self, pin: &Pin) -> bool {
        self.is_unsettled(pin)
            && (pin.doubted || self.has_doubtful_end(pin) || !self.is_obeying(pin))
    }

    /// What a pin stands for: the shards it saves, or all of what it loads.
    pub(super) fn pin_bytes(&self, pin: &Pin) -> u64 {
        let Some(checkpoint) = self.checkpoint(pin.checkpoint) else { return 0 };
        if !pin.is_save() {
            return checkpoint.bytes();
        }
        let shards = checkpoint.shape.shards();
        pin.shards.iter().map(|shard| shards[usize::from(shard.0)].bytes).sum()
    }

    /// What live turns refer to, each checkpoint once: those of a conversation or all, and with one
    /// checkpoint more if one is named.
    pub(super) fn bytes_retained(
        &self,
        within: Option<ConversationId>,
        added: Option<CheckpointId>,
    ) -> u64 {
        let mut counted: Vec<_> = added.into_iter().collect();
        for turn in &self.turns {
            if within.is_none_or(|within| within == turn.key.conversation) {
                counted.extend(&turn.on);
            }
        }
        counted.sort_unstable();
        counted.dedup();
        counted.iter().map(|id| self.bytes(*id)).sum()
    }

    /// More live turns than N, or more bytes than the budget allows beside the newest turn.
    pub(super) fn is_over(&self, id: ConversationId) -> bool {
        let turns = self.ledger(id).count();
        let policy = &self.job.policy;
        turns > policy.turns as usize
            || turns > 1
                && policy
                    .conversation_bytes
                    .is_some_and(|budget| self.bytes_retained(Some(id), None) > budget)
    }

    /// More bytes than the job's budget allows beside the turn published last.
    pub(super) fn is_job_over(&self) -> bool {
        let budget = self.job.policy.job_bytes;
        self.turns.len() > 1
            && budget.is_some_and(|budget| self.bytes_retained(None, None) > budget)
    }

    /// Expired turns and forgotten conversations that are remembered.
    pub(super) fn expired_records(&self) -> u64 {
        let records =
            |there: &Conversation| there.expired.len() as u64 + u64::from(there.forgotten);
        self.conversations.iter().map(records).sum()
    }
}
