//! Receipts: what was decided about a command is the answer to every repetition of it.
//!
//! Kept by count and never by time: the last W of the current incarnation. A sequence that is W or
//! more below the highest seen was answered, for its owner sends s only when everything up to
//! s − W is; so it is refused and never executed.

use alloc::vec::Vec;

use super::slab::{NONE, Slot};
use crate::few::Few;
use crate::id::{CheckpointId, Incarnation, PinId};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Evidence, Outcome, Pinned, Rejection, TurnKey};

/// What was decided about one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct Receipt {
    pub(crate) sequence: u64,
    pub(crate) fingerprint: u64,
    pub(crate) answer: Result<Outcome, Rejection>,
}

/// The receipts of an owner's current incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receipts {
    highest: u64,
    /// A receipt stands at its sequence modulo W; an older one gives way.
    ring: Vec<Kept>,
    /// What `Pin` answered: most receipts are without, so it stands aside.
    answers: Vec<Answer>,
    /// The first of the answers whose receipt has given way; their places are used again.
    free: Slot,
}

/// One receipt, in a fifth of the room that any answer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    /// 0 for none.
    sequence: u64,
    fingerprint: u64,
    answer: Result<Brief, Rejection>,
}

impl Kept {
    const NONE: Self = Self { sequence: 0, fingerprint: 0, answer: Ok(Brief::Released) };
}

/// One answer of a `Pin`, and the next one of the same `Pin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    pinned: Pinned,
    next: Slot,
}

/// An [`Outcome`] whose list stands aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brief {
    Registered(Incarnation),
    Prepared(PinId, CheckpointId),
    AlreadyPublished(PinId, CheckpointId),
    /// The first answer.
    Pinned(Slot),
    Settled(Evidence),
    Released,
    Published(Option<TurnKey>, bool),
    Lost,
    Doubted,
    Collected(u32, bool),
    Deleted(u32),
    Configured,
    Forgotten,
    Dropped,
    Fenced(u32),
    Retired,
}

impl Default for Receipts {
    fn default() -> Self {
        Self { highest: 0, ring: Vec::new(), answers: Vec::new(), free: NONE }
    }
}

/// What the receipts know of an operation.
#[expect(clippy::large_enum_variant, reason = "an answer lives in place: no verb allocates")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Not decided yet.
    New,
    /// Decided: this is its answer.
    Answered(Result<Outcome, Rejection>),
}

impl Receipts {
    /// What is known of this sequence with this content, in a window of `window` receipts.
    pub(crate) fn look_up(
        &self,
        sequence: u64,
        fingerprint: u64,
        window: u32,
    ) -> Result<Known, Rejection> {
        if self.is_forgotten(sequence, window) {
            return Err(Rejection::ReceiptForgotten);
        }
        match self.receipt(sequence, window) {
            None => Ok(Known::New),
            Some(receipt) if receipt.fingerprint == fingerprint => {
                Ok(Known::Answered(receipt.answer.map(|brief| self.whole(brief))))
            }
            #[cfg(pinfold_mutants)]
            Some(receipt) if is_armed(Mutant::ConflictAnswered) => {
                Ok(Known::Answered(receipt.answer.map(|brief| self.whole(brief))))
            }
            Some(_) => Err(Rejection::OpConflict),
        }
    }

    /// The highest sequence that was decided; 0 before the first one.
    pub(crate) const fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether this sequence was decided, as far as can be known: what is forgotten was.
    pub(crate) fn was_decided(&self, sequence: u64, window: u32) -> bool {
        self.is_forgotten(sequence, window) || self.receipt(sequence, window).is_some()
    }

    pub(crate) fn keep(
        &mut self,
        sequence: u64,
        fingerprint: u64,
        answer: &Result<Outcome, Rejection>,
        window: u32,
    ) {
        self.highest = self.highest.max(sequence);
        let place = place(sequence, window);
        if place >= self.ring.len() {
            self.ring.resize(place + 1, Kept::NONE);
        }
        self.forget_answers(place);
        let answer = match answer {
            Ok(outcome) => Ok(self.shorten(outcome)),
            Err(rejection) => Err(*rejection),
        };
        self.ring[place] = Kept { sequence, fingerprint, answer };
    }

    fn forget_answers(&mut self, place: usize) {
        let Ok(Brief::Pinned(first)) = self.ring[place].answer else { return };
        let mut slot = first;
        while slot != NONE {
            let next = core::mem::replace(&mut self.answers[slot as usize].next, self.free);
            self.free = slot;
            slot = next;
        }
    }

    fn add_answer(&mut self, answer: Answer) -> Slot {
        let slot = self.free;
        if slot == NONE {
            if self.answers.is_empty() {
                // Room for as many as single answers fill a common window with.
                self.answers.reserve_exact(64);
            }
            self.answers.push(answer);
            return u32::try_from(self.answers.len() - 1).unwrap_or(NONE);
        }
        self.free = self.answers[slot as usize].next;
        self.answers[slot as usize] = answer;
        slot
    }

