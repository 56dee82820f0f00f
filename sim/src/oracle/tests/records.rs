//! I4 to I9: what a record may say where it stands.

use pinfold_core::catalog::{Blocker, Blockers, FollowUp};

use super::*;

#[test]
fn i4_a_publication_comes_after_every_proof() {
    let mut scene = Scene::new();
    let saved = scene.save(1);
    scene.publish(saved, Some(turn(1, 1)), None).unwrap();
    // Object 0 is put, and nobody confirmed it.
    let (pin, checkpoint) = scene.prepare(2);
    scene.put(pin, checkpoint, 1);
    let id = scene.begin(Way::Put, pin, checkpoint, 0);
    scene.see(&Seen::PutSucceeded { id }).unwrap();
    scene.see(&Seen::Retired { id }).unwrap();
    scene.settle(worker(), pin, Evidence::QuiescedSuccess).unwrap();
    let judged = scene.publish((pin, checkpoint), Some(turn(2, 1)), None);
    assert_eq!(broken_by(judged), Invariant::I4);
}

#[test]
fn i4_proofs_that_come_after_the_request_are_too_late() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.prepare(1);
    scene.put(pin, checkpoint, 1);
    scene.settle(worker(), pin, Evidence::QuiescedSuccess).unwrap();
    let command = Command::Publish { pin, turn: Some(turn(1, 1)) };
    let op = scene.op(worker());
    scene.submit(Request::Command(op, command));
    scene.put(pin, checkpoint, 0);
    let change = Change::Published { checkpoint, turn: Some(turn(1, 1)), expired: None };
    assert_eq!(broken_by(scene.record(op, change)), Invariant::I4);
}

#[test]
fn i4_a_publication_is_of_what_its_pin_holds() {
    let mut scene = Scene::new();
    let (pin, _) = scene.save(1);
    let (_, other) = scene.save(2);
    let judged = scene.publish((pin, other), Some(turn(1, 1)), None);
    assert_eq!(broken_by(judged), Invariant::I4);
}

fn join(scene: &mut Scene, digest: ManifestDigest, checkpoint: CheckpointId) -> Judged {
    let asked = Prepare { digest, ..prepare(1) };
    let change = Change::AlreadyPublished { checkpoint };
    scene.decide(worker(), Command::Prepare(asked), change)
}

#[test]
fn i5_a_digest_stays_what_was_minted() {
    let mut scene = Scene::new();
    let (_, checkpoint) = scene.save(1);
    join(&mut scene, ManifestDigest::from_bytes([9; 32]), checkpoint).unwrap();
    let judged = join(&mut scene.clone(), ManifestDigest::from_bytes([8; 32]), checkpoint);
    assert_eq!(broken_by(judged), Invariant::I5);
    let pin = scene.pin(checkpoint).unwrap();
    let ticket = Ticket(scene.tickets);
    let answer = |digest| {
        let mut answers = Few::new();
        assert!(answers.push(pinfold_core::outcome::Pinned { checkpoint, digest }));
        Ok(Outcome::Pinned(answers))
    };
    let wrong = answer(ManifestDigest::from_bytes([8; 32]));
    assert_eq!(broken_by(scene.clone().answer(ticket, wrong)), Invariant::I5);
    scene.answer(ticket, answer(ManifestDigest::from_bytes([9; 32]))).unwrap();
    assert_eq!(scene.oracle.facts.pins.get(&pin).map(|pin| pin.save), Some(false));
}

#[test]
fn i6_the_oldest_expires_and_none_that_a_bound_keeps() {
    let mut scene = Scene::new();
    scene.keep(1, turn(1, 1), None);
    scene.keep(2, turn(2, 1), None);
    let saved = scene.save(3);
    let judged = |expired| scene.clone().publish(saved, Some(turn(1, 2)), Some(expired));
    judged(turn(1, 1)).unwrap();
    assert_eq!(broken_by(judged(turn(2, 1))), Invariant::I6);
    assert_eq!(broken_by(judged(turn(1, 2))), Invariant::I6);
    assert_eq!(broken_by(judged(turn(3, 3))), Invariant::I6);
}

