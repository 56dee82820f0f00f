//! The World: a coordinator, processes, a network, a disk and a store, and every choice among what
//! can happen next.
//!
//! It protects nothing and judges nothing. It makes a choice come true with the real engine and the
//! real transfers, and tells what could be seen of it. Whatever it holds is a value: two Worlds in
//! the same state are equal, and the same choices lead from one to the other on every machine.

mod acts;
pub mod choice;
pub mod coordinator;
pub mod job;
mod kind;
mod likeness;
mod nearest;
pub mod network;
mod offers;
pub mod process;
mod rules;
pub mod setup;
mod shape;
mod storing;

use core::hash::{Hash, Hasher};
use std::collections::BTreeMap;
use std::sync::Arc;

use pinfold_core::catalog::{Event, OwnerFacts, Role, Verdict};
use pinfold_core::engine::{Effect, Input, Output, Query, Reply, Request, Ticket};
use pinfold_core::id::{CheckpointId, Generation, Id, Key, ObjectId, OwnerId};
use pinfold_core::outcome::TurnKey;
use pinfold_core::transfer::Ended;

use self::choice::{About, Choice, Coordinate, Passage};
use self::coordinator::{Coordinator, Unreadable};
use self::job::Doing;
use self::network::{Asks, Lane, Says};
use self::process::{Process, life_of};
use self::setup::{Library, Setup};
use crate::seen::Seen;
use crate::shared::Shared;
use crate::store::{Content, Store, StoreKey, Stored, Work};

pub use kind::{Group, Kind};

/// Who waits for a reply of the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Waiting {
    /// A process' message.
    Message(About),
    /// A listing.
    Audit(Vec<StoreKey>),
    /// Something whose answer nobody waits for.
    Nobody,
}

/// The World. See the [module](self).
#[derive(Clone, Debug)]
pub struct World {
    /// Its size and rules.
    pub setup: Arc<Setup>,
    library: Arc<Library>,
    /// The coordinator and its disk.
    pub coordinator: Shared<Coordinator>,
    /// Workers first, then operators.
    pub processes: Vec<Shared<Process>>,
    /// Messages to the coordinator.
    pub requests: Lane<Asks>,
    /// The last requests that arrived: they may come once more.
    arrived: Vec<(About, Asks)>,
    /// Answers to the processes.
    pub answers: Lane<Says>,
    /// The store.
    pub store: Shared<Store>,
    /// Which process and life each incarnation on disk is.
    lives: BTreeMap<u64, (u8, u16)>,
    /// What waits for a reply, in the order in which it was asked.
    waiting: Vec<(Ticket, Waiting)>,
    tickets: u64,
    attempts: u16,
    started: u32,
    works: u16,
    /// How the transfers ended that came to their end in the last step.
    pub ended: Vec<Ended>,
}

impl World {
    /// Everything that can make a difference. The library is a function of the setup.
    fn situation(&self) -> impl Hash + Eq + '_ {
        let outside = (&self.setup, &self.coordinator, &self.processes, &self.store, &self.lives);
        let network = (&self.requests, &self.arrived, &self.answers, &self.waiting);
        (outside, network, self.tickets, (self.attempts, self.started, self.works))
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.situation() == other.situation()
    }
}

impl Eq for World {}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.situation().hash(state);
    }
}

/// The turn of a conversation, by their numbers.
#[must_use]
pub fn turn_key(conversation: u8, turn: u8) -> TurnKey {
    TurnKey {
        conversation: Id::of_name(&format!("C{}", u16::from(conversation) + 1)),
        turn: Id::of_name(&format!("T{}", u16::from(turn) + 1)),
    }
}

impl World {
    /// A World in which nobody has registered yet, and the store holds only what is not ours.
    ///
    /// # Errors
    /// [`Unreadable`] names the field of the setup that no job can have.
    pub fn new(setup: Arc<Setup>) -> Result<Self, Unreadable> {
        let process = |index: u8| {
            let role = if setup.is_operator(index) { Role::Operator } else { Role::Worker };
            Shared::new(Process::new(setup.owner(index), role))
        };
        let foreign = StoreKey::Foreign(0);
        let stored = Stored { content: Content::Of(foreign), bytes: 1 };
        let store = Store { objects: BTreeMap::from([(foreign, stored)]), ..Store::default() };
        Ok(Self {
            library: Library::of(&setup),
            coordinator: Shared::new(Coordinator::new(&setup.genesis())?),
            processes: (0..setup.processes()).map(process).collect(),
            requests: Lane::default(),
            arrived: Vec::new(),
            answers: Lane::default(),
            store: Shared::new(store),
            lives: BTreeMap::new(),
            waiting: Vec::new(),
            tickets: 0,
            attempts: 0,
            started: 0,
            works: 0,
            ended: Vec::new(),
            setup,
        })
    }

