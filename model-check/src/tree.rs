//! How each state was first reached: its parent and the step from there.
//!
//! No state is kept. A state is its way, and is walked to again when it is looked at; neighbours
//! share most of their way, so that costs little.

use std::collections::BTreeMap;

use pinfold_sim::digest::Digest;

use crate::plan::Step;

/// The number of a state, in the order in which they were found.
pub(crate) type Number = u32;

/// How every state was reached. See the [module](self).
#[derive(Debug)]
pub(crate) struct Tree {
    /// By state: the parent, and the step's number.
    rows: Vec<(Number, u32)>,
    steps: Vec<Step>,
    known: BTreeMap<u64, u32>,
}

impl Tree {
    /// The first state alone.
    pub(crate) fn new() -> Self {
        Self { rows: vec![(0, 0)], steps: Vec::new(), known: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<(Number, u32)>()
            + self.steps.len() * (size_of::<Step>() + 32)
    }

    /// Adds a state; none when there are too many to be numbered.
    pub(crate) fn add(&mut self, parent: Number, step: Step) -> Option<Number> {
        let number = Number::try_from(self.rows.len()).ok()?;
        let mut digest = Digest::default();
        digest.take(&step);
        let next = u32::try_from(self.steps.len()).ok()?;
        let step_number = *self.known.entry(digest.value()).or_insert(next);
        if step_number == next {
            self.steps.push(step);
        }
        self.rows.push((parent, step_number));
        Some(number)
    }

    pub(crate) fn parent(&self, state: Number) -> Number {
        self.rows[state as usize].0
    }

    /// The step from a state's parent to it.
    pub(crate) fn step(&self, state: Number) -> Step {
        self.steps[self.rows[state as usize].1 as usize]
    }

    /// The steps that lead to a state.
    pub(crate) fn way(&self, state: Number) -> Vec<Step> {
        let mut way = Vec::new();
        let mut at = state;
        while at > 0 {
            way.push(self.step(at));
            at = self.parent(at);
        }
        way.reverse();
        way
    }
}
