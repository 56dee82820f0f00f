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

use std::fmt::Display;

use pinfold_core::id::ObjectId;
use serde::Serializer;

/// Serialises what has a text as that text.
fn text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Serialises what may be there as its text.
fn some_text<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// Serialises a list of what has a text.
fn texts<T: Display, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

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
