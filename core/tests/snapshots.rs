//! The snapshot's bytes are a contract, and what comes back from a disk is not to be trusted: the
//! golden bytes of a catalog with every kind of row, and what becomes of damaged ones.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use std::collections::BTreeMap;

use crc::{CRC_32_ISCSI, Crc};
use pinfold_core::catalog::{
    Catalog, Command, Decision, Event, PROTOCOL_VERSION, Prepare, Register, Role, Shape,
    ShardShape, Snapshot,
};
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Generation, Incarnation,
    ManifestDigest, ObjectId, OpId, OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::journal::snapshot::{SnapshotError, VERSION, decode, encode};
use pinfold_core::outcome::{
    DeleteOutcome, Evidence, Loss, LostObject, Outcome, Rejection, TurnKey,
};
use pinfold_core::policy::{Genesis, Limits, Policy, Quarantine};
use serde_json::{Value, json};

const OPERATOR: u128 = 0x0b;
const ANNA: u128 = 0xa1;
const BERT: u128 = 0xb2;
const CARL: u128 = 0xc3;
const DORA: u128 = 0xd4;

const POSITION: u64 = 300;
const HEAD: usize = 41;

/// A catalog that is told what to do, with a full recount after every step.
struct Job {
    catalog: Catalog,
    epoch: Epoch,
    /// Current incarnation and last sequence of each owner.
    owners: BTreeMap<u128, (Incarnation, u64)>,
}

impl Job {
    fn new() -> Self {
        let genesis = Genesis {
            namespace: "golden-1".parse().unwrap(),
            epoch: Epoch::from_u128(0xe0e0),
            operator: OwnerId::from_u128(OPERATOR),
            policy: Policy { turns: 2, quarantine: Quarantine::Endpoint, ..Policy::default() },
            limits: Limits { unanswered: 16, ..Limits::default() },
        };
        let epoch = genesis.epoch;
        Self { catalog: Catalog::new(genesis).unwrap(), epoch, owners: BTreeMap::new() }
    }

    fn apply(&mut self, event: &Event) -> Option<Result<Outcome, Rejection>> {
        let answer = self.catalog.apply(event);
        self.catalog.check().unwrap();
        answer
    }

