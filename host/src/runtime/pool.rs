//! The movers, and the transfers that they drive.
//!
//! A mover takes the next step of whichever transfer stands first in line, does it, and reports it;
//! so no step is taken before somebody is free to do it, a cancel finds nothing in a queue, and the
//! transfers share the movers in turn. It protects a command that found no node: it stays with its
//! transfer, under its operation, until it is answered or handed over. A mover never sleeps over a
//! transfer that waits, and no panic of a store or a freight ends one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pinfold_core::transfer::{Ended, Step, Transfer};

use super::freight::Freight;
use super::handle::{Finished, Handle, Notice, Told, Unsettled};
use super::porter::{Asked, Came, Happened, Porter, TakenStep, Trouble, Waiting};
use super::proofs::Proofs;
use crate::owner::Owner;

/// The first and the longest pause of a transfer that waits for others; each one is twice the one
/// before.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];
/// Likewise of a command that waits for the owner's window.
const WINDOW_PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(16)];
/// After so many of those a pool that closes takes it that nobody opens the window any more: about
/// half a second.
const WINDOW_TRIES: u32 = 32;

/// What movers and callers share.
pub(super) struct Pool {
    pub(super) porter: Porter,
    /// The most transfers under way at once.
    most: u32,
    line: Mutex<Line>,
    /// A transfer stands in line, or a pause began, or the movers shall end.
    work: Condvar,
    /// A transfer ended, or nothing can go on by itself.
    room: Condvar,
}

#[derive(Default)]
struct Line {
    under_way: BTreeMap<u64, UnderWay>,
    next_number: u64,
    /// Transfers that may have a step, each once.
    ready: VecDeque<u64>,
    pauses: BTreeSet<(Instant, u64)>,
    /// Steps that movers work on.
    busy: u32,
    /// How often the node was opened again.
    life: u64,
    /// Nothing new is taken.
    closing: bool,
    /// The movers end.
    over: bool,
}

/// A transfer under way.
struct UnderWay {
    transfer: Transfer,
    freight: Arc<dyn Freight>,
    notice: Arc<Notice>,
    proofs: Arc<Proofs>,
    troubles: Vec<Trouble>,
    /// The commands that no mover works on and nobody answered, in the order of their list.
    waiting: Vec<Waiting>,
    /// It waits for another node.
    parked: bool,
    /// Its handles were told that it is in doubt.
    in_doubt: bool,
    is_ready: bool,
    /// Movers that work on a step of it.
    working: u32,
    /// Nothing follows before the adoption is done.
    adopting: bool,
    paused_until: Option<Instant>,
    /// Its pause is over, and the freight is to be asked.
    woken: bool,
    waits: u32,
    held: u32,
}

/// What a mover does next.
struct Errand {
    number: u64,
    life: u64,
    work: Work,
}

enum Work {
    Ask(Vec<Waiting>),
    Do(TakenStep, Arc<dyn Freight>),
}

/// What came of it.
enum Done {
    Asked(Asked),
    Happened(Happened, Vec<Trouble>),
}

