//! The catalog: the durable, shared state of a job, and the rules by which it changes.
//!
//! [`Catalog::decide`] judges a command and changes nothing; the [`Event`] it gives is the record
//! in the journal and carries the whole outcome; [`Catalog::apply`] follows it and decides nothing.
//! So a changed rule never rewrites history, and replaying the journal gives the live state. The
//! catalog knows no log position, ticket or clock.
//!
//! Each family of verbs has a file of its own with its form checks, decisions and applications;
//! `table` alone changes what is linked, indexed or counted.

mod blockers;
mod check;
mod collect;
mod command;
mod event;
mod expire;
mod facts;
mod fingerprint;
mod index;
mod list;
#[cfg(pinfold_mutants)]
mod mutated;
mod owner;
mod pin;
mod precondition;
mod prepare;
mod publish;
mod receipt;
mod settle;
mod shape;
mod slab;
mod snapshot;
mod table;
mod walk;

pub use blockers::{Blocker, Blockers, Lifter};
pub use check::Broken;
pub use collect::{DeleteWork, Verdict};
pub use command::Command;
pub use event::{Change, Event};
pub use expire::FollowUp;
pub use facts::{CheckpointFacts, ConversationFacts, Fate, OwnerFacts, PinFacts, State};
pub use owner::{PROTOCOL_VERSION, Register, Role};
pub use prepare::Prepare;
pub use shape::{Shape, ShardShape};
pub use snapshot::{Inconsistent, Snapshot};
pub use walk::Walk;

use fingerprint::fingerprint;
use receipt::Known;
use slab::Slot;
use table::Table;

use crate::id::{Epoch, OpId};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Limit, Malformed, Outcome, Rejection};
use crate::policy::{Gauges, Genesis};

/// What [`Catalog::decide`] makes of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Something new was decided: apply and journal this event, then answer with its outcome.
    Event(Event),
    /// Nothing changes: the answer is known already, or the input leaves no trace.
    Answer(Result<Outcome, Rejection>),
}

/// What a well-formed command of a current owner changes, or why it is refused.
type Ruling = Result<Change, Rejection>;

/// Who sent a command: its owner's and its incarnation's rows.
#[derive(Clone, Copy, Debug)]
struct Sender {
    owner: Slot,
    life: Slot,
}

/// The durable state of a job. See the [module](self).
#[derive(Clone, Debug)]
pub struct Catalog {
    table: Table,
}

impl Catalog {
    /// The state right after a job's genesis.
    ///
    /// # Errors
    /// [`Malformed`] names the field of the genesis that cannot be used.
    pub fn new(genesis: Genesis) -> Result<Self, Malformed> {
        genesis.form()?;
        Ok(Self { table: Table::new(genesis) })
    }

    /// Judges a registration and changes nothing.
    #[must_use]
    pub fn decide_registration(&self, epoch: Epoch, register: &Register) -> Decision {
        self.decide_register(epoch, register)
    }

    /// Judges a command and changes nothing.
    ///
    /// The order of checks: form, epoch, owner, receipt, fence, incarnation, ids, state, limits.
    /// The first failing one wins.
    #[must_use]
    pub fn decide(&self, epoch: Epoch, op: OpId, command: Command) -> Decision {
        match self.admit(epoch, op, &command) {
            Err(rejection) => Decision::Answer(Err(rejection)),
            Ok(Admission::Answered(answer)) => Decision::Answer(answer),
            Ok(Admission::New(sender, fingerprint)) => {
                let change = match self.rule(&sender, command) {
                    Ok(change) => change,
                    Err(rejection) => Change::Refused(rejection),
                };
                Decision::Event(Event::Decided { op, fingerprint, change })
            }
        }
    }

    /// The checks up to the incarnation; they leave no receipt.
    fn admit(&self, epoch: Epoch, op: OpId, command: &Command) -> Result<Admission, Rejection> {
        self.check_form(op, command).map_err(Rejection::Malformed)?;
        self.check_epoch(epoch)?;
        let owner = self.table.owner(op.owner).ok_or(Rejection::UnknownOwner)?;
        let fingerprint = fingerprint(command);
        let current = self.table.current(owner);
        let row = &self.table.owners[owner];
        #[cfg(pinfold_mutants)]
        if let Some(sender) = self.wrongly_obeyed(owner, op, command) {
            return Ok(Admission::New(sender, fingerprint));
        }
        if op.incarnation == current {
            let window = self.table.job.limits.unanswered;
            if let Known::Answered(answer) =
                row.receipts.look_up(op.sequence, fingerprint, window)?
            {
                return Ok(Admission::Answered(answer));
            }
        }
        match self.table.is_fenced(owner, op.incarnation) {
            Some(true) => Err(Rejection::Fenced),
            Some(false) if op.incarnation == current => {
                Ok(Admission::New(Sender { owner, life: row.current }, fingerprint))
            }
            Some(false) => Err(Rejection::StaleIncarnation { current }),
            None if op.incarnation < current => Err(Rejection::StaleIncarnation { current }),
            None => Err(Rejection::UnknownIncarnation),
        }
    }

