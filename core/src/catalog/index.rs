//! From an identity to the slots of its rows: a deterministic hash index that grows in steps.
//!
//! It stores slots alone and asks the table for the identity behind one. It is open addressing in
//! Robin Hood order: beside each slot stands its distance from where its hash points, so a look-up
//! compares only entries with the same home, stops early on a miss, and a removal moves its
//! successors back without reading them.
//!
//! Growing is bounded: past a size the index is split into 512 segments that grow on their own, by
//! an eighth, so one insertion re-places at most a segment's entries. The load stays between 7/9
//! and 7/8, at five bytes an entry. The order inside is never shown.

use alloc::vec::Vec;

use super::slab::Slot;

/// Entries in one segment before the index is split.
const SPLIT_ENTRIES: u32 = 32_768;
/// The top bits of a hash choose one of this many segments.
const SEGMENT_BITS: u32 = 9;
/// The largest distance stored; a longer one makes the segment grow.
const MAX_DISTANCE: u8 = 250;

/// An index over rows, by a 64-bit hash of their identity. Several rows may have the same one.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    segments: Vec<Segment>,
    length: u32,
}

impl Index {
    pub(crate) const fn new() -> Self {
        Self { segments: Vec::new(), length: 0 }
    }

    /// How many slots it holds.
    pub(crate) const fn len(&self) -> u32 {
        self.length
    }

    /// The first slot with this hash that `is_it`.
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(Slot) -> bool) -> Option<Slot> {
        self.candidates(hash).find(|slot| is_it(*slot))
    }

    /// Every slot whose hash has the same home: the caller compares identities.
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = Slot> + use<'_> {
        let segment = self.segments.get(self.segment_of(hash));
        segment.into_iter().flat_map(move |segment| segment.candidates(hash))
    }

    /// Adds a slot. `hash_of` gives the hash of any slot in the index, for when it has to grow.
    pub(crate) fn insert(&mut self, hash: u64, slot: Slot, hash_of: impl Fn(Slot) -> u64) {
        if self.segments.is_empty() {
            self.segments.push(Segment::default());
        }
        if self.segments.len() == 1 && self.length == SPLIT_ENTRIES {
            self.split(&hash_of);
        }
        let segment = self.segment_of(hash);
        self.segments[segment].insert(hash, slot, &hash_of);
        self.length += 1;
    }

    /// Takes a slot out; false when it was not there.
    pub(crate) fn remove(&mut self, hash: u64, slot: Slot) -> bool {
        let segment = self.segment_of(hash);
        let removed = self.segments.get_mut(segment).is_some_and(|part| part.remove(hash, slot));
        self.length -= u32::from(removed);
        removed
    }

    fn segment_of(&self, hash: u64) -> usize {
        if self.segments.len() <= 1 { 0 } else { (hash >> (64 - SEGMENT_BITS)) as usize }
    }

    fn split(&mut self, hash_of: &impl Fn(Slot) -> u64) {
        let whole = core::mem::take(&mut self.segments);
        self.segments.resize_with(1 << SEGMENT_BITS, Segment::default);
        for slot in whole.iter().flat_map(Segment::slots) {
            let hash = hash_of(slot);
            let segment = self.segment_of(hash);
            self.segments[segment].insert(hash, slot, hash_of);
        }
    }
}

/// One table of the index.
#[derive(Clone, Debug, Default)]
struct Segment {
    slots: Vec<Slot>,
    /// 0 for an empty place, else one more than the entry's distance from its home.
    distances: Vec<u8>,
    length: u32,
}

impl Segment {
    /// Where a hash points: its low half, scaled to the table's size.
    fn home(&self, hash: u64) -> usize {
        let low = hash & u64::from(u32::MAX);
        ((low * self.slots.len() as u64) >> 32) as usize
    }