#[test]
fn i6_a_budget_expires_what_was_published_longest_ago() {
    let configure = |scene: &mut Scene, policy: Policy| {
        let limits = genesis().limits;
        let command = Command::Configure { policy, limits };
        let change = Change::Configured { policy, limits, trim: true };
        scene.decide(operator(), command, change).unwrap();
    };
    let expire = |scene: &mut Scene, turn| scene.sync(Event::FollowedUp(FollowUp::Expire { turn }));
    let mut scene = Scene::new();
    scene.keep(1, turn(1, 1), None);
    scene.keep(2, turn(2, 1), None);
    assert_eq!(broken_by(expire(&mut scene.clone(), turn(1, 1))), Invariant::I6);
    let small = Policy { job_bytes: Some(150), ..genesis().policy };
    configure(&mut scene, small);
    expire(&mut scene.clone(), turn(1, 1)).unwrap();
    // The last one of the job is spared.
    assert_eq!(broken_by(expire(&mut scene.clone(), turn(2, 1))), Invariant::I6);
    // A bound that was raised again may still have had its way.
    configure(&mut scene, genesis().policy);
    expire(&mut scene, turn(1, 1)).unwrap();
}

#[test]
fn i6_nothing_is_refused_as_expired_that_is_live() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.save(1);
    scene.publish((pin, checkpoint), Some(turn(1, 1)), None).unwrap();
    let command = Command::Publish { pin, turn: Some(turn(1, 1)) };
    let judged = scene.refuse(worker(), command, Rejection::TurnExpired);
    assert_eq!(broken_by(judged), Invariant::I6);
}

#[test]
fn i7_what_expired_never_returns() {
    let mut scene = Scene::new();
    scene.keep(1, turn(1, 1), None);
    scene.keep(2, turn(1, 2), Some(turn(1, 1)));
    let saved = scene.save(3);
    let judged = scene.clone().publish(saved, Some(turn(1, 1)), None);
    assert_eq!(broken_by(judged), Invariant::I7);
    let conversation = turn(2, 0).conversation;
    let command = Command::Forget { conversation };
    scene.decide(operator(), command, Change::Forgotten { conversation }).unwrap();
    scene.clone().publish(saved, Some(turn(3, 1)), None).unwrap();
    assert_eq!(broken_by(scene.publish(saved, Some(turn(2, 1)), None)), Invariant::I7);
}

#[test]
fn i8_a_pin_ends_once_and_on_evidence() {
    let mut scene = Scene::new();
    let (pin, _) = scene.prepare(1);
    scene.settle(worker(), pin, Evidence::InDoubt).unwrap();
    assert_eq!(broken_by(scene.clone().release(pin)), Invariant::I8);
    let settle = Command::Settle { pin, shard: None, evidence: Evidence::QuiescedFailure };
    let judged = scene.clone().refuse(worker(), settle.clone(), Rejection::PinEnded);
    assert_eq!(broken_by(judged), Invariant::I8);
    let success = scene.clone().settle(operator(), pin, Evidence::QuiescedSuccess);
    assert_eq!(broken_by(success), Invariant::I8);
    scene.settle(operator(), pin, Evidence::QuiescedFailure).unwrap();
    scene.release(pin).unwrap();
    scene.refuse(worker(), settle, Rejection::PinEnded).unwrap();
    assert_eq!(broken_by(scene.release(pin)), Invariant::I8);
}

#[test]
fn i8_a_follow_up_ends_pins_of_a_fenced_incarnation_alone() {
    let mut scene = Scene::new();
    let (pin, _) = scene.prepare(1);
    let end = Event::FollowedUp(FollowUp::EndPin { pin });
    assert_eq!(broken_by(scene.clone().sync(end.clone())), Invariant::I8);
    let (owner, incarnation) = worker();
    let command = Command::Fence { owner, incarnation };
    scene.decide(operator(), command, Change::Fenced { owner, incarnation }).unwrap();
    scene.sync(end.clone()).unwrap();
    assert_eq!(broken_by(scene.sync(end)), Invariant::I8);
}

