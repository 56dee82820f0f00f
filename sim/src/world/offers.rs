//! Every choice of a kind that a World offers.
//!
//! A model checker asks for all of them. The simulator draws a kind first, and where a kind has
//! very many choices it draws one of them by its parts; both end in the same rules.

use pinfold_core::id::{CheckpointId, Generation, ObjectId};
use pinfold_core::outcome::Evidence;

use super::World;
use super::choice::{
    About, Act, Choice, Coordinate, DeleteEnd, GetEnd, HostCall, JobId, Lands, Mistake,
    ObjectChange, Passage, PinName, Publishes, PutEnd,
};
use super::job::{Doing, Stands};
use super::kind::{Group, Kind};
use crate::seen::Way;
use crate::store::StoreKey;

impl World {
    /// Which groups have something, as bits by [`Group`].
    #[must_use]
    pub fn groups(&self) -> u32 {
        let mut found = 1 << Group::Always as u8;
        let mut there = |group: Group, yes: bool| found |= u32::from(yes) << group as u8;
        let (it, store) = (&self.coordinator, &self.store);
        there(Group::Up, it.engine.is_some());
        there(Group::Down, it.engine.is_none());
        there(Group::Dirty, it.is_dirty());
        there(Group::Written, it.batch.is_some() && it.engine.is_some());
        there(Group::Requests, !self.requests.sent.is_empty());
        there(Group::Answers, !self.answers.sent.is_empty());
        there(Group::Jobs, self.processes.iter().any(|process| !process.jobs.is_empty()));
        there(Group::Asked, self.processes.iter().any(|process| !process.asked.is_empty()));
        let gauges = it.disk.catalog.gauges();
        there(Group::Pins, gauges.pins > 0);
        there(Group::Checkpoints, gauges.checkpoints > 0);
        there(Group::Moves, store.moves.iter().any(|it| !it.answered));
        there(Group::Checks, !store.checks.is_empty());
        there(Group::Lingering, store.moves.iter().any(|it| it.answered));
        there(Group::Work, !store.work.is_empty());
        there(Group::LateDeletes, !store.late_deletes.is_empty());
        there(Group::Objects, self.private_objects().next().is_some());
        there(Group::Vanished, !store.vanished.is_empty());
        there(Group::Strays, !store.strays.is_empty());
        found
    }

    /// The kind of a choice in this World.
    #[must_use]
    pub fn kind_of(&self, choice: Choice) -> Kind {
        match choice {
            Choice::Tell(process, act)
                if Kind::is_for_operators(act) && !self.setup.is_operator(process) =>
            {
                Kind::Pretend
            }
            Choice::Tell(_, Act::Settle(pin, _)) if !self.is_proven(pin) => Kind::FalseSettle,
            Choice::Tell(_, Act::Fence(process, number)) if !self.is_over(process, number) => {
                Kind::FalseFence
            }
            _ => Kind::of(choice),
        }
    }

    /// Every choice that is listed now.
    pub fn choices(&self, found: &mut Vec<Choice>) {
        let groups = self.groups();
        for kind in Kind::all().filter(|kind| groups >> (kind.group() as u8) & 1 > 0) {
            self.offer(kind, found);
        }
    }

    /// Every choice of a kind. A crash and a failed sync are offered with all and with nothing of
    /// the written frame; any number of bytes between is a choice too.
    pub fn offer(&self, kind: Kind, found: &mut Vec<Choice>) {
        let from = found.len();
        self.list(kind, found);
        let mut place = from;
        while place < found.len() {
            if self.allows(found[place]) && self.kind_of(found[place]) == kind {
                place += 1;
            } else {
                found.swap_remove(place);
            }
        }
    }

    /// What could be a choice of a kind: some of it may not be one now.
    fn list(&self, kind: Kind, found: &mut Vec<Choice>) {
        match kind.group() {
            Group::Jobs => self.offer_jobs(kind, found),
            Group::Asked => self.offer_again(kind, found),
            Group::Requests | Group::Answers => self.offer_messages(kind, found),
            Group::Down | Group::Dirty | Group::Written => self.offer_coordinator(kind, found),
            Group::Moves | Group::Lingering => self.offer_moves(kind, found),
            Group::Checks => self.offer_checks(kind, found),
            Group::LateDeletes | Group::Objects | Group::Vanished | Group::Strays => {
                self.offer_objects(kind, found);
            }
            Group::Work if kind == Kind::Report => self.offer_acts(kind, found),
            Group::Work => self.offer_deletes(kind, found),
            Group::Pins | Group::Checkpoints => self.offer_acts(kind, found),
            Group::Always | Group::Up => self.offer_others(kind, found),
        }
    }

