//! Request traces as JSON lines: reading, checking and writing them.
//!
//! A trace is one JSON object a line, in one of the formats of [`Format`]; the first row says
//! which. Each format has a file of its own that turns its rows into [`Request`]s; what every
//! format promises of its requests is checked in one place, which knows only the number of tokens
//! in a block and what each request continues.
//!
//! A block id is a *prefix* hash: it has one id before it wherever it occurs, so a trace is a radix
//! tree; linking and chain values rest on that, hence it is checked. Nothing is ever taken from a
//! bad file: the first bad row refuses it whole, with its line number; no row is repaired,
//! reordered or skipped, and no unknown field is passed over. Memory is in proportion to the file.

mod chat;
mod checks;
mod fault;
mod format;
mod mooncake;
mod row;
mod session;
#[cfg(test)]
mod tests;

use std::io::{BufRead, Read};

use checks::Checks;
use format::Rows;

pub use chat::{CHAT_BLOCK_TOKENS, ChatFault};
pub use fault::{RowFault, TraceError};
pub use format::Format;
pub use mooncake::{MOONCAKE_BLOCK_TOKENS, write_trace};
pub(crate) use row::parse_object;
pub use session::SessionFault;

/// The longest line that is read, its line feed included, in bytes; it bounds the memory of a row.
pub const LINE_LIMIT_BYTES: u64 = 16 * 1024 * 1024;

/// One request of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// When it arrives, in milliseconds from the start of the trace.
    pub arrival_ms: u64,
    /// Length of the prompt in tokens.
    pub input_tokens: u32,
    /// Length of the answer in tokens; the blocks do not cover it.
    pub output_tokens: u32,
    /// The prefix hash of every block of the prompt, in order; the last block may be partial.
    pub blocks: Vec<u64>,
    /// The earlier request that it goes on from, as far as the trace names one.
    pub continues: Continues,
}

impl Request {
    /// The prefix hashes of the full blocks alone, at `block_tokens` tokens each.
    ///
    /// Only a full block can be shared or resumed from; the partial one is left out.
    #[must_use]
    pub fn full_blocks(&self, block_tokens: u32) -> &[u64] {
        let full = self.input_tokens.checked_div(block_tokens).unwrap_or(0);
        let full = usize::try_from(full).unwrap_or(usize::MAX).min(self.blocks.len());
        &self.blocks[..full]
    }
}

/// What a request says about the earlier one that it continues.
///
/// A place rather than a name: names are understood on reading, so that whoever uses a trace needs
/// to know no format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Continues {
    /// Nothing, because its format names no conversations: its blocks have to show it.
    #[default]
    Unsaid,
    /// That there is none: it begins a conversation.
    Nothing,
    /// The request at this place of the trace, from 0.
    Request(u32),
}

/// A whole trace, in the order of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Tokens in a full block.
    pub block_tokens: u32,
    /// The requests; at least one and fewer than 2^32. They are in order of arrival, except that
    /// one which names what it continues only has to stand and arrive after that.
    pub requests: Vec<Request>,
}

impl Trace {
    /// Checks everything that [`read_trace`] promises of a trace, for one made in memory.
    ///
    /// # Errors
    /// The first fault found; the line is the request's place, from 1.
    pub fn check(&self) -> Result<(), TraceError> {
        let mut checks = Checks::new(self.block_tokens);
        for (line, place) in (1..).zip(0..self.requests.len()) {
            let (earlier, rest) = self.requests.split_at(place);
            let admitted = rest.first().map_or(Ok(()), |next| checks.admit(line, earlier, next));
            admitted.map_err(|fault| TraceError::Row { line, fault })?;
        }
        if self.requests.is_empty() { Err(TraceError::Empty) } else { Ok(()) }
    }
}

/// Reads a trace in any [`Format`]; the first row says which, and the others must agree.
///
/// Blank lines are skipped. Timestamps may repeat but not go backwards, since a row out of order
/// more likely means a damaged file than a wish to be sorted. In every format `input_tokens`,
/// `output_tokens`, `created_time` and `delay_ms` are understood for `input_length`,
/// `output_length`, `timestamp` and `delay`; any other field is refused, so that no meaning is
/// silently dropped.
///
/// # Errors
/// [`TraceError`] for the first bad row, a file without rows, or a source that fails.
pub fn read_trace<R: BufRead>(mut reader: R) -> Result<Trace, TraceError> {
    let mut opened = None;
    let mut requests = Vec::new();
    let mut line_bytes = Vec::new();
    for line in 1.. {
        if !read_line(&mut reader, line, &mut line_bytes)? {
            break;
        }
        let row = line_bytes.trim_ascii();
        if row.is_empty() {
            continue;
        }
        let (rows, checks) = opened.get_or_insert_with(|| {
            let rows = Rows::of_first(row);
            let checks = Checks::new(rows.format().block_tokens());
            (rows, checks)
        });
        let request = rows
            .read(line, &requests, row)
            .and_then(|request| checks.admit(line, &requests, &request).map(|()| request))
            .map_err(|fault| TraceError::Row { line, fault })?;
        requests.push(request);
    }
    let (rows, _) = opened.ok_or(TraceError::Empty)?;
    Ok(Trace { block_tokens: rows.format().block_tokens(), requests })
}

/// Reads the next line into `line_bytes`; false at the end.
fn read_line<R: BufRead>(
    reader: &mut R,
    line: u64,
    line_bytes: &mut Vec<u8>,
) -> Result<bool, TraceError> {
    line_bytes.clear();
    let read = reader
        .take(LINE_LIMIT_BYTES + 1)
        .read_until(b'\n', line_bytes)
        .map_err(|source| TraceError::Io { line, source })?;
    if u64::try_from(read).is_ok_and(|read| read <= LINE_LIMIT_BYTES) {
        return Ok(read > 0);
    }
    let fault = RowFault::TooLong { limit_bytes: LINE_LIMIT_BYTES };
    Err(TraceError::Row { line, fault })
}
