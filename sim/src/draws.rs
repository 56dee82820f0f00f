//! Random numbers that are the same on every machine.
//!
//! Only words come from the generator; every draw from them is integer arithmetic of our own. Each
//! concern has a stream of its own, so that one does not shift another.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What is drawn from a seed, each from a stream of its own. The numbers are part of what a seed
/// means and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Stream {
    /// How large a World is, and which faults it has.
    Swarm = 0,
    /// Which kind of choice comes next.
    Schedule = 1,
    /// What workers and operators begin.
    Workload = 2,
    /// Which message it is.
    Network = 3,
    /// Which object or move it is, and how it ends.
    Store = 4,
    /// How much of a frame a crash keeps.
    Disk = 5,
    /// Where in a run something is looked at more closely.
    Samples = 6,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// A seed's stream, from its first word.
    #[must_use]
    pub fn new(seed: u64, stream: Stream) -> Self {
        let mut words = ChaCha8Rng::seed_from_u64(seed);
        words.set_stream(stream as u64);
        words.set_word_pos(0);
        Self(words)
    }

    /// A number from 0 up to, and without, `end`; 0 when that is none.
    pub fn below(&mut self, end: u32) -> u32 {
        let product = u64::from(self.0.next_u32()) * u64::from(end);
        u32::try_from(product >> 32).unwrap_or(0)
    }

    /// A number from `from` up to and with `to`.
    pub fn between(&mut self, from: u32, to: u32) -> u32 {
        from + self.below(to.saturating_sub(from) + 1)
    }

    /// True in so many of a million cases.
    pub fn happens(&mut self, per_million: u32) -> bool {
        self.below(1_000_000) < per_million
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        let end = u32::try_from(of.len()).unwrap_or(u32::MAX);
        of.get(self.below(end) as usize).copied()
    }

    /// The place of one of several weights, as often as its weight says; none when all are 0.
    pub fn weighed(&mut self, weights: impl Iterator<Item = u32> + Clone) -> Option<usize> {
        let mut at = self.below(weights.clone().sum());
        weights.into_iter().position(|weight| {
            let hit = at < weight;
            at = at.saturating_sub(weight);
            hit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a seed draws is pinned: a change here changes what every seed means.
    #[test]
    fn the_words_are_pinned() {
        let words = |stream| {
            let mut draws = Draws::new(42, stream);
            [(); 4].map(|()| draws.0.next_u32())
        };
        assert_eq!(words(Stream::Swarm)[..2], [0x395d_5ba1, 0xae90_bfb5]);
        let mut draws = Draws::new(42, Stream::Schedule);
        let drawn = [10, 100, 1000, 7, 7, 7].map(|end| draws.below(end));
        let weights = [1, 0, 5, 2];
        let places = [(); 6].map(|()| draws.weighed(weights.into_iter()).unwrap());
        assert_eq!((drawn, places), ([5, 71, 645, 1, 0, 3], [2, 3, 0, 0, 2, 3]));
    }

    /// Weights of 0 are never drawn, and nothing is drawn from none.
    #[test]
    fn weights_are_kept() {
        let mut draws = Draws::new(7, Stream::Network);
        for _ in 0..1000 {
            assert!([1, 3].contains(&draws.weighed([0, 2, 0, 1].into_iter()).unwrap()));
        }
        assert_eq!(draws.weighed([0, 0].into_iter()), None);
        assert_eq!(draws.weighed([].into_iter()), None);
        assert_eq!(draws.pick::<u8>(&[]), None);
    }
}
