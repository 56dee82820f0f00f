//! What the journal holds against what was sent and what was acknowledged.
//!
//! Protects clients: it sees only their messages, with the order in which they happened, and the
//! journal's records as a reader beside sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use pinfold_core::catalog::{Catalog, Change, Decision, Event};
use pinfold_core::id::{CheckpointId, Incarnation, OpId, OwnerId, PinId, StartId};
use pinfold_core::outcome::{Outcome, TurnKey};
use pinfold_host::journal::{self, JournalError, Reading, SegmentLog, Shown};

use crate::load::Client;
use crate::wire::{Answer, Ask, Verb};

/// A command, as its client saw it.
struct Seen {
    verb: Verb,
    /// When it was sent first.
    sent: u64,
    /// When its first answer came, and which.
    answered: Option<(u64, Answer)>,
    /// Its record's number, once that was seen.
    record: Option<u64>,
}

/// Everything that was said to a node and by it.
#[derive(Default)]
pub(crate) struct Judge {
    /// Counts messages.
    now: u64,
    commands: BTreeMap<OpId, Seen>,
    registrations: BTreeMap<StartId, (OwnerId, Option<Incarnation>)>,
    /// How many records there were at least.
    pub(crate) records: u64,
    /// How many of them the newest snapshot stood for, and how often there was a newer one.
    snapshot_records: u64,
    pub(crate) snapshots: u64,
    /// How often more than one segment was there.
    pub(crate) rolls: u64,
}

impl Judge {
    /// Notes that a client sends this.
    pub(crate) fn sends(&mut self, ask: &Ask) {
        self.now += 1;
        match ask {
            Ask::Register { owner, start, .. } => {
                self.registrations.entry(*start).or_insert((*owner, None));
            }
            Ask::Command(op, verb) => {
                let (verb, sent) = (verb.clone(), self.now);
                let seen = Seen { verb, sent, answered: None, record: None };
                self.commands.entry(*op).or_insert(seen);
            }
        }
    }

    /// Notes that a client has this answer.
    pub(crate) fn answers(&mut self, ask: &Ask, answer: Answer) {
        self.now += 1;
        match (ask, answer) {
            (Ask::Register { start, .. }, Ok(Outcome::Registered { incarnation })) => {
                if let Some((_, known)) = self.registrations.get_mut(start) {
                    *known = Some(incarnation);
                }
            }
            (Ask::Register { .. }, _) => {}
            (Ask::Command(op, _), answer) => {
                if let Some(seen) = self.commands.get_mut(op) {
                    seen.answered.get_or_insert((self.now, answer));
                }
            }
        }
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.commands.values().filter(|seen| seen.answered.is_some()).count()
    }

    /// Judges the journal of a folder.
    pub(crate) fn judge(&mut self, dir: &Path, clients: &[Client]) -> Result<Catalog, String> {
        let (reading, events) = whole(dir).map_err(|error| error.to_string())?;
        if reading.records < self.records {
            return Err(format!("{} records, after {}", reading.records, self.records));
        }
        self.records = reading.records;
        self.snapshots += u64::from(reading.snapshot_records > self.snapshot_records);
        self.snapshot_records = reading.snapshot_records;
        self.rolls += u64::from(reading.segments.len() > 1);
        let numbers = events.iter().map(|(number, _)| *number);
        if !numbers.eq(reading.snapshot_records..reading.records) {
            return Err("the records' numbers have a gap or a repeat".into());
        }
        let mut sent_last = 0;
        for (number, event) in &events {
            let sent =
                self.judge_event(*number, event).map_err(|why| format!("{why}: {event:?}"))?;
            if let Some((sent, answered)) = sent {
                if answered < sent_last {
                    return Err(format!("record {number} was answered before one in front of it"));
                }
                sent_last = sent_last.max(sent);
            }
        }
        self.judge_coverage()?;
        reading.catalog.check().map_err(|broken| broken.to_string())?;
        for (ask, answer) in clients.iter().flat_map(Client::repetitions) {
            let Ask::Command(op, verb) = ask else { continue };
            let decision = reading.catalog.decide(reading.epoch, op, verb.command());
            if decision != Decision::Answer(answer) {
                return Err(format!("I14: {op} was answered {answer:?}, now {decision:?}"));
            }
        }
        Ok(reading.catalog)
    }

