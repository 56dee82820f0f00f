//! A journal's files, and what is wrong with them.

use pinfold_core::id::Epoch;
use serde::{Deserialize, Serialize};

use crate::dto::text;
use crate::journal::{FileReading, Holding, JournalError, Torn, Verification};

/// What was found in a journal's folder.
#[derive(Clone, Debug, Serialize)]
pub struct VerificationView {
    /// `whole`; `torn`, which an opening mends by cutting; or `damaged`.
    pub verdict: &'static str,
    /// The life of the job; none when an opening would be refused.
    #[serde(with = "text::optional")]
    pub epoch: Option<Epoch>,
    /// How many records there are; none when an opening would be refused.
    pub records: Option<u64>,
    /// How many of them a snapshot stands for.
    pub snapshot_records: Option<u64>,
    /// What an opening would cut.
    pub torn: Option<TornView>,
    /// What is damaged.
    pub damage: Vec<DamageView>,
    /// Every file, by name.
    pub files: Vec<FileView>,
}

/// Why nothing can be said of a journal's files.
#[derive(Clone, Debug, Serialize)]
pub struct UnverifiedView {
    /// `missing`, `another version`, or `unreadable`. Damage has a [`VerificationView`]; an error
    /// from elsewhere that tells some is `damaged` here.
    pub verdict: &'static str,
    /// The file or folder.
    pub file: String,
    /// Where in the file, in bytes from its start; none where it is no single place.
    pub byte: Option<u64>,
    /// What is wrong, and what to do.
    pub error: String,
}

/// A bad frame at the end, and nothing behind it: what [`Torn`] says of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TornView {
    /// The file.
    pub file: String,
    /// Where it begins, in bytes from the start of the file.
    pub byte: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// What is bad about it.
    pub why: String,
}

/// Something that is not as it was written.
#[derive(Clone, Debug, Serialize)]
pub struct DamageView {
    /// The file, or the folder that lacks one.
    pub file: String,
    /// Where it begins, in bytes from the start of the file; none where it is no single place.
    pub byte: Option<u64>,
    /// What is wrong, and what to do.
    pub what: String,
}

/// A file.
#[derive(Clone, Debug, Serialize)]
pub struct FileView {
    /// The file.
    pub file: String,
    /// `segment`, `snapshot`, `room for the next segment`, `unfinished`, or `damaged`.
    pub holds: &'static str,
    /// The number of its first record; none where it holds no segment.
    pub first_record: Option<u64>,
    /// How many records it holds, or stands for.
    pub records: Option<u64>,
    /// How many bytes are in use.
    pub used_bytes: Option<u64>,
    /// How many bytes it has.
    pub bytes: u64,
    /// A newer snapshot stands for it: an opening removes it unread.
    pub covered: bool,
}

impl VerificationView {
    /// What was found.
    #[must_use]
    pub fn of(verification: &Verification) -> Self {
        let Verification { files, whole, damage } = verification;
        let torn = whole.as_ref().and_then(|whole| whole.torn.as_ref()).map(TornView::of);
        let verdict = match (damage.as_slice(), &torn) {
            ([], None) => "whole",
            ([], Some(_)) => "torn",
            _ => "damaged",
        };
        Self {
            verdict,
            epoch: whole.as_ref().map(|whole| whole.epoch),
            records: whole.as_ref().map(|whole| whole.records),
            snapshot_records: whole.as_ref().map(|whole| whole.snapshot_records),
            torn,
            damage: damage.iter().map(DamageView::of).collect(),
            files: files.iter().map(FileView::of).collect(),
        }
    }
}

impl UnverifiedView {
    /// Why it was refused.
    #[must_use]
    pub fn of(error: &JournalError) -> Self {
        let verdict = match error {
            JournalError::Missing { .. } => "missing",
            JournalError::UnknownVersion { .. } | JournalError::Unexpected { .. } => {
                "another version"
            }
            JournalError::Io { .. }
            | JournalError::Locked { .. }
            | JournalError::AlreadyExists { .. } => "unreadable",
            JournalError::BadHeader { .. }
            | JournalError::Damaged { .. }
            | JournalError::TornInside { .. }
            | JournalError::Foreign { .. }
            | JournalError::Lacking { .. }
            | JournalError::BadSnapshot { .. }
            | JournalError::BadRecord { .. } => "damaged",
        };
        let file = error.path().display().to_string();
        Self { verdict, file, byte: error.offset(), error: error.to_string() }
    }
}

impl TornView {
    pub(super) fn of(torn: &Torn) -> Self {
        Self {
            file: torn.path.display().to_string(),
            byte: torn.offset,
            bytes: torn.bytes,
            why: torn.why.to_string(),
        }
    }
}

impl DamageView {
    fn of(error: &JournalError) -> Self {
        let file = error.path().display().to_string();
        Self { file, byte: error.offset(), what: error.to_string() }
    }
}

impl FileView {
    fn of(file: &FileReading) -> Self {
        let (holds, first_record, records, used_bytes) = match file.holds {
            Holding::Segment { first_sequence, next_sequence, used_bytes } => {
                let records = next_sequence.saturating_sub(first_sequence);
                ("segment", Some(first_sequence), Some(records), Some(used_bytes))
            }
            Holding::Snapshot { records } => {
                ("snapshot", None, Some(records), Some(file.length_bytes))
            }
            Holding::Room => ("room for the next segment", None, None, None),
            Holding::Unfinished => ("unfinished", None, None, None),
            Holding::Damaged => ("damaged", None, None, None),
        };
        Self {
            file: file.path.display().to_string(),
            holds,
            first_record,
            records,
            used_bytes,
            bytes: file.length_bytes,
            covered: file.covered,
        }
    }
}
