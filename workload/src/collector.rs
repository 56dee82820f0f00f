//! The collector: asks for delete work, deletes by whole keys, and reports each outcome.
//!
//! It never probes a key before it deletes it, and it never retries by itself: what was refused or
//! is unknown comes back with a later round.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinfold_core::catalog::Command;
use pinfold_core::engine::Effect;
use pinfold_core::id::CheckpointId;
use pinfold_core::outcome::{DeleteOutcome, Outcome};
use pinfold_core::policy::Genesis;
use pinfold_host::node::Effects;
use pinfold_host::store::{self, ObjectStore};

use crate::fleet::{Owner, OwnerError};

/// Objects per round.
const ROUND: u32 = 256;

/// An owner that collects.
pub struct Collector {
    owner: Owner,
    effects: Effects,
    store: Arc<dyn ObjectStore>,
    job: Genesis,
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Checkpoints whose every object is gone now.
    pub checkpoints: u64,
    /// Objects deleted.
    pub objects: u64,
    /// Objects that were not deleted, or nobody knows.
    pub left: u64,
    /// There is more to collect.
    pub more: bool,
}

impl Collector {
    /// A collector of a job, which gets the node's effects.
    #[must_use]
    pub fn new(owner: Owner, effects: Effects, store: Arc<dyn ObjectStore>, job: Genesis) -> Self {
        Self { owner, effects, store, job }
    }

    /// Gives the node's effects back.
    #[must_use]
    pub fn into_effects(self) -> Effects {
        self.effects
    }

    /// One round: a `Collect`, its deletes, and their outcomes.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone.
    pub fn round(&mut self) -> Result<Round, OwnerError> {
        let mut round = Round::default();
        let answer = self.owner.ask(Command::Collect { limit: ROUND })?;
        let Ok(Outcome::Collected { objects, more }) = answer else {
            return Err(OwnerError::Unexpected);
        };
        round.more = more;
        if objects == 0 {
            return Ok(round);
        }
        // Effects leave before the reply that they belong to, so all of this round's are here.
        let mut outcomes: BTreeMap<CheckpointId, Vec<_>> = BTreeMap::new();
        for effect in self.effects.try_iter() {
            let Effect::Delete { checkpoint, objects, .. } = &effect;
            let keys = effect.keys(&self.job);
            for (key, object) in keys.zip(objects) {
                let outcome = match self.store.delete(&key.to_string()) {
                    store::DeleteOutcome::Gone => DeleteOutcome::Gone,
                    store::DeleteOutcome::Refused(_) => DeleteOutcome::Refused,
                    store::DeleteOutcome::Unknown(_) => DeleteOutcome::Unknown,
                };
                round.objects += u64::from(outcome == DeleteOutcome::Gone);
                round.left += u64::from(outcome != DeleteOutcome::Gone);
                outcomes.entry(*checkpoint).or_default().push((*object, outcome));
            }
        }
        let reports = outcomes.into_iter().map(|(checkpoint, mut outcomes)| {
            outcomes.sort_by_key(|(object, _)| *object);
            Command::Deleted { checkpoint, outcomes }
        });
        for answer in self.owner.ask_all(reports.collect())? {
            match answer {
                Some(Ok(Outcome::Deleted { left })) => round.checkpoints += u64::from(left == 0),
                _ => return Err(OwnerError::Unexpected),
            }
        }
        Ok(round)
    }
}
