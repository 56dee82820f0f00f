//! Recovery: with the faults off and no new work, a fixed order of steps must end everything.
//!
//! This is how liveness is judged: not by waiting for something that may never come, but by asking
//! of a state that was reached whether a few obvious steps lead out of it. First everything that is
//! under way ends and everything is answered (L2); then `Collect` alone takes whatever nothing
//! holds (L1); then an operator empties the store (L3).

use pinfold_core::catalog::{Blocker, PinFacts, State};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::Evidence;

use crate::seen::{Seen, Way};
use crate::shared::Shared;
use crate::violation::{Judge, Violation};
use crate::world::choice::{
    About, Act, Choice, Coordinate, DeleteEnd, GetEnd, HostCall, ObjectChange, Passage, PutEnd,
};
use crate::world::job::{Doing, Stands};
use crate::world::process::Process;
use crate::world::{Kind, World};

/// How many objects one `Collect` of a recovery asks for.
const COLLECTED: u32 = 64;

/// How far a recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// What is under way ends, and everything is answered.
    Ending,
    /// Whatever nothing holds is collected.
    Collecting,
    /// An operator ends what holds the rest.
    Emptying,
}

/// What somebody sees who looks on.
#[derive(Clone, Copy, Debug)]
pub enum Look<'a> {
    /// A step.
    Step {
        /// The World after it.
        world: &'a World,
        /// Its kind.
        kind: Kind,
        /// What was chosen.
        choice: Choice,
        /// What was seen of it.
        seen: &'a [Seen],
    },
    /// A phase is over, and nothing moves.
    Rest(Phase),
}

/// A recovery of a World. See the [module](self).
#[derive(Clone, Debug)]
pub struct Recovery {
    phase: Phase,
    steps: u32,
    /// How many it may take, from the World in which it began.
    most: Option<u32>,
    /// What `Collect` and the operator did since something last changed for the better.
    rounds: u32,
    /// The store as it was when the last round began.
    left: usize,
    forgotten: u8,
    /// The store was listed once while collecting.
    audited: bool,
}

/// The most steps that a recovery may take: so many, and so many for each thing there is.
const STEPS: u32 = 400;
const STEPS_EACH: u32 = 40;

