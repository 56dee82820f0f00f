//! What must always hold, and what must sometimes be reached so that it means something.
//!
//! That a promise held says nothing where it was never at stake. So beside each promise stands the
//! situation in which it could have been broken; a configuration that never comes to it has not
//! checked that promise, and says so.

use std::collections::BTreeSet;

use pinfold_core::catalog::{Command, State};
use pinfold_core::engine::Reply;
use pinfold_core::invariant::Invariant;
use pinfold_sim::coverage::names;
use pinfold_sim::protocol::lifts;
use pinfold_sim::seen::Seen;
use pinfold_sim::world::choice::{About, Act, Choice, Coordinate, Passage};
use pinfold_sim::world::network::Asks;
use pinfold_sim::world::{Kind, World};

/// Which kinds of choices were made and how often, and which promises were at stake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// How often each kind of choice was made, by its place.
    pub kinds: [u64; Kind::COUNT],
    /// Whether each promise was at stake, by its place.
    pub stakes: [bool; Invariant::ALL.len()],
    /// What was answered, by name.
    pub answers: BTreeSet<&'static str>,
    /// What commands were refused for, by name.
    pub refusals: BTreeSet<&'static str>,
}

impl Default for Reached {
    fn default() -> Self {
        Self {
            kinds: [0; Kind::COUNT],
            stakes: [false; Invariant::ALL.len()],
            answers: BTreeSet::new(),
            refusals: BTreeSet::new(),
        }
    }
}

impl Reached {
    /// A choice is about to be made.
    pub(crate) fn step(&mut self, world: &World, choice: Choice) {
        self.kinds[world.kind_of(choice).place()] += 1;
        for (invariant, reached) in Invariant::ALL.into_iter().zip(&mut self.stakes) {
            *reached = *reached || is_at_stake(invariant, world, choice);
        }
    }

    /// What was seen of it.
    pub(crate) fn see(&mut self, seen: &[Seen]) {
        let mut hear = |answer: &Result<_, _>| match answer {
            Ok(outcome) => drop(self.answers.insert(names::answer(outcome))),
            Err(rejection) => drop(self.refusals.insert(names::refusal(rejection))),
        };
        for it in seen {
            match it {
                Seen::Replied { reply: Reply::Command(answer), .. } => hear(answer),
                Seen::Replied { reply: Reply::List(answers), .. } => {
                    answers.iter().flatten().for_each(&mut hear);
                }
                _ => {}
            }
        }
    }

    /// Adds what others reached.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.kinds.iter_mut().zip(other.kinds) {
            *count += more;
        }
        for (reached, too) in self.stakes.iter_mut().zip(other.stakes) {
            *reached |= too;
        }
        self.answers.extend(&other.answers);
        self.refusals.extend(&other.refusals);
    }

    /// Whether a promise was at stake.
    #[must_use]
    pub fn was_at_stake(&self, invariant: Invariant) -> bool {
        self.stakes[invariant as usize]
    }
}

/// Whether this choice, in this World, could break a promise.
#[must_use]
pub fn is_at_stake(invariant: Invariant, world: &World, choice: Choice) -> bool {
    let catalog = &world.coordinator.disk.catalog;
    let gauges = || catalog.gauges();
    let delivers = |what: fn(&Command) -> bool| delivered(world, choice).is_some_and(what);
    match invariant {
        Invariant::I1 => is_delete(world, choice) && gauges().turns > 0,
        Invariant::I2 => {
            is_delete(world, choice) && (gauges().pins > 0 || !world.store.moves.is_empty())
        }
        Invariant::I3 => delivers(|it| matches!(it, Command::Collect { .. })),
        Invariant::I4 => delivers(|it| matches!(it, Command::Publish { .. })),
        Invariant::I5 => {
            delivers(|it| matches!(it, Command::Prepare(_))) && gauges().checkpoints > 0
        }
        Invariant::I6 => {
            let most = catalog.job().policy.turns;
            let is_full = catalog.conversations().any(|it| it.turns >= most);
            is_full && delivers(|it| matches!(it, Command::Publish { .. }))
        }
        Invariant::I7 => {
            let is_over = catalog.conversations().any(|it| it.expired_turns > 0 || it.forgotten);
            is_over && delivers(|it| matches!(it, Command::Publish { .. }))
        }
        Invariant::I8 => catalog.pins().iter().any(|pin| pin.in_doubt),
        Invariant::I9 => {
            let unserved =
                |id| catalog.checkpoint(id).is_some_and(|it| is_unserved(it.state, it.lost));
            delivers(|it| matches!(it, Command::Pin { .. }))
                && catalog.checkpoints().into_iter().any(unserved)
        }
        Invariant::I10 => delivered(world, choice).is_some(),
        Invariant::I11 => is_of(choice, |it| {
            matches!(it, Coordinate::Crash(_) | Coordinate::Compact | Coordinate::Restart)
        }),
        Invariant::I12 => is_out_of_place(world, choice),
        Invariant::I13 => gauges().checkpoints > 0,
        Invariant::I14 => is_repeated(world, choice),
        Invariant::I15 => matches!(choice, Choice::Get(..)),
        Invariant::I16 => matches!(choice, Choice::Put(..) | Choice::Get(..) | Choice::Retire(_)),
        Invariant::I17 => matches!(choice, Choice::Put(..) | Choice::Land(_)),
        Invariant::I18 => is_bounded(world) && delivers(lifts),
        Invariant::L1 => gauges().collectable > 0,
        Invariant::L2 => world.processes.iter().any(|it| !it.asked.is_empty()),
        Invariant::L3 => gauges().pins > 0 || world.private_objects().next().is_some(),
    }
}

