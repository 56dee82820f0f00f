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
        if group.is_passed(0) { segment.find_beyond(home, hash, &is_it) } else { None }
    }

    /// Every slot with this hash, and few others: the caller compares identities.
    pub(crate) fn candidates(&self, hash: u64) -> Candidates<'_> {
        match self.segments.get(self.segment_of(hash)) {
            Some(segment) => segment.candidates(hash),
            None => Candidates::of(&[], 0, hash, 0),
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
    groups: &'a [Group],
    group: usize,
    hash: u64,
    far: u8,
    /// The places of this group that are not shown yet, a bit in a byte each.
    matches: u64,
}

impl<'a> Candidates<'a> {
    fn of(groups: &'a [Group], group: usize, hash: u64, far: u8) -> Self {
        let matches = groups.get(group).map_or(0, |group| group.matches(mark(hash, far)));
        Self { groups, group, hash, far, matches }
    }
}

impl Iterator for Candidates<'_> {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        loop {
            let group = self.groups.get(self.group)?;
            if self.matches != 0 {
                let slot = group.slot_at(self.matches);
                self.matches &= self.matches - 1;
                return Some(slot);
            }
            if self.far == FAR || !group.is_passed(self.far) {
                return None;
            }
            let next = after(self.group, self.groups.len());
            *self = Self::of(self.groups, next, self.hash, self.far + 1);
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
    length: u32,
}

impl Segment {
    fn with_groups(groups: usize) -> Self {
        Self { groups: alloc::vec![Group::default(); groups], length: 0 }
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
    }

    fn candidates(&self, hash: u64) -> Candidates<'_> {
        Candidates::of(&self.groups, self.home(hash), hash, 0)
    }

    /// The first slot with this hash that `is_it`, among those that stand beyond its home.
    #[inline(never)]
    fn find_beyond(&self, home: usize, hash: u64, is_it: &impl Fn(Slot) -> bool) -> Option<Slot> {
        let next = after(home, self.groups.len());
        Candidates::of(&self.groups, next, hash, 1).find(|slot| is_it(*slot))
    }

    fn insert(&mut self, hash: u64, slot: Slot, hash_of: &impl Fn(Slot) -> u64) {
        let places = self.groups.len() * PLACES;
        if self.length as usize >= places * 29 / 32 {
            self.grow(hash_of);
        }
        let mut homeless = (hash, slot);
        while let Err(left_over) = self.place(homeless.0, homeless.1) {
            self.grow(hash_of);
            homeless = (hash_of(left_over), left_over);
        }
        self.length += 1;
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
        let found = self.find(hash, slot);
        if let Some((group, place)) = found {
            self.close_gap(group, place, hash_of);
            self.length -= 1;
        }
        found.is_some()
    }

    fn replace(&mut self, hash: u64, old: Slot, new: Slot) -> bool {
        let found = self.find(hash, old);
        if let Some((group, place)) = found {
            self.groups[group].slots[place] = new;
        }
        found.is_some()
    }

    /// The group and the place of an entry.
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

    /// Grows by a quarter, at least by a group, and again until every entry has a place.
    fn grow(&mut self, hash_of: &impl Fn(Slot) -> u64) {
        // All hashes first: the rows behind them are far apart, and are fetched side by side.
        let mut entries = Vec::with_capacity(self.length as usize);
        entries.extend(self.slots().map(|slot| (hash_of(slot), slot)));
        let length = self.length;
        let mut groups = self.groups.len();
        loop {
            groups += (groups / 4).max(1);
            *self = Self::with_groups(groups);
            if entries.iter().all(|(hash, slot)| self.place(*hash, *slot).is_ok()) {
                self.length = length;
                return;
            }
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

/// Odd constants without pattern: the fractional parts of the square roots of 2, 3 and 5.
const ROOTS: [u64; 3] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b];

/// A 64-bit hash of 16 bytes that are a digest, or at least a number without a plan.
pub(crate) fn hash_id(bytes: &[u8; 16]) -> u64 {
    let number = u128::from_le_bytes(*bytes);
    fold(low(number) ^ ROOTS[0], low(number >> 64) ^ ROOTS[1])
}

/// A hash and one more word that belongs to the identity.
pub(crate) fn hash_with(hash: u64, word: u64) -> u64 {
    fold(hash ^ ROOTS[2], word ^ ROOTS[1])
}

/// A 64-bit hash of two words that need not be random: two rounds of a folded multiplication.
pub(crate) fn hash_words(first: u64, second: u64) -> u64 {
    let once = fold(first ^ ROOTS[0], second ^ ROOTS[1]);
    fold(once ^ first.rotate_left(32), ROOTS[2] ^ second)
}

fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    low(product) ^ low(product >> 64)
}

