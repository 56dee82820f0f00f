//! I1, I2, I3, and what is left in the end.

use super::*;

/// Two turns of one conversation at N = 1: the first is expired by the second.
fn two_turns() -> (Scene, CheckpointId, CheckpointId) {
    let mut scene = Scene::new();
    let old = scene.keep(1, turn(1, 1), None);
    let new = scene.keep(2, turn(1, 2), Some(turn(1, 1)));
    (scene, old, new)
}

#[test]
fn i1_an_expired_turns_objects_may_go() {
    let (mut scene, old, _) = two_turns();
    let by = scene.intend(old);
    scene.hand_out(by, old, &[0, 1]).unwrap();
    scene.delete(old, 0).unwrap();
}

#[test]
fn i3_work_is_what_was_handed_out() {
    let (mut scene, old, _) = two_turns();
    let by = scene.intend(old);
    scene.hand_out(by, old, &[0]).unwrap();
    let deleted =
        |place| Seen::Deleted { key: StoreKey::Private(old, object(place)), cause: Cause::Work };
    scene.see(&deleted(0)).unwrap();
    assert_eq!(broken_by(scene.see(&deleted(1))), Invariant::I3);
}

#[test]
fn i1_a_retained_turns_objects_may_not() {
    let (mut scene, _, new) = two_turns();
    assert_eq!(broken_by(scene.clone().delete(new, 0)), Invariant::I1);
    let by = scene.intend(new);
    assert_eq!(broken_by(scene.hand_out(by, new, &[0])), Invariant::I1);
}

#[test]
fn i1_an_unscoped_mark_keeps_until_it_is_dropped() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.save(1);
    scene.publish((pin, checkpoint), None, None).unwrap();
    scene.release(pin).unwrap();
    assert_eq!(broken_by(scene.clone().delete(checkpoint, 0)), Invariant::I1);
    let change = Change::Dropped { checkpoint };
    scene.decide(operator(), Command::Drop { checkpoint }, change).unwrap();
    scene.intend(checkpoint);
    scene.delete(checkpoint, 0).unwrap();
}

#[test]
fn i1_a_turn_leaves_a_lost_checkpoint_for_another_of_its_position() {
    let mut scene = Scene::new();
    let lost = scene.keep(1, turn(1, 1), None);
    let object = pinfold_core::outcome::LostObject::Private(object(0));
    let why = pinfold_core::outcome::Loss::Absent;
    let command = Command::Lost { checkpoint: lost, object, why };
    scene.decide(operator(), command, Change::Lost { checkpoint: lost, object, why }).unwrap();
    assert_eq!(broken_by(scene.clone().delete(lost, 0)), Invariant::I1);
    let other = scene.keep(1, turn(1, 1), None);
    scene.intend(lost);
    scene.delete(lost, 0).unwrap();
    assert_eq!(broken_by(scene.delete(other, 0)), Invariant::I1);
}

#[test]
fn i2_a_pin_holds_until_it_ends() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.save(1);
    assert_eq!(broken_by(scene.clone().delete(checkpoint, 0)), Invariant::I2);
    scene.release(pin).unwrap();
    scene.intend(checkpoint);
    scene.delete(checkpoint, 0).unwrap();
}

#[test]
fn i2_a_move_holds_until_it_is_retired_or_lied_about() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.prepare(1);
    let id = scene.begin(Way::Put, pin, checkpoint, 1);
    scene.settle(operator(), pin, Evidence::QuiescedFailure).unwrap();
    scene.release(pin).unwrap();
    scene.intend(checkpoint);
    assert_eq!(broken_by(scene.clone().delete(checkpoint, 1)), Invariant::I2);
    let (owner, incarnation) = worker();
    let mut lied = scene.clone();
    lied.see(&Seen::FalseProof { owner, incarnation }).unwrap();
    lied.delete(checkpoint, 1).unwrap();
    scene.see(&Seen::Retired { id }).unwrap();
    scene.delete(checkpoint, 1).unwrap();
}

#[test]
fn i3_only_objects_of_a_durable_intent_are_handed_out() {
    let (mut scene, old, _) = two_turns();
    let other = scene.op(worker());
    assert_eq!(broken_by(scene.clone().hand_out(other, old, &[0])), Invariant::I10);
    let by = scene.intend(old);
    scene.hand_out(by, old, &[0, 1]).unwrap();
    assert_eq!(broken_by(scene.clone().hand_out(by, old, &[])), Invariant::I3);
    assert_eq!(broken_by(scene.clone().hand_out(by, old, &[2])), Invariant::I3);
    let unheld = scene.keep(3, turn(1, 3), Some(turn(1, 2)));
    scene.keep(4, turn(1, 4), Some(turn(1, 3)));
    assert_eq!(broken_by(scene.hand_out(by, unheld, &[0])), Invariant::I3);
}

#[test]
fn i3_what_is_not_ours_is_never_deleted_nor_called_a_stray() {
    let mut scene = Scene::new();
    let key = StoreKey::Foreign(1);
    scene.audit(key, Verdict::NotOurs).unwrap();
    assert_eq!(broken_by(scene.clone().audit(key, Verdict::Stray)), Invariant::I3);
    assert_eq!(broken_by(scene.see(&Seen::Deleted { key, cause: Cause::Stray })), Invariant::I3);
}

#[test]
fn i3_a_stray_is_what_no_record_counts() {
    let (mut scene, old, new) = two_turns();
    let key = |checkpoint| StoreKey::Private(checkpoint, object(0));
    scene.intend(old);
    assert_eq!(broken_by(scene.clone().audit(key(old), Verdict::Stray)), Invariant::I3);
    scene.gone(old, 0);
    scene.audit(key(old), Verdict::Stray).unwrap();
    assert_eq!(broken_by(scene.audit(key(new), Verdict::Stray)), Invariant::I3);
}

#[test]
fn i17_a_put_of_a_worker_is_never_called_not_ours() {
    let mut scene = Scene::new();
    let kept = scene.keep(1, turn(1, 1), None);
    let key = StoreKey::Private(kept, object(0));
    scene.audit(key, Verdict::Counted).unwrap();
    assert_eq!(broken_by(scene.audit(key, Verdict::NotOurs)), Invariant::I17);
}

#[test]
fn l1_what_nothing_holds_is_gone_in_the_end() {
    let (mut scene, old, _) = two_turns();
    // What was asked by hand was never answered: that is another promise.
    scene.see(&Seen::Crashed).unwrap();
    assert_eq!(broken_by(scene.oracle.end()), Invariant::L1);
    for index in 0..2 {
        scene.delete(old, index).unwrap();
    }
    scene.oracle.end().unwrap();
    assert!(!scene.oracle.is_empty_of_ours());
}

#[test]
fn l2_every_request_is_answered_in_the_end() {
    let mut scene = Scene::new();
    let ticket = scene.submit(Request::Query(Query::Job));
    assert_eq!(broken_by(scene.oracle.end()), Invariant::L2);
    scene.reply(ticket, Reply::Job(genesis())).unwrap();
    scene.oracle.end().unwrap();
    assert!(scene.oracle.is_empty_of_ours());
}
