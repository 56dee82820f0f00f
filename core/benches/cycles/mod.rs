//! A job in full work: conversations whose turns come and go, and the commands that move them.
//!
//! One *cycle* is everything that one turn costs the catalog: prepare, settle, publish, release, a
//! load's pin and settle, and the collection and deletion of the checkpoint that the new turn
//! expired. Commands are built here, as a host builds them: their vectors are never the verb's own.

#![allow(clippy::cast_possible_truncation, reason = "all numbers of a load are small")]

use pinfold_core::catalog::{
    Catalog, Change, Command, Decision, Event, PROTOCOL_VERSION, Prepare, Register, Role, Shape,
    ShardShape,
};
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Generation, Incarnation,
    ManifestDigest, ObjectId, OpId, OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};

/// Live turns of a conversation, each with a checkpoint of its own.
pub(crate) const TURNS: u32 = 8;
/// The verbs of a whole cycle, in order; the first [`SAVE`] of them keep one more checkpoint.
pub(crate) const VERBS: [&str; 8] =
    ["prepare", "settle", "publish", "release", "pin", "settle load", "collect", "deleted"];
/// How many verbs keep a checkpoint.
pub(crate) const SAVE: usize = 4;

/// Workers that take turns.
const WORKERS: u64 = 16;
/// Different shapes in use, and private objects of one shard.
const SHAPES: u64 = 64;
const OBJECTS: u32 = 4;

/// Pairwise different tags keep the identities of different kinds apart.
#[derive(Clone, Copy)]
enum Tag {
    Owner = 1,
    Start,
    Conversation,
    Turn,
    Attempt,
    Endpoint,
    Digest,
}

/// A command with its operation.
pub(crate) type Step = (OpId, Command);

/// The commands of one turn, in the order of [`VERBS`].
pub(crate) struct Cycle {
    pub(crate) steps: [Step; VERBS.len()],
}

/// How checkpoints of a load look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Geometry {
    /// A few shapes, shared by all checkpoints, of this many shards.
    Shared(u32),
    /// Each checkpoint has a shape of its own, of this many shards.
    Own(u32),
}

/// What the workers have sent so far, and so what they send next.
pub(crate) struct Load {
    geometry: Geometry,
    shapes: Vec<Shape>,
    /// The highest sequence number of each worker.
    sequences: Vec<u64>,
    /// How many turns each conversation has published.
    published: Vec<u32>,
    random: u64,
    cycles: u64,
}

impl Load {
    /// A catalog with its workers registered, and the load that nothing was sent of yet.
    pub(crate) fn new(retained: u32, geometry: Geometry) -> (Catalog, Self) {
        let policy = Policy { turns: TURNS, ..Policy::default() };
        let genesis = Genesis {
            namespace: "bench".parse().expect("a namespace"),
            epoch: epoch(),
            operator: OwnerId::from_u128(1),
            policy,
            limits: Limits { shards: 64, ..Limits::default() },
        };
        let mut catalog = Catalog::new(genesis).expect("a genesis");
        for worker in 0..WORKERS {
            let register = Register {
                owner: owner(worker),
                role: Role::Worker,
                after: Incarnation(0),
                start: StartId::from_u128(identity(Tag::Start, worker)),
                version: PROTOCOL_VERSION,
                expected_policy: None,
            };
            match catalog.decide_registration(epoch(), &register) {
                Decision::Event(event) => catalog.apply(&event),
                Decision::Answer(answer) => panic!("not registered: {answer:?}"),
            };
        }
        let shards = match geometry {
            Geometry::Shared(shards) | Geometry::Own(shards) => shards,
        };
        let conversations = (retained / TURNS).max(1) as usize;
        let load = Self {
            geometry,
            shapes: (0..SHAPES).map(|number| shape(shards, 1 << 20 | number << 10)).collect(),
            sequences: vec![0; WORKERS as usize],
            published: vec![0; conversations],
            random: 0x9e37_79b9_7f4a_7c15,
            cycles: 0,
        };
        (catalog, load)
    }

    /// How many checkpoints are retained once the load is full.
    pub(crate) fn retained(&self) -> u64 {
        self.published.len() as u64 * u64::from(TURNS)
    }

    /// Calls `keep` with cycles, of which only the [`SAVE`] first steps are meant, until every
    /// conversation has all its turns. The conversations come turn by turn in a scattered order.
    pub(crate) fn fill(&mut self, mut keep: impl FnMut(Cycle)) {
        let conversations = self.published.len() as u64;
        let stride = coprime(conversations * 61 / 100 + 1, conversations);
        for turn in 0..u64::from(TURNS) {
            for place in 0..conversations {
                let conversation = (place * stride + turn * 7) % conversations;
                keep(self.cycle(conversation));
            }
        }
    }

    /// A cycle of any conversation.
    pub(crate) fn next_cycle(&mut self) -> Cycle {
        let conversation = self.below(self.published.len() as u64);
        self.cycle(conversation)
    }