    fn owner(&self, process: u8) -> OwnerId {
        self.processes[usize::from(process)].owner
    }

    /// Makes a choice come true, and tells what could be seen of it. False, and nothing happened,
    /// when it is no choice here.
    ///
    /// # Errors
    /// [`Unreadable`] when the core cannot read what it wrote itself.
    pub fn step(&mut self, choice: Choice, seen: &mut Vec<Seen>) -> Result<bool, Unreadable> {
        if !self.allows(choice) {
            return Ok(false);
        }
        self.ended.clear();
        match choice {
            Choice::Register(process) => self.register(process),
            Choice::Die(process) => self.die(process, seen),
            Choice::Save { .. } | Choice::Load { .. } => self.begin(choice, seen),
            Choice::Agree(attempt) => self.agree(attempt, seen),
            Choice::Host(job, call) => self.host_decides(job, call, seen),
            Choice::Publish(job, publishes) => self.publish(job, publishes),
            Choice::Tell(process, act) => self.tell(process, act, seen),
            Choice::Message(about, passage) => self.carry(about, passage, seen),
            Choice::Coordinator(what) => self.coordinate(what, seen)?,
            Choice::Put(id, end) => self.end_put(id, end, seen),
            Choice::Get(id, end) => self.end_get(id, end, seen),
            Choice::Check(id, known) => self.end_check(id, known, seen),
            Choice::Retire(id) => self.retire(id, seen),
            Choice::Land(id) => self.land_late(id, seen),
            Choice::Delete(work, end) => self.delete(work, end, seen),
            Choice::DropWork(number) => self.store.work.retain(|work| work.number != number),
            Choice::Object(generation, object, change) => {
                self.change_object((generation, object), change, seen);
            }
            Choice::RestartStore => self.restart_store(seen),
            Choice::Audit => self.audit(seen),
            Choice::Look(generation) => self.look(generation, seen),
        }
        self.let_out(seen);
        Ok(true)
    }

    /// What becomes of a message.
    fn carry(&mut self, about: About, passage: Passage, seen: &mut Vec<Seen>) {
        match passage {
            Passage::Resend | Passage::SendList => self.resend(about),
            Passage::Deliver => {
                if let Some(asks) = self.requests.take(about) {
                    self.remember(about, &asks);
                    self.submit_message(about, asks, false, seen);
                }
            }
            Passage::Duplicate | Passage::Misaddress => {
                if let Some(asks) = self.requests.peek(about) {
                    self.submit_message(about, asks, passage == Passage::Misaddress, seen);
                }
            }
            Passage::Replay => {
                if let Some((_, asks)) = self.arrived.iter().find(|it| it.0 == about).cloned() {
                    self.requests.send(about, asks);
                }
            }
            Passage::Lose => drop(self.requests.take(about)),
            Passage::Answer => {
                if let Some(says) = self.answers.take(about) {
                    self.hear(about, says, seen);
                }
            }
            Passage::DuplicateAnswer => {
                if let Some(says) = self.answers.peek(about) {
                    self.hear(about, says, seen);
                }
            }
            Passage::LoseAnswer => drop(self.answers.take(about)),
        }
    }

    /// A network may hold on to what has arrived.
    fn remember(&mut self, about: About, asks: &Asks) {
        self.arrived.retain(|it| it.0 != about);
        self.arrived.push((about, asks.clone()));
        if self.arrived.len() > self.setup.remembered as usize {
            self.arrived.remove(0);
        }
    }

