//! What can be wrong with a journal, in words that say where and what to do.

use std::io;
use std::path::{Path, PathBuf};

use pinfold_core::journal::record::{BadFrame, Damage, DamageKind, FrameError, HeaderError};
use pinfold_core::journal::snapshot::SnapshotError;
use pinfold_core::replay::RecoverError;

/// Why a journal cannot be created, opened or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// There is a journal already.
    #[error("{dir} already holds a journal: open that, or name another folder for a new job")]
    AlreadyExists {
        /// The data folder.
        dir: PathBuf,
    },
    /// There is no journal.
    #[error("{dir} {found}")]
    Missing {
        /// What was named as the data folder.
        dir: PathBuf,
        /// What is there.
        found: Absence,
    },
    /// It is open already, and only one process, once, may write a journal.
    #[error(
        "{path} is locked: this journal is open already, here or in another process (on Linux, \
         `fuser` with that path names it)"
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A file that this version never writes.
    #[error("{path} is not a journal file of this version: it may need a newer pinfold")]
    Unexpected {
        /// The file.
        path: PathBuf,
    },
    /// Written by another version.
    #[error(
        "{path} has version {version} at byte {offset}, which this pinfold does not know. \
         Nothing was changed: open it with a version that does"
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// Where the version stands, from the start of the file.
        offset: u64,
        /// The version.
        version: u32,
    },
    /// The beginning is not that of a journal.
    #[error("{path} is not a journal as it was written: {why}. Nothing was changed. {NEW_EPOCH}")]
    BadHeader {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: HeaderError,
    },
    /// A frame is not as it was written.
    #[error("{path} is damaged at byte {offset}: {why}. Nothing was changed. {NEW_EPOCH}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damaged frame begins, from the start of the file.
        offset: u64,
        /// What is wrong with it.
        why: DamageKind,
    },
    /// A segment ends in a bad frame, and another segment follows: the frame had been synced.
    #[error(
        "{path} is damaged at byte {offset}: the frame is bad ({why}), and another segment \
         follows. Nothing was changed. {NEW_EPOCH}"
    )]
    TornInside {
        /// The file.
        path: PathBuf,
        /// Where the bad frame begins, from the start of the file.
        offset: u64,
        /// What is bad about it.
        why: BadFrame,
    },
    /// The file is another than its name or its neighbours say.
    #[error("{path} does not fit the journal: {what}. Nothing was changed. {NEW_EPOCH}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: &'static str,
    },
    /// Records are missing between two files, or behind the last.
    #[error("{folder} lacks the records from {from} on. Nothing was changed. {NEW_EPOCH}")]
    Lacking {
        /// The journal's folder.
        folder: PathBuf,
        /// The first number that is missing.
        from: u64,
    },
    /// A snapshot cannot be used.
    #[error("{path} cannot be used: {why}. Nothing was changed. {NEW_EPOCH}")]
    BadSnapshot {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: SnapshotError,
    },
    /// A record cannot be followed.
    #[error("{path} cannot be followed: {why}. Nothing was changed. {NEW_EPOCH}")]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// Which record, and what is wrong with it.
        why: RecoverError,
    },
    /// The file system refused something.
    #[error("could not {doing} {path}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}

/// Where a segment and a snapshot have their version, from the start of the file.
const VERSION_AT: u64 = 8;
/// Where a frame has its version, from the start of the frame.
const FRAME_VERSION_AT: u64 = 4;

const NEW_EPOCH: &str = "Keep the file for diagnosis, and begin a new epoch in another folder: \
                         neither a repaired nor an older copy of a journal stands for it";

impl JournalError {
    /// True when the bytes are not what was written; else something around them is wrong.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        match self {
            Self::BadHeader { .. }
            | Self::Damaged { .. }
            | Self::TornInside { .. }
            | Self::Foreign { .. }
            | Self::Lacking { .. }
            | Self::BadSnapshot { .. }
            | Self::BadRecord { .. } => true,
            Self::AlreadyExists { .. }
            | Self::Missing { .. }
            | Self::Locked { .. }
            | Self::Unexpected { .. }
            | Self::UnknownVersion { .. }
            | Self::Io { .. } => false,
        }
    }

    /// The file or folder that it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::AlreadyExists { dir } | Self::Missing { dir, .. } => dir,
            Self::Lacking { folder, .. } => folder,
            Self::Locked { path }
            | Self::Unexpected { path }
            | Self::UnknownVersion { path, .. }
            | Self::BadHeader { path, .. }
            | Self::Damaged { path, .. }
            | Self::TornInside { path, .. }
            | Self::Foreign { path, .. }
            | Self::BadSnapshot { path, .. }
            | Self::BadRecord { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    /// Where in the file what is wrong begins, in bytes from its start; none where it is not a
    /// place but the whole file, a record, or what is around it.
    #[must_use]
    pub const fn offset(&self) -> Option<u64> {
        match self {
            Self::UnknownVersion { offset, .. }
            | Self::Damaged { offset, .. }
            | Self::TornInside { offset, .. } => Some(*offset),
            Self::BadHeader { .. } => Some(0),
            Self::AlreadyExists { .. }
            | Self::Missing { .. }
            | Self::Lacking { .. }
            | Self::Locked { .. }
            | Self::Unexpected { .. }
            | Self::Foreign { .. }
            | Self::BadSnapshot { .. }
            | Self::BadRecord { .. }
            | Self::Io { .. } => None,
        }
    }
}

