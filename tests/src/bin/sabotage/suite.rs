//! One bug at a time: armed, and looked for by each judge alone.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use pinfold_core::invariant::Invariant;
use pinfold_core::mutant::{Mutant, arm};
use pinfold_sim::judges::Bench;
use pinfold_sim::run::{Ran, Settings, run};
use pinfold_sim::script::Script;
use pinfold_sim::script::world::replay;
use pinfold_sim::shrink::Case;
use pinfold_sim::violation::Judge;
use pinfold_tests::Report;

use crate::checked::{Checked, check};

/// A bug to be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// One of the core's.
    Mutant(Mutant),
    /// None at all, under a name: whoever calls it caught cannot be believed.
    Canary,
}

impl Bug {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mutant(mutant) => mutant.name(),
            Self::Canary => "canary",
        }
    }

    pub(crate) const fn mutant(self) -> Option<Mutant> {
        match self {
            Self::Mutant(mutant) => Some(mutant),
            Self::Canary => None,
        }
    }

    pub(crate) const fn invariant(self) -> Invariant {
        match self {
            Self::Mutant(mutant) => mutant.invariant(),
            Self::Canary => Invariant::I1,
        }
    }
}

/// What one judge saw of a bug.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// The first seed in which it saw anything, and which promise it named.
    pub(crate) first: Option<(u64, Invariant)>,
    /// The first seed in which it named the bug's own promise.
    pub(crate) named: Option<u64>,
    /// A seed in which the program itself fell over.
    pub(crate) panicked: Option<u64>,
}

/// What all judges saw of a bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) bug: Bug,
    /// In the order of [`Judge::ALL`].
    pub(crate) sights: Vec<Sight>,
    /// The fewest steps that show it.
    pub(crate) shortest: Option<usize>,
    /// What the model checker says.
    pub(crate) checked: Checked,
}

impl Verdict {
    /// True when some judge, or the model checker, named the bug's own promise, and the model
    /// checker finds what its Worlds can have.
    pub(crate) fn is_caught(&self) -> bool {
        let named = match &self.checked {
            Checked::Missed(_) => return false,
            Checked::Found(found) => found.invariant == Some(self.bug.invariant()),
            Checked::CannotBe(_) => false,
        };
        named || self.sights.iter().any(|sight| sight.named.is_some())
    }

    pub(crate) fn panicked(&self) -> Option<u64> {
        self.sights.iter().find_map(|sight| sight.panicked)
    }
}

/// In how many seeds every judge looks; further ones only where none of them named the promise.
const EVERY_JUDGE: u64 = 200;

/// Looks for one bug, by each judge alone, in up to so many seeds.
pub(crate) fn look_for(bug: Bug, seeds: u64) -> Verdict {
    arm(bug.mutant());
    let mut sights = vec![Sight::default(); Judge::ALL.len()];
    let mut from = 0;
    for until in [EVERY_JUDGE.min(seeds), seeds] {
        if sights.iter().all(|sight| sight.named.is_none()) {
            look(bug, from..until, &mut sights);
        }
        from = until;
    }
    let shortest = shortest(bug, &sights);
    arm(None);
    Verdict { bug, sights, shortest, checked: check(bug) }
}

/// Every judge looks on, each in a thread of its own.
fn look(bug: Bug, seeds: Range<u64>, sights: &mut [Sight]) {
    thread::scope(|scope| {
        for (judge, sight) in Judge::ALL.into_iter().zip(sights) {
            let seeds = seeds.clone();
            scope.spawn(move || look_alone(bug, judge, seeds, sight));
        }
    });
}

fn settings(judge: Judge) -> Settings {
    Settings { bench: Bench::only(judge), ..Settings::default() }
}

fn attempt(seed: u64, settings: &Settings) -> Option<Ran> {
    catch_unwind(AssertUnwindSafe(|| run(seed, settings, &mut ()))).ok()
}

fn look_alone(bug: Bug, judge: Judge, seeds: Range<u64>, sight: &mut Sight) {
    let settings = settings(judge);
    for seed in seeds {
        let Some(ran) = attempt(seed, &settings) else {
            sight.panicked = Some(seed);
            return;
        };
        // What cannot be read back, or does not recover, ends a run whoever looks on.
        let Some(found) = ran.found.filter(|found| found.violation.judge == judge) else {
            continue;
        };
        let invariant = found.violation.invariant;
        sight.first.get_or_insert((seed, invariant));
        if invariant == bug.invariant() {
            sight.named = Some(seed);
            return;
        }
    }
}

/// The reports that go right although their mutant is armed, or that cannot be replayed.
pub(crate) fn reports_that_go_right() -> Vec<String> {
    let reports = match pinfold_tests::reports() {
        Ok(reports) => reports,
        Err(error) => return vec![format!("the reports cannot be read: {error}")],
    };
    let goes_right = |report: &Report| {
        let named = Mutant::ALL.into_iter().find(|mutant| mutant.name() == report.mutant);
        let Some(mutant) = named else { return Some(format!("{}: no mutant", report.path)) };
        arm(Some(mutant));
        let replayed = catch_unwind(|| {
            let script = Script::read(&report.text).map_err(|fault| fault.to_string())?;
            replay(&script, Bench::ALL, &mut ()).map_err(|fault| fault.to_string())
        });
        arm(None);
        let right = match replayed {
            Ok(Ok(replayed)) => replayed.found.is_none() && replayed.is_as_expected(),
            Ok(Err(_)) | Err(_) => true,
        };
        right.then(|| format!("{} under {}", report.path, report.mutant))
    };
    reports.iter().filter_map(goes_right).collect()
}

/// Shrinks the first run in which a judge named the bug's promise.
fn shortest(bug: Bug, sights: &[Sight]) -> Option<usize> {
    let named =
        Judge::ALL.into_iter().zip(sights).filter_map(|(judge, sight)| Some((sight.named?, judge)));
    let (seed, judge) = named.min_by_key(|(seed, judge)| (*seed, *judge as u8))?;
    let settings = settings(judge);
    let ran = attempt(seed, &settings)?;
    let in_run = u32::try_from(ran.choices.len()).unwrap_or(u32::MAX);
    let case = Case {
        recovers: ran.found.as_ref()?.step > in_run || judge == Judge::Recovery,
        setup: ran.setup,
        choices: ran.choices,
        bench: settings.bench,
        invariant: bug.invariant(),
    };
    let shrunk = catch_unwind(AssertUnwindSafe(|| case.shrink())).ok()??;
    Some(shrunk.choices.len())
}
