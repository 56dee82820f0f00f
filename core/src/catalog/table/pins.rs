//! Steps on pins, and on the shards that save pins claim.

use super::{Claim, Claimant, Holds, Pin, Stage, Table, pin_hash};
use crate::catalog::index::Index;
use crate::catalog::list::{self, Links};
use crate::catalog::slab::{NONE, Slot};
#[cfg(pinfold_mutants)]
use crate::id::ManifestDigest;
use crate::id::{OpId, PinId, ShardIndex};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::Evidence;

impl Table {
    /// The live pin of this id.
    pub(crate) fn pin(&self, id: PinId) -> Option<Slot> {
        let PinId { op: OpId { owner, incarnation, sequence }, place } = id;
        self.pin_index.find(pin_hash(incarnation, sequence, place), |slot| {
            let pin = &self.pins[slot];
            let life = &self.lives[pin.life];
            (pin.sequence, pin.place, life.number) == (sequence, place, incarnation)
                && self.owners[life.owner].id == owner
        })
    }

    fn hash_of_pin(&self, slot: Slot) -> u64 {
        let pin = &self.pins[slot];
        pin_hash(self.lives[pin.life].number, pin.sequence, pin.place)
    }

    pub(crate) fn pin_id(&self, slot: Slot) -> PinId {
        let pin = &self.pins[slot];
        let life = &self.lives[pin.life];
        let owner = self.owners[life.owner].id;
        let op = OpId { owner, incarnation: life.number, sequence: pin.sequence };
        PinId { op, place: pin.place }
    }

    /// Whether an unsettled pin is marked, settled `InDoubt`, or of a fenced or older incarnation.
    pub(crate) fn is_in_doubt(&self, slot: Slot) -> bool {
        let pin = &self.pins[slot];
        pin.is_doubted() || (pin.is_unsettled() && !self.lives[pin.life].is_live())
    }

    /// Takes a pin of an incarnation on a checkpoint: for a save with its assembly, or for a load.
    pub(crate) fn add_pin(&mut self, life: Slot, id: PinId, checkpoint: Slot, save: bool) -> Slot {
        self.leave_queue(checkpoint);
        let row = &self.checkpoints[checkpoint];
        let bytes = self.shapes.bytes(row.shape);
        if row.pins == NONE {
            self.counters.bytes_pinned += u128::from(bytes);
        }
        let assembly = match row.holds() {
            Holds::Assembly(assembly) if save => assembly,
            Holds::Assembly(_) | Holds::References(_) | Holds::Disposal(_) => NONE,
        };
        if assembly != NONE {
            self.assemblies[assembly].savers += 1;
        }
        let slot = self.pins.insert(Pin {
            sequence: id.op.sequence,
            place: id.place,
            doubted: false,
            load_in_doubt: false,
            life,
            checkpoint,
            assembly,
            claims: NONE,
            open: u32::from(!save),
            in_doubt: 0,
            bytes: if save { 0 } else { bytes },
            of_checkpoint: Links::UNLINKED,
            of_life: Links::UNLINKED,
        });
        let of_checkpoint: list::LinksOf<Pin> = |pin| &mut pin.of_checkpoint;
        let head = &mut self.checkpoints[checkpoint].pins;
        list::push_front(&mut self.pins, head, slot, of_checkpoint);
        let head = &mut self.lives[life].pins;
        list::push_front(&mut self.pins, head, slot, |pin| &mut pin.of_life);
        let owner = self.lives[life].owner;
        self.lives[life].pin_count += 1;
        self.owners[owner].pins += 1;
        let mut index = core::mem::replace(&mut self.pin_index, Index::new());
        index.insert(self.hash_of_pin(slot), slot, |slot| self.hash_of_pin(slot));
        self.pin_index = index;
        self.recount_pin(life, [0, 0], self.pins[slot].bytes_open());
        slot
    }