    /// When the command of an event was sent and answered.
    fn judge_event(&mut self, number: u64, event: &Event) -> Result<Option<(u64, u64)>, String> {
        match event {
            Event::Genesis(_) | Event::Recovered | Event::FollowedUp(_) => Ok(None),
            Event::Registered { owner, start, incarnation, .. } => {
                match self.registrations.get(start) {
                    Some((by, None)) if by == owner => Ok(None),
                    Some((by, Some(known))) if by == owner && known == incarnation => Ok(None),
                    Some(_) | None => Err("nobody registered so".into()),
                }
            }
            Event::Decided { op, change, .. } => {
                let seen = self.commands.get_mut(op).ok_or("nobody sent that")?;
                if seen.record.is_some_and(|before| before != number) {
                    return Err("I14: decided twice".into());
                }
                seen.record = Some(number);
                if !is_of(change, *op, &seen.verb) {
                    return Err(format!("{:?} was sent", seen.verb));
                }
                let Some((answered, answer)) = seen.answered else {
                    return Ok(Some((seen.sent, u64::MAX)));
                };
                if !gives(change, *op, &answer) {
                    return Err(format!("{answer:?} was acknowledged"));
                }
                Ok(Some((seen.sent, answered)))
            }
        }
    }

    /// Whatever was acknowledged has its record, or lies in front of the snapshot: what was sent
    /// after the answer of a record that is there must be there, too.
    fn judge_coverage(&self) -> Result<(), String> {
        let there = |seen: &&Seen| seen.record.is_some_and(|at| at >= self.snapshot_records);
        let answered = |seen: &Seen| seen.answered.map(|(at, _)| at);
        let floor = if self.snapshot_records == 0 {
            Some(0)
        } else {
            self.commands.values().filter(there).filter_map(answered).min()
        };
        let missing = self.commands.iter().find(|(_, seen)| {
            let after = floor.is_some_and(|floor| seen.sent > floor);
            after && seen.answered.is_some() && seen.record.is_none()
        });
        match missing {
            Some((op, _)) => Err(format!("I10: {op} was acknowledged and has no record")),
            None => Ok(()),
        }
    }
}

/// The turns that retain a checkpoint.
pub(crate) fn retained(catalog: &Catalog) -> BTreeSet<TurnKey> {
    catalog.live_turns().into_iter().map(|(turn, _)| turn).collect()
}

/// Whether there is a journal that anybody was told of.
pub(crate) fn exists(dir: &Path) -> bool {
    SegmentLog::exists(dir).unwrap_or(false)
}