impl Recovery {
    /// Before its first step.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            phase: Phase::Ending,
            steps: 0,
            most: None,
            rounds: 0,
            left: usize::MAX,
            forgotten: 0,
            audited: false,
        }
    }

    /// How many steps the recovery of a World may take.
    #[must_use]
    pub fn bound(world: &World) -> u32 {
        let gauges = world.coordinator.disk.catalog.gauges();
        let catalog = gauges.checkpoints + gauges.pins + gauges.turns + gauges.conversations;
        let store = &world.store;
        let waits = |process: &Shared<Process>| {
            process.asked.len() + process.queued.len() + process.jobs.len()
        };
        let objects = store.work.iter().map(|work| work.objects.len() + 1).sum::<usize>();
        let under_way = world.requests.sent.len()
            + world.answers.sent.len()
            + world.processes.iter().map(waits).sum::<usize>()
            + store.moves.len()
            + store.checks.len()
            + store.late_deletes.len()
            + store.strays.len()
            + objects;
        let things = catalog + gauges.expired_turns + (under_way + store.objects.len()) as u64;
        STEPS.saturating_add(STEPS_EACH.saturating_mul(u32::try_from(things).unwrap_or(u32::MAX)))
    }

    /// How many steps it took so far.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.steps
    }

    /// The first step from a World; none where nothing is under way.
    #[must_use]
    pub fn first(world: &World) -> Option<Choice> {
        ending(world)
    }

    /// The next step, or none when the phase is over.
    fn next(&mut self, world: &World) -> Option<Choice> {
        ending(world).or_else(|| match self.phase {
            Phase::Ending => None,
            Phase::Collecting => self.collect(world),
            Phase::Emptying => self.empty(world),
        })
    }

    /// Asks for work until it changes nothing any more.
    fn collect(&mut self, world: &World) -> Option<Choice> {
        let gauges = world.coordinator.disk.catalog.gauges();
        let checkpoints = usize::try_from(gauges.collectable).unwrap_or(usize::MAX);
        let left = world.private_objects().count().saturating_add(checkpoints);
        let waits = world.coordinator.disk.catalog.gauges().collectable > 0;
        if let Some((id, object)) = world.store.strays.iter().next() {
            return Some(Choice::Object(id.generation, *object, ObjectChange::Sweep));
        }
        if left == self.left && self.rounds > 1 && !(waits && self.rounds < 4) {
            let audits = core::mem::replace(&mut self.audited, true);
            return (!audits).then_some(Choice::Audit);
        }
        self.rounds = if left == self.left { self.rounds + 1 } else { 1 };
        self.left = left;
        Some(Choice::Tell(speaker(world)?, Act::Collect(COLLECTED)))
    }

    fn empty(&mut self, world: &World) -> Option<Choice> {
        if let Some(choice) = world.store.strays.iter().next() {
            return Some(Choice::Object(choice.0.generation, choice.1, ObjectChange::Sweep));
        }
        let operator = operator(world)?;
        let act = |act| Some(Choice::Tell(operator, act));
        let catalog = &world.coordinator.disk.catalog;
        if let Some(held) = catalog.pins().first() {
            return act(end_pin(world, held)?);
        }
        if self.forgotten < world.setup.conversations {
            self.forgotten += 1;
            return act(Act::Forget(self.forgotten - 1));
        }
        let published = catalog.checkpoints().into_iter().find(|id| {
            catalog.checkpoint(*id).is_some_and(|facts| facts.state == State::Published)
        });
        if let Some(id) = published {
            return act(Act::Drop(id.generation));
        }
        if catalog.gauges().collectable > 0 {
            return act(Act::Collect(COLLECTED));
        }
        if world.private_objects().next().is_some() && self.rounds < 8 {
            self.rounds += 1;
            return Some(Choice::Audit);
        }
        None
    }

    /// Takes steps until the store is empty of ours.
    ///
    /// # Errors
    /// [`Violation`] when it does not come to its end, or when somebody who looks on says so.
    pub fn run(
        mut self,
        world: &mut World,
        mut look: impl FnMut(Look<'_>) -> Result<(), Violation>,
    ) -> Result<u32, Violation> {
        while self.advance(world, &mut look)? {}
        Ok(self.steps)
    }

    /// Takes steps until the phase is over; false when it was the last one.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn advance(
        &mut self,
        world: &mut World,
        mut look: impl FnMut(Look<'_>) -> Result<(), Violation>,
    ) -> Result<bool, Violation> {
        let most = *self.most.get_or_insert_with(|| Self::bound(world));
        let mut seen = Vec::new();
        loop {
            let Some(choice) = self.next(world) else {
                self.judge(world)?;
                look(Look::Rest(self.phase))?;
                (self.rounds, self.left) = (0, usize::MAX);
                self.phase = match self.phase {
                    Phase::Ending => Phase::Collecting,
                    Phase::Collecting => Phase::Emptying,
                    Phase::Emptying => return Ok(false),
                };
                return Ok(true);
            };
            self.steps += 1;
            if self.steps > most {
                let what = format!("no end after {most} steps; the next would be {choice:?}");
                return Err(self.violation(what));
            }
            seen.clear();
            let kind = world.kind_of(choice);
            let done = world.step(choice, &mut seen);
            let done = done.map_err(|error| error.violation())?;
            if !done {
                return Err(self.violation(format!("a step of the recovery is none: {choice:?}")));
            }
            look(Look::Step { world, kind, choice, seen: &seen })?;
        }
    }

    fn violation(&self, what: String) -> Violation {
        let invariant = match self.phase {
            Phase::Ending => Invariant::L2,
            Phase::Collecting => Invariant::L1,
            Phase::Emptying => Invariant::L3,
        };
        Violation { invariant, judge: Judge::Recovery, what }
    }

    /// What must be true at the end of a phase.
    fn judge(&self, world: &World) -> Result<(), Violation> {
        let fail = |what: String| Err(self.violation(what));
        let gauges = world.coordinator.disk.catalog.gauges();
        match self.phase {
            Phase::Ending => {
                let asked = world.processes.iter().find(|process| !process.asked.is_empty());
                if let Some(process) = asked {
                    return fail(format!("never answered: {:?}", process.asked[0].op));
                }
                let mut jobs = world.processes.iter().flat_map(|process| &process.jobs);
                if let Some(job) = jobs.next() {
                    return fail(format!("a transfer never ends: {:?}", job.id));
                }
                let silent = |it: &Shared<Process>| it.incarnation.is_none() && !it.refused;
                if world.processes.iter().any(silent) {
                    return fail("a process cannot register".to_string());
                }
            }
            Phase::Collecting if gauges.collectable > 0 => {
                return fail(format!("{} collectable checkpoints stay", gauges.collectable));
            }
            Phase::Emptying => {
                if gauges.checkpoints > 0 || gauges.pins > 0 {
                    return fail(format!(
                        "{} records and {} pins stay",
                        gauges.checkpoints, gauges.pins
                    ));
                }
                if let Some((id, object)) = world.private_objects().next() {
                    return fail(format!("the store still holds {id}/{object}"));
                }
            }
            Phase::Collecting => {}
        }
        Ok(())
    }
}

impl Default for Recovery {
    fn default() -> Self {
        Self::new()
    }
}

