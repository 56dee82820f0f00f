//! Which choices there are: what must be true of a World for a choice to be one.

use std::collections::BTreeSet;

use pinfold_core::catalog::{PinFacts, State};
use pinfold_core::id::{CheckpointId, Generation, ObjectId};

use super::World;
use super::choice::{
    About, Act, Choice, Coordinate, DeleteEnd, GetEnd, HostCall, JobId, Lands, Mistake,
    ObjectChange, Passage, PinName, Publishes, PutEnd,
};
use super::job::{Doing, Job, Stands};
use super::setup::GEOMETRIES;
use crate::seen::{MoveId, Way};
use crate::store::{Move, StoreKey};

/// No process lives oftener than this.
const MOST_LIVES: u16 = 1000;

impl World {
    /// True when this can happen now.
    #[must_use]
    pub fn allows(&self, choice: Choice) -> bool {
        match choice {
            Choice::Register(process) => {
                self.is_process(process)
                    && self.processes[usize::from(process)].incarnation.is_none()
            }
            Choice::Die(process) => {
                self.is_process(process) && self.processes[usize::from(process)].life < MOST_LIVES
            }
            Choice::Save { .. } | Choice::Load { .. } => self.allows_transfer(choice),
            Choice::Agree(attempt) => self.agreement(attempt).is_some(),
            Choice::Host(id, call) => self.job(id).is_some_and(|job| {
                let agrees = matches!(job.stands, Stands::Agree(_));
                match call {
                    HostCall::GiveUp => agrees,
                    HostCall::Concur => agrees && job.doing == Doing::Loads,
                    HostCall::Proceed => job.waits,
                    HostCall::Cancel => true,
                }
            }),
            Choice::Publish(job, publishes) => self.allows_publication(job, publishes),
            Choice::Tell(process, act) => {
                self.is_process(process)
                    && self.processes[usize::from(process)].incarnation.is_some()
                    && self.processes[usize::from(process)].queued.is_empty()
                    && self.allows_act(process, act)
            }
            Choice::Message(about, passage) => self.allows_passage(about, passage),
            Choice::Coordinator(what) => self.allows_coordinator(what),
            Choice::Put(id, end) => self.is_open(id, Way::Put) && self.allows_put(id, end),
            Choice::Get(id, end) => self.is_open(id, Way::Get) && self.allows_get(id, end),
            Choice::Check(id, _) => self.store.checks.iter().any(|check| check.id == id),
            Choice::Retire(id) => self.moving(id).is_some_and(|it| it.answered && it.exposed),
            Choice::Land(id) => self.moving(id).is_some_and(|it| it.lands),
            Choice::Delete(number, end) => self.allows_delete(number, end),
            Choice::DropWork(number) => self.store.work.iter().any(|work| work.number == number),
            Choice::Object(generation, object, change) => {
                self.allows_change((generation, object), change)
            }
            Choice::RestartStore => {
                !self.store.moves.is_empty() || !self.store.late_deletes.is_empty()
            }
            Choice::Audit | Choice::Look(_) => self.coordinator.engine.is_some(),
        }
    }

    fn is_process(&self, process: u8) -> bool {
        process < self.setup.processes()
    }

    fn job(&self, id: JobId) -> Option<&Job> {
        self.processes.get(usize::from(id.process))?.job(id.number)
    }

    fn allows_transfer(&self, choice: Choice) -> bool {
        let (Choice::Save { process, .. } | Choice::Load { process, .. }) = choice else {
            return false;
        };
        let Some(it) = self.processes.get(usize::from(process)) else { return false };
        let is_ready = it.incarnation.is_some()
            && it.jobs.len() < usize::from(self.setup.transfers)
            && self.started < self.setup.starts
            && !self.setup.is_operator(process);
        let fits = match choice {
            Choice::Save { endpoint, geometry, attempt, shards, publishes, .. } => {
                let all = (1_u8 << self.setup.shards) - 1;
                let another_rank = |job: &Job| match job.doing {
                    Doing::Saves { attempt: other, .. } => other == attempt,
                    Doing::Loads => false,
                };
                endpoint < self.setup.endpoints
                    && usize::from(geometry) < GEOMETRIES
                    && (1..=self.attempts + 1).contains(&attempt)
                    && shards > 0
                    && shards <= all
                    && self.is_publication(publishes)
                    && !it.jobs.iter().any(another_rank)
            }
            Choice::Load { endpoints, limit, .. } => {
                endpoints > 0
                    && u16::from(endpoints) < 1 << self.setup.endpoints
                    && (1..=8).contains(&limit)
            }
            _ => false,
        };
        is_ready && fits
    }

