//! The names of what is counted: verbs, answers, follow-ups and ends, as the pages call them.

use pinfold_core::catalog::{Command, FollowUp, Verdict};
use pinfold_core::outcome::{Outcome, Rejection};
use pinfold_core::transfer::{Ended, Miss};

/// The verb that registers, which is no command.
pub(super) const REGISTER: &str = "Register";

/// A message of two commands.
pub(super) const LIST: &str = "list";

/// What a list says of a command behind its first refusal.
pub(super) const NOT_TRIED: &str = "NotTried";

/// What whoever waits is told after a failed append.
pub(super) const POISONED: &str = "Poisoned";

/// The verb of a command.
#[must_use]
pub const fn verb(command: &Command) -> &'static str {
    match command {
        Command::Prepare(_) => "Prepare",
        Command::Settle { .. } => "Settle",
        Command::Publish { .. } => "Publish",
        Command::Release { .. } => "Release",
        Command::Pin { .. } => "Pin",
        Command::Lost { .. } => "Lost",
        Command::Doubt { .. } => "Doubt",
        Command::Collect { .. } => "Collect",
        Command::Deleted { .. } => "Deleted",
        Command::Configure { .. } => "Configure",
        Command::Forget { .. } => "Forget",
        Command::Drop { .. } => "Drop",
        Command::Fence { .. } => "Fence",
        Command::Retire { .. } => "Retire",
    }
}

/// What was answered.
#[must_use]
pub const fn answer(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Registered { .. } => "Registered",
        Outcome::Prepared { .. } => "Prepared",
        Outcome::AlreadyPublished { .. } => "AlreadyPublished",
        Outcome::Pinned(_) => "Pinned",
        Outcome::Settled { .. } => "Settled",
        Outcome::Released => "Released",
        Outcome::Published { .. } => "Published",
        Outcome::Lost => "Lost",
        Outcome::Doubted => "Doubted",
        Outcome::Collected { .. } => "Collected",
        Outcome::Deleted { .. } => "Deleted",
        Outcome::Configured => "Configured",
        Outcome::Forgotten => "Forgotten",
        Outcome::Dropped => "Dropped",
        Outcome::Fenced { .. } => "Fenced",
        Outcome::Retired => "Retired",
    }
}

/// Why it was refused.
#[must_use]
pub const fn refusal(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::Malformed(_) => "Malformed",
        Rejection::WrongEpoch => "WrongEpoch",
        Rejection::UnknownVersion { .. } => "UnknownVersion",
        Rejection::UnknownOwner => "UnknownOwner",
        Rejection::RoleMismatch => "RoleMismatch",
        Rejection::OpConflict => "OpConflict",
        Rejection::ReceiptForgotten => "ReceiptForgotten",
        Rejection::Fenced => "Fenced",
        Rejection::StaleIncarnation { .. } => "StaleIncarnation",
        Rejection::UnknownIncarnation => "UnknownIncarnation",
        Rejection::NotOperator => "NotOperator",
        Rejection::GenesisOperator => "GenesisOperator",
        Rejection::ForeignPin => "ForeignPin",
        Rejection::PinEnded => "PinEnded",
        Rejection::UnknownPin => "UnknownPin",
        Rejection::UnknownCheckpoint => "UnknownCheckpoint",
        Rejection::UnknownObject => "UnknownObject",
        Rejection::NotHolder => "NotHolder",
        Rejection::ShardNotClaimed { .. } => "ShardNotClaimed",
        Rejection::ShardTaken { .. } => "ShardTaken",
        Rejection::ManifestMismatch => "ManifestMismatch",
        Rejection::AttemptFailed => "AttemptFailed",
        Rejection::InFlight => "InFlight",
        Rejection::EndpointQuarantined => "EndpointQuarantined",
        Rejection::NotFinal => "NotFinal",
        Rejection::NotComplete => "NotComplete",
        Rejection::Lost => "Lost",
        Rejection::TurnExpired => "TurnExpired",
        Rejection::Dropped => "Dropped",
        Rejection::Collecting => "Collecting",
        Rejection::NotCollecting => "NotCollecting",
        Rejection::OwnerHasPins => "OwnerHasPins",
        Rejection::PolicyMismatch => "PolicyMismatch",
        Rejection::LimitExceeded { .. } => "LimitExceeded",
    }
}

/// Every follow-up.
pub(super) const FOLLOW_UPS: [&str; 5] = ["EndPin", "Expire", "Purge", "Settle", "Trim"];

pub(super) const fn follow_up(it: &FollowUp) -> &'static str {
    match it {
        FollowUp::EndPin { .. } => "EndPin",
        FollowUp::Expire { .. } => "Expire",
        FollowUp::Purge { .. } => "Purge",
        FollowUp::Settle { .. } => "Settle",
        FollowUp::Trim { .. } => "Trim",
    }
}

/// Every verdict of an audit.
pub(super) const VERDICTS: [&str; 3] = ["counted", "stray", "not ours"];

pub(super) const fn verdict(it: Verdict) -> &'static str {
    match it {
        Verdict::Counted => "counted",
        Verdict::Stray => "stray",
        Verdict::NotOurs => "not ours",
    }
}

/// Every end of a transfer that a World can reach: nobody there chooses among pinned checkpoints,
/// declines one, or loads with others.
pub(super) const ENDS: [&str; 16] = [
    "saved",
    "already published",
    "skipped",
    "disagreed",
    "failed",
    "overruled",
    "cancelled",
    "barred",
    "restored",
    "nothing pinned",
    "pin refused",
    "other manifest",
    "object missed",
    "peers missed",
    "load cancelled",
    "load barred",
];

pub(super) const fn end(it: &Ended) -> &'static str {
    match it {
        Ended::Saved { .. } => "saved",
        Ended::AlreadyPublished { .. } => "already published",
        Ended::Skipped(_) => "skipped",
        Ended::Disagreed { .. } => "disagreed",
        Ended::Failed { .. } => "failed",
        Ended::Overruled { .. } => "overruled",
        Ended::Cancelled { .. } => "cancelled",
        Ended::Barred { .. } => "barred",
        Ended::Restored { .. } => "restored",
        Ended::Missed(miss) => match miss {
            Miss::NothingPinned => "nothing pinned",
            Miss::Refused(_) => "pin refused",
            Miss::NothingChosen => "nothing chosen",
            Miss::ManifestMismatch { .. } => "other manifest",
            Miss::Object { .. } => "object missed",
            Miss::PeersMissed { .. } => "peers missed",
            Miss::Declined => "declined",
            Miss::Cancelled => "load cancelled",
            Miss::Barred(_) => "load barred",
        },
    }
}