fn is_unserved(state: State, lost: bool) -> bool {
    lost || match state {
        State::Failed | State::Collecting => true,
        State::Prepared | State::Complete | State::Published => false,
    }
}

/// Something is deleted, or a delete takes effect late.
fn is_delete(world: &World, choice: Choice) -> bool {
    match choice {
        Choice::Delete(..) => true,
        Choice::Object(..) => matches!(Kind::of(choice), Kind::LandDelete | Kind::Sweep),
        _ => delivered(world, choice).is_some_and(|it| matches!(it, Command::Collect { .. })),
    }
}

/// The command that reaches the coordinator by a choice; one that is told reaches it at once.
fn delivered(world: &World, choice: Choice) -> Option<&Command> {
    let arrives =
        |passage| matches!(passage, Passage::Deliver | Passage::Duplicate | Passage::Misaddress);
    match choice {
        Choice::Message(about, passage) if arrives(passage) => match world.request(about)? {
            Asks::Command(_, command) | Asks::List([(_, command), _]) => Some(command),
            Asks::Register(_) => None,
        },
        Choice::Tell(_, Act::Collect(_)) => Some(&Command::Collect { limit: 1 }),
        _ => None,
    }
}

fn is_of(choice: Choice, what: fn(Coordinate) -> bool) -> bool {
    matches!(choice, Choice::Coordinator(it) if what(it))
}

/// Something of another epoch, of an older life, or of one that is fenced arrives.
fn is_out_of_place(world: &World, choice: Choice) -> bool {
    let Choice::Message(about, passage) = choice else { return false };
    let process = about.process();
    let arrives = matches!(passage, Passage::Deliver | Passage::Duplicate);
    let is_old = about.life() != world.processes[usize::from(process)].life;
    passage == Passage::Misaddress || arrives && (is_old || world.is_barred(process))
}

/// An operation reaches the coordinator that it knows already, or that will come once more.
fn is_repeated(world: &World, choice: Choice) -> bool {
    match choice {
        Choice::Message(_, Passage::Duplicate | Passage::Replay | Passage::Resend) => true,
        Choice::Message(about @ About::Command { .. }, Passage::Deliver) => {
            match world.request(about) {
                Some(Asks::Command(op, command)) => {
                    world.coordinator.disk.catalog.receipt(*op, command).is_some()
                }
                Some(Asks::Register(_) | Asks::List(_)) | None => false,
            }
        }
        Choice::Tell(_, Act::Conflict) => true,
        _ => false,
    }
}

/// Some bound has been reached.
fn is_bounded(world: &World) -> bool {
    let catalog = &world.coordinator.disk.catalog;
    let (gauges, limits) = (catalog.gauges(), &catalog.job().limits);
    gauges.pins >= u64::from(limits.pins)
        || gauges.checkpoints >= u64::from(limits.generations_per_endpoint)
        || gauges.expired_turns >= u64::from(limits.expired_turns)
        || gauges.bytes_pinned >= limits.bytes_pinned
}