    fn register(&mut self, owner: u128, role: Role) {
        let after = self.owners.get(&owner).map_or(Incarnation(0), |(current, _)| *current);
        let register = Register {
            owner: OwnerId::from_u128(owner),
            role,
            after,
            start: StartId::from_u128(owner << 8 | u128::from(after.0 + 1)),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        let Decision::Event(event) = self.catalog.decide_registration(self.epoch, &register) else {
            panic!("{owner:x} may not register")
        };
        let Event::Registered { incarnation, .. } = event else { panic!("{event:?}") };
        self.apply(&event);
        self.owners.insert(owner, (incarnation, 0));
    }

    fn ask(&mut self, owner: u128, command: Command) -> Result<Outcome, Rejection> {
        let (incarnation, sequence) = self.owners.get_mut(&owner).unwrap();
        *sequence += 1;
        let owner = OwnerId::from_u128(owner);
        let op = OpId { owner, incarnation: *incarnation, sequence: *sequence };
        match self.catalog.decide(self.epoch, op, command) {
            Decision::Answer(answer) => answer,
            Decision::Event(event) => self.apply(&event).unwrap(),
        }
    }

    /// A save pin on a new checkpoint, or on the attempt's, of shards with these object counts.
    fn prepare(&mut self, owner: u128, number: u128, objects: &[u32], claims: &[u16]) -> PinId {
        let rows: Vec<_> = objects
            .iter()
            .map(|count| ShardShape { objects: *count, bytes: u64::from(*count) * 100 })
            .collect();
        let prepare = Prepare {
            attempt: AttemptId::from_u128(0xaa00 + number),
            endpoint: EndpointId::from_u128(number),
            digest: ManifestDigest::from_bytes([0x5d; 32]),
            shape: Shape::new(&rows).unwrap(),
            shards: claims.iter().copied().map(ShardIndex).collect(),
        };
        match self.ask(owner, Command::Prepare(prepare)) {
            Ok(Outcome::Prepared { pin, .. }) => pin,
            answer => panic!("{answer:?}"),
        }
    }

    fn settle(&mut self, owner: u128, pin: PinId, shard: Option<u16>, evidence: Evidence) {
        let shard = shard.map(ShardIndex);
        self.ask(owner, Command::Settle { pin, shard, evidence }).unwrap();
    }

    /// A whole checkpoint, with the save pin that wrote it.
    fn save(&mut self, owner: u128, number: u128, objects: u32) -> PinId {
        let pin = self.prepare(owner, number, &[objects], &[0]);
        self.settle(owner, pin, None, Evidence::QuiescedSuccess);
        pin
    }

    fn publish(&mut self, owner: u128, pin: PinId, turn: Option<TurnKey>) {
        self.ask(owner, Command::Publish { pin, turn }).unwrap();
    }

    /// A checkpoint that a turn refers to and nothing pins.
    fn keep(&mut self, owner: u128, number: u128, objects: u32, turn: TurnKey) {
        let pin = self.save(owner, number, objects);
        self.publish(owner, pin, Some(turn));
        self.ask(owner, Command::Release { pin }).unwrap();
    }

    /// Load pins on these positions, by place.
    fn load(&mut self, owner: u128, numbers: &[u128]) -> Vec<PinId> {
        let candidates = numbers.iter().copied().map(EndpointId::from_u128).collect();
        let limit = u32::try_from(numbers.len()).unwrap();
        let answer = self.ask(owner, Command::Pin { candidates, limit });
        let Ok(Outcome::Pinned(pinned)) = answer else { panic!("{answer:?}") };
        assert_eq!(pinned.len(), numbers.len());
        let (incarnation, sequence) = self.owners[&owner];
        let op = OpId { owner: OwnerId::from_u128(owner), incarnation, sequence };
        (0..).take(numbers.len()).map(|place| PinId { op, place }).collect()
    }

    fn operator(&mut self, command: Command) {
        self.ask(OPERATOR, command).unwrap();
    }
}

fn turn(conversation: u128, turn: u128) -> TurnKey {
    let conversation = ConversationId::from_u128(0x0c00 + conversation);
    TurnKey { conversation, turn: TurnId::from_u128(0x0700 + turn) }
}

/// The first checkpoint of a position, which was the n-th to be prepared.
fn checkpoint(number: u128, generation: u64) -> CheckpointId {
    CheckpointId { endpoint: EndpointId::from_u128(number), generation: Generation(generation) }
}

/// Saves under way: two shards of two owners, a failed one, one in doubt, one whose first owner
/// has gone, one that nobody claimed wholly. Generations 1 to 5.
fn saves_under_way(job: &mut Job) {
    let anna = job.prepare(ANNA, 1, &[2, 3], &[0]);
    job.prepare(BERT, 1, &[2, 3], &[1]);
    job.settle(ANNA, anna, Some(0), Evidence::QuiescedSuccess);
    let failed = job.prepare(ANNA, 2, &[2, 2], &[0, 1]);
    job.settle(ANNA, failed, Some(1), Evidence::QuiescedFailure);
    let doubtful = job.prepare(BERT, 3, &[2], &[0]);
    job.settle(BERT, doubtful, None, Evidence::InDoubt);
    let gone = job.prepare(ANNA, 4, &[2, 2], &[1]);
    job.prepare(BERT, 4, &[2, 2], &[0]);
    job.settle(ANNA, gone, None, Evidence::QuiescedSuccess);
    job.ask(ANNA, Command::Release { pin: gone }).unwrap();
    let lonely = job.prepare(ANNA, 5, &[2, 2, 2], &[2]);
    job.ask(BERT, Command::Doubt { pin: lonely, doubtful: true }).unwrap();
}

/// Turns: live ones, one with two references, expired ones, a lost one, unscoped marks, a
/// conversation that is forgotten with turns and one that never had any. Generations 6 to 14.
fn publications(job: &mut Job) {
    for number in 1..=3 {
        job.keep(ANNA, 10 + number, 3, turn(1, number));
    }
    let second = job.save(ANNA, 14, 2);
    job.publish(ANNA, second, Some(turn(1, 3)));
    job.keep(BERT, 15, 2, turn(2, 1));
    let [lost] = job.load(BERT, &[15])[..] else { panic!() };
    let object = LostObject::Private(ObjectId { shard: ShardIndex(0), index: 1 });
    let lose = Command::Lost { checkpoint: checkpoint(15, 10), object, why: Loss::WrongBytes };
    job.ask(BERT, lose).unwrap();
    job.settle(BERT, lost, None, Evidence::QuiescedFailure);
    let unscoped = job.save(ANNA, 16, 2);
    job.publish(ANNA, unscoped, None);
    job.ask(ANNA, Command::Release { pin: unscoped }).unwrap();
    let dropped = job.save(ANNA, 17, 2);
    job.publish(ANNA, dropped, None);
    job.operator(Command::Drop { checkpoint: checkpoint(17, 12) });
    job.keep(ANNA, 18, 4, turn(3, 1));
    job.keep(ANNA, 19, 2, turn(3, 2));
    job.operator(Command::Forget { conversation: turn(4, 0).conversation });
}

/// Loads under way: settled in doubt, doubted from outside, of a fenced incarnation, and of one
/// that was succeeded.
fn loads_under_way(job: &mut Job) {
    let loads = job.load(ANNA, &[13, 16]);
    job.settle(ANNA, loads[1], None, Evidence::InDoubt);
    let [doubted] = job.load(BERT, &[12])[..] else { panic!() };
    job.ask(ANNA, Command::Doubt { pin: doubted, doubtful: true }).unwrap();
    job.load(CARL, &[12, 13]);
    job.load(DORA, &[13]);
    job.register(DORA, Role::Worker);
    let incarnation = job.owners[&CARL].0;
    job.operator(Command::Fence { owner: OwnerId::from_u128(CARL), incarnation });
}

/// Deletions under way: of three objects one is gone, one refused, one unknown; another checkpoint
/// is handed out half; a third waits. Generations 15 and 16.
fn deletions(job: &mut Job) {
    let collected = job.ask(BERT, Command::Collect { limit: 3 });
    assert!(matches!(collected, Ok(Outcome::Collected { objects: 3, .. })));
    let object = |index| ObjectId { shard: ShardIndex(0), index };
    let outcomes = vec![
        (object(0), DeleteOutcome::Gone),
        (object(1), DeleteOutcome::Refused),
        (object(2), DeleteOutcome::Unknown),
    ];
    let left = job.ask(BERT, Command::Deleted { checkpoint: checkpoint(11, 6), outcomes });
    assert_eq!(left, Ok(Outcome::Deleted { left: 2 }));
    for number in [20, 21] {
        let pin = job.save(BERT, number, 4);
        job.ask(BERT, Command::Release { pin }).unwrap();
    }
    let limit = 2 + 2;
    let collected = job.ask(BERT, Command::Collect { limit });
    assert!(matches!(collected, Ok(Outcome::Collected { objects: 4, more: true })));
}

/// A catalog with every kind of row; follow-ups of each kind wait.
fn golden() -> Catalog {
    let mut job = Job::new();
    job.register(OPERATOR, Role::Operator);
    for owner in [ANNA, BERT, CARL, DORA] {
        job.register(owner, Role::Worker);
    }
    saves_under_way(&mut job);
    publications(&mut job);
    loads_under_way(&mut job);
    deletions(&mut job);
    // Refusals leave receipts too.
    let nobodys = Command::Drop { checkpoint: checkpoint(99, 1) };
    assert_eq!(job.ask(ANNA, nobodys), Err(Rejection::NotOperator));
    job.operator(Command::Forget { conversation: turn(3, 0).conversation });
    let Genesis { policy, limits, .. } = job.catalog.job().clone();
    let policy = Policy { turns: 1, job_bytes: Some(100_000), ..policy };
    job.operator(Command::Configure { policy, limits });
    job.catalog
}

/// The scripted catalog really has a row of every kind; else the rest here proves less.
#[test]
fn the_golden_catalog_has_every_kind_of_row() {
    let catalog = golden();
    let rows = format!("{:?}", catalog.snapshot());
    for expected in [
        "stage: Prepared",
        "stage: Failed",
        "stage: Whole",
        "stage: Collecting",
        "(Nobody, None)",
        "(Ended, Some(QuiescedSuccess))",
        "Some(QuiescedFailure)",
        "Some(InDoubt)",
        "lost: true",
        "unscoped: Marked",
        "unscoped: Dropped",
        "save: true",
        "save: false",
        "doubted: true",
        "load_in_doubt: true",
        "forgotten: true",
        "fenced: true",
        "trim: Some(0)",
        "Some(Gone), Some(Refused), Some(Unknown)",
        "outcomes: []",
        "cursor: 2",
        "role: Operator",
        "Refused",
    ] {
        assert!(rows.contains(expected), "no {expected} in {rows}");
    }
    for empty in ["fencing: []", "due: []", "queue: []", "pins: []", "turns: [], due"] {
        assert!(!rows.contains(empty), "{empty} in {rows}");
    }
    let gauges = catalog.gauges();
    assert!(gauges.expired_turns > 2, "{gauges:?}");
    assert!(gauges.bytes_in_doubt > 0 && gauges.bytes_quarantined > 0, "{gauges:?}");
    assert!(gauges.bytes_unscoped > 0 && gauges.collectable > 2, "{gauges:?}");
}

/// Snapshot format 1: the length and a digest of the golden catalog's bytes, and its head in full.
#[test]
fn golden_bytes() {
    let bytes = encode(&golden(), POSITION);
    assert_eq!(&bytes[..8], b"PINFOLDS");
    assert_eq!(bytes[8], 1);
    assert_eq!(bytes[9..25], *Epoch::from_u128(0xe0e0).as_bytes());
    assert_eq!(bytes[25..33], POSITION.to_le_bytes());
    assert_eq!(bytes[33..41], (bytes.len() as u64 - 45).to_le_bytes());
    let checksum = checksum(&bytes[..bytes.len() - 4]);
    assert_eq!(bytes[bytes.len() - 4..], checksum);
    let digest = blake3::hash(&bytes).to_hex();
    assert_eq!((bytes.len(), &digest[..32]), (3728, "35f4d83f5b1fd84ac0547028e74ad98e"));
}

#[test]
fn what_is_read_back_encodes_to_the_same_bytes() {
    let catalog = golden();
    for position in [0, POSITION, u64::MAX] {
        let bytes = encode(&catalog, position);
        let (restored, found) = decode(&bytes).unwrap();
        assert_eq!((found, encode(&restored, position)), (position, bytes));
        assert_eq!(restored.gauges(), catalog.gauges());
        assert!(restored == catalog);
        restored.check().unwrap();
    }
}

/// A restored catalog decides as the one that it was: the same follow-ups, to the same end.
#[test]
fn what_is_read_back_goes_on_the_same() {
    let mut left = golden();
    let (mut right, _) = decode(&encode(&left, POSITION)).unwrap();
    let mut steps = 0;
    while let Some(follow_up) = left.next_follow_up() {
        assert_eq!(right.next_follow_up(), Some(follow_up));
        for catalog in [&mut left, &mut right] {
            catalog.apply(&Event::FollowedUp(follow_up));
            catalog.check().unwrap();
        }
        assert_eq!(encode(&left, POSITION), encode(&right, POSITION));
        steps += 1;
    }
    assert_eq!(right.next_follow_up(), None);
    // Two fenced pins end, three turns expire, a conversation is purged and settled, trim ends.
    assert!(steps >= 7, "{steps} follow-ups");
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
    CHECKSUM.checksum(bytes).to_le_bytes()
}

/// Wraps a payload as a snapshot that a disk would hold, whatever is in it.
fn wrapped(like: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = like[..33].to_vec();
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(payload);
    let checksum = checksum(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

#[test]
fn every_prefix_and_every_longer_text_is_refused() {
    let bytes = encode(&golden(), POSITION);
    for length in 0..bytes.len() {
        let error = decode(&bytes[..length]).unwrap_err();
        let expected =
            if length < HEAD { SnapshotError::NotASnapshot } else { SnapshotError::Damaged };
        assert_eq!(error, expected, "{length} bytes");
    }
    for more in [1, 4, 45] {
        let longer = [&bytes[..], &vec![0; more]].concat();
        assert_eq!(decode(&longer).unwrap_err(), SnapshotError::Damaged);
    }
    // With a checksum that fits, what follows the rows is still refused.
    let longer = [&bytes[HEAD..bytes.len() - 4], &[0]].concat();
    assert_eq!(decode(&wrapped(&bytes, &longer)).unwrap_err(), SnapshotError::Rows);
}

#[test]
fn every_flipped_bit_is_refused() {
    let bytes = encode(&golden(), POSITION);
    let mut damaged = bytes.clone();
    for (place, bit) in (0..bytes.len()).flat_map(|place| (0..8).map(move |bit| (place, bit))) {
        damaged[place] ^= 1 << bit;
        let error = decode(&damaged).unwrap_err();
        let expected = match place {
            0..8 => SnapshotError::NotASnapshot,
            8 => SnapshotError::UnknownVersion { version: VERSION ^ 1 << bit },
            _ => SnapshotError::Damaged,
        };
        assert_eq!(error, expected, "bit {bit} of byte {place}");
        damaged[place] = bytes[place];
    }
}

#[test]
fn an_unknown_version_is_refused_by_name() {
    let mut bytes = encode(&golden(), POSITION);
    bytes[8] = 2;
    let body = bytes.len() - 4;
    let checksum = checksum(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum);
    let error = decode(&bytes).unwrap_err();
    assert_eq!(error, SnapshotError::UnknownVersion { version: 2 });
    let words = "snapshot version 2 is unknown: use a newer pinfold to read it";
    assert_eq!(error.to_string(), words);
}

/// The epoch stands in the head and in the rows: a snapshot of another job's rows is none.
#[test]
fn the_head_must_name_the_epoch_of_the_rows() {
    let bytes = encode(&golden(), POSITION);
    let mut other = bytes.clone();
    other[24] ^= 1;
    let other = wrapped(&other, &bytes[HEAD..bytes.len() - 4]);
    assert_eq!(decode(&other).unwrap_err(), SnapshotError::Rows);
    assert!(decode(&wrapped(&bytes, &bytes[HEAD..bytes.len() - 4])).is_ok());
}

/// Numbers by the multiply-and-add rule of Knuth's MMIX, upper half: the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(((self.0 >> 32) * bound as u64) >> 32).unwrap()
    }

    /// A byte as damage or malice would choose it.
    fn byte(&mut self) -> u8 {
        let any = u8::try_from(self.below(256)).unwrap();
        [0, 1, 2, 0x7f, 0x80, 0xff, any, any][self.below(8)]
    }

    /// One to three changes: bytes set, added, taken away, or copied from elsewhere.
    fn change(&mut self, payload: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let place = self.below(payload.len());
            match self.below(5) {
                0 => payload.insert(place, self.byte()),
                1 => drop(payload.remove(place)),
                2 => {
                    let length = 1 + self.below(32.min(payload.len() - place));
                    let from = self.below(payload.len() - length + 1);
                    payload.copy_within(from..from + length, place);
                }
                _ => payload[place] = self.byte(),
            }
        }
    }
}

