//! A configuration as it is checked: the steps from a World, what follows from each at once, and
//! what makes two Worlds the same.

use core::hash::Hasher;

use pinfold_sim::likeness::{Class, Dictionary, Naming, Words, namings};
use pinfold_sim::script::world::say;
use pinfold_sim::world::choice::{About, Act, Choice, Coordinate, Passage};
use pinfold_sim::world::process::Process;
use pinfold_sim::world::setup::Setup;
use pinfold_sim::world::{Kind, World};

use crate::configuration::Configuration;

/// A step of a check: a choice, and whether the answers that come of it are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// What is chosen.
    pub choice: Choice,
    /// Nobody hears what is answered to it.
    pub unheard: bool,
}

impl Step {
    /// As a line of a script says it.
    #[must_use]
    pub fn words(&self, setup: &Setup) -> String {
        let text = say(setup, self.choice);
        if self.unheard { format!("{text}, and its answer is lost") } else { text }
    }
}

/// A configuration as it is checked: with or without its reductions.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The configuration.
    pub configuration: Configuration,
    dictionary: Dictionary,
    namings: Vec<Naming>,
    window: u64,
    key: u64,
}

impl Plan {
    /// A configuration with its reductions. Digests under another key are other digests.
    #[must_use]
    pub fn new(configuration: Configuration, key: u64) -> Self {
        let setup = &configuration.setup;
        let window = u64::from(setup.limits.unanswered) + u64::from(setup.overrun) + 1;
        Self {
            dictionary: Dictionary::new(setup),
            namings: namings(&configuration.symmetry),
            window,
            key: 0x6a09_e667_f3bc_c908 ^ key.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            configuration,
        }
    }

    /// Room for the words of its Worlds.
    #[must_use]
    pub fn words(&self) -> Words<'_> {
        Words::new(&self.dictionary, self.window)
    }

    /// The digest of a World's canonical form; never 0.
    pub fn digest(&self, world: &World, words: &mut Words<'_>) -> u64 {
        words.clear();
        world.say(words);
        // The canonical form renames lives; here it matters how many are left.
        if self.configuration.menu.kinds.contains(&Kind::Die) {
            words.set(world.processes.iter().zip(0..), |words, (process, index)| {
                words.name(Class::Owner, index);
                words.write_u16(process.life);
            });
        }
        words.digest(&self.namings, self.key).max(1)
    }

    /// Every step that may be taken from a World.
    pub fn steps(&self, world: &World, choices: &mut Vec<Choice>, steps: &mut Vec<Step>) {
        let menu = &self.configuration.menu;
        choices.clear();
        steps.clear();
        menu.offer_transfers(world, choices);
        let groups = world.groups();
        let some = |kind: &&Kind| groups >> (kind.group() as u8) & 1 > 0;
        for kind in menu.kinds.iter().filter(some) {
            let from = choices.len();
            world.offer(*kind, choices);
            let mut place = from;
            while place < choices.len() {
                if menu.admits(world, *kind, choices[place]) {
                    place += 1;
                } else {
                    choices.swap_remove(place);
                }
            }
        }
        for choice in choices.iter().copied() {
            steps.push(Step { choice, unheard: false });
            if menu.unheard && is_answered(world, choice) {
                steps.push(Step { choice, unheard: true });
            }
        }
    }

    /// What follows at once from what has happened; none where nothing does. What is on the menu by
    /// itself never follows.
    ///
    /// Each of these is invisible to everybody else until its effect, or could have come last
    /// before the next step of its process; `docs/model-checking.md` argues it for each.
    #[must_use]
    pub fn follows(&self, world: &World, unheard: bool) -> Option<Choice> {
        let menu = &self.configuration.menu;
        let merged = |kind| !menu.kinds.contains(&kind);
        let what = |kind: Kind, what| {
            let choice = Choice::Coordinator(what);
            (merged(kind) && world.allows(choice)).then_some(choice)
        };
        let answer = |passage| {
            let first = world.answers.sent.first().filter(|_| merged(Kind::Answer));
            first.map(|it| Choice::Message(it.about, passage))
        };
        let check = || {
            let first = world.store.checks.first().filter(|_| merged(Kind::CheckKnown));
            first.map(|it| Choice::Check(it.id, true))
        };
        what(Kind::Restart, Coordinate::Restart)
            .or_else(|| what(Kind::Commit, Coordinate::Commit))
            .or_else(|| what(Kind::Sync, Coordinate::Sync))
            .or_else(|| answer(if unheard { Passage::LoseAnswer } else { Passage::Answer }))
            .or_else(|| what(Kind::FollowUp, Coordinate::FollowUp))
            .or_else(check)
            .or_else(|| self.arrives(world))
            .or_else(|| reports(world).filter(|_| merged(Kind::Report)))
    }

    /// What a process tells by itself arrives.
    fn arrives(&self, world: &World) -> Option<Choice> {
        let mut told = world.requests.sent.iter().filter(|it| is_told(world, it.about));
        let first = told.next().filter(|_| !self.configuration.menu.tells_apart)?;
        let choice = Choice::Message(first.about, Passage::Deliver);
        world.allows(choice).then_some(choice)
    }
}

/// Delete work of which every outcome is known is reported; by an operator, so that no worker is
/// told from another by it.
fn reports(world: &World) -> Option<Choice> {
    let done = world.store.work.iter().find(|it| it.outcomes.len() == it.objects.len())?;
    let mut operators = world.setup.workers..world.setup.processes();
    let report = |process: u8| Choice::Tell(process, Act::Report(done.number));
    let speaker = operators.find(|process| world.allows(report(*process)))?;
    Some(report(speaker))
}

/// A request that no transfer waits for.
fn is_told(world: &World, about: About) -> bool {
    let process: &Process = &world.processes[usize::from(about.process())];
    match about {
        About::Register { .. } => true,
        About::Command { life, sequence, .. } => {
            let asked = process.asked.iter().find(|asked| asked.op.sequence == sequence);
            process.life == life && asked.is_some_and(|asked| asked.job.is_none())
        }
        About::List { .. } => false,
    }
}

/// Somebody waits for the answer that comes of it, and can ask again.
fn is_answered(world: &World, choice: Choice) -> bool {
    match choice {
        Choice::Message(about, Passage::Deliver) => {
            matches!(about, About::Command { .. }) && !is_told(world, about)
        }
        _ => false,
    }
}
