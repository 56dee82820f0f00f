//! An owner: it registers with a node, numbers its operations, and waits for each answer.
//!
//! Any number of threads may ask through one owner. It protects the window of the protocol: a
//! command is numbered only when everything W below it is answered, W being the job's limit of
//! unanswered commands. A command whose call ended with [`Gone`] keeps its operation id and stays
//! unanswered until somebody sends it again through another client; so nothing is ever asked under
//! two ids, and no answer is lost with a connection. It never judges an answer and never retries
//! where the node is gone.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use pinfold_core::catalog::{Command, PROTOCOL_VERSION, Register, Role};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{Incarnation, OpId, OwnerId, StartId};
use pinfold_core::outcome::{Outcome, Rejection};
use pinfold_core::policy::Limits;

use crate::node::{Gone, NodeClient};

/// A registered owner.
#[derive(Debug)]
pub struct Owner {
    id: OwnerId,
    incarnation: Incarnation,
    desk: Mutex<Desk>,
    /// Something was answered, or the connection changed.
    changed: Condvar,
}

#[derive(Debug)]
struct Desk {
    /// None while the node is gone.
    client: Option<NodeClient>,
    /// How many clients there were before: tells a call that failed late from one that failed now.
    life: u64,
    /// W.
    window: u64,
    /// The most commands of one list.
    list: u64,
    /// The number of the last command.
    sequence: u64,
    unanswered: BTreeMap<u64, Command>,
}

/// What the catalog says to a command: an outcome, or a refusal.
pub type Answer = Result<Outcome, Rejection>;

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
    /// No command waits under this operation.
    #[error("operation {op:?} waits for no answer: send what `begin` numbered, until its answer")]
    NotWaiting {
        /// The operation.
        op: OpId,
    },
}

