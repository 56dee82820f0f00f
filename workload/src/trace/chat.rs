//! The format with chats (the Bailian traces): each row names the chat that it continues.
//!
//! A row's chat is one request. A chat without a parent is turn 1, every other one has the turn
//! after its parent's. A published trace is a window of a longer log, so a parent may lie before
//! the file's first row: a chat of turn 2 or later whose parent is not there begins a conversation
//! of its own. Only the order of the file tells such a parent from a misplaced one, hence a chat
//! that stands below one which continues it is refused.
//!
//! The ids of blocks may be hashes of a block's content alone. They are numbered anew, so that an
//! id stands for a block together with everything before it, as in every other format.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::checks::{not_before, place};
use super::fault::RowFault;
use super::row::parse_object;
use super::{Continues, Request};

/// Tokens in a block of the format with chats, which its rows leave unsaid.
pub const CHAT_BLOCK_TOKENS: u32 = 16;

/// What is wrong with a row that has a `chat_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatFault {
    /// The time is negative, or later than 64 bits of milliseconds can say.
    #[error("expected a timestamp in seconds, from 0 to 18446744073709551, found another number")]
    Time,
    /// An earlier row is the same chat.
    #[error("expected a chat_id of its own, found chat {chat} of line {first_line} again")]
    Twice {
        /// The chat.
        chat: u64,
        /// The line that has it first.
        first_line: u64,
    },
    /// A chat stands behind one that continues it.
    #[error("expected chat {chat} above line {line}, which continues it, found it here")]
    Late {
        /// The chat.
        chat: u64,
        /// The first line that names it as the parent.
        line: u64,
    },
    /// A chat without a parent is not a first turn.
    #[error("expected turn 1 of a chat without a parent, found turn {found}")]
    TurnOfFirst {
        /// The turn that it has.
        found: u32,
    },
    /// A chat is not the turn after its parent's.
    #[error("expected turn {expected}, the one after that of chat {parent}, found turn {found}")]
    TurnAfter {
        /// The parent.
        parent: u64,
        /// The turn after the parent's.
        expected: u64,
        /// The turn that it has.
        found: u32,
    },
    /// A chat with a parent that is not there claims to be the first turn.
    #[error(
        "expected turn 2 or later of a chat whose parent, chat {parent}, is not above, found \
         turn {found}"
    )]
    TurnOfOrphan {
        /// The parent.
        parent: u64,
        /// The turn that it has.
        found: u32,
    },
}

/// A row with a chat.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "one JSON object")]
struct ChatRow {
    chat_id: u64,
    parent_chat_id: ParentChat,
    turn: u32,
    #[serde(alias = "created_time")]
    timestamp: f64,
    #[serde(alias = "input_tokens")]
    input_length: u32,
    #[serde(alias = "output_tokens")]
    output_length: u32,
    /// What kind of prompt it was; it changes nothing about what can be kept.
    #[serde(rename = "type")]
    _kind: String,
    hash_ids: Vec<u64>,
}

/// A parent's `chat_id`; none for -1.
struct ParentChat(Option<u64>);

impl<'a> Deserialize<'a> for ParentChat {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParentChatVisitor)
    }
}

struct ParentChatVisitor;

