//! Commands that a process sends by itself, and what it knows about their truth.

use pinfold_core::catalog::{Command, Fate};
use pinfold_core::engine::Request;
use pinfold_core::id::{CheckpointId, Generation, Incarnation, ObjectId, OpId, PinId, ShardIndex};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Loss, LostObject};

use super::choice::{Act, JobId, Mistake, PinName, Publishes};
use super::network::Asks;
use super::{Waiting, World};
use crate::seen::Seen;

/// An incarnation, and a generation, that nobody is given.
const NEVER: u64 = 1 << 48;

impl World {
    /// A process sends a command by itself.
    pub(super) fn tell(&mut self, index: u8, act: Act, seen: &mut Vec<Seen>) {
        let is_operator = self.setup.is_operator(index);
        match act {
            Act::Report(number) => return self.report(index, number),
            Act::Conflict => return self.conflict(index, seen),
            Act::Mistake(mistake @ (Mistake::Incarnation | Mistake::NotHeld(_))) => {
                return self.mistaken_at_once(index, mistake, seen);
            }
            Act::Settle(pin, evidence)
                if is_operator && evidence.is_final() && !self.is_proven(pin) =>
            {
                self.assert_falsely(pin, seen);
            }
            Act::Fence(process, incarnation)
                if is_operator && !self.is_over(process, incarnation) =>
            {
                let owner = self.owner(process);
                let incarnation = Incarnation(incarnation);
                seen.push(Seen::FalseProof { owner, incarnation });
            }
            _ => {}
        }
        if let Some(command) = self.command_of(act) {
            self.ask(index, command, None);
        }
    }

    fn command_of(&self, act: Act) -> Option<Command> {
        Some(match act {
            Act::Doubt(pin, doubtful) => Command::Doubt { pin: self.pin_id(pin), doubtful },
            Act::Collect(limit) => Command::Collect { limit },
            Act::Settle(pin, evidence) => {
                Command::Settle { pin: self.pin_id(pin), shard: None, evidence }
            }
            Act::Release(pin) => Command::Release { pin: self.pin_id(pin) },
            Act::Configure(which) => Command::Configure {
                policy: self.setup.policies[usize::from(which & 1)],
                limits: self.setup.limits,
            },
            Act::Forget(conversation) => {
                Command::Forget { conversation: super::turn_key(conversation, 0).conversation }
            }
            Act::Drop(generation) => Command::Drop { checkpoint: self.checkpoint(generation)? },
            Act::Lost(generation) => Command::Lost {
                checkpoint: self.checkpoint(generation)?,
                object: LostObject::Private(ObjectId { shard: ShardIndex(0), index: 0 }),
                why: Loss::Absent,
            },
            Act::Fence(process, incarnation) => {
                Command::Fence { owner: self.owner(process), incarnation: Incarnation(incarnation) }
            }
            Act::Retire(process) => Command::Retire { owner: self.owner(process) },
            Act::Malformed => Command::Collect { limit: 0 },
            Act::Mistake(mistake) => self.mistaken(mistake)?,
            Act::Report(_) | Act::Conflict => return None,
        })
    }

