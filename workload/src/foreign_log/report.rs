//! What became of judging a log, as data.

use std::collections::BTreeMap;

use serde::Serialize;

/// What was read of a log, and the verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether it holds, is violated at a line, or is incomplete.
    pub verdict: Verdict,
    /// The first line that no correct run allows.
    pub finding: Option<Finding>,
    /// What could not be judged, and how often.
    pub unjudged: Vec<Unjudged>,
    /// The log begins with the job.
    pub from_genesis: bool,
    /// Its head promises that every move of a private object is there.
    pub moves_logged: bool,
    /// What was read.
    pub counts: Counts,
}

/// What was read of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Lines, the head among them.
    pub lines: u64,
    /// Registrations, commands, lists and queries.
    pub inputs: u64,
    /// Commands, those in lists among them.
    pub commands: u64,
    /// Answers.
    pub replies: u64,
    /// Answers that were compared with those of the real engine.
    pub compared: u64,
    /// Inputs that no answer was logged for.
    pub unanswered: u64,
    /// Moves of bytes.
    pub moves: u64,
    /// Deletes that were asked of the store.
    pub deletes: u64,
    /// Crashes of the coordinator.
    pub crashes: u64,
}

/// How a log was judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every line is one that a correct run allows.
    #[default]
    Held,
    /// A line is not.
    Violated,
    /// No line is known not to be, and not all could be judged.
    Incomplete,
}

/// A line that no correct run allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its place in the file, from 1.
    pub line: u64,
    /// Its own number.
    pub n: u64,
    /// The promise that is broken.
    pub rule: String,
    /// What is promised.
    pub promise: &'static str,
    /// Who saw it.
    pub judge: &'static str,
    /// What is wrong.
    pub what: String,
    /// What a correct run would have said, where that is one thing.
    pub expected: Option<String>,
    /// The line itself.
    pub text: String,
}

/// Something that could not be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Unjudged {
    /// What it is.
    pub what: &'static str,
    /// How many.
    pub count: u64,
}

/// Why something could not be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    Missing,
    Torn,
    UnknownAnswer,
    NoState,
    NoInput,
    NoMove,
    UnsaidRecords,
    UnloggedWork,
}

impl Reason {
    const fn words(self) -> &'static str {
        match self {
            Self::Missing => "lines that are missing, by the gaps in n",
            Self::Torn => "a last line that was not written whole",
            Self::UnknownAnswer => "answers that the host does not know",
            Self::NoState => "answers whose state is not known, for lack of earlier lines",
            Self::NoInput => "answers to inputs that are not in the log",
            Self::NoMove => "ends of moves whose beginnings are not in the log",
            Self::UnsaidRecords => "recoveries that do not say with how many records",
            Self::UnloggedWork => "pieces of delete work that are not in the log",
        }
    }
}

/// Counts what could not be judged.
#[derive(Debug, Default)]
pub(super) struct Gaps(BTreeMap<Reason, u64>);

impl Gaps {
    pub(super) fn add(&mut self, reason: Reason, count: u64) {
        if count > 0 {
            let sum = self.0.entry(reason).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    pub(super) fn into_rows(self) -> Vec<Unjudged> {
        let row = |(reason, count): (Reason, u64)| Unjudged { what: reason.words(), count };
        self.0.into_iter().map(row).collect()
    }
}