/// The low half of a 128-bit number.
pub(crate) fn low(number: u128) -> u64 {
    u64::try_from(number & u128::from(u64::MAX)).unwrap_or(0)
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
            assert!(index.remove(hash_of(slot), slot, hash_of));
            assert!(!index.remove(hash_of(slot), slot, hash_of));
        }
        assert_eq!(index.len(), slots / 2);
        for slot in 0..slots {
            let found = index.find(hash_of(slot), |there| there == slot);
            assert_eq!(found.is_some(), slot % 2 == 1, "{slot}");
        }
    }

    /// Whatever is added, replaced and removed, also where hundreds share a few homes, exactly what
    /// should be there is found: crowded entries stand as far from home as entries ever do.
    #[test]
    fn crowded_homes_lose_nothing() {
        for homes in [1, 3, 40, 1_000] {
            // Neighbouring homes, so that their entries displace each other.
            let hash_of = |slot: Slot| {
                let home = u64::from(slot % homes);
                hash_words(home, 1) << 40 | home << 24 | 0x8000_0000
            };
            let mut index = Index::new();
            let mut model: Vec<Slot> = Vec::new();
            let mut random = u64::from(homes);
            let mut unused = 0;
            for _ in 0..6_000 {
                random = hash_words(random, 5);
                let room = homes as usize * 100;
                let place = (random >> 8) as usize % model.len().max(1);
                if model.len() < room.min(2_000) && random % 8 < 5 {
                    index.insert(hash_of(unused), unused, hash_of);
                    model.push(unused);
                    unused += 1;
                } else if random % 8 == 5 && !model.is_empty() {
                    let new = unused - unused % homes + homes + model[place] % homes;
                    assert!(index.replace(hash_of(new), model[place], new));
                    model[place] = new;
                    unused = new + 1;
                } else if !model.is_empty() {
                    let slot = model.swap_remove(place);
                    assert!(index.remove(hash_of(slot), slot, hash_of));
                    assert_eq!(index.find(hash_of(slot), |there| there == slot), None);
                }
                assert_eq!(index.len() as usize, model.len());
            }
            for slot in &model {
                assert_eq!(index.find(hash_of(*slot), |there| there == *slot), Some(*slot));
            }
            let mut found: Vec<Slot> = index.segments.iter().flat_map(Segment::slots).collect();
            found.sort_unstable();
            model.sort_unstable();
            assert_eq!(found, model, "{homes} homes");
        }
    }

    /// Marks fall with distance, keep it, and are never the empty one.
    #[test]
    fn marks_keep_the_distance() {
        for hash in (0..=255_u64).map(|byte| byte << 40) {
            for distance in 0..=FAR {
                let mark = mark(hash, distance);
                assert!(mark > 0 && mark <= mark_from(distance));
                assert_eq!(far(mark), distance);
                if distance < FAR {
                    assert_eq!(farther(mark), super::mark(hash, distance + 1));
                    assert_eq!(nearer(farther(mark), || hash), mark);
                }
            }
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

    /// Five bytes an entry at a load of about 13/16, whatever the number of entries.
    #[test]
    fn load_stays_high() {
        let mut index = Index::new();
        for slot in 0..200_000 {
            index.insert(hash_words(u64::from(slot), 9), slot, |s| hash_words(u64::from(s), 9));
        }
        let places: usize =
            index.segments.iter().map(|segment| segment.groups.len() * PLACES).sum();
        assert!(places * 3 < 200_000 * 4, "{places}");
    }
}
