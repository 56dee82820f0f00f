//! The catalog: the durable, shared state of a job, and the rules by which it changes.
//!
//! [`Catalog::decide`] judges a command and changes nothing; the [`Event`] it gives is the journal's
//! record and carries the whole outcome; [`Catalog::apply`] follows an event and decides nothing. So
//! a changed rule never rewrites history, and replaying the journal gives the live state. The
//! catalog knows no log position, ticket or clock.
//!
//! Each family of verbs has a file of its own with its form checks, decisions and applications;
//! [`table`] alone changes records, indexes and counters.

mod blockers;
mod check;
mod collect;
mod expire;
mod index;
mod list;
mod owner;
mod pin;
mod prepare;
mod publish;
mod receipt;
mod settle;
mod shape;
mod slab;
mod snapshot;
mod table;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

pub use blockers::{Blocker, Blockers, Lifter};
pub use check::Broken;
pub use collect::{DeleteWork, Verdict};
pub use expire::FollowUp;
pub use owner::{PROTOCOL_VERSION, Register, Role};
pub use prepare::Prepare;
pub use shape::{Shape, ShardShape};
pub use snapshot::{Inconsistent, Snapshot};

use collect::PICKS;
use receipt::{Fingerprint, Known};
use slab::Slot;
use table::Table;

use crate::few::Few;
use crate::id::{
    CheckpointId, ConversationId, EndpointId, Epoch, Generation, Incarnation, ObjectId, OpId,
    OwnerId, PinId, ShardIndex, StartId,
};
use crate::outcome::{
    DeleteOutcome, Evidence, Field, Limit, Loss, LostObject, Malformed, Outcome, Problem,
    Rejection, TurnKey,
};
use crate::policy::{Gauges, Genesis, Limits, Policy};

/// The most rows of one kind that the tables can hold.
pub const MAX_ROWS: u32 = (1 << 31) - 1;

/// What an owner asks for. Each command carries an [`OpId`] of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Begin, or join, an attempt to keep a position.
    Prepare(Prepare),
    /// Say what is known about a transfer's end.
    Settle {
        /// The pin.
        pin: PinId,
        /// The claimed shard; none for a load pin, or for every claimed shard that is not final.
        shard: Option<ShardIndex>,
        /// What is known.
        evidence: Evidence,
    },
    /// Let a turn refer to the pinned checkpoint; without one, set its unscoped mark.
    Publish {
        /// A live pin of the caller.
        pin: PinId,
        /// The turn.
        turn: Option<TurnKey>,
    },
    /// End a save pin whose shards are final.
    Release {
        /// The pin.
        pin: PinId,
    },
    /// Pin restorable checkpoints.
    Pin {
        /// Endpoints, longest first.
        candidates: Vec<EndpointId>,
        /// How many answers at most, 1 to 8.
        limit: u32,
    },
    /// Say that an object is gone or wrong.
    Lost {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The object.
        object: LostObject,
        /// What was found.
        why: Loss,
    },
    /// Mark a pin as doubtful, or take the mark away.
    Doubt {
        /// The pin.
        pin: PinId,
        /// Whether it is doubtful.
        doubtful: bool,
    },
    /// Ask for delete work.
    Collect {
        /// For how many objects at most, at least 1.
        limit: u32,
    },
    /// Report the outcomes of deletes, or of a probe that takes no lease.
    Deleted {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Objects in ascending order, and what is known of each.
        outcomes: Vec<(ObjectId, DeleteOutcome)>,
    },
    /// Change policy and limits (operator).
    Configure {
        /// The new policy.
        policy: Policy,
        /// The new limits; `unanswered` stays as it is.
        limits: Limits,
    },
    /// End a conversation for ever (operator).
    Forget {
        /// The conversation, seen before or not.
        conversation: ConversationId,
    },
    /// Clear a checkpoint's unscoped mark for ever (operator).
    Drop {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// Bar an incarnation for good, on proof that nothing of it moves any more (operator).
    Fence {
        /// The owner.
        owner: OwnerId,
        /// Which of its incarnations.
        incarnation: Incarnation,
    },
    /// Forget an owner without pins wholly (operator).
    Retire {
        /// The owner.
        owner: OwnerId,
    },
}

