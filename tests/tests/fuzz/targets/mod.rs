//! The decoders under test, and what each has to keep to.

mod answer;
mod call;
mod journal;
mod log;
mod manifest;
mod object;
mod snapshot;
mod trace;

use std::fmt::Debug;

use allocation_counter::measure;
use pinfold_core::policy::Limits;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A decoder under test.
pub(crate) struct Target {
    /// Its name, and that of its folder in the corpus.
    pub(crate) name: &'static str,
    /// Decodes an input, and panics when a promise is broken; whether it was good as it is.
    pub(crate) decode: fn(&[u8]) -> bool,
    /// The memory that an input may take for each of its bytes.
    pub(crate) bytes_per_byte: u64,
}

/// The memory that an input may take for being there at all: a catalog has tables.
const BYTES_AT_LEAST: u64 = 64 << 10;
/// A list is reserved for as many rows as bytes are left, and a row may have some hundred bytes.
const ROWS: u64 = 1024;

/// A list, and the owner that is told it.
pub(crate) const ANSWER: Target =
    Target { name: "answer", decode: answer::decode, bytes_per_byte: ROWS };
/// The engine that a request is asked of.
pub(crate) const CALL: Target = Target { name: "call", decode: call::decode, bytes_per_byte: ROWS };
pub(crate) const JOURNAL: Target =
    Target { name: "journal", decode: journal::decode, bytes_per_byte: ROWS };
/// The engine that a log is replayed through, with its records, and what the rules remember.
pub(crate) const LOG: Target = Target { name: "log", decode: log::decode, bytes_per_byte: ROWS };
pub(crate) const SNAPSHOT: Target =
    Target { name: "snapshot", decode: snapshot::decode, bytes_per_byte: ROWS };
pub(crate) const MANIFEST: Target =
    Target { name: "manifest", decode: manifest::decode, bytes_per_byte: ROWS };
/// Three copies, and the text of a key.
pub(crate) const OBJECT: Target =
    Target { name: "object", decode: object::decode, bytes_per_byte: 8 };
/// A digit and a comma may be a block, with its place in two trees.
pub(crate) const TRACE: Target =
    Target { name: "trace", decode: trace::decode, bytes_per_byte: 128 };

impl Target {
    /// Judges one input; whether it was good as it is.
    ///
    /// # Panics
    /// When the decoder does, breaks a promise, or takes too much memory.
    pub(crate) fn judge(&self, input: &[u8]) -> bool {
        let mut accepted = false;
        let found = measure(|| accepted = (self.decode)(input)).bytes_max;
        let (name, bytes) = (self.name, input.len());
        let most = BYTES_AT_LEAST + self.bytes_per_byte * bytes as u64;
        assert!(found <= most, "{name}: {bytes} bytes took {found} of memory, more than {most}");
        accepted
    }
}

/// Whether a job of these limits stays within a target's memory.
///
/// Some memory is in proportion to limits and not to bytes: an owner has room for W receipts, a
/// checkpoint for its shards and, while it is collected, for its objects. Limits are what an
/// operator grants; inputs of jobs that grant more than this are only decoded, not taken up.
fn is_modest(limits: &Limits) -> bool {
    let Limits { unanswered, shards, objects_per_checkpoint, .. } = *limits;
    unanswered <= 256 && shards <= 1024 && objects_per_checkpoint <= 65_536
}

/// A form of `pinfold_host::dto`, from JSON or else from postcard; it comes back from both as it
/// was.
fn read_form<T: Serialize + DeserializeOwned + PartialEq + Debug>(input: &[u8]) -> Option<T> {
    let from_postcard = |bytes: &[u8]| match postcard::take_from_bytes::<T>(bytes) {
        Ok((form, [])) => Some(form),
        Ok(_) | Err(_) => None,
    };
    let form = serde_json::from_slice(input).ok().or_else(|| from_postcard(input))?;
    let written = serde_json::to_vec(&form).unwrap();
    assert_eq!(serde_json::from_slice::<T>(&written).unwrap(), form);
    let written = postcard::to_allocvec(&form).unwrap();
    assert_eq!(from_postcard(&written).as_ref(), Some(&form));
    Some(form)
}
