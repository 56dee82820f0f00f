//! One segment: a header, frames, and zeros up to the length that was set aside.
//!
//! Protects what was synced: a segment never grows, so that a sync has nothing to write but the
//! frame; and one that was cut is never written again.

use std::io;
use std::path::{Path, PathBuf};

use pinfold_core::id::Epoch;
use pinfold_core::journal::record::{self, BadFrame, End, Header};

use super::error::{AppendError, JournalError, bad_header, damaged, io_at};
use super::place::Place;
use crate::disk::DiskFile;

/// What is written at once, and synced, when room is set aside: little enough that a frame's sync
/// beside it does not wait long.
const FILL_BYTES: usize = 1 << 20;

/// The most bytes that a segment has; a longer file is not read. It bounds the memory of a reading.
pub(super) const MAX_SEGMENT_BYTES: u64 = 1 << 30;

/// A segment that was read and judged.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) epoch: Epoch,
    pub(super) first_sequence: u64,
    pub(super) next_sequence: u64,
    /// The bad last frame, and where it begins, from the start of the file.
    pub(super) torn: Option<(u64, BadFrame)>,
    /// How many bytes are header and good frames.
    pub(super) good: usize,
    /// Where the last good frame begins; `good` when there is none.
    last_frame_at: usize,
    bytes: Vec<u8>,
}

impl Segment {
    /// Reads the segment of this name; a damaged one is refused as a whole.
    pub(super) fn read(place: &Place, first_sequence: u64) -> Result<Self, JournalError> {
        match Self::read_to_damage(place, first_sequence)? {
            (segment, None) => Ok(segment),
            (_, Some(damage)) => Err(damage),
        }
    }

    /// Reads the segment of this name up to its end or to what is damaged in it, which is told
    /// beside it. For those who look on: nothing may go on from what is in front of damage.
    pub(super) fn read_to_damage(
        place: &Place,
        first_sequence: u64,
    ) -> Result<(Self, Option<JournalError>), JournalError> {
        let path = place.segment(first_sequence);
        let length_bytes = place.disk.length(&path).map_err(io_at("look at", &path))?;
        if length_bytes > MAX_SEGMENT_BYTES {
            return Err(JournalError::Foreign { path, what: "it is longer than a segment is" });
        }
        let bytes = place.disk.read(&path).map_err(io_at("read", &path))?;
        let (segment, damage) = Self::judge(path, bytes)?;
        if segment.first_sequence == first_sequence {
            return Ok((segment, damage));
        }
        let what = "its header names another first record than its name";
        Err(JournalError::Foreign { path: segment.path, what })
    }

    fn judge(path: PathBuf, bytes: Vec<u8>) -> Result<(Self, Option<JournalError>), JournalError> {
        let header = Header::decode(&bytes).map_err(|why| bad_header(&path, why))?;
        let Header { epoch, first_sequence } = header;
        let frames = bytes.get(Header::BYTES..).unwrap_or_default();
        let error = |damage| damaged(&path, u64_of(Header::BYTES), damage);
        let (scan, damage) = match record::scan(&epoch, first_sequence, frames) {
            Ok(scan) => (scan, None),
            Err(damage) => {
                let at = usize::try_from(damage.at).unwrap_or(frames.len());
                let front = frames.get(..at).unwrap_or_default();
                // All of them are good.
                let scan = record::scan(&epoch, first_sequence, front).map_err(error)?;
                (scan, Some(error(damage)))
            }
        };
        // All lie within `bytes`, so they fit.
        let place = |at: u64| usize::try_from(at).map_or(bytes.len(), |at| at + Header::BYTES);
        let good = place(scan.good_bytes());
        let torn = match scan.end() {
            End::Clean => None,
            End::Torn { at, why } => Some((u64_of(place(at)), why)),
        };
        let last_frame_at = scan.last_frame_at().map_or(good, place);
        let next_sequence = scan.next_sequence();
        let segment =
            Self { path, epoch, first_sequence, next_sequence, torn, good, last_frame_at, bytes };
        Ok((segment, damage))
    }

