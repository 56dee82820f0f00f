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
pub use setup::{say_setup, setup_of};

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
    /// What happened.
    pub choices: Vec<Choice>,
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
                self.replayed.found = self.course.recover(&mut both).err();
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
        self.replayed.choices.push(choice);
        let step = u32::try_from(self.replayed.choices.len()).unwrap_or(u32::MAX);
        let mut both = Both(&mut self.trace, self.watch);
        let kind = self.course.world.kind_of(choice);
        let differs = match self.course.step(kind, choice, &mut both) {
            Ok(true) => None,
            Ok(false) => Some(format!("this cannot happen here: {}", line.words.join(" "))),
            Err(found) => {
                self.replayed.found = Some(found);
                None
            }
        };
        let seen = self.course.fingerprint();
        let other = expected.filter(|expected| *expected != seen && self.replayed.found.is_none());
        let differs = differs.or_else(|| {
            other.map(|expected| format!("the step was {expected:08x} and is {seen:08x} now"))
        });
        if let (Some(what), None) = (differs, &self.replayed.diverged) {
            self.replayed.diverged = Some((step, line.number, what));
        }
        Ok(())
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
    fn step(&mut self, world: &World, kind: world::Kind, choice: Choice, seen: &[Seen]) {
        self.0.step(world, kind, choice, seen);
        self.1.step(world, kind, choice, seen);
    }
}
