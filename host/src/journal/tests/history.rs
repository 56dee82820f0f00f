//! One history of a job, as frames: what a journal is given, and the state after each of them.

use pinfold_core::catalog::{
    Command, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape,
};
use pinfold_core::engine::{Config, Effect, Engine, Input, Output, Request, Ticket};
use pinfold_core::id::{
    AttemptId, ConversationId, EndpointId, Epoch, Incarnation, ManifestDigest, OpId, OwnerId,
    PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::journal::record::Frame;
use pinfold_core::journal::snapshot;
use pinfold_core::outcome::{DeleteOutcome, Evidence, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_core::replay::Replay;

/// Frames in order, and the canonical state behind each.
pub(super) struct History {
    pub(super) epoch: Epoch,
    pub(super) frames: Vec<Vec<u8>>,
    /// After so many frames: how many records, and the state; first none.
    pub(super) states: Vec<(u64, Option<Vec<u8>>)>,
}

impl History {
    /// The history of so many turns in three conversations, a few frames each.
    pub(super) fn of_turns(turns: u64) -> Self {
        let mut writer = Writer::new();
        let register = Register {
            owner: owner(),
            role: Role::Worker,
            after: Incarnation(0),
            start: StartId::of_name("start"),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        writer.submit(Request::Register(register));
        writer.commit();
        for number in 1..=turns {
            writer.turn(number);
        }
        writer.history()
    }

    /// The state as a snapshot's bytes.
    pub(super) fn state_of(replay: &Replay) -> Option<Vec<u8>> {
        replay.catalog().map(|catalog| snapshot::encode(catalog, 0))
    }
}

fn owner() -> OwnerId {
    OwnerId::of_name("worker")
}

fn genesis() -> Genesis {
    Genesis {
        namespace: "history".parse().unwrap(),
        epoch: Epoch::of_name("history"),
        operator: OwnerId::of_name("operator"),
        policy: Policy { turns: 2, ..Policy::default() },
        limits: Limits::default(),
    }
}

struct Writer {
    engine: Engine,
    sequence: u64,
    deletes: Vec<Command>,
    frames: Vec<Vec<u8>>,
}

impl Writer {
    fn new() -> Self {
        let engine = Engine::create(Config::default(), genesis()).unwrap();
        let mut writer = Self { engine, sequence: 0, deletes: Vec::new(), frames: Vec::new() };
        writer.commit();
        writer
    }

    fn turn(&mut self, number: u64) {
        for command in std::mem::take(&mut self.deletes) {
            self.ask(command);
        }
        let shape = Shape::new(&[ShardShape { objects: 2, bytes: 1000 }]).unwrap();
        let op = self.ask(Command::Prepare(Prepare {
            attempt: AttemptId::from_u128(u128::from(number)),
            endpoint: EndpointId::from_u128(u128::from(number)),
            digest: ManifestDigest::from_bytes([7; 32]),
            shape,
            shards: vec![ShardIndex(0)],
        }));
        self.commit();
        let pin = PinId { op, place: 0 };
        self.ask(Command::Settle { pin, shard: None, evidence: Evidence::QuiescedSuccess });
        let turn = TurnKey {
            conversation: ConversationId::from_u128(u128::from(number % 3) + 1),
            turn: TurnId::from_u128(u128::from(number)),
        };
        self.ask(Command::Publish { pin, turn: Some(turn) });
        self.ask(Command::Release { pin });
        self.commit();
        self.ask(Command::Collect { limit: 4 });
        self.commit();
    }

    fn ask(&mut self, command: Command) -> OpId {
        self.sequence += 1;
        let op = OpId { owner: owner(), incarnation: Incarnation(1), sequence: self.sequence };
        self.submit(Request::Command(op, command));
        op
    }

    fn submit(&mut self, request: Request) {
        let epoch = genesis().epoch;
        self.engine.submit(Input { ticket: Ticket(0), epoch, request });
    }

    fn commit(&mut self) {
        while let Some(batch) = self.engine.take_batch() {
            self.frames.push(batch.bytes().to_vec());
            self.engine.commit(batch);
        }
        while let Some(output) = self.engine.poll_output() {
            if let Output::Effect(Effect::Delete { checkpoint, objects, .. }) = output {
                let gone = |object| (object, DeleteOutcome::Gone);
                let outcomes = objects.into_iter().map(gone).collect();
                self.deletes.push(Command::Deleted { checkpoint, outcomes });
            }
        }
    }

    fn history(self) -> History {
        let (epoch, frames) = (genesis().epoch, self.frames);
        let mut replay = Replay::from_genesis();
        let mut states = vec![(0, None)];
        for frame in &frames {
            for (_, record) in Frame::decode(&epoch, frame).unwrap().records() {
                replay.follow(record).unwrap();
            }
            states.push((replay.position(), History::state_of(&replay)));
        }
        History { epoch, frames, states }
    }
}
