//! From a command line to what the engine is asked.
//!
//! It reads, and never judges what is asked: a script may ask what the engine has to refuse.

use pinfold_core::catalog::{
    Command, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape,
};
use pinfold_core::engine::Query;
use pinfold_core::id::{CheckpointId, ConversationId, Incarnation, ObjectId, PinId, ShardIndex};
use pinfold_core::outcome::{DeleteOutcome, LostObject};
use pinfold_core::policy::{Genesis, Limits, Policy};
use serde_json::Value;

use super::names::Names;
use super::reader::{Fault, Line};
use super::words;

/// Reads the words of command lines, with the names so far and the job as it is now.
#[derive(Debug)]
pub struct Verbs<'a> {
    /// The names, which every line adds to.
    pub names: &'a mut Names,
    /// The job, for what a line does not say.
    pub job: &'a Genesis,
}

/// The verbs of owners, each with what is to be written.
const FORMS: [(&str, &str); 14] = [
    ("prepare", "prepare ATTEMPT ENDPOINT [shape=2x100,1x50 shards=0,1 digest=DIGEST]"),
    ("settle", "settle PIN EVIDENCE [shard=0]"),
    ("publish", "publish PIN [CONVERSATION/TURN]"),
    ("release", "release PIN"),
    ("pin", "pin ENDPOINT ENDPOINT ... [limit=8]"),
    ("lost", "lost CHECKPOINT SHARD/INDEX WHY, or shared/PLACE for the object"),
    ("doubt", "doubt PIN yes, or no"),
    ("collect", "collect LIMIT"),
    ("deleted", "deleted CHECKPOINT SHARD/INDEX OUTCOME ..."),
    ("configure", "configure turns=2 job_bytes=none limits.pins=3 ..."),
    ("forget", "forget CONVERSATION"),
    ("drop", "drop CHECKPOINT"),
    ("fence", "fence OWNER:INCARNATION"),
    ("retire", "retire OWNER"),
];