/// One record of the journal: what was decided, with its whole outcome.
///
/// Variants are numbered by position: new ones are appended, old ones never move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The job begins.
    Genesis(Genesis),
    /// A host took the journal over; everything before it is durable.
    Recovered,
    /// A new incarnation.
    Registered {
        /// The owner.
        owner: OwnerId,
        /// What it may do.
        role: Role,
        /// The start that asked for it.
        start: StartId,
        /// The minted number.
        incarnation: Incarnation,
    },
    /// A command was decided; its receipt stands.
    Decided {
        /// Whose command.
        op: OpId,
        /// Of which content.
        fingerprint: u64,
        /// What it changed.
        change: Change,
    },
    /// Due work was done.
    FollowedUp(FollowUp),
}

/// What a decided command changes. Variants are numbered by position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Nothing but the receipt.
    Refused(Rejection),
    /// A new checkpoint with a save pin.
    Prepared {
        /// What was asked.
        prepare: Prepare,
        /// The minted generation.
        generation: Generation,
    },
    /// A save pin on the attempt's checkpoint.
    Joined {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The claimed shards.
        shards: Vec<ShardIndex>,
    },
    /// A load pin on the checkpoint that keeps the position already.
    AlreadyPublished {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// Load pins.
    Pinned {
        /// On these, in the order of the candidates.
        checkpoints: Few<CheckpointId, 8>,
    },
    /// Evidence.
    Settled {
        /// Of this pin.
        pin: PinId,
        /// For this shard, or all that are not final.
        shard: Option<ShardIndex>,
        /// What stands.
        evidence: Evidence,
    },
    /// A save pin ended.
    Released {
        /// The pin.
        pin: PinId,
    },
    /// A publication.
    Published {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The turn; none for the unscoped mark.
        turn: Option<TurnKey>,
        /// The turn that expires with it.
        expired: Option<TurnKey>,
    },
    /// A `Lost` mark.
    Lost {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The object that was found lost.
        object: LostObject,
        /// What was found.
        why: Loss,
    },
    /// A doubt mark, set or cleared.
    Doubted {
        /// The pin.
        pin: PinId,
        /// Whether it is doubtful.
        doubtful: bool,
    },
    /// The intent to delete.
    Collected {
        /// What is handed out.
        work: Few<DeleteWork, PICKS>,
        /// Something is left beyond it.
        more: bool,
    },
    /// Outcomes of deletes.
    Deleted {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// By object, ascending.
        outcomes: Vec<(ObjectId, DeleteOutcome)>,
    },
    /// New policy and limits.
    Configured {
        /// The policy.
        policy: Policy,
        /// The limits.
        limits: Limits,
        /// A bound was lowered: every conversation has to be looked at.
        trim: bool,
    },
    /// A conversation is over for ever.
    Forgotten {
        /// The conversation.
        conversation: ConversationId,
    },
    /// An unscoped mark is gone for ever.
    Dropped {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// An incarnation is barred for good.
    Fenced {
        /// The owner.
        owner: OwnerId,
        /// The incarnation.
        incarnation: Incarnation,
    },
    /// An owner is forgotten wholly.
    Retired {
        /// The owner.
        owner: OwnerId,
    },
}

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
        if op.incarnation == current && current > Incarnation(0) {
            let window = self.table.job.limits.unanswered;
            if let Known::Answered(answer) =
                row.receipts.look_up(op.sequence, fingerprint, window)?
            {
                return Ok(Admission::Answered(answer));
            }
        }
        if row.fenced.binary_search(&op.incarnation).is_ok() {
            return Err(Rejection::Fenced);
        }
        if op.incarnation < current {
            return Err(Rejection::StaleIncarnation { current });
        }
        if op.incarnation > current {
            return Err(Rejection::UnknownIncarnation);
        }
        Ok(Admission::New(Sender { owner, life: row.current }, fingerprint))
    }

    fn check_form(&self, op: OpId, command: &Command) -> Result<(), Malformed> {
        let refuse = |field, problem| Err(Malformed { field, problem });
        if op.owner.is_empty() {
            return refuse(Field::Owner, Problem::Empty);
        }
        if op.incarnation == Incarnation(0) {
            return refuse(Field::Incarnation, Problem::Zero);
        }
        if op.sequence == 0 {
            return refuse(Field::Sequence, Problem::Zero);
        }
        match command {
            Command::Prepare(prepare) => prepare.form(),
            Command::Publish { turn, .. } => Self::form_publish(*turn),
            Command::Pin { candidates, limit } => Self::form_pin(candidates, *limit),
            Command::Collect { limit: 0 } => refuse(Field::Limit, Problem::Zero),
            Command::Deleted { checkpoint, outcomes } => Self::form_deleted(*checkpoint, outcomes),
            Command::Configure { policy, limits } => self.form_configure(policy, limits),
            Command::Forget { conversation } if conversation.is_empty() => {
                refuse(Field::Conversation, Problem::Empty)
            }
            Command::Fence { owner, .. } | Command::Retire { owner } if owner.is_empty() => {
                refuse(Field::Owner, Problem::Empty)
            }
            Command::Fence { incarnation: Incarnation(0), .. } => {
                refuse(Field::Incarnation, Problem::Zero)
            }
            Command::Settle { .. }
            | Command::Release { .. }
            | Command::Lost { .. }
            | Command::Doubt { .. }
            | Command::Collect { .. }
            | Command::Forget { .. }
            | Command::Drop { .. }
            | Command::Fence { .. }
            | Command::Retire { .. } => Ok(()),
        }
    }

    fn check_epoch(&self, epoch: Epoch) -> Result<(), Rejection> {
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

    /// Follows an event. What it answers is given back: none for what answers nobody.
    pub fn apply(&mut self, event: &Event) -> Option<Result<Outcome, Rejection>> {
        match event {
            Event::Genesis(_) | Event::Recovered => None,
            Event::Registered { owner, role, start, incarnation } => {
                self.apply_registered(*owner, *role, *start, *incarnation);
                Some(Ok(Outcome::Registered { incarnation: *incarnation }))
            }
            Event::Decided { op, fingerprint, change } => {
                let answer = self.apply_change(*op, change);
                self.keep_receipt(*op, *fingerprint, &answer);
                Some(answer)
            }
            Event::FollowedUp(follow_up) => {
                self.apply_follow_up(follow_up);
                None
            }
        }
    }

    fn apply_change(&mut self, op: OpId, change: &Change) -> Result<Outcome, Rejection> {
        Ok(match change {
            Change::Refused(rejection) => return Err(*rejection),
            Change::Prepared { prepare, generation } => {
                self.apply_prepared(op, prepare, *generation);
                let checkpoint =
                    CheckpointId { endpoint: prepare.endpoint, generation: *generation };
                Self::prepared_outcome(op, checkpoint)
            }
            Change::Joined { checkpoint, shards } => {
                self.apply_joined(op, *checkpoint, shards);
                Self::prepared_outcome(op, *checkpoint)
            }
            Change::AlreadyPublished { checkpoint } => {
                let pin = PinId { op, place: 0 };
                self.add_load_pin(pin, *checkpoint);
                Outcome::AlreadyPublished { pin, checkpoint: *checkpoint }
            }
            Change::Pinned { checkpoints } => {
                self.apply_pinned(op, checkpoints);
                self.pinned_outcome(checkpoints)
            }
            Change::Settled { pin, shard, evidence } => {
                self.apply_settled(*pin, *shard, *evidence);
                Outcome::Settled { evidence: *evidence }
            }
            Change::Released { pin } => {
                self.apply_released(*pin);
                Outcome::Released
            }
            Change::Published { checkpoint, turn, expired } => {
                self.apply_published(*checkpoint, *turn, *expired);
                let follow_ups = self.next_follow_up().is_some();
                Outcome::Published { expired: *expired, follow_ups }
            }
            Change::Lost { checkpoint, .. } => {
                self.apply_lost(*checkpoint);
                Outcome::Lost
            }
            Change::Doubted { pin, doubtful } => {
                self.apply_doubted(*pin, *doubtful);
                Outcome::Doubted
            }
            Change::Collected { work, more } => {
                self.apply_collected(work);
                let objects = work.iter().map(|piece| piece.count).sum();
                Outcome::Collected { objects, more: *more }
            }
            Change::Deleted { checkpoint, outcomes } => {
                self.apply_deleted(*checkpoint, outcomes);
                Outcome::Deleted { left: self.objects_left(*checkpoint) }
            }
            Change::Configured { policy, limits, trim } => {
                self.apply_configured(*policy, *limits, *trim);
                Outcome::Configured
            }
            Change::Forgotten { conversation } => {
                self.apply_forgotten(*conversation);
                Outcome::Forgotten
            }
            Change::Dropped { checkpoint } => {
                self.apply_dropped(*checkpoint);
                Outcome::Dropped
            }
            Change::Fenced { owner, incarnation } => {
                self.apply_fenced(*owner, *incarnation);
                Outcome::Fenced { pins: self.pins_of(*owner, *incarnation) }
            }
            Change::Retired { owner } => {
                self.apply_retired(*owner);
                Outcome::Retired
            }
        })
    }

    fn keep_receipt(&mut self, op: OpId, fingerprint: u64, answer: &Result<Outcome, Rejection>) {
        // An operator that retired itself has nobody left to keep it for.
        if let Some(owner) = self.table.owner(op.owner) {
            let window = self.table.job.limits.unanswered;
            let receipts = &mut self.table.owners[owner].receipts;
            receipts.keep(op.sequence, fingerprint, answer, window);
        }
    }

    /// The incarnation's row of an operation that was admitted.
    fn life_of(&self, op: OpId) -> Option<Slot> {
        let owner = self.table.owner(op.owner)?;
        self.table.life(owner, op.incarnation)
    }

    fn check_limit(&self, limit: Limit, needed: u64) -> Result<(), Rejection> {
        let bound = self.bound(limit);
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
            bytes_pinned: table.counters.bytes_pinned,
            bytes_unscoped: table.counters.bytes_unscoped,
            bytes_in_doubt: table.counters.bytes_in_doubt,
            bytes_quarantined: table.counters.bytes_quarantined,
            checkpoints: u64::from(table.checkpoints.len()),
            bytes: table.counters.bytes,
            bytes_retained: table.counters.bytes_retained,
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

/// The digest of a command's content. Part of the journal: what it feeds, in this order and
/// width, stays as it is.
fn fingerprint(command: &Command) -> u64 {
    let pin_words = |fingerprint: Fingerprint, pin: &PinId| {
        fingerprint
            .bytes_16(pin.op.owner.as_bytes())
            .word(pin.op.incarnation.0)
            .word(pin.op.sequence)
            .word(u64::from(pin.place))
    };
    let checkpoint_words = |fingerprint: Fingerprint, id: &CheckpointId| {
        fingerprint.bytes_16(id.endpoint.as_bytes()).word(id.generation.0)
    };
    match command {
        Command::Prepare(prepare) => {
            let mut print = Fingerprint::of(1)
                .bytes_16(prepare.attempt.as_bytes())
                .bytes_16(prepare.endpoint.as_bytes());
            for half in prepare.digest.as_bytes().as_chunks::<16>().0 {
                print = print.bytes_16(half);
            }
            for shard in prepare.shape.shards() {
                print = print.word(u64::from(shard.objects)).word(shard.bytes);
            }
            for shard in &prepare.shards {
                print = print.word(u64::from(shard.0));
            }
            print.word(prepare.shape.shards().len() as u64)
        }
        Command::Settle { pin, shard, evidence } => {
            let shard = shard.map_or(u64::MAX, |shard| u64::from(shard.0));
            pin_words(Fingerprint::of(2), pin).word(shard).word(*evidence as u64)
        }
        Command::Publish { pin, turn } => {
            let print = pin_words(Fingerprint::of(3), pin);
            turn.map_or(print, |key| {
                print.bytes_16(key.conversation.as_bytes()).bytes_16(key.turn.as_bytes())
            })
        }
        Command::Release { pin } => pin_words(Fingerprint::of(4), pin),
        Command::Pin { candidates, limit } => {
            let print = Fingerprint::of(5).word(u64::from(*limit));
            candidates.iter().fold(print, |print, id| print.bytes_16(id.as_bytes()))
        }
        Command::Lost { checkpoint, object, why } => {
            let print = checkpoint_words(Fingerprint::of(6), checkpoint).word(*why as u64);
            match object {
                LostObject::Private(object) => {
                    print.word(u64::from(object.shard.0)).word(u64::from(object.index))
                }
                LostObject::Shared(place) => print.word(u64::MAX).word(u64::from(*place)),
            }
        }
        Command::Doubt { pin, doubtful } => {
            pin_words(Fingerprint::of(7), pin).word(u64::from(*doubtful))
        }
        Command::Collect { limit } => Fingerprint::of(8).word(u64::from(*limit)),
        Command::Deleted { checkpoint, outcomes } => {
            let print = checkpoint_words(Fingerprint::of(9), checkpoint);
            outcomes.iter().fold(print, |print, (object, outcome)| {
                let object = u64::from(object.shard.0) << 32 | u64::from(object.index);
                print.word(object).word(*outcome as u64)
            })
        }
        Command::Configure { policy, limits } => configure_words(policy, limits),
        Command::Forget { conversation } => Fingerprint::of(11).bytes_16(conversation.as_bytes()),
        Command::Drop { checkpoint } => checkpoint_words(Fingerprint::of(12), checkpoint),
        Command::Fence { owner, incarnation } => {
            Fingerprint::of(13).bytes_16(owner.as_bytes()).word(incarnation.0)
        }
        Command::Retire { owner } => Fingerprint::of(14).bytes_16(owner.as_bytes()),
    }
    .finish()
}

fn configure_words(policy: &Policy, limits: &Limits) -> Fingerprint {
    let budget = |budget: Option<u64>| budget.map_or([0, 0], |bytes| [1, bytes]);
    let head = [u64::from(policy.turns), policy.quarantine as u64];
    let budgets = [budget(policy.conversation_bytes), budget(policy.job_bytes)];
    let bytes = [
        limits.bytes_pinned,
        limits.bytes_unscoped,
        limits.bytes_in_doubt,
        limits.bytes_quarantined,
    ];
    let counts = [
        limits.owners,
        limits.pins_per_owner,
        limits.pins,
        limits.shards,
        limits.objects_per_shard,
        limits.objects_per_checkpoint,
        limits.generations_per_endpoint,
        limits.references_per_turn,
        limits.candidates,
        limits.answers,
        limits.turns,
        limits.conversations,
        limits.expired_turns,
        limits.commands_per_list,
        limits.unanswered,
    ];
    let words = head.into_iter().chain(budgets.into_iter().flatten()).chain(bytes);
    words.chain(counts.map(u64::from)).fold(Fingerprint::of(10), Fingerprint::word)
}
