//! The engine: the catalog behind its durability gate.
//!
//! The four kinds of methods, in the order in which a host uses them:
//! - *make or recover*: [`Engine::create`], [`Engine::recover`], [`Engine::resume`];
//! - *input*: [`Engine::submit`], and [`Engine::follow_up`] when there is none;
//! - *persist*: [`Engine::take_batch`], append and sync its bytes, then [`Engine::commit`] or
//!   [`Engine::fail`];
//! - *output*: [`Engine::poll_output`], until it is empty.
//!
//! No reply and no effect leaves before the events that it depends on are durable; refusals and
//! answers to queries wait too, because they reveal state. A failed append is final: the engine is
//! poisoned and the host recovers from the journal.

mod twin;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use crate::catalog::{
    Blockers, Broken, Catalog, Change, Command, Decision, DeleteWork, Event, Register, Verdict,
};
use crate::id::{CheckpointId, Epoch, Key, Minted, ObjectId, OpId};
use crate::journal::record::{FrameFull, FrameWriter};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Field, Limit, Malformed, Outcome, Problem, Rejection};
use crate::policy::{Gauges, Genesis};
use crate::replay::{RecoverError, Replay};

/// The host's name for one request: given with the input, given back with the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

impl core::hash::Hash for Ticket {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        state.write_u128(Minted::Ticket.word(self.0));
    }
}

/// One message of a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// The host's name for it.
    pub ticket: Ticket,
    /// The epoch that the client believes in.
    pub epoch: Epoch,
    /// What it asks.
    pub request: Request,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// A new incarnation.
    Register(Register),
    /// One command.
    Command(OpId, Command),
    /// Commands sent together: each is decided by itself, up to the first refusal. One that is
    /// empty, or longer than the limits allow, is refused as a whole with [`Reply::Command`].
    List(Vec<(OpId, Command)>),
    /// A question.
    Query(Query),
}

/// A question about the state. It leaves no receipt and is answered at the durable position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Query {
    /// Namespace, epoch, policy and limits.
    Job,
    /// What the job holds.
    Gauges,
    /// Why a checkpoint is still here.
    Blockers(CheckpointId),
    /// What each key of a listing is to this job.
    Audit(Vec<String>),
}

/// The answer to one input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// To a registration or a command; and to a list that is refused as a whole, before any of its
    /// commands was looked at.
    Command(Result<Outcome, Rejection>),
    /// To a list: as many answers as commands; none means not tried.
    List(Vec<Option<Result<Outcome, Rejection>>>),
    /// To [`Query::Job`].
    Job(Genesis),
    /// To [`Query::Gauges`].
    Gauges(Gauges),
    /// To [`Query::Blockers`]; none when the checkpoint has no record.
    Blockers(Option<Blockers>),
    /// To [`Query::Audit`], key by key.
    Audit(Vec<Verdict>),
    /// The query was of another epoch.
    WrongEpoch,
    /// The engine is poisoned; nothing is known of what the input would have done.
    Poisoned,
}

/// Something for the host to do. Its completion returns as an input, from any owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Delete these objects, each by its whole key, and report with `Deleted`.
    Delete {
        /// The operation of the `Collect` that asked for the work.
        by: OpId,
        /// The checkpoint, which nothing can hold any more.
        checkpoint: CheckpointId,
        /// The objects.
        objects: Vec<ObjectId>,
    },
}

impl Effect {
    /// The keys to delete.
    pub fn keys<'a>(&'a self, job: &'a Genesis) -> impl Iterator<Item = Key> + use<'a> {
        let Self::Delete { checkpoint, objects, .. } = self;
        objects.iter().map(|object| Key {
            namespace: job.namespace.clone(),
            epoch: job.epoch,
            checkpoint: *checkpoint,
            object: *object,
        })
    }
}

/// What leaves the engine, in order.
///
/// The effects of a `Collect` leave before its reply, and those of a list before the list's: who
/// sees the reply knows that the work was handed out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Output {
    /// An answer for the client behind a ticket.
    Reply(Ticket, Reply),
    /// Work for the host.
    Effect(Effect),
}

/// How an engine is set up beside its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// From this many bytes of records on, [`Engine::is_full`] asks for a batch. It bounds nothing:
    /// input is still taken, and what exceeds a frame's 16 MiB waits in the next frame.
    pub full_bytes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { full_bytes: 1 << 20 }
    }
}

