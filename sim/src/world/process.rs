//! Processes: workers and operators, their lives, and what they asked and were not answered.

use std::collections::VecDeque;

use pinfold_core::catalog::{Command, PROTOCOL_VERSION, Register, Role};
use pinfold_core::id::{Id, Incarnation, OpId, OwnerId, StartId};
use pinfold_core::outcome::{Outcome, Rejection};

use super::World;
use super::choice::{About, JobId};
use super::job::Job;
use super::network::{Asks, Says};
use crate::seen::Seen;

/// A command that was sent and not answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asked {
    /// Its operation.
    pub op: OpId,
    /// Its content.
    pub command: Command,
    /// The transfer that waits for it.
    pub job: Option<JobId>,
}

/// One process. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// The owner that it is.
    pub owner: OwnerId,
    /// What it may do.
    pub role: Role,
    /// How often it began to live.
    pub life: u16,
    /// The incarnation that it believes to follow.
    pub after: Incarnation,
    /// Its incarnation, once it is registered.
    pub incarnation: Option<Incarnation>,
    /// A limit did not let it register.
    pub refused: bool,
    /// The next operation's number.
    pub next: u64,
    /// What waits for an answer, by number.
    pub asked: Vec<Asked>,
    /// What it will send once fewer commands are unanswered.
    pub queued: VecDeque<(Command, Option<JobId>)>,
    /// How many transfers it began, over all lives.
    pub begun: u16,
    /// Its transfers.
    pub jobs: Vec<Job>,
}

impl Process {
    pub(super) fn new(owner: OwnerId, role: Role) -> Self {
        Self {
            owner,
            role,
            life: 1,
            after: Incarnation(0),
            incarnation: None,
            refused: false,
            next: 1,
            asked: Vec::new(),
            queued: VecDeque::new(),
            begun: 0,
            jobs: Vec::new(),
        }
    }

    /// The random value of this life; [`life_of`] takes the life out of it again.
    fn start(&self) -> StartId {
        let [high, low] = [self.owner.as_bytes()[0], self.owner.as_bytes()[1]];
        let owner = u128::from(high) << 8 | u128::from(low);
        Id::from_u128(owner << 64 | u128::from(self.life))
    }

    /// The number that it may use next, unless too much is unanswered: everything up to W before it
    /// must be answered.
    #[must_use]
    pub fn may_ask(&self, window: u32) -> bool {
        let oldest = self.asked.first().map_or(self.next, |asked| asked.op.sequence);
        self.incarnation.is_some() && self.next < oldest.saturating_add(u64::from(window))
    }

    /// The transfer of this number.
    #[must_use]
    pub fn job(&self, number: u16) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id.number == number)
    }
}

/// The life of a process that a start is of.
pub(super) fn life_of(start: StartId) -> u16 {
    u16::from_be_bytes([start.as_bytes()[14], start.as_bytes()[15]])
}

