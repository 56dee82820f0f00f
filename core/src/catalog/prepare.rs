//! Prepare: one durable step before any byte moves.
//!
//! It mints the generation, fixes the manifest and takes the save pin; or joins the attempt of the
//! other ranks; or finds that the position is kept already and pins that instead.

use alloc::vec::Vec;

use super::shape::Shape;
use super::slab::{NONE, Slot};
use super::table::{Claimant, Holds, NewCheckpoint, Stage};
use super::{Catalog, Change, Ruling, Sender};
use crate::id::{
    AttemptId, CheckpointId, EndpointId, Generation, ManifestDigest, OpId, PinId, ShardIndex,
};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Field, Limit, Malformed, Outcome, Problem, Rejection};
use crate::policy::Quarantine;

/// The content of a `Prepare`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Prepare {
    /// The host's id of this try; the ranks of one engine instance share it.
    pub attempt: AttemptId,
    /// The position to keep.
    pub endpoint: EndpointId,
    /// The digest of the whole manifest.
    pub digest: ManifestDigest,
    /// The private geometry: the expected set of shards.
    pub shape: Shape,
    /// The shards that the caller will save, ascending, at least one.
    pub shards: Vec<ShardIndex>,
}

impl Prepare {
    pub(super) fn form(&self) -> Result<(), Malformed> {
        let refuse = |field, problem| Err(Malformed { field, problem });
        if self.attempt.is_empty() {
            return refuse(Field::Attempt, Problem::Empty);
        }
        if self.endpoint.is_empty() {
            return refuse(Field::Endpoint, Problem::Empty);
        }
        let Some(last) = self.shards.last() else {
            return refuse(Field::Shards, Problem::Empty);
        };
        for pair in self.shards.windows(2) {
            match pair[0].cmp(&pair[1]) {
                core::cmp::Ordering::Less => {}
                core::cmp::Ordering::Equal => return refuse(Field::Shards, Problem::Duplicate),
                core::cmp::Ordering::Greater => return refuse(Field::Shards, Problem::Unordered),
            }
        }
        if usize::from(last.0) >= self.shape.shards().len() {
            return refuse(Field::Shards, Problem::OutOfRange);
        }
        Ok(())
    }
}

impl Catalog {
    pub(super) fn decide_prepare(&self, sender: &Sender, prepare: Prepare) -> Ruling {
        if let Some(slot) = self.table.attempt(prepare.attempt) {
            return self.decide_known_attempt(sender, slot, prepare);
        }
        if let Some(slot) = self.restorable_with(prepare.endpoint, prepare.digest)? {
            return self.decide_already_published(sender, slot);
        }
        let in_flight = |slot: Slot| self.is_healthy(slot);
        if self.table.generations(prepare.endpoint).any(in_flight) {
            return Err(Rejection::InFlight);
        }
        if self.is_endpoint_barred(prepare.endpoint) {
            return Err(Rejection::EndpointQuarantined);
        }
        self.check_prepare_limits(sender, &prepare)?;
        let generation = Generation(self.table.generation.0 + 1);
        #[cfg(pinfold_mutants)]
        let generation = self.reused_generation().unwrap_or(generation);
        Ok(Change::Prepared { prepare, generation })
    }

    fn decide_known_attempt(&self, sender: &Sender, slot: Slot, prepare: Prepare) -> Ruling {
        let row = &self.table.checkpoints[slot];
        let same = row.endpoint == prepare.endpoint
            && row.digest == prepare.digest
            && *self.table.shapes.shape(row.shape) == prepare.shape;
        #[cfg(pinfold_mutants)]
        let same = same
            || is_armed(Mutant::JoinIgnoresDigest)
                && row.endpoint == prepare.endpoint
                && *self.table.shapes.shape(row.shape) == prepare.shape;
        if !same {
            return Err(Rejection::ManifestMismatch);
        }
        match row.stage {
            Stage::Failed | Stage::Collecting => Err(Rejection::AttemptFailed),
            Stage::Prepared | Stage::Whole if row.lost => Err(Rejection::AttemptFailed),
            Stage::Prepared => self.decide_join(sender, slot, prepare.shards),
            Stage::Whole => match self.restorable_with(prepare.endpoint, prepare.digest)? {
                Some(oldest) => self.decide_already_published(sender, oldest),
                None => Err(Rejection::AttemptFailed),
            },
        }
    }

    fn decide_join(&self, sender: &Sender, slot: Slot, shards: Vec<ShardIndex>) -> Ruling {
        let row = &self.table.checkpoints[slot];
        if let Holds::Assembly(assembly) = row.holds() {
            let claims = &self.table.assemblies[assembly].shards;
            let is_free = |shard: &ShardIndex| {
                claims.get(usize::from(shard.0)).is_some_and(|claim| claim.by == Claimant::Nobody)
            };
            #[cfg(pinfold_mutants)]
            let is_free =
                |shard: &ShardIndex| is_free(shard) || self.table.is_wrongly_free(assembly, *shard);
            if let Some(taken) = shards.iter().find(|shard| !is_free(shard)) {
                return Err(Rejection::ShardTaken { shard: *taken });
            }
        }
        self.check_pin_limits(sender, 1, 0)?;
        Ok(Change::Joined { checkpoint: row.id(), shards })
    }

