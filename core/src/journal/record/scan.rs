//! Judging the frames of a journal: all good, a torn tail, or damage.

use super::{BadFrame, Fault, Frame, HEAD_BYTES, Head, MAX_FRAME_BYTES, index, offset};
use crate::id::Epoch;
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};

/// What [`scan`] found: good frames, and how they end. Positions count from the scanned bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan<'a> {
    good: &'a [u8],
    last_frame_at: Option<u64>,
    next_sequence: u64,
    end: End,
}

impl<'a> Scan<'a> {
    /// The good frames in order.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'a>> + use<'a> {
        frames_in(self.good)
    }

    /// How many bytes the good frames have: where the next frame belongs.
    #[must_use]
    pub fn good_bytes(&self) -> u64 {
        offset(self.good.len())
    }

    /// Where the last good frame begins, if there is one.
    #[must_use]
    pub fn last_frame_at(&self) -> Option<u64> {
        self.last_frame_at
    }

    /// The sequence number of the next record to be written.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// How the bytes end.
    #[must_use]
    pub fn end(&self) -> End {
        self.end
    }
}

/// How a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After a good frame, with nothing or only zeros behind it (room that was set aside).
    Clean,
    /// In a bad last frame, which nobody was told is durable: cut here before the next append.
    Torn {
        /// Where it begins.
        at: u64,
        /// What is bad about it.
        why: BadFrame,
    },
}

/// A journal that is not as it was written: nothing of it may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Damage {
    /// Where the frame begins.
    pub at: u64,
    /// What is wrong with it.
    pub why: DamageKind,
}

/// What is wrong with a frame that cannot be a torn tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamageKind {
    /// Written by another version; never taken as torn.
    #[error("the frame has version {version}, and this version of pinfold reads version 1")]
    UnknownVersion {
        /// The version it names.
        version: u8,
    },
    /// A bad frame, and something was written behind it: so the bad one had been synced.
    #[error("the frame is bad ({bad}) and is not the last: another begins {later_bytes} bytes on")]
    NotLast {
        /// What is bad about it.
        bad: BadFrame,
        /// How far on from its beginning the other begins.
        later_bytes: u64,
    },
    /// More bytes than one torn frame can leave.
    #[error("the frame is bad ({bad}) and {bytes} bytes follow, more than one torn frame leaves")]
    TailTooLong {
        /// What is bad about it.
        bad: BadFrame,
        /// How many bytes up to the last that is not zero.
        bytes: u64,
    },
    /// Records are missing.
    #[error("records are missing: expected number {expected}, found {found}")]
    Gap {
        /// The number that should have come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// Records are there twice.
    #[error("records are repeated: expected number {expected}, found {found}")]
    Repeat {
        /// The number that should have come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// Good checksums over what does not add up.
    #[error("the records of the frame do not add up to what its head says")]
    Malformed,
}

/// Judges all frames behind a header: good ones, and a clean or torn end; else [`Damage`].
///
/// One pass checksums every byte. What a bad frame is depends on what was written behind it:
///
/// - Its head is good, so its end is known: any byte but zeros behind that end tells that a later
///   frame began, and what the records hold cannot.
/// - Its head is bad, so its end is not known: each of at most [`MAX_FRAME_BYTES`] positions is
///   looked at once for the good head of a later frame, with a sequence number not below the
///   expected one. Such a head is enough, without its records: it also tells a damaged frame in
///   front of a torn one.
///
/// Who knows the epoch can put a good head into a record. When the frame of that record is torn
/// *in its own head*, it is refused as damage; never is a good frame cut. Frames of another epoch
/// have bad heads here, and are cut like a torn frame; nothing of this epoch is in them.
///
/// # Errors
/// [`Damage`] names the first frame that is not as it was written and cannot be a torn tail.
pub fn scan<'a>(epoch: &Epoch, first_sequence: u64, bytes: &'a [u8]) -> Result<Scan<'a>, Damage> {
    let (mut rest, mut last_frame_at, mut next_sequence) = (bytes, None, first_sequence);
    let end = loop {
        if rest.iter().all(|byte| *byte == 0) {
            break End::Clean;
        }
        let at = offset(bytes.len() - rest.len());
        let damage = |why| Damage { at, why };
        let head = match Head::read(epoch, rest) {
            Ok(head) => head,
            Err(Fault::UnknownVersion(version)) => {
                return Err(damage(DamageKind::UnknownVersion { version }));
            }
            Err(Fault::Malformed) => return Err(damage(DamageKind::Malformed)),
            Err(Fault::Bad(why)) => {
                refuse_if_a_head_follows(epoch, rest, next_sequence, why).map_err(damage)?;
                break End::Torn { at, why };
            }
        };
        // A head is written only behind records that are durable, so even a torn one tells a gap.
        refuse_unless_next(head.first_sequence, next_sequence).map_err(damage)?;
        let payload = match head.payload(epoch, rest) {
            Ok(payload) => payload,
            Err(why) => {
                refuse_if_bytes_follow(&head, rest, why).map_err(damage)?;
                break End::Torn { at, why };
            }
        };
        let frame = Frame::of(&head, payload).ok_or(damage(DamageKind::Malformed))?;
        (last_frame_at, next_sequence) = (Some(at), frame.next_sequence);
        rest = rest.get(frame.length()..).unwrap_or_default();
    };
    let good = bytes.get(..bytes.len() - rest.len()).unwrap_or_default();
    #[cfg(pinfold_mutants)]
    if let (Some(at), End::Torn { why, .. }) = (last_frame_at, end)
        && at > 0
        && is_armed(Mutant::TornTailTakesMore)
    {
        return Ok(without_the_last(bytes, at, why));
    }
    Ok(Scan { good, last_frame_at, next_sequence, end })
}

