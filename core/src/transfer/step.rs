//! What a transfer asks of its host, and what the host reports back.

use crate::catalog::Command;
use crate::id::{CheckpointId, EndpointId, Key, ObjectId};
use crate::manifest::ObjectName;
use crate::object::{self, Digest, TRAILER_BYTES, TrailerError};

/// What the host does next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Send a command under a new [`OpId`](crate::id::OpId); give its answer to
    /// [`Transfer::answered`](super::Transfer::answered).
    Ask(Command),
    /// Compare with the other ranks: every one must stand at this step with this checkpoint. Give
    /// the result to [`Transfer::agreed`](super::Transfer::agreed); a rank that ended without
    /// standing here disagrees.
    Agree {
        /// This rank's checkpoint.
        checkpoint: CheckpointId,
    },
    /// Put an object, a private one with its trailer. Its source stays untouched until retired.
    Put {
        /// Which one.
        object: ObjectName,
        /// Its bytes in the store.
        bytes: u64,
    },
    /// Ask the store whether the object is there and how large it is.
    Check {
        /// Which one.
        object: ObjectName,
        /// The size that it must have.
        bytes: u64,
    },
    /// Get an object into memory that nobody has adopted, for every shard of this transfer that
    /// holds its group. A private one is verified against its trailer.
    Get {
        /// Which one.
        object: ObjectName,
        /// Its bytes in the store.
        bytes: u64,
    },
    /// Call [`Transfer::proceed`](super::Transfer::proceed) when asking again makes sense: another
    /// rank has settled, or some time has passed. When another rank failed for good, cancel; when
    /// it published, say so by
    /// [`Transfer::published_elsewhere`](super::Transfer::published_elsewhere).
    Wait,
    /// Choose among [`Transfer::pinned`](super::Transfer::pinned), with the other ranks, by
    /// [`Transfer::choose`](super::Transfer::choose) or
    /// [`Transfer::choose_longest`](super::Transfer::choose_longest).
    Choose,
    /// Give the manifest of this candidate to [`Transfer::described`](super::Transfer::described).
    Describe {
        /// The candidate.
        endpoint: EndpointId,
    },
    /// Read the stored manifest, and give its payload to
    /// [`Transfer::manifest_read`](super::Transfer::manifest_read).
    ReadManifest {
        /// Its key's checkpoint.
        checkpoint: CheckpointId,
        /// Its key's object.
        object: ObjectId,
    },
    /// Adopt everything that arrived, now and as a whole. Taking this step is the adoption.
    Adopt {
        /// The checkpoint that was restored.
        checkpoint: CheckpointId,
    },
}

/// What became of a step about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completion {
    /// Of [`Step::Put`].
    Put {
        /// What the store answered.
        answer: PutAnswer,
        /// Whether nobody reads the source any more.
        retired: bool,
    },
    /// Of [`Step::Get`].
    Got {
        /// What the store answered and the verification found.
        answer: GetAnswer,
        /// Whether nobody writes the destination any more, nor reads it to verify.
        retired: bool,
    },
    /// Of [`Step::Check`].
    Checked(CheckAnswer),
    /// Of a put or a get, answered or not: nobody touches its memory any more.
    Retired,
}

/// How a put went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PutAnswer {
    /// A clean success. For a shared object also: somebody else's is there already.
    Stored,
    /// The host never began it; no byte was read.
    NotStarted,
    /// Anything else: refused, timed out, lost, unclear.
    Failed,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckAnswer {
    /// It is there.
    Present {
        /// With so many bytes.
        bytes: u64,
    },
    /// It is definitely not there.
    Absent,
    /// It can definitely not be read.
    Unreadable,
    /// The outcome is unknown.
    Unknown,
}

/// How a get went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GetAnswer {
    /// A shared object arrived.
    Arrived {
        /// With so many bytes.
        bytes: u64,
    },
    /// A private object arrived; its trailer names its key, its length and its checksum.
    Verified {
        /// Its bytes with the trailer.
        bytes: u64,
    },
    /// It is definitely not there.
    Absent,
    /// It is there with another size, and was not read.
    WrongSize {
        /// This one.
        bytes: u64,
    },
    /// It arrived, and its trailer does not fit.
    WrongBytes,
    /// It can definitely not be read.
    Unreadable,
    /// The host never began it; no byte was written.
    NotStarted,
    /// Anything else: timed out, lost, unclear.
    Failed,
}

impl GetAnswer {
    /// The answer for a private object whose payload was summed where it lies.
    #[must_use]
    pub fn judge(
        key: &Key,
        payload_bytes: u64,
        checksum: Digest,
        trailer: &[u8; TRAILER_BYTES as usize],
    ) -> Self {
        match object::verify_parts(key, payload_bytes, checksum, trailer) {
            Ok(()) => Self::Verified { bytes: payload_bytes.saturating_add(TRAILER_BYTES.into()) },
            Err(error) => error.into(),
        }
    }
}

impl From<TrailerError> for GetAnswer {
    /// What a trailer that does not fit says about the object.
    fn from(error: TrailerError) -> Self {
        match error {
            // A newer build may know it, so it is not known to be wrong.
            TrailerError::UnknownVersion { .. } => Self::Failed,
            TrailerError::TooShort { .. }
            | TrailerError::BadMagic
            | TrailerError::Damaged
            | TrailerError::OtherKey { .. }
            | TrailerError::Length { .. }
            | TrailerError::Checksum { .. } => Self::WrongBytes,
        }
    }
}
