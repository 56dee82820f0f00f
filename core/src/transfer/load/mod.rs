//! A load: pin, choose, check, get, agree, adopt, settle.

mod choice;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::asking::{Asking, Meaning, meaning};
use super::objects::Objects;
use super::save::{Turnstile, is_settleable};
use super::{Completion, Ended, Miss, Plan, Step, TransferError, check_shards};
use crate::catalog::Command;
use crate::id::{CheckpointId, OpId, PinId, ShardIndex};
use crate::manifest::ObjectName;
use crate::outcome::{Evidence, Outcome, Pinned, Rejection};

pub use choice::{Candidate, LoadRequest};

/// What a load asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ask {
    Pin,
    Lost,
    /// Of one pin.
    Settle(u32, Evidence),
}

/// One pinned checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    pin: PinId,
    /// None when the answer is forgotten and only the pin's id is known.
    pinned: Option<Pinned>,
    /// What the catalog knows.
    said: Option<Evidence>,
    /// The pin has ended.
    ended: bool,
}

/// The reading of a stored manifest that differs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reading {
    row: u32,
    turnstile: Turnstile,
    began: bool,
    own: Option<Plan>,
    stored: Option<Plan>,
}

/// A load. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Load {
    candidates: Arc<[Candidate]>,
    limit: u32,
    shards: Arc<[ShardIndex]>,
    explains: bool,
    asking: Asking<Ask>,
    asked: bool,
    rows: Vec<Row>,
    choice: Turnstile,
    chosen: Option<u32>,
    describe: Turnstile,
    reading: Option<Reading>,
    objects: Option<Objects>,
    agreement: Turnstile,
    pause: Turnstile,
    stop: Option<Miss>,
    /// The loss was reported, or there is none.
    reported: bool,
    adopted: bool,
    ended: Option<Ended>,
}

impl Load {
    pub(super) fn new(request: LoadRequest) -> Result<Self, TransferError> {
        let LoadRequest { candidates, limit, shards, has_peers, explains } = request;
        check_shards(&shards, None)?;
        for candidate in &candidates {
            check_shards(&shards, candidate.manifest.as_deref())?;
        }
        if candidates.is_empty() {
            return Err(TransferError::NoCandidate);
        }
        let with_peers = if has_peers { Turnstile::Due } else { Turnstile::Open };
        Ok(Self {
            candidates: candidates.into(),
            limit,
            shards: shards.into(),
            explains,
            asking: Asking::new(),
            asked: false,
            rows: Vec::new(),
            choice: with_peers,
            chosen: None,
            describe: Turnstile::Open,
            reading: None,
            objects: None,
            agreement: with_peers,
            pause: Turnstile::Open,
            stop: None,
            reported: false,
            adopted: false,
            ended: None,
        })
    }

    pub(super) fn next_step(&mut self) -> Option<Step> {
        if self.ended.is_some() {
            return None;
        }
        if let Some((ask, command)) = self.due() {
            self.asked = true;
            self.asking.ask(ask);
            return Some(Step::Ask(command));
        }
        if self.pause == Turnstile::Due {
            self.pause = Turnstile::Told;
            return Some(Step::Wait);
        }
        if let Some(step) = self.read_manifest() {
            return Some(step);
        }
        if self.stop.is_some() || self.adopted || self.rows.is_empty() {
            return None;
        }
        if self.choice == Turnstile::Due {
            self.choice = Turnstile::Told;
            return Some(Step::Choose);
        }
        let checkpoint = self.checkpoint()?;
        if self.describe == Turnstile::Due {
            self.describe = Turnstile::Told;
            return Some(Step::Describe { endpoint: checkpoint.endpoint });
        }
        let objects = self.objects.as_mut()?;
        if !objects.is_whole() {
            return objects.begin_next();
        }
        match self.agreement {
            Turnstile::Due => {
                self.agreement = Turnstile::Told;
                Some(Step::Agree { checkpoint })
            }
            Turnstile::Told => None,
            Turnstile::Open => {
                self.adopted = true;
                Some(Step::Adopt { checkpoint })
            }
        }
    }

    /// What is due as soon as everything that waits is answered as hoped.
    pub(super) fn next_in_list(&mut self) -> Option<Command> {
        let first = self.asking.all().next()?;
        if first == Ask::Pin || self.pause != Turnstile::Open || self.is_barred() {
            return None;
        }
        let (ask, command) = self.due_settle()?;
        self.asking.ask(ask);
        Some(command)
    }

    pub(super) fn take_back_last(&mut self) {
        self.asking.take_back();
    }

