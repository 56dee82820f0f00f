//! What is remembered of one run, to see what comes of its choices.
//!
//! It holds only what still waits for its effect, is forgotten when counts are merged, and changes
//! nothing of the run.

use std::collections::BTreeMap;

use pinfold_core::catalog::{Change, Command, Event, Verdict};
use pinfold_core::engine::{Effect, Input, Reply, Request, Ticket};
use pinfold_core::id::{CheckpointId, OpId};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome, Rejection};

use super::Cell;
use super::effect::{self, Proof};
use super::names;
use super::ripe::{Tally, is_ripe, key_of, open_shards, tally};
use super::verbs::{ANY, row_of};
use crate::seen::{MoveId, Seen};
use crate::store::StoreKey;
use crate::world::choice::{
    About, Choice, Coordinate, DeleteEnd, GetEnd, ObjectChange, Passage, PutEnd,
};
use crate::world::{Kind, World};

/// An input that was not answered yet.
#[derive(Clone, Debug, PartialEq)]
struct Waits {
    ticket: Ticket,
    verbs: Verbs,
    /// It had been answered before, and this fault brought it again.
    again: Option<Kind>,
}

#[derive(Clone, Debug, PartialEq)]
enum Verbs {
    Register,
    One(&'static str, OpId),
    List(Vec<(&'static str, OpId)>),
    Query,
}

impl Verbs {
    fn of(request: &Request) -> Self {
        let named = |(op, command): &(OpId, Command)| (names::verb(command), *op);
        match request {
            Request::Register(_) => Self::Register,
            Request::Command(op, command) => Self::One(names::verb(command), *op),
            Request::List(commands) => Self::List(commands.iter().map(named).collect()),
            Request::Query(_) => Self::Query,
        }
    }
}

/// What was true just before a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Before {
    tally: Tally,
    open_shards: u32,
    /// What brings a message to the coordinator again.
    again: Option<Kind>,
    /// What brings an answer to its process again.
    reheard: Option<Kind>,
}

/// The notes of one run. See the [module](self).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Notes {
    before: Before,
    waits: Vec<Waits>,
    /// Commands that a process sent by itself.
    told: BTreeMap<OpId, Kind>,
    /// Messages of which a copy will be answered again.
    copied: BTreeMap<About, Kind>,
    /// Messages that were lost, or whose answer was.
    lost: BTreeMap<About, Kind>,
    /// Answers of which a copy is under way.
    heard: BTreeMap<About, Kind>,
    /// Objects that are not as the coordinator believes.
    spoilt: BTreeMap<StoreKey, Kind>,
    /// Moves that failed, whose memory is in use.
    in_doubt: BTreeMap<MoveId, Kind>,
    /// Checkpoints whose delete work was forgotten.
    dropped: BTreeMap<CheckpointId, Kind>,
    /// Where the last snapshot was taken.
    compacted: u64,
}

impl Notes {
    /// Looks at a World before a choice comes true.
    pub(super) fn before(
        &mut self,
        world: &World,
        kind: Kind,
        choice: Choice,
        count: &mut impl FnMut(Cell),
    ) {
        self.before = Before::default();
        let needs_tally = match effect::proof(kind) {
            Proof::Ripe => {
                if is_ripe(world, choice, self.compacted) {
                    count(Cell::Effect(kind));
                }
                false
            }
            Proof::Stirred => true,
            Proof::Achieved | Proof::Heard => false,
            Proof::Met => kind == Kind::DuplicateAnswer,
        };
        if needs_tally {
            self.before.tally = tally(world);
            self.before.open_shards = open_shards(world, choice);
        }
        if let Some(met) = self.meets(world, choice) {
            count(Cell::Effect(met));
        }
        self.leaves(world, kind, choice);
    }

