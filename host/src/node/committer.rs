//! Who commits: one frame, one sync, and then whatever that makes durable.
//!
//! A thread does, for as long as there is something; while it is idle, a caller who is alone and
//! waits commits its own request, which spares it two wakes of a thread. Whoever holds the journal
//! commits; so frames are written in the order in which they were taken.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};
use std::thread;

use super::shared::{Life, Replies, Shared, State};
use crate::journal::{AppendError, Journal};

/// How often others get to run while a frame waits for them.
const YIELDS: u32 = 16;

/// What it takes to commit.
pub(super) struct Commits {
    /// None once the node ended: it is closed then, whoever still holds a client.
    journal: Option<Box<dyn Journal>>,
    /// How many callers got their replies from the last commit; most of them call again at once.
    released: usize,
}

/// What there was to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Committed {
    Nothing,
    Frame,
}

/// However the thread ends, nobody waits for it.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().life = Life::Panicked;
        }
        self.0.end();
        self.0.commits().close();
    }
}

/// Commits until the node stops.
pub(super) fn run(shared: &Arc<Shared>) -> Result<(), AppendError> {
    let _end = End(shared);
    shared.appoint_this_thread();
    loop {
        commit_all(shared)?;
        let mut state = shared.lock();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if state.engine.is_poisoned() {
            // By a decision that no record can hold: nothing that waits will ever be durable.
            return Err(AppendError::Poisoned);
        }
        if state.life.is_over() || state.life == Life::Stops && state.engine.is_idle() {
            return Ok(());
        }
        if !state.engine.is_idle() {
            continue;
        }
        if !state.looks.is_empty() {
            look(&mut state);
            state.turns_to_look += 1;
            shared.made_room();
        } else if !state.follow_up() && state.engine.is_idle() {
            drop(shared.wait_for_work(state));
        }
    }
}

/// Commits until everything that was decided is durable.
pub(super) fn commit_all(shared: &Shared) -> Result<(), AppendError> {
    loop {
        let mut commits = shared.commits();
        commits.gather(shared);
        let (replies, committed) = commits.commit(shared);
        drop(commits);
        shared.give(replies);
        if committed? == Committed::Nothing {
            return Ok(());
        }
    }
}

/// Commits one frame on the thread of a caller, who found the committer idle; what is left after
/// that is the committer's.
pub(super) fn commit_here(shared: &Shared, mut commits: MutexGuard<'_, Commits>) {
    let mut committed = catch_unwind(AssertUnwindSafe(|| commits.commit(shared)));
    if let Ok((replies, _)) = &mut committed {
        // Before anybody can end the node, which answers no one who still waits.
        shared.ring(replies);
    }
    drop(commits);
    match committed {
        Ok((replies, committed)) => {
            shared.give(replies);
            shared.leave_the_rest(committed.err());
        }
        Err(_) => {
            shared.lock().life = Life::Panicked;
            shared.end();
        }
    }
}

impl Commits {
    pub(super) fn new(journal: Box<dyn Journal>) -> Self {
        Self { journal: Some(journal), released: 0 }
    }

    /// Whether the last frame had one caller at most, so that waiting for others gains nothing.
    pub(super) const fn has_one_caller(&self) -> bool {
        self.released <= 1
    }

    fn close(&mut self) {
        self.journal = None;
    }

    /// Commits what was decided so far; the replies that may leave now.
    fn commit(&mut self, shared: &Shared) -> (Replies, Result<Committed, AppendError>) {
        let mut state = shared.lock();
        let journal = self.journal.as_mut().filter(|_| !state.life.is_over());
        let taken = journal.and_then(|journal| Some((journal, state.engine.take_batch()?)));
        let Some((journal, batch)) = taken else {
            let replies = state.let_out();
            self.released = replies.count();
            return (replies, Ok(Committed::Nothing));
        };
        let bytes = state.engine.catalog().gauges().bytes;
        state.stats.peak_bytes = state.stats.peak_bytes.max(bytes);
        state.turn();
        drop(state);
        shared.made_room();
        let appended = journal.append(batch.bytes());
        let mut state = shared.lock();
        match &appended {
            Ok(()) => {
                state.stats.syncs += 1;
                state.stats.journal_bytes += batch.bytes().len() as u64;
                state.engine.commit(batch);
            }
            Err(_) => state.engine.fail(batch),
        }
        let replies = state.let_out();
        drop(state);
        self.released = replies.count();
        (replies, appended.map(|()| Committed::Frame))
    }

    /// Lets those who were just answered decide what comes next, so that they share one sync
    /// instead of dividing into two groups that wait for each other. It never waits for a clock,
    /// and not at all for a lone caller.
    fn gather(&self, shared: &Shared) {
        for _ in 0..YIELDS {
            let state = shared.lock();
            if state.callers() >= self.released || state.life != Life::Runs {
                return;
            }
            drop(state);
            thread::yield_now();
        }
    }
}

fn look(state: &mut MutexGuard<'_, State>) {
    while let Some(look) = state.looks.pop_front() {
        look(&state.engine, state.stats);
    }
}
