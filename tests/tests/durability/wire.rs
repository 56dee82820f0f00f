//! What a test and a node's process say to each other: a message is one line of hexadecimal digits.
//!
//! Protects the tests from a kill: a line counts once its end arrived, so a message that a kill cut
//! short is never taken for a whole one. It is no product protocol.

use std::io::{self, Write};

use pinfold_core::catalog::{Command, PROTOCOL_VERSION, Prepare, Register, Role};
use pinfold_core::engine::Request;
use pinfold_core::id::{
    CheckpointId, ConversationId, EndpointId, Incarnation, ObjectId, OpId, OwnerId, PinId, StartId,
};
use pinfold_core::outcome::{
    DeleteOutcome, Evidence, Loss, LostObject, Outcome, Rejection, TurnKey,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What every line of ours begins with; others are the test runner's.
const MARK: &str = "> ";

pub(crate) type Answer = Result<Outcome, Rejection>;

/// A request to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ask {
    Register { owner: OwnerId, role: Role, after: Incarnation, start: StartId },
    Command(OpId, Verb),
}

/// A command, in a form that has bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verb {
    Prepare(Prepare),
    Settle { pin: PinId, evidence: Evidence },
    Publish { pin: PinId, turn: Option<TurnKey> },
    Release { pin: PinId },
    Pin { candidates: Vec<EndpointId>, limit: u32 },
    Lost { checkpoint: CheckpointId, object: LostObject },
    Doubt { pin: PinId, doubtful: bool },
    Collect { limit: u32 },
    Deleted { checkpoint: CheckpointId, outcomes: Vec<(ObjectId, DeleteOutcome)> },
    Forget { conversation: ConversationId },
    Drop { checkpoint: CheckpointId },
    Fence { owner: OwnerId, incarnation: Incarnation },
}

/// To a node's process: a request of one of its clients, each of which has a thread there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) client: u8,
    pub(crate) ask: Ask,
}

/// From a node's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// It is about to open its folder.
    Starts,
    /// It answers from now on; how many bytes of a torn tail were cut.
    Opened { cut_bytes: u64 },
    /// It cannot start, or it ended by itself, and why.
    Ended { why: String },
    /// The answer to a client; none when the node is gone.
    Answer { client: u8, answer: Option<Answer> },
    /// Objects to delete.
    Work { checkpoint: CheckpointId, objects: Vec<ObjectId> },
    /// How many puts were stored, and which objects they were.
    Stored { keys: Vec<String> },
}

impl Ask {
    pub(crate) fn request(self) -> Request {
        match self {
            Self::Register { owner, role, after, start } => {
                let version = PROTOCOL_VERSION;
                let expected_policy = None;
                Request::Register(Register { owner, role, after, start, version, expected_policy })
            }
            Self::Command(op, verb) => Request::Command(op, verb.command()),
        }
    }
}

impl Verb {
    pub(crate) fn command(self) -> Command {
        match self {
            Self::Prepare(prepare) => Command::Prepare(prepare),
            Self::Settle { pin, evidence } => Command::Settle { pin, shard: None, evidence },
            Self::Publish { pin, turn } => Command::Publish { pin, turn },
            Self::Release { pin } => Command::Release { pin },
            Self::Pin { candidates, limit } => Command::Pin { candidates, limit },
            Self::Lost { checkpoint, object } => {
                Command::Lost { checkpoint, object, why: Loss::Absent }
            }
            Self::Doubt { pin, doubtful } => Command::Doubt { pin, doubtful },
            Self::Collect { limit } => Command::Collect { limit },
            Self::Deleted { checkpoint, outcomes } => Command::Deleted { checkpoint, outcomes },
            Self::Forget { conversation } => Command::Forget { conversation },
            Self::Drop { checkpoint } => Command::Drop { checkpoint },
            Self::Fence { owner, incarnation } => Command::Fence { owner, incarnation },
        }
    }
}

/// Writes a message as one line, with one call.
pub(crate) fn write(message: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
    let digits = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    out.write_all(format!("{MARK}{digits}\n").as_bytes())?;
    out.flush()
}

/// The message of a line; none when the line is not ours, or not whole.
pub(crate) fn read<T: DeserializeOwned>(line: &str) -> Option<T> {
    let digits = line.strip_suffix('\n')?.strip_prefix(MARK)?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    postcard::from_bytes(&bytes?).ok()
}

#[test]
fn a_line_that_was_cut_short_is_no_message() {
    let told = Told::Ended { why: "a reason".into() };
    let mut line = Vec::new();
    write(&told, &mut line).unwrap();
    let line = String::from_utf8(line).unwrap();
    assert_eq!(read(&line), Some(told));
    for end in 0..line.len() {
        assert_eq!(read::<Told>(&line[..end]), None);
    }
    assert_eq!(read::<Told>("running 1 test\n"), None);
}
