//! Request traces as JSON lines: reading, checking and writing them.
//!
//! A trace is one JSON object a line in the Mooncake format: `timestamp` (ms), `input_length` and
//! `output_length` (tokens), `hash_ids` (one prefix hash for every 512-token block of the input,
//! the last block perhaps partial). Because an id is a *prefix* hash it has one id before it
//! wherever it occurs, so a trace is a radix tree; linking and chain values rest on that, hence it
//! is checked here. The first bad row refuses the whole file with its line number: nothing is ever
//! taken from a bad file, no row is repaired, reordered or skipped, and no field is ignored.
//!
//! A further row format is a further row type that becomes a [`Request`]; the checks on requests
//! are shared and know only the number of tokens in a block.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, BufRead, Read, Write};

use serde::Deserialize;

/// Tokens in a block of the Mooncake format, which its rows leave unsaid.
pub const MOONCAKE_BLOCK_TOKENS: u32 = 512;

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

/// A whole trace, in order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Tokens in a full block.
    pub block_tokens: u32,
    /// The requests, in order of arrival; at least one and fewer than 2^32.
    pub requests: Vec<Request>,
}

impl Trace {
    /// Checks everything that [`read_trace`] promises of a trace, for one made in memory.
    ///
    /// # Errors
    /// The first fault found; the line is the request's place, from 1.
    pub fn check(&self) -> Result<(), TraceError> {
        let mut checks = Checks::new(self.block_tokens);
        for (line, request) in (1..).zip(&self.requests) {
            checks.admit(line, request).map_err(|fault| TraceError::Row { line, fault })?;
        }
        checks.finish()
    }
}

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
}

/// What is wrong with one row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowFault {
    /// The line is longer than [`LINE_LIMIT_BYTES`].
    #[error("expected a line of at most {limit_bytes} bytes, found a longer one")]
    TooLong {
        /// The limit in bytes.
        limit_bytes: u64,
    },
    /// The line is JSON, but not an object.
    #[error("expected one JSON object, found something else")]
    NotAnObject,
    /// No JSON, a field missing, unknown or given twice, or a value of the wrong type or range.
    #[error("column {column}: {expected}")]
    Json {
        /// The byte in the line, from 1.
        column: u64,
        /// What was found and what was expected, as the parser says it.
        expected: String,
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
    /// The request arrives before the one above it.
    #[error("expected a timestamp of at least {previous_ms} ms, found {found_ms} ms")]
    Backwards {
        /// When the request above arrives.
        previous_ms: u64,
        /// When this one does.
        found_ms: u64,
    },
    /// There are more requests than a 32-bit number can count.
    #[error("expected at most {limit} requests, found more")]
    TooMany {
        /// The limit.
        limit: u32,
    },
}

fn place(parent: &Option<u64>) -> String {
    match parent {
        Some(parent) => format!("after block {parent}"),
        None => "at the beginning".to_owned(),
    }
}

/// Reads a trace in the Mooncake format.
///
/// Blank lines are skipped. Timestamps may repeat but not go backwards, since order of arrival is
/// what linking and replay rest on and a row out of order more likely means a damaged file than a
/// wish to be sorted. `input_tokens` and `output_tokens` are understood for `input_length` and
/// `output_length`; any other field is refused, so that no meaning is silently dropped.
///
/// # Errors
/// [`TraceError`] for the first bad row, a file without rows, or a source that fails.
pub fn read_trace<R: BufRead>(mut reader: R) -> Result<Trace, TraceError> {
    let mut checks = Checks::new(MOONCAKE_BLOCK_TOKENS);
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
        let request = parse_mooncake(row)
            .and_then(|request| checks.admit(line, &request).map(|()| request))
            .map_err(|fault| TraceError::Row { line, fault })?;
        requests.push(request);
    }
    checks.finish()?;
    Ok(Trace { block_tokens: MOONCAKE_BLOCK_TOKENS, requests })
}

