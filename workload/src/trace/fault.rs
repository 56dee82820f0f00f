//! Why a trace is refused: the place, what is wrong there and what was expected, as data.
//!
//! What only one format can get wrong is worded beside that format.

use std::io;

use super::chat::ChatFault;
use super::format::Format;
use super::session::SessionFault;

/// Why a trace was refused.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The source could not be read or the target not written.
    #[error("line {line}: {source}")]
    Io {
        /// The line at which it happened, from 1.
        line: u64,
        /// What happened.
        source: io::Error,
    },
    /// A row is not what it should be.
    #[error("line {line}: {fault}")]
    Row {
        /// The line, from 1, blank lines counted.
        line: u64,
        /// What is wrong with it.
        fault: RowFault,
    },
    /// There is no row at all.
    #[error("expected at least one request, found none")]
    Empty,
    /// The trace cannot be written, because the format's rows leave the block size unsaid.
    #[error("expected blocks of {expected} tokens for this format, not {found}")]
    BlockTokens {
        /// What a reader of the format would assume.
        expected: u32,
        /// What the trace has.
        found: u32,
    },
    /// The trace cannot be written, because the format has no names for what is continued.
    #[error("expected requests that do not name what they continue, but number {place} does")]
    Named {
        /// The first that does, from 1.
        place: u64,
    },
}

/// What is wrong with one row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowFault {
    /// The line is longer than [`super::LINE_LIMIT_BYTES`].
    #[error("expected a line of at most {limit_bytes} bytes, found a longer one")]
    TooLong {
        /// The limit in bytes.
        limit_bytes: u64,
    },
    /// The line does not begin an object.
    #[error("expected one JSON object a line, found something else")]
    NotAnObject,
    /// The file begins with the mark that some editors write.
    #[error(
        "expected one JSON object a line, found a byte order mark in front of it: save the file \
         as UTF-8 without one"
    )]
    ByteOrderMark,
    /// No JSON, a field missing, unknown or given twice, or a value of the wrong type or range.
    #[error("column {column}{}: {expected}", of(.field))]
    Json {
        /// The byte in the line, from 1.
        column: u64,
        /// The field, and the place in it where it is a list, as in `hash_ids[1]`; none where
        /// `expected` names it, or none is at fault.
        field: Option<String>,
        /// What was found and what was expected, as the parser says it.
        expected: String,
    },
    /// The row is of another format than the first one of its file.
    #[error("expected {expected}, as the first one is, found {found}")]
    Format {
        /// The format of the first row.
        expected: Format,
        /// The format of this row.
        found: Format,
    },
    /// The blocks do not cover the prompt exactly.
    #[error(
        "expected {expected} hash_ids, one for every {block_tokens} tokens of input_length \
         {input_tokens} or part of them, found {found}"
    )]
    BlockCount {
        /// Length of the prompt in tokens.
        input_tokens: u32,
        /// Tokens in a block.
        block_tokens: u32,
        /// How many blocks that makes.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// One id follows two different ids, so that it is no prefix hash.
    #[error(
        "expected block {block} {} as on line {first_line}, found it {}",
        place(.expected),
        place(.found)
    )]
    TwoParents {
        /// The id.
        block: u64,
        /// The line that has it first.
        first_line: u64,
        /// The id before it there; none when it is the first block.
        expected: Option<u64>,
        /// The id before it here.
        found: Option<u64>,
    },
    /// The request arrives before one that it has to follow: the one above it with a timestamp, or
    /// the one that it continues.
    #[error("expected a timestamp of at least {previous_ms} ms, found {found_ms} ms")]
    Backwards {
        /// When the other one arrives.
        previous_ms: u64,
        /// When this one does.
        found_ms: u64,
    },
    /// The request continues one that does not stand above it; no reader makes such a request.
    #[error("expected it to continue one of the {earlier} requests above, found number {found}")]
    ContinuesLater {
        /// How many requests stand above it.
        earlier: u32,
        /// The place that it names, from 1.
        found: u64,
    },
    /// There are more requests than a 32-bit number can count.
    #[error("expected at most {limit} requests, found more")]
    TooMany {
        /// The limit.
        limit: u32,
    },
    /// Something that only rows with a `session_id` can get wrong.
    #[error(transparent)]
    Session(#[from] SessionFault),
    /// Something that only rows with a `chat_id` can get wrong.
    #[error(transparent)]
    Chat(#[from] ChatFault),
}

fn place(parent: &Option<u64>) -> String {
    match parent {
        Some(parent) => format!("after block {parent}"),
        None => "at the beginning".to_owned(),
    }
}

fn of(field: &Option<String>) -> String {
    field.as_ref().map_or_else(String::new, |field| format!(", {field}"))
}
