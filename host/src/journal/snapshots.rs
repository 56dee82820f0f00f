//! Snapshots in the background: closed segments are followed and replaced by the state they give.
//!
//! It reads only what is closed and therefore never changes, so it shares nothing with the journal
//! that is being written. Protects the job: segments are removed only once the snapshot that covers
//! them has its name on the disk *and* was read back. A failure costs disk space and a longer
//! recovery, never a commit; it is told, and tried again with the next segment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use pinfold_core::journal::snapshot;

use super::chain::Chain;
use super::error::{JournalError, bad_snapshot, io_at};
use super::place::Place;
use super::segment::{Segment, u64_of};

/// How far the thread steps back behind others, as `nice` counts it.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// What became of the snapshots of one opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotReport {
    /// How many were taken.
    pub taken: u64,
    /// How many records the last one stands for.
    pub position: u64,
    /// How many bytes the last one has.
    pub bytes: u64,
    /// Why the last try failed, if it did.
    pub failure: Option<String>,
}

/// A segment was closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    /// How many bytes it has.
    pub(super) bytes: u64,
    /// The first record of the segment that is written now.
    pub(super) open: u64,
}

/// When a snapshot is due, counted in bytes of segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// Closed segments behind the last snapshot.
    pub(super) closed_bytes: u64,
    /// The last snapshot itself: a journal is followed again only once it has grown by as much,
    /// so that the work stays in proportion to what is written.
    pub(super) snapshot_bytes: u64,
    /// At least so much.
    pub(super) least_bytes: u64,
}

impl Due {
    fn is_now(&self) -> bool {
        self.closed_bytes >= self.least_bytes.max(self.snapshot_bytes)
    }
}

/// Who takes the snapshots.
#[derive(Debug)]
pub(super) struct Snapshots {
    place: Place,
    due: Due,
    report: Arc<Mutex<SnapshotReport>>,
    stop: Arc<AtomicBool>,
}

impl Snapshots {
    pub(super) fn new(place: Place, due: Due) -> Self {
        let (report, stop) = (Arc::default(), Arc::default());
        Self { place, due, report, stop }
    }

    pub(super) fn report(&self) -> Arc<Mutex<SnapshotReport>> {
        Arc::clone(&self.report)
    }

    /// Takes note of a closed segment, and takes a snapshot when one is due.
    pub(super) fn closed(&mut self, closed: Closed) {
        self.due.closed_bytes = self.due.closed_bytes.saturating_add(closed.bytes);
        if !self.due.is_now() {
            return;
        }
        let taken = take(&self.place, closed.open, &self.stop);
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        match taken {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                self.due.closed_bytes = 0;
                self.due.snapshot_bytes = bytes;
                let taken = report.taken + 1;
                *report = SnapshotReport { taken, position: closed.open, bytes, failure: None };
            }
            Err(error) => report.failure = Some(error.to_string()),
        }
    }

    /// Does so on a thread of its own.
    pub(super) fn spawn(self) -> std::io::Result<SnapshotThread> {
        let (sender, receiver) = channel();
        let (report, stop) = (self.report(), Arc::clone(&self.stop));
        let thread = thread::Builder::new()
            .name("pinfold-snapshot".into())
            .spawn(move || self.run(&receiver))?;
        Ok(SnapshotThread { sender: Some(sender), thread: Some(thread), report, stop })
    }

    fn run(mut self, receiver: &Receiver<Closed>) {
        step_back();
        for closed in receiver {
            self.closed(closed);
        }
    }
}

/// Lets whoever answers go first: nobody waits for a snapshot, and one core is busy with it for as
/// long as it takes to follow the journal. A tenth of a busy core is left to it.
fn step_back() {
    // Linux keeps this for each thread. Where it may not be changed, it is as it was.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// The thread that takes the snapshots; dropping it ends it, at the latest with the segment or the
/// snapshot that is under way.
#[derive(Debug)]
pub(super) struct SnapshotThread {
    sender: Option<Sender<Closed>>,
    thread: Option<JoinHandle<()>>,
    report: Arc<Mutex<SnapshotReport>>,
    stop: Arc<AtomicBool>,
}

impl SnapshotThread {
    pub(super) fn report(&self) -> Arc<Mutex<SnapshotReport>> {
        Arc::clone(&self.report)
    }

    pub(super) fn closed(&self, closed: Closed) {
        if let Some(sender) = &self.sender {
            // A thread that panicked takes no more snapshots; the journal goes on without.
            let _ = sender.send(closed);
        }
    }
}

impl Drop for SnapshotThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Follows everything in front of the segment that begins with record `open`, and keeps the state
/// as a snapshot in place of it. Its size in bytes; none when it was stopped.
pub(super) fn take(
    place: &Place,
    open: u64,
    stop: &AtomicBool,
) -> Result<Option<u64>, JournalError> {
    let contents = place.contents()?;
    if contents.needed().first().is_none_or(|first| *first >= open) {
        // A segment without a frame gave way to another of its number.
        return Ok(None);
    }
    let mut chain = Chain::begin(place, contents.base())?;
    for first in contents.needed().iter().filter(|first| **first < open) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        chain.follow(place, &Segment::read(place, *first)?)?;
    }
    let (_, next) = chain.end(place)?;
    let path = place.snapshot(open);
    if next != open {
        return Err(JournalError::Lacking { folder: place.folder.clone(), from: next });
    }
    let (catalog, position) = chain
        .replay
        .into_parts()
        .map_err(|why| JournalError::BadRecord { path: place.segment(0), why })?;
    let bytes = snapshot::encode(&catalog, position);
    drop(catalog);
    place.publish(&path, &place.temporary("snapshot"), &bytes)?;
    drop(bytes);
    let bytes = place.disk.read(&path).map_err(io_at("read", &path))?;
    snapshot::decode(&bytes).map_err(|why| bad_snapshot(&path, why))?;
    place.remove_covered(&place.contents()?)?;
    Ok(Some(u64_of(bytes.len())))
}
