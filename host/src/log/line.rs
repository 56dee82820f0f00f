//! The lines of a log: the head, then one event each.

use pinfold_core::catalog::{Command, Register, Role};
use pinfold_core::engine::{Effect, Query, Request};
use pinfold_core::id::{
    CheckpointId, Epoch, Incarnation, ObjectId, OpId, OwnerId, PinId, ShardIndex, StartId,
};
use pinfold_core::outcome::DeleteOutcome;
use pinfold_core::policy::{Genesis, Policy};
use serde::{Deserialize, Serialize};

use crate::dto::{
    Answer, CommandForm, DeleteOutcomeForm, GenesisForm, ListedCommand, QueryForm, RoleForm,
    optional_policy, text,
};

/// What the head of every log calls its format.
pub const FORMAT: &str = "pinfold-log";
/// The version of the format that this code writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// The first line: whose log it is, and how much of the job's life it tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Always [`FORMAT`].
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The log begins with the job: whatever the coordinator decided stands in it. Else it starts
    /// in the middle, and what stood before is not known.
    pub from_genesis: bool,
    /// Every move of a private object's bytes is logged with its pin, and every delete and probe,
    /// so that the promises about memory and the store can be judged.
    pub moves: bool,
    /// How the job began; in a log that starts in the middle, the job as it was then.
    #[serde(with = "GenesisForm")]
    pub genesis: Genesis,
}

impl Head {
    /// The head of a log that begins with the job and logs no moves.
    #[must_use]
    pub fn new(genesis: Genesis) -> Self {
        let (format, version) = (FORMAT.to_string(), VERSION);
        Self { format, version, from_genesis: true, moves: false, genesis }
    }
}

/// One line behind the head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Its number: 1 for the first one behind the head of a log from genesis, and one more on each
    /// line, so that a line that is missing is seen.
    pub n: u64,
    /// What happened.
    pub event: Event,
}