impl Owner {
    /// Registers a new incarnation, after whatever incarnation there is.
    ///
    /// `start` tells this start of the process from every other: random, and new each time. A start
    /// that was used before gets its old incarnation again, whose numbers are used up.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone or refuses.
    pub fn register(
        client: NodeClient,
        name: &str,
        role: Role,
        start: StartId,
    ) -> Result<Self, OwnerError> {
        let id = OwnerId::of_name(name);
        let limits = limits(&client)?;
        let mut after = Incarnation(0);
        loop {
            let version = PROTOCOL_VERSION;
            let register =
                Register { owner: id, role, after, start, version, expected_policy: None };
            match client.call(Request::Register(register))? {
                Reply::Command(Ok(Outcome::Registered { incarnation })) => {
                    let mut desk = Desk {
                        client: None,
                        life: 0,
                        window: 0,
                        list: 0,
                        sequence: 0,
                        unanswered: BTreeMap::new(),
                    };
                    desk.connect(client, &limits);
                    let (desk, changed) = (Mutex::new(desk), Condvar::new());
                    return Ok(Self { id, incarnation, desk, changed });
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

    /// Goes on with a node that was opened again: the same incarnation, the same numbers.
    ///
    /// What is [unanswered](Self::unanswered) stays so until it is [sent](Self::send) again; a
    /// [`Runtime`](crate::runtime::Runtime) does that for its own.
    ///
    /// # Errors
    /// [`OwnerError`] when this node is gone too; the owner is then as it was.
    pub fn reconnect(&self, client: NodeClient) -> Result<(), OwnerError> {
        let limits = limits(&client)?;
        self.desk().connect(client, &limits);
        self.changed.notify_all();
        Ok(())
    }

    /// Asks one thing and waits for the durable answer.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone. A command that had its number by then is among the
    /// [unanswered](Self::unanswered). A refusal is an answer.
    pub fn ask(&self, command: Command) -> Result<Answer, OwnerError> {
        let op = self.begin(command)?;
        self.send(op)
    }

    /// Numbers a command, once the window is open for it. [`Self::send`] asks it.
    ///
    /// # Errors
    /// [`Gone`] while the node is gone; the command has no number then.
    pub fn begin(&self, command: Command) -> Result<OpId, Gone> {
        let mut desk = self.open_window(1)?;
        Ok(self.number(&mut desk, command))
    }

    /// Numbers a command if the window is open for it now; none if it is not.
    ///
    /// # Errors
    /// [`Gone`] while the node is gone.
    pub fn try_begin(&self, command: &Command) -> Result<Option<OpId>, Gone> {
        let mut desk = self.desk();
        if desk.client.is_none() {
            return Err(Gone);
        }
        Ok(desk.is_open(1).then(|| self.number(&mut desk, command.clone())))
    }

    /// Sends a command that is numbered, for the first time or again, and waits for its answer.
    ///
    /// # Errors
    /// [`OwnerError::Gone`] when the node is gone: send it again after [`Self::reconnect`].
    pub fn send(&self, op: OpId) -> Result<Answer, OwnerError> {
        loop {
            let (client, life, command) = {
                let desk = self.desk();
                let is_own = (op.owner, op.incarnation) == self.identity();
                let command = desk.unanswered.get(&op.sequence).filter(|_| is_own);
                let command = command.cloned().ok_or(OwnerError::NotWaiting { op })?;
                (desk.client.clone().ok_or(Gone)?, desk.life, command)
            };
            match client.call(Request::Command(op, command)) {
                Ok(Reply::Command(answer)) => {
                    self.answered([op.sequence]);
                    return Ok(answer);
                }
                Ok(_) => return Err(OwnerError::Unexpected),
                // A node that was opened again meanwhile is asked at once.
                Err(Gone) => self.lost(life),
            }
        }
    }

    /// Asks several things at once; the first refusal ends them, and the rest has no answer. What
    /// is more than one list may hold, or than the window, goes in several lists.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone. What was numbered is [unanswered](Self::unanswered),
    /// and is sent again one by one, up to the first refusal.
    pub fn ask_all(&self, commands: Vec<Command>) -> Result<Vec<Option<Answer>>, OwnerError> {
        let mut answers = Vec::with_capacity(commands.len());
        let mut refused = false;
        let mut rest = commands.into_iter().peekable();
        while rest.peek().is_some() {
            let most = self.desk().list;
            let part = rest.by_ref().take(usize::try_from(most).unwrap_or(usize::MAX));
            if refused {
                answers.extend(part.map(|_| None));
                continue;
            }
            let part = self.ask_list(part.collect())?;
            refused = part.iter().any(|answer| !matches!(answer, Some(Ok(_))));
            answers.extend(part);
        }
        Ok(answers)
    }

    fn ask_list(&self, commands: Vec<Command>) -> Result<Vec<Option<Answer>>, OwnerError> {
        let count = commands.len();
        let (client, life, list) = {
            let mut desk = self.open_window(count as u64)?;
            let list: Vec<_> = commands
                .into_iter()
                .map(|command| (self.number(&mut desk, command.clone()), command))
                .collect();
            (desk.client.clone().ok_or(Gone)?, desk.life, list)
        };
        let sequences: Vec<u64> = list.iter().map(|(op, _)| op.sequence).collect();
        let reply = client.call(Request::List(list)).inspect_err(|Gone| self.lost(life))?;
        let answers = match reply {
            Reply::List(answers) => answers,
            // Refused as a whole: nothing was looked at.
            Reply::Command(Err(rejection)) => {
                let rest = std::iter::repeat_n(None, count.saturating_sub(1));
                std::iter::once(Some(Err(rejection))).chain(rest).collect()
            }
            _ => return Err(OwnerError::Unexpected),
        };
        // What was not tried counts as answered.
        self.answered(sequences);
        Ok(answers)
    }

    /// What has a number and no answer: under way, or to be sent again once the node is back. While
    /// one of them waits, at most W more are numbered.
    #[must_use]
    pub fn unanswered(&self) -> Vec<(OpId, Command)> {
        let desk = self.desk();
        let all = desk.unanswered.iter();
        all.map(|(sequence, command)| (self.op(*sequence), command.clone())).collect()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // Nobody panics between two changes of the desk that belong together.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many more may be numbered.
    fn open_window(&self, count: u64) -> Result<MutexGuard<'_, Desk>, Gone> {
        let mut desk = self.desk();
        loop {
            if desk.client.is_none() {
                return Err(Gone);
            }
            if desk.is_open(count) {
                return Ok(desk);
            }
            desk = self.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn number(&self, desk: &mut Desk, command: Command) -> OpId {
        desk.sequence += 1;
        desk.unanswered.insert(desk.sequence, command);
        self.op(desk.sequence)
    }

    const fn op(&self, sequence: u64) -> OpId {
        OpId { owner: self.id, incarnation: self.incarnation, sequence }
    }

    fn answered(&self, sequences: impl IntoIterator<Item = u64>) {
        let mut desk = self.desk();
        for sequence in sequences {
            desk.unanswered.remove(&sequence);
        }
        drop(desk);
        self.changed.notify_all();
    }

    /// A call through the client of this life ended with [`Gone`].
    fn lost(&self, life: u64) {
        let mut desk = self.desk();
        if desk.life == life {
            desk.client = None;
        }
        drop(desk);
        self.changed.notify_all();
    }
}

impl Desk {
    fn connect(&mut self, client: NodeClient, limits: &Limits) {
        self.client = Some(client);
        self.life += 1;
        self.window = u64::from(limits.unanswered.max(1));
        self.list = u64::from(limits.commands_per_list).clamp(1, self.window);
    }

    /// Everything W below the last of so many more is answered.
    fn is_open(&self, count: u64) -> bool {
        let first = self.unanswered.keys().next().copied().unwrap_or(self.sequence + 1);
        self.sequence + count < first + self.window
    }
}

/// The job's limits, as they are now.
fn limits(client: &NodeClient) -> Result<Limits, OwnerError> {
    match client.call(Request::Query(Query::Job))? {
        Reply::Job(job) => Ok(job.limits),
        _ => Err(OwnerError::Unexpected),
    }
}
