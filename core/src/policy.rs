//! What a job is started with, and the bounds it keeps.
//!
//! Policy and limits are journalled with genesis and with every `Configure`; nothing here is read
//! from a file or a clock.

use serde::{Deserialize, Serialize};

use crate::bounds::{
    MAX_ANSWERS, MAX_CANDIDATES, MAX_COMMANDS, MAX_GENERATIONS, MAX_OBJECTS, MAX_REFERENCES,
    MAX_ROWS, MAX_SHARDS, MAX_TURNS, MAX_UNANSWERED,
};
use crate::id::{Epoch, Namespace, OwnerId};
use crate::outcome::{Field, Limit, Malformed, Problem};

/// Which checkpoints stay: the job's retention policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Policy {
    /// N: how many live turns a conversation keeps, at least 1.
    pub turns: u32,
    /// How many bytes the live turns of one conversation may hold; none means unbounded.
    pub conversation_bytes: Option<u64>,
    /// How many bytes the live turns of the whole job may hold; none means unbounded.
    pub job_bytes: Option<u64>,
    /// What a quarantined checkpoint keeps from being minted again.
    pub quarantine: Quarantine,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            turns: 5,
            conversation_bytes: None,
            job_bytes: None,
            quarantine: Quarantine::Generation,
        }
    }
}

impl Policy {
    /// Judges the policy against the limits it must fit.
    pub(crate) fn form(&self, limits: &Limits) -> Result<(), Malformed> {
        if self.turns == 0 {
            return Err(Malformed { field: Field::Turns, problem: Problem::Zero });
        }
        if self.turns > limits.turns {
            return Err(Malformed { field: Field::Turns, problem: Problem::TooLarge });
        }
        if self.conversation_bytes == Some(0) {
            return Err(Malformed { field: Field::ConversationBytes, problem: Problem::Zero });
        }
        if self.job_bytes == Some(0) {
            return Err(Malformed { field: Field::JobBytes, problem: Problem::Zero });
        }
        Ok(())
    }
}

/// What an unknown deletion outcome bars while it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Quarantine {
    /// Only the generation itself: keys are never reused, so a new one cannot be hit.
    #[default]
    Generation,
    /// The whole endpoint: no new generation of it is minted meanwhile.
    Endpoint,
}

/// The bounds of a job. What is a running sum has its gauge in [`Gauges`].
///
/// Limits refuse only what adds; a verb that lifts is never refused by one. None may exceed its
/// fixed [bound](crate::bounds).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    /// Owners known at once.
    pub owners: u32,
    /// Live pins of one owner, over all its incarnations.
    pub pins_per_owner: u32,
    /// Live pins in all.
    pub pins: u32,
    /// Bytes of checkpoints with a pin, each once.
    pub bytes_pinned: u64,
    /// Bytes of checkpoints with the unscoped mark.
    pub bytes_unscoped: u64,
    /// Bytes that pins in doubt stand for; beyond it no new pin is taken.
    pub bytes_in_doubt: u64,
    /// Bytes of quarantined checkpoints; beyond it nothing new is prepared.
    pub bytes_quarantined: u64,
    /// Shards of one checkpoint.
    pub shards: u32,
    /// Private objects of one shard, its manifest included.
    pub objects_per_shard: u32,
    /// Private objects of one checkpoint.
    pub objects_per_checkpoint: u32,
    /// Records of one endpoint at once.
    pub generations_per_endpoint: u32,
    /// Checkpoints that one turn refers to.
    pub references_per_turn: u32,
    /// Candidates of one `Pin`.
    pub candidates: u32,
    /// Answers of one `Pin`, at most 8.
    pub answers: u32,
    /// Live turns of a conversation: the largest N that a policy may ask for.
    pub turns: u32,
    /// Conversations known at once, forgotten ones included.
    pub conversations: u32,
    /// Expired turns and forgotten conversations remembered.
    pub expired_turns: u32,
    /// Commands in one list.
    pub commands_per_list: u32,
    /// W: unanswered commands of one owner, and so how many receipts are kept.
    pub unanswered: u32,
}

