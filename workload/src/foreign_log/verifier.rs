//! One log, line by line: what each line says, to the engine, the rules and the judges.

mod beside;

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::catalog::{Command, Register};
use pinfold_core::engine::{Effect, Input, Reply, Request, Ticket};
use pinfold_core::id::{Epoch, PinId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::LostObject;
use pinfold_host::dto::Answer;
use pinfold_host::log::{Event, Head, Line, Way};
use pinfold_sim::blame;
use pinfold_sim::seen::{MoveId, Seen};
use pinfold_sim::store::StoreKey;
use pinfold_sim::violation::Violation;

use super::claims::{Claims, Unshown};
use super::coordinator::{Breach, Coordinator};
use super::genesis;
use super::judges::Judges;
use super::keys::Keys;
use super::read::LineFault;
use super::report::{Counts, Finding, Gap, Gaps, Reason, Report, Verdict};
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
    judges: Judges,
    rules: Rules,
    /// None once a line is missing.
    claims: Option<Claims>,
    keys: Keys,
    inputs: BTreeMap<u64, Asked>,
    life: Life,
    moves: BTreeMap<u64, Move>,
    /// The numbers of all moves.
    used: BTreeSet<u64>,
    counts: Counts,
    first_gap: Option<Gap>,
    only_rules_from: Option<u64>,
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

impl Verifier {
    pub(super) fn new(head: Head, spec_inputs: u64) -> Result<Self, LineFault> {
        let (whole, genesis) = (head.from_genesis, head.genesis.clone());
        let (rules, keys) = (Rules::new(genesis.epoch), Keys::new(genesis.clone()));
        let mut gaps = Gaps::default();
        gaps.at(1).add(Reason::FromTheMiddle, u64::from(!whole));
        let coordinator = whole.then(|| Coordinator::new(genesis)).transpose();
        Ok(Self {
            last: whole.then_some(0),
            whole,
            coordinator: coordinator.map_err(LineFault::Job)?,
            judges: Judges::new(&head, spec_inputs),
            rules,
            claims: whole.then(Claims::default),
            keys,
            inputs: BTreeMap::new(),
            life: Life::Runs,
            moves: BTreeMap::new(),
            used: BTreeSet::new(),
            counts: Counts { lines: 1, ..Counts::default() },
            first_gap: None,
            only_rules_from: (!whole).then_some(1),
            gaps,
            head,
        })
    }

    /// What was found, after the last line.
    pub(super) fn finish(mut self, finding: Option<Finding>) -> Report {
        let waiting = |asked: &&Asked| !matches!(asked, Asked::Answered);
        let unanswered = self.inputs.values().filter(waiting).count();
        self.counts.unanswered = u64::try_from(unanswered).unwrap_or(u64::MAX);
        self.counts.by_spec = self.judges.shown_to_spec();
        self.gaps.add(Reason::Empty, u64::from(self.counts.lines == 1));
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
            first_gap: self.first_gap,
            only_rules_from: self.only_rules_from,
            counts: self.counts,
        }
    }

    /// Takes the next line, and its place in the file.
    pub(super) fn take(&mut self, place: u64, line: Line) -> Result<(), Stop> {
        let Line { n, event } = line;
        self.gaps.at(place);
        self.counts.lines += 1;
        match self.last.replace(n) {
            Some(last) if n <= last => return fault(LineFault::Number { last, found: n }),
            Some(last) if n - last > 1 => {
                self.miss(Gap { line: place, first: last + 1, last: n - 1 });
            }
            None if n == 0 => return fault(LineFault::Number { last: 0, found: n }),
            Some(_) | None => {}
        }
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

    /// Lines are missing.
    fn miss(&mut self, gap: Gap) {
        self.gaps.add(Reason::Missing, gap.last - gap.first + 1);
        self.first_gap.get_or_insert(gap);
        self.lose_state();
        self.rules.miss();
        self.claims = None;
        // Whether it came back may stand in the lines that are missing.
        self.life = Life::Runs;
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
        self.believe_losses(&input.request)?;
        self.show(&Seen::Submitted { ticket, input: input.clone() })?;
        self.judge_claims(&input)?;
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.take(input);
        }
        Ok(())
    }

    /// A log does not say what checks and gets found, so whoever calls an object lost is believed.
    fn believe_losses(&mut self, request: &Request) -> Result<(), Stop> {
        let commands = match request {
            Request::Command(op, command) => vec![(*op, command)],
            Request::List(commands) => commands.iter().map(|(op, it)| (*op, it)).collect(),
            Request::Register(_) | Request::Query(_) => Vec::new(),
        };
        for (op, command) in commands {
            if let Command::Lost { checkpoint, object: LostObject::Private(object), .. } = command {
                let key = StoreKey::Private(*checkpoint, *object);
                self.show(&Seen::Missed { pin: PinId { op, place: 0 }, key })?;
            }
        }
        Ok(())
    }

    /// Judges what an input says of the store.
    fn judge_claims(&mut self, input: &Input) -> Result<(), Stop> {
        let is_ours = input.epoch == self.head.genesis.epoch;
        let Some(claims) = self.claims.as_mut().filter(|_| is_ours) else { return Ok(()) };
        let Unshown { saves, deletes } = claims.judge(&input.request).map_err(by_rules)?;
        self.counts.saves_unshown += saves;
        self.counts.deletes_unshown += deletes;
        if self.head.moves {
            self.gaps.add(Reason::UnshownSave, saves);
            self.gaps.add(Reason::UnshownDelete, deletes);
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
        if let Some(claims) = &mut self.claims {
            claims.answer(request, reply);
        }
        let Some(expected) = expected else {
            self.gaps.add(Reason::NoState, 1);
            return ruled;
        };
        self.counts.compared += 1;
        if expected.reply == *reply {
            return ruled.and_then(|()| self.show_judges(&seen));
        }
        if let (Reply::Job(found), Reply::Job(expected)) = (reply, &expected.reply) {
            let (invariant, what) = genesis::blame(found, expected);
            return breach(invariant, "engine", what, None);
        }
        // What was decided before and differs now, the rules have seen.
        let invariant = blame::reply(request, &expected.reply, reply, true);
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

    /// From here on nobody can know what the coordinator holds.
    fn lose_state(&mut self) {
        self.whole = false;
        self.coordinator = None;
        self.judges.leave();
        self.only_rules_from.get_or_insert(self.gaps.line());
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
        self.judges.see(seen).or_else(|violation| {
            let Violation { invariant, judge, what } = violation;
            breach(invariant, judge.name(), what, None)
        })
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