    /// The command that is due now, if none waits for its answer.
    fn due(&self) -> Option<(Ask, Command)> {
        if self.asking.is_waiting() || self.pause != Turnstile::Open || self.is_barred() {
            return None;
        }
        if !self.asked {
            let candidates = self.candidates.iter().map(|candidate| candidate.endpoint).collect();
            return Some((Ask::Pin, Command::Pin { candidates, limit: self.limit }));
        }
        if let Some(command) = self.due_loss() {
            return Some((Ask::Lost, command));
        }
        self.due_settle()
    }

    /// The first pin of which more is known than was said or waits.
    fn due_settle(&self) -> Option<(Ask, Command)> {
        for (row, number) in self.rows.iter().zip(0_u32..).filter(|(row, _)| !row.ended) {
            let evidence = self.row_evidence(number);
            let waits = |ask| matches!(ask, Ask::Settle(row, _) if row == number);
            if self.asking.all().any(waits) {
                continue;
            }
            if is_settleable(evidence) && row.said != Some(evidence) {
                let command = Command::Settle { pin: row.pin, shard: None, evidence };
                return Some((Ask::Settle(number, evidence), command));
            }
        }
        None
    }

    fn due_loss(&self) -> Option<Command> {
        let (Some(Miss::Object { checkpoint, object, why }), false) = (self.stop, self.reported)
        else {
            return None;
        };
        let object = self.objects.as_ref()?.lost_name(object)?;
        Some(Command::Lost { checkpoint, object, why: why.loss()? })
    }

    /// What is known about one pin.
    fn row_evidence(&self, row: u32) -> Evidence {
        if self.chosen == Some(row) {
            return self.chosen_evidence();
        }
        if let Some(reading) = self.reading.as_ref().filter(|reading| reading.row == row) {
            return match reading.turnstile {
                Turnstile::Due | Turnstile::Told => Evidence::Active,
                Turnstile::Open if reading.began => Evidence::QuiescedFailure,
                Turnstile::Open => Evidence::NotExposed,
            };
        }
        if self.stop.is_some() || self.chosen.is_some() {
            Evidence::NotExposed
        } else {
            Evidence::Active
        }
    }

    fn chosen_evidence(&self) -> Evidence {
        if self.adopted {
            return Evidence::QuiescedSuccess;
        }
        let Some(stop) = self.stop else { return Evidence::Active };
        let moved = self.objects.as_ref().map_or(Evidence::NotExposed, |it| it.evidence(0));
        let is_fault = matches!(stop, Miss::Object { .. });
        match moved {
            // It may all have arrived: what nobody adopts is no success.
            Evidence::QuiescedSuccess => Evidence::QuiescedFailure,
            Evidence::NotExposed if is_fault => Evidence::QuiescedFailure,
            Evidence::NotExposed
            | Evidence::Active
            | Evidence::Quiescing
            | Evidence::QuiescedFailure
            | Evidence::InDoubt => moved,
        }
    }

    pub(super) fn answered(&mut self, op: OpId, answer: Result<Outcome, Rejection>) {
        let Some(ask) = self.asking.waiting(op) else { return };
        let fits = match answer {
            Ok(outcome) => self.achieved(ask, op, outcome),
            Err(rejection) => {
                self.refused(ask, op, rejection);
                true
            }
        };
        if fits {
            self.asking.close(op, answer.is_err());
            self.finish();
        }
    }

    /// Takes an outcome; false when it is none of this command.
    fn achieved(&mut self, ask: Ask, op: OpId, outcome: Outcome) -> bool {
        match ask {
            Ask::Pin => {
                let Outcome::Pinned(answers) = outcome else { return false };
                let asked = self.are_asked(&answers);
                if asked {
                    self.take_pins(op, &answers);
                }
                return asked;
            }
            Ask::Lost => {
                let Outcome::Lost = outcome else { return false };
                self.reported = true;
            }
            Ask::Settle(row, said) => {
                let Outcome::Settled { .. } = outcome else { return false };
                self.settled(row, said);
            }
        }
        true
    }

    fn refused(&mut self, ask: Ask, op: OpId, rejection: Rejection) {
        match ask {
            Ask::Pin => self.not_pinned(op, rejection),
            Ask::Lost => match meaning(rejection) {
                Meaning::Barred => self.bar(rejection),
                Meaning::AskAgain => self.pause = Turnstile::Due,
                Meaning::PinGone | Meaning::NotYet | Meaning::Refused => self.reported = true,
            },
            Ask::Settle(row, _) => match meaning(rejection) {
                Meaning::PinGone => self.pin_ended(row),
                Meaning::AskAgain => self.pause = Turnstile::Due,
                Meaning::Barred | Meaning::NotYet | Meaning::Refused => self.bar(rejection),
            },
        }
    }

    /// Every answer is one of the candidates, in their order.
    fn are_asked(&self, answers: &[Pinned]) -> bool {
        let mut candidates = self.candidates.iter();
        answers.iter().all(|answer| {
            candidates.any(|candidate| candidate.endpoint == answer.checkpoint.endpoint)
        })
    }