    /// Kinds that need nothing to be there, or only a coordinator.
    fn offer_others(&self, kind: Kind, found: &mut Vec<Choice>) {
        match kind {
            Kind::Save | Kind::Load => self.offer_transfers(kind, found),
            Kind::Register | Kind::Die => self.offer_lives(kind, found),
            Kind::Replay => self.offer_messages(kind, found),
            Kind::FollowUp | Kind::Compact | Kind::Crash => self.offer_coordinator(kind, found),
            Kind::Audit => found.push(Choice::Audit),
            Kind::RestartStore => found.push(Choice::RestartStore),
            Kind::Look => self.offer_looks(found),
            _ => self.offer_acts(kind, found),
        }
    }

    fn offer_lives(&self, kind: Kind, found: &mut Vec<Choice>) {
        let choice = if kind == Kind::Die { Choice::Die } else { Choice::Register };
        found.extend(self.each_process().map(choice));
    }

    fn offer_coordinator(&self, kind: Kind, found: &mut Vec<Choice>) {
        let kept = || self.kept().into_iter();
        let plain = [
            Coordinate::FollowUp,
            Coordinate::Sync,
            Coordinate::Write,
            Coordinate::Commit,
            Coordinate::Restart,
            Coordinate::Compact,
        ];
        let all = plain.into_iter();
        let all = all.chain(kept().map(Coordinate::Crash)).chain(kept().map(Coordinate::FailSync));
        let choices = all.map(Choice::Coordinator);
        found.extend(choices.filter(|choice| Kind::of(*choice) == kind));
    }

    fn each_process(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.setup.processes()
    }

    fn each_job(&self) -> impl Iterator<Item = &super::job::Job> {
        self.processes.iter().flat_map(|process| &process.jobs)
    }

    /// How many bytes of a written frame may be kept: none, or all.
    fn kept(&self) -> Vec<u32> {
        let written = self.coordinator.batch.as_ref().map(|batch| batch.bytes().len());
        match written.and_then(|bytes| u32::try_from(bytes).ok()) {
            Some(bytes) => vec![0, bytes],
            None => vec![0],
        }
    }

    fn offer_transfers(&self, kind: Kind, found: &mut Vec<Choice>) {
        let setup = &self.setup;
        for process in 0..setup.workers {
            if kind == Kind::Load {
                let all = u8::try_from((1_u16 << setup.endpoints) - 1).unwrap_or(u8::MAX);
                let limits = [1, 2];
                found.extend((1..=all).flat_map(|endpoints| {
                    limits.map(|limit| Choice::Load { process, endpoints, limit, compares: false })
                }));
                continue;
            }
            let turns = (0..setup.conversations).flat_map(|conversation| {
                (0..setup.turns).map(move |turn| Publishes::Turn(conversation, turn))
            });
            let all = [Publishes::Nothing, Publishes::Unscoped].into_iter().chain(turns);
            let publications: Vec<_> = all.collect();
            for endpoint in 0..setup.endpoints {
                for attempt in self.attempts.saturating_sub(1).max(1)..=self.attempts + 1 {
                    for shards in 1..1 << setup.shards {
                        found.extend(publications.iter().flat_map(|publishes| {
                            [0, 1, 2].map(|geometry| Choice::Save {
                                process,
                                endpoint,
                                geometry,
                                attempt,
                                shards,
                                publishes: *publishes,
                                compares: true,
                            })
                        }));
                    }
                }
            }
        }
    }

    fn offer_jobs(&self, kind: Kind, found: &mut Vec<Choice>) {
        let call = HostCall::ALL.into_iter().find(|call| Kind::of_call(*call) == kind);
        for job in self.each_job() {
            match (call, job.doing, job.stands) {
                (Some(call), ..) => found.push(Choice::Host(job.id, call)),
                (None, ..) if kind == Kind::Publish => self.offer_publications(job.id, found),
                (None, Doing::Saves { attempt, .. }, Stands::Agree(_)) => {
                    if !found.contains(&Choice::Agree(attempt)) {
                        found.push(Choice::Agree(attempt));
                    }
                }
                (None, Doing::Saves { .. } | Doing::Loads, _) => {}
            }
        }
    }

    fn offer_publications(&self, job: JobId, found: &mut Vec<Choice>) {
        found.push(Choice::Publish(job, Publishes::Unscoped));
        for conversation in 0..self.setup.conversations {
            let turns = 0..self.setup.turns;
            found.extend(
                turns.map(|turn| Choice::Publish(job, Publishes::Turn(conversation, turn))),
            );
        }
    }

