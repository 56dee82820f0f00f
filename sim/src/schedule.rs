//! The simulator's hand: draws the next choice of a World.
//!
//! First a kind, by its number in the mix, among those that could have a choice at all; then one of
//! its choices. Kinds with very many choices are drawn by their parts.

use pinfold_core::engine::Engine;

use crate::draws::{Draws, Stream};
use crate::swarm::Mix;
use crate::world::choice::{Choice, Coordinate, JobId, Publishes};
use crate::world::{Group, Kind, World};

/// How often a kind is drawn that turns out to have no choice, before the step is given up.
const TRIES: u32 = 12;
/// How soon what is over ends: in so many of a million steps.
const ENDS: u32 = 40_000;

/// The simulator's hand. See the [module](self).
#[derive(Clone, Debug)]
pub struct Schedule {
    mix: Mix,
    kinds: Draws,
    workload: Draws,
    network: Draws,
    store: Draws,
    disk: Draws,
    offers: Vec<Choice>,
}

impl Schedule {
    /// The hand of a seed.
    #[must_use]
    pub fn new(seed: u64, mix: Mix) -> Self {
        Self {
            mix,
            kinds: Draws::new(seed, Stream::Schedule),
            workload: Draws::new(seed, Stream::Workload),
            network: Draws::new(seed, Stream::Network),
            store: Draws::new(seed, Stream::Store),
            disk: Draws::new(seed, Stream::Disk),
            offers: Vec::new(),
        }
    }

    /// The next choice, with its kind; none when nothing was found that could happen.
    pub fn draw(&mut self, world: &World) -> Option<(Kind, Choice)> {
        if let Some(ends) = self.draw_end(world) {
            return Some(ends);
        }
        let groups = world.groups();
        for _ in 0..TRIES {
            let kind = self.draw_kind(groups)?;
            if let Some(choice) = self.draw_choice(world, kind) {
                return Some((kind, choice));
            }
        }
        None
    }

    /// What is over ends before long, as its host would let it: a coordinator whose sync failed,
    /// and a process that nobody listens to. Unless neither ever dies.
    fn draw_end(&mut self, world: &World) -> Option<(Kind, Choice)> {
        if !self.kinds.happens(ENDS) {
            return None;
        }
        let engine = world.coordinator.engine.as_ref();
        let end = if engine.is_some_and(Engine::is_poisoned) {
            (Kind::Crash, Choice::Coordinator(Coordinate::Crash(0)))
        } else {
            (
                Kind::Die,
                Choice::Die((0..world.setup.processes()).find(|index| world.is_barred(*index))?),
            )
        };
        (self.mix.of(end.0) > 0 && world.allows(end.1)).then_some(end)
    }

    fn draw_kind(&mut self, groups: u32) -> Option<Kind> {
        let is_there = |kind: &Kind| groups >> (kind.group() as u8) & 1 > 0;
        let mut at = self.kinds.below(1_000_000);
        for kind in Kind::faults().filter(is_there) {
            let share = self.mix.of(kind);
            if at < share {
                return Some(kind);
            }
            at -= share;
        }
        let mix = &self.mix;
        let weight = |kind: Kind| if is_there(&kind) { mix.of(kind) } else { 0 };
        let place = self.kinds.weighed(Kind::ordinary().map(weight))?;
        Kind::ordinary().nth(place)
    }

    fn draw_choice(&mut self, world: &World, kind: Kind) -> Option<Choice> {
        let choice = match kind {
            Kind::Save => self.draw_save(world)?,
            Kind::Load => self.draw_load(world)?,
            Kind::Publish => self.draw_publication(world)?,
            Kind::Crash => Choice::Coordinator(Coordinate::Crash(self.draw_kept(world))),
            Kind::FailSync => Choice::Coordinator(Coordinate::FailSync(self.draw_kept(world))),
            _ => {
                self.offers.clear();
                world.offer(kind, &mut self.offers);
                let draws = match kind.group() {
                    Group::Requests | Group::Answers | Group::Asked => &mut self.network,
                    Group::Moves
                    | Group::Checks
                    | Group::Lingering
                    | Group::Work
                    | Group::LateDeletes
                    | Group::Objects
                    | Group::Vanished
                    | Group::Strays => &mut self.store,
                    Group::Always
                    | Group::Up
                    | Group::Down
                    | Group::Dirty
                    | Group::Written
                    | Group::Jobs
                    | Group::Pins
                    | Group::Checkpoints => &mut self.workload,
                };
                return draws.pick(&self.offers);
            }
        };
        (world.allows(choice) && world.kind_of(choice) == kind).then_some(choice)
    }

