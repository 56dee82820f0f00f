//! Commands: what owners ask for, and their form.

use alloc::vec::Vec;

use super::{Catalog, Prepare};
use crate::bounds::MAX_COLLECT;
use crate::id::{
    CheckpointId, ConversationId, EndpointId, Incarnation, ObjectId, OpId, OwnerId, PinId,
    ShardIndex,
};
use crate::outcome::{
    DeleteOutcome, Evidence, Field, Loss, LostObject, Malformed, Problem, TurnKey,
};
use crate::policy::{Limits, Policy};

/// What an owner asks for. Each command carries an [`OpId`] of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Begin, or join, an attempt to keep a position.
    Prepare(Prepare),
    /// Say what is known about a transfer's end.
    Settle {
        /// The pin.
        pin: PinId,
        /// The claimed shard; none for a load pin, or for every claimed shard that is not final.
        shard: Option<ShardIndex>,
        /// What is known.
        evidence: Evidence,
    },
    /// Let a turn refer to the pinned checkpoint; without one, set its unscoped mark.
    Publish {
        /// A live pin of the caller.
        pin: PinId,
        /// The turn.
        turn: Option<TurnKey>,
    },
    /// End a save pin whose shards are final.
    Release {
        /// The pin.
        pin: PinId,
    },
    /// Pin restorable checkpoints.
    Pin {
        /// Endpoints, longest first.
        candidates: Vec<EndpointId>,
        /// How many answers at most, 1 to 8.
        limit: u32,
    },
    /// Say that an object is gone or wrong.
    Lost {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The object.
        object: LostObject,
        /// What was found.
        why: Loss,
    },
    /// Mark a pin as doubtful, or take the mark away.
    Doubt {
        /// The pin.
        pin: PinId,
        /// Whether it is doubtful.
        doubtful: bool,
    },
    /// Ask for delete work.
    Collect {
        /// For how many objects at most, at least 1.
        limit: u32,
    },
    /// Report the outcomes of deletes, or of a probe that takes no lease.
    Deleted {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Objects in ascending order, and what is known of each.
        outcomes: Vec<(ObjectId, DeleteOutcome)>,
    },
    /// Change policy and limits (operator).
    Configure {
        /// The new policy.
        policy: Policy,
        /// The new limits; `unanswered` stays as it is.
        limits: Limits,
    },
    /// End a conversation for ever (operator).
    Forget {
        /// The conversation, seen before or not.
        conversation: ConversationId,
    },
    /// Clear a checkpoint's unscoped mark for ever (operator).
    Drop {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// Bar an incarnation for good, on proof that nothing of it moves any more (operator).
    Fence {
        /// The owner.
        owner: OwnerId,
        /// Which of its incarnations.
        incarnation: Incarnation,
    },
    /// Forget an owner without pins wholly (operator).
    Retire {
        /// The owner.
        owner: OwnerId,
    },
}

impl Catalog {
    /// The first check: bad input is refused as a unit, by the field that is wrong.
    pub(super) fn check_form(&self, op: OpId, command: &Command) -> Result<(), Malformed> {
        let refuse = |field, problem| Err(Malformed { field, problem });
        if op.owner.is_empty() {
            return refuse(Field::Owner, Problem::Empty);
        }
        if op.incarnation == Incarnation(0) {
            return refuse(Field::Incarnation, Problem::Zero);
        }
        if op.sequence == 0 {
            return refuse(Field::Sequence, Problem::Zero);
        }
        match command {
            Command::Prepare(prepare) => prepare.form(),
            Command::Publish { turn, .. } => Self::form_publish(*turn),
            Command::Pin { candidates, limit } => Self::form_pin(candidates, *limit),
            Command::Collect { limit: 0 } => refuse(Field::Limit, Problem::Zero),
            Command::Collect { limit } if *limit > MAX_COLLECT => {
                refuse(Field::Limit, Problem::TooLarge)
            }
            Command::Deleted { checkpoint, outcomes } => Self::form_deleted(*checkpoint, outcomes),
            Command::Configure { policy, limits } => self.form_configure(policy, limits),
            Command::Forget { conversation } if conversation.is_empty() => {
                refuse(Field::Conversation, Problem::Empty)
            }
            Command::Fence { owner, .. } | Command::Retire { owner } if owner.is_empty() => {
                refuse(Field::Owner, Problem::Empty)
            }
            Command::Fence { incarnation: Incarnation(0), .. } => {
                refuse(Field::Incarnation, Problem::Zero)
            }
            Command::Settle { .. }
            | Command::Release { .. }
            | Command::Lost { .. }
            | Command::Doubt { .. }
            | Command::Collect { .. }
            | Command::Forget { .. }
            | Command::Drop { .. }
            | Command::Fence { .. }
            | Command::Retire { .. } => Ok(()),
        }
    }
}
