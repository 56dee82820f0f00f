//! The states that were visited, as one 64-bit digest each, in a table that threads share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How full a table may get while a level is under way, in eighths.
const FULL_EIGHTHS: usize = 7;

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
    slots: Vec<AtomicU64>,
    count: AtomicUsize,
}

impl Table {
    /// Room for at least so many slots.
    pub(crate) fn new(slots: usize) -> Self {
        let slots = (0..slots.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
        Self { slots, count: AtomicUsize::new(0) }
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<AtomicU64>()
    }

    /// Adds a digest.
    pub(crate) fn insert(&self, digest: u64) -> Inserted {
        let mask = self.slots.len() - 1;
        let mut place = usize::try_from(digest >> 7).unwrap_or(0) & mask;
        loop {
            let slot = &self.slots[place];
            match slot.load(Ordering::Relaxed) {
                0 if self.count() * 8 >= self.slots.len() * FULL_EIGHTHS => return Inserted::Full,
                0 => {
                    let swapped =
                        slot.compare_exchange(0, digest, Ordering::Relaxed, Ordering::Relaxed);
                    match swapped {
                        Ok(_) => {
                            self.count.fetch_add(1, Ordering::Relaxed);
                            return Inserted::New;
                        }
                        Err(other) if other == digest => return Inserted::Known,
                        Err(_) => {}
                    }
                }
                other if other == digest => return Inserted::Known,
                _ => {}
            }
            place = (place + 1) & mask;
        }
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, more: usize) {
        let needed = (self.count() + more) * 8 / FULL_EIGHTHS + 1;
        if needed <= self.slots.len() {
            return;
        }
        let larger = Self::new(needed);
        for slot in &self.slots {
            let digest = slot.load(Ordering::Relaxed);
            if digest > 0 {
                larger.insert(digest);
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
        }
        assert_eq!(table.insert(10 << 7), Inserted::Full);
        assert_eq!(table.insert(7 << 7), Inserted::Known);
        table.reserve(3);
        assert_eq!((table.count(), table.bytes()), (7, 128));
        assert_eq!(table.insert(7 << 7), Inserted::Known);
        assert_eq!(table.insert(10 << 7), Inserted::New);
    }
}
