//! The record encoding is a contract: golden bytes of every event, and a digest over many seeded
//! ones. Either changes only on purpose, and then with a new version byte.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use pinfold_core::catalog::{
    Change, DeleteWork, Event, FollowUp, Prepare, Role, Shape, ShardShape,
};
use pinfold_core::few::Few;
use pinfold_core::id::{
    CheckpointId, ConversationId, EndpointId, Epoch, Generation, Id, Incarnation, Kind,
    ManifestDigest, ObjectId, OpId, OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{
    DeleteOutcome, Evidence, Field, Limit, Loss, LostObject, Malformed, Problem, Rejection, TurnKey,
};
use pinfold_core::policy::{Genesis, Limits, Policy, Quarantine};
use pinfold_core::replay::decode_event;

/// Numbers by the multiply-and-add rule of Knuth's MMIX, upper half: the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 32).unwrap()
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from((u64::from(self.next()) * u64::from(bound)) >> 32).unwrap()
    }

    /// Of any size: most numbers of a journal are small, some are large.
    fn wide(&mut self) -> u64 {
        let bits = self.below(64);
        (u64::from(self.next()) << 32 | u64::from(self.next())) >> bits
    }

    fn narrow(&mut self) -> u32 {
        let bits = self.below(32);
        self.next() >> bits
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flip().then(|| make(self))
    }

    fn id<K: Kind>(&mut self) -> Id<K> {
        let number = (0..4).fold(0, |number, _| number << 32 | u128::from(self.next()));
        Id::from_u128(number)
    }

    fn checkpoint(&mut self) -> CheckpointId {
        CheckpointId { endpoint: self.id::<_>(), generation: Generation(self.wide()) }
    }

    fn op(&mut self) -> OpId {
        let incarnation = Incarnation(self.wide());
        OpId { owner: self.id::<_>(), incarnation, sequence: self.wide() }
    }

    fn pin(&mut self) -> PinId {
        PinId { op: self.op(), place: u8::try_from(self.below(8)).unwrap() }
    }

    fn shard(&mut self) -> ShardIndex {
        ShardIndex(u16::try_from(self.below(1 << 16)).unwrap())
    }

    fn object(&mut self) -> ObjectId {
        ObjectId { shard: self.shard(), index: self.narrow() }
    }

    fn turn(&mut self) -> TurnKey {
        TurnKey { conversation: self.id::<_>(), turn: self.id::<_>() }
    }

    fn evidence(&mut self) -> Evidence {
        let all = [
            Evidence::NotExposed,
            Evidence::Active,
            Evidence::Quiescing,
            Evidence::QuiescedSuccess,
            Evidence::QuiescedFailure,
            Evidence::InDoubt,
        ];
        all[self.below(6) as usize]
    }

    fn deleted(&mut self) -> DeleteOutcome {
        let all = [DeleteOutcome::Gone, DeleteOutcome::Refused, DeleteOutcome::Unknown];
        all[self.below(3) as usize]
    }

    fn policy(&mut self) -> Policy {
        Policy {
            turns: self.narrow(),
            conversation_bytes: self.maybe(Self::wide),
            job_bytes: self.maybe(Self::wide),
            quarantine: if self.flip() { Quarantine::Generation } else { Quarantine::Endpoint },
        }
    }

    fn limits(&mut self) -> Limits {
        Limits {
            owners: self.narrow(),
            pins_per_owner: self.narrow(),
            pins: self.narrow(),
            bytes_pinned: self.wide(),
            bytes_unscoped: self.wide(),
            bytes_in_doubt: self.wide(),
            bytes_quarantined: self.wide(),
            shards: self.narrow(),
            objects_per_shard: self.narrow(),
            objects_per_checkpoint: self.narrow(),
            generations_per_endpoint: self.narrow(),
            references_per_turn: self.narrow(),
            candidates: self.narrow(),
            answers: self.narrow(),
            turns: self.narrow(),
            conversations: self.narrow(),
            expired_turns: self.narrow(),
            commands_per_list: self.narrow(),
            unanswered: self.narrow(),
        }
    }

    fn prepare(&mut self) -> Prepare {
        let shards = 1 + self.below(4);
        let row = |numbers: &mut Self| ShardShape {
            objects: 1 + numbers.below(1 << 17),
            bytes: numbers.wide() >> 22,
        };
        let rows: Vec<_> = (0..shards).map(|_| row(self)).collect();
        Prepare {
            attempt: self.id::<_>(),
            endpoint: self.id::<_>(),
            digest: ManifestDigest::from_bytes(core::array::from_fn(|_| {
                u8::try_from(self.below(256)).unwrap()
            })),
            shape: Shape::new(&rows).unwrap(),
            shards: (0..self.below(4)).map(|_| self.shard()).collect(),
        }
    }

    fn rejection(&mut self) -> Rejection {
        let malformed = Malformed { field: Field::JobBytes, problem: Problem::TooLarge };
        let limit = Rejection::LimitExceeded {
            limit: Limit::JobBytes,
            bound: self.wide(),
            needed: self.wide(),
        };
        let all = [
            Rejection::Malformed(malformed),
            Rejection::StaleIncarnation { current: Incarnation(self.wide()) },
            Rejection::ShardTaken { shard: self.shard() },
            Rejection::PolicyMismatch,
            limit,
        ];
        all[self.below(5) as usize]
    }

    fn change(&mut self, kind: u32) -> Change {
        let checkpoint = self.checkpoint();
        match kind {
            0 => Change::Refused(self.rejection()),
            1 => Change::Prepared { prepare: self.prepare(), generation: checkpoint.generation },
            2 => Change::Joined { checkpoint, shards: vec![self.shard(), self.shard()] },
            3 => Change::AlreadyPublished { checkpoint },
            4 => Change::Pinned { checkpoints: self.few(8, Self::checkpoint) },
            5 => {
                let shard = self.maybe(Self::shard);
                Change::Settled { pin: self.pin(), shard, evidence: self.evidence() }
            }
            6 => Change::Released { pin: self.pin() },
            7 => {
                let turn = self.maybe(Self::turn);
                Change::Published { checkpoint, turn, expired: self.maybe(Self::turn) }
            }
            8 => {
                let object = match self.flip() {
                    true => LostObject::Private(self.object()),
                    false => LostObject::Shared(self.narrow()),
                };
                Change::Lost { checkpoint, object, why: Loss::WrongBytes }
            }
            9 => Change::Doubted { pin: self.pin(), doubtful: self.flip() },
            10 => {
                let work = self.few(6, |numbers| DeleteWork {
                    checkpoint: numbers.checkpoint(),
                    first: numbers.narrow(),
                    count: numbers.narrow(),
                });
                Change::Collected { work, more: self.flip() }
            }
            11 => {
                let outcomes = (0..self.below(5)).map(|_| (self.object(), self.deleted()));
                Change::Deleted { checkpoint, outcomes: outcomes.collect() }
            }
            12 => {
                let (policy, limits) = (self.policy(), self.limits());
                Change::Configured { policy, limits, trim: self.flip() }
            }
            13 => Change::Forgotten { conversation: self.id::<_>() },
            14 => Change::Dropped { checkpoint },
            15 => Change::Fenced { owner: self.id::<_>(), incarnation: Incarnation(self.wide()) },
            _ => Change::Retired { owner: self.id::<_>() },
        }
    }

    fn few<T: Copy + Default, const N: usize>(
        &mut self,
        most: u32,
        make: impl Fn(&mut Self) -> T,
    ) -> Few<T, N> {
        let mut few = Few::new();
        for _ in 0..self.below(most + 1) {
            assert!(few.push(make(self)));
        }
        few
    }

    fn follow_up(&mut self) -> FollowUp {
        match self.below(5) {
            0 => FollowUp::EndPin { pin: self.pin() },
            1 => FollowUp::Expire { turn: self.turn() },
            2 => FollowUp::Purge { conversation: self.id::<_>(), turns: self.narrow() },
            3 => FollowUp::Settle { conversation: self.id::<_>() },
            _ => FollowUp::Trim { next: self.maybe(Self::narrow) },
        }
    }

    fn event(&mut self) -> Event {
        match self.below(8) {
            0 => Event::Genesis(Genesis {
                namespace: "golden-1".parse().unwrap(),
                epoch: self.id::<_>(),
                operator: self.id::<_>(),
                policy: self.policy(),
                limits: self.limits(),
            }),
            1 => Event::Recovered,
            2 => Event::Registered {
                owner: self.id::<_>(),
                role: if self.flip() { Role::Worker } else { Role::Operator },
                start: self.id::<_>(),
                incarnation: Incarnation(self.wide()),
            },
            3 => Event::FollowedUp(self.follow_up()),
            _ => {
                let (op, fingerprint) = (self.op(), self.wide());
                let kind = self.below(17);
                Event::Decided { op, fingerprint, change: self.change(kind) }
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Journal format 1: 20,000 seeded events encode to these bytes, and read back.
#[test]
fn seeded_encodings_have_this_digest() {
    let mut numbers = Numbers(1);
    let mut hasher = blake3::Hasher::new();
    for position in 0..20_000 {
        let event = numbers.event();
        let bytes = postcard::to_allocvec(&event).unwrap();
        assert_eq!(decode_event(&bytes, position).unwrap(), event);
        hasher.update(&bytes);
    }
    assert_eq!(hasher.finalize().to_hex()[..32], *"85b1bac8a4b2f799c9d54219e112a045");
}

/// Journal format 1: one short event of each kind, byte by byte.
#[test]
fn golden_bytes_of_events() {
    let op = OpId { owner: OwnerId::from_u128(0xa0), incarnation: Incarnation(2), sequence: 300 };
    let turn =
        TurnKey { conversation: ConversationId::from_u128(0xc0), turn: TurnId::from_u128(0xd0) };
    let checkpoint =
        CheckpointId { endpoint: EndpointId::from_u128(0xe0), generation: Generation(7) };
    let decided = |change| Event::Decided { op, fingerprint: 5, change };
    let owner = "000000000000000000000000000000a0";
    let conversation = "000000000000000000000000000000c0";
    let turn_id = "000000000000000000000000000000d0";
    let endpoint = "000000000000000000000000000000e0";
    let head = format!("03{owner}02ac0205");
    let registered = Event::Registered {
        owner: OwnerId::from_u128(0xa0),
        role: Role::Operator,
        start: StartId::from_u128(0xb0),
        incarnation: Incarnation(1),
    };
    let published = Change::Published { checkpoint, turn: Some(turn), expired: None };
    let settled = Change::Settled {
        pin: PinId { op, place: 0 },
        shard: Some(ShardIndex(0)),
        evidence: Evidence::QuiescedSuccess,
    };
    let golden = [
        (Event::Recovered, "01".to_string()),
        (registered, format!("02{owner}01000000000000000000000000000000b001")),
        (decided(Change::Refused(Rejection::WrongEpoch)), format!("{head}0001")),
        (decided(settled), format!("{head}05{owner}02ac02000100{}", "03")),
        (decided(published), format!("{head}07{endpoint}0701{conversation}{turn_id}00")),
        (decided(Change::Dropped { checkpoint }), format!("{head}0e{endpoint}07")),
        (Event::FollowedUp(FollowUp::Expire { turn }), format!("0401{conversation}{turn_id}")),
    ];
    for (event, bytes) in golden {
        assert_eq!(hex(&postcard::to_allocvec(&event).unwrap()), bytes, "{event:?}");
    }
    let genesis = Event::Genesis(Genesis {
        namespace: "g".parse().unwrap(),
        epoch: Epoch::from_u128(1),
        operator: OwnerId::from_u128(2),
        policy: Policy::default(),
        limits: Limits::default(),
    });
    let bytes = postcard::to_allocvec(&genesis).unwrap();
    assert_eq!(blake3::hash(&bytes).to_hex()[..32], *"4291b12168d809cf85d7a14032f11701");
}