    fn check_epoch(&self, epoch: Epoch) -> Result<(), Rejection> {
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::OtherEpochObeyed) {
            return Ok(());
        }
        if epoch == self.table.job.epoch { Ok(()) } else { Err(Rejection::WrongEpoch) }
    }

    /// The checks of ids, state and limits, and what the command changes.
    fn rule(&self, sender: &Sender, command: Command) -> Ruling {
        match command {
            Command::Prepare(prepare) => self.decide_prepare(sender, prepare),
            Command::Settle { pin, shard, evidence } => {
                self.decide_settle(sender, pin, shard, evidence)
            }
            Command::Publish { pin, turn } => self.decide_publish(sender, pin, turn),
            Command::Release { pin } => self.decide_release(sender, pin),
            Command::Pin { candidates, limit } => self.decide_pin(sender, &candidates, limit),
            Command::Lost { checkpoint, object, why } => {
                self.decide_lost(sender, checkpoint, object, why)
            }
            Command::Doubt { pin, doubtful } => self.decide_doubt(sender, pin, doubtful),
            Command::Collect { limit } => self.decide_collect(limit),
            Command::Deleted { checkpoint, outcomes } => self.decide_deleted(checkpoint, outcomes),
            Command::Configure { policy, limits } => {
                self.decide_configure(sender.owner, policy, limits)
            }
            Command::Forget { conversation } => self.decide_forget(sender.owner, conversation),
            Command::Drop { checkpoint } => self.decide_drop(sender, checkpoint),
            Command::Fence { owner, incarnation } => {
                self.decide_fence(sender.owner, owner, incarnation)
            }
            Command::Retire { owner } => self.decide_retire(sender.owner, owner),
        }
    }

    fn check_limit(&self, limit: Limit, needed: impl Into<u128>) -> Result<(), Rejection> {
        let bound = self.bound(limit);
        let needed = shown(needed.into());
        if needed > bound { Err(Rejection::LimitExceeded { limit, bound, needed }) } else { Ok(()) }
    }

    /// The value of a bound.
    #[must_use]
    pub fn bound(&self, limit: Limit) -> u64 {
        let Genesis { policy, limits, .. } = &self.table.job;
        match limit {
            Limit::Owners => u64::from(limits.owners),
            Limit::PinsPerOwner => u64::from(limits.pins_per_owner),
            Limit::Pins => u64::from(limits.pins),
            Limit::BytesPinned => limits.bytes_pinned,
            Limit::BytesUnscoped => limits.bytes_unscoped,
            Limit::BytesInDoubt => limits.bytes_in_doubt,
            Limit::BytesQuarantined => limits.bytes_quarantined,
            Limit::Shards => u64::from(limits.shards),
            Limit::ObjectsPerShard => u64::from(limits.objects_per_shard),
            Limit::ObjectsPerCheckpoint => u64::from(limits.objects_per_checkpoint),
            Limit::GenerationsPerEndpoint => u64::from(limits.generations_per_endpoint),
            Limit::ReferencesPerTurn => u64::from(limits.references_per_turn),
            Limit::Candidates => u64::from(limits.candidates),
            Limit::Answers => u64::from(limits.answers),
            Limit::Conversations => u64::from(limits.conversations),
            Limit::ExpiredTurns => u64::from(limits.expired_turns),
            Limit::CommandsPerList => u64::from(limits.commands_per_list),
            Limit::ConversationBytes => policy.conversation_bytes.unwrap_or(u64::MAX),
            Limit::JobBytes => policy.job_bytes.unwrap_or(u64::MAX),
            Limit::Turns => u64::from(limits.turns),
            Limit::Unanswered => u64::from(limits.unanswered),
        }
    }

    /// Namespace, epoch, operator, and policy and limits as they are now.
    #[must_use]
    pub const fn job(&self) -> &Genesis {
        &self.table.job
    }

    /// What the job holds at the moment.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let table = &self.table;
        Gauges {
            owners: u64::from(table.owners.len()),
            pins: u64::from(table.pins.len()),
            bytes_pinned: shown(table.counters.bytes_pinned),
            bytes_unscoped: shown(table.counters.bytes_unscoped),
            bytes_in_doubt: shown(table.counters.bytes_in_doubt),
            bytes_quarantined: shown(table.counters.bytes_quarantined),
            checkpoints: u64::from(table.checkpoints.len()),
            bytes: shown(table.counters.bytes),
            bytes_retained: shown(table.counters.bytes_retained),
            turns: u64::from(table.counters.turns),
            conversations: u64::from(table.conversations.len()),
            expired_turns: u64::from(table.expired_turns()),
            collectable: u64::from(table.disposals.len()),
        }
    }
}

/// What the first checks make of a command.
enum Admission {
    Answered(Result<Outcome, Rejection>),
    New(Sender, u64),
}

/// A sum as answers show it: the largest number stands for everything beyond it.
fn shown(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}