/// One frame of records for the journal, to be appended and synced as a whole.
///
/// It cannot be cloned, made or numbered by a host: it is handed out once, and handed back once.
#[derive(Debug)]
#[must_use = "append and sync its bytes, then commit it; or fail it"]
pub struct Batch {
    bytes: Vec<u8>,
    /// The position after its last record.
    until: u64,
}

impl Batch {
    /// The frame's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The engine. See the [module](self).
#[derive(Debug)]
pub struct Engine {
    catalog: Catalog,
    config: Config,
    frame: FrameWriter,
    /// Bytes of the records in the frame.
    frame_bytes: usize,
    /// Full frames that were not taken yet.
    sealed: VecDeque<Batch>,
    /// The record under way.
    scratch: Vec<u8>,
    /// Positions: after the last record, and after the last durable one.
    appended: u64,
    durable: u64,
    /// A buffer for the next batch, so that batches need no allocation.
    spare: Vec<u8>,
    /// A batch is out.
    awaiting: bool,
    poisoned: bool,
    outbox: VecDeque<(u64, Output)>,
}

impl Engine {
    /// The engine of a new job. Its genesis is in the first batch.
    ///
    /// # Errors
    /// [`RecoverError::Genesis`] names the field that cannot be used.
    pub fn create(config: Config, genesis: Genesis) -> Result<Self, RecoverError> {
        let event = Event::Genesis(genesis.clone());
        let catalog = Catalog::new(genesis).map_err(RecoverError::Genesis)?;
        let mut engine = Self::at(config, catalog, 0);
        engine.record(&event);
        Ok(engine)
    }

    /// The engine of a job whose journal holds these records, in order.
    ///
    /// Recovery is an event itself, and in the first batch. No effect is issued again: `Collect`
    /// hands the unfinished deletes out once more, and pins stay what they are.
    ///
    /// # Errors
    /// [`RecoverError`] names the first record that cannot be used.
    pub fn recover<'a>(
        config: Config,
        records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, RecoverError> {
        let mut replay = Replay::from_genesis();
        for record in records {
            replay.follow(record)?;
        }
        Self::resume(config, replay)
    }

    /// The engine that goes on where a replay ended.
    ///
    /// # Errors
    /// [`RecoverError::Empty`] without a record. At the last position there is no room for another
    /// one: that is [`RecoverError::Misplaced`].
    pub fn resume(config: Config, replay: Replay) -> Result<Self, RecoverError> {
        let (catalog, position) = replay.into_parts()?;
        #[cfg(pinfold_mutants)]
        let catalog = catalog.after_a_bad_restart();
        if position == u64::MAX {
            return Err(RecoverError::Misplaced { position });
        }
        let mut engine = Self::at(config, catalog, position);
        engine.record(&Event::Recovered);
        Ok(engine)
    }

    fn at(config: Config, catalog: Catalog, position: u64) -> Self {
        let mut frame = FrameWriter::default();
        frame.begin(position);
        Self {
            catalog,
            config,
            frame,
            frame_bytes: 0,
            sealed: VecDeque::new(),
            scratch: Vec::new(),
            appended: position,
            durable: position,
            spare: Vec::new(),
            awaiting: false,
            poisoned: false,
            outbox: VecDeque::new(),
        }
    }

    /// Decides an input. Its reply leaves through [`poll_output`](Self::poll_output), behind the
    /// gate. One follow-up is done beside it while any waits.
    ///
    /// The effects of a `Collect` come before its reply.
    pub fn submit(&mut self, input: Input) {
        let Input { ticket, epoch, request } = input;
        if self.poisoned {
            self.outbox.push_back((0, Output::Reply(ticket, Reply::Poisoned)));
            return;
        }
        let reply = match request {
            Request::Register(register) => {
                let decision = self.catalog.decide_registration(epoch, &register);
                self.carry_out(decision).map_or(Reply::Poisoned, Reply::Command)
            }
            Request::Command(op, command) => {
                let decision = self.catalog.decide(epoch, op, command);
                self.carry_out(decision).map_or(Reply::Poisoned, Reply::Command)
            }
            Request::List(commands) => self.submit_list(epoch, commands),
            Request::Query(query) if epoch == self.catalog.job().epoch => self.answer(query),
            Request::Query(_) => Reply::WrongEpoch,
        };
        if self.poisoned {
            // It was decided, and nobody will ever know: no position stands for it.
            self.outbox.push_back((0, Output::Reply(ticket, Reply::Poisoned)));
            return;
        }
        #[cfg(pinfold_mutants)]
        if self.awaiting && is_refusal(&reply) && is_armed(Mutant::RefusalSwallowed) {
            return;
        }
        #[cfg(pinfold_mutants)]
        if skips_the_gate(&reply) {
            self.outbox.push_front((0, Output::Reply(ticket, reply)));
            self.follow_up();
            return;
        }
        self.outbox.push_back((self.appended, Output::Reply(ticket, reply)));
        self.follow_up();
    }