/// Whatever the rows say under a checksum that fits: it is refused, or it is a state that passes
/// the full recount, encodes to bytes that read back equal, and goes on without breaking.
#[test]
fn rows_that_lie_are_refused_or_harmless() {
    let bytes = encode(&golden(), POSITION);
    let rows = &bytes[HEAD..bytes.len() - 4];
    let mut numbers = Numbers(1);
    let mut taken = 0;
    let mut refused = BTreeMap::<String, u32>::new();
    for _ in 0..8_000 {
        let mut payload = rows.to_vec();
        numbers.change(&mut payload);
        match decode(&wrapped(&bytes, &payload)) {
            Err(error) => *refused.entry(error.to_string()).or_default() += 1,
            Ok((catalog, position)) => {
                assert_eq!(position, POSITION);
                // Postcard reads some numbers in more than one way; else the bytes are the same.
                let rows: Snapshot = postcard::from_bytes(&payload).unwrap();
                assert!(catalog.snapshot() == rows);
                goes_on(catalog);
                taken += 1;
            }
        }
    }
    // Both ends must be reached, or the mutations prove nothing.
    assert!(taken > 100, "{taken} taken, refused: {refused:#?}");
    assert!(refused.len() > 10, "{taken} taken, refused: {refused:#?}");
}