impl Pool {
    pub(super) fn new(porter: Porter, most: u32) -> Self {
        let (line, work, room) = (Mutex::default(), Condvar::new(), Condvar::new());
        Self { porter, most, line, work, room }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        // Stores and freights are called outside of it, so nobody's panic left it half-changed.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a transfer more may be under way.
    pub(super) fn admit(self: &Arc<Self>, unsettled: Unsettled) -> Handle {
        let mut line = self.lock();
        while line.count() >= self.most {
            line = self.room.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        self.add(line, unsettled)
    }

    /// Takes a transfer if one more may be under way now.
    pub(super) fn try_admit(
        self: &Arc<Self>,
        unsettled: Box<Unsettled>,
    ) -> Result<Handle, Box<Unsettled>> {
        let line = self.lock();
        if line.count() >= self.most {
            return Err(unsettled);
        }
        Ok(self.add(line, *unsettled))
    }

    fn add(self: &Arc<Self>, mut line: MutexGuard<'_, Line>, unsettled: Unsettled) -> Handle {
        let notice = Arc::<Notice>::default();
        let proofs = Arc::clone(&unsettled.proofs);
        let number = line.next_number;
        line.next_number += 1;
        let mut one = UnderWay::new(unsettled, Arc::clone(&notice));
        proofs.lead_to(Arc::downgrade(self), number);
        proofs.deliver(&mut one.transfer);
        line.under_way.insert(number, one);
        self.go_on(line, number);
        Handle { pool: Arc::clone(self), number, notice, proofs }
    }

    /// Begins nothing more of a transfer. One that was handed over is cancelled already.
    pub(super) fn cancel(&self, number: u64) {
        self.change(number, |one| one.transfer.cancel());
    }

    /// Delivers the proofs that were brought. They wait for a transfer that was handed over.
    pub(super) fn prove(&self, number: u64) {
        self.change(number, |one| one.proofs.deliver(&mut one.transfer));
    }

    /// Changes a transfer from outside, if it is under way here.
    fn change(&self, number: u64, change: impl FnOnce(&mut UnderWay)) {
        let mut line = self.lock();
        let Some(one) = line.under_way.get_mut(&number) else { return };
        change(one);
        line.end_pause(number);
        self.go_on(line, number);
    }

    /// Something changed for a transfer: it may have a step now, or be at its end.
    fn go_on(&self, mut line: MutexGuard<'_, Line>, number: u64) {
        line.make_ready(number);
        line.tell_doubt(number);
        let ended = line.remove_ended(number);
        drop(line);
        self.work.notify_one();
        if let Some((notice, finished)) = ended {
            self.room.notify_all();
            release(notice, finished);
        }
    }

    /// Repeats what waits for another node.
    pub(super) fn reconnected(&self) {
        let mut line = self.lock();
        line.life += 1;
        let numbers: Vec<u64> = line.under_way.keys().copied().collect();
        for number in numbers {
            if let Some(one) = line.under_way.get_mut(&number)
                && one.parked
            {
                one.parked = false;
                one.notice.tell(Told::UnderWay);
                line.make_ready(number);
            }
        }
        self.work.notify_all();
    }

    /// Cancels everything, waits until nothing goes on by itself, ends the movers, and gives back
    /// what has not come to its end.
    pub(super) fn close(&self) -> Vec<(Unsettled, Arc<Notice>)> {
        let mut line = self.lock();
        line.closing = true;
        let numbers: Vec<u64> = line.under_way.keys().copied().collect();
        drop(line);
        for number in numbers {
            self.cancel(number);
        }
        line = self.lock();
        while !line.is_quiet() {
            line = self.room.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        line.over = true;
        self.work.notify_all();
        let owner = self.porter.owner();
        let left = std::mem::take(&mut line.under_way).into_values();
        left.map(|one| one.hand_over(Arc::clone(owner))).collect()
    }

    /// A mover's life.
    pub(super) fn work(&self) {
        while let Some(errand) = self.take() {
            let done = match errand.work {
                Work::Ask(waiting) => Done::Asked(self.porter.ask(waiting)),
                Work::Do(taken, freight) => {
                    let mut troubles = Vec::new();
                    let happened = self.porter.perform(&taken, &*freight, &mut troubles);
                    Done::Happened(happened, troubles)
                }
            };
            self.take_back(errand.number, errand.life, done);
        }
    }

    /// The next thing to do; waits for it. None at the end.
    fn take(&self) -> Option<Errand> {
        let mut line = self.lock();
        loop {
            let now = Instant::now();
            line.wake(now);
            if let Some(errand) = line.take(now) {
                // Whoever sleeps looks after the rest.
                self.work.notify_one();
                return Some(errand);
            }
            if line.over {
                return None;
            }
            if line.is_quiet() {
                self.room.notify_all();
            }
            line = match line.pauses.first() {
                Some((until, _)) => {
                    let pause = until.saturating_duration_since(now);
                    self.work.wait_timeout(line, pause).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.work.wait(line).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn take_back(&self, number: u64, life: u64, done: Done) {
        let mut line = self.lock();
        line.busy -= 1;
        let (is_reconnected, closing, busy) = (line.life != life, line.closing, line.busy);
        let Some(one) = line.under_way.get_mut(&number) else { return };
        one.working -= 1;
        match done {
            Done::Happened(happened, mut troubles) => {
                one.adopting &= !matches!(happened, Happened::Adopted);
                one.troubles.append(&mut troubles);
                happened.report_to(&mut one.transfer);
            }
            Done::Asked(Asked { list, left_out, came }) => {
                (0..left_out).for_each(|_| one.transfer.take_back_last());
                match came {
                    Came::Answered(answers) => {
                        one.held = 0;
                        for (op, answer) in answers {
                            one.transfer.answered(op, answer);
                        }
                    }
                    Came::Unanswered(why) => {
                        one.waiting = list;
                        if !is_reconnected {
                            one.parked = true;
                            one.notice.tell(Told::Unanswered(why));
                        }
                    }
                    Came::Held => {
                        one.waiting = list;
                        // While others of this pool work, the window may be theirs.
                        if closing && busy == 0 && one.held >= WINDOW_TRIES {
                            one.parked = true;
                        } else {
                            let pause = pause(WINDOW_PAUSES, one.held);
                            one.held += 1;
                            line.pause(number, Instant::now() + pause);
                        }
                    }
                }
            }
        }
        self.go_on(line, number);
    }
}

impl Line {
    fn count(&self) -> u32 {
        u32::try_from(self.under_way.len()).unwrap_or(u32::MAX)
    }

    /// Takes out a transfer that is at its end.
    fn remove_ended(&mut self, number: u64) -> Option<(Arc<Notice>, Finished)> {
        let ended = self.under_way.get(&number)?.ended()?;
        let UnderWay { transfer, freight, notice, troubles, .. } =
            self.under_way.remove(&number)?;
        let differences = transfer.differences();
        Some((notice, Finished { ended, freight, troubles, differences }))
    }

    fn make_ready(&mut self, number: u64) {
        if let Some(one) = self.under_way.get_mut(&number)
            && !std::mem::replace(&mut one.is_ready, true)
        {
            self.ready.push_back(number);
        }
    }

    /// Tells who waits for a transfer when it comes into doubt, and when a proof ends that.
    fn tell_doubt(&mut self, number: u64) {
        let Some(one) = self.under_way.get_mut(&number) else { return };
        let is_in_doubt = one.transfer.is_in_doubt() && !one.parked;
        if std::mem::replace(&mut one.in_doubt, is_in_doubt) != is_in_doubt && !one.parked {
            one.notice.tell(if is_in_doubt { Told::InDoubt } else { Told::UnderWay });
        }
    }

    /// The first step of those in line, in turn.
    fn take(&mut self, now: Instant) -> Option<Errand> {
        while let Some(number) = self.ready.pop_front() {
            let Some(one) = self.under_way.get_mut(&number) else { continue };
            one.is_ready = false;
            match one.next() {
                Next::Work(work) => {
                    one.working += 1;
                    self.busy += 1;
                    self.make_ready(number);
                    return Some(Errand { number, life: self.life, work });
                }
                Next::Wait => {
                    let pause = pause(PAUSES, one.waits);
                    one.waits += 1;
                    self.pause(number, now + pause);
                }
                Next::Nothing => {}
            }
        }
        None
    }

    fn pause(&mut self, number: u64, until: Instant) {
        if let Some(one) = self.under_way.get_mut(&number) {
            one.paused_until = Some(until);
            self.pauses.insert((until, number));
        }
    }

    /// A transfer that was changed from outside need not wait; a command goes on waiting.
    fn end_pause(&mut self, number: u64) {
        if let Some(one) = self.under_way.get_mut(&number)
            && one.waiting.is_empty()
            && let Some(until) = one.paused_until.take()
        {
            self.pauses.remove(&(until, number));
        }
    }

    /// Ends the pauses whose time is over.
    fn wake(&mut self, now: Instant) {
        while let Some((until, number)) = self.pauses.pop_first() {
            if until > now {
                self.pauses.insert((until, number));
                return;
            }
            if let Some(one) = self.under_way.get_mut(&number) {
                one.paused_until = None;
                one.woken = one.waiting.is_empty();
            }
            self.make_ready(number);
        }
    }

    /// Nothing goes on by itself.
    fn is_quiet(&self) -> bool {
        self.busy == 0 && self.ready.is_empty() && self.pauses.is_empty()
    }
}

/// What a transfer that stands first in line has to do.
enum Next {
    Work(Work),
    Wait,
    Nothing,
}

impl UnderWay {
    fn new(unsettled: Unsettled, notice: Arc<Notice>) -> Self {
        let Unsettled { transfer, freight, proofs, waiting, troubles, .. } = unsettled;
        Self {
            transfer,
            freight,
            notice,
            proofs,
            troubles,
            waiting,
            parked: false,
            in_doubt: false,
            is_ready: false,
            working: 0,
            adopting: false,
            paused_until: None,
            woken: false,
            waits: 0,
            held: 0,
        }
    }

    fn next(&mut self) -> Next {
        if self.adopting {
            return Next::Nothing;
        }
        if !self.parked && self.paused_until.is_none() && !self.waiting.is_empty() {
            return Next::Work(Work::Ask(std::mem::take(&mut self.waiting)));
        }
        let step = if std::mem::take(&mut self.woken) {
            Step::Wait
        } else {
            match self.transfer.next_step() {
                Some(Step::Wait) => return Next::Wait,
                Some(step) => step,
                None => return Next::Nothing,
            }
        };
        if let Step::Ask(command) = step {
            let behind = std::iter::from_fn(|| self.transfer.next_in_list());
            let list = std::iter::once(command).chain(behind);
            return Next::Work(Work::Ask(
                list.map(|command| Waiting { command, op: None }).collect(),
            ));
        }
        self.adopting = matches!(step, Step::Adopt { .. });
        Next::Work(Work::Do(TakenStep::new(&self.transfer, step), Arc::clone(&self.freight)))
    }

    /// How it ended, once no mover works on it and every command is answered.
    fn ended(&self) -> Option<Ended> {
        let is_over = self.working == 0 && self.waiting.is_empty();
        self.transfer.report().filter(|_| is_over)
    }

    fn hand_over(self, owner: Arc<Owner>) -> (Unsettled, Arc<Notice>) {
        let Self { transfer, freight, notice, proofs, troubles, waiting, .. } = self;
        (Unsettled { owner, transfer, freight, proofs, waiting, troubles }, notice)
    }
}

/// The pause after so many.
fn pause([first, longest]: [Duration; 2], before: u32) -> Duration {
    first.saturating_mul(1 << before.min(16)).min(longest)
}

/// Tells an end. Without a handle nobody keeps the freight any more, and one that panics when it is
/// dropped ends no mover.
fn release(notice: Arc<Notice>, finished: Finished) {
    let told = AssertUnwindSafe(|| {
        notice.tell(Told::Finished(finished));
        drop(notice);
    });
    let _ = catch_unwind(told);
}
