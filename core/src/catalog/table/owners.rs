//! Steps on owners and their incarnations.

use alloc::vec::Vec;

use super::{Life, Owner, Table};
use crate::catalog::index::hash_id;
use crate::catalog::list::Links;
use crate::catalog::owner::Role;
use crate::catalog::receipt::Receipts;
use crate::catalog::slab::{NONE, Slot};
use crate::id::{Incarnation, OwnerId, StartId};

impl Table {
    pub(crate) fn owner(&self, id: OwnerId) -> Option<Slot> {
        self.owner_index.find(hash_id(id.as_bytes()), |slot| self.owners[slot].id == id)
    }

    pub(crate) fn add_owner(&mut self, id: OwnerId, role: Role) -> Slot {
        let slot = self.owners.insert(Owner {
            id,
            role,
            current: NONE,
            start: StartId::from_u128(0),
            fenced: Vec::new(),
            pins: 0,
            receipts: Receipts::default(),
        });
        let hash_of = |slot| hash_id(self.owners[slot].id.as_bytes());
        self.owner_index.insert(hash_id(id.as_bytes()), slot, hash_of);
        slot
    }

    pub(crate) fn remove_owner(&mut self, slot: Slot) {
        let current = self.owners[slot].current;
        if current != NONE {
            self.lives.remove(current);
        }
        let hash_of = |slot| hash_id(self.owners[slot].id.as_bytes());
        self.owner_index.remove(hash_of(slot), slot, hash_of);
        self.owners[slot].fenced = Vec::new();
        self.owners[slot].receipts = Receipts::default();
        self.owners.remove(slot);
    }

    /// The number of an owner's current incarnation; 0 when it has none.
    pub(crate) fn current(&self, owner: Slot) -> Incarnation {
        match self.owners[owner].current {
            NONE => Incarnation(0),
            life => self.lives[life].number,
        }
    }

    /// The row of an owner's incarnation, while it has one.
    pub(crate) fn life(&self, owner: Slot, number: Incarnation) -> Option<Slot> {
        let current = self.owners[owner].current;
        if current != NONE && self.lives[current].number == number {
            return Some(current);
        }
        self.lives.slots().find(|slot| {
            let life = &self.lives[*slot];
            life.owner == owner && life.number == number
        })
    }

    pub(crate) fn add_life(&mut self, owner: Slot, number: Incarnation, current: bool) -> Slot {
        self.lives.insert(Life {
            owner,
            number,
            current,
            fenced: false,
            pins: NONE,
            pin_count: 0,
            bytes_unsettled: 0,
            bytes_doubted: 0,
            fencing: Links::UNLINKED,
        })
    }

    /// Makes a new incarnation the current one; the older one stays while it has pins.
    pub(crate) fn succeed(&mut self, owner: Slot, start: StartId, number: Incarnation) {
        let older = self.owners[owner].current;
        if older != NONE {
            self.change_life(older, |life| life.current = false);
            self.forget_life(older);
        }
        let life = self.add_life(owner, number, true);
        let row = &mut self.owners[owner];
        row.current = life;
        row.start = start;
        row.receipts.clear();
        self.incarnation = number;
    }

    /// Bars an incarnation; its pins, if it has any, wait for follow-ups.
    pub(crate) fn fence(&mut self, owner: Slot, number: Incarnation) {
        let fenced = &mut self.owners[owner].fenced;
        if let Err(place) = fenced.binary_search(&number) {
            fenced.insert(place, number);
        }
        let Some(life) = self.life(owner, number) else { return };
        if self.lives[life].fenced {
            return;
        }
        self.change_life(life, |life| life.fenced = true);
        if self.lives[life].pins != NONE {
            self.fencing.push(&mut self.lives, life, |life| &mut life.fencing);
        }
    }

    /// Puts back a fenced incarnation that still has pins.
    pub(crate) fn restore_fencing(&mut self, life: Slot) {
        self.fencing.push(&mut self.lives, life, |life| &mut life.fencing);
    }

    /// Changes what decides whether an incarnation's unsettled pins count as in doubt.
    pub(super) fn change_life(&mut self, life: Slot, change: impl FnOnce(&mut Life)) {
        let row = &mut self.lives[life];
        self.counters.bytes_in_doubt -= row.bytes_in_doubt();
        change(row);
        self.counters.bytes_in_doubt += row.bytes_in_doubt();
    }

    /// Frees the row of an incarnation that is neither current nor has pins.
    pub(super) fn forget_life(&mut self, life: Slot) {
        let row = self.lives[life];
        if row.pins != NONE {
            return;
        }
        if row.fenced && self.is_fencing(life) {
            self.fencing.unlink(&mut self.lives, life, |life| &mut life.fencing);
        }
        if !row.current {
            self.lives.remove(life);
        }
    }

    fn is_fencing(&self, life: Slot) -> bool {
        self.fencing.head == life || self.lives[life].fencing.prev != NONE
    }
}
