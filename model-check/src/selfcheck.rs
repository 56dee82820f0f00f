//! Whether a check can be trusted: the same configuration in other ways, which must agree.
//!
//! Another key for the digests, another number of threads and another engine must see the same
//! states and transitions. Without symmetry, or without merged steps, there are more of them, and
//! the verdict must be the same; without symmetry, they must have as many canonical forms.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::configuration::Configuration;
use crate::explore::{Explored, Options, Progress, explore};
use crate::model::compare;
use crate::node::Node;
use crate::plan::Plan;
use crate::verdict::Verdict;

/// A way to check a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As it is checked.
    Plain,
    /// With other digests.
    AnotherKey,
    /// With one thread, and with two.
    AnotherNumberOfThreads,
    /// By stateright.
    Stateright,
    /// Nothing counts as interchangeable.
    WithoutSymmetry,
    /// Every step apart.
    WithoutMerging,
}

impl Way {
    /// All of them, the plain one first.
    pub const ALL: [Self; 6] = [
        Self::Plain,
        Self::AnotherKey,
        Self::AnotherNumberOfThreads,
        Self::Stateright,
        Self::WithoutSymmetry,
        Self::WithoutMerging,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "as it is checked",
            Self::AnotherKey => "another key for the digests",
            Self::AnotherNumberOfThreads => "another number of threads",
            Self::Stateright => "stateright, breadth first",
            Self::WithoutSymmetry => "without symmetry",
            Self::WithoutMerging => "without merged steps",
        }
    }

    /// It must see the very same states.
    const fn is_same(self) -> bool {
        match self {
            Self::Plain | Self::AnotherKey | Self::AnotherNumberOfThreads | Self::Stateright => {
                true
            }
            Self::WithoutSymmetry | Self::WithoutMerging => false,
        }
    }
}

/// What one way gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which way.
    pub way: Way,
    /// Distinct states.
    pub states: u64,
    /// Transitions.
    pub transitions: u64,
    /// What came of it.
    pub verdict: Verdict,
    /// It agrees with the plain way, as far as it must.
    pub agrees: bool,
}

/// Checks a configuration in every way. `show` hears of the progress, and stops it by false.
#[must_use]
pub fn self_check(
    configuration: &Configuration,
    options: &Options,
    show: &(dyn Fn(&Progress) -> bool + Sync),
) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for way in Way::ALL {
        let mut row = check(way, configuration, options, show);
        if let Some(plain) = rows.first() {
            if way == Way::WithoutSymmetry && row.verdict == Verdict::Exhaustive {
                row.agrees = forms(configuration) == Some(plain.states);
            }
            let same = (row.states, row.transitions) == (plain.states, plain.transitions);
            // What found something says nothing of sizes, and what was stopped says nothing at all.
            let is_whole = row.verdict == Verdict::Exhaustive;
            let is_stopped = [row.verdict, plain.verdict].contains(&Verdict::Incomplete);
            row.agrees &= row.verdict == plain.verdict && (same || !is_whole || !way.is_same());
            row.agrees |= is_stopped;
        }
        rows.push(row);
    }
    rows
}

/// How many canonical forms the states have that are visited without symmetry: as many as are
/// visited with it, or something counts as interchangeable that is not. None where a promise is
/// broken.
#[must_use]
pub fn forms(configuration: &Configuration) -> Option<u64> {
    let reduced = Plan::new(configuration.clone(), 0);
    let plan = Plan::new(configuration.clone().without_symmetry(), 0);
    let (mut words, mut seen) = (plan.words(), Vec::new());
    let (mut choices, mut steps) = (Vec::new(), Vec::new());
    let (mut known, mut forms) = (BTreeSet::new(), BTreeSet::new());
    let mut waiting = vec![Node::first(&plan).ok()?.0];
    while let Some(node) = waiting.pop() {
        if !known.insert(plan.digest(&node.world, &mut words)) {
            continue;
        }
        forms.insert(reduced.digest(&node.world, &mut words));
        plan.steps(&node.world, &mut choices, &mut steps);
        for step in &steps {
            let mut next = node.clone();
            next.take(&plan, *step, &mut seen, |_, _| {}).ok()?;
            if !known.contains(&plan.digest(&next.world, &mut words)) {
                waiting.push(next);
            }
        }
    }
    Some(forms.len() as u64)
}

fn check(
    way: Way,
    configuration: &Configuration,
    options: &Options,
    show: &(dyn Fn(&Progress) -> bool + Sync),
) -> Row {
    let mut plan = Plan::new(configuration.clone(), 0);
    let mut options = *options;
    match way {
        Way::Plain => {}
        Way::AnotherKey => plan = Plan::new(configuration.clone(), 1),
        Way::AnotherNumberOfThreads => options.threads = if options.threads == 1 { 2 } else { 1 },
        Way::WithoutSymmetry => plan = Plan::new(configuration.clone().without_symmetry(), 0),
        Way::WithoutMerging => plan = Plan::new(configuration.clone().without_merging(), 0),
        Way::Stateright => {
            let most = options.limits.time.unwrap_or(Duration::from_secs(3600));
            let seen = compare(plan, most);
            let verdict = match (seen.broken.is_empty(), seen.is_complete) {
                (false, _) => Verdict::Violated,
                (true, false) => Verdict::Incomplete,
                (true, true) => Verdict::Exhaustive,
            };
            let (states, transitions) = (seen.states, seen.transitions);
            return Row { way, states, transitions, verdict, agrees: true };
        }
    }
    let explored: Explored = explore(&plan, &options, show);
    let (size, verdict) = (explored.size(), explored.verdict(None));
    Row { way, states: size.states, transitions: size.transitions, verdict, agrees: true }
}
