//! From a command line to what the engine is asked.

use pinfold_core::catalog::{
    Command, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape,
};
use pinfold_core::engine::Query;
use pinfold_core::id::{CheckpointId, Incarnation, ObjectId, PinId, ShardIndex};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Loss, LostObject};
use pinfold_core::policy::{Genesis, Limits, Policy};
use serde_json::Value;

use super::names::Names;
use super::reader::{Fault, Line};

/// Reads the words of one line, with the script's names and the job as it is now.
pub(crate) struct Verbs<'a> {
    pub(crate) names: &'a mut Names,
    pub(crate) job: &'a Genesis,
}

/// The verbs of owners, as they are written.
pub(crate) const COMMANDS: [&str; 14] = [
    "prepare",
    "settle",
    "publish",
    "release",
    "pin",
    "lost",
    "doubt",
    "collect",
    "deleted",
    "configure",
    "forget",
    "drop",
    "fence",
    "retire",
];

impl Verbs<'_> {
    /// A line without its sender: the verb and its words.
    pub(crate) fn command(&mut self, line: &Line) -> Result<Command, Fault> {
        let conversation = |verbs: &mut Self| Ok(verbs.names.conversation(line.word(1)?));
        Ok(match line.words[0].as_str() {
            "prepare" => Command::Prepare(self.prepare(line)?),
            "settle" => {
                let shard = line.option("shard").map(|shard| line.parse(shard).map(ShardIndex));
                let evidence = evidence(line.word(2)?).ok_or_else(|| line.fault("evidence"))?;
                Command::Settle { pin: self.pin(line)?, shard: shard.transpose()?, evidence }
            }
            "publish" => {
                let text = line.words.get(2);
                let turn = text.map(|text| self.names.turn(text).ok_or_else(|| line.fault("turn")));
                Command::Publish { pin: self.pin(line)?, turn: turn.transpose()? }
            }
            "release" => Command::Release { pin: self.pin(line)? },
            "pin" => {
                let candidates = line.words[1..].iter().map(|name| self.names.endpoint(name));
                let candidates = candidates.collect();
                let limit = line.parse(line.option("limit").unwrap_or("8"))?;
                Command::Pin { candidates, limit }
            }
            "lost" => {
                let (object, why) = loss(line)?;
                Command::Lost { checkpoint: self.checkpoint(line)?, object, why }
            }
            "doubt" => {
                let doubtful = yes(line)?;
                Command::Doubt { pin: self.pin(line)?, doubtful }
            }
            "collect" => Command::Collect { limit: line.number(1)? },
            "deleted" => {
                let outcomes = outcomes(line, 2)?;
                Command::Deleted { checkpoint: self.checkpoint(line)?, outcomes }
            }
            "configure" => {
                let (mut policy, mut limits) = (self.job.policy, self.job.limits);
                set(&mut policy, &mut limits, line.number, &line.options)?;
                Command::Configure { policy, limits }
            }
            "forget" => Command::Forget { conversation: conversation(self)? },
            "drop" => Command::Drop { checkpoint: self.checkpoint(line)? },
            "fence" => {
                let (owner, incarnation) = line
                    .word(1)?
                    .split_once(':')
                    .ok_or_else(|| line.fault("fence owner:incarnation"))?;
                let incarnation = Incarnation(line.parse(incarnation)?);
                Command::Fence { owner: self.names.owner(owner), incarnation }
            }
            "retire" => Command::Retire { owner: self.names.owner(line.word(1)?) },
            verb => return Err(line.fault(format!("unknown verb: {verb}"))),
        })
    }

    fn prepare(&mut self, line: &Line) -> Result<Prepare, Fault> {
        let endpoint = line.word(2)?;
        let mut shards = Vec::new();
        for shard in line.option("shards").unwrap_or("0").split(',').filter(|text| *text != "-") {
            shards.push(ShardIndex(line.parse(shard)?));
        }
        Ok(Prepare {
            attempt: Names::attempt(line.word(1)?),
            endpoint: self.names.endpoint(endpoint),
            digest: Names::digest(line.option("digest").unwrap_or(endpoint)),
            shape: shape(line)?,
            shards,
        })
    }

    /// `register` with one owner's name; what is not said is what an honest client would send.
    pub(crate) fn register(
        &mut self,
        line: &Line,
        name: &str,
        after: Incarnation,
    ) -> Result<Register, Fault> {
        let role = match line.option("role") {
            Some("operator") => Role::Operator,
            Some("worker") => Role::Worker,
            None if name.starts_with("op") => Role::Operator,
            None => Role::Worker,
            Some(_) => return Err(line.fault("role=worker or role=operator")),
        };
        let after = match line.option("after") {
            Some(after) => Incarnation(line.parse(after)?),
            None => after,
        };
        let start = match line.option("start") {
            Some(start) => Names::start(start),
            None => Names::start(&format!("{name}-after-{after}")),
        };
        let version = match line.option("version") {
            Some(version) => line.parse(version)?,
            None => PROTOCOL_VERSION,
        };
        let expected_policy = match line.option("turns") {
            None => None,
            Some(turns) => Some(Policy { turns: line.parse(turns)?, ..self.job.policy }),
        };
        let owner = self.names.owner(name);
        Ok(Register { owner, role, after, start, version, expected_policy })
    }

    /// `job`, `gauges`, `blockers c1`, `audit c1/0/0 ...`.
    pub(crate) fn query(&mut self, line: &Line) -> Result<Option<Query>, Fault> {
        Ok(Some(match line.words[0].as_str() {
            "job" => Query::Job,
            "gauges" => Query::Gauges,
            "blockers" => Query::Blockers(self.checkpoint(line)?),
            "audit" => {
                let keys = line.words[1..]
                    .iter()
                    .map(|text| self.names.key(self.job, text).ok_or_else(|| line.fault("no key")));
                Query::Audit(keys.collect::<Result<_, _>>()?)
            }
            _ => return Ok(None),
        }))
    }

    fn pin(&mut self, line: &Line) -> Result<PinId, Fault> {
        let text = line.word(1)?;
        self.names.pin(text).ok_or_else(|| line.fault(format!("no pin of this name: {text}")))
    }

    /// The checkpoint that the first word names.
    pub(crate) fn checkpoint(&mut self, line: &Line) -> Result<CheckpointId, Fault> {
        let text = line.word(1)?;
        let named = self.names.checkpoint(text);
        named.ok_or_else(|| line.fault(format!("no checkpoint of this name: {text}")))
    }
}

