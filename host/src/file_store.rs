//! Objects as files under `DIR/objects`: for one machine, a shared file system, and for tests.
//!
//! Protects keys: an object appears whole under its key or not at all, and is never written over.
//! It is written under a name of its own in `.tmp` and then *linked* to its key, which fails when
//! the key is taken; a shared page is moved there, for another one of its name is the same. The
//! folder bears a mark: when that is missing, the file system is not mounted or is another one, and
//! then nothing is called absent or gone.
//!
//! It never syncs an object unless told to ([`FileStoreOptions`]): what a power cut takes, the
//! object's size and trailer tell. It needs a file system with hard links.
//!
//! A part of a key is the name of a folder, the last part of the file. A key may therefore not be
//! the beginning of another; keys of ours, all of six parts, never are.

mod listing;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::folder::{self, is_absence};
use crate::store::{DeleteOutcome, GetOutcome, ListError, ObjectStore, Presence, PutOutcome, Why};

const OBJECTS_FOLDER: &str = "objects";
/// No part of a key may hold a dot, so these two are never taken for objects.
const MARK_NAME: &str = ".pinfold-objects";
const ATTEMPTS_FOLDER: &str = ".tmp";
/// Attempts go to this many folders in turn, because a kernel creates one file at a time in each.
const ATTEMPTS_FOLDERS: u64 = 16;
const MAX_KEY_BYTES: usize = 1024;
const MAX_PART_BYTES: usize = 255;
const MAX_PARTS: usize = 16;
/// How often a folder may vanish between its creation and the link into it.
const LINK_TRIES: u32 = 64;

/// How a [`FileStore`] writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStoreOptions {
    /// Syncs each object and all folders above it, which others may have created and not synced,
    /// before it counts as stored or gone. Off by default: a checkpoint that a power cut takes is
    /// one recomputation, and some syncs for each object are the price of the whole store.
    pub sync_objects: bool,
}

/// Objects as files; any number of processes may use one folder at the same time.
#[derive(Debug)]
pub struct FileStore {
    root: PathBuf,
    options: FileStoreOptions,
    /// Tells the attempts of this store from those of another process of the same number.
    started_nanos: u128,
    attempts: AtomicU64,
}

