//! An engine, its journal, its clients and its observer, one random step after another.

use std::collections::BTreeMap;

use pinfold_core::catalog::{Blocker, Catalog, Command, Event, PROTOCOL_VERSION, Register, Role};
use pinfold_core::engine::{Config, Effect, Engine, Input, Output, Reply, Request, Ticket};
use pinfold_core::id::{CheckpointId, Epoch, Incarnation, ObjectId, OpId, OwnerId, PinId, StartId};
use pinfold_core::journal::record::Frame;
use pinfold_core::journal::snapshot;
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome, Rejection};
use pinfold_core::policy::Genesis;
use pinfold_core::replay::{Replay, decode_event, follow};

use crate::observer::Observer;
use crate::{Deletes, Step, Verb, W, facts, limits, policy};

type Answer = Result<Outcome, Rejection>;

/// The genesis operator's owner id.
pub(crate) const OPERATOR: u128 = 1;

/// See the [module](self).
pub(crate) struct World {
    engine: Engine,
    records: Vec<Vec<u8>>,
    job: Genesis,
    pub(crate) observer: Observer,
    /// Each owner's incarnation and next sequence, as its client knows them.
    clients: BTreeMap<OwnerId, (Incarnation, u64)>,
    answers: Vec<(OpId, Command, Answer)>,
    /// Every pin and checkpoint that was ever heard of.
    pub(crate) pins: Vec<PinId>,
    pub(crate) checkpoints: Vec<CheckpointId>,
    tickets: u64,
    pub(crate) deletes: Deletes,
    /// The command that is under way for the first time.
    fresh: Option<(OpId, Command)>,
    /// Delete work that left.
    work: Vec<(CheckpointId, Vec<ObjectId>)>,
}

impl World {
    pub(crate) fn new(choice: u8, deletes: Deletes) -> Result<Self, String> {
        let job = Genesis {
            namespace: "random".parse().map_err(|_| "namespace")?,
            epoch: Epoch::from_u128(9),
            operator: OwnerId::from_u128(OPERATOR),
            policy: policy(choice),
            limits: limits(),
        };
        let engine = Engine::create(Config::default(), job.clone()).map_err(|e| e.to_string())?;
        let observer = Observer::new(job.policy);
        let mut world = Self {
            engine,
            records: Vec::new(),
            job,
            observer,
            clients: BTreeMap::new(),
            answers: Vec::new(),
            pins: Vec::new(),
            checkpoints: Vec::new(),
            tickets: 0,
            deletes,
            fresh: None,
            work: Vec::new(),
        };
        for owner in 1..=3 {
            world.register(OwnerId::from_u128(owner))?;
        }
        Ok(world)
    }

    pub(crate) fn run(&mut self, step: Step) -> Result<(), String> {
        let owner = OwnerId::from_u128(match step.who {
            0 => OPERATOR,
            who => 2 + u128::from(who % 2),
        });
        match step.verb {
            Verb::Save => self.save(owner, step)?,
            Verb::Register => self.register(OwnerId::from_u128(1 + u128::from(step.a % 3)))?,
            Verb::FollowUp => {
                self.engine.follow_up();
                self.sync()?;
            }
            Verb::Crash => self.crash()?,
            Verb::Lose => self.lose(owner, step)?,
            Verb::Snapshot => self.snapshot()?,
            Verb::Repeat => self.repeat(step)?,
            _ => {
                if let Some((owner, command)) = self.command(owner, step) {
                    self.send(owner, command, step.twice)?;
                }
            }
        }
        self.judge()
    }

    /// A whole save, as an honest worker would do it.
    fn save(&mut self, owner: OwnerId, step: Step) -> Result<(), String> {
        let prepare = Self::prepare(Step { who: 3, ..step });
        let Some(answer) = self.send(owner, Command::Prepare(prepare), false)? else {
            return Ok(());
        };
        let (pin, evidence) = match answer {
            Ok(Outcome::Prepared { pin, .. }) => (pin, Evidence::QuiescedSuccess),
            Ok(Outcome::AlreadyPublished { pin, .. }) => (pin, Evidence::NotExposed),
            Ok(_) | Err(_) => return Ok(()),
        };
        let settle = Command::Settle { pin, shard: None, evidence };
        let publish = Command::Publish { pin, turn: Some(Self::turn(step)) };
        let new = evidence == Evidence::QuiescedSuccess;
        let last = if new { Command::Release { pin } } else { settle.clone() };
        if new {
            self.send(owner, settle, false)?;
        }
        self.send(owner, publish, false)?;
        self.send(owner, last, step.twice)?;
        Ok(())
    }