    fn small(&mut self, end: u8) -> u8 {
        u8::try_from(self.workload.below(end.into())).unwrap_or(0)
    }

    fn draw_turn(&mut self, world: &World) -> Publishes {
        Publishes::Turn(self.small(world.setup.conversations), self.small(world.setup.turns))
    }

    fn draw_geometry(&mut self, usual: u8, per_million: u32) -> u8 {
        if self.workload.happens(per_million) { self.small(3) } else { usual }
    }

    /// Joins one of the last attempts, or begins a new one; now and then in another geometry.
    fn draw_save(&mut self, world: &World) -> Option<Choice> {
        let process = self.small(world.setup.workers);
        let joins = world.open_attempts();
        let joined = if self.workload.happens(850_000) { self.workload.pick(&joins) } else { None };
        let all = (1_u8 << world.setup.shards) - 1;
        let publishes = match self.workload.below(16) {
            0 => Publishes::Unscoped,
            1 | 2 => Publishes::Nothing,
            _ => self.draw_turn(world),
        };
        let odd = self.workload.happens(30_000);
        if let Some((attempt, endpoint, geometry, missing)) = joined {
            let shards = if odd { self.small(all) + 1 } else { missing };
            let geometry = self.draw_geometry(geometry, 60_000);
            let compares = !self.workload.happens(100_000);
            return Some(Choice::Save {
                process,
                endpoint,
                geometry,
                attempt,
                shards,
                publishes,
                compares,
            });
        }
        let latest = u32::from(world.attempts());
        let attempt = if odd { self.workload.between(1, latest + 1) } else { latest + 1 };
        let endpoint = self.small(world.setup.endpoints);
        let geometry = self.draw_geometry(0, 150_000);
        let shards = if self.workload.happens(500_000) { all } else { self.small(all) + 1 };
        let attempt = u16::try_from(attempt).ok()?;
        let compares = !self.workload.happens(100_000);
        Some(Choice::Save { process, endpoint, geometry, attempt, shards, publishes, compares })
    }

    fn draw_load(&mut self, world: &World) -> Option<Choice> {
        let process = self.small(world.setup.workers);
        let all = u8::try_from((1_u16 << world.setup.endpoints) - 1).unwrap_or(u8::MAX);
        let named = if self.workload.happens(500_000) { 1 } else { all.into() };
        let endpoints = u8::try_from(self.workload.between(named, all.into())).ok()?;
        let (limit, compares) = (self.small(3) + 1, self.workload.happens(300_000));
        Some(Choice::Load { process, endpoints, limit, compares })
    }

    fn draw_publication(&mut self, world: &World) -> Option<Choice> {
        let jobs: Vec<JobId> =
            world.processes.iter().flat_map(|it| &it.jobs).map(|job| job.id).collect();
        let job = self.workload.pick(&jobs)?;
        let publishes = match self.workload.below(8) {
            0 => Publishes::Unscoped,
            _ => self.draw_turn(world),
        };
        Some(Choice::Publish(job, publishes))
    }

    /// Nothing of a written frame, all of it, or any part.
    fn draw_kept(&mut self, world: &World) -> u32 {
        let written = world.coordinator.batch.as_ref().map_or(0, |batch| batch.bytes().len());
        let written = u32::try_from(written).unwrap_or(u32::MAX);
        match self.disk.below(4) {
            0 => 0,
            1 => written,
            _ => self.disk.between(0, written),
        }
    }
}