    /// What becomes of the coordinator and its disk.
    fn coordinate(&mut self, what: Coordinate, seen: &mut Vec<Seen>) -> Result<(), Unreadable> {
        match what {
            Coordinate::FollowUp => {
                if let Some(engine) = &mut self.coordinator.engine {
                    engine.follow_up();
                    seen.push(Seen::Idled);
                }
            }
            Coordinate::Sync => {
                self.coordinator.write();
                let events = self.coordinator.commit()?;
                self.synced(events, seen);
            }
            Coordinate::Write => self.coordinator.write(),
            Coordinate::Commit => {
                let events = self.coordinator.commit()?;
                self.synced(events, seen);
            }
            Coordinate::FailSync(kept_bytes) => {
                let events = self.coordinator.fail(kept_bytes)?;
                self.synced(events, seen);
                seen.push(Seen::SyncFailed);
            }
            Coordinate::Crash(kept_bytes) => {
                let events = self.coordinator.crash(kept_bytes)?;
                self.synced(events, seen);
                self.waiting.clear();
                seen.push(Seen::Crashed);
            }
            Coordinate::Restart => {
                self.coordinator.restart()?;
                seen.push(Seen::Recovered);
            }
            Coordinate::Compact => self.coordinator.disk.compact()?,
        }
        Ok(())
    }

    fn synced(&mut self, events: Vec<Event>, seen: &mut Vec<Seen>) {
        for event in &events {
            if let Event::Registered { owner, start, incarnation, .. } = event {
                let is_it = |process: &u8| self.owner(*process) == *owner;
                if let Some(process) = (0..self.setup.processes()).find(is_it) {
                    self.lives.insert(incarnation.0, (process, life_of(*start)));
                }
            }
        }
        if !events.is_empty() {
            seen.push(Seen::Synced { events });
        }
    }

    fn submit_message(&mut self, about: About, asks: Asks, astray: bool, seen: &mut Vec<Seen>) {
        let request = match asks {
            Asks::Register(register) => Request::Register(register),
            Asks::Command(op, command) => Request::Command(op, command),
            Asks::List(commands) => Request::List(commands.into()),
        };
        self.submit(Waiting::Message(about), request, astray, seen);
    }

    fn submit(&mut self, waits: Waiting, request: Request, astray: bool, seen: &mut Vec<Seen>) {
        let Some(engine) = &mut self.coordinator.engine else { return };
        let epoch = if astray { Id::of_name("e0") } else { engine.catalog().job().epoch };
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let input = Input { ticket, epoch, request };
        seen.push(Seen::Submitted { ticket, input: input.clone() });
        self.waiting.push((ticket, waits));
        engine.submit(input);
    }

    /// Whatever may leave the coordinator leaves at once.
    fn let_out(&mut self, seen: &mut Vec<Seen>) {
        // Nothing waits in an idle engine, and to look would be a change.
        let is_idle = |it: &Coordinator| it.engine.as_ref().is_none_or(|engine| engine.is_idle());
        while !is_idle(&self.coordinator)
            && let Some(output) = self.coordinator.engine.as_mut().and_then(|it| it.poll_output())
        {
            match output {
                Output::Effect(effect) => {
                    let Effect::Delete { by, checkpoint, .. } = effect;
                    // What a store would be told: the keys, as text.
                    let keys = effect.keys(self.coordinator.disk.catalog.job());
                    let keys = keys.filter_map(|key| key.to_string().parse::<Key>().ok());
                    let objects = keys.map(|key| key.object).collect();
                    seen.push(Seen::HandedOut { effect });
                    self.works = self.works.wrapping_add(1);
                    let (number, outcomes) = (self.works, Vec::new());
                    self.store.work.push(Work { number, by, checkpoint, objects, outcomes });
                }
                Output::Reply(ticket, reply) => {
                    seen.push(Seen::Replied { ticket, reply: reply.clone() });
                    self.replied(ticket, reply);
                }
            }
        }
    }