    fn shorten(&mut self, outcome: &Outcome) -> Brief {
        match *outcome {
            Outcome::Registered { incarnation } => Brief::Registered(incarnation),
            Outcome::Prepared { pin, checkpoint } => Brief::Prepared(pin, checkpoint),
            Outcome::AlreadyPublished { pin, checkpoint } => {
                Brief::AlreadyPublished(pin, checkpoint)
            }
            Outcome::Pinned(ref answers) => {
                let step =
                    |next, pinned: &Pinned| self.add_answer(Answer { pinned: *pinned, next });
                Brief::Pinned(answers.iter().rev().fold(NONE, step))
            }
            Outcome::Settled { evidence } => Brief::Settled(evidence),
            Outcome::Released => Brief::Released,
            Outcome::Published { expired, follow_ups } => Brief::Published(expired, follow_ups),
            Outcome::Lost => Brief::Lost,
            Outcome::Doubted => Brief::Doubted,
            Outcome::Collected { objects, more } => Brief::Collected(objects, more),
            Outcome::Deleted { left } => Brief::Deleted(left),
            Outcome::Configured => Brief::Configured,
            Outcome::Forgotten => Brief::Forgotten,
            Outcome::Dropped => Brief::Dropped,
            Outcome::Fenced { pins } => Brief::Fenced(pins),
            Outcome::Retired => Brief::Retired,
        }
    }

    fn whole(&self, brief: Brief) -> Outcome {
        match brief {
            Brief::Registered(incarnation) => Outcome::Registered { incarnation },
            Brief::Prepared(pin, checkpoint) => Outcome::Prepared { pin, checkpoint },
            Brief::AlreadyPublished(pin, checkpoint) => {
                Outcome::AlreadyPublished { pin, checkpoint }
            }
            Brief::Pinned(first) => {
                let mut answers = Few::new();
                let mut slot = first;
                while slot != NONE && answers.push(self.answers[slot as usize].pinned) {
                    slot = self.answers[slot as usize].next;
                }
                Outcome::Pinned(answers)
            }
            Brief::Settled(evidence) => Outcome::Settled { evidence },
            Brief::Released => Outcome::Released,
            Brief::Published(expired, follow_ups) => Outcome::Published { expired, follow_ups },
            Brief::Lost => Outcome::Lost,
            Brief::Doubted => Outcome::Doubted,
            Brief::Collected(objects, more) => Outcome::Collected { objects, more },
            Brief::Deleted(left) => Outcome::Deleted { left },
            Brief::Configured => Outcome::Configured,
            Brief::Forgotten => Outcome::Forgotten,
            Brief::Dropped => Outcome::Dropped,
            Brief::Fenced(pins) => Outcome::Fenced { pins },
            Brief::Retired => Outcome::Retired,
        }
    }

    /// Forgets all of them; the room stays.
    pub(crate) fn clear(&mut self) {
        self.highest = 0;
        self.ring.clear();
        self.answers.clear();
        self.free = NONE;
    }

    /// Forgets those of all sequences but these.
    #[cfg(pinfold_mutants)]
    pub(super) fn lose_all_but(&mut self, sequences: &[u64]) {
        for place in 0..self.ring.len() {
            if !sequences.contains(&self.ring[place].sequence) {
                self.forget_answers(place);
                self.ring[place] = Kept::NONE;
            }
        }
    }

    /// The receipts that can still be asked for, by ascending sequence.
    pub(crate) fn kept(&self, window: u32) -> impl Iterator<Item = Receipt> {
        let first = self.highest.saturating_sub(u64::from(window)) + 1;
        (first..=self.highest).filter_map(move |sequence| {
            let Kept { sequence, fingerprint, answer } = *self.receipt(sequence, window)?;
            let answer = answer.map(|brief| self.whole(brief));
            Some(Receipt { sequence, fingerprint, answer })
        })
    }

    fn is_forgotten(&self, sequence: u64, window: u32) -> bool {
        sequence <= self.highest.saturating_sub(u64::from(window))
    }

    fn receipt(&self, sequence: u64, window: u32) -> Option<&Kept> {
        let there = self.ring.get(place(sequence, window))?;
        (there.sequence == sequence && sequence > 0).then_some(there)
    }
}

fn place(sequence: u64, window: u32) -> usize {
    usize::try_from(sequence % u64::from(window.max(1))).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protocol 6: the last W receipts are kept, out of order too; what is below is forgotten.
    #[test]
    fn the_last_w_are_kept_and_older_ones_are_refused() {
        let mut receipts = Receipts::default();
        for sequence in [1, 3, 2, 5] {
            receipts.keep(sequence, sequence * 7, &Ok(Outcome::Released), 4);
        }
        let known = |sequence| receipts.look_up(sequence, sequence * 7, 4);
        assert_eq!(known(1), Err(Rejection::ReceiptForgotten));
        assert_eq!(known(2), Ok(Known::Answered(Ok(Outcome::Released))));
        assert_eq!(known(4), Ok(Known::New));
        assert_eq!(known(6), Ok(Known::New));
        assert_eq!(receipts.look_up(3, 0, 4), Err(Rejection::OpConflict));
        assert_eq!(receipts.kept(4).map(|kept| kept.sequence).collect::<Vec<_>>(), [2, 3, 5]);
    }
}
