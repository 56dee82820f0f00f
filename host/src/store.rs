//! What a host asks of a store of objects, and what the answers mean.
//!
//! A store hesitates, loses and lies by omission; so no answer here has two values. Each says what
//! is *known*: that it is so, that it definitely is not, or that nobody knows. A store never turns
//! the third into one of the others; the protocol decides what follows from it.

use pinfold_core::outcome;
use pinfold_core::transfer::{CheckAnswer, PutAnswer};
use serde::{Deserialize, Serialize};

/// A store of whole objects under keys, with blocking calls that any thread may make.
///
/// Keys are texts of `a-z0-9-/` (a key of ours is [`pinfold_core::id::Key`]). No call retries: a
/// put that was made twice is not the same as one made once.
pub trait ObjectStore: Send + Sync {
    /// Stores a private object, its bytes given in parts; an object under this key stays as it is.
    fn put(&self, key: &str, parts: &[&[u8]]) -> PutOutcome;

    /// Stores a shared page, which others may have stored: one of the same size is a success.
    fn put_shared(&self, key: &str, parts: &[&[u8]]) -> PutOutcome;

    /// Whether the object is there, and how large it is.
    fn size(&self, key: &str) -> Presence;

    /// Reads the whole object, whose size the caller knows, into memory nobody has adopted yet.
    ///
    /// What `into` holds is unspecified after any answer but [`GetOutcome::Read`].
    fn get(&self, key: &str, into: &mut [u8]) -> GetOutcome;

    /// Deletes the object; that there is none is success, so it may be asked again at any time.
    fn delete(&self, key: &str) -> DeleteOutcome;

    /// Names every object with its size, in any order; one stored or deleted meanwhile may be
    /// named or not.
    ///
    /// # Errors
    /// [`ListError`] when the list is not complete; what was visited so far is nevertheless there.
    fn list(&self, visit: &mut dyn FnMut(&str, u64)) -> Result<(), ListError>;
}

/// What is known after a put.
///
/// Only [`Stored`](Self::Stored) counts for a checkpoint; and a private key is never put again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The whole object is there.
    Stored,
    /// This put stored nothing, and will not later.
    Failed(Why),
    /// Nobody knows whether this put stored the object, or still will.
    Unknown(Why),
}

/// What is known about an object's presence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    Present {
        /// Its size.
        bytes: u64,
    },
    /// It is definitely not there: the store itself was reached, and it has none.
    Absent,
    /// Nobody knows; neither a loss nor a deletion may be concluded.
    Unknown(Why),
}

/// What is known after a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GetOutcome {
    /// Every byte was read; whether they are the right ones, the object's trailer tells.
    Read,
    /// It is definitely not there.
    Absent,
    /// It is there with another size than was asked for; nothing was read.
    WrongSize {
        /// The size it has.
        bytes: u64,
    },
    /// It is there and definitely cannot be read, now or later.
    Unreadable(Why),
    /// This read failed, and nobody knows whether another would.
    Unknown(Why),
}

/// What is known after a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// It is not there: deleted, or not found.
    Gone,
    /// It was not deleted, and this delete is definitely not under way any more.
    Refused(Why),
    /// Nobody knows whether it is deleted, or still will be.
    Unknown(Why),
}

impl From<&PutOutcome> for PutAnswer {
    /// Either way the object has no proof, and its key is never put again.
    fn from(outcome: &PutOutcome) -> Self {
        match outcome {
            PutOutcome::Stored => Self::Stored,
            PutOutcome::Failed(_) | PutOutcome::Unknown(_) => Self::Failed,
        }
    }
}

impl From<&Presence> for CheckAnswer {
    fn from(presence: &Presence) -> Self {
        match presence {
            Presence::Present { bytes } => Self::Present { bytes: *bytes },
            Presence::Absent => Self::Absent,
            Presence::Unknown(_) => Self::Unknown,
        }
    }
}

