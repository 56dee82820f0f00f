//! Every state of a plan, level by level: all that can be reached in one step, in two, and so on.
//!
//! So whatever is found is found by a shortest way, with any number of threads. Threads share the
//! table of visited states; each level's new states are put into one list before the next begins.

use core::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use pinfold_core::invariant::Invariant;
use pinfold_sim::violation::{Judge, Violation};

use crate::level::{Broken, Kept, Level, New, Part};
use crate::node::{Node, Rests};
use crate::plan::{Plan, Step};
use crate::properties::Reached;
use crate::recoveries::{Endless, Recoveries, Recovers};
use crate::table::Table;
use crate::tree::{Number, Tree};
use crate::watchdog::{Limits, Spent, Watchdog};

/// Room for new states that a level has at least.
const ROOM: usize = 1 << 14;

/// What is asked of an exploration, beside its plan.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many threads.
    pub threads: usize,
    /// When it gives up.
    pub limits: Limits,
    /// How the recovery is tried.
    pub recovering: Recovering,
    /// So many states of a level are kept until they are looked at; the others are walked to again.
    pub kept: usize,
}

impl Default for Options {
    fn default() -> Self {
        let limits = Limits::default();
        Self { threads: 1, limits, recovering: Recovering::Onward, kept: 1 << 13 }
    }
}

/// How the recovery is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovering {
    /// Where its first step is taken anyway, the state behind that step recovers for both.
    Onward,
    /// From every state to its end.
    Whole,
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Distinct states.
    pub states: u64,
    /// Transitions between them.
    pub transitions: u64,
    /// The level that is looked at.
    pub depth: u32,
    /// States of this level, and how many of them were looked at.
    pub level: [u64; 2],
    /// Memory of the whole process.
    pub memory_bytes: u64,
    /// For how long.
    pub elapsed: Duration,
}

/// Why not every state was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A budget is spent.
    Spent(Spent),
    /// More states than the table, or a state's number, can hold.
    Full,
    /// Somebody stopped it.
    Told,
}

/// A promise that is broken, and how.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// What is broken.
    pub violation: Violation,
    /// The steps to it: no way is shorter.
    pub way: Vec<Step>,
    /// It is broken by the recovery after these steps, and not by the last one.
    pub by_recovery: bool,
}

/// What an exploration found.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// How far it came.
    pub progress: Progress,
    /// Why it did not see all; none when it did, or when it found something.
    pub stopped: Option<Stopped>,
    /// What it found.
    pub found: Option<Counterexample>,
    /// The longest recovery from any state, in steps of the World, and from which state.
    pub recovery: (u32, Vec<Step>),
    /// Situations that were reached, and how often each kind of choice was made.
    pub reached: Reached,
    /// Memory that it took itself for each state.
    pub bytes_per_state: u64,
}

impl Explored {
    /// Every state was visited, and no promise was broken.
    #[must_use]
    pub const fn is_exhaustive(&self) -> bool {
        self.stopped.is_none() && self.found.is_none()
    }
}

/// Visits every state of a plan. `show` hears of the progress a few times a second, and stops it
/// by false.
#[must_use]
pub fn explore(
    plan: &Plan,
    options: &Options,
    show: &(dyn Fn(&Progress) -> bool + Sync),
) -> Explored {
    let watchdog = Watchdog::new(options.limits);
    let run = |options| Exploration::new(plan, options, &watchdog).run(show);
    let made = run(options);
    if !made.found.as_ref().is_some_and(|it| it.by_recovery) {
        return made;
    }
    // What is broken behind a few steps of a recovery is broken from an earlier state already. What
    // was found stays found, whatever comes of that.
    let whole = run(&Options { recovering: Recovering::Whole, ..*options });
    if whole.found.is_some() { whole } else { made }
}

/// What is kept while states are visited.
struct Exploration<'a> {
    plan: &'a Plan,
    options: &'a Options,
    watchdog: &'a Watchdog,
    table: Table,
    tree: Tree,
    recoveries: Recoveries,
    rests: Rests,
    transitions: AtomicU64,
    stop: AtomicBool,
    made: Explored,
}

impl<'a> Exploration<'a> {
    fn new(plan: &'a Plan, options: &'a Options, watchdog: &'a Watchdog) -> Self {
        Self {
            plan,
            options,
            watchdog,
            table: Table::new(ROOM),
            tree: Tree::new(),
            recoveries: Recoveries::default(),
            rests: Rests::default(),
            transitions: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            made: Explored::default(),
        }
    }

