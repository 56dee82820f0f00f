//! The oracle's own tests: for every promise a sequence that keeps it and one that breaks it, made
//! by hand; and real engines that are watched through faults.

mod answers;
mod deletes;
mod engine;
mod memory;
mod records;

use pinfold_core::catalog::{
    Change, Command, DeleteWork, Event, Prepare, Role, Shape, ShardShape, Verdict,
};
use pinfold_core::engine::{Effect, Input, Query, Reply, Request, Ticket};
use pinfold_core::few::Few;
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Generation, Incarnation,
    ManifestDigest, ObjectId, OpId, OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome, Rejection, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};

use super::desk::Answer;
use super::{Judged, Oracle};
use crate::seen::{Cause, MoveId, Seen, Way};
use crate::store::{Content, StoreKey};

/// An owner and its incarnation.
type Who = (OwnerId, Incarnation);

fn operator() -> Who {
    (OwnerId::from_u128(1), Incarnation(1))
}

fn worker() -> Who {
    (OwnerId::from_u128(2), Incarnation(2))
}

fn epoch() -> Epoch {
    Epoch::from_u128(7)
}

fn turn(conversation: u128, turn: u128) -> TurnKey {
    let conversation = ConversationId::from_u128(conversation);
    TurnKey { conversation, turn: TurnId::from_u128(turn) }
}

fn object(index: u32) -> ObjectId {
    ObjectId { shard: ShardIndex(0), index }
}

fn genesis() -> Genesis {
    Genesis {
        namespace: "sim".parse().unwrap(),
        epoch: epoch(),
        operator: operator().0,
        policy: Policy { turns: 1, ..Policy::default() },
        limits: Limits { unanswered: 4, ..Limits::default() },
    }
}

/// One shard of two objects, 100 bytes in all.
fn shape() -> Shape {
    Shape::new(&[ShardShape { objects: 2, bytes: 100 }]).unwrap()
}

fn prepare(number: u128) -> Prepare {
    Prepare {
        attempt: AttemptId::from_u128(number),
        endpoint: EndpointId::from_u128(number),
        digest: ManifestDigest::from_bytes([9; 32]),
        shape: shape(),
        shards: vec![ShardIndex(0)],
    }
}

/// The promise that a sighting breaks.
fn broken_by(judged: Judged) -> Invariant {
    judged.expect_err("a broken promise").invariant
}

/// A job by hand: whatever the test says was seen.
#[derive(Clone)]
struct Scene {
    oracle: Oracle,
    tickets: u64,
    sequences: u64,
    moves: u32,
    generations: u64,
}

impl Scene {
    /// An operator and a worker are registered.
    fn new() -> Self {
        let oracle = Oracle::new(&genesis());
        let mut scene = Self { oracle, tickets: 0, sequences: 0, moves: 0, generations: 0 };
        scene.register(operator(), Role::Operator, 1).unwrap();
        scene.register(worker(), Role::Worker, 1).unwrap();
        scene
    }

    fn see(&mut self, seen: &Seen) -> Judged {
        self.oracle.see(seen)
    }

    fn sync(&mut self, event: Event) -> Judged {
        self.see(&Seen::Synced { events: vec![event] })
    }

    fn register(&mut self, (owner, incarnation): Who, role: Role, start: u128) -> Judged {
        let start = StartId::from_u128(start);
        self.sync(Event::Registered { owner, role, start, incarnation })
    }

