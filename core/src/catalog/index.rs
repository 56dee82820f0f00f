//! From an identity to the slots of its rows: a deterministic hash index that grows in steps.
//!
//! It stores slots alone and asks the table for the identity behind one. Places stand in groups of
//! eight, in Robin Hood order: beside each slot stands a mark, which is how many groups the slot
//! is away from where its hash points and a few more bits of that hash. So a look-up reads one
//! group in most cases, asks about few rows that are not meant, stops early on a miss, and a
//! removal moves its successors back without reading their rows.
//!
//! Growing is bounded: past a size the index is split into 512 segments that grow on their own, by
//! a quarter, so one insertion re-places at most a segment's entries. They start at different
//! sizes, so that they grow at different times: the load is about 13/16, at six bytes an entry. The
//! order inside is never shown.
//!
//! Identities are chosen by clients, so hashes may be anything, up to one hash for every identity.
//! An entry for which no group within reach has a place stands aside, in a list of its segment
//! that is searched from end to end. That list is empty unless somebody chose identities to
//! collide; it makes those slow, and decides nothing: only the number of entries makes a segment
//! grow.

use alloc::vec::Vec;

use super::slab::Slot;

/// Entries in one segment before the index is split.
const SPLIT_ENTRIES: u32 = 32_768;
/// The top bits of a hash choose one of this many segments.
const SEGMENT_BITS: u32 = 9;
/// The least groups of a segment of a split index.
const SEGMENT_GROUPS: usize = 8;
/// Places in one group.
const PLACES: usize = 8;
/// Different tags of the hash in a mark, for entries that are near their home.
const TAGS: u8 = 31;
/// How far from home an entry still has a tag, and how far it can be at all, in groups.
const NEAR: u8 = 6;
const FAR: u8 = 44;

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
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(Slot) -> bool) -> Option<Slot> {
        // Nearly all of them stand at home.
        let segment = self.segments.get(self.segment_of(hash))?;
        let home = segment.home(hash);
        let group = segment.groups.get(home)?;
        let mut matches = group.matches(mark(hash, 0));
        while matches != 0 {
            let slot = group.slot_at(matches);
            if is_it(slot) {
                return Some(slot);
            }
            matches &= matches - 1;
        }
        if group.is_passed(0) || !segment.aside.is_empty() {
            return segment.find_beyond(home, hash, &is_it);
        }
        None
    }

    /// Every slot with this hash, and few others: the caller compares identities.
    pub(crate) fn candidates(&self, hash: u64) -> Candidates<'_> {
        match self.segments.get(self.segment_of(hash)) {
            Some(segment) => segment.candidates(hash),
            None => Candidates::of(&[], &[], 0, hash, 0),
        }
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

    /// Takes a slot out; false when it was not there. `hash_of` is as for [`insert`](Self::insert).
    pub(crate) fn remove(&mut self, hash: u64, slot: Slot, hash_of: impl Fn(Slot) -> u64) -> bool {
        let segment = self.segment_of(hash);
        let segment = self.segments.get_mut(segment);
        let removed = segment.is_some_and(|part| part.remove(hash, slot, &hash_of));
        self.length -= u32::from(removed);
        removed
    }

    /// Puts another slot of the same identity in the place of one; false when it was not there.
    pub(crate) fn replace(&mut self, hash: u64, old: Slot, new: Slot) -> bool {
        let segment = self.segment_of(hash);
        self.segments.get_mut(segment).is_some_and(|part| part.replace(hash, old, new))
    }

    fn segment_of(&self, hash: u64) -> usize {
        if self.segments.len() <= 1 { 0 } else { (hash >> (64 - SEGMENT_BITS)) as usize }
    }

    fn split(&mut self, hash_of: &impl Fn(Slot) -> u64) {
        let whole = core::mem::take(&mut self.segments);
        let segments = 1 << SEGMENT_BITS;
        // From the least size up to twice that: three steps of growth, evenly apart.
        let groups = |number| SEGMENT_GROUPS + SEGMENT_GROUPS * number / segments;
        self.segments.extend((0..segments).map(|number| Segment::with_groups(groups(number))));
        for slot in whole.iter().flat_map(Segment::slots) {
            let hash = hash_of(slot);
            let segment = self.segment_of(hash);
            self.segments[segment].insert(hash, slot, hash_of);
        }
    }
}