    fn cycle(&mut self, conversation: u64) -> Cycle {
        let number = self.cycles;
        self.cycles += 1;
        let (saver, loader, deleter) =
            (self.below(WORKERS), self.below(WORKERS), self.below(WORKERS));
        let turn = self.published[conversation as usize];
        self.published[conversation as usize] += 1;

        let prepare = self.op(saver);
        let saved = PinId { op: prepare, place: 0 };
        let settle = self.op(saver);
        let publish = self.op(saver);
        let release = self.op(saver);
        let pin = self.op(loader);
        let loaded = PinId { op: pin, place: 0 };
        let settle_load = self.op(loader);
        let collect = self.op(deleter);
        let deleted = self.op(deleter);

        let evidence = Evidence::QuiescedSuccess;
        let key = TurnKey {
            conversation: ConversationId::from_u128(identity(Tag::Conversation, conversation)),
            turn: TurnId::from_u128(identity(Tag::Turn, number)),
        };
        let prepared = self.prepare(number, conversation, turn);
        let objects = prepared.shape.objects();
        // The hosts know a deletion's objects; of which checkpoint is filled in when they do.
        let checkpoint = CheckpointId { endpoint: prepared.endpoint, generation: Generation(0) };
        let gone = |place| Some((prepared.shape.object_at(place)?, DeleteOutcome::Gone));
        let outcomes: Vec<(ObjectId, DeleteOutcome)> = (0..objects).filter_map(gone).collect();
        let candidates = vec![self.retained_endpoint()];
        let steps = [
            (prepare, Command::Prepare(prepared)),
            (settle, Command::Settle { pin: saved, shard: None, evidence }),
            (publish, Command::Publish { pin: saved, turn: Some(key) }),
            (release, Command::Release { pin: saved }),
            (pin, Command::Pin { candidates, limit: 1 }),
            (settle_load, Command::Settle { pin: loaded, shard: None, evidence }),
            (collect, Command::Collect { limit: objects }),
            (deleted, Command::Deleted { checkpoint, outcomes }),
        ];
        Cycle { steps }
    }

    fn prepare(&mut self, number: u64, conversation: u64, turn: u32) -> Prepare {
        let mut digest = [0; 32];
        digest[..16].copy_from_slice(&identity(Tag::Digest, number).to_le_bytes());
        digest[16..].copy_from_slice(&identity(Tag::Digest, !number).to_le_bytes());
        let any = self.below(SHAPES) as usize;
        let shape = match self.geometry {
            Geometry::Shared(_) => self.shapes[any].clone(),
            Geometry::Own(shards) => shape(shards, 1 << 20 | number),
        };
        let shards = (0..shape.shards().len()).map(|shard| ShardIndex(shard as u16)).collect();
        Prepare {
            attempt: AttemptId::from_u128(identity(Tag::Attempt, number)),
            endpoint: endpoint(conversation, turn),
            digest: ManifestDigest::from_bytes(digest),
            shape,
            shards,
        }
    }

    /// The endpoint of a live turn of any conversation that has one.
    fn retained_endpoint(&mut self) -> EndpointId {
        let conversation = self.below(self.published.len() as u64);
        let published = self.published[conversation as usize];
        let back = self.below(u64::from(TURNS.min(published).max(1)));
        endpoint(conversation, published.saturating_sub(back as u32 + 1))
    }

    fn op(&mut self, worker: u64) -> OpId {
        let sequence = &mut self.sequences[worker as usize];
        *sequence += 1;
        OpId {
            owner: owner(worker),
            // Incarnations are minted in the order of the registrations.
            incarnation: Incarnation(worker + 1),
            sequence: *sequence,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = mix(self.random.wrapping_add(0x9e37_79b9_7f4a_7c15));
        ((u128::from(self.random) * u128::from(bound)) >> 64) as u64
    }
}

/// The epoch of every load.
pub(crate) fn epoch() -> Epoch {
    Epoch::from_u128(0xe)
}

/// Names the checkpoint in a `Deleted` that was built before anybody knew which one it would be.
pub(crate) fn name_deleted(command: &mut Command, deletable: Option<CheckpointId>) {
    if let (Command::Deleted { checkpoint, .. }, Some(id)) = (command, deletable) {
        *checkpoint = id;
    }
}

/// Decides a command. A load is made of commands that are never refused.
pub(crate) fn decide(catalog: &Catalog, op: OpId, command: Command) -> Event {
    match catalog.decide(epoch(), op, command) {
        Decision::Event(event) => event,
        Decision::Answer(answer) => panic!("answered: {answer:?}"),
    }
}

/// Applies an event, and says which checkpoint it handed out for deletion, if one.
pub(crate) fn apply(catalog: &mut Catalog, event: &Event) -> Option<CheckpointId> {
    match catalog.apply(event) {
        Some(Ok(_)) => {}
        answer => panic!("refused: {answer:?} of {event:?}"),
    }
    match event {
        Event::Decided { change: Change::Collected { work, .. }, .. } => {
            work.first().map(|work| work.checkpoint)
        }
        _ => None,
    }
}

/// Takes the first `steps` steps of a cycle.
pub(crate) fn run(catalog: &mut Catalog, cycle: Cycle, steps: usize) {
    let mut deletable = None;
    for (op, mut command) in cycle.steps.into_iter().take(steps) {
        name_deleted(&mut command, deletable);
        let event = decide(catalog, op, command);
        deletable = apply(catalog, &event);
    }
}

fn owner(worker: u64) -> OwnerId {
    OwnerId::from_u128(identity(Tag::Owner, worker))
}

fn endpoint(conversation: u64, turn: u32) -> EndpointId {
    EndpointId::from_u128(identity(Tag::Endpoint, conversation << 32 | u64::from(turn)))
}

fn shape(shards: u32, bytes: u64) -> Shape {
    let shards: Vec<ShardShape> =
        (0..shards).map(|_| ShardShape { objects: OBJECTS, bytes }).collect();
    Shape::new(&shards).expect("a shape")
}

/// 128 bits that look random, as a digest's do.
fn identity(tag: Tag, number: u64) -> u128 {
    let high = mix(mix(number) ^ (tag as u64) << 56);
    let low = mix(high ^ number.rotate_left(32));
    u128::from(high) << 64 | u128::from(low)
}

/// The finaliser of splitmix64: a bijection.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The first number from `number` on without a common divisor with `other`.
fn coprime(mut number: u64, other: u64) -> u64 {
    while divisor(number, other) != 1 {
        number += 1;
    }
    number
}

fn divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { divisor(right, left % right) }
}