/// Recounts a catalog, reads it back, and carries out its follow-ups, a bounded number of them.
fn goes_on(mut catalog: Catalog) {
    catalog.check().unwrap();
    for checkpoint in catalog.checkpoints() {
        assert!(!catalog.blockers(checkpoint).unwrap().blockers.is_empty());
    }
    let bytes = encode(&catalog, POSITION);
    let (again, _) = decode(&bytes).unwrap();
    assert_eq!(encode(&again, POSITION), bytes);
    for _ in 0..20 {
        let Some(follow_up) = catalog.next_follow_up() else { return };
        catalog.apply(&Event::FollowedUp(follow_up));
        catalog.check().unwrap();
    }
}

/// A claim of a pin that has ended, on a checkpoint without any save pin: refused, without a panic.
#[test]
fn an_ended_claim_needs_a_save_pin() {
    let bytes = encode(&golden(), POSITION);
    let mut payload = bytes[HEAD..bytes.len() - 4].to_vec();
    // `save` of the pin on checkpoint 4, whose shard 1 was claimed by a pin that has ended.
    assert_eq!(payload[3166], 1);
    payload[3166] = 0;
    assert!(decode(&wrapped(&bytes, &payload)).is_err());
}

/// Why the golden rows are refused once something in them is edited, under a checksum that fits.
fn edited(edit: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::to_value(golden().snapshot()).unwrap();
    edit(&mut value);
    let rows: Snapshot = serde_json::from_value(value).unwrap();
    let bytes = encode(&golden(), POSITION);
    match decode(&wrapped(&bytes, &postcard::to_allocvec(&rows).unwrap())) {
        Ok(_) => "taken".to_owned(),
        Err(SnapshotError::Inconsistent(inconsistent)) => inconsistent.what.to_owned(),
        Err(error) => panic!("{error}"),
    }
}

