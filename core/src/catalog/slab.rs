//! Rows in slots: a growing table that reuses freed places and never moves a row.
//!
//! Rows live in chunks, so that growing neither copies rows nor doubles memory. A slot is a place
//! and never an identity: it shows in no answer, event, snapshot or hash. Conversations alone are
//! never freed, so that their slot is their number in first-seen order, and may show.

use alloc::vec::Vec;

/// A place in a [`Slab`].
pub(crate) type Slot = u32;

/// No place.
pub(crate) const NONE: Slot = u32::MAX;

/// Rows per chunk: growing by one chunk costs one allocation of this many rows.
const CHUNK: usize = 4096;

/// A table of rows of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<Slot>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new() }
    }

    /// Stores a row and says where.
    pub(crate) fn insert(&mut self, row: T) -> Slot {
        if let Some(slot) = self.free.pop() {
            self[slot] = row;
            return slot;
        }
        self.push(row)
    }

    /// The slot of a freed row to be filled in place, if there is one: its buffers are still there.
    pub(crate) fn reuse(&mut self) -> Option<Slot> {
        self.free.pop()
    }

    /// Appends a row at the end and says where.
    pub(crate) fn push(&mut self, row: T) -> Slot {
        let full = self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK);
        if full {
            // The first chunk grows as it needs, so that a small world stays small.
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        let chunks = self.chunks.len();
        let chunk = &mut self.chunks[chunks - 1];
        let slot = (chunks - 1) * CHUNK + chunk.len();
        chunk.push(row);
        u32::try_from(slot).unwrap_or(NONE)
    }

    /// Frees a slot. The row stays in place until the slot is used again.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// How many rows are in use.
    pub(crate) fn len(&self) -> u32 {
        self.end() - u32::try_from(self.free.len()).unwrap_or(0)
    }

    /// One past the highest slot ever used.
    pub(crate) fn end(&self) -> Slot {
        let rows = match self.chunks.split_last() {
            Some((last, full)) => full.len() * CHUNK + last.len(),
            None => 0,
        };
        u32::try_from(rows).unwrap_or(NONE)
    }

    /// The slots in use, in ascending order. For checks and snapshots: it sorts the free list.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + use<'_, T> {
        let mut free = self.free.clone();
        free.sort_unstable();
        (0..self.end()).filter(move |slot| free.binary_search(slot).is_err())
    }
}

impl<T> core::ops::Index<Slot> for Slab<T> {
    type Output = T;

    fn index(&self, slot: Slot) -> &T {
        let slot = slot as usize;
        &self.chunks[slot / CHUNK][slot % CHUNK]
    }
}

impl<T> core::ops::IndexMut<Slot> for Slab<T> {
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        let slot = slot as usize;
        &mut self.chunks[slot / CHUNK][slot % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_slots_are_used_again_and_rows_never_move() {
        let mut slab = Slab::new();
        let slots: Vec<Slot> = (0..10_000_u32).map(|row| slab.insert(row)).collect();
        slab.remove(slots[5]);
        assert_eq!(slab.len(), 9_999);
        assert_eq!(slab.slots().count(), 9_999);
        assert_eq!(slab.insert(77), slots[5]);
        assert_eq!((slab[5], slab[9_999]), (77, 9_999));
        assert_eq!(slab.end(), 10_000);
    }
}
