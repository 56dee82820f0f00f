//! Rules that need no state of the coordinator: answers to repeats, keys, and the order of things.
//!
//! They judge every log, also one that starts in the middle or has holes: each compares only what
//! stands in the log itself, and what a hole may have held is never held against it.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::catalog::Command;
use pinfold_core::engine::{Effect, Input, Reply, Request, Ticket};
use pinfold_core::id::{CheckpointId, EndpointId, Epoch, Generation, Incarnation, OpId, OwnerId};
use pinfold_core::id::{ConversationId, ManifestDigest, PinId};
use pinfold_core::invariant::Invariant;
use pinfold_core::manifest::ObjectName;
use pinfold_core::outcome::{Outcome, Rejection, TurnKey};
use pinfold_sim::protocol::leaves_no_record;
use pinfold_sim::seen::{MoveId, Seen, Way};
use pinfold_sim::store::{Content, StoreKey};
use pinfold_sim::violation::{self, Violation};

type Answer = Result<Outcome, Rejection>;

/// See the [module](self).
pub(super) struct Rules {
    epoch: Epoch,
    /// Inputs without an answer.
    asked: BTreeMap<Ticket, Asked>,
    /// Operations that were sent.
    sent: BTreeSet<OpId>,
    /// Incarnations whose every operation is in the log.
    whole: BTreeSet<(OwnerId, Incarnation)>,
    /// The receipt of each operation that was answered.
    receipts: BTreeMap<OpId, (Command, Answer)>,
    minted: BTreeMap<Generation, EndpointId>,
    digests: BTreeMap<CheckpointId, ManifestDigest>,
    expired: BTreeSet<TurnKey>,
    forgotten: BTreeSet<ConversationId>,
    /// Checkpoints that may never be served again, and why.
    barred: BTreeMap<CheckpointId, &'static str>,
    /// Private keys that somebody began to put.
    put: BTreeSet<StoreKey>,
    /// Moves under way.
    moves: BTreeMap<MoveId, Move>,
}

struct Asked {
    input: Input,
    /// The operations that were sent for the first time, as far as can be known.
    first: BTreeSet<OpId>,
}

struct Move {
    way: Way,
    key: StoreKey,
    /// None where the log does not say it.
    pin: Option<PinId>,
}

impl Rules {
    /// Looks at the next thing that was seen.
    pub(super) fn see(&mut self, seen: &Seen) -> Result<(), Violation> {
        match seen {
            Seen::Submitted { ticket, input } => self.take(*ticket, input),
            Seen::Replied { ticket, reply } => return self.judge_reply(*ticket, reply),
            Seen::HandedOut { effect: Effect::Delete { checkpoint, .. } } => {
                self.barred.insert(*checkpoint, "its deletion was handed out");
            }
            Seen::Crashed => self.asked.clear(),
            Seen::MoveBegan { id, way, key, pin, .. } => {
                return self.begin(*id, *way, *key, Some(*pin));
            }
            Seen::Retired { id } => drop(self.moves.remove(id)),
            Seen::Deleted { key, .. } => return self.judge_delete(*key),
            Seen::SourceReused { pin, shard } => {
                let of_shard = |key| matches!(key, StoreKey::Private(_, id) if id.shard == *shard);
                return self.judge_reuse(*pin, Way::Put, of_shard);
            }
            Seen::DestinationReused { pin } => return self.judge_reuse(*pin, Way::Get, |_| true),
            Seen::Adopted { pin, checkpoint, memory, digest: _ } => {
                return self.judge_adoption(*pin, *checkpoint, memory);
            }
            Seen::Idled
            | Seen::Synced { .. }
            | Seen::Recovered
            | Seen::OwnerDied { .. }
            | Seen::Landed { .. }
            | Seen::PutSucceeded { .. }
            | Seen::Confirmed { .. }
            | Seen::StoreLost { .. }
            | Seen::FalseProof { .. }
            | Seen::SyncFailed
            | Seen::Returned { .. }
            | Seen::Listed { .. }
            | Seen::Compares { .. }
            | Seen::Compared { .. }
            | Seen::Missed { .. } => {}
        }
        Ok(())
    }
}