/// Whether a change is one that this command can lead to.
fn is_of(change: &Change, op: OpId, verb: &Verb) -> bool {
    match (change, verb) {
        (Change::Refused(_), _) => true,
        (Change::Prepared { prepare, .. }, Verb::Prepare(asked)) => prepare == asked,
        (Change::Joined { shards, .. }, Verb::Prepare(asked)) => *shards == asked.shards,
        (Change::AlreadyPublished { checkpoint }, Verb::Prepare(asked)) => {
            checkpoint.endpoint == asked.endpoint
        }
        (Change::Pinned { checkpoints }, Verb::Pin { candidates, .. }) => {
            checkpoints.iter().all(|there| candidates.contains(&there.endpoint))
        }
        (Change::Settled { pin, .. }, Verb::Settle { pin: asked, .. })
        | (Change::Released { pin }, Verb::Release { pin: asked }) => pin == asked,
        (Change::Published { turn, .. }, Verb::Publish { turn: asked, .. }) => turn == asked,
        (
            Change::Lost { checkpoint, object, .. },
            Verb::Lost { checkpoint: asked, object: what },
        ) => checkpoint == asked && object == what,
        (Change::Doubted { pin, doubtful }, Verb::Doubt { pin: asked, doubtful: what }) => {
            pin == asked && doubtful == what
        }
        (Change::Collected { .. }, Verb::Collect { .. }) => true,
        (
            Change::Deleted { checkpoint, outcomes },
            Verb::Deleted { checkpoint: asked, outcomes: what },
        ) => checkpoint == asked && outcomes == what,
        (Change::Forgotten { conversation }, Verb::Forget { conversation: asked }) => {
            conversation == asked
        }
        (Change::Dropped { checkpoint }, Verb::Drop { checkpoint: asked }) => checkpoint == asked,
        (
            Change::Fenced { owner, incarnation },
            Verb::Fence { owner: asked, incarnation: what },
        ) => owner == asked && incarnation == what && op.owner == OwnerId::of_name("operator"),
        _ => false,
    }
}

/// Whether a change gives this answer.
fn gives(change: &Change, op: OpId, answer: &Answer) -> bool {
    let pin = PinId { op, place: 0 };
    match (change, answer) {
        (Change::Refused(why), Err(answer)) => why == answer,
        (Change::Prepared { prepare, generation }, Ok(answer)) => {
            let checkpoint = CheckpointId { endpoint: prepare.endpoint, generation: *generation };
            *answer == Outcome::Prepared { pin, checkpoint }
        }
        (Change::Joined { checkpoint, .. }, Ok(answer)) => {
            *answer == Outcome::Prepared { pin, checkpoint: *checkpoint }
        }
        (Change::AlreadyPublished { checkpoint }, Ok(answer)) => {
            *answer == Outcome::AlreadyPublished { pin, checkpoint: *checkpoint }
        }
        (Change::Pinned { checkpoints }, Ok(Outcome::Pinned(pinned))) => {
            pinned.iter().map(|there| &there.checkpoint).eq(checkpoints.iter())
        }
        (Change::Settled { evidence, .. }, Ok(answer)) => {
            *answer == Outcome::Settled { evidence: *evidence }
        }
        (Change::Released { .. }, Ok(answer)) => *answer == Outcome::Released,
        (Change::Published { expired, .. }, Ok(Outcome::Published { expired: told, .. })) => {
            expired == told
        }
        (Change::Lost { .. }, Ok(answer)) => *answer == Outcome::Lost,
        (Change::Doubted { .. }, Ok(answer)) => *answer == Outcome::Doubted,
        (Change::Collected { work, more }, Ok(answer)) => {
            let objects = work.iter().map(|piece| piece.count).sum();
            *answer == Outcome::Collected { objects, more: *more }
        }
        (Change::Deleted { .. }, Ok(answer)) => matches!(answer, Outcome::Deleted { .. }),
        (Change::Forgotten { .. }, Ok(answer)) => *answer == Outcome::Forgotten,
        (Change::Dropped { .. }, Ok(answer)) => *answer == Outcome::Dropped,
        (Change::Fenced { .. }, Ok(answer)) => matches!(answer, Outcome::Fenced { .. }),
        _ => false,
    }
}

/// The journal of a folder, and the records behind its snapshot, of one moment: read until nothing
/// changed meanwhile.
pub(crate) fn whole(dir: &Path) -> Result<(Reading, Vec<(u64, Event)>), JournalError> {
    loop {
        let before = journal::read(dir)?;
        let mut records = Vec::new();
        journal::records(dir, &mut |shown| {
            if let Shown::Record { sequence, event } = shown {
                records.push((sequence, event.clone()));
            }
            ControlFlow::Continue(())
        })?;
        let after = journal::read(dir)?;
        let moment = |reading: &Reading| (reading.records, reading.snapshot_records);
        if moment(&before) == moment(&after) {
            return Ok((after, records));
        }
    }
}
