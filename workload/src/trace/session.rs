//! The Mooncake format with sessions: a request continues the one before it in its session.
//!
//! A request arrives at its `timestamp`; without one it arrives its `delay` after the request
//! before it in its session, or after the start of the trace when it is the session's first. So
//! rows stand in any order of arrival, and keep the order of the file. Two things still tell a
//! damaged file: timestamps go backwards, or a request arrives before the one that it continues.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::checks::{at, not_before, place};
use super::fault::RowFault;
use super::row::{parse_object, some};
use super::{Continues, Request};

/// What is wrong with a row that has a `session_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionFault {
    /// Nothing says when the request arrives.
    #[error("expected a timestamp or a delay, found neither")]
    NoArrival,
    /// The request arrives later than 64 bits of milliseconds can say.
    #[error("expected a delay that can be added to {previous_ms} ms, found {delay_ms} ms")]
    DelayTooLong {
        /// When the request before it in its session arrives.
        previous_ms: u64,
        /// The delay.
        delay_ms: u64,
    },
}

/// A row with a session.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "one JSON object")]
struct SessionRow {
    session_id: SessionId,
    #[serde(alias = "created_time", default, deserialize_with = "some")]
    timestamp: Option<u64>,
    #[serde(alias = "delay_ms", default, deserialize_with = "some")]
    delay: Option<u64>,
    #[serde(alias = "input_tokens")]
    input_length: u32,
    #[serde(alias = "output_tokens")]
    output_length: u32,
    hash_ids: Vec<u64>,
}

/// The name of a session; a number and its digits in quotes are two names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SessionId {
    Text(String),
    Unsigned(u64),
    Negative(i64),
}

impl<'a> Deserialize<'a> for SessionId {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SessionIdVisitor)
    }
}

struct SessionIdVisitor;