impl World {
    /// A process sends its registration.
    pub(super) fn register(&mut self, index: u8) {
        let process = &self.processes[usize::from(index)];
        let register = Register {
            owner: process.owner,
            role: process.role,
            after: process.after,
            start: process.start(),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        let about = About::Register { process: index, life: process.life };
        self.requests.send(about, Asks::Register(register));
    }

    /// A process dies, and comes back with nothing.
    pub(super) fn die(&mut self, index: u8, seen: &mut Vec<Seen>) {
        let process = &mut self.processes[usize::from(index)];
        let (owner, incarnation) = (process.owner, process.incarnation);
        let Process { role, life, begun, .. } = **process;
        **process = Process { life: life + 1, begun, ..Process::new(owner, role) };
        seen.push(Seen::OwnerDied { owner, incarnation });
        // Nobody waits for what it had begun; the store goes on with its moves.
        self.store.checks.retain(|check| check.job.process != index);
    }

    /// A process sends a command under its next number, as soon as its window allows.
    pub(super) fn ask(&mut self, index: u8, command: Command, job: Option<JobId>) {
        self.processes[usize::from(index)].queued.push_back((command, job));
        self.flush(index);
    }

    fn flush(&mut self, index: u8) {
        let window = self.setup.limits.unanswered + self.setup.overrun;
        let process = &mut self.processes[usize::from(index)];
        while process.may_ask(window) {
            let (Some(incarnation), Some((command, job))) =
                (process.incarnation, process.queued.pop_front())
            else {
                return;
            };
            let op = OpId { owner: process.owner, incarnation, sequence: process.next };
            process.next += 1;
            process.asked.push(Asked { op, command: command.clone(), job });
            let about =
                About::Command { process: index, life: process.life, sequence: op.sequence };
            self.requests.send(about, Asks::Command(op, command));
        }
    }

    /// A process sends a command that was not answered once more.
    pub(super) fn resend(&mut self, about: About) {
        match about {
            About::Register { process, .. } => self.register(process),
            About::Command { process, life, sequence } => {
                let it = &self.processes[usize::from(process)];
                let asked = it.asked.iter().find(|asked| asked.op.sequence == sequence);
                if let (Some(asked), true) = (asked, it.life == life) {
                    let asks = Asks::Command(asked.op, asked.command.clone());
                    self.requests.send(about, asks);
                }
            }
            About::List { process, life, sequences } => {
                let it = &self.processes[usize::from(process)];
                let asked = |sequence| {
                    let mut all = it.asked.iter();
                    let found = all.find(|asked| asked.op.sequence == sequence)?;
                    Some((found.op, found.command.clone()))
                };
                let [first, second] = sequences.map(asked);
                if let (Some(first), Some(second), true) = (first, second, it.life == life) {
                    self.requests.send(about, Asks::List([first, second]));
                }
            }
        }
    }

    /// An answer reaches a process.
    pub(super) fn hear(&mut self, about: About, says: Says, seen: &mut Vec<Seen>) {
        let index = about.process();
        if self.processes[usize::from(index)].life != about.life() {
            return;
        }
        match (about, says) {
            (_, Says::Poisoned) => {}
            (About::Register { .. }, Says::One(answer)) => self.registered(index, answer),
            (About::Register { .. }, Says::Each(_)) => {}
            (About::Command { sequence, .. }, Says::One(answer)) => {
                self.answered(index, sequence, answer, seen);
            }
            (About::Command { .. }, Says::Each(_)) | (About::List { .. }, Says::One(_)) => {}
            (About::List { sequences, .. }, Says::Each(answers)) => {
                for (sequence, answer) in sequences.into_iter().zip(answers) {
                    if let Some(answer) = answer {
                        self.answered(index, sequence, answer, seen);
                    }
                }
            }
        }
    }

    fn registered(&mut self, index: u8, answer: Result<Outcome, Rejection>) {
        let process = &mut self.processes[usize::from(index)];
        match answer {
            Ok(Outcome::Registered { incarnation }) if process.incarnation.is_none() => {
                process.incarnation = Some(incarnation);
                process.after = incarnation;
            }
            Err(Rejection::StaleIncarnation { current }) if process.incarnation.is_none() => {
                process.after = current;
            }
            // This life was registered and barred before it heard of it: it begins anew.
            Err(Rejection::Fenced) if process.incarnation.is_none() => process.life += 1,
            Err(Rejection::LimitExceeded { .. }) => process.refused = true,
            Ok(_) | Err(_) => {}
        }
    }

    fn answered(
        &mut self,
        index: u8,
        sequence: u64,
        answer: Result<Outcome, Rejection>,
        seen: &mut Vec<Seen>,
    ) {
        let process = &mut self.processes[usize::from(index)];
        let place = process.asked.iter().position(|asked| asked.op.sequence == sequence);
        let Some(place) = place else { return };
        // It went astray, and nothing was decided about it.
        if answer == Err(Rejection::WrongEpoch) {
            return;
        }
        let asked = process.asked.remove(place);
        self.flush(index);
        if let Some(job) = asked.job {
            self.job_answered(job, asked.op, answer, seen);
        }
    }
}
