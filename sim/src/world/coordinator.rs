//! The coordinator and its disk: a real engine, and what would be left of it after a crash.
//!
//! The disk is the state that its records give, followed one by one by the core's own replay, and
//! one frame that is written and not yet synced. A crash keeps any number of that frame's bytes.

use core::hash::{Hash, Hasher};
use std::sync::Arc;

use pinfold_core::catalog::{Catalog, Event};
use pinfold_core::engine::{Batch, Config, Engine};
use pinfold_core::invariant::Invariant;
use pinfold_core::journal::record::{Frame, scan};
use pinfold_core::journal::snapshot;
use pinfold_core::policy::Genesis;
use pinfold_core::replay::{RecoverError, Replay, decode_event, follow};

use crate::shared::Shared;
use crate::violation::{Judge, Violation};

/// How many synced frames are looked at again when a frame behind them is torn.
const REMEMBERED: usize = 2;

/// What a disk holds for certain.
#[derive(Clone, Debug)]
pub struct Disk {
    /// The state after all of its records.
    pub catalog: Catalog,
    /// How many records.
    pub position: u64,
    /// The last frames, each with the number of its first record: what a crash looks back to.
    recent: Vec<(u64, Arc<[u8]>)>,
}

/// The coordinator. See the [module](self).
#[derive(Debug)]
pub struct Coordinator {
    /// The engine; none while the coordinator is down.
    pub engine: Option<Engine>,
    /// A frame that is written and not yet synced.
    pub batch: Option<Batch>,
    /// The disk.
    pub disk: Shared<Disk>,
}

/// The core refused what it had written itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal cannot be read again: {what}")]
pub struct Unreadable {
    /// The promise that is broken by it.
    pub invariant: Invariant,
    /// What cannot be read.
    pub what: String,
}

impl Unreadable {
    fn new(error: impl core::fmt::Display) -> Self {
        Self { invariant: Invariant::I11, what: error.to_string() }
    }

    /// What it is to the judges: a finding of the recount, which replays the journal.
    #[must_use]
    pub fn violation(&self) -> Violation {
        let (invariant, what) = (self.invariant, self.to_string());
        Violation { invariant, judge: Judge::Recount, what }
    }
}

impl Coordinator {
    /// The coordinator of a new job, whose genesis is synced.
    ///
    /// # Errors
    /// [`Unreadable`] names the field of the genesis that cannot be used.
    pub fn new(genesis: &Genesis) -> Result<Self, Unreadable> {
        let mut engine =
            Engine::create(Config::default(), genesis.clone()).map_err(Unreadable::new)?;
        let catalog = Catalog::new(genesis.clone()).map_err(Unreadable::new)?;
        if let Some(batch) = engine.take_batch() {
            engine.commit(batch);
        }
        Ok(Self {
            engine: Some(engine),
            batch: None,
            disk: Shared::new(Disk { catalog, position: 1, recent: Vec::new() }),
        })
    }

    /// True when something was decided that is neither written nor synced.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.batch.is_none()
            && self.engine.as_ref().is_some_and(|engine| !engine.is_poisoned() && !engine.is_idle())
    }

    /// The engine has been asked nothing that is not on disk.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.batch.is_none() && self.engine.as_ref().is_some_and(Engine::is_idle)
    }

    /// Begins to write.
    pub fn write(&mut self) {
        if let Some(engine) = &mut self.engine {
            self.batch = engine.take_batch();
        }
    }

    /// The written frame is synced; gives its records.
    ///
    /// # Errors
    /// [`Unreadable`] when the core cannot read its own frame.
    pub fn commit(&mut self) -> Result<Vec<Event>, Unreadable> {
        let (Some(engine), Some(batch)) = (&mut self.engine, self.batch.take()) else {
            return Ok(Vec::new());
        };
        let epoch = self.disk.catalog.job().epoch;
        let frame = Frame::decode(&epoch, batch.bytes()).map_err(Unreadable::new)?;
        let events = self.disk.follow(&frame)?;
        self.disk.remember(frame.first_sequence(), batch.bytes());
        engine.commit(batch);
        Ok(events)
    }

    /// The sync fails, and so many bytes of the frame are on disk; gives their records.
    ///
    /// # Errors
    /// [`Unreadable`] when the core cannot read what is left.
    pub fn fail(&mut self, kept_bytes: u32) -> Result<Vec<Event>, Unreadable> {
        let (Some(engine), Some(batch)) = (&mut self.engine, self.batch.take()) else {
            return Ok(Vec::new());
        };
        let events = self.disk.keep(batch.bytes(), kept_bytes)?;
        engine.fail(batch);
        Ok(events)
    }

    /// The coordinator dies, and so many bytes of the frame are on disk; gives their records.
    ///
    /// # Errors
    /// [`Unreadable`] when the core cannot read what is left.
    pub fn crash(&mut self, kept_bytes: u32) -> Result<Vec<Event>, Unreadable> {
        self.engine = None;
        match self.batch.take() {
            Some(batch) => self.disk.keep(batch.bytes(), kept_bytes),
            None => Ok(Vec::new()),
        }
    }

    /// The coordinator comes back.
    ///
    /// # Errors
    /// [`Unreadable`] when the core does not take its own records.
    pub fn restart(&mut self) -> Result<(), Unreadable> {
        let replay = Replay::from_snapshot(self.disk.catalog.clone(), self.disk.position);
        let engine = Engine::resume(Config::default(), replay);
        self.engine = Some(engine.map_err(Unreadable::new)?);
        Ok(())
    }
}

