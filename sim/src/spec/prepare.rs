//! Prepare: join the attempt, hold what is kept already, or mint.
//!
//! It asks about an endpoint's records alone, oldest generation first.

use pinfold_core::catalog::{Change, Prepare};
use pinfold_core::id::{EndpointId, Generation, OpId};
use pinfold_core::outcome::{Limit, Rejection};
use pinfold_core::policy::{Limits, Quarantine};

use super::lists::{Checkpoint, Pin, Stage};
use super::ruling::Ruling;
use super::{Spec, within};

impl Spec {
    pub(super) fn rule_prepare(&self, op: OpId, asked: &Prepare) -> Ruling {
        let mut known = self.checkpoints.iter();
        if let Some(known) = known.find(|there| there.attempt == asked.attempt) {
            return self.rule_known_attempt(op, known, asked);
        }
        if let Some(kept) = self.kept_already(asked)? {
            return self.hold_kept(op, kept);
        }
        if self.records_of(asked.endpoint).any(|there| self.is_healthy(there)) {
            return Err(Rejection::InFlight);
        }
        let bars = self.job.policy.quarantine == Quarantine::Endpoint;
        if bars && self.records_of(asked.endpoint).any(Checkpoint::is_quarantined) {
            return Err(Rejection::EndpointQuarantined);
        }
        self.within_prepare_limits(op, asked)?;
        let generation = Generation(self.generation.0 + 1);
        Ok(Change::Prepared { prepare: asked.clone(), generation })
    }

    fn records_of(&self, endpoint: EndpointId) -> impl Iterator<Item = &Checkpoint> {
        self.checkpoints.iter().filter(move |there| there.id.endpoint == endpoint)
    }

    /// The ranks of one engine instance share an attempt, and so a checkpoint.
    fn rule_known_attempt(&self, op: OpId, known: &Checkpoint, asked: &Prepare) -> Ruling {
        let is_same = known.id.endpoint == asked.endpoint
            && known.digest == asked.digest
            && known.shape == asked.shape;
        if !is_same {
            return Err(Rejection::ManifestMismatch);
        }
        if known.lost {
            return Err(Rejection::AttemptFailed);
        }
        match known.stage {
            Stage::Failed | Stage::Collecting => Err(Rejection::AttemptFailed),
            Stage::Whole => match self.kept_already(asked)? {
                Some(kept) => self.hold_kept(op, kept),
                None => Err(Rejection::AttemptFailed),
            },
            Stage::Prepared => {
                let taken =
                    asked.shards.iter().find(|shard| known.shards[usize::from(shard.0)].claimed);
                if let Some(shard) = taken {
                    return Err(Rejection::ShardTaken { shard: *shard });
                }
                self.within_pin_limits(op, 1, self.newly_pinned(known))?;
                Ok(Change::Joined { checkpoint: known.id, shards: asked.shards.clone() })
            }
        }
    }

    /// The oldest restorable checkpoint of the endpoint with the manifest that is asked for.
    fn kept_already(&self, asked: &Prepare) -> Result<Option<&Checkpoint>, Rejection> {
        let kept = || self.records_of(asked.endpoint).filter(|there| there.is_restorable());
        let same = kept().find(|there| there.digest == asked.digest);
        if same.is_none() && kept().next().is_some() {
            return Err(Rejection::ManifestMismatch);
        }
        Ok(same)
    }

    fn hold_kept(&self, op: OpId, kept: &Checkpoint) -> Ruling {
        self.within_pin_limits(op, 1, self.newly_pinned(kept))?;
        Ok(Change::AlreadyPublished { checkpoint: kept.id })
    }

    /// In flight, and nothing says that it will not come to a good end.
    fn is_healthy(&self, checkpoint: &Checkpoint) -> bool {
        let is_sound =
            |pin: &Pin| !pin.doubted && !self.has_doubtful_end(pin) && self.is_obeying(pin);
        checkpoint.stage == Stage::Prepared
            && !checkpoint.lost
            && self.pins_on(checkpoint.id).all(is_sound)
    }

    fn within_prepare_limits(&self, op: OpId, asked: &Prepare) -> Result<(), Rejection> {
        let Limits { shards, objects_per_shard, objects_per_checkpoint, .. } = self.job.limits;
        let Limits { generations_per_endpoint, bytes_quarantined, .. } = self.job.limits;
        let shape = asked.shape.shards();
        let largest = shape.iter().map(|shard| u64::from(shard.objects)).max().unwrap_or(0);
        let objects = shape.iter().map(|shard| u64::from(shard.objects)).sum();
        let bytes = shape.iter().map(|shard| shard.bytes).sum();
        let generations = self.records_of(asked.endpoint).count() as u64 + 1;
        within(Limit::Shards, u64::from(shards), shape.len() as u64)?;
        within(Limit::ObjectsPerShard, u64::from(objects_per_shard), largest)?;
        within(Limit::ObjectsPerCheckpoint, u64::from(objects_per_checkpoint), objects)?;
        let bound = u64::from(generations_per_endpoint);
        within(Limit::GenerationsPerEndpoint, bound, generations)?;
        self.within_budgets(bytes)?;
        within(Limit::BytesQuarantined, bytes_quarantined, self.bytes_quarantined())?;
        self.within_pin_limits(op, 1, bytes)
    }

    /// A checkpoint larger than a budget could never stay.
    pub(super) fn within_budgets(&self, bytes: u64) -> Result<(), Rejection> {
        let policy = &self.job.policy;
        let of_conversation = policy.conversation_bytes.unwrap_or(u64::MAX);
        within(Limit::ConversationBytes, of_conversation, bytes)?;
        within(Limit::JobBytes, policy.job_bytes.unwrap_or(u64::MAX), bytes)
    }
}
