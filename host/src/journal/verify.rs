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
    Reading, SegmentReading, Torn, contents, may_be_moving, read_once, until_it_rests,
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
    // What looks damaged is looked at again, because an owner may be changing it.
    until_it_rests(
        || verify_once(&place),
        |verified| match verified {
            Ok(verification) => !verification.damage.is_empty(),
            Err(error) => may_be_moving(error),
        },
    )
}

fn verify_once(place: &Place) -> Result<Verification, JournalError> {
    let contents = contents(place)?;
    let mut damage = Vec::new();
    let whole = or_damage(read_once(place), &mut damage)?.map(|reading| {
        let Reading { epoch, records, snapshot_records, torn, .. } = reading;
        Whole { epoch, records, snapshot_records, torn }
    });
    let mut files = segments(place, &contents, &mut damage)?;
    files.extend(snapshots(place, &contents, &mut damage)?);
    for path in &contents.leftovers {
        let length_bytes = place.disk.length(path).map_err(io_at("look at", path))?;
        let path = path.clone();
        files.push(FileReading { path, length_bytes, holds: Holding::Unfinished, covered: false });
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Verification { files, whole, damage })
}

fn segments(
    place: &Place,
    contents: &Contents,
    damage: &mut Vec<JournalError>,
) -> Result<Vec<FileReading>, JournalError> {
    let mut files = Vec::new();
    for (number, first) in contents.segments.iter().enumerate() {
        let path = place.segment(*first);
        let covered = number < contents.covered();
        let read = Segment::read(place, *first).and_then(|segment| match segment.torn {
            Some((offset, why)) if number + 1 < contents.segments.len() => {
                Err(JournalError::TornInside { path: path.clone(), offset, why })
            }
            Some(_) | None => Ok(segment),
        });
        let file = match or_damage(read, damage)? {
            Some(segment) => {
                let reading = SegmentReading::of(&segment);
                let SegmentReading { first_sequence, next_sequence, used_bytes, .. } = reading;
                let holds = Holding::Segment { first_sequence, next_sequence, used_bytes };
                FileReading { path, length_bytes: reading.length_bytes, holds, covered }
            }
            None => damaged_file(place, path, covered)?,
        };
        files.push(file);
    }
    Ok(files)
}

fn snapshots(
    place: &Place,
    contents: &Contents,
    damage: &mut Vec<JournalError>,
) -> Result<Vec<FileReading>, JournalError> {
    let mut files = Vec::new();
    for position in &contents.snapshots {
        let path = place.snapshot(*position);
        let covered = Some(*position) != contents.base();
        let file = match or_damage(Chain::begin(place, Some(*position)), damage)? {
            Some(chain) => {
                let records = chain.replay.position();
                let length_bytes = chain.base.map_or(0, |(_, bytes)| bytes);
                FileReading { path, length_bytes, holds: Holding::Snapshot { records }, covered }
            }
            None => damaged_file(place, path, covered)?,
        };
        files.push(file);
    }
    Ok(files)
}

fn damaged_file(place: &Place, path: PathBuf, covered: bool) -> Result<FileReading, JournalError> {
    let length_bytes = place.disk.length(&path).map_err(io_at("look at", &path))?;
    Ok(FileReading { path, length_bytes, holds: Holding::Damaged, covered })
}

/// What was read, or none and the damage, once.
fn or_damage<T>(
    read: Result<T, JournalError>,
    damage: &mut Vec<JournalError>,
) -> Result<Option<T>, JournalError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_damage() => {
            // The same fault is found by the whole journal's reading and by its file's.
            if damage.iter().all(|known| known.to_string() != error.to_string()) {
                damage.push(error);
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
