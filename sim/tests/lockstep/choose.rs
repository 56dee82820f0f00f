//! Random requests in tiny spaces of ids: mostly sensible, sometimes late, foreign or malformed.

use pinfold_core::catalog::{
    Command, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape,
};
use pinfold_core::engine::{Query, Request};
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Generation, Incarnation, Key,
    ManifestDigest, ObjectId, OpId, OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Loss, LostObject, Outcome, TurnKey};
use pinfold_core::policy::{Limits, Policy, Quarantine};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::rig::Rig;

/// W: how many receipts are kept.
const W: u32 = 4;

pub(crate) struct Chance(ChaCha8Rng);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0.next_u32() % bound
    }

    /// One time in so many.
    pub(crate) fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        let count = u32::try_from(choices.len()).ok().filter(|count| *count > 0)?;
        Some(choices[self.below(count) as usize].clone())
    }

    /// Mostly one of the latest.
    fn late<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        let from = if self.once_in(8) { 0 } else { choices.len().saturating_sub(8) };
        self.of(&choices[from..])
    }
}

pub(crate) fn policy(chance: &mut Chance) -> Policy {
    let budget = |chance: &mut Chance, least: u64| {
        chance.once_in(2).then(|| least + u64::from(chance.below(4)) * 40)
    };
    Policy {
        turns: 1 + chance.below(3),
        conversation_bytes: budget(chance, 90),
        job_bytes: budget(chance, 120),
        quarantine: if chance.once_in(2) { Quarantine::Endpoint } else { Quarantine::Generation },
    }
}

pub(crate) fn limits(chance: &mut Chance) -> Limits {
    Limits {
        owners: 4 + chance.below(2),
        pins_per_owner: 4 + chance.below(4),
        pins: 6 + chance.below(8),
        bytes_pinned: 300 + u64::from(chance.below(4)) * 100,
        bytes_unscoped: 150,
        bytes_in_doubt: 200 + u64::from(chance.below(3)) * 100,
        bytes_quarantined: 100 + u64::from(chance.below(3)) * 60,
        shards: 2 + chance.below(2),
        objects_per_shard: 8 + chance.below(8),
        objects_per_checkpoint: 10 + chance.below(12),
        generations_per_endpoint: 2 + chance.below(4),
        references_per_turn: 2,
        candidates: 3 + chance.below(2),
        answers: 2 + chance.below(2),
        turns: 4,
        conversations: 3 + chance.below(2),
        expired_turns: 4 + chance.below(24),
        commands_per_list: 4,
        unanswered: W,
    }
}

/// What was ever heard of.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) pins: Vec<PinId>,
    pub(crate) checkpoints: Vec<CheckpointId>,
    sent: Vec<(OpId, Command)>,
    registered: Vec<Register>,
}

impl Heard {
    pub(crate) fn hear(&mut self, op: OpId, outcome: &Outcome) {
        match outcome {
            Outcome::Prepared { pin, checkpoint }
            | Outcome::AlreadyPublished { pin, checkpoint } => {
                self.pins.push(*pin);
                if !self.checkpoints.contains(checkpoint) {
                    self.checkpoints.push(*checkpoint);
                }
            }
            Outcome::Pinned(answers) => {
                let places = (0..).zip(answers.iter());
                self.pins.extend(places.map(|(place, _)| PinId { op, place }));
            }
            _ => {}
        }
    }
}

/// Chooses requests for the clients of a rig.
pub(crate) struct Chooser<'a> {
    pub(crate) chance: &'a mut Chance,
    pub(crate) rig: &'a mut Rig,
    pub(crate) heard: &'a mut Heard,
}

