//! Replay trusts nobody: whatever a journal's records say under checksums that fit, each is
//! refused where it stands, or leaves a state that passes the full recount.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use std::collections::BTreeMap;

use pinfold_core::catalog::{
    Blocker, Catalog, Change, Command, DeleteWork, Event, FollowUp, PROTOCOL_VERSION, Prepare,
    Register, Role, Shape, ShardShape,
};
use pinfold_core::engine::{Config, Effect, Engine, Input, Output, Reply, Request, Ticket};
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Generation, Incarnation,
    ManifestDigest, OpId, OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::journal::record::Frame;
use pinfold_core::outcome::{DeleteOutcome, Evidence, Loss, LostObject, Outcome, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy, Quarantine};
use pinfold_core::replay::{RecoverError, Replay, decode_event, follow};
use serde_json::{Value, json};

const OPERATOR: u64 = 1;

/// Numbers by the multiply-and-add rule of Knuth's MMIX, upper half: the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) * bound) >> 32
    }

    fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.place(all.len())]
    }
}

fn epoch() -> Epoch {
    Epoch::from_u128(0xe0e0)
}

fn genesis() -> Genesis {
    Genesis {
        namespace: "replayed".parse().unwrap(),
        epoch: epoch(),
        operator: OwnerId::from_u128(u128::from(OPERATOR)),
        policy: Policy { turns: 3, quarantine: Quarantine::Generation, ..Policy::default() },
        limits: Limits { unanswered: 8, ..Limits::default() },
    }
}

/// A busy job behind its engine, and every record that it wrote.
struct Job {
    engine: Engine,
    records: Vec<Vec<u8>>,
    /// Current incarnation and last sequence of each owner.
    owners: BTreeMap<u64, (Incarnation, u64)>,
    pins: Vec<PinId>,
    checkpoints: Vec<CheckpointId>,
    work: Vec<Effect>,
    starts: u64,
}

impl Job {
    fn new() -> Self {
        Self {
            engine: Engine::create(Config::default(), genesis()).unwrap(),
            records: Vec::new(),
            owners: BTreeMap::new(),
            pins: Vec::new(),
            checkpoints: vec![CheckpointId {
                endpoint: EndpointId::from_u128(1),
                generation: Generation(1),
            }],
            work: Vec::new(),
            starts: 0,
        }
    }

    /// A job after so many random requests.
    fn busy(seed: u64, steps: u64) -> Self {
        let (mut job, mut numbers) = (Self::new(), Numbers(seed));
        for _ in 0..steps {
            let owner = 1 + numbers.below(4);
            if !job.owners.contains_key(&owner) || numbers.below(60) == 0 {
                job.register(owner);
                continue;
            }
            let (incarnation, sequence) = job.owners.get_mut(&owner).unwrap();
            *sequence += 1;
            let op = OpId { owner: id(owner), incarnation: *incarnation, sequence: *sequence };
            let command = job.command(&mut numbers, op);
            job.submit(owner, op, Request::Command(op, command));
        }
        job.engine.check().unwrap();
        job
    }