impl Verbs<'_> {
    /// The command of a line without its sender: a verb and its words.
    ///
    /// # Errors
    /// The verb is unknown, or its words cannot be read; the fault says what to write.
    pub fn command(&mut self, line: &Line) -> Result<Command, Fault> {
        let command = self.read_command(line);
        match FORMS.iter().find(|(verb, _)| line.words.first().is_some_and(|word| word == verb)) {
            Some((_, form)) => command
                .and_then(|command| check_options(line, form).map(|()| command))
                .map_err(|fault| Fault { what: format!("{}: write {form}", fault.what), ..fault }),
            None => command,
        }
    }

    fn read_command(&mut self, line: &Line) -> Result<Command, Fault> {
        Ok(match line.word(0)? {
            "prepare" => Command::Prepare(self.prepare(line)?),
            "settle" => {
                let shard = line.option("shard").map(|shard| line.parse(shard).map(ShardIndex));
                let evidence = words::read(line, line.word(2)?)?;
                Command::Settle { pin: self.pin(line)?, shard: shard.transpose()?, evidence }
            }
            "publish" => {
                let turn = line.words.get(2).map(|text| {
                    self.names.turn(text).ok_or_else(|| line.fault(format!("{text} is no turn")))
                });
                Command::Publish { turn: turn.transpose()?, pin: self.pin(line)? }
            }
            "release" => Command::Release { pin: self.pin(line)? },
            "pin" => {
                let candidates = line.words[1..].iter().map(|name| self.names.endpoint(name));
                let candidates = candidates.collect();
                let limit = line.parse(line.option("limit").unwrap_or("8"))?;
                Command::Pin { candidates, limit }
            }
            "lost" => {
                let (object, why) = (lost_object(line)?, words::read(line, line.word(3)?)?);
                Command::Lost { checkpoint: self.checkpoint(line)?, object, why }
            }
            "doubt" => {
                let doubtful = words::read(line, line.word(2)?)?;
                Command::Doubt { pin: self.pin(line)?, doubtful }
            }
            "collect" => Command::Collect { limit: line.number(1)? },
            "deleted" => {
                let outcomes = outcomes(line, 2)?;
                Command::Deleted { checkpoint: self.checkpoint(line)?, outcomes }
            }
            "configure" => {
                let (mut policy, mut limits) = (self.job.policy, self.job.limits);
                set(&mut policy, &mut limits, line, "epoch")?;
                Command::Configure { policy, limits }
            }
            "forget" => Command::Forget { conversation: self.conversation(line)? },
            "drop" => Command::Drop { checkpoint: self.checkpoint(line)? },
            "fence" => {
                let text = line.word(1)?;
                let parts = text.split_once(':');
                let (owner, incarnation) =
                    parts.ok_or_else(|| line.fault(format!("{text} names no incarnation")))?;
                let incarnation = Incarnation(line.parse(incarnation)?);
                Command::Fence { owner: self.names.owner(owner), incarnation }
            }
            "retire" => Command::Retire { owner: self.names.owner(line.word(1)?) },
            verb => {
                let verbs: Vec<_> = FORMS.iter().map(|(verb, _)| *verb).collect();
                let what = format!("unknown verb: {verb}: write one of {}", verbs.join(", "));
                return Err(line.fault(what));
            }
        })
    }

    fn prepare(&mut self, line: &Line) -> Result<Prepare, Fault> {
        let endpoint = line.word(2)?;
        let mut shards = Vec::new();
        for shard in line.option("shards").unwrap_or("0").split(',').filter(|text| *text != "-") {
            shards.push(ShardIndex(line.parse(shard)?));
        }
        Ok(Prepare {
            attempt: self.names.attempt(line.word(1)?),
            endpoint: self.names.endpoint(endpoint),
            digest: self.names.digest(line.option("digest").unwrap_or(endpoint)),
            shape: shape(line)?,
            shards,
        })
    }

    /// `register` for one owner's name; what is not said is what an honest client would send that
    /// has this incarnation so far.
    ///
    /// # Errors
    /// An option cannot be read.
    pub fn register(
        &mut self,
        line: &Line,
        name: &str,
        known: Incarnation,
    ) -> Result<Register, Fault> {
        let role = match line.option("role") {
            Some(role) => words::read(line, role)?,
            None if name.starts_with("op") => Role::Operator,
            None => Role::Worker,
        };
        let after = match line.option("after") {
            Some(after) => Incarnation(line.parse(after)?),
            None => known,
        };
        let start = match line.option("start") {
            Some(start) => self.names.start(start),
            None => self.names.start(&format!("{name}-after-{after}")),
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

    /// `job`, `gauges`, `blockers c1`, `audit c1/0/0 ...`; none for a line with another verb.
    ///
    /// # Errors
    /// A checkpoint or a key cannot be read.
    pub fn query(&mut self, line: &Line) -> Result<Option<Query>, Fault> {
        Ok(Some(match line.word(0)? {
            "job" => Query::Job,
            "gauges" => Query::Gauges,
            "blockers" => Query::Blockers(self.checkpoint(line)?),
            "audit" => {
                let keys = line.words[1..].iter().map(|text| {
                    let key = self.names.key(self.job, text);
                    key.ok_or_else(|| {
                        line.fault(format!("{text} is no key: write CHECKPOINT/SHARD/INDEX"))
                    })
                });
                Query::Audit(keys.collect::<Result<_, _>>()?)
            }
            _ => return Ok(None),
        }))
    }

    fn conversation(&mut self, line: &Line) -> Result<ConversationId, Fault> {
        Ok(self.names.conversation(line.word(1)?))
    }

    fn pin(&mut self, line: &Line) -> Result<PinId, Fault> {
        let text = line.word(1)?;
        self.names.pin(text).ok_or_else(|| line.fault(format!("no pin has the name {text}")))
    }

    /// The checkpoint that the word behind the verb names.
    ///
    /// # Errors
    /// There is none, or nothing of this name was seen.
    pub fn checkpoint(&mut self, line: &Line) -> Result<CheckpointId, Fault> {
        let text = line.word(1)?;
        let named = self.names.checkpoint(text);
        named.ok_or_else(|| {
            let what = "no checkpoint has the name";
            line.fault(format!("{what} {text}: c3 was seen, E1@3 need not be"))
        })
    }
}

/// Refuses an option that the line's form does not have, which would else say nothing. `epoch` is
/// the sender's, and may stand anywhere; the options of `configure` are the fields of the job.
pub(super) fn check_options(line: &Line, form: &str) -> Result<(), Fault> {
    let takes = |key: &str| {
        let mut parts = form.split([' ', '[', ']']);
        parts.any(|part| part.split_once('=').is_some_and(|(known, _)| known == key))
    };
    let is_known = |key: &str| key == "epoch" || form.starts_with("configure ") || takes(key);
    match line.options.iter().find(|(key, _)| !is_known(key)) {
        Some((key, _)) => Err(line.fault(format!("no such option: {key}"))),
        None => Ok(()),
    }
}

/// Pairs of an object and an outcome, from a place on.
pub(super) fn outcomes(line: &Line, from: usize) -> Result<Vec<(ObjectId, DeleteOutcome)>, Fault> {
    let mut outcomes = Vec::new();
    for pair in line.words.get(from..).unwrap_or_default().chunks(2) {
        let [text, outcome] = pair else {
            return Err(line.fault(format!("{} has no outcome", pair[0])));
        };
        outcomes.push((object(line, text)?, words::read(line, outcome)?));
    }
    Ok(outcomes)
}

/// The object that a text of a line names.
pub(super) fn object(line: &Line, text: &str) -> Result<ObjectId, Fault> {
    let named = Names::object(text);
    named.ok_or_else(|| line.fault(format!("{text} is no object: write SHARD/INDEX")))
}

fn lost_object(line: &Line) -> Result<LostObject, Fault> {
    let text = line.word(2)?;
    Ok(match text.strip_prefix("shared/") {
        Some(place) => LostObject::Shared(line.parse(place)?),
        None => LostObject::Private(object(line, text)?),
    })
}

/// `2x100,1x50`: two shards, of 2 objects and 100 bytes, and of 1 object and 50 bytes.
fn shape(line: &Line) -> Result<Shape, Fault> {
    let mut shards = Vec::new();
    for shard in line.option("shape").unwrap_or("2x100").split(',') {
        let (objects, bytes) = shard
            .split_once('x')
            .ok_or_else(|| line.fault(format!("{shard} is no shape of a shard: OBJECTSxBYTES")))?;
        shards.push(ShardShape { objects: line.parse(objects)?, bytes: line.parse(bytes)? });
    }
    Shape::new(&shards).map_err(|malformed| line.fault(malformed.to_string()))
}

/// Changes policy and limits by the options of a line: `turns=2`, `job_bytes=none`,
/// `quarantine=Endpoint`, `limits.pins=3`. One option may stand there for something else.
pub(super) fn set(
    policy: &mut Policy,
    limits: &mut Limits,
    line: &Line,
    other: &str,
) -> Result<(), Fault> {
    let bad = |error: serde_json::Error| line.fault(error.to_string());
    let mut policy_fields = serde_json::to_value(*policy).map_err(bad)?;
    let mut limit_fields = serde_json::to_value(*limits).map_err(bad)?;
    for (key, text) in line.options.iter().filter(|(key, _)| key != other) {
        let value = match text.as_str() {
            "none" => Value::Null,
            text => text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from),
        };
        let (fields, name) = match key.strip_prefix("limits.") {
            Some(name) => (&mut limit_fields, name),
            None => (&mut policy_fields, key.as_str()),
        };
        let known = known_fields(fields);
        let unknown = || line.fault(format!("no such option: {key}: known are {known}"));
        *fields.get_mut(name).ok_or_else(unknown)? = value;
    }
    *policy = serde_json::from_value(policy_fields).map_err(bad)?;
    *limits = serde_json::from_value(limit_fields).map_err(bad)?;
    Ok(())
}