    fn submit_list(&mut self, epoch: Epoch, commands: Vec<(OpId, Command)>) -> Reply {
        let bound = self.catalog.bound(Limit::CommandsPerList);
        let needed = commands.len() as u64;
        let limit = Limit::CommandsPerList;
        if commands.is_empty() {
            let malformed = Malformed { field: Field::Commands, problem: Problem::Empty };
            return Reply::Command(Err(Rejection::Malformed(malformed)));
        }
        if needed > bound {
            return Reply::Command(Err(Rejection::LimitExceeded { limit, bound, needed }));
        }
        let mut stopped = false;
        let answers = commands.into_iter().map(|(op, command)| {
            if stopped {
                return None;
            }
            let decision = self.catalog.decide(epoch, op, command);
            let answer = self.carry_out(decision);
            stopped = !matches!(answer, Some(Ok(_)));
            answer
        });
        Reply::List(answers.collect())
    }

    /// The answer of a decision; none when the engine is poisoned by it.
    fn carry_out(&mut self, decision: Decision) -> Option<Result<Outcome, Rejection>> {
        let event = match decision {
            Decision::Answer(answer) => return Some(answer),
            Decision::Event(event) => event,
        };
        debug_assert!(self.catalog.fits(&event), "a decision that does not fit: {event:?}");
        let Some(answer) = self.catalog.apply(&event) else {
            // A decision always answers. One that does not must leave no trace.
            self.poison();
            return None;
        };
        self.record(&event);
        if self.poisoned {
            return None;
        }
        if let Event::Decided { op, change: Change::Collected { work, .. }, .. } = &event {
            for piece in work {
                self.hand_out(*op, *piece);
            }
        }
        Some(answer)
    }

