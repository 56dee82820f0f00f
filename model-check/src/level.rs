//! One level: threads look at each of its states and find those of the next one.

use core::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use pinfold_sim::caught::caught;
use pinfold_sim::likeness::Words;
use pinfold_sim::recovery::Recovery;
use pinfold_sim::seen::Seen;
use pinfold_sim::violation::Violation;
use pinfold_sim::world::choice::Choice;

use crate::explore::{Options, Recovering};
use crate::node::{Node, Rests};
use crate::plan::{Plan, Step};
use crate::properties::Reached;
use crate::recoveries::Recovers;
use crate::table::{Inserted, Table};
use crate::tree::{Number, Tree};

/// How many states a thread takes at once.
const CHUNK: usize = 256;
/// How often somebody looks in.
const LOOKS: Duration = Duration::from_millis(50);
/// A level, and what its threads share.
pub(crate) struct Level<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) options: &'a Options,
    pub(crate) table: &'a Table,
    pub(crate) tree: &'a Tree,
    pub(crate) rests: &'a Rests,
    /// Its states, and the next one to be looked at.
    pub(crate) states: Range<usize>,
    pub(crate) next: AtomicUsize,
    pub(crate) transitions: &'a AtomicU64,
    /// Whether to stop, and whether the table was full.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) full: AtomicBool,
    /// Those of its states that were kept, and how many of the next level were.
    pub(crate) kept: Vec<Kept>,
    pub(crate) keeps: AtomicUsize,
}

/// A state that was kept until it is looked at; or none.
pub(crate) type Kept = Mutex<Option<Box<Node>>>;

/// A new state.
pub(crate) struct New {
    /// Its parent, and the step from there.
    pub(crate) parent: Number,
    pub(crate) step: Step,
    pub(crate) digest: u64,
    /// Itself, where it is kept.
    pub(crate) node: Option<Box<Node>>,
}

/// A broken promise.
pub(crate) struct Broken {
    /// The state, and the step from there that breaks it; none where its recovery does.
    pub(crate) state: Number,
    pub(crate) step: Option<Step>,
    pub(crate) violation: Violation,
}

impl Broken {
    /// What is broken at a state is a step shorter than what is broken behind it.
    pub(crate) const fn order(&self) -> (bool, Number) {
        (self.step.is_some(), self.state)
    }
}

/// What was found behind a few states that follow each other.
pub(crate) struct Chunk {
    /// The first of them.
    pub(crate) from: usize,
    pub(crate) found: Vec<New>,
    /// How each of them recovers: through the state of a digest.
    pub(crate) recovers: Vec<Recovers<u64>>,
}

/// What one thread found in a level.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) chunks: Vec<Chunk>,
    /// The broken promise of the shortest way.
    pub(crate) broken: Option<Broken>,
    pub(crate) reached: Reached,
}

impl Level<'_> {
    /// How many of its states were looked at.
    pub(crate) fn looked_at(&self) -> usize {
        self.next.load(Ordering::Relaxed).min(self.states.end) - self.states.start
    }

    /// Looks at every state with all threads, while this one looks in now and then.
    ///
    /// # Panics
    /// With the words of a thread that panicked.
    pub(crate) fn run(&self, first: &Node, mut look_in: impl FnMut()) -> Vec<Part> {
        let (done, parts) = mpsc::channel();
        let work = |done: &mpsc::Sender<_>| {
            // Whoever is gone needs no part of it.
            drop(done.send(caught(|| Worker::new(self, first).run())));
        };
        let made: Vec<Result<Part, String>> = std::thread::scope(|scope| {
            for _ in 0..self.options.threads {
                let done = done.clone();
                scope.spawn(move || work(&done));
            }
            drop(done);
            let mut made = Vec::new();
            loop {
                match parts.recv_timeout(LOOKS) {
                    Ok(part) => made.push(part),
                    Err(mpsc::RecvTimeoutError::Disconnected) => return made,
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
                if made.iter().any(Result::is_err) {
                    self.stop.store(true, Ordering::Relaxed);
                }
                look_in();
            }
        });
        let parts: Result<Vec<Part>, String> = made.into_iter().collect();
        parts.unwrap_or_else(|words| resume_unwind(Box::new(words)))
    }
}

/// One thread in one level.
struct Worker<'a> {
    level: &'a Level<'a>,
    /// The way to the state that is looked at: each state on it, from the first one on.
    way: Vec<(Number, Node)>,
    part: Part,
    words: Words<'a>,
    /// Room for what is offered, and for what is seen.
    choices: Vec<Choice>,
    steps: Vec<Step>,
    seen: Vec<Seen>,
}

