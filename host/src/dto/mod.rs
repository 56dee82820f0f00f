//! What is asked of a coordinator and what it answers, as data: one form for logs and for HTTP.
//!
//! Protects those who read it back: every identity is a text of its own and no other, an unknown
//! field is refused, and each form is checked by the compiler against the type of the core that it
//! stands for.

mod answer;
mod ask;
mod command;
pub(crate) mod text;
mod work;

use pinfold_core::id::PinId;

use text::Readable;

pub use answer::{Answer, ListAnswer};
pub use ask::{Ask, Call, ListedCommand};
pub use work::{AnswerAndWork, WorkItem, WorkList, WorkObject};

pub(crate) use answer::GenesisForm;
pub(crate) use command::{CommandForm, DeleteOutcomeForm, QueryForm, RoleForm, optional_policy};

/// Reads a pin's text, as views show it: owner, incarnation, operation and place, with dots.
///
/// # Errors
/// Words that say what was expected.
pub fn read_pin(pin: &str) -> Result<PinId, String> {
    let expected = || format!("expected {}, found \"{}\"", PinId::EXPECTED, pin.escape_debug());
    PinId::read(pin).ok_or_else(expected)
}