    fn slots(&self) -> impl Iterator<Item = Slot> + use<'_> {
        let used = |(slot, distance): (&Slot, &u8)| (*distance != 0).then_some(*slot);
        self.slots.iter().zip(&self.distances).filter_map(used)
    }

    fn candidates(&self, hash: u64) -> impl Iterator<Item = Slot> + use<'_> {
        let mut place = self.home(hash);
        let mut distance = 1;
        core::iter::from_fn(move || {
            // A place that is closer to its home than we are to ours ends the search.
            while self.distances.get(place).is_some_and(|there| *there >= distance) {
                let found = (self.distances[place] == distance).then(|| self.slots[place]);
                place = self.after(place);
                distance += 1;
                if found.is_some() {
                    return found;
                }
            }
            None
        })
    }

    fn insert(&mut self, hash: u64, slot: Slot, hash_of: &impl Fn(Slot) -> u64) {
        let most = self.slots.len() - self.slots.len() / 8;
        if self.length as usize >= most {
            self.grow(hash_of);
        }
        let mut homeless = (hash, slot);
        while let Err(left_over) = self.place(homeless.0, homeless.1) {
            self.grow(hash_of);
            homeless = (hash_of(left_over), left_over);
        }
        self.length += 1;
    }

    /// Puts a slot in; gives back the one that is left without a place when distances run out.
    fn place(&mut self, hash: u64, slot: Slot) -> Result<(), Slot> {
        let mut place = self.home(hash);
        let (mut slot, mut distance) = (slot, 1);
        loop {
            if self.distances[place] == 0 {
                self.slots[place] = slot;
                self.distances[place] = distance;
                return Ok(());
            }
            if self.distances[place] < distance {
                core::mem::swap(&mut self.slots[place], &mut slot);
                core::mem::swap(&mut self.distances[place], &mut distance);
            }
            place = self.after(place);
            if distance == MAX_DISTANCE {
                return Err(slot);
            }
            distance += 1;
        }
    }

    fn remove(&mut self, hash: u64, slot: Slot) -> bool {
        let mut place = self.home(hash);
        let mut distance = 1;
        while self.distances.get(place).is_some_and(|there| *there >= distance) {
            if self.slots[place] == slot {
                self.close_gap(place);
                self.length -= 1;
                return true;
            }
            place = self.after(place);
            distance += 1;
        }
        false
    }

    /// Moves the entries behind an emptied place back by one, up to the first one that is at home.
    fn close_gap(&mut self, mut place: usize) {
        loop {
            let next = self.after(place);
            if self.distances[next] <= 1 {
                self.distances[place] = 0;
                return;
            }
            self.slots[place] = self.slots[next];
            self.distances[place] = self.distances[next] - 1;
            place = next;
        }
    }

    fn after(&self, place: usize) -> usize {
        if place + 1 == self.slots.len() { 0 } else { place + 1 }
    }

    /// Grows by an eighth (at least to 8 places), and again until every entry has a place.
    fn grow(&mut self, hash_of: &impl Fn(Slot) -> u64) {
        let old = core::mem::take(self);
        let mut places = old.slots.len();
        loop {
            places = (places + places / 8 + 1).max(8);
            self.slots = alloc::vec![0; places];
            self.distances = alloc::vec![0; places];
            if old.slots().all(|slot| self.place(hash_of(slot), slot).is_ok()) {
                self.length = old.length;
                return;
            }
        }
    }
}

/// A 64-bit hash of 16 bytes that need not be random: two rounds of a folded multiplication.
pub(crate) fn hash_id(bytes: &[u8; 16]) -> u64 {
    let number = u128::from_le_bytes(*bytes);
    hash_words(low(number), low(number >> 64))
}

/// A 64-bit hash of two words.
pub(crate) fn hash_words(first: u64, second: u64) -> u64 {
    // Odd constants without pattern: the fractional parts of the square roots of 2, 3 and 5.
    const ROOTS: [u64; 3] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b];
    let once = fold(first ^ ROOTS[0], second ^ ROOTS[1]);
    fold(once ^ first.rotate_left(32), ROOTS[2] ^ second)
}

fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    low(product) ^ low(product >> 64)
}

/// The low half of a 128-bit number.
pub(crate) fn low(number: u128) -> u64 {
    let bytes = number.to_le_bytes();
    let mut half = [0; 8];
    half.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(slot: Slot) -> u64 {
        hash_words(u64::from(slot / 3), 0)
    }

    /// Adding and removing in any order leaves exactly what was added and not removed.
    #[test]
    fn holds_what_was_put_in_across_growth_and_split() {
        let mut index = Index::new();
        let slots = 90_000;
        for slot in 0..slots {
            index.insert(hash_of(slot), slot, hash_of);
        }
        for slot in (0..slots).step_by(2) {
            assert!(index.remove(hash_of(slot), slot));
            assert!(!index.remove(hash_of(slot), slot));
        }
        assert_eq!(index.len(), slots / 2);
        for slot in 0..slots {
            let found = index.find(hash_of(slot), |there| there == slot);
            assert_eq!(found.is_some(), slot % 2 == 1, "{slot}");
        }
    }

    /// Several rows of one identity are all found.
    #[test]
    fn same_identity_gives_every_row() {
        let mut index = Index::new();
        for slot in 0..100 {
            index.insert(7, slot, |_| 7);
        }
        let mut found: Vec<Slot> = index.candidates(7).collect();
        found.sort_unstable();
        assert_eq!(found, (0..100).collect::<Vec<_>>());
    }

    /// Five bytes an entry at a load that never falls below 7/9 once it grows by eighths.
    #[test]
    fn load_stays_high() {
        let mut index = Index::new();
        for slot in 0..200_000 {
            index.insert(hash_words(u64::from(slot), 9), slot, |s| hash_words(u64::from(s), 9));
        }
        let places: usize = index.segments.iter().map(|segment| segment.slots.len()).sum();
        assert!(places * 3 < 200_000 * 4, "{places}");
    }
}