/// Takes the good frame that begins at `last`, which is not the first, for a part of the torn tail.
#[cfg(pinfold_mutants)]
fn without_the_last(bytes: &[u8], last: u64, why: BadFrame) -> Scan<'_> {
    let (good, tail) = bytes.split_at(usize::try_from(last).unwrap_or(bytes.len()));
    let (mut at, mut last_frame_at) = (0, None);
    for frame in frames_in(good) {
        last_frame_at = Some(at);
        at += offset(frame.length());
    }
    let next_sequence = frames_in(tail).next().map_or(0, |frame| frame.first_sequence);
    Scan { good, last_frame_at, next_sequence, end: End::Torn { at, why } }
}

/// Walks the good bytes of an earlier [`scan`] again, without checksums.
///
/// For a host that keeps the bytes but not the borrow. Ends at the first thing that isn't a frame.
pub fn frames_in(good: &[u8]) -> impl Iterator<Item = Frame<'_>> + use<'_> {
    let mut rest = good;
    core::iter::from_fn(move || {
        let (head, _) = Head::decode(rest).ok()?;
        let (payload, _, behind) = head.split(rest)?;
        rest = behind;
        Frame::of(&head, payload)
    })
}

fn refuse_unless_next(found: u64, expected: u64) -> Result<(), DamageKind> {
    match found.cmp(&expected) {
        core::cmp::Ordering::Equal => Ok(()),
        core::cmp::Ordering::Greater => Err(DamageKind::Gap { expected, found }),
        core::cmp::Ordering::Less => Err(DamageKind::Repeat { expected, found }),
    }
}

/// The frame at the start of `rest` has a good head and bad records: torn only as the last.
fn refuse_if_bytes_follow(head: &Head, rest: &[u8], bad: BadFrame) -> Result<(), DamageKind> {
    match head.split(rest) {
        Some((_, _, behind)) if behind.iter().any(|byte| *byte != 0) => {
            let later_bytes = offset(rest.len() - behind.len());
            Err(DamageKind::NotLast { bad, later_bytes })
        }
        Some(_) | None => Ok(()),
    }
}

/// The frame at the start of `rest` has a bad head: torn only without a good head behind it.
fn refuse_if_a_head_follows(
    epoch: &Epoch,
    rest: &[u8],
    expected: u64,
    bad: BadFrame,
) -> Result<(), DamageKind> {
    let written = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if written > index(MAX_FRAME_BYTES) {
        return Err(DamageKind::TailTooLong { bad, bytes: offset(written) });
    }
    let begins = |window: &[u8]| {
        Head::decode_checked(epoch, window)
            .is_ok_and(|head| head.is_possible() && head.first_sequence >= expected)
    };
    match rest.windows(HEAD_BYTES).skip(1).position(begins) {
        Some(skipped) => Err(DamageKind::NotLast { bad, later_bytes: offset(skipped) + 1 }),
        None => Ok(()),
    }
}