impl FileStore {
    /// Opens the store of a data folder, and creates it when there is none.
    ///
    /// For the start of a job alone: later it would take an empty mount point for an empty store.
    ///
    /// # Errors
    /// [`FileStoreError::Io`].
    pub fn create(dir: &Path, options: FileStoreOptions) -> Result<Self, FileStoreError> {
        let root = dir.join(OBJECTS_FOLDER);
        folder::create_durably(&root).map_err(io_at("create", &root))?;
        let mark = root.join(MARK_NAME);
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&mark)
            .and_then(|file| file.sync_all())
            .and_then(|()| folder::sync(&root))
            .map_err(io_at("create", &mark))?;
        Self::open(dir, options)
    }

    /// Opens the store of a data folder that has one.
    ///
    /// # Errors
    /// [`FileStoreError::Missing`] when the folder is not a store, or not mounted.
    pub fn open(dir: &Path, options: FileStoreOptions) -> Result<Self, FileStoreError> {
        let root = dir.join(OBJECTS_FOLDER);
        let mark = root.join(MARK_NAME);
        match fs::metadata(&mark) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(FileStoreError::Missing { root });
            }
            found => found.map_err(io_at("look at", &mark))?,
        };
        for number in 0..ATTEMPTS_FOLDERS {
            let attempts = attempts_folder(&root, number);
            fs::create_dir_all(&attempts).map_err(io_at("create", &attempts))?;
        }
        if options.sync_objects {
            folder::sync_above(&root).map_err(io_at("sync what is above", &root))?;
        }
        // Only tells names apart; any value will do.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_nanos = since.as_nanos();
        Ok(Self { root, options, started_nanos, attempts: AtomicU64::new(0) })
    }

    /// Removes what puts left behind that never ended, and says how many bytes that were.
    ///
    /// Only while no process puts into this folder: a put that is under way would fail.
    ///
    /// # Errors
    /// [`FileStoreError::Io`] when one of them cannot be removed.
    pub fn remove_leftovers(&self) -> Result<u64, FileStoreError> {
        let mut bytes = 0_u64;
        for number in 0..ATTEMPTS_FOLDERS {
            let attempts = attempts_folder(&self.root, number);
            for entry in fs::read_dir(&attempts).map_err(io_at("list", &attempts))? {
                let entry = entry.map_err(io_at("list", &attempts))?;
                let path = entry.path();
                let length = entry.metadata().map_err(io_at("look at", &path))?.len();
                fs::remove_file(&path).map_err(io_at("remove", &path))?;
                bytes = bytes.saturating_add(length);
            }
        }
        Ok(bytes)
    }

    /// Writes the object under a name of its own; what it leaves on failure is no object.
    fn write_attempt(&self, parts: &[&[u8]]) -> Result<Attempt, Why> {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{number}", std::process::id(), self.started_nanos);
        let path = attempts_folder(&self.root, number).join(name);
        // Another one of this name is somebody else's, so it is not ours to remove.
        let mut file = File::create_new(&path).map_err(why_at("create", &path))?;
        let attempt = Attempt { path, moved: false };
        let mut expected = 0_u64;
        for part in parts {
            file.write_all(part).map_err(why_at("write", &attempt.path))?;
            expected = expected.saturating_add(length(part));
        }
        if self.options.sync_objects {
            file.sync_all().map_err(why_at("sync", &attempt.path))?;
        }
        let bytes = file.metadata().map_err(why_at("look at", &attempt.path))?.len();
        if bytes == expected {
            Ok(attempt)
        } else {
            let path = attempt.path.display();
            Err(Why::new(format!("wrote {expected} bytes to {path}, which has {bytes}")))
        }
    }

    /// Gives a written object its key. Folders are created once they are missed.
    fn link(&self, attempt: &mut Attempt, path: &Path, sharing: Sharing) -> Linked {
        let above = path.parent().unwrap_or(&self.root);
        for _ in 0..LINK_TRIES {
            let Err(error) = attempt.become_object(path, sharing) else {
                return self.linked(above);
            };
            match error.kind() {
                ErrorKind::NotFound => {}
                ErrorKind::AlreadyExists => return Linked::Taken,
                kind if is_definite(kind) => {
                    return Linked::No(why_at("link to its key", path)(error));
                }
                _ => return Linked::Unknown(why_at("link to its key", path)(error)),
            }
            match fs::create_dir_all(above) {
                // A delete found one of them empty and removed it meanwhile.
                Err(error) if is_pruning(error.kind()) => {}
                Err(error) => return Linked::No(why_at("create", above)(error)),
                Ok(()) => {}
            }
        }
        let path = path.display();
        Linked::No(Why::new(format!("the folder of {path} vanished again and again")))
    }

    fn linked(&self, above: &Path) -> Linked {
        if !self.options.sync_objects {
            return Linked::Yes;
        }
        match folder::sync_up_to(&self.root, above) {
            Ok(()) => Linked::Yes,
            Err(error) => Linked::Unknown(why_at("sync the folders down to", above)(error)),
        }
    }

    fn put_as(&self, key: &str, parts: &[&[u8]], sharing: Sharing) -> PutOutcome {
        let path = match self.path_of(key) {
            Ok(path) => path,
            Err(why) => return PutOutcome::Failed(why),
        };
        let bytes = parts.iter().map(|part| length(part)).fold(0, u64::saturating_add);
        if sharing == Sharing::Shared
            && let Presence::Present { bytes: stored } = self.presence(&path)
        {
            return self.shared_by_others(&path, stored, bytes);
        }
        let mut attempt = match self.write_attempt(parts) {
            Ok(attempt) => attempt,
            Err(why) => return PutOutcome::Failed(why),
        };
        match (self.link(&mut attempt, &path, sharing), sharing) {
            (Linked::Yes, _) => PutOutcome::Stored,
            (Linked::No(why), _) => PutOutcome::Failed(why),
            (Linked::Unknown(why), _) => PutOutcome::Unknown(why),
            (Linked::Taken, Sharing::Private) => PutOutcome::Failed(taken(key)),
            (Linked::Taken, Sharing::Shared) => match self.presence(&path) {
                Presence::Present { bytes: stored } => self.shared_by_others(&path, stored, bytes),
                Presence::Absent | Presence::Unknown(_) => PutOutcome::Failed(taken(key)),
            },
        }
    }

    /// A shared page is named by its content, so what others stored in equal size is this one.
    fn shared_by_others(&self, path: &Path, stored: u64, bytes: u64) -> PutOutcome {
        if stored != bytes {
            let path = path.display();
            let words = format!("there is an object of {stored} bytes at {path}, not of {bytes}");
            return PutOutcome::Failed(Why::new(words));
        }
        if !self.options.sync_objects {
            return PutOutcome::Stored;
        }
        // Whoever stored it may not have synced it, or not yet.
        let above = path.parent().unwrap_or(&self.root);
        let synced = File::open(path).and_then(|file| file.sync_all());
        match synced.and_then(|()| folder::sync_up_to(&self.root, above)) {
            Ok(()) => PutOutcome::Stored,
            Err(error) => PutOutcome::Unknown(why_at("sync", path)(error)),
        }
    }

    fn presence(&self, path: &Path) -> Presence {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_file() => Presence::Present { bytes: found.len() },
            // The folder of longer keys; there is no object under this one.
            Ok(found) if found.is_dir() => Presence::Absent,
            Ok(_) => {
                let path = path.display();
                Presence::Unknown(Why::new(format!("{path} is something else than a file")))
            }
            Err(error) if is_absence(error.kind()) => match self.unless_unmounted() {
                Ok(()) => Presence::Absent,
                Err(why) => Presence::Unknown(why),
            },
            Err(error) => Presence::Unknown(why_at("look at", path)(error)),
        }
    }

    fn read(&self, path: &Path, into: &mut [u8]) -> GetOutcome {
        match self.presence(path) {
            Presence::Present { bytes } if bytes == length(into) => {}
            Presence::Present { bytes } => return GetOutcome::WrongSize { bytes },
            Presence::Absent => return GetOutcome::Absent,
            Presence::Unknown(why) => return GetOutcome::Unknown(why),
        }
        match File::open(path).and_then(|mut file| file.read_exact(into)) {
            Ok(()) => GetOutcome::Read,
            // An object never changes, so it doesn't grow back.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                GetOutcome::Unreadable(why_at("read to its end", path)(error))
            }
            Err(error) => GetOutcome::Unknown(why_at("read", path)(error)),
        }
    }

    fn remove(&self, path: &Path) -> DeleteOutcome {
        match fs::remove_file(path) {
            Ok(()) => self.removed(path),
            Err(error) if is_absence(error.kind()) => match self.unless_unmounted() {
                // Who deleted it may have failed to sync that.
                Ok(()) => self.removed(path),
                Err(why) => DeleteOutcome::Unknown(why),
            },
            Err(_) if path.is_dir() => DeleteOutcome::Gone,
            Err(error) if is_refusal(error.kind()) => {
                DeleteOutcome::Refused(why_at("delete", path)(error))
            }
            Err(error) => DeleteOutcome::Unknown(why_at("delete", path)(error)),
        }
    }

    fn removed(&self, path: &Path) -> DeleteOutcome {
        let above = path.parent().unwrap_or(&self.root);
        if self.options.sync_objects
            && let Err(error) = folder::sync_nearest(&self.root, above)
        {
            return DeleteOutcome::Unknown(why_at("sync", above)(error));
        }
        self.prune(above);
        DeleteOutcome::Gone
    }

    /// The file of a key; the alphabet leaves no way out of the folder.
    fn path_of(&self, key: &str) -> Result<PathBuf, Why> {
        if is_key(key) {
            Ok(self.root.join(key))
        } else {
            let start: String = key.chars().take(200).collect();
            Err(Why::new(format!(
                "{start:?} is no key of a file store: at most {MAX_PARTS} parts of 1 to \
                 {MAX_PART_BYTES} of a-z0-9-, joined by /, {MAX_KEY_BYTES} bytes in all"
            )))
        }
    }

    /// That something was not found means that it is absent, if this still is the store.
    fn unless_unmounted(&self) -> Result<(), Why> {
        let mark = self.root.join(MARK_NAME);
        match fs::metadata(&mark) {
            Ok(_) => Ok(()),
            Err(error) => Err(why_at("find the mark of the store", &mark)(error)),
        }
    }

    /// Removes folders that are empty, from this one up; whoever needs one creates it again.
    fn prune(&self, folder: &Path) {
        for folder in folder.ancestors() {
            if folder == self.root || fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }
}

