//! The ledgers and byte budgets (protocol, section 4), judged by order and size.
//!
//! Workers serve at once, so of two publications one is known to be the earlier only where it was
//! answered before the other was asked for. What follows from the rules for every order that is
//! possible is demanded, and nothing else: with one worker that is the whole rule.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::id::{CheckpointId, ConversationId};
use pinfold_core::policy::Policy;

use super::{Moment, Observer, Published, Violation};

/// The turns of one conversation.
#[derive(Default)]
struct Ledger<'a> {
    live: Vec<&'a Published>,
    expired: Vec<&'a Published>,
}

/// What the conversations of a job share.
struct Job {
    /// When the first of the live turns was answered, at the latest: the oldest that still lives.
    oldest_live: Option<Moment>,
    /// From the last answer back: how many bytes all turns hold that were answered then or later,
    /// the expired ones included.
    bytes_since: Vec<(Moment, u64)>,
}

impl Ledger<'_> {
    fn turns(&self) -> usize {
        self.live.len() + self.expired.len()
    }

    /// The expired turns that may be the newest of them: none was surely published later.
    fn newest_expired(&self) -> impl Iterator<Item = &Published> {
        let last = self.expired.iter().map(|turn| turn.asked).max();
        self.expired.iter().filter(move |turn| Some(turn.answered) >= last).copied()
    }

    /// Keeps a turn that was surely published before one that expired.
    fn is_out_of_order(&self) -> bool {
        let oldest = self.live.iter().map(|turn| turn.answered).min();
        let newest = self.expired.iter().map(|turn| turn.asked).max();
        oldest.zip(newest).is_some_and(|(live, expired)| live < expired)
    }
}

impl Observer {
    /// Every conversation keeps the newest end of its turns: no more than N and no more bytes than
    /// the budgets allow, and no fewer than those make necessary.
    pub(super) fn judge_ledgers(&self, policy: &Policy) -> Vec<Violation> {
        let mut ledgers: BTreeMap<ConversationId, Ledger<'_>> = BTreeMap::new();
        for (turn, published) in &self.published {
            let ledger = ledgers.entry(turn.conversation).or_default();
            let expired = self.expired.contains(turn);
            if expired { &mut ledger.expired } else { &mut ledger.live }.push(published);
        }
        let job = self.job();
        let mut wrong: Vec<String> = self.judge_job_bytes(policy).into_iter().collect();
        for (conversation, ledger) in &ledgers {
            let most = usize::try_from(policy.turns).unwrap_or(usize::MAX);
            let (published, live) = (ledger.turns(), ledger.live.len());
            let known = !self.before.contains(conversation);
            let shorter = live < published.min(most);
            if live > most || known && shorter && !self.is_explained(ledger, &job, policy) {
                wrong.push(format!(
                    "I6: conversation {conversation} published {published} turns and keeps {live}"
                ));
            }
            if ledger.is_out_of_order() {
                wrong.push(format!(
                    "I6: conversation {conversation} keeps a turn that is older than an expired one"
                ));
            }
            wrong.extend(self.judge_bytes(*conversation, ledger, policy));
        }
        wrong.into_iter().map(|what| Violation { what }).collect()
    }

    /// The budget of a conversation spares its newest turn, so it binds from two turns on.
    fn judge_bytes(
        &self,
        conversation: ConversationId,
        ledger: &Ledger<'_>,
        policy: &Policy,
    ) -> Option<String> {
        let budget = policy.conversation_bytes?;
        let bytes = self.at_least(ledger.live.iter().copied());
        (ledger.live.len() > 1 && bytes > budget).then(|| {
            format!("budget: conversation {conversation} holds {bytes} bytes, more than {budget}")
        })
    }

    /// The budget of the job spares the turn that was published last.
    fn judge_job_bytes(&self, policy: &Policy) -> Option<String> {
        let budget = policy.job_bytes?;
        let bytes = self.at_least(self.live().map(|(_, published)| published));
        (self.live().nth(1).is_some() && bytes > budget)
            .then(|| format!("budget: the job holds {bytes} bytes, more than {budget}"))
    }

    /// A ledger that is shorter than N must have been: the last turn that expired did not fit
    /// beside those after it.
    fn is_explained(&self, ledger: &Ledger<'_>, job: &Job, policy: &Policy) -> bool {
        ledger.newest_expired().any(|expired| {
            let by_conversation = policy.conversation_bytes.is_some_and(|budget| {
                let turns = ledger.live.iter().copied().chain([expired]);
                !ledger.live.is_empty() && self.at_most(turns) > budget
            });
            by_conversation || policy.job_bytes.is_some_and(|budget| job.expires(expired, budget))
        })
    }

    fn job(&self) -> Job {
        let mut turns: Vec<&Published> = self.published.values().collect();
        turns.sort_by_key(|turn| std::cmp::Reverse(turn.answered));
        let (mut seen, mut bytes) = (BTreeSet::new(), 0_u64);
        let bytes_since = turns.into_iter().map(|turn| {
            let new = turn.checkpoints.iter().filter(|checkpoint| seen.insert(**checkpoint));
            let sizes = new.map(|checkpoint| self.bytes(*checkpoint).unwrap_or(u64::MAX));
            bytes = sizes.fold(bytes, u64::saturating_add);
            (turn.answered, bytes)
        });
        let bytes_since = bytes_since.collect();
        let oldest_live = self.live().map(|(_, turn)| turn.answered).min();
        Job { oldest_live, bytes_since }
    }

    /// The bytes of turns, each checkpoint once, where every size is known.
    fn at_least<'a>(&self, turns: impl Iterator<Item = &'a Published>) -> u64 {
        self.sum(turns, 0)
    }

    /// The same, where what nobody knows may be of any size.
    fn at_most<'a>(&self, turns: impl Iterator<Item = &'a Published>) -> u64 {
        self.sum(turns, u64::MAX)
    }

    fn sum<'a>(&self, turns: impl Iterator<Item = &'a Published>, unknown: u64) -> u64 {
        let checkpoints: BTreeSet<CheckpointId> =
            turns.flat_map(|turn| turn.checkpoints.iter().copied()).collect();
        let sizes = checkpoints.into_iter().map(|one| self.bytes(one).unwrap_or(unknown));
        sizes.fold(0, u64::saturating_add)
    }
}

impl Job {
    /// The job's budget may have expired this turn: it was the oldest live turn of the job, and it
    /// did not fit beside those after it.
    fn expires(&self, turn: &Published, budget: u64) -> bool {
        let was_oldest = self.oldest_live.is_none_or(|live| live >= turn.asked);
        let younger = self.bytes_since.partition_point(|(answered, _)| *answered >= turn.asked);
        let held = younger.checked_sub(1).and_then(|last| self.bytes_since.get(last));
        was_oldest && held.is_some_and(|(_, bytes)| *bytes > budget)
    }
}