    /// Sends a command under the owner's next number; nothing without a registration.
    fn send(
        &mut self,
        owner: OwnerId,
        command: Command,
        twice: bool,
    ) -> Result<Option<Answer>, String> {
        let Some((incarnation, next)) = self.clients.get_mut(&owner) else { return Ok(None) };
        let op = OpId { owner, incarnation: *incarnation, sequence: *next };
        *next += 1;
        self.fresh = Some((op, command.clone()));
        let answer = self.submit(Request::Command(op, command.clone()))?;
        self.heard(op, &command, answer);
        if twice {
            let again = self.submit(Request::Command(op, command.clone()))?;
            if again != answer {
                return Err(format!("I14: {command:?} answered {answer:?}, then {again:?}"));
            }
        }
        self.answers.push((op, command, answer));
        Ok(Some(answer))
    }

    fn heard(&mut self, op: OpId, command: &Command, answer: Answer) {
        let Ok(outcome) = answer else { return };
        match outcome {
            Outcome::Prepared { pin, checkpoint }
            | Outcome::AlreadyPublished { pin, checkpoint } => {
                self.pins.push(pin);
                if !self.checkpoints.contains(&checkpoint) {
                    self.checkpoints.push(checkpoint);
                }
            }
            Outcome::Pinned(answers) => {
                self.pins.extend((0..).zip(answers.iter()).map(|(place, _)| PinId { op, place }));
            }
            Outcome::Retired => {
                if let Command::Retire { owner } = command {
                    self.clients.remove(owner);
                }
            }
            _ => {}
        }
    }

