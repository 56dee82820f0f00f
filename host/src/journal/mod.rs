//! The journal on disk: segments, and snapshots in place of old ones, under `DIR/journal`.
//!
//! Protects what was acknowledged across crashes: one frame is written and synced before the next,
//! the first failure ends this journal's life, and opening makes durable whatever it hands out. It
//! never retries a sync, never skips a bad frame, and never repairs.
//!
//! ```text
//! DIR/journal/lock                            held exclusively while the journal is open
//!             00000000000000000000.log        a segment, by the number of its first record
//!             00000000000000052811.snapshot   a state, by how many records it stands for
//!             *.tmp                           what is being made, or what a crash left of it
//! ```
//!
//! The bytes are those of [`pinfold_core::journal`]. [`SegmentLog`] writes; [`read()`], [`records`]
//! and [`verify`] look on from beside. Nothing outside knows that a journal is files.

mod chain;
mod error;
mod log;
mod place;
mod read;
mod segment;
mod snapshots;
#[cfg(test)]
mod tests;
mod verify;

pub use error::{Absence, AppendError, JournalError};
pub use log::{Recovered, SegmentLog};
pub use read::{Reading, SegmentReading, Shown, Torn, read, records};
pub use snapshots::SnapshotReport;
pub use verify::{FileReading, Holding, Verification, Whole, verify};

use segment::{MAX_SEGMENT_BYTES, OpenSegment};

/// Where the engine's batches become durable.
pub trait Journal: Send {
    /// Writes one whole frame and syncs it; when this returns `Ok`, the frame is durable.
    ///
    /// A frame without records has no bytes, and appending it does nothing.
    ///
    /// # Errors
    /// [`AppendError`]; after any of them every later append answers [`AppendError::Poisoned`], and
    /// whether this frame is durable is known only by opening the journal anew.
    fn append(&mut self, frame: &[u8]) -> Result<(), AppendError>;
}

/// How a journal uses its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalOptions {
    /// What is set aside for the first segment; each further one is twice as large as the one in
    /// front of it, so that a small job stays small and a large one seldom begins another.
    pub first_segment_bytes: u64,
    /// What is set aside at most, up to 1 GiB; a larger frame gets a segment of its own size.
    pub segment_bytes: u64,
    /// A snapshot is taken when closed segments hold so many bytes more than at the last one, or as
    /// many as the last one has, whichever is more. It bounds the time that a recovery takes.
    pub snapshot_bytes: u64,
    /// See `log::Background::Inline`.
    #[cfg(test)]
    pub(crate) inline: bool,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            first_segment_bytes: 1 << 20,
            segment_bytes: 32 << 20,
            snapshot_bytes: 32 << 20,
            #[cfg(test)]
            inline: false,
        }
    }
}

impl JournalOptions {
    fn next_segment_bytes(&self, segment: &OpenSegment) -> u64 {
        let least = self.first_segment_bytes.min(self.segment_bytes);
        let next = segment.length_bytes.saturating_mul(2).clamp(least, self.segment_bytes);
        next.min(MAX_SEGMENT_BYTES)
    }
}