    /// Level by level, until there is no next one.
    fn run(mut self, show: &(dyn Fn(&Progress) -> bool + Sync)) -> Explored {
        let first = match Node::first(self.plan) {
            Ok((first, _)) => first,
            Err(violation) => {
                let found = Counterexample { violation, way: Vec::new(), by_recovery: false };
                self.made.found = Some(found);
                return self.made;
            }
        };
        let digest = self.plan.digest(&first.world, &mut self.plan.words());
        self.table.insert(digest);
        self.table.give_number(digest, 0);
        let (mut level, mut before) = (0..self.tree.len(), 0);
        let mut kept = vec![Kept::from(Some(Box::new(first.clone())))];
        while !level.is_empty() && self.made.stopped.is_none() && self.made.found.is_none() {
            // A level may have twice as many children each as the one before it had.
            let children = level.len().div_ceil(before.max(1)).max(2);
            self.table.reserve(ROOM.max(level.len() * children * 2));
            before = level.len();
            let parts = self.run_level(&level, kept, &first, show);
            kept = self.merge(parts);
            level = level.end..self.tree.len();
            if !level.is_empty() {
                self.made.progress.depth += 1;
            }
        }
        self.follow_recoveries();
        self.made.bytes_per_state = self.bytes() as u64 / self.made.progress.states.max(1);
        self.made
    }

    /// Memory that grows with the states.
    fn bytes(&self) -> usize {
        self.table.bytes() + self.tree.bytes() + self.recoveries.bytes()
    }

    /// Looks at every state of a level with all threads, while this one watches.
    fn run_level(
        &mut self,
        states: &Range<usize>,
        kept: Vec<Kept>,
        first: &Node,
        show: &(dyn Fn(&Progress) -> bool + Sync),
    ) -> Vec<Part> {
        let level = Level {
            plan: self.plan,
            options: self.options,
            table: &self.table,
            tree: &self.tree,
            rests: &self.rests,
            states: states.clone(),
            next: AtomicUsize::new(states.start),
            transitions: &self.transitions,
            stop: &self.stop,
            full: AtomicBool::new(false),
            kept,
            keeps: AtomicUsize::new(0),
        };
        let (depth, watchdog) = (self.made.progress.depth, self.watchdog);
        let held = self.bytes();
        let progress = || Progress {
            states: self.table.count() as u64,
            transitions: self.transitions.load(Ordering::Relaxed),
            depth,
            level: [level.states.len(), level.looked_at()].map(|count| count as u64),
            memory_bytes: watchdog.memory_bytes(held),
            elapsed: watchdog.elapsed(),
        };
        let parts = level.run(first, || {
            let now = progress();
            if watchdog.is_spent(&now) || watchdog.is_due() && !show(&now) {
                self.stop.store(true, Ordering::Relaxed);
            }
        });
        self.made.progress = progress();
        let full = level.full.into_inner();
        self.made.stopped = match watchdog.spent() {
            Some(spent) => Some(Stopped::Spent(spent)),
            None if full => Some(Stopped::Full),
            None if self.stop.load(Ordering::Relaxed) => Some(Stopped::Told),
            None => None,
        };
        parts
    }

    /// Takes in what the threads found; gives those of the new states that are kept.
    fn merge(&mut self, parts: Vec<Part>) -> Vec<Kept> {
        let mut chunks = Vec::new();
        let mut broken: Option<Broken> = None;
        for part in parts {
            chunks.extend(part.chunks);
            self.made.reached.add(&part.reached);
            broken = [broken, part.broken].into_iter().flatten().min_by_key(Broken::order);
        }
        if let Some(Broken { state, step, violation }) = broken {
            let mut way = self.tree.way(state);
            let by_recovery = step.is_none();
            way.extend(step);
            self.made.found = Some(Counterexample { violation, way, by_recovery });
        }
        chunks.sort_unstable_by_key(|chunk| chunk.from);
        let (mut kept, mut recovers) = (Vec::new(), Vec::new());
        for chunk in chunks {
            recovers.extend(chunk.recovers);
            for New { parent, step, digest, node } in chunk.found {
                let Some(number) = self.tree.add(parent, step) else {
                    self.made.stopped = Some(Stopped::Full);
                    return kept;
                };
                self.table.give_number(digest, number);
                kept.push(Kept::from(node));
            }
        }
        // A level that was not looked at to its end has gaps, and nothing follows it.
        if self.made.stopped.is_none() && self.made.found.is_none() {
            for it in recovers {
                self.recoveries.add(match it {
                    Recovers::In(steps) => Recovers::In(steps),
                    Recovers::Through(steps, digest) => {
                        let to = self.table.number(digest);
                        Recovers::Through(steps, to.unwrap_or(Number::MAX))
                    }
                });
            }
        }
        kept
    }

    /// Every recovery must come to its end, as far as all of it was visited.
    fn follow_recoveries(&mut self) {
        if self.made.found.is_some() {
            return;
        }
        let is_complete = self.made.is_exhaustive();
        match self.recoveries.longest(is_complete) {
            Ok((steps, state)) => self.made.recovery = (steps, self.tree.way(state)),
            Err(Endless(state)) => {
                let what = "a recovery never comes to its end".to_string();
                let violation =
                    Violation { invariant: Invariant::L2, judge: Judge::Recovery, what };
                let way = self.tree.way(state);
                self.made.found = Some(Counterexample { violation, way, by_recovery: true });
            }
        }
    }
}
