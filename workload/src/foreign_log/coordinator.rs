//! The coordinator as it should have been: the real engine, given the same inputs in their order.
//!
//! It stands for the engine and its disk. What it decides is kept as records, so that a crash can
//! take back what the logged journal had not synced.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pinfold_core::catalog::{Blocker, Event, Fate};
use pinfold_core::engine::{Config, Effect, Engine, Input, Output, Reply, Ticket};
use pinfold_core::id::{CheckpointId, Epoch, ObjectId};
use pinfold_core::invariant::Invariant;
use pinfold_core::journal::record::scan;
use pinfold_core::policy::Genesis;
use pinfold_core::replay::{RecoverError, decode_event};

/// See the [module](self).
pub(super) struct Coordinator {
    engine: Engine,
    epoch: Epoch,
    /// What was decided so far.
    records: Vec<Vec<u8>>,
    /// How many of them an answer depended on: they are durable.
    durable: usize,
    /// How many of them the judges were told.
    told: usize,
    /// What each input is to be answered.
    expected: BTreeMap<Ticket, Expected>,
    /// Delete work that has not left yet, in order.
    work: VecDeque<Work>,
    /// What left as delete work.
    handed_out: BTreeSet<(CheckpointId, ObjectId)>,
}

/// What an input is to be answered.
pub(super) struct Expected {
    /// The answer.
    pub(super) reply: Reply,
    /// How many records it depends on.
    position: usize,
}

/// Delete work.
struct Work {
    /// The input that it belongs to.
    ticket: Ticket,
    effect: Effect,
    /// How many records it depends on.
    position: usize,
}

/// A promise that the logged coordinator broke.
#[derive(Debug)]
pub(super) struct Breach {
    pub(super) invariant: Invariant,
    pub(super) what: String,
}

impl Coordinator {
    pub(super) fn new(genesis: Genesis) -> Result<Self, RecoverError> {
        let epoch = genesis.epoch;
        let engine = Engine::create(Config::default(), genesis)?;
        let mut coordinator = Self {
            engine,
            epoch,
            records: Vec::new(),
            durable: 0,
            told: 0,
            expected: BTreeMap::new(),
            work: VecDeque::new(),
            handed_out: BTreeSet::new(),
        };
        coordinator.commit();
        // Genesis is durable before anybody is answered.
        coordinator.durable = coordinator.records.len();
        Ok(coordinator)
    }