impl Chooser<'_> {
    pub(crate) fn epoch(&mut self) -> Epoch {
        if self.chance.once_in(50) { Epoch::from_u128(8) } else { self.rig.job.epoch }
    }

    pub(crate) fn request(&mut self) -> Request {
        match self.chance.below(40) {
            0..2 => self.registration(),
            2..6 => Request::Query(self.query()),
            6..10 => {
                let count = self.chance.below(6);
                Request::List((0..count).map(|_| self.operation()).collect())
            }
            10..14 => self.save(),
            _ => {
                let (op, command) = self.operation();
                Request::Command(op, command)
            }
        }
    }

    /// A whole save as an honest worker would do it, in one list; its turn follows its position.
    fn save(&mut self) -> Request {
        let owner = 2 + u128::from(self.chance.below(2));
        let prepare = self.prepare();
        let turn = TurnKey {
            conversation: ConversationId::from_u128(1),
            turn: TurnId::from_bytes(*prepare.endpoint.as_bytes()),
        };
        let first = self.rig.next_op(owner);
        let pin = PinId { op: first, place: 0 };
        let success = Evidence::QuiescedSuccess;
        let last = match self.chance.below(4) {
            0 => Command::Release { pin },
            1 => {
                let checkpoint = self.heard.checkpoints.last().copied();
                let checkpoint = checkpoint.unwrap_or_default();
                Command::Lost { checkpoint, object: LostObject::Shared(0), why: Loss::Absent }
            }
            _ => Command::Collect { limit: 5 },
        };
        Request::List(vec![
            (first, Command::Prepare(prepare)),
            (self.rig.next_op(owner), Command::Settle { pin, shard: None, evidence: success }),
            (self.rig.next_op(owner), Command::Publish { pin, turn: Some(turn) }),
            (self.rig.next_op(owner), last),
        ])
    }

    /// A new registration, or one that was sent before.
    fn registration(&mut self) -> Request {
        if self.chance.once_in(5)
            && let Some(register) = self.chance.late(&self.heard.registered)
        {
            return Request::Register(register);
        }
        let owner = 1 + self.chance.below(6);
        let is_operator = matches!(owner, 1 | 4) != self.chance.once_in(12);
        let role = if is_operator { Role::Operator } else { Role::Worker };
        let Request::Register(register) = self.rig.register(u128::from(owner), role) else {
            unreachable!("a registration is one")
        };
        let after = match self.chance.below(10) {
            0 => Incarnation(u64::from(self.chance.below(4))),
            _ => register.after,
        };
        let start = match self.chance.below(8) {
            0 => StartId::from_u128(u128::from(self.chance.below(6))),
            _ => register.start,
        };
        let version = PROTOCOL_VERSION + u32::from(self.chance.once_in(30));
        let owner = if self.chance.once_in(40) { OwnerId::default() } else { register.owner };
        let expected_policy = match self.chance.below(8) {
            0 => Some(policy(self.chance)),
            1 => Some(self.rig.engine.catalog().job().policy),
            _ => None,
        };
        let register = Register { owner, after, start, version, expected_policy, ..register };
        self.heard.registered.push(register);
        Request::Register(register)
    }

    /// A new operation, or one that was sent before, as it was or not.
    fn operation(&mut self) -> (OpId, Command) {
        if self.chance.once_in(8)
            && let Some((op, command)) = self.chance.late(&self.heard.sent)
        {
            let command = if self.chance.once_in(4) { self.command(op.owner) } else { command };
            return (op, command);
        }
        let owner = [1, 1, 2, 2, 2, 3, 3, 3, 4, 5][self.chance.below(10) as usize];
        let command = self.command(OwnerId::from_u128(owner));
        // A pin's own owner is asked more often than another.
        let owner = match &command {
            Command::Settle { pin, .. }
            | Command::Publish { pin, .. }
            | Command::Release { pin }
            | Command::Doubt { pin, .. }
                if !self.chance.once_in(5) =>
            {
                u128::from_be_bytes(*pin.op.owner.as_bytes())
            }
            _ => owner,
        };
        let mut op = self.rig.next_op(owner);
        match self.chance.below(60) {
            0 => op.incarnation = Incarnation(u64::from(self.chance.below(12))),
            1 => op.sequence = u64::from(self.chance.below(4)),
            2 => op.sequence += 2,
            3 => op.owner = OwnerId::default(),
            _ => {}
        }
        self.heard.sent.push((op, command.clone()));
        (op, command)
    }

    fn command(&mut self, owner: OwnerId) -> Command {
        let is_operator = owner == OwnerId::from_u128(1) || owner == OwnerId::from_u128(4);
        let command = match self.chance.below(if is_operator { 64 } else { 46 }) {
            0..10 => Some(Command::Prepare(self.prepare())),
            10..18 => self.settle(),
            18..26 => self.publish(),
            26..30 => self.pin().map(|pin| Command::Release { pin }),
            30..34 => Some(self.load()),
            34..37 => self.lost(),
            37..38 => {
                let doubtful = self.chance.once_in(2);
                self.pin().map(|pin| Command::Doubt { pin, doubtful })
            }
            38..42 => Some(Command::Collect { limit: self.chance.below(16) }),
            42..45 => self.deleted(),
            45..49 => Some(self.configure()),
            49..51 => Some(Command::Forget { conversation: self.conversation() }),
            51..53 => self.checkpoint().map(|checkpoint| Command::Drop { checkpoint }),
            53..56 => self.fence(),
            56..57 => {
                let owner = OwnerId::from_u128(u128::from(self.chance.below(7)));
                Some(Command::Retire { owner })
            }
            57..60 => self.settle(),
            _ => self.deleted(),
        };
        command.unwrap_or_else(|| Command::Prepare(self.prepare()))
    }

    fn pin(&mut self) -> Option<PinId> {
        let mut pin = self.chance.late(&self.heard.pins)?;
        match self.chance.below(40) {
            0 => pin.op.sequence += u64::from(self.chance.below(9)),
            1 => pin.op.incarnation = Incarnation(u64::from(self.chance.below(12))),
            2 => pin.op.sequence = 0,
            3 => pin.op.owner = OwnerId::from_u128(u128::from(self.chance.below(7))),
            4 => pin.place = 1,
            _ => {}
        }
        Some(pin)
    }

    fn checkpoint(&mut self) -> Option<CheckpointId> {
        let mut id = self.chance.late(&self.heard.checkpoints)?;
        match self.chance.below(30) {
            0 => id.generation = Generation(u64::from(self.chance.below(40))),
            1 => id.endpoint = EndpointId::from_u128(7),
            _ => {}
        }
        Some(id)
    }

    fn conversation(&mut self) -> ConversationId {
        let zero = self.chance.once_in(40);
        ConversationId::from_u128(if zero { 0 } else { 1 + u128::from(self.chance.below(4)) })
    }

    fn prepare(&mut self) -> Prepare {
        let endpoint = self.chance.below(4);
        let mut shards = match endpoint {
            0 => vec![(2, 60)],
            1 => vec![(2, 50), (1, 40)],
            2 => vec![(9, 30)],
            _ => vec![(1, 20), (3, 25), (2, 5)],
        };
        if self.chance.once_in(20) {
            shards.push((14, 70));
        }
        let digest = u8::try_from(shards.len()).unwrap_or(0) + u8::from(self.chance.once_in(20));
        let shapes: Vec<_> =
            shards.iter().map(|&(objects, bytes)| ShardShape { objects, bytes }).collect();
        let all = u16::try_from(shapes.len()).unwrap_or(0);
        let one = ShardIndex(u16::try_from(self.chance.below(4)).unwrap_or(0));
        let claimed = match self.chance.below(16) {
            0 => vec![],
            1 => vec![ShardIndex(1), ShardIndex(0)],
            2 => vec![one, one],
            3..8 => vec![one],
            _ => (0..all).map(ShardIndex).collect(),
        };
        let attempt = match self.chance.below(40) {
            0 => 0,
            1 => 1 + self.chance.below(16),
            _ => 1 + endpoint * 4 + self.chance.below(4),
        };
        let endpoint = if self.chance.once_in(60) { 0 } else { 1 + u128::from(endpoint) };
        Prepare {
            attempt: AttemptId::from_u128(u128::from(attempt)),
            endpoint: EndpointId::from_u128(endpoint),
            digest: ManifestDigest::from_bytes([digest; 32]),
            shape: Shape::new(&shapes).expect("a good shape"),
            shards: claimed,
        }
    }

    fn settle(&mut self) -> Option<Command> {
        let evidences = [
            Evidence::QuiescedSuccess,
            Evidence::QuiescedSuccess,
            Evidence::QuiescedSuccess,
            Evidence::QuiescedSuccess,
            Evidence::QuiescedFailure,
            Evidence::InDoubt,
            Evidence::NotExposed,
            Evidence::Active,
        ];
        let evidence = self.chance.of(&evidences)?;
        let shard = match self.chance.below(8) {
            0 => Some(ShardIndex(u16::try_from(self.chance.below(3)).ok()?)),
            _ => None,
        };
        Some(Command::Settle { pin: self.pin()?, shard, evidence })
    }

    fn publish(&mut self) -> Option<Command> {
        let turn = if self.chance.once_in(3) { 24 } else { 4 };
        let turn = self.chance.below(turn);
        let key = TurnKey {
            conversation: self.conversation(),
            turn: TurnId::from_u128(u128::from(turn)),
        };
        let turn = (!self.chance.once_in(10)).then_some(key);
        Some(Command::Publish { pin: self.pin()?, turn })
    }

    fn load(&mut self) -> Command {
        let count = self.chance.below(5);
        let mut candidates: Vec<_> =
            (1..=count).map(|id| EndpointId::from_u128(id.into())).collect();
        match self.chance.below(20) {
            0 => candidates.push(EndpointId::from_u128(1)),
            1 => candidates.push(EndpointId::from_u128(0)),
            2..8 => candidates.reverse(),
            _ => {}
        }
        let limit = if self.chance.once_in(30) { 9 } else { self.chance.below(4) };
        Command::Pin { candidates, limit }
    }

    fn lost(&mut self) -> Option<Command> {
        let object = match self.chance.below(3) {
            0 => LostObject::Private(self.object()),
            _ => LostObject::Shared(self.chance.below(9)),
        };
        Some(Command::Lost { checkpoint: self.checkpoint()?, object, why: Loss::Absent })
    }

    fn object(&mut self) -> ObjectId {
        let shard = u16::try_from(self.chance.below(3)).unwrap_or(0);
        ObjectId { shard: ShardIndex(shard), index: self.chance.below(3) }
    }

    fn deleted(&mut self) -> Option<Command> {
        let known = [
            DeleteOutcome::Gone,
            DeleteOutcome::Gone,
            DeleteOutcome::Refused,
            DeleteOutcome::Unknown,
        ];
        let checkpoint = self.checkpoint()?;
        let shards: &[u32] = match u128::from_be_bytes(*checkpoint.endpoint.as_bytes()) {
            1 => &[2],
            2 => &[2, 1],
            3 => &[9],
            _ => &[1, 3, 2],
        };
        let whole = self.chance.once_in(2);
        let mut outcomes = Vec::new();
        for (shard, objects) in (0..).zip(shards) {
            for index in 0..*objects {
                if whole || self.chance.once_in(2) {
                    let outcome = if whole { known[0] } else { self.chance.of(&known)? };
                    outcomes.push((ObjectId { shard: ShardIndex(shard), index }, outcome));
                }
            }
        }
        if self.chance.once_in(20) {
            outcomes.push((self.object(), DeleteOutcome::Gone));
        }
        Some(Command::Deleted { checkpoint, outcomes })
    }

    fn configure(&mut self) -> Command {
        let mut limits = limits(self.chance);
        let mut policy = policy(self.chance);
        match self.chance.below(20) {
            0 => limits.unanswered += 1,
            1 => limits.pins = 0,
            2 => limits.answers = 9,
            3 => policy.turns = 0,
            4 => policy.turns = 5,
            5 => policy.conversation_bytes = Some(0),
            6 => policy.job_bytes = Some(0),
            _ => {}
        }
        Command::Configure { policy, limits }
    }

    fn fence(&mut self) -> Option<Command> {
        let OpId { owner, incarnation, .. } = self.pin()?.op;
        let owner = if self.chance.once_in(10) { OwnerId::from_u128(6) } else { owner };
        Some(Command::Fence { owner, incarnation })
    }

    fn query(&mut self) -> Query {
        let none = CheckpointId { endpoint: EndpointId::from_u128(1), generation: Generation(1) };
        match self.chance.below(8) {
            0 => Query::Job,
            1..4 => Query::Gauges,
            4..7 => Query::Blockers(self.checkpoint().unwrap_or(none)),
            _ => Query::Audit((0..4).map(|_| self.key(none)).collect()),
        }
    }

    fn key(&mut self, none: CheckpointId) -> String {
        let key = Key {
            namespace: self.rig.job.namespace.clone(),
            epoch: self.epoch(),
            checkpoint: self.checkpoint().unwrap_or(none),
            object: self.object(),
        };
        if self.chance.once_in(8) { format!("{key}0") } else { key.to_string() }
    }
}