/// One thing that the host saw. The order of the lines is the order in which the coordinator took
/// inputs and let answers out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The coordinator took a registration.
    Register {
        /// The epoch that the client believes in.
        #[serde(with = "text")]
        epoch: Epoch,
        /// Who registers.
        #[serde(with = "text")]
        owner: OwnerId,
        /// As what.
        #[serde(with = "RoleForm")]
        role: Role,
        /// The incarnation that it follows; 0 for none.
        after: Incarnation,
        /// Which start of its process this is.
        #[serde(with = "text")]
        start: StartId,
        /// The client's protocol version.
        version: u32,
        /// The policy that it expects, if it cares.
        #[serde(with = "optional_policy", default, skip_serializing_if = "Option::is_none")]
        expected_policy: Option<Policy>,
    },
    /// The coordinator took a command.
    Command {
        /// The epoch that the client believes in.
        #[serde(with = "text")]
        epoch: Epoch,
        /// Its operation.
        #[serde(with = "text")]
        op: OpId,
        /// What it asks.
        #[serde(with = "CommandForm")]
        command: Command,
    },
    /// The coordinator took a list of commands.
    List {
        /// The epoch that the client believes in.
        #[serde(with = "text")]
        epoch: Epoch,
        /// The commands, in order.
        commands: Vec<ListedCommand>,
    },
    /// The coordinator took a question.
    Query {
        /// The epoch that the client believes in.
        #[serde(with = "text")]
        epoch: Epoch,
        /// What it asks.
        #[serde(with = "QueryForm")]
        query: Query,
    },
    /// The coordinator was told to do a follow-up while it had no input.
    Idle,
    /// An answer left the coordinator.
    Reply {
        /// The line of the input.
        to: u64,
        /// What it says.
        answer: Answer,
    },
    /// Delete work left the coordinator.
    Work {
        /// The operation of the `Collect` that asked for it.
        #[serde(with = "text")]
        by: OpId,
        /// The checkpoint.
        #[serde(with = "text")]
        checkpoint: CheckpointId,
        /// The objects to delete.
        #[serde(with = "text::list")]
        objects: Vec<ObjectId>,
    },
    /// The coordinator ended, and with it whatever its disk had not synced.
    Crash,
    /// The coordinator is back with what its disk holds.
    Recovered {
        /// How many records its journal had, genesis and earlier recoveries included; without it
        /// nobody can tell which unanswered inputs it still knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        records: Option<u64>,
    },
    /// A move of bytes began.
    Began {
        /// Its number, never used again in the log.
        #[serde(rename = "move")]
        number: u64,
        /// Which way.
        way: Way,
        /// What is moved, by its whole key.
        key: String,
        /// Under which pin; a log with `moves` always says it.
        #[serde(with = "text::optional", default, skip_serializing_if = "Option::is_none")]
        pin: Option<PinId>,
    },
    /// The store answered a put.
    Put {
        /// The move.
        #[serde(rename = "move")]
        number: u64,
        /// What is known of it.
        outcome: PutResult,
    },
    /// A worker checked that an object of a save is there with its size.
    Confirmed {
        /// Under which pin it saves.
        #[serde(with = "text")]
        pin: PinId,
        /// The object's whole key.
        key: String,
    },
    /// Nobody touches the memory of a move any more.
    Retired {
        /// The move.
        #[serde(rename = "move")]
        number: u64,
    },
    /// A delete was asked of the store, and answered or given up.
    Delete {
        /// The whole key.
        key: String,
        /// Why it was deleted.
        why: Cause,
        /// What is known of it.
        #[serde(with = "DeleteOutcomeForm")]
        outcome: DeleteOutcome,
    },
    /// A key was looked for after a delete of it, without a lease: absent is gone, present is
    /// refused.
    Probed {
        /// The whole key.
        key: String,
        /// What is known of it.
        #[serde(with = "DeleteOutcomeForm")]
        outcome: DeleteOutcome,
    },
    /// The store lost or damaged an object by itself.
    StoreLost {
        /// The whole key.
        key: String,
    },
    /// A worker gave the memory of a shard that it was saving to somebody else.
    SourceReused {
        /// The pin of the save.
        #[serde(with = "text")]
        pin: PinId,
        /// The shard.
        shard: ShardIndex,
    },
    /// A worker gave the memory that it was loading into to somebody else.
    DestinationReused {
        /// The pin of the load.
        #[serde(with = "text")]
        pin: PinId,
    },
    /// A worker adopted what a load had brought.
    Adopted {
        /// The pin of the load.
        #[serde(with = "text")]
        pin: PinId,
        /// Of which checkpoint.
        #[serde(with = "text")]
        checkpoint: CheckpointId,
        /// Every object that it must have brought.
        memory: Vec<Held>,
    },
    /// A process of an owner died. What it had begun to move goes on moving.
    OwnerDied {
        /// Whose process.
        #[serde(with = "text")]
        owner: OwnerId,
        /// Its incarnation, if it had registered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        incarnation: Option<Incarnation>,
    },
    /// The keys that an audit asks about are all that the store held.
    Listed {
        /// The line of the audit's query, which stands above and is not answered yet.
        to: u64,
    },
}

/// Which way bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From a worker's memory into the store.
    Put,
    /// From the store into a worker's memory.
    Get,
}

/// What is known after a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PutResult {
    /// The whole object is there.
    Stored,
    /// It stored nothing, and will not later.
    Failed,
    /// Nobody knows whether it stored the object, or still will.
    Unknown,
}

/// Why a delete was asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A `Collect` handed it out.
    Work,
    /// An audit named the key a stray.
    Stray,
}

/// What a worker's memory holds of one object that it adopted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The object's whole key.
    pub key: String,
    /// What there is of it.
    pub bytes: Bytes,
}

/// What there is of an object in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bytes {
    /// All of its bytes.
    Right,
    /// Other bytes.
    Wrong,
    /// Nothing.
    Missing,
}

impl Event {
    /// That the coordinator took an input.
    #[must_use]
    pub fn taken(epoch: Epoch, request: Request) -> Self {
        match request {
            Request::Register(register) => {
                let Register { owner, role, after, start, version, expected_policy } = register;
                Self::Register { epoch, owner, role, after, start, version, expected_policy }
            }
            Request::Command(op, command) => Self::Command { epoch, op, command },
            Request::List(commands) => {
                let listed = |(op, command)| ListedCommand { op, command };
                Self::List { epoch, commands: commands.into_iter().map(listed).collect() }
            }
            Request::Query(query) => Self::Query { epoch, query },
        }
    }

    /// That delete work left the coordinator.
    #[must_use]
    pub fn handed_out(effect: Effect) -> Self {
        let Effect::Delete { by, checkpoint, objects } = effect;
        Self::Work { by, checkpoint, objects }
    }
}