    fn replied(&mut self, ticket: Ticket, reply: Reply) {
        let Some(place) = self.waiting.iter().position(|(other, _)| *other == ticket) else {
            return;
        };
        match (self.waiting.remove(place).1, reply) {
            (Waiting::Message(about), Reply::Command(answer)) => {
                self.answers.send(about, Says::One(answer));
            }
            (Waiting::Message(about), Reply::List(answers)) => {
                let mut answers = answers.into_iter();
                let two = [answers.next().flatten(), answers.next().flatten()];
                self.answers.send(about, Says::Each(two));
            }
            (Waiting::Message(about), Reply::Poisoned) => self.answers.send(about, Says::Poisoned),
            (Waiting::Audit(keys), Reply::Audit(verdicts)) => {
                for (key, verdict) in keys.into_iter().zip(verdicts) {
                    if let (StoreKey::Private(checkpoint, object), Verdict::Stray) = (key, verdict)
                    {
                        self.store.strays.insert((checkpoint, object));
                    }
                }
            }
            (Waiting::Message(_) | Waiting::Audit(_) | Waiting::Nobody, _) => {}
        }
    }

    /// The store is listed, and the coordinator is asked what each key is to it.
    fn audit(&mut self, seen: &mut Vec<Seen>) {
        let keys: Vec<StoreKey> = self.store.objects.keys().copied().collect();
        let texts = keys.iter().map(|key| self.key_text(*key)).collect();
        seen.push(Seen::Listed { ticket: Ticket(self.tickets + 1), keys: keys.clone() });
        self.submit(Waiting::Audit(keys), Request::Query(Query::Audit(texts)), false, seen);
    }

    /// A key as a listing shows it.
    fn key_text(&self, key: StoreKey) -> String {
        let job = self.coordinator.disk.catalog.job();
        match key {
            StoreKey::Private(checkpoint, object) => {
                let (namespace, epoch) = (job.namespace.clone(), job.epoch);
                Key { namespace, epoch, checkpoint, object }.to_string()
            }
            StoreKey::Shared(name) => name.key(&job.namespace, &job.epoch),
            StoreKey::Foreign(number) => format!("elsewhere/{number}"),
        }
    }

    fn look(&mut self, generation: Generation, seen: &mut Vec<Seen>) {
        let query = match self.checkpoint(generation) {
            Some(checkpoint) => Query::Blockers(checkpoint),
            None => Query::Gauges,
        };
        self.submit(Waiting::Nobody, Request::Query(query), false, seen);
    }

    /// The coordinator does not listen to a process any more: another life of it is current, or
    /// this one is fenced, or it is retired.
    #[must_use]
    pub fn is_barred(&self, index: u8) -> bool {
        let process = &self.processes[usize::from(index)];
        let hears = |owner: &OwnerFacts| {
            owner.id == process.owner
                && Some(owner.incarnation) == process.incarnation
                && !owner.fenced
        };
        let owners = self.coordinator.disk.catalog.owners();
        process.incarnation.is_some() && !owners.iter().any(hears)
    }

    /// The highest attempt that anybody began.
    #[must_use]
    pub const fn attempts(&self) -> u16 {
        self.attempts
    }

    /// Attempts of which some shard has no rank: attempt, position, geometry and those shards.
    #[must_use]
    pub fn open_attempts(&self) -> Vec<(u16, u8, u8, u8)> {
        let mut found: Vec<(u16, u8, u8, u8)> = Vec::new();
        let all = (1_u8 << self.setup.shards) - 1;
        for job in self.processes.iter().flat_map(|process| &process.jobs) {
            let Doing::Saves { attempt, shards, endpoint, geometry } = job.doing else { continue };
            match found.iter_mut().find(|row| row.0 == attempt) {
                Some(row) => row.3 &= !shards,
                None => found.push((attempt, endpoint, geometry, all & !shards)),
            }
        }
        found.retain(|row| row.3 > 0);
        found
    }

    /// What a request asks that is under way, or that the network still holds on to.
    #[must_use]
    pub fn request(&self, about: About) -> Option<&Asks> {
        let sent = self.requests.sent.iter().find(|it| it.about == about).map(|it| &it.content);
        sent.or_else(|| self.arrived.iter().find(|it| it.0 == about).map(|it| &it.1))
    }

    /// How many inputs of the coordinator have no reply yet.
    #[must_use]
    pub fn unreplied(&self) -> usize {
        self.waiting.len()
    }

    /// The private objects that the store holds.
    pub fn private_objects(&self) -> impl Iterator<Item = (CheckpointId, ObjectId)> + '_ {
        self.store.objects.keys().filter_map(|key| match key {
            StoreKey::Private(checkpoint, object) => Some((*checkpoint, *object)),
            StoreKey::Shared(_) | StoreKey::Foreign(_) => None,
        })
    }
}
