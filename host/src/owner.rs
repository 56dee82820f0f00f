//! An owner: it registers with a node, numbers its operations, and waits for each answer.
//!
//! Any number of threads may ask through one owner. It protects the window of the protocol: a
//! command is numbered only when everything W below it is answered, W being the job's limit of
//! unanswered commands. A command whose call ended with [`Gone`] keeps its operation id and stays
//! unanswered until somebody sends it again through another client; so nothing is ever asked under
//! two ids, and no answer is lost with a connection. Whoever sends it, all who wait for its answer
//! get the first one. A list stays a list when it is sent again. It never judges an answer and
//! never retries where the node is gone.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pinfold_core::catalog::{Command, PROTOCOL_VERSION, Register, Role};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{Epoch, Incarnation, OpId, OwnerId, StartId};
use pinfold_core::outcome::{Outcome, Rejection};
use pinfold_core::policy::{Genesis, Limits, Policy};

use crate::coordinator::Coordinator;
use crate::node::Gone;

/// A registered owner.
#[derive(Debug)]
pub struct Owner {
    id: OwnerId,
    incarnation: Incarnation,
    /// The life of the job that it registered with.
    epoch: Epoch,
    desk: Mutex<Desk>,
    /// Something was answered, or the connection changed.
    changed: Condvar,
}

#[derive(Debug)]
struct Desk {
    /// None while the node is gone.
    client: Option<Arc<dyn Coordinator>>,
    /// How many clients there were before: tells a call that failed late from one that failed now.
    life: u64,
    /// W.
    window: u64,
    /// The most commands of one list.
    list: u64,
    /// The number of the last command.
    sequence: u64,
    /// What has no answer, or an answer that somebody comes for.
    numbered: BTreeMap<u64, Numbered>,
}

/// A command that has its number.
#[derive(Debug)]
struct Numbered {
    command: Command,
    /// The numbers of the list that it stands in; only its own outside of one.
    list: RangeInclusive<u64>,
    /// The first one, whoever got it.
    answer: Option<Answer>,
    /// How many come for the answer: calls under way, and a transfer.
    claims: u32,
}

/// What the catalog says to a command: an outcome, or a refusal.
pub type Answer = Result<Outcome, Rejection>;

/// Why an owner cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The node is gone.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// The node has another job, which knows nothing of this owner's operations.
    #[error("the node has another job than the owner registered with: open the same data folder")]
    OtherJob,
    /// It may not register.
    #[error("the owner may not register: {0}")]
    Refused(Rejection),
    /// The answer is of another kind than the request.
    #[error("the node answered something else than was asked")]
    Unexpected,
    /// No command waits under this operation: it was answered, or stood in a list behind a refusal.
    #[error("operation {op:?} waits for no answer: send only what is among `unanswered`")]
    NotWaiting {
        /// The operation.
        op: OpId,
    },
    /// It stands in a list behind a command without an answer, whose refusal would end the list.
    #[error("operation {op:?} stands in a list behind {first:?}: send that one first")]
    Behind {
        /// The operation.
        op: OpId,
        /// What has to be answered before it.
        first: OpId,
    },
}

/// Why a numbered command has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The node is gone.
    Gone,
    /// The answer is of another kind than the request.
    Unexpected,
}

