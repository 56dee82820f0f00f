//! The trailer that ends every private object: its own key and a checksum of its bytes.
//!
//! It protects a load against the store: an object of the right size that nobody wrote, another
//! object under this key, a truncated or half-written one. Its size is fixed, so that the size of
//! every stored object follows from geometry alone.
//!
//! ```text
//! offset  bytes
//!      0      8  magic "pinfold\0"
//!      8      2  version, 1                      numbers are little-endian
//!     10      2  length of the key text
//!     12      4  zero
//!     16      8  length of the payload in bytes
//!     24      8  checksum, sum lane
//!     32      8  checksum, xor lane
//!     40    161  key text, filled up with zeros
//!    201      7  zero
//! ```
//!
//! Every byte of a trailer is known beforehand or checked, so none can change unseen. It never
//! proves who wrote the bytes: it finds mistakes, not forgers.

mod checksum;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::id::Key;

pub use checksum::{Checksum, ChunkError, Digest, terms};

/// Bytes of a trailer.
pub const TRAILER_BYTES: u32 = 208;

const MAGIC: [u8; 8] = *b"pinfold\0";
const VERSION: u16 = 1;
const KEY_BYTES: usize = Key::MAX_BYTES as usize;

/// What the last bytes of a private object say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// The text of the key under which the object was put.
    pub key: String,
    /// Bytes before the trailer.
    pub payload_bytes: u64,
    /// Checksum of those bytes.
    pub checksum: Digest,
}

impl Trailer {
    /// The trailer's bytes. A key text longer than any of ours is cut.
    #[must_use]
    pub fn encode(&self) -> [u8; TRAILER_BYTES as usize] {
        let mut bytes = [0; TRAILER_BYTES as usize];
        let mut rest = &mut bytes[..];
        let key = &self.key.as_bytes()[..self.key.len().min(KEY_BYTES)];
        let key_length = u16::try_from(key.len()).unwrap_or(u16::MAX);
        for field in [
            &MAGIC[..],
            &VERSION.to_le_bytes(),
            &key_length.to_le_bytes(),
            &[0; 4],
            &self.payload_bytes.to_le_bytes(),
            &self.checksum.sum.to_le_bytes(),
            &self.checksum.xor.to_le_bytes(),
            key,
        ] {
            let (room, after) = rest.split_at_mut(field.len());
            room.copy_from_slice(field);
            rest = after;
        }
        bytes
    }

    /// Reads a trailer's bytes.
    ///
    /// # Errors
    /// When they are not exactly what [`Self::encode`] gives for some trailer.
    pub fn decode(bytes: &[u8; TRAILER_BYTES as usize]) -> Result<Self, TrailerError> {
        if field(bytes, 0) != MAGIC {
            return Err(TrailerError::BadMagic);
        }
        let version = u16::from_le_bytes(field(bytes, 8));
        if version != VERSION {
            return Err(TrailerError::UnknownVersion { version });
        }
        let length = usize::from(u16::from_le_bytes(field(bytes, 10)));
        let key = bytes[40..].get(..length).ok_or(TrailerError::Damaged)?;
        let read = Self {
            key: core::str::from_utf8(key).map_err(|_| TrailerError::Damaged)?.to_string(),
            payload_bytes: u64::from_le_bytes(field(bytes, 16)),
            checksum: Digest {
                sum: u64::from_le_bytes(field(bytes, 24)),
                xor: u64::from_le_bytes(field(bytes, 32)),
            },
        };
        if read.encode() == *bytes { Ok(read) } else { Err(TrailerError::Damaged) }
    }
}

/// The trailer of the object that is put under this key.
#[must_use]
pub fn seal(key: &Key, payload_bytes: u64, checksum: Digest) -> Vec<u8> {
    Trailer { key: key.to_string(), payload_bytes, checksum }.encode().to_vec()
}

/// The payload of the object that was read under this key, once everything about it agrees.
///
/// # Errors
/// The first thing that differs.
pub fn verify<'a>(key: &Key, object: &'a [u8]) -> Result<&'a [u8], TrailerError> {
    let bytes = object.len() as u64;
    let (payload, trailer) = object.split_last_chunk().ok_or(TrailerError::TooShort { bytes })?;
    verify_parts(key, payload.len() as u64, Digest::of(payload), trailer)?;
    Ok(payload)
}

/// The same for a payload that lies elsewhere, such as in device memory, and was summed there.
///
/// # Errors
/// The first thing that differs.
pub fn verify_parts(
    key: &Key,
    payload_bytes: u64,
    checksum: Digest,
    trailer: &[u8; TRAILER_BYTES as usize],
) -> Result<(), TrailerError> {
    let said = Trailer::decode(trailer)?;
    if said.key != key.to_string() {
        return Err(TrailerError::OtherKey { found: said.key });
    }
    if said.payload_bytes != payload_bytes {
        let (said, found) = (said.payload_bytes, payload_bytes);
        return Err(TrailerError::Length { said, found });
    }
    if said.checksum != checksum {
        return Err(TrailerError::Checksum { said: said.checksum, found: checksum });
    }
    Ok(())
}