/// The first thing that is under way ends well.
fn ending(world: &World) -> Option<Choice> {
    coordinator(world)
        .or_else(|| messages(world))
        .or_else(|| bytes(world))
        .or_else(|| transfers(world))
        .or_else(|| again(world))
        .or_else(|| work(world))
}

fn coordinator(world: &World) -> Option<Choice> {
    let poisoned = world.coordinator.engine.as_ref().is_some_and(|it| it.is_poisoned());
    let kept = [
        Choice::Coordinator(Coordinate::Restart),
        Choice::Coordinator(Coordinate::Commit),
        Choice::Coordinator(Coordinate::Sync),
        Choice::Coordinator(Coordinate::FollowUp),
    ];
    if poisoned {
        return Some(Choice::Coordinator(Coordinate::Crash(0)));
    }
    kept.into_iter().find(|choice| world.allows(*choice))
}

fn messages(world: &World) -> Option<Choice> {
    let request = world.requests.sent.first().map(|it| Choice::Message(it.about, Passage::Deliver));
    request
        .or_else(|| world.answers.sent.first().map(|it| Choice::Message(it.about, Passage::Answer)))
}

fn bytes(world: &World) -> Option<Choice> {
    let store = &world.store;
    if let Some(it) = store.moves.first() {
        return Some(match (it.answered, it.exposed, it.way) {
            (false, _, Way::Put) => Choice::Put(it.id, PutEnd::Ok),
            (false, _, Way::Get) => Choice::Get(it.id, GetEnd::Answered),
            (true, true, _) => Choice::Retire(it.id),
            (true, false, _) => Choice::Land(it.id),
        });
    }
    if let Some(check) = store.checks.first() {
        return Some(Choice::Check(check.id, true));
    }
    store
        .late_deletes
        .iter()
        .next()
        .map(|(id, object)| Choice::Object(id.generation, *object, ObjectChange::LandDelete))
}

/// Ranks that wait for others agree or give up; whoever waits for another's publication ends.
fn transfers(world: &World) -> Option<Choice> {
    let mut jobs = world.processes.iter().flat_map(|process| &process.jobs);
    jobs.find_map(|job| match job.stands {
        _ if job.waits => Some(Choice::Host(job.id, HostCall::Cancel)),
        Stands::Nowhere => None,
        Stands::Agree(_) if job.doing == Doing::Loads => {
            Some(Choice::Host(job.id, HostCall::Concur))
        }
        Stands::Agree(_) => {
            let mut offers = Vec::new();
            world.offer(Kind::Agree, &mut offers);
            offers.first().copied().or(Some(Choice::Host(job.id, HostCall::GiveUp)))
        }
    })
}

/// Whoever is not registered registers; whoever is not listened to any more begins a new life;
/// whoever was not answered asks again.
fn again(world: &World) -> Option<Choice> {
    for (process, index) in world.processes.iter().zip(0..) {
        if process.incarnation.is_none() && !process.refused {
            return Some(Choice::Register(index));
        }
        if world.is_barred(index) {
            return Some(Choice::Die(index));
        }
        if let Some(asked) = process.asked.first() {
            let (life, sequence) = (process.life, asked.op.sequence);
            return Some(Choice::Message(
                About::Command { process: index, life, sequence },
                Passage::Resend,
            ));
        }
    }
    None
}

fn work(world: &World) -> Option<Choice> {
    let work = world.store.work.first()?;
    if work.outcomes.len() < work.objects.len() {
        return Some(Choice::Delete(work.number, DeleteEnd::Gone));
    }
    Some(Choice::Tell(speaker(world)?, Act::Report(work.number)))
}

/// A process that may send.
fn speaker(world: &World) -> Option<u8> {
    (0..world.setup.processes()).find(|index| world.allows(Choice::Tell(*index, Act::Malformed)))
}

fn operator(world: &World) -> Option<u8> {
    let all = world.setup.workers..world.setup.processes();
    all.into_iter().find(|index| world.allows(Choice::Tell(*index, Act::Malformed)))
}

/// A pin's end by an operator: of a life that is over, by a fence; else it settles and releases.
fn end_pin(world: &World, held: &PinFacts) -> Option<Act> {
    let name = world.pin_name(held.id)?;
    let fence = Act::Fence(name.process, name.incarnation);
    let speaks = operator(world)?;
    if world.kind_of(Choice::Tell(speaks, fence)) == Kind::ProvenFence {
        return Some(fence);
    }
    let blockers = world.coordinator.disk.catalog.blockers(held.checkpoint)?.blockers;
    let in_flight = |it: &Blocker| matches!(it, Blocker::InFlight { pin, .. } if *pin == held.id);
    let is_final = held.save && !blockers.iter().any(in_flight);
    let settle = Act::Settle(name, Evidence::QuiescedFailure);
    Some(if is_final { Act::Release(name) } else { settle })
}
