//! Every state of a plan, level by level: all that can be reached in one step, in two, and so on.
//!
//! So whatever is found is found by a shortest way, with any number of threads. Threads share the
//! table of visited states; each level's new states are put into one list before the next begins.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use pinfold_sim::likeness::Words;
use pinfold_sim::violation::Violation;

use crate::configuration::{Plan, Step};
use crate::node::{Node, Rests};
use crate::properties::Reached;
use crate::table::{Inserted, Table};
use crate::tree::{Number, Tree};
use crate::watchdog::{Limits, Spent, Watchdog};

/// How many states a thread takes at once.
const CHUNK: usize = 256;
/// How often the budgets are looked at.
const LOOKS: Duration = Duration::from_millis(50);
/// So many states of a level are kept until they are looked at; the others are walked to again.
const KEPT: usize = 1 << 12;
/// How many slots a table begins with.
const SLOTS: usize = 1 << 16;

/// What is asked of an exploration, beside its plan.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many threads.
    pub threads: usize,
    /// When it gives up.
    pub limits: Limits,
    /// Whether the recovery is tried from every state.
    pub recovers: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 1, limits: Limits::default(), recovers: true }
    }
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
    /// It is broken by the recovery after these steps, or by the recount, and not by the last one.
    pub at_rest: bool,
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

/// What all threads share.
struct Shared<'a> {
    plan: &'a Plan,
    options: &'a Options,
    table: &'a Table,
    tree: &'a Tree,
    /// The states of this level, and the next one to be looked at.
    level: core::ops::Range<usize>,
    next: AtomicUsize,
    transitions: &'a AtomicU64,
    stop: &'a AtomicBool,
    full: AtomicBool,
    /// States of this level that were kept, and how many of the next one were.
    kept: Vec<Kept>,
    keeps: AtomicUsize,
    rests: &'a Rests,
}

impl Shared<'_> {
    /// What stopped it, if anything did.
    fn stopped(&self, watchdog: &Watchdog) -> Option<Stopped> {
        match watchdog.spent() {
            Some(spent) => Some(Stopped::Spent(spent)),
            None if self.full.load(Ordering::Relaxed) => Some(Stopped::Full),
            None if self.stop.load(Ordering::Relaxed) => Some(Stopped::Told),
            None => None,
        }
    }
}

/// A state that was kept until it is looked at; or none.
type Kept = Mutex<Option<Box<Node>>>;

/// A new state: its parent, the step from there, and itself where it is kept.
type Found = (Number, Step, Option<Box<Node>>);

/// What one thread found in one level.
#[derive(Default)]
struct Part {
    /// The new states, by the place of the chunk in which they were found.
    found: Vec<(usize, Vec<Found>)>,
    /// The broken promise of the shortest way.
    broken: Option<(Number, Option<Step>, Violation)>,
    recovery: (u32, Number),
    reached: Reached,
}