    fn take_pins(&mut self, op: OpId, answers: &[Pinned]) {
        self.rows.extend(answers.iter().zip(0_u8..).map(|(answer, place)| Row {
            pin: PinId { op, place },
            pinned: Some(*answer),
            said: None,
            ended: false,
        }));
        if self.rows.is_empty() {
            self.halt(Miss::NothingPinned);
        } else if self.choice == Turnstile::Open && self.stop.is_none() {
            self.take_longest();
        }
    }

    fn not_pinned(&mut self, op: OpId, rejection: Rejection) {
        self.halt(Miss::Refused(rejection));
        if rejection == Rejection::ReceiptForgotten {
            let places = 0..u8::try_from(self.limit.min(8)).unwrap_or(8);
            self.rows.extend(places.map(|place| Row {
                pin: PinId { op, place },
                pinned: None,
                said: None,
                ended: false,
            }));
        }
    }

    fn settled(&mut self, row: u32, said: Evidence) {
        if let Some(row) = self.rows.get_mut(row as usize) {
            row.said = Some(said);
            row.ended = said.is_final();
        }
    }

    fn pin_ended(&mut self, row: u32) {
        if let Some(row) = self.rows.get_mut(row as usize) {
            row.ended = true;
        }
    }

    fn bar(&mut self, rejection: Rejection) {
        if let Some(objects) = &mut self.objects {
            objects.stop();
        }
        self.stop = Some(Miss::Barred(rejection));
        self.skip_reading();
    }

    const fn is_barred(&self) -> bool {
        matches!(self.stop, Some(Miss::Barred(_)))
    }

    /// Begins nothing more; the first reason stands.
    fn halt(&mut self, miss: Miss) {
        if let Some(objects) = &mut self.objects {
            objects.stop();
        }
        self.stop.get_or_insert(miss);
    }

    /// The end is when every pin has ended, or nothing can be said, and nothing is touched.
    fn finish(&mut self) {
        let retired = self.objects.as_ref().is_none_or(Objects::is_retired);
        let reads = |reading: &Reading| reading.turnstile == Turnstile::Told;
        if self.ended.is_some() || !retired || self.reading.as_ref().is_some_and(reads) {
            return;
        }
        let silent = self.is_barred() || self.rows.iter().all(|row| row.ended);
        if self.asking.is_waiting() || !silent {
            return;
        }
        self.ended = match (self.adopted, self.checkpoint(), self.stop) {
            (true, Some(checkpoint), _) => Some(Ended::Restored { checkpoint }),
            (_, _, Some(miss)) => Some(Ended::Missed(miss)),
            (_, _, None) => None,
        };
    }

    pub(super) fn completed(&mut self, object: ObjectName, completion: Completion) {
        let Some(objects) = &mut self.objects else { return };
        let fault = objects.completed(object, completion);
        if let (Some(why), Some(checkpoint), false) = (fault, self.checkpoint(), self.adopted) {
            self.halt(Miss::Object { checkpoint, object, why });
        }
        self.finish();
    }

    pub(super) fn agreed(&mut self, same: bool) {
        if self.agreement != Turnstile::Told || self.stop.is_some() {
            return;
        }
        self.agreement = Turnstile::Open;
        if let (false, Some(checkpoint)) = (same, self.checkpoint()) {
            self.halt(Miss::PeersMissed { checkpoint });
        }
        self.finish();
    }

    pub(super) const fn proceed(&mut self) {
        self.pause = Turnstile::Open;
    }

    /// Lets go of everything; what was adopted stays adopted.
    pub(super) fn cancel(&mut self, why: Miss) {
        self.pause = Turnstile::Open;
        if self.adopted || self.ended.is_some() {
            return;
        }
        self.halt(why);
        self.skip_reading();
        if !self.asked {
            self.asked = true;
        }
        self.finish();
    }

    pub(super) fn checkpoint(&self) -> Option<CheckpointId> {
        let row = self.rows.get(self.chosen? as usize)?;
        row.pinned.map(|pinned| pinned.checkpoint)
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.objects.as_ref().map_or(0, Objects::in_flight)
    }

    pub(super) const fn report(&self) -> Option<Ended> {
        self.ended
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.ended.is_none() && self.chosen_evidence() == Evidence::InDoubt
    }

    pub(super) fn evidence(&self, shard: ShardIndex) -> Option<Evidence> {
        self.shards.contains(&shard).then(|| self.chosen_evidence())
    }

    pub(super) fn may_reuse_destination(&self) -> bool {
        !self.adopted && self.chosen_evidence().is_final()
    }

    #[cfg(test)]
    pub(super) fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }
}
