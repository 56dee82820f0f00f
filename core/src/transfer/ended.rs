//! How a transfer ends.

use crate::id::{CheckpointId, ShardIndex};
use crate::manifest::ObjectName;
use crate::outcome::{Evidence, Loss, Rejection, TurnKey};

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// Every shard of this save arrived and was confirmed.
    Saved {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// What became of its publication.
        published: Published,
    },
    /// The position is kept already, so nothing was moved.
    AlreadyPublished {
        /// The checkpoint that keeps it.
        checkpoint: CheckpointId,
        /// What became of the publication on it.
        published: Published,
    },
    /// The catalog did not let the save begin; it holds nothing.
    Skipped(Rejection),
    /// The ranks were answered different checkpoints: take a new attempt.
    Disagreed {
        /// What this rank was answered.
        checkpoint: CheckpointId,
    },
    /// An object failed, and so the whole attempt: take a new attempt.
    Failed {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The first object that failed.
        object: ObjectName,
        /// How.
        why: Fault,
    },
    /// An operator had settled a shard before it was done.
    Overruled {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The shard.
        shard: ShardIndex,
        /// The evidence that stands.
        stands: Evidence,
    },
    /// The save was cancelled before every shard was saved.
    Cancelled {
        /// The checkpoint, if one was held.
        checkpoint: Option<CheckpointId>,
    },
    /// The catalog does not listen to this incarnation, or its pin, any more. What was started is
    /// retired nevertheless.
    Barred {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The catalog's words.
        why: Rejection,
    },
    /// Everything of one checkpoint was adopted.
    Restored {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// Nothing was adopted.
    Missed(Miss),
}

impl Ended {
    /// True when the position may be saved again at once, under a new attempt.
    #[must_use]
    pub const fn needs_new_attempt(&self) -> bool {
        match self {
            Self::Skipped(Rejection::ShardTaken { .. } | Rejection::AttemptFailed)
            | Self::Disagreed { .. }
            | Self::Failed { .. }
            | Self::Overruled { .. } => true,
            Self::Skipped(_)
            | Self::Saved { .. }
            | Self::AlreadyPublished { .. }
            | Self::Cancelled { .. }
            | Self::Barred { .. }
            | Self::Restored { .. }
            | Self::Missed(_) => false,
        }
    }
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Published {
    /// It stands.
    Here {
        /// The turn that expired with it, if one did.
        expired: Option<TurnKey>,
        /// More is due, and follows by itself.
        follow_ups: bool,
    },
    /// Another rank was to publish, or did.
    Elsewhere,
    /// It was refused.
    Refused(Rejection),
    /// The transfer was cancelled before.
    Withheld,
}

/// What was wrong with one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The host never began to move it.
    NotStarted,
    /// Nobody knows what became of it.
    Unknown,
    /// The store has no such object.
    Absent,
    /// It has another size.
    WrongSize {
        /// This one.
        bytes: u64,
    },
    /// Its trailer does not fit.
    WrongBytes,
    /// It can definitely not be read.
    Unreadable,
    /// It arrived, and nobody verified it in the way that it must be.
    Unverified,
}

impl Fault {
    /// What it means for the checkpoint; none when nothing is known to be lost.
    #[must_use]
    pub const fn loss(self) -> Option<Loss> {
        match self {
            Self::Absent => Some(Loss::Absent),
            Self::WrongSize { .. } => Some(Loss::WrongSize),
            Self::WrongBytes => Some(Loss::WrongBytes),
            Self::Unreadable => Some(Loss::Unreadable),
            Self::NotStarted | Self::Unknown | Self::Unverified => None,
        }
    }
}

/// Why a load adopted nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Miss {
    /// No candidate is restorable.
    NothingPinned,
    /// The catalog refused to pin.
    Refused(Rejection),
    /// The host chose none of the pinned checkpoints.
    NothingChosen,
    /// The checkpoint's manifest is not the one that was planned.
    ManifestMismatch {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// An object is missing, wrong or unclear.
    Object {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The first such object.
        object: ObjectName,
        /// What was found.
        why: Fault,
    },
    /// Everything arrived here, but not on every rank.
    PeersMissed {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// This rank needed no bytes.
    Declined,
    /// The load was cancelled.
    Cancelled,
    /// The catalog does not listen to this incarnation any more.
    Barred(Rejection),
}
