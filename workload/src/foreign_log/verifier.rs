//! One log, line by line: what each line says, to the engine, the rules and the judges.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::catalog::Register;
use pinfold_core::engine::{Effect, Input, Query, Reply, Request, Ticket};
use pinfold_core::id::{CheckpointId, Epoch, PinId};
use pinfold_core::invariant::Invariant;
use pinfold_core::manifest::ObjectName;
use pinfold_core::outcome::DeleteOutcome;
use pinfold_host::log::{Answer, Bytes, Cause, Event, Head, Held, Line, PutResult, Way};
use pinfold_sim::oracle::Oracle;
use pinfold_sim::seen::{self, MoveId, Seen};
use pinfold_sim::spec::Lockstep;
use pinfold_sim::store::{Content, StoreKey};
use pinfold_sim::violation::Violation;

use super::Judge;
use super::blame::blame;
use super::coordinator::{Breach, Coordinator};
use super::keys::Keys;
use super::read::LineFault;
use super::report::{Counts, Finding, Gaps, Reason, Report, Verdict};
use super::rules::Rules;

/// Why a log is not read on.
pub(super) enum Stop {
    /// The line is none that any host may write here.
    Fault(LineFault),
    /// The line is none that a correct run allows.
    Breach { invariant: Invariant, judge: &'static str, what: String, expected: Option<String> },
}

/// See the [module](self).
pub(super) struct Verifier {
    head: Head,
    /// The number of the last line; none before the first.
    last: Option<u64>,
    /// Nothing is missing so far.
    whole: bool,
    /// None once its state cannot be known.
    coordinator: Option<Coordinator>,
    judges: Vec<Box<dyn Judge>>,
    rules: Rules,
    keys: Keys,
    inputs: BTreeMap<u64, Asked>,
    life: Life,
    moves: BTreeMap<u64, Move>,
    /// The numbers of all moves.
    used: BTreeSet<u64>,
    counts: Counts,
    pub(super) gaps: Gaps,
}

/// An input of the log.
enum Asked {
    Waiting(Request),
    Answered,
    /// Its coordinator crashed first.
    Lost,
}

/// How the coordinator is, as far as the log tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Runs,
    /// An append failed: nobody is answered any more.
    Poisoned,
    Crashed,
}

/// A move under way.
struct Move {
    id: MoveId,
    way: Way,
    key: StoreKey,
    /// Its beginning was shown to all judges.
    is_shown: bool,
}

/// The judges of a log from genesis, beside the engine and the rules.
fn judges(head: &Head) -> Vec<Box<dyn Judge>> {
    let mut judges: Vec<Box<dyn Judge>> = vec![Box::new(Lockstep::new(&head.genesis))];
    if head.moves {
        judges.push(Box::new(Oracle::new(&head.genesis)));
    }
    judges
}

impl Judge for Lockstep {
    fn see(&mut self, seen: &Seen) -> Result<(), Violation> {
        self.see(seen)
    }
}

impl Judge for Oracle {
    fn see(&mut self, seen: &Seen) -> Result<(), Violation> {
        self.see(seen)
    }
}

impl Verifier {
    pub(super) fn new(head: Head) -> Result<Self, LineFault> {
        let (whole, genesis) = (head.from_genesis, head.genesis.clone());
        let (rules, keys) = (Rules::new(genesis.epoch), Keys::new(genesis.clone()));
        let coordinator = whole.then(|| Coordinator::new(genesis)).transpose();
        Ok(Self {
            last: whole.then_some(0),
            whole,
            coordinator: coordinator.map_err(LineFault::Job)?,
            judges: if whole { judges(&head) } else { Vec::new() },
            rules,
            keys,
            inputs: BTreeMap::new(),
            life: Life::Runs,
            moves: BTreeMap::new(),
            used: BTreeSet::new(),
            counts: Counts { lines: 1, ..Counts::default() },
            gaps: Gaps::default(),
            head,
        })
    }

