//! A checksum that any number of threads can compute at once, in any order.
//!
//! The bytes are read as 64-bit little-endian words, the last one filled up with zeros. Word `w`
//! at index `i` (from 0) adds one term to each of two lanes; all arithmetic is modulo 2^64:
//!
//! ```text
//! sum lane:  sum of        mix(w + (i + 1) * 0x9e3779b97f4a7c15)
//! xor lane:  exclusive or  mix(rotl(w, 29) ^ ((i + 1) * 0xd6e8feb86659fd93))
//! mix(x):    x ^= x >> 30; x *= 0xbf58476d1ce4e5b9;
//!            x ^= x >> 27; x *= 0x94d049bb133111eb; x ^= x >> 31
//! ```
//!
//! At the end the length `n` in bytes closes both lanes:
//!
//! ```text
//! sum = mix(sum lane + (n + 1) * 0x9e3779b97f4a7c15)
//! xor = mix(xor lane ^ ((n + 1) * 0xd6e8feb86659fd93))
//! ```
//!
//! Addition and exclusive or forget the order, so a grid of threads needs two atomics a word (or a
//! tree), and pieces of one object may be read in any order.
//!
//! What it detects:
//! - *Surely*: any change within one aligned 8-byte word, so any single bit or byte. `mix` is a
//!   bijection, so exactly one term changes in each lane. Likewise a changed length while the words
//!   stay the same (zeros added to or cut from the last word).
//! - *Very likely*: everything else: swapped words, zeroed ranges, shifted or repeated data, words
//!   of another object. The terms of different places are unrelated for real data, so such a
//!   change goes unseen about once in 2^128, if `mix` scatters as it does in every test of it. That
//!   is a judgement and no proof.
//! - *Not*: an adversary, who can solve for words that cancel. It is no authentication.

use core::fmt;

use alloc::collections::BTreeMap;

use serde::{Deserialize, Serialize};

const SUM_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const XOR_STEP: u64 = 0xd6e8_feb8_6659_fd93;

/// The two closed lanes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Digest {
    /// The lane that is combined by wrapping addition.
    pub sum: u64,
    /// The lane that is combined by exclusive or.
    pub xor: u64,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.sum, self.xor)
    }
}

impl Digest {
    /// The checksum of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut checksum = Checksum::default();
        checksum.add_at(0, bytes);
        checksum.close(bytes.len() as u64)
    }
}

/// The terms that one word adds to the sum lane and to the xor lane.
#[must_use]
pub const fn terms(index: u64, word: u64) -> (u64, u64) {
    let place = index.wrapping_add(1);
    let sum = mix(word.wrapping_add(place.wrapping_mul(SUM_STEP)));
    let xor = mix(word.rotate_left(29) ^ place.wrapping_mul(XOR_STEP));
    (sum, xor)
}

/// A checksum in the making, over pieces that come in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksum {
    sum: u64,
    xor: u64,
    added_bytes: u64,
    /// Words of which only some bytes came so far: those bytes, and a bit for each that came.
    partial: BTreeMap<u64, (u64, u8)>,
}

impl Checksum {
    /// Open lanes that were computed elsewhere, such as on a device: the [`terms`] of whole words,
    /// an object's last one filled up with zeros, which stand for so many bytes.
    #[must_use]
    pub const fn of_lanes(sum: u64, xor: u64, added_bytes: u64) -> Self {
        Self { sum, xor, added_bytes, partial: BTreeMap::new() }
    }

    /// Adds the bytes that stand at this offset of the object.
    ///
    /// # Errors
    /// When they overlap bytes of a partial word that came before, or pass the end of all offsets;
    /// nothing was added then.
    pub fn update_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ChunkError> {
        let length = bytes.len() as u64;
        let added = self.added_bytes.checked_add(length);
        if offset.checked_add(length).is_none() || added.is_none() {
            return Err(ChunkError::TooLong { offset });
        }
        if self.overlaps(offset, length) {
            return Err(ChunkError::Overlap { offset });
        }
        self.add_at(offset, bytes);
        Ok(())
    }