impl From<DeleteOutcome> for outcome::DeleteOutcome {
    fn from(outcome: DeleteOutcome) -> Self {
        match outcome {
            DeleteOutcome::Gone => Self::Gone,
            DeleteOutcome::Refused(_) => Self::Refused,
            DeleteOutcome::Unknown(_) => Self::Unknown,
        }
    }
}

/// The reason of an answer, for a person: what was tried, where, and what came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why(String);

impl Why {
    /// A reason of these words.
    #[must_use]
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// The words.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A list that is not complete, and so proves nothing about what it does not name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the list of objects is not complete: {0}")]
pub struct ListError(pub Why);

/// The promises that every store keeps, checked on an empty one.
#[cfg(test)]
pub(crate) mod contract {
    use std::collections::BTreeMap;

    use super::*;

    const PRIVATE: &str = "job/00e1/0abc/0001/0000/0000";
    const SHARED: &str = "pages/77aa";

    /// Runs the whole suite; the store is empty again afterwards.
    pub(crate) fn contract(store: &dyn ObjectStore) {
        assert_eq!(listed(store), BTreeMap::new(), "the store must be empty");
        absent_is_definite(store);
        parts_are_one_object(store);
        private_objects_are_put_once(store);
        shared_pages_may_be_put_by_many(store);
        sizes_must_agree(store);
        deletes_may_be_repeated(store);
        one_writer_of_many_wins(store);
        listings_name_every_object(store);
        assert_eq!(listed(store), BTreeMap::new(), "the suite cleans up");
    }

    fn listed(store: &dyn ObjectStore) -> BTreeMap<String, u64> {
        let mut objects = BTreeMap::new();
        let mut visit = |key: &str, bytes| {
            assert_eq!(objects.insert(key.to_owned(), bytes), None, "{key} was named twice");
        };
        store.list(&mut visit).unwrap();
        objects
    }

    fn content(store: &dyn ObjectStore, key: &str, bytes: usize) -> Vec<u8> {
        let mut into = vec![0xee; bytes];
        assert_eq!(store.get(key, &mut into), GetOutcome::Read, "{key}");
        into
    }

    fn delete(store: &dyn ObjectStore, key: &str) {
        assert_eq!(store.delete(key), DeleteOutcome::Gone);
        assert_eq!(store.size(key), Presence::Absent);
    }

    fn absent_is_definite(store: &dyn ObjectStore) {
        assert_eq!(store.size(PRIVATE), Presence::Absent);
        assert_eq!(store.get(PRIVATE, &mut [0; 4]), GetOutcome::Absent);
        assert_eq!(store.delete(PRIVATE), DeleteOutcome::Gone);
    }

    fn parts_are_one_object(store: &dyn ObjectStore) {
        let large = vec![7; 300_000];
        assert_eq!(store.put(PRIVATE, &[b"ab", &large, b"", b"c"]), PutOutcome::Stored);
        assert_eq!(store.size(PRIVATE), Presence::Present { bytes: 300_003 });
        let read = content(store, PRIVATE, 300_003);
        assert_eq!((&read[..3], &read[300_001..]), (&b"ab\x07"[..], &b"\x07c"[..]));
        delete(store, PRIVATE);
    }

    fn private_objects_are_put_once(store: &dyn ObjectStore) {
        assert_eq!(store.put(PRIVATE, &[b"first"]), PutOutcome::Stored);
        for again in [&b"other"[..], b"first", b"longer than it"] {
            assert!(matches!(store.put(PRIVATE, &[again]), PutOutcome::Failed(_)));
            assert_eq!(content(store, PRIVATE, 5), b"first");
        }
        delete(store, PRIVATE);
    }

    fn shared_pages_may_be_put_by_many(store: &dyn ObjectStore) {
        for _ in 0..2 {
            assert_eq!(store.put_shared(SHARED, &[b"pa", b"ge"]), PutOutcome::Stored);
        }
        assert!(matches!(store.put_shared(SHARED, &[b"pages"]), PutOutcome::Failed(_)));
        assert_eq!(content(store, SHARED, 4), b"page");
        delete(store, SHARED);
    }

