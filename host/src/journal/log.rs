//! The journal that is written: segments, one after another.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use pinfold_core::id::Epoch;
use pinfold_core::journal::record::{Frame, Header};
use pinfold_core::replay::Replay;

use super::chain::{self, Followed};
use super::error::{AppendError, JournalError, io_at};
use super::place::{Contents, Place};
use super::segment::{MAX_SEGMENT_BYTES, OpenSegment, Room, Segment, u64_of};
use super::snapshots::{Closed, Due, SnapshotReport, SnapshotThread, Snapshots};
use super::{Journal, JournalOptions};
use crate::disk::{Disk, Lock, SystemDisk};

/// The number of a job's first record.
const FIRST_SEQUENCE: u64 = 0;

/// The journal of one data folder, open for writing by this process alone.
#[derive(Debug)]
pub struct SegmentLog {
    place: Place,
    options: JournalOptions,
    epoch: Epoch,
    next_sequence: u64,
    segment: OpenSegment,
    /// Sets room aside for the segment after this one.
    next_room: Option<JoinHandle<std::io::Result<Room>>>,
    background: Background,
    poisoned: bool,
    /// Unlocks the folder when it is closed, after everything above.
    _lock: Box<dyn Lock>,
}

/// Where work that no commit waits for is done.
#[derive(Debug)]
enum Background {
    Threads(SnapshotThread),
    /// Within the append that gives rise to it, so that each step has its place in a test.
    #[cfg(test)]
    Inline(Snapshots),
}

/// What a journal held when it was opened; all of it is durable.
#[derive(Debug)]
pub struct Recovered {
    /// The state, and how many records it stands for; none of either when the genesis never got in.
    pub replay: Replay,
    /// How many of the records a snapshot stood for.
    pub snapshot_records: u64,
    /// How many bytes of a torn tail were cut; nobody was told that they are durable.
    pub cut_bytes: u64,
}

impl SegmentLog {
    /// Begins the journal of a new job; the folder is created when it is missing.
    ///
    /// A crash leaves either no journal or one without a record. That one counts as none, because
    /// its genesis never got in: another call of this replaces it.
    ///
    /// # Errors
    /// [`JournalError::AlreadyExists`] and whatever the file system refuses.
    pub fn create(dir: &Path, epoch: Epoch, options: JournalOptions) -> Result<Self, JournalError> {
        Self::create_on(Arc::new(SystemDisk), dir, epoch, options)
    }