    /// What was found, after the last line.
    pub(super) fn finish(mut self, finding: Option<Finding>) -> Report {
        let waiting = |asked: &&Asked| !matches!(asked, Asked::Answered);
        let unanswered = self.inputs.values().filter(waiting).count();
        self.counts.unanswered = u64::try_from(unanswered).unwrap_or(u64::MAX);
        let unjudged = self.gaps.into_rows();
        let verdict = match (&finding, unjudged.as_slice()) {
            (Some(_), _) => Verdict::Violated,
            (None, []) => Verdict::Held,
            (None, [..]) => Verdict::Incomplete,
        };
        Report {
            verdict,
            finding,
            unjudged,
            from_genesis: self.head.from_genesis,
            moves_logged: self.head.moves,
            counts: self.counts,
        }
    }

    /// Takes the next line.
    pub(super) fn take(&mut self, line: Line) -> Result<(), Stop> {
        let Line { n, event } = line;
        self.counts.lines += 1;
        let expected = self.last.map_or(1, |last| last.saturating_add(1));
        if n < expected {
            return fault(LineFault::Number { expected, found: n });
        }
        if self.last.is_some() && n > expected {
            self.gaps.add(Reason::Missing, n - expected);
            self.lose_state();
            self.rules.miss();
            // Whether it came back may stand in the lines that are missing.
            self.life = Life::Runs;
        }
        self.last = Some(n);
        match event {
            Event::Register { epoch, owner, role, after, start, version, expected_policy } => {
                let register = Register { owner, role, after, start, version, expected_policy };
                self.take_input(n, epoch, Request::Register(register))
            }
            Event::Command { epoch, op, command } => {
                self.take_input(n, epoch, Request::Command(op, command))
            }
            Event::List { epoch, commands } => {
                let commands = commands.into_iter().map(|one| (one.op, one.command)).collect();
                self.take_input(n, epoch, Request::List(commands))
            }
            Event::Query { epoch, query } => self.take_input(n, epoch, Request::Query(query)),
            Event::Idle => self.idle(),
            Event::Reply { to, answer } => self.reply(n, to, answer),
            Event::Work { by, checkpoint, objects } => {
                self.hand_out(&Effect::Delete { by, checkpoint, objects })
            }
            Event::Crash => self.crash(),
            Event::Recovered { records } => self.recover(records),
            other => self.take_beside(other),
        }
    }

    /// Takes what happened beside the coordinator.
    fn take_beside(&mut self, event: Event) -> Result<(), Stop> {
        match event {
            Event::Began { number, way, key, pin } => self.begin(number, way, &key, pin),
            Event::Put { number, outcome } => self.put(number, outcome),
            Event::Retired { number } => self.retire(number),
            Event::Confirmed { pin, key } => {
                let key = self.keys.named(&key);
                self.show(&Seen::Confirmed { pin, key })
            }
            Event::Delete { key, why, outcome } => self.delete(&key, why, outcome),
            Event::StoreLost { key } => {
                let key = self.keys.named(&key);
                self.show(&Seen::StoreLost { key })
            }
            Event::SourceReused { pin, shard } => self.show(&Seen::SourceReused { pin, shard }),
            Event::DestinationReused { pin } => self.show(&Seen::DestinationReused { pin }),
            Event::Adopted { pin, checkpoint, memory } => self.adopt(pin, checkpoint, &memory),
            Event::OwnerDied { owner, incarnation } => {
                self.show(&Seen::OwnerDied { owner, incarnation })
            }
            Event::Listed { to } => self.listed(to),
            Event::Register { .. }
            | Event::Command { .. }
            | Event::List { .. }
            | Event::Query { .. }
            | Event::Idle
            | Event::Reply { .. }
            | Event::Work { .. }
            | Event::Crash
            | Event::Recovered { .. } => Ok(()),
        }
    }

