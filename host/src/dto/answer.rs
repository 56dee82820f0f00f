//! What a client is answered, as data.

use pinfold_core::catalog::{Blocker, Blockers, Verdict};
use pinfold_core::engine::Reply;
use pinfold_core::few::Few;
use pinfold_core::id::{
    CheckpointId, Epoch, Incarnation, ManifestDigest, Namespace, ObjectId, OwnerId, PinId,
    ShardIndex,
};
use pinfold_core::outcome::{
    Evidence, Field, Limit, Malformed, Outcome, Pinned, Problem, Rejection, TurnKey,
};
use pinfold_core::policy::{Gauges, Genesis, Limits, Policy};
use serde::{Deserialize, Serialize};

use super::command::{EvidenceForm, LimitsForm, PolicyForm};
use super::text;

/// The answer to one input, as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// A registration or a command achieved this.
    Ok(#[serde(with = "OutcomeForm")] Outcome),
    /// It was refused; a list too, when it was refused as a whole.
    Refused(#[serde(with = "RejectionForm")] Rejection),
    /// To a list, one for each command.
    List(Vec<ListAnswer>),
    /// To the query for the job.
    Job(#[serde(with = "GenesisForm")] Genesis),
    /// To the query for what the job holds.
    Gauges(#[serde(with = "GaugesForm")] Gauges),
    /// To the query for why a checkpoint is here; none when it has no record.
    Blockers(#[serde(with = "optional_blockers")] Option<Blockers>),
    /// To an audit, key by key.
    Audit(#[serde(with = "verdicts")] Vec<Verdict>),
    /// The query was of another epoch.
    WrongEpoch,
    /// The engine was poisoned: nothing is known of what the input would have done.
    Poisoned,
    /// The host does not know what was answered: a connection broke, or a process died.
    Unknown,
}

/// The answer to one command of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ListAnswer {
    /// It achieved this.
    Ok(#[serde(with = "OutcomeForm")] Outcome),
    /// It was refused.
    Refused(#[serde(with = "RejectionForm")] Rejection),
    /// It stands behind a refusal.
    NotTried,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Command(Ok(outcome)) => Self::Ok(outcome),
            Reply::Command(Err(rejection)) => Self::Refused(rejection),
            Reply::List(answers) => Self::List(answers.into_iter().map(ListAnswer::from).collect()),
            Reply::Job(genesis) => Self::Job(genesis),
            Reply::Gauges(gauges) => Self::Gauges(gauges),
            Reply::Blockers(blockers) => Self::Blockers(blockers),
            Reply::Audit(verdicts) => Self::Audit(verdicts),
            Reply::WrongEpoch => Self::WrongEpoch,
            Reply::Poisoned => Self::Poisoned,
        }
    }
}

impl Answer {
    /// The reply that this was; none where nobody knows.
    #[must_use]
    pub fn into_reply(self) -> Option<Reply> {
        Some(match self {
            Self::Ok(outcome) => Reply::Command(Ok(outcome)),
            Self::Refused(rejection) => Reply::Command(Err(rejection)),
            Self::List(answers) => {
                Reply::List(answers.into_iter().map(ListAnswer::into_result).collect())
            }
            Self::Job(genesis) => Reply::Job(genesis),
            Self::Gauges(gauges) => Reply::Gauges(gauges),
            Self::Blockers(blockers) => Reply::Blockers(blockers),
            Self::Audit(verdicts) => Reply::Audit(verdicts),
            Self::WrongEpoch => Reply::WrongEpoch,
            Self::Poisoned => Reply::Poisoned,
            Self::Unknown => return None,
        })
    }
}

impl From<Option<Result<Outcome, Rejection>>> for ListAnswer {
    fn from(answer: Option<Result<Outcome, Rejection>>) -> Self {
        match answer {
            Some(Ok(outcome)) => Self::Ok(outcome),
            Some(Err(rejection)) => Self::Refused(rejection),
            None => Self::NotTried,
        }
    }
}

impl ListAnswer {
    fn into_result(self) -> Option<Result<Outcome, Rejection>> {
        match self {
            Self::Ok(outcome) => Some(Ok(outcome)),
            Self::Refused(rejection) => Some(Err(rejection)),
            Self::NotTried => None,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Outcome", rename_all = "snake_case", deny_unknown_fields)]
enum OutcomeForm {
    Registered {
        incarnation: Incarnation,
    },
    Prepared {
        #[serde(with = "text")]
        pin: PinId,
        #[serde(with = "text")]
        checkpoint: CheckpointId,
    },
    AlreadyPublished {
        #[serde(with = "text")]
        pin: PinId,
        #[serde(with = "text")]
        checkpoint: CheckpointId,
    },
    Pinned(#[serde(with = "pinned")] Few<Pinned, 8>),
    Settled {
        #[serde(with = "EvidenceForm")]
        evidence: Evidence,
    },
    Released,
    Published {
        #[serde(with = "text::optional", default)]
        expired: Option<TurnKey>,
        follow_ups: bool,
    },
    Lost,
    Doubted,
    Collected {
        objects: u32,
        more: bool,
    },
    Deleted {
        left: u32,
    },
    Configured,
    Forgotten,
    Dropped,
    Fenced {
        pins: u32,
    },
    Retired,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Rejection", rename_all = "snake_case", deny_unknown_fields)]
enum RejectionForm {
    Malformed(#[serde(with = "MalformedForm")] Malformed),
    WrongEpoch,
    UnknownVersion {
        known: u32,
    },
    UnknownOwner,
    RoleMismatch,
    OpConflict,
    ReceiptForgotten,
    Fenced,
    StaleIncarnation {
        current: Incarnation,
    },
    UnknownIncarnation,
    NotOperator,
    GenesisOperator,
    ForeignPin,
    PinEnded,
    UnknownPin,
    UnknownCheckpoint,
    UnknownObject,
    NotHolder,
    ShardNotClaimed {
        shard: ShardIndex,
    },
    ShardTaken {
        shard: ShardIndex,
    },
    ManifestMismatch,
    AttemptFailed,
    InFlight,
    EndpointQuarantined,
    NotFinal,
    NotComplete,
    Lost,
    TurnExpired,
    Dropped,
    Collecting,
    NotCollecting,
    OwnerHasPins,
    PolicyMismatch,
    LimitExceeded {
        #[serde(with = "LimitForm")]
        limit: Limit,
        bound: u64,
        needed: u64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Malformed", deny_unknown_fields)]
struct MalformedForm {
    #[serde(with = "FieldForm")]
    field: Field,
    #[serde(with = "ProblemForm")]
    problem: Problem,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Field", rename_all = "snake_case")]
enum FieldForm {
    Commands,
    Owner,
    Incarnation,
    Sequence,
    Start,
    Epoch,
    Attempt,
    Endpoint,
    Shape,
    Shards,
    Candidates,
    Limit,
    Conversation,
    Turn,
    Generation,
    Objects,
    Turns,
    ConversationBytes,
    JobBytes,
    Bound(#[serde(with = "LimitForm")] Limit),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Problem", rename_all = "snake_case")]
enum ProblemForm {
    Empty,
    Zero,
    Duplicate,
    Unordered,
    OutOfRange,
    TooLarge,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Limit", rename_all = "snake_case")]
enum LimitForm {
    Owners,
    PinsPerOwner,
    Pins,
    BytesPinned,
    BytesUnscoped,
    BytesInDoubt,
    BytesQuarantined,
    Shards,
    ObjectsPerShard,
    ObjectsPerCheckpoint,
    GenerationsPerEndpoint,
    ReferencesPerTurn,
    Candidates,
    Answers,
    Conversations,
    ExpiredTurns,
    CommandsPerList,
    ConversationBytes,
    JobBytes,
    Turns,
    Unanswered,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Genesis", deny_unknown_fields)]
pub(crate) struct GenesisForm {
    #[serde(with = "text")]
    namespace: Namespace,
    #[serde(with = "text")]
    epoch: Epoch,
    #[serde(with = "text")]
    operator: OwnerId,
    #[serde(with = "PolicyForm")]
    policy: Policy,
    #[serde(with = "LimitsForm")]
    limits: Limits,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Gauges", deny_unknown_fields)]
struct GaugesForm {
    owners: u64,
    pins: u64,
    bytes_pinned: u64,
    bytes_unscoped: u64,
    bytes_in_doubt: u64,
    bytes_quarantined: u64,
    checkpoints: u64,
    bytes: u64,
    bytes_retained: u64,
    turns: u64,
    conversations: u64,
    expired_turns: u64,
    collectable: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Blocker", rename_all = "snake_case", deny_unknown_fields)]
enum BlockerForm {
    Retained {
        #[serde(with = "text")]
        turn: TurnKey,
    },
    Unscoped,
    Pinned {
        #[serde(with = "text")]
        pin: PinId,
        save: bool,
    },
    WaitingForShard {
        shard: ShardIndex,
    },
    InFlight {
        #[serde(with = "text")]
        pin: PinId,
        #[serde(default)]
        shard: Option<ShardIndex>,
    },
    InDoubt {
        #[serde(with = "text")]
        pin: PinId,
    },
    Collectable,
    Collecting {
        left: u32,
        #[serde(with = "text::list")]
        refused: Vec<ObjectId>,
    },
    Quarantined {
        #[serde(with = "text::list")]
        objects: Vec<ObjectId>,
    },
    Lost,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Verdict", rename_all = "snake_case")]
enum VerdictForm {
    Counted,
    Stray,
    NotOurs,
}

/// The answers of a `Pin`.
mod pinned {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{CheckpointId, Few, ManifestDigest, Pinned, text};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct One {
        #[serde(with = "text")]
        checkpoint: CheckpointId,
        #[serde(with = "text")]
        digest: ManifestDigest,
    }

    pub(crate) fn serialize<S: Serializer>(
        pinned: &Few<Pinned, 8>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let one = |pinned: &Pinned| {
            let Pinned { checkpoint, digest } = *pinned;
            One { checkpoint, digest }
        };
        pinned.iter().map(one).collect::<Vec<_>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Few<Pinned, 8>, D::Error> {
        let mut pinned = Few::new();
        for One { checkpoint, digest } in Vec::<One>::deserialize(deserializer)? {
            if !pinned.push(Pinned { checkpoint, digest }) {
                return Err(D::Error::custom("expected at most 8 answers"));
            }
        }
        Ok(pinned)
    }
}

/// What keeps a checkpoint, if it has a record.
mod optional_blockers {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Blocker, BlockerForm, Blockers, CheckpointId, text};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct All {
        #[serde(with = "text")]
        checkpoint: CheckpointId,
        bytes: u64,
        blockers: Vec<One>,
    }

    #[derive(Serialize, Deserialize)]
    struct One(#[serde(with = "BlockerForm")] Blocker);

    pub(crate) fn serialize<S: Serializer>(
        blockers: &Option<Blockers>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let all = |all: &Blockers| All {
            checkpoint: all.checkpoint,
            bytes: all.bytes,
            blockers: all.blockers.iter().cloned().map(One).collect(),
        };
        blockers.as_ref().map(all).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Blockers>, D::Error> {
        let all = |All { checkpoint, bytes, blockers }| Blockers {
            checkpoint,
            bytes,
            blockers: blockers.into_iter().map(|One(blocker)| blocker).collect(),
        };
        Ok(Option::<All>::deserialize(deserializer)?.map(all))
    }
}

/// The verdicts of an audit.
mod verdicts {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Verdict, VerdictForm};

    #[derive(Serialize, Deserialize)]
    struct One(#[serde(with = "VerdictForm")] Verdict);

    pub(crate) fn serialize<S: Serializer>(
        verdicts: &[Verdict],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        verdicts.iter().copied().map(One).collect::<Vec<_>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Verdict>, D::Error> {
        let all = Vec::<One>::deserialize(deserializer)?;
        Ok(all.into_iter().map(|One(verdict)| verdict).collect())
    }
}
