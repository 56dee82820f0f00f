//! The judges of a run, each of whom can be left out: so each is shown to find what it should.

use pinfold_core::invariant::Invariant;
use pinfold_core::policy::Genesis;

use crate::oracle::Oracle;
use crate::recovery::Phase;
use crate::seen::Seen;
use crate::shared::Shared;
use crate::spec::Lockstep;
use crate::violation::{Judge, Violation};
use crate::world::World;

/// Which judges look on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bench {
    on: [bool; Judge::ALL.len()],
}

impl Bench {
    /// All of them.
    pub const ALL: Self = Self { on: [true; Judge::ALL.len()] };

    /// Nobody.
    pub const NONE: Self = Self { on: [false; Judge::ALL.len()] };

    /// One alone.
    #[must_use]
    pub const fn only(judge: Judge) -> Self {
        let mut on = [false; Judge::ALL.len()];
        on[judge as usize] = true;
        Self { on }
    }

    /// Whether a judge looks on.
    #[must_use]
    pub const fn has(self, judge: Judge) -> bool {
        self.on[judge as usize]
    }
}

/// The judges, and what each has learnt. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Judges {
    bench: Bench,
    oracle: Oracle,
    spec: Shared<Lockstep>,
}

impl Judges {
    /// The judges of a new job.
    #[must_use]
    pub fn new(genesis: &Genesis, bench: Bench) -> Self {
        Self { bench, oracle: Oracle::new(genesis), spec: Shared::new(Lockstep::new(genesis)) }
    }

    /// Tells all of them what was seen.
    ///
    /// # Errors
    /// The first promise that one of them says is broken.
    pub fn hear(&mut self, seen: &[Seen]) -> Result<(), Violation> {
        for it in seen {
            if self.bench.has(Judge::Oracle) {
                self.oracle.see(it)?;
            }
            if self.bench.has(Judge::Spec) && it.is_of_the_coordinator() {
                self.spec.see(it)?;
            }
        }
        Ok(())
    }

    /// Recounts what the core holds; at rest, what the disk holds must be the same.
    ///
    /// # Errors
    /// The promise that the recount, or the replay, finds broken.
    pub fn recount(&self, world: &World) -> Result<(), Violation> {
        if !self.bench.has(Judge::Recount) {
            return Ok(());
        }
        let fail = |invariant, what| Err(Violation { invariant, judge: Judge::Recount, what });
        let Some(engine) = &world.coordinator.engine else { return Ok(()) };
        if let Err(broken) = engine.check() {
            return fail(broken.invariant, broken.to_string());
        }
        if world.coordinator.is_at_rest() && !engine.is_poisoned() {
            let (live, disk) = (engine.catalog(), &world.coordinator.disk.catalog);
            if live != disk {
                let what = "the journal gives another state than the live one".to_string();
                return fail(Invariant::I11, what);
            }
        }
        Ok(())
    }

    /// What must be true at the end of a phase of a recovery.
    ///
    /// # Errors
    /// The promise that is broken at rest.
    pub fn rest(&self, phase: Phase) -> Result<(), Violation> {
        if self.bench.has(Judge::Oracle) && phase != Phase::Ending {
            self.oracle.end()?;
        }
        if self.bench.has(Judge::Spec) {
            self.spec.at_rest()?;
        }
        Ok(())
    }
}
