//! Real engines, honest workers and every fault of the coordinator: the oracle never cries wolf.
//!
//! A worker here moves bytes at once when it hears of its pin, so that every proof is a true one.
//! What is random is who asks what, what is asked again, what is synced, and when it crashes.

mod choices;

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::catalog::{PROTOCOL_VERSION, Register};
use pinfold_core::engine::{Config, Engine, Output};
use pinfold_core::journal::record::Frame;
use pinfold_core::manifest::ObjectName;
use pinfold_core::replay::decode_event;

use super::*;

/// A random job.
struct Run {
    random: u64,
    oracle: Oracle,
    engine: Engine,
    records: Vec<Vec<u8>>,
    /// How many of the records were told as synced.
    told: usize,
    tickets: u64,
    moves: u32,
    open: BTreeMap<Ticket, Request>,
    clients: BTreeMap<OwnerId, (Incarnation, u64)>,
    sent: Vec<(OpId, Command)>,
    /// Pins with the shards that they save whole.
    pins: Vec<(PinId, Vec<ShardIndex>)>,
    checkpoints: Vec<CheckpointId>,
    work: Vec<(CheckpointId, Vec<ObjectId>)>,
    stored: BTreeSet<StoreKey>,
    /// Puts that nobody waits for any more, and that the store may still carry out.
    late: Vec<(MoveId, StoreKey)>,
    listed: BTreeMap<Ticket, Vec<StoreKey>>,
    /// How often something was granted, to know that the run was worth it.
    granted: BTreeMap<&'static str, u32>,
}

fn two_shards() -> Shape {
    let shard = ShardShape { objects: 2, bytes: 60 };
    Shape::new(&[shard, ShardShape { objects: 1, bytes: 40 }]).unwrap()
}

impl Run {
    fn new(seed: u64) -> Self {
        let policy = Policy { turns: 2, ..Policy::default() };
        let job = Genesis { policy, ..genesis() };
        let mut run = Self {
            random: seed,
            oracle: Oracle::new(&job),
            engine: Engine::create(Config::default(), job).unwrap(),
            records: Vec::new(),
            told: 0,
            tickets: 0,
            moves: 0,
            open: BTreeMap::new(),
            clients: BTreeMap::new(),
            sent: Vec::new(),
            pins: Vec::new(),
            checkpoints: Vec::new(),
            work: Vec::new(),
            stored: BTreeSet::new(),
            late: Vec::new(),
            listed: BTreeMap::new(),
            granted: BTreeMap::new(),
        };
        for owner in 1..=3 {
            run.register(owner);
            run.sync();
        }
        run
    }

    fn see(&mut self, seen: &Seen) {
        if let Err(violation) = self.oracle.see(seen) {
            panic!("{violation}\nat {seen:?}");
        }
    }

