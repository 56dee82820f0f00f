//! What is asked, in the words in which a script asks it.

use pinfold_core::catalog::{Command, PROTOCOL_VERSION, Prepare, Register, Shape};
use pinfold_core::engine::{Query, Request};
use pinfold_core::id::{ObjectId, ShardIndex};
use pinfold_core::outcome::{DeleteOutcome, LostObject};
use pinfold_core::policy::{Genesis, Limits, Policy, Quarantine};

use super::super::names::Names;
use super::super::words::Word;
use super::query_verb;

impl Names {
    /// A request, line by line: `w1#5 release p1`; a list has its commands indented below it.
    #[must_use]
    pub fn show_request(&self, request: &Request) -> Vec<String> {
        match request {
            Request::Register(register) => vec![self.show_register(register)],
            Request::Command(op, command) => {
                vec![format!("{} {}", self.show_op(*op), self.show_command(command))]
            }
            Request::List(commands) => {
                let below = commands.iter().map(|(op, command)| {
                    format!("  {} {}", self.show_op(*op), self.show_command(command))
                });
                core::iter::once("list".to_string()).chain(below).collect()
            }
            Request::Query(query) => vec![self.show_question(query)],
        }
    }

    /// A command without its sender, as a script writes it: `settle p1 success shard=0`.
    ///
    /// Of the limits of a `Configure`, those that are not the defaults.
    #[must_use]
    pub fn show_command(&self, command: &Command) -> String {
        match command {
            Command::Prepare(prepare) => format!("prepare {}", self.show_prepare(prepare)),
            Command::Settle { pin, shard, evidence } => {
                let shard = shard.map_or(String::new(), |shard| format!(" shard={shard}"));
                format!("settle {} {}{shard}", self.show_pin(*pin), evidence.word())
            }
            Command::Publish { pin, turn } => {
                let turn = turn.map_or(String::new(), |turn| format!(" {}", self.show_turn(turn)));
                format!("publish {}{turn}", self.show_pin(*pin))
            }
            Command::Release { pin } => format!("release {}", self.show_pin(*pin)),
            Command::Pin { candidates, limit } => {
                let names = candidates.iter().map(|id| self.show_endpoint(*id) + " ");
                format!("pin {}limit={limit}", names.collect::<String>())
            }
            Command::Lost { checkpoint, object, why } => {
                let (checkpoint, why) = (self.show_checkpoint(*checkpoint), why.word());
                format!("lost {checkpoint} {} {why}", show_lost_object(*object))
            }
            Command::Doubt { pin, doubtful } => {
                format!("doubt {} {}", self.show_pin(*pin), doubtful.word())
            }
            Command::Collect { limit } => format!("collect {limit}"),
            Command::Deleted { checkpoint, outcomes } => {
                let checkpoint = self.show_checkpoint(*checkpoint);
                format!("deleted {checkpoint}{}", show_outcomes(outcomes))
            }
            Command::Configure { policy, limits } => {
                format!("configure {}{}", show_policy(policy), show_limits(limits))
            }
            Command::Forget { conversation } => {
                format!("forget {}", self.show_conversation(*conversation))
            }
            Command::Drop { checkpoint } => format!("drop {}", self.show_checkpoint(*checkpoint)),
            Command::Fence { owner, incarnation } => {
                format!("fence {}:{incarnation}", self.show_owner(*owner))
            }
            Command::Retire { owner } => format!("retire {}", self.show_owner(*owner)),
        }
    }

    /// `A1 E1 shape=2x100 shards=0`; the digest where it is not the one of the endpoint's name.
    pub(super) fn show_prepare(&self, prepare: &Prepare) -> String {
        let endpoint = self.show_endpoint(prepare.endpoint);
        let digest = self.show_digest(prepare.digest);
        let digest = if digest == endpoint { String::new() } else { format!(" digest={digest}") };
        format!(
            "{} {endpoint} shape={} shards={}{digest}",
            self.show_attempt(prepare.attempt),
            show_shape(&prepare.shape),
            show_shards(&prepare.shards),
        )
    }

    fn show_register(&self, register: &Register) -> String {
        let Register { owner, role, after, start, version, expected_policy } = register;
        let (owner, start) = (self.show_owner(*owner), self.show_start(*start));
        let mut text = format!("register {owner} role={} after={after} start={start}", role.word());
        if *version != PROTOCOL_VERSION {
            text += &format!(" version={version}");
        }
        if let Some(policy) = expected_policy {
            text += &format!(" turns={}", policy.turns);
        }
        text
    }

    fn show_question(&self, query: &Query) -> String {
        let verb = query_verb(query);
        match query {
            Query::Job | Query::Gauges => verb.to_string(),
            Query::Blockers(checkpoint) => format!("{verb} {}", self.show_checkpoint(*checkpoint)),
            Query::Audit(keys) => {
                let keys = keys.iter().map(|key| format!(" {}", self.show_key(key)));
                format!("{verb}{}", keys.collect::<String>())
            }
        }
    }
}

/// `2x100,1x50`: by shard, how many objects and bytes.
pub(super) fn show_shape(shape: &Shape) -> String {
    let shards = shape.shards().iter().map(|shard| format!("{}x{}", shard.objects, shard.bytes));
    shards.collect::<Vec<_>>().join(",")
}

/// `0,1`; `-` for none.
pub(super) fn show_shards(shards: &[ShardIndex]) -> String {
    if shards.is_empty() {
        return "-".to_string();
    }
    shards.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// `0/2`, or `shared/7`.
pub(super) fn show_lost_object(object: LostObject) -> String {
    match object {
        LostObject::Private(object) => object.to_string(),
        LostObject::Shared(place) => format!("shared/{place}"),
    }
}

/// ` 0/0 gone 0/1 unknown`, with a space before each.
pub(super) fn show_outcomes(outcomes: &[(ObjectId, DeleteOutcome)]) -> String {
    let texts = outcomes.iter().map(|(object, outcome)| format!(" {object} {}", outcome.word()));
    texts.collect()
}

/// A job's policy, and its limits that are not the defaults.
pub(super) fn show_genesis(job: &Genesis) -> String {
    show_policy(&job.policy) + &show_limits(&job.limits)
}

/// `turns=2 conversation_bytes=none job_bytes=none quarantine=Generation`.
pub(super) fn show_policy(policy: &Policy) -> String {
    let budget = |bytes: Option<u64>| bytes.map_or("none".to_string(), |bytes| bytes.to_string());
    let quarantine = match policy.quarantine {
        Quarantine::Generation => "Generation",
        Quarantine::Endpoint => "Endpoint",
    };
    format!(
        "turns={} conversation_bytes={} job_bytes={} quarantine={quarantine}",
        policy.turns,
        budget(policy.conversation_bytes),
        budget(policy.job_bytes),
    )
}

/// ` limits.pins=3`, with a space before each; those that are the defaults are left out.
pub(super) fn show_limits(limits: &Limits) -> String {
    let fields = |limits: &Limits| serde_json::to_value(limits).unwrap_or_default();
    let (these, defaults) = (fields(limits), fields(&Limits::default()));
    let all = these.as_object().into_iter().flatten();
    let other = all.filter(|(name, value)| defaults[name.as_str()] != **value);
    other.map(|(name, value)| format!(" limits.{name}={value}")).collect()
}