    fn offer_again(&self, kind: Kind, found: &mut Vec<Choice>) {
        for (process, index) in self.processes.iter().zip(0..) {
            let (life, asked) = (process.life, &process.asked);
            if kind == Kind::Resend {
                found.extend(asked.iter().map(|it| {
                    let sequence = it.op.sequence;
                    Choice::Message(
                        About::Command { process: index, life, sequence },
                        Passage::Resend,
                    )
                }));
            } else {
                found.extend(asked.windows(2).map(|pair| {
                    let sequences = [pair[0].op.sequence, pair[1].op.sequence];
                    Choice::Message(
                        About::List { process: index, life, sequences },
                        Passage::SendList,
                    )
                }));
            }
        }
    }

    fn offer_messages(&self, kind: Kind, found: &mut Vec<Choice>) {
        let passage = Passage::ALL.into_iter().find(|passage| Kind::of_passage(*passage) == kind);
        let Some(passage) = passage else { return };
        let requests = self.requests.sent.iter().map(|it| it.about);
        let answers = self.answers.sent.iter().map(|it| it.about);
        let arrived = self.arrived.iter().map(|it| it.0);
        let choice = |about| Choice::Message(about, passage);
        match kind.group() {
            Group::Requests => found.extend(requests.map(choice)),
            Group::Answers => found.extend(answers.map(choice)),
            _ => found.extend(arrived.map(choice)),
        }
    }

