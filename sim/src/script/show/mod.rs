//! What a machine is asked, does and answers, as text with names.
//!
//! One line is one thing. What owners ask is shown in the words in which a script asks it, so that
//! it can be read again; nothing here judges.

mod asked;
mod event;

use pinfold_core::catalog::{Blocker, Blockers, Verdict};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{ObjectId, OpId, PinId};
use pinfold_core::outcome::{Outcome, Pinned, Rejection};
use pinfold_core::policy::Gauges;

use super::names::Names;
use super::words::Word;
use asked::show_policy;

impl Names {
    /// A reply to a request, line by line: `w1#5 -> released`, `c1: no record`.
    #[must_use]
    pub fn show_reply(&self, request: &Request, reply: &Reply) -> Vec<String> {
        match (request, reply) {
            (Request::List(commands), Reply::List(answers)) => {
                let pairs = commands.iter().zip(answers);
                pairs.map(|((op, _), answer)| self.show_tried(*op, answer.as_ref())).collect()
            }
            (Request::Query(query), reply) => self.show_query(query, reply),
            (request, reply) => vec![self.show_other(request, reply)],
        }
    }

    fn show_tried(&self, op: OpId, answer: Option<&Result<Outcome, Rejection>>) -> String {
        let answer = answer.map(|answer| self.show_answer(Some(op), answer));
        format!("{} -> {}", self.show_op(op), answer.unwrap_or_else(|| "not tried".into()))
    }

    /// A reply to anything but a query, in one line.
    fn show_other(&self, request: &Request, reply: &Reply) -> String {
        let (label, op) = match request {
            Request::Register(register) => (self.show_owner(register.owner), None),
            Request::Command(op, _) => (self.show_op(*op), Some(*op)),
            Request::List(_) => ("list".to_string(), None),
            Request::Query(query) => (query_verb(query).to_string(), None),
        };
        match reply {
            Reply::Command(answer) => format!("{label} -> {}", self.show_answer(op, answer)),
            Reply::Poisoned => format!("{label} -> poisoned"),
            Reply::WrongEpoch => format!("{label} -> wrong epoch"),
            Reply::List(_)
            | Reply::Job(_)
            | Reply::Gauges(_)
            | Reply::Blockers(_)
            | Reply::Audit(_) => format!("{label} -> the reply to something else: {reply:?}"),
        }
    }

    /// A reply to a query, line by line. Of the gauges, those that are not zero.
    #[must_use]
    pub fn show_query(&self, query: &Query, reply: &Reply) -> Vec<String> {
        let verb = query_verb(query);
        let line = match (query, reply) {
            (_, Reply::Job(job)) => format!("{verb}: {}", show_policy(&job.policy)),
            (_, Reply::Gauges(gauges)) => show_gauges(&[], gauges),
            (_, Reply::Blockers(Some(blockers))) => return self.show_blockers(blockers),
            (Query::Blockers(checkpoint), Reply::Blockers(None)) => {
                format!("{}: no record", self.show_checkpoint(*checkpoint))
            }
            (Query::Audit(keys), Reply::Audit(verdicts)) => {
                let pairs = keys.iter().zip(verdicts);
                let line = |(key, verdict): (&String, &Verdict)| {
                    format!("{}: {}", self.show_key(key), show_verdict(*verdict))
                };
                return pairs.map(line).collect();
            }
            (_, Reply::WrongEpoch) => format!("{verb}: wrong epoch"),
            (_, Reply::Poisoned) => format!("{verb}: poisoned"),
            (_, Reply::Command(_) | Reply::List(_) | Reply::Blockers(None) | Reply::Audit(_)) => {
                format!("{verb}: the reply to something else: {reply:?}")
            }
        };
        vec![line]
    }

    /// An answer to a command: `prepared p1 on c1`, `refused: PinEnded`. The pins of a `Pin` are
    /// named by its operation.
    #[must_use]
    pub fn show_answer(&self, op: Option<OpId>, answer: &Result<Outcome, Rejection>) -> String {
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
            Outcome::Settled { evidence } => format!("settled {}", evidence.word()),
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

/// `0/0 0/1`: objects, each by its shard and its index in it.
#[must_use]
pub fn show_objects(objects: &[ObjectId]) -> String {
    let texts: Vec<_> = objects.iter().map(ToString::to_string).collect();
    texts.join(" ")
}

/// The refusal's own name, and what it names: `ShardTaken, 1`.
#[must_use]
pub fn show_rejection(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Malformed(malformed) => format!("Malformed, {malformed}"),
        Rejection::UnknownVersion { known } => format!("UnknownVersion, known {known}"),
        Rejection::StaleIncarnation { current } => format!("StaleIncarnation, current {current}"),
        Rejection::ShardNotClaimed { shard } => format!("ShardNotClaimed, {shard}"),
        Rejection::ShardTaken { shard } => format!("ShardTaken, {shard}"),
        Rejection::LimitExceeded { limit, bound, needed } => {
            format!("LimitExceeded, {limit}: {needed} needed, {bound} allowed")
        }
        Rejection::WrongEpoch
        | Rejection::UnknownOwner
        | Rejection::RoleMismatch
        | Rejection::OpConflict
        | Rejection::ReceiptForgotten
        | Rejection::Fenced
        | Rejection::UnknownIncarnation
        | Rejection::NotOperator
        | Rejection::GenesisOperator
        | Rejection::ForeignPin
        | Rejection::PinEnded
        | Rejection::UnknownPin
        | Rejection::UnknownCheckpoint
        | Rejection::UnknownObject
        | Rejection::NotHolder
        | Rejection::ManifestMismatch
        | Rejection::AttemptFailed
        | Rejection::InFlight
        | Rejection::EndpointQuarantined
        | Rejection::NotFinal
        | Rejection::NotComplete
        | Rejection::Lost
        | Rejection::TurnExpired
        | Rejection::Dropped
        | Rejection::Collecting
        | Rejection::NotCollecting
        | Rejection::OwnerHasPins
        | Rejection::PolicyMismatch => format!("{rejection:?}"),
    }
}

const fn query_verb(query: &Query) -> &'static str {
    match query {
        Query::Job => "job",
        Query::Gauges => "gauges",
        Query::Blockers(_) => "blockers",
        Query::Audit(_) => "audit",
    }
}

