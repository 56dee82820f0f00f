//! Looking at every file of a journal, also at those that an opening would not need any more.
//!
//! Reads from beside, as [`read()`](super::read()) does: no lock is taken and no byte is changed.
//! It judges, and never repairs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinfold_core::id::Epoch;

use super::chain::Chain;
use super::error::{JournalError, io_at};
use super::place::{Contents, Place};
use super::read::{
    Reading, SegmentReading, Torn, contents, is_gone, read_contents, until_it_rests,
};
use super::segment::Segment;
use crate::disk::SystemDisk;

/// Everything that a journal's folder holds, and whether it is as it was written.
#[derive(Debug)]
pub struct Verification {
    /// Each file, by name.
    pub files: Vec<FileReading>,
    /// What an opening would find; none when it would be refused.
    pub whole: Option<Whole>,
    /// What is damaged: first what an opening would be refused for, then what it would not need.
    pub damage: Vec<JournalError>,
}

/// A journal that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The life of the job.
    pub epoch: Epoch,
    /// How many records it has.
    pub records: u64,
    /// How many of them a snapshot stands for.
    pub snapshot_records: u64,
    /// What an opening would cut, or what is being written at this moment.
    pub torn: Option<Torn>,
}

/// A file of a journal's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReading {
    /// The file.
    pub path: PathBuf,
    /// How many bytes it has.
    pub length_bytes: u64,
    /// What it holds.
    pub holds: Holding,
    /// A newer snapshot stands for it: an opening removes it unread.
    pub covered: bool,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holding {
    /// A segment's records.
    Segment {
        /// The number of its first record.
        first_sequence: u64,
        /// The number after its last record.
        next_sequence: u64,
        /// How many bytes are header and good frames; behind them is room, or what is torn.
        used_bytes: u64,
    },
    /// A state.
    Snapshot {
        /// How many records it stands for.
        records: u64,
    },
    /// Room for the next segment, as every journal has that is or was open. An opening removes it.
    Room,
    /// What is being made, or what a crash left of it: an opening removes it.
    Unfinished,
    /// Something that is not as it was written.
    Damaged,
}

/// Looks at every file of the journal of a data folder, also while its owner writes it.
///
/// # Errors
/// [`JournalError`] when there is no journal, a file is of another version, or the file system
/// refuses to read. Damage is no error here: it is what was looked for.
pub fn verify(dir: &Path) -> Result<Verification, JournalError> {
    let place = Place::new(Arc::new(SystemDisk), dir);
    until_it_rests(
        &place,
        || verify_once(&place),
        |verified| match verified {
            Ok(verification) => verification.damage.first(),
            Err(error) => Some(error),
        },
    )
}

fn verify_once(place: &Place) -> Result<Verification, JournalError> {
    let contents = contents(place)?;
    let mut look = Look { place, files: Vec::new(), damage: Vec::new() };
    let reading = read_contents(place, &contents);
    let reading = look.or_damage(reading)?;
    look.covered(&contents)?;
    match &reading {
        // These files were read just now, and a second reading would be of another moment.
        Some(reading) => look.needed(reading),
        None => look.needed_one_by_one(&contents)?,
    }
    look.unfinished(&contents)?;
    let Look { mut files, damage, .. } = look;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let whole = reading.map(|reading| {
        let Reading { epoch, records, snapshot_records, torn, .. } = reading;
        Whole { epoch, records, snapshot_records, torn }
    });
    Ok(Verification { files, whole, damage })
}

/// A look at a listed folder, as far as it has come.
struct Look<'a> {
    place: &'a Place,
    files: Vec<FileReading>,
    damage: Vec<JournalError>,
}

