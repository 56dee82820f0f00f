//! Reading a journal from beside: what is durable, without a lock and without changing anything.
//!
//! Protects the owner, which may be writing: it takes no lock and leaves every byte as it is. It
//! never shows what is not durable: all frames but the last are, because none is written before the
//! one in front of it is synced; and the last is synced here before it is shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pinfold_core::catalog::{Catalog, Event};
use pinfold_core::id::Epoch;
use pinfold_core::journal::record::BadFrame;
use pinfold_core::replay::{RecoverError, decode_event};

use super::chain::{self, Followed};
use super::error::{JournalError, io_at};
use super::place::Place;
use super::segment::{Segment, offset};
use crate::disk::{Disk, SystemDisk};

/// How often a journal that moves under the reader is read again.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// A journal as it was read.
#[derive(Debug)]
pub struct Reading {
    /// The life of the job.
    pub epoch: Epoch,
    /// The state after the last record.
    pub catalog: Catalog,
    /// How many records the job has so far.
    pub records: u64,
    /// How many of them a snapshot stands for.
    pub snapshot_records: u64,
    /// The segments behind the snapshot, in order.
    pub segments: Vec<SegmentReading>,
    /// The bad frame at the end, which the next opening cuts, or which is being written now.
    pub torn: Option<Torn>,
}

/// A segment as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReading {
    /// The file.
    pub path: PathBuf,
    /// The number of its first record.
    pub first_sequence: u64,
    /// The number after its last record.
    pub next_sequence: u64,
    /// How many bytes are header and good frames.
    pub used_bytes: u64,
    /// How many bytes the file has.
    pub length_bytes: u64,
}

/// A torn tail: nobody was told that it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub path: PathBuf,
    /// Where it begins, from the start of the file.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// What is bad about it.
    pub why: BadFrame,
}

/// Reads the journal of a data folder, also while its owner writes it.
///
/// # Errors
/// [`JournalError`] tells what is wrong, where, and what to do about it.
pub fn read(dir: &Path) -> Result<Reading, JournalError> {
    read_on(Arc::new(SystemDisk), dir, &mut |_| {})
}

/// Reads the journal of a data folder, and gives every record behind the snapshot as an event with
/// its number, in order.
///
/// # Errors
/// As for [`read()`].
pub fn records(dir: &Path) -> Result<(Reading, Vec<(u64, Event)>), JournalError> {
    let mut events = Vec::new();
    let reading = read_on(Arc::new(SystemDisk), dir, &mut |segment| {
        // A reading that begins anew shows the first segment again.
        events.retain(|(sequence, _)| *sequence < segment.first_sequence);
        // Each was followed already, so each can be decoded.
        let decoded = segment.records().filter_map(|(sequence, record)| {
            decode_event(record, sequence).ok().map(|event| (sequence, event))
        });
        events.extend(decoded);
    })?;
    events.retain(|(sequence, _)| *sequence >= reading.snapshot_records);
    Ok((reading, events))
}

fn read_on(
    disk: Arc<dyn Disk>,
    dir: &Path,
    look: &mut dyn FnMut(&Segment),
) -> Result<Reading, JournalError> {
    let place = Place::new(disk, dir);
    let mut tries = 0;
    loop {
        tries += 1;
        match read_once(&place, look) {
            Err(error) if tries < TRIES && may_be_moving(&error) => thread::sleep(PAUSE),
            read => return read,
        }
    }
}

/// A segment that was removed, or grew while it was being read, is one that an owner works on; what
/// is damaged in earnest stays so.
fn may_be_moving(error: &JournalError) -> bool {
    match error {
        JournalError::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        error => error.is_damage(),
    }
}

fn read_once(place: &Place, look: &mut dyn FnMut(&Segment)) -> Result<Reading, JournalError> {
    let contents = place.contents()?;
    if contents.is_empty() {
        return Err(JournalError::Missing { dir: place.dir.clone() });
    }
    let mut segments = Vec::new();
    let followed = chain::follow(place, &contents, &mut |segment| {
        look(segment);
        segments.push(SegmentReading {
            path: segment.path.clone(),
            first_sequence: segment.first_sequence,
            next_sequence: segment.next_sequence,
            used_bytes: offset(segment.good),
            length_bytes: segment.length_bytes(),
        });
    })?;
    let Followed { replay, epoch, base, last, .. } = followed;
    place.disk.sync_file(&last.path).map_err(io_at("sync", &last.path))?;
    let torn = last.torn.map(|(offset, why)| Torn {
        path: last.path.clone(),
        offset,
        bytes: last.torn_bytes(),
        why,
    });
    let (catalog, records) = replay
        .into_parts()
        .map_err(|why: RecoverError| JournalError::BadRecord { path: last.path.clone(), why })?;
    let snapshot_records = base.map_or(0, |(position, _)| position);
    Ok(Reading { epoch, catalog, records, snapshot_records, segments, torn })
}
