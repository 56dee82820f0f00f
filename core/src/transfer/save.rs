//! A save: prepare, agree, put and confirm, settle, publish, release.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::asking::{Asking, Meaning, meaning};
use super::objects::Objects;
use super::{Completion, Ended, Fault, Plan, Published, Step, TransferError, check_shards};
use crate::catalog::{Command, Prepare, Shape, ShardShape};
use crate::id::{AttemptId, CheckpointId, OpId, PinId, ShardIndex};
use crate::manifest::{Manifest, ObjectName};
use crate::outcome::{Evidence, Outcome, Rejection, TurnKey};

/// What a worker wants to save.
#[derive(Clone, Debug)]
pub struct SaveRequest {
    /// The host's id of this try, the same on every rank of the engine instance.
    pub attempt: AttemptId,
    /// The whole checkpoint, the same on every rank.
    pub manifest: Arc<Manifest>,
    /// The shards that this worker stores, ascending.
    pub shards: Vec<ShardIndex>,
    /// What is published when all is saved.
    pub publication: Publication,
    /// Other ranks save other shards, so all must agree before a byte moves.
    pub has_peers: bool,
}

/// What a save publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Publication {
    /// This turn.
    Turn(TurnKey),
    /// The checkpoint without a conversation.
    Unscoped,
    /// Nothing: another rank publishes.
    Elsewhere,
}

/// What a save asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ask {
    Prepare,
    /// Of one row.
    Settle(u32, Evidence),
    /// Of the whole pin, because nothing started.
    SettleAll,
    Publish,
    Release,
}

impl Ask {
    /// What it settles a row with.
    fn settles(self, row: u32) -> Option<Evidence> {
        match self {
            Self::Settle(this, evidence) if this == row => Some(evidence),
            Self::Prepare | Self::Settle(..) | Self::SettleAll | Self::Publish | Self::Release => {
                None
            }
        }
    }
}

/// What a save holds in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Held {
    /// Nothing was asked yet, or nothing is held any more.
    Nothing,
    /// A save pin.
    Attempt(PinId, CheckpointId),
    /// A load pin on the checkpoint that keeps the position already.
    Kept(PinId, CheckpointId),
    /// The answer to the prepare is forgotten: there may be a pin of this id.
    Unclear(PinId, Rejection),
    /// As before, and settled.
    UnclearSettled(PinId, Rejection),
}

/// How far something stands that the host has to do once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Turnstile {
    /// Not in the way.
    Open,
    /// The host is to be told.
    Due,
    /// The host was told, and has not answered.
    Told,
}

/// Why a save begins nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stop {
    Cancelled,
    Disagreed,
    Object(ObjectName, Fault),
    Overruled(ShardIndex, Evidence),
    Barred(Rejection),
}

/// A save. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Save {
    attempt: AttemptId,
    plan: Plan,
    shape: Shape,
    shards: Vec<ShardIndex>,
    publication: Publication,
    objects: Objects,
    asking: Asking<Ask>,
    held: Held,
    agreement: Turnstile,
    pause: Turnstile,
    stop: Option<Stop>,
    /// By row: what the catalog knows.
    settled: Vec<Option<Evidence>>,
    published: Option<Published>,
    ended: Option<Ended>,
}

impl Save {
    pub(super) fn new(request: SaveRequest) -> Result<Self, TransferError> {
        let SaveRequest { attempt, manifest, shards, publication, has_peers } = request;
        check_shards(&shards, Some(&manifest))?;
        let rows = manifest.shape().iter();
        let rows = rows.map(|row| ShardShape { objects: row.objects, bytes: row.bytes });
        let shape = Shape::new(&rows.collect::<Vec<_>>()).map_err(TransferError::Shape)?;
        Ok(Self {
            attempt,
            objects: Objects::to_store(&manifest, &shards),
            plan: Plan::new(manifest),
            shape,
            settled: alloc::vec![None; shards.len()],
            shards,
            publication,
            asking: Asking::new(),
            held: Held::Nothing,
            agreement: if has_peers { Turnstile::Due } else { Turnstile::Open },
            pause: Turnstile::Open,
            stop: None,
            published: match publication {
                Publication::Turn(_) | Publication::Unscoped => None,
                Publication::Elsewhere => Some(Published::Elsewhere),
            },
            ended: None,
        })
    }

