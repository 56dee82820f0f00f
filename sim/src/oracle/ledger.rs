//! The live turns, as the durable records have them, and when one may expire (I6).
//!
//! A plain list in order of first publication. It protects retention: a turn leaves only when a
//! bound that was in force since its publication cannot be kept with it.

use std::collections::BTreeSet;

use pinfold_core::id::{CheckpointId, ConversationId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::TurnKey;
use pinfold_core::policy::Policy;

use super::{Judged, broken, demand};

/// A live turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Turn {
    key: TurnKey,
    /// The checkpoints that it refers to.
    on: Vec<CheckpointId>,
    /// The smallest bounds that were in force since its first publication.
    least: Bounds,
}

/// The bounds of a policy; without a budget, the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bounds {
    turns: usize,
    conversation_bytes: u64,
    job_bytes: u64,
}

impl Bounds {
    fn of(policy: &Policy) -> Self {
        Self {
            turns: usize::try_from(policy.turns).unwrap_or(usize::MAX),
            conversation_bytes: policy.conversation_bytes.unwrap_or(u64::MAX),
            job_bytes: policy.job_bytes.unwrap_or(u64::MAX),
        }
    }

    fn least(self, other: Self) -> Self {
        Self {
            turns: self.turns.min(other.turns),
            conversation_bytes: self.conversation_bytes.min(other.conversation_bytes),
            job_bytes: self.job_bytes.min(other.job_bytes),
        }
    }
}

/// The turns of the job. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ledger {
    bounds: Bounds,
    /// In order of first publication.
    live: Vec<Turn>,
    expired: BTreeSet<TurnKey>,
    forgotten: BTreeSet<ConversationId>,
}

impl Ledger {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            bounds: Bounds::of(policy),
            live: Vec::new(),
            expired: BTreeSet::new(),
            forgotten: BTreeSet::new(),
        }
    }

    pub(super) fn configure(&mut self, policy: &Policy) {
        self.bounds = Bounds::of(policy);
        for turn in &mut self.live {
            turn.least = turn.least.least(self.bounds);
        }
    }

    pub(super) fn forget(&mut self, conversation: ConversationId) {
        self.forgotten.insert(conversation);
    }

    /// Whether a turn is over for ever.
    pub(super) fn is_over(&self, turn: TurnKey) -> bool {
        self.forgotten.contains(&turn.conversation) || self.expired.contains(&turn)
    }

    /// Whether a turn is live, and its conversation not forgotten.
    pub(super) fn is_retained(&self, turn: TurnKey) -> bool {
        !self.forgotten.contains(&turn.conversation)
            && self.live.iter().any(|there| there.key == turn)
    }

    pub(super) fn live_turns(&self) -> u64 {
        self.live.len() as u64
    }

    /// Every live turn that refers to a checkpoint, those of forgotten conversations included.
    pub(super) fn turns_on(&self, checkpoint: CheckpointId) -> impl Iterator<Item = TurnKey> {
        let on_it = self.live.iter().filter(move |turn| turn.on.contains(&checkpoint));
        on_it.map(|turn| turn.key)
    }

    /// Publishes a turn on a checkpoint; it leaves the lost ones of the same position.
    pub(super) fn publish(
        &mut self,
        key: TurnKey,
        checkpoint: CheckpointId,
        is_lost: impl Fn(CheckpointId) -> bool,
    ) {
        let Some(turn) = self.live.iter_mut().find(|turn| turn.key == key) else {
            self.live.push(Turn { key, on: vec![checkpoint], least: self.bounds });
            return;
        };
        turn.on.retain(|there| !(there.endpoint == checkpoint.endpoint && is_lost(*there)));
        if !turn.on.contains(&checkpoint) {
            turn.on.push(checkpoint);
        }
    }

    /// Remembers that a turn was refused as expired.
    pub(super) fn remember_expired(&mut self, turn: TurnKey) {
        self.expired.insert(turn);
    }

    /// Expires a turn, which must be its conversation's oldest and beyond what the bounds keep.
    pub(super) fn expire(
        &mut self,
        key: TurnKey,
        bytes_of: impl Fn(CheckpointId) -> u64,
    ) -> Judged {
        let Some(place) = self.live.iter().position(|turn| turn.key == key) else {
            return broken(Invariant::I6, format!("turn {key} expires, and it is not live"));
        };
        let same = |turn: &&Turn| turn.key.conversation == key.conversation;
        let older = self.live[..place].iter().find(same);
        demand(older.is_none(), Invariant::I6, || {
            format!("turn {key} expires before an older one of its conversation")
        })?;
        let may = self.forgotten.contains(&key.conversation) || self.is_beyond(place, bytes_of);
        demand(may, Invariant::I6, || format!("turn {key} expires, and every bound keeps it"))?;
        self.live.remove(place);
        self.expired.insert(key);
        Ok(())
    }

    /// Whether the turn at a place, with everything newer, exceeds a bound that was in force.
    fn is_beyond(&self, place: usize, bytes_of: impl Fn(CheckpointId) -> u64) -> bool {
        let Turn { key, least, .. } = &self.live[place];
        let newer = &self.live[place..];
        let same = |turn: &&Turn| turn.key.conversation == key.conversation;
        let count = newer.iter().filter(same).count();
        let bytes = |turns: &mut dyn Iterator<Item = &Turn>| {
            let on: BTreeSet<CheckpointId> =
                turns.flat_map(|turn| turn.on.iter().copied()).collect();
            on.into_iter().map(&bytes_of).fold(0, u64::saturating_add)
        };
        count > least.turns
            || count > 1 && bytes(&mut newer.iter().filter(same)) > least.conversation_bytes
            || newer.len() > 1 && bytes(&mut newer.iter()) > least.job_bytes
    }
}