    fn take_input(&mut self, n: u64, epoch: Epoch, request: Request) -> Result<(), Stop> {
        self.counts.inputs += 1;
        self.counts.commands += match &request {
            Request::Command(..) => 1,
            Request::List(commands) => u64::try_from(commands.len()).unwrap_or(u64::MAX),
            Request::Register(_) | Request::Query(_) => 0,
        };
        self.inputs.insert(n, Asked::Waiting(request.clone()));
        match self.life {
            Life::Crashed => return fault(LineFault::Gone),
            // It decides nothing any more.
            Life::Poisoned => return Ok(()),
            Life::Runs => {}
        }
        let ticket = Ticket(n);
        let input = Input { ticket, epoch, request };
        self.show(&Seen::Submitted { ticket, input: input.clone() })?;
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.take(input);
        }
        Ok(())
    }

    fn idle(&mut self) -> Result<(), Stop> {
        match self.life {
            Life::Crashed => return fault(LineFault::Gone),
            Life::Poisoned => return Ok(()),
            Life::Runs => {}
        }
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.idle();
        }
        self.show(&Seen::Idled)
    }

    fn reply(&mut self, n: u64, to: u64, answer: Answer) -> Result<(), Stop> {
        self.counts.replies += 1;
        if to >= n {
            let what = format!("line {to} was answered before it was asked");
            return breach(Invariant::I10, "log", what, None);
        }
        let request = match self.inputs.insert(to, Asked::Answered) {
            Some(Asked::Waiting(request)) => request,
            Some(Asked::Answered) => {
                let what = format!("line {to} was answered before");
                return breach(Invariant::I14, "log", what, None);
            }
            Some(Asked::Lost) => return fault(LineFault::NoInput { to }),
            None if self.whole => return fault(LineFault::NoInput { to }),
            None => {
                self.gaps.add(Reason::NoInput, 1);
                return Ok(());
            }
        };
        let ticket = Ticket(to);
        match answer.into_reply() {
            None => {
                self.gaps.add(Reason::UnknownAnswer, 1);
                Ok(())
            }
            Some(Reply::Poisoned) => {
                self.life = Life::Poisoned;
                self.show(&Seen::Replied { ticket, reply: Reply::Poisoned })
            }
            Some(reply) => self.compare(ticket, &request, &reply),
        }
    }

    fn compare(&mut self, ticket: Ticket, request: &Request, reply: &Reply) -> Result<(), Stop> {
        match self.life {
            Life::Runs => {}
            Life::Crashed => return fault(LineFault::Gone),
            Life::Poisoned => {
                let what = "an answer left after an append had failed".to_string();
                return breach(Invariant::I10, "log", what, None);
            }
        }
        let mut expected = None;
        if let Some(coordinator) = &mut self.coordinator {
            expected = coordinator.expected(ticket);
            if let Some(expected) = &expected {
                coordinator.answered(expected);
            }
            let unlogged = coordinator.unlogged_work(ticket);
            self.show_synced()?;
            for effect in unlogged {
                self.gaps.add(Reason::UnloggedWork, 1);
                self.show(&Seen::HandedOut { effect })?;
            }
        }
        let seen = Seen::Replied { ticket, reply: reply.clone() };
        let ruled = self.rules.see(&seen).map_err(by_rules);
        let Some(expected) = expected else {
            self.gaps.add(Reason::NoState, 1);
            return ruled;
        };
        self.counts.compared += 1;
        if expected.reply == *reply {
            return ruled.and_then(|()| self.show_judges(&seen));
        }
        let invariant = blame(request, reply, &expected.reply);
        let expected = serde_json::to_string(&Answer::from(expected.reply)).ok();
        match ruled {
            Err(Stop::Breach { invariant, judge, what, .. }) => {
                breach(invariant, judge, what, expected)
            }
            Err(Stop::Fault(_)) | Ok(()) => {
                let what = "the answer is not the one that this input is given here".to_string();
                breach(invariant, "engine", what, expected)
            }
        }
    }

    fn hand_out(&mut self, effect: &Effect) -> Result<(), Stop> {
        match self.life {
            Life::Crashed => return fault(LineFault::Gone),
            Life::Runs | Life::Poisoned => {}
        }
        if let Some(coordinator) = &mut self.coordinator
            && let Err(next) = coordinator.hand_out(effect)
        {
            let what = "this work is not what the engine hands out next".to_string();
            let next = next.map(Event::handed_out);
            let expected = next.and_then(|next| serde_json::to_string(&next).ok());
            return breach(Invariant::I3, "engine", what, expected);
        }
        self.show_synced()?;
        self.show(&Seen::HandedOut { effect: effect.clone() })
    }

    fn crash(&mut self) -> Result<(), Stop> {
        self.counts.crashes += 1;
        if self.life == Life::Crashed {
            return fault(LineFault::Gone);
        }
        self.life = Life::Crashed;
        for asked in self.inputs.values_mut() {
            if let Asked::Waiting(_) = asked {
                *asked = Asked::Lost;
            }
        }
        Ok(())
    }

    fn recover(&mut self, records: Option<u64>) -> Result<(), Stop> {
        if self.life != Life::Crashed && self.whole {
            return fault(LineFault::NotGone);
        }
        self.life = Life::Runs;
        let Some(coordinator) = &mut self.coordinator else {
            return self.show(&Seen::Crashed).and_then(|()| self.show(&Seen::Recovered));
        };
        let Some(records) = records.or(coordinator.certain_records()) else {
            self.gaps.add(Reason::UnsaidRecords, 1);
            self.lose_state();
            return self.recover(None);
        };
        let events = coordinator.recover(records)?;
        if !events.is_empty() {
            self.show(&Seen::Synced { events })?;
        }
        self.show(&Seen::Crashed)?;
        self.show(&Seen::Recovered)
    }

    fn begin(&mut self, number: u64, way: Way, key: &str, pin: Option<PinId>) -> Result<(), Stop> {
        self.counts.moves += 1;
        let key = self.keys.named(key);
        let id = MoveId(self.used.len() as u64);
        if !self.used.insert(number) {
            return fault(LineFault::UsedMove { number });
        }
        let seen_way = match way {
            Way::Put => seen::Way::Put,
            Way::Get => seen::Way::Get,
        };
        let is_shown = matches!((key, pin), (StoreKey::Private(..), Some(_)));
        self.moves.insert(number, Move { id, way, key, is_shown });
        match (key, pin) {
            (StoreKey::Private(checkpoint, _), Some(pin)) => {
                self.show(&Seen::MoveBegan { id, way: seen_way, key, checkpoint, pin })
            }
            (StoreKey::Private(..), None) if self.head.moves => fault(LineFault::NoPin),
            (StoreKey::Private(..) | StoreKey::Shared(_) | StoreKey::Foreign(_), pin) => {
                self.rules.begin(id, seen_way, key, pin).map_err(by_rules)
            }
        }
    }

    fn put(&mut self, number: u64, outcome: PutResult) -> Result<(), Stop> {
        let Some(one) = self.moves.get(&number).filter(|one| one.way == Way::Put) else {
            return self.miss_move(number);
        };
        let &Move { id, key, is_shown, .. } = one;
        match outcome {
            PutResult::Stored if is_shown => {
                self.show(&Seen::Landed { id, key, content: Content::Of(key) })?;
                self.show(&Seen::PutSucceeded { id })
            }
            PutResult::Stored | PutResult::Failed | PutResult::Unknown => Ok(()),
        }
    }

    fn retire(&mut self, number: u64) -> Result<(), Stop> {
        let Some(Move { id, is_shown, .. }) = self.moves.remove(&number) else {
            return self.miss_move(number);
        };
        let seen = Seen::Retired { id };
        if is_shown { self.show(&seen) } else { self.rules.see(&seen).map_err(by_rules) }
    }

    fn miss_move(&mut self, number: u64) -> Result<(), Stop> {
        if self.whole {
            return fault(LineFault::NoMove { number });
        }
        self.gaps.add(Reason::NoMove, 1);
        Ok(())
    }

    fn delete(&mut self, key: &str, why: Cause, outcome: DeleteOutcome) -> Result<(), Stop> {
        self.counts.deletes += 1;
        let key = self.keys.named(key);
        if let (Some(coordinator), StoreKey::Private(checkpoint, object)) = (&self.coordinator, key)
        {
            coordinator.judge_delete(checkpoint, object)?;
        }
        let cause = match why {
            Cause::Work => seen::Cause::Work,
            Cause::Stray => seen::Cause::Stray,
        };
        let seen = Seen::Deleted { key, cause };
        match outcome {
            DeleteOutcome::Gone | DeleteOutcome::Unknown => self.show(&seen),
            // It hit nothing, and still should not have been asked.
            DeleteOutcome::Refused => self.rules.see(&seen).map_err(by_rules),
        }
    }

    fn adopt(&mut self, pin: PinId, checkpoint: CheckpointId, memory: &[Held]) -> Result<(), Stop> {
        let mut held = Vec::with_capacity(memory.len());
        for one in memory {
            let key = self.keys.named(&one.key);
            let object = match key {
                StoreKey::Private(of, object) if of == checkpoint => ObjectName::Private(object),
                StoreKey::Shared(name) => ObjectName::Shared(name),
                StoreKey::Private(..) | StoreKey::Foreign(_) => {
                    let what = format!("{} is no object of checkpoint {checkpoint}", one.key);
                    return breach(Invariant::I15, "log", what, None);
                }
            };
            let content = match one.bytes {
                Bytes::Right => Some(Content::Of(key)),
                Bytes::Wrong => Some(Content::Garbage),
                Bytes::Missing => None,
            };
            held.push((object, content));
        }
        self.show(&Seen::Adopted { pin, checkpoint, digest: None, memory: held })
    }

    fn listed(&mut self, to: u64) -> Result<(), Stop> {
        let keys = match self.inputs.get(&to) {
            Some(Asked::Waiting(Request::Query(Query::Audit(keys)))) => keys.clone(),
            Some(_) => return fault(LineFault::NoInput { to }),
            None if self.whole => return fault(LineFault::NoInput { to }),
            None => {
                self.gaps.add(Reason::NoInput, 1);
                return Ok(());
            }
        };
        let keys = keys.iter().map(|key| self.keys.named(key)).collect();
        self.show(&Seen::Listed { ticket: Ticket(to), keys })
    }

    /// From here on nobody can know what the coordinator holds.
    fn lose_state(&mut self) {
        self.whole = false;
        self.coordinator = None;
        self.judges.clear();
    }

    /// Shows the records that turned out to be durable.
    fn show_synced(&mut self) -> Result<(), Stop> {
        match self.coordinator.as_mut().map(Coordinator::synced) {
            Some(events) if !events.is_empty() => self.show(&Seen::Synced { events }),
            Some(_) | None => Ok(()),
        }
    }

    /// Shows something to the rules and to every judge.
    fn show(&mut self, seen: &Seen) -> Result<(), Stop> {
        self.rules.see(seen).map_err(by_rules)?;
        self.show_judges(seen)
    }

    fn show_judges(&mut self, seen: &Seen) -> Result<(), Stop> {
        for judge in &mut self.judges {
            if let Err(violation) = judge.see(seen) {
                let name = violation.judge.name();
                return breach(violation.invariant, name, violation.what, None);
            }
        }
        Ok(())
    }
}

impl From<Breach> for Stop {
    fn from(Breach { invariant, what }: Breach) -> Self {
        Self::Breach { invariant, judge: "engine", what, expected: None }
    }
}

fn by_rules(violation: Violation) -> Stop {
    let Violation { invariant, what, .. } = violation;
    Stop::Breach { invariant, judge: "rules", what, expected: None }
}

fn fault<T>(fault: LineFault) -> Result<T, Stop> {
    Err(Stop::Fault(fault))
}

fn breach<T>(
    invariant: Invariant,
    judge: &'static str,
    what: String,
    expected: Option<String>,
) -> Result<T, Stop> {
    Err(Stop::Breach { invariant, judge, what, expected })
}
