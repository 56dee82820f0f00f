//! A choice from its words.

use pinfold_core::id::{Generation, ObjectId};
use pinfold_core::outcome::Evidence;

use super::say::{EVIDENCE, say};
use crate::script::{Fault, Line, Names};
use crate::seen::MoveId;
use crate::world::Kind;
use crate::world::choice::{
    About, Act, Choice, Coordinate, DeleteEnd, GetEnd, HostCall, JobId, Lands, Mistake,
    ObjectChange, Passage, PinName, Publishes, PutEnd, move_id,
};
use crate::world::setup::Setup;

// What is asked where a word is missing.
const ATTEMPT: &str = "which attempt? write A1";
const KEPT: &str = "how many of the written bytes are on the disk? write a number";
const VERB: &str = "what does it do? write register, die, save, load, or a command of its own: \
                    docs/simulation.md lists them";

/// The choice that a line of a World's script names.
///
/// # Errors
/// The line says what was expected instead; also where it says more than its choice does, or names
/// what a World of this size has not.
pub fn read(setup: &Setup, line: &Line) -> Result<Choice, Fault> {
    let choice = read_choice(setup, line)?;
    let said = say(setup, choice);
    let whole = Line::read(line.number, &said)?;
    let usual = [("geometry", "0"), ("compares", "yes"), ("compares", "no")];
    let is_known = |option: &(String, String)| {
        let (key, value) = (option.0.as_str(), option.1.as_str());
        let is_usual = usual.contains(&(key, value)) && whole.option(key).is_none();
        key == "see" || whole.option(key) == Some(value) || is_usual
    };
    let says_more = whole.words != line.words || !line.options.iter().all(is_known);
    if says_more || !line.binds.is_empty() || !line.children.is_empty() {
        let what = format!("this says more than its choice does, which is written: {said}");
        return Err(line.fault(what));
    }
    Ok(choice)
}

