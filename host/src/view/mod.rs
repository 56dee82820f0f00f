//! Views: what those see who look on, as data for a table, a page or a program.
//!
//! Each view is made from a state that was read, names every identity as text and every checkpoint
//! by its generation, and holds no words but those that a person needs. It changes nothing. Their
//! fields are an interface: one is added, none renamed.

mod job;
mod journal;
mod record;
#[cfg(test)]
mod tests;
mod why;

pub use job::{
    BlockerCount, CheckpointView, ConversationView, Inspection, JobView, JournalView, OwnerView,
    PinView, PolicyView,
};
pub use journal::{DamageView, FileView, TornView, UnverifiedView, VerificationView};
pub use record::{Identities, RecordView};
pub use why::{BlockerView, Names, NeverMinted, WhyView};

use std::borrow::Cow;

use pinfold_core::id::ObjectId;

/// A word of a view: one of a few, and written by whoever made the view.
pub type Word = Cow<'static, str>;

/// The first few of many objects, as words.
fn objects_in_words(objects: &[ObjectId]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<_> = objects.iter().take(SHOWN).map(ToString::to_string).collect();
    match objects.len().saturating_sub(SHOWN) {
        0 => shown.join(" "),
        more => format!("{} and {more} more", shown.join(" ")),
    }
}

/// `1 object`, `2 objects`.
fn counted(number: impl Into<u64>, what: &str) -> String {
    let number = number.into();
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