    /// The command of who is wrong about something. Should it have become true on its way, it says
    /// nothing that harms.
    fn mistaken(&self, mistake: Mistake) -> Option<Command> {
        let owner = self.setup.owner(0);
        // No operation has the number 0.
        let op = OpId { owner, incarnation: Incarnation(1), sequence: 0 };
        let nobody = PinId { op, place: 0 };
        let here = ObjectId { shard: ShardIndex(0), index: 0 };
        let elsewhere = ObjectId { shard: ShardIndex(self.setup.shards.into()), index: 0 };
        let settle = |pin, shard, evidence| Command::Settle { pin, shard, evidence };
        let unknown = |checkpoint, object| Command::Deleted {
            checkpoint,
            outcomes: vec![(object, DeleteOutcome::Unknown)],
        };
        let lost = |checkpoint, object| Command::Lost {
            checkpoint,
            object: LostObject::Private(object),
            why: Loss::Absent,
        };
        Some(match mistake {
            Mistake::Publish => Command::Publish { pin: nobody, turn: None },
            Mistake::Settle => settle(nobody, None, Evidence::InDoubt),
            Mistake::Release => Command::Release { pin: nobody },
            Mistake::Doubt => Command::Doubt { pin: nobody, doubtful: true },
            Mistake::Foreign(pin) => Command::Publish { pin: self.pin_id(pin), turn: None },
            Mistake::Shard(pin) => {
                settle(self.pin_id(pin), Some(elsewhere.shard), Evidence::InDoubt)
            }
            Mistake::Active(pin) => settle(self.pin_id(pin), None, Evidence::Active),
            Mistake::Lost(generation) => lost(self.checkpoint(generation)?, elsewhere),
            Mistake::NotHeld(generation) => lost(self.checkpoint(generation)?, here),
            Mistake::Deleted(generation) => unknown(self.checkpoint(generation)?, here),
            Mistake::DeletedOther(generation) => unknown(self.checkpoint(generation)?, elsewhere),
            Mistake::DeletedNothing => {
                let endpoint = self.library.manifest(0, 0).endpoint().id();
                let generation = Generation(NEVER);
                unknown(CheckpointId { endpoint, generation }, here)
            }
            Mistake::Fence(process) => {
                let owner = self.owner(process);
                Command::Fence { owner, incarnation: Incarnation(NEVER) }
            }
            Mistake::Incarnation => Command::Collect { limit: 1 },
        })
    }

    /// The checkpoint of a generation that has a record on disk.
    pub(crate) fn checkpoint(&self, generation: Generation) -> Option<CheckpointId> {
        match self.coordinator.disk.catalog.fate(generation) {
            Fate::Counted(id) => Some(id),
            Fate::NeverMinted | Fate::Collected => None,
        }
    }

    /// The pin that a name stands for.
    #[must_use]
    pub fn pin_id(&self, name: PinName) -> PinId {
        let PinName { process, incarnation, sequence, place } = name;
        let incarnation = Incarnation(incarnation);
        PinId { op: OpId { owner: self.owner(process), incarnation, sequence }, place }
    }

    /// The name of a pin.
    #[must_use]
    pub fn pin_name(&self, pin: PinId) -> Option<PinName> {
        let OpId { owner, incarnation: Incarnation(incarnation), sequence } = pin.op;
        let is_it = |process: &u8| self.owner(*process) == owner;
        let process = (0..self.setup.processes()).find(is_it)?;
        Some(PinName { process, incarnation, sequence, place: pin.place })
    }

    /// The life of an incarnation is over, and nothing that it began touches memory any more.
    pub(super) fn is_over(&self, process: u8, incarnation: u64) -> bool {
        let life = self.lives.get(&incarnation).filter(|life| life.0 == process);
        let ended = life.is_some_and(|(_, life)| self.processes[usize::from(process)].life > *life);
        let owner = self.owner(process);
        let moves =
            |pin: PinId| pin.op.owner == owner && pin.op.incarnation == Incarnation(incarnation);
        ended && !self.store.moves.iter().any(|it| it.exposed && moves(it.pin))
    }

    /// Nothing touches the memory of a pin's transfer any more, and nothing will.
    pub(super) fn is_proven(&self, name: PinName) -> bool {
        let pin = self.pin_id(name);
        let process = &self.processes[usize::from(name.process)];
        let lives_on = process.incarnation == Some(pin.op.incarnation)
            || self.lives.get(&name.incarnation).is_none_or(|life| process.life <= life.1);
        let is_held = process.jobs.iter().any(|job| job.pins.iter().any(|held| held.0 == pin))
            || process.asked.iter().any(|asked| asked.op == pin.op);
        let touched = self.store.moves.iter().any(|it| it.exposed && it.pin == pin);
        !(lives_on && is_held || touched)
    }

    fn assert_falsely(&self, name: PinName, seen: &mut Vec<Seen>) {
        let owner = self.owner(name.process);
        seen.push(Seen::FalseProof { owner, incarnation: Incarnation(name.incarnation) });
    }

