//! The Mooncake format: rows that name no conversations.

use std::io::{self, Write};

use serde::Deserialize;

use super::fault::{RowFault, TraceError};
use super::row::parse_object;
use super::{Continues, Request, Trace};

/// Tokens in a block of the Mooncake format, which its rows leave unsaid.
pub const MOONCAKE_BLOCK_TOKENS: u32 = 512;

/// A row of the Mooncake format.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "one JSON object")]
struct MooncakeRow {
    #[serde(alias = "created_time")]
    timestamp: u64,
    #[serde(alias = "input_tokens")]
    input_length: u32,
    #[serde(alias = "output_tokens")]
    output_length: u32,
    hash_ids: Vec<u64>,
}

pub(super) fn parse_mooncake(row: &[u8]) -> Result<Request, RowFault> {
    let row: MooncakeRow = parse_object(row)?;
    Ok(Request {
        arrival_ms: row.timestamp,
        input_tokens: row.input_length,
        output_tokens: row.output_length,
        blocks: row.hash_ids,
        continues: Continues::Unsaid,
    })
}

/// Writes a trace in the Mooncake format, one row a line, in the spelling of the published traces.
///
/// The trace is checked first, so that what is written can be read; of a bad one nothing is
/// written, nor of one that says more than the format can hold.
///
/// # Errors
/// What [`Trace::check`] finds, [`TraceError::BlockTokens`] for another block size,
/// [`TraceError::Named`] for a trace that names conversations, or a target that fails.
pub fn write_trace<W: Write>(trace: &Trace, mut writer: W) -> Result<(), TraceError> {
    if trace.block_tokens != MOONCAKE_BLOCK_TOKENS {
        let expected = MOONCAKE_BLOCK_TOKENS;
        return Err(TraceError::BlockTokens { expected, found: trace.block_tokens });
    }
    trace.check()?;
    let named = |request: &Request| request.continues != Continues::Unsaid;
    if let Some((place, _)) = (1..).zip(&trace.requests).find(|(_, request)| named(request)) {
        return Err(TraceError::Named { place });
    }
    let mut line = 1;
    for request in &trace.requests {
        write_row(request, &mut writer).map_err(|source| TraceError::Io { line, source })?;
        line += 1;
    }
    writer.flush().map_err(|source| TraceError::Io { line, source })
}

fn write_row<W: Write>(request: &Request, writer: &mut W) -> io::Result<()> {
    let Request { arrival_ms, input_tokens, output_tokens, blocks, continues: _ } = request;
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