const fn show_verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Counted => "counted",
        Verdict::Stray => "stray",
        Verdict::NotOurs => "not ours",
    }
}

/// The gauges of these names; without names, all that are not zero.
pub(crate) fn show_gauges(names: &[String], gauges: &Gauges) -> String {
    let fields = serde_json::to_value(gauges).unwrap_or_default();
    let mut shown = Vec::new();
    if names.is_empty() {
        let all = fields.as_object().into_iter().flatten();
        shown.extend(
            all.filter(|(_, value)| value.as_u64() != Some(0))
                .map(|(name, value)| format!("{name}={value}")),
        );
    } else {
        shown.extend(names.iter().map(|name| format!("{name}={}", fields[name.as_str()])));
    }
    format!("gauges: {}", shown.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_core::catalog::Command;
    use pinfold_core::id::{CheckpointId, Generation, Incarnation};

    fn op(names: &mut Names, sequence: u64) -> OpId {
        OpId { owner: names.owner("w1"), incarnation: Incarnation(2), sequence }
    }

    #[test]
    fn a_list_is_answered_line_by_line() {
        let mut names = Names::default();
        let commands = vec![
            (op(&mut names, 1), Command::Collect { limit: 1 }),
            (op(&mut names, 2), Command::Collect { limit: 0 }),
        ];
        let request = Request::List(commands);
        let reply =
            Reply::List(vec![Some(Ok(Outcome::Collected { objects: 1, more: true })), None]);
        let lines = ["w1:2#1 -> collected 1 objects, more is left", "w1:2#2 -> not tried"];
        assert_eq!(names.show_reply(&request, &reply), lines);
        let refused = Reply::Command(Err(Rejection::WrongEpoch));
        assert_eq!(names.show_reply(&request, &refused), ["list -> refused: WrongEpoch"]);
    }

    #[test]
    fn the_pins_of_an_answer_are_named_by_their_operation() {
        let mut names = Names::default();
        let op = op(&mut names, 5);
        names.see_incarnation(op.owner, op.incarnation);
        let checkpoint = CheckpointId { endpoint: names.endpoint("E1"), generation: Generation(3) };
        names.see_checkpoint(checkpoint);
        let request = Request::Command(op, Command::Pin { candidates: Vec::new(), limit: 2 });
        let mut pinned = pinfold_core::few::Few::new();
        assert!(pinned.push(Pinned { checkpoint, ..Pinned::default() }));
        assert!(pinned.push(Pinned::default()));
        let reply = Reply::Command(Ok(Outcome::Pinned(pinned)));
        let lines = ["w1#5 -> pinned w1#5 on c3, w1#5.1 on empty@0"];
        assert_eq!(names.show_reply(&request, &reply), lines);
    }

    #[test]
    fn queries_are_answered_by_their_names() {
        let mut names = Names::default();
        let checkpoint = CheckpointId { endpoint: names.endpoint("E1"), generation: Generation(3) };
        let lines = |query, reply| names.show_reply(&Request::Query(query), &reply);
        assert_eq!(lines(Query::Blockers(checkpoint), Reply::Blockers(None)), ["E1@3: no record"]);
        let gauges = Gauges { pins: 2, ..Gauges::default() };
        assert_eq!(lines(Query::Gauges, Reply::Gauges(gauges)), ["gauges: pins=2"]);
        let keys = Query::Audit(vec!["a".into(), "b".into()]);
        let verdicts = Reply::Audit(vec![Verdict::Stray, Verdict::NotOurs]);
        assert_eq!(lines(keys.clone(), verdicts), ["a: stray", "b: not ours"]);
        assert_eq!(lines(keys, Reply::WrongEpoch), ["audit: wrong epoch"]);
        assert_eq!(lines(Query::Job, Reply::Poisoned), ["job: poisoned"]);
    }
}