#[test]
fn i9_what_is_lost_failed_or_collected_is_not_served() {
    let mut scene = Scene::new();
    let (pin, whole) = scene.save(1);
    scene.pin(whole).unwrap();
    let (failing, failed) = scene.prepare(2);
    let early = scene.clone().pin(failed).map(|_| ());
    assert_eq!(broken_by(early), Invariant::I9);
    scene.settle(worker(), failing, Evidence::QuiescedFailure).unwrap();
    assert_eq!(broken_by(scene.clone().pin(failed).map(|_| ())), Invariant::I9);
    let mut lost = scene.clone();
    let object = pinfold_core::outcome::LostObject::Private(object(0));
    let why = pinfold_core::outcome::Loss::WrongSize;
    let command = Command::Lost { checkpoint: whole, object, why };
    let change = Change::Lost { checkpoint: whole, object, why };
    let unfounded = lost.clone().decide(worker(), command.clone(), change.clone());
    assert_eq!(broken_by(unfounded.map(|_| ())), Invariant::I9);
    let key = StoreKey::Private(whole, super::object(0));
    lost.see(&Seen::Missed { pin, key }).unwrap();
    lost.decide(worker(), command, change).unwrap();
    assert_eq!(broken_by(lost.clone().pin(whole).map(|_| ())), Invariant::I9);
    assert_eq!(broken_by(lost.publish((pin, whole), None, None)), Invariant::I9);
    scene.intend(whole);
    assert_eq!(broken_by(scene.pin(whole).map(|_| ())), Invariant::I9);
}

#[test]
fn i9_a_failed_attempt_is_not_joined() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.prepare(1);
    scene.settle(worker(), pin, Evidence::QuiescedFailure).unwrap();
    let change = Change::Joined { checkpoint, shards: vec![ShardIndex(0)] };
    let judged = scene.decide(worker(), Command::Prepare(prepare(1)), change);
    assert_eq!(broken_by(judged), Invariant::I9);
}

fn blockers(checkpoint: CheckpointId, blockers: Vec<Blocker>) -> Reply {
    Reply::Blockers(Some(Blockers { checkpoint, bytes: 100, blockers }))
}

#[test]
fn blockers_show_what_holds_and_nothing_else() {
    let mut scene = Scene::new();
    scene.keep(1, turn(1, 1), None);
    let (pin, checkpoint) = scene.save(2);
    scene.publish((pin, checkpoint), Some(turn(1, 2)), Some(turn(1, 1))).unwrap();
    let retained = |turn| Blocker::Retained { turn };
    let pinned = |pin| Blocker::Pinned { pin, save: true };
    let shown = |of: Vec<Blocker>| {
        let mut scene = scene.clone();
        let ticket = scene.submit(Request::Query(Query::Blockers(checkpoint)));
        scene.reply(ticket, blockers(checkpoint, of))
    };
    let (new, old) = (retained(turn(1, 2)), retained(turn(1, 1)));
    shown(vec![new.clone(), pinned(pin)]).unwrap();
    assert_eq!(broken_by(shown(vec![pinned(pin)])), Invariant::I6);
    assert_eq!(broken_by(shown(vec![new.clone()])), Invariant::I8);
    assert_eq!(broken_by(shown(vec![old, new.clone(), pinned(pin)])), Invariant::I7);
    let unsynced = retained(turn(5, 5));
    assert_eq!(broken_by(shown(vec![new, unsynced, pinned(pin)])), Invariant::I10);
}

#[test]
fn blockers_lie_between_two_durable_situations() {
    let mut scene = Scene::new();
    let (pin, checkpoint) = scene.save(1);
    let ticket = scene.submit(Request::Query(Query::Blockers(checkpoint)));
    scene.publish((pin, checkpoint), Some(turn(1, 1)), None).unwrap();
    scene.release(pin).unwrap();
    let retained = Blocker::Retained { turn: turn(1, 1) };
    let pinned = Blocker::Pinned { pin, save: true };
    for shown in [vec![pinned.clone()], vec![retained.clone(), pinned], vec![retained]] {
        scene.clone().reply(ticket, blockers(checkpoint, shown)).unwrap();
    }
}