fn read_choice(setup: &Setup, line: &Line) -> Result<Choice, Fault> {
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
            "agree" => Choice::Agree(self.numbered('A', self.word(1, ATTEMPT)?)?),
            "follow-up" => Choice::Coordinator(Coordinate::FollowUp),
            "sync" => Choice::Coordinator(Coordinate::Sync),
            "write" => Choice::Coordinator(Coordinate::Write),
            "commit" => Choice::Coordinator(Coordinate::Commit),
            "fail-sync" => Choice::Coordinator(Coordinate::FailSync(self.number(1, KEPT)?)),
            "crash" => Choice::Coordinator(Coordinate::Crash(self.number(1, KEPT)?)),
            "restart" => Choice::Coordinator(Coordinate::Restart),
            "compact" => Choice::Coordinator(Coordinate::Compact),
            "put" => Choice::Put(self.move_id()?, self.end_of_put()?),
            "get" => Choice::Get(self.move_id()?, self.end_of_get()?),
            "check" => Choice::Check(self.move_id()?, self.is_known()?),
            "retire" => Choice::Retire(self.move_id()?),
            "land" => Choice::Land(self.move_id()?),
            "delete" => Choice::Delete(self.work(1)?, self.end_of_delete()?),
            "drop-work" => Choice::DropWork(self.work(1)?),
            "restart-store" => Choice::RestartStore,
            "audit" => Choice::Audit,
            "look" if self.line.words.len() == 1 => Choice::Look(Generation(0)),
            "look" => Choice::Look(self.generation(1)?),
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
        Ok(
            match self.word(
                1,
                "what becomes of the transfer? write give-up, concur, proceed, cancel or publish",
            )? {
                "publish" => Choice::Publish(job, self.publishes(2)?),
                other => {
                    let mut calls = HostCall::ALL.into_iter();
                    if let Some(call) = calls.find(|call| Kind::of_call(*call).name() == other) {
                        return Ok(Choice::Host(job, call));
                    }
                    let what = format!(
                        "no such verb of a transfer: {other}: write give-up, concur, proceed, \
                                    cancel or publish"
                    );
                    return Err(self.line.fault(what));
                }
            },
        )
    }

    /// `w1 save ...`.
    fn of_process(&self, name: &str) -> Result<Choice, Fault> {
        let process = self.process(name)?;
        Ok(match self.word(1, VERB)? {
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
        let attempt = self.numbered('A', self.word(2, ATTEMPT)?)?;
        let geometry = self.line.option("geometry").map(|text| self.line.parse(text));
        Ok(Choice::Save {
            process,
            endpoint: self.place('E', self.word(3, "which position? write E1")?)?,
            geometry: geometry.transpose()?.unwrap_or(0),
            attempt,
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
        Ok(match verb {
            "doubt" => Act::Doubt(self.pin(2)?, self.is_doubtful()?),
            "collect" => Act::Collect(self.number(2, "how many objects at most? write a number")?),
            "report" => Act::Report(self.work(2)?),
            "settle" => Act::Settle(self.pin(2)?, self.evidence(3)?),
            "release" => Act::Release(self.pin(2)?),
            "configure" => Act::Configure(self.number(2, "which policy? write 0 or 1")?),
            "forget" => {
                Act::Forget(self.place('C', self.word(2, "which conversation? write C1")?)?)
            }
            "drop" => Act::Drop(self.generation(2)?),
            "say-lost" => Act::Lost(self.generation(2)?),
            "fence" => {
                let (name, number) =
                    self.halves(self.word(2, "which incarnation? write w1:2")?, ':', "fence w1:2")?;
                Act::Fence(self.process(name)?, self.line.parse(number)?)
            }
            "retire-owner" => Act::Retire(self.process(self.word(2, "which owner? write w1")?)?),
            "malformed" => Act::Malformed,
            "conflict" => Act::Conflict,
            "mistake" => Act::Mistake(self.mistake()?),
            _ => {
                let what = format!("no such verb: {}", self.line.quoted());
                return Err(self.line.fault(what + ": docs/simulation.md lists them"));
            }
        })
    }

    fn mistake(&self) -> Result<Mistake, Fault> {
        Ok(
            match self.word(2, "which mistake? write publish, settle, release, doubt or another")? {
                "publish" => Mistake::Publish,
                "settle" => Mistake::Settle,
                "release" => Mistake::Release,
                "doubt" => Mistake::Doubt,
                "foreign" => Mistake::Foreign(self.pin(3)?),
                "shard" => Mistake::Shard(self.pin(3)?),
                "active" => Mistake::Active(self.pin(3)?),
                "lost" => Mistake::Lost(self.generation(3)?),
                "not-held" => Mistake::NotHeld(self.generation(3)?),
                "deleted" => Mistake::Deleted(self.generation(3)?),
                "deleted-other" => Mistake::DeletedOther(self.generation(3)?),
                "deleted-nothing" => Mistake::DeletedNothing,
                "fence" => Mistake::Fence(self.process(self.word(3, "of whom? write w1")?)?),
                "incarnation" => Mistake::Incarnation,
                _ => {
                    let what = format!("no such mistake: {}", self.line.quoted());
                    return Err(self.line.fault(what + ": docs/simulation.md lists them"));
                }
            },
        )
    }

    // Parts.

    /// The word at a place; where there is none, a question that says what belongs there.
    fn word(&self, place: usize, question: &str) -> Result<&str, Fault> {
        let missing = || self.line.fault(format!("{}: {question}", self.line.quoted()));
        self.line.words.get(place).map(String::as_str).ok_or_else(missing)
    }

    fn number<T: core::str::FromStr>(&self, place: usize, question: &str) -> Result<T, Fault> {
        self.line.parse(self.word(place, question)?)
    }

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

    fn generation(&self, place: usize) -> Result<Generation, Fault> {
        self.generation_of(self.word(place, "which checkpoint? write c1")?)
    }

    fn generation_of(&self, text: &str) -> Result<Generation, Fault> {
        let digits = text.strip_prefix('c').and_then(|digits| digits.parse().ok());
        digits.map(Generation).ok_or_else(|| self.line.fault(format!("{text}: write it like c1")))
    }

    fn work(&self, place: usize) -> Result<u16, Fault> {
        self.numbered('d', self.word(place, "which delete work? write d1")?)
    }

    /// `w1/2`, `w1/2#5`, `w1/2#5+6`.
    fn about(&self) -> Result<About, Fault> {
        let text = self.word(1, "which message? write w1/1 for a registration, or w1/1#5")?;
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
        let text = self.word(1, "which move or check? write w1.1.2")?;
        let like = || self.line.fault(format!("{text}: write it like w1.1.2"));
        let (job, number) = text.rsplit_once('.').ok_or_else(like)?;
        Ok(move_id(self.job(job)?, self.line.parse(number)?))
    }

    /// `w1:2#5`, `w1:2#5.1`.
    fn pin(&self, place: usize) -> Result<PinName, Fault> {
        let text = self.word(place, "which pin? write w1:2#5")?;
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
        let text = self.word(1, "which object? write c3/0/1")?;
        let (generation, object) = self.halves(text, '/', "c3/0/1")?;
        let object = Names::object(object);
        let object = object.ok_or_else(|| self.line.fault(format!("{text}: write it like c3/0/1")));
        Ok((self.generation_of(generation)?, object?))
    }

    fn publishes(&self, place: usize) -> Result<Publishes, Fault> {
        let text = self.word(place, "what does it publish? write C1/T1, unscoped or nothing")?;
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
        let all = EVIDENCE.map(|row| row.1).join(", ");
        let text = self.word(place, &format!("on which evidence? write one of {all}"))?;
        let found = EVIDENCE.iter().find(|row| row.1 == text).map(|row| row.0);
        found.ok_or_else(|| self.line.fault(format!("{text} is no evidence: write one of {all}")))
    }

    fn is_doubtful(&self) -> Result<bool, Fault> {
        match self.word(3, "is it doubtful? write yes or no")? {
            "yes" => Ok(true),
            "no" => Ok(false),
            other => Err(self.line.fault(format!("{other}: write yes or no"))),
        }
    }

    fn is_known(&self) -> Result<bool, Fault> {
        match self.word(2, "is the check answered? write known or unknown")? {
            "known" => Ok(true),
            "unknown" => Ok(false),
            other => Err(self.line.fault(format!("{other}: write known or unknown"))),
        }
    }

    fn lands(&self, place: usize) -> Result<Lands, Fault> {
        match self.word(place, "when does it take effect? write now, later or never")? {
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
        let end =
            "how does the get end? write answered [unretired], unverified, or failed [unretired]";
        match (self.word(2, end)?, retired) {
            ("answered", true) => Ok(GetEnd::Answered),
            ("answered", false) => Ok(GetEnd::AnsweredUnretired),
            ("unverified", true) => Ok(GetEnd::Unverified),
            ("failed", retired) => Ok(GetEnd::Failed { retired }),
            (other, _) => Err(self.line.fault(format!(
                "{other}: write answered [unretired], unverified, or failed [unretired]"
            ))),
        }
    }

    fn end_of_delete(&self) -> Result<DeleteEnd, Fault> {
        let end = "how does the delete end? write gone, refused, probed or unknown \
                   now|later|never";
        match self.word(2, end)? {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A missing word is asked for by what belongs there.
    #[test]
    fn a_missing_word_is_named() {
        let fault =
            |text: &str| read(&Setup::default(), &Line::read(1, text).unwrap()).unwrap_err().what;
        for (text, question) in [
            ("w1 save", "which attempt?"),
            ("w1 save A1", "which position?"),
            ("w1 save A1 E1", "what does it publish?"),
            ("w1", "what does it do?"),
            ("w1.1", "what becomes of the transfer?"),
            ("crash", "how many of the written bytes"),
            ("deliver", "which message?"),
            ("check w1.1.3", "is the check answered?"),
            ("get w1.1.3", "how does the get end?"),
            ("put w1.1.3", "how does the put end?"),
            ("put w1.1.3 failed", "when does it take effect?"),
            ("delete d1", "how does the delete end?"),
            ("op1 settle", "which pin?"),
            ("op1 settle w1:1#1", "on which evidence? write one of not-exposed, active,"),
            ("op1 say-lost", "which checkpoint?"),
            ("vanish", "which object?"),
            ("w1 report", "which delete work?"),
        ] {
            let what = fault(text);
            assert!(what.contains(question), "{text}: {what}");
        }
    }
}