    /// Does so on another disk than the machine's own.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        epoch: Epoch,
        options: JournalOptions,
    ) -> Result<Self, JournalError> {
        let place = Place::new(disk, dir);
        place.refuse_a_journal_itself()?;
        place.disk.create_folder(&place.folder).map_err(io_at("create", &place.folder))?;
        let lock = place.lock()?;
        let contents = place.contents()?;
        if has_begun(&place, &contents)? {
            return Err(JournalError::AlreadyExists { dir: dir.to_path_buf() });
        }
        let path = place.next_room();
        let length_bytes = options.first_segment_bytes.min(MAX_SEGMENT_BYTES);
        let room = Room::make(&place, &path, length_bytes);
        let header = Header { epoch, first_sequence: FIRST_SEQUENCE };
        let room = room.map_err(io_at("set room aside in", &path))?;
        let segment = OpenSegment::begin(&place, room, &header)?;
        let due = Due { least_bytes: options.snapshot_bytes, ..Due::default() };
        Self::start((place, lock), options, (epoch, FIRST_SEQUENCE), segment, due)
    }

    /// Opens the journal for writing, makes durable what it holds, and gives the state.
    ///
    /// A torn tail is cut. What a snapshot covers, and what a crash left half made, is removed. A
    /// damaged journal is left exactly as it is.
    ///
    /// # Errors
    /// [`JournalError`] tells what is wrong, where, and what to do about it.
    pub fn open(dir: &Path, options: JournalOptions) -> Result<(Self, Recovered), JournalError> {
        Self::open_on(Arc::new(SystemDisk), dir, options)
    }

    /// Does so on another disk than the machine's own.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: JournalOptions,
    ) -> Result<(Self, Recovered), JournalError> {
        let place = Place::new(disk, dir);
        // Looking creates nothing, not even a lock.
        if place.contents()?.is_empty() {
            return Err(place.missing());
        }
        let lock = place.lock()?;
        let contents = place.contents()?;
        let followed = chain::follow(&place, &contents, &mut |_| {})?;
        let segment = OpenSegment::reopen(&place, &followed.last)?;
        place.sync_names()?;
        for path in &contents.unfinished {
            // What cannot be removed only takes room.
            let _ = place.remove(path);
        }
        place.remove_covered(&contents)?;
        let Followed { replay, epoch, next_sequence, base, closed_bytes, last } = followed;
        let (snapshot_records, snapshot_bytes) = base.unwrap_or_default();
        let least_bytes = options.snapshot_bytes;
        let due = Due { closed_bytes, snapshot_bytes, least_bytes };
        let recovered = Recovered { replay, snapshot_records, cut_bytes: last.torn_bytes() };
        let log = Self::start((place, lock), options, (epoch, next_sequence), segment, due)?;
        Ok((log, recovered))
    }

    fn start(
        (place, lock): (Place, Box<dyn Lock>),
        options: JournalOptions,
        (epoch, next_sequence): (Epoch, u64),
        segment: OpenSegment,
        due: Due,
    ) -> Result<Self, JournalError> {
        let snapshots = Snapshots::new(place.clone(), due);
        let background = Background::start(snapshots, &options)
            .map_err(io_at("start the thread that takes snapshots of", &place.folder))?;
        Ok(Self {
            place,
            options,
            epoch,
            next_sequence,
            segment,
            next_room: None,
            background,
            poisoned: false,
            _lock: lock,
        })
    }

    /// Whether the data folder holds a journal with a record, of this version or another.
    ///
    /// # Errors
    /// What the file system says, other than that the folder isn't there.
    pub fn exists(dir: &Path) -> Result<bool, JournalError> {
        let place = Place::new(Arc::new(SystemDisk), dir);
        place.refuse_a_journal_itself()?;
        has_begun(&place, &place.contents()?)
    }

    /// The number that the next frame must begin with.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// What became of the snapshots since this opening; to be read at any time, from any thread.
    #[must_use]
    pub fn snapshots(&self) -> Arc<Mutex<SnapshotReport>> {
        self.background.report()
    }

    fn write_frame(&mut self, bytes: &[u8]) -> Result<u64, AppendError> {
        let frame = Frame::decode(&self.epoch, bytes).map_err(AppendError::NotAFrame)?;
        let (expected, found) = (self.next_sequence, frame.first_sequence());
        if expected != found {
            return Err(AppendError::NotNext { expected, found });
        }
        if !self.segment.has_room(u64_of(bytes.len())) {
            self.begin_next_segment(u64_of(bytes.len())).map_err(AppendError::NextSegment)?;
        }
        self.segment.append(bytes)?;
        Ok(frame.next_sequence())
    }

    fn begin_next_segment(&mut self, frame_bytes: u64) -> Result<(), JournalError> {
        let path = self.place.next_room();
        let needed = frame_bytes.saturating_add(u64_of(Header::BYTES));
        // What failed beside the work is tried anew: it has no name yet, and nothing is in it.
        let ready = self.next_room.take().and_then(|room| room.join().ok()?.ok());
        let room = match ready.filter(|room| room.length_bytes >= needed) {
            Some(room) => room,
            None => {
                let length = self.options.next_segment_bytes(&self.segment).max(needed);
                Room::make(&self.place, &path, length).map_err(io_at("set room aside in", &path))?
            }
        };
        let closed = Closed { bytes: self.segment.end_bytes, open: self.next_sequence };
        let header = Header { epoch: self.epoch, first_sequence: self.next_sequence };
        self.segment = OpenSegment::begin(&self.place, room, &header)?;
        self.background.closed(closed);
        Ok(())
    }

    /// From half of a segment on, room for the next is set aside beside it.
    fn prepare_next_segment(&mut self) {
        if self.next_room.is_some()
            || self.segment.end_bytes < self.segment.length_bytes / 2
            || !self.background.has_threads()
        {
            return;
        }
        let (place, path) = (self.place.clone(), self.place.next_room());
        let length = self.options.next_segment_bytes(&self.segment);
        let make = move || Room::make(&place, &path, length);
        // Without a thread, the room is made when it is needed.
        self.next_room = thread::Builder::new().name("pinfold-room".into()).spawn(make).ok();
    }
}

impl Journal for SegmentLog {
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
        self.poisoned = false;
        self.prepare_next_segment();
        Ok(())
    }
}

impl Drop for SegmentLog {
    /// Nothing of this opening touches the folder once its lock is free.
    fn drop(&mut self) {
        if let Some(room) = self.next_room.take() {
            let _ = room.join();
        }
    }
}

impl Background {
    #[cfg(not(test))]
    fn start(snapshots: Snapshots, _: &JournalOptions) -> std::io::Result<Self> {
        snapshots.spawn().map(Self::Threads)
    }

    #[cfg(test)]
    fn start(snapshots: Snapshots, options: &JournalOptions) -> std::io::Result<Self> {
        if options.inline {
            Ok(Self::Inline(snapshots))
        } else {
            snapshots.spawn().map(Self::Threads)
        }
    }

    const fn has_threads(&self) -> bool {
        match self {
            Self::Threads(_) => true,
            #[cfg(test)]
            Self::Inline(_) => false,
        }
    }

    fn report(&self) -> Arc<Mutex<SnapshotReport>> {
        match self {
            Self::Threads(thread) => thread.report(),
            #[cfg(test)]
            Self::Inline(snapshots) => snapshots.report(),
        }
    }

    fn closed(&mut self, closed: Closed) {
        match self {
            Self::Threads(thread) => thread.closed(closed),
            #[cfg(test)]
            Self::Inline(snapshots) => snapshots.closed(closed),
        }
    }
}

/// Whether there is a journal that began: anything but a header with at most a torn first frame.
fn has_begun(place: &Place, contents: &Contents) -> Result<bool, JournalError> {
    if contents.segments != [FIRST_SEQUENCE] || !contents.snapshots.is_empty() {
        return Ok(!contents.is_empty());
    }
    match Segment::read(place, FIRST_SEQUENCE) {
        Ok(segment) => Ok(segment.next_sequence != FIRST_SEQUENCE),
        Err(error @ JournalError::Io { .. }) => Err(error),
        Err(_) => Ok(true),
    }
}