    fn is_publication(&self, publishes: Publishes) -> bool {
        match publishes {
            Publishes::Nothing | Publishes::Unscoped => true,
            Publishes::Turn(conversation, turn) => {
                conversation < self.setup.conversations && turn < self.setup.turns
            }
        }
    }

    fn allows_publication(&self, job: JobId, publishes: Publishes) -> bool {
        let process = self.processes.get(usize::from(job.process));
        let found = process.and_then(|process| process.job(job.number));
        found.is_some_and(|job| job.pin().is_some())
            && process.is_some_and(|process| process.queued.is_empty())
            && publishes != Publishes::Nothing
            && self.is_publication(publishes)
    }

    fn allows_act(&self, process: u8, act: Act) -> bool {
        let is_operator = self.setup.is_operator(process);
        let has_pin = |name: PinName| {
            self.is_process(name.process)
                && self.coordinator.disk.catalog.has_pin(self.pin_id(name))
        };
        match act {
            Act::Doubt(pin, _) => has_pin(pin),
            Act::Collect(limit) => limit > 0,
            Act::Report(number) => {
                let work = self.store.work.iter().find(|work| work.number == number);
                work.is_some_and(|work| !work.outcomes.is_empty())
            }
            // What a worker says of its own pins, its transfers say.
            Act::Settle(pin, _) | Act::Release(pin) => {
                has_pin(pin) && (is_operator || pin.process != process)
            }
            Act::Configure(which) => which < 2,
            Act::Forget(conversation) => conversation < self.setup.conversations,
            Act::Drop(generation) => self.checkpoint(generation).is_some(),
            Act::Lost(generation) => is_operator && self.checkpoint(generation).is_some(),
            Act::Fence(other, incarnation) => {
                self.lives.get(&incarnation).is_some_and(|life| life.0 == other)
            }
            Act::Retire(other) => self.is_process(other),
            Act::Malformed => true,
            Act::Mistake(mistake) => self.allows_mistake(process, mistake),
            Act::Conflict => {
                self.coordinator.engine.is_some() && self.processes[usize::from(process)].next > 1
            }
        }
    }

    fn allows_mistake(&self, process: u8, mistake: Mistake) -> bool {
        let is_operator = self.setup.is_operator(process);
        let has_pin = |name: PinName| {
            self.is_process(name.process)
                && self.coordinator.disk.catalog.has_pin(self.pin_id(name))
        };
        match mistake {
            Mistake::Publish
            | Mistake::Settle
            | Mistake::Release
            | Mistake::Doubt
            | Mistake::DeletedNothing => true,
            Mistake::Foreign(pin) => has_pin(pin) && pin.process != process,
            Mistake::Shard(pin) | Mistake::Active(pin) => {
                has_pin(pin) && (is_operator || pin.process == process)
            }
            Mistake::Lost(generation) | Mistake::DeletedOther(generation) => {
                self.checkpoint(generation).is_some()
            }
            Mistake::NotHeld(generation) => {
                let Some(engine) = &self.coordinator.engine else { return false };
                let id = self.checkpoint(generation);
                let of_it = |pin: &PinFacts| {
                    Some(pin.checkpoint) == id
                        && self.pin_name(pin.id).is_some_and(|name| name.process == process)
                };
                id.is_some() && !is_operator && !engine.catalog().pins().iter().any(of_it)
            }
            Mistake::Deleted(generation) => self
                .checkpoint(generation)
                .and_then(|id| self.coordinator.disk.catalog.checkpoint(id))
                .is_some_and(|facts| facts.state != State::Collecting),
            Mistake::Fence(other) => is_operator && self.is_process(other),
            Mistake::Incarnation => self.coordinator.engine.is_some(),
        }
    }