/// What is there, where no journal is, and what to name instead.
///
/// It never advises to create one: what looks for a journal and finds none has the wrong path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Absence {
    /// Nothing.
    #[error("does not exist: check the path")]
    Nothing,
    /// A file.
    #[error("is a file: name the data folder, which holds `journal`")]
    File,
    /// The journal's files themselves.
    #[error("is the journal's own folder: name the folder above it")]
    JournalItself,
    /// A folder without a journal.
    #[error("holds no journal: check the path")]
    OtherFolder,
    /// A journal without a record: it never began, and counts as none.
    #[error("holds no journal: the one that is there has no record, so its job never began")]
    NoRecord,
}

/// Why a frame was not made durable.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// An earlier append failed.
    #[error("the journal failed before and takes nothing more: restart, to recover from the disk")]
    Poisoned,
    /// Not one whole frame of this epoch; nothing was written.
    #[error("the journal was given something else than its next frame: {0}")]
    NotAFrame(#[source] FrameError),
    /// A frame that leaves out records or repeats them; nothing was written.
    #[error("the journal was given record {found} where record {expected} comes next")]
    NotNext {
        /// The number that the frame should begin with.
        expected: u64,
        /// The number that it begins with.
        found: u64,
    },
    /// Writing or syncing failed: only the next opening tells whether the frame is durable.
    #[error(
        "could not {doing} {path} at byte {offset}: {source}. The journal takes nothing more: \
         see to the disk, then restart, to recover from it"
    )]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The journal's file.
        path: PathBuf,
        /// Where the frame begins.
        offset: u64,
        /// What the file system said.
        source: io::Error,
    },
    /// The segment is full, and no other could be begun; the frame was not written.
    #[error(
        "the next segment could not be begun: {0}. The journal takes nothing more: see to the \
         disk, then restart, to recover from it"
    )]
    NextSegment(#[source] JournalError),
    /// A journal of another kind failed.
    #[error("the journal failed: {0}. It takes nothing more: restart, to recover from it")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

pub(super) fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_path_buf();
    move |source| JournalError::Io { doing, path, source }
}

pub(super) fn bad_header(path: &Path, why: HeaderError) -> JournalError {
    let path = path.to_path_buf();
    match why {
        HeaderError::UnknownVersion { version } => {
            JournalError::UnknownVersion { path, offset: VERSION_AT, version }
        }
        HeaderError::Short | HeaderError::Magic | HeaderError::Checksum => {
            JournalError::BadHeader { path, why }
        }
    }
}

/// Damage behind a header of so many bytes.
pub(super) fn damaged(path: &Path, header_bytes: u64, damage: Damage) -> JournalError {
    let (path, offset) = (path.to_path_buf(), damage.at.saturating_add(header_bytes));
    match damage.why {
        DamageKind::UnknownVersion { version } => {
            let offset = offset.saturating_add(FRAME_VERSION_AT);
            JournalError::UnknownVersion { path, offset, version: u32::from(version) }
        }
        why @ (DamageKind::NotLast { .. }
        | DamageKind::TailTooLong { .. }
        | DamageKind::Gap { .. }
        | DamageKind::Repeat { .. }
        | DamageKind::Malformed) => JournalError::Damaged { path, offset, why },
    }
}

pub(super) fn bad_snapshot(path: &Path, why: SnapshotError) -> JournalError {
    let path = path.to_path_buf();
    match why {
        SnapshotError::UnknownVersion { version } => {
            JournalError::UnknownVersion { path, offset: VERSION_AT, version: u32::from(version) }
        }
        SnapshotError::NotASnapshot
        | SnapshotError::Damaged
        | SnapshotError::Rows
        | SnapshotError::Inconsistent(_) => JournalError::BadSnapshot { path, why },
    }
}
