//! Delete work on its way to who asked for it.

use pinfold_core::catalog::Command;
use pinfold_core::engine::Effect;
use pinfold_core::id::{CheckpointId, Incarnation, ObjectId, OpId, OwnerId};
use pinfold_core::outcome::DeleteOutcome;
use serde::{Deserialize, Serialize};

use super::{Answer, text};

/// Delete work of one checkpoint that is handed out and not reported yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkItem {
    /// Its number: later work has a higher one.
    pub number: u64,
    /// Who asked for it.
    #[serde(with = "text")]
    pub owner: OwnerId,
    /// In which incarnation.
    pub incarnation: Incarnation,
    /// The operation of the `Collect`.
    #[serde(with = "text")]
    pub by: OpId,
    /// The checkpoint.
    #[serde(with = "text")]
    pub checkpoint: CheckpointId,
    /// What is not reported yet.
    pub objects: Vec<WorkObject>,
    /// For how long it has been handed out.
    pub age_seconds: u64,
}

/// One object to delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkObject {
    /// The object.
    #[serde(with = "text")]
    pub object: ObjectId,
    /// Its whole key.
    pub key: String,
}

/// Some delete work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkList {
    /// In the order in which it was handed out.
    pub work: Vec<WorkItem>,
}

/// An answer, and the delete work that what was asked handed out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerAndWork {
    /// The answer.
    pub answer: Answer,
    /// What each `Collect` of the request handed out, and nobody reported yet.
    pub work: Vec<WorkItem>,
}

impl WorkItem {
    /// The report on it: what became of each object, in order.
    #[must_use]
    pub fn report(&self, outcome: impl Fn(&WorkObject) -> DeleteOutcome) -> Command {
        let outcomes = self.objects.iter().map(|it| (it.object, outcome(it))).collect();
        Command::Deleted { checkpoint: self.checkpoint, outcomes }
    }

    /// What left the engine.
    #[must_use]
    pub fn effect(&self) -> Effect {
        let objects = self.objects.iter().map(|it| it.object).collect();
        Effect::Delete { by: self.by, checkpoint: self.checkpoint, objects }
    }
}
