//! Transfers of workers: begun by a choice, and driven as far as they go by themselves.
//!
//! After everything that a transfer hears, all of its next steps are taken at once: what can happen
//! between two of them can also happen between their messages. Memory is given to somebody else as
//! soon as the transfer allows it, which is the worst moment.

use std::collections::BTreeMap;

use pinfold_core::id::{AttemptId, CheckpointId, EndpointId, Id, OpId, PinId, ShardIndex};
use pinfold_core::manifest::ObjectName;
use pinfold_core::outcome::{Outcome, Rejection};
use pinfold_core::transfer::{
    Candidate, Completion, LoadRequest, Publication, SaveRequest, Step, Transfer,
};

use super::World;
use super::choice::{Choice, HostCall, JobId, Publishes, move_id};
use crate::seen::{MoveId, Seen, Way};
use crate::store::{Check, Content, Move, StoreKey};

/// Where a transfer stands that waits for the other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stands {
    /// It does not.
    Nowhere,
    /// Before the ranks have agreed on this checkpoint.
    Agree(CheckpointId),
}

/// What a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doing {
    /// It saves these shards, as bits, under this attempt.
    Saves {
        /// The attempt.
        attempt: u16,
        /// The shards.
        shards: u8,
        /// The position.
        endpoint: u8,
        /// Its geometry.
        geometry: u8,
    },
    /// It loads every shard.
    Loads,
}

/// A transfer of a worker. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// The core's side of it.
    pub transfer: Transfer,
    /// What it does.
    pub doing: Doing,
    /// Where it stands.
    pub stands: Stands,
    /// It waits before it asks again.
    pub waits: bool,
    /// What the ranks agreed on.
    pub agreed: Option<CheckpointId>,
    /// It must compare with other ranks.
    pub compares: bool,
    /// The pin of which it was said that it must be compared.
    pub told: Option<PinId>,
    /// Pins that it was answered, with their checkpoints.
    pub pins: Vec<(PinId, CheckpointId)>,
    /// How many moves and checks it began.
    pub begun: u16,
    /// What its memory holds of what a load brings.
    pub memory: BTreeMap<ObjectName, Content>,
    /// The shards whose source memory somebody else has now, as bits.
    pub reused: u8,
    /// The destination memory is somebody else's now.
    pub destination_reused: bool,
}

impl Job {
    /// The pin by which it holds its checkpoint.
    #[must_use]
    pub fn pin(&self) -> Option<PinId> {
        let checkpoint = self.transfer.checkpoint()?;
        self.pins.iter().find(|(_, on)| *on == checkpoint).map(|(pin, _)| *pin)
    }
}

/// The shards that a mask names.
pub(crate) fn shards_of(mask: u8) -> impl Iterator<Item = ShardIndex> {
    (0..8_u16).filter(move |shard| mask >> shard & 1 > 0).map(ShardIndex)
}

