//! What a judge says when a promise is broken.

use core::fmt;

use pinfold_core::invariant::Invariant;

/// Who judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Judge {
    /// From outside: what the store holds, what was acknowledged, what was adopted.
    Oracle,
    /// The naive spec, in lock-step.
    Spec,
    /// The core's own recount, and the replay of its journal.
    Recount,
    /// Recovery from the state that was reached, with the faults off.
    Recovery,
}

impl Judge {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Oracle, Self::Spec, Self::Recount, Self::Recovery];

    /// The judge's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Spec => "spec",
            Self::Recount => "recount",
            Self::Recovery => "recovery",
        }
    }
}

/// A promise that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub invariant: Invariant,
    /// Who saw it.
    pub judge: Judge,
    /// What was seen, and what should have been.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.invariant, self.judge.name(), self.what)
    }
}
