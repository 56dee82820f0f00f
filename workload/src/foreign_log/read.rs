//! The lines of a log, one after another, and what is wrong with a file that is none.
//!
//! Nothing is repaired: a line that cannot be read refuses the file, with its number and the field,
//! but for a last line without its end, which a process that died leaves.

use std::io::{self, BufRead, Read};

use pinfold_core::outcome::Malformed;
use pinfold_core::replay::RecoverError;
use pinfold_host::log::{FORMAT, Head, Line, VERSION};

use crate::trace::{LINE_LIMIT_BYTES, RowFault, parse_object};

/// Why a file is no log that can be judged.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be read.
    #[error("line {line}: {source}")]
    Io {
        /// The line, from 1.
        line: u64,
        /// What happened.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("line {line}: {fault}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// It has no head.
    #[error("expected a log's head, found an empty file")]
    Empty,
}

/// What is wrong with one line: it cannot be read, or it contradicts the lines above.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// It is not one JSON object with the fields of its kind.
    #[error(transparent)]
    Row(#[from] RowFault),
    /// It is the head of something else.
    #[error("expected a log's head, with format {FORMAT:?}, found {found:?}")]
    Format {
        /// What it calls itself.
        found: String,
    },
    /// It is the head of another version.
    #[error("expected a log of version {VERSION}, found version {found}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// No job begins like this.
    #[error("genesis.{0}")]
    Genesis(Malformed),
    /// No engine begins like this.
    #[error("genesis: {0}")]
    Job(RecoverError),
    /// Its number is not above that of the line before.
    #[error("n: expected more than {last}, found {found}")]
    Number {
        /// The number of the line before; 0 before the first.
        last: u64,
        /// What it is.
        found: u64,
    },
    /// The coordinator did something while it was gone.
    #[error("the coordinator had crashed and was not back")]
    Gone,
    /// The coordinator came back although it was there.
    #[error("expected a crash before a recovery")]
    NotGone,
    /// A reply or a listing names a line that is not its input.
    #[error("to: line {to} is no input that waits for this")]
    NoInput {
        /// The line that it names.
        to: u64,
    },
    /// A move has the number of an earlier one.
    #[error("move: {number} was used before")]
    UsedMove {
        /// The number.
        number: u64,
    },
    /// No such move is under way.
    #[error("move: {number} is not under way")]
    NoMove {
        /// The number.
        number: u64,
    },
    /// The head promises a pin with every move of a private object.
    #[error("pin: missing, although the head says that moves are logged")]
    NoPin,
}

/// What comes next in a log.
pub(super) enum Next {
    /// A line, its text and its place in the file.
    Line { place: u64, text: String, line: Line },
    /// A last line without an end, which cannot be read.
    Torn { place: u64 },
    /// Nothing.
    End,
}

/// The lines of a log behind its head.
pub(super) struct Lines<R> {
    reader: R,
    place: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the head.
    pub(super) fn open(reader: R) -> Result<(Head, Self), LogError> {
        let mut lines = Self { reader, place: 0 };
        let Some(text) = lines.next_text()? else { return Err(LogError::Empty) };
        let head = judge_head(&text).map_err(|fault| lines.fault(fault))?;
        Ok((head, lines))
    }

    /// The next line.
    pub(super) fn next(&mut self) -> Result<Next, LogError> {
        let Some(text) = self.next_text()? else { return Ok(Next::End) };
        let row = text.trim_ascii();
        match parse_object(row) {
            Ok(line) => {
                let text = String::from_utf8_lossy(row).into_owned();
                Ok(Next::Line { place: self.place, text, line })
            }
            Err(_) if !text.ends_with(b"\n") => Ok(Next::Torn { place: self.place }),
            Err(fault) => Err(self.fault(fault.into())),
        }
    }

    /// What is wrong with the line that was read last.
    pub(super) fn fault(&self, fault: LineFault) -> LogError {
        LogError::Line { line: self.place, fault }
    }

    /// The next line that is not blank.
    fn next_text(&mut self) -> Result<Option<Vec<u8>>, LogError> {
        loop {
            self.place += 1;
            let mut text = Vec::new();
            let mut limited = self.reader.by_ref().take(LINE_LIMIT_BYTES + 1);
            let read = limited.read_until(b'\n', &mut text);
            let read = read.map_err(|source| LogError::Io { line: self.place, source })?;
            if u64::try_from(read).map_or(true, |read| read > LINE_LIMIT_BYTES) {
                let fault = RowFault::TooLong { limit_bytes: LINE_LIMIT_BYTES };
                return Err(self.fault(fault.into()));
            }
            if read == 0 {
                return Ok(None);
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some(text));
            }
        }
    }
}

fn judge_head(text: &[u8]) -> Result<Head, LineFault> {
    let head: Head = parse_object(text.trim_ascii())?;
    if head.format != FORMAT {
        return Err(LineFault::Format { found: head.format });
    }
    if head.version != VERSION {
        return Err(LineFault::Version { found: head.version });
    }
    head.genesis.form().map_err(LineFault::Genesis)?;
    Ok(head)
}