/// Visits every state of a plan. `show` hears of the progress a few times a second, and stops it
/// by false.
#[must_use]
pub fn explore(
    plan: &Plan,
    options: &Options,
    show: &(dyn Fn(&Progress) -> bool + Sync),
) -> Explored {
    let mut table = Table::new(SLOTS);
    let mut tree = Tree::new();
    let watchdog = Watchdog::new(options.limits);
    let (transitions, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut made = Explored::default();
    let first = match Node::first(plan) {
        Ok((first, _)) => first,
        Err(violation) => {
            made.found = Some(Counterexample { violation, way: Vec::new(), at_rest: false });
            return made;
        }
    };
    table.insert(plan.digest(&first.world, &mut plan.words()));
    let (mut from, mut before, mut slowest) = (0, 0, (0, 0));
    let rests = Rests::default();
    let mut kept = vec![Mutex::new(Some(Box::new(first.clone())))];
    while from < tree.len() && made.stopped.is_none() && made.found.is_none() {
        let level = from..tree.len();
        // A level may have twice as many children each as the one before it had.
        let children = level.len().div_ceil(before.max(1)).max(2);
        table.reserve(level.len() * children * 2);
        before = level.len();
        from = level.end;
        let shared = Shared {
            plan,
            options,
            table: &table,
            tree: &tree,
            level: level.clone(),
            next: AtomicUsize::new(level.start),
            transitions: &transitions,
            stop: &stop,
            full: AtomicBool::new(false),
            kept: core::mem::take(&mut kept),
            keeps: AtomicUsize::new(0),
            rests: &rests,
        };
        let progress = || Progress {
            states: table.count() as u64,
            transitions: transitions.load(Ordering::Relaxed),
            depth: made.progress.depth,
            level: [level.len(), shared.next.load(Ordering::Relaxed).min(level.end) - level.start]
                .map(|count| count as u64),
            memory_bytes: watchdog.memory_bytes(table.bytes() + tree.bytes()),
            elapsed: watchdog.elapsed(),
        };
        let parts = run_level(&shared, &first, &watchdog, &progress, show);
        made.progress = progress();
        made.stopped = shared.stopped(&watchdog);
        let chunks = merge(&mut made, parts, &mut slowest, &tree);
        for (parent, step, node) in chunks {
            if tree.add(parent, step).is_none() {
                made.stopped = Some(Stopped::Full);
                break;
            }
            kept.push(Mutex::new(node));
        }
        if from < tree.len() {
            made.progress.depth += 1;
        }
    }
    made.recovery = (slowest.0, tree.way(slowest.1));
    made.bytes_per_state = (table.bytes() + tree.bytes()) as u64 / made.progress.states.max(1);
    made
}

/// Takes in what the threads found; gives the new states in their order.
fn merge(
    made: &mut Explored,
    parts: Vec<Part>,
    slowest: &mut (u32, Number),
    tree: &Tree,
) -> impl Iterator<Item = Found> + use<> {
    let mut chunks = Vec::new();
    let mut broken: Option<(Number, Option<Step>, Violation)> = None;
    for part in parts {
        chunks.extend(part.found);
        made.reached.add(&part.reached);
        if part.recovery.0 > slowest.0 {
            *slowest = part.recovery;
        }
        // What is broken at a state is a step shorter than what is broken behind it.
        let is_before = |now: &(Number, Option<Step>, Violation)| {
            broken.as_ref().is_none_or(|it| (now.1.is_some(), now.0) < (it.1.is_some(), it.0))
        };
        broken = part.broken.filter(is_before).or(broken.take());
    }
    if let Some((state, step, violation)) = broken {
        let mut way = tree.way(state);
        let at_rest = step.is_none();
        way.extend(step);
        made.found = Some(Counterexample { violation, way, at_rest });
    }
    chunks.sort_unstable_by_key(|chunk| chunk.0);
    chunks.into_iter().flat_map(|chunk| chunk.1)
}

/// Looks at every state of a level with all threads, while this one watches.
fn run_level(
    shared: &Shared<'_>,
    first: &Node,
    watchdog: &Watchdog,
    progress: &(impl Fn() -> Progress + Sync),
    show: &(dyn Fn(&Progress) -> bool + Sync),
) -> Vec<Part> {
    let (done, parts) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..shared.options.threads {
            let done = done.clone();
            // Whoever is gone needs no part of it.
            scope.spawn(move || drop(done.send(Worker::new(shared, first).run())));
        }
        drop(done);
        let mut made = Vec::new();
        loop {
            match parts.recv_timeout(LOOKS) {
                Ok(part) => made.push(part),
                Err(mpsc::RecvTimeoutError::Disconnected) => return made,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            let now = progress();
            if watchdog.is_spent(&now) || watchdog.is_due() && !show(&now) {
                shared.stop.store(true, Ordering::Relaxed);
            }
        }
    })
}

