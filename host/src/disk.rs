//! The file system as a journal sees it: few calls, each of which can fail.
//!
//! A journal is proven on a disk that loses whatever was not synced, in any order, so it touches
//! files through [`Disk`] alone. [`SystemDisk`] is the machine's own. Nothing here retries.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use crate::folder;

/// Files and folders of one machine. Each call fails with what the file system says.
///
/// What [`DiskFile::sync`] acknowledged is there after a crash. A name that was created, renamed or
/// removed is so after a crash once [`sync_folder`](Self::sync_folder) acknowledged it; before,
/// it is as it was or as it became, and nothing in between.
pub trait Disk: Debug + Send + Sync {
    /// Creates a folder and what is missing above it, and makes durable that it is there.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// The names in a folder, in no order; `NotFound` when there is no such folder.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Creates an empty file for writing, or empties the one that is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file that is there for writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// How many bytes a file has; nothing of it is read.
    fn length(&self, path: &Path) -> io::Result<u64>;

    /// Reads a whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Makes durable what anybody wrote to a file, without opening it for writing.
    fn sync_file(&self, path: &Path) -> io::Result<()>;

    /// Gives a file another name in the same folder, in place of what has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Locks a file, which is created when it is missing, until the lock is dropped or its process
    /// ends; none when somebody else holds it.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>>;
}

/// A file that is open for writing. Each call fails with what the file system says.
pub trait DiskFile: Debug + Send {
    /// Writes these bytes at this place. After an error any part of them may be there.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or fills it up with zeros, to this length.
    fn set_length(&mut self, bytes: u64) -> io::Result<()>;

    /// Makes durable what was written, and the file's length.
    ///
    /// After an error nobody knows what is on the disk, and another sync that goes well does not
    /// change that.
    fn sync(&mut self) -> io::Result<()>;
}

/// A lock, held until it is dropped.
pub trait Lock: Debug + Send {}

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        folder::create_durably(folder)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        fs::read_dir(folder)?.map(name).collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().write(true).open(path)?))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::symlink_metadata(path)?.len())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_data()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        folder::sync(folder)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(LockedFile(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl DiskFile for File {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A file that is unlocked in so many words and not by closing it alone: a process that is just
/// being started holds a copy of every open file until its program begins, and so the lock.
#[derive(Debug)]
struct LockedFile(File);

impl Lock for LockedFile {}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // When it fails, closing the file unlocks it.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of the open file, as a process that is being started has it, holds no lock.
    #[test]
    fn a_lock_ends_when_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = File::create(&path).unwrap();
        file.try_lock().unwrap();
        let copy = file.try_clone().unwrap();
        let lock = LockedFile(file);
        assert!(SystemDisk.lock(&path).unwrap().is_none());
        drop(lock);
        assert!(SystemDisk.lock(&path).unwrap().is_some());
        drop(copy);
    }
}