fn rows<'a>(value: &'a mut Value, list: &str) -> &'a mut Vec<Value> {
    value[list].as_array_mut().unwrap()
}

#[test]
fn rows_as_they_are_are_taken() {
    assert_eq!(edited(|_| {}), "taken");
}

/// Named twice, the list of fences would lead to itself.
#[test]
fn a_fence_that_stands_twice_is_refused() {
    let edit = |value: &mut Value| {
        let first = rows(value, "fencing")[0].clone();
        rows(value, "fencing").push(first);
    };
    assert_eq!(edited(edit), "a fence stands twice");
}

#[test]
fn a_stage_that_the_claims_contradict_is_refused() {
    let all_done = |value: &mut Value, stage: &str| {
        // Checkpoint 2 failed by its second shard; its first is open.
        for claim in value["checkpoints"][1]["claims"].as_array_mut().unwrap() {
            claim[1] = json!("QuiescedSuccess");
        }
        value["checkpoints"][1]["stage"] = json!(stage);
    };
    let unfinished = "every shard arrived, and it is not whole";
    for stage in ["Failed", "Prepared", "Collecting"] {
        assert_eq!(edited(|value| all_done(value, stage)), unfinished);
    }
    let fails = "failed without a failed shard, or not failed with one";
    let stage = |place: usize, stage: &'static str| {
        edited(move |value| value["checkpoints"][place]["stage"] = json!(stage))
    };
    assert_eq!(stage(1, "Prepared"), fails);
    assert_eq!(stage(0, "Failed"), fails);
    assert_ne!(stage(1, "Whole"), "taken");
    assert_ne!(stage(0, "Collecting"), "taken");
}