    fn allows_passage(&self, about: About, passage: Passage) -> bool {
        match passage {
            Passage::Resend => self.is_unanswered(about) && !self.requests.has(about),
            Passage::SendList => matches!(about, About::List { .. }) && self.is_unanswered(about),
            Passage::Deliver | Passage::Duplicate | Passage::Misaddress => {
                self.coordinator.engine.is_some() && self.requests.has(about)
            }
            Passage::Replay => {
                self.arrived.iter().any(|it| it.0 == about) && !self.requests.has(about)
            }
            Passage::Lose => self.requests.has(about),
            Passage::Answer | Passage::DuplicateAnswer | Passage::LoseAnswer => {
                self.answers.has(about)
            }
        }
    }

    fn is_unanswered(&self, about: About) -> bool {
        let Some(process) = self.processes.get(usize::from(about.process())) else { return false };
        let waits = |sequence| process.asked.iter().any(|asked| asked.op.sequence == sequence);
        process.life == about.life()
            && match about {
                About::Register { .. } => false,
                About::Command { sequence, .. } => waits(sequence),
                About::List { sequences: [first, second], .. } => {
                    first < second && waits(first) && waits(second)
                }
            }
    }

    fn allows_coordinator(&self, what: Coordinate) -> bool {
        let it = &self.coordinator;
        match what {
            Coordinate::FollowUp => it.engine.as_ref().is_some_and(|engine| {
                !engine.is_poisoned() && engine.catalog().next_follow_up().is_some()
            }),
            Coordinate::Sync | Coordinate::Write => it.is_dirty(),
            Coordinate::Commit | Coordinate::FailSync(_) => {
                it.batch.is_some() && it.engine.is_some()
            }
            Coordinate::Crash(kept_bytes) => {
                let most = it.batch.as_ref().map_or(0, |batch| batch.bytes().len());
                it.engine.is_some() && kept_bytes as usize <= most
            }
            Coordinate::Restart => it.engine.is_none(),
            Coordinate::Compact => true,
        }
    }

    fn moving(&self, id: MoveId) -> Option<Move> {
        self.store.place_of(id).map(|place| self.store.moves[place])
    }

    /// A move of this way without an answer.
    fn is_open(&self, id: MoveId, way: Way) -> bool {
        self.moving(id).is_some_and(|it| it.way == way && !it.answered)
    }

    fn allows_change(&self, at: (Generation, ObjectId), change: ObjectChange) -> bool {
        let store = &self.store;
        let is_in = |all: &BTreeSet<(CheckpointId, ObjectId)>| {
            all.iter().any(|(id, object)| (id.generation, *object) == at)
        };
        let key = || self.key_at(at);
        match change {
            ObjectChange::LandDelete => is_in(&store.late_deletes),
            ObjectChange::Sweep => is_in(&store.strays),
            ObjectChange::Vanish | ObjectChange::Damage => {
                key().is_some_and(|key| store.objects.contains_key(&key))
            }
            ObjectChange::Return => key().is_some_and(|key| store.vanished.contains_key(&key)),
        }
    }

    /// A store may lie about the bytes of a private object, which a load will find; a page has no
    /// trailer.
    fn allows_put(&self, id: MoveId, end: PutEnd) -> bool {
        let found = self.store.place_of(id).map(|place| self.store.moves[place].key);
        let is_private = matches!(found, Some(StoreKey::Private(..)));
        match end {
            PutEnd::OkGarbage => is_private,
            PutEnd::Ok
            | PutEnd::OkUnretired
            | PutEnd::OkAbsent
            | PutEnd::OkShort
            | PutEnd::NotStarted
            | PutEnd::Failed { .. } => true,
        }
    }

    /// Only what has a trailer can be verified.
    fn allows_get(&self, id: MoveId, end: GetEnd) -> bool {
        let is_private = self.moving(id).is_some_and(|it| matches!(it.key, StoreKey::Private(..)));
        end != GetEnd::Unverified || is_private
    }

    /// A leased object is not deleted.
    fn allows_delete(&self, number: u16, end: DeleteEnd) -> bool {
        let work = self.store.work.iter().find(|work| work.number == number);
        let next = work.and_then(|work| {
            let object = work.objects.get(work.outcomes.len())?;
            Some(StoreKey::Private(work.checkpoint, *object))
        });
        let Some(key) = next else { return false };
        match end {
            DeleteEnd::Gone | DeleteEnd::Unknown(Lands::Now | Lands::Later) => {
                !self.store.is_leased(key)
            }
            DeleteEnd::Refused | DeleteEnd::Probed | DeleteEnd::Unknown(Lands::Never) => true,
        }
    }
}