    /// Ends a pin. A prepared checkpoint without a pin has failed; an unheld one joins the queue.
    pub(crate) fn end_pin(&mut self, slot: Slot) {
        let mut index = core::mem::replace(&mut self.pin_index, Index::new());
        index.remove(self.hash_of_pin(slot), slot, |slot| self.hash_of_pin(slot));
        self.pin_index = index;
        let pin = self.pins[slot];
        self.recount_pin(pin.life, pin.bytes_open(), [0, 0]);
        let head = &mut self.checkpoints[pin.checkpoint].pins;
        list::unlink(&mut self.pins, head, slot, |pin| &mut pin.of_checkpoint);
        let head = &mut self.lives[pin.life].pins;
        list::unlink(&mut self.pins, head, slot, |pin| &mut pin.of_life);
        self.pins.remove(slot);
        let owner = self.lives[pin.life].owner;
        self.lives[pin.life].pin_count -= 1;
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::EndedPinCounted) && !pin.is_save() {
            self.owners[owner].pins += 1;
        }
        self.owners[owner].pins -= 1;
        self.forget_life(pin.life);
        if pin.is_save() {
            self.leave_assembly(pin.assembly, pin.claims, pin.checkpoint);
        }
        if self.checkpoints[pin.checkpoint].pins == NONE {
            let shape = self.checkpoints[pin.checkpoint].shape;
            self.counters.bytes_pinned -= u128::from(self.shapes.bytes(shape));
            #[cfg(pinfold_mutants)]
            self.end_unscoped(pin.checkpoint);
            self.join_queue_if_unheld(pin.checkpoint);
        }
    }

    /// Changes a pin and keeps the sums of doubt true.
    pub(crate) fn change_pin(&mut self, slot: Slot, change: impl FnOnce(&mut Pin)) {
        let row = &mut self.pins[slot];
        let (life, before) = (row.life, row.bytes_open());
        change(row);
        let after = row.bytes_open();
        self.recount_pin(life, before, after);
    }

    /// Takes the bytes that a pin stood for, all and doubted ones, from its incarnation's, and adds
    /// those that it stands for now.
    fn recount_pin(&mut self, life: Slot, before: [u64; 2], after: [u64; 2]) {
        if before == after {
            return;
        }
        self.change_life(life, |life| {
            life.bytes_unsettled =
                life.bytes_unsettled - u128::from(before[0]) + u128::from(after[0]);
            life.bytes_doubted = life.bytes_doubted - u128::from(before[1]) + u128::from(after[1]);
        });
    }

    /// Gives a shard to a save pin.
    pub(crate) fn claim(&mut self, pin: Slot, shard: u16) {
        let Pin { assembly, checkpoint, claims, .. } = self.pins[pin];
        #[cfg(pinfold_mutants)]
        self.forget_success(assembly, shard);
        let claim = &mut self.assemblies[assembly].shards[usize::from(shard)];
        *claim = Claim { by: Claimant::Pin(pin), evidence: None, next: claims };
        let shape = self.shapes.shape(self.checkpoints[checkpoint].shape);
        let bytes = shape.shard_bytes(ShardIndex(shard));
        self.change_pin(pin, |pin| {
            pin.claims = u32::from(shard);
            pin.open += 1;
            pin.bytes += bytes;
        });
    }

    /// Records a shard's evidence, which was not final before.
    pub(crate) fn settle_shard(&mut self, pin: Slot, shard: Slot, evidence: Evidence) {
        let Pin { assembly, checkpoint, .. } = self.pins[pin];
        let row = &mut self.assemblies[assembly];
        let claim = &mut row.shards[shard as usize];
        let was_in_doubt = claim.evidence.replace(evidence) == Some(Evidence::InDoubt);
        row.missing -= u32::from(evidence == Evidence::QuiescedSuccess);
        let complete = row.missing == 0;
        self.change_pin(pin, |pin| {
            pin.in_doubt -= u32::from(was_in_doubt);
            pin.in_doubt += u32::from(evidence == Evidence::InDoubt);
            pin.open -= u32::from(evidence.is_final());
            pin.doubted &= pin.open > 0;
        });
        let stage = &mut self.checkpoints[checkpoint].stage;
        if *stage != Stage::Prepared {
            return;
        }
        if complete {
            *stage = Stage::Whole;
            // The claims stay with the save pins; the link is the references' from here on.
            self.checkpoints[checkpoint].link = NONE;
            #[cfg(pinfold_mutants)]
            if is_armed(Mutant::WholeChangesDigest) {
                self.checkpoints[checkpoint].digest = ManifestDigest::default();
            }
        } else if evidence.is_final() && evidence != Evidence::QuiescedSuccess {
            *stage = Stage::Failed;
        }
    }

    /// A save pin ended: its claims stay claimed; the last one frees the assembly.
    fn leave_assembly(&mut self, assembly: Slot, claims: Slot, checkpoint: Slot) {
        let row = &mut self.assemblies[assembly];
        let mut shard = claims;
        while shard != NONE {
            let claim = &mut row.shards[shard as usize];
            claim.by = Claimant::Ended;
            shard = core::mem::replace(&mut claim.next, NONE);
        }
        row.savers -= 1;
        if row.savers > 0 {
            return;
        }
        row.shards.clear();
        self.assemblies.remove(assembly);
        let row = &mut self.checkpoints[checkpoint];
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::AbandonedIsWhole) && row.stage == Stage::Prepared
            || is_armed(Mutant::ServeFailed) && row.stage == Stage::Failed
        {
            row.stage = Stage::Whole;
            row.link = NONE;
        }
        if row.stage == Stage::Prepared {
            row.stage = Stage::Failed;
        }
        if row.stage == Stage::Failed {
            row.link = NONE;
        }
    }
}
