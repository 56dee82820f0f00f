//! What callers and the committer share: the engine behind one lock, and who waits for what.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use pinfold_core::engine::{Effect, Engine, Input, Output, Reply, Request, Ticket};
use pinfold_core::id::Epoch;

use super::committer::{Commits, commit_here};
use super::{Gone, Late, NodeStats, Unsent, Watch};
use crate::journal::{AppendError, Journal};

/// Who is told a reply instead of waiting for it; dropped untold when there will be none.
pub(super) type Tell = Box<dyn FnOnce(Reply) + Send>;

/// What looks at the engine when everything is durable.
pub(super) type Look = Box<dyn FnOnce(&Engine, NodeStats) + Send>;

/// Shared between all threads of a node and its callers.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Whoever holds it commits. It is taken before the state, or tried while that is held.
    commits: Mutex<Commits>,
    /// The committer waits for work.
    work: Condvar,
    /// Callers wait for room, or for those who look.
    room: Condvar,
    bells: [Bell; 2],
    /// The committer, which also runs those who look: it must never wait for itself.
    committer: OnceLock<ThreadId>,
}

/// What the lock protects.
pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) stats: NodeStats,
    pub(super) looks: VecDeque<Look>,
    /// How often those who look had their turn.
    pub(super) turns_to_look: u64,
    pub(super) life: Life,
    /// None once the node ended: then whoever waits for effects is told.
    effects: Option<Sender<Effect>>,
    /// How the caller of each ticket gets its reply.
    waiting: BTreeMap<Ticket, Waits>,
    next_ticket: u64,
    watch: Option<Box<dyn Watch>>,
    /// Follow-ups that were done without an input, until somebody watches.
    unwatched: u64,
    /// The bell of the frame that is being filled.
    bell: usize,
    /// The committer waits, and must be woken for work.
    pub(super) idle: bool,
    /// A caller's append failed: the committer ends the node with it.
    pub(super) failed: Option<AppendError>,
}

/// How a caller gets its reply.
enum Waits {
    /// It waits at this bell.
    At(usize),
    /// It is told.
    Told(Tell),
}

/// How far a node's life has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Runs,
    /// Nothing new is taken; what waits is answered.
    Stops,
    /// Nobody will be answered any more.
    Ended,
    /// The same, because something panicked.
    Panicked,
}

impl Life {
    pub(super) const fn is_over(self) -> bool {
        match self {
            Self::Runs | Self::Stops => false,
            Self::Ended | Self::Panicked => true,
        }
    }
}

/// Where the callers of one frame wait for their replies: one call wakes them all, which costs a
/// fraction of waking each. Two bells take turns, so that those who wait for the next frame sleep
/// on.
#[derive(Default)]
struct Bell {
    rung: Mutex<Rung>,
    changed: Condvar,
}

#[derive(Default)]
struct Rung {
    replies: BTreeMap<Ticket, Reply>,
    /// There will be no more replies.
    over: bool,
}

