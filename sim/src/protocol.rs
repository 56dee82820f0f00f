//! What the protocol says of a single command or refusal, for every judge. The core is not asked.

use pinfold_core::catalog::Command;
use pinfold_core::outcome::Rejection;

/// Whether a command only ever lifts what holds a checkpoint, so that no limit may refuse it (I18).
#[must_use]
pub const fn lifts(command: &Command) -> bool {
    match command {
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
        Command::Prepare(_)
        | Command::Publish { .. }
        | Command::Pin { .. }
        | Command::Forget { .. } => false,
    }
}

/// Whether a refusal is one that is given before a receipt is looked at, or when there is none any
/// more: it has no record, and leaves no receipt.
#[must_use]
pub const fn leaves_no_record(rejection: &Rejection) -> bool {
    matches!(
        rejection,
        Rejection::Malformed(_)
            | Rejection::WrongEpoch
            | Rejection::UnknownOwner
            | Rejection::StaleIncarnation { .. }
            | Rejection::Fenced
            | Rejection::UnknownIncarnation
            | Rejection::OpConflict
            | Rejection::ReceiptForgotten
    )
}
