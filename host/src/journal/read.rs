//! Reading a journal from beside: what is durable, without a lock and without changing anything.
//!
//! Protects the owner, which may be writing: it takes no lock and leaves every byte as it is. It
//! never shows what is not durable: all frames but the last are, because none is written before the
//! one in front of it is synced; and the last is synced here before it is shown. What it cannot see
//! is that the owner's own sync of the last one failed: then the kernel may show what the disk
//! lacks, until the next opening writes it again.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pinfold_core::catalog::{Catalog, Event};
use pinfold_core::id::Epoch;
use pinfold_core::journal::record::BadFrame;
use pinfold_core::replay::{RecoverError, decode_event};

use super::chain::{self, Chain, Followed};
use super::error::{JournalError, io_at};
use super::place::{Contents, Place};
use super::segment::{Segment, u64_of};
use crate::disk::SystemDisk;
use crate::folder::is_absence;

/// How often what looks damaged is read again: an owner may be changing it.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(10);

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
    /// How many bytes that snapshot has; 0 where there is none.
    pub snapshot_bytes: u64,
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

impl SegmentReading {
    pub(super) fn of(segment: &Segment) -> Self {
        Self {
            path: segment.path.clone(),
            first_sequence: segment.first_sequence,
            next_sequence: segment.next_sequence,
            used_bytes: u64_of(segment.good),
            length_bytes: segment.length_bytes(),
        }
    }
}

/// A torn tail: a bad last frame, and nothing behind it.
///
/// Nobody was told that it is durable, unless it was changed after its sync, or the file was cut
/// short: no format of this kind can tell these from a frame that was being written.
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

/// What [`records`] shows, in order.
#[derive(Debug)]
pub enum Shown<'a> {
    /// These records are gone one by one: a snapshot stands for them.
    InSnapshot {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// A record.
    Record {
        /// Its number.
        sequence: u64,
        /// What was decided.
        event: &'a Event,
    },
}

/// Reads the journal of a data folder, also while its owner writes it.
///
/// # Errors
/// [`JournalError`] tells what is wrong, where, and what to do about it.
pub fn read(dir: &Path) -> Result<Reading, JournalError> {
    let place = Place::new(Arc::new(SystemDisk), dir);
    until_it_rests(&place, || read_contents(&place, &contents(&place)?), fault)
}

/// Shows every record behind the snapshot in order, until `show` breaks off.
///
/// No more than one segment is held at a time. When a snapshot replaces records while they are
/// being shown, that is shown in their place; nothing is shown twice.
///
/// # Errors
/// As for [`read()`]; what is in front of the fault was shown.
pub fn records(
    dir: &Path,
    show: &mut dyn FnMut(Shown<'_>) -> ControlFlow<()>,
) -> Result<(), JournalError> {
    let place = Place::new(Arc::new(SystemDisk), dir);
    let mut next = 0;
    until_it_rests(&place, || show_once(&place, &mut next, show), fault)
}

/// Reads again while the owner changes files under the reader, which `fault` of a try may tell.
///
/// As long as what was listed is gone and the names have changed since, an owner took it away: that
/// is no try. What is damaged in earnest stays so.
pub(super) fn until_it_rests<T>(
    place: &Place,
    mut read: impl FnMut() -> T,
    fault: impl Fn(&T) -> Option<&JournalError>,
) -> T {
    let mut tries = 0;
    loop {
        let before = place.contents().ok();
        let seen = read();
        let Some(error) = fault(&seen) else { return seen };
        let moved = is_gone(error) && place.contents().ok() != before;
        if !moved {
            tries += 1;
            if tries == TRIES || !may_be_moving(error) {
                return seen;
            }
        }
        thread::sleep(PAUSE);
    }
}

/// What was listed is not there.
pub(super) fn is_gone(error: &JournalError) -> bool {
    match error {
        JournalError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        error => matches!(error, JournalError::Missing { .. }),
    }
}

/// A segment that was removed, or grew while it was being read, is one that an owner works on.
fn may_be_moving(error: &JournalError) -> bool {
    match error {
        JournalError::Io { .. } => is_gone(error),
        error => error.is_damage(),
    }
}

fn fault<T>(read: &Result<T, JournalError>) -> Option<&JournalError> {
    read.as_ref().err()
}

/// What lies there; it is an error when that is nothing, or the data folder a file.
pub(super) fn contents(place: &Place) -> Result<Contents, JournalError> {
    match place.contents() {
        Ok(contents) if contents.is_empty() => Err(place.missing()),
        Err(JournalError::Io { source, .. }) if is_absence(source.kind()) => Err(place.missing()),
        contents => contents,
    }
}

/// Reads what was listed; the last segment is synced.
pub(super) fn read_contents(place: &Place, contents: &Contents) -> Result<Reading, JournalError> {
    let mut segments = Vec::new();
    let followed = chain::follow(place, contents, &mut |segment| {
        segments.push(SegmentReading::of(segment));
    })?;
    let Followed { replay, epoch, base, last, .. } = followed;
    place.disk.sync_file(&last.path).map_err(io_at("sync", &last.path))?;
    let torn = last.torn.map(|(offset, why)| Torn {
        path: last.path.clone(),
        offset,
        bytes: last.torn_bytes(),
        why,
    });
    let (catalog, records) = replay.into_parts().map_err(|why| match why {
        RecoverError::Empty => place.missing(),
        why => JournalError::BadRecord { path: last.path.clone(), why },
    })?;
    let (snapshot_records, snapshot_bytes) = base.unwrap_or_default();
    Ok(Reading { epoch, catalog, records, snapshot_records, snapshot_bytes, segments, torn })
}

fn show_once(
    place: &Place,
    next: &mut u64,
    show: &mut dyn FnMut(Shown<'_>) -> ControlFlow<()>,
) -> Result<(), JournalError> {
    let contents = contents(place)?;
    let mut chain = Chain::begin(place, contents.base())?;
    if let Some(last) = chain.replay.position().checked_sub(1).filter(|last| last >= next) {
        let first = std::mem::replace(next, last + 1);
        if show(Shown::InSnapshot { first, last }).is_break() {
            return Ok(());
        }
    }
    for first in contents.needed() {
        let (segment, damage) = Segment::read_to_damage(place, *first)?;
        let followed = chain.follow(place, &segment);
        place.disk.sync_file(&segment.path).map_err(io_at("sync", &segment.path))?;
        for (sequence, record) in segment.records() {
            // What was followed is shown, also when something behind it is at fault.
            if sequence < *next || sequence >= chain.replay.position() {
                continue;
            }
            // It was followed already, so it can be decoded.
            let bad = |why| JournalError::BadRecord { path: segment.path.clone(), why };
            let event = decode_event(record, sequence).map_err(bad)?;
            *next = sequence.saturating_add(1);
            if show(Shown::Record { sequence, event: &event }).is_break() {
                return Ok(());
            }
        }
        followed?;
        damage.map_or(Ok(()), Err)?;
    }
    chain.end(place)?;
    if *next == 0 { Err(place.missing()) } else { Ok(()) }
}