/// Pairs of an object and an outcome, from a place on.
pub(crate) fn outcomes(line: &Line, from: usize) -> Result<Vec<(ObjectId, DeleteOutcome)>, Fault> {
    let mut outcomes = Vec::new();
    for pair in line.words[from..].chunks(2) {
        let [object, outcome] = pair else { return Err(line.fault("object outcome ...")) };
        let object = Names::object(object).ok_or_else(|| line.fault("object"))?;
        let outcome = delete_outcome(outcome).ok_or_else(|| line.fault("outcome"))?;
        outcomes.push((object, outcome));
    }
    Ok(outcomes)
}

fn delete_outcome(text: &str) -> Option<DeleteOutcome> {
    match text {
        "gone" => Some(DeleteOutcome::Gone),
        "refused" => Some(DeleteOutcome::Refused),
        "unknown" => Some(DeleteOutcome::Unknown),
        _ => None,
    }
}

fn evidence(text: &str) -> Option<Evidence> {
    match text {
        "not-exposed" => Some(Evidence::NotExposed),
        "active" => Some(Evidence::Active),
        "quiescing" => Some(Evidence::Quiescing),
        "success" => Some(Evidence::QuiescedSuccess),
        "failure" => Some(Evidence::QuiescedFailure),
        "in-doubt" => Some(Evidence::InDoubt),
        _ => None,
    }
}

fn loss(line: &Line) -> Result<(LostObject, Loss), Fault> {
    let text = line.word(2)?;
    let object = match text.strip_prefix("shared/") {
        Some(place) => LostObject::Shared(line.parse(place)?),
        None => {
            let object = Names::object(text).ok_or_else(|| line.fault("object"))?;
            LostObject::Private(object)
        }
    };
    let why = match line.word(3)? {
        "absent" => Loss::Absent,
        "wrong-size" => Loss::WrongSize,
        "wrong-bytes" => Loss::WrongBytes,
        "unreadable" => Loss::Unreadable,
        _ => return Err(line.fault("absent, wrong-size, wrong-bytes or unreadable")),
    };
    Ok((object, why))
}

fn yes(line: &Line) -> Result<bool, Fault> {
    match line.word(2)? {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(line.fault("yes or no")),
    }
}

/// `2x100,1x50`: two shards, of 2 objects and 100 bytes, and of 1 object and 50 bytes.
fn shape(line: &Line) -> Result<Shape, Fault> {
    let mut shards = Vec::new();
    for shard in line.option("shape").unwrap_or("2x100").split(',') {
        let (objects, bytes) = shard.split_once('x').ok_or_else(|| line.fault("shape=2x100"))?;
        shards.push(ShardShape { objects: line.parse(objects)?, bytes: line.parse(bytes)? });
    }
    Shape::new(&shards).map_err(|malformed| line.fault(malformed.to_string()))
}

/// Changes policy and limits: `turns=2`, `job_bytes=none`, `quarantine=Endpoint`, `limits.pins=3`.
pub(crate) fn set(
    policy: &mut Policy,
    limits: &mut Limits,
    line: usize,
    options: &[(String, String)],
) -> Result<(), Fault> {
    let bad = |error: serde_json::Error| Fault::new(line, error.to_string());
    let mut policy_fields = serde_json::to_value(*policy).map_err(bad)?;
    let mut limit_fields = serde_json::to_value(*limits).map_err(bad)?;
    for (key, text) in options.iter().filter(|(key, _)| key != "epoch") {
        let value = match text.as_str() {
            "none" => Value::Null,
            text => text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from),
        };
        let field = match key.strip_prefix("limits.") {
            Some(name) => limit_fields.get_mut(name),
            None => policy_fields.get_mut(key.as_str()),
        };
        *field.ok_or_else(|| Fault::new(line, format!("no such option: {key}")))? = value;
    }
    *policy = serde_json::from_value(policy_fields).map_err(bad)?;
    *limits = serde_json::from_value(limit_fields).map_err(bad)?;
    Ok(())
}
