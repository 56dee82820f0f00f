//! Which format a file has: the first row says it, and no later row may say something else.

use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::chat::{CHAT_BLOCK_TOKENS, Chats};
use super::fault::RowFault;
use super::mooncake::{MOONCAKE_BLOCK_TOKENS, parse_mooncake};
use super::row::{parse_object, some};
use super::session::Sessions;
use super::{Request, checks};

/// A format of rows. A row with a `chat_id` is of the one with chats, else a row with a
/// `session_id` of the one with sessions, else of the Mooncake one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `timestamp` (ms), `input_length`, `output_length` (tokens) and `hash_ids`: a prefix hash for
    /// every 512 tokens. It names no conversations.
    Mooncake,
    /// The same with `session_id`, and `delay` (ms) beside or instead of `timestamp`.
    Session,
    /// `chat_id`, `parent_chat_id`, `turn`, `type`, `timestamp` (seconds), `input_length`,
    /// `output_length` (tokens) and `hash_ids`: a hash for every 16 tokens.
    Chat,
}

impl Format {
    /// Tokens in a full block, which rows leave unsaid.
    #[must_use]
    pub const fn block_tokens(self) -> u32 {
        match self {
            Self::Mooncake | Self::Session => MOONCAKE_BLOCK_TOKENS,
            Self::Chat => CHAT_BLOCK_TOKENS,
        }
    }

    /// The format that a row shows; none when it is not even an object.
    fn of(row: &[u8]) -> Option<Self> {
        let named: Named = parse_object(row).ok()?;
        Some(match (named.chat_id, named.session_id) {
            (Some(_), _) => Self::Chat,
            (None, Some(_)) => Self::Session,
            (None, None) => Self::Mooncake,
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mooncake => "a row with neither session_id nor chat_id",
            Self::Session => "a row with session_id",
            Self::Chat => "a row with chat_id",
        })
    }
}

/// The fields by which formats differ, whatever their values.
#[derive(Deserialize)]
struct Named {
    #[serde(default, deserialize_with = "some")]
    chat_id: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "some")]
    session_id: Option<IgnoredAny>,
}

/// The rows of one file: their format, and what it remembers from row to row.
pub(super) enum Rows {
    Mooncake,
    Session(Sessions),
    Chat(Chats),
}

impl Rows {
    /// Before the first row, which says the format; of one that is no object, reading it will say
    /// what is wrong.
    pub(super) fn of_first(row: &[u8]) -> Self {
        match Format::of(row).unwrap_or(Format::Mooncake) {
            Format::Mooncake => Self::Mooncake,
            Format::Session => Self::Session(Sessions::default()),
            Format::Chat => Self::Chat(Chats::default()),
        }
    }

    pub(super) const fn format(&self) -> Format {
        match self {
            Self::Mooncake => Format::Mooncake,
            Self::Session(_) => Format::Session,
            Self::Chat(_) => Format::Chat,
        }
    }

    /// Reads the row after these requests.
    pub(super) fn read(
        &mut self,
        line: u64,
        earlier: &[Request],
        row: &[u8],
    ) -> Result<Request, RowFault> {
        checks::place(earlier)?;
        let read = match self {
            Self::Mooncake => parse_mooncake(row),
            Self::Session(sessions) => sessions.read(earlier, row),
            Self::Chat(chats) => chats.read(line, earlier, row),
        };
        let expected = self.format();
        // A row of another format always lacks a field of this one, or has an unknown one.
        read.map_err(|fault| match Format::of(row) {
            Some(found) if found != expected => RowFault::Format { expected, found },
            Some(_) | None => fault,
        })
    }
}
