//! The words of values: how each is written, in one place for reading and for showing.

use pinfold_core::catalog::Role;
use pinfold_core::outcome::{DeleteOutcome, Evidence, Loss};

use super::reader::{Fault, Line};

/// A value of few, each written as one word.
pub(super) trait Word: Copy + 'static {
    /// Every value.
    const ALL: &'static [Self];

    /// How it is written.
    fn word(self) -> &'static str;
}

/// Reads the value that a text of a line is written for.
///
/// # Errors
/// It is none; the fault lists them.
pub(super) fn read<W: Word>(line: &Line, text: &str) -> Result<W, Fault> {
    let found = W::ALL.iter().find(|value| value.word() == text).copied();
    found.ok_or_else(|| {
        let words: Vec<_> = W::ALL.iter().map(|value| value.word()).collect();
        line.fault(format!("{text} is none of {}", words.join(", ")))
    })
}

impl Word for Evidence {
    const ALL: &'static [Self] = &[
        Self::NotExposed,
        Self::Active,
        Self::Quiescing,
        Self::QuiescedSuccess,
        Self::QuiescedFailure,
        Self::InDoubt,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::NotExposed => "not-exposed",
            Self::Active => "active",
            Self::Quiescing => "quiescing",
            Self::QuiescedSuccess => "success",
            Self::QuiescedFailure => "failure",
            Self::InDoubt => "in-doubt",
        }
    }
}

impl Word for DeleteOutcome {
    const ALL: &'static [Self] = &[Self::Gone, Self::Refused, Self::Unknown];

    fn word(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }
}

impl Word for Loss {
    const ALL: &'static [Self] =
        &[Self::Absent, Self::WrongSize, Self::WrongBytes, Self::Unreadable];

    fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::WrongSize => "wrong-size",
            Self::WrongBytes => "wrong-bytes",
            Self::Unreadable => "unreadable",
        }
    }
}

impl Word for Role {
    const ALL: &'static [Self] = &[Self::Worker, Self::Operator];

    fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Operator => "operator",
        }
    }
}

impl Word for bool {
    const ALL: &'static [Self] = &[true, false];

    fn word(self) -> &'static str {
        if self { "yes" } else { "no" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_is_read_again<W: Word + PartialEq + core::fmt::Debug>() {
        let line = Line::read(7, "verb").unwrap();
        for value in W::ALL {
            assert_eq!(read::<W>(&line, value.word()), Ok(*value));
        }
        let fault = read::<W>(&line, "nonsense").unwrap_err();
        assert_eq!(fault.line, 7);
        for value in W::ALL {
            assert!(fault.what.contains(value.word()), "{fault}");
        }
    }

    #[test]
    fn every_word_is_read_as_it_is_written() {
        each_is_read_again::<Evidence>();
        each_is_read_again::<DeleteOutcome>();
        each_is_read_again::<Loss>();
        each_is_read_again::<Role>();
        each_is_read_again::<bool>();
    }
}
