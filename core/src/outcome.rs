//! Answers: what a verb achieved, or why it was refused; and the evidence that verbs carry.
//!
//! An [`Outcome`] says what is true now; a [`Rejection`] says what was wrong and changes nothing.
//! Both are data, so that every host words them in its own way.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::few::Few;
use crate::id::{
    CheckpointId, ConversationId, Incarnation, ManifestDigest, ObjectId, PinId, ShardIndex, TurnId,
};

/// What is known about a transfer's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Evidence {
    /// Nothing ever started.
    NotExposed,
    /// It still runs: the worker's own state, never accepted by the catalog.
    Active,
    /// It is being stopped: the worker's own state, never accepted by the catalog.
    Quiescing,
    /// Every byte arrived, is confirmed, and nobody reads or writes any more.
    QuiescedSuccess,
    /// It failed, and the memory is provably done with.
    QuiescedFailure,
    /// The memory may still be touched.
    InDoubt,
}

impl Evidence {
    /// True for the three values after which memory may be reused and a pin may end.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::NotExposed | Self::QuiescedSuccess | Self::QuiescedFailure => true,
            Self::Active | Self::Quiescing | Self::InDoubt => false,
        }
    }
}

/// The outcome of deleting one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DeleteOutcome {
    /// Deleted or not found, and stays so.
    Gone,
    /// This delete is definitely not in flight: a reader's lease, not ready, busy.
    Refused,
    /// Timed out, connection lost, or the answer is missing.
    Unknown,
}

/// Why an object is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Loss {
    /// The store definitely has no such object.
    Absent,
    /// It has another size.
    WrongSize,
    /// Its trailer or checksum does not fit.
    WrongBytes,
    /// It can definitely not be read.
    Unreadable,
}

/// An object of a checkpoint that was found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LostObject {
    /// A private object.
    Private(ObjectId),
    /// A shared object, by its place in the manifest.
    Shared(u32),
}

/// Where a turn is: its conversation and itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnKey {
    /// The conversation.
    pub conversation: ConversationId,
    /// The turn in it.
    pub turn: TurnId,
}

impl fmt::Display for TurnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.conversation, self.turn)
    }
}

/// One answer of a `Pin`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pinned {
    /// The checkpoint that is now held; its pin is (the operation, this answer's place).
    pub checkpoint: CheckpointId,
    /// Its manifest digest, to compare with the plan before any byte moves.
    pub digest: ManifestDigest,
}

/// What a command achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// The owner's incarnation from now on.
    Registered {
        /// The minted incarnation.
        incarnation: Incarnation,
    },
    /// A save pin holds this checkpoint for the shards that were claimed.
    Prepared {
        /// The save pin.
        pin: PinId,
        /// The checkpoint, new or joined.
        checkpoint: CheckpointId,
    },
    /// A whole checkpoint of this endpoint exists; a load pin holds it.
    AlreadyPublished {
        /// The load pin: publish with it, then settle it `NotExposed`.
        pin: PinId,
        /// The checkpoint it holds.
        checkpoint: CheckpointId,
    },
    /// The restorable checkpoints that are now pinned, in the order of the candidates.
    Pinned(Few<Pinned, 8>),
    /// The evidence that stands: the first final value.
    Settled {
        /// What stands.
        evidence: Evidence,
    },
    /// The save pin ended.
    Released,
    /// The turn, or the unscoped mark, refers to the checkpoint.
    Published {
        /// The turn that expired in this event, if one did.
        expired: Option<TurnKey>,
        /// More is due, and follows by itself.
        follow_ups: bool,
    },
    /// The checkpoint carries the `Lost` mark.
    Lost,
    /// The pin's doubt mark is as asked.
    Doubted,
    /// Delete work was handed out.
    Collected {
        /// How many objects, over all checkpoints.
        objects: u32,
        /// Something collectable is left beyond what was handed out.
        more: bool,
    },
    /// The outcomes were taken.
    Deleted {
        /// How many objects of the checkpoint are not gone yet.
        left: u32,
    },
    /// Policy and limits are as asked.
    Configured,
    /// The conversation is over for ever.
    Forgotten,
    /// The unscoped mark is gone and stays so.
    Dropped,
    /// The incarnation is barred for good; its pins end by follow-ups.
    Fenced {
        /// How many pins it still had.
        pins: u32,
    },
    /// The owner is forgotten wholly.
    Retired,
}

