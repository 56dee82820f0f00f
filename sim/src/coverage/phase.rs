//! In which phase of the protocol a fault hits: what it hit was doing just before.

use pinfold_core::catalog::{CheckpointFacts, Command, State};
use pinfold_core::id::{CheckpointId, Generation};

use super::names;
use crate::store::StoreKey;
use crate::world::World;
use crate::world::choice::{About, Choice, Coordinate, JobId, ObjectChange, Passage};
use crate::world::job::{Job, Stands};
use crate::world::network::Asks;
use crate::world::process::Process;

/// An answer that nobody waits for any more.
pub(super) const ANSWERED: &str = "answered before";

/// What a coordinator that dies had done.
pub(super) const CRASHES: [&str; 5] = ["at rest", "undurable", WRITTEN[0], WRITTEN[1], WRITTEN[2]];

/// What is left of a written frame.
pub(super) const WRITTEN: [&str; 3] =
    ["written, nothing kept", "written, torn", "written, all kept"];

/// What a process that dies was doing; several may hold.
pub(super) const DEATHS: [&str; 12] = [
    "unregistered",
    "nothing",
    "preparing",
    "pinning",
    "agreeing",
    "waiting",
    "moving",
    "checking",
    "retiring",
    "publishing",
    "settling",
    "releasing",
];

/// What the record of a checkpoint says whose object is hit.
pub(super) const STATES: [&str; 7] =
    ["prepared", "failed", "complete", "published", "collecting", "lost", NO_RECORD];

const NO_RECORD: &str = "no record";

/// The phases in which a choice hits, before it comes true; none for what is no fault.
pub(super) fn phases(world: &World, choice: Choice, hit: &mut impl FnMut(&'static str)) {
    match choice {
        Choice::Message(about, Passage::Duplicate | Passage::Misaddress)
        | Choice::Message(about, Passage::Lose | Passage::Replay) => {
            hit(world.request(about).map_or(ANSWERED, carried));
        }
        Choice::Message(about, Passage::DuplicateAnswer | Passage::LoseAnswer) => {
            hit(answered(world, about));
        }
        Choice::Coordinator(Coordinate::Crash(kept_bytes)) => hit(coordinator(world, kept_bytes)),
        Choice::Coordinator(Coordinate::FailSync(kept_bytes)) => hit(frame(world, kept_bytes)),
        Choice::Die(process) => doings(world, &world.processes[usize::from(process)], hit),
        Choice::Put(id, _) | Choice::Get(id, _) | Choice::Land(id) | Choice::Retire(id) => {
            let place = world.store.place_of(id);
            if let Some(StoreKey::Private(checkpoint, _)) =
                place.map(|place| world.store.moves[place].key)
            {
                hit(state(world, Some(checkpoint)));
            }
        }
        Choice::Object(generation, _, ObjectChange::Vanish | ObjectChange::Return)
        | Choice::Object(generation, _, ObjectChange::Damage | ObjectChange::LandDelete) => {
            hit(state_of(world, generation));
        }
        Choice::Delete(number, _) | Choice::DropWork(number) => {
            let work = world.store.work.iter().find(|work| work.number == number);
            hit(state(world, work.map(|work| work.checkpoint)));
        }
        Choice::Register(_)
        | Choice::Save { .. }
        | Choice::Load { .. }
        | Choice::Agree(_)
        | Choice::Host(..)
        | Choice::Publish(..)
        | Choice::Tell(..)
        | Choice::Message(_, Passage::Resend | Passage::SendList)
        | Choice::Message(_, Passage::Deliver | Passage::Answer)
        | Choice::Coordinator(Coordinate::FollowUp | Coordinate::Sync)
        | Choice::Coordinator(Coordinate::Write | Coordinate::Commit)
        | Choice::Coordinator(Coordinate::Restart | Coordinate::Compact)
        | Choice::Check(..)
        | Choice::RestartStore
        | Choice::Audit
        | Choice::Object(_, _, ObjectChange::Sweep)
        | Choice::Look(_) => {}
    }
}

const fn carried(asks: &Asks) -> &'static str {
    match asks {
        Asks::Register(_) => names::REGISTER,
        Asks::Command(_, command) => names::verb(command),
        Asks::List(_) => names::LIST,
    }
}

/// The verb to which an answer under way belongs.
fn answered(world: &World, about: About) -> &'static str {
    let process = &world.processes[usize::from(about.process())];
    match about {
        About::Register { .. } => names::REGISTER,
        About::List { .. } => names::LIST,
        About::Command { life, sequence, .. } => {
            let mut asked = process.asked.iter().filter(|_| process.life == life);
            let waits = asked.find(|asked| asked.op.sequence == sequence);
            waits.map_or(ANSWERED, |asked| names::verb(&asked.command))
        }
    }
}

fn coordinator(world: &World, kept_bytes: u32) -> &'static str {
    let it = &world.coordinator;
    if it.batch.is_some() {
        return frame(world, kept_bytes);
    }
    let [at_rest, undurable, ..] = CRASHES;
    if it.is_dirty() { undurable } else { at_rest }
}

fn frame(world: &World, kept_bytes: u32) -> &'static str {
    let written = world.coordinator.batch.as_ref().map_or(0, |batch| batch.bytes().len());
    let [nothing, torn, all] = WRITTEN;
    match kept_bytes as usize {
        0 => nothing,
        kept if kept < written => torn,
        _ => all,
    }
}

fn doings(world: &World, process: &Process, hit: &mut impl FnMut(&'static str)) {
    if process.incarnation.is_none() {
        hit("unregistered");
    } else if process.jobs.is_empty() && process.asked.is_empty() {
        hit("nothing");
    }
    let asks = |of: fn(&Command) -> bool| process.asked.iter().any(|asked| of(&asked.command));
    let stands = |of: fn(&Job) -> bool| process.jobs.iter().any(of);
    let is_own = |id: JobId| process.jobs.iter().any(|job| job.id == id);
    let moves = |answered: bool| {
        let mut moves = world.store.moves.iter();
        moves.any(|it| it.answered == answered && is_own(it.job))
    };
    let checks = world.store.checks.iter().any(|it| is_own(it.job));
    let doings = [
        ("preparing", asks(|it| matches!(it, Command::Prepare(_)))),
        ("pinning", asks(|it| matches!(it, Command::Pin { .. }))),
        ("agreeing", stands(|job| matches!(job.stands, Stands::Agree(_)))),
        ("waiting", stands(|job| job.waits)),
        ("moving", moves(false)),
        ("checking", checks),
        ("retiring", moves(true)),
        ("publishing", asks(|it| matches!(it, Command::Publish { .. }))),
        ("settling", asks(|it| matches!(it, Command::Settle { .. }))),
        ("releasing", asks(|it| matches!(it, Command::Release { .. }))),
    ];
    doings.into_iter().filter(|doing| doing.1).for_each(|doing| hit(doing.0));
}

fn state_of(world: &World, generation: Generation) -> &'static str {
    state(world, world.checkpoint(generation))
}

fn state(world: &World, checkpoint: Option<CheckpointId>) -> &'static str {
    let facts = checkpoint.and_then(|it| world.coordinator.disk.catalog.checkpoint(it));
    let name = |facts: CheckpointFacts| {
        if facts.lost && facts.state != State::Collecting { "lost" } else { facts.state.name() }
    };
    facts.map_or(NO_RECORD, name)
}
