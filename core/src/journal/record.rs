//! The bytes of the journal, format version 1: a header, then frames of records.
//!
//! Protects what was acknowledged: bytes are taken as they were written, or refused with the place
//! and the reason, or, for the last frame alone, cut as a torn tail. It never interprets a record,
//! never repairs, and never allocates by a length that no checksum covers. Numbers are
//! little-endian; checksums are CRC-32C (Castagnoli).
//!
//! | header | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `PINFOLDJ` |
//! | 8 | 4 | format version, 1: of this header, and of the head and the checksum of every frame |
//! | 12 | 16 | epoch |
//! | 28 | 8 | sequence number of the first record |
//! | 36 | 4 | checksum of bytes 0 to 35 |
//!
//! | frame | bytes | what |
//! |---|---|---|
//! | 0 | 4 | `PFrm` |
//! | 4 | 1 | version of the records in it, 1; never 0 |
//! | 5 | 4 | payload length *n*; the whole frame has at most 16 MiB |
//! | 9 | 8 | sequence number of its first record |
//! | 17 | 4 | how many records, at least one |
//! | 21 | 4 | checksum of the epoch (which no frame holds) and of bytes 0 to 20 |
//! | 25 | *n* | the records, each a length (4 bytes) and that many bytes |
//! | 25 + *n* | 4 | checksum of the epoch, of bytes 0 to 20 and of the records |
//!
//! The last checksum leaves out the one in the head: a CRC that runs over a CRC of all before it
//! forgets all before it, and any records of the right length would do for any head.
//!
//! One frame is one sync's whole batch, and none is written before the one before it is synced, so
//! only the last can be torn. Hence the rule of [`scan`] for a bad frame: when anything was written
//! behind it, the bad one had been synced and is damage; else it is a torn tail. The head has a
//! checksum of its own so that where "behind it" begins is known, and no record can feign it.

mod scan;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use crc::{CRC_32_ISCSI, Crc, Table};

use crate::id::Epoch;

pub use scan::{Damage, DamageKind, End, Scan, frames_in, scan};

/// The version of header and frames that this code writes, and the only one that it reads.
pub const FORMAT_VERSION: u32 = 1;
/// The version of the records in a frame that this code writes, and the only one that it reads.
pub const RECORD_VERSION: u8 = 1;
/// The most bytes that one whole frame may have; a longer one is never written nor believed.
pub const MAX_FRAME_BYTES: u32 = 16 << 20;
/// What a frame has besides its payload: the head and the checksum.
pub const FRAME_OVERHEAD_BYTES: u32 = 29;
/// What a record costs in a frame besides its own bytes.
pub const RECORD_OVERHEAD_BYTES: u32 = 4;

const MAGIC: [u8; 8] = *b"PINFOLDJ";
const MARKER: [u8; 4] = *b"PFrm";
/// What the head says, without its checksum.
const FIELD_BYTES: usize = 21;
const HEAD_BYTES: usize = FIELD_BYTES + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 4;
const MAX_PAYLOAD_BYTES: u32 = MAX_FRAME_BYTES - FRAME_OVERHEAD_BYTES;

static CASTAGNOLI: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The beginning of a journal: whose it is, and which record comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The life of the job that this journal belongs to.
    pub epoch: Epoch,
    /// The sequence number of the first record.
    pub first_sequence: u64,
}

impl Header {
    /// The size of every header.
    pub const BYTES: usize = 40;

    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..28].copy_from_slice(self.epoch.as_bytes());
        bytes[28..36].copy_from_slice(&self.first_sequence.to_le_bytes());
        let checksum = CASTAGNOLI.checksum(&bytes[..36]);
        bytes[36..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header at the start of these bytes; what follows it isn't looked at.
    ///
    /// A header is written whole before the journal gets its name, so it is never torn.
    ///
    /// # Errors
    /// [`HeaderError`] when no header of version 1 is there.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let magic: [u8; 8] = array_at(bytes, 0).ok_or(HeaderError::Short)?;
        if magic != MAGIC {
            return Err(HeaderError::Magic);
        }
        let version = array_at(bytes, 8).map(u32::from_le_bytes).ok_or(HeaderError::Short)?;
        if version != FORMAT_VERSION {
            return Err(HeaderError::UnknownVersion { version });
        }
        let epoch = array_at(bytes, 12).ok_or(HeaderError::Short)?;
        let first_sequence = array_at(bytes, 28).ok_or(HeaderError::Short)?;
        let stored = array_at(bytes, 36).ok_or(HeaderError::Short)?;
        let covered = bytes.get(..36).ok_or(HeaderError::Short)?;
        if CASTAGNOLI.checksum(covered) != u32::from_le_bytes(stored) {
            return Err(HeaderError::Checksum);
        }
        let first_sequence = u64::from_le_bytes(first_sequence);
        Ok(Self { epoch: Epoch::from_bytes(epoch), first_sequence })
    }
}