    fn register(&mut self, owner: u64) {
        self.starts += 1;
        let register = Register {
            owner: id(owner),
            role: if owner == OPERATOR { Role::Operator } else { Role::Worker },
            after: self.owners.get(&owner).map_or(Incarnation(0), |(current, _)| *current),
            start: StartId::from_u128(u128::from(self.starts)),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        let op = OpId { owner: id(owner), incarnation: Incarnation(0), sequence: 0 };
        self.submit(owner, op, Request::Register(register));
    }

    fn command(&mut self, numbers: &mut Numbers, op: OpId) -> Command {
        // Mostly one of its own last pins, which may have ended; now and then anybody's.
        let anybodys = numbers.below(6) == 0;
        let is_own = |pin: &&PinId| {
            anybodys || pin.op.owner == op.owner && pin.op.incarnation == op.incarnation
        };
        let recent: Vec<_> = self.pins.iter().rev().filter(is_own).take(3).copied().collect();
        let none = [PinId { op, place: 0 }];
        let pin = numbers.of(if recent.is_empty() { &none } else { &recent });
        let checkpoint = numbers.of(&self.checkpoints);
        match numbers.below(30) {
            0..=5 => {
                let first = self.checkpoints.len() as u64 / 3;
                Command::Prepare(prepare(numbers, first))
            }
            6..=12 => {
                let shard = numbers.of(&[None, None, Some(ShardIndex(0)), Some(ShardIndex(1))]);
                let good = Evidence::QuiescedSuccess;
                let evidence = [good, good, good, Evidence::QuiescedFailure, Evidence::InDoubt];
                Command::Settle { pin, shard, evidence: numbers.of(&evidence) }
            }
            13..=17 => {
                let turn = (numbers.below(6) > 0).then(|| turn(numbers));
                Command::Publish { pin, turn }
            }
            18..=19 => Command::Release { pin },
            20..=21 => {
                let candidates = (1..=6).map(EndpointId::from_u128).collect();
                Command::Pin { candidates, limit: 1 + u32::from(numbers.below(2) == 0) }
            }
            22 => {
                let object = LostObject::Shared(0);
                Command::Lost { checkpoint, object, why: Loss::Absent }
            }
            23 => Command::Doubt { pin, doubtful: numbers.below(2) == 0 },
            24..=26 => match self.work.pop() {
                Some(Effect::Delete { checkpoint, objects, .. }) => {
                    let gone = DeleteOutcome::Gone;
                    let all = [gone, gone, DeleteOutcome::Refused, DeleteOutcome::Unknown];
                    let outcomes = objects.into_iter().map(|object| (object, numbers.of(&all)));
                    Command::Deleted { checkpoint, outcomes: outcomes.collect() }
                }
                None => Command::Collect { limit: u32::try_from(1 + numbers.below(5)).unwrap() },
            },
            27 if numbers.below(3) > 0 => Command::Collect { limit: 3 },
            _ => self.operator_command(numbers, checkpoint),
        }
    }

    fn operator_command(&self, numbers: &mut Numbers, checkpoint: CheckpointId) -> Command {
        let other = 2 + numbers.below(3);
        match numbers.below(5) {
            0 => Command::Drop { checkpoint },
            1 => Command::Forget { conversation: turn(numbers).conversation },
            2 => {
                let current = self.owners.get(&other).map_or(Incarnation(1), |row| row.0);
                Command::Fence { owner: id(other), incarnation: current }
            }
            3 => Command::Retire { owner: id(other) },
            _ => {
                let policy = Policy {
                    turns: numbers.of(&[1, 2, 4]),
                    conversation_bytes: numbers.of(&[None, Some(120), Some(250)]),
                    job_bytes: numbers.of(&[None, Some(300), Some(700)]),
                    ..genesis().policy
                };
                Command::Configure { policy, limits: genesis().limits }
            }
        }
    }

    fn submit(&mut self, owner: u64, op: OpId, request: Request) {
        self.engine.submit(Input { ticket: Ticket(0), epoch: epoch(), request });
        while let Some(batch) = self.engine.take_batch() {
            let frame = Frame::decode(&epoch(), batch.bytes()).unwrap();
            self.records.extend(frame.records().map(|(_, record)| record.to_vec()));
            self.engine.commit(batch);
        }
        while let Some(output) = self.engine.poll_output() {
            let outcome = match output {
                Output::Effect(effect) => {
                    self.work.push(effect);
                    continue;
                }
                Output::Reply(_, Reply::Command(Ok(outcome))) => outcome,
                Output::Reply(..) => continue,
            };
            match outcome {
                Outcome::Registered { incarnation } => {
                    self.owners.insert(owner, (incarnation, 0));
                }
                Outcome::Prepared { pin, checkpoint }
                | Outcome::AlreadyPublished { pin, checkpoint } => {
                    self.pins.push(pin);
                    self.checkpoints.push(checkpoint);
                }
                Outcome::Pinned(pinned) => {
                    let places = (0..).zip(pinned.iter()).map(|(place, _)| PinId { op, place });
                    self.pins.extend(places);
                }
                _ => {}
            }
        }
        // Retired owners register anew.
        let catalog = self.engine.catalog().snapshot();
        let known = serde_json::to_value(&catalog).unwrap()["owners"].clone();
        let known: Vec<OwnerId> = known
            .as_array()
            .unwrap()
            .iter()
            .map(|row| serde_json::from_value(row["id"].clone()).unwrap())
            .collect();
        self.owners.retain(|owner, _| known.contains(&id(*owner)));
    }
}

fn id(owner: u64) -> OwnerId {
    OwnerId::from_u128(u128::from(owner))
}

/// One of a few attempts from a number on, so that some are joined; its position says its shape.
fn prepare(numbers: &mut Numbers, first: u64) -> Prepare {
    let attempt = 1 + first + numbers.below(4);
    let endpoint = 1 + attempt % 6;
    let count = 1 + usize::from(!endpoint.is_multiple_of(3));
    let shards = match numbers.below(3) {
        0 => (0..u16::try_from(count).unwrap()).map(ShardIndex).collect(),
        _ => vec![ShardIndex(u16::try_from(numbers.place(count)).unwrap())],
    };
    Prepare {
        attempt: AttemptId::from_u128(u128::from(attempt)),
        endpoint: EndpointId::from_u128(u128::from(endpoint)),
        digest: ManifestDigest::from_bytes([1; 32]),
        shape: Shape::new(&vec![ShardShape { objects: 2, bytes: 50 }; count]).unwrap(),
        shards,
    }
}

fn turn(numbers: &mut Numbers) -> TurnKey {
    TurnKey {
        conversation: ConversationId::from_u128(u128::from(1 + numbers.below(4))),
        turn: TurnId::from_u128(u128::from(1 + numbers.below(12))),
    }
}

/// Follows one record, which is refused without a trace or leaves a state that passes a recount.
fn follow_next(catalog: &mut Catalog, record: &[u8]) -> Result<(), RecoverError> {
    let before = catalog.clone();
    let answer = follow(catalog, record, 7);
    match &answer {
        Ok(()) => {
            let event = decode_event(record, 7).unwrap();
            catalog.check().unwrap_or_else(|broken| panic!("{broken} after {event:?}"));
            let rows = catalog.snapshot();
            assert!(Catalog::restore(&rows).is_ok_and(|again| again == *catalog), "{event:?}");
            for checkpoint in catalog.checkpoints() {
                assert!(catalog.blockers(checkpoint).is_some());
            }
        }
        Err(error) => {
            let expected =
                [RecoverError::Misplaced { position: 7 }, RecoverError::Record { position: 7 }];
            assert!(expected.contains(error), "{error}");
            assert!(*catalog == before, "a trace of what was refused");
        }
    }
    answer
}

/// What the engine decided always fits, and gives the live state.
#[test]
fn what_was_decided_fits() {
    let mut kinds = BTreeMap::<String, u32>::new();
    for seed in 0..12 {
        let job = Job::busy(seed, 400);
        let mut catalog = Catalog::new(genesis()).unwrap();
        for record in &job.records[1..] {
            let event = decode_event(record, 0).unwrap();
            let words = format!("{event:?}");
            let change = match event {
                Event::Decided { change, .. } => format!("{change:?}"),
                Event::FollowedUp(follow_up) => format!("{follow_up:?}"),
                Event::Genesis(_) | Event::Recovered | Event::Registered { .. } => words,
            };
            let name = change.split([' ', '(']).next().unwrap();
            *kinds.entry(name.to_owned()).or_default() += 1;
            follow(&mut catalog, record, 1).unwrap();
        }
        assert!(catalog == *job.engine.catalog());
    }
    // A registration, every change and every follow-up; or the rest proves less.
    assert_eq!(kinds.len(), 1 + 17 + 5, "{kinds:#?}");
}

/// Where something is in a value, from the outside in.
type Path = Vec<String>;

fn paths(value: &Value, at: &mut Path, all: &mut Vec<Path>) {
    let mut inner = |key: String, value: &Value| {
        at.push(key);
        all.push(at.clone());
        paths(value, at, all);
        at.pop();
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| inner(key.clone(), value)),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(place, value)| inner(place.to_string(), value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn pointer(path: &Path) -> String {
    path.iter().map(|key| format!("/{key}")).collect()
}

/// An event with one field changed: to what another event has there, or by a little, or much.
fn mutant(numbers: &mut Numbers, event: &Value, others: &[Value]) -> Option<Event> {
    let mut all = Vec::new();
    paths(event, &mut Vec::new(), &mut all);
    let mut changed = event.clone();
    let path = (!all.is_empty()).then(|| pointer(&all[numbers.place(all.len())]))?;
    let place = changed.pointer_mut(&path).unwrap();
    let donor = &others[numbers.place(others.len())];
    let given = donor.pointer(&path).filter(|_| numbers.below(2) == 0).cloned();
    *place = match (given, place.take()) {
        (Some(given), _) => given,
        (None, Value::Number(number)) => {
            let near = number.as_u64().unwrap();
            let any = [near.wrapping_add(1), near.saturating_sub(1), 0, 4, 255, 65_535];
            let far = [u64::from(u32::MAX), u64::from(u32::MAX) - 1, u64::MAX, u64::MAX - 1];
            json!(numbers.of(&[&any[..], &far[..]].concat()))
        }
        (None, Value::Bool(value)) => json!(!value),
        (None, Value::Array(mut values)) => {
            match numbers.below(4) {
                0 => values.reverse(),
                1 => drop(values.pop()),
                2 => values.extend(values.first().cloned()),
                _ => values.clear(),
            }
            Value::Array(values)
        }
        (None, value @ (Value::Null | Value::String(_) | Value::Object(_))) => value,
    };
    serde_json::from_value(changed).ok()
}

/// One field of one event of a history is another one: it is refused, or what comes after it, as
/// far as it is not refused itself, leads to states without a contradiction.
#[test]
fn a_field_that_lies_is_refused_or_harmless() {
    let (mut taken, mut refused) = (0, 0);
    for seed in 20..28 {
        let mut numbers = Numbers(seed);
        let job = Job::busy(seed, 160);
        let events: Vec<_> = job.records.iter().map(|one| decode_event(one, 0).unwrap()).collect();
        let values: Vec<_> = events.iter().map(|one| serde_json::to_value(one).unwrap()).collect();
        let mut catalog = Catalog::new(genesis()).unwrap();
        for (place, record) in job.records.iter().enumerate().skip(1) {
            for _ in 0..6 {
                let Some(event) = mutant(&mut numbers, &values[place], &values) else { continue };
                if event == events[place] || widens(&event) {
                    continue;
                }
                let mut catalog = catalog.clone();
                match follow_next(&mut catalog, &postcard::to_allocvec(&event).unwrap()) {
                    Ok(()) => taken += 1,
                    Err(_) => refused += 1,
                }
                for record in job.records[place..].iter().take(4) {
                    let _ = follow_next(&mut catalog, record);
                }
            }
            follow(&mut catalog, record, 0).unwrap();
        }
    }
    assert!(taken > 300 && refused > 1_000, "{taken} taken, {refused} refused");
}

/// Whether an event asks for limits beyond those that the job began with: a state may be as large
/// as its limits.
fn widens(event: &Event) -> bool {
    match event {
        Event::Decided { change: Change::Configured { limits, .. }, .. } => {
            *limits != genesis().limits
        }
        _ => false,
    }
}

/// Events dropped, repeated, exchanged with others, or brought from elsewhere.
#[test]
fn events_in_another_order_are_refused_or_harmless() {
    let (mut taken, mut refused) = (0, 0);
    for seed in 40..100 {
        let mut numbers = Numbers(seed);
        let mut records = Job::busy(seed, 60).records;
        let last = records.len() - 1;
        for _ in 0..=numbers.below(3) {
            let (here, there) = (1 + numbers.place(last), 1 + numbers.place(last));
            match numbers.below(4) {
                0 => records[here] = postcard::to_allocvec(&Event::Recovered).unwrap(),
                1 => records[here] = records[there].clone(),
                2 => records.swap(here, there),
                _ => records.swap(here, if here == last { 1 } else { here + 1 }),
            }
        }
        let mut catalog = Catalog::new(genesis()).unwrap();
        for record in &records[1..] {
            match follow_next(&mut catalog, record) {
                Ok(()) => taken += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(taken > 1_000 && refused > 200, "{taken} taken, {refused} refused");
}

/// Bytes of a record set, added, taken away, or copied from elsewhere.
#[test]
fn bytes_that_lie_are_refused_or_harmless() {
    let job = Job::busy(120, 300);
    let mut numbers = Numbers(120);
    let mut catalog = Catalog::new(genesis()).unwrap();
    for (position, record) in job.records.iter().enumerate().skip(1) {
        for _ in 0..20 {
            let mut bytes = record.clone();
            let (place, other) = (numbers.place(bytes.len()), numbers.place(job.records.len()));
            let any = u8::try_from(numbers.below(256)).unwrap();
            let byte = numbers.of(&[0, 1, 2, 0x7f, 0x80, 0xff, any]);
            match numbers.below(4) {
                0 => bytes.insert(place, byte),
                1 => drop(bytes.remove(place)),
                2 => bytes
                    .splice(place.., job.records[other].iter().copied().skip(place))
                    .for_each(drop),
                _ => bytes[place] = byte,
            }
            let widens = decode_event(&bytes, 0).is_ok_and(|event| widens(&event));
            if !widens {
                let _ = follow_next(&mut catalog.clone(), &bytes);
            }
        }
        follow(&mut catalog, record, position as u64).unwrap();
    }
}

/// A small job: two owners, a save under way of two shards, and one that is whole.
fn scene() -> (Catalog, PinId, PinId) {
    let mut catalog = Catalog::new(genesis()).unwrap();
    for owner in [OPERATOR, 2] {
        let role = if owner == OPERATOR { Role::Operator } else { Role::Worker };
        let start = StartId::from_u128(u128::from(owner));
        let incarnation = Incarnation(owner);
        fits(&mut catalog, &Event::Registered { owner: id(owner), role, start, incarnation });
    }
    let first = change(1, prepared(1, 1, &[0, 1]));
    fits(&mut catalog, &first);
    fits(&mut catalog, &change(2, prepared(2, 2, &[0, 1])));
    let pin = |sequence| PinId { op: op(sequence), place: 0 };
    let evidence = Evidence::QuiescedSuccess;
    fits(&mut catalog, &change(3, Change::Settled { pin: pin(2), shard: None, evidence }));
    (catalog, pin(1), pin(2))
}

fn op(sequence: u64) -> OpId {
    OpId { owner: id(2), incarnation: Incarnation(2), sequence }
}

fn change(sequence: u64, change: Change) -> Event {
    Event::Decided { op: op(sequence), fingerprint: 5, change }
}

fn prepared(number: u128, generation: u64, shards: &[u16]) -> Change {
    let prepare = Prepare {
        attempt: AttemptId::from_u128(number),
        endpoint: EndpointId::from_u128(number),
        digest: ManifestDigest::from_bytes([1; 32]),
        shape: Shape::new(&[ShardShape { objects: 2, bytes: 50 }; 2]).unwrap(),
        shards: shards.iter().copied().map(ShardIndex).collect(),
    };
    Change::Prepared { prepare, generation: Generation(generation) }
}

fn checkpoint(number: u64) -> CheckpointId {
    CheckpointId {
        endpoint: EndpointId::from_u128(u128::from(number)),
        generation: Generation(number),
    }
}

fn fits(catalog: &mut Catalog, event: &Event) {
    follow_next(catalog, &postcard::to_allocvec(event).unwrap()).unwrap();
}

fn misfits(catalog: &Catalog, event: &Event) {
    assert!(!catalog.fits(event), "{event:?}");
    let bytes = postcard::to_allocvec(event).unwrap();
    let answer = follow_next(&mut catalog.clone(), &bytes);
    assert_eq!(answer, Err(RecoverError::Misplaced { position: 7 }), "{event:?}");
}

#[test]
fn shards_that_do_not_fit_are_misplaced() {
    let (catalog, saving, _) = scene();
    for shards in [&[1, 1][..], &[0, 0], &[1, 0], &[], &[2], &[0, 7]] {
        misfits(&catalog, &change(4, prepared(3, 3, shards)));
    }
    for shard in [2, 4, u16::MAX] {
        let shard = Some(ShardIndex(shard));
        let evidence = Evidence::QuiescedSuccess;
        misfits(&catalog, &change(4, Change::Settled { pin: saving, shard, evidence }));
    }
    let mut halved = catalog;
    fits(&mut halved, &change(4, prepared(3, 3, &[1])));
    for shards in [&[][..], &[1], &[0, 0], &[0, 1], &[2]] {
        let shards: Vec<_> = shards.iter().copied().map(ShardIndex).collect();
        misfits(&halved, &change(5, Change::Joined { checkpoint: checkpoint(3), shards }));
    }
    let shards = vec![ShardIndex(0)];
    fits(&mut halved, &change(5, Change::Joined { checkpoint: checkpoint(3), shards }));
}

#[test]
fn numbers_that_are_not_the_next_ones_are_misplaced() {
    let (catalog, ..) = scene();
    for generation in [0, 1, 2, 4, u64::MAX] {
        misfits(&catalog, &change(4, prepared(3, generation, &[0])));
    }
    for number in [0, 1, 2, 4, u64::MAX] {
        let (owner, role, start) = (id(3), Role::Worker, StartId::from_u128(9));
        let incarnation = Incarnation(number);
        misfits(&catalog, &Event::Registered { owner, role, start, incarnation });
    }
    // A receipt stands; the incarnation is another's; sequence 0 is nobody's.
    let refused = || Change::Refused(pinfold_core::outcome::Rejection::NotHolder);
    misfits(&catalog, &change(3, refused()));
    misfits(&catalog, &change(0, refused()));
    for (owner, incarnation) in [(2, 1), (2, 3), (1, 2), (9, 2)] {
        let op = OpId { owner: id(owner), incarnation: Incarnation(incarnation), sequence: 4 };
        misfits(&catalog, &Event::Decided { op, fingerprint: 5, change: refused() });
    }
    misfits(&catalog, &Event::Genesis(genesis()));
}

#[test]
fn what_is_held_is_not_collected_and_runs_lie_in_the_objects() {
    let (mut catalog, saving, whole) = scene();
    let collected = |pieces: &[(u64, u32, u32)]| {
        let mut work = pinfold_core::few::Few::new();
        for (number, first, count) in pieces.iter().copied() {
            assert!(work.push(DeleteWork { checkpoint: checkpoint(number), first, count }));
        }
        change(9, Change::Collected { work, more: false })
    };
    misfits(&catalog, &collected(&[(1, 0, 1)]));
    misfits(&catalog, &collected(&[(2, 0, 1)]));
    misfits(&catalog, &collected(&[(3, 0, 1)]));
    misfits(&catalog, &change(4, Change::Released { pin: saving }));
    fits(&mut catalog, &change(4, Change::Released { pin: whole }));
    misfits(&catalog, &change(5, Change::Released { pin: whole }));
    for (first, count) in [(0, 0), (4, 1), (0, 5), (u32::MAX, 1), (1, u32::MAX)] {
        misfits(&catalog, &collected(&[(2, first, count)]));
    }
    fits(&mut catalog, &collected(&[(2, 0, 4)]));
}

#[test]
fn follow_ups_that_are_not_due_are_misplaced() {
    let (mut catalog, saving, whole) = scene();
    let [one, two] = [1, 2].map(|turn| TurnKey {
        conversation: ConversationId::from_u128(7),
        turn: TurnId::from_u128(turn),
    });
    let published = |sequence, turn, expired| {
        change(sequence, Change::Published { checkpoint: checkpoint(2), turn, expired })
    };
    misfits(&catalog, &published(4, Some(one), Some(one)));
    fits(&mut catalog, &published(4, Some(one), None));
    misfits(&catalog, &published(5, Some(one), Some(one)));
    misfits(&catalog, &published(5, Some(two), Some(two)));
    fits(&mut catalog, &published(5, Some(two), None));
    misfits(&catalog, &published(6, None, Some(one)));
    let conversation = one.conversation;
    for follow_up in [
        FollowUp::EndPin { pin: saving },
        FollowUp::EndPin { pin: whole },
        FollowUp::Expire { turn: two },
        FollowUp::Purge { conversation, turns: 1 },
        FollowUp::Settle { conversation },
        FollowUp::Trim { next: None },
        FollowUp::Trim { next: Some(0) },
    ] {
        misfits(&catalog, &Event::FollowedUp(follow_up));
    }
}

/// At the last position there is no number for another record: the engine says so at once, and
/// what it cannot record is never answered as if it stood.
#[test]
fn the_last_position_has_no_room() {
    let catalog = Catalog::new(genesis()).unwrap();
    let replay = |position| Replay::from_snapshot(catalog.clone(), position);
    let resume = |position| Engine::resume(Config::default(), replay(position));
    assert_eq!(resume(u64::MAX).unwrap_err(), RecoverError::Misplaced { position: u64::MAX });
    let recovered = postcard::to_allocvec(&Event::Recovered).unwrap();
    let mut last = replay(u64::MAX - 1);
    last.follow(&recovered).unwrap();
    let misplaced = RecoverError::Misplaced { position: u64::MAX };
    assert_eq!(last.follow(&recovered).unwrap_err(), misplaced);
    assert_eq!(Engine::resume(Config::default(), last).unwrap_err(), misplaced);

    let mut engine = resume(u64::MAX - 1).unwrap();
    let register = Register {
        owner: id(OPERATOR),
        role: Role::Operator,
        after: Incarnation(0),
        start: StartId::from_u128(1),
        version: PROTOCOL_VERSION,
        expected_policy: None,
    };
    let request = Request::Register(register);
    engine.submit(Input { ticket: Ticket(1), epoch: epoch(), request });
    assert!(engine.is_poisoned() && engine.take_batch().is_none() && !engine.follow_up());
    assert_eq!(engine.poll_output(), Some(Output::Reply(Ticket(1), Reply::Poisoned)));
    assert_eq!(engine.poll_output(), None);
}

/// There may be 65,535 shards, and nobody counts beyond the last.
#[test]
fn the_last_shard_waits_too() {
    let mut job = genesis();
    job.limits.shards = 65_535;
    let mut catalog = Catalog::new(job).unwrap();
    let (owner, role, start) = (id(2), Role::Worker, StartId::from_u128(1));
    let first = Event::Registered { owner, role, start, incarnation: Incarnation(1) };
    assert!(catalog.fits(&first));
    catalog.apply(&first);
    let second = Event::Registered {
        owner,
        role,
        start: StartId::from_u128(2),
        incarnation: Incarnation(2),
    };
    assert!(catalog.fits(&second));
    catalog.apply(&second);
    let Change::Prepared { mut prepare, generation } = prepared(1, 1, &[0]) else { panic!() };
    prepare.shape = Shape::new(&vec![ShardShape { objects: 1, bytes: 1 }; 65_535]).unwrap();
    let event = change(1, Change::Prepared { prepare, generation });
    assert!(catalog.fits(&event));
    catalog.apply(&event);
    let blockers = catalog.blockers(checkpoint(1)).unwrap().blockers;
    let last = Blocker::WaitingForShard { shard: ShardIndex(u16::MAX - 1) };
    assert!(blockers.contains(&last));
}