/// Why a command was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// The input itself is bad.
    #[error("{0}")]
    Malformed(Malformed),
    /// The message belongs to another epoch.
    #[error("this message is of another epoch: read the job's epoch again and start over")]
    WrongEpoch,
    /// The client speaks a protocol version that this catalog does not know.
    #[error("unknown protocol version: this catalog speaks version {known}")]
    UnknownVersion {
        /// The version this catalog speaks.
        known: u32,
    },
    /// No such owner is registered.
    #[error("unknown owner: register first")]
    UnknownOwner,
    /// The owner registered with another role before.
    #[error("this owner is registered with the other role: use another owner id")]
    RoleMismatch,
    /// The same operation id was used for other content.
    #[error("this operation id was used for another command: use the next sequence number")]
    OpConflict,
    /// The operation was answered, and its receipt is no longer kept.
    #[error("this operation was answered before, and its receipt is forgotten")]
    ReceiptForgotten,
    /// The incarnation is fenced.
    #[error("this incarnation is fenced: register again with a new start")]
    Fenced,
    /// The incarnation is older than the owner's current one.
    #[error("stale incarnation: the owner's current one is {current}")]
    StaleIncarnation {
        /// The owner's current incarnation; 0 when it has none.
        current: Incarnation,
    },
    /// The incarnation was never minted for this owner.
    #[error("unknown incarnation: it was never minted for this owner")]
    UnknownIncarnation,
    /// Only an operator may do this.
    #[error("only an operator may do this")]
    NotOperator,
    /// Genesis' operator is never retired.
    #[error("the job's first operator is never retired")]
    GenesisOperator,
    /// The pin belongs to another incarnation.
    #[error("the pin belongs to another incarnation")]
    ForeignPin,
    /// The pin has ended.
    #[error("the pin has ended")]
    PinEnded,
    /// No operation of that id took a pin yet.
    #[error("unknown pin: no operation of that id was decided")]
    UnknownPin,
    /// No such checkpoint has a record.
    #[error("unknown checkpoint: it has no record")]
    UnknownCheckpoint,
    /// The checkpoint has no such object.
    #[error("the checkpoint has no such object")]
    UnknownObject,
    /// Only the holder of a live pin on the checkpoint, or an operator, may say this.
    #[error("only a holder of a live pin on the checkpoint, or an operator, may do this")]
    NotHolder,
    /// The shard is not one that this pin claimed.
    #[error("shard {shard} is not claimed by this pin")]
    ShardNotClaimed {
        /// The shard.
        shard: ShardIndex,
    },
    /// The shard was claimed before in the life of this checkpoint.
    #[error("shard {shard} is taken: settle, release, and take a new attempt")]
    ShardTaken {
        /// The first such shard.
        shard: ShardIndex,
    },
    /// The geometry differs from what this attempt or endpoint was prepared with.
    #[error("the endpoint, manifest digest or shape differs from what was prepared")]
    ManifestMismatch,
    /// The attempt's checkpoint failed, is lost, or is being collected.
    #[error("the attempt failed: take a new attempt")]
    AttemptFailed,
    /// Another healthy attempt for this endpoint is in flight.
    #[error("another attempt for this endpoint is in flight: skip it, or ask again")]
    InFlight,
    /// The endpoint has a quarantined checkpoint and the job bars minting meanwhile.
    #[error("the endpoint is quarantined: a deletion's outcome is unknown")]
    EndpointQuarantined,
    /// The evidence is not one that the catalog takes, or something is not final yet.
    #[error("not final: wait for the transfer's end")]
    NotFinal,
    /// Not every shard has succeeded.
    #[error("the checkpoint is not complete on every shard")]
    NotComplete,
    /// The checkpoint is lost.
    #[error("the checkpoint is lost")]
    Lost,
    /// The turn or its conversation expired, which is for ever.
    #[error("the turn has expired for ever")]
    TurnExpired,
    /// The checkpoint's unscoped mark was dropped, which is for ever.
    #[error("the checkpoint's unscoped mark was dropped for ever")]
    Dropped,
    /// The checkpoint is being collected.
    #[error("the checkpoint is being collected")]
    Collecting,
    /// The checkpoint is not being collected.
    #[error("the checkpoint is not being collected")]
    NotCollecting,
    /// The owner still has pins.
    #[error("the owner still has pins: settle or fence them first")]
    OwnerHasPins,
    /// The expected policy is not the job's.
    #[error("the expected policy is not the job's: read it and agree")]
    PolicyMismatch,
    /// A bound would be exceeded.
    #[error("limit {limit} exceeded: {needed} needed, {bound} allowed")]
    LimitExceeded {
        /// Which bound.
        limit: Limit,
        /// Its value.
        bound: u64,
        /// What the command would have made of it; for bytes in doubt and quarantined, what
        /// there is already.
        needed: u64,
    },
}

/// Input that cannot be a command: what was wrong with which field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Malformed {
    /// The field.
    pub field: Field,
    /// What is wrong with it.
    pub problem: Problem,
}

