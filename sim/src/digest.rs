//! A digest of what happened, that is the same on every machine and in every build.

use core::hash::{Hash, Hasher};

use pinfold_core::id::Minted;

/// A running 64-bit digest: FNV-1a over words instead of bytes, with a final mixing.
///
/// It tells runs apart, and protects against nobody. Numbers go in as little-endian words of 64
/// bits whatever their type, so the width of `usize` does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u64);

/// Offset basis and prime of FNV-1a (64 bits).
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Default for Digest {
    fn default() -> Self {
        Self(BASIS)
    }
}

impl Digest {
    /// Takes in a value.
    pub fn take(&mut self, value: &impl Hash) {
        value.hash(self);
    }

    /// The digest so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.finish()
    }

    fn word(&mut self, word: u64) {
        // The multiplication only carries upwards, so the high half is folded down as well.
        let mixed = (self.0 ^ word).wrapping_mul(PRIME);
        self.0 = mixed ^ (mixed >> 29);
    }
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.word(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.word(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.word(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.word(number);
    }

    fn write_u128(&mut self, number: u128) {
        // What was minted is a number here, as it was before it told what it stands for: seeds and
        // scripts keep their digests.
        if let Some((_, number)) = Minted::read(number) {
            return self.word(number);
        }
        let [high, low] = [number >> 64, number & u128::from(u64::MAX)];
        self.word(u64::try_from(high).unwrap_or(0));
        self.word(u64::try_from(low).unwrap_or(0));
    }

    fn write_usize(&mut self, number: usize) {
        self.word(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        // A variant's number, which is never negative.
        self.word(u64::try_from(number).unwrap_or(u64::MAX));
    }
}