    pub(super) fn next_step(&mut self) -> Option<Step> {
        if self.ended.is_some() {
            return None;
        }
        if let Some((ask, command)) = self.due() {
            self.asking.ask(ask);
            return Some(Step::Ask(command));
        }
        if self.pause == Turnstile::Due {
            self.pause = Turnstile::Told;
            return Some(Step::Wait);
        }
        match self.held {
            Held::Attempt(_, checkpoint) | Held::Kept(_, checkpoint)
                if self.stop.is_none() && self.agreement == Turnstile::Due =>
            {
                self.agreement = Turnstile::Told;
                Some(Step::Agree { checkpoint })
            }
            Held::Attempt(..) if self.agreement == Turnstile::Open => self.objects.begin_next(),
            Held::Nothing
            | Held::Attempt(..)
            | Held::Kept(..)
            | Held::Unclear(..)
            | Held::UnclearSettled(..) => None,
        }
    }

    /// What is due as soon as everything that waits is answered as hoped.
    pub(super) fn next_in_list(&mut self) -> Option<Command> {
        if self.pause != Turnstile::Open || self.is_barred() {
            return None;
        }
        let last = self.asking.all().last()?;
        let (ask, command) = match self.held {
            Held::Attempt(pin, _) if last != Ask::Release => self.due_of_attempt(pin)?,
            Held::Kept(pin, _) if last == Ask::Publish => settle_all(pin),
            Held::Nothing
            | Held::Attempt(..)
            | Held::Kept(..)
            | Held::Unclear(..)
            | Held::UnclearSettled(..) => return None,
        };
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
        match self.held {
            Held::Nothing => Some((Ask::Prepare, self.prepare())),
            Held::Attempt(pin, _) => self.due_of_attempt(pin),
            Held::Kept(pin, _) if self.stop.is_some() => Some(settle_all(pin)),
            Held::Kept(..) if self.agreement != Turnstile::Open => None,
            Held::Kept(pin, _) if self.published.is_none() => Some(self.publish(pin)),
            Held::Kept(pin, _) | Held::Unclear(pin, _) => Some(settle_all(pin)),
            Held::UnclearSettled(pin, _) => Some((Ask::Release, Command::Release { pin })),
        }
    }

    /// What is due of an attempt, if what waits is answered as hoped.
    fn due_of_attempt(&self, pin: PinId) -> Option<(Ask, Command)> {
        let mut all_final = true;
        for ((shard, known), row) in self.shards.iter().zip(&self.settled).zip(0_u32..) {
            let said = self.asking.all().find_map(|ask| ask.settles(row)).or(*known);
            if said.is_some_and(Evidence::is_final) {
                continue;
            }
            all_final = false;
            let evidence = self.objects.evidence(row as usize);
            if is_settleable(evidence) && said != Some(evidence) {
                let command = Command::Settle { pin, shard: Some(*shard), evidence };
                return Some((Ask::Settle(row, evidence), command));
            }
        }
        let publishes = self.asking.all().any(|ask| ask == Ask::Publish);
        if !all_final {
            None
        } else if self.stop.is_none() && self.published.is_none() && !publishes {
            Some(self.publish(pin))
        } else {
            Some((Ask::Release, Command::Release { pin }))
        }
    }

    fn prepare(&self) -> Command {
        Command::Prepare(Prepare {
            attempt: self.attempt,
            endpoint: self.plan.manifest.endpoint().id(),
            digest: self.plan.digest,
            shape: self.shape.clone(),
            shards: self.shards.clone(),
        })
    }

