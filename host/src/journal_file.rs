//! The journal as one growing file in a data folder: `DIR/journal/00000000000000000000.log`.
//!
//! Protects what was acknowledged across crashes: one frame is written and synced before the next,
//! the first failure ends this journal's life, and opening makes durable whatever it hands out. It
//! never retries a sync, never skips a bad frame, and knows nothing of what a record means.
//!
//! Nothing else knows that a journal is a file; the bytes are those of
//! [`pinfold_core::journal::record`]. The name is the sequence number of the first record. Beside
//! it lie `lock`, held exclusively while a journal is open, and for a moment of creation `new.tmp`.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use pinfold_core::id::Epoch;
use pinfold_core::journal::record::{self, Damage, DamageKind, Frame, FrameError};
use pinfold_core::journal::record::{Header, HeaderError};

use crate::folder;

/// The sequence number of the first record of a job.
const FIRST_SEQUENCE: u64 = 0;
const JOURNAL_FOLDER: &str = "journal";
const LOCK_NAME: &str = "lock";
const NEW_NAME: &str = "new.tmp";
const LOG_EXTENSION: &str = "log";

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

/// The journal of one data folder, open for writing by this process alone.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    path: PathBuf,
    epoch: Epoch,
    next_sequence: u64,
    length_bytes: u64,
    poisoned: bool,
    /// Unlocks the folder when it is closed.
    _lock: File,
}

impl JournalFile {
    /// Begins the journal of a new job; the folder is created when it is missing.
    ///
    /// A crash leaves either no journal or one without a record. That one counts as none, because
    /// its genesis never got in: another call of this replaces it.
    ///
    /// # Errors
    /// [`JournalError::AlreadyExists`] and whatever the file system refuses.
    pub fn create(dir: &Path, epoch: Epoch) -> Result<Self, JournalError> {
        let folder = dir.join(JOURNAL_FOLDER);
        folder::create_durably(&folder).map_err(io_at("create", &folder))?;
        let lock = lock(&folder)?;
        if has_begun(&folder)? {
            return Err(JournalError::AlreadyExists { dir: dir.to_path_buf() });
        }
        let (new, path) = (folder.join(NEW_NAME), log_path(&folder));
        let header = Header { epoch, first_sequence: FIRST_SEQUENCE }.encode();
        write_synced(&new, &header).map_err(io_at("write", &new))?;
        fs::rename(&new, &path).map_err(io_at("rename to its journal's name", &new))?;
        sync_names(dir, &folder)?;
        let mut file = OpenOptions::new().write(true).open(&path).map_err(io_at("open", &path))?;
        let length_bytes = file.seek(SeekFrom::End(0)).map_err(io_at("seek in", &path))?;
        let next_sequence = FIRST_SEQUENCE;
        let poisoned = false;
        Ok(Self { file, path, epoch, next_sequence, length_bytes, poisoned, _lock: lock })
    }

