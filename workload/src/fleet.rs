//! The fleet: which request is served next.
//!
//! A turn is served only after the turn that it continues, by whichever worker is free. So a
//! conversation wanders over the fleet, as it does in service.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::link::Links;

/// Which requests wait, which are ready, and which are done.
#[derive(Debug)]
pub(crate) struct Schedule {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    ready: BTreeSet<u32>,
    children: Vec<Vec<u32>>,
    done: u32,
    /// How many may be done before everybody has to stop.
    until: u32,
    /// Requests that a worker has taken and not finished.
    taken: u32,
}

impl Schedule {
    /// All requests of a trace: roots are ready.
    #[must_use]
    pub(crate) fn new(links: &Links) -> Self {
        let mut children = vec![Vec::new(); links.requests.len()];
        let mut ready = BTreeSet::new();
        for (linked, number) in links.requests.iter().zip(0_u32..) {
            let parent = linked.parent.and_then(|parent| usize::try_from(parent).ok());
            match parent.and_then(|parent| children.get_mut(parent)) {
                Some(children) => children.push(number),
                None => {
                    ready.insert(number);
                }
            }
        }
        let state = State { ready, children, done: 0, until: u32::MAX, taken: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Lets workers go on until this many requests are done.
    pub(crate) fn run_until(&self, until: u32) {
        self.lock().until = until;
    }

    /// How many requests are done.
    pub(crate) fn done(&self) -> u32 {
        self.lock().done
    }

    /// The earliest ready request; waits while others may still make one ready. None at the end.
    pub(crate) fn take(&self) -> Option<u32> {
        let mut state = self.lock();
        loop {
            if state.done + state.taken < state.until
                && let Some(number) = state.ready.pop_first()
            {
                state.taken += 1;
                return Some(number);
            }
            if state.taken == 0 || state.done >= state.until {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The earliest ready request, without waiting for one.
    pub(crate) fn take_ready(&self) -> Option<u32> {
        let mut state = self.lock();
        let number = state.ready.pop_first()?;
        state.taken += 1;
        Some(number)
    }

    /// A taken request was served: what continues it is ready.
    pub(crate) fn finish(&self, number: u32) {
        let mut state = self.lock();
        state.taken -= 1;
        state.done += 1;
        let children = state.children.get_mut(number as usize).map(std::mem::take);
        state.ready.extend(children.unwrap_or_default());
        drop(state);
        self.changed.notify_all();
    }

    /// A taken request was thrown away: it is ready again.
    pub(crate) fn give_back(&self, number: u32) {
        let mut state = self.lock();
        state.taken -= 1;
        state.ready.insert(number);
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A worker that panicked leaves the counts as they are between two calls: consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::generate::{GeneratorConfig, generate};
    use crate::link::link;
    use crate::trace::{Request as TraceRequest, Trace};

    /// Long enough that a thread which can go on has gone on.
    const A_WHILE: Duration = Duration::from_millis(50);

    fn links(requests: &[&[u64]]) -> Links {
        let request = |blocks: &&[u64]| TraceRequest {
            input_tokens: 10 * u32::try_from(blocks.len()).unwrap(),
            blocks: blocks.to_vec(),
            ..TraceRequest::default()
        };
        let trace = Trace { block_tokens: 10, requests: requests.iter().map(request).collect() };
        link(&trace)
    }

    /// Two conversations: 0 ← 1 ← 3 and 2 ← 4, and 5 alone.
    fn six() -> Links {
        links(&[&[1, 2], &[1, 2, 3], &[7, 8], &[1, 2, 3, 4], &[7, 8, 9], &[20]])
    }

    #[test]
    fn one_worker_takes_the_earliest_that_is_ready() {
        let schedule = Schedule::new(&six());
        for number in 0..6 {
            assert_eq!(schedule.take(), Some(number));
            assert_eq!(schedule.done(), number);
            schedule.finish(number);
        }
        assert_eq!((schedule.take(), schedule.done()), (None, 6));
        assert_eq!(schedule.take(), None);
    }

    #[test]
    fn an_empty_trace_has_nothing_to_take() {
        assert_eq!(Schedule::new(&links(&[])).take(), None);
    }

    /// Only roots are ready while nothing is finished; a turn is ready once its parent is.
    #[test]
    fn a_turn_waits_for_the_one_it_continues() {
        let schedule = Schedule::new(&six());
        assert_eq!(
            [schedule.take(), schedule.take(), schedule.take()],
            [Some(0), Some(2), Some(5)]
        );
        thread::scope(|scope| {
            let (taken, told) = channel();
            let waiting = &schedule;
            scope.spawn(move || taken.send(waiting.take()).unwrap());
            assert_eq!(told.recv_timeout(A_WHILE), Err(RecvTimeoutError::Timeout));
            schedule.finish(5);
            assert_eq!(told.recv_timeout(A_WHILE), Err(RecvTimeoutError::Timeout));
            schedule.finish(2);
            assert_eq!(told.recv().unwrap(), Some(4));
        });
        schedule.finish(0);
        assert_eq!(schedule.take(), Some(1));
    }

    /// A generated trace by eight threads: each request once, none before its parent's end, and
    /// every thread ends.
    #[test]
    fn threads_serve_every_request_once_and_in_order() {
        let config = GeneratorConfig { conversations: 60, ..GeneratorConfig::default() };
        let links = link(&generate(&config).unwrap());
        let schedule = Schedule::new(&links);
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while let Some(number) = schedule.take() {
                        order.lock().unwrap().push((number, false));
                        thread::yield_now();
                        order.lock().unwrap().push((number, true));
                        schedule.finish(number);
                    }
                });
            }
        });
        let order = order.into_inner().unwrap();
        assert_eq!(order.len(), 2 * links.requests.len());
        let mut ended = BTreeSet::new();
        let mut begun = BTreeSet::new();
        for (number, is_end) in order {
            let parent = links.requests[number as usize].parent;
            assert!(parent.is_none_or(|parent| ended.contains(&parent)), "{number} came early");
            assert!(if is_end { ended.insert(number) } else { begun.insert(number) });
        }
        assert_eq!(ended.len(), links.requests.len());
        assert_eq!(schedule.done() as usize, ended.len());
    }

    /// With a bound, no more are taken than may be done; then everybody stops, also who waits.
    #[test]
    fn a_bound_stops_everybody() {
        let schedule = Schedule::new(&six());
        schedule.run_until(0);
        assert_eq!(schedule.take(), None);
        schedule.run_until(2);
        assert_eq!([schedule.take(), schedule.take()], [Some(0), Some(2)]);
        thread::scope(|scope| {
            // 5 is ready, but two are under way already.
            let waiting = scope.spawn(|| schedule.take());
            schedule.finish(0);
            schedule.finish(2);
            assert_eq!(waiting.join().unwrap(), None);
        });
        assert_eq!((schedule.take(), schedule.done()), (None, 2));
        schedule.run_until(u32::MAX);
        assert_eq!(schedule.take(), Some(1));
    }

    /// What is given back is ready again, counts as not done, and keeps what continues it waiting.
    #[test]
    fn a_request_may_be_given_back() {
        let schedule = Schedule::new(&six());
        schedule.run_until(1);
        assert_eq!(schedule.take(), Some(0));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| schedule.take());
            schedule.give_back(0);
            assert_eq!(waiting.join().unwrap(), Some(0));
        });
        schedule.give_back(0);
        assert_eq!((schedule.done(), schedule.take()), (0, Some(0)));
        schedule.finish(0);
        assert_eq!((schedule.done(), schedule.take()), (1, None));
        schedule.run_until(2);
        assert_eq!(schedule.take(), Some(1));
    }
}