    /// The choice whose remains are met by this one.
    fn meets(&mut self, world: &World, choice: Choice) -> Option<Kind> {
        match choice {
            Choice::Register(process) => {
                let life = world.processes[usize::from(process)].life;
                self.lost.remove(&About::Register { process, life })
            }
            Choice::Message(about, Passage::Resend) => self.lost.remove(&about),
            Choice::Message(about, Passage::Deliver | Passage::Duplicate) => {
                self.before.again = self.copied.remove(&about);
                None
            }
            Choice::Message(about, Passage::Answer | Passage::DuplicateAnswer) => {
                self.before.reheard = self.heard.remove(&about);
                None
            }
            Choice::Check(_, true)
            | Choice::Get(_, GetEnd::Answered | GetEnd::AnsweredUnretired) => {
                let is_check = matches!(choice, Choice::Check(..));
                let key = key_of(world, choice)?;
                // A check sees no damage.
                let unseen = is_check && self.spoilt.get(&key) == Some(&Kind::Damage);
                if unseen { None } else { self.spoilt.remove(&key) }
            }
            Choice::Delete(_, DeleteEnd::Gone | DeleteEnd::Probed)
            | Choice::Object(_, _, ObjectChange::LandDelete | ObjectChange::Sweep) => {
                let found = self.spoilt.remove(&key_of(world, choice)?);
                found.filter(|kind| *kind == Kind::Return)
            }
            _ => None,
        }
    }

    /// What a choice leaves behind.
    fn leaves(&mut self, world: &World, kind: Kind, choice: Choice) {
        match choice {
            Choice::Message(about, Passage::Duplicate | Passage::Replay) => {
                self.copied.insert(about, kind);
            }
            Choice::Message(about, Passage::DuplicateAnswer) => {
                self.heard.insert(about, kind);
            }
            Choice::Message(about, Passage::Lose | Passage::LoseAnswer) => {
                self.lost.insert(about, kind);
            }
            Choice::Put(_, PutEnd::OkAbsent | PutEnd::OkGarbage | PutEnd::OkShort)
            | Choice::Object(
                _,
                _,
                ObjectChange::Vanish | ObjectChange::Return | ObjectChange::Damage,
            ) => {
                self.spoilt.extend(key_of(world, choice).map(|key| (key, kind)));
            }
            Choice::Put(id, PutEnd::Failed { retired: false, .. })
            | Choice::Get(id, GetEnd::Failed { retired: false }) => {
                self.in_doubt.insert(id, kind);
            }
            Choice::DropWork(number) => {
                let work = world.store.work.iter().find(|work| work.number == number);
                self.dropped.extend(work.map(|work| (work.checkpoint, kind)));
            }
            Choice::Coordinator(Coordinate::Compact) => {
                self.compacted = world.coordinator.disk.position;
            }
            _ => {}
        }
    }

    /// Looks at a World after a choice came true, and at what was seen of it.
    pub(super) fn after(
        &mut self,
        world: &World,
        (kind, choice): (Kind, Choice),
        seen: &[Seen],
        count: &mut impl FnMut(Cell),
    ) {
        match effect::proof(kind) {
            Proof::Stirred if self.is_stirred(world, choice, seen) => count(Cell::Effect(kind)),
            Proof::Achieved => self.tells(world, kind, choice),
            Proof::Stirred | Proof::Ripe | Proof::Heard | Proof::Met => {}
        }
        if let Some(reheard) = self.before.reheard
            && self.before.tally == tally(world)
        {
            count(Cell::Effect(reheard));
        }
        for it in seen {
            match it {
                Seen::Submitted { ticket, input } => self.submitted(world, *ticket, input, count),
                Seen::Replied { ticket, reply } => self.replied(*ticket, reply, count),
                Seen::Synced { events } => events.iter().for_each(|event| synced(event, count)),
                Seen::HandedOut { effect: Effect::Delete { checkpoint, .. } } => {
                    if let Some(dropped) = self.dropped.remove(checkpoint) {
                        count(Cell::Effect(dropped));
                    }
                }
                Seen::Crashed => self.waits.clear(),
                Seen::Idled
                | Seen::SyncFailed
                | Seen::Recovered
                | Seen::OwnerDied { .. }
                | Seen::Compares { .. }
                | Seen::Compared { .. }
                | Seen::Missed { .. }
                | Seen::MoveBegan { .. }
                | Seen::Landed { .. }
                | Seen::PutSucceeded { .. }
                | Seen::Confirmed { .. }
                | Seen::Retired { .. }
                | Seen::Deleted { .. }
                | Seen::StoreLost { .. }
                | Seen::Returned { .. }
                | Seen::SourceReused { .. }
                | Seen::DestinationReused { .. }
                | Seen::Adopted { .. }
                | Seen::FalseProof { .. }
                | Seen::Listed { .. } => {}
            }
        }
    }