    const fn publish(&self, pin: PinId) -> (Ask, Command) {
        let turn = match self.publication {
            Publication::Turn(key) => Some(key),
            Publication::Unscoped | Publication::Elsewhere => None,
        };
        (Ask::Publish, Command::Publish { pin, turn })
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
            self.finish_if_barred();
        }
    }

    /// Takes an outcome; false when it is none of this command.
    fn achieved(&mut self, ask: Ask, op: OpId, outcome: Outcome) -> bool {
        match ask {
            Ask::Prepare => return self.prepared(op, outcome),
            Ask::Settle(row, _) => {
                let Outcome::Settled { evidence } = outcome else { return false };
                self.settled(row, evidence);
            }
            Ask::SettleAll => {
                let Outcome::Settled { .. } = outcome else { return false };
                self.let_go();
            }
            Ask::Publish => {
                let Outcome::Published { expired, follow_ups } = outcome else { return false };
                self.published = Some(Published::Here { expired, follow_ups });
            }
            Ask::Release => {
                let Outcome::Released = outcome else { return false };
                self.let_go();
            }
        }
        true
    }

    fn prepared(&mut self, op: OpId, outcome: Outcome) -> bool {
        let endpoint = self.plan.manifest.endpoint().id();
        let is_answer = |pin: PinId, checkpoint: CheckpointId| {
            pin == PinId { op, place: 0 } && checkpoint.endpoint == endpoint
        };
        if let Outcome::Prepared { pin, checkpoint } = outcome
            && is_answer(pin, checkpoint)
        {
            self.held = Held::Attempt(pin, checkpoint);
            return true;
        }
        if let Outcome::AlreadyPublished { pin, checkpoint } = outcome
            && is_answer(pin, checkpoint)
        {
            self.held = Held::Kept(pin, checkpoint);
            return true;
        }
        false
    }

    fn settled(&mut self, row: u32, stands: Evidence) {
        let own = self.objects.evidence(row as usize);
        let shard = self.shards.get(row as usize).copied().unwrap_or_default();
        if let Some(said) = self.settled.get_mut(row as usize) {
            *said = Some(stands);
        }
        // What an operator had settled stands, whatever really happened.
        if own == Evidence::QuiescedSuccess && stands.is_final() && stands != own {
            self.halt(Stop::Overruled(shard, stands));
        }
    }

    fn refused(&mut self, ask: Ask, op: OpId, rejection: Rejection) {
        match ask {
            Ask::Prepare => self.not_prepared(op, rejection),
            Ask::Settle(..) => match meaning(rejection) {
                Meaning::AskAgain => self.pause = Turnstile::Due,
                Meaning::Barred | Meaning::PinGone | Meaning::NotYet | Meaning::Refused => {
                    self.halt(Stop::Barred(rejection));
                }
            },
            Ask::Publish => self.not_published(rejection),
            Ask::SettleAll | Ask::Release => match meaning(rejection) {
                Meaning::AskAgain => self.pause = Turnstile::Due,
                Meaning::Barred | Meaning::PinGone | Meaning::NotYet | Meaning::Refused => {
                    self.let_go();
                }
            },
        }
    }

    fn not_prepared(&mut self, op: OpId, rejection: Rejection) {
        self.objects.stop();
        if rejection == Rejection::ReceiptForgotten {
            self.held = Held::Unclear(PinId { op, place: 0 }, rejection);
        } else {
            self.ended = Some(Ended::Skipped(rejection));
        }
    }

    fn not_published(&mut self, rejection: Rejection) {
        let waits = matches!(self.held, Held::Attempt(..)) && self.stop.is_none();
        match meaning(rejection) {
            Meaning::AskAgain => self.pause = Turnstile::Due,
            Meaning::NotYet if waits && self.published.is_none() => self.pause = Turnstile::Due,
            Meaning::Barred | Meaning::PinGone => self.halt(Stop::Barred(rejection)),
            Meaning::NotYet | Meaning::Refused => {
                self.published.get_or_insert(Published::Refused(rejection));
            }
        }
    }

    /// The pin has ended, or never was.
    fn let_go(&mut self) {
        match self.held {
            Held::Unclear(pin, why) => self.held = Held::UnclearSettled(pin, why),
            Held::UnclearSettled(_, why) => self.ended = Some(Ended::Skipped(why)),
            Held::Attempt(_, checkpoint) => self.ended = Some(self.end_of_attempt(checkpoint)),
            Held::Kept(_, checkpoint) => {
                self.objects.stop();
                self.ended = Some(match self.stop {
                    Some(Stop::Disagreed) => Ended::Disagreed { checkpoint },
                    Some(Stop::Barred(why)) => Ended::Barred { checkpoint, why },
                    Some(Stop::Cancelled | Stop::Object(..) | Stop::Overruled(..)) | None => {
                        let published = self.published.unwrap_or(Published::Withheld);
                        Ended::AlreadyPublished { checkpoint, published }
                    }
                });
            }
            Held::Nothing => {}
        }
    }

    fn end_of_attempt(&self, checkpoint: CheckpointId) -> Ended {
        let whole = self.settled.iter().all(|said| *said == Some(Evidence::QuiescedSuccess));
        let published = self.published.unwrap_or(Published::Withheld);
        match self.stop {
            Some(Stop::Object(object, why)) => Ended::Failed { checkpoint, object, why },
            Some(Stop::Overruled(shard, stands)) => Ended::Overruled { checkpoint, shard, stands },
            Some(Stop::Disagreed) => Ended::Disagreed { checkpoint },
            Some(Stop::Barred(why)) => Ended::Barred { checkpoint, why },
            Some(Stop::Cancelled) if !whole => Ended::Cancelled { checkpoint: Some(checkpoint) },
            Some(Stop::Cancelled) | None => Ended::Saved { checkpoint, published },
        }
    }

    pub(super) fn completed(&mut self, object: ObjectName, completion: Completion) {
        if let Some(fault) = self.objects.completed(object, completion) {
            self.halt(Stop::Object(object, fault));
        }
        self.finish_if_barred();
    }

    pub(super) fn agreed(&mut self, same: bool) {
        if self.agreement != Turnstile::Told || self.stop.is_some() {
            return;
        }
        self.agreement = Turnstile::Open;
        if !same {
            self.halt(Stop::Disagreed);
        }
    }

    pub(super) const fn proceed(&mut self) {
        self.pause = Turnstile::Open;
    }

    pub(super) fn published_elsewhere(&mut self) {
        if self.published.is_none() {
            self.published = Some(Published::Elsewhere);
            self.pause = Turnstile::Open;
        }
    }

    pub(super) fn cancel(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.halt(Stop::Cancelled);
        self.pause = Turnstile::Open;
        if self.held == Held::Nothing && !self.asking.is_waiting() {
            self.ended = Some(Ended::Cancelled { checkpoint: None });
        }
    }

    /// Begins nothing more; the first reason stands, but for one that bars everything.
    fn halt(&mut self, stop: Stop) {
        self.objects.stop();
        if self.stop.is_none() || matches!(stop, Stop::Barred(_)) {
            self.stop = Some(stop);
        }
    }

    const fn is_barred(&self) -> bool {
        matches!(self.stop, Some(Stop::Barred(_)))
    }

    /// Nothing can be said any more, so the end is when nothing is touched any more.
    fn finish_if_barred(&mut self) {
        if self.ended.is_some() || !self.objects.is_retired() {
            return;
        }
        if let (Some(Stop::Barred(why)), Some(checkpoint)) = (self.stop, self.checkpoint()) {
            self.ended = Some(Ended::Barred { checkpoint, why });
        }
    }

    pub(super) const fn checkpoint(&self) -> Option<CheckpointId> {
        match self.held {
            Held::Attempt(_, checkpoint) | Held::Kept(_, checkpoint) => Some(checkpoint),
            Held::Nothing | Held::Unclear(..) | Held::UnclearSettled(..) => None,
        }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.objects.in_flight()
    }

    pub(super) const fn report(&self) -> Option<Ended> {
        self.ended
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        let mut rows = 0..self.shards.len();
        self.ended.is_none() && rows.any(|row| self.objects.evidence(row) == Evidence::InDoubt)
    }

    pub(super) fn evidence(&self, shard: ShardIndex) -> Option<Evidence> {
        let row = self.shards.binary_search(&shard).ok()?;
        Some(self.objects.evidence(row))
    }

    #[cfg(test)]
    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }
}

const fn settle_all(pin: PinId) -> (Ask, Command) {
    (Ask::SettleAll, Command::Settle { pin, shard: None, evidence: Evidence::NotExposed })
}

/// True for what a catalog takes.
pub(super) const fn is_settleable(evidence: Evidence) -> bool {
    match evidence {
        Evidence::NotExposed
        | Evidence::QuiescedSuccess
        | Evidence::QuiescedFailure
        | Evidence::InDoubt => true,
        Evidence::Active | Evidence::Quiescing => false,
    }
}