impl ObjectStore for FileStore {
    fn put(&self, key: &str, parts: &[&[u8]]) -> PutOutcome {
        self.put_as(key, parts, Sharing::Private)
    }

    fn put_shared(&self, key: &str, parts: &[&[u8]]) -> PutOutcome {
        self.put_as(key, parts, Sharing::Shared)
    }

    fn size(&self, key: &str) -> Presence {
        match self.path_of(key) {
            Ok(path) => self.presence(&path),
            Err(why) => Presence::Unknown(why),
        }
    }

    fn get(&self, key: &str, into: &mut [u8]) -> GetOutcome {
        match self.path_of(key) {
            Ok(path) => self.read(&path, into),
            Err(why) => GetOutcome::Unknown(why),
        }
    }

    fn delete(&self, key: &str) -> DeleteOutcome {
        match self.path_of(key) {
            Ok(path) => self.remove(&path),
            Err(why) => DeleteOutcome::Refused(why),
        }
    }

    fn list(&self, visit: &mut dyn FnMut(&str, u64)) -> Result<(), ListError> {
        self.unless_unmounted().map_err(ListError)?;
        listing::walk(&self.root, visit)?;
        // Unmounted meanwhile, the list would have ended early without an error.
        self.unless_unmounted().map_err(ListError)
    }
}

