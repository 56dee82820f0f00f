//! Identities as text: the forms in which the rest of the project shows them, read back strictly.
//!
//! Each identity has one text and no other: a leading zero, a plus sign or an upper-case digit is
//! refused. An encoding that nobody reads by eye has them in the core's own form instead.

use std::fmt::Display;

use pinfold_core::id::{
    CheckpointId, Generation, Id, Incarnation, Kind, ManifestDigest, Namespace, ObjectId, OpId,
    PinId, ShardIndex,
};
use pinfold_core::outcome::TurnKey;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is read back from its text.
pub(crate) trait Readable: Sized {
    /// What the text should have been.
    const EXPECTED: &'static str;

    fn read(text: &str) -> Option<Self>;
}

pub(crate) fn serialize<T: Display + Serialize, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    One(value).serialize(serializer)
}

pub(crate) fn deserialize<'de, T: Readable + Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    One::deserialize(deserializer).map(|One(value)| value)
}

/// A value as its text where people read, and in the core's own form where only programs do.
struct One<T>(T);

impl<T: Display + Serialize> Serialize for One<&T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self.0),
            false => self.0.serialize(serializer),
        }
    }
}

impl<'de, T: Readable + Deserialize<'de>> Deserialize<'de> for One<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return T::deserialize(deserializer).map(Self);
        }
        let text = String::deserialize(deserializer)?;
        let unreadable = || {
            D::Error::custom(format_args!(
                "expected {}, found \"{}\"",
                T::EXPECTED,
                text.escape_debug()
            ))
        };
        T::read(&text).map(Self).ok_or_else(unreadable)
    }
}

/// The same for what may be missing.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Display, One, Readable, Serialize, Serializer};

    pub(crate) fn serialize<T: Display + Serialize, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(One).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: Readable + Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        Ok(Option::<One<T>>::deserialize(deserializer)?.map(|One(value)| value))
    }
}

/// The same for a list.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, Display, One, Readable, Serialize, Serializer};

    pub(crate) fn serialize<T: Display + Serialize, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(One))
    }

    pub(crate) fn deserialize<'de, T: Readable + Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        let all = Vec::<One<T>>::deserialize(deserializer)?;
        Ok(all.into_iter().map(|One(value)| value).collect())
    }
}

impl<K: Kind> Readable for Id<K> {
    const EXPECTED: &'static str = "32 lower-case hexadecimal digits";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Readable for Namespace {
    const EXPECTED: &'static str = "1 to 64 characters of a-z, 0-9 and '-'";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Readable for ManifestDigest {
    const EXPECTED: &'static str = "64 lower-case hexadecimal digits";

    fn read(text: &str) -> Option<Self> {
        Some(Self::from_bytes(bytes(text)?.try_into().ok()?))
    }
}

impl Readable for OpId {
    const EXPECTED: &'static str = "an operation, owner.incarnation.sequence";

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let owner = parts.next()?.parse().ok()?;
        let incarnation = Incarnation(number(parts.next()?)?);
        let sequence = number(parts.next()?)?;
        parts.next().is_none().then_some(Self { owner, incarnation, sequence })
    }
}

impl Readable for PinId {
    const EXPECTED: &'static str = "a pin, owner.incarnation.sequence.place";

    fn read(text: &str) -> Option<Self> {
        let (op, place) = text.rsplit_once('.')?;
        let place = number(place)?.try_into().ok()?;
        Some(Self { op: OpId::read(op)?, place })
    }
}

impl Readable for CheckpointId {
    const EXPECTED: &'static str = "a checkpoint, endpoint@generation";

    fn read(text: &str) -> Option<Self> {
        let (endpoint, generation) = text.split_once('@')?;
        let endpoint = endpoint.parse().ok()?;
        Some(Self { endpoint, generation: Generation(number(generation)?) })
    }
}

impl Readable for ObjectId {
    const EXPECTED: &'static str = "an object, shard/index";

    fn read(text: &str) -> Option<Self> {
        let (shard, index) = text.split_once('/')?;
        let shard = ShardIndex(number(shard)?.try_into().ok()?);
        Some(Self { shard, index: number(index)?.try_into().ok()? })
    }
}

impl Readable for TurnKey {
    const EXPECTED: &'static str = "a turn, conversation/turn";

    fn read(text: &str) -> Option<Self> {
        let (conversation, turn) = text.split_once('/')?;
        Some(Self { conversation: conversation.parse().ok()?, turn: turn.parse().ok()? })
    }
}

/// A decimal number in its only text.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Bytes from lower-case hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let lower = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if !text.len().is_multiple_of(2) || !text.bytes().all(lower) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use pinfold_core::id::{EndpointId, OwnerId};

    use super::*;

    fn back<T: Readable + Display + PartialEq + Debug>(value: &T) {
        assert_eq!(T::read(&value.to_string()).as_ref(), Some(value));
    }

    #[test]
    fn every_identity_comes_back_from_its_text() {
        let owner = OwnerId::of_name("worker");
        let op = OpId { owner, incarnation: Incarnation(3), sequence: u64::MAX };
        back(&owner);
        back(&op);
        back(&PinId { op, place: 7 });
        back(&CheckpointId { endpoint: EndpointId::from_u128(5), generation: Generation(258) });
        back(&ObjectId { shard: ShardIndex(65_535), index: 17 });
        back(&ManifestDigest::from_bytes([0xa7; 32]));
    }

    #[test]
    fn any_other_text_is_refused() {
        let owner = OwnerId::of_name("worker");
        for bad in ["", ".1.1", "1.1", &format!("{owner}.01.1"), &format!("{owner}.+1.1")] {
            assert_eq!(OpId::read(bad), None, "{bad}");
        }
        for bad in ["0/00", "65536/0", "0", "0/0/0", "-1/0", "0/ 0"] {
            assert_eq!(ObjectId::read(bad), None, "{bad}");
        }
        assert_eq!(PinId::read(&format!("{owner}.1.1.256")), None);
        assert_eq!(ManifestDigest::read(&"A7".repeat(32)), None);
        assert_eq!(ManifestDigest::read("é"), None);
    }
}