    /// Takes an input.
    pub(super) fn take(&mut self, input: Input) {
        let (ticket, before) = (input.ticket, self.records.len());
        self.engine.submit(input);
        self.commit();
        // The follow-up beside it comes last, and no answer depends on it.
        let behind = self.records.last().filter(|_| self.records.len() > before);
        let event = behind.and_then(|record| decode_event(record, 0).ok());
        let follow_ups = usize::from(matches!(event, Some(Event::FollowedUp(_))));
        let position = self.records.len() - follow_ups;
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Reply(ticket, reply) => {
                    self.expected.insert(ticket, Expected { reply, position });
                }
                Output::Effect(effect) => self.work.push_back(Work { ticket, effect, position }),
            }
        }
    }

    /// Does a follow-up without an input.
    pub(super) fn idle(&mut self) {
        self.engine.follow_up();
        self.commit();
    }

    /// What an input is to be answered; none when it was, or was lost.
    pub(super) fn expected(&mut self, ticket: Ticket) -> Option<Expected> {
        self.expected.remove(&ticket)
    }

    /// Takes it that an answer left, and so what it depends on is durable.
    pub(super) fn answered(&mut self, expected: &Expected) {
        self.durable = self.durable.max(expected.position);
    }

    /// Takes delete work that left.
    ///
    /// # Errors
    /// What leaves next, if anything does, where that is something else.
    pub(super) fn hand_out(&mut self, found: &Effect) -> Result<(), Option<Effect>> {
        match self.work.pop_front() {
            Some(work) if work.effect == *found => {
                self.has_left(&work);
                Ok(())
            }
            other => Err(other.map(|work| work.effect)),
        }
    }

    /// Takes the delete work of an input whose answer leaves, although no line says so.
    pub(super) fn unlogged_work(&mut self, ticket: Ticket) -> Vec<Effect> {
        let mut left = Vec::new();
        for work in std::mem::take(&mut self.work) {
            if work.ticket == ticket {
                self.has_left(&work);
                left.push(work.effect);
            } else {
                self.work.push_back(work);
            }
        }
        left
    }

    fn has_left(&mut self, work: &Work) {
        let Effect::Delete { checkpoint, objects, .. } = &work.effect;
        self.handed_out.extend(objects.iter().map(|object| (*checkpoint, *object)));
        self.durable = self.durable.max(work.position);
    }

    /// The events that are durable and that nobody was told of.
    pub(super) fn synced(&mut self) -> Vec<Event> {
        self.events_until(self.durable)
    }

    fn events_until(&mut self, position: usize) -> Vec<Event> {
        let new = self.records.get(self.told..position).unwrap_or_default();
        let events = new.iter().filter_map(|record| decode_event(record, 0).ok()).collect();
        self.told = self.told.max(position);
        events
    }

    /// How many records there must be after a crash, when nobody says it; none when more than one
    /// number could be right.
    pub(super) fn certain_records(&self) -> Option<u64> {
        (self.durable == self.records.len())
            .then(|| u64::try_from(self.durable).unwrap_or(u64::MAX))
    }

    /// Goes on with so many records. The events that turned out to be durable are given back.
    pub(super) fn recover(&mut self, records: u64) -> Result<Vec<Event>, Breach> {
        let kept = usize::try_from(records).unwrap_or(usize::MAX);
        let breach = |invariant, what| Err(Breach { invariant, what });
        if kept < self.durable {
            let durable = self.durable;
            let what = format!(
                "the journal came back with {records} records, and {durable} were acknowledged"
            );
            return breach(Invariant::I10, what);
        }
        if kept > self.records.len() {
            let decided = self.records.len();
            let what =
                format!("the journal came back with {records} records, and {decided} were decided");
            return breach(Invariant::I11, what);
        }
        let events = self.events_until(kept);
        self.records.truncate(kept);
        let records = self.records.iter().map(Vec::as_slice);
        match Engine::recover(Config::default(), records) {
            Ok(engine) => self.engine = engine,
            Err(error) => return breach(Invariant::I11, error.to_string()),
        }
        self.expected.clear();
        self.work.clear();
        self.commit();
        // A host answers only when the recovery itself is durable.
        self.durable = self.records.len();
        Ok(events)
    }

    /// Judges a delete that was asked of the store.
    pub(super) fn judge_delete(
        &self,
        checkpoint: CheckpointId,
        object: ObjectId,
    ) -> Result<(), Breach> {
        let catalog = self.engine.catalog();
        let breach = |invariant, what: &str| {
            let what = format!("object {object} of checkpoint {checkpoint} {what}");
            Err(Breach { invariant, what })
        };
        if catalog.fate(checkpoint.generation) == Fate::NeverMinted {
            return breach(Invariant::I3, "was deleted, and no such generation was minted");
        }
        for blocker in catalog.blockers(checkpoint).map(|all| all.blockers).unwrap_or_default() {
            match blocker {
                Blocker::Retained { .. } | Blocker::Unscoped => {
                    return breach(Invariant::I1, "was deleted, and a publication retains it");
                }
                Blocker::Pinned { .. }
                | Blocker::WaitingForShard { .. }
                | Blocker::InFlight { .. }
                | Blocker::InDoubt { .. } => {
                    return breach(Invariant::I2, "was deleted, and a pin holds it");
                }
                Blocker::Collectable
                | Blocker::Collecting { .. }
                | Blocker::Quarantined { .. }
                | Blocker::Lost => {}
            }
        }
        let counted = catalog.checkpoint(checkpoint).is_some();
        if counted && !self.handed_out.contains(&(checkpoint, object)) {
            return breach(Invariant::I3, "was deleted, and nobody had handed it out");
        }
        Ok(())
    }

    /// Takes what was decided as records, as a disk would.
    fn commit(&mut self) {
        while let Some(batch) = self.engine.take_batch() {
            // A frame of our own engine always scans.
            let first = u64::try_from(self.records.len()).unwrap_or(u64::MAX);
            if let Ok(frames) = scan(&self.epoch, first, batch.bytes()) {
                for frame in frames.frames() {
                    self.records.extend(frame.records().map(|(_, record)| record.to_vec()));
                }
            }
            self.engine.commit(batch);
        }
    }
}
