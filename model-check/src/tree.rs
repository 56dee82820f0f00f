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

#[cfg(test)]
mod tests {
    use pinfold_sim::world::choice::{Choice, Coordinate};

    use super::*;

    #[test]
    fn a_way_leads_from_the_first_state_and_a_step_is_kept_once() {
        let step = |what, unheard| Step { choice: Choice::Coordinator(what), unheard };
        let (sync, unheard) = (step(Coordinate::Sync, false), step(Coordinate::Sync, true));
        let mut tree = Tree::new();
        assert_eq!(tree.add(0, sync), Some(1));
        assert_eq!(tree.add(1, unheard), Some(2));
        assert_eq!(tree.add(0, unheard), Some(3));
        assert_eq!(tree.add(2, sync), Some(4));
        assert_eq!(tree.way(0), []);
        assert_eq!(tree.way(4), [sync, unheard, sync]);
        assert_eq!(tree.way(3), [unheard]);
        assert_eq!((tree.parent(4), tree.len(), tree.steps.len()), (2, 5, 2));
    }
}
