//! I15 to I17: what is moved, reused and adopted.

use pinfold_core::id::{ChainValue, ManifestDigest, RepresentationDigest};
use pinfold_core::layout::GroupId;
use pinfold_core::manifest::{ObjectName, SharedName, SharedScope};

use super::*;

fn adopted(scene: &mut Scene, pin: PinId, checkpoint: CheckpointId, of: Content) -> Judged {
    let own = Some(Content::Of(StoreKey::Private(checkpoint, object(1))));
    let memory =
        vec![(ObjectName::Private(object(0)), Some(of)), (ObjectName::Private(object(1)), own)];
    scene.see(&Seen::Adopted { pin, checkpoint, digest: None, memory })
}

#[test]
fn i15_all_that_is_adopted_is_the_checkpoints_own() {
    let mut scene = Scene::new();
    let (_, checkpoint) = scene.save(1);
    let (_, other) = scene.save(2);
    let pin = scene.pin(checkpoint).unwrap();
    let of = |checkpoint| Content::Of(StoreKey::Private(checkpoint, object(0)));
    adopted(&mut scene, pin, checkpoint, of(checkpoint)).unwrap();
    for wrong in [of(other), Content::Garbage] {
        let judged = adopted(&mut scene.clone(), pin, checkpoint, wrong);
        assert_eq!(broken_by(judged), Invariant::I15);
    }
    let own = (ObjectName::Private(object(0)), Some(of(checkpoint)));
    // What did not arrive, and what was never asked for.
    for memory in [vec![own, (ObjectName::Private(object(1)), None)], vec![own]] {
        let judged = scene.clone().see(&Seen::Adopted { pin, checkpoint, digest: None, memory });
        assert_eq!(broken_by(judged), Invariant::I15);
    }
    let memory = [0, 1].map(object).map(|object| {
        let key = StoreKey::Private(checkpoint, object);
        (ObjectName::Private(object), Some(Content::Of(key)))
    });
    let (memory, digest) = (memory.to_vec(), Some(ManifestDigest::from_bytes([8; 32])));
    let judged = scene.clone().see(&Seen::Adopted { pin, checkpoint, digest, memory });
    assert_eq!(broken_by(judged), Invariant::I15);
    assert_eq!(broken_by(adopted(&mut scene.clone(), pin, other, of(other))), Invariant::I15);
    let command = Command::Settle { pin, shard: None, evidence: Evidence::NotExposed };
    let change = Change::Settled { pin, shard: None, evidence: Evidence::NotExposed };
    scene.decide(worker(), command, change).unwrap();
    let judged = adopted(&mut scene, pin, checkpoint, of(checkpoint));
    assert_eq!(broken_by(judged), Invariant::I15);
}

#[test]
fn i16_memory_is_reused_after_its_last_move() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.prepare(1);
    let id = scene.begin(Way::Put, pin, checkpoint, 1);
    let reused = Seen::SourceReused { pin, shard: ShardIndex(0) };
    assert_eq!(broken_by(scene.clone().see(&reused)), Invariant::I16);
    scene.clone().see(&Seen::SourceReused { pin, shard: ShardIndex(1) }).unwrap();
    scene.see(&Seen::Retired { id }).unwrap();
    scene.see(&reused).unwrap();
}

#[test]
fn i16_a_lie_does_not_excuse_a_worker() {
    let mut scene = Scene::new();
    let (_, checkpoint) = scene.save(1);
    let pin = scene.pin(checkpoint).unwrap();
    let id = scene.begin(Way::Get, pin, checkpoint, 1);
    let (owner, incarnation) = worker();
    scene.see(&Seen::FalseProof { owner, incarnation }).unwrap();
    assert_eq!(broken_by(scene.clone().see(&Seen::DestinationReused { pin })), Invariant::I16);
    let of = Content::Of(StoreKey::Private(checkpoint, object(0)));
    assert_eq!(broken_by(adopted(&mut scene.clone(), pin, checkpoint, of)), Invariant::I16);
    scene.see(&Seen::Retired { id }).unwrap();
    scene.see(&Seen::DestinationReused { pin }).unwrap();
}

#[test]
fn i17_a_private_key_is_put_once() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.prepare(1);
    scene.put(pin, checkpoint, 1);
    scene.put(pin, checkpoint, 0);
    let key = StoreKey::Private(checkpoint, object(0));
    let again = Seen::MoveBegan { id: MoveId(9), way: Way::Put, key, checkpoint, pin };
    assert_eq!(broken_by(scene.see(&again)), Invariant::I17);
}

/// A page of shard 0.
fn page() -> SharedName {
    SharedName {
        representation: RepresentationDigest::from_u128(1),
        group: GroupId(0),
        scope: SharedScope::Shard(ShardIndex(0)),
        chain: ChainValue::new(&[1]).unwrap(),
    }
}

#[test]
fn i4_and_i16_hold_for_shared_pages_too() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.prepare(1);
    let (id, key) = (MoveId(50), StoreKey::Shared(page()));
    scene.see(&Seen::MoveBegan { id, way: Way::Put, key, checkpoint, pin }).unwrap();
    scene.put(pin, checkpoint, 1);
    scene.put(pin, checkpoint, 0);
    let reused = Seen::SourceReused { pin, shard: ShardIndex(0) };
    assert_eq!(broken_by(scene.clone().see(&reused)), Invariant::I16);
    scene.see(&Seen::PutSucceeded { id }).unwrap();
    scene.see(&Seen::Retired { id }).unwrap();
    scene.settle(worker(), pin, Evidence::QuiescedSuccess).unwrap();
    let mut confirmed = scene.clone();
    let judged = scene.publish((pin, checkpoint), None, None);
    assert_eq!(broken_by(judged), Invariant::I4);
    confirmed.see(&Seen::Confirmed { pin, key }).unwrap();
    confirmed.publish((pin, checkpoint), None, None).unwrap();
}

/// A page carries no trailer, so nobody can be blamed for what somebody did to it in the store.
#[test]
fn i15_excuses_a_page_that_was_spoiled_in_the_store() {
    let mut scene = Scene::new();
    let (_, checkpoint) = scene.save(1);
    let pin = scene.pin(checkpoint).unwrap();
    let adopted = |scene: &mut Scene, content| {
        let private = [0, 1].map(object).map(|object| {
            let key = StoreKey::Private(checkpoint, object);
            (ObjectName::Private(object), Some(Content::Of(key)))
        });
        let mut memory = private.to_vec();
        memory.push((ObjectName::Shared(page()), content));
        scene.see(&Seen::Adopted { pin, checkpoint, digest: None, memory })
    };
    let garbage = Some(Content::Garbage);
    adopted(&mut scene, Some(Content::Of(StoreKey::Shared(page())))).unwrap();
    assert_eq!(broken_by(adopted(&mut scene.clone(), garbage)), Invariant::I15);
    scene.see(&Seen::StoreLost { key: StoreKey::Shared(page()) }).unwrap();
    adopted(&mut scene, garbage).unwrap();
    assert_eq!(broken_by(adopted(&mut scene, None)), Invariant::I15);
}
