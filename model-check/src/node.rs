//! A World on its way through a check, with its judges.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinfold_core::invariant::Invariant;
use pinfold_sim::judges::{Bench, Judges};
use pinfold_sim::likeness::Words;
use pinfold_sim::recovery::{Look, Recovery};
use pinfold_sim::seen::Seen;
use pinfold_sim::violation::{Judge, Violation};
use pinfold_sim::world::World;
use pinfold_sim::world::choice::{About, Choice, Coordinate, Passage};

use crate::plan::{Plan, Step};

/// No step is followed at once by more than this.
const MOST_FOLLOWING: usize = 500;

/// A World and its judges. See the [module](self).
#[derive(Clone, Debug)]
pub struct Node {
    /// The World.
    pub world: World,
    /// Its judges.
    pub judges: Judges,
}

impl Node {
    /// The World of a plan in which everybody has registered, and the choices that led there.
    ///
    /// # Errors
    /// The promise that is broken on the way.
    pub fn first(plan: &Plan) -> Result<(Self, Vec<Choice>), Violation> {
        let setup = Arc::new(plan.configuration.setup.clone());
        let judges = Judges::new(&setup.genesis(), Bench::ALL);
        let world = World::new(setup).map_err(|error| error.violation())?;
        let mut made = Self { world, judges };
        let mut choices = Vec::new();
        for process in 0..made.world.setup.processes() {
            let about = About::Register { process, life: 1 };
            choices.extend([
                Choice::Register(process),
                Choice::Message(about, Passage::Deliver),
                Choice::Coordinator(Coordinate::Sync),
                Choice::Message(about, Passage::Answer),
            ]);
        }
        let mut seen = Vec::new();
        for choice in &choices {
            made.choose(*choice, &mut seen, &mut |_, _| {})?;
        }
        made.judges.recount(&made.world)?;
        Ok((made, choices))
    }

    /// Makes one choice come true, and lets the judges hear of it.
    fn choose(
        &mut self,
        choice: Choice,
        seen: &mut Vec<Seen>,
        show: &mut impl FnMut(Choice, &[Seen]),
    ) -> Result<bool, Violation> {
        seen.clear();
        let done = self.world.step(choice, seen);
        show(choice, seen);
        let done = done.map_err(|error| error.violation())?;
        self.judges.hear(seen)?;
        Ok(done)
    }

    /// Takes a step, and whatever follows from it at once, and recounts the core where that changed
    /// it. Each choice is shown with what was seen of it, before it is judged.
    ///
    /// So every judge has spoken before the state is taken for one that was visited.
    ///
    /// # Errors
    /// The promise that is broken by it.
    pub fn take(
        &mut self,
        plan: &Plan,
        step: Step,
        seen: &mut Vec<Seen>,
        mut show: impl FnMut(Choice, &[Seen]),
    ) -> Result<(), Violation> {
        let before = self.world.coordinator.clone();
        let mut next = Some(step.choice);
        for _ in 0..MOST_FOLLOWING {
            let Some(choice) = next else {
                let is_unchanged = before.is_unchanged(&self.world.coordinator);
                return if is_unchanged { Ok(()) } else { self.judges.recount(&self.world) };
            };
            if !self.choose(choice, seen, &mut show)? {
                let what = format!("what was offered is no choice: {choice:?}");
                return Err(Violation { invariant: Invariant::L2, judge: Judge::Recovery, what });
            }
            next = plan.follows(&self.world, step.unheard);
        }
        let what = format!("what follows from {:?} never ends", step.choice);
        Err(Violation { invariant: Invariant::L2, judge: Judge::Recovery, what })
    }

    /// Recovers, and gives how many steps that took.
    ///
    /// A recovery first lets everything end that is under way, and then goes on from a state at
    /// rest, without a memory. Many states come to the same rest: from there it is tried once, with
    /// the judges looking on, and `rests` keeps how many steps more it took.
    ///
    /// # Errors
    /// The promise that does not hold: liveness, or another one on the way.
    pub fn recover(
        &self,
        plan: &Plan,
        words: &mut Words<'_>,
        rests: &Rests,
    ) -> Result<u32, Violation> {
        let mut world = self.world.clone();
        let mut recovery = Recovery::new();
        recovery.advance(&mut world, |_| Ok(()))?;
        let ended = recovery.steps();
        let rest = plan.digest(&world, words);
        if let Some(more) = rests.known().get(&rest) {
            return Ok(ended + more);
        }
        let Self { mut world, mut judges } = self.clone();
        let steps = Recovery::new().run(&mut world, |look| match look {
            Look::Step { seen, .. } => judges.hear(seen),
            Look::Rest(phase) => judges.rest(phase),
        })?;
        rests.known().insert(rest, steps - ended);
        Ok(steps)
    }
}

/// States at rest from which the recovery was tried, and how many steps it took from there.
#[derive(Debug, Default)]
pub struct Rests(Mutex<BTreeMap<u64, u32>>);

impl Rests {
    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