/// One thread in one level.
struct Worker<'a> {
    shared: &'a Shared<'a>,
    /// The way to the state that is looked at: each state on it, from the first one on.
    way: Vec<(Number, Node)>,
    part: Part,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared<'a>, first: &Node) -> Self {
        Self { shared, way: vec![(0, first.clone())], part: Part::default() }
    }

    fn run(mut self) -> Part {
        let shared = self.shared;
        let (mut choices, mut steps, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        let mut words = shared.plan.words();
        loop {
            let from = shared.next.fetch_add(CHUNK, Ordering::Relaxed);
            if from >= shared.level.end {
                return self.part;
            }
            let mut found = Vec::new();
            for state in from..shared.level.end.min(from + CHUNK) {
                if shared.stop.load(Ordering::Relaxed) {
                    return self.part;
                }
                let Ok(state) = Number::try_from(state) else { continue };
                let looked = self.reach(state).and_then(|node| {
                    self.look(state, &node, &mut words)?;
                    Ok(node)
                });
                let node = match looked {
                    Ok(node) => node,
                    Err(violation) => {
                        self.broken(state, None, violation);
                        continue;
                    }
                };
                shared.plan.steps(&node.world, &mut choices, &mut steps);
                shared.transitions.fetch_add(steps.len() as u64, Ordering::Relaxed);
                for step in &steps {
                    let mut next = node.clone();
                    self.part.reached.step(&node.world, step.choice);
                    let reached = &mut self.part.reached;
                    let taken = next.take(shared.plan, *step, &mut seen, |_, it| reached.see(it));
                    if let Err(violation) = taken {
                        self.broken(state, Some(*step), violation);
                        continue;
                    }
                    match shared.table.insert(shared.plan.digest(&next.world, &mut words)) {
                        Inserted::New => {
                            let keeps = shared.keeps.fetch_add(1, Ordering::Relaxed) < KEPT;
                            found.push((state, *step, keeps.then(|| Box::new(next))));
                        }
                        Inserted::Known => {}
                        Inserted::Full => {
                            shared.full.store(true, Ordering::Relaxed);
                            shared.stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
            }
            self.part.found.push((from, found));
        }
    }

    fn broken(&mut self, state: Number, step: Option<Step>, violation: Violation) {
        let is_before = self
            .part
            .broken
            .as_ref()
            .is_none_or(|(other, of, _)| (step.is_some(), state) < (of.is_some(), *other));
        if is_before {
            self.part.broken = Some((state, step, violation));
        }
    }

    /// Judges a state as it stands.
    fn look(&mut self, state: Number, node: &Node, words: &mut Words<'_>) -> Result<(), Violation> {
        node.recount()?;
        if self.shared.options.recovers {
            let steps = node.recover(self.shared.plan, words, self.shared.rests)?;
            if steps > self.part.recovery.0 {
                self.part.recovery = (steps, state);
            }
        }
        Ok(())
    }

    /// A state of this level: as it was kept, or walked to again.
    fn reach(&mut self, state: Number) -> Result<Node, Violation> {
        let kept = &self.shared.kept[state as usize - self.shared.level.start];
        if let Some(node) = kept.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Ok(*node);
        }
        self.walk(state)?;
        let (_, node) = self.way.last().unwrap_or_else(|| unreachable!("the first state stays"));
        Ok(node.clone())
    }

    /// Walks to a state, from the last state that its way shares with the way walked before.
    fn walk(&mut self, state: Number) -> Result<(), Violation> {
        let tree = self.shared.tree;
        let mut missing = Vec::new();
        let mut at = state;
        loop {
            // A parent has a smaller number than its children.
            while self.way.last().is_some_and(|it| it.0 > at) {
                self.way.pop();
            }
            if self.way.last().is_some_and(|it| it.0 == at) {
                break;
            }
            missing.push(at);
            at = tree.parent(at);
        }
        let mut seen = Vec::new();
        while let Some(next) = missing.pop() {
            let Some((_, node)) = self.way.last() else { break };
            let mut node = node.clone();
            node.take(self.shared.plan, tree.step(next), &mut seen, |_, _| {})?;
            self.way.push((next, node));
        }
        Ok(())
    }
}
