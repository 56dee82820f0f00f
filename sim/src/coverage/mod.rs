//! The coverage of runs: what could have happened, what did, and what came of it.
//!
//! It looks at every step, and protects whoever reads "no violation" against a simulator that never
//! did the thing: a cell that must not be empty and is, is a [`Hole`]. It judges nothing and
//! changes nothing of a run. One [`Coverage`] looks at one run, up to its recovery; those of many
//! runs are [merged](Coverage::merge).

pub mod effect;
pub mod names;
mod notes;
mod phase;
pub mod required;
mod ripe;
mod shapes;
mod show;
pub mod verbs;

use std::collections::BTreeMap;

use crate::run::Watch;
use crate::seen::Seen;
use crate::world::choice::Choice;
use crate::world::{Kind, World};

use notes::Notes;
pub use required::Hole;
pub use shapes::Shapes;

/// Every so many steps the shape of a World is taken.
const SAMPLED: u64 = 16;

/// One thing that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// A kind of choice was taken.
    Injected(Kind),
    /// It made a difference; see [`effect`].
    Effect(Kind),
    /// A verb was answered so.
    Answer(&'static str, &'static str),
    /// It was told why a checkpoint is still here.
    Blocker(&'static str),
    /// An audit found such keys.
    Verdict(&'static str),
    /// A follow-up became durable.
    FollowUp(&'static str),
    /// A transfer ended so.
    End(&'static str),
    /// A kind of choice hit something in such a phase.
    Phase(Kind, &'static str),
}

/// How often a kind of choice could have been taken, was taken, and made a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Row {
    /// Steps before which there was what the kind needs.
    pub opportunities: u64,
    /// Steps that it was.
    pub injections: u64,
    /// Times that an effect of it was seen.
    pub effects: u64,
}

/// What runs covered. See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    steps: u64,
    groups: [u64; Self::GROUPS],
    injections: [u64; Kind::COUNT],
    effects: [u64; Kind::COUNT],
    cells: BTreeMap<Cell, u64>,
    shapes: Shapes,
    notes: Notes,
    /// The choice that is about to come true is one here.
    allowed: bool,
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            steps: 0,
            groups: [0; Self::GROUPS],
            injections: [0; Kind::COUNT],
            effects: [0; Kind::COUNT],
            cells: BTreeMap::new(),
            shapes: Shapes::default(),
            notes: Notes::default(),
            allowed: false,
        }
    }
}

impl Coverage {
    const GROUPS: usize = u32::BITS as usize;

    /// Adds what other runs covered. Whatever still waits for its effect, here or there, will not
    /// be seen any more.
    pub fn merge(&mut self, other: &Self) {
        let add = |to: &mut [u64], from: &[u64]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        };
        self.steps += other.steps;
        add(&mut self.groups, &other.groups);
        add(&mut self.injections, &other.injections);
        add(&mut self.effects, &other.effects);
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
        self.shapes.merge(&other.shapes);
        self.notes = Notes::default();
        self.allowed = false;
    }

    /// How many steps were looked at.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// A kind's three numbers.
    #[must_use]
    pub const fn row(&self, kind: Kind) -> Row {
        Row {
            opportunities: self.groups[kind.group() as usize],
            injections: self.injections[kind.place()],
            effects: self.effects[kind.place()],
        }
    }

    /// How often something was seen.
    #[must_use]
    pub fn count(&self, cell: Cell) -> u64 {
        match cell {
            Cell::Injected(kind) => self.injections[kind.place()],
            Cell::Effect(kind) => self.effects[kind.place()],
            Cell::Answer(..)
            | Cell::Blocker(_)
            | Cell::Verdict(_)
            | Cell::FollowUp(_)
            | Cell::End(_)
            | Cell::Phase(..) => self.cells.get(&cell).copied().unwrap_or(0),
        }
    }

    /// Whatever was seen beside the kinds, in order.
    pub fn cells(&self) -> impl Iterator<Item = (Cell, u64)> + '_ {
        self.cells.iter().map(|(cell, count)| (*cell, *count))
    }

    /// The shapes of Worlds that were met.
    #[must_use]
    pub const fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// The cells that must not be empty and are, in order.
    #[must_use]
    pub fn holes(&self) -> Vec<Hole> {
        let empty = |cell: &Cell| self.count(*cell) == 0;
        required::required().into_iter().filter(empty).map(Hole).collect()
    }
}

/// Where a seen thing is counted.
fn add(effects: &mut [u64; Kind::COUNT], cells: &mut BTreeMap<Cell, u64>, cell: Cell) {
    match cell {
        Cell::Effect(kind) => effects[kind.place()] += 1,
        Cell::Injected(_)
        | Cell::Answer(..)
        | Cell::Blocker(_)
        | Cell::Verdict(_)
        | Cell::FollowUp(_)
        | Cell::End(_)
        | Cell::Phase(..) => *cells.entry(cell).or_default() += 1,
    }
}

impl Watch for Coverage {
    fn before(&mut self, world: &World, kind: Kind, choice: Choice) {
        self.allowed = world.allows(choice);
        if !self.allowed {
            return;
        }
        let mut groups = world.groups();
        while groups > 0 {
            self.groups[groups.trailing_zeros() as usize] += 1;
            groups &= groups - 1;
        }
        self.injections[kind.place()] += 1;
        let Self { effects, cells, notes, .. } = self;
        notes.before(world, kind, choice, &mut |cell| add(effects, cells, cell));
        if kind.is_fault() {
            let mut hit = |phase| add(effects, cells, Cell::Phase(kind, phase));
            phase::phases(world, choice, &mut hit);
        }
    }

    fn step(&mut self, world: &World, kind: Kind, choice: Choice, seen: &[Seen]) {
        if !core::mem::take(&mut self.allowed) {
            return;
        }
        let Self { effects, cells, notes, .. } = self;
        notes.after(world, (kind, choice), seen, &mut |cell| add(effects, cells, cell));
        for ended in &world.ended {
            add(effects, cells, Cell::End(names::end(ended)));
        }
        self.steps += 1;
        if self.steps.is_multiple_of(SAMPLED) {
            self.shapes.take(world);
        }
    }
}

#[cfg(test)]
mod tests;