    /// Adds what another checksum of other pieces of the same object has gathered.
    ///
    /// # Errors
    /// When both have some byte of one partial word; nothing was added then.
    pub fn merge(&mut self, other: &Self) -> Result<(), ChunkError> {
        for (&index, &(_, theirs)) in &other.partial {
            if self.partial.get(&index).is_some_and(|(_, ours)| ours & theirs != 0) {
                return Err(ChunkError::Overlap { offset: index.wrapping_mul(8) });
            }
        }
        let Some(added_bytes) = self.added_bytes.checked_add(other.added_bytes) else {
            return Err(ChunkError::TooLong { offset: self.added_bytes });
        };
        self.added_bytes = added_bytes;
        self.sum = self.sum.wrapping_add(other.sum);
        self.xor ^= other.xor;
        for (&index, &(word, present)) in &other.partial {
            self.add_partial(index, word, present);
        }
        Ok(())
    }

    /// Closes the checksum of an object of this length.
    ///
    /// Bytes are counted and not remembered: a piece that came twice in the place of another of its
    /// length goes unnoticed here, and makes a checksum that no correct reader arrives at.
    ///
    /// # Errors
    /// When not exactly that many bytes came, or they leave a hole in a word.
    pub fn finish(self, length: u64) -> Result<Digest, ChunkError> {
        let tail_present = (1_u16 << (length % 8)) - 1;
        let complete = self.partial.iter().all(|(&index, &(_, present))| {
            index == length / 8 && u16::from(present) == tail_present
        });
        if self.added_bytes != length || !complete {
            return Err(ChunkError::Incomplete { length, added: self.added_bytes });
        }
        Ok(self.close(length))
    }

    fn close(mut self, length: u64) -> Digest {
        while let Some((index, (word, _))) = self.partial.pop_first() {
            self.add_word(index, word);
        }
        let place = length.wrapping_add(1);
        Digest {
            sum: mix(self.sum.wrapping_add(place.wrapping_mul(SUM_STEP))),
            xor: mix(self.xor ^ place.wrapping_mul(XOR_STEP)),
        }
    }

    /// The bytes before the first word boundary, the whole words, and the rest.
    fn add_at(&mut self, offset: u64, bytes: &[u8]) {
        let to_boundary = (offset.wrapping_neg() % 8) as usize;
        let (head, aligned) = bytes.split_at(to_boundary.min(bytes.len()));
        self.add_fragment(offset, head);
        let mut index = offset.div_ceil(8);
        let (words, tail) = aligned.as_chunks::<8>();
        for word in words {
            self.add_word(index, u64::from_le_bytes(*word));
            index = index.wrapping_add(1);
        }
        self.add_fragment(index.wrapping_mul(8), tail);
        self.added_bytes = self.added_bytes.wrapping_add(bytes.len() as u64);
    }

    /// Adds fewer bytes than a word has, all of one word.
    fn add_fragment(&mut self, offset: u64, bytes: &[u8]) {
        let (mut word, mut present) = (0_u64, 0_u8);
        for (place, &byte) in (offset % 8..8).zip(bytes) {
            word |= u64::from(byte) << (8 * place);
            present |= 1 << place;
        }
        self.add_partial(offset / 8, word, present);
    }

    fn add_partial(&mut self, index: u64, word: u64, present: u8) {
        if present == 0 {
            return;
        }
        let (before, present_before) = self.partial.remove(&index).unwrap_or_default();
        let (word, present) = (before | word, present_before | present);
        if present == u8::MAX {
            self.add_word(index, word);
        } else {
            self.partial.insert(index, (word, present));
        }
    }

    const fn add_word(&mut self, index: u64, word: u64) {
        let (sum, xor) = terms(index, word);
        self.sum = self.sum.wrapping_add(sum);
        self.xor ^= xor;
    }

    /// True when a byte of the piece is one that a partial word already has.
    fn overlaps(&self, offset: u64, length: u64) -> bool {
        let end = offset.saturating_add(length);
        let mut touched = self.partial.range(offset / 8..end.div_ceil(8));
        touched.any(|(&index, &(_, present))| {
            let start = index.wrapping_mul(8);
            (0..8).any(|place| {
                let at = start.wrapping_add(place);
                present & (1 << place) != 0 && at >= offset && at < end
            })
        })
    }
}