/// Why bytes do not begin with a header that this version reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Fewer bytes than a header has.
    #[error("it is shorter than a journal's header")]
    Short,
    /// Something else than a journal.
    #[error("it does not begin like a journal of pinfold")]
    Magic,
    /// Written by another version.
    #[error("it has format version {version}, and this version of pinfold reads version 1")]
    UnknownVersion {
        /// The version it names.
        version: u32,
    },
    /// Changed since it was written.
    #[error("its header does not agree with its checksum")]
    Checksum,
}

/// Builds one frame after another in one buffer, which stops growing at the largest of them.
#[derive(Clone, Debug, Default)]
pub struct FrameWriter {
    bytes: Vec<u8>,
    payload_bytes: u32,
    first_sequence: u64,
    count: u32,
}

impl FrameWriter {
    /// Starts the frame whose first record has this sequence number, and drops what was there.
    pub fn begin(&mut self, first_sequence: u64) {
        self.bytes.clear();
        self.bytes.resize(HEAD_BYTES, 0);
        self.payload_bytes = 0;
        self.first_sequence = first_sequence;
        self.count = 0;
    }

    /// Adds a record and returns its sequence number; a refused one leaves the frame as it was.
    ///
    /// # Errors
    /// [`FrameFull`] when the frame has no room for it: finish and sync this frame first.
    pub fn push(&mut self, record: &[u8]) -> Result<u64, FrameFull> {
        let length = u32::try_from(record.len()).map_err(|_| FrameFull)?;
        let sequence = self.first_sequence.checked_add(u64::from(self.count)).ok_or(FrameFull)?;
        // A frame also names the number after its last record.
        let (Some(_), Some(count)) = (sequence.checked_add(1), self.count.checked_add(1)) else {
            return Err(FrameFull);
        };
        let grown = length
            .checked_add(RECORD_OVERHEAD_BYTES)
            .and_then(|added| self.payload_bytes.checked_add(added))
            .filter(|grown| *grown <= MAX_PAYLOAD_BYTES)
            .ok_or(FrameFull)?;
        self.bytes.resize(HEAD_BYTES + index(self.payload_bytes), 0);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.payload_bytes = grown;
        self.count = count;
        Ok(sequence)
    }

    /// How many records the frame has so far.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The records so far, each behind its length.
    pub(crate) fn records(&self) -> &[u8] {
        let end = HEAD_BYTES + index(self.payload_bytes);
        self.bytes.get(HEAD_BYTES..end).unwrap_or_default()
    }

    /// The records so far, in order.
    pub(crate) fn each_record(&self) -> impl Iterator<Item = &[u8]> {
        Records { rest: self.records() }
    }

    /// The frame's bytes, all to be written and synced at once; none when it has no record.
    ///
    /// A record pushed after this goes into the same frame, which is then finished anew.
    pub fn finish(&mut self, epoch: &Epoch) -> &[u8] {
        if self.count == 0 {
            return &[];
        }
        let end = HEAD_BYTES + index(self.payload_bytes);
        self.bytes.resize(end, 0);
        let Self { payload_bytes, first_sequence, count, .. } = *self;
        let head = Head { version: RECORD_VERSION, payload_bytes, first_sequence, count };
        let payload = self.bytes.get(HEAD_BYTES..).unwrap_or_default();
        let checksum = head.frame_checksum(epoch, payload);
        if let Some(place) = self.bytes.first_chunk_mut() {
            *place = head.encode(epoch);
        }
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        &self.bytes
    }
}

