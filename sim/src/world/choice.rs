//! The choices of a World: everything that can happen next.
//!
//! A choice names things so that it keeps its meaning, as far as it can, when steps before it are
//! left out: a job by its process and its number there, a message by the operation that it carries.
//! What is no choice any more gives way to the nearest one.

use pinfold_core::id::{Generation, ObjectId};
use pinfold_core::outcome::Evidence;

use crate::seen::MoveId;

/// A transfer of a process: the process, and which of its transfers, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// Whose.
    pub process: u8,
    /// Its number there.
    pub number: u16,
}

/// A message: what it carries, and from whom. Its answer has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// A registration of one life of a process.
    Register {
        /// Whose.
        process: u8,
        /// Which life.
        life: u16,
    },
    /// One command.
    Command {
        /// Whose.
        process: u8,
        /// Its life.
        life: u16,
        /// The operation's number.
        sequence: u64,
    },
    /// Two commands in one list, the second after the first.
    List {
        /// Whose.
        process: u8,
        /// Its life.
        life: u16,
        /// The numbers of the operations.
        sequences: [u64; 2],
    },
}

impl About {
    /// Who sent it.
    #[must_use]
    pub const fn process(self) -> u8 {
        match self {
            Self::Register { process, .. }
            | Self::Command { process, .. }
            | Self::List { process, .. } => process,
        }
    }

    /// In which of its lives.
    #[must_use]
    pub const fn life(self) -> u16 {
        match self {
            Self::Register { life, .. } | Self::Command { life, .. } | Self::List { life, .. } => {
                life
            }
        }
    }
}

/// A pin as a World names it: its operation by process and incarnation, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PinName {
    /// Whose.
    pub process: u8,
    /// The incarnation that took it.
    pub incarnation: u64,
    /// The operation's number.
    pub sequence: u64,
    /// Its place among the answers.
    pub place: u8,
}

/// What a save publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Publishes {
    /// Nothing: another rank does.
    Nothing,
    /// The unscoped mark.
    Unscoped,
    /// A turn: which conversation, and which turn in it.
    Turn(u8, u8),
}

/// What a process can be wrong about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// It publishes with a pin that nobody took.
    Publish,
    /// It settles a pin that nobody took.
    Settle,
    /// It releases a pin that nobody took.
    Release,
    /// It marks a pin that nobody took.
    Doubt,
    /// It publishes with the pin of another process.
    Foreign(PinName),
    /// It settles a shard that the pin does not claim.
    Shard(PinName),
    /// It settles a pin as still in use.
    Active(PinName),
    /// It says of an object that the checkpoint does not have that it is lost.
    Lost(Generation),
    /// It says of a checkpoint of which it has no pin that it is lost.
    NotHeld(Generation),
    /// It reports a delete that nobody asked for.
    Deleted(Generation),
    /// It reports the delete of an object that the checkpoint does not have.
    DeletedOther(Generation),
    /// It reports the delete of a checkpoint that was never prepared.
    DeletedNothing,
    /// It fences an incarnation of a process that nobody was given.
    Fence(u8),
    /// It speaks as an incarnation that nobody was given.
    Incarnation,
}

/// A command that a process sends by itself, beside its transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Mark or unmark a pin.
    Doubt(PinName, bool),
    /// Ask for delete work.
    Collect(u32),
    /// Report what became of delete work so far.
    Report(u16),
    /// An operator settles a pin.
    Settle(PinName, Evidence),
    /// An operator releases a pin.
    Release(PinName),
    /// An operator sets one of the two policies.
    Configure(u8),
    /// An operator forgets a conversation.
    Forget(u8),
    /// An operator clears a checkpoint's unscoped mark.
    Drop(Generation),
    /// An operator says that a checkpoint's manifest is lost.
    Lost(Generation),
    /// An operator bars an incarnation of a process.
    Fence(u8, u64),
    /// An operator forgets an owner.
    Retire(u8),
    /// Something that cannot be a command.
    Malformed,
    /// The last operation once more, with other content.
    Conflict,
    /// Something that is not so.
    Mistake(Mistake),
}

