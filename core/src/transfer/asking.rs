//! One command at a time, and what a refusal means for a transfer.

use crate::id::OpId;
use crate::outcome::Rejection;

/// The command that waits for its answer.
///
/// Operations are numbered upwards, so whatever is not above the last answered one is a repetition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asking<C> {
    waits: Option<C>,
    last: Option<OpId>,
}

impl<C: Copy> Asking<C> {
    pub(super) const fn new() -> Self {
        Self { waits: None, last: None }
    }

    pub(super) const fn is_waiting(&self) -> bool {
        self.waits.is_some()
    }

    pub(super) fn ask(&mut self, command: C) {
        self.waits = Some(command);
    }

    /// The command that this operation can be the answer to.
    pub(super) fn waiting(&self, op: OpId) -> Option<C> {
        let is_new = self.last.is_none_or(|last| {
            (last.owner, last.incarnation) == (op.owner, op.incarnation)
                && last.sequence < op.sequence
        });
        self.waits.filter(|_| is_new)
    }

    pub(super) fn close(&mut self, op: OpId) {
        self.waits = None;
        self.last = Some(op);
    }
}

/// What a refusal means for a transfer that holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing this incarnation says counts any more.
    Barred,
    /// The pin is not ours any more, or never was.
    PinGone,
    /// Nothing is known of this command; ask once more under another operation.
    AskAgain,
    /// Not yet: other ranks have not settled.
    NotYet,
    /// No.
    Refused,
}

/// Sorts every refusal.
pub(super) const fn meaning(rejection: Rejection) -> Meaning {
    match rejection {
        Rejection::WrongEpoch
        | Rejection::UnknownVersion { .. }
        | Rejection::UnknownOwner
        | Rejection::RoleMismatch
        | Rejection::Fenced
        | Rejection::StaleIncarnation { .. }
        | Rejection::UnknownIncarnation => Meaning::Barred,
        Rejection::ForeignPin | Rejection::PinEnded | Rejection::UnknownPin => Meaning::PinGone,
        Rejection::OpConflict | Rejection::ReceiptForgotten => Meaning::AskAgain,
        Rejection::NotComplete => Meaning::NotYet,
        Rejection::Malformed(_)
        | Rejection::NotOperator
        | Rejection::GenesisOperator
        | Rejection::UnknownCheckpoint
        | Rejection::UnknownObject
        | Rejection::NotHolder
        | Rejection::ShardNotClaimed { .. }
        | Rejection::ShardTaken { .. }
        | Rejection::ManifestMismatch
        | Rejection::AttemptFailed
        | Rejection::InFlight
        | Rejection::EndpointQuarantined
        | Rejection::NotFinal
        | Rejection::Lost
        | Rejection::TurnExpired
        | Rejection::Dropped
        | Rejection::Collecting
        | Rejection::NotCollecting
        | Rejection::OwnerHasPins
        | Rejection::PolicyMismatch
        | Rejection::LimitExceeded { .. } => Meaning::Refused,
    }
}
