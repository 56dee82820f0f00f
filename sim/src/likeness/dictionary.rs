//! Which identity names what, in the Worlds of one size.

use pinfold_core::id::{AttemptId, Id};

use super::naming::Class;
use crate::world::setup::{GEOMETRIES, Library, Setup};
use crate::world::turn_key;

/// How many attempts are known by their names. Those of later ones stay as they are.
const ATTEMPTS: u16 = 1000;

/// Places in a dictionary.
const PLACES: usize = 4096;

/// What an identity names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Name(Class, u8),
    Attempt(u16),
    /// The manifest of a position, in one of its geometries.
    Digest(u8, u8),
}

/// Every identity of the Worlds of one size that has a name, by its 128 bits.
#[derive(Clone, Debug)]
pub struct Dictionary {
    entries: Box<[Option<(u128, Entry)>; PLACES]>,
    /// The upper half of a start of each process.
    starts: Vec<u64>,
}

impl Dictionary {
    /// The dictionary of a size.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        let mut made = Self { entries: Box::new([None; PLACES]), starts: Vec::new() };
        for process in 0..setup.processes() {
            let owner = setup.owner(process);
            made.add(word(owner.as_bytes()), Entry::Name(Class::Owner, process));
            let [high, low] = [owner.as_bytes()[0], owner.as_bytes()[1]];
            made.starts.push(u64::from(high) << 8 | u64::from(low));
        }
        for number in 0..setup.conversations.max(setup.turns) {
            let key = turn_key(number, number);
            let conversation = Entry::Name(Class::Conversation, number);
            made.add(word(key.conversation.as_bytes()), conversation);
            made.add(word(key.turn.as_bytes()), Entry::Name(Class::Turn, number));
        }
        let library = Library::of(setup);
        for endpoint in 0..library.endpoints() {
            for geometry in (0..).take(GEOMETRIES) {
                let manifest = library.manifest(endpoint, geometry);
                let id = manifest.endpoint().id();
                made.add(word(id.as_bytes()), Entry::Name(Class::Endpoint, endpoint));
                if let Some(first) = manifest.digest().as_bytes().first_chunk() {
                    made.add(word(first), Entry::Digest(endpoint, geometry));
                }
            }
        }
        for attempt in 1..=ATTEMPTS {
            let id: AttemptId = Id::of_name(&format!("A{attempt}"));
            made.add(word(id.as_bytes()), Entry::Attempt(attempt));
        }
        made
    }

    fn add(&mut self, word: u128, entry: Entry) {
        let mut place = Self::place(word);
        while self.entries[place].is_some_and(|(other, _)| other != word) {
            place = (place + 1) % PLACES;
        }
        self.entries[place] = Some((word, entry));
    }

    fn place(word: u128) -> usize {
        // Identities are digests: any of their bits will do.
        usize::try_from(word % PLACES as u128).unwrap_or(0)
    }

    pub(super) fn find(&self, word: u128) -> Option<Entry> {
        let mut place = Self::place(word);
        while let Some((other, entry)) = self.entries[place] {
            if other == word {
                return Some(entry);
            }
            place = (place + 1) % PLACES;
        }
        None
    }

    /// The process and the life that a start is of.
    pub(super) fn life(&self, word: u128) -> Option<(u8, u16)> {
        let upper = u64::try_from(word >> 64).ok()?;
        let process = self.starts.iter().position(|start| *start == upper)?;
        let life = u16::try_from(word & u128::from(u64::MAX)).ok()?;
        Some((u8::try_from(process).ok()?, life))
    }
}

fn word(bytes: &[u8; 16]) -> u128 {
    u128::from_be_bytes(*bytes)
}