impl<'a> Worker<'a> {
    fn new(level: &'a Level<'a>, first: &Node) -> Self {
        Self {
            level,
            way: vec![(0, first.clone())],
            part: Part::default(),
            words: level.plan.words(),
            choices: Vec::new(),
            steps: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn run(mut self) -> Part {
        let level = self.level;
        loop {
            let from = level.next.fetch_add(CHUNK, Ordering::Relaxed);
            if from >= level.states.end {
                return self.part;
            }
            let mut chunk = Chunk { from, found: Vec::new(), recovers: Vec::new() };
            for state in from..level.states.end.min(from + CHUNK) {
                if level.stop.load(Ordering::Relaxed) {
                    return self.part;
                }
                let Ok(state) = Number::try_from(state) else { continue };
                if let Err(violation) = self.visit(state, &mut chunk) {
                    self.broken(Broken { state, step: None, violation });
                }
            }
            self.part.chunks.push(chunk);
        }
    }

    /// Tries a state's recovery, and takes every step from there.
    fn visit(&mut self, state: Number, chunk: &mut Chunk) -> Result<(), Violation> {
        let level = self.level;
        let node = self.reach(state)?;
        level.plan.steps(&node.world, &mut self.choices, &mut self.steps);
        let steps = core::mem::take(&mut self.steps);
        level.transitions.fetch_add(steps.len() as u64, Ordering::Relaxed);
        let onward = match level.options.recovering {
            Recovering::Whole => None,
            Recovering::Onward => Recovery::first(&node.world)
                .map(|choice| Step { choice, unheard: false })
                .filter(|first| steps.contains(first)),
        };
        if onward.is_none() {
            let taken = node.recover(level.plan, &mut self.words, level.rests)?;
            chunk.recovers.push(Recovers::In(taken));
        }
        let mut node = Some(node);
        for (step, left) in steps.iter().zip((0..steps.len()).rev()) {
            // The last step may have the state itself.
            let next = if left > 0 { node.clone() } else { node.take() };
            let Some(next) = next else { break };
            let taken = self.take(state, *step, next, chunk);
            if onward == Some(*step) {
                let (choices, digest) = taken.unwrap_or((0, 0));
                chunk.recovers.push(Recovers::Through(choices, digest));
            }
        }
        self.steps = steps;
        Ok(())
    }

    /// Takes a step from a state, and gives how many choices that were and where it leads; none
    /// where it breaks a promise.
    fn take(
        &mut self,
        state: Number,
        step: Step,
        mut node: Node,
        chunk: &mut Chunk,
    ) -> Option<(u32, u64)> {
        let level = self.level;
        let (reached, mut choices) = (&mut self.part.reached, 0);
        reached.step(&node.world, step.choice);
        let taken = node.take(level.plan, step, &mut self.seen, |_, seen| {
            choices += 1;
            reached.see(seen);
        });
        if let Err(violation) = taken {
            self.broken(Broken { state, step: Some(step), violation });
            return None;
        }
        let digest = level.plan.digest(&node.world, &mut self.words);
        match level.table.insert(digest) {
            Inserted::New => {
                let keeps = level.keeps.fetch_add(1, Ordering::Relaxed) < level.options.kept;
                let node = keeps.then(|| Box::new(node));
                chunk.found.push(New { parent: state, step, digest, node });
            }
            Inserted::Known => {}
            Inserted::Full => {
                level.full.store(true, Ordering::Relaxed);
                level.stop.store(true, Ordering::Relaxed);
            }
        }
        Some((choices, digest))
    }

    fn broken(&mut self, broken: Broken) {
        if self.part.broken.as_ref().is_none_or(|other| broken.order() < other.order()) {
            self.part.broken = Some(broken);
        }
    }

    /// A state of this level: as it was kept, or walked to again.
    fn reach(&mut self, state: Number) -> Result<Node, Violation> {
        let kept = &self.level.kept[state as usize - self.level.states.start];
        if let Some(node) = kept.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Ok(*node);
        }
        self.walk(self.level.tree.parent(state))?;
        let (_, node) = self.way.last().unwrap_or_else(|| unreachable!("the first state stays"));
        let mut node = node.clone();
        node.take(self.level.plan, self.level.tree.step(state), &mut self.seen, |_, _| {})?;
        Ok(node)
    }

    /// Walks to a state, from the last state that its way shares with the way walked before.
    fn walk(&mut self, state: Number) -> Result<(), Violation> {
        let tree = self.level.tree;
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
        while let Some(next) = missing.pop() {
            let Some((_, node)) = self.way.last() else { break };
            let mut node = node.clone();
            node.take(self.level.plan, tree.step(next), &mut self.seen, |_, _| {})?;
            self.way.push((next, node));
        }
        Ok(())
    }
}