impl Rules {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            asked: BTreeMap::new(),
            sent: BTreeSet::new(),
            whole: BTreeSet::new(),
            receipts: BTreeMap::new(),
            minted: BTreeMap::new(),
            digests: BTreeMap::new(),
            expired: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            barred: BTreeMap::new(),
            put: BTreeSet::new(),
            moves: BTreeMap::new(),
        }
    }

    /// Lines are missing: an operation, or the end of a move, may stand in them.
    pub(super) fn miss(&mut self) {
        self.whole.clear();
        self.moves.clear();
    }

    /// A move began, whose pin the log need not say.
    pub(super) fn begin(
        &mut self,
        id: MoveId,
        way: Way,
        key: StoreKey,
        pin: Option<PinId>,
    ) -> Result<(), Violation> {
        self.moves.insert(id, Move { way, key, pin });
        let private = matches!(key, StoreKey::Private(..));
        if private && way == Way::Put && !self.put.insert(key) {
            let what = format!("{} was put before", shown(key));
            return Err(broken(Invariant::I17, what));
        }
        Ok(())
    }

    fn take(&mut self, ticket: Ticket, input: &Input) {
        let mut first = BTreeSet::new();
        for (op, _) in commands(&input.request) {
            let whole = self.whole.contains(&(op.owner, op.incarnation));
            if self.sent.insert(*op) && whole {
                first.insert(*op);
            }
        }
        self.asked.insert(ticket, Asked { input: input.clone(), first });
    }

    fn judge_reply(&mut self, ticket: Ticket, reply: &Reply) -> Result<(), Violation> {
        let Some(Asked { input, first }) = self.asked.remove(&ticket) else { return Ok(()) };
        if input.epoch != self.epoch && is_obeyed(reply) {
            let what = format!("an input of epoch {} was obeyed", input.epoch);
            return Err(broken(Invariant::I12, what));
        }
        match (&input.request, reply) {
            (Request::Register(register), Reply::Command(Ok(outcome))) => {
                if let Outcome::Registered { incarnation } = outcome {
                    self.whole.insert((register.owner, *incarnation));
                }
                Ok(())
            }
            (Request::Command(op, command), Reply::Command(answer)) => {
                self.judge_answer(*op, command, answer, first.contains(op))
            }
            (Request::List(commands), Reply::List(answers)) => {
                for ((op, command), answer) in commands.iter().zip(answers) {
                    if let Some(answer) = answer {
                        self.judge_answer(*op, command, answer, first.contains(op))?;
                    }
                }
                Ok(())
            }
            (
                Request::Register(_) | Request::Command(..) | Request::List(_) | Request::Query(_),
                _,
            ) => Ok(()),
        }
    }

    fn judge_answer(
        &mut self,
        op: OpId,
        command: &Command,
        answer: &Answer,
        is_first: bool,
    ) -> Result<(), Violation> {
        if answer.as_ref().is_err_and(leaves_no_record) {
            return Ok(());
        }
        if let Some((decided, receipt)) = self.receipts.get(&op) {
            if decided != command {
                let what = format!("operation {op} had another content before, and was answered");
                return Err(broken(Invariant::I14, what));
            }
            if receipt != answer {
                let what = format!("operation {op} was answered {receipt:?} before");
                return Err(broken(Invariant::I14, what));
            }
            return Ok(());
        }
        self.receipts.insert(op, (command.clone(), *answer));
        let Ok(outcome) = answer else { return Ok(()) };
        self.judge_outcome(command, outcome, is_first)
    }

    fn judge_outcome(
        &mut self,
        command: &Command,
        outcome: &Outcome,
        is_first: bool,
    ) -> Result<(), Violation> {
        match (command, outcome) {
            (_, Outcome::Pinned(pinned)) => {
                for one in pinned {
                    self.judge_served(one.checkpoint, is_first)?;
                    self.judge_digest(one.checkpoint, one.digest)?;
                }
            }
            (
                Command::Prepare(prepare),
                Outcome::Prepared { checkpoint, .. } | Outcome::AlreadyPublished { checkpoint, .. },
            ) => {
                self.judge_served(*checkpoint, is_first)?;
                self.judge_digest(*checkpoint, prepare.digest)?;
                self.judge_minted(*checkpoint)?;
            }
            (Command::Publish { turn: Some(turn), .. }, Outcome::Published { expired, .. }) => {
                let over =
                    self.expired.contains(turn) || self.forgotten.contains(&turn.conversation);
                if is_first && over {
                    let what = format!("turn {turn} had expired, and was published");
                    return Err(broken(Invariant::I7, what));
                }
                self.expired.extend(expired);
            }
            (Command::Forget { conversation }, _) => drop(self.forgotten.insert(*conversation)),
            (Command::Lost { checkpoint, .. }, _) => {
                self.barred.insert(*checkpoint, "it was marked lost");
            }
            (_, _) => {}
        }
        Ok(())
    }

    fn judge_served(&self, checkpoint: CheckpointId, is_first: bool) -> Result<(), Violation> {
        match self.barred.get(&checkpoint) {
            Some(why) if is_first => {
                let what = format!("checkpoint {checkpoint} was served, and {why}");
                Err(broken(Invariant::I9, what))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn judge_digest(
        &mut self,
        checkpoint: CheckpointId,
        digest: ManifestDigest,
    ) -> Result<(), Violation> {
        let known = *self.digests.entry(checkpoint).or_insert(digest);
        if known == digest {
            return Ok(());
        }
        let what = format!("checkpoint {checkpoint} had manifest {known}, and has {digest}");
        Err(broken(Invariant::I5, what))
    }

    fn judge_minted(&mut self, checkpoint: CheckpointId) -> Result<(), Violation> {
        let CheckpointId { endpoint, generation } = checkpoint;
        let known = *self.minted.entry(generation).or_insert(endpoint);
        if known == endpoint {
            return Ok(());
        }
        let what = format!("generation {generation} of endpoint {endpoint} is one of {known}");
        Err(broken(Invariant::I17, what))
    }

    fn judge_delete(&mut self, key: StoreKey) -> Result<(), Violation> {
        match key {
            StoreKey::Shared(_) | StoreKey::Foreign(_) => {
                let what = format!("{} was deleted, and is no private key of the job", shown(key));
                Err(broken(Invariant::I3, what))
            }
            StoreKey::Private(..) if self.moves.values().any(|one| one.key == key) => {
                let what = format!("{} was deleted while its bytes move", shown(key));
                Err(broken(Invariant::I2, what))
            }
            StoreKey::Private(..) => Ok(()),
        }
    }

    fn judge_reuse(
        &self,
        pin: PinId,
        way: Way,
        is_meant: impl Fn(StoreKey) -> bool,
    ) -> Result<(), Violation> {
        let of_pin = |one: &&Move| one.pin == Some(pin) && one.way == way && is_meant(one.key);
        match self.moves.values().find(of_pin) {
            Some(one) => {
                let what = format!("memory was reused while {} moves", shown(one.key));
                Err(broken(Invariant::I16, what))
            }
            None => Ok(()),
        }
    }

    fn judge_adoption(
        &self,
        pin: PinId,
        checkpoint: CheckpointId,
        memory: &[(ObjectName, Option<Content>)],
    ) -> Result<(), Violation> {
        for (object, content) in memory {
            let key = match object {
                ObjectName::Private(object) => StoreKey::Private(checkpoint, *object),
                ObjectName::Shared(name) => StoreKey::Shared(*name),
            };
            if *content != Some(Content::Of(key)) {
                let what = format!("checkpoint {checkpoint} was adopted without {object}");
                return Err(broken(Invariant::I15, what));
            }
        }
        self.judge_reuse(pin, Way::Get, |_| true)
    }
}

fn broken(invariant: Invariant, what: String) -> Violation {
    Violation { invariant, judge: violation::Judge::Oracle, what }
}

fn shown(key: StoreKey) -> String {
    match key {
        StoreKey::Private(checkpoint, object) => {
            format!("object {object} of checkpoint {checkpoint}")
        }
        StoreKey::Shared(name) => format!("shared object {name}"),
        StoreKey::Foreign(_) => "a key of somebody else".to_string(),
    }
}

fn commands(request: &Request) -> Vec<(&OpId, &Command)> {
    match request {
        Request::Command(op, command) => vec![(op, command)],
        Request::List(commands) => commands.iter().map(|(op, command)| (op, command)).collect(),
        Request::Register(_) | Request::Query(_) => Vec::new(),
    }
}

/// Whether an answer says that something was done, or tells the state.
fn is_obeyed(reply: &Reply) -> bool {
    match reply {
        Reply::Command(answer) => answer.is_ok(),
        Reply::List(answers) => answers.iter().any(|answer| matches!(answer, Some(Ok(_)))),
        Reply::Job(_) | Reply::Gauges(_) | Reply::Blockers(_) | Reply::Audit(_) => true,
        Reply::WrongEpoch | Reply::Poisoned => false,
    }
}