/// Why a folder cannot be used as a store.
#[derive(Debug, thiserror::Error)]
pub enum FileStoreError {
    /// The mark is missing.
    #[error(
        "{root} is no store of objects: check the path and that its file system is mounted; a \
         new one is made by a new job alone, or by `serve --create-store`"
    )]
    Missing {
        /// Where it should be.
        root: PathBuf,
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Private,
    Shared,
}

/// Whether a written object got its key.
enum Linked {
    Yes,
    Taken,
    No(Why),
    Unknown(Why),
}

/// A file in `.tmp`: no object, and removed when its put ends.
struct Attempt {
    path: PathBuf,
    moved: bool,
}

impl Attempt {
    /// A private object is linked to its key, which fails when the key is taken. A shared page may
    /// be moved over another one of its name, whose content is the same; that is one step less.
    fn become_object(&mut self, path: &Path, sharing: Sharing) -> io::Result<()> {
        match sharing {
            Sharing::Private => fs::hard_link(&self.path, path),
            Sharing::Shared => {
                fs::rename(&self.path, path)?;
                self.moved = true;
                Ok(())
            }
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.moved {
            // What cannot be removed is a leftover, which `remove_leftovers` counts.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn attempts_folder(root: &Path, number: u64) -> PathBuf {
    root.join(ATTEMPTS_FOLDER).join(format!("{:x}", number % ATTEMPTS_FOLDERS))
}

fn taken(key: &str) -> Why {
    Why::new(format!("there is something else under {key} already"))
}

fn is_key(key: &str) -> bool {
    let part_fits = |part: &str| {
        let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        (1..=MAX_PART_BYTES).contains(&part.len()) && part.bytes().all(allowed)
    };
    key.len() <= MAX_KEY_BYTES
        && key.split('/').all(part_fits)
        && key.split('/').count() <= MAX_PARTS
}

/// What creating a folder says while another thread removes folders on the way to it.
fn is_pruning(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::AlreadyExists)
}

/// The file system decided not to, and will not come back to it.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::ResourceBusy
    )
}

/// A link was definitely not made, and will not be.
fn is_definite(kind: ErrorKind) -> bool {
    is_refusal(kind)
        || is_absence(kind)
        || matches!(
            kind,
            ErrorKind::StorageFull
                | ErrorKind::QuotaExceeded
                | ErrorKind::Unsupported
                | ErrorKind::CrossesDevices
                | ErrorKind::InvalidInput
        )
}

fn why_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Why {
    move |error| Why::new(format!("could not {doing} {}: {error}", path.display()))
}

fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileStoreError {
    let path = path.to_path_buf();
    move |source| FileStoreError::Io { doing, path, source }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
