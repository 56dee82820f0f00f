//! A second engine in the same situation, for those who look ahead: simulators and model checkers.
//!
//! A host never needs one, and two engines never share a journal.

use core::hash::{Hash, Hasher};

use super::{Batch, Engine};
use crate::catalog::Event;
use crate::journal::record::Frame;
use crate::replay::decode_event;

impl Engine {
    /// The same engine once more, and the same batch where one is out.
    ///
    /// Each of the two goes on by itself, with a journal of its own.
    pub fn twin(&self, out: Option<&Batch>) -> (Self, Option<Batch>) {
        let twin = Self {
            catalog: self.catalog.clone(),
            config: self.config,
            frame: self.frame.clone(),
            frame_bytes: self.frame_bytes,
            sealed: self.sealed.iter().map(Batch::twin).collect(),
            scratch: Default::default(),
            appended: self.appended,
            durable: self.durable,
            spare: Default::default(),
            awaiting: self.awaiting,
            poisoned: self.poisoned,
            outbox: self.outbox.clone(),
        };
        (twin, out.map(Batch::twin))
    }

    /// Hashes what is on its way to the disk and to clients, without positions and fingerprints:
    /// beside [`Catalog::hash_rows`](crate::catalog::Catalog::hash_rows), for those who rename what
    /// only grows.
    pub fn hash_under_way<H: Hasher>(&self, out: Option<&Batch>, state: &mut H) {
        (self.awaiting, self.poisoned).hash(state);
        for (position, output) in &self.outbox {
            (position.saturating_sub(self.durable), output).hash(state);
        }
        for batch in out.into_iter().chain(&self.sealed) {
            let frame = Frame::decode(&self.catalog.job().epoch, batch.bytes());
            for (_, record) in frame.into_iter().flat_map(|frame| frame.records()) {
                hash_record(record, state);
            }
            u64::MAX.hash(state);
        }
        for record in self.frame.each_record() {
            hash_record(record, state);
        }
    }

    /// What two engines in the same situation have in common, beside the catalog.
    fn situation(&self) -> impl Hash + Eq + '_ {
        let sealed = self.sealed.iter().map(Batch::bytes);
        (
            [self.appended, self.durable],
            [self.awaiting, self.poisoned],
            &self.outbox,
            self.frame.records(),
            sealed.collect::<alloc::vec::Vec<_>>(),
        )
    }
}

fn hash_record<H: Hasher>(record: &[u8], state: &mut H) {
    match decode_event(record, 0) {
        Ok(Event::Decided { op, fingerprint: _, change }) => (op, change).hash(state),
        Ok(event) => event.hash(state),
        Err(_) => record.hash(state),
    }
}

impl Batch {
    fn twin(&self) -> Self {
        Self { bytes: self.bytes.clone(), until: self.until }
    }
}

/// Equal situations: the same state, the same records under way, the same outputs waiting.
impl PartialEq for Engine {
    fn eq(&self, other: &Self) -> bool {
        self.situation() == other.situation() && self.catalog == other.catalog
    }
}

impl Eq for Engine {}

impl Hash for Engine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.situation().hash(state);
        self.catalog.snapshot().hash(state);
    }
}
