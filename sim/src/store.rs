//! The store: what it holds, and what is under way to and from it.

use pinfold_core::id::{CheckpointId, ObjectId};
use pinfold_core::manifest::SharedName;

/// What a stored value is named by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreKey {
    /// A private object of this job, by its derived key.
    Private(CheckpointId, ObjectId),
    /// An attention page, written by many.
    Shared(SharedName),
    /// Somebody else's.
    Foreign(u8),
}

/// What a stored value's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// The bytes that belong under this key, with a trailer that says so.
    Of(StoreKey),
    /// Anything else of the right size: its trailer does not fit.
    Garbage,
}
