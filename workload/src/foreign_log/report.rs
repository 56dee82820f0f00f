//! What became of judging a log, as data.

use std::collections::BTreeMap;

use serde::Serialize;

use super::read::LogError;

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
    /// The first gap in the lines' numbers.
    pub first_gap: Option<Gap>,
    /// The line of the file from which on only the rules judge that need no state; the head's where
    /// the log starts in the middle, none where the engine judged to the end.
    pub only_rules_from: Option<u64>,
    /// What was read.
    pub counts: Counts,
}

/// Lines that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The line of the file in front of which they are missing.
    pub line: u64,
    /// The first number that is missing.
    pub first: u64,
    /// The last one.
    pub last: u64,
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
    /// Inputs that the naive spec judged as well: not more than the first
    /// [`SPEC_INPUTS`](super::SPEC_INPUTS).
    pub by_spec: u64,
    /// Inputs that no answer was logged for.
    pub unanswered: u64,
    /// Moves of bytes.
    pub moves: u64,
    /// Deletes that were asked of the store.
    pub deletes: u64,
    /// Shards settled as saved of which no line shows a put.
    pub saves_unshown: u64,
    /// Objects reported gone of which no line shows a delete or a probe.
    pub deletes_unshown: u64,
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
    /// The line of the file at which it was first met.
    pub first_line: u64,
}

/// What is said of a file that is no log, or contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// `refused`, or `unreadable` where the file cannot be read.
    pub verdict: &'static str,
    /// The line; none where it is no single one.
    pub line: Option<u64>,
    /// What is wrong.
    pub error: String,
}

impl Refusal {
    /// Why a log was refused.
    #[must_use]
    pub fn of(error: &LogError) -> Self {
        let (verdict, line) = match error {
            LogError::Io { line, .. } => ("unreadable", Some(*line)),
            LogError::Line { line, .. } => ("refused", Some(*line)),
            LogError::Empty => ("refused", None),
        };
        Self { verdict, line, error: error.to_string() }
    }
}

/// Why something could not be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    Empty,
    FromTheMiddle,
    Missing,
    Torn,
    UnknownAnswer,
    NoState,
    NoInput,
    NoMove,
    UnsaidRecords,
    UnloggedWork,
    UnshownSave,
    UnshownDelete,
}

impl Reason {
    /// Of one, and of several.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Empty => ["head with nothing behind it: nothing is logged"; 2],
            Self::FromTheMiddle => ["log that does not begin with the job"; 2],
            Self::Missing => {
                ["line that is missing, by a gap in n", "lines that are missing, by the gaps in n"]
            }
            Self::Torn => ["last line that was not written whole"; 2],
            Self::UnknownAnswer => {
                ["answer that the host does not know", "answers that the host does not know"]
            }
            Self::NoState => [
                "answer whose state is not known, for lack of earlier lines",
                "answers whose state is not known, for lack of earlier lines",
            ],
            Self::NoInput => [
                "answer to an input that is not in the log",
                "answers to inputs that are not in the log",
            ],
            Self::NoMove => [
                "end of a move whose beginning is not in the log",
                "ends of moves whose beginnings are not in the log",
            ],
            Self::UnsaidRecords => [
                "recovery that does not say with how many records",
                "recoveries that do not say with how many records",
            ],
            Self::UnloggedWork => [
                "piece of delete work that is not in the log",
                "pieces of delete work that are not in the log",
            ],
            Self::UnshownSave => [
                "shard settled as saved of which no line shows a put",
                "shards settled as saved of which no line shows a put",
            ],
            Self::UnshownDelete => [
                "object reported gone of which no line shows a delete",
                "objects reported gone of which no line shows a delete",
            ],
        }
    }
}

/// Counts what could not be judged, and keeps where each kind of it was first met.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// The line of the file that is judged now.
    line: u64,
    rows: BTreeMap<Reason, (u64, u64)>,
}

impl Gaps {
    /// Goes on to a line of the file.
    pub(super) const fn at(&mut self, line: u64) -> &mut Self {
        self.line = line;
        self
    }

    /// The line of the file that is judged now.
    pub(super) const fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn add(&mut self, reason: Reason, count: u64) {
        if count > 0 {
            let (sum, _) = self.rows.entry(reason).or_insert((0, self.line));
            *sum = sum.saturating_add(count);
        }
    }

    pub(super) fn into_rows(self) -> Vec<Unjudged> {
        let row = |(reason, (count, first_line)): (Reason, (u64, u64))| {
            let [one, many] = reason.words();
            Unjudged { what: if count == 1 { one } else { many }, count, first_line }
        };
        self.rows.into_iter().map(row).collect()
    }
}
