//! The observer: what the job must hold, judged from outside.
//!
//! It knows what was asked and acknowledged, and what the store lists. It takes the catalog's word
//! for two things alone, because nobody else can tell them: which turns of a resumed job were live
//! when it began ([`saw_before`](Observer::saw_before)), and which are live at a judgement
//! ([`saw_retained`](Observer::saw_retained)), because a reply names the first expiry of its event
//! and a byte budget may cause more. It never takes it that a turn was *rightly* kept or expired:
//! that is judged by the order of the publications and the bytes that their writers confirmed.

mod ledgers;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::id::{CheckpointId, ConversationId, Key};
use pinfold_core::outcome::TurnKey;
use pinfold_core::policy::Genesis;
use pinfold_host::store::{ListError, ObjectStore};

/// What was acknowledged so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observer {
    /// Every acknowledged publication.
    published: BTreeMap<TurnKey, Published>,
    /// Every turn that expired, by a reply or by the catalog's word.
    expired: BTreeSet<TurnKey>,
    /// Conversations with a past that this observer has not seen.
    before: BTreeSet<ConversationId>,
    /// What was there before, and is somebody else's.
    foreign: BTreeSet<CheckpointId>,
    /// Bytes of each checkpoint, as its writer confirmed them.
    written: BTreeMap<CheckpointId, u64>,
    /// Bytes of the others, as the store listed them when they were seen first.
    listed: BTreeMap<CheckpointId, u64>,
    /// How many questions and answers there were.
    now: Moment,
}

/// A place in the order of questions and answers, as one who watches all workers sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

/// A published turn: it was first published between `asked` and `answered`.
#[derive(Clone, Debug, Default)]
struct Published {
    checkpoints: BTreeSet<CheckpointId>,
    asked: Moment,
    answered: Moment,
}

/// A contradiction between what was acknowledged and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The promise, and what was seen instead.
    pub(crate) what: String,
}

impl Violation {
    /// How many are worded in a report; all are counted.
    const WORDED: usize = 20;

    /// The first ones in words.
    pub(crate) fn worded(all: &[Self]) -> Vec<String> {
        all.iter().take(Self::WORDED).map(|one| one.what.clone()).collect()
    }
}

impl Observer {
    /// A worker begins to serve a turn: what it publishes for it is not published before.
    pub(crate) fn begins(&mut self) -> Moment {
        self.now.0 += 1;
        self.now
    }

    /// A publication was acknowledged, and with it perhaps an expiry.
    pub(crate) fn saw_published(
        &mut self,
        turn: TurnKey,
        checkpoint: CheckpointId,
        expired: Option<TurnKey>,
        asked: Moment,
    ) {
        let answered = self.begins();
        let first = Published { checkpoints: BTreeSet::new(), asked, answered };
        let published = self.published.entry(turn).or_insert(first);
        // A position that has a whole checkpoint gets another generation only after a Lost, and
        // the turn then leaves the lost one.
        published.checkpoints.retain(|there| there.endpoint != checkpoint.endpoint);
        published.checkpoints.insert(checkpoint);
        self.expired.extend(expired);
    }

    /// A turn was live when this observer began, by the catalog's word.
    pub(crate) fn saw_before(&mut self, turn: TurnKey, checkpoint: CheckpointId) {
        self.published.entry(turn).or_default().checkpoints.insert(checkpoint);
        self.before.insert(turn.conversation);
    }

    /// Everything of the job in the store is somebody else's, but for what a turn refers to that
    /// was live before.
    ///
    /// # Errors
    /// [`ListError`] when the store cannot be listed.
    pub(crate) fn begins_among_others(
        &mut self,
        store: &dyn ObjectStore,
        job: &Genesis,
    ) -> Result<(), ListError> {
        let own = |checkpoint: &CheckpointId| {
            self.published.values().any(|turn| turn.checkpoints.contains(checkpoint))
        };
        self.foreign = stored(store, job)?.into_keys().filter(|it| !own(it)).collect();
        Ok(())
    }

    /// Whether it was there before, and is somebody else's.
    pub(crate) fn is_foreign(&self, checkpoint: &CheckpointId) -> bool {
        self.foreign.contains(checkpoint)
    }

    /// The conversations of which a turn was published.
    pub(crate) fn conversations(&self) -> BTreeSet<ConversationId> {
        self.published.keys().map(|turn| turn.conversation).collect()
    }

    /// What live turns refer to.
    pub(crate) fn retained(&self) -> BTreeSet<CheckpointId> {
        self.live().flat_map(|(_, published)| published.checkpoints.iter().copied()).collect()
    }