    fn register(&mut self, owner: OwnerId) -> Result<(), String> {
        let known = self.clients.get(&owner);
        let after = known.map_or(Incarnation(0), |(incarnation, _)| *incarnation);
        let is_operator = owner == OwnerId::from_u128(OPERATOR);
        let register = Register {
            owner,
            role: if is_operator { Role::Operator } else { Role::Worker },
            after,
            start: StartId::from_u128(u128::from(self.tickets) + 1),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        match self.submit(Request::Register(register))? {
            Ok(Outcome::Registered { incarnation }) => {
                self.clients.insert(owner, (incarnation, 1));
                Ok(())
            }
            other => Err(format!("a registration was answered {other:?}")),
        }
    }

    /// An answered operation once more, if it is of a current incarnation and its receipt is kept.
    fn repeat(&mut self, step: Step) -> Result<(), String> {
        let back = usize::from(step.a) + 1;
        let Some(place) = self.answers.len().checked_sub(back) else { return Ok(()) };
        let (op, command, answer) = self.answers[place].clone();
        let Some((incarnation, _)) = self.clients.get(&op.owner) else { return Ok(()) };
        let current = op.incarnation == *incarnation;
        if !leaves_receipt(&answer) {
            return Ok(());
        }
        let same = |there: &&(OpId, Command, Answer)| {
            there.0.owner == op.owner
                && there.0.incarnation == op.incarnation
                && leaves_receipt(&there.2)
        };
        let decided = self.answers.iter().filter(same).map(|there| there.0.sequence);
        let kept = decided.max().unwrap_or(0) - op.sequence < u64::from(W);
        let again = self.submit(Request::Command(op, command.clone()))?;
        let expected = if !current {
            matches!(again, Err(Rejection::StaleIncarnation { .. } | Rejection::Fenced))
        } else if !kept {
            again == Err(Rejection::ReceiptForgotten)
        } else {
            again == answer
        };
        if expected {
            return Ok(());
        }
        Err(format!("I14: {op} {command:?} answered {answer:?}, later {again:?}"))
    }

    fn submit(&mut self, request: Request) -> Result<Answer, String> {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.engine.submit(Input { ticket, epoch: self.job.epoch, request });
        self.sync()?.ok_or("no answer left".to_string())
    }

    /// Makes everything durable; the observer hears of it in the order in which it was decided.
    fn sync(&mut self) -> Result<Option<Answer>, String> {
        let mut follow_ups = Vec::new();
        while let Some(batch) = self.engine.take_batch() {
            let frame = Frame::decode(&self.job.epoch, batch.bytes()).map_err(|e| e.to_string())?;
            for (position, record) in frame.records() {
                let event = decode_event(record, position).map_err(|e| e.to_string())?;
                if let Event::FollowedUp(follow_up) = event {
                    follow_ups.push(follow_up);
                }
                self.records.push(record.to_vec());
            }
            self.engine.commit(batch);
        }
        let mut answer = None;
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Reply(_, Reply::Command(there)) => answer = Some(there),
                Output::Reply(_, other) => return Err(format!("another reply: {other:?}")),
                Output::Effect(Effect::Delete { checkpoint, objects, .. }) => {
                    self.observer.delete(checkpoint, &objects)?;
                    self.work.push((checkpoint, objects));
                }
            }
        }
        if let (Some(Ok(outcome)), Some((op, command))) = (answer, self.fresh.take()) {
            self.observer.succeeded(op, &command, &outcome)?;
        }
        for follow_up in follow_ups {
            self.observer.followed_up(&follow_up)?;
        }
        Ok(answer)
    }

    fn replayed(&self) -> Result<Catalog, String> {
        let mut catalog = Catalog::new(self.job.clone()).map_err(|bad| bad.to_string())?;
        for (record, position) in self.records.iter().zip(0..).skip(1) {
            follow(&mut catalog, record, position).map_err(|error| error.to_string())?;
        }
        Ok(catalog)
    }

    fn crash(&mut self) -> Result<(), String> {
        let live = self.engine.catalog().snapshot();
        let records = self.records.iter().map(Vec::as_slice);
        self.engine = Engine::recover(Config::default(), records).map_err(|e| e.to_string())?;
        if self.engine.catalog().snapshot() != live {
            return Err("I11: replaying the journal gives another state".into());
        }
        self.sync().map(drop)
    }

    /// Decides a publication and a collection, and crashes before they are durable: nothing of
    /// them may have left, and nothing of them may stay.
    fn lose(&mut self, owner: OwnerId, step: Step) -> Result<(), String> {
        let before = self.engine.catalog().snapshot();
        let Some((incarnation, next)) = self.clients.get(&owner).copied() else { return Ok(()) };
        let publish = Step { verb: Verb::Publish, ..step };
        let publish = self.command(owner, publish).map(|(_, command)| command);
        let commands = publish.into_iter().chain([Command::Collect { limit: 4 }]);
        for (command, sequence) in commands.zip(next..) {
            let op = OpId { owner, incarnation, sequence };
            let request = Request::Command(op, command);
            self.engine.submit(Input { ticket: Ticket(0), epoch: self.job.epoch, request });
        }
        let mut leaked = false;
        while let Some(output) = self.engine.poll_output() {
            // What was refused before anything was decided depends on nothing.
            leaked |= match output {
                Output::Reply(_, Reply::Command(answer)) => leaves_receipt(&answer),
                Output::Reply(..) | Output::Effect(_) => true,
            };
        }
        let records = self.records.iter().map(Vec::as_slice);
        self.engine = Engine::recover(Config::default(), records).map_err(|e| e.to_string())?;
        if leaked || self.engine.catalog().snapshot() != before {
            return Err("I10: something left, or stayed, that was not durable".into());
        }
        self.sync().map(drop)
    }

    fn snapshot(&mut self) -> Result<(), String> {
        let bytes = snapshot::encode(self.engine.catalog(), self.engine.position());
        let (catalog, at) = snapshot::decode(&bytes).map_err(|error| error.to_string())?;
        let engine = Engine::resume(Config::default(), Replay::from_snapshot(catalog, at));
        self.engine = engine.map_err(|error| error.to_string())?;
        self.sync().map(drop)
    }

    /// Everything that is asked after each step.
    fn judge(&self) -> Result<(), String> {
        self.engine.check().map_err(|broken| broken.to_string())?;
        let catalog = self.engine.catalog();
        let gauges = catalog.gauges();
        let sums = (gauges.turns, gauges.pins, gauges.bytes_retained);
        if sums != self.observer.sums() {
            return Err(format!("the observer counts {:?}, not {sums:?}", self.observer.sums()));
        }
        for id in &self.checkpoints {
            let blockers = catalog.blockers(*id).map(|there| there.blockers).unwrap_or_default();
            let retained = blockers.into_iter().filter_map(|blocker| match blocker {
                Blocker::Retained { turn } => Some(turn),
                _ => None,
            });
            let retained = retained.collect();
            let observed = self.observer.turns_on(*id);
            if observed != retained {
                return Err(format!("{id} is retained by {retained:?}, not {observed:?}"));
            }
        }
        facts::judge(catalog)?;
        let bytes = snapshot::encode(catalog, 7);
        let (restored, _) = snapshot::decode(&bytes).map_err(|error| error.to_string())?;
        restored.check().map_err(|broken| format!("restored: {broken}"))?;
        if snapshot::encode(&restored, 7) != bytes {
            return Err("I11: a snapshot's state has another snapshot".into());
        }
        if restored.next_follow_up() != catalog.next_follow_up() {
            return Err("I11: a follow-up is not a function of the state".into());
        }
        Ok(())
    }

    fn idle(&mut self) -> Result<(), String> {
        for _ in 0..10_000 {
            let more = self.engine.follow_up();
            self.sync()?;
            self.judge()?;
            if !more {
                return Ok(());
            }
        }
        Err("the follow-ups never end".into())
    }

    /// What must hold when follow-ups have run; then an operator empties the store (L1, L3).
    pub(crate) fn end(&mut self) -> Result<(), String> {
        self.idle()?;
        if self.observer.is_over() || self.observer.forgets() {
            return Err("I6: over a bound, and no follow-up waits".into());
        }
        if self.replayed()?.snapshot() != self.engine.catalog().snapshot() {
            return Err("I11: replaying the journal gives another state".into());
        }
        let operator = OwnerId::from_u128(OPERATOR);
        self.register(operator)?;
        for (owner, incarnation) in self.observer.holders() {
            self.send(operator, Command::Fence { owner, incarnation }, false)?;
        }
        // A fence of its own newest incarnation would bar the operator.
        self.register(operator)?;
        for checkpoint in self.engine.catalog().checkpoints() {
            self.send(operator, Command::Drop { checkpoint }, false)?;
        }
        for conversation in self.observer.conversations() {
            self.send(operator, Command::Forget { conversation }, false)?;
        }
        self.idle()?;
        loop {
            self.work.clear();
            self.send(operator, Command::Collect { limit: 4 }, false)?;
            if self.work.is_empty() {
                break;
            }
            for (checkpoint, objects) in core::mem::take(&mut self.work) {
                self.report_gone(operator, checkpoint, objects)?;
            }
        }
        let left = self.engine.catalog().checkpoints();
        if self.deletes.strict && !left.is_empty() {
            return Err(format!("L1: Collect leaves {left:?}"));
        }
        for checkpoint in left {
            let shape = &self.observer.shapes[&checkpoint];
            let objects = (0..shape.objects()).filter_map(|place| shape.object_at(place)).collect();
            self.report_gone(operator, checkpoint, objects)?;
        }
        let left = self.engine.catalog().checkpoints();
        if left.is_empty() { Ok(()) } else { Err(format!("L3: nothing ends {left:?}")) }
    }

    fn report_gone(
        &mut self,
        owner: OwnerId,
        checkpoint: CheckpointId,
        objects: Vec<ObjectId>,
    ) -> Result<(), String> {
        let outcomes = objects.into_iter().map(|object| (object, DeleteOutcome::Gone)).collect();
        self.send(owner, Command::Deleted { checkpoint, outcomes }, false)?;
        self.judge()
    }
}

/// Whether this answer was decided, and not given by an earlier check. A client that was registered
/// hears of an unknown owner or incarnation only where its command names one.
fn leaves_receipt(answer: &Answer) -> bool {
    !matches!(
        answer,
        Err(Rejection::Malformed(_)
            | Rejection::WrongEpoch
            | Rejection::OpConflict
            | Rejection::ReceiptForgotten
            | Rejection::Fenced
            | Rejection::StaleIncarnation { .. })
    )
}
