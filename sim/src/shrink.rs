//! From a long run that breaks a promise to a short one that breaks the same.
//!
//! Choices are left out, first many at once and then few at a time, as long as the same
//! promise is still broken. What is no choice any more gives way to the nearest that is one, or is
//! skipped. Then a bounded search says how
//! far what is left is the shortest there is.

use std::collections::BTreeSet;
use std::sync::Arc;

use pinfold_core::invariant::Invariant;

use crate::digest::Digest;
use crate::judges::Bench;
use crate::run::Course;
use crate::world::Kind;
use crate::world::choice::Choice;
use crate::world::setup::Setup;

/// How many replays shrinking may take.
const REPLAYS: u32 = 20_000;
/// Runs of up to so many choices are left out from every place.
const WINDOW: usize = 6;
/// Up to so many choices, pairs of them are left out as well.
const PAIRS: usize = 60;

/// What is to be shrunk.
#[derive(Clone, Debug)]
pub struct Case {
    /// The size of the World.
    pub setup: Arc<Setup>,
    /// What happens.
    pub choices: Vec<Choice>,
    /// Whether a recovery follows.
    pub recovers: bool,
    /// Who looks on.
    pub bench: Bench,
    /// The promise that is broken.
    pub invariant: Invariant,
}

/// What is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The size of the World, with everything at its usual value that does not matter.
    pub setup: Arc<Setup>,
    /// What happens.
    pub choices: Vec<Choice>,
    /// How many replays it took.
    pub replays: u32,
}

/// How far a sequence is known to be the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// No sequence of its own choices, in whatever order and however often each, is shorter.
    pub shortest_of_its_own: bool,
    /// No sequence of any choices with at most so many steps breaks a promise.
    pub none_within: u32,
    /// How many situations were looked at.
    pub situations: u32,
}

impl Case {
    /// Replays choices: none when the promise is not broken; else what was chosen, up to the choice
    /// that broke it.
    fn breaks(&self, setup: &Arc<Setup>, choices: &[Choice]) -> Option<Vec<Choice>> {
        let mut course = Course::new(Arc::clone(setup), self.bench).ok()?;
        let mut made = Vec::with_capacity(choices.len());
        for choice in choices {
            let Some(choice) = course.world.nearest(*choice) else { continue };
            let kind = course.world.kind_of(choice);
            made.push(choice);
            match course.step(kind, choice, &mut ()) {
                Ok(_) => {}
                Err(found) => {
                    return (found.violation.invariant == self.invariant).then_some(made);
                }
            }
        }
        let found = match course.recount() {
            Err(found) => found,
            Ok(()) if self.recovers => course.recover(&mut ()).err()?,
            Ok(()) => return None,
        };
        (found.violation.invariant == self.invariant).then_some(made)
    }

    /// Shrinks the case; none when it does not break its promise at all.
    #[must_use]
    pub fn shrink(&self) -> Option<Shrunk> {
        let choices = self.breaks(&self.setup, &self.choices)?;
        let mut work = Work { case: self, setup: Arc::clone(&self.setup), choices, replays: 1 };
        work.simplify();
        work.leave_out_processes();
        work.leave_out_kinds();
        let mut size = work.choices.len().div_ceil(2);
        while size > WINDOW {
            work.leave_out(size, size);
            size = size.div_ceil(2);
        }
        work.leave_out_kinds();
        let mut before = usize::MAX;
        while work.choices.len() < before {
            before = work.choices.len();
            (1..=WINDOW).rev().for_each(|size| work.leave_out(size, 1));
        }
        if work.choices.len() <= PAIRS {
            work.leave_out_pairs();
        }
        let Work { setup, choices, replays, .. } = work;
        Some(Shrunk { setup, choices, replays })
    }

    /// Searches for something shorter than `choices`, by up to so many situations each.
    #[must_use]
    pub fn certify(&self, setup: &Arc<Setup>, choices: &[Choice], most: u32) -> Certificate {
        let length = u32::try_from(choices.len()).unwrap_or(u32::MAX);
        let mut own: Vec<Choice> = Vec::new();
        for choice in choices {
            if !own.contains(choice) {
                own.push(*choice);
            }
        }
        let own = self.search(setup, Some(&own), length.saturating_sub(1), most);
        let any = self.search(setup, None, length.saturating_sub(1), most);
        Certificate {
            shortest_of_its_own: own.0 + 1 >= length,
            none_within: any.0,
            situations: own.1 + any.1,
        }
    }

