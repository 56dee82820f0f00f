//! In which bytes a request and its answer travel: JSON, or postcard for who asks often.
//!
//! Both are of the same forms ([`pinfold_host::dto`]). postcard has no names in it, so its content
//! type carries the version of the forms; a change of them that is not only another variant behind
//! the last one is another version.

use axum::http::HeaderValue;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An encoding of requests and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// For people and for programs of every language.
    Json,
    /// Smaller and quicker to read.
    #[default]
    Postcard,
}

impl Encoding {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Json, Self::Postcard];

    /// The content type that names it.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Postcard => "application/vnd.pinfold.v1+postcard",
        }
    }

    /// The encoding that a content type names, whatever its parameters.
    pub(crate) fn of(header: &HeaderValue) -> Option<Self> {
        let kind = header.to_str().ok()?.split(';').next()?.trim();
        Self::ALL.into_iter().find(|it| kind.eq_ignore_ascii_case(it.content_type()))
    }

    /// The bytes of a value.
    ///
    /// # Errors
    /// Words that say what cannot be written.
    pub fn encode<T: Serialize>(self, value: &T) -> Result<Vec<u8>, String> {
        match self {
            Self::Json => serde_json::to_vec(value).map_err(|error| error.to_string()),
            Self::Postcard => postcard::to_allocvec(value).map_err(|error| error.to_string()),
        }
    }

    /// The value of exactly these bytes.
    ///
    /// # Errors
    /// Words that say what was expected, and where.
    pub fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, String> {
        match self {
            Self::Json => {
                let mut reader = serde_json::Deserializer::from_slice(bytes);
                let value = serde_path_to_error::deserialize(&mut reader)
                    .map_err(|error| format!("{}: {}", error.path(), error.inner()))?;
                reader.end().map_err(|error| error.to_string())?;
                Ok(value)
            }
            Self::Postcard => match postcard::take_from_bytes(bytes) {
                Ok((value, [])) => Ok(value),
                Ok((_, rest)) => Err(format!("{} bytes behind the end", rest.len())),
                Err(error) => Err(format!("it is not postcard of version 1: {error}")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use pinfold_core::catalog::{Command, Prepare, Shape, ShardShape};
    use pinfold_core::engine::{Reply, Request};
    use pinfold_core::few::Few;
    use pinfold_core::id::{
        AttemptId, CheckpointId, EndpointId, Epoch, Generation, Incarnation, ManifestDigest, OpId,
        OwnerId, PinId, ShardIndex,
    };
    use pinfold_core::outcome::{Evidence, Outcome, Pinned, Rejection};
    use pinfold_host::dto::{Answer, Ask, Call};

    use super::*;

    const OP: OpId =
        OpId { owner: OwnerId::from_u128(0xA), incarnation: Incarnation(1), sequence: 2 };

    fn call() -> Call {
        let pin = PinId { op: OP, place: 3 };
        let prepare = Prepare {
            attempt: AttemptId::from_u128(0xB),
            endpoint: EndpointId::from_u128(0xC),
            digest: ManifestDigest::from_bytes([0xD; 32]),
            shape: Shape::new(&[ShardShape { objects: 4, bytes: 300 }]).unwrap(),
            shards: vec![ShardIndex(0)],
        };
        let settle = Command::Settle { pin, shard: None, evidence: Evidence::QuiescedSuccess };
        let list = vec![(OP, Command::Prepare(prepare)), (OP, settle)];
        Call { epoch: Epoch::from_u128(0xE), ask: Ask::from(Request::List(list)) }
    }

    fn answer() -> Answer {
        let checkpoint =
            CheckpointId { endpoint: EndpointId::from_u128(0xC), generation: Generation(7) };
        let mut pinned = Few::new();
        assert!(pinned.push(Pinned { checkpoint, digest: ManifestDigest::from_bytes([0xD; 32]) }));
        let answers =
            vec![Some(Ok(Outcome::Pinned(pinned))), Some(Err(Rejection::TurnExpired)), None];
        Answer::from(Reply::List(answers))
    }

    fn id(last: &str) -> String {
        format!("{}{last}", "0".repeat(30))
    }

    /// The bytes of version 1: they never change.
    #[test]
    fn postcard_stays_what_it_is() {
        let hex = |bytes: Vec<u8>| bytes.iter().map(|it| format!("{it:02x}")).collect::<String>();
        let op = format!("{}0102", id("0a"));
        let prepare = format!("00{}{}{}0104ac020100", id("0b"), id("0c"), "0d".repeat(32));
        let expected = format!("{}0202{op}{prepare}{op}01{op}030003", id("0e"));
        assert_eq!(hex(Encoding::Postcard.encode(&call()).unwrap()), expected);
        let expected = format!("0203000301{}07{}011b02", id("0c"), "0d".repeat(32));
        assert_eq!(hex(Encoding::Postcard.encode(&answer()).unwrap()), expected);
    }

    #[test]
    fn what_is_written_is_read_and_nothing_more_or_less() {
        for encoding in Encoding::ALL {
            let bytes = encoding.encode(&call()).unwrap();
            assert_eq!(encoding.decode(&bytes), Ok(call()));
            assert_eq!(encoding.decode(&encoding.encode(&answer()).unwrap()), Ok(answer()));
            let longer = [&bytes[..], b"1"].concat();
            assert!(encoding.decode::<Call>(&longer).is_err(), "{encoding:?}");
            for end in 0..bytes.len() {
                assert!(encoding.decode::<Call>(&bytes[..end]).is_err(), "{encoding:?}, {end}");
            }
        }
    }

    #[test]
    fn an_encoding_is_known_by_its_content_type() {
        let of = |text: &'static str| Encoding::of(&HeaderValue::from_static(text));
        assert_eq!(of("Application/JSON; charset=utf-8"), Some(Encoding::Json));
        assert_eq!(of("application/vnd.pinfold.v1+postcard"), Some(Encoding::Postcard));
        assert_eq!(of("application/vnd.pinfold.v2+postcard"), None);
        assert_eq!(of("text/plain"), None);
    }
}
