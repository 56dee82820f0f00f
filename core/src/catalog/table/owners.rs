//! Steps on owners and their incarnations.

use alloc::vec::Vec;

use super::{Life, Owner, Table};
use crate::catalog::index::hash_id;
use crate::catalog::list::Links;
use crate::catalog::owner::Role;
use crate::catalog::receipt::Receipts;
use crate::catalog::slab::{NONE, Slot};
use crate::id::{Incarnation, OwnerId, StartId};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};

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
            incarnations: Vec::new(),
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
        self.owners[slot].incarnations = Vec::new();
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

    /// Where an incarnation stands in the list of those that its owner ever had.
    fn place_of_incarnation(&self, owner: Slot, number: Incarnation) -> Option<usize> {
        self.owners[owner].incarnations.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    /// Whether an incarnation of an owner is fenced; none when the owner never had it.
    pub(crate) fn is_fenced(&self, owner: Slot, number: Incarnation) -> Option<bool> {
        let place = self.place_of_incarnation(owner, number)?;
        Some(self.owners[owner].incarnations[place].1)
    }

    /// The row of an owner's incarnation, while it has one.
    pub(crate) fn life(&self, owner: Slot, number: Incarnation) -> Option<Slot> {
        let current = self.owners[owner].current;
        if current != NONE && self.lives[current].number == number {
            return Some(current);
        }
        let older = self.older_lives.get(&number).copied();
        older.filter(|life| self.lives[*life].owner == owner)
    }

    pub(crate) fn add_life(&mut self, owner: Slot, number: Incarnation, current: bool) -> Slot {
        let life = self.lives.insert(Life {
            owner,
            number,
            current,
            fenced: false,
            pins: NONE,
            pin_count: 0,
            bytes_unsettled: 0,
            bytes_doubted: 0,
            fencing: Links::UNLINKED,
        });
        if !current {
            self.older_lives.insert(number, life);
        }
        life
    }

    /// Makes a new incarnation the current one; the older one stays while it has pins.
    pub(crate) fn succeed(&mut self, owner: Slot, start: StartId, number: Incarnation) {
        let older = self.owners[owner].current;
        if older != NONE {
            self.change_life(older, |life| life.current = false);
            self.older_lives.insert(self.lives[older].number, older);
            self.forget_life(older);
        }
        let life = self.add_life(owner, number, true);
        let row = &mut self.owners[owner];
        row.current = life;
        row.start = start;
        row.incarnations.push((number, false));
        row.receipts.clear();
        self.incarnation = number;
    }

    /// Bars an incarnation; its pins, if it has any, wait for follow-ups.
    pub(crate) fn fence(&mut self, owner: Slot, number: Incarnation) {
        if let Some(place) = self.place_of_incarnation(owner, number) {
            self.owners[owner].incarnations[place].1 = true;
        }
        let Some(life) = self.life(owner, number) else { return };
        if self.lives[life].fenced {
            return;
        }
        self.change_life(life, |life| life.fenced = true);
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::FenceLeavesPins) {
            return;
        }
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
            self.older_lives.remove(&row.number);
            self.lives.remove(life);
        }
    }

    fn is_fencing(&self, life: Slot) -> bool {
        self.fencing.head == life || self.lives[life].fencing.prev != NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Epoch;
    use crate::policy::{Genesis, Limits, Policy};

    /// An older incarnation is found by its owner alone, and as long as it has a row.
    #[test]
    fn older_incarnations_are_found_while_they_have_rows() {
        let mut table = Table::new(Genesis {
            namespace: "a".parse().unwrap(),
            epoch: Epoch::from_u128(1),
            operator: OwnerId::from_u128(1),
            policy: Policy::default(),
            limits: Limits::default(),
        });
        let owner = table.add_owner(OwnerId::from_u128(2), Role::Worker);
        let other = table.add_owner(OwnerId::from_u128(3), Role::Worker);
        let lives: Vec<(Incarnation, Slot)> =
            (1..9).map(Incarnation).map(|n| (n, table.add_life(owner, n, false))).collect();
        table.succeed(owner, StartId::from_u128(4), Incarnation(9));
        for (number, life) in &lives {
            assert_eq!(table.life(owner, *number), Some(*life));
            assert_eq!(table.life(other, *number), None);
        }
        assert_eq!(table.life(owner, Incarnation(9)), Some(table.owners[owner].current));
        assert_eq!(table.life(other, Incarnation(9)), None);
        // Without pins it goes when another one succeeds it.
        table.succeed(owner, StartId::from_u128(5), Incarnation(10));
        assert_eq!(table.life(owner, Incarnation(9)), None);
        for (number, life) in lives {
            table.forget_life(life);
            assert_eq!(table.life(owner, number), None);
        }
        assert!(table.older_lives.is_empty());
    }
}