    /// Breadth first, to a depth: up to which depth nothing was found, and how many situations
    /// there were.
    fn search(
        &self,
        setup: &Arc<Setup>,
        own: Option<&[Choice]>,
        deepest: u32,
        most: u32,
    ) -> (u32, u32) {
        let Ok(first) = Course::new(Arc::clone(setup), self.bench) else { return (0, 0) };
        let (mut known, mut layer) = (BTreeSet::new(), vec![first]);
        let mut situations = 0;
        for depth in 0..=deepest {
            let mut next = Vec::new();
            for course in &layer {
                if self.falls(course.clone()) {
                    return (depth.saturating_sub(1), situations);
                }
                let mut choices = Vec::new();
                match own {
                    Some(own) => choices.extend(own.iter().filter(|it| course.world.allows(**it))),
                    None => course.world.choices(&mut choices),
                }
                for choice in choices.into_iter().filter(|_| depth < deepest) {
                    let mut course = course.clone();
                    let kind = course.world.kind_of(choice);
                    if course.step(kind, choice, &mut ()).is_err() {
                        return (depth, situations);
                    }
                    situations += 1;
                    if situations > most {
                        // Not all of this depth was looked at.
                        return (depth.saturating_sub(1), situations);
                    }
                    let mut digest = Digest::default();
                    digest.take(&(&course.world, &course.judges));
                    if known.insert(digest.value()) {
                        next.push(course);
                    }
                }
            }
            layer = next;
        }
        (deepest, situations)
    }

    fn falls(&self, mut course: Course) -> bool {
        course.recount().is_err() || self.recovers && course.recover(&mut ()).is_err()
    }
}

/// A case on its way.
struct Work<'a> {
    case: &'a Case,
    setup: Arc<Setup>,
    choices: Vec<Choice>,
    replays: u32,
}

impl Work<'_> {
    fn try_choices(&mut self, choices: &[Choice]) -> bool {
        if self.replays >= REPLAYS {
            return false;
        }
        self.replays += 1;
        let made = self.case.breaks(&self.setup, choices);
        let shorter = made.filter(|made| made.len() < self.choices.len());
        shorter.map(|made| self.choices = made).is_some()
    }

    /// Leaves out so many choices at once, from the end to the beginning, going back by `stride`.
    fn leave_out(&mut self, size: usize, stride: usize) {
        let mut end = self.choices.len();
        while end > 0 {
            let mut fewer = self.choices.clone();
            fewer.drain(end.saturating_sub(size)..end);
            self.try_choices(&fewer);
            end = end.saturating_sub(stride).min(self.choices.len());
        }
    }

    /// Leaves out everything that one process does.
    fn leave_out_processes(&mut self) {
        for process in 0..self.setup.processes() {
            self.leave_out_all(|choice| choice.process() == Some(process));
        }
    }

    /// Leaves out every choice of one kind: first what goes wrong.
    fn leave_out_kinds(&mut self) {
        for kind in Kind::faults().chain(Kind::ordinary()) {
            self.leave_out_all(|choice| Kind::of(choice) == kind);
        }
    }

    fn leave_out_all(&mut self, leaves: impl Fn(Choice) -> bool) {
        let fewer: Vec<_> = self.choices.iter().copied().filter(|it| !leaves(*it)).collect();
        if fewer.len() < self.choices.len() {
            self.try_choices(&fewer);
        }
    }

    fn leave_out_pairs(&mut self) {
        let mut first = 0;
        while first < self.choices.len() {
            let mut second = first + 1;
            while second < self.choices.len() {
                let mut fewer = self.choices.clone();
                fewer.remove(second);
                fewer.remove(first);
                if !self.try_choices(&fewer) {
                    second += 1;
                }
            }
            first += 1;
        }
    }

    /// Gives everything its usual value that does not matter.
    fn simplify(&mut self) {
        let usual = Setup::default();
        let now = Arc::clone(&self.setup);
        let unanswered = |setup: &mut Setup| setup.limits.unanswered = now.limits.unanswered;
        let changes: [&dyn Fn(&mut Setup); 4] = [
            &|setup| setup.limits = usual.limits,
            &|setup| {
                setup.limits = usual.limits;
                unanswered(setup);
            },
            &|setup| setup.policies = usual.policies,
            &|setup| setup.overrun = 0,
        ];
        for change in changes {
            let mut setup = (*self.setup).clone();
            change(&mut setup);
            let setup = Arc::new(setup);
            self.replays += 1;
            if let Some(made) = self.case.breaks(&setup, &self.choices) {
                (self.setup, self.choices) = (setup, made);
            }
        }
    }
}