impl Look<'_> {
    /// What a newer snapshot stands for; an owner may be removing it at this moment.
    fn covered(&mut self, contents: &Contents) -> Result<(), JournalError> {
        for first in contents.segments.iter().take(contents.covered()) {
            let read = self.segment(*first, false, true);
            unless_gone(read)?;
        }
        let older =
            contents.snapshots.iter().filter(|position| Some(**position) != contents.base());
        for position in older {
            let read = self.snapshot(*position, true);
            unless_gone(read)?;
        }
        Ok(())
    }

    /// What an opening would read, as it was read.
    fn needed(&mut self, reading: &Reading) {
        self.files.extend(reading.segments.iter().map(|segment| FileReading::of(segment, false)));
        if reading.snapshot_bytes > 0 {
            let path = self.place.snapshot(reading.snapshot_records);
            let holds = Holding::Snapshot { records: reading.snapshot_records };
            let length_bytes = reading.snapshot_bytes;
            self.files.push(FileReading { path, length_bytes, holds, covered: false });
        }
    }

    /// The same where an opening would be refused: each file by itself.
    fn needed_one_by_one(&mut self, contents: &Contents) -> Result<(), JournalError> {
        for first in contents.needed() {
            self.segment(*first, contents.segments.last() == Some(first), false)?;
        }
        contents.base().map_or(Ok(()), |position| self.snapshot(position, false))
    }

    fn unfinished(&mut self, contents: &Contents) -> Result<(), JournalError> {
        for path in &contents.unfinished {
            let length = self.place.disk.length(path).map_err(io_at("look at", path));
            // It may have got its own name since it was listed.
            if let Some(length_bytes) = unless_gone(length)? {
                let is_room = *path == self.place.next_room();
                let holds = if is_room { Holding::Room } else { Holding::Unfinished };
                let path = path.clone();
                self.files.push(FileReading { path, length_bytes, holds, covered: false });
            }
        }
        Ok(())
    }

    fn segment(&mut self, first: u64, is_last: bool, covered: bool) -> Result<(), JournalError> {
        let path = self.place.segment(first);
        let read = Segment::read(self.place, first).and_then(|segment| match segment.torn {
            Some((offset, why)) if !is_last => {
                Err(JournalError::TornInside { path: path.clone(), offset, why })
            }
            Some(_) | None => Ok(segment),
        });
        let file = match self.or_damage(read)? {
            Some(segment) => {
                // None but the last needs it: what is shown is durable.
                self.place.disk.sync_file(&path).map_err(io_at("sync", &path))?;
                FileReading::of(&SegmentReading::of(&segment), covered)
            }
            None => self.damaged(path, covered)?,
        };
        self.files.push(file);
        Ok(())
    }

    fn snapshot(&mut self, position: u64, covered: bool) -> Result<(), JournalError> {
        let path = self.place.snapshot(position);
        let file = match self.or_damage(Chain::begin(self.place, Some(position)))? {
            Some(chain) => {
                let (records, length_bytes) = chain.base.unwrap_or_default();
                FileReading { path, length_bytes, holds: Holding::Snapshot { records }, covered }
            }
            None => self.damaged(path, covered)?,
        };
        self.files.push(file);
        Ok(())
    }

    fn damaged(&self, path: PathBuf, covered: bool) -> Result<FileReading, JournalError> {
        let length_bytes = self.place.disk.length(&path).map_err(io_at("look at", &path))?;
        Ok(FileReading { path, length_bytes, holds: Holding::Damaged, covered })
    }

    /// What was read, or none and the damage, once.
    fn or_damage<T>(&mut self, read: Result<T, JournalError>) -> Result<Option<T>, JournalError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.is_damage() => {
                // The same fault is found by the whole journal's reading and by its file's.
                if self.damage.iter().all(|known| known.to_string() != error.to_string()) {
                    self.damage.push(error);
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl FileReading {
    fn of(segment: &SegmentReading, covered: bool) -> Self {
        let SegmentReading { first_sequence, next_sequence, used_bytes, .. } = *segment;
        let holds = Holding::Segment { first_sequence, next_sequence, used_bytes };
        Self { path: segment.path.clone(), length_bytes: segment.length_bytes, holds, covered }
    }
}

/// None where the file went away after it was listed, which leaves nothing to judge.
fn unless_gone<T>(read: Result<T, JournalError>) -> Result<Option<T>, JournalError> {
    match read {
        Err(error) if is_gone(&error) => Ok(None),
        read => read.map(Some),
    }
}
