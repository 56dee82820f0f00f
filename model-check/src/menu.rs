//! What may happen in the World of a check, and how much of it.

use pinfold_core::id::Incarnation;
use pinfold_core::outcome::Evidence;
use pinfold_sim::world::choice::{Act, Choice, DeleteEnd, Publishes};
use pinfold_sim::world::{Kind, World};

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
    /// The worker is one of several ranks, which choose and adopt together.
    pub compares: bool,
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

impl Menu {
    /// The saves and loads that workers may begin.
    pub(crate) fn offer_transfers(&self, world: &World, found: &mut Vec<Choice>) {
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
            for LoadPlan { endpoints, limit, compares } in self.loads.iter().copied() {
                found.push(Choice::Load { process, endpoints, limit, compares });
            }
        }
        found.retain(|choice| world.allows(*choice));
    }

    /// Whether a choice of one of its kinds may be taken.
    pub(crate) fn admits(&self, world: &World, kind: Kind, choice: Choice) -> bool {
        let bounds = &self.bounds;
        match kind {
            Kind::Duplicate | Kind::Resend | Kind::Replay | Kind::SendList => {
                return world.requests.sent.len() + world.unreplied() < bounds.requests;
            }
            // A question changes nothing: one beside the others is as good as many.
            Kind::Look | Kind::Audit => return world.unreplied() <= bounds.requests,
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
            Choice::Object(..) if kind == Kind::Vanish => {
                world.store.vanished.len() < bounds.strays
            }
            Choice::Publish(..) => world.requests.sent.len() < bounds.requests,
            _ => true,
        }
    }

    fn admits_act(&self, world: &World, kind: Kind, process: u8, act: Act) -> bool {
        let setup = &world.setup;
        // One operator speaks for all; workers, which may be interchangeable, each for itself.
        let registered = |it: &u8| world.processes[usize::from(*it)].incarnation.is_some();
        let is_worker = process < setup.workers && registered(&process);
        let is_operator = (setup.workers..setup.processes()).find(registered) == Some(process);
        let speaks = match kind {
            Kind::Pretend => is_worker,
            Kind::Mistake => is_worker || is_operator,
            _ => is_operator,
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
                    catalog.has_life(Incarnation(incarnation))
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