/// A field that input can be refused for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Field {
    /// The list of commands.
    Commands,
    /// An owner id.
    Owner,
    /// An incarnation.
    Incarnation,
    /// An operation's sequence number.
    Sequence,
    /// A registration's start.
    Start,
    /// An epoch.
    Epoch,
    /// An attempt id.
    Attempt,
    /// An endpoint id.
    Endpoint,
    /// A shape.
    Shape,
    /// A list of shards, or one shard.
    Shards,
    /// A list of candidates.
    Candidates,
    /// A number of answers or objects asked for.
    Limit,
    /// A conversation id.
    Conversation,
    /// A turn id.
    Turn,
    /// A generation.
    Generation,
    /// A list of objects and outcomes.
    Objects,
    /// N.
    Turns,
    /// The budget of a conversation.
    ConversationBytes,
    /// The budget of the job.
    JobBytes,
    /// One of the limits.
    Bound(Limit),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Commands => "commands",
            Self::Owner => "owner",
            Self::Incarnation => "incarnation",
            Self::Sequence => "sequence",
            Self::Start => "start",
            Self::Epoch => "epoch",
            Self::Attempt => "attempt",
            Self::Endpoint => "endpoint",
            Self::Shape => "shape",
            Self::Shards => "shards",
            Self::Candidates => "candidates",
            Self::Limit => "limit",
            Self::Conversation => "conversation",
            Self::Turn => "turn",
            Self::Generation => "generation",
            Self::Objects => "objects",
            Self::Turns => "turns",
            Self::ConversationBytes => "conversation_bytes",
            Self::JobBytes => "job_bytes",
            Self::Bound(limit) => return write!(f, "limits.{limit}"),
        })
    }
}

/// What can be wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Problem {
    /// Nothing is there, or an all-zero id.
    Empty,
    /// Zero where at least one is needed.
    Zero,
    /// Twice the same.
    Duplicate,
    /// Not in ascending order.
    Unordered,
    /// Beyond what it belongs to.
    OutOfRange,
    /// Larger than can be counted or is ever allowed.
    TooLarge,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty",
            Self::Zero => "must be at least 1",
            Self::Duplicate => "holds the same value twice",
            Self::Unordered => "must be in ascending order",
            Self::OutOfRange => "is out of range",
            Self::TooLarge => "is too large",
        })
    }
}

/// The name of a bound: the fields of [`Limits`](crate::policy::Limits), and the two budgets.
///
/// `Turns` and `Unanswered` bound a policy and the receipts; no command is refused by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Limit {
    /// Owners known at once.
    Owners,
    /// Live pins of one owner.
    PinsPerOwner,
    /// Live pins in all.
    Pins,
    /// Bytes pinned.
    BytesPinned,
    /// Bytes unscoped.
    BytesUnscoped,
    /// Bytes in doubt.
    BytesInDoubt,
    /// Bytes quarantined.
    BytesQuarantined,
    /// Shards of one checkpoint.
    Shards,
    /// Objects of one shard.
    ObjectsPerShard,
    /// Objects of one checkpoint.
    ObjectsPerCheckpoint,
    /// Records of one endpoint.
    GenerationsPerEndpoint,
    /// Checkpoints of one turn.
    ReferencesPerTurn,
    /// Candidates of one `Pin`.
    Candidates,
    /// Answers of one `Pin`.
    Answers,
    /// Conversations.
    Conversations,
    /// Expired turns and forgotten conversations.
    ExpiredTurns,
    /// Commands in one list.
    CommandsPerList,
    /// The budget of one conversation.
    ConversationBytes,
    /// The budget of the job.
    JobBytes,
    /// Live turns of a conversation.
    Turns,
    /// Unanswered commands of one owner.
    Unanswered,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owners => "owners",
            Self::PinsPerOwner => "pins_per_owner",
            Self::Pins => "pins",
            Self::BytesPinned => "bytes_pinned",
            Self::BytesUnscoped => "bytes_unscoped",
            Self::BytesInDoubt => "bytes_in_doubt",
            Self::BytesQuarantined => "bytes_quarantined",
            Self::Shards => "shards",
            Self::ObjectsPerShard => "objects_per_shard",
            Self::ObjectsPerCheckpoint => "objects_per_checkpoint",
            Self::GenerationsPerEndpoint => "generations_per_endpoint",
            Self::ReferencesPerTurn => "references_per_turn",
            Self::Candidates => "candidates",
            Self::Answers => "answers",
            Self::Conversations => "conversations",
            Self::ExpiredTurns => "expired_turns",
            Self::CommandsPerList => "commands_per_list",
            Self::ConversationBytes => "conversation_bytes",
            Self::JobBytes => "job_bytes",
            Self::Turns => "turns",
            Self::Unanswered => "unanswered",
        })
    }
}