    /// Its records in order, each with its number.
    pub(super) fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let frames = self.bytes.get(Header::BYTES..self.good).unwrap_or_default();
        record::frames_in(frames).flat_map(|frame| frame.records())
    }

    /// How many bytes the file has.
    pub(super) fn length_bytes(&self) -> u64 {
        u64_of(self.bytes.len())
    }

    /// How many bytes behind the good frames were written: a torn tail's.
    pub(super) fn torn_bytes(&self) -> u64 {
        let behind = self.bytes.get(self.good..).unwrap_or_default();
        u64_of(behind.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1))
    }
}

/// The segment that is written.
#[derive(Debug)]
pub(super) struct OpenSegment {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    /// Where the next frame goes.
    pub(super) end_bytes: u64,
    /// How many bytes are set aside in all.
    pub(super) length_bytes: u64,
}

impl OpenSegment {
    /// Gives room that was set aside the name of a segment, which begins with this record.
    pub(super) fn begin(place: &Place, room: Room, header: &Header) -> Result<Self, JournalError> {
        let Room { mut file, path: temporary, length_bytes } = room;
        file.write_at(0, &header.encode()).map_err(io_at("write", &temporary))?;
        file.sync().map_err(io_at("sync", &temporary))?;
        let path = place.segment(header.first_sequence);
        place
            .disk
            .rename(&temporary, &path)
            .map_err(io_at("rename to its own name", &temporary))?;
        place.sync_names()?;
        Ok(Self { file, path, end_bytes: u64_of(Header::BYTES), length_bytes })
    }

    /// Goes on behind the last good frame, which is written again and synced: after a sync that
    /// failed in an earlier life, the page cache may hold what the disk does not, and only a new
    /// write makes the kernel try again. A torn tail is cut, and leaves no room behind it.
    pub(super) fn reopen(place: &Place, segment: &Segment) -> Result<Self, JournalError> {
        let path = segment.path.clone();
        let mut file = place.disk.open(&path).map_err(io_at("open", &path))?;
        let (good, end_bytes) = (segment.good, u64_of(segment.good));
        let mut length_bytes = segment.length_bytes();
        if segment.torn.is_some() {
            file.set_length(end_bytes).map_err(io_at("cut", &path))?;
            length_bytes = end_bytes;
        }
        let last_frame = segment.bytes.get(segment.last_frame_at..good).unwrap_or_default();
        let at = u64_of(segment.last_frame_at);
        file.write_at(at, last_frame).map_err(io_at("write", &path))?;
        file.sync().map_err(io_at("sync", &path))?;
        Ok(Self { file, path, end_bytes, length_bytes })
    }

    /// Whether a frame of so many bytes fits.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.length_bytes.saturating_sub(self.end_bytes) >= bytes
    }

    /// Writes a frame and syncs it.
    pub(super) fn append(&mut self, frame: &[u8]) -> Result<(), AppendError> {
        let failed = |doing| {
            let (path, offset) = (self.path.clone(), self.end_bytes);
            move |source| AppendError::Io { doing, path, offset, source }
        };
        let (write_failed, sync_failed) = (failed("write"), failed("sync"));
        self.file.write_at(self.end_bytes, frame).map_err(write_failed)?;
        self.file.sync().map_err(sync_failed)?;
        self.end_bytes = self.end_bytes.saturating_add(u64_of(frame.len()));
        Ok(())
    }
}

/// Room set aside for a segment: zeros on the disk, under a temporary name.
#[derive(Debug)]
pub(super) struct Room {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    pub(super) length_bytes: u64,
}

impl Room {
    /// Writes and syncs the zeros, so that a frame's sync finds its blocks there and its length
    /// unchanged. What cannot be made whole is removed: on a full disk it takes what others need.
    pub(super) fn make(place: &Place, path: &Path, length_bytes: u64) -> io::Result<Self> {
        let mut file = place.disk.create(path)?;
        match fill(&mut *file, length_bytes) {
            Ok(()) => Ok(Self { file, path: path.to_path_buf(), length_bytes }),
            Err(error) => {
                let _ = place.disk.remove(path);
                Err(error)
            }
        }
    }
}

fn fill(file: &mut dyn DiskFile, length_bytes: u64) -> io::Result<()> {
    let zeros = vec![0; FILL_BYTES];
    let mut at = 0;
    while at < length_bytes {
        let rest = usize::try_from(length_bytes - at).unwrap_or(FILL_BYTES).min(FILL_BYTES);
        file.write_at(at, &zeros[..rest])?;
        file.sync()?;
        at += u64_of(rest);
    }
    Ok(())
}

pub(super) fn u64_of(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