    fn sizes_must_agree(store: &dyn ObjectStore) {
        assert_eq!(store.put(PRIVATE, &[b"12345"]), PutOutcome::Stored);
        for wrong in [0, 4, 6] {
            let outcome = store.get(PRIVATE, &mut vec![0; wrong]);
            assert_eq!(outcome, GetOutcome::WrongSize { bytes: 5 });
        }
        delete(store, PRIVATE);
    }

    fn deletes_may_be_repeated(store: &dyn ObjectStore) {
        assert_eq!(store.put(PRIVATE, &[b"x"]), PutOutcome::Stored);
        let sibling = "job/00e1/0abc/0001/0000/0001";
        assert_eq!(store.put(sibling, &[b"y"]), PutOutcome::Stored);
        delete(store, PRIVATE);
        delete(store, PRIVATE);
        assert_eq!(content(store, sibling, 1), b"y");
        delete(store, sibling);
    }

    /// Scenario B24: writers of one key at the same time leave one whole object.
    fn one_writer_of_many_wins(store: &dyn ObjectStore) {
        let bodies = [[1_u8; 50_000], [2; 50_000], [3; 50_000], [4; 50_000]];
        let outcomes = |put: &(dyn Fn(&[u8]) -> PutOutcome + Sync)| {
            std::thread::scope(|scope| {
                let running = bodies.each_ref().map(|body| scope.spawn(move || put(body)));
                running.map(|writer| writer.join().unwrap())
            })
        };
        let stored = |outcomes: &[PutOutcome]| {
            outcomes.iter().filter(|outcome| **outcome == PutOutcome::Stored).count()
        };
        assert_eq!(stored(&outcomes(&|body| store.put(PRIVATE, &[body]))), 1);
        assert!(bodies.iter().any(|body| *body == content(store, PRIVATE, 50_000)[..]));
        assert_eq!(stored(&outcomes(&|body| store.put_shared(SHARED, &[body]))), 4);
        assert!(bodies.iter().any(|body| *body == content(store, SHARED, 50_000)[..]));
        delete(store, PRIVATE);
        delete(store, SHARED);
    }

    fn listings_name_every_object(store: &dyn ObjectStore) {
        let keys: Vec<String> =
            (0..20).map(|n| format!("job-{}/{n:04x}/{:04x}", n % 3, n * n)).collect();
        for (key, body) in keys.iter().zip(["", "a", "bc"].iter().cycle()) {
            assert_eq!(store.put(key, &[body.as_bytes()]), PutOutcome::Stored);
        }
        let objects = listed(store);
        assert_eq!(objects.len(), keys.len());
        assert_eq!((objects[&keys[0]], objects[&keys[1]], objects[&keys[2]]), (0, 1, 2));
        assert_eq!(content(store, &keys[0], 0), b"");
        for key in &keys {
            delete(store, key);
        }
    }
}

/// What the core is told says no more than what the store said.
#[cfg(test)]
mod tests {
    use super::*;

    fn why() -> Why {
        Why::new("timed out")
    }

    #[test]
    fn answers_keep_what_is_known() {
        assert_eq!(PutAnswer::from(&PutOutcome::Stored), PutAnswer::Stored);
        for outcome in [PutOutcome::Failed(why()), PutOutcome::Unknown(why())] {
            assert_eq!(PutAnswer::from(&outcome), PutAnswer::Failed);
        }
        let present = CheckAnswer::from(&Presence::Present { bytes: 7 });
        assert_eq!(present, CheckAnswer::Present { bytes: 7 });
        assert_eq!(CheckAnswer::from(&Presence::Absent), CheckAnswer::Absent);
        assert_eq!(CheckAnswer::from(&Presence::Unknown(why())), CheckAnswer::Unknown);
        let told = outcome::DeleteOutcome::from;
        assert_eq!(told(DeleteOutcome::Gone), outcome::DeleteOutcome::Gone);
        assert_eq!(told(DeleteOutcome::Refused(why())), outcome::DeleteOutcome::Refused);
        assert_eq!(told(DeleteOutcome::Unknown(why())), outcome::DeleteOutcome::Unknown);
    }
}
