//! What the engine answers, as text with the script's names.

use pinfold_core::catalog::{Blocker, Blockers, FollowUp, Verdict};
use pinfold_core::engine::Reply;
use pinfold_core::id::{ObjectId, OpId, PinId};
use pinfold_core::outcome::{Evidence, Outcome, Pinned, Rejection};
use pinfold_core::policy::{Gauges, Genesis, Quarantine};

use super::names::Names;

impl Names {
    /// An answer to a query, line by line; none for the answers to commands.
    pub(crate) fn show_query(&self, words: &[String], reply: &Reply) -> Option<Vec<String>> {
        let verb = words.first()?;
        let line = match reply {
            Reply::Command(_) | Reply::List(_) => return None,
            Reply::Job(job) => show_job(job),
            Reply::Gauges(gauges) => show_gauges(&words[1..], gauges),
            Reply::Blockers(None) => format!("{}: no record", words[1]),
            Reply::Blockers(Some(blockers)) => return Some(self.show_blockers(blockers)),
            Reply::Audit(verdicts) => {
                let pairs = words[1..].iter().zip(verdicts);
                let line = |(key, verdict): (&String, &Verdict)| match verdict {
                    Verdict::Counted => format!("{key}: counted"),
                    Verdict::Stray => format!("{key}: stray"),
                    Verdict::NotOurs => format!("{key}: not ours"),
                };
                return Some(pairs.map(line).collect());
            }
            Reply::WrongEpoch => format!("{verb}: wrong epoch"),
            Reply::Poisoned => format!("{verb}: poisoned"),
        };
        Some(vec![line])
    }

    /// An answer to a command.
    pub(crate) fn show_answer(
        &self,
        op: Option<OpId>,
        answer: &Result<Outcome, Rejection>,
    ) -> String {
        match answer {
            Ok(Outcome::Pinned(answers)) => self.show_pinned(op, answers),
            Ok(outcome) => self.show_outcome(outcome),
            Err(rejection) => format!("refused: {}", show_rejection(rejection)),
        }
    }

    fn show_outcome(&self, outcome: &Outcome) -> String {
        match outcome {
            Outcome::Registered { incarnation } => format!("registered as {incarnation}"),
            Outcome::Prepared { pin, checkpoint } => {
                format!("prepared {} on {}", self.show_pin(*pin), self.show_checkpoint(*checkpoint))
            }
            Outcome::AlreadyPublished { pin, checkpoint } => {
                let pin = self.show_pin(*pin);
                format!("already published: {pin} on {}", self.show_checkpoint(*checkpoint))
            }
            Outcome::Pinned(answers) => self.show_pinned(None, answers),
            Outcome::Settled { evidence } => format!("settled {}", show_evidence(*evidence)),
            Outcome::Released => "released".into(),
            Outcome::Published { expired, follow_ups } => {
                let expired = expired.map(|turn| format!(", expired {}", self.show_turn(turn)));
                let more = if *follow_ups { ", more follows" } else { "" };
                format!("published{}{more}", expired.unwrap_or_default())
            }
            Outcome::Lost => "lost".into(),
            Outcome::Doubted => "doubted".into(),
            Outcome::Collected { objects, more } => {
                let more = if *more { ", more is left" } else { "" };
                format!("collected {objects} objects{more}")
            }
            Outcome::Deleted { left } => format!("deleted, {left} left"),
            Outcome::Configured => "configured".into(),
            Outcome::Forgotten => "forgotten".into(),
            Outcome::Dropped => "dropped".into(),
            Outcome::Fenced { pins } => format!("fenced, {pins} pins"),
            Outcome::Retired => "retired".into(),
        }
    }

    fn show_pinned(&self, op: Option<OpId>, answers: &[Pinned]) -> String {
        let on = answers.iter().zip(0..).map(|(answer, place)| {
            let pin = op.map_or("a pin".into(), |op| self.show_pin(PinId { op, place }));
            format!("{pin} on {}", self.show_checkpoint(answer.checkpoint))
        });
        let on: Vec<_> = on.collect();
        if on.is_empty() { "pinned nothing".into() } else { format!("pinned {}", on.join(", ")) }
    }