/// A frame has no room for another record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame has no room for this record: a whole frame has at most {MAX_FRAME_BYTES} bytes")]
pub struct FrameFull;

/// One good frame: its checksum agrees, and its records are as many as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    first_sequence: u64,
    next_sequence: u64,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// These bytes as exactly one whole frame of this epoch, as a journal checks before it writes.
    ///
    /// # Errors
    /// [`FrameError`] when they are anything else.
    pub fn decode(epoch: &Epoch, bytes: &'a [u8]) -> Result<Self, FrameError> {
        let head = Head::read(epoch, bytes).map_err(|fault| match fault {
            Fault::Bad(why) => FrameError::Bad(why),
            Fault::UnknownVersion(version) => FrameError::UnknownVersion { version },
            Fault::Malformed => FrameError::Malformed,
        })?;
        let payload = head.payload(epoch, bytes).map_err(FrameError::Bad)?;
        let frame = Self::of(&head, payload).ok_or(FrameError::Malformed)?;
        if frame.length() == bytes.len() { Ok(frame) } else { Err(FrameError::Trailing) }
    }

    /// The sequence number of its first record.
    #[must_use]
    pub fn first_sequence(&self) -> u64 {
        self.first_sequence
    }

    /// The sequence number after its last record.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Its records in order, each with its sequence number.
    pub fn records(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        // The records lead, so that the range never steps past the number after the last one.
        let records = Records { rest: self.payload };
        records.zip(self.first_sequence..).map(|(record, sequence)| (sequence, record))
    }

    fn length(&self) -> usize {
        HEAD_BYTES + self.payload.len() + CHECKSUM_BYTES
    }

    fn of(head: &Head, payload: &'a [u8]) -> Option<Self> {
        let mut records = Records { rest: payload };
        let count = records.by_ref().fold(0_u64, |count, _| count.saturating_add(1));
        let whole = records.rest.is_empty() && count > 0 && count == u64::from(head.count);
        let next_sequence = head.first_sequence.checked_add(count)?;
        whole.then_some(Self { first_sequence: head.first_sequence, next_sequence, payload })
    }
}

/// Why bytes are not exactly one frame of this epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not a frame, or not of this epoch.
    #[error("not a frame of this epoch: {0}")]
    Bad(BadFrame),
    /// Written by another version.
    #[error("the frame has version {version}, and this version of pinfold knows version 1")]
    UnknownVersion {
        /// The version it names.
        version: u8,
    },
    /// Good checksums over what does not add up.
    #[error("the records of the frame do not add up to what its head says")]
    Malformed,
    /// A good frame and more bytes behind it.
    #[error("more bytes follow the frame")]
    Trailing,
}

/// What is bad about a frame that may be torn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// The bytes end before the frame does.
    #[error("the bytes end inside the frame")]
    Cut,
    /// No frame begins here.
    #[error("no frame begins here")]
    Marker,
    /// The version is 0, which no version is: the byte was never written.
    #[error("the head is only partly written")]
    Unwritten,
    /// The head, or the epoch, is not the one that was checksummed.
    #[error("the checksum of the head does not agree")]
    Head,
    /// The head is good, and the records are not those that were checksummed.
    #[error("the checksum does not agree")]
    Checksum,
}

/// The fixed beginning of a frame.
struct Head {
    version: u8,
    payload_bytes: u32,
    first_sequence: u64,
    count: u32,
}