/// The entries that a hash may mean, in one segment.
#[derive(Clone, Debug)]
pub(crate) struct Candidates<'a> {
    /// None once every group within reach was read.
    groups: &'a [Group],
    /// The entries aside that are not shown yet.
    aside: &'a [Slot],
    group: usize,
    hash: u64,
    far: u8,
    /// The places of this group that are not shown yet, a bit in a byte each.
    matches: u64,
}

impl<'a> Candidates<'a> {
    fn of(groups: &'a [Group], aside: &'a [Slot], group: usize, hash: u64, far: u8) -> Self {
        let matches = groups.get(group).map_or(0, |group| group.matches(mark(hash, far)));
        Self { groups, aside, group, hash, far, matches }
    }
}

impl Iterator for Candidates<'_> {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        loop {
            let Some(group) = self.groups.get(self.group) else {
                let (first, others) = self.aside.split_first()?;
                self.aside = others;
                return Some(*first);
            };
            if self.matches != 0 {
                let slot = group.slot_at(self.matches);
                self.matches &= self.matches - 1;
                return Some(slot);
            }
            if self.far == FAR || !group.is_passed(self.far) {
                self.groups = &[];
                continue;
            }
            let next = after(self.group, self.groups.len());
            *self = Self::of(self.groups, self.aside, next, self.hash, self.far + 1);
        }
    }
}

/// Eight places: 40 bytes, so that most look-ups read one line of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    slots: [Slot; PLACES],
    /// 0 for an empty place.
    marks: [u8; PLACES],
}

impl Group {
    /// The top bit of each byte whose place has this mark.
    fn matches(&self, mark: u8) -> u64 {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const LOW: u64 = ONES * 0x7f;
        let differ = u64::from_le_bytes(self.marks) ^ (ONES * u64::from(mark));
        !(((differ & LOW) + LOW) | differ | LOW)
    }

    /// The slot of the first place among some that [`matches`](Self::matches) gave, at least one.
    fn slot_at(&self, matches: u64) -> Slot {
        self.slots[(matches.trailing_zeros() / 8) as usize % PLACES]
    }

    fn place_with(&self, mark: u8) -> Option<usize> {
        let matches = self.matches(mark);
        (matches != 0).then(|| (matches.trailing_zeros() / 8) as usize)
    }

    /// Whether an entry this far from home may have had to go on: the group is full, and nothing
    /// in it is closer to its home.
    fn is_passed(&self, far: u8) -> bool {
        let most = mark_from(far);
        self.matches(0) == 0 && (far == 0 || self.marks.iter().all(|mark| *mark <= most))
    }

    /// The place of the entry that is closest to its home.
    fn closest(&self) -> usize {
        let closest = self.marks.iter().zip(0..).max_by_key(|(mark, _)| **mark);
        closest.map_or(0, |(_, place)| place)
    }

    /// The place of the entry that is farthest from its home; an empty one when there is none.
    fn farthest(&self) -> usize {
        // Empty places come last: 0 − 1 is the largest.
        let marked = self.marks.iter().zip(0..).min_by_key(|(mark, _)| mark.wrapping_sub(1));
        marked.map_or(0, |(_, place)| place)
    }
}

/// One table of the index.
#[derive(Clone, Debug, Default)]
struct Segment {
    groups: Vec<Group>,
    /// Entries that found no place in the groups within reach of their home.
    aside: Vec<Slot>,
    /// All entries, those aside included.
    length: u32,
}

impl Segment {
    fn with_groups(groups: usize) -> Self {
        Self { groups: alloc::vec![Group::default(); groups], aside: Vec::new(), length: 0 }
    }

    /// Where a hash points: its low half, scaled to the number of groups.
    fn home(&self, hash: u64) -> usize {
        let low = hash & u64::from(u32::MAX);
        ((low * self.groups.len() as u64) >> 32) as usize
    }

