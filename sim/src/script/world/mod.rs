//! Scripts of a World: every line is a choice.
//!
//! A counterexample that the simulator writes, one that somebody shrank, and a regression test that
//! somebody typed are the same text. The header gives the World's size; a line may carry the
//! fingerprint that the step had when the script was written (`see=`), so that a changed build says
//! at which step it begins to differ. `recover` stands for a whole recovery. What a block expects
//! are lines of the [trace](crate::trace), in this order, with others between them; the last line
//! of a trace is the verdict.

mod read;
mod say;
mod setup;

use std::sync::Arc;

use super::{Fault, Kind, Line, Script};
use crate::judges::Bench;
use crate::run::{Course, Found, Watch};
use crate::seen::Seen;
use crate::trace::Trace;
use crate::world::choice::Choice;
use crate::world::setup::Setup;
use crate::world::{self, World};

pub use read::read;
pub use say::{say, say_about, say_job, say_move};
pub use setup::{names_of, say_setup, setup_of};

/// The line that stands for a whole recovery.
const RECOVER: &str = "recover";

/// What is written as a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story<'a> {
    /// What it shows, in one line.
    pub about: &'a str,
    /// Further comment lines.
    pub notes: &'a [String],
    /// The size of its World.
    pub setup: &'a Arc<Setup>,
    /// What happens.
    pub choices: &'a [Choice],
    /// Whether a recovery follows.
    pub recovers: bool,
    /// What the judges say at the end: the last line of the trace.
    pub verdict: &'a str,
}

/// Writes a script, with the fingerprint of every step.
#[must_use]
pub fn write(story: &Story<'_>) -> String {
    let Story { about, notes, setup, choices, recovers, verdict } = story;
    let mut text = format!("# {about}\n");
    for note in *notes {
        text += &format!("# {note}\n");
    }
    text += &format!("world {}\n\n", say_setup(setup));
    let mut course = Course::new(Arc::clone(setup), Bench::NONE).ok();
    for choice in *choices {
        text += &say(setup, *choice);
        if let Some(course) = &mut course {
            // What the judges would say is the verdict's business.
            let _ = course.step(course.world.kind_of(*choice), *choice, &mut ());
            text += &format!(" see={:08x}", course.fingerprint());
        }
        text += "\n";
    }
    if *recovers {
        text += &format!("{RECOVER}\n");
    }
    text + &format!("----\n{verdict}\n")
}

/// How a script went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The size of its World.
    pub setup: Arc<Setup>,
    /// What happened, without what was skipped.
    pub choices: Vec<Choice>,
    /// Lines that could not happen where they stood, with their line numbers.
    pub skipped: Vec<(usize, String)>,
    /// What the judges found.
    pub found: Option<Found>,
    /// The first step that went another way than when the script was written: its number from 1,
    /// its line, and what differs.
    pub diverged: Option<(u32, usize, String)>,
    /// Expected lines that were not seen, with their line numbers.
    pub missing: Vec<(usize, String)>,
    /// What was seen, by block.
    pub observed: Vec<Vec<String>>,
}

impl Replayed {
    /// True when everything went as the script says.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.diverged.is_none() && self.missing.is_empty()
    }

    /// What came of it, in the words in which it is told: what the judges say, and where they found
    /// nothing, whether it went as the script says.
    #[must_use]
    pub fn verdict(&self) -> String {
        match &self.found {
            None if !self.is_as_expected() => "another way".to_string(),
            found => verdict(found.as_ref()),
        }
    }

    /// Where it went another way than the script says, a line each.
    #[must_use]
    pub fn differences(&self) -> Vec<String> {
        let diverged = self.diverged.iter().map(|(step, line, what)| {
            format!("it goes another way from step {step} on, line {line}: {what}")
        });
        let skipped = self.skipped.iter();
        let skipped = skipped.map(|(line, text)| format!("skipped, line {line}: {text}"));
        let missing = self.missing.iter();
        let missing = missing.map(|(line, text)| format!("not seen, line {line}: {text}"));
        diverged.chain(skipped).chain(missing).collect()
    }
}