    fn submit_to(&mut self, epoch: Epoch, request: Request) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.open.insert(ticket, request.clone());
        let input = Input { ticket, epoch, request };
        self.see(&Seen::Submitted { ticket, input: input.clone() });
        self.engine.submit(input);
        ticket
    }

    fn submit(&mut self, request: Request) -> Ticket {
        self.submit_to(epoch(), request)
    }

    fn register(&mut self, owner: u128) {
        let role = if owner == 1 { Role::Operator } else { Role::Worker };
        let owner = OwnerId::from_u128(owner);
        let after = self.clients.get(&owner).map_or(Incarnation(0), |client| client.0);
        // Mostly a process that begins anew; sometimes one that asks again.
        let number = if self.below(4) == 0 { self.below(4) } else { self.tickets + 10 };
        let start = StartId::from_u128(1 + u128::from(number));
        let (version, expected_policy) = (PROTOCOL_VERSION, None);
        let register = Register { owner, role, after, start, version, expected_policy };
        self.submit(Request::Register(register));
    }

    fn send(&mut self, owner: OwnerId, command: Command) {
        let Some(client) = self.clients.get_mut(&owner) else { return };
        let op = OpId { owner, incarnation: client.0, sequence: client.1 };
        client.1 += 1;
        self.sent.push((op, command.clone()));
        self.submit(Request::Command(op, command));
    }

    /// Puts the next batch on the disk, and tells of it or not yet.
    fn write(&mut self, batch: &pinfold_core::engine::Batch) {
        let frame = Frame::decode(&epoch(), batch.bytes()).unwrap();
        self.records.extend(frame.records().map(|(_, record)| record.to_vec()));
    }

    fn tell(&mut self) {
        let events = self.records[self.told..].iter().zip(self.told as u64..);
        let events = events.map(|(record, position)| decode_event(record, position).unwrap());
        let events: Vec<_> = events.collect();
        self.told = self.records.len();
        self.see(&Seen::Synced { events });
    }

    fn sync(&mut self) {
        while let Some(batch) = self.engine.take_batch() {
            self.write(&batch);
            self.tell();
            self.engine.commit(batch);
        }
        self.let_out();
    }

    fn crash(&mut self) {
        if let Some(batch) = self.engine.take_batch() {
            if self.below(2) == 0 {
                self.write(&batch);
            }
            if self.below(2) == 0 {
                self.engine.fail(batch);
                self.let_out();
            }
        }
        self.see(&Seen::Crashed);
        self.open.clear();
        self.listed.clear();
        if self.told < self.records.len() && self.below(2) == 0 {
            self.tell();
        }
        let records = self.records.iter().map(Vec::as_slice);
        self.engine = Engine::recover(Config::default(), records).unwrap();
        self.see(&Seen::Recovered);
    }

    fn let_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Effect(effect) => {
                    let Effect::Delete { checkpoint, objects, .. } = effect.clone();
                    self.work.push((checkpoint, objects));
                    self.see(&Seen::HandedOut { effect });
                }
                Output::Reply(ticket, reply) => {
                    self.see(&Seen::Replied { ticket, reply: reply.clone() });
                    let Some(request) = self.open.remove(&ticket) else { continue };
                    self.hear(ticket, &request, &reply);
                }
            }
        }
    }

    fn hear(&mut self, ticket: Ticket, request: &Request, reply: &Reply) {
        match (request, reply) {
            (Request::Register(register), Reply::Command(answer)) => match answer {
                Ok(Outcome::Registered { incarnation }) => {
                    let client = self.clients.entry(register.owner).or_insert((*incarnation, 1));
                    if client.0 < *incarnation {
                        *client = (*incarnation, 1);
                    }
                }
                Err(Rejection::StaleIncarnation { current }) => {
                    self.clients.insert(register.owner, (*current, 1000));
                }
                Ok(_) | Err(_) => {}
            },
            (Request::Command(op, command), Reply::Command(Ok(outcome))) => {
                self.achieved(*op, command, outcome);
            }
            (Request::List(commands), Reply::List(answers)) => {
                for ((op, command), answer) in commands.iter().zip(answers) {
                    if let Some(Ok(outcome)) = answer {
                        self.achieved(*op, command, outcome);
                    }
                }
            }
            (_, Reply::Audit(verdicts)) => {
                for (key, verdict) in self.listed.remove(&ticket).unwrap().into_iter().zip(verdicts)
                {
                    if *verdict == Verdict::Stray {
                        self.stored.remove(&key);
                        self.count("stray");
                        self.see(&Seen::Deleted { key, cause: Cause::Stray });
                    }
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.granted.entry(what).or_default() += 1;
    }

    fn achieved(&mut self, op: OpId, command: &Command, outcome: &Outcome) {
        match outcome {
            Outcome::Prepared { pin, checkpoint } => {
                let Command::Prepare(prepare) = command else { panic!("{command:?}") };
                if !self.pins.iter().any(|(there, _)| there == pin) {
                    self.count("prepared");
                    self.checkpoints.push(*checkpoint);
                    self.save(*pin, *checkpoint, prepare);
                }
            }
            Outcome::AlreadyPublished { pin, .. } => {
                self.count("already published");
                self.pins.push((*pin, Vec::new()));
            }
            Outcome::Pinned(answers) => {
                for (answer, place) in answers.iter().zip(0..) {
                    self.count("pinned");
                    self.load(PinId { op, place }, answer.checkpoint);
                }
            }
            Outcome::Published { .. } => self.count("published"),
            Outcome::Retired => {
                if let Command::Retire { owner } = command {
                    self.clients.remove(owner);
                }
            }
            Outcome::Registered { .. }
            | Outcome::Settled { .. }
            | Outcome::Released
            | Outcome::Lost
            | Outcome::Doubted
            | Outcome::Collected { .. }
            | Outcome::Deleted { .. }
            | Outcome::Configured
            | Outcome::Forgotten
            | Outcome::Dropped
            | Outcome::Fenced { .. } => {}
        }
    }

    fn move_object(&mut self, way: Way, pin: PinId, checkpoint: CheckpointId, object: ObjectId) {
        self.moves += 1;
        let id = MoveId(self.moves.into());
        let key = StoreKey::Private(checkpoint, object);
        self.see(&Seen::MoveBegan { id, way, key, checkpoint, pin });
        if way == Way::Put {
            self.stored.insert(key);
            self.see(&Seen::Landed { id, key, content: Content::Of(key) });
            self.see(&Seen::PutSucceeded { id });
            self.see(&Seen::Confirmed { pin, key });
        }
        self.see(&Seen::Retired { id });
    }

    /// A put whose answer is lost: its memory is done with, and what it writes may land later.
    fn fail_put(&mut self, pin: PinId, checkpoint: CheckpointId, object: ObjectId) {
        self.moves += 1;
        let (id, key) = (MoveId(self.moves.into()), StoreKey::Private(checkpoint, object));
        self.see(&Seen::MoveBegan { id, way: Way::Put, key, checkpoint, pin });
        self.see(&Seen::Retired { id });
        self.late.push((id, key));
    }

    fn land(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let (id, key) = self.late.remove(0);
        self.stored.insert(key);
        self.see(&Seen::Landed { id, key, content: Content::Of(key) });
    }

    fn save(&mut self, pin: PinId, checkpoint: CheckpointId, prepare: &Prepare) {
        let mut whole = Vec::new();
        for shard in &prepare.shards {
            let objects = prepare.shape.shards()[usize::from(shard.0)].objects;
            if self.below(8) == 0 {
                let first = ObjectId { shard: *shard, index: objects - 1 };
                self.fail_put(pin, checkpoint, first);
                continue;
            }
            for index in (0..objects).rev() {
                let object = ObjectId { shard: *shard, index };
                self.move_object(Way::Put, pin, checkpoint, object);
            }
            self.see(&Seen::SourceReused { pin, shard: *shard });
            whole.push(*shard);
        }
        self.pins.push((pin, whole));
    }

    fn load(&mut self, pin: PinId, checkpoint: CheckpointId) {
        self.pins.push((pin, Vec::new()));
        let objects = [(0, 0), (0, 1), (1, 0)];
        let objects = objects.map(|(shard, index)| ObjectId { shard: ShardIndex(shard), index });
        for object in objects {
            self.move_object(Way::Get, pin, checkpoint, object);
        }
        let held = |object| {
            let key = StoreKey::Private(checkpoint, object);
            (ObjectName::Private(object), Some(Content::Of(key)))
        };
        // A repeated answer may come after its pin has ended: nobody adopts then.
        if self.oracle.facts.pins.contains_key(&pin) {
            let memory = objects.map(held).to_vec();
            self.see(&Seen::Adopted { pin, checkpoint, digest: None, memory });
        }
        self.see(&Seen::DestinationReused { pin });
    }

    /// The operator has an incarnation that is not fenced.
    fn begin_anew(&mut self) {
        for _ in 0..20 {
            self.register(1);
            self.sync();
        }
    }

    /// Collects and audits until nothing changes.
    fn rest(&mut self) {
        for _ in 0..200 {
            while self.engine.follow_up() {}
            self.send(operator().0, Command::Collect { limit: 64 });
            self.sync();
            if self.work.is_empty() {
                break;
            }
            while !self.work.is_empty() {
                self.delete(operator().0);
                self.sync();
            }
        }
        self.audit();
        self.sync();
        self.oracle.end().unwrap();
    }

    /// The faults stop: what nothing holds goes, and an operator empties the store.
    fn end(&mut self) {
        while !self.late.is_empty() {
            self.land();
        }
        self.crash();
        self.sync();
        while self.engine.follow_up() {}
        self.sync();
        let lives = self.engine.catalog().owners();
        let operator_life = lives.iter().find(|owner| owner.id == operator().0).unwrap();
        self.clients.insert(operator().0, (operator_life.incarnation, 1000));
        self.begin_anew();
        self.rest();
        let pins: BTreeSet<_> = self.engine.catalog().pins().iter().map(|it| it.id.op).collect();
        for OpId { owner, incarnation, .. } in pins {
            self.send(operator().0, Command::Fence { owner, incarnation });
            self.sync();
        }
        self.begin_anew();
        for checkpoint in self.engine.catalog().checkpoints() {
            self.send(operator().0, Command::Drop { checkpoint });
            self.sync();
        }
        for conversation in (1..=3).map(ConversationId::from_u128) {
            self.send(operator().0, Command::Forget { conversation });
            self.sync();
        }
        self.rest();
        assert!(self.oracle.is_empty_of_ours());
    }
}

#[test]
fn a_right_engine_breaks_no_promise() {
    let mut granted: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..60 {
        let mut run = Run::new(seed * 1_000_003);
        for _ in 0..600 {
            run.step();
        }
        run.end();
        for (what, times) in run.granted {
            *granted.entry(what).or_default() += times;
        }
    }
    for what in ["prepared", "already published", "pinned", "published", "stray"] {
        assert!(granted.get(what).is_some_and(|times| *times > 10), "{what}: {granted:?}");
    }
}
