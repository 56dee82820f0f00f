//! The shapes of Worlds that were met: when new ones get rare, more of the same runs find little.

use std::collections::BTreeSet;

use crate::digest::Digest;
use crate::world::World;

/// Shapes that were met, by their digests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shapes {
    sampled: u64,
    distinct: BTreeSet<u64>,
}

impl Shapes {
    /// Takes the shape of a World.
    pub fn take(&mut self, world: &World) {
        let mut digest = Digest::default();
        world.shape(&mut digest);
        self.sampled += 1;
        self.distinct.insert(digest.value());
    }

    /// Adds those of other runs.
    pub fn merge(&mut self, other: &Self) {
        self.sampled += other.sampled;
        self.distinct.extend(&other.distinct);
    }

    /// How many were looked at.
    #[must_use]
    pub const fn sampled(&self) -> u64 {
        self.sampled
    }

    /// How many different ones there were.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.distinct.len() as u64
    }

    /// How many of another run's are not among these.
    #[must_use]
    pub fn new_in(&self, other: &Self) -> u64 {
        other.distinct.difference(&self.distinct).map(|_| 1).sum()
    }
}
