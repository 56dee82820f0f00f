//! Which promise an answer breaks that no correct run gives.

use pinfold_core::catalog::Command;
use pinfold_core::engine::{Reply, Request};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{Outcome, Rejection};
use pinfold_core::policy::Genesis;
use pinfold_host::log::Answer;
use serde_json::Value;

/// The promise behind the first difference between two answers to the same input.
pub(super) fn blame(request: &Request, found: &Reply, expected: &Reply) -> Invariant {
    match (found, expected) {
        (Reply::Command(found), Reply::Command(expected)) => {
            let command = match request {
                Request::Command(_, command) => Some(command),
                Request::Register(_) | Request::List(_) | Request::Query(_) => None,
            };
            blame_answer(command, found, expected)
        }
        (Reply::List(found), Reply::List(expected)) => {
            let Request::List(commands) = request else { return Invariant::I11 };
            let mut answers = commands.iter().zip(found.iter().zip(expected));
            let first = answers.find(|(_, (found, expected))| found != expected);
            match first {
                Some(((_, command), (Some(found), Some(expected)))) => {
                    blame_answer(Some(command), found, expected)
                }
                Some(_) | None => Invariant::I14,
            }
        }
        (_, Reply::WrongEpoch) => Invariant::I12,
        (_, Reply::Audit(_)) => Invariant::I17,
        (_, Reply::Gauges(_) | Reply::Blockers(_)) => Invariant::I13,
        (_, Reply::Command(_) | Reply::List(_) | Reply::Job(_) | Reply::Poisoned) => Invariant::I11,
    }
}

/// The promise behind the first field in which a job's genesis is another one, and what differs.
pub(super) fn blame_job(found: &Genesis, expected: &Genesis) -> (Invariant, String) {
    let form = |job: &Genesis| serde_json::to_value(Answer::from(Reply::Job(job.clone())));
    let [found, expected] = [found, expected].map(|job| form(job).unwrap_or_default());
    let Some((field, found, expected)) = first_difference(&found["job"], &expected["job"]) else {
        return (Invariant::I11, "the job is another one".to_string());
    };
    let invariant = match field.as_str() {
        "namespace" | "epoch" | "operator" => Invariant::I12,
        "policy.quarantine" => Invariant::I9,
        field if field.starts_with("policy.") => Invariant::I6,
        _ => Invariant::I11,
    };
    (invariant, format!("the job's {field} is {expected}, and was answered as {found}"))
}

/// The first field in which two JSON objects differ, with dots between the names, and its values.
fn first_difference<'a>(
    found: &'a Value,
    expected: &'a Value,
) -> Option<(String, &'a Value, &'a Value)> {
    for (name, expected) in expected.as_object()? {
        let found = &found[name];
        if found != expected {
            let inner = first_difference(found, expected);
            return Some(
                inner.map_or((name.clone(), found, expected), |(field, found, expected)| {
                    (format!("{name}.{field}"), found, expected)
                }),
            );
        }
    }
    None
}

fn blame_answer(
    command: Option<&Command>,
    found: &Result<Outcome, Rejection>,
    expected: &Result<Outcome, Rejection>,
) -> Invariant {
    match (found, expected) {
        (Err(Rejection::LimitExceeded { .. }), Ok(_)) if command.is_some_and(lifts) => {
            Invariant::I18
        }
        (_, Err(rejection)) | (Err(rejection), Ok(_)) => behind_refusal(rejection),
        (Ok(found), Ok(expected)) => behind_outcome(found, expected),
    }
}

/// Whether a command never adds, so that no limit may refuse it.
const fn lifts(command: &Command) -> bool {
    match command {
        Command::Prepare(_)
        | Command::Publish { .. }
        | Command::Pin { .. }
        | Command::Forget { .. } => false,
        Command::Settle { .. }
        | Command::Release { .. }
        | Command::Lost { .. }
        | Command::Doubt { .. }
        | Command::Collect { .. }
        | Command::Deleted { .. }
        | Command::Configure { .. }
        | Command::Drop { .. }
        | Command::Fence { .. }
        | Command::Retire { .. } => true,
    }
}

/// The promise that a refusal keeps; one of the two answers has it, and the other should have or
/// should not.
const fn behind_refusal(rejection: &Rejection) -> Invariant {
    match rejection {
        Rejection::WrongEpoch
        | Rejection::Fenced
        | Rejection::StaleIncarnation { .. }
        | Rejection::UnknownIncarnation
        | Rejection::UnknownOwner
        | Rejection::ForeignPin => Invariant::I12,
        Rejection::OpConflict | Rejection::ReceiptForgotten => Invariant::I14,
        Rejection::PinEnded
        | Rejection::UnknownPin
        | Rejection::NotFinal
        | Rejection::ShardNotClaimed { .. }
        | Rejection::OwnerHasPins => Invariant::I8,
        Rejection::ManifestMismatch => Invariant::I5,
        Rejection::ShardTaken { .. } => Invariant::I17,
        Rejection::AttemptFailed
        | Rejection::EndpointQuarantined
        | Rejection::Lost
        | Rejection::Collecting => Invariant::I9,
        Rejection::NotComplete => Invariant::I4,
        Rejection::TurnExpired | Rejection::Dropped => Invariant::I7,
        Rejection::LimitExceeded { .. } => Invariant::I13,
        Rejection::Malformed(_)
        | Rejection::UnknownVersion { .. }
        | Rejection::RoleMismatch
        | Rejection::NotOperator
        | Rejection::GenesisOperator
        | Rejection::UnknownCheckpoint
        | Rejection::UnknownObject
        | Rejection::NotHolder
        | Rejection::InFlight
        | Rejection::NotCollecting
        | Rejection::PolicyMismatch => Invariant::I11,
    }
}

/// The promise that an outcome keeps which should have been another one.
fn behind_outcome(found: &Outcome, expected: &Outcome) -> Invariant {
    match (found, expected) {
        (Outcome::Pinned(found), Outcome::Pinned(expected)) => {
            let ids = found.iter().map(|one| one.checkpoint);
            let same = ids.eq(expected.iter().map(|one| one.checkpoint));
            if same { Invariant::I5 } else { Invariant::I9 }
        }
        (_, Outcome::Pinned(_) | Outcome::AlreadyPublished { .. }) => Invariant::I9,
        (Outcome::AlreadyPublished { .. }, Outcome::Prepared { .. }) => Invariant::I9,
        (_, Outcome::Prepared { .. }) => Invariant::I17,
        (_, Outcome::Settled { .. } | Outcome::Released | Outcome::Fenced { .. }) => Invariant::I8,
        (_, Outcome::Published { .. } | Outcome::Forgotten) => Invariant::I6,
        (_, Outcome::Collected { .. }) => Invariant::I3,
        (_, Outcome::Deleted { .. }) => Invariant::I13,
        (_, Outcome::Registered { .. }) => Invariant::I12,
        (
            _,
            Outcome::Lost
            | Outcome::Doubted
            | Outcome::Configured
            | Outcome::Dropped
            | Outcome::Retired,
        ) => Invariant::I11,
    }
}