impl Disk {
    /// Follows the records of a frame that is whole.
    fn follow(&mut self, frame: &Frame<'_>) -> Result<Vec<Event>, Unreadable> {
        let mut events = Vec::new();
        for (position, record) in frame.records() {
            let unreadable = |error: RecoverError| Unreadable::new(error);
            if position != self.position {
                return Err(unreadable(RecoverError::Misplaced { position }));
            }
            follow(&mut self.catalog, record, position).map_err(unreadable)?;
            self.position += 1;
            events.push(decode_event(record, position).map_err(unreadable)?);
        }
        Ok(events)
    }

    /// Keeps the first bytes of a frame, as a crash leaves them: behind the frame before it, and in
    /// front of zeros, because the room was set aside.
    fn keep(&mut self, frame: &[u8], kept_bytes: u32) -> Result<Vec<Event>, Unreadable> {
        let epoch = self.catalog.job().epoch;
        let first = self.recent.first().map_or(self.position, |recent| recent.0);
        let mut bytes: Vec<u8> = self.recent.iter().flat_map(|it| &*it.1).copied().collect();
        let whole = bytes.len() + frame.len();
        bytes.extend_from_slice(frame.get(..kept_bytes as usize).unwrap_or(frame));
        bytes.resize(whole, 0);
        let found = scan(&epoch, first, &bytes).map_err(|damage| {
            Unreadable::new(format!("a torn frame is taken for damage: {damage:?}"))
        })?;
        if found.next_sequence() < self.position {
            let what = format!("record {} was synced, and is cut", found.next_sequence());
            return Err(Unreadable { invariant: Invariant::I10, what });
        }
        let (mut events, synced) = (Vec::new(), self.position);
        for frame in found.frames().filter(|frame| frame.first_sequence() >= synced) {
            events.extend(self.follow(&frame)?);
        }
        if !events.is_empty() {
            self.remember(synced, frame);
        }
        Ok(events)
    }

    fn remember(&mut self, first: u64, frame: &[u8]) {
        if self.recent.len() == REMEMBERED {
            self.recent.remove(0);
        }
        self.recent.push((first, frame.into()));
    }

    /// Replaces the records by their snapshot.
    ///
    /// # Errors
    /// [`Unreadable`] when the core cannot read its own snapshot.
    pub fn compact(&mut self) -> Result<(), Unreadable> {
        let bytes = snapshot::encode(&self.catalog, self.position);
        let (catalog, position) = snapshot::decode(&bytes).map_err(Unreadable::new)?;
        *self = Self { catalog, position, recent: Vec::new() };
        Ok(())
    }
}

impl Clone for Coordinator {
    fn clone(&self) -> Self {
        let twin = self.engine.as_ref().map(|engine| engine.twin(self.batch.as_ref()));
        let (engine, batch) = match twin {
            Some((engine, batch)) => (Some(engine), batch),
            None => (None, None),
        };
        Self { engine, batch, disk: self.disk.clone() }
    }
}

impl PartialEq for Coordinator {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |it: &Self| it.batch.as_ref().map(|batch| batch.bytes().to_vec());
        self.engine == other.engine
            && bytes(self) == bytes(other)
            && self.disk.position == other.disk.position
            && self.disk.recent == other.disk.recent
            && self.disk.catalog == other.disk.catalog
    }
}

impl Eq for Coordinator {}

impl Hash for Coordinator {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.engine.hash(state);
        self.batch.as_ref().map(Batch::bytes).hash(state);
        self.disk.position.hash(state);
        self.disk.recent.hash(state);
        self.disk.catalog.snapshot().hash(state);
    }
}
