//! What a check is about: how large its World is, what may happen in it, and what comes of that.

use core::hash::Hasher;

use pinfold_core::outcome::Evidence;
use pinfold_sim::likeness::{Class, Dictionary, Naming, Words, namings};
use pinfold_sim::world::choice::{
    About, Act, Choice, Coordinate, DeleteEnd, HostCall, Passage, Publishes,
};
use pinfold_sim::world::process::Process;
use pinfold_sim::world::setup::Setup;
use pinfold_sim::world::{Kind, World};

/// When a configuration is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// In every run without a name.
    Ci,
    /// With `full`.
    Full,
    /// By its name alone.
    Long,
}

/// A save that a worker may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SavePlan {
    /// Of which position.
    pub endpoint: u8,
    /// In which geometry.
    pub geometry: u8,
    /// Which shards, as bits.
    pub shards: u8,
    /// What it publishes.
    pub publishes: Publishes,
    /// Its rank compares checkpoints with the others before a byte moves, as it must.
    pub compares: bool,
}

/// A load that a worker may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoadPlan {
    /// Which positions, as bits.
    pub endpoints: u8,
    /// How many to pin at most.
    pub limit: u8,
}

/// How much of what could pile up there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Requests under way or not replied to, before one is brought twice or sent again.
    pub requests: usize,
    /// Checkpoints with a record before another save begins.
    pub checkpoints: u64,
    /// How often a worker lives.
    pub lives: u16,
    /// Pieces of delete work before more is asked for.
    pub work: usize,
    /// Moves that linger, deletes that may still take effect, and lost objects that may be found
    /// again, before there is another one.
    pub strays: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { requests: 3, checkpoints: 2, lives: 1, work: 1, strays: 1 }
    }
}

/// What may happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// The kinds of choices, beside saves and loads.
    pub kinds: Vec<Kind>,
    /// The saves.
    pub saves: Vec<SavePlan>,
    /// The loads.
    pub loads: Vec<LoadPlan>,
    /// How many objects a `Collect` asks for.
    pub collects: Vec<u32>,
    /// What operators settle pins as.
    pub evidence: Vec<Evidence>,
    /// What a process tells by itself is a step of its own before it arrives.
    pub tells_apart: bool,
    /// An answer may be lost in the same step in which it is given.
    pub unheard: bool,
    /// How much of everything.
    pub bounds: Bounds,
}

/// A step of a check: a choice, and whether the answers that come of it are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// What is chosen.
    pub choice: Choice,
    /// Nobody hears what is answered to it.
    pub unheard: bool,
}

/// The size of an exhaustive check, which is a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Distinct canonical states.
    pub states: u64,
    /// Transitions between them.
    pub transitions: u64,
    /// The longest of the shortest ways to a state.
    pub depth: u32,
}

/// A configuration. See the [module](self).
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Its name.
    pub name: &'static str,
    /// What it covers, in one line.
    pub about: &'static str,
    /// When it is checked.
    pub tier: Tier,
    /// The size of its World.
    pub setup: Setup,
    /// What may happen.
    pub menu: Menu,
    /// What is interchangeable, with how many there are of it.
    pub symmetry: Vec<(Class, u8)>,
    /// Its size, where all of it was seen.
    pub pinned: Option<Size>,
}

/// What is one step with what it follows from, unless it is on the menu by itself.
pub const MERGED: [Kind; 7] = [
    Kind::Answer,
    Kind::Sync,
    Kind::Commit,
    Kind::FollowUp,
    Kind::Restart,
    Kind::CheckKnown,
    Kind::Report,
];

impl Configuration {
    /// The same, and nothing counts as interchangeable. Its size is another.
    #[must_use]
    pub fn without_symmetry(self) -> Self {
        Self { symmetry: Vec::new(), pinned: None, ..self }
    }

