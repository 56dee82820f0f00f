//! The bytes of a snapshot: a catalog as of one journal position.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `PINFOLDS` |
//! | 8 | 1 | version, 1 |
//! | 9 | 16 | epoch |
//! | 25 | 8 | position: how many records it stands for, little-endian |
//! | 33 | 8 | length of the payload in bytes, little-endian |
//! | 41 | n | payload: the snapshot's rows, postcard |
//! | 41 + n | 4 | CRC-32C of everything before it, little-endian |
//!
//! Equal situations give equal bytes.

use alloc::vec::Vec;

use crc::{CRC_32_ISCSI, Crc};

use crate::catalog::{Catalog, Inconsistent, Snapshot};

/// The version that is written, and the only one that is read.
pub const VERSION: u8 = 1;

const MAGIC: &[u8; 8] = b"PINFOLDS";
const HEAD: usize = 41;
const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Why bytes are no snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Too short, or without the magic.
    #[error("not a snapshot")]
    NotASnapshot,
    /// Of a version that this build does not know.
    #[error("snapshot version {version} is unknown: use a newer pinfold to read it")]
    UnknownVersion {
        /// The version.
        version: u8,
    },
    /// The length or the checksum does not fit: damaged.
    #[error("the snapshot is damaged")]
    Damaged,
    /// The rows cannot be read.
    #[error("the snapshot's rows cannot be read")]
    Rows,
    /// The rows contradict each other.
    #[error(transparent)]
    Inconsistent(#[from] Inconsistent),
}

/// The snapshot of a catalog that has seen `position` records.
#[must_use]
pub fn encode(catalog: &Catalog, position: u64) -> Vec<u8> {
    // Our own rows always fit: serialising into a vector cannot fail.
    let payload = postcard::to_allocvec(&catalog.snapshot()).unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEAD + payload.len() + 4);
    bytes.extend_from_slice(MAGIC);
    bytes.push(VERSION);
    bytes.extend_from_slice(catalog.job().epoch.as_bytes());
    bytes.extend_from_slice(&position.to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&payload);
    let checksum = CHECKSUM.checksum(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The catalog and the position of a snapshot.
///
/// # Errors
/// [`SnapshotError`] says why the bytes cannot be used; nothing of them is.
pub fn decode(bytes: &[u8]) -> Result<(Catalog, u64), SnapshotError> {
    let head = bytes.get(..HEAD).filter(|head| head.starts_with(MAGIC));
    let head = head.ok_or(SnapshotError::NotASnapshot)?;
    if head[8] != VERSION {
        return Err(SnapshotError::UnknownVersion { version: head[8] });
    }
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&head[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let (position, length) = (word(25), word(33));
    let (body, checksum) = bytes.split_last_chunk::<4>().ok_or(SnapshotError::Damaged)?;
    let payload = body.get(HEAD..).ok_or(SnapshotError::Damaged)?;
    let whole = payload.len() as u64 == length
        && CHECKSUM.checksum(body) == u32::from_le_bytes(*checksum);
    if !whole {
        return Err(SnapshotError::Damaged);
    }
    let (snapshot, rest) =
        postcard::take_from_bytes::<Snapshot>(payload).map_err(|_| SnapshotError::Rows)?;
    let catalog = Catalog::restore(&snapshot)?;
    if !rest.is_empty() || catalog.job().epoch.as_bytes() != &head[9..25] {
        return Err(SnapshotError::Rows);
    }
    Ok((catalog, position))
}
