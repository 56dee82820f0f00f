//! A choice from its words.

use pinfold_core::id::{Generation, ObjectId};
use pinfold_core::outcome::Evidence;

use super::say::EVIDENCE;
use crate::script::{Fault, Line, Names};
use crate::seen::MoveId;
use crate::world::Kind;
use crate::world::choice::{
    About, Act, Choice, Coordinate, DeleteEnd, GetEnd, HostCall, JobId, Lands, ObjectChange,
    Passage, PinName, Publishes, PutEnd, move_id,
};
use crate::world::setup::Setup;

/// The choice that a line of a World's script names.
///
/// # Errors
/// The line says what was expected instead.
pub fn read(setup: &Setup, line: &Line) -> Result<Choice, Fault> {
    let reader = Reader { setup, line };
    let first = line.word(0)?;
    if let Some(choice) = reader.alone(first)? {
        return Ok(choice);
    }
    if first.contains('.') {
        return reader.of_job(first);
    }
    reader.of_process(first)
}

/// Reads one line.
struct Reader<'a> {
    setup: &'a Setup,
    line: &'a Line,
}

impl Reader<'_> {
    /// Choices whose first word is their verb.
    fn alone(&self, verb: &str) -> Result<Option<Choice>, Fault> {
        Ok(Some(match verb {
            "agree" => Choice::Agree(self.numbered('A', self.line.word(1)?)?),
            "follow-up" => Choice::Coordinator(Coordinate::FollowUp),
            "sync" => Choice::Coordinator(Coordinate::Sync),
            "write" => Choice::Coordinator(Coordinate::Write),
            "commit" => Choice::Coordinator(Coordinate::Commit),
            "fail-sync" => Choice::Coordinator(Coordinate::FailSync(self.line.number(1)?)),
            "crash" => Choice::Coordinator(Coordinate::Crash(self.line.number(1)?)),
            "restart" => Choice::Coordinator(Coordinate::Restart),
            "compact" => Choice::Coordinator(Coordinate::Compact),
            "put" => Choice::Put(self.move_id()?, self.end_of_put()?),
            "get" => Choice::Get(self.move_id()?, self.end_of_get()?),
            "check" => Choice::Check(self.move_id()?, self.either("known", "unknown")?),
            "retire" => Choice::Retire(self.move_id()?),
            "land" => Choice::Land(self.move_id()?),
            "delete" => Choice::Delete(self.work(1)?, self.end_of_delete()?),
            "drop-work" => Choice::DropWork(self.work(1)?),
            "restart-store" => Choice::RestartStore,
            "audit" => Choice::Audit,
            "look" if self.line.words.len() == 1 => Choice::Look(Generation(0)),
            "look" => Choice::Look(self.generation(self.line.word(1)?)?),
            _ => return self.passage_or_change(verb),
        }))
    }

    /// What becomes of a message, or of a stored object.
    fn passage_or_change(&self, verb: &str) -> Result<Option<Choice>, Fault> {
        let is_it = |kind: Kind| kind.name() == verb;
        let mut passages = Passage::ALL.into_iter();
        if let Some(passage) = passages.find(|it| is_it(Kind::of_passage(*it))) {
            return Ok(Some(Choice::Message(self.about()?, passage)));
        }
        let mut changes = ObjectChange::ALL.into_iter();
        let Some(change) = changes.find(|it| is_it(Kind::of_change(*it))) else {
            return Ok(None);
        };
        let (generation, object) = self.object()?;
        Ok(Some(Choice::Object(generation, object, change)))
    }

    /// `w1.3 cancel`.
    fn of_job(&self, name: &str) -> Result<Choice, Fault> {
        let job = self.job(name)?;
        Ok(match self.line.word(1)? {
            "publish" => Choice::Publish(job, self.publishes(2)?),
            other => {
                let mut calls = HostCall::ALL.into_iter();
                if let Some(call) = calls.find(|call| Kind::of_call(*call).name() == other) {
                    return Ok(Choice::Host(job, call));
                }
                let what = format!(
                    "no such verb of a transfer: {other}: write give-up, proceed, \
                                    cancel or publish"
                );
                return Err(self.line.fault(what));
            }
        })
    }

    /// `w1 save ...`.
    fn of_process(&self, name: &str) -> Result<Choice, Fault> {
        let process = self.process(name)?;
        Ok(match self.line.word(1)? {
            "register" => Choice::Register(process),
            "die" => Choice::Die(process),
            "save" => self.save(process)?,
            "load" => self.load(process)?,
            verb => Choice::Tell(process, self.act(verb)?),
        })
    }

    fn save(&self, process: u8) -> Result<Choice, Fault> {
        let all = (1_u8 << self.setup.shards) - 1;
        let mut shards = 0;
        for shard in self.line.option("shards").into_iter().flat_map(|text| text.split(',')) {
            let shard: u8 = self.line.parse(shard)?;
            shards |= 1_u8.checked_shl(shard.into()).unwrap_or(0);
        }
        let geometry = self.line.option("geometry").map(|text| self.line.parse(text));
        Ok(Choice::Save {
            process,
            endpoint: self.place('E', self.line.word(3)?)?,
            geometry: geometry.transpose()?.unwrap_or(0),
            attempt: self.numbered('A', self.line.word(2)?)?,
            shards: if shards == 0 { all } else { shards },
            publishes: self.publishes(4)?,
            compares: self.line.option("compares") != Some("no"),
        })
    }

    fn load(&self, process: u8) -> Result<Choice, Fault> {
        let mut endpoints = 0;
        for word in &self.line.words[2..] {
            endpoints |= 1_u8.checked_shl(self.place('E', word)?.into()).unwrap_or(0);
        }
        let limit = self.line.option("limit").map(|text| self.line.parse(text)).transpose()?;
        let compares = self.line.option("compares") == Some("yes");
        Ok(Choice::Load { process, endpoints, limit: limit.unwrap_or(1), compares })
    }

    fn act(&self, verb: &str) -> Result<Act, Fault> {
        let word = || self.line.word(2);
        Ok(match verb {
            "doubt" => Act::Doubt(self.pin(word()?)?, self.yes(3)?),
            "collect" => Act::Collect(self.line.number(2)?),
            "report" => Act::Report(self.work(2)?),
            "settle" => Act::Settle(self.pin(word()?)?, self.evidence(3)?),
            "release" => Act::Release(self.pin(word()?)?),
            "configure" => Act::Configure(self.line.number(2)?),
            "forget" => Act::Forget(self.place('C', word()?)?),
            "drop" => Act::Drop(self.generation(word()?)?),
            "say-lost" => Act::Lost(self.generation(word()?)?),
            "fence" => {
                let (name, number) = self.halves(word()?, ':', "fence w1:2")?;
                Act::Fence(self.process(name)?, self.line.parse(number)?)
            }
            "retire-owner" => Act::Retire(self.process(word()?)?),
            "malformed" => Act::Malformed,
            "conflict" => Act::Conflict,
            _ => {
                let what = format!("no such verb: {}", self.line.words.join(" "));
                return Err(self.line.fault(what + ": docs/simulation.md lists them"));
            }
        })
    }

    // Parts.

    fn halves<'t>(&self, text: &'t str, at: char, like: &str) -> Result<(&'t str, &'t str), Fault> {
        text.split_once(at).ok_or_else(|| self.line.fault(format!("{text}: write it like {like}")))
    }

    /// `w1`, `op2`.
    fn process(&self, name: &str) -> Result<u8, Fault> {
        let all = 0..self.setup.processes();
        let found = all.into_iter().find(|process| self.setup.process_name(*process) == name);
        found.ok_or_else(|| self.line.fault(format!("there is no process and no verb {name}")))
    }

    /// `A3` gives 3.
    fn numbered(&self, letter: char, text: &str) -> Result<u16, Fault> {
        let digits = text.strip_prefix(letter).and_then(|digits| digits.parse().ok());
        digits.ok_or_else(|| self.line.fault(format!("{text}: write it like {letter}1")))
    }

    /// `E3` gives 2.
    fn place(&self, letter: char, text: &str) -> Result<u8, Fault> {
        let number = self.numbered(letter, text)?;
        let place = number.checked_sub(1).and_then(|place| u8::try_from(place).ok());
        place.ok_or_else(|| self.line.fault(format!("{text}: numbers are from 1 to 256")))
    }

    fn generation(&self, text: &str) -> Result<Generation, Fault> {
        let digits = text.strip_prefix('c').and_then(|digits| digits.parse().ok());
        digits.map(Generation).ok_or_else(|| self.line.fault(format!("{text}: write it like c1")))
    }

    fn work(&self, place: usize) -> Result<u16, Fault> {
        self.numbered('d', self.line.word(place)?)
    }

    /// `w1/2`, `w1/2#5`, `w1/2#5+6`.
    fn about(&self) -> Result<About, Fault> {
        let text = self.line.word(1)?;
        let (name, rest) = self.halves(text, '/', "w1/1#5")?;
        let process = self.process(name)?;
        let Some((life, sequences)) = rest.split_once('#') else {
            return Ok(About::Register { process, life: self.line.parse(rest)? });
        };
        let life = self.line.parse(life)?;
        Ok(match sequences.split_once('+') {
            None => About::Command { process, life, sequence: self.line.parse(sequences)? },
            Some((first, second)) => {
                let sequences = [self.line.parse(first)?, self.line.parse(second)?];
                About::List { process, life, sequences }
            }
        })
    }

    /// `w1.3`.
    fn job(&self, text: &str) -> Result<JobId, Fault> {
        let (name, number) = self.halves(text, '.', "w1.1")?;
        Ok(JobId { process: self.process(name)?, number: self.line.parse(number)? })
    }

    /// `w1.3.2`.
    fn move_id(&self) -> Result<MoveId, Fault> {
        let text = self.line.word(1)?;
        let like = || self.line.fault(format!("{text}: write it like w1.1.2"));
        let (job, number) = text.rsplit_once('.').ok_or_else(like)?;
        Ok(move_id(self.job(job)?, self.line.parse(number)?))
    }

    /// `w1:2#5`, `w1:2#5.1`.
    fn pin(&self, text: &str) -> Result<PinName, Fault> {
        let (name, rest) = self.halves(text, ':', "w1:2#5")?;
        let (incarnation, rest) = self.halves(rest, '#', "w1:2#5")?;
        let (sequence, place) = rest.split_once('.').unwrap_or((rest, "0"));
        Ok(PinName {
            process: self.process(name)?,
            incarnation: self.line.parse(incarnation)?,
            sequence: self.line.parse(sequence)?,
            place: self.line.parse(place)?,
        })
    }

    /// `c3/0/1`.
    fn object(&self) -> Result<(Generation, ObjectId), Fault> {
        let text = self.line.word(1)?;
        let (generation, object) = self.halves(text, '/', "c3/0/1")?;
        let object = Names::object(object);
        let object = object.ok_or_else(|| self.line.fault(format!("{text}: write it like c3/0/1")));
        Ok((self.generation(generation)?, object?))
    }

    fn publishes(&self, place: usize) -> Result<Publishes, Fault> {
        let text = self.line.word(place)?;
        Ok(match text {
            "nothing" => Publishes::Nothing,
            "unscoped" => Publishes::Unscoped,
            _ => {
                let (conversation, turn) = self.halves(text, '/', "C1/T1, unscoped or nothing")?;
                Publishes::Turn(self.place('C', conversation)?, self.place('T', turn)?)
            }
        })
    }

    fn evidence(&self, place: usize) -> Result<Evidence, Fault> {
        let text = self.line.word(place)?;
        let found = EVIDENCE.iter().find(|row| row.1 == text).map(|row| row.0);
        found
            .ok_or_else(|| self.line.fault(format!("{text} is no evidence: success, failure, ...")))
    }

    fn yes(&self, place: usize) -> Result<bool, Fault> {
        match self.line.word(place)? {
            "yes" => Ok(true),
            "no" => Ok(false),
            other => Err(self.line.fault(format!("{other}: write yes or no"))),
        }
    }

    fn either(&self, yes: &str, no: &str) -> Result<bool, Fault> {
        match self.line.word(2)? {
            word if word == yes => Ok(true),
            word if word == no => Ok(false),
            other => Err(self.line.fault(format!("{other}: write {yes} or {no}"))),
        }
    }

    fn lands(&self, place: usize) -> Result<Lands, Fault> {
        match self.line.word(place)? {
            "now" => Ok(Lands::Now),
            "later" => Ok(Lands::Later),
            "never" => Ok(Lands::Never),
            other => Err(self.line.fault(format!("{other}: write now, later or never"))),
        }
    }

    fn is_unretired(&self, place: usize) -> bool {
        self.line.words.get(place).is_some_and(|word| word == "unretired")
    }

    fn end_of_put(&self) -> Result<PutEnd, Fault> {
        let rest: Vec<&str> = self.line.words.iter().skip(2).map(String::as_str).collect();
        Ok(match rest.as_slice() {
            ["ok"] => PutEnd::Ok,
            ["ok", "unretired"] => PutEnd::OkUnretired,
            ["ok", "absent"] => PutEnd::OkAbsent,
            ["ok", "garbage"] => PutEnd::OkGarbage,
            ["ok", "short"] => PutEnd::OkShort,
            ["not-started"] => PutEnd::NotStarted,
            ["failed", ..] => {
                PutEnd::Failed { lands: self.lands(3)?, retired: !self.is_unretired(4) }
            }
            _ => {
                let what = "how does the put end? ok [unretired|absent|garbage|short], \
                            not-started, or failed now|later|never [unretired]";
                return Err(self.line.fault(what));
            }
        })
    }

    fn end_of_get(&self) -> Result<GetEnd, Fault> {
        let retired = !self.is_unretired(3);
        match (self.line.word(2)?, retired) {
            ("answered", true) => Ok(GetEnd::Answered),
            ("answered", false) => Ok(GetEnd::AnsweredUnretired),
            ("unverified", true) => Ok(GetEnd::Unverified),
            ("failed", retired) => Ok(GetEnd::Failed { retired }),
            (other, _) => {
                Err(self.line.fault(format!("{other}: write answered or failed [unretired]")))
            }
        }
    }

    fn end_of_delete(&self) -> Result<DeleteEnd, Fault> {
        match self.line.word(2)? {
            "gone" => Ok(DeleteEnd::Gone),
            "refused" => Ok(DeleteEnd::Refused),
            "probed" => Ok(DeleteEnd::Probed),
            "unknown" => Ok(DeleteEnd::Unknown(self.lands(3)?)),
            other => {
                let what =
                    format!("{other}: write gone, refused, probed or unknown now|later|never");
                Err(self.line.fault(what))
            }
        }
    }
}