    /// Opens the journal for writing and hands out what it holds, every record of it durable.
    ///
    /// A torn tail is cut. The last good frame is written over with its own bytes and synced: if
    /// its sync failed in an earlier life, the page cache may hold what the disk doesn't, and only
    /// a new write makes the kernel try again. A damaged journal is left exactly as it is.
    ///
    /// # Errors
    /// [`JournalError`] tells what is wrong, where, and what to do about it.
    pub fn open(dir: &Path) -> Result<(Self, Recovered), JournalError> {
        let folder = dir.join(JOURNAL_FOLDER);
        let missing = || JournalError::Missing { dir: dir.to_path_buf() };
        if log_paths(&folder)?.is_empty() {
            return Err(missing());
        }
        let lock = lock(&folder)?;
        let path = only_log(&folder)?.ok_or_else(missing)?;
        let mut file =
            OpenOptions::new().read(true).write(true).open(&path).map_err(io_at("open", &path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io_at("read", &path))?;
        let judged = judge(&path, &bytes)?;
        make_durable(&mut file, &bytes, &judged).map_err(io_at("cut and sync", &path))?;
        sync_names(dir, &folder)?;
        let Judged { epoch, next_sequence, good, .. } = judged;
        let length_bytes = offset(good);
        let cut_bytes = offset(bytes.len() - good);
        bytes.truncate(good);
        let recovered = Recovered { epoch, next_sequence, cut_bytes, bytes };
        let poisoned = false;
        let journal =
            Self { file, path, epoch, next_sequence, length_bytes, poisoned, _lock: lock };
        Ok((journal, recovered))
    }

    /// Whether the data folder holds a journal with a record, of this version or another.
    ///
    /// # Errors
    /// What the file system says, other than that the folder isn't there.
    pub fn exists(dir: &Path) -> Result<bool, JournalError> {
        has_begun(&dir.join(JOURNAL_FOLDER))
    }

    /// The life of the job that this journal belongs to.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The sequence number that the next frame must begin with.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// How many bytes the journal has on disk.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    fn write_frame(&mut self, bytes: &[u8]) -> Result<u64, AppendError> {
        let frame = Frame::decode(&self.epoch, bytes).map_err(AppendError::NotAFrame)?;
        let (expected, found) = (self.next_sequence, frame.first_sequence());
        if expected != found {
            return Err(AppendError::NotNext { expected, found });
        }
        let failed = |doing: &'static str| {
            let (path, offset) = (self.path.clone(), self.length_bytes);
            move |source| AppendError::Io { doing, path, offset, source }
        };
        let (write_failed, sync_failed) = (failed("write"), failed("sync"));
        self.file.write_all(bytes).map_err(write_failed)?;
        self.file.sync_data().map_err(sync_failed)?;
        Ok(frame.next_sequence())
    }
}

impl Journal for JournalFile {
    fn append(&mut self, frame: &[u8]) -> Result<(), AppendError> {
        if self.poisoned {
            return Err(AppendError::Poisoned);
        }
        if frame.is_empty() {
            return Ok(());
        }
        // Poisoned until it went well, so that no way out of here forgets it.
        self.poisoned = true;
        self.next_sequence = self.write_frame(frame)?;
        self.length_bytes = self.length_bytes.saturating_add(offset(frame.len()));
        self.poisoned = false;
        Ok(())
    }
}

/// What a journal held when it was opened; all of it is durable.
#[derive(Debug)]
pub struct Recovered {
    /// The life of the job.
    pub epoch: Epoch,
    /// The sequence number after the last record.
    pub next_sequence: u64,
    /// How many bytes of a torn tail were cut; nobody was told that they are durable.
    pub cut_bytes: u64,
    bytes: Vec<u8>,
}

impl Recovered {
    /// Every record in order, each with its sequence number.
    pub fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let frames = self.bytes.get(Header::BYTES..).unwrap_or_default();
        record::frames_in(frames).flat_map(|frame| frame.records())
    }
}

/// Why a journal cannot be created or opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// There is a journal already.
    #[error("{dir} already holds a journal: open that, or name another folder for a new job")]
    AlreadyExists {
        /// The data folder.
        dir: PathBuf,
    },
    /// There is no journal.
    #[error("{dir} holds no journal: check the path, or create one, which begins a new epoch")]
    Missing {
        /// The data folder.
        dir: PathBuf,
    },
    /// It is open already, and only one process, once, may write a journal.
    #[error("{path} is locked: this journal is open already, here or in another process")]
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
        /// Where what has that version begins, from the start of the file.
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
    /// Not as it was written.
    #[error("{path} is damaged at byte {offset}: {why}. Nothing was changed. {NEW_EPOCH}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damaged frame begins, from the start of the file.
        offset: u64,
        /// What is wrong with it.
        why: DamageKind,
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

const NEW_EPOCH: &str = "Keep the file for diagnosis, and begin a new epoch in another folder: \
                         neither a repaired nor an older copy of a journal stands for it";

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
        /// The journal.
        path: PathBuf,
        /// Where the frame begins.
        offset: u64,
        /// What the file system said.
        source: io::Error,
    },
}

/// A journal's bytes, judged.
struct Judged {
    epoch: Epoch,
    next_sequence: u64,
    /// How many bytes are header and good frames.
    good: usize,
    /// Where the last good frame begins; `good` when there is none.
    last_frame_at: usize,
}