/// Replays a World's script.
///
/// # Errors
/// The script cannot be read as one of a World; the fault names its line.
pub fn replay(script: &Script, bench: Bench, watch: &mut impl Watch) -> Result<Replayed, Fault> {
    if script.kind != Kind::World {
        return Err(script.header.fault("this is no script of a World: begin it with world ..."));
    }
    let setup = Arc::new(setup_of(&script.header)?);
    let course = Course::new(Arc::clone(&setup), bench);
    let course = course.map_err(|found| script.header.fault(found.violation.to_string()))?;
    let mut replay = Replay {
        course,
        trace: Trace::new(&setup),
        watch,
        replayed: Replayed {
            setup,
            choices: Vec::new(),
            skipped: Vec::new(),
            found: None,
            diverged: None,
            missing: Vec::new(),
            observed: Vec::new(),
        },
    };
    let last = script.blocks.len().saturating_sub(1);
    for (block, place) in script.blocks.iter().zip(0..) {
        for line in &block.commands {
            replay.line(line)?;
        }
        let mut observed = replay.trace.take();
        if place == last {
            observed.push(verdict(replay.replayed.found.as_ref()));
        }
        replay.expect(&block.expected, block.expected_at, &observed);
        replay.replayed.observed.push(observed);
    }
    Ok(replay.replayed)
}

/// The last line of a trace.
#[must_use]
pub fn verdict(found: Option<&Found>) -> String {
    match found {
        None => "held".to_string(),
        Some(found) => format!("violated {}", found.violation.invariant),
    }
}

/// A script on its way.
struct Replay<'w, W> {
    course: Course,
    trace: Trace,
    watch: &'w mut W,
    replayed: Replayed,
}

impl<W: Watch> Replay<'_, W> {
    fn line(&mut self, line: &Line) -> Result<(), Fault> {
        if line.words == [RECOVER] {
            if self.replayed.found.is_none() {
                let mut both = Both(&mut self.trace, self.watch);
                // What a recovery would mend, or fall over, is seen first.
                self.replayed.found = match self.course.recount() {
                    Ok(()) => self.course.recover(&mut both).err(),
                    Err(found) => Some(found),
                };
            }
            return Ok(());
        }
        let choice = read(&self.replayed.setup, line)?;
        let expected = line.option("see").map(|text| {
            let bad = |_| line.fault(format!("{text} is no fingerprint: leave see= out"));
            u32::from_str_radix(text, 16).map_err(bad)
        });
        let expected = expected.transpose()?;
        if self.replayed.found.is_some() {
            return Ok(());
        }
        let kind = self.course.world.kind_of(choice);
        let mut both = Both(&mut self.trace, self.watch);
        if !self.course.world.allows(choice) {
            both.before(&self.course.world, kind, choice);
            both.step(&self.course.world, kind, choice, &[]);
            self.replayed.skipped.push((line.number, line.quoted()));
            self.differs(1, line, || format!("this cannot happen here: {}", line.quoted()));
            return Ok(());
        }
        self.replayed.found = self.course.step(kind, choice, &mut both).err();
        self.replayed.choices.push(choice);
        let seen = self.course.fingerprint();
        let other = expected.filter(|expected| *expected != seen && self.replayed.found.is_none());
        if let Some(expected) = other {
            self.differs(0, line, || format!("the step was {expected:08x} and is {seen:08x} now"));
        }
        Ok(())
    }

    /// The script goes another way from here on, if it had not before: from the step that was the
    /// last one, or from so many behind it.
    fn differs(&mut self, behind: u32, line: &Line, what: impl FnOnce() -> String) {
        let steps = u32::try_from(self.replayed.choices.len()).unwrap_or(u32::MAX);
        let at = (steps.saturating_add(behind), line.number);
        self.replayed.diverged.get_or_insert_with(|| (at.0, at.1, what()));
    }

    /// Each expected line is among the observed ones, behind the one before it.
    fn expect(&mut self, expected: &[String], at: usize, observed: &[String]) {
        let mut from = 0;
        for (line, number) in expected.iter().zip(at..) {
            let is_it = |seen: &String| seen.trim() == line.trim();
            match observed[from..].iter().position(is_it) {
                Some(place) => from += place + 1,
                None => self.replayed.missing.push((number, line.clone())),
            }
        }
    }
}

/// Two who look on.
struct Both<'a, A, B>(&'a mut A, &'a mut B);