impl From<Gone> for Unanswered {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

impl From<Unanswered> for OwnerError {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Gone => Self::Gone(Gone),
            Unanswered::Unexpected => Self::Unexpected,
        }
    }
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
        client: impl Coordinator + 'static,
        name: &str,
        role: Role,
        start: StartId,
    ) -> Result<Self, OwnerError> {
        Self::registered(Arc::new(client), name, role, start, None)
    }

    /// The same for one that counts on this policy, such as a worker that plans by how many turns
    /// are kept: a job with another one refuses it, and nothing is registered.
    ///
    /// # Errors
    /// [`OwnerError::Refused`] with [`Rejection::PolicyMismatch`] when the job has another policy
    /// now; otherwise as [`register`](Self::register).
    pub fn register_expecting(
        client: impl Coordinator + 'static,
        name: &str,
        role: Role,
        start: StartId,
        policy: Policy,
    ) -> Result<Self, OwnerError> {
        Self::registered(Arc::new(client), name, role, start, Some(policy))
    }

    fn registered(
        client: Arc<dyn Coordinator>,
        name: &str,
        role: Role,
        start: StartId,
        expected_policy: Option<Policy>,
    ) -> Result<Self, OwnerError> {
        let id = OwnerId::of_name(name);
        let Genesis { epoch, limits, .. } = job(&client)?;
        let mut after = Incarnation(0);
        loop {
            let version = PROTOCOL_VERSION;
            let register = Register { owner: id, role, after, start, version, expected_policy };
            match client.call(Request::Register(register))? {
                Reply::Command(Ok(Outcome::Registered { incarnation })) => {
                    let mut desk = Desk {
                        client: None,
                        life: 0,
                        window: 0,
                        list: 0,
                        sequence: 0,
                        numbered: BTreeMap::new(),
                    };
                    desk.connect(client, &limits);
                    let (desk, changed) = (Mutex::new(desk), Condvar::new());
                    return Ok(Self { id, incarnation, epoch, desk, changed });
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

    /// True while it has a node to ask; false from the first call that found none, until it
    /// [reconnects](Self::reconnect).
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.desk().client.is_some()
    }

    /// Goes on with a node that was opened again: the same incarnation, the same numbers.
    ///
    /// What is [unanswered](Self::unanswered) stays so until it is [sent](Self::send) again; a
    /// [`Runtime`](crate::runtime::Runtime) does that for its own.
    ///
    /// # Errors
    /// [`OwnerError`] when this node is gone too, or has another job, whose answers would count for
    /// nothing; the owner is then as it was.
    pub fn reconnect(&self, client: impl Coordinator + 'static) -> Result<(), OwnerError> {
        let Genesis { epoch, limits, .. } = job(&client)?;
        if epoch != self.epoch {
            return Err(OwnerError::OtherJob);
        }
        self.desk().connect(Arc::new(client), &limits);
        self.changed.notify_all();
        Ok(())
    }

    /// Asks one thing and waits for the durable answer.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone. A command that had its number by then is among the
    /// [unanswered](Self::unanswered). A refusal is an answer.
    pub fn ask(&self, command: Command) -> Result<Answer, OwnerError> {
        self.ask_numbered(command).map(|(_, answer)| answer)
    }

    /// The same with the operation that it got.
    pub(crate) fn ask_numbered(&self, command: Command) -> Result<(OpId, Answer), OwnerError> {
        let op = self.op(self.open_window(1)?.number(command.clone(), 1));
        Ok((op, self.fetch_or_let_go(op, command)?))
    }

    /// Numbers a command, once the window is open for it. [`Self::send`] asks it.
    ///
    /// # Errors
    /// [`Gone`] while the node is gone; the command has no number then.
    pub fn begin(&self, command: Command) -> Result<OpId, Gone> {
        let mut desk = self.open_window(1)?;
        Ok(self.op(desk.number(command, 0)))
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
        Ok(desk.is_open(1).then(|| self.op(desk.number(command.clone(), 0))))
    }

    /// Numbers as many of these commands as one list may hold and the window is open for now; none
    /// if it is open for none. It is for one who [fetches](Self::fetch_list) the answers, however
    /// late: until then they are kept, also when somebody else got them.
    pub(crate) fn try_begin_list(&self, commands: &[Command]) -> Result<Vec<OpId>, Gone> {
        let mut desk = self.desk();
        if desk.client.is_none() {
            return Err(Gone);
        }
        let most = (1..=desk.list.min(commands.len() as u64)).rev();
        let count = most.into_iter().find(|count| desk.is_open(*count)).unwrap_or(0);
        let begun = commands.get(..usize::try_from(count).unwrap_or(0)).unwrap_or_default();
        Ok(desk.number_list(begun).map(|sequence| self.op(sequence)).collect())
    }

    /// Sends a command that is numbered, for the first time or again, and waits for its answer.
    /// When it is refused, what stands behind it in its list is not tried and waits no more.
    ///
    /// # Errors
    /// [`OwnerError::Gone`] when the node is gone: send it again after [`Self::reconnect`].
    /// [`OwnerError::Behind`] and [`OwnerError::NotWaiting`] when it is not to be sent; whoever
    /// sends the [unanswered](Self::unanswered) in order passes over the latter.
    pub fn send(&self, op: OpId) -> Result<Answer, OwnerError> {
        let command = {
            let mut desk = self.desk();
            if (op.owner, op.incarnation) != self.identity() {
                return Err(OwnerError::NotWaiting { op });
            }
            if let Some(first) = desk.first_before(op.sequence) {
                return Err(OwnerError::Behind { op, first: self.op(first) });
            }
            let one = desk.numbered.get_mut(&op.sequence);
            let one = one.ok_or(OwnerError::NotWaiting { op })?;
            one.claims += 1;
            one.command.clone()
        };
        Ok(self.fetch_or_let_go(op, command)?)
    }

    /// Asks commands of one list under their operations, in their order; the claim on each answer
    /// ends once that is here. None for what stands behind a refusal.
    pub(crate) fn fetch_list(
        &self,
        list: &[(OpId, Command)],
    ) -> Result<Vec<Option<Answer>>, Unanswered> {
        if let [(op, command)] = list {
            return self.fetch(*op, command.clone()).map(|answer| vec![Some(answer)]);
        }
        let known = self.desk().known(list);
        let (told, rest) = list.split_at(known.len());
        let is_over = rest.is_empty() || known.iter().any(Answer::is_err);
        let answers = if is_over { vec![None; rest.len()] } else { self.send_list(rest)? };
        let mut desk = self.desk();
        let told =
            told.iter().zip(known).map(|((op, _), said)| desk.conclude(op.sequence, Some(said)));
        let told: Vec<_> = told.collect();
        drop(desk);
        self.changed.notify_all();
        Ok(told.into_iter().chain(answers).collect())
    }

    /// Asks a command under its operation; the claim on its answer ends once that is here.
    fn fetch(&self, op: OpId, command: Command) -> Result<Answer, Unanswered> {
        let known = self.desk().numbered.get(&op.sequence).and_then(|one| one.answer);
        let said = match known {
            Some(answer) => answer,
            None => match self.call(&Request::Command(op, command))? {
                Reply::Command(answer) => answer,
                _ => return Err(Unanswered::Unexpected),
            },
        };
        let first = self.desk().conclude(op.sequence, Some(said));
        self.changed.notify_all();
        Ok(first.unwrap_or(said))
    }

    fn fetch_or_let_go(&self, op: OpId, command: Command) -> Result<Answer, Unanswered> {
        self.fetch(op, command).inspect_err(|_| self.desk().let_go(op.sequence))
    }

    fn call(&self, request: &Request) -> Result<Reply, Gone> {
        loop {
            let (client, life) = {
                let desk = self.desk();
                (desk.client.clone().ok_or(Gone)?, desk.life)
            };
            match client.call(request.clone()) {
                Ok(reply) => return Ok(reply),
                // A node that was opened again meanwhile is asked at once.
                Err(Gone) => self.lost(life),
            }
        }
    }

    /// Asks several things at once; the first refusal ends them, and the rest has no answer. What
    /// is more than one list may hold, or than the window, goes in several lists.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone. What was numbered is [unanswered](Self::unanswered)
    /// and still a list: [sent](Self::send) again one by one, in order, it ends with its first
    /// refusal. What was answered before is not told again.
    pub fn ask_all(&self, commands: Vec<Command>) -> Result<Vec<Option<Answer>>, OwnerError> {
        let mut answers = Vec::with_capacity(commands.len());
        let mut rest = commands.into_iter();
        let mut refused = false;
        while !refused && rest.len() > 0 {
            let part = self.ask_list(&mut rest)?;
            refused = part.iter().any(|answer| !matches!(answer, Some(Ok(_))));
            answers.extend(part);
        }
        answers.extend(rest.map(|_| None));
        Ok(answers)
    }

    /// Asks as many of these as one list may hold.
    fn ask_list(
        &self,
        commands: &mut impl ExactSizeIterator<Item = Command>,
    ) -> Result<Vec<Option<Answer>>, OwnerError> {
        let list = self.begin_list(commands)?;
        let sent = self.send_list(&list);
        if sent.is_err() {
            let mut desk = self.desk();
            for (op, _) in &list {
                desk.let_go(op.sequence);
            }
        }
        Ok(sent?)
    }

    /// Numbers as many of these as one list may hold, and claims their answers.
    fn begin_list(
        &self,
        commands: &mut impl ExactSizeIterator<Item = Command>,
    ) -> Result<Vec<(OpId, Command)>, Gone> {
        let mut desk = self.open_window(commands.len() as u64)?;
        let most = usize::try_from(desk.list).unwrap_or(usize::MAX);
        let commands: Vec<Command> = commands.take(most).collect();
        let list = desk.number_list(&commands);
        Ok(list.map(|sequence| self.op(sequence)).zip(commands).collect())
    }

    fn send_list(&self, list: &[(OpId, Command)]) -> Result<Vec<Option<Answer>>, Unanswered> {
        let said = match self.call(&Request::List(list.to_vec()))? {
            Reply::List(answers) if answers.len() == list.len() => answers,
            // Refused as a whole: nothing was looked at.
            Reply::Command(Err(rejection)) => {
                let rest = std::iter::repeat_n(None, list.len().saturating_sub(1));
                std::iter::once(Some(Err(rejection))).chain(rest).collect()
            }
            _ => return Err(Unanswered::Unexpected),
        };
        let mut desk = self.desk();
        let all = list.iter().zip(said);
        let answers = all.map(|((op, _), said)| desk.conclude(op.sequence, said)).collect();
        drop(desk);
        self.changed.notify_all();
        Ok(answers)
    }

    /// What has a number and no answer, in the order of the numbers: under way, or to be sent again
    /// once the node is back. While one of them waits, at most W more are numbered.
    #[must_use]
    pub fn unanswered(&self) -> Vec<(OpId, Command)> {
        let desk = self.desk();
        desk.unanswered().map(|(sequence, one)| (self.op(sequence), one.command.clone())).collect()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // Nobody panics between two changes of the desk that belong together.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many more may be numbered, or as many as one list may hold.
    fn open_window(&self, count: u64) -> Result<MutexGuard<'_, Desk>, Gone> {
        let mut desk = self.desk();
        loop {
            if desk.client.is_none() {
                return Err(Gone);
            }
            if desk.is_open(count.min(desk.list)) {
                return Ok(desk);
            }
            desk = self.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
    }

    const fn op(&self, sequence: u64) -> OpId {
        OpId { owner: self.id, incarnation: self.incarnation, sequence }
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
    fn connect(&mut self, client: Arc<dyn Coordinator>, limits: &Limits) {
        self.client = Some(client);
        self.life += 1;
        self.window = u64::from(limits.unanswered.max(1));
        self.list = u64::from(limits.commands_per_list).clamp(1, self.window);
    }

    fn unanswered(&self) -> impl Iterator<Item = (u64, &Numbered)> {
        let all = self.numbered.iter().map(|(sequence, one)| (*sequence, one));
        all.filter(|(_, one)| one.answer.is_none())
    }

    /// Everything W below the last of so many more is answered.
    fn is_open(&self, count: u64) -> bool {
        let first = self.unanswered().next().map_or(self.sequence + 1, |(sequence, _)| sequence);
        self.sequence + count < first + self.window
    }

    fn number(&mut self, command: Command, claims: u32) -> u64 {
        self.sequence += 1;
        let list = self.sequence..=self.sequence;
        self.numbered.insert(self.sequence, Numbered { command, list, answer: None, claims });
        self.sequence
    }

    fn number_list(&mut self, commands: &[Command]) -> RangeInclusive<u64> {
        let list = self.sequence + 1..=self.sequence + commands.len() as u64;
        for command in commands {
            self.sequence += 1;
            let (command, list) = (command.clone(), list.clone());
            let one = Numbered { command, list, answer: None, claims: 1 };
            self.numbered.insert(self.sequence, one);
        }
        list
    }

    /// The answers that somebody got already, from the first of a list on.
    fn known(&self, list: &[(OpId, Command)]) -> Vec<Answer> {
        let answer = |op: &OpId| self.numbered.get(&op.sequence).and_then(|one| one.answer);
        list.iter().map_while(|(op, _)| answer(op)).collect()
    }

    /// The first of its list before it that has no answer.
    fn first_before(&self, sequence: u64) -> Option<u64> {
        let first = *self.numbered.get(&sequence)?.list.start();
        let mut before = self.numbered.range(first..sequence);
        before.find(|(_, one)| one.answer.is_none()).map(|(first, _)| *first)
    }

    /// Takes what somebody was told who had a claim, and gives the first answer. What was not
    /// tried has none and counts as answered, as does all behind a refusal in its list.
    fn conclude(&mut self, sequence: u64, said: Option<Answer>) -> Option<Answer> {
        let Some(one) = self.numbered.get_mut(&sequence) else { return said };
        one.answer = one.answer.or(said);
        let (answer, last) = (one.answer, *one.list.end());
        let Some(known) = answer else {
            self.numbered.remove(&sequence);
            return None;
        };
        if known.is_err() {
            for behind in sequence + 1..=last {
                self.numbered.remove(&behind);
            }
        }
        self.let_go(sequence);
        answer
    }

    /// Ends a claim. An answer that nobody comes for is kept no longer.
    fn let_go(&mut self, sequence: u64) {
        if let Some(one) = self.numbered.get_mut(&sequence) {
            one.claims = one.claims.saturating_sub(1);
            if one.claims == 0 && one.answer.is_some() {
                self.numbered.remove(&sequence);
            }
        }
    }
}

/// The job, as it is now.
fn job(client: &dyn Coordinator) -> Result<Genesis, OwnerError> {
    match client.call(Request::Query(Query::Job))? {
        Reply::Job(job) => Ok(job),
        _ => Err(OwnerError::Unexpected),
    }
}
