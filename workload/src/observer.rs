//! The observer: what the job must hold, judged from outside.
//!
//! It knows only what was acknowledged and what the store lists, never what the catalog thinks. It
//! counts how often the two contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::id::{CheckpointId, ConversationId, Key, Namespace};
use pinfold_core::outcome::TurnKey;
use pinfold_host::store::{ListError, ObjectStore};

/// What was acknowledged so far.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Every acknowledged publication: a turn and its checkpoints.
    published: BTreeMap<TurnKey, BTreeSet<CheckpointId>>,
    /// Every turn whose expiry was acknowledged.
    expired: BTreeSet<TurnKey>,
    /// Conversations with a past that this observer has not seen.
    before: BTreeSet<ConversationId>,
    /// Bytes of each checkpoint, as its writer confirmed them.
    written: BTreeMap<CheckpointId, u64>,
}

/// A contradiction between what was acknowledged and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise, and what was seen instead.
    pub what: String,
}

impl Observer {
    /// A publication was acknowledged, and with it perhaps an expiry.
    pub fn saw_published(
        &mut self,
        turn: TurnKey,
        checkpoint: CheckpointId,
        expired: Option<TurnKey>,
    ) {
        self.published.entry(turn).or_default().insert(checkpoint);
        self.expired.extend(expired);
    }

    /// A turn was live when this observer began: the only thing it takes the catalog's word for.
    pub fn saw_before(&mut self, turn: TurnKey, checkpoint: CheckpointId) {
        self.published.entry(turn).or_default().insert(checkpoint);
        self.before.insert(turn.conversation);
    }

    /// A checkpoint's private objects were written and confirmed.
    pub fn saw_written(&mut self, checkpoint: CheckpointId, bytes: u64) {
        self.written.insert(checkpoint, bytes);
    }

    /// Live turns: published and not expired.
    fn live(&self) -> impl Iterator<Item = (&TurnKey, &BTreeSet<CheckpointId>)> {
        self.published.iter().filter(|(turn, _)| !self.expired.contains(turn))
    }

    /// Compares the acknowledged turns with the store. With `drained`, nothing else may be left.
    ///
    /// # Errors
    /// [`ListError`] when the store cannot be listed.
    pub fn judge(
        &self,
        store: &dyn ObjectStore,
        namespace: &Namespace,
        turns: u32,
        drained: bool,
    ) -> Result<Vec<Violation>, ListError> {
        let mut there: BTreeMap<CheckpointId, u64> = BTreeMap::new();
        store.list(&mut |text, bytes| {
            if let Ok(key) = text.parse::<Key>()
                && key.namespace == *namespace
            {
                *there.entry(key.checkpoint).or_default() += bytes;
            }
        })?;
        let mut violations = self.judge_ledgers(turns);
        let mut retained = BTreeSet::new();
        for (turn, checkpoints) in self.live() {
            for checkpoint in checkpoints {
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
            let left = there.keys().filter(|checkpoint| !retained.contains(checkpoint));
            violations.extend(left.map(|checkpoint| Violation {
                what: format!("L1: nothing holds checkpoint {checkpoint}, and it is still there"),
            }));
        }
        Ok(violations)
    }

    /// A conversation keeps its newest N turns: no more, and no fewer while it had so many.
    fn judge_ledgers(&self, turns: u32) -> Vec<Violation> {
        let mut ledgers: BTreeMap<ConversationId, (u32, u32)> = BTreeMap::new();
        for turn in self.published.keys() {
            let (published, live) = ledgers.entry(turn.conversation).or_default();
            *published += 1;
            *live += u32::from(!self.expired.contains(turn));
        }
        let wrong = ledgers.into_iter().filter(|(conversation, (published, live))| {
            let known = !self.before.contains(conversation);
            *live > turns || known && *live != (*published).min(turns)
        });
        wrong
            .map(|(conversation, (published, live))| Violation {
                what: format!(
                    "I6: conversation {conversation} published {published} turns and keeps {live}"
                ),
            })
            .collect()
    }
}
