//! One seed's run: choices drawn, made true and judged, and a recovery at its end.

use std::sync::Arc;

use pinfold_core::journal::snapshot;

use crate::digest::Digest;
use crate::draws::{Draws, Stream};
use crate::judges::{Bench, Judges};
use crate::recovery::{Look, Recovery};
use crate::schedule::Schedule;
use crate::seen::Seen;
use crate::swarm::{self, Knob, Mix};
use crate::violation::Violation;
use crate::world::choice::Choice;
use crate::world::setup::Setup;
use crate::world::{Kind, World};

/// What a run is asked to do, beside its seed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How many steps it takes before its recovery.
    pub steps: u32,
    /// Who looks on.
    pub bench: Bench,
    /// Knobs that are turned in every seed.
    pub knobs: Vec<Knob>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { steps: 1000, bench: Bench::ALL, knobs: Vec::new() }
    }
}

/// Those who look at every step of a run: coverage, a trace, a picture.
pub trait Watch {
    /// A choice is about to be tried, and may not be one here. Never told of a recovery's steps, by
    /// which a watcher knows them.
    fn before(&mut self, _: &World, _: Kind, _: Choice) {}

    /// A choice was made.
    fn step(&mut self, world: &World, kind: Kind, choice: Choice, seen: &[Seen]);
}

/// Nobody.
impl Watch for () {
    fn step(&mut self, _: &World, _: Kind, _: Choice, _: &[Seen]) {}
}

/// What a run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The promise that is broken.
    pub violation: Violation,
    /// After how many steps of the run; a recovery's steps count on.
    pub step: u32,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The size of its World.
    pub setup: Arc<Setup>,
    /// What happened, up to the recovery.
    pub choices: Vec<Choice>,
    /// What was found, if anything was.
    pub found: Option<Found>,
    /// A digest of every choice, of every reply, and of the state that the disk has at the end.
    pub digest: u64,
    /// How many steps the recovery took.
    pub recovery_steps: u32,
}

/// How often the core is recounted: in so many of a million steps.
const RECOUNTED: u32 = 30_000;

/// Runs a seed.
pub fn run(seed: u64, settings: &Settings, watch: &mut impl Watch) -> Ran {
    let (setup, mut mix) = swarm::draw(seed);
    for knob in &settings.knobs {
        mix.turn(*knob);
    }
    run_with(seed, Arc::new(setup), mix, settings, watch)
}

/// Runs a seed in a World of a given size, with a given mixture.
pub fn run_with(
    seed: u64,
    setup: Arc<Setup>,
    mix: Mix,
    settings: &Settings,
    watch: &mut impl Watch,
) -> Ran {
    let mut samples = Draws::new(seed, Stream::Samples);
    let mut schedule = Schedule::new(seed, mix);
    let mut course = match Course::new(setup.clone(), settings.bench) {
        Ok(course) => course,
        Err(found) => {
            let choices = Vec::new();
            return Ran { setup, choices, found: Some(found), digest: 0, recovery_steps: 0 };
        }
    };
    let mut choices = Vec::with_capacity(settings.steps as usize);
    let mut found = None;
    for _ in 0..settings.steps {
        let Some((kind, choice)) = schedule.draw(&course.world) else { continue };
        choices.push(choice);
        if let Err(fault) = course.step(kind, choice, watch) {
            found = Some(fault);
            break;
        }
        // What a snapshot lost shows at once, and may be made good by what comes later.
        if (kind == Kind::Compact || samples.happens(RECOUNTED))
            && let Err(fault) = course.recount()
        {
            found = Some(fault);
            break;
        }
    }
    let mut recovery_steps = 0;
    if found.is_none() {
        match course.recover(watch) {
            Ok(steps) => recovery_steps = steps,
            Err(fault) => found = Some(fault),
        }
    }
    course.digest.take(&snapshot::encode(&course.world.coordinator.disk.catalog, 0));
    Ran { setup, choices, found, digest: course.digest.value(), recovery_steps }
}

/// A World on its way, with its judges.
#[derive(Clone, Debug)]
pub struct Course {
    /// The World.
    pub world: World,
    /// Its judges.
    pub judges: Judges,
    digest: Digest,
    steps: u32,
    seen: Vec<Seen>,
}

impl Course {
    /// A World in which nothing has happened yet.
    ///
    /// # Errors
    /// What no job can have.
    pub fn new(setup: Arc<Setup>, bench: Bench) -> Result<Self, Found> {
        let judges = Judges::new(&setup.genesis(), bench);
        let world = World::new(setup);
        let world = world.map_err(|error| Found { violation: error.violation(), step: 0 })?;
        let (digest, seen) = (Digest::default(), Vec::new());
        Ok(Self { world, judges, digest, steps: 0, seen })
    }

    /// Makes a choice come true, and lets everybody look at it. A choice that is none here does
    /// nothing; true when it was one.
    ///
    /// # Errors
    /// The promise that is broken.
    pub fn step(
        &mut self,
        kind: Kind,
        choice: Choice,
        watch: &mut impl Watch,
    ) -> Result<bool, Found> {
        self.seen.clear();
        watch.before(&self.world, kind, choice);
        let done = self.world.step(choice, &mut self.seen);
        self.steps += 1;
        let step = self.steps;
        let done = done.map_err(|error| Found { violation: error.violation(), step })?;
        digest_step(&mut self.digest, choice, &self.seen);
        watch.step(&self.world, kind, choice, &self.seen);
        self.judges.hear(&self.seen).map_err(|violation| Found { violation, step })?;
        Ok(done)
    }

    /// What was seen of the last step.
    #[must_use]
    pub fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// A short digest of everything that has happened.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        u32::try_from(self.digest.value() & u64::from(u32::MAX)).unwrap_or(0)
    }

    /// Recounts the core.
    ///
    /// # Errors
    /// The promise that is broken.
    pub fn recount(&self) -> Result<(), Found> {
        let step = self.steps;
        self.judges.recount(&self.world).map_err(|violation| Found { violation, step })
    }

    /// Recovers, and judges at rest.
    ///
    /// # Errors
    /// The promise that is broken.
    pub fn recover(&mut self, watch: &mut impl Watch) -> Result<u32, Found> {
        let mut steps = self.steps;
        let (judges, digest) = (&mut self.judges, &mut self.digest);
        let recovered = Recovery::new().run(&mut self.world, |look| match look {
            Look::Step { world, kind, choice, seen } => {
                steps += 1;
                digest_step(digest, choice, seen);
                watch.step(world, kind, choice, seen);
                judges.hear(seen)
            }
            Look::Rest(phase) => judges.rest(phase),
        });
        self.steps = steps;
        recovered.map_err(|violation| Found { violation, step: steps }).and_then(|steps| {
            self.recount()?;
            Ok(steps)
        })
    }
}

fn digest_step(digest: &mut Digest, choice: Choice, seen: &[Seen]) {
    digest.take(&choice);
    for it in seen {
        if let Seen::Replied { reply, .. } = it {
            digest.take(reply);
        }
    }
}