    /// A follow-up that the engine did by itself.
    pub(crate) fn show_follow_up(&self, follow_up: &FollowUp) -> String {
        match follow_up {
            FollowUp::EndPin { pin } => format!("follow-up: end {}", self.show_pin(*pin)),
            FollowUp::Expire { turn } => format!("follow-up: expire {}", self.show_turn(*turn)),
            FollowUp::Purge { conversation, turns } => {
                let conversation = self.show_conversation(*conversation);
                format!("follow-up: purge {turns} of {conversation}")
            }
            FollowUp::Settle { conversation } => {
                format!("follow-up: nothing due in {}", self.show_conversation(*conversation))
            }
            FollowUp::Trim { next: None } => "follow-up: looked at all conversations".into(),
            FollowUp::Trim { next: Some(next) } => format!("follow-up: looked up to {next}"),
        }
    }

    fn show_blockers(&self, blockers: &Blockers) -> Vec<String> {
        let name = self.show_checkpoint(blockers.checkpoint);
        let head = format!("{name}: {} bytes", blockers.bytes);
        let lines = blockers.blockers.iter().map(|blocker| format!("  {}", self.blocker(blocker)));
        core::iter::once(head).chain(lines).collect()
    }

    fn blocker(&self, blocker: &Blocker) -> String {
        let name = blocker.name();
        match blocker {
            Blocker::Retained { turn } => format!("{name} by {}", self.show_turn(*turn)),
            Blocker::Pinned { pin, save } => {
                let purpose = if *save { "save" } else { "load" };
                let owner = self.show_owner(pin.op.owner);
                let incarnation = pin.op.incarnation;
                format!("{name} by {} of {owner}:{incarnation}, {purpose}", self.show_pin(*pin))
            }
            Blocker::WaitingForShard { shard } => format!("{name} {shard}"),
            Blocker::InFlight { pin, shard: Some(shard) } => {
                format!("{name}: {}, shard {shard}", self.show_pin(*pin))
            }
            Blocker::InFlight { pin, shard: None } | Blocker::InDoubt { pin } => {
                format!("{name}: {}", self.show_pin(*pin))
            }
            Blocker::Collecting { left, refused } if refused.is_empty() => {
                format!("{name}: {left} left")
            }
            Blocker::Collecting { left, refused } => {
                format!("{name}: {left} left, refused {}", show_objects(refused))
            }
            Blocker::Quarantined { objects } => format!("{name}: {}", show_objects(objects)),
            Blocker::Unscoped | Blocker::Collectable | Blocker::Lost => name.to_string(),
        }
    }
}

/// `0/0 0/1`.
pub(crate) fn show_objects(objects: &[ObjectId]) -> String {
    let texts: Vec<_> = objects.iter().map(ToString::to_string).collect();
    texts.join(" ")
}

fn show_evidence(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::NotExposed => "not-exposed",
        Evidence::Active => "active",
        Evidence::Quiescing => "quiescing",
        Evidence::QuiescedSuccess => "success",
        Evidence::QuiescedFailure => "failure",
        Evidence::InDoubt => "in-doubt",
    }
}

/// The variant's own name, and its fields.
fn show_rejection(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Malformed(malformed) => format!("Malformed, {malformed}"),
        Rejection::UnknownVersion { known } => format!("UnknownVersion, known {known}"),
        Rejection::StaleIncarnation { current } => format!("StaleIncarnation, current {current}"),
        Rejection::ShardNotClaimed { shard } => format!("ShardNotClaimed, {shard}"),
        Rejection::ShardTaken { shard } => format!("ShardTaken, {shard}"),
        Rejection::LimitExceeded { limit, bound, needed } => {
            format!("LimitExceeded, {limit}: {needed} needed, {bound} allowed")
        }
        plain => format!("{plain:?}"),
    }
}

fn show_job(job: &Genesis) -> String {
    let budget = |bytes: Option<u64>| bytes.map_or("none".to_string(), |bytes| bytes.to_string());
    let quarantine = match job.policy.quarantine {
        Quarantine::Generation => "Generation",
        Quarantine::Endpoint => "Endpoint",
    };
    format!(
        "job: turns={} conversation_bytes={} job_bytes={} quarantine={quarantine}",
        job.policy.turns,
        budget(job.policy.conversation_bytes),
        budget(job.policy.job_bytes),
    )
}

/// The gauges that are asked for; without words, all that are not zero.
fn show_gauges(words: &[String], gauges: &Gauges) -> String {
    let fields = serde_json::to_value(gauges).unwrap_or_default();
    let mut shown = Vec::new();
    if words.is_empty() {
        let all = fields.as_object().into_iter().flatten();
        shown.extend(
            all.filter(|(_, value)| value.as_u64() != Some(0))
                .map(|(name, value)| format!("{name}={value}")),
        );
    } else {
        shown.extend(words.iter().map(|name| format!("{name}={}", fields[name.as_str()])));
    }
    format!("gauges: {}", shown.join(" "))
}
