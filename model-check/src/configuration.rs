//! What a check is about: how large its World is, what may happen in it, and how it is reduced.

use pinfold_sim::likeness::Class;
use pinfold_sim::world::Kind;
use pinfold_sim::world::setup::Setup;

use crate::menu::Menu;

/// When a configuration is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// In every run without a name.
    Ci,
    /// With `full`.
    Full,
    /// By its name alone.
    Long,
}

impl Tier {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ci => "ci",
            Self::Full => "full",
            Self::Long => "long",
        }
    }
}

/// The size of an exhaustive check, which is a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Distinct canonical states.
    pub states: u64,
    /// Transitions between them.
    pub transitions: u64,
    /// The longest of the shortest ways to a state.
    pub depth: u32,
}

/// A configuration. See the [module](self).
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Its name.
    pub name: &'static str,
    /// What it covers, in one line.
    pub about: &'static str,
    /// When it is checked.
    pub tier: Tier,
    /// The size of its World.
    pub setup: Setup,
    /// What may happen.
    pub menu: Menu,
    /// What is interchangeable, with how many there are of it.
    pub symmetry: Vec<(Class, u8)>,
    /// Its size, where all of it was seen.
    pub pinned: Option<Size>,
}

/// What is one step with what it follows from, unless it is on the menu by itself.
pub const MERGED: [Kind; 7] = [
    Kind::Answer,
    Kind::Sync,
    Kind::Commit,
    Kind::FollowUp,
    Kind::Restart,
    Kind::CheckKnown,
    Kind::Report,
];

impl Configuration {
    /// The faults that may happen in it, as often as they like, by name.
    #[must_use]
    pub fn faults(&self) -> Vec<&'static str> {
        let kinds = self.menu.kinds.iter().filter(|kind| kind.is_fault());
        let unheard = self.menu.unheard.then_some(Kind::LoseAnswer.name());
        kinds.map(|kind| kind.name()).chain(unheard).collect()
    }

    /// The same, and nothing counts as interchangeable. Its size is another.
    #[must_use]
    pub fn without_symmetry(self) -> Self {
        Self { symmetry: Vec::new(), pinned: None, ..self }
    }

    /// The same with every step apart. Its size is another.
    #[must_use]
    pub fn without_merging(mut self) -> Self {
        let kinds = &mut self.menu.kinds;
        kinds.extend(MERGED);
        kinds.push(Kind::Write);
        if core::mem::take(&mut self.menu.unheard) {
            kinds.push(Kind::LoseAnswer);
        }
        kinds.sort_unstable();
        kinds.dedup();
        self.menu.tells_apart = true;
        Self { pinned: None, ..self }
    }
}
