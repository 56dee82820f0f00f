//! One command or one list of them at a time, and what a refusal means for a transfer.

use alloc::collections::VecDeque;

use crate::id::OpId;
use crate::outcome::Rejection;

/// The commands that wait for their answers, in the order of their list.
///
/// Operations are numbered upwards, so whatever is not above the last answered one is a repetition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asking<C> {
    waits: VecDeque<C>,
    last: Option<OpId>,
}

impl<C: Copy> Asking<C> {
    pub(super) const fn new() -> Self {
        Self { waits: VecDeque::new(), last: None }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waits.is_empty()
    }

    /// What waits, in the order in which it is answered.
    pub(super) fn all(&self) -> impl Iterator<Item = C> {
        self.waits.iter().copied()
    }

    /// Asks one more, behind those that wait.
    pub(super) fn ask(&mut self, command: C) {
        self.waits.push_back(command);
    }

    /// The command that this operation can be the answer to.
    pub(super) fn waiting(&self, op: OpId) -> Option<C> {
        let is_new = self.last.is_none_or(|last| {
            (last.owner, last.incarnation) == (op.owner, op.incarnation)
                && last.sequence < op.sequence
        });
        self.waits.front().copied().filter(|_| is_new)
    }

    /// The last one was never sent.
    pub(super) fn take_back(&mut self) {
        self.waits.pop_back();
    }

    /// The first one is answered. A refusal ends its list: what stands behind it was not tried.
    pub(super) fn close(&mut self, op: OpId, is_refused: bool) {
        self.waits.pop_front();
        if is_refused {
            self.waits.clear();
        }
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
