//! A job whose contents are known: every figure of it can be computed by hand.

use std::path::Path;

use pinfold_core::catalog::{Command, Prepare, Role, Shape, ShardShape};
use pinfold_core::engine::Effect;
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Incarnation, ManifestDigest,
    ObjectId, OpId, OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{
    DeleteOutcome, Evidence, Loss, LostObject, Outcome, Rejection, TurnKey,
};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::journal::JournalOptions;
use pinfold_host::node::{Effects, Node};

/// An owner that gets an answer to whatever it asks.
pub(crate) struct Owner(pinfold_host::owner::Owner);

impl Owner {
    pub(crate) fn register(node: &Node, name: &str, role: Role) -> Self {
        let (client, start) = (node.client(), StartId::of_name(name));
        Self(pinfold_host::owner::Owner::register(client, name, role, start).unwrap())
    }

    pub(crate) fn id(&self) -> OwnerId {
        self.0.identity().0
    }

    pub(crate) fn ask(&self, command: Command) -> Result<Outcome, Rejection> {
        self.0.ask(command).unwrap()
    }

    /// Prepares a checkpoint of shards with these bytes, each of two objects, and claims the first.
    pub(crate) fn prepare(&self, name: &str, bytes: &[u64]) -> (PinId, CheckpointId) {
        let shards: Vec<_> = bytes.iter().map(|&bytes| ShardShape { objects: 2, bytes }).collect();
        let prepare = Prepare {
            attempt: AttemptId::of_name(name),
            endpoint: EndpointId::of_name(name),
            digest: ManifestDigest::from_bytes([7; 32]),
            shape: Shape::new(&shards).unwrap(),
            shards: vec![ShardIndex(0)],
        };
        match self.ask(Command::Prepare(prepare)) {
            Ok(Outcome::Prepared { pin, checkpoint }) => (pin, checkpoint),
            other => panic!("not prepared: {other:?}"),
        }
    }

    pub(crate) fn settle(&self, pin: PinId, evidence: Evidence) {
        self.ask(Command::Settle { pin, shard: Some(ShardIndex(0)), evidence }).unwrap();
    }

    /// Saves and publishes; without a turn, unscoped.
    pub(crate) fn save(&self, name: &str, bytes: u64, turn: Option<TurnKey>) -> CheckpointId {
        let (pin, checkpoint) = self.prepare(name, &[bytes]);
        self.settle(pin, Evidence::QuiescedSuccess);
        self.ask(Command::Publish { pin, turn }).unwrap();
        self.ask(Command::Release { pin }).unwrap();
        checkpoint
    }
}

pub(crate) fn turn(conversation: &str, turn: &str) -> Option<TurnKey> {
    Some(TurnKey {
        conversation: ConversationId::of_name(conversation),
        turn: TurnId::of_name(turn),
    })
}

pub(crate) fn create(dir: &Path, options: JournalOptions) -> (Node, Effects) {
    let genesis = Genesis {
        namespace: "known".parse().unwrap(),
        epoch: Epoch::of_name("a known job"),
        operator: OwnerId::of_name("operator"),
        policy: Policy { turns: 2, ..Policy::default() },
        limits: Limits::default(),
    };
    Node::create_with(dir, genesis, options).unwrap()
}

/// A running job with one thing of each kind.
///
/// | checkpoint | bytes | what became of it |
/// |---|---|---|
/// | 1 | 100 | published for A/1, expired, collected |
/// | 2, 3 | 200, 400 | published for A/2 and A/3 |
/// | 4 | 1000 | published for B/1, pinned for a load by w1, lost |
/// | 5 | 50 | published unscoped |
/// | 6 | 3000 | published for C/1, expired, quarantined: object 0 refused, 1 unknown |
/// | 7, 8 | 3001, 3002 | published for C/2 and C/3 |
/// | 9 | 10 + 20 | prepared by w3 for shard 0 of 2, which is in doubt |
/// | 10 | 70 | failed, collectable |
///
/// Conversation D was forgotten before it was seen.
pub(crate) struct KnownJob {
    pub(crate) node: Node,
    pub(crate) workers: [Owner; 3],
    pub(crate) operator: Owner,
    /// The pin of w1 on 4, and that of w3 on 9.
    pub(crate) load: PinId,
    pub(crate) doubted: PinId,
    effects: Effects,
}

impl KnownJob {
    pub(crate) fn new(dir: &Path) -> Self {
        let (node, effects) = create(dir, JournalOptions::default());
        let operator = Owner::register(&node, "operator", Role::Operator);
        let workers = ["w1", "w2", "w3"].map(|name| Owner::register(&node, name, Role::Worker));
        let pin = PinId {
            op: OpId { owner: OwnerId::default(), incarnation: Incarnation(0), sequence: 0 },
            place: 0,
        };
        let mut job = Self { node, workers, operator, load: pin, doubted: pin, effects };
        job.fill();
        job
    }

    fn fill(&mut self) {
        let [w1, w2, _] = &self.workers;
        for (name, bytes) in [("1", 100), ("2", 200), ("3", 400)] {
            w1.save(name, bytes, turn("A", name));
        }
        let fourth = w2.save("4", 1000, turn("B", "1"));
        w2.save("5", 50, None);
        let one = self.collect(&[DeleteOutcome::Gone, DeleteOutcome::Gone]);
        assert_eq!(one.generation.0, 1);
        let [w1, ..] = &self.workers;
        for (name, bytes) in [("6", 3000), ("7", 3001), ("8", 3002)] {
            w1.save(name, bytes, turn("C", name));
        }
        let six = self.collect(&[DeleteOutcome::Refused, DeleteOutcome::Unknown]);
        assert_eq!(six.generation.0, 6);
        let [w1, w2, w3] = &self.workers;
        let (doubted, _) = w3.prepare("9", &[10, 20]);
        w3.settle(doubted, Evidence::InDoubt);
        self.doubted = doubted;
        let candidates = vec![fourth.endpoint];
        let op = w1.0.begin(Command::Pin { candidates, limit: 1 }).unwrap();
        let pinned = w1.0.send(op).unwrap().unwrap();
        assert!(matches!(pinned, Outcome::Pinned(answers) if answers.len() == 1));
        self.load = PinId { op, place: 0 };
        let object = LostObject::Private(ObjectId { shard: ShardIndex(0), index: 1 });
        w1.ask(Command::Lost { checkpoint: fourth, object, why: Loss::WrongBytes }).unwrap();
        let (pin, _) = w2.prepare("10", &[70]);
        w2.settle(pin, Evidence::NotExposed);
        w2.ask(Command::Release { pin }).unwrap();
        let conversation = ConversationId::of_name("D");
        self.operator.ask(Command::Forget { conversation }).unwrap();
    }

    /// Collects the two objects of one checkpoint, with these outcomes.
    fn collect(&self, outcomes: &[DeleteOutcome]) -> CheckpointId {
        let collector = &self.workers[1];
        collector.ask(Command::Collect { limit: 2 }).unwrap();
        let Effect::Delete { checkpoint, objects, .. } = self.effects.recv().unwrap();
        assert_eq!(objects.len(), outcomes.len());
        let outcomes = objects.into_iter().zip(outcomes.iter().copied()).collect();
        collector.ask(Command::Deleted { checkpoint, outcomes }).unwrap();
        checkpoint
    }
}