impl World {
    /// A worker begins a save or a load.
    pub(super) fn begin(&mut self, choice: Choice, seen: &mut Vec<Seen>) {
        let (process, made, doing, compares) = match choice {
            Choice::Save { process, endpoint, geometry, attempt, shards, publishes, compares } => {
                self.attempts = self.attempts.max(attempt);
                let all = (1_u8 << self.setup.shards) - 1;
                let request = SaveRequest {
                    attempt: attempt_id(attempt),
                    manifest: self.library.manifest(endpoint, geometry).clone(),
                    shards: shards_of(shards).collect(),
                    publication: self.publication(publishes),
                    has_peers: compares && shards != all,
                };
                let compares = request.has_peers;
                let doing = Doing::Saves { attempt, shards, endpoint, geometry };
                (process, Transfer::save(request), doing, compares)
            }
            Choice::Load { process, endpoints, limit, compares } => {
                let from_the_longest = (0..self.setup.endpoints).rev();
                let named = from_the_longest.filter(|endpoint| endpoints >> endpoint & 1 > 0);
                // A rank among several plans only what all of them choose.
                let candidate = |endpoint| {
                    let manifest = self.library.manifest(endpoint, 0);
                    match compares {
                        true => Candidate::described_later(manifest.endpoint().id()),
                        false => Candidate::planned(manifest.clone()),
                    }
                };
                let request = LoadRequest {
                    candidates: named.map(candidate).collect(),
                    limit: u32::from(limit),
                    shards: (0..u16::from(self.setup.shards)).map(ShardIndex).collect(),
                    has_peers: compares,
                    explains: compares,
                };
                (process, Transfer::load(request), Doing::Loads, compares)
            }
            _ => return,
        };
        let Ok(transfer) = made else { return };
        let it = &mut self.processes[usize::from(process)];
        it.begun += 1;
        self.started += 1;
        let id = JobId { process, number: it.begun };
        it.jobs.push(Job {
            id,
            transfer,
            doing,
            stands: Stands::Nowhere,
            waits: false,
            agreed: None,
            compares,
            told: None,
            pins: Vec::new(),
            begun: 0,
            memory: BTreeMap::new(),
            reused: 0,
            destination_reused: false,
        });
        self.drive(id, seen);
    }

    fn publication(&self, publishes: Publishes) -> Publication {
        match publishes {
            Publishes::Nothing => Publication::Elsewhere,
            Publishes::Unscoped => Publication::Unscoped,
            Publishes::Turn(conversation, turn) => {
                Publication::Turn(super::turn_key(conversation, turn))
            }
        }
    }

    fn job_mut(&mut self, id: JobId) -> Option<&mut Job> {
        let jobs = &mut self.processes[usize::from(id.process)].jobs;
        jobs.iter_mut().find(|job| job.id == id)
    }

    /// The answer to a transfer's command.
    pub(super) fn job_answered(
        &mut self,
        id: JobId,
        op: OpId,
        answer: Result<Outcome, Rejection>,
        seen: &mut Vec<Seen>,
    ) {
        let Some(job) = self.job_mut(id) else { return };
        match &answer {
            Ok(
                Outcome::Prepared { pin, checkpoint }
                | Outcome::AlreadyPublished { pin, checkpoint },
            ) => job.pins.push((*pin, *checkpoint)),
            Ok(Outcome::Pinned(answers)) => {
                let pins = answers.iter().zip(0_u8..);
                job.pins
                    .extend(pins.map(|(answer, place)| (PinId { op, place }, answer.checkpoint)));
            }
            Ok(_) | Err(_) => {}
        }
        job.transfer.answered(op, answer);
        if job.compares
            && let Some(pin) = job.pin()
            && job.told != Some(pin)
        {
            job.told = Some(pin);
            seen.push(Seen::Compares { pin });
        }
        self.drive(id, seen);
    }

    /// What became of a move or a check of a transfer.
    pub(super) fn job_completed(
        &mut self,
        id: JobId,
        object: ObjectName,
        completion: Completion,
        seen: &mut Vec<Seen>,
    ) {
        let Some(job) = self.job_mut(id) else { return };
        job.transfer.completed(object, completion);
        self.drive(id, seen);
    }

    /// All ranks of an attempt that stand before their agreement compare what they were answered.
    pub(super) fn agree(&mut self, attempt: u16, seen: &mut Vec<Seen>) {
        let Some((standing, same)) = self.agreement(attempt) else { return };
        for id in standing {
            if let Some(job) = self.job_mut(id)
                && let Stands::Agree(checkpoint) = job.stands
            {
                job.agreed = Some(checkpoint);
            }
            self.compare(id, same, seen);
        }
    }