/// A load pin is on a whole checkpoint; without claims nothing says who saves a prepared one.
#[test]
fn an_unfinished_checkpoint_without_claims_is_refused() {
    let edit = |stage: &'static str| {
        edited(move |value| {
            let pinned = &mut value["checkpoints"][7];
            assert_eq!((&pinned["stage"], &pinned["claims"]), (&json!("Whole"), &Value::Null));
            pinned["stage"] = json!(stage);
        })
    };
    for stage in ["Prepared", "Failed", "Collecting"] {
        assert_ne!(edit(stage), "taken", "{stage}");
    }
}

#[test]
fn incarnations_are_in_order_minted_and_of_one_owner() {
    let swap = |value: &mut Value| {
        let owners = rows(value, "owners");
        let twice = owners.iter_mut().find(|row| row["incarnations"][1].is_array()).unwrap();
        twice["incarnations"].as_array_mut().unwrap().reverse();
    };
    assert_ne!(edited(swap), "taken");
    let unminted = "an unminted incarnation";
    let number = |number: u64| {
        move |value: &mut Value| {
            let known = rows(value, "owners")[0]["incarnations"].as_array_mut().unwrap();
            known.insert(0, json!([number, false]));
        }
    };
    assert_eq!(edited(number(0)), unminted);
    assert_eq!(edited(number(900)), "incarnations out of order");
    assert_eq!(edited(|value| value["incarnation"] = json!(1)), unminted);
    let stolen = |value: &mut Value| {
        let first = rows(value, "owners")[0]["incarnations"][0].clone();
        rows(value, "owners")[1]["incarnations"].as_array_mut().unwrap().insert(0, first);
    };
    assert_ne!(edited(stolen), "taken");
}

