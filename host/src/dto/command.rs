//! What a client asks, as data.
//!
//! Each form is checked by the compiler against the type that it stands for, so that a new command
//! cannot be left out.

use pinfold_core::catalog::{Command, Prepare, Role, Shape, ShardShape};
use pinfold_core::engine::Query;
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Incarnation, ManifestDigest, ObjectId,
    OwnerId, PinId, ShardIndex,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Loss, LostObject, TurnKey};
use pinfold_core::policy::{Limits, Policy, Quarantine};
use serde::{Deserialize, Serialize};

use super::text;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Command", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum CommandForm {
    Prepare(#[serde(with = "PrepareForm")] Prepare),
    Settle {
        #[serde(with = "text")]
        pin: PinId,
        #[serde(default)]
        shard: Option<ShardIndex>,
        #[serde(with = "EvidenceForm")]
        evidence: Evidence,
    },
    Publish {
        #[serde(with = "text")]
        pin: PinId,
        #[serde(with = "text::optional", default)]
        turn: Option<TurnKey>,
    },
    Release {
        #[serde(with = "text")]
        pin: PinId,
    },
    Pin {
        #[serde(with = "text::list")]
        candidates: Vec<EndpointId>,
        limit: u32,
    },
    Lost {
        #[serde(with = "text")]
        checkpoint: CheckpointId,
        #[serde(with = "LostObjectForm")]
        object: LostObject,
        #[serde(with = "LossForm")]
        why: Loss,
    },
    Doubt {
        #[serde(with = "text")]
        pin: PinId,
        doubtful: bool,
    },
    Collect {
        limit: u32,
    },
    Deleted {
        #[serde(with = "text")]
        checkpoint: CheckpointId,
        #[serde(with = "outcomes")]
        outcomes: Vec<(ObjectId, DeleteOutcome)>,
    },
    Configure {
        #[serde(with = "PolicyForm")]
        policy: Policy,
        #[serde(with = "LimitsForm")]
        limits: Limits,
    },
    Forget {
        #[serde(with = "text")]
        conversation: ConversationId,
    },
    Drop {
        #[serde(with = "text")]
        checkpoint: CheckpointId,
    },
    Fence {
        #[serde(with = "text")]
        owner: OwnerId,
        incarnation: Incarnation,
    },
    Retire {
        #[serde(with = "text")]
        owner: OwnerId,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Prepare", deny_unknown_fields)]
struct PrepareForm {
    #[serde(with = "text")]
    attempt: AttemptId,
    #[serde(with = "text")]
    endpoint: EndpointId,
    #[serde(with = "text")]
    digest: ManifestDigest,
    #[serde(with = "shape")]
    shape: Shape,
    shards: Vec<ShardIndex>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Query", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum QueryForm {
    Job,
    Gauges,
    Blockers(#[serde(with = "text")] CheckpointId),
    Audit(Vec<String>),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Role", rename_all = "snake_case")]
pub(crate) enum RoleForm {
    Worker,
    Operator,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Evidence", rename_all = "snake_case")]
pub(crate) enum EvidenceForm {
    NotExposed,
    Active,
    Quiescing,
    QuiescedSuccess,
    QuiescedFailure,
    InDoubt,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DeleteOutcome", rename_all = "snake_case")]
pub(crate) enum DeleteOutcomeForm {
    Gone,
    Refused,
    Unknown,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LostObject", rename_all = "snake_case")]
enum LostObjectForm {
    Private(#[serde(with = "text")] ObjectId),
    Shared(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Loss", rename_all = "snake_case")]
enum LossForm {
    Absent,
    WrongSize,
    WrongBytes,
    Unreadable,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Quarantine", rename_all = "snake_case")]
enum QuarantineForm {
    Generation,
    Endpoint,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Policy", deny_unknown_fields)]
pub(crate) struct PolicyForm {
    turns: u32,
    #[serde(default)]
    conversation_bytes: Option<u64>,
    #[serde(default)]
    job_bytes: Option<u64>,
    #[serde(with = "QuarantineForm")]
    quarantine: Quarantine,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Limits", deny_unknown_fields)]
pub(crate) struct LimitsForm {
    owners: u32,
    pins_per_owner: u32,
    pins: u32,
    bytes_pinned: u64,
    bytes_unscoped: u64,
    bytes_in_doubt: u64,
    bytes_quarantined: u64,
    shards: u32,
    objects_per_shard: u32,
    objects_per_checkpoint: u32,
    generations_per_endpoint: u32,
    references_per_turn: u32,
    candidates: u32,
    answers: u32,
    turns: u32,
    conversations: u32,
    expired_turns: u32,
    commands_per_list: u32,
    unanswered: u32,
}

/// A policy that may be missing.
pub(crate) mod optional_policy {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Policy, PolicyForm};

    #[derive(Serialize, Deserialize)]
    struct Whole(#[serde(with = "PolicyForm")] Policy);

    pub(crate) fn serialize<S: Serializer>(
        policy: &Option<Policy>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        policy.map(Whole).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Policy>, D::Error> {
        Ok(Option::<Whole>::deserialize(deserializer)?.map(|Whole(policy)| policy))
    }
}

/// A shape as the list of its shards.
mod shape {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Shape, ShardShape};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shard {
        objects: u32,
        bytes: u64,
    }

    pub(crate) fn serialize<S: Serializer>(
        shape: &Shape,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let shards: Vec<Shard> = shape
            .shards()
            .iter()
            .map(|ShardShape { objects, bytes }| Shard { objects: *objects, bytes: *bytes })
            .collect();
        shards.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Shape, D::Error> {
        let shards = Vec::<Shard>::deserialize(deserializer)?;
        let shards = shards
            .iter()
            .map(|Shard { objects, bytes }| ShardShape { objects: *objects, bytes: *bytes });
        Shape::new(&shards.collect::<Vec<_>>()).map_err(D::Error::custom)
    }
}

/// Objects and what became of their deletion.
mod outcomes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{DeleteOutcome, DeleteOutcomeForm, ObjectId, text};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct One {
        #[serde(with = "text")]
        object: ObjectId,
        #[serde(with = "DeleteOutcomeForm")]
        outcome: DeleteOutcome,
    }

    pub(crate) fn serialize<S: Serializer>(
        outcomes: &[(ObjectId, DeleteOutcome)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let one = |(object, outcome): &(ObjectId, DeleteOutcome)| One {
            object: *object,
            outcome: *outcome,
        };
        outcomes.iter().map(one).collect::<Vec<_>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(ObjectId, DeleteOutcome)>, D::Error> {
        let outcomes = Vec::<One>::deserialize(deserializer)?;
        Ok(outcomes.into_iter().map(|One { object, outcome }| (object, outcome)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct One(#[serde(with = "CommandForm")] Command);

    /// What the page of verbs shows is what is read; all but the one that is shown elsewhere.
    #[test]
    fn the_page_of_verbs_shows_each_command() {
        let page = include_str!("../../../docs/verbs.md");
        let (_, block) = page.split_once("```json\n").unwrap();
        let (block, _) = block.split_once("```").unwrap();
        let read = |line: &str| {
            let command: One =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            std::mem::discriminant(&command.0)
        };
        let mut verbs: Vec<_> = block.lines().map(read).collect();
        assert_eq!(verbs.len(), 13, "of 14");
        while let Some(verb) = verbs.pop() {
            assert!(!verbs.contains(&verb), "one of them twice");
        }
    }
}