fn judge(path: &Path, bytes: &[u8]) -> Result<Judged, JournalError> {
    let header = Header::decode(bytes).map_err(|why| bad_header(path, why))?;
    if header.first_sequence != FIRST_SEQUENCE {
        return Err(JournalError::Unexpected { path: path.to_path_buf() });
    }
    let frames = bytes.get(Header::BYTES..).unwrap_or_default();
    let scan = record::scan(&header.epoch, header.first_sequence, frames)
        .map_err(|damage| damaged(path, damage))?;
    // Both lie within `bytes`, so they fit.
    let position = |at: u64| usize::try_from(at).map_or(bytes.len(), |at| at + Header::BYTES);
    let good = position(scan.good_bytes());
    let last_frame_at = scan.last_frame_at().map_or(good, position);
    let next_sequence = scan.next_sequence();
    Ok(Judged { epoch: header.epoch, next_sequence, good, last_frame_at })
}

fn bad_header(path: &Path, why: HeaderError) -> JournalError {
    let path = path.to_path_buf();
    match why {
        HeaderError::UnknownVersion { version } => {
            JournalError::UnknownVersion { path, offset: 0, version }
        }
        HeaderError::Short | HeaderError::Magic | HeaderError::Checksum => {
            JournalError::BadHeader { path, why }
        }
    }
}

fn damaged(path: &Path, Damage { at, why }: Damage) -> JournalError {
    let (path, offset) = (path.to_path_buf(), at.saturating_add(offset(Header::BYTES)));
    match why {
        DamageKind::UnknownVersion { version } => {
            JournalError::UnknownVersion { path, offset, version: u32::from(version) }
        }
        DamageKind::NotLast { .. }
        | DamageKind::TailTooLong { .. }
        | DamageKind::Gap { .. }
        | DamageKind::Repeat { .. }
        | DamageKind::Malformed => JournalError::Damaged { path, offset, why },
    }
}

/// Cuts what is torn and writes the last frame again; leaves the file ready for the next one.
fn make_durable(file: &mut File, bytes: &[u8], judged: &Judged) -> io::Result<()> {
    file.set_len(offset(judged.good))?;
    file.seek(SeekFrom::Start(offset(judged.last_frame_at)))?;
    file.write_all(bytes.get(judged.last_frame_at..judged.good).unwrap_or_default())?;
    file.sync_all()
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes durable that the journal has its name and its folder.
fn sync_names(dir: &Path, folder: &Path) -> Result<(), JournalError> {
    folder::sync(folder).map_err(io_at("sync", folder))?;
    folder::sync(dir).map_err(io_at("sync", dir))
}

fn lock(folder: &Path) -> Result<File, JournalError> {
    let path = folder.join(LOCK_NAME);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(io_at("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::Locked { path }),
        Err(TryLockError::Error(source)) => Err(io_at("lock", &path)(source)),
    }
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join(format!("{FIRST_SEQUENCE:020}.{LOG_EXTENSION}"))
}

/// Whether there is a journal that began: anything but a header with at most a torn first frame.
fn has_begun(folder: &Path) -> Result<bool, JournalError> {
    let expected = log_path(folder);
    let paths = log_paths(folder)?;
    if paths.is_empty() || paths != [expected.as_path()] {
        return Ok(!paths.is_empty());
    }
    let length = fs::metadata(&expected).map_err(io_at("look at", &expected))?.len();
    if length > offset(Header::BYTES) + u64::from(record::MAX_FRAME_BYTES) {
        return Ok(true);
    }
    let bytes = fs::read(&expected).map_err(io_at("read", &expected))?;
    let judged = judge(&expected, &bytes);
    Ok(!judged.is_ok_and(|judged| judged.next_sequence == FIRST_SEQUENCE))
}

/// All journal files, also of versions that write several.
fn log_paths(folder: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io_at("list", folder))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(io_at("list", folder))?.path();
        if path.extension().is_some_and(|extension| extension == LOG_EXTENSION) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// The one journal file; a second would be part of a journal that this version cannot read.
fn only_log(folder: &Path) -> Result<Option<PathBuf>, JournalError> {
    let expected = log_path(folder);
    let mut paths = log_paths(folder)?;
    match paths.iter().position(|path| *path != expected) {
        Some(other) => Err(JournalError::Unexpected { path: paths.swap_remove(other) }),
        None => Ok(paths.pop()),
    }
}

fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_path_buf();
    move |source| JournalError::Io { doing, path, source }
}

fn offset(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
