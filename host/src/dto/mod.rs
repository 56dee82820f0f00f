//! What is asked of a coordinator and what it answers, as data: one form for logs and for HTTP.
//!
//! Protects those who read it back: every identity is a text of its own and no other, an unknown
//! field is refused, and each form is checked by the compiler against the type of the core that it
//! stands for.

mod answer;
mod ask;
mod command;
pub(crate) mod text;

pub use answer::{Answer, ListAnswer};
pub use ask::{Ask, Call, ListedCommand};

pub(crate) use answer::GenesisForm;
pub(crate) use command::{CommandForm, DeleteOutcomeForm, QueryForm, RoleForm, optional_policy};
