//! What a host asks the engine beside input and output: whether a batch is due, whether another is
//! out, and which keys an effect means.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use pinfold_core::catalog::{PROTOCOL_VERSION, Register, Role};
use pinfold_core::engine::{Config, Effect, Engine, Input, Query, Request, Ticket};
use pinfold_core::id::{
    CheckpointId, EndpointId, Epoch, Generation, Incarnation, ObjectId, OpId, OwnerId, ShardIndex,
    StartId,
};
use pinfold_core::policy::{Genesis, Limits, Policy};

const EPOCH: Epoch = Epoch::from_u128(1);

fn genesis() -> Genesis {
    Genesis {
        namespace: "gate".parse().unwrap(),
        epoch: EPOCH,
        operator: OwnerId::from_u128(7),
        policy: Policy::default(),
        limits: Limits::default(),
    }
}

fn engine(full_bytes: u32) -> Engine {
    Engine::create(Config { full_bytes }, genesis()).unwrap()
}

/// The bytes of the first record of a job.
fn first_record_bytes() -> u32 {
    (1..1_000).find(|full_bytes| !engine(*full_bytes).is_full()).unwrap() - 1
}

#[test]
fn it_is_full_from_the_configured_bytes_on_until_the_batch_is_taken() {
    let bytes = first_record_bytes();
    assert!(bytes > 50, "{bytes}");
    let mut full = engine(bytes);
    assert!(full.is_full() && !engine(bytes + 1).is_full());
    let batch = full.take_batch().unwrap();
    assert!(!full.is_full());
    full.commit(batch);
    assert!(!full.is_full() && full.is_idle());
    assert!(full.take_batch().is_none(), "there is nothing to persist");
}

/// A batch that is out is the only one, whatever is decided meanwhile.
#[test]
fn one_batch_is_out_at_a_time() {
    let mut engine = engine(1);
    let batch = engine.take_batch().unwrap();
    let register = Register {
        owner: OwnerId::from_u128(7),
        role: Role::Operator,
        after: Incarnation(0),
        start: StartId::from_u128(8),
        version: PROTOCOL_VERSION,
        expected_policy: None,
    };
    let request = Request::Register(register);
    engine.submit(Input { ticket: Ticket(1), epoch: EPOCH, request });
    assert!(engine.is_full() && engine.take_batch().is_none());
    engine.commit(batch);
    assert_eq!((engine.position(), engine.poll_output()), (1, None));
    let batch = engine.take_batch().unwrap();
    engine.commit(batch);
    assert_eq!(engine.position(), 2);
    assert!(engine.poll_output().is_some() && engine.is_idle());
}

/// A query makes no record, so nothing of it can fill a batch.
#[test]
fn questions_fill_no_batch() {
    let mut engine = engine(1 << 20);
    let batch = engine.take_batch().unwrap();
    engine.commit(batch);
    engine.submit(Input { ticket: Ticket(1), epoch: EPOCH, request: Request::Query(Query::Job) });
    assert!(!engine.is_idle() && engine.take_batch().is_none());
    assert!(engine.poll_output().is_some() && engine.is_idle());
}

/// Protocol 3: whole derived keys, one for each object.
#[test]
fn an_effect_means_one_key_for_each_object() {
    let checkpoint = CheckpointId { endpoint: EndpointId::from_u128(9), generation: Generation(4) };
    let objects: Vec<ObjectId> = [(0, 0), (0, 1), (2, 5)]
        .map(|(shard, index)| ObjectId { shard: ShardIndex(shard), index })
        .into();
    let by = OpId { owner: OwnerId::from_u128(7), incarnation: Incarnation(1), sequence: 1 };
    let job = genesis();
    let effect = Effect::Delete { by, checkpoint, objects: objects.clone() };
    let keys: Vec<_> = effect.keys(&job).collect();
    assert_eq!(keys.iter().map(|key| key.object).collect::<Vec<_>>(), objects);
    for key in keys {
        assert_eq!(
            (key.namespace, key.epoch, key.checkpoint),
            (job.namespace.clone(), EPOCH, checkpoint)
        );
    }
}