    /// The ranks of an attempt that stand before their agreement, once every shard has a rank that
    /// stands there or is past it; and whether all have the same checkpoint.
    pub(super) fn agreement(&self, attempt: u16) -> Option<(Vec<JobId>, bool)> {
        let (mut standing, mut covered, mut checkpoints) = (Vec::new(), 0, Vec::new());
        for job in self.processes.iter().flat_map(|process| &process.jobs) {
            let Doing::Saves { attempt: other, shards, .. } = job.doing else { continue };
            if other != attempt {
                continue;
            }
            if let Stands::Agree(checkpoint) = job.stands {
                standing.push(job.id);
                covered |= shards;
                checkpoints.push(checkpoint);
            } else if let Some(checkpoint) = job.agreed {
                covered |= shards;
                checkpoints.push(checkpoint);
            }
        }
        let all = (1_u8 << self.setup.shards) - 1;
        let same = checkpoints.windows(2).all(|pair| pair[0] == pair[1]);
        (covered == all && !standing.is_empty()).then_some((standing, same))
    }

    /// Something about a transfer that its host decides.
    pub(super) fn host_decides(&mut self, id: JobId, call: HostCall, seen: &mut Vec<Seen>) {
        let Some(job) = self.job_mut(id) else { return };
        match call {
            HostCall::GiveUp => return self.compare(id, false, seen),
            HostCall::Concur => return self.compare(id, true, seen),
            HostCall::Proceed => {
                job.waits = false;
                job.transfer.proceed();
            }
            HostCall::Cancel => {
                job.waits = false;
                job.stands = Stands::Nowhere;
                job.transfer.cancel();
            }
        }
        self.drive(id, seen);
    }

    /// A rank has compared, or gives up.
    fn compare(&mut self, id: JobId, same: bool, seen: &mut Vec<Seen>) {
        if let Some(job) = self.job_mut(id) {
            job.stands = Stands::Nowhere;
            seen.extend(job.pin().map(|pin| Seen::Compared { pin, same }));
            job.transfer.agreed(same);
        }
        self.drive(id, seen);
    }

    /// Takes every step that a transfer can take now.
    pub(super) fn drive(&mut self, id: JobId, seen: &mut Vec<Seen>) {
        while let Some(step) = self.job_mut(id).and_then(|job| job.transfer.next_step()) {
            match step {
                Step::Ask(command) => self.ask_for(id, command),
                Step::Agree { checkpoint } => self.stand(id, Stands::Agree(checkpoint)),
                Step::Wait => self.wait(id),
                Step::Put { object, bytes } => self.begin_move(id, Way::Put, (object, bytes), seen),
                Step::Get { object, bytes } => self.begin_move(id, Way::Get, (object, bytes), seen),
                Step::Check { object, bytes } => self.begin_check(id, object, bytes),
                Step::Adopt { checkpoint } => self.adopt(id, checkpoint, seen),
                Step::Choose => self.choose(id),
                Step::Describe { endpoint } => self.describe(id, endpoint),
                Step::ReadManifest { .. } => self.read_manifest(id),
            }
        }
        self.reuse(id, seen);
        let process = &mut self.processes[usize::from(id.process)];
        let Some(place) = process.jobs.iter().position(|job| job.id == id) else { return };
        if let Some(end) = process.jobs[place].transfer.report() {
            process.jobs.remove(place);
            self.ended.push(end);
        }
    }

    fn ask_for(&mut self, id: JobId, command: pinfold_core::catalog::Command) {
        self.ask(id.process, command, Some(id));
    }

    fn wait(&mut self, id: JobId) {
        if let Some(job) = self.job_mut(id) {
            job.waits = true;
        }
    }

    fn stand(&mut self, id: JobId, stands: Stands) {
        if let Some(job) = self.job_mut(id) {
            job.stands = stands;
        }
    }

    /// A rank of a load takes the longest that fits its plan, as every other one would.
    fn choose(&mut self, id: JobId) {
        if let Some(job) = self.job_mut(id) {
            job.transfer.choose_longest();
        }
    }

