//! The thread that commits: one frame, one sync, and then whatever that makes durable.

use std::sync::Arc;
use std::sync::MutexGuard;
use std::thread;

use super::shared::{Life, Replies, Shared, State};
use crate::journal::{AppendError, Journal};

/// How often others get to run while a frame waits for them.
const YIELDS: u32 = 16;

/// See the [module](self).
pub(super) struct Committer {
    shared: Arc<Shared>,
    journal: Box<dyn Journal>,
    /// How many callers got their replies from the last commit; most of them call again at once.
    released: usize,
}

/// However the committer ends, nobody waits for it.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().life = Life::Panicked;
        }
        self.0.end();
    }
}

impl Committer {
    pub(super) fn new(shared: Arc<Shared>, journal: Box<dyn Journal>) -> Self {
        Self { shared, journal, released: 0 }
    }

    /// Commits until the node stops.
    pub(super) fn run(mut self) -> Result<(), AppendError> {
        let shared = Arc::clone(&self.shared);
        let _end = End(&shared);
        shared.is_committed_here();
        loop {
            self.commit_all()?;
            let mut state = shared.lock();
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
                shared.made_room();
            } else if !state.follow_up() && state.engine.is_idle() {
                drop(shared.wait_for_work(state));
            }
        }
    }

    /// Commits until everything that was decided is durable.
    pub(super) fn commit_all(&mut self) -> Result<(), AppendError> {
        loop {
            self.gather();
            let mut state = self.shared.lock();
            let Some(batch) = state.engine.take_batch() else {
                let replies = state.let_out();
                drop(state);
                self.give(replies);
                return Ok(());
            };
            let bytes = state.engine.catalog().gauges().bytes;
            state.stats.peak_bytes = state.stats.peak_bytes.max(bytes);
            state.turn();
            drop(state);
            self.shared.made_room();
            let appended = self.journal.append(batch.bytes());
            let mut state = self.shared.lock();
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
            self.give(replies);
            appended?;
        }
    }

    fn give(&mut self, replies: Replies) {
        self.released = replies.count();
        self.shared.give(replies);
    }

    /// Lets those who were just answered decide what comes next, so that they share one sync
    /// instead of dividing into two groups that wait for each other. It never waits for a clock,
    /// and not at all for a lone caller.
    fn gather(&self) {
        for _ in 0..YIELDS {
            let state = self.shared.lock();
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