    /// Something came of a choice in its own step.
    fn is_stirred(&self, world: &World, choice: Choice, seen: &[Seen]) -> bool {
        let saw = |is_it: fn(&Seen) -> bool| seen.iter().any(is_it);
        match choice {
            Choice::Coordinator(Coordinate::Sync | Coordinate::Commit) => {
                saw(|it| matches!(it, Seen::Replied { .. } | Seen::HandedOut { .. }))
            }
            Choice::Coordinator(Coordinate::FailSync(_)) => {
                saw(|it| matches!(it, Seen::Replied { reply: Reply::Poisoned, .. }))
            }
            Choice::Coordinator(Coordinate::FollowUp) => {
                world.coordinator.engine.as_ref().is_some_and(|engine| !engine.is_idle())
            }
            Choice::Coordinator(Coordinate::Write) => world.coordinator.batch.is_some(),
            Choice::Put(_, PutEnd::Ok) | Choice::Land(_) => {
                saw(|it| matches!(it, Seen::Landed { .. }))
            }
            Choice::Put(..) | Choice::Get(..) | Choice::Check(_, false) => {
                open_shards(world, choice) < self.before.open_shards
            }
            _ => {
                let shown = saw(|it| {
                    matches!(
                        it,
                        Seen::Confirmed { .. }
                            | Seen::SourceReused { .. }
                            | Seen::DestinationReused { .. }
                    )
                });
                shown || tally(world) != self.before.tally
            }
        }
    }

    /// Remembers the command that a process just sent by itself. One that has to wait for its
    /// window is not followed.
    fn tells(&mut self, world: &World, kind: Kind, choice: Choice) {
        let process = match choice {
            Choice::Tell(process, _) => process,
            Choice::Publish(job, _) => job.process,
            _ => return,
        };
        let process = &world.processes[usize::from(process)];
        let asked = process.asked.last().filter(|_| process.queued.is_empty());
        self.told.extend(asked.map(|asked| (asked.op, kind)));
    }

    fn submitted(
        &mut self,
        world: &World,
        ticket: Ticket,
        input: &Input,
        count: &mut impl FnMut(Cell),
    ) {
        let again = self.before.again.take();
        self.waits.push(Waits { ticket, verbs: Verbs::of(&input.request), again });
        if let Request::Command(_, Command::Settle { pin, evidence: Evidence::InDoubt, .. }) =
            &input.request
        {
            for it in world.store.moves.iter().filter(|it| it.pin == *pin) {
                if let Some(kind) = self.in_doubt.remove(&it.id) {
                    count(Cell::Effect(kind));
                }
            }
        }
    }

