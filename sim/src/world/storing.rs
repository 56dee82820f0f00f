//! Ends of puts, gets, checks and deletes; and what the store does by itself.

use pinfold_core::id::{CheckpointId, Generation, ObjectId};
use pinfold_core::manifest::ObjectName;
use pinfold_core::outcome::DeleteOutcome;
use pinfold_core::transfer::{CheckAnswer, Completion, GetAnswer, PutAnswer};

use super::World;
use super::choice::{DeleteEnd, GetEnd, Lands, ObjectChange, PutEnd};
use super::job::Doing;
use crate::seen::{Cause, MoveId, Seen, Way};
use crate::store::{Content, Move, StoreKey, Stored};

impl World {
    /// A put comes to its end.
    pub(super) fn end_put(&mut self, id: MoveId, end: PutEnd, seen: &mut Vec<Seen>) {
        let (answer, retired) = match end {
            PutEnd::Ok | PutEnd::OkAbsent | PutEnd::OkGarbage | PutEnd::OkShort => {
                (PutAnswer::Stored, true)
            }
            PutEnd::OkUnretired => (PutAnswer::Stored, false),
            PutEnd::NotStarted => (PutAnswer::NotStarted, true),
            PutEnd::Failed { retired, .. } => (PutAnswer::Failed, retired),
        };
        match end {
            PutEnd::Ok | PutEnd::OkUnretired | PutEnd::Failed { lands: Lands::Now, .. } => {
                self.land(id, None, seen);
            }
            PutEnd::OkGarbage => self.land(id, Some(Content::Garbage), seen),
            PutEnd::OkShort => {
                self.land(id, Some(Content::Garbage), seen);
                self.shorten(id);
            }
            PutEnd::Failed { lands: Lands::Later, .. } => {
                if let Some(place) = self.store.place_of(id) {
                    self.store.moves[place].lands = true;
                }
            }
            PutEnd::OkAbsent | PutEnd::NotStarted | PutEnd::Failed { .. } => {}
        }
        if answer == PutAnswer::Stored {
            seen.push(Seen::PutSucceeded { id });
        }
        self.answer_move(id, retired, Completion::Put { answer, retired }, seen);
    }

    /// A get comes to its end: what the store holds now is what arrives.
    pub(super) fn end_get(&mut self, id: MoveId, end: GetEnd, seen: &mut Vec<Seen>) {
        let Some(place) = self.store.place_of(id) else { return };
        let it = self.store.moves[place];
        let (answer, retired) = match end {
            GetEnd::Answered => (self.bring(&it), true),
            GetEnd::AnsweredUnretired => (self.bring(&it), false),
            GetEnd::Unverified => {
                self.bring(&it);
                (GetAnswer::Arrived { bytes: it.bytes }, true)
            }
            GetEnd::Failed { retired } => (GetAnswer::Failed, retired),
        };
        let is_wrong = matches!(
            answer,
            GetAnswer::Absent | GetAnswer::WrongSize { .. } | GetAnswer::WrongBytes
        );
        if is_wrong {
            seen.push(Seen::Missed { pin: it.pin, key: it.key });
        }
        self.answer_move(id, retired, Completion::Got { answer, retired }, seen);
    }

    /// Brings an object into the memory of the transfer that waits for it, and verifies it.
    fn bring(&mut self, it: &Move) -> GetAnswer {
        let Some(Stored { content, bytes }) = self.store.objects.get(&it.key).copied() else {
            return GetAnswer::Absent;
        };
        if bytes != it.bytes {
            return GetAnswer::WrongSize { bytes };
        }
        let jobs = &mut self.processes[usize::from(it.job.process)].jobs;
        if let Some(job) = jobs.iter_mut().find(|job| job.id == it.job) {
            job.memory.insert(it.object, content);
        }
        match it.object {
            ObjectName::Shared(_) => GetAnswer::Arrived { bytes: it.bytes },
            ObjectName::Private(_) if content == Content::Of(it.key) => {
                GetAnswer::Verified { bytes: it.bytes }
            }
            ObjectName::Private(_) => GetAnswer::WrongBytes,
        }
    }

    fn answer_move(
        &mut self,
        id: MoveId,
        retired: bool,
        completion: Completion,
        seen: &mut Vec<Seen>,
    ) {
        let Some(place) = self.store.place_of(id) else { return };
        let it = &mut self.store.moves[place];
        it.answered = true;
        it.exposed &= !retired;
        let (job, object) = (it.job, it.object);
        if retired {
            seen.push(Seen::Retired { id });
        }
        self.store.settle(place);
        self.job_completed(job, object, completion, seen);
    }