/// Why pieces make no checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// A piece overlaps an earlier one.
    #[error("the piece at offset {offset} was partly added before: add every byte once")]
    Overlap {
        /// The offset of the piece.
        offset: u64,
    },
    /// A piece passes the end of all offsets.
    #[error("the piece at offset {offset} passes the largest offset: check where it belongs")]
    TooLong {
        /// The offset of the piece.
        offset: u64,
    },
    /// Bytes are missing or came twice.
    #[error("{added} bytes were added of an object of {length}: add every byte once")]
    Incomplete {
        /// The object's length.
        length: u64,
        /// How many bytes came.
        added: u64,
    },
}

/// A bijection of 64-bit words that scatters every bit.
const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// Bytes that differ from place to place.
    fn pattern(length: u32) -> Vec<u8> {
        (0..length).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    /// The definition, word for word as in the module's doc, over a zero-filled copy.
    fn by_definition(bytes: &[u8]) -> Digest {
        let mut filled = bytes.to_vec();
        filled.resize(bytes.len().next_multiple_of(8), 0);
        let (mut sum, mut xor) = (0_u64, 0_u64);
        for (index, word) in (0_u64..).zip(filled.chunks(8)) {
            let word = u64::from_le_bytes(word.try_into().unwrap());
            let place = index + 1;
            sum = sum.wrapping_add(mix(word.wrapping_add(place.wrapping_mul(SUM_STEP))));
            xor ^= mix(word.rotate_left(29) ^ place.wrapping_mul(XOR_STEP));
        }
        let length = bytes.len() as u64 + 1;
        Digest {
            sum: mix(sum.wrapping_add(length.wrapping_mul(SUM_STEP))),
            xor: mix(xor ^ length.wrapping_mul(XOR_STEP)),
        }
    }

    /// Both lanes differ.
    fn assert_apart(ours: Digest, theirs: Digest) {
        assert_ne!(ours.sum, theirs.sum);
        assert_ne!(ours.xor, theirs.xor);
    }

    /// Any other implementation must give these values.
    #[test]
    fn vectors_are_golden() {
        let vectors: [(Vec<u8>, u64, u64); 5] = [
            (vec![], 0xe220_a839_7b1d_cdaf, 0xb55a_8fa0_6753_7a73),
            (vec![0], 0xb382_a305_f441_4f5e, 0x9ef2_11a7_2dee_a6ac),
            (vec![0; 8], 0x600f_b8d5_28d2_56a9, 0x489d_8bc3_f259_51d1),
            (b"pinfold".to_vec(), 0x1802_c1f2_393a_96d0, 0x172e_feb6_d81e_6de2),
            ((0..=255).collect(), 0xaa23_c3f1_c905_3163, 0x4ed3_4022_fa93_ee19),
        ];
        for (bytes, sum, xor) in vectors {
            assert_eq!(Digest::of(&bytes), Digest { sum, xor }, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn implementation_is_the_definition() {
        for length in 0..100 {
            let bytes = pattern(length);
            assert_eq!(Digest::of(&bytes), by_definition(&bytes));
        }
    }

    #[test]
    fn every_single_bit_flip_is_detected() {
        for bytes in [pattern(67), vec![0; 40], vec![0xff; 33]] {
            let whole = Digest::of(&bytes);
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_apart(Digest::of(&flipped), whole);
            }
        }
    }

    #[test]
    fn every_swap_of_different_words_is_detected() {
        let bytes = pattern(256);
        let whole = Digest::of(&bytes);
        for first in 0..32 {
            for second in first + 1..32 {
                let mut swapped = bytes.clone();
                for place in 0..8 {
                    swapped.swap(first * 8 + place, second * 8 + place);
                }
                assert_apart(Digest::of(&swapped), whole);
            }
        }
    }

    #[test]
    fn every_truncation_and_every_extension_by_zeros_is_detected() {
        for bytes in [pattern(80), vec![0; 80]] {
            let whole = Digest::of(&bytes);
            for length in 0..80 {
                assert_apart(Digest::of(&bytes[..length]), whole);
            }
            for more in 1..20 {
                assert_apart(Digest::of(&[&bytes[..], &vec![0; more]].concat()), whole);
            }
        }
    }

    #[test]
    fn every_zeroed_moved_or_shifted_range_is_detected() {
        let bytes = pattern(128);
        let whole = Digest::of(&bytes);
        for start in 0..128 {
            for end in start + 1..=128 {
                let mut zeroed = bytes.clone();
                zeroed[start..end].fill(0);
                if zeroed != bytes {
                    assert_apart(Digest::of(&zeroed), whole);
                }
                let mut rotated = bytes.clone();
                rotated[start..end].rotate_left(1);
                if rotated != bytes {
                    assert_apart(Digest::of(&rotated), whole);
                }
            }
            let mut moved = bytes.clone();
            moved.rotate_left(start);
            if start > 0 {
                assert_apart(Digest::of(&moved), whole);
            }
        }
    }

    /// States are full of equal and small words: none of their arrangements may agree.
    #[test]
    fn every_arrangement_of_few_values_is_apart() {
        let mut sums = alloc::collections::BTreeSet::new();
        let mut xors = alloc::collections::BTreeSet::new();
        for arrangement in 0..1_u32 << 16 {
            let words = (0..8).map(|place| u64::from(arrangement >> (2 * place)) & 3);
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            let Digest { sum, xor } = Digest::of(&bytes);
            assert!(sums.insert(sum) && xors.insert(xor));
        }
    }

    #[test]
    fn missing_and_repeated_pieces_are_refused() {
        let bytes = pattern(20);
        let mut checksum = Checksum::default();
        checksum.update_at(0, &bytes[..11]).unwrap();
        let incomplete = ChunkError::Incomplete { length: 20, added: 11 };
        assert_eq!(checksum.clone().finish(20), Err(incomplete));
        let overlap = ChunkError::Overlap { offset: 10 };
        assert_eq!(checksum.update_at(10, &bytes[10..]), Err(overlap));
        let too_long = ChunkError::TooLong { offset: u64::MAX };
        assert_eq!(checksum.update_at(u64::MAX, &bytes), Err(too_long));
        assert!(checksum.clone().merge(&checksum).is_err());
        checksum.update_at(0, &bytes[..8]).unwrap();
        assert!(checksum.clone().finish(20).is_err());
        assert!(checksum.finish(19).is_err());
    }

    #[test]
    fn lanes_of_a_device_close_to_the_same_value() {
        let bytes = pattern(64);
        let (mut sum, mut xor) = (0_u64, 0);
        let words: Vec<_> = (0_u64..).zip(bytes.as_chunks::<8>().0).collect();
        for (index, word) in words.into_iter().rev() {
            let (add, toggle) = terms(index, u64::from_le_bytes(*word));
            sum = sum.wrapping_add(add);
            xor ^= toggle;
        }
        assert_eq!(Checksum::of_lanes(sum, xor, 64).finish(64), Ok(Digest::of(&bytes)));
    }

    proptest! {
        /// Pieces of any size, in any order, on any number of threads, give one value.
        #[test]
        fn order_and_size_of_pieces_are_irrelevant(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cuts in prop::collection::vec(0..200_usize, 0..12),
            order in any::<prop::sample::Index>(),
        ) {
            let mut ends: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            ends.push(bytes.len());
            ends.sort_unstable();
            let mut start = 0;
            let mut pieces = Vec::new();
            for end in ends {
                pieces.push((start as u64, &bytes[start..end]));
                start = end;
            }
            let middle = order.index(pieces.len());
            pieces.rotate_left(middle);
            let (mut one, mut two) = (Checksum::default(), Checksum::default());
            for (place, (offset, piece)) in pieces.into_iter().enumerate() {
                let half = if place % 2 == 0 { &mut one } else { &mut two };
                half.update_at(offset, piece).unwrap();
            }
            two.merge(&one).unwrap();
            prop_assert_eq!(two.finish(bytes.len() as u64), Ok(Digest::of(&bytes)));
        }
    }
}