/// What is wrong with a stored object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrailerError {
    /// Too short to end in a trailer.
    #[error("the object has {bytes} bytes, less than its trailer: report it lost")]
    TooShort {
        /// How many bytes it has.
        bytes: u64,
    },
    /// It does not end in a trailer of ours.
    #[error("the object ends in no trailer: it was not written whole, report it lost")]
    BadMagic,
    /// The trailer's version is none that this build knows.
    #[error("trailer version {version} is unknown: read it with a newer build")]
    UnknownVersion {
        /// The version found.
        version: u16,
    },
    /// The trailer contradicts itself.
    #[error("the trailer is damaged: report the object lost")]
    Damaged,
    /// The object was put under another key.
    #[error("the object was put under the key {found:?}: report it lost")]
    OtherKey {
        /// That key's text.
        found: String,
    },
    /// The payload has another length.
    #[error("the payload should have {said} bytes and has {found}: report the object lost")]
    Length {
        /// What the trailer says.
        said: u64,
        /// What was read.
        found: u64,
    },
    /// The payload has another checksum.
    #[error("the payload's checksum should be {said} and is {found}: report the object lost")]
    Checksum {
        /// What the trailer says.
        said: Digest,
        /// What was computed.
        found: Digest,
    },
}

impl TrailerError {
    /// The error's stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooShort { .. } => "object_too_short",
            Self::BadMagic => "no_trailer",
            Self::UnknownVersion { .. } => "unknown_version",
            Self::Damaged => "damaged_trailer",
            Self::OtherKey { .. } => "other_key",
            Self::Length { .. } => "other_length",
            Self::Checksum { .. } => "other_checksum",
        }
    }

    /// The stable name of the part that was wrong.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::TooShort { .. } => "object",
            Self::BadMagic => "trailer.magic",
            Self::UnknownVersion { .. } => "trailer.version",
            Self::Damaged => "trailer",
            Self::OtherKey { .. } => "trailer.key",
            Self::Length { .. } => "trailer.payload_bytes",
            Self::Checksum { .. } => "trailer.checksum",
        }
    }
}

/// The `N` bytes at a place that every trailer has.
fn field<const N: usize>(bytes: &[u8; TRAILER_BYTES as usize], start: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[start..start + N]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{CheckpointId, EndpointId, Epoch, Generation, ObjectId, ShardIndex};

    fn key(generation: u64) -> Key {
        let endpoint = EndpointId::from_u128(7);
        Key {
            namespace: "job".parse().unwrap(),
            epoch: Epoch::from_u128(1),
            checkpoint: CheckpointId { endpoint, generation: Generation(generation) },
            object: ObjectId { shard: ShardIndex(2), index: 1 },
        }
    }

    fn object(payload: &[u8]) -> Vec<u8> {
        let trailer = seal(&key(1), payload.len() as u64, Digest::of(payload));
        [payload, &trailer].concat()
    }

    #[test]
    fn sealed_object_gives_its_payload_back() {
        for payload in [&b""[..], b"state", &[9; 4096]] {
            assert_eq!(verify(&key(1), &object(payload)), Ok(payload));
        }
        assert_eq!(object(b"").len(), TRAILER_BYTES as usize);
    }

    #[test]
    fn longest_key_fits() {
        let long = Key { namespace: "a".repeat(64).parse().unwrap(), ..key(u64::MAX) };
        let trailer = seal(&long, 0, Digest::of(b""));
        assert_eq!(verify(&long, &trailer), Ok(&b""[..]));
    }

    /// Protocol 3: a load verifies key and checksum before anything is adopted.
    #[test]
    fn every_flipped_bit_of_payload_or_trailer_is_found() {
        let whole = object(b"recurrent state");
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&key(1), &flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_truncation_is_found() {
        let whole = object(&[5; 600]);
        for end in 0..whole.len() {
            assert!(verify(&key(1), &whole[..end]).is_err());
            assert!(verify(&key(1), &whole[whole.len() - end..]).is_err());
        }
    }

    #[test]
    fn what_differs_is_named() {
        let whole = object(b"0123456789abcdef");
        let (payload, trailer) = whole.split_at(16);
        let changed = |place: usize, byte: u8| {
            let mut changed = whole.clone();
            changed[place] = byte;
            verify(&key(1), &changed).unwrap_err()
        };
        assert_eq!(verify(&key(1), &whole[..9]), Err(TrailerError::TooShort { bytes: 9 }));
        assert_eq!(changed(16, b'P'), TrailerError::BadMagic);
        assert_eq!(changed(24, 2), TrailerError::UnknownVersion { version: 2 });
        assert_eq!(changed(28, 1), TrailerError::Damaged);
        let other = TrailerError::OtherKey { found: key(1).to_string() };
        assert_eq!(verify(&key(2), &whole), Err(other));
        let longer = [payload, b"more", trailer].concat();
        let length = TrailerError::Length { said: 16, found: 20 };
        assert_eq!(verify(&key(1), &longer), Err(length));
        let swapped = [&payload[8..], &payload[..8], trailer].concat();
        let error = verify(&key(1), &swapped).unwrap_err();
        assert_eq!((error.code(), error.field()), ("other_checksum", "trailer.checksum"));
    }

    /// Any other implementation must give these bytes.
    #[test]
    fn trailer_is_golden() {
        let trailer = seal(&key(1), 5, Digest::of(b"state"));
        let head = "70696e666f6c640001006400000000000500000000000000\
                    7d17cae5135601162abe695b3ce29717";
        let hex: String = trailer[..40].iter().map(|byte| alloc::format!("{byte:02x}")).collect();
        assert_eq!(hex, head);
        assert_eq!(&trailer[40..140], key(1).to_string().as_bytes());
        assert_eq!(trailer[140..], [0; 68]);
    }
}
