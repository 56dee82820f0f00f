//! Commands: what owners ask for, their form, and the digest that tells a retry from a clash.

use alloc::vec::Vec;

use super::receipt::Fingerprint;
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

/// The digest of a command's content. Part of the journal: what it feeds, in this order and
/// width, stays as it is.
pub(super) fn fingerprint(command: &Command) -> u64 {
    let pin_words = |fingerprint: Fingerprint, pin: &PinId| {
        fingerprint
            .bytes_16(pin.op.owner.as_bytes())
            .word(pin.op.incarnation.0)
            .word(pin.op.sequence)
            .word(u64::from(pin.place))
    };
    let checkpoint_words = |fingerprint: Fingerprint, id: &CheckpointId| {
        fingerprint.bytes_16(id.endpoint.as_bytes()).word(id.generation.0)
    };
    match command {
        Command::Prepare(prepare) => prepare_words(prepare),
        Command::Settle { pin, shard, evidence } => {
            let shard = shard.map_or(u64::MAX, |shard| u64::from(shard.0));
            pin_words(Fingerprint::of(2), pin).word(shard).word(*evidence as u64)
        }
        Command::Publish { pin, turn } => {
            let print = pin_words(Fingerprint::of(3), pin);
            turn.map_or(print, |key| {
                print.bytes_16(key.conversation.as_bytes()).bytes_16(key.turn.as_bytes())
            })
        }
        Command::Release { pin } => pin_words(Fingerprint::of(4), pin),
        Command::Pin { candidates, limit } => {
            let print = Fingerprint::of(5).word(u64::from(*limit));
            candidates.iter().fold(print, |print, id| print.bytes_16(id.as_bytes()))
        }
        Command::Lost { checkpoint, object, why } => {
            let print = checkpoint_words(Fingerprint::of(6), checkpoint).word(*why as u64);
            match object {
                LostObject::Private(object) => {
                    print.word(u64::from(object.shard.0)).word(u64::from(object.index))
                }
                LostObject::Shared(place) => print.word(u64::MAX).word(u64::from(*place)),
            }
        }
        Command::Doubt { pin, doubtful } => {
            pin_words(Fingerprint::of(7), pin).word(u64::from(*doubtful))
        }
        Command::Collect { limit } => Fingerprint::of(8).word(u64::from(*limit)),
        Command::Deleted { checkpoint, outcomes } => {
            let print = checkpoint_words(Fingerprint::of(9), checkpoint);
            outcomes.iter().fold(print, |print, (object, outcome)| {
                let object = u64::from(object.shard.0) << 32 | u64::from(object.index);
                print.word(object).word(*outcome as u64)
            })
        }
        Command::Configure { policy, limits } => configure_words(policy, limits),
        Command::Forget { conversation } => Fingerprint::of(11).bytes_16(conversation.as_bytes()),
        Command::Drop { checkpoint } => checkpoint_words(Fingerprint::of(12), checkpoint),
        Command::Fence { owner, incarnation } => {
            Fingerprint::of(13).bytes_16(owner.as_bytes()).word(incarnation.0)
        }
        Command::Retire { owner } => Fingerprint::of(14).bytes_16(owner.as_bytes()),
    }
    .finish()
}

fn configure_words(policy: &Policy, limits: &Limits) -> Fingerprint {
    let budget = |budget: Option<u64>| budget.map_or([0, 0], |bytes| [1, bytes]);
    let head = [u64::from(policy.turns), policy.quarantine as u64];
    let budgets = [budget(policy.conversation_bytes), budget(policy.job_bytes)];
    let bytes = [
        limits.bytes_pinned,
        limits.bytes_unscoped,
        limits.bytes_in_doubt,
        limits.bytes_quarantined,
    ];
    let counts = [
        limits.owners,
        limits.pins_per_owner,
        limits.pins,
        limits.shards,
        limits.objects_per_shard,
        limits.objects_per_checkpoint,
        limits.generations_per_endpoint,
        limits.references_per_turn,
        limits.candidates,
        limits.answers,
        limits.turns,
        limits.conversations,
        limits.expired_turns,
        limits.commands_per_list,
        limits.unanswered,
    ];
    let words = head.into_iter().chain(budgets.into_iter().flatten()).chain(bytes);
    words.chain(counts.map(u64::from)).fold(Fingerprint::of(10), Fingerprint::word)
}

fn prepare_words(prepare: &Prepare) -> Fingerprint {
    let Prepare { attempt, endpoint, digest, shape, shards } = prepare;
    let halves = digest.as_bytes().as_chunks::<16>().0;
    let print = Fingerprint::of(1).bytes_16(attempt.as_bytes()).bytes_16(endpoint.as_bytes());
    let print = halves.iter().fold(print, Fingerprint::bytes_16);
    let shape_words = shape.shards().iter().flat_map(|row| [u64::from(row.objects), row.bytes]);
    let shard_words = shards.iter().map(|shard| u64::from(shard.0));
    let words = [shape.shards().len() as u64].into_iter().chain(shape_words);
    words.chain(shard_words).fold(print, Fingerprint::word)
}