    fn slots(&self) -> impl Iterator<Item = Slot> + use<'_> {
        let used = |(slot, mark): (&Slot, &u8)| (*mark != 0).then_some(*slot);
        self.groups
            .iter()
            .flat_map(move |group| group.slots.iter().zip(&group.marks).filter_map(used))
            .chain(self.aside.iter().copied())
    }

    fn candidates(&self, hash: u64) -> Candidates<'_> {
        Candidates::of(&self.groups, &self.aside, self.home(hash), hash, 0)
    }

    /// The first slot with this hash that `is_it`, among those beyond its home and those aside.
    #[inline(never)]
    fn find_beyond(&self, home: usize, hash: u64, is_it: &impl Fn(Slot) -> bool) -> Option<Slot> {
        let next = after(home, self.groups.len());
        Candidates::of(&self.groups, &self.aside, next, hash, 1).find(|slot| is_it(*slot))
    }

    fn insert(&mut self, hash: u64, slot: Slot, hash_of: &impl Fn(Slot) -> u64) {
        let places = self.groups.len() * PLACES;
        if self.length as usize >= places * 29 / 32 {
            self.grow(hash_of);
        }
        self.place_or_set_aside(hash, slot);
        self.length += 1;
    }

    /// Puts a slot in, or aside the one that is left without a place.
    fn place_or_set_aside(&mut self, hash: u64, slot: Slot) {
        if let Err(left_over) = self.place(hash, slot) {
            self.aside.push(left_over);
        }
    }

    /// Puts a slot in; gives back the one that is left without a place at its greatest distance.
    fn place(&mut self, hash: u64, slot: Slot) -> Result<(), Slot> {
        let groups = self.groups.len();
        let mut group = self.home(hash);
        let (mut slot, mut mark) = (slot, mark(hash, 0));
        loop {
            let there = &mut self.groups[group];
            if let Some(empty) = there.place_with(0) {
                there.slots[empty] = slot;
                there.marks[empty] = mark;
                return Ok(());
            }
            if far(mark) > 0 {
                let closest = there.closest();
                if far(there.marks[closest]) < far(mark) {
                    core::mem::swap(&mut there.slots[closest], &mut slot);
                    core::mem::swap(&mut there.marks[closest], &mut mark);
                }
            }
            if far(mark) == FAR {
                return Err(slot);
            }
            group = after(group, groups);
            mark = farther(mark);
        }
    }

    fn remove(&mut self, hash: u64, slot: Slot, hash_of: &impl Fn(Slot) -> u64) -> bool {
        if let Some((group, place)) = self.find(hash, slot) {
            self.close_gap(group, place, hash_of);
            self.length -= 1;
            if !self.aside.is_empty() {
                self.call_back(hash_of);
            }
            return true;
        }
        !self.aside.is_empty() && self.remove_aside(slot)
    }

    #[cold]
    fn remove_aside(&mut self, slot: Slot) -> bool {
        let place = self.aside.iter().position(|there| *there == slot);
        if let Some(place) = place {
            self.aside.swap_remove(place);
            self.length -= 1;
        }
        place.is_some()
    }

    /// Tries again to find a place for one of the entries aside, for another one each time.
    #[cold]
    fn call_back(&mut self, hash_of: &impl Fn(Slot) -> u64) {
        let turn = self.length as usize % self.aside.len();
        let slot = self.aside.swap_remove(turn);
        self.place_or_set_aside(hash_of(slot), slot);
    }

    fn replace(&mut self, hash: u64, old: Slot, new: Slot) -> bool {
        let there = match self.find(hash, old) {
            Some((group, place)) => Some(&mut self.groups[group].slots[place]),
            None => self.aside.iter_mut().find(|slot| **slot == old),
        };
        there.map(|slot| *slot = new).is_some()
    }

    /// The group and the place of an entry that does not stand aside.
    fn find(&self, hash: u64, slot: Slot) -> Option<(usize, usize)> {
        let mut group = self.home(hash);
        let mut far = 0;
        loop {
            let there = self.groups.get(group)?;
            let mut matches = there.matches(mark(hash, far));
            while matches != 0 {
                if there.slot_at(matches) == slot {
                    return Some((group, (matches.trailing_zeros() / 8) as usize));
                }
                matches &= matches - 1;
            }
            if far == FAR || !there.is_passed(far) {
                return None;
            }
            group = after(group, self.groups.len());
            far += 1;
        }
    }

    /// Fills an emptied place with the entry of the next group that is farthest from its home, and
    /// so on, up to a group whose entries are all at home.
    fn close_gap(&mut self, group: usize, place: usize, hash_of: &impl Fn(Slot) -> u64) {
        let (mut group, mut place) = (group, place);
        loop {
            let next = after(group, self.groups.len());
            let from = self.groups[next].farthest();
            let (slot, mark) = (self.groups[next].slots[from], self.groups[next].marks[from]);
            if mark == 0 || far(mark) == 0 {
                self.groups[group].marks[place] = 0;
                return;
            }
            self.groups[group].slots[place] = slot;
            self.groups[group].marks[place] = nearer(mark, || hash_of(slot));
            (group, place) = (next, from);
        }
    }

    /// Grows by a quarter, at least by a group, and places every entry anew.
    fn grow(&mut self, hash_of: &impl Fn(Slot) -> u64) {
        // All hashes first: the rows behind them are far apart, and are fetched side by side.
        let mut entries = Vec::with_capacity(self.length as usize);
        entries.extend(self.slots().map(|slot| (hash_of(slot), slot)));
        let groups = self.groups.len() + (self.groups.len() / 4).max(1);
        *self = Self { length: self.length, ..Self::with_groups(groups) };
        for (hash, slot) in entries {
            self.place_or_set_aside(hash, slot);
        }
    }
}