/// How a put goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PutEnd {
    /// The bytes are stored, the answer is ok, and the memory is done with.
    Ok,
    /// As before, but the memory may still be touched.
    OkUnretired,
    /// The host could not even begin.
    NotStarted,
    /// The answer is a failure. Whether the bytes are there, and whether the memory is done with.
    Failed {
        /// What the store made of the bytes.
        lands: Lands,
        /// The memory is done with.
        retired: bool,
    },
    /// The answer is ok, and nothing is there.
    OkAbsent,
    /// The answer is ok, and other bytes are there.
    OkGarbage,
    /// The answer is ok, and a byte is missing.
    OkShort,
}

/// When something that was begun takes effect in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lands {
    /// Now.
    Now,
    /// Later, or never.
    Later,
    /// Never.
    Never,
}

/// How a get goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GetEnd {
    /// Whatever the store holds arrives, or is said to be missing.
    Answered,
    /// As before, but the memory may still be touched.
    AnsweredUnretired,
    /// What the store holds arrives, and nobody verifies it.
    Unverified,
    /// Nobody knows; whether the memory is done with.
    Failed {
        /// The memory is done with.
        retired: bool,
    },
}

/// How the delete of one object goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeleteEnd {
    /// It is gone, and the answer says so.
    Gone,
    /// Busy or leased: definitely not in flight.
    Refused,
    /// Nobody knows; what happened.
    Unknown(Lands),
    /// Nothing is deleted: a probe that takes no lease says whether it is there.
    Probed,
}

/// What a host decides about a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostCall {
    /// A rank stops waiting for the others.
    GiveUp,
    /// The other ranks of a load hold the same.
    Concur,
    /// It asks again what it waits for.
    Proceed,
    /// It is cancelled.
    Cancel,
}

impl HostCall {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::GiveUp, Self::Concur, Self::Proceed, Self::Cancel];
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Passage {
    /// Its process sends it again.
    Resend,
    /// Its process sends two unanswered commands as a list.
    SendList,
    /// The request reaches the coordinator.
    Deliver,
    /// It reaches the coordinator, and will once more.
    Duplicate,
    /// It reaches the coordinator with another epoch.
    Misaddress,
    /// It had arrived, and is under way once more.
    Replay,
    /// It is lost.
    Lose,
    /// The answer reaches its process.
    Answer,
    /// It reaches its process, and will once more.
    DuplicateAnswer,
    /// It is lost.
    LoseAnswer,
}

impl Passage {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Resend,
        Self::SendList,
        Self::Deliver,
        Self::Duplicate,
        Self::Misaddress,
        Self::Replay,
        Self::Lose,
        Self::Answer,
        Self::DuplicateAnswer,
        Self::LoseAnswer,
    ];
}

/// What becomes of the coordinator, or of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coordinate {
    /// It does a follow-up, without input.
    FollowUp,
    /// It writes and syncs what it decided.
    Sync,
    /// It begins to write what it decided.
    Write,
    /// What was written is synced.
    Commit,
    /// The sync fails; so many of the written bytes are on disk.
    FailSync(u32),
    /// It dies; so many of the written bytes are on disk.
    Crash(u32),
    /// It comes back with what the disk holds.
    Restart,
    /// The disk's journal becomes a snapshot.
    Compact,
}

/// What becomes of a stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectChange {
    /// A delete that nobody waits for any more takes effect.
    LandDelete,
    /// The store loses it.
    Vanish,
    /// The store had lost it, and has it again.
    Return,
    /// Its bytes are damaged.
    Damage,
    /// It is a stray, and deleted.
    Sweep,
}