    /// The memory of a move is done with.
    pub(super) fn retire(&mut self, id: MoveId, seen: &mut Vec<Seen>) {
        let Some(place) = self.store.place_of(id) else { return };
        let it = &mut self.store.moves[place];
        it.exposed = false;
        let (job, object) = (it.job, it.object);
        seen.push(Seen::Retired { id });
        self.store.settle(place);
        self.job_completed(job, object, Completion::Retired, seen);
    }

    fn retire_if_exposed(&mut self, id: MoveId, seen: &mut Vec<Seen>) {
        let Some(place) = self.store.place_of(id) else { return };
        if self.store.moves[place].exposed {
            self.retire(id, seen);
        } else {
            self.store.settle(place);
        }
    }

    /// Bytes that the store still held land.
    pub(super) fn land_late(&mut self, id: MoveId, seen: &mut Vec<Seen>) {
        self.land(id, None, seen);
        if let Some(place) = self.store.place_of(id) {
            self.store.moves[place].lands = false;
            self.store.settle(place);
        }
    }

    /// A put's bytes are stored: the right ones, unless somebody else has the memory by now.
    fn land(&mut self, id: MoveId, content: Option<Content>, seen: &mut Vec<Seen>) {
        let Some(place) = self.store.place_of(id) else { return };
        let it = self.store.moves[place];
        let content = content.unwrap_or_else(|| self.source_of(&it));
        self.store.objects.insert(it.key, Stored { content, bytes: it.bytes });
        seen.push(Seen::Landed { id, key: it.key, content });
    }

    /// The stored value of a put lacks its last byte.
    fn shorten(&mut self, id: MoveId) {
        let key = self.store.place_of(id).map(|place| self.store.moves[place].key);
        if let Some(stored) = key.and_then(|key| self.store.objects.get_mut(&key)) {
            stored.bytes -= 1;
        }
    }

    /// What a put reads: until its memory is done with, whatever is in it now.
    fn source_of(&self, it: &Move) -> Content {
        let process = &self.processes[usize::from(it.job.process)];
        let reused = process.job(it.job.number).is_some_and(|job| match (job.doing, it.object) {
            (Doing::Saves { .. }, ObjectName::Private(object)) => {
                job.reused >> object.shard.0 & 1 > 0
            }
            (Doing::Saves { .. }, ObjectName::Shared(_)) | (Doing::Loads, _) => false,
        });
        if it.exposed && reused { Content::Garbage } else { Content::Of(it.key) }
    }

    /// A check is answered, with what the store holds now or with nothing.
    pub(super) fn end_check(&mut self, id: MoveId, known: bool, seen: &mut Vec<Seen>) {
        let place = self.store.checks.iter().position(|check| check.id == id);
        let Some(place) = place else { return };
        let check = self.store.checks.remove(place);
        let stored = self.store.objects.get(&check.key);
        let answer = match (known, stored) {
            (false, _) => CheckAnswer::Unknown,
            (true, Some(stored)) => CheckAnswer::Present { bytes: stored.bytes },
            (true, None) => CheckAnswer::Absent,
        };
        let is_whole = answer == CheckAnswer::Present { bytes: check.bytes };
        let process = &self.processes[usize::from(check.job.process)];
        let job = process.job(check.job.number);
        if let Some(pin) = job.filter(|job| job.doing != Doing::Loads).and_then(|job| job.pin())
            && is_whole
        {
            seen.push(Seen::Confirmed { pin, key: check.key });
        }
        let pin = job.and_then(super::job::Job::pin);
        if let (Some(pin), true) = (pin, known && !is_whole) {
            seen.push(Seen::Missed { pin, key: check.key });
        }
        self.job_completed(check.job, check.object, Completion::Checked(answer), seen);
    }

    /// The next object of delete work is deleted, or not.
    pub(super) fn delete(&mut self, number: u16, end: DeleteEnd, seen: &mut Vec<Seen>) {
        let store = &mut *self.store;
        let work = store.work.iter_mut().find(|work| work.number == number);
        let Some(work) = work else { return };
        let (checkpoint, place) = (work.checkpoint, work.outcomes.len());
        let Some(object) = work.objects.get(place).copied() else { return };
        let is_there = store.objects.contains_key(&StoreKey::Private(checkpoint, object));
        let outcome = match end {
            DeleteEnd::Gone => DeleteOutcome::Gone,
            DeleteEnd::Probed if !is_there => DeleteOutcome::Gone,
            DeleteEnd::Refused | DeleteEnd::Probed => DeleteOutcome::Refused,
            DeleteEnd::Unknown(_) => DeleteOutcome::Unknown,
        };
        work.outcomes.push((object, outcome));
        match end {
            DeleteEnd::Gone | DeleteEnd::Unknown(Lands::Now) => {
                self.remove(checkpoint, object, Cause::Work, seen);
            }
            DeleteEnd::Unknown(Lands::Later) => {
                self.store.late_deletes.insert((checkpoint, object));
            }
            DeleteEnd::Refused | DeleteEnd::Probed | DeleteEnd::Unknown(Lands::Never) => {}
        }
    }