    /// The same with every step apart. Its size is another.
    #[must_use]
    pub fn without_merging(mut self) -> Self {
        let kinds = &mut self.menu.kinds;
        kinds.extend(MERGED);
        kinds.push(Kind::Write);
        if core::mem::take(&mut self.menu.unheard) {
            kinds.push(Kind::LoseAnswer);
        }
        kinds.sort_unstable();
        kinds.dedup();
        self.menu.tells_apart = true;
        Self { pinned: None, ..self }
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

impl Menu {
    /// The saves and loads that workers may begin.
    fn offer_transfers(&self, world: &World, found: &mut Vec<Choice>) {
        let checkpoints = world.coordinator.disk.catalog.gauges().checkpoints;
        let full = checkpoints >= self.bounds.checkpoints;
        let joins = world.open_attempts();
        for process in 0..world.setup.workers {
            for plan in self.saves.iter().filter(|_| !full) {
                let SavePlan { endpoint, geometry, shards, publishes, compares } = *plan;
                let save = |attempt| Choice::Save {
                    process,
                    endpoint,
                    geometry,
                    attempt,
                    shards,
                    publishes,
                    compares,
                };
                let joined = joins.iter().filter(|it| it.1 == endpoint);
                let joined = joined.filter(|it| it.3 & shards == shards).map(|it| it.0);
                let all = (1_u8 << world.setup.shards) - 1;
                let joined = joined.filter(|_| shards != all);
                found.extend(joined.chain([world.attempts() + 1]).map(save));
            }
            for LoadPlan { endpoints, limit } in self.loads.iter().copied() {
                found.push(Choice::Load { process, endpoints, limit, compares: false });
            }
        }
        found.retain(|choice| world.allows(*choice));
    }

    /// Whether a choice of one of its kinds may be taken.
    fn admits(&self, world: &World, kind: Kind, choice: Choice) -> bool {
        let bounds = &self.bounds;
        match kind {
            Kind::Duplicate | Kind::Resend | Kind::Replay | Kind::SendList => {
                return world.requests.sent.len() + world.unreplied() < bounds.requests;
            }
            Kind::Die => {
                let Choice::Die(process) = choice else { return false };
                return world.processes[usize::from(process)].life < bounds.lives;
            }
            Kind::PutInDoubt | Kind::PutFailed | Kind::PutUnretired | Kind::GetInDoubt => {
                let lingering = world.store.moves.iter().filter(|it| it.answered).count();
                return lingering < bounds.strays;
            }
            _ => {}
        }
        match choice {
            Choice::Tell(process, act) => self.admits_act(world, kind, process, act),
            Choice::Delete(_, DeleteEnd::Unknown(_)) => {
                world.store.late_deletes.len() < bounds.strays
            }
            Choice::Host(_, HostCall::Proceed | HostCall::Cancel | HostCall::Concur) => true,
            Choice::Object(..) if kind == Kind::Vanish => {
                world.store.vanished.len() < bounds.strays
            }
            Choice::Publish(..) => world.requests.sent.len() < bounds.requests,
            _ => true,
        }
    }

    fn admits_act(&self, world: &World, kind: Kind, process: u8, act: Act) -> bool {
        let setup = &world.setup;
        // One of each role speaks for all.
        let registered = |it: &u8| world.processes[usize::from(*it)].incarnation.is_some();
        let speaks = if kind == Kind::Pretend {
            Some(process) == (0..setup.workers).find(registered)
        } else {
            Some(process) == (setup.workers..setup.processes()).find(registered)
        };
        // One thing at a time: what is told later is told then.
        let is_free = world.processes[usize::from(process)].asked.is_empty();
        let fits = is_free
            && match act {
                Act::Collect(limit) => {
                    self.collects.contains(&limit) && world.store.work.len() < self.bounds.work
                }
                Act::Settle(_, evidence) => self.evidence.contains(&evidence),
                // What is already so changes nothing.
                Act::Configure(which) => {
                    world.coordinator.disk.catalog.job().policy
                        != setup.policies[usize::from(which)]
                }
                Act::Fence(_, incarnation) => {
                    let catalog = &world.coordinator.disk.catalog;
                    catalog.has_life(pinfold_core::id::Incarnation(incarnation))
                }
                Act::Report(number) => {
                    let work = world.store.work.iter().find(|it| it.number == number);
                    work.is_some_and(|it| it.outcomes.len() < it.objects.len())
                }
                _ => true,
            };
        speaks && fits
    }
}
