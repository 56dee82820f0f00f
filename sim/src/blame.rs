//! Which promise is broken when an answer, or a record, is not the expected one.
//!
//! It only names: that something differs was found before.

use pinfold_core::catalog::{Blocker, Blockers, Change, Command, Event};
use pinfold_core::engine::{Reply, Request};
use pinfold_core::id::CheckpointId;
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{Outcome, Rejection};

use crate::protocol::{leaves_no_record, lifts};

type Answer = Result<Outcome, Rejection>;

/// For a reply. Of what was not `decided` now, only a repetition has an outcome.
#[must_use]
pub fn reply(request: &Request, expected: &Reply, came: &Reply, decided: bool) -> Invariant {
    match (request, expected, came) {
        (Request::Command(_, command), Reply::Command(expected), Reply::Command(came)) => {
            answer(command, expected, came, decided)
        }
        (Request::Register(_), Reply::Command(Err(Rejection::LimitExceeded { .. })), _)
        | (Request::Register(_), _, Reply::Command(Err(Rejection::LimitExceeded { .. }))) => {
            Invariant::I13
        }
        (Request::Register(_), ..) => Invariant::I12,
        (Request::List(commands), Reply::List(expected), Reply::List(came)) => {
            let mut answers = commands.iter().zip(expected.iter().zip(came));
            let differs = answers.find(|(_, (expected, came))| expected != came);
            match differs {
                Some(((_, command), (Some(expected), Some(came)))) => {
                    answer(command, expected, came, true)
                }
                Some((_, (None, _) | (_, None))) | None => Invariant::I14,
            }
        }
        (Request::Query(_), Reply::Gauges(_), Reply::Gauges(_)) => Invariant::I13,
        (Request::Query(_), Reply::Audit(_), Reply::Audit(_)) => Invariant::I17,
        (Request::Query(_), Reply::Blockers(Some(expected)), Reply::Blockers(Some(came))) => {
            blockers(expected, came)
        }
        (Request::Query(_), Reply::WrongEpoch, _) | (Request::Query(_), _, Reply::WrongEpoch) => {
            Invariant::I12
        }
        (Request::Command(..) | Request::List(_) | Request::Query(_), ..) => Invariant::I14,
    }
}

fn answer(command: &Command, expected: &Answer, came: &Answer, decided: bool) -> Invariant {
    match (expected, came) {
        (Ok(_), _) if !decided => Invariant::I14,
        (Ok(expected), Ok(came)) => outcome(expected, came),
        (expected, came) => refusal(command, expected.as_ref().err(), came.as_ref().err()),
    }
}

/// For an input that had to be decided, and whose record is not the next one.
pub(crate) fn undecided(
    request: &Request,
    came: Option<&Reply>,
    next: Option<&Event>,
) -> Invariant {
    let refused = match (request, came) {
        (Request::Command(_, command), Some(Reply::Command(Err(refused)))) => {
            Some((command, refused))
        }
        (Request::List(commands), Some(Reply::List(answers))) => {
            let mut answers = commands.iter().zip(answers);
            answers.find_map(|((_, command), answer)| match answer {
                Some(Err(refused)) => Some((command, refused)),
                Some(Ok(_)) | None => None,
            })
        }
        (Request::Register(_), Some(Reply::Command(Err(_)))) => return Invariant::I12,
        (Request::Register(_) | Request::Command(..) | Request::List(_) | Request::Query(_), _) => {
            None
        }
    };
    match refused {
        Some((command, refused)) if leaves_no_record(refused) => {
            refusal(command, None, Some(refused))
        }
        Some(_) | None if next.is_none() => Invariant::I10,
        Some(_) | None => Invariant::I14,
    }
}

/// For the record of a decided command.
pub(crate) fn change(command: &Command, expected: &Change, came: &Change) -> Invariant {
    match (expected, came) {
        (Change::Refused(expected), Change::Refused(came)) => {
            refusal(command, Some(expected), Some(came))
        }
        (Change::Refused(expected), _) => refusal(command, Some(expected), None),
        (_, Change::Refused(came)) => refusal(command, None, Some(came)),
        (Change::Prepared { generation, .. }, Change::Prepared { generation: came, .. })
            if generation != came =>
        {
            Invariant::I17
        }
        (Change::AlreadyPublished { .. }, _)
        | (_, Change::AlreadyPublished { .. })
        | (Change::Pinned { .. }, _) => Invariant::I9,
        (Change::Prepared { .. } | Change::Joined { .. }, _) => Invariant::I5,
        (Change::Published { expired, .. }, Change::Published { expired: came, .. })
            if expired != came =>
        {
            Invariant::I6
        }
        (Change::Published { .. }, _) => Invariant::I4,
        (
            Change::Settled { .. }
            | Change::Released { .. }
            | Change::Doubted { .. }
            | Change::Fenced { .. },
            _,
        ) => Invariant::I8,
        (Change::Collected { .. }, _) => collected(expected, came),
        (Change::Configured { .. }, _) => Invariant::I11,
        (
            Change::Lost { .. }
            | Change::Deleted { .. }
            | Change::Forgotten { .. }
            | Change::Dropped { .. }
            | Change::Retired { .. },
            _,
        ) => Invariant::I14,
    }
}

