//! The fleet: which request is served next, and the owners that call the catalog.
//!
//! A turn is served only after the turn that it continues, by whichever worker is free. So a
//! conversation wanders over the fleet, as it does in service.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use pinfold_core::catalog::{Command, PROTOCOL_VERSION, Register, Role};
use pinfold_core::engine::{Reply, Request};
use pinfold_core::id::{Incarnation, OpId, OwnerId, StartId};
use pinfold_core::outcome::{Outcome, Rejection};
use pinfold_host::node::{Gone, NodeClient};

use crate::link::Links;

/// Which requests wait, which are ready, and which are done.
#[derive(Debug)]
pub struct Schedule {
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
    pub fn new(links: &Links) -> Self {
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
    pub fn run_until(&self, until: u32) {
        self.lock().until = until;
    }

    /// How many requests are done.
    pub fn done(&self) -> u32 {
        self.lock().done
    }

    /// The earliest ready request; waits while others may still make one ready. None at the end.
    pub fn take(&self) -> Option<u32> {
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
    pub fn take_ready(&self) -> Option<u32> {
        let mut state = self.lock();
        let number = state.ready.pop_first()?;
        state.taken += 1;
        Some(number)
    }

    /// A taken request was served: what continues it is ready.
    pub fn finish(&self, number: u32) {
        let mut state = self.lock();
        state.taken -= 1;
        state.done += 1;
        let children = state.children.get_mut(number as usize).map(std::mem::take);
        state.ready.extend(children.unwrap_or_default());
        drop(state);
        self.changed.notify_all();
    }

    /// A taken request was thrown away: it is ready again.
    pub fn give_back(&self, number: u32) {
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

/// A registered owner: it numbers its operations and waits for each answer.
#[derive(Debug)]
pub struct Owner {
    client: NodeClient,
    id: OwnerId,
    incarnation: Incarnation,
    sequence: u64,
}

/// Why an owner cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The node is gone.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// It may not register.
    #[error("the owner may not register: {0}")]
    Refused(Rejection),
    /// The answer is of another kind than the request.
    #[error("the node answered something else than was asked")]
    Unexpected,
}

impl Owner {
    /// Registers a new incarnation, after whatever incarnation there is.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone or refuses.
    pub fn register(
        client: NodeClient,
        name: &str,
        role: Role,
        start: u64,
    ) -> Result<Self, OwnerError> {
        let id = OwnerId::of_name(name);
        let start = StartId::of_name(&format!("{name} {start}"));
        let mut after = Incarnation(0);
        loop {
            let version = PROTOCOL_VERSION;
            let register =
                Register { owner: id, role, after, start, version, expected_policy: None };
            match client.call(Request::Register(register))? {
                Reply::Command(Ok(Outcome::Registered { incarnation })) => {
                    return Ok(Self { client, id, incarnation, sequence: 0 });
                }
                Reply::Command(Err(Rejection::StaleIncarnation { current })) if current > after => {
                    after = current;
                }
                Reply::Command(Err(rejection)) => return Err(OwnerError::Refused(rejection)),
                _ => return Err(OwnerError::Unexpected),
            }
        }
    }

    /// Its id and incarnation.
    #[must_use]
    pub const fn identity(&self) -> (OwnerId, Incarnation) {
        (self.id, self.incarnation)
    }

    /// Asks one thing and waits for the durable answer.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone. A refusal is an answer.
    pub fn ask(&mut self, command: Command) -> Result<Result<Outcome, Rejection>, OwnerError> {
        let op = self.next_op();
        match self.client.call(Request::Command(op, command))? {
            Reply::Command(answer) => Ok(answer),
            _ => Err(OwnerError::Unexpected),
        }
    }

    /// Asks several things at once; the first refusal ends the list, and the rest has no answer.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone.
    pub fn ask_all(
        &mut self,
        commands: Vec<Command>,
    ) -> Result<Vec<Option<Result<Outcome, Rejection>>>, OwnerError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let commands = commands.into_iter().map(|command| (self.next_op(), command)).collect();
        match self.client.call(Request::List(commands))? {
            Reply::List(answers) => Ok(answers),
            _ => Err(OwnerError::Unexpected),
        }
    }

    /// The operation id of the last command.
    #[must_use]
    pub const fn last_op(&self) -> OpId {
        OpId { owner: self.id, incarnation: self.incarnation, sequence: self.sequence }
    }

    fn next_op(&mut self) -> OpId {
        self.sequence += 1;
        self.last_op()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread;
    use std::time::Duration;

    use pinfold_core::id::{ConversationId, Epoch};
    use pinfold_core::policy::{Genesis, Limits, Policy};
    use pinfold_host::node::Node;

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

    fn node(dir: &tempfile::TempDir) -> Node {
        let genesis = Genesis {
            namespace: "fleet".parse().unwrap(),
            epoch: Epoch::of_name("fleet test"),
            operator: OwnerId::of_name("operator"),
            policy: Policy::default(),
            limits: Limits::default(),
        };
        Node::create(dir.path(), genesis).unwrap().0
    }

    fn forget(number: u128) -> Command {
        Command::Forget { conversation: ConversationId::from_u128(number) }
    }

    /// A start that is new follows whatever incarnation there is; the same start is the same one.
    #[test]
    fn an_owner_follows_its_earlier_life() {
        let dir = tempfile::tempdir().unwrap();
        let node = node(&dir);
        let register =
            |start| Owner::register(node.client().unwrap(), "worker", Role::Worker, start).unwrap();
        let mut first = register(1);
        assert_eq!(first.identity(), (OwnerId::of_name("worker"), Incarnation(1)));
        assert!(first.ask(Command::Collect { limit: 1 }).unwrap().is_ok());
        assert_eq!(first.last_op().sequence, 1);
        assert_eq!(register(1).identity(), first.identity());
        let second = register(2);
        assert_eq!(second.identity().1, Incarnation(2));
        let stale = Err(Rejection::StaleIncarnation { current: Incarnation(2) });
        assert_eq!(first.ask(Command::Collect { limit: 1 }), Ok(stale));
        assert_eq!(first.last_op().sequence, 2);
    }

    #[test]
    fn a_role_is_for_life() {
        let dir = tempfile::tempdir().unwrap();
        let node = node(&dir);
        let register = |role| Owner::register(node.client().unwrap(), "one", role, 1);
        register(Role::Worker).unwrap();
        let refused = register(Role::Operator).unwrap_err();
        assert_eq!(refused, OwnerError::Refused(Rejection::RoleMismatch));
    }

    /// A refusal ends a list: what stands behind it has no answer.
    #[test]
    fn a_list_ends_with_its_first_refusal() {
        let dir = tempfile::tempdir().unwrap();
        let node = node(&dir);
        let client = node.client().unwrap();
        let mut operator = Owner::register(client, "operator", Role::Operator, 1).unwrap();
        let unknown = Command::Retire { owner: OwnerId::of_name("nobody") };
        let answers = operator.ask_all(vec![forget(1), unknown, forget(2)]).unwrap();
        let expected = [Some(Ok(Outcome::Forgotten)), Some(Err(Rejection::UnknownOwner)), None];
        assert_eq!(answers, expected);
        assert_eq!(operator.last_op().sequence, 3);
    }

    #[test]
    fn an_owner_hears_that_its_node_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let node = node(&dir);
        let client = node.client().unwrap();
        let mut operator = Owner::register(client.clone(), "operator", Role::Operator, 1).unwrap();
        node.stop().unwrap();
        assert_eq!(operator.ask(forget(1)), Err(OwnerError::Gone(Gone)));
        let again = Owner::register(client, "operator", Role::Operator, 2);
        assert_eq!(again.unwrap_err(), OwnerError::Gone(Gone));
    }
}
