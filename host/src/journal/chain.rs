//! Following a journal: a snapshot, the segments behind it, and the state that they give.
//!
//! Protects what was acknowledged: a file that is missing, damaged or of another epoch is named and
//! refused, and nothing of the journal is used then.

use std::path::PathBuf;

use pinfold_core::id::Epoch;
use pinfold_core::journal::record::BadFrame;
use pinfold_core::journal::snapshot;
use pinfold_core::replay::Replay;

use super::error::{JournalError, bad_snapshot, io_at};
use super::place::{Contents, Place};
use super::segment::{Segment, u64_of};

/// A journal that was followed to its end.
#[derive(Debug)]
pub(super) struct Followed {
    /// The state.
    pub(super) replay: Replay,
    pub(super) epoch: Epoch,
    /// The number of the record after the last.
    pub(super) next_sequence: u64,
    /// The snapshot that it began with: how many records that stands for, and its bytes.
    pub(super) base: Option<(u64, u64)>,
    /// Bytes of headers and frames in the segments in front of the last.
    pub(super) closed_bytes: u64,
    pub(super) last: Segment,
}

/// Follows all that a journal's folder holds. Each segment is shown to `look` after it was found
/// good.
pub(super) fn follow(
    place: &Place,
    contents: &Contents,
    look: &mut dyn FnMut(&Segment),
) -> Result<Followed, JournalError> {
    let mut chain = Chain::begin(place, contents.base())?;
    let mut closed_bytes = 0;
    let mut last: Option<Segment> = None;
    for first in contents.needed() {
        let segment = Segment::read(place, *first)?;
        chain.follow(place, &segment)?;
        look(&segment);
        closed_bytes += last.replace(segment).map_or(0, |before| u64_of(before.good));
    }
    let (epoch, next_sequence) = chain.end(place)?;
    let last = last.ok_or_else(|| place.missing())?;
    let Chain { replay, base, .. } = chain;
    Ok(Followed { replay, epoch, next_sequence, base, closed_bytes, last })
}

/// How far a journal was followed.
#[derive(Debug)]
pub(super) struct Chain {
    /// The state so far.
    pub(super) replay: Replay,
    /// None before the first file.
    epoch: Option<Epoch>,
    /// The snapshot's position and size.
    pub(super) base: Option<(u64, u64)>,
    /// The number of the record that must come next; none before the first segment.
    next_sequence: Option<u64>,
    /// The bad frame that the last segment ended in.
    torn: Option<(PathBuf, u64, BadFrame)>,
}

impl Chain {
    /// Begins with a snapshot, or in front of genesis.
    pub(super) fn begin(place: &Place, base: Option<u64>) -> Result<Self, JournalError> {
        let replay = Replay::from_genesis();
        let mut chain = Self { replay, epoch: None, base: None, next_sequence: None, torn: None };
        let Some(base) = base else { return Ok(chain) };
        let path = place.snapshot(base);
        let bytes = place.disk.read(&path).map_err(io_at("read", &path))?;
        let (catalog, position) =
            snapshot::decode(&bytes).map_err(|why| bad_snapshot(&path, why))?;
        if position != base {
            let what = "it stands for another number of records than its name says";
            return Err(JournalError::Foreign { path, what });
        }
        chain.epoch = Some(catalog.job().epoch);
        chain.base = Some((position, u64_of(bytes.len())));
        chain.replay = Replay::from_snapshot(catalog, position);
        Ok(chain)
    }

    /// Follows the next segment.
    pub(super) fn follow(&mut self, place: &Place, segment: &Segment) -> Result<(), JournalError> {
        if let Some((path, offset, why)) = self.torn.take() {
            return Err(JournalError::TornInside { path, offset, why });
        }
        self.check_place(place, segment)?;
        for (sequence, record) in segment.records() {
            if sequence < self.replay.position() {
                continue;
            }
            let bad = |why| JournalError::BadRecord { path: segment.path.clone(), why };
            self.replay.follow(record).map_err(bad)?;
            let epoch = self.replay.catalog().map(|catalog| catalog.job().epoch);
            if epoch.is_some_and(|epoch| epoch != segment.epoch) {
                return Err(foreign(segment, "its genesis names another epoch than its header"));
            }
        }
        self.epoch = Some(segment.epoch);
        self.next_sequence = Some(segment.next_sequence);
        self.torn = segment.torn.map(|(at, why)| (segment.path.clone(), at, why));
        Ok(())
    }

    fn check_place(&self, place: &Place, segment: &Segment) -> Result<(), JournalError> {
        if self.epoch.is_some_and(|epoch| epoch != segment.epoch) {
            return Err(foreign(segment, "it is of another epoch"));
        }
        // The first one may begin in front of the base; every other one where the last ended.
        let (first, position) = (segment.first_sequence, self.replay.position());
        let expected = self.next_sequence.unwrap_or_else(|| first.min(position));
        match first.cmp(&expected) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(lacking(place, expected)),
            std::cmp::Ordering::Less => {
                Err(foreign(segment, "it repeats records of the segment in front of it"))
            }
        }
    }

    /// Checks that nothing is missing at the end; the epoch, and the number of the next record.
    pub(super) fn end(&self, place: &Place) -> Result<(Epoch, u64), JournalError> {
        let position = self.replay.position();
        match (self.epoch, self.next_sequence) {
            (Some(epoch), Some(next)) if next >= position => Ok((epoch, next)),
            (_, next) => Err(lacking(place, next.unwrap_or(position))),
        }
    }
}

fn foreign(segment: &Segment, what: &'static str) -> JournalError {
    JournalError::Foreign { path: segment.path.clone(), what }
}

fn lacking(place: &Place, from: u64) -> JournalError {
    JournalError::Lacking { folder: place.folder.clone(), from }
}