impl Visitor<'_> for SessionIdVisitor {
    type Value = SessionId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an integer")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SessionId, E> {
        Ok(SessionId::Text(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<SessionId, E> {
        Ok(SessionId::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<SessionId, E> {
        Ok(SessionId::Negative(number))
    }
}

/// What is remembered between the rows.
#[derive(Default)]
pub(super) struct Sessions {
    /// The place of each session's latest request.
    latest: BTreeMap<SessionId, u32>,
    /// The latest timestamp.
    stamp_ms: u64,
}

impl Sessions {
    /// Reads the row after these requests.
    pub(super) fn read(&mut self, earlier: &[Request], row: &[u8]) -> Result<Request, RowFault> {
        let row: SessionRow = parse_object(row)?;
        let latest = self.latest.insert(row.session_id, place(earlier)?);
        let previous = latest.and_then(|place| at(earlier, place));
        let previous_ms = previous.map_or(0, |previous| previous.arrival_ms);
        let arrival_ms = match (row.timestamp, row.delay) {
            (Some(stamp_ms), _) => {
                not_before(self.stamp_ms, stamp_ms)?;
                self.stamp_ms = stamp_ms;
                stamp_ms
            }
            (None, Some(delay_ms)) => previous_ms
                .checked_add(delay_ms)
                .ok_or(SessionFault::DelayTooLong { previous_ms, delay_ms })?,
            (None, None) => return Err(SessionFault::NoArrival.into()),
        };
        Ok(Request {
            arrival_ms,
            input_tokens: row.input_length,
            output_tokens: row.output_length,
            blocks: row.hash_ids,
            continues: latest.map_or(Continues::Nothing, Continues::Request),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::tests::{read, refusal};

    use super::*;

    const GOOD: &str = "\
{\"session_id\": \"a\", \"timestamp\": 5, \"input_length\": 600, \"output_length\": 7, \
 \"hash_ids\": [1, 2]}
{\"session_id\": 4, \"delay\": 90, \"input_length\": 512, \"output_length\": 7, \"hash_ids\": [9]}
{\"session_id\": \"a\", \"delay\": 20, \"input_length\": 1024, \"output_length\": 7, \
 \"hash_ids\": [1, 3]}
{\"session_id\": 4, \"timestamp\": 100, \"delay\": 3, \"input_length\": 0, \
 \"output_length\": 7, \"hash_ids\": []}
";

    #[test]
    fn a_request_continues_its_session_and_a_delay_counts_from_there() {
        let trace = read(GOOD).unwrap();
        assert_eq!(trace.block_tokens, 512);
        let seen = trace.requests.iter().map(|request| (request.arrival_ms, request.continues));
        let expected = [
            (5, Continues::Nothing),
            (90, Continues::Nothing),
            (25, Continues::Request(0)),
            (100, Continues::Request(1)),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        let first = &trace.requests[0];
        assert_eq!((first.input_tokens, first.output_tokens), (600, 7));
        assert_eq!(first.blocks, [1, 2]);
    }

    #[test]
    fn names_are_strings_or_integers_and_those_differ() {
        let row = |id: &str| {
            format!(
                "{{\"session_id\": {id}, \"delay\": 1, \"input_length\": 0, \
                 \"output_length\": 0, \"hash_ids\": []}}\n"
            )
        };
        let ids = ["\"7\"", "7", "-7", "\"\"", "18446744073709551615", "\"\\u0037\""];
        let trace = read(&ids.map(row).concat()).unwrap();
        let seen: Vec<_> = trace.requests.iter().map(|request| request.continues).collect();
        assert_eq!(seen[..5], [Continues::Nothing; 5]);
        assert_eq!(seen[5], Continues::Request(0));
        for id in ["null", "1.5", "[7]", "true", "1e3", "18446744073709551616"] {
            let found = refusal(&row(id));
            assert!(found.contains("expected a string or an integer"), "{id}: {found}");
        }
    }

    #[test]
    fn other_names_of_the_fields_are_understood() {
        let names = [
            ("delay", "delay_ms"),
            ("timestamp", "created_time"),
            ("input_length", "input_tokens"),
            ("output_length", "output_tokens"),
        ];
        for (name, other) in names {
            let text = GOOD.replace(name, other);
            assert_eq!(read(&text).unwrap(), read(GOOD).unwrap(), "{other}");
        }
    }

    #[test]
    fn a_bad_row_is_refused_with_its_line_and_what_was_expected() {
        let row = "{\"session_id\": \"a\", \"timestamp\": 200, \"delay\": 5, \
                   \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1, 2]}";
        assert_eq!(read(&format!("{GOOD}{row}")).unwrap().requests.len(), 5);
        let cases = [
            ("\"timestamp\": 200, \"delay\": 5, ", "", "expected a timestamp or a delay, found n"),
            (": 200", ": 99", "expected a timestamp of at least 100 ms, found 99 ms"),
            (": 200", ": 2.5", "invalid type: floating point `2.5`, expected u64"),
            (": 200", ": null", "invalid type: null, expected u64"),
            ("\"delay\": 5", "\"delay\": -5", "invalid value: integer `-5`, expected u64"),
            ("\"delay\": 5", "\"delay\": null", "invalid type: null, expected u64"),
            (
                "\"timestamp\": 200, \"delay\": 5",
                "\"delay\": 18446744073709551615",
                "expected a delay that can be added to 25 ms, found 18446744073709551615 ms",
            ),
            ("\"timestamp\"", "\"delay_ms\": 5, \"timestamp\"", "duplicate field `delay`"),
            ("\"delay\"", "\"created_time\"", "duplicate field `timestamp`"),
            ("\"delay\"", "\"turn\"", "unknown field `turn`"),
            ("\"delay\"", "\"session_id\"", "duplicate field `session_id`"),
            (
                "\"session_id\": \"a\", ",
                "",
                "expected a row with session_id, as the first one is, found a row with neither",
            ),
            ("\"delay\": 5", "\"chat_id\": 5", "is, found a row with chat_id"),
            ("[1, 2]", "[1]", "expected 2 hash_ids, one for every 512 tokens of input_length 600"),
            ("[1, 2]", "[2, 1]", "expected block 2 after block 1 as on line 1, found it at the"),
        ];
        for (good, bad, expected) in cases {
            assert!(row.contains(good), "{good}");
            let found = refusal(&format!("{GOOD}{}", row.replacen(good, bad, 1)));
            assert!(found.starts_with("line 5: "), "{found}");
            assert!(found.contains(expected), "{found}\nexpected: {expected}");
        }
    }

    /// A timestamp may not lie before a delay in the same session, whatever other rows say.
    #[test]
    fn a_session_does_not_go_backwards() {
        let text = GOOD.replacen("\"timestamp\": 100", "\"timestamp\": 89", 1);
        let expected = "line 4: expected a timestamp of at least 90 ms, found 89 ms";
        assert_eq!(refusal(&text), expected);
        let text = GOOD.replacen("\"timestamp\": 100", "\"timestamp\": 90", 1);
        assert_eq!(read(&text).unwrap().requests[3].arrival_ms, 90);
    }
}
