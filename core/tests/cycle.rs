//! A whole life of checkpoints through decide and apply, with a full recount after every step.

use pinfold_core::catalog::*;
use pinfold_core::id::*;
use pinfold_core::outcome::*;
use pinfold_core::policy::*;

struct Job {
    catalog: Catalog,
    epoch: Epoch,
    sequence: u64,
    events: Vec<Event>,
}

impl Job {
    fn step(&mut self, command: Command) -> Result<Outcome, Rejection> {
        self.sequence += 1;
        let op = OpId {
            owner: OwnerId::from_u128(7),
            incarnation: Incarnation(1),
            sequence: self.sequence,
        };
        match self.catalog.decide(self.epoch, op, command) {
            Decision::Answer(answer) => answer,
            Decision::Event(event) => {
                let answer = self.catalog.apply(&event);
                self.catalog.check().unwrap();
                self.events.push(event);
                answer.unwrap()
            }
        }
    }
}

#[test]
fn five_turns_keep_two() {
    let epoch = Epoch::from_u128(1);
    let policy = Policy { turns: 2, ..Policy::default() };
    let genesis = Genesis {
        namespace: "t".parse().unwrap(),
        epoch,
        operator: OwnerId::from_u128(9),
        policy,
        limits: Limits::default(),
    };
    let mut job =
        Job { catalog: Catalog::new(genesis.clone()).unwrap(), epoch, sequence: 0, events: vec![] };
    let register = Register {
        owner: OwnerId::from_u128(7),
        role: Role::Worker,
        after: Incarnation(0),
        start: StartId::from_u128(3),
        version: PROTOCOL_VERSION,
        expected_policy: None,
    };
    let Decision::Event(event) = job.catalog.decide_registration(epoch, &register) else {
        panic!()
    };
    job.catalog.apply(&event);
    job.events.push(event);
    let shape = Shape::new(&[ShardShape { objects: 2, bytes: 100 }]).unwrap();
    for turn in 1..=5_u128 {
        let prepare = Prepare {
            attempt: AttemptId::from_u128(turn),
            endpoint: EndpointId::from_u128(turn),
            digest: ManifestDigest::from_bytes([1; 32]),
            shape: shape.clone(),
            shards: vec![ShardIndex(0)],
        };
        let Ok(Outcome::Prepared { pin, .. }) = job.step(Command::Prepare(prepare)) else {
            panic!()
        };
        let shard = Some(ShardIndex(0));
        let evidence = Evidence::QuiescedSuccess;
        job.step(Command::Settle { pin, shard, evidence }).unwrap();
        let key =
            TurnKey { conversation: ConversationId::from_u128(1), turn: TurnId::from_u128(turn) };
        let published = job.step(Command::Publish { pin, turn: Some(key) }).unwrap();
        let Outcome::Published { expired, follow_ups: false } = published else { panic!() };
        assert_eq!(expired.is_some(), turn > 2);
        job.step(Command::Release { pin }).unwrap();
    }
    assert_eq!(job.catalog.gauges().bytes_retained, 200);
    let Ok(Outcome::Collected { objects: 3, more: true }) = job.step(Command::Collect { limit: 3 })
    else {
        panic!()
    };
    let mut replayed = Catalog::new(genesis).unwrap();
    for event in &job.events {
        replayed.apply(event);
    }
    assert_eq!(replayed.snapshot(), job.catalog.snapshot());
    let restored = Catalog::restore(&job.catalog.snapshot()).unwrap();
    assert_eq!(restored.snapshot(), job.catalog.snapshot());
}