    /// These turns are live, by the catalog's word: each other one that was published has expired
    /// by now. Whether it may have is judged with the ledgers.
    pub(crate) fn saw_retained(&mut self, retained: &BTreeSet<TurnKey>) -> Vec<Violation> {
        let returned = retained.intersection(&self.expired).map(|turn| Violation {
            what: format!("I7: turn {turn} has expired, and is retained"),
        });
        let unknown = retained.iter().filter(|turn| !self.published.contains_key(turn));
        let unknown = unknown.map(|turn| Violation {
            what: format!("I4: turn {turn} is retained, and nobody was told of its publication"),
        });
        let violations = returned.chain(unknown).collect();
        let gone = self.published.keys().filter(|turn| !retained.contains(turn));
        self.expired.extend(gone.copied());
        violations
    }

    /// A checkpoint's private objects were written and confirmed.
    pub(crate) fn saw_written(&mut self, checkpoint: CheckpointId, bytes: u64) {
        self.written.insert(checkpoint, bytes);
    }

    /// Learns the sizes of checkpoints that nobody confirms: those of an earlier life of the job,
    /// and saves whose process was thrown away.
    ///
    /// # Errors
    /// [`ListError`] when the store cannot be listed.
    pub(crate) fn list(&mut self, store: &dyn ObjectStore, job: &Genesis) -> Result<(), ListError> {
        let there = stored(store, job)?;
        self.learn(&there);
        Ok(())
    }

    fn learn(&mut self, there: &BTreeMap<CheckpointId, u64>) {
        for (checkpoint, bytes) in there {
            if !self.written.contains_key(checkpoint) {
                self.listed.entry(*checkpoint).or_insert(*bytes);
            }
        }
    }

    /// The bytes of checkpoints that nobody confirmed, as they were seen first in the store.
    #[must_use]
    pub(crate) fn bytes_found(&self) -> u64 {
        self.listed.values().sum()
    }

    /// The bytes of a checkpoint's private objects; none when nobody ever saw them whole.
    #[must_use]
    pub(crate) fn bytes(&self, checkpoint: CheckpointId) -> Option<u64> {
        self.written.get(&checkpoint).or_else(|| self.listed.get(&checkpoint)).copied()
    }

    /// How many turns are known to have expired.
    #[must_use]
    pub(crate) fn expired_turns(&self) -> u64 {
        self.expired.len() as u64
    }

    /// Live turns: published and not expired.
    fn live(&self) -> impl Iterator<Item = (&TurnKey, &Published)> {
        self.published.iter().filter(|(turn, _)| !self.expired.contains(turn))
    }

    /// Compares the acknowledged turns with what the store has of this job's epoch, and the ledgers
    /// with the job's policy. With `drained`, nothing else of it may be left.
    ///
    /// # Errors
    /// [`ListError`] when the store cannot be listed.
    pub(crate) fn judge(
        &mut self,
        store: &dyn ObjectStore,
        job: &Genesis,
        drained: bool,
    ) -> Result<Vec<Violation>, ListError> {
        let there = stored(store, job)?;
        self.learn(&there);
        let mut violations = self.judge_ledgers(&job.policy);
        let mut retained = BTreeSet::new();
        for (turn, published) in self.live() {
            for checkpoint in &published.checkpoints {
                retained.insert(*checkpoint);
                let stored = there.get(checkpoint);
                if self.written.get(checkpoint).is_some_and(|bytes| Some(bytes) != stored) {
                    let what = format!(
                        "I1: turn {turn} is retained, and checkpoint {checkpoint} is not whole"
                    );
                    violations.push(Violation { what });
                }
            }
        }
        if drained {
            let is_held = |it: &CheckpointId| retained.contains(it) || self.is_foreign(it);
            let left = there.keys().filter(|checkpoint| !is_held(checkpoint));
            violations.extend(left.map(|checkpoint| Violation {
                what: format!("L1: nothing holds checkpoint {checkpoint}, and it is still there"),
            }));
        }
        Ok(violations)
    }
}

/// What the store calls an object, as a private key of this job; none of what is somebody else's.
pub(crate) fn private_key(text: &str, job: &Genesis) -> Option<Key> {
    let key: Key = text.parse().ok()?;
    ((&key.namespace, key.epoch) == (&job.namespace, job.epoch)).then_some(key)
}

/// The private bytes of each checkpoint of a job, as the store lists them.
pub(crate) fn stored(
    store: &dyn ObjectStore,
    job: &Genesis,
) -> Result<BTreeMap<CheckpointId, u64>, ListError> {
    let mut there = BTreeMap::new();
    store.list(&mut |text, bytes| {
        if let Some(key) = private_key(text, job) {
            *there.entry(key.checkpoint).or_default() += bytes;
        }
    })?;
    Ok(there)
}