    fn decide_already_published(&self, sender: &Sender, slot: Slot) -> Ruling {
        let row = &self.table.checkpoints[slot];
        let bytes = if row.pins == NONE { self.table.shapes.bytes(row.shape) } else { 0 };
        self.check_pin_limits(sender, 1, bytes)?;
        Ok(Change::AlreadyPublished { checkpoint: row.id() })
    }

    /// The oldest restorable checkpoint of an endpoint with this digest; another digest is a
    /// mismatch.
    fn restorable_with(
        &self,
        endpoint: EndpointId,
        digest: ManifestDigest,
    ) -> Result<Option<Slot>, Rejection> {
        let rows = &self.table.checkpoints;
        let mut differs = false;
        let same = self
            .table
            .generations(endpoint)
            .filter(|slot| rows[*slot].is_restorable())
            .filter(|slot| {
                let same = rows[*slot].digest == digest;
                differs |= !same;
                same
            })
            .min_by_key(|slot| rows[*slot].generation);
        if same.is_none() && differs { Err(Rejection::ManifestMismatch) } else { Ok(same) }
    }

    /// Prepared, not lost, nothing failed or in doubt, and every pin on it is undoubted and of a
    /// current, unfenced incarnation.
    fn is_healthy(&self, slot: Slot) -> bool {
        let row = &self.table.checkpoints[slot];
        if row.stage != Stage::Prepared || row.lost {
            return false;
        }
        let mut pin = row.pins;
        while pin != NONE {
            let row = &self.table.pins[pin];
            if row.doubted || row.in_doubt > 0 || !self.table.lives[row.life].is_live() {
                return false;
            }
            pin = row.of_checkpoint.next;
        }
        true
    }

    fn is_endpoint_barred(&self, endpoint: EndpointId) -> bool {
        self.table.job.policy.quarantine == Quarantine::Endpoint
            && self.table.generations(endpoint).any(|slot| self.is_quarantined(slot))
    }

    pub(super) fn is_quarantined(&self, slot: Slot) -> bool {
        match self.table.checkpoints[slot].holds() {
            Holds::Disposal(disposal) => self.table.disposals[disposal].unknown > 0,
            Holds::Assembly(_) | Holds::References(_) => false,
        }
    }

    fn check_prepare_limits(&self, sender: &Sender, prepare: &Prepare) -> Result<(), Rejection> {
        let shape = &prepare.shape;
        let bytes = shape.bytes();
        let largest = shape.shards().iter().map(|shard| shard.objects).max().unwrap_or(0);
        let generations = self.table.generations(prepare.endpoint).count() as u64;
        self.check_limit(Limit::Shards, shape.shards().len() as u64)?;
        self.check_limit(Limit::ObjectsPerShard, u64::from(largest))?;
        self.check_limit(Limit::ObjectsPerCheckpoint, u64::from(shape.objects()))?;
        self.check_limit(Limit::GenerationsPerEndpoint, generations + 1)?;
        self.check_budgets(bytes)?;
        self.check_limit(Limit::BytesQuarantined, self.table.counters.bytes_quarantined)?;
        self.check_pin_limits(sender, 1, bytes)
    }

    pub(super) fn apply_prepared(
        &mut self,
        sender: &Sender,
        op: OpId,
        prepare: &Prepare,
        generation: Generation,
    ) -> Outcome {
        self.table.generation = generation;
        let id = CheckpointId { endpoint: prepare.endpoint, generation };
        let Prepare { attempt, digest, shape, .. } = prepare;
        let new = NewCheckpoint { id, attempt: *attempt, digest: *digest };
        self.table.add_checkpoint(new, shape);
        #[cfg(pinfold_mutants)]
        self.copy_digest(id.endpoint, *digest);
        self.apply_joined(sender, op, id, &prepare.shards)
    }

    pub(super) fn apply_joined(
        &mut self,
        sender: &Sender,
        op: OpId,
        checkpoint: CheckpointId,
        shards: &[ShardIndex],
    ) -> Outcome {
        let pin = PinId { op, place: 0 };
        if let Some(slot) = self.table.checkpoint(checkpoint) {
            let slot = self.table.add_pin(sender.life, pin, slot, true);
            // From the last to the first, so that the pin's list of claims ascends.
            for shard in shards.iter().rev() {
                self.table.claim(slot, shard.0);
            }
        }
        Outcome::Prepared { pin, checkpoint }
    }

    pub(super) fn apply_already_published(
        &mut self,
        sender: &Sender,
        op: OpId,
        checkpoint: CheckpointId,
    ) -> Outcome {
        let pin = PinId { op, place: 0 };
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::KeptWithoutPin) {
            return Outcome::AlreadyPublished { pin, checkpoint };
        }
        self.add_load_pin(sender, pin, checkpoint);
        Outcome::AlreadyPublished { pin, checkpoint }
    }
}