    fn hand_out(&mut self, by: OpId, work: DeleteWork) {
        let objects = self.catalog.objects_of(work).collect();
        let effect = Effect::Delete { by, checkpoint: work.checkpoint, objects };
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::DeleteBeforeIntent) {
            self.outbox.push_front((0, Output::Effect(effect)));
            return;
        }
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::DeleteByEndpoint) {
            self.hand_out_others(&effect);
        }
        self.outbox.push_back((self.appended, Output::Effect(effect)));
    }

    fn answer(&self, query: Query) -> Reply {
        match query {
            Query::Job => Reply::Job(self.catalog.job().clone()),
            Query::Gauges => Reply::Gauges(self.catalog.gauges()),
            Query::Blockers(checkpoint) => Reply::Blockers(self.catalog.blockers(checkpoint)),
            Query::Audit(keys) => {
                Reply::Audit(keys.iter().map(|key| self.catalog.audit(key)).collect())
            }
        }
    }

    /// Does one follow-up, if one waits; true when more wait. For hosts without input.
    pub fn follow_up(&mut self) -> bool {
        if self.poisoned {
            return false;
        }
        if let Some(follow_up) = self.catalog.next_follow_up() {
            let event = Event::FollowedUp(follow_up);
            debug_assert!(self.catalog.fits(&event), "a follow-up that does not fit: {event:?}");
            self.catalog.apply(&event);
            self.record(&event);
        }
        !self.poisoned && self.catalog.next_follow_up().is_some()
    }

    /// Puts an event into the frame. What cannot be recorded poisons the engine: the catalog is
    /// ahead of anything that the journal will ever hold.
    fn record(&mut self, event: &Event) {
        let Some(appended) = self.appended.checked_add(1) else {
            self.poison();
            return;
        };
        let scratch = core::mem::take(&mut self.scratch);
        // Serialising into a vector cannot fail, and an empty frame takes any event: its lists are
        // bounded by their form.
        let Ok(mut bytes) = postcard::to_extend(event, scratch) else {
            self.poison();
            return;
        };
        let pushed = self.frame.push(&bytes).or_else(|FrameFull| {
            self.seal();
            self.frame.push(&bytes)
        });
        if pushed.is_err() {
            self.poison();
            return;
        }
        self.frame_bytes += bytes.len();
        self.appended = appended;
        bytes.clear();
        self.scratch = bytes;
    }

    /// Closes the frame and begins the next one.
    fn seal(&mut self) {
        let mut bytes = core::mem::take(&mut self.spare);
        bytes.clear();
        bytes.extend_from_slice(self.frame.finish(&self.catalog.job().epoch));
        self.frame.begin(self.appended);
        self.frame_bytes = 0;
        self.sealed.push_back(Batch { bytes, until: self.appended });
    }

    /// True when a batch should be taken before more input: it has grown large.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.sealed.is_empty() || self.frame_bytes >= self.config.full_bytes as usize
    }

    /// The records since the last batch, as one frame. None when there are none, while another
    /// batch is out, or when poisoned.
    pub fn take_batch(&mut self) -> Option<Batch> {
        if self.awaiting || self.poisoned {
            return None;
        }
        if self.sealed.is_empty() && self.frame.count() > 0 {
            self.seal();
        }
        let batch = self.sealed.pop_front()?;
        self.awaiting = true;
        Some(batch)
    }

    /// The batch is on disk: what depends on it may leave.
    pub fn commit(&mut self, batch: Batch) {
        self.awaiting = false;
        self.durable = self.durable.max(batch.until);
        self.spare = batch.bytes;
    }

    /// The append or sync failed: nobody knows what is on disk. Everything that waits is answered
    /// `Poisoned`, effects are dropped, and the engine is over.
    pub fn fail(&mut self, batch: Batch) {
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::FailIsCommit) {
            self.commit(batch);
            return;
        }
        drop(batch);
        self.poison();
    }

    fn poison(&mut self) {
        self.poisoned = true;
        let durable = self.durable;
        self.outbox.retain_mut(|(position, output)| match output {
            _ if *position <= durable => true,
            Output::Effect(_) => false,
            #[cfg(pinfold_mutants)]
            Output::Reply(..) if is_armed(Mutant::PoisonSwallows) => false,
            Output::Reply(_, reply) => {
                *reply = Reply::Poisoned;
                *position = 0;
                true
            }
        });
    }

    /// True after a failed append; the host recovers from the journal.
    #[must_use]
    pub const fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    /// The next output whose events are durable.
    pub fn poll_output(&mut self) -> Option<Output> {
        #[cfg(pinfold_mutants)]
        if self.awaiting && is_armed(Mutant::LeaveAtAppend) {
            return self.outbox.pop_front().map(|(_, output)| output);
        }
        let (position, _) = self.outbox.front()?;
        if *position > self.durable {
            return None;
        }
        self.outbox.pop_front().map(|(_, output)| output)
    }

    /// True when everything was persisted and everything left.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.outbox.is_empty() && self.appended == self.durable
    }

    /// How many records are durable.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.durable
    }

    /// The state as decided, ahead of what is durable: for checks and snapshots of a host that is
    /// at rest, never for answers.
    #[must_use]
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Recounts everything; see [`Catalog::check`].
    ///
    /// # Errors
    /// [`Broken`] names the first promise that does not hold.
    pub fn check(&self) -> Result<(), Broken> {
        self.catalog.check()
    }
}

#[cfg(pinfold_mutants)]
impl Engine {
    /// Hands the same objects of every other checkpoint of the endpoint out, too.
    fn hand_out_others(&mut self, effect: &Effect) {
        let Effect::Delete { by, checkpoint: own, objects } = effect;
        for checkpoint in self.catalog.checkpoints() {
            if checkpoint.endpoint == own.endpoint && checkpoint != *own {
                let (by, objects) = (*by, objects.clone());
                let effect = Effect::Delete { by, checkpoint, objects };
                self.outbox.push_back((self.appended, Output::Effect(effect)));
            }
        }
    }
}

#[cfg(pinfold_mutants)]
fn is_refusal(reply: &Reply) -> bool {
    matches!(reply, Reply::Command(Err(_)))
}

#[cfg(pinfold_mutants)]
fn skips_the_gate(reply: &Reply) -> bool {
    match reply {
        Reply::Command(answer) => answer.is_err() && is_armed(Mutant::RefusalsSkipGate),
        Reply::Job(_) | Reply::Gauges(_) | Reply::Blockers(_) | Reply::Audit(_) => {
            is_armed(Mutant::QueriesSkipGate)
        }
        Reply::List(_) | Reply::WrongEpoch | Reply::Poisoned => false,
    }
}
