//! What callers and the committer share: the engine behind one lock, and who waits for what.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pinfold_core::engine::{Effect, Engine, Input, Output, Reply, Request, Ticket};
use pinfold_core::id::Epoch;

use super::{Gone, NodeStats};

/// What looks at the engine when everything is durable.
pub(super) type Look = Box<dyn FnOnce(&Engine, NodeStats) + Send>;

/// Shared between all threads of a node and its callers.
pub(super) struct Shared {
    state: Mutex<State>,
    /// The committer waits for work.
    work: Condvar,
    /// Callers wait for room, or for those who look.
    room: Condvar,
}

/// What the lock protects.
pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) stats: NodeStats,
    pub(super) looks: VecDeque<Look>,
    pub(super) life: Life,
    /// None once the node ended: then whoever waits for effects is told.
    effects: Option<Sender<Effect>>,
    waiting: BTreeMap<Ticket, Arc<Answer>>,
    next_ticket: u64,
    /// The committer waits, and must be woken for work.
    pub(super) idle: bool,
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

/// Where a caller waits for its reply.
#[derive(Default)]
struct Answer {
    /// The reply; `Some(None)` when there will be none.
    given: Mutex<Option<Option<Reply>>>,
    changed: Condvar,
}

impl Answer {
    fn give(&self, reply: Option<Reply>) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
        self.changed.notify_one();
    }

    fn wait(&self) -> Option<Reply> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(reply) = given.take() {
                return reply;
            }
            given = self.changed.wait(given).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Replies on their way out: given to their callers once the lock is free.
#[derive(Default)]
#[must_use = "callers wait for them"]
pub(super) struct Replies(Vec<(Arc<Answer>, Option<Reply>)>);

impl Replies {
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn give(self) {
        for (answer, reply) in self.0 {
            answer.give(reply);
        }
    }
}

impl Shared {
    pub(super) fn new(engine: Engine, effects: Sender<Effect>) -> Self {
        let state = State {
            engine,
            stats: NodeStats::default(),
            looks: VecDeque::new(),
            life: Life::Runs,
            effects: Some(effects),
            waiting: BTreeMap::new(),
            next_ticket: 0,
            idle: false,
        };
        Self { state: Mutex::new(state), work: Condvar::new(), room: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| {
            // Whoever held it panicked half-way: the engine is not to be trusted any more.
            let mut state = poison.into_inner();
            state.life = Life::Panicked;
            state
        })
    }

    /// Decides a request on the caller's thread, and waits for what makes its reply durable.
    pub(super) fn call(&self, epoch: Epoch, request: Request) -> Result<Reply, Gone> {
        let answer = Arc::new(Answer::default());
        let replies = {
            let mut state = self.lock();
            while state.life == Life::Runs && (state.engine.is_full() || !state.looks.is_empty()) {
                state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.life != Life::Runs {
                return Err(Gone);
            }
            let replies = state.submit(epoch, request, &answer);
            if state.idle {
                state.idle = false;
                self.work.notify_one();
            }
            replies
        };
        replies.give();
        match answer.wait() {
            None | Some(Reply::Poisoned) => Err(Gone),
            Some(reply) => Ok(reply),
        }
    }

    pub(super) fn look(&self, look: Look) -> Result<(), Gone> {
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
        let replies = {
            let mut state = self.lock();
            if !state.life.is_over() {
                state.life = Life::Ended;
            }
            state.looks.clear();
            state.effects = None;
            let waiting = mem::take(&mut state.waiting);
            Replies(waiting.into_values().map(|answer| (answer, None)).collect())
        };
        replies.give();
        self.room.notify_all();
    }
}

impl State {
    fn submit(&mut self, epoch: Epoch, request: Request, answer: &Arc<Answer>) -> Replies {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.waiting.insert(ticket, Arc::clone(answer));
        let decided = catch_unwind(AssertUnwindSafe(|| {
            self.engine.submit(Input { ticket, epoch, request });
        }));
        if decided.is_err() {
            self.life = Life::Panicked;
            let waiting = mem::take(&mut self.waiting);
            return Replies(waiting.into_values().map(|answer| (answer, None)).collect());
        }
        // What depends on nothing that is under way leaves at once.
        self.let_out()
    }

    /// Takes out of the engine what is durable: effects go at once, replies are given later.
    pub(super) fn let_out(&mut self) -> Replies {
        let mut replies = Replies::default();
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Effect(effect) => {
                    // Without a collector the work stays in the queue and is handed out again.
                    let _ = self.effects.as_ref().map(|effects| effects.send(effect));
                }
                Output::Reply(ticket, reply) => {
                    self.stats.requests += 1;
                    if let Some(answer) = self.waiting.remove(&ticket) {
                        replies.0.push((answer, Some(reply)));
                    }
                }
            }
        }
        replies
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
