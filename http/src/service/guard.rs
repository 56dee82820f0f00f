//! Who may ask: whoever has the token or a certificate, or anybody on this machine where neither is
//! asked for.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use subtle::ConstantTimeEq;

use super::ServiceOptions;

/// The fewest bytes of a token: 128 bits in hexadecimal.
const FEWEST: usize = 32;

/// What a header has in front of a token.
const BEARER: &[u8] = b"Bearer ";

/// A secret that every request brings along. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// A token that will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It can be guessed.
    #[error(
        "the token has {0} characters: it needs at least {FEWEST}, like `openssl rand -hex 32`"
    )]
    Short(usize),
    /// No header can carry it.
    #[error("the token has a character that is no letter, digit or one of -._~+/=")]
    Character,
}

impl Token {
    /// A token; white space around it is no part of it.
    ///
    /// # Errors
    /// [`TokenError`] when it could be guessed, or no header can carry it.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let fits = |it: char| it.is_ascii_alphanumeric() || "-._~+/=".contains(it);
        match text.len() {
            short if short < FEWEST => Err(TokenError::Short(short)),
            _ if !text.chars().all(fits) => Err(TokenError::Character),
            _ => Ok(Self(text.to_string())),
        }
    }

    /// What a request brings along.
    #[must_use]
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether an `Authorization` header has this token, in the same time whatever it has.
    pub(super) fn is_in(&self, header: &[u8]) -> bool {
        let (scheme, sent) = header.split_at_checked(BEARER.len()).unwrap_or_default();
        let sent = if scheme.eq_ignore_ascii_case(BEARER) { sent } else { &[] };
        sent.ct_eq(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// An address that others could reach, with nothing to keep them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} can be reached from other machines, and whoever reaches it may do everything: give it a \
     token, take only clients with a certificate, or listen on a loopback address like \
     127.0.0.1:7311"
)]
pub struct Open(pub SocketAddr);

/// Where neither a token nor a client's certificate is asked for, only this machine may reach the
/// service.
pub(super) fn check(address: SocketAddr, options: &ServiceOptions) -> Result<(), Open> {
    match options.knows_who_asks() || address.ip().is_loopback() {
        true => Ok(()),
        false => Err(Open(address)),
    }
}

/// Whether a `Host` header names this machine. Without a token, a browser that a stranger's page
/// has led here under that stranger's name is told from one that was sent here by its user.
pub(super) fn is_here(host: &[u8]) -> bool {
    let Ok(host) = str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_and_compared_whole() {
        let text = "0123456789abcdef0123456789abcdef";
        let token = Token::new(&format!(" {text}\n")).unwrap();
        assert!(token.is_in(format!("Bearer {text}").as_bytes()));
        assert!(token.is_in(format!("bearer {text}").as_bytes()));
        for wrong in ["", text, "Bearer ", "Bearer 0", "Basic 0123456789abcdef0123456789abcdef"] {
            assert!(!token.is_in(wrong.as_bytes()), "{wrong}");
        }
        assert!(!token.is_in(format!("Bearer {text}0").as_bytes()));
        assert_eq!(Token::new("short"), Err(TokenError::Short(5)));
        assert_eq!(Token::new(&format!("{text} {text}")), Err(TokenError::Character));
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test]
    fn a_stranger_has_another_name() {
        for here in ["localhost", "LOCALHOST:7311", "127.0.0.1:80", "127.8.8.8", "[::1]:7311"] {
            assert!(is_here(here.as_bytes()), "{here}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:7311",
            "localhost.evil.example",
            "10.0.0.1",
            "127.0.0.1.evil.example:80",
            "[::2]:1",
        ] {
            assert!(!is_here(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn only_this_machine_needs_no_token() {
        let token = Some(Token::new(&"k".repeat(32)).unwrap());
        let open = ServiceOptions::default();
        let guarded = ServiceOptions { token, ..ServiceOptions::default() };
        for (address, alone) in [("127.0.0.1:1", true), ("[::1]:1", true), ("0.0.0.0:1", false)] {
            let address = address.parse().unwrap();
            assert_eq!(check(address, &open).is_ok(), alone, "{address}");
            assert_eq!(check(address, &guarded), Ok(()));
        }
    }
}