/// The group behind one, in a ring of `groups`.
fn after(group: usize, groups: usize) -> usize {
    if group + 1 == groups { 0 } else { group + 1 }
}

/// The largest mark of an entry this far from home: marks fall with distance and are never zero.
const fn mark_from(far: u8) -> u8 {
    if far <= NEAR { u8::MAX - TAGS * far } else { FAR + 1 - far }
}

/// The mark of an entry with this hash, this far from home: with a tag while that is near.
fn mark(hash: u64, far: u8) -> u8 {
    // Bits that say nothing of where it stands.
    let [.., byte, _, _] = hash.to_le_bytes();
    let tag = (u16::from(byte) * u16::from(TAGS)) >> 8;
    mark_from(far) - if far <= NEAR { tag.to_le_bytes()[0] } else { 0 }
}

/// How far from home an entry with this mark is.
const fn far(mark: u8) -> u8 {
    if mark > FAR - NEAR { (u8::MAX - mark) / TAGS } else { FAR + 1 - mark }
}

/// The mark of an entry one group farther from home.
const fn farther(mark: u8) -> u8 {
    let far = far(mark);
    if far < NEAR { mark - TAGS } else { mark_from(far + 1) }
}

/// The mark of an entry one group nearer to home; its hash matters when it gets a tag again.
fn nearer(of: u8, hash: impl FnOnce() -> u64) -> u8 {
    match far(of) {
        0 => of,
        1..=NEAR => of + TAGS,
        far if far == NEAR + 1 => mark(hash(), NEAR),
        _ => of + 1,
    }
}

/// Odd multipliers without pattern: from the square roots of 2, 3 and 5.
const ROOTS: [u64; 3] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b];

/// A 64-bit hash of the 16 bytes of an identity. In memory only: it may change at any time.
pub(crate) fn hash_id(bytes: &[u8; 16]) -> u64 {
    let number = u128::from_le_bytes(*bytes);
    hash_words(low(number), low(number >> 64))
}

/// A 64-bit hash of two words that need not be random.
///
/// Every step can be undone, so with either word fixed no two values of the other one agree, and
/// no word makes the other one count for nothing.
pub(crate) fn hash_words(first: u64, second: u64) -> u64 {
    let first = mix(first, ROOTS[0]);
    let second = mix(second, ROOTS[1]);
    let both = mix(first.rotate_left(32).wrapping_add(second), ROOTS[2]);
    both ^ (both >> 29)
}

/// Spreads a word upwards; every word gives another one.
const fn mix(word: u64, factor: u64) -> u64 {
    (word ^ (word >> 32)).wrapping_mul(factor)
}

/// The low half of a 128-bit number.
fn low(number: u128) -> u64 {
    u64::try_from(number & u128::from(u64::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
