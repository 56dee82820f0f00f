//! What a request comes to that is not answered: `application/problem+json`, with a stable code.
//!
//! A refusal of the catalog is no problem but an answer, and comes with 200.

use serde::{Deserialize, Serialize};

/// Why a request got no answer, by a name that programs may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The body or a parameter cannot be read.
    Malformed,
    /// The token is missing or wrong; or none is asked for, and a stranger's name was used.
    Unauthorized,
    /// There is no such path, or nothing of this name.
    NotFound,
    /// The path knows other methods.
    WrongMethod,
    /// The body is larger than it may be.
    TooLarge,
    /// The body is in no [encoding](crate::encoding) that is known.
    WrongContentType,
    /// More requests or bodies are under way than may be.
    Busy,
    /// The body took longer than it may, and nothing was done; or the answer did, and nobody knows
    /// what became of the request.
    TimedOut,
    /// The service takes nothing new any more.
    Draining,
    /// The node is gone; nobody knows what became of the request.
    Gone,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Malformed,
        Self::Unauthorized,
        Self::NotFound,
        Self::WrongMethod,
        Self::TooLarge,
        Self::WrongContentType,
        Self::Busy,
        Self::TimedOut,
        Self::Draining,
        Self::Gone,
    ];

    /// Its status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Unauthorized => 401,
            Self::NotFound => 404,
            Self::WrongMethod => 405,
            Self::TooLarge => 413,
            Self::WrongContentType => 415,
            Self::Busy | Self::Draining | Self::Gone => 503,
            Self::TimedOut => 504,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Malformed => "the request cannot be read",
            Self::Unauthorized => "the token is missing or wrong",
            Self::NotFound => "there is nothing here",
            Self::WrongMethod => "this path knows other methods",
            Self::TooLarge => "the body is too large",
            Self::WrongContentType => "the body is of another type",
            Self::Busy => "too much is under way",
            Self::TimedOut => "it took too long",
            Self::Draining => "the coordinator is shutting down",
            Self::Gone => "the coordinator's node is gone",
        }
    }
}

/// A problem, as it is sent (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{title}: {detail}")]
pub struct Problem {
    /// Which one.
    pub code: Code,
    /// The HTTP status.
    pub status: u16,
    /// What it is, in the same words each time.
    pub title: String,
    /// What was wrong this time, and what to do.
    pub detail: String,
}

impl Problem {
    /// A problem with these details.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let (status, title) = (code.status(), code.title().to_string());
        Self { code, status, title, detail: detail.into() }
    }
}
