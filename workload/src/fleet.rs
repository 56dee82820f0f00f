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