impl Bell {
    fn ring(&self, change: impl FnOnce(&mut Rung)) {
        change(&mut self.rung.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn wait(&self, ticket: Ticket) -> Option<Reply> {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(reply) = rung.replies.remove(&ticket) {
                return Some(reply);
            }
            if rung.over {
                return None;
            }
            rung = self.changed.wait(rung).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Replies on their way out: given to their callers once the lock is free.
#[derive(Default)]
#[must_use = "callers wait for them"]
pub(super) struct Replies {
    by_bell: [Vec<(Ticket, Reply)>; 2],
    told: Vec<(Tell, Reply)>,
}

impl Replies {
    pub(super) fn count(&self) -> usize {
        self.by_bell.iter().map(Vec::len).sum::<usize>() + self.told.len()
    }
}

impl Shared {
    pub(super) fn new(engine: Engine, effects: Sender<Effect>, journal: Box<dyn Journal>) -> Self {
        let state = State {
            engine,
            stats: NodeStats::default(),
            looks: VecDeque::new(),
            turns_to_look: 0,
            life: Life::Runs,
            effects: Some(effects),
            waiting: BTreeMap::new(),
            next_ticket: 0,
            watch: None,
            unwatched: 0,
            bell: 0,
            idle: false,
            failed: None,
        };
        let (work, room) = Default::default();
        let (bells, committer) = Default::default();
        let (state, commits) = (Mutex::new(state), Mutex::new(Commits::new(journal)));
        Self { state, commits, work, room, bells, committer }
    }

    /// This thread is the committer from now on.
    pub(super) fn appoint_this_thread(&self) {
        // There is one for the life of a node.
        let _ = self.committer.set(thread::current().id());
    }

    fn refuse_the_committer(&self) -> Result<(), Gone> {
        if self.committer.get() == Some(&thread::current().id()) { Err(Gone) } else { Ok(()) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| {
            // Whoever held it panicked half-way: the engine is not to be trusted any more.
            let mut state = poison.into_inner();
            state.life = Life::Panicked;
            state
        })
    }

    pub(super) fn commits(&self) -> MutexGuard<'_, Commits> {
        // Whoever panicked while it committed has ended the node.
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides a request on the caller's thread, and waits for what makes its reply durable.
    pub(super) fn call(&self, epoch: Epoch, request: Request) -> Result<Reply, Gone> {
        self.refuse_the_committer()?;
        let (ticket, bell) = {
            let mut state = self.lock();
            // Whoever comes to look after this caller keeps it waiting no more.
            let turn = state.turns_to_look;
            while state.life == Life::Runs
                && (state.engine.is_full()
                    || !state.looks.is_empty() && state.turns_to_look == turn)
            {
                state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.life != Life::Runs {
                return Err(Gone);
            }
            let bell = state.bell;
            (self.submit(state, epoch, request, Waits::At(bell))?, bell)
        };
        match self.bells[bell].wait(ticket) {
            None | Some(Reply::Poisoned) => Err(Gone),
            Some(reply) => Ok(reply),
        }
    }

    /// Decides a request on the caller's thread, and tells its reply once that is durable.
    pub(super) fn send(&self, epoch: Epoch, request: Request, tell: Tell) -> Result<(), Unsent> {
        self.refuse_the_committer()?;
        let state = self.lock();
        if state.life != Life::Runs {
            return Err(Unsent::Gone);
        }
        if state.engine.is_full() || !state.looks.is_empty() {
            return Err(Unsent::Busy(Box::new(request)));
        }
        self.submit(state, epoch, request, Waits::Told(tell))?;
        Ok(())
    }

    /// Decides a request, and commits it where the committer is idle and this caller waits anyway,
    /// or sees to it that it will be: one who is told goes on at once, whatever the disk does.
    fn submit(
        &self,
        mut state: MutexGuard<'_, State>,
        epoch: Epoch,
        request: Request,
        waits: Waits,
    ) -> Result<Ticket, Gone> {
        let may_wait = matches!(waits, Waits::At(_));
        let Ok(ticket) = state.submit(epoch, request, waits) else {
            drop(state);
            self.end();
            return Err(Gone);
        };
        // What depends on nothing that is under way leaves at once.
        let replies = state.let_out();
        let mut commits = None;
        if state.idle && (!state.engine.is_idle() || state.engine.is_poisoned()) {
            let free = if may_wait { self.commits.try_lock().ok() } else { None };
            commits = free.filter(|it| it.has_one_caller());
            if commits.is_none() {
                self.wake(&mut state);
            }
        }
        drop(state);
        self.give(replies);
        if let Some(commits) = commits {
            commit_here(self, commits);
        }
        Ok(ticket)
    }

    /// Wakes the committer, if it waits.
    fn wake(&self, state: &mut State) {
        if state.idle {
            state.idle = false;
            self.work.notify_one();
        }
    }

    /// Wakes the committer for what a caller left when it had committed.
    pub(super) fn leave_the_rest(&self, failed: Option<AppendError>) {
        let mut state = self.lock();
        // Another caller may find nothing to commit before the committer has seen the first's.
        state.failed = failed.or(state.failed.take());
        let is_left = state.failed.is_some()
            || !state.engine.is_idle()
            || state.engine.is_poisoned()
            || !state.looks.is_empty()
            || state.engine.catalog().next_follow_up().is_some();
        if is_left {
            self.wake(&mut state);
        }
    }

    /// Gives replies to their callers.
    pub(super) fn give(&self, mut replies: Replies) {
        self.ring(&mut replies);
        for (tell, reply) in replies.told {
            // A reply that never came is one that nobody is told.
            if reply != Reply::Poisoned {
                tell(reply);
            }
        }
    }

    /// Gives replies to those who wait for them.
    pub(super) fn ring(&self, replies: &mut Replies) {
        for (bell, replies) in self.bells.iter().zip(&mut replies.by_bell) {
            if !replies.is_empty() {
                bell.ring(|rung| rung.replies.extend(replies.drain(..)));
            }
        }
    }

    pub(super) fn look(&self, look: Look) -> Result<(), Gone> {
        self.refuse_the_committer()?;
        let mut state = self.lock();
        if state.life != Life::Runs {
            return Err(Gone);
        }
        state.looks.push_back(look);
        self.work.notify_one();
        Ok(())
    }

    pub(super) fn stop(&self) {
        let mut state = self.lock();
        if state.life == Life::Runs {
            state.life = Life::Stops;
        }
        self.work.notify_one();
        self.room.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().life.is_over()
    }

    pub(super) fn panicked(&self) -> bool {
        self.lock().life == Life::Panicked
    }

    /// Lets waiting callers look for room again.
    pub(super) fn made_room(&self) {
        self.room.notify_all();
    }

    /// Waits until somebody has work for the committer.
    pub(super) fn wait_for_work<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        state.idle = true;
        let mut state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.idle = false;
        state
    }

    /// Ends the node: whoever waits is told that there will be no reply.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        if !state.life.is_over() {
            state.life = Life::Ended;
        }
        state.looks.clear();
        state.effects = None;
        let waiting = std::mem::take(&mut state.waiting);
        let watch = state.watch.take();
        drop(state);
        drop((waiting, watch));
        for bell in &self.bells {
            bell.ring(|rung| rung.over = true);
        }
        self.work.notify_one();
        self.room.notify_all();
    }
}

impl State {
    /// Decides a request; under which ticket its caller waits.
    fn submit(&mut self, epoch: Epoch, request: Request, waits: Waits) -> Result<Ticket, Gone> {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.waiting.insert(ticket, waits);
        let input = Input { ticket, epoch, request };
        let engine = &mut self.engine;
        let watch = self.watch.as_mut();
        let decide = || {
            if let Some(watch) = watch {
                watch.took(&input);
            }
            engine.submit(input);
        };
        match catch_unwind(AssertUnwindSafe(decide)) {
            Ok(()) => Ok(ticket),
            Err(_) => {
                self.life = Life::Panicked;
                Err(Gone)
            }
        }
    }

    /// The frame that was being filled is taken; those who come now wait for the next one.
    pub(super) fn turn(&mut self) {
        self.bell = 1 - self.bell;
    }

    /// Takes out of the engine what is durable: effects go at once, replies are given later.
    pub(super) fn let_out(&mut self) -> Replies {
        let mut replies = Replies::default();
        while let Some(output) = self.engine.poll_output() {
            if let Some(watch) = &mut self.watch {
                watch.let_out(&output);
            }
            match output {
                Output::Effect(effect) => {
                    // Without a collector the work stays in the queue and is handed out again.
                    let _ = self.effects.as_ref().map(|effects| effects.send(effect));
                }
                Output::Reply(ticket, reply) => {
                    self.stats.requests += 1;
                    match self.waiting.remove(&ticket) {
                        Some(Waits::At(bell)) => replies.by_bell[bell].push((ticket, reply)),
                        Some(Waits::Told(tell)) => replies.told.push((tell, reply)),
                        None => {}
                    }
                }
            }
        }
        replies
    }

    /// Does a follow-up without an input, if one waits; true when more wait.
    pub(super) fn follow_up(&mut self) -> bool {
        if self.engine.catalog().next_follow_up().is_some() {
            match &mut self.watch {
                Some(watch) => watch.idled(),
                None => self.unwatched += 1,
            }
        }
        self.engine.follow_up()
    }

    /// Lets somebody look on, who is told first what was done before the first request.
    pub(super) fn watch(&mut self, mut watch: Box<dyn Watch>) -> Result<(), Late> {
        if self.next_ticket > 0 {
            return Err(Late);
        }
        for _ in 0..std::mem::take(&mut self.unwatched) {
            watch.idled();
        }
        self.watch = Some(watch);
        Ok(())
    }

    /// How many callers wait for a reply.
    pub(super) fn callers(&self) -> usize {
        self.waiting.len()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