impl Default for Limits {
    fn default() -> Self {
        const TIB: u64 = 1 << 40;
        Self {
            owners: 4096,
            pins_per_owner: 65_536,
            pins: 1_048_576,
            bytes_pinned: 1024 * TIB,
            bytes_unscoped: 64 * TIB,
            bytes_in_doubt: 64 * TIB,
            bytes_quarantined: 64 * TIB,
            shards: 1024,
            objects_per_shard: 4096,
            objects_per_checkpoint: 65_536,
            generations_per_endpoint: 64,
            references_per_turn: 16,
            candidates: 256,
            answers: 8,
            turns: 1024,
            conversations: 16_777_216,
            expired_turns: 268_435_456,
            commands_per_list: 64,
            unanswered: 64,
        }
    }
}

impl Limits {
    /// The counts among them, each with its name and the bound that it may not exceed.
    const fn counts(&self) -> [(Limit, u32, u32); 15] {
        [
            (Limit::Owners, self.owners, MAX_ROWS),
            (Limit::PinsPerOwner, self.pins_per_owner, MAX_ROWS),
            (Limit::Pins, self.pins, MAX_ROWS),
            (Limit::Shards, self.shards, MAX_SHARDS),
            (Limit::ObjectsPerShard, self.objects_per_shard, MAX_OBJECTS),
            (Limit::ObjectsPerCheckpoint, self.objects_per_checkpoint, MAX_OBJECTS),
            (Limit::GenerationsPerEndpoint, self.generations_per_endpoint, MAX_GENERATIONS),
            (Limit::ReferencesPerTurn, self.references_per_turn, MAX_REFERENCES),
            (Limit::Candidates, self.candidates, MAX_CANDIDATES),
            (Limit::Answers, self.answers, MAX_ANSWERS),
            (Limit::Turns, self.turns, MAX_TURNS),
            (Limit::Conversations, self.conversations, MAX_ROWS),
            (Limit::ExpiredTurns, self.expired_turns, MAX_ROWS),
            (Limit::CommandsPerList, self.commands_per_list, MAX_COMMANDS),
            (Limit::Unanswered, self.unanswered, MAX_UNANSWERED),
        ]
    }

    /// Judges the limits themselves: each count at least 1, and within its bound. Bytes may be
    /// anything: 0 refuses all, the largest number nothing.
    pub(crate) fn form(&self) -> Result<(), Malformed> {
        for (limit, value, most) in self.counts() {
            let field = Field::Bound(limit);
            if value == 0 {
                return Err(Malformed { field, problem: Problem::Zero });
            }
            if value > most {
                return Err(Malformed { field, problem: Problem::TooLarge });
            }
        }
        Ok(())
    }
}

/// How a job begins: the first record of every journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Genesis {
    /// The job's namespace.
    pub namespace: Namespace,
    /// The job's epoch: 128 random bits from the host, never typed by a person.
    pub epoch: Epoch,
    /// The first operator; never retired.
    pub operator: OwnerId,
    /// What stays.
    pub policy: Policy,
    /// The bounds.
    pub limits: Limits,
}

impl Genesis {
    /// Judges the genesis before anything is built from it.
    ///
    /// # Errors
    /// [`Malformed`] names the field that cannot be used.
    pub fn form(&self) -> Result<(), Malformed> {
        if self.epoch.is_empty() {
            return Err(Malformed { field: Field::Epoch, problem: Problem::Empty });
        }
        if self.operator.is_empty() {
            return Err(Malformed { field: Field::Owner, problem: Problem::Empty });
        }
        self.limits.form()?;
        self.policy.form(&self.limits)
    }
}

/// What a job holds at the moment: the running sums that limits bound, and the totals beside them.
///
/// A sum that is larger than a number can be is shown as the largest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gauges {
    /// Owners known.
    pub owners: u64,
    /// Live pins.
    pub pins: u64,
    /// Bytes of checkpoints with a pin, each once.
    pub bytes_pinned: u64,
    /// Bytes of checkpoints with the unscoped mark.
    pub bytes_unscoped: u64,
    /// Bytes that pins in doubt stand for.
    pub bytes_in_doubt: u64,
    /// Bytes of quarantined checkpoints.
    pub bytes_quarantined: u64,
    /// Checkpoints with a record.
    pub checkpoints: u64,
    /// Bytes of all checkpoints with a record.
    pub bytes: u64,
    /// Bytes that live turns refer to, each checkpoint once.
    pub bytes_retained: u64,
    /// Live turns.
    pub turns: u64,
    /// Conversations known, forgotten ones included.
    pub conversations: u64,
    /// Expired turns and forgotten conversations remembered.
    pub expired_turns: u64,
    /// Checkpoints that are collectable or being collected.
    pub collectable: u64,
}