#[test]
fn a_lowered_bound_beyond_the_conversations_is_refused() {
    for from in [4, u32::MAX - 1, u32::MAX] {
        let what = edited(|value| value["trim"] = json!(from));
        assert_ne!(what, "taken", "trim from {from}");
    }
}

#[test]
fn the_operator_of_the_job_stays_one() {
    let worker = edited(|value| rows(value, "owners")[0]["role"] = json!("Worker"));
    assert_eq!(worker, "the job's operator has another role");
    let again = |value: &mut Value| {
        let operator = rows(value, "owners")[0].clone();
        rows(value, "owners").insert(1, operator);
    };
    assert_ne!(edited(again), "taken");
    assert_ne!(edited(|value| drop(rows(value, "owners").remove(0))), "taken");
}

/// Rows in another order, or twice where that would not show.
#[test]
fn rows_that_are_not_canonical_are_refused() {
    for list in ["owners", "lives", "checkpoints"] {
        assert_ne!(edited(|value| rows(value, list).reverse()), "taken", "{list}");
    }
    let due_twice = |value: &mut Value| {
        let first = rows(value, "due")[0].clone();
        rows(value, "due").push(first);
    };
    assert_eq!(edited(due_twice), "its rows are not canonical");
    let receipt = |value: &mut Value| {
        let receipts = rows(value, "owners")[1]["receipts"].as_array_mut().unwrap();
        receipts.reverse();
    };
    assert_eq!(edited(receipt), "its rows are not canonical");
}

/// A shape beyond the bounds cannot even be written down; numbers that were minted can run out.
#[test]
fn what_cannot_be_counted_is_refused() {
    let uncountable = "more numbers minted than can be counted";
    assert_eq!(edited(|value| value["generation"] = json!(u64::MAX)), uncountable);
    assert_eq!(edited(|value| value["incarnation"] = json!(u64::MAX)), uncountable);
    let mut value = serde_json::to_value(golden().snapshot()).unwrap();
    value["checkpoints"][5]["shape"][0]["bytes"] = json!(u64::MAX / 2 + 1);
    assert!(serde_json::from_value::<Snapshot>(value).is_err());
}