    /// Reports what became of delete work so far; the rest stays in somebody's hands.
    fn report(&mut self, index: u8, number: u16) {
        let place = self.store.work.iter().position(|work| work.number == number);
        let Some(place) = place else { return };
        let work = &mut self.store.work[place];
        let outcomes = core::mem::take(&mut work.outcomes);
        work.objects.drain(..outcomes.len());
        let checkpoint = work.checkpoint;
        if work.objects.is_empty() {
            self.store.work.remove(place);
        }
        self.ask(index, Command::Deleted { checkpoint, outcomes }, None);
    }

    /// Somebody uses a process' last operation for other content. Whatever comes of it, the process
    /// hears nothing.
    fn conflict(&mut self, index: u8, seen: &mut Vec<Seen>) {
        let process = &self.processes[usize::from(index)];
        let Some(incarnation) = process.incarnation else { return };
        let sequence = process.next.saturating_sub(1);
        let op = OpId { owner: process.owner, incarnation, sequence };
        let mut sent = self.arrived.iter().map(|(_, asks)| asks);
        let same = sent.find_map(|asks| match asks {
            Asks::Command(other, command) if *other == op => Some(altered(command)),
            Asks::Register(_) | Asks::Command(..) | Asks::List(_) => None,
        });
        let other = same.unwrap_or(Command::Collect { limit: 7 });
        let request = Request::Command(op, other);
        self.submit(Waiting::Nobody, request, false, seen);
    }

    /// What could become true on its way arrives at once; whatever comes of it, the process hears
    /// nothing.
    fn mistaken_at_once(&mut self, index: u8, mistake: Mistake, seen: &mut Vec<Seen>) {
        let owner = self.owner(index);
        let (incarnation, sequence) = if mistake == Mistake::Incarnation {
            (Incarnation(NEVER), 1)
        } else {
            let process = &mut self.processes[usize::from(index)];
            let Some(incarnation) = process.incarnation else { return };
            process.next += 1;
            (incarnation, process.next - 1)
        };
        let Some(command) = self.mistaken(mistake) else { return };
        let op = OpId { owner, incarnation, sequence };
        self.submit(Waiting::Nobody, Request::Command(op, command), false, seen);
    }

    /// A worker publishes one more turn, or the mark, with a transfer's pin.
    pub(super) fn publish(&mut self, job: JobId, publishes: Publishes) {
        let process = &self.processes[usize::from(job.process)];
        let Some(pin) = process.job(job.number).and_then(super::job::Job::pin) else { return };
        let turn = match publishes {
            Publishes::Turn(conversation, turn) => Some(super::turn_key(conversation, turn)),
            Publishes::Nothing | Publishes::Unscoped => None,
        };
        self.ask(job.process, Command::Publish { pin, turn }, None);
    }
}

/// A command that differs from another one in a single part.
fn altered(command: &Command) -> Command {
    match command.clone() {
        Command::Publish { pin, turn: Some(_) } => Command::Publish { pin, turn: None },
        Command::Publish { pin, turn: None } => {
            Command::Publish { pin, turn: Some(super::turn_key(0, 0)) }
        }
        Command::Settle { pin, shard: None, evidence } => {
            Command::Settle { pin, shard: Some(ShardIndex(0)), evidence }
        }
        Command::Settle { pin, shard: Some(_), evidence } => {
            Command::Settle { pin, shard: None, evidence }
        }
        Command::Deleted { checkpoint, mut outcomes } => {
            for (_, outcome) in &mut outcomes {
                let was_gone = *outcome == DeleteOutcome::Gone;
                *outcome = if was_gone { DeleteOutcome::Refused } else { DeleteOutcome::Gone };
            }
            Command::Deleted { checkpoint, outcomes }
        }
        Command::Pin { candidates, limit } => {
            Command::Pin { candidates, limit: if limit == 1 { 2 } else { 1 } }
        }
        Command::Doubt { pin, doubtful } => Command::Doubt { pin, doubtful: !doubtful },
        Command::Collect { limit } => Command::Collect { limit: limit.saturating_add(1) },
        Command::Prepare(_)
        | Command::Release { .. }
        | Command::Lost { .. }
        | Command::Configure { .. }
        | Command::Forget { .. }
        | Command::Drop { .. }
        | Command::Fence { .. }
        | Command::Retire { .. } => Command::Collect { limit: 7 },
    }
}