impl ObjectChange {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::LandDelete, Self::Vanish, Self::Return, Self::Damage, Self::Sweep];
}

/// Everything that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// A process registers, for the first time in this life or again with what it was told.
    Register(u8),
    /// A process dies and comes back with nothing; what it had begun goes on.
    Die(u8),
    /// A worker begins a save.
    Save {
        /// Which worker.
        process: u8,
        /// Of which position.
        endpoint: u8,
        /// In which geometry.
        geometry: u8,
        /// Which attempt.
        attempt: u16,
        /// Which shards, as bits.
        shards: u8,
        /// What it publishes.
        publishes: Publishes,
        /// Its host compares with other ranks, where there are any.
        compares: bool,
    },
    /// A worker begins a load.
    Load {
        /// Which worker.
        process: u8,
        /// Which positions, as bits; the highest is the longest.
        endpoints: u8,
        /// How many to pin at most.
        limit: u8,
        /// It is one of several ranks, which choose and adopt together.
        compares: bool,
    },
    /// The ranks of an attempt compare their checkpoints.
    Agree(u16),
    /// A worker's host decides something about one of its transfers.
    Host(JobId, HostCall),
    /// A worker publishes one more turn, or the unscoped mark, with a transfer's pin.
    Publish(JobId, Publishes),
    /// A process sends a command by itself.
    Tell(u8, Act),
    /// Something becomes of a message.
    Message(About, Passage),
    /// Something becomes of the coordinator, or of its disk.
    Coordinator(Coordinate),
    /// A put comes to its end.
    Put(MoveId, PutEnd),
    /// A get comes to its end.
    Get(MoveId, GetEnd),
    /// A check is answered; known, or not.
    Check(MoveId, bool),
    /// The memory of a move is done with.
    Retire(MoveId),
    /// Bytes that the store still held land.
    Land(MoveId),
    /// The next object of delete work is deleted.
    Delete(u16, DeleteEnd),
    /// Delete work is forgotten by who had it.
    DropWork(u16),
    /// Something becomes of a stored object.
    Object(Generation, ObjectId, ObjectChange),
    /// The store restarts: whatever was under way failed.
    RestartStore,
    /// The store is listed, and the coordinator asked about every key.
    Audit,
    /// Somebody asks why a checkpoint is still here; without a generation, how much there is.
    Look(Generation),
}

impl Choice {
    /// The process that it is about, where it is about one.
    #[must_use]
    pub fn process(self) -> Option<u8> {
        match self {
            Self::Register(process)
            | Self::Die(process)
            | Self::Save { process, .. }
            | Self::Load { process, .. }
            | Self::Tell(process, _) => Some(process),
            Self::Host(job, _) | Self::Publish(job, _) => Some(job.process),
            Self::Message(about, _) => Some(about.process()),
            Self::Put(id, _)
            | Self::Get(id, _)
            | Self::Check(id, _)
            | Self::Retire(id)
            | Self::Land(id) => Some(parts_of(id).0.process),
            Self::Agree(_)
            | Self::Coordinator(_)
            | Self::Delete(..)
            | Self::DropWork(_)
            | Self::Object(..)
            | Self::RestartStore
            | Self::Audit
            | Self::Look(_) => None,
        }
    }
}

/// The name of a transfer's move or check, by its number there, from 1.
#[must_use]
pub fn move_id(job: JobId, number: u16) -> MoveId {
    let JobId { process, number: transfer } = job;
    MoveId(u64::from(process) << 32 | u64::from(transfer) << 16 | u64::from(number))
}

/// The transfer and the number that a move's name stands for.
#[must_use]
pub fn parts_of(id: MoveId) -> (JobId, u16) {
    let low = |shift: u32| u16::try_from(id.0 >> shift & 0xffff).unwrap_or(0);
    let process = u8::try_from(id.0 >> 32 & 0xff).unwrap_or(0);
    (JobId { process, number: low(16) }, low(0))
}