    fn describe(&mut self, id: JobId, endpoint: EndpointId) {
        let library = self.library.clone();
        let all = (0..library.endpoints()).map(|place| library.manifest(place, 0));
        let found = all.into_iter().find(|manifest| manifest.endpoint().id() == endpoint);
        if let (Some(job), Some(manifest)) = (self.job_mut(id), found) {
            job.transfer.described(manifest);
        }
    }

    /// Nobody reads a stored manifest to explain a difference: it is answered as unreadable.
    fn read_manifest(&mut self, id: JobId) {
        if let Some(job) = self.job_mut(id) {
            job.transfer.manifest_read(None);
        }
    }

    fn next_move(job: &mut Job) -> MoveId {
        job.begun += 1;
        move_id(job.id, job.begun)
    }

    fn begin_move(
        &mut self,
        id: JobId,
        way: Way,
        (object, bytes): (ObjectName, u64),
        seen: &mut Vec<Seen>,
    ) {
        let Some(job) = self.job_mut(id) else { return };
        let (Some(pin), Some(checkpoint)) = (job.pin(), job.transfer.checkpoint()) else { return };
        let number = Self::next_move(job);
        let key = StoreKey::of(checkpoint, object);
        seen.push(Seen::MoveBegan { id: number, way, key, checkpoint, pin });
        self.store.moves.push(Move {
            id: number,
            job: id,
            pin,
            way,
            object,
            key,
            bytes,
            answered: false,
            exposed: true,
            lands: false,
        });
    }

    fn begin_check(&mut self, id: JobId, object: ObjectName, bytes: u64) {
        let Some(job) = self.job_mut(id) else { return };
        let Some(checkpoint) = job.transfer.checkpoint() else { return };
        let number = Self::next_move(job);
        let key = StoreKey::of(checkpoint, object);
        self.store.checks.push(Check { id: number, job: id, object, key, bytes });
    }

    fn adopt(&mut self, id: JobId, checkpoint: CheckpointId, seen: &mut Vec<Seen>) {
        let library = self.library.clone();
        let Some(job) = self.job_mut(id) else { return };
        let Some(pin) = job.pin() else { return };
        let of_it =
            |endpoint: &u8| library.manifest(*endpoint, 0).endpoint().id() == checkpoint.endpoint;
        let Some(endpoint) = (0..library.endpoints()).find(of_it) else { return };
        let manifest = library.manifest(endpoint, 0);
        let mut memory = Vec::new();
        for shard in 0..manifest.shape().len() {
            let shard = ShardIndex(u16::try_from(shard).unwrap_or(u16::MAX));
            // The manifest itself is checked, not loaded.
            let private = manifest.private_objects(shard).filter(|it| it.group.is_some());
            memory.extend(private.map(|it| ObjectName::Private(it.id)));
        }
        memory.extend(manifest.shared_objects().map(|it| ObjectName::Shared(it.name)));
        let held = |object: ObjectName| (object, job.memory.get(&object).copied());
        let memory = memory.into_iter().map(held).collect();
        let digest = Some(manifest.digest());
        seen.push(Seen::Adopted { pin, checkpoint, digest, memory });
    }

    /// Gives away the memory that a transfer is done with.
    fn reuse(&mut self, id: JobId, seen: &mut Vec<Seen>) {
        let Some(job) = self.job_mut(id) else { return };
        let pin = job.pin();
        if let Doing::Saves { shards, .. } = job.doing {
            for shard in shards_of(shards) {
                let bit = 1 << shard.0;
                if job.reused & bit == 0 && job.transfer.may_reuse_source(shard) {
                    job.reused |= bit;
                    seen.extend(pin.map(|pin| Seen::SourceReused { pin, shard }));
                }
            }
        } else if !job.destination_reused && job.transfer.may_reuse_destination() {
            job.destination_reused = true;
            seen.extend(pin.map(|pin| Seen::DestinationReused { pin }));
        }
    }
}

fn attempt_id(attempt: u16) -> AttemptId {
    Id::of_name(&format!("A{attempt}"))
}
