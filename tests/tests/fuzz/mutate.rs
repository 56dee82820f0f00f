//! Mutations of a corpus, drawn from a seed: the same ones on every machine.
//!
//! They know bytes, numbers and lines, and no format: what a format needs to be reached, such as a
//! checksum, its target mends.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The most changes that one input gets.
const MOST_CHANGES: usize = 6;
/// The longest input, in bytes: repeated ranges must not make a run slow.
const MOST_BYTES: usize = 1 << 15;
/// Numbers at which decoders go wrong, in little-endian and as varints.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xffff,
    0x0100_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
];

/// Draws inputs.
pub(crate) struct Mutator {
    draws: ChaCha8Rng,
}

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { draws: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// One of these with a few changes.
    pub(crate) fn mutate(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one_of(seeds).clone();
        for _ in 0..=self.below(MOST_CHANGES) {
            self.change(&mut input, seeds);
        }
        input.truncate(MOST_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        match self.below(9) {
            0 => {
                let bit = 1 << self.below(8);
                input.get_mut(at).into_iter().for_each(|byte| *byte ^= bit);
            }
            1 => {
                let byte = self.below(256).to_le_bytes()[0];
                self.write(input, at, &[byte]);
            }
            2 => {
                let width = 1 << self.below(4);
                let number = self.one_of(&NUMBERS).to_le_bytes();
                self.write(input, at, &number[..width]);
            }
            3 => {
                let number = varint(*self.one_of(&NUMBERS));
                self.write(input, at, &number);
            }
            4 => {
                let range = self.range(input);
                input.drain(range);
            }
            5 => {
                let range = self.range(input);
                let copy = input[range].to_vec();
                input.splice(at..at, copy);
            }
            6 => {
                let other = self.one_of(seeds);
                let range = self.range(other);
                self.write(input, at, &other[range]);
            }
            7 => self.change_decimal(input, at),
            _ => self.swap_lines(input),
        }
    }

    /// Puts bytes over what is there, or between it.
    fn write(&mut self, input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
        let over = if self.below(2) == 0 { bytes.len() } else { 0 };
        let end = (at + over).min(input.len());
        input.splice(at..end, bytes.iter().copied());
    }

    /// Replaces the next number in decimal digits.
    fn change_decimal(&mut self, input: &mut Vec<u8>, at: usize) {
        let digit = |byte: &u8| byte.is_ascii_digit();
        let Some(begin) = input[at..].iter().position(digit).map(|skipped| at + skipped) else {
            return;
        };
        let digits = input[begin..].iter().take_while(|byte| digit(byte)).count();
        let number = match self.below(3) {
            0 => self.below(4).to_string(),
            1 => format!("-{}", self.below(3)),
            _ => self.one_of(&NUMBERS).to_string(),
        };
        input.splice(begin..begin + digits, number.into_bytes());
    }

    fn swap_lines(&mut self, input: &mut Vec<u8>) {
        let mut lines: Vec<_> = input.split(|byte| *byte == b'\n').collect();
        let (one, other) = (self.below(lines.len()), self.below(lines.len()));
        lines.swap(one, other);
        *input = lines.join(&b'\n');
    }

    /// A range of bytes, mostly a short one.
    fn range(&mut self, bytes: &[u8]) -> core::ops::Range<usize> {
        let begin = self.below(bytes.len() + 1);
        let most = 1 << self.below(12);
        let length = self.below(most + 1).min(bytes.len() - begin);
        begin..begin + length
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A number below this one, or 0.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap().max(1);
        usize::try_from(self.draws.next_u64() % bound).unwrap()
    }
}

/// A number as postcard writes it.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(0x80 | number.to_le_bytes()[0]);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}

#[test]
fn a_seed_repeats_and_another_differs() {
    let seeds = [b"one 17\ntwo 4\n".to_vec(), vec![0; 40]];
    let drawn = |seed| {
        let mut mutator = Mutator::new(seed);
        (0..500).map(|_| mutator.mutate(&seeds)).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    let changed = drawn(1).iter().filter(|input| !seeds.contains(input)).count();
    assert!(changed > 400, "only {changed} of 500 inputs are new");
}

#[test]
fn varints_are_postcards() {
    assert_eq!(varint(0x7f), [0x7f]);
    assert_eq!(varint(0x80), [0x80, 1]);
    assert_eq!(varint(u64::MAX).len(), 10);
}
