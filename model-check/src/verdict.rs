//! What came of a check, in words that promise no more than was seen.

use pinfold_core::invariant::Invariant;

use crate::configuration::Size;
use crate::explore::{Explored, Stopped};
use crate::watchdog::Spent;

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every state was visited, and every promise held in it.
    Exhaustive,
    /// A promise is broken.
    Violated,
    /// Not every state was visited. Those that were held.
    Incomplete,
    /// Every state was visited, and there are more or fewer of them than there were.
    Changed,
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exhaustive => "EXHAUSTIVE",
            Self::Violated => "VIOLATED",
            Self::Incomplete => "INCOMPLETE",
            Self::Changed => "CHANGED",
        }
    }
}

/// What is known of one promise in one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was at stake, and held.
    Held,
    /// It is broken.
    Violated,
    /// It was never at stake: nothing is known.
    NotReached,
}

impl Standing {
    /// The words for it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Violated => "violated",
            Self::NotReached => "not reached",
        }
    }
}

impl Explored {
    /// What came of it.
    #[must_use]
    pub fn verdict(&self, pinned: Option<Size>) -> Verdict {
        let changed = pinned.is_some_and(|pinned| pinned != self.size());
        match (&self.found, self.stopped) {
            (Some(_), _) => Verdict::Violated,
            (None, Some(_)) => Verdict::Incomplete,
            (None, None) if changed => Verdict::Changed,
            (None, None) => Verdict::Exhaustive,
        }
    }

    /// How large it is, as far as it was seen.
    #[must_use]
    pub const fn size(&self) -> Size {
        let progress = &self.progress;
        let (states, transitions) = (progress.states, progress.transitions);
        Size { states, transitions, depth: progress.depth }
    }

    /// What is known of a promise.
    #[must_use]
    pub fn standing(&self, invariant: Invariant) -> Standing {
        match &self.found {
            Some(found) if found.violation.invariant == invariant => Standing::Violated,
            Some(_) | None if self.reached.was_at_stake(invariant) => Standing::Held,
            Some(_) | None => Standing::NotReached,
        }
    }
}

impl Stopped {
    /// What stopped it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Spent(Spent::Time) => "its time was spent",
            Self::Spent(Spent::Memory) => "its memory was spent",
            Self::Full => "the table of visited states was full",
            Self::Told => "it was told to stop",
        }
    }
}