    /// What becomes of a stored object.
    pub(super) fn change_object(
        &mut self,
        at: (Generation, ObjectId),
        change: ObjectChange,
        seen: &mut Vec<Seen>,
    ) {
        match change {
            ObjectChange::LandDelete => self.land_delete(at, seen),
            ObjectChange::Vanish => self.vanish(at, seen),
            ObjectChange::Return => self.come_back(at, seen),
            ObjectChange::Damage => self.damage(at, seen),
            ObjectChange::Sweep => self.sweep(at, seen),
        }
    }

    /// A delete that nobody waits for any more takes effect.
    fn land_delete(&mut self, at: (Generation, ObjectId), seen: &mut Vec<Seen>) {
        let is_it = |it: &&(CheckpointId, ObjectId)| (it.0.generation, it.1) == at;
        let Some(found) = self.store.late_deletes.iter().find(is_it).copied() else { return };
        self.store.late_deletes.remove(&found);
        self.remove(found.0, found.1, Cause::Work, seen);
    }

    /// A stray is deleted.
    fn sweep(&mut self, at: (Generation, ObjectId), seen: &mut Vec<Seen>) {
        let is_it = |it: &&(CheckpointId, ObjectId)| (it.0.generation, it.1) == at;
        let Some(found) = self.store.strays.iter().find(is_it).copied() else { return };
        self.store.strays.remove(&found);
        self.remove(found.0, found.1, Cause::Stray, seen);
    }

    fn remove(
        &mut self,
        checkpoint: CheckpointId,
        object: ObjectId,
        cause: Cause,
        seen: &mut Vec<Seen>,
    ) {
        let key = StoreKey::Private(checkpoint, object);
        self.store.objects.remove(&key);
        seen.push(Seen::Deleted { key, cause });
    }

    /// The key of a private object that the store holds, or has lost by itself.
    pub(crate) fn key_at(&self, at: (Generation, ObjectId)) -> Option<StoreKey> {
        let all = self.store.objects.keys().chain(self.store.vanished.keys());
        all.copied().find(|key| match key {
            StoreKey::Private(checkpoint, object) => (checkpoint.generation, *object) == at,
            StoreKey::Shared(_) | StoreKey::Foreign(_) => false,
        })
    }

    /// The store loses an object.
    fn vanish(&mut self, at: (Generation, ObjectId), seen: &mut Vec<Seen>) {
        let Some(key) = self.key_at(at) else { return };
        if let Some(stored) = self.store.objects.remove(&key) {
            self.store.vanished.insert(key, stored);
            seen.push(Seen::StoreLost { key });
        }
    }

    /// An object that the store had lost is back.
    fn come_back(&mut self, at: (Generation, ObjectId), seen: &mut Vec<Seen>) {
        let Some(key) = self.key_at(at) else { return };
        if let Some(stored) = self.store.vanished.remove(&key) {
            self.store.objects.insert(key, stored);
            seen.push(Seen::Returned { key });
        }
    }

    /// An object's bytes are damaged.
    fn damage(&mut self, at: (Generation, ObjectId), seen: &mut Vec<Seen>) {
        let Some(key) = self.key_at(at) else { return };
        if let Some(stored) = self.store.objects.get_mut(&key) {
            stored.content = Content::Garbage;
            seen.push(Seen::StoreLost { key });
        }
    }

    /// The store restarts: what was under way has failed, and nothing of it lands any more.
    pub(super) fn restart_store(&mut self, seen: &mut Vec<Seen>) {
        self.store.late_deletes.clear();
        let ids: Vec<_> = self.store.moves.iter().map(|it| (it.id, it.way, it.answered)).collect();
        for (id, way, answered) in ids {
            if let Some(place) = self.store.place_of(id) {
                self.store.moves[place].lands = false;
            }
            match (answered, way) {
                (true, _) => self.retire_if_exposed(id, seen),
                (false, Way::Put) => {
                    let end = PutEnd::Failed { lands: Lands::Never, retired: true };
                    self.end_put(id, end, seen);
                }
                (false, Way::Get) => self.end_get(id, GetEnd::Failed { retired: true }, seen),
            }
        }
    }
}
