//! A journal's folder on a disk: names, and what they say.
//!
//! A segment is named by the number of its first record, a snapshot by how many records it stands
//! for, both in 20 digits, so that names sort as numbers. What is being made has a temporary name
//! until it is whole and synced.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Absence, JournalError, io_at};
use crate::disk::{Disk, Lock};
use crate::folder::is_absence;

const FOLDER: &str = "journal";
const LOCK: &str = "lock";
const SEGMENT: &str = ".log";
const SNAPSHOT: &str = ".snapshot";
const TEMPORARY: &str = ".tmp";
/// What the room for the next segment is called while it is being set aside.
const NEXT: &str = "next";
const DIGITS: usize = 20;

/// Where a journal lies.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) disk: Arc<dyn Disk>,
    /// The data folder.
    pub(super) dir: PathBuf,
    /// The journal's folder in it.
    pub(super) folder: PathBuf,
}

/// What lies there, in order: listings of the same names are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// The first record's number of each segment.
    pub(super) segments: Vec<u64>,
    /// How many records each snapshot stands for.
    pub(super) snapshots: Vec<u64>,
    /// What is being made, or what a crash left of it.
    pub(super) unfinished: Vec<PathBuf>,
}

impl Contents {
    /// There is no journal, or none that has a name.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.snapshots.is_empty()
    }

    /// The snapshot to begin with.
    pub(super) fn base(&self) -> Option<u64> {
        self.snapshots.last().copied()
    }

    /// The segments that hold the records behind the base, and perhaps some in front of it.
    pub(super) fn needed(&self) -> &[u64] {
        self.segments.get(self.covered()..).unwrap_or_default()
    }

    /// How many of the segments have only records that the base stands for: those in front of the
    /// last one that begins no later than the base.
    pub(super) fn covered(&self) -> usize {
        let Some(base) = self.base() else { return 0 };
        self.segments.iter().filter(|first| **first <= base).count().saturating_sub(1)
    }
}

impl Place {
    pub(super) fn new(disk: Arc<dyn Disk>, dir: &Path) -> Self {
        Self { disk, dir: dir.to_path_buf(), folder: dir.join(FOLDER) }
    }

    pub(super) fn segment(&self, first: u64) -> PathBuf {
        self.folder.join(format!("{first:0DIGITS$}{SEGMENT}"))
    }

    pub(super) fn snapshot(&self, position: u64) -> PathBuf {
        self.folder.join(format!("{position:0DIGITS$}{SNAPSHOT}"))
    }

    /// Where room for the next segment is set aside.
    pub(super) fn next_room(&self) -> PathBuf {
        self.temporary(NEXT)
    }

    /// The name of something while it is being made.
    pub(super) fn temporary(&self, what: &str) -> PathBuf {
        self.folder.join(format!("{what}{TEMPORARY}"))
    }

    /// Names what lies there; nothing when there is no such folder.
    pub(super) fn contents(&self) -> Result<Contents, JournalError> {
        let names = match self.disk.names(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(io_at("list", &self.folder))?,
        };
        let mut contents = Contents::default();
        for name in names {
            if let Some(number) = name.strip_suffix(SEGMENT) {
                contents.segments.push(self.number(&name, number)?);
            } else if let Some(number) = name.strip_suffix(SNAPSHOT) {
                contents.snapshots.push(self.number(&name, number)?);
            } else if name.ends_with(TEMPORARY) {
                contents.unfinished.push(self.folder.join(name));
            }
        }
        contents.segments.sort_unstable();
        contents.snapshots.sort_unstable();
        contents.unfinished.sort_unstable();
        Ok(contents)
    }

    /// That no journal is here, and what is.
    pub(super) fn missing(&self) -> JournalError {
        let holds_one = |place: &Self| place.contents().is_ok_and(|contents| !contents.is_empty());
        let inside = Self { folder: self.dir.clone(), ..self.clone() };
        let is_there = || self.disk.length(&self.dir).is_ok();
        let found = match self.disk.names(&self.dir).map_err(|error| error.kind()) {
            Err(io::ErrorKind::NotADirectory) if is_there() => Absence::File,
            Err(kind) if is_absence(kind) => Absence::Nothing,
            Ok(_) | Err(_) if holds_one(self) => Absence::NoRecord,
            Ok(_) | Err(_) if holds_one(&inside) => Absence::JournalItself,
            Ok(_) | Err(_) => Absence::OtherFolder,
        };
        JournalError::Missing { dir: self.dir.clone(), found }
    }

    /// Nobody means to keep a job among the segments of another.
    pub(super) fn refuse_a_journal_itself(&self) -> Result<(), JournalError> {
        match self.missing() {
            error @ JournalError::Missing { found: Absence::JournalItself, .. } => Err(error),
            _ => Ok(()),
        }
    }

    fn number(&self, name: &str, number: &str) -> Result<u64, JournalError> {
        let is_ours = number.len() == DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
        let unexpected = || JournalError::Unexpected { path: self.folder.join(name) };
        number.parse().ok().filter(|_| is_ours).ok_or_else(unexpected)
    }

    pub(super) fn lock(&self) -> Result<Box<dyn Lock>, JournalError> {
        let path = self.folder.join(LOCK);
        let lock = self.disk.lock(&path).map_err(io_at("lock", &path))?;
        lock.ok_or(JournalError::Locked { path })
    }

    /// Makes durable that the journal's files have their names, and the journal its folder.
    pub(super) fn sync_names(&self) -> Result<(), JournalError> {
        self.disk.sync_folder(&self.folder).map_err(io_at("sync", &self.folder))?;
        self.disk.sync_folder(&self.dir).map_err(io_at("sync", &self.dir))
    }

    /// Writes a whole file under a temporary name, syncs it, and only then gives it its own.
    pub(super) fn publish(
        &self,
        path: &Path,
        temporary: &Path,
        bytes: &[u8],
    ) -> Result<(), JournalError> {
        let mut file = self.disk.create(temporary).map_err(io_at("create", temporary))?;
        let written = file.write_at(0, bytes).map_err(io_at("write", temporary));
        let synced = written.and_then(|()| file.sync().map_err(io_at("sync", temporary)));
        if let Err(error) = synced {
            // Half of it only takes room.
            let _ = self.disk.remove(temporary);
            return Err(error);
        }
        self.disk.rename(temporary, path).map_err(io_at("rename to its own name", temporary))?;
        self.disk.sync_folder(&self.folder).map_err(io_at("sync", &self.folder))
    }

    pub(super) fn remove(&self, path: &Path) -> Result<(), JournalError> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_at("remove", path)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Removes what the newest snapshot covers, oldest first. In whatever order a crash keeps the
    /// removals, what is needed is there.
    pub(super) fn remove_covered(&self, contents: &Contents) -> Result<(), JournalError> {
        for first in contents.segments.iter().take(contents.covered()) {
            self.remove(&self.segment(*first))?;
        }
        let older = contents.snapshots.len().saturating_sub(1);
        for position in contents.snapshots.iter().take(older) {
            self.remove(&self.snapshot(*position))?;
        }
        Ok(())
    }
}