impl<A: Watch, B: Watch> Watch for Both<'_, A, B> {
    fn before(&mut self, world: &World, kind: world::Kind, choice: Choice) {
        self.0.before(world, kind, choice);
        self.1.before(world, kind, choice);
    }

    fn step(&mut self, world: &World, kind: world::Kind, choice: Choice, seen: &[Seen]) {
        self.0.step(world, kind, choice, seen);
        self.1.step(world, kind, choice, seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks on as a person does who prints a trace.
    fn traced(text: &str) -> (Replayed, Vec<String>) {
        let script = Script::read(text).unwrap();
        let mut trace = Trace::new(&setup_of(&script.header).unwrap());
        let replayed = replay(&script, Bench::ALL, &mut trace).unwrap();
        (replayed, trace.take())
    }

    /// What cannot happen has no number, is no step, and is named.
    #[test]
    fn what_cannot_happen_is_skipped_and_said() {
        let text = "# A.\nworld workers=1\n\nw1 register\nanswer w1/1\nretire w1.1.1\n\
                    deliver w1/1\nrecover\n----\nheld\n";
        let (replayed, lines) = traced(text);
        assert_eq!(replayed.choices.len(), 2);
        let skipped = [(5, "answer w1/1".to_string()), (6, "retire w1.1.1".to_string())];
        assert_eq!(replayed.skipped, skipped);
        let what = "this cannot happen here: answer w1/1".to_string();
        assert_eq!(replayed.diverged, Some((2, 5, what)));
        assert_eq!((replayed.found.as_ref(), replayed.verdict().as_str()), (None, "another way"));
        assert_eq!(replayed.differences().len(), 3);
        let place = |line: &str| lines.iter().position(|it| it == line).unwrap_or(usize::MAX);
        let skipped = place("       answer w1/1: cannot happen here: skipped");
        let (before, after) = (place("    1  w1 register"), place("    2  deliver w1/1"));
        let recovery = place("recovery");
        assert!(before < skipped && skipped < after && after < recovery, "{lines:#?}");
        assert!(lines[recovery + 1].starts_with("    3  "), "{lines:#?}");
        assert_eq!(lines.iter().filter(|line| *line == "recovery").count(), 1);
    }

    #[test]
    fn an_expectation_that_is_not_met_is_another_way() {
        let text = "# A.\nworld workers=1\n\nw1 register\n----\nw1 -> registered as 9\n";
        let (replayed, _) = traced(text);
        assert_eq!(replayed.verdict(), "another way");
        assert_eq!(replayed.differences(), ["not seen, line 6: w1 -> registered as 9"]);
        assert_eq!(traced(&text.replace("w1 -> registered as 9", "held")).0.verdict(), "held");
    }

    /// A crash says what it keeps, and a move that failed says so.
    #[test]
    fn a_trace_says_what_only_the_choice_says() {
        let text = "# A.\nworld workers=1\n\nw1 register\ndeliver w1/1\nwrite\ncrash 7\nrestart\n\
                    w1 register\ndeliver w1/1\nsync\nanswer w1/1\nw1 save A1 E1 unscoped\n\
                    deliver w1/1#1\nsync\nanswer w1/1#1\nput w1.1.1 failed later\n\
                    put w1.1.2 not-started\nlook\ndeliver w1/1#2\nwrite\nfail-sync 1000000\n\
                    crash 0\n----\nheld\n";
        let (replayed, lines) = traced(text);
        assert_eq!(
            (replayed.verdict().as_str(), &replayed.skipped),
            ("held", &vec![]),
            "{lines:#?}"
        );
        let after = |choice: &str| {
            let place = lines.iter().position(|line| line.ends_with(choice)).unwrap();
            lines[place + 1].trim()
        };
        let kept = after("crash 7");
        assert!(kept.starts_with("7 of ") && kept.ends_with(" written bytes are on the disk"));
        assert_eq!(after("put w1.1.1 failed later"), "w1.1.1: failed");
        assert_eq!(after("put w1.1.2 not-started"), "w1.1.2: not started");
        let whole: Vec<&str> = after("fail-sync 1000000").split(' ').collect();
        assert_eq!(whole[0], whole[2], "{whole:?}");
        assert_eq!(after("crash 0"), "the coordinator is gone");
    }
}
