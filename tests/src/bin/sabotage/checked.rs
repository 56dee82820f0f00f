//! The model checker as a judge: in which configuration it finds a bug, and how.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use pinfold_core::invariant::Invariant;
use pinfold_core::mutant::arm;
use pinfold_model_check::configuration::{Configuration, Tier};
use pinfold_model_check::explore::{Options, explore};
use pinfold_model_check::named;
use pinfold_model_check::plan::Plan;
use pinfold_model_check::watchdog::Limits;

use crate::places::{Place, place};
use crate::suite::Bug;

/// How long one configuration may take where a bug is searched for.
const SEARCH: Duration = Duration::from_secs(4);
/// How long it may take where the bug is known to be found.
const KNOWN: Duration = Duration::from_secs(240);

/// How the checker found a bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) configuration: &'static str,
    /// The promise that it named; none where the program itself fell over.
    pub(crate) invariant: Option<Invariant>,
    /// How many states it had visited.
    pub(crate) states: u64,
    /// The steps of a shortest way.
    pub(crate) steps: usize,
}

/// What the checker has to say of a bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    Found(Found),
    /// No World of it can have this bug; why.
    CannotBe(&'static str),
    /// It should have found it.
    Missed(&'static str),
}

/// Looks for a bug where it is known to be found.
pub(crate) fn check(bug: Bug) -> Checked {
    match place(bug.name()) {
        Some(Place::Nowhere(why)) => Checked::CannotBe(why),
        Some(Place::In(name)) => {
            let found = named::named(name).and_then(|it| find(bug, it, KNOWN));
            found.map_or(Checked::Missed(name), Checked::Found)
        }
        None if bug == Bug::Canary => Checked::CannotBe("it is no bug"),
        None => Checked::Missed("no configuration is named for it"),
    }
}

/// Looks for a bug in the configurations of a run, up to one in which the bug's own promise is
/// named, and gives all that find it.
pub(crate) fn search(bug: Bug) -> Vec<Found> {
    let mut found = Vec::new();
    let mut all = named::all();
    all.retain(|it| it.tier == Tier::Ci);
    all.sort_by_key(|it| it.pinned.map(|size| size.states));
    for configuration in all {
        found.extend(find(bug, configuration, SEARCH));
        if found.last().is_some_and(|it| it.invariant == Some(bug.invariant())) {
            break;
        }
    }
    found
}

fn find(bug: Bug, configuration: Configuration, most: Duration) -> Option<Found> {
    let name = configuration.name;
    let plan = Plan::new(configuration, 0);
    let limits = Limits { time: Some(most), memory_bytes: None };
    let options = Options { threads: 2, limits, ..Options::default() };
    arm(bug.mutant());
    let explored = catch_unwind(AssertUnwindSafe(|| explore(&plan, &options, &|_| true)));
    arm(None);
    let Ok(explored) = explored else {
        return Some(Found { configuration: name, invariant: None, states: 0, steps: 0 });
    };
    let found = explored.found?;
    Some(Found {
        configuration: name,
        invariant: Some(found.violation.invariant),
        states: explored.progress.states,
        steps: found.way.len(),
    })
}