    fn replied(&mut self, ticket: Ticket, reply: &Reply, count: &mut impl FnMut(Cell)) {
        let Some(place) = self.waits.iter().position(|it| it.ticket == ticket) else { return };
        let Waits { verbs, again, .. } = self.waits.remove(place);
        if let Some(kind) = again.filter(|_| *reply != Reply::Poisoned) {
            count(Cell::Effect(kind));
        }
        match (reply, verbs) {
            (Reply::Command(answer), Verbs::One(verb, op)) => {
                self.answered(verb, Some(op), answer, count);
            }
            (Reply::Command(answer), Verbs::Register) => {
                self.answered(names::REGISTER, None, answer, count);
            }
            (Reply::Command(answer), Verbs::List(_) | Verbs::Query) => {
                self.answered(names::LIST, None, answer, count);
            }
            (Reply::List(answers), Verbs::List(verbs)) => {
                count(Cell::Effect(Kind::SendList));
                for ((verb, op), answer) in verbs.into_iter().zip(answers) {
                    match answer {
                        Some(answer) => self.answered(verb, Some(op), answer, count),
                        None => count(Cell::Answer(names::LIST, names::NOT_TRIED)),
                    }
                }
            }
            (Reply::Blockers(Some(found)), _) => {
                count(Cell::Effect(Kind::Look));
                found.blockers.iter().for_each(|it| count(Cell::Blocker(it.name())));
            }
            (Reply::Audit(verdicts), _) => {
                if verdicts.contains(&Verdict::Stray) {
                    count(Cell::Effect(Kind::Audit));
                }
                let is_found = |name: &&str| verdicts.iter().any(|it| names::verdict(*it) == *name);
                let found = names::VERDICTS.into_iter().filter(is_found);
                found.for_each(|name| count(Cell::Verdict(name)));
            }
            (Reply::Poisoned, _) => count(Cell::Answer(ANY, names::POISONED)),
            (
                Reply::List(_)
                | Reply::Job(_)
                | Reply::Gauges(_)
                | Reply::Blockers(None)
                | Reply::WrongEpoch,
                _,
            ) => {}
        }
    }

    /// An answer to one command, or to a registration.
    fn answered(
        &mut self,
        verb: &'static str,
        op: Option<OpId>,
        answer: &Result<Outcome, Rejection>,
        count: &mut impl FnMut(Cell),
    ) {
        let told = op.and_then(|op| self.told.remove(&op));
        match answer {
            Ok(outcome) => {
                let is_empty = matches!(outcome, Outcome::Collected { objects: 0, .. });
                if let Some(told) = told.filter(|_| !is_empty) {
                    count(Cell::Effect(told));
                }
                heard(outcome, count);
                count(Cell::Answer(verb, names::answer(outcome)));
            }
            Err(rejection) => {
                match rejection {
                    Rejection::WrongEpoch => count(Cell::Effect(Kind::Misaddress)),
                    Rejection::Malformed(_) => count(Cell::Effect(Kind::Malformed)),
                    Rejection::NotOperator => count(Cell::Effect(Kind::Pretend)),
                    Rejection::OpConflict => count(Cell::Effect(Kind::Conflict)),
                    Rejection::UnknownIncarnation
                    | Rejection::UnknownPin
                    | Rejection::UnknownObject
                    | Rejection::NotCollecting
                    | Rejection::ShardNotClaimed { .. } => count(Cell::Effect(Kind::Mistake)),
                    _ => {}
                }
                let refusal = names::refusal(rejection);
                count(Cell::Answer(row_of(verb, refusal), refusal));
            }
        }
    }
}

/// Answers that only one kind of choice leads to.
fn heard(outcome: &Outcome, count: &mut impl FnMut(Cell)) {
    let kind = match outcome {
        Outcome::Registered { .. } => Kind::Register,
        Outcome::Prepared { .. } | Outcome::AlreadyPublished { .. } => Kind::Save,
        Outcome::Pinned(answers) if answers.iter().next().is_some() => Kind::Load,
        _ => return,
    };
    count(Cell::Effect(kind));
}

/// A record that became durable.
fn synced(event: &Event, count: &mut impl FnMut(Cell)) {
    match event {
        Event::Registered { .. } => count(Cell::Effect(Kind::Deliver)),
        Event::Decided { change, .. } => {
            count(Cell::Effect(Kind::Deliver));
            if let Change::Deleted { outcomes, .. } = change {
                let has = |it| outcomes.iter().any(|outcome| outcome.1 == it);
                if has(DeleteOutcome::Refused) {
                    count(Cell::Effect(Kind::DeleteRefused));
                }
                if has(DeleteOutcome::Unknown) {
                    count(Cell::Effect(Kind::DeleteUnknown));
                }
            }
        }
        Event::FollowedUp(follow_up) => {
            count(Cell::FollowUp(names::follow_up(follow_up)));
        }
        Event::Genesis(_) | Event::Recovered => {}
    }
}
