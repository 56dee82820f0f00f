//! Lists through rows: order is position, and every step is O(1).

use super::slab::{NONE, Slab, Slot};

/// A row's neighbours in one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Links {
    pub(crate) prev: Slot,
    pub(crate) next: Slot,
}

impl Links {
    pub(crate) const UNLINKED: Self = Self { prev: NONE, next: NONE };
}

/// Both ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) head: Slot,
    pub(crate) tail: Slot,
}

impl Ends {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };

    pub(crate) const fn is_empty(self) -> bool {
        self.head == NONE
    }

    /// Appends a row.
    pub(crate) fn push<T>(&mut self, rows: &mut Slab<T>, slot: Slot, links: LinksOf<T>) {
        *links(&mut rows[slot]) = Links { prev: self.tail, next: NONE };
        match self.tail {
            NONE => self.head = slot,
            tail => links(&mut rows[tail]).next = slot,
        }
        self.tail = slot;
    }

    /// Takes a row out, wherever it stands.
    pub(crate) fn unlink<T>(&mut self, rows: &mut Slab<T>, slot: Slot, links: LinksOf<T>) {
        let Links { prev, next } = core::mem::replace(links(&mut rows[slot]), Links::UNLINKED);
        match prev {
            NONE => self.head = next,
            prev => links(&mut rows[prev]).next = next,
        }
        match next {
            NONE => self.tail = prev,
            next => links(&mut rows[next]).prev = prev,
        }
    }
}

/// Which of a row's links belong to the list.
pub(crate) type LinksOf<T> = fn(&mut T) -> &mut Links;

/// Puts a row first in a list that knows only its head.
pub(crate) fn push_front<T>(rows: &mut Slab<T>, head: &mut Slot, slot: Slot, links: LinksOf<T>) {
    *links(&mut rows[slot]) = Links { prev: NONE, next: *head };
    if *head != NONE {
        links(&mut rows[*head]).prev = slot;
    }
    *head = slot;
}

/// Takes a row out of a list that knows only its head.
pub(crate) fn unlink<T>(rows: &mut Slab<T>, head: &mut Slot, slot: Slot, links: LinksOf<T>) {
    let mut ends = Ends { head: *head, tail: NONE };
    ends.unlink(rows, slot, links);
    *head = ends.head;
}
