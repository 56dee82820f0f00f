//! I15 to I17: what is moved, reused and adopted.

use pinfold_core::manifest::ObjectName;

use super::*;

fn adopted(scene: &mut Scene, pin: PinId, checkpoint: CheckpointId, of: Content) -> Judged {
    let memory = vec![(ObjectName::Private(object(0)), Some(of))];
    scene.see(&Seen::Adopted { pin, checkpoint, memory })
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
    let missing = vec![(ObjectName::Private(object(0)), None)];
    let judged = scene.clone().see(&Seen::Adopted { pin, checkpoint, memory: missing });
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