/// Work that may not be handed out, or work that is withheld, misplaced or miscounted.
fn collected(expected: &Change, came: &Change) -> Invariant {
    let (Change::Collected { work: free, .. }, Change::Collected { work, .. }) = (expected, came)
    else {
        return Invariant::I14;
    };
    let is_free = |id: &CheckpointId| free.iter().any(|piece| piece.checkpoint == *id);
    if work.iter().all(|piece| is_free(&piece.checkpoint)) { Invariant::L1 } else { Invariant::I3 }
}

fn outcome(expected: &Outcome, came: &Outcome) -> Invariant {
    match (expected, came) {
        (Outcome::Published { expired, .. }, Outcome::Published { expired: came, .. }) => {
            if expired == came { Invariant::I11 } else { Invariant::I6 }
        }
        (Outcome::Pinned(expected), Outcome::Pinned(came)) => {
            let ids = |answers: &[pinfold_core::outcome::Pinned]| -> Vec<_> {
                answers.iter().map(|answer| answer.checkpoint).collect()
            };
            if ids(expected) == ids(came) { Invariant::I5 } else { Invariant::I9 }
        }
        (Outcome::Prepared { .. }, Outcome::Prepared { .. }) => Invariant::I17,
        (Outcome::Prepared { .. } | Outcome::AlreadyPublished { .. } | Outcome::Pinned(_), _) => {
            Invariant::I9
        }
        (
            Outcome::Settled { .. } | Outcome::Released | Outcome::Doubted | Outcome::Fenced { .. },
            _,
        ) => Invariant::I8,
        (Outcome::Collected { objects, .. }, Outcome::Collected { objects: came, .. })
            if came > objects =>
        {
            Invariant::I3
        }
        (Outcome::Collected { .. } | Outcome::Deleted { .. }, _) => Invariant::L1,
        (Outcome::Registered { .. }, _) => Invariant::I12,
        (
            Outcome::Published { .. }
            | Outcome::Lost
            | Outcome::Configured
            | Outcome::Forgotten
            | Outcome::Dropped
            | Outcome::Retired,
            _,
        ) => Invariant::I14,
    }
}

/// For a refusal that is missing, out of place, or another one.
fn refusal(command: &Command, expected: Option<&Rejection>, came: Option<&Rejection>) -> Invariant {
    if matches!(came, Some(Rejection::LimitExceeded { .. })) && lifts(command) {
        return Invariant::I18;
    }
    let mismatch = Some(&Rejection::ManifestMismatch);
    if expected == mismatch || came == mismatch {
        return Invariant::I5;
    }
    match expected.or(came) {
        Some(Rejection::TurnExpired) => Invariant::I7,
        Some(Rejection::LimitExceeded { .. }) => Invariant::I13,
        Some(
            Rejection::WrongEpoch
            | Rejection::UnknownOwner
            | Rejection::Fenced
            | Rejection::StaleIncarnation { .. }
            | Rejection::UnknownIncarnation,
        ) => Invariant::I12,
        Some(
            Rejection::ForeignPin
            | Rejection::PinEnded
            | Rejection::UnknownPin
            | Rejection::ShardNotClaimed { .. }
            | Rejection::ShardTaken { .. }
            | Rejection::OwnerHasPins,
        ) => Invariant::I8,
        Some(Rejection::NotFinal) => Invariant::I8,
        Some(Rejection::ManifestMismatch) => Invariant::I5,
        Some(Rejection::NotComplete | Rejection::Lost | Rejection::Dropped) => Invariant::I4,
        Some(Rejection::AttemptFailed | Rejection::InFlight | Rejection::EndpointQuarantined) => {
            Invariant::I9
        }
        Some(Rejection::Collecting | Rejection::NotCollecting) => Invariant::I3,
        Some(
            Rejection::Malformed(_)
            | Rejection::UnknownVersion { .. }
            | Rejection::RoleMismatch
            | Rejection::OpConflict
            | Rejection::ReceiptForgotten
            | Rejection::NotOperator
            | Rejection::GenesisOperator
            | Rejection::UnknownCheckpoint
            | Rejection::UnknownObject
            | Rejection::NotHolder
            | Rejection::PolicyMismatch,
        )
        | None => Invariant::I14,
    }
}

/// By the first blocker that only one of two answers has.
fn blockers(expected: &Blockers, came: &Blockers) -> Invariant {
    let missing = expected.blockers.iter().find(|blocker| !came.blockers.contains(blocker));
    let more = came.blockers.iter().find(|blocker| !expected.blockers.contains(blocker));
    match missing.or(more) {
        Some(Blocker::Retained { .. }) => Invariant::I6,
        Some(Blocker::Pinned { .. } | Blocker::InFlight { .. } | Blocker::InDoubt { .. }) => {
            Invariant::I8
        }
        Some(Blocker::WaitingForShard { .. }) => Invariant::I4,
        Some(Blocker::Collectable | Blocker::Collecting { .. } | Blocker::Quarantined { .. }) => {
            Invariant::L1
        }
        Some(Blocker::Lost) => Invariant::I9,
        Some(Blocker::Unscoped) | None => Invariant::I14,
    }
}