    fn submit_to(&mut self, epoch: Epoch, request: Request) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.see(&Seen::Submitted { ticket, input: Input { ticket, epoch, request } }).unwrap();
        ticket
    }

    fn submit(&mut self, request: Request) -> Ticket {
        self.submit_to(epoch(), request)
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply) -> Judged {
        self.see(&Seen::Replied { ticket, reply })
    }

    fn answer(&mut self, ticket: Ticket, answer: Answer) -> Judged {
        self.reply(ticket, Reply::Command(answer))
    }

    fn op(&mut self, (owner, incarnation): Who) -> OpId {
        self.sequences += 1;
        OpId { owner, incarnation, sequence: self.sequences }
    }

    fn record(&mut self, op: OpId, change: Change) -> Judged {
        self.sync(Event::Decided { op, fingerprint: 0, change })
    }

    /// A command is submitted, and its record synced.
    fn decide(&mut self, who: Who, command: Command, change: Change) -> Judged {
        let op = self.op(who);
        self.submit(Request::Command(op, command));
        self.record(op, change)
    }

    /// An attempt for a position, with its save pin.
    fn prepare(&mut self, number: u128) -> (PinId, CheckpointId) {
        let op = self.op(worker());
        self.submit(Request::Command(op, Command::Prepare(prepare(number))));
        self.generations += 1;
        let generation = Generation(self.generations);
        self.record(op, Change::Prepared { prepare: prepare(number), generation }).unwrap();
        let endpoint = EndpointId::from_u128(number);
        (PinId { op, place: 0 }, CheckpointId { endpoint, generation })
    }

    fn begin(&mut self, way: Way, pin: PinId, checkpoint: CheckpointId, index: u32) -> MoveId {
        self.moves += 1;
        let id = MoveId(self.moves.into());
        let key = StoreKey::Private(checkpoint, object(index));
        self.see(&Seen::MoveBegan { id, way, key, checkpoint, pin }).unwrap();
        id
    }

    /// An object is put, confirmed and retired.
    fn put(&mut self, pin: PinId, checkpoint: CheckpointId, index: u32) {
        let id = self.begin(Way::Put, pin, checkpoint, index);
        let key = StoreKey::Private(checkpoint, object(index));
        self.see(&Seen::Landed { id, key, content: Content::Of(key) }).unwrap();
        self.see(&Seen::PutSucceeded { id }).unwrap();
        self.see(&Seen::Confirmed { pin, key }).unwrap();
        self.see(&Seen::Retired { id }).unwrap();
    }

    fn settle(&mut self, who: Who, pin: PinId, evidence: Evidence) -> Judged {
        let shard = None;
        let command = Command::Settle { pin, shard, evidence };
        self.decide(who, command, Change::Settled { pin, shard, evidence })
    }

    /// A checkpoint is saved whole; its pin lives.
    fn save(&mut self, number: u128) -> (PinId, CheckpointId) {
        let (pin, checkpoint) = self.prepare(number);
        self.put(pin, checkpoint, 1);
        self.put(pin, checkpoint, 0);
        self.settle(worker(), pin, Evidence::QuiescedSuccess).unwrap();
        (pin, checkpoint)
    }

    fn publish(
        &mut self,
        (pin, checkpoint): (PinId, CheckpointId),
        turn: Option<TurnKey>,
        expired: Option<TurnKey>,
    ) -> Judged {
        let change = Change::Published { checkpoint, turn, expired };
        self.decide(worker(), Command::Publish { pin, turn }, change)
    }

    fn release(&mut self, pin: PinId) -> Judged {
        self.decide(worker(), Command::Release { pin }, Change::Released { pin })
    }

    /// A checkpoint is saved, published and let go.
    fn keep(&mut self, number: u128, turn: TurnKey, expired: Option<TurnKey>) -> CheckpointId {
        let (pin, checkpoint) = self.save(number);
        self.publish((pin, checkpoint), Some(turn), expired).unwrap();
        self.release(pin).unwrap();
        checkpoint
    }

    /// A load pin.
    fn pin(&mut self, checkpoint: CheckpointId) -> Result<PinId, crate::violation::Violation> {
        let op = self.op(worker());
        let candidates = vec![checkpoint.endpoint];
        self.submit(Request::Command(op, Command::Pin { candidates, limit: 1 }));
        let mut checkpoints = Few::new();
        assert!(checkpoints.push(checkpoint));
        self.record(op, Change::Pinned { checkpoints })?;
        Ok(PinId { op, place: 0 })
    }

    /// The intent to delete both objects is durable.
    fn intend(&mut self, checkpoint: CheckpointId) -> OpId {
        let op = self.op(worker());
        self.submit(Request::Command(op, Command::Collect { limit: 2 }));
        let mut work = Few::new();
        assert!(work.push(DeleteWork { checkpoint, first: 0, count: 2 }));
        self.record(op, Change::Collected { work, more: false }).unwrap();
        op
    }

    fn hand_out(&mut self, by: OpId, checkpoint: CheckpointId, indices: &[u32]) -> Judged {
        let objects = indices.iter().map(|index| object(*index)).collect();
        self.see(&Seen::HandedOut { effect: Effect::Delete { by, checkpoint, objects } })
    }

    fn delete(&mut self, checkpoint: CheckpointId, index: u32) -> Judged {
        let key = StoreKey::Private(checkpoint, object(index));
        self.see(&Seen::Deleted { key, cause: Cause::Stray })
    }

    fn gone(&mut self, checkpoint: CheckpointId, index: u32) {
        let outcomes = vec![(object(index), DeleteOutcome::Gone)];
        let command = Command::Deleted { checkpoint, outcomes: outcomes.clone() };
        self.decide(worker(), command, Change::Deleted { checkpoint, outcomes }).unwrap();
    }

    fn audit(&mut self, key: StoreKey, verdict: Verdict) -> Judged {
        let ticket = self.submit(Request::Query(Query::Audit(vec![String::new()])));
        self.see(&Seen::Listed { ticket, keys: vec![key] })?;
        self.reply(ticket, Reply::Audit(vec![verdict]))
    }

    /// What follows a refusal that was recorded.
    fn refuse(&mut self, who: Who, command: Command, why: Rejection) -> Judged {
        self.decide(who, command, Change::Refused(why))
    }
}
