//! Receipts: what was decided about a command is the answer to every repetition of it.
//!
//! Kept by count and never by time: the last W of the current incarnation. A sequence that is W or
//! more below the highest seen was answered, for its owner sends s only when everything up to
//! s − W is; so it is refused and never executed.

use alloc::vec::Vec;

use super::index::hash_words;
use crate::outcome::{Outcome, Rejection};

/// What was decided about one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct Receipt {
    pub(crate) sequence: u64,
    pub(crate) fingerprint: u64,
    pub(crate) answer: Result<Outcome, Rejection>,
}

/// The receipts of an owner's current incarnation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receipts {
    highest: u64,
    /// A receipt stands at its sequence modulo W; an older one gives way.
    ring: Vec<Option<Receipt>>,
}

/// What the receipts know of an operation.
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
                Ok(Known::Answered(receipt.answer))
            }
            Some(_) => Err(Rejection::OpConflict),
        }
    }

    /// Whether this sequence was decided, as far as can be known: what is forgotten was.
    pub(crate) fn was_decided(&self, sequence: u64, window: u32) -> bool {
        self.is_forgotten(sequence, window) || self.receipt(sequence, window).is_some()
    }

    pub(crate) fn keep(&mut self, receipt: Receipt, window: u32) {
        self.highest = self.highest.max(receipt.sequence);
        let place = place(receipt.sequence, window);
        if place >= self.ring.len() {
            self.ring.resize(place + 1, None);
        }
        self.ring[place] = Some(receipt);
    }

    /// Forgets all of them; the room stays.
    pub(crate) fn clear(&mut self) {
        self.highest = 0;
        self.ring.clear();
    }

    /// The receipts that can still be asked for, by ascending sequence.
    pub(crate) fn kept(&self, window: u32) -> impl Iterator<Item = &Receipt> {
        let first = self.highest.saturating_sub(u64::from(window)) + 1;
        (first..=self.highest).filter_map(move |sequence| self.receipt(sequence, window))
    }

    fn is_forgotten(&self, sequence: u64, window: u32) -> bool {
        sequence <= self.highest.saturating_sub(u64::from(window))
    }

    fn receipt(&self, sequence: u64, window: u32) -> Option<&Receipt> {
        let there = self.ring.get(place(sequence, window))?.as_ref()?;
        (there.sequence == sequence).then_some(there)
    }
}

fn place(sequence: u64, window: u32) -> usize {
    usize::try_from(sequence % u64::from(window.max(1))).unwrap_or(usize::MAX)
}

/// A 64-bit digest of a command's content, fed word by word.
///
/// It tells an honest retry from a sequence number used twice. It is part of the journal, so the
/// order and width of what a command feeds are fixed. Two different commands agree by chance once
/// in 2⁶⁴; it is no defence against an owner that wants to confuse itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Starts with the verb.
    pub(crate) fn of(verb: u64) -> Self {
        Self(hash_words(verb, 0x7069_6e66_6f6c_6421))
    }

    pub(crate) fn word(self, word: u64) -> Self {
        Self(hash_words(self.0, word))
    }

    pub(crate) fn bytes_16(self, bytes: &[u8; 16]) -> Self {
        let number = u128::from_le_bytes(*bytes);
        self.word(super::index::low(number)).word(super::index::low(number >> 64))
    }

    pub(crate) const fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(sequence: u64) -> Receipt {
        Receipt { sequence, fingerprint: sequence * 7, answer: Ok(Outcome::Released) }
    }

    /// Protocol 6: the last W receipts are kept, out of order too; what is below is forgotten.
    #[test]
    fn the_last_w_are_kept_and_older_ones_are_refused() {
        let mut receipts = Receipts::default();
        for sequence in [1, 3, 2, 5] {
            receipts.keep(receipt(sequence), 4);
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