/// Writes a trace in the Mooncake format, one row a line, in the spelling of the published traces.
///
/// The trace is checked first, so that what is written can be read; of a bad one nothing is
/// written.
///
/// # Errors
/// What [`Trace::check`] finds, [`TraceError::BlockTokens`] for another block size, or a target
/// that fails.
pub fn write_trace<W: Write>(trace: &Trace, mut writer: W) -> Result<(), TraceError> {
    if trace.block_tokens != MOONCAKE_BLOCK_TOKENS {
        let expected = MOONCAKE_BLOCK_TOKENS;
        return Err(TraceError::BlockTokens { expected, found: trace.block_tokens });
    }
    trace.check()?;
    let mut line = 1;
    for request in &trace.requests {
        write_row(request, &mut writer).map_err(|source| TraceError::Io { line, source })?;
        line += 1;
    }
    writer.flush().map_err(|source| TraceError::Io { line, source })
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

/// A row of the Mooncake format.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "one JSON object")]
struct MooncakeRow {
    timestamp: u64,
    #[serde(alias = "input_tokens")]
    input_length: u32,
    #[serde(alias = "output_tokens")]
    output_length: u32,
    hash_ids: Vec<u64>,
}

fn parse_mooncake(row: &[u8]) -> Result<Request, RowFault> {
    let row: MooncakeRow = parse_object(row)?;
    Ok(Request {
        arrival_ms: row.timestamp,
        input_tokens: row.input_length,
        output_tokens: row.output_length,
        blocks: row.hash_ids,
    })
}

/// Parses a row of any format. Serde would also take an array for a row, by position; we do not.
fn parse_object<'a, T: Deserialize<'a>>(row: &'a [u8]) -> Result<T, RowFault> {
    if row.first() == Some(&b'[') {
        return Err(RowFault::NotAnObject);
    }
    serde_json::from_slice(row).map_err(|error| {
        let text = error.to_string();
        let suffix = format!(" at line {} column {}", error.line(), error.column());
        let expected = text.strip_suffix(&suffix).unwrap_or(&text).to_owned();
        RowFault::Json { column: u64::try_from(error.column()).unwrap_or(u64::MAX), expected }
    })
}

fn write_row<W: Write>(request: &Request, writer: &mut W) -> io::Result<()> {
    let Request { arrival_ms, input_tokens, output_tokens, blocks } = request;
    write!(
        writer,
        "{{\"timestamp\": {arrival_ms}, \"input_length\": {input_tokens}, \
         \"output_length\": {output_tokens}, \"hash_ids\": ["
    )?;
    let mut separator = "";
    for block in blocks {
        write!(writer, "{separator}{block}")?;
        separator = ", ";
    }
    writeln!(writer, "]}}")
}

/// Where an id was seen first.
struct FirstSeen {
    parent: Option<u64>,
    line: u64,
}

/// What every format promises of its requests, checked one by one.
struct Checks {
    block_tokens: u32,
    requests: u32,
    previous_ms: u64,
    first_seen: BTreeMap<u64, FirstSeen>,
}

impl Checks {
    fn new(block_tokens: u32) -> Self {
        Self { block_tokens, requests: 0, previous_ms: 0, first_seen: BTreeMap::new() }
    }

    fn admit(&mut self, line: u64, request: &Request) -> Result<(), RowFault> {
        let limit = u32::MAX;
        self.requests = self.requests.checked_add(1).ok_or(RowFault::TooMany { limit })?;
        self.admit_arrival(request.arrival_ms)?;
        self.admit_block_count(request)?;
        let mut parent = None;
        for &block in &request.blocks {
            self.admit_block(line, parent, block)?;
            parent = Some(block);
        }
        Ok(())
    }

    fn admit_arrival(&mut self, found_ms: u64) -> Result<(), RowFault> {
        let previous_ms = self.previous_ms;
        if found_ms < previous_ms {
            return Err(RowFault::Backwards { previous_ms, found_ms });
        }
        self.previous_ms = found_ms;
        Ok(())
    }

    fn admit_block_count(&self, request: &Request) -> Result<(), RowFault> {
        let Self { block_tokens, .. } = *self;
        let input_tokens = request.input_tokens;
        let expected = u64::from(input_tokens.div_ceil(block_tokens.max(1)));
        let found = u64::try_from(request.blocks.len()).unwrap_or(u64::MAX);
        if found == expected && block_tokens > 0 {
            return Ok(());
        }
        Err(RowFault::BlockCount { input_tokens, block_tokens, expected, found })
    }

    fn admit_block(&mut self, line: u64, found: Option<u64>, block: u64) -> Result<(), RowFault> {
        match self.first_seen.entry(block) {
            Entry::Vacant(vacant) => {
                vacant.insert(FirstSeen { parent: found, line });
                Ok(())
            }
            Entry::Occupied(occupied) if occupied.get().parent == found => Ok(()),
            Entry::Occupied(occupied) => {
                let &FirstSeen { parent: expected, line: first_line } = occupied.get();
                Err(RowFault::TwoParents { block, first_line, expected, found })
            }
        }
    }

    fn finish(&self) -> Result<(), TraceError> {
        if self.requests == 0 { Err(TraceError::Empty) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, 1, 2]}
{\"timestamp\": 7, \"input_length\": 1024, \"output_length\": 1, \"hash_ids\": [0, 1]}
{\"timestamp\": 7, \"input_length\": 0, \"output_length\": 0, \"hash_ids\": []}
";

    fn read(text: &str) -> Result<Trace, TraceError> {
        read_trace(text.as_bytes())
    }

    fn refusal(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn rows_become_requests_and_back() {
        let trace = read(GOOD).unwrap();
        assert_eq!(trace.block_tokens, 512);
        assert_eq!(trace.requests.len(), 3);
        let first =
            Request { arrival_ms: 0, input_tokens: 1100, output_tokens: 5, blocks: vec![0, 1, 2] };
        assert_eq!(trace.requests[0], first);
        assert_eq!(first.full_blocks(512), [0, 1]);
        let mut written = Vec::new();
        write_trace(&trace, &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), GOOD);
    }

    #[test]
    fn blank_lines_carriage_returns_and_a_missing_last_feed_are_fine() {
        let text = format!("\n  \r\n{}\n\n", GOOD.trim_end().replace('\n', "\r\n\r\n"));
        assert_eq!(read(&text).unwrap(), read(GOOD).unwrap());
        assert_eq!(read(GOOD.trim_end()).unwrap(), read(GOOD).unwrap());
    }

    #[test]
    fn other_names_of_the_lengths_are_understood() {
        let text = GOOD.replace("input_length", "input_tokens");
        let text = text.replace("output_length", "output_tokens");
        assert_eq!(read(&text).unwrap(), read(GOOD).unwrap());
    }

    #[test]
    fn a_bad_row_is_refused_with_its_line_and_what_was_expected() {
        let row = "{\"timestamp\": 9, \"input_length\": 600, \"output_length\": 1, \
                   \"hash_ids\": [0, 7]}";
        assert_eq!(read(&format!("{GOOD}{row}")).unwrap().requests.len(), 4);
        let cases = [
            ("\"timestamp\": 9, ", "", "missing field `timestamp`"),
            (", \"hash_ids\": [0, 7]", "", "missing field `hash_ids`"),
            ("600", "\"600\"", "invalid type: string \"600\", expected u32"),
            ("600", "600.5", "invalid type: floating point `600.5`, expected u32"),
            ("600", "null", "invalid type: null, expected u32"),
            ("600", "-600", "invalid value: integer `-600`, expected u32"),
            ("600", "4294967296", "invalid value: integer `4294967296`, expected u32"),
            ("[0, 7]", "[0, -7]", "invalid value: integer `-7`, expected u64"),
            ("[0, 7]", "7", "invalid type: integer `7`, expected a sequence"),
            ("output_length", "turn", "unknown field `turn`"),
            ("output_length", "input_length", "duplicate field `input_length`"),
            ("[0, 7]", "[0]", "expected 2 hash_ids, one for every 512 tokens of input_length 600"),
            ("[0, 7]", "[0, 7, 8]", "or part of them, found 3"),
            ("[0, 7]", "[0, 2]", "expected block 2 after block 1 as on line 1, found it after"),
            ("[0, 7]", "[1, 7]", "block 1 after block 0 as on line 1, found it at the beginning"),
            ("[0, 7]", "[7, 7]", "expected block 7 at the beginning as on line 4"),
            (": 9", ": 6", "expected a timestamp of at least 7 ms, found 6 ms"),
            ("{", "", "invalid type: string \"timestamp\", expected one JSON object"),
            ("}", "} {}", "trailing characters"),
            ("}", "", "EOF while parsing an object"),
        ];
        for (good, bad, expected) in cases {
            let found = refusal(&format!("{GOOD}{}", row.replacen(good, bad, 1)));
            assert!(found.starts_with("line 4: "), "{found}");
            assert!(found.contains(expected), "{found}\nexpected: {expected}");
            assert!(!found.contains("at line 1"), "{found}");
        }
        let found = refusal("\n[0, 512, 1, [0]]");
        assert_eq!(found, "line 2: expected one JSON object, found something else");
    }

    #[test]
    fn a_file_without_rows_is_refused() {
        for text in ["", "\n\n  \n"] {
            assert!(matches!(read(text), Err(TraceError::Empty)));
        }
    }

    #[test]
    fn a_line_over_the_limit_is_refused_unread() {
        let spaces = io::repeat(b' ');
        let first = io::Cursor::new(b"\n");
        let error = read_trace(io::BufReader::new(first.chain(spaces))).unwrap_err();
        assert!(error.to_string().contains("line 2: expected a line of at most 16777216 bytes"));
    }

    #[test]
    fn what_could_not_be_read_back_is_not_written() {
        let mut trace = read(GOOD).unwrap();
        trace.block_tokens = 16;
        let mut written = Vec::new();
        let error = write_trace(&trace, &mut written).unwrap_err();
        assert!(matches!(error, TraceError::BlockTokens { expected: 512, found: 16 }));
        trace.block_tokens = 512;
        trace.requests[1].blocks.push(9);
        let error = write_trace(&trace, &mut written).unwrap_err();
        assert!(matches!(error, TraceError::Row { line: 2, fault: RowFault::BlockCount { .. } }));
        assert!(written.is_empty());
        trace.requests.clear();
        assert!(matches!(trace.check(), Err(TraceError::Empty)));
    }
}