    fn offer_moves(&self, kind: Kind, found: &mut Vec<Choice>) {
        let lands = [Lands::Now, Lands::Later, Lands::Never];
        let failed = |retired| lands.map(|lands| PutEnd::Failed { lands, retired });
        for it in &self.store.moves {
            let id = it.id;
            match (kind, it.way, it.answered) {
                (Kind::Retire, _, true) => found.push(Choice::Retire(id)),
                (Kind::Land, _, true) => found.push(Choice::Land(id)),
                (_, Way::Put, false) => {
                    let mut put = |end| found.push(Choice::Put(id, end));
                    match kind {
                        Kind::PutOk => put(PutEnd::Ok),
                        Kind::PutUnretired => put(PutEnd::OkUnretired),
                        Kind::PutNotStarted => put(PutEnd::NotStarted),
                        Kind::PutFailed => failed(true).into_iter().for_each(put),
                        Kind::PutInDoubt => failed(false).into_iter().for_each(put),
                        Kind::PutLies => [PutEnd::OkAbsent, PutEnd::OkGarbage, PutEnd::OkShort]
                            .into_iter()
                            .for_each(put),
                        _ => {}
                    }
                }
                (_, Way::Get, false) => {
                    let mut get = |end| found.push(Choice::Get(id, end));
                    match kind {
                        Kind::GetAnswered => get(GetEnd::Answered),
                        Kind::GetUnretired => get(GetEnd::AnsweredUnretired),
                        Kind::GetFailed => get(GetEnd::Failed { retired: true }),
                        Kind::GetInDoubt => get(GetEnd::Failed { retired: false }),
                        Kind::GetUnverified => get(GetEnd::Unverified),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    fn offer_checks(&self, kind: Kind, found: &mut Vec<Choice>) {
        let known = kind == Kind::CheckKnown;
        found.extend(self.store.checks.iter().map(|it| Choice::Check(it.id, known)));
    }

    fn offer_deletes(&self, kind: Kind, found: &mut Vec<Choice>) {
        let lands = [Lands::Now, Lands::Later, Lands::Never];
        for number in self.store.work.iter().map(|work| work.number) {
            let mut delete = |end| found.push(Choice::Delete(number, end));
            match kind {
                Kind::DeleteGone => delete(DeleteEnd::Gone),
                Kind::DeleteRefused => delete(DeleteEnd::Refused),
                Kind::Probe => delete(DeleteEnd::Probed),
                Kind::DropWork => found.push(Choice::DropWork(number)),
                _ => lands.into_iter().for_each(|lands| delete(DeleteEnd::Unknown(lands))),
            }
        }
    }

    fn offer_objects(&self, kind: Kind, found: &mut Vec<Choice>) {
        let at = |(id, object): (pinfold_core::id::CheckpointId, ObjectId)| (id.generation, object);
        let private = |key: &StoreKey| match key {
            StoreKey::Private(id, object) => Some((id.generation, *object)),
            StoreKey::Shared(_) | StoreKey::Foreign(_) => None,
        };
        let store = &self.store;
        let places: Vec<(Generation, ObjectId)> = match kind {
            Kind::LandDelete => store.late_deletes.iter().copied().map(at).collect(),
            Kind::Sweep => store.strays.iter().copied().map(at).collect(),
            Kind::Return => store.vanished.keys().filter_map(private).collect(),
            _ => self.private_objects().map(at).collect(),
        };
        let change = ObjectChange::ALL.into_iter().find(|change| Kind::of_change(*change) == kind);
        let choice =
            |change| move |(generation, object)| Choice::Object(generation, object, change);
        found.extend(
            change.into_iter().flat_map(|change| places.iter().copied().map(choice(change))),
        );
    }

    fn offer_looks(&self, found: &mut Vec<Choice>) {
        found.push(Choice::Look(Generation(0)));
        let all = self.coordinator.disk.catalog.checkpoints();
        found.extend(all.into_iter().map(|id| Choice::Look(id.generation)));
    }

    fn offer_acts(&self, kind: Kind, found: &mut Vec<Choice>) {
        let mut acts = Vec::new();
        let pins = || self.pin_names();
        let settles = |pin: PinName| {
            let evidence = [
                Evidence::QuiescedFailure,
                Evidence::NotExposed,
                Evidence::InDoubt,
                Evidence::QuiescedSuccess,
            ];
            evidence.map(move |evidence| Act::Settle(pin, evidence))
        };
        let generations = || {
            let all = self.coordinator.disk.catalog.checkpoints();
            all.into_iter().map(|id| id.generation)
        };
        match kind {
            Kind::Collect => acts.extend([1, 2, 9].map(Act::Collect)),
            Kind::Report => {
                acts.extend(self.store.work.iter().map(|work| Act::Report(work.number)));
            }
            Kind::Configure => acts.extend([0, 1].map(Act::Configure)),
            Kind::Forget => acts.extend((0..self.setup.conversations).map(Act::Forget)),
            Kind::Drop => acts.extend(generations().map(Act::Drop)),
            Kind::OperatorLost => acts.extend(generations().map(Act::Lost)),
            Kind::ProvenSettle | Kind::FalseSettle => {
                acts.extend(pins().into_iter().flat_map(settles));
            }
            Kind::ProvenFence | Kind::FalseFence => {
                acts.extend(self.lives.iter().map(|(number, life)| Act::Fence(life.0, *number)));
            }
            Kind::Release => acts.extend(pins().into_iter().map(Act::Release)),
            Kind::Doubt => acts.extend(pins().into_iter().map(|pin| Act::Doubt(pin, true))),
            Kind::Undoubt => acts.extend(pins().into_iter().map(|pin| Act::Doubt(pin, false))),
            Kind::RetireOwner => acts.extend(self.each_process().map(Act::Retire)),
            Kind::Malformed => acts.push(Act::Malformed),
            Kind::Mistake => acts.extend(self.mistakes().into_iter().map(Act::Mistake)),
            Kind::Pretend => {
                acts.extend([Act::Configure(1), Act::Forget(0)]);
                acts.extend(self.each_process().map(Act::Retire));
                acts.extend(self.lives.iter().map(|(number, life)| Act::Fence(life.0, *number)));
                acts.extend(generations().map(Act::Drop));
                acts.extend(pins().into_iter().flat_map(settles));
                acts.extend(pins().into_iter().map(Act::Release));
            }
            _ => acts.push(Act::Conflict),
        }
        for process in self.each_process() {
            found.extend(acts.iter().map(|act| Choice::Tell(process, *act)));
        }
    }

    fn mistakes(&self) -> Vec<Mistake> {
        let mut all = vec![
            Mistake::Publish,
            Mistake::Settle,
            Mistake::Release,
            Mistake::Doubt,
            Mistake::DeletedNothing,
            Mistake::Incarnation,
        ];
        all.extend(self.each_process().map(Mistake::Fence));
        let of_pin = |pin| [Mistake::Foreign(pin), Mistake::Shard(pin), Mistake::Active(pin)];
        all.extend(self.pin_names().into_iter().flat_map(of_pin));
        let of_checkpoint = |id: CheckpointId| {
            let of_it = [Mistake::Lost, Mistake::NotHeld, Mistake::Deleted, Mistake::DeletedOther];
            of_it.map(|mistake| mistake(id.generation))
        };
        let checkpoints = self.coordinator.disk.catalog.checkpoints();
        all.extend(checkpoints.into_iter().flat_map(of_checkpoint));
        all
    }

    fn pin_names(&self) -> Vec<PinName> {
        let pins = self.coordinator.disk.catalog.pins();
        pins.into_iter().filter_map(|pin| self.pin_name(pin.id)).collect()
    }
}