/// The names of an object's fields.
pub(super) fn known_fields(fields: &Value) -> String {
    let names = fields.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(names: &mut Names) -> Genesis {
        Genesis {
            namespace: "scripts".parse().unwrap(),
            epoch: Names::epoch("e1"),
            operator: names.owner("op"),
            policy: Policy::default(),
            limits: Limits::default(),
        }
    }

    /// One of each verb, as it is shown.
    const COMMANDS: [&str; 19] = [
        "prepare A1 E1 shape=2x100,1x50 shards=0,1",
        "prepare A1 E1 shape=2x100 shards=- digest=D1",
        "settle w1:2#5 in-doubt",
        "settle w1:2#5 success shard=1",
        "publish w1:2#5",
        "publish w1:2#5.1 C1/T1",
        "release p1",
        "pin E1 E2 limit=3",
        "pin limit=8",
        "lost E1@3 0/2 wrong-bytes",
        "lost E1@3 shared/7 absent",
        "doubt p1 yes",
        "collect 9",
        "deleted E1@3 0/0 gone 0/1 unknown 1/0 refused",
        "configure turns=1 conversation_bytes=none job_bytes=9 quarantine=Endpoint limits.pins=3",
        "forget C1",
        "drop E1@3",
        "fence w1:2",
        "retire w1",
    ];

    #[test]
    fn commands_are_shown_as_they_are_read() {
        let mut names = Names::default();
        let pin = names.pin("w9:1#1").unwrap();
        names.bind_pin("p1", pin);
        let job = job(&mut names);
        for text in COMMANDS {
            let line = Line::read(1, text).unwrap();
            let command = Verbs { names: &mut names, job: &job }.command(&line).unwrap();
            assert_eq!(names.show_command(&command), text);
        }
        for (verb, _) in FORMS {
            assert!(COMMANDS.iter().any(|text| text.starts_with(&format!("{verb} "))), "{verb}");
        }
    }

    #[test]
    fn registrations_and_queries_are_shown_as_they_are_read() {
        use pinfold_core::engine::Request;
        let mut names = Names::default();
        let job = job(&mut names);
        let mut verbs = Verbs { names: &mut names, job: &job };
        let line = Line::read(1, "register w1 after=2 turns=4 version=7").unwrap();
        let register = verbs.register(&line, "w1", Incarnation(9)).unwrap();
        let line = Line::read(1, "audit E1@3/0/0 text:hello").unwrap();
        let audit = verbs.query(&line).unwrap().unwrap();
        let line = Line::read(1, "collect 9").unwrap();
        assert_eq!(verbs.query(&line), Ok(None));
        assert_eq!(
            names.show_request(&Request::Register(register)),
            ["register w1 role=worker after=2 start=w1-after-2 version=7 turns=4"]
        );
        assert_eq!(names.show_request(&Request::Query(audit)), ["audit E1@3/0/0 text:hello"]);
    }

    #[test]
    fn a_fault_says_what_to_write() {
        let mut names = Names::default();
        let job = job(&mut names);
        let pin = names.pin("w9:1#1").unwrap();
        names.bind_pin("p1", pin);
        let mut fault = |text: &str| {
            let line = Line::read(4, text).unwrap();
            Verbs { names: &mut names, job: &job }.command(&line).unwrap_err().to_string()
        };
        for (verb, form) in FORMS.iter().filter(|(verb, _)| !["pin", "configure"].contains(verb)) {
            let text = fault(verb);
            assert!(text.starts_with("line 4: "), "{text}");
            assert!(text.ends_with(&format!("write {form}")), "{text}");
        }
        assert!(fault("settle p1 fine").contains("not-exposed, active, quiescing"));
        assert!(fault("settle p1 success shards=0").contains("no such option: shards"));
        assert!(fault("configure turn=1").contains("no such option: turn: known are"));
        assert!(fault("configure limits.turn=1").contains("owners"));
        assert!(fault("deleted E1@1 0/0").contains("0/0 has no outcome"));
        assert!(fault("conect 9").contains("unknown verb: conect: write one of prepare, settle"));
    }
}