impl Head {
    fn fields(&self) -> [u8; FIELD_BYTES] {
        let mut bytes = [0; FIELD_BYTES];
        bytes[..4].copy_from_slice(&MARKER);
        bytes[4] = self.version;
        bytes[5..9].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[9..17].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[17..].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    fn encode(&self, epoch: &Epoch) -> [u8; HEAD_BYTES] {
        let fields = self.fields();
        let mut bytes = [0; HEAD_BYTES];
        bytes[..FIELD_BYTES].copy_from_slice(&fields);
        bytes[FIELD_BYTES..].copy_from_slice(&checksum_of(epoch, &fields, &[]).to_le_bytes());
        bytes
    }

    /// A head of any version but 0, and its checksum, which nobody has looked at.
    fn decode(bytes: &[u8]) -> Result<(Self, u32), BadFrame> {
        let marker: [u8; 4] = array_at(bytes, 0).ok_or(BadFrame::Cut)?;
        if marker != MARKER {
            return Err(BadFrame::Marker);
        }
        let version = *bytes.get(4).ok_or(BadFrame::Cut)?;
        if version == 0 {
            return Err(BadFrame::Unwritten);
        }
        let payload_bytes = array_at(bytes, 5).map(u32::from_le_bytes).ok_or(BadFrame::Cut)?;
        let first_sequence = array_at(bytes, 9).map(u64::from_le_bytes).ok_or(BadFrame::Cut)?;
        let count = array_at(bytes, 17).map(u32::from_le_bytes).ok_or(BadFrame::Cut)?;
        let checksum = array_at(bytes, FIELD_BYTES).ok_or(BadFrame::Cut)?;
        let head = Self { version, payload_bytes, first_sequence, count };
        Ok((head, u32::from_le_bytes(checksum)))
    }

    /// A head of any version but 0, as it was written.
    fn decode_checked(epoch: &Epoch, bytes: &[u8]) -> Result<Self, BadFrame> {
        let (head, checksum) = Self::decode(bytes)?;
        let agrees = checksum_of(epoch, &head.fields(), &[]) == checksum;
        if agrees { Ok(head) } else { Err(BadFrame::Head) }
    }

    /// The head of the frame at the start of these bytes, as it was written by this version.
    fn read(epoch: &Epoch, bytes: &[u8]) -> Result<Self, Fault> {
        // The version comes first: what it doesn't know, it must not judge, nor call torn.
        if let (Some(MARKER), Some(&version)) = (array_at(bytes, 0), bytes.get(4))
            && version != RECORD_VERSION
            && version != 0
        {
            return Err(Fault::UnknownVersion(version));
        }
        let head = Self::decode_checked(epoch, bytes).map_err(Fault::Bad)?;
        if head.is_possible() { Ok(head) } else { Err(Fault::Malformed) }
    }

    /// Whether a frame may have so many bytes and records.
    fn is_possible(&self) -> bool {
        let room = self.payload_bytes / RECORD_OVERHEAD_BYTES;
        self.payload_bytes <= MAX_PAYLOAD_BYTES && (1..=room).contains(&self.count)
    }

    /// Splits the bytes that this head begins into payload, stored checksum, and what follows.
    fn split<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], u32, &'a [u8])> {
        let behind_head = bytes.get(HEAD_BYTES..)?;
        let (payload, rest) = behind_head.split_at_checked(index(self.payload_bytes))?;
        let (checksum, rest) = rest.split_first_chunk()?;
        Some((payload, u32::from_le_bytes(*checksum), rest))
    }

    /// The payload behind this head, as it was written.
    fn payload<'a>(&self, epoch: &Epoch, bytes: &'a [u8]) -> Result<&'a [u8], BadFrame> {
        let (payload, stored, _) = self.split(bytes).ok_or(BadFrame::Cut)?;
        let agrees = self.frame_checksum(epoch, payload) == stored;
        if agrees { Ok(payload) } else { Err(BadFrame::Checksum) }
    }

    fn frame_checksum(&self, epoch: &Epoch, payload: &[u8]) -> u32 {
        checksum_of(epoch, &self.fields(), payload)
    }
}

enum Fault {
    Bad(BadFrame),
    UnknownVersion(u8),
    /// A good head that no writer writes.
    Malformed,
}

fn checksum_of(epoch: &Epoch, fields: &[u8; FIELD_BYTES], payload: &[u8]) -> u32 {
    let mut digest = CASTAGNOLI.digest();
    digest.update(epoch.as_bytes());
    digest.update(fields);
    digest.update(payload);
    digest.finalize()
}

/// Records one after another; stops, with a rest, at the first that is not whole.
struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.rest.split_first_chunk()?;
        let (record, rest) = rest.split_at_checked(index(u32::from_le_bytes(*length)))?;
        self.rest = rest;
        Some(record)
    }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn index(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn offset(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
