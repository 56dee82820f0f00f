//! The states that were visited, as one 64-bit digest each with the state's number, in a table that
//! threads share.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::tree::Number;

/// How full a table may get while a level is under way, in eighths.
const FULL_EIGHTHS: usize = 7;
/// A table grows by half at least.
const GROWS: [usize; 2] = [3, 2];

/// No number yet.
const NONE: Number = Number::MAX;

/// What became of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// It was not there.
    New,
    /// It was there.
    Known,
    /// There was no room, and it is not there.
    Full,
}

/// Digests other than 0. See the [module](self).
#[derive(Debug)]
pub(crate) struct Table {
    digests: Vec<AtomicU64>,
    numbers: Vec<AtomicU32>,
    count: AtomicUsize,
}

impl Table {
    /// Room for so many slots.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            digests: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            numbers: (0..slots).map(|_| AtomicU32::new(NONE)).collect(),
            count: AtomicUsize::new(0),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.digests.len() * (size_of::<AtomicU64>() + size_of::<AtomicU32>())
    }

    /// Where the search for a digest begins. The least of some digests is no even choice, so it is
    /// spread once more.
    fn place(&self, digest: u64) -> usize {
        let spread = u128::from(digest.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        usize::try_from((spread * self.digests.len() as u128) >> 64).unwrap_or(0)
    }

    /// The slots from a digest's place on.
    fn slots(&self, digest: u64) -> impl Iterator<Item = usize> + use<> {
        let (first, end) = (self.place(digest), self.digests.len());
        (first..end).chain(0..first)
    }

    /// Adds a digest.
    pub(crate) fn insert(&self, digest: u64) -> Inserted {
        for slot in self.slots(digest).map(|slot| &self.digests[slot]) {
            let mut there = slot.load(Ordering::Relaxed);
            if there == 0 {
                if self.count() * 8 >= self.digests.len() * FULL_EIGHTHS {
                    return Inserted::Full;
                }
                let order = Ordering::Relaxed;
                match slot.compare_exchange(0, digest, order, order) {
                    Ok(_) => {
                        self.count.fetch_add(1, Ordering::Relaxed);
                        return Inserted::New;
                    }
                    Err(other) => there = other,
                }
            }
            if there == digest {
                return Inserted::Known;
            }
        }
        Inserted::Full
    }

    /// The slot of a digest.
    fn find(&self, digest: u64) -> Option<usize> {
        let there = |slot: usize| self.digests[slot].load(Ordering::Relaxed);
        let mut slots = self.slots(digest).take_while(|slot| there(*slot) != 0);
        slots.find(|slot| there(*slot) == digest)
    }

    /// Says which state a digest is of.
    pub(crate) fn give_number(&self, digest: u64, number: Number) {
        if let Some(slot) = self.find(digest) {
            self.numbers[slot].store(number, Ordering::Relaxed);
        }
    }

    /// The state of a digest; none while it has no number.
    pub(crate) fn number(&self, digest: u64) -> Option<Number> {
        let number = self.numbers[self.find(digest)?].load(Ordering::Relaxed);
        (number != NONE).then_some(number)
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, more: usize) {
        let slots = self.digests.len();
        let needed = (self.count() + more) * 8 / FULL_EIGHTHS + 1;
        if needed <= slots {
            return;
        }
        let larger = Self::new(needed.max(slots * GROWS[0] / GROWS[1]));
        for (digest, number) in self.digests.iter().zip(&self.numbers) {
            let digest = digest.load(Ordering::Relaxed);
            if digest > 0 && larger.insert(digest) == Inserted::New {
                larger.give_number(digest, number.load(Ordering::Relaxed));
            }
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_digest_is_new_once_and_a_full_table_says_so() {
        let mut table = Table::new(8);
        for digest in 1..=7 {
            assert_eq!(table.insert(digest << 7), Inserted::New);
            assert_eq!(table.insert(digest << 7), Inserted::Known);
            table.give_number(digest << 7, 70 + u32::try_from(digest).unwrap());
        }
        assert_eq!(table.insert(10 << 7), Inserted::Full);
        assert_eq!(table.insert(7 << 7), Inserted::Known);
        table.reserve(3);
        assert_eq!((table.count(), table.bytes()), (7, 12 * 12));
        assert_eq!(table.insert(7 << 7), Inserted::Known);
        assert_eq!(table.insert(10 << 7), Inserted::New);
        assert_eq!(table.number(10 << 7), None, "it was given none");
        for digest in 1..=7 {
            let number = table.number(digest << 7).map(u64::from);
            assert_eq!(number, Some(70 + digest));
        }
        assert_eq!(table.number(11 << 7), None);
    }

    #[test]
    fn a_digest_is_new_to_one_thread_alone() {
        let table = Table::new(4096);
        let news = std::thread::scope(|scope| {
            let insert = || {
                let digests = (1..=3000).map(|number: u64| number.rotate_right(8));
                digests.filter(|digest| table.insert(*digest) == Inserted::New).count()
            };
            let all = [(); 4].map(|()| scope.spawn(insert));
            all.map(|it| it.join().unwrap()).iter().sum::<usize>()
        });
        assert_eq!((news, table.count()), (3000, 3000));
    }
}