impl Visitor<'_> for ParentChatVisitor {
    type Value = ParentChat;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a chat_id, or -1 for none")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<ParentChat, E> {
        Ok(ParentChat(Some(number)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<ParentChat, E> {
        match number {
            -1 => Ok(ParentChat(None)),
            _ => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }
}

/// A chat that stands above.
#[derive(Clone, Copy)]
struct Chat {
    place: u32,
    line: u64,
    turn: u32,
}

/// What is remembered between the rows.
#[derive(Default)]
pub(super) struct Chats {
    chats: BTreeMap<u64, Chat>,
    /// Parents that did not stand above, and the first line that names each.
    orphaned_by: BTreeMap<u64, u64>,
    /// The latest timestamp.
    stamp_ms: u64,
    prefixes: Prefixes,
}

impl Chats {
    /// Reads the row after these requests.
    pub(super) fn read(
        &mut self,
        line: u64,
        earlier: &[Request],
        row: &[u8],
    ) -> Result<Request, RowFault> {
        let row: ChatRow = parse_object(row)?;
        let arrival_ms = milliseconds(row.timestamp).ok_or(ChatFault::Time)?;
        not_before(self.stamp_ms, arrival_ms)?;
        self.stamp_ms = arrival_ms;
        let continues = self.continues(line, &row)?;
        self.remember(row.chat_id, Chat { place: place(earlier)?, line, turn: row.turn })?;
        Ok(Request {
            arrival_ms,
            input_tokens: row.input_length,
            output_tokens: row.output_length,
            blocks: self.prefixes.number(row.hash_ids),
            continues,
        })
    }

    /// What a row continues, once its turn is found to fit.
    fn continues(&mut self, line: u64, row: &ChatRow) -> Result<Continues, ChatFault> {
        let found = row.turn;
        let Some(parent) = row.parent_chat_id.0 else {
            return match found {
                1 => Ok(Continues::Nothing),
                _ => Err(ChatFault::TurnOfFirst { found }),
            };
        };
        let Some(chat) = self.chats.get(&parent) else {
            if found < 2 {
                return Err(ChatFault::TurnOfOrphan { parent, found });
            }
            self.orphaned_by.entry(parent).or_insert(line);
            return Ok(Continues::Nothing);
        };
        let expected = u64::from(chat.turn) + 1;
        if u64::from(found) != expected {
            return Err(ChatFault::TurnAfter { parent, expected, found });
        }
        Ok(Continues::Request(chat.place))
    }

    fn remember(&mut self, chat_id: u64, chat: Chat) -> Result<(), ChatFault> {
        if let Some(&line) = self.orphaned_by.get(&chat_id) {
            return Err(ChatFault::Late { chat: chat_id, line });
        }
        match self.chats.entry(chat_id) {
            Entry::Vacant(vacant) => {
                vacant.insert(chat);
                Ok(())
            }
            Entry::Occupied(first) => {
                Err(ChatFault::Twice { chat: chat_id, first_line: first.get().line })
            }
        }
    }
}

/// Seconds as milliseconds, rounded to the nearest; none when they are negative or too many.
fn milliseconds(seconds: f64) -> Option<u64> {
    let nanoseconds = Duration::try_from_secs_f64(seconds).ok()?.as_nanos();
    u64::try_from((nanoseconds + 500_000) / 1_000_000).ok()
}

/// Prefix hashes for blocks whose ids may be hashes of their content alone.
#[derive(Default)]
struct Prefixes {
    /// The number of each id behind each prefix, counted from 0 as they first occur.
    numbers: BTreeMap<(Option<u64>, u64), u64>,
}

impl Prefixes {
    /// The same blocks, each numbered by its id and everything before it.
    fn number(&mut self, mut blocks: Vec<u64>) -> Vec<u64> {
        let mut parent = None;
        for block in &mut blocks {
            let next = u64::try_from(self.numbers.len()).unwrap_or(u64::MAX);
            *block = *self.numbers.entry((parent, *block)).or_insert(next);
            parent = Some(*block);
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::tests::{read, refusal};

    use super::*;

    /// Chat 55 lies before the window. Block 8 follows two different prefixes.
    const GOOD: &str = "\
{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 0.25, \"input_length\": 40, \
 \"output_length\": 9, \"type\": \"text\", \"turn\": 1, \"hash_ids\": [70, 8, 70]}
{\"chat_id\": 60, \"parent_chat_id\": 55, \"timestamp\": 1, \"input_length\": 32, \
 \"output_length\": 9, \"type\": \"search\", \"turn\": 4, \"hash_ids\": [8, 8]}
{\"chat_id\": 2, \"parent_chat_id\": 1, \"timestamp\": 61.1144, \"input_length\": 33, \
 \"output_length\": 9, \"type\": \"text\", \"turn\": 2, \"hash_ids\": [70, 8, 5]}
{\"chat_id\": 61, \"parent_chat_id\": 60, \"timestamp\": 61.1145, \"input_length\": 0, \
 \"output_length\": 9, \"type\": \"image\", \"turn\": 5, \"hash_ids\": []}
";

    #[test]
    fn a_chat_continues_its_parent_and_blocks_are_numbered_by_prefix() {
        let trace = read(GOOD).unwrap();
        assert_eq!(trace.block_tokens, 16);
        let seen = trace.requests.iter().map(|request| (request.arrival_ms, request.continues));
        let expected = [
            (250, Continues::Nothing),
            (1000, Continues::Nothing),
            (61_114, Continues::Request(0)),
            (61_115, Continues::Request(1)),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        let blocks: Vec<_> = trace.requests.iter().map(|request| &request.blocks[..]).collect();
        let expected: [&[u64]; 4] = [&[0, 1, 2], &[3, 4], &[0, 1, 5], &[]];
        assert_eq!(blocks, expected);
        assert_eq!(trace.requests[0].full_blocks(16), [0, 1]);
        trace.check().unwrap();
    }

    #[test]
    fn other_names_of_the_fields_are_understood() {
        let names = [
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
        let row = "{\"chat_id\": 3, \"parent_chat_id\": 2, \"timestamp\": 62, \
                   \"input_length\": 17, \"output_length\": 1, \"type\": \"text\", \
                   \"turn\": 3, \"hash_ids\": [70, 8]}";
        assert_eq!(read(&format!("{GOOD}{row}")).unwrap().requests.len(), 5);
        let cases = [
            ("id\": 3", "id\": 2", "expected a chat_id of its own, found chat 2 of line 3 again"),
            ("id\": 3", "id\": 55", "expected chat 55 above line 2, which continues it, found it"),
            ("id\": 2", "id\": 3", "expected chat 3 above line 5, which continues it, found it"),
            ("id\": 2", "id\": -1", "expected turn 1 of a chat without a parent, found turn 3"),
            ("\"turn\": 3", "\"turn\": 2", "expected turn 3, the one after that of chat 2, found"),
            ("\"turn\": 3", "\"turn\": -3", "invalid value: integer `-3`, expected u32"),
            ("id\": 2", "id\": -2", "invalid value: integer `-2`, expected a chat_id, or -1 for"),
            ("id\": 2", "id\": null", "invalid type: null, expected a chat_id, or -1 for none"),
            ("id\": 2", "id\": \"2\"", "invalid type: string \"2\", expected a chat_id, or -1"),
            ("id\": 3", "id\": -3", "invalid value: integer `-3`, expected u64"),
            (": 62", ": 61.1", "expected a timestamp of at least 61115 ms, found 61100 ms"),
            (": 62", ": -1", "expected a timestamp in seconds, from 0 to 18446744073709551, found"),
            (": 62", ": 1e30", "expected a timestamp in seconds, from 0 to 18446744073709551, f"),
            (": 62", ": 18446744073709552", "expected a timestamp in seconds, from 0 to 184467440"),
            (": 62", ": \"62\"", "invalid type: string \"62\", expected f64"),
            ("\"text\"", "1", "invalid type: integer `1`, expected a string"),
            ("\"type\": \"text\", ", "", "missing field `type`"),
            ("\"turn\": 3, ", "", "missing field `turn`"),
            ("\"parent_chat_id\": 2, ", "", "missing field `parent_chat_id`"),
            ("\"type\"", "\"delay\"", "unknown field `delay`"),
            ("\"type\"", "\"created_time\": 62, \"type\"", "duplicate field `timestamp`"),
            (
                "\"chat_id\": 3, ",
                "",
                "expected a row with chat_id, as the first one is, found a row with neither",
            ),
            ("\"chat_id\": 3", "\"session_id\": 3", "one is, found a row with session_id"),
            ("[70, 8]", "[70]", "expected 2 hash_ids, one for every 16 tokens of input_length 17"),
        ];
        for (good, bad, expected) in cases {
            assert!(row.contains(good), "{good}");
            let found = refusal(&format!("{GOOD}{}", row.replacen(good, bad, 1)));
            assert!(found.starts_with("line 5: "), "{found}");
            assert!(found.contains(expected), "{found}\nexpected: {expected}");
        }
        let orphan = row.replacen("id\": 2", "id\": 99", 1);
        assert_eq!(read(&format!("{GOOD}{orphan}")).unwrap().requests.len(), 5);
        let found = refusal(&format!("{GOOD}{}", orphan.replacen("turn\": 3", "turn\": 1", 1)));
        let expected = "line 5: expected turn 2 or later of a chat whose parent, chat 99, is not \
                        above, found turn 1";
        assert_eq!(found, expected);
    }
}
