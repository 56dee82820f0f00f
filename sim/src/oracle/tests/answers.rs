//! I10, I12, I14 and I18: what leaves, and what may be decided.

use pinfold_core::catalog::Register;
use pinfold_core::outcome::Limit;
use pinfold_core::policy::Gauges;

use super::*;

#[test]
fn i10_an_answer_leaves_after_its_record() {
    let mut scene = Scene::new();
    let op = scene.op(worker());
    let ticket = scene.submit(Request::Command(op, Command::Prepare(prepare(1))));
    let endpoint = prepare(1).endpoint;
    let checkpoint = CheckpointId { endpoint, generation: Generation(1) };
    let answer = Ok(Outcome::Prepared { pin: PinId { op, place: 0 }, checkpoint });
    assert_eq!(broken_by(scene.clone().answer(ticket, answer)), Invariant::I10);
    let refusal = Err(Rejection::InFlight);
    assert_eq!(broken_by(scene.clone().answer(ticket, refusal)), Invariant::I10);
    scene.clone().answer(ticket, Err(Rejection::UnknownOwner)).unwrap();
    let change = Change::Prepared { prepare: prepare(1), generation: Generation(1) };
    scene.record(op, change).unwrap();
    scene.answer(ticket, answer).unwrap();
}

#[test]
fn i10_a_registration_is_durable_before_it_is_told() {
    let mut scene = Scene::new();
    let who = (OwnerId::from_u128(3), Incarnation(3));
    let register = Register {
        owner: who.0,
        role: Role::Worker,
        after: Incarnation(0),
        start: StartId::from_u128(5),
        version: 1,
        expected_policy: None,
    };
    let ticket = scene.submit(Request::Register(register));
    let answer = Ok(Outcome::Registered { incarnation: who.1 });
    assert_eq!(broken_by(scene.clone().answer(ticket, answer)), Invariant::I10);
    let stale = Err(Rejection::StaleIncarnation { current: who.1 });
    assert_eq!(broken_by(scene.clone().answer(ticket, stale)), Invariant::I10);
    scene.register(who, Role::Worker, 5).unwrap();
    scene.answer(ticket, answer).unwrap();
    let again = scene.submit(Request::Register(register));
    scene.answer(again, answer).unwrap();
}

#[test]
fn i10_gauges_show_what_is_durable() {
    let mut scene = Scene::new();
    scene.keep(1, turn(1, 1), None);
    let ticket = scene.submit(Request::Query(Query::Gauges));
    let gauges = |turns, pins| Reply::Gauges(Gauges { turns, pins, ..Gauges::default() });
    assert_eq!(broken_by(scene.clone().reply(ticket, gauges(2, 0))), Invariant::I10);
    assert_eq!(broken_by(scene.clone().reply(ticket, gauges(0, 0))), Invariant::I6);
    scene.prepare(2);
    scene.clone().reply(ticket, gauges(1, 0)).unwrap();
    scene.reply(ticket, gauges(1, 1)).unwrap();
}

#[test]
fn i12_another_epoch_changes_nothing() {
    let mut scene = Scene::new();
    let op = scene.op(worker());
    let request = Request::Command(op, Command::Collect { limit: 1 });
    let ticket = scene.submit_to(Epoch::from_u128(8), request);
    let change = Change::Collected { work: Few::new(), more: false };
    assert_eq!(broken_by(scene.clone().record(op, change)), Invariant::I12);
    let answer = Ok(Outcome::Collected { objects: 0, more: false });
    assert_eq!(broken_by(scene.clone().answer(ticket, answer)), Invariant::I12);
    scene.answer(ticket, Err(Rejection::WrongEpoch)).unwrap();
}

#[test]
fn i12_an_older_or_fenced_incarnation_changes_nothing() {
    let collect = |scene: &mut Scene, who| {
        let change = Change::Collected { work: Few::new(), more: false };
        scene.decide(who, Command::Collect { limit: 1 }, change)
    };
    let mut scene = Scene::new();
    collect(&mut scene, worker()).unwrap();
    let (owner, incarnation) = worker();
    let mut fenced = scene.clone();
    let command = Command::Fence { owner, incarnation };
    fenced.decide(operator(), command, Change::Fenced { owner, incarnation }).unwrap();
    assert_eq!(broken_by(collect(&mut fenced, worker())), Invariant::I12);
    let newer = (owner, Incarnation(3));
    scene.register(newer, Role::Worker, 2).unwrap();
    collect(&mut scene, newer).unwrap();
    assert_eq!(broken_by(collect(&mut scene, worker())), Invariant::I12);
}

/// A `Doubt` of a live pin, decided and answered.
fn doubted() -> (Scene, OpId, Command) {
    let mut scene = Scene::new();
    let (pin, _) = scene.prepare(1);
    let op = scene.op(worker());
    let command = Command::Doubt { pin, doubtful: true };
    let ticket = scene.submit(Request::Command(op, command.clone()));
    scene.record(op, Change::Doubted { pin, doubtful: true }).unwrap();
    scene.answer(ticket, Ok(Outcome::Doubted)).unwrap();
    (scene, op, command)
}

#[test]
fn i14_a_repetition_gets_the_first_answer() {
    let (scene, op, command) = doubted();
    let repeated = |command: &Command, answer| {
        let mut scene = scene.clone();
        let ticket = scene.submit(Request::Command(op, command.clone()));
        scene.answer(ticket, answer)
    };
    repeated(&command, Ok(Outcome::Doubted)).unwrap();
    repeated(&command, Err(Rejection::Fenced)).unwrap();
    let early = repeated(&command, Err(Rejection::ReceiptForgotten));
    assert_eq!(broken_by(early), Invariant::I14);
    assert_eq!(broken_by(repeated(&command, Ok(Outcome::Released))), Invariant::I14);
    assert_eq!(broken_by(repeated(&command, Err(Rejection::PinEnded))), Invariant::I14);
    assert_eq!(broken_by(repeated(&command, Err(Rejection::OpConflict))), Invariant::I14);
    let other = Command::Collect { limit: 1 };
    repeated(&other, Err(Rejection::OpConflict)).unwrap();
    let granted = Ok(Outcome::Collected { objects: 0, more: false });
    assert_eq!(broken_by(repeated(&other, granted)), Invariant::I14);
}

#[test]
fn i14_nothing_is_decided_twice_nor_after_its_window() {
    let (mut scene, op, command) = doubted();
    let Command::Doubt { pin, doubtful } = command else { panic!("{command:?}") };
    let change = Change::Doubted { pin, doubtful };
    assert_eq!(broken_by(scene.clone().record(op, change.clone())), Invariant::I14);
    for _ in 0..4 {
        scene.decide(worker(), command.clone(), change.clone()).unwrap();
    }
    let late = OpId { sequence: op.sequence, ..op };
    assert!(!scene.oracle.desk.receipts.contains_key(&late));
    assert_eq!(broken_by(scene.clone().record(late, change)), Invariant::I14);
    let ticket = scene.submit(Request::Command(late, command));
    scene.clone().answer(ticket, Err(Rejection::ReceiptForgotten)).unwrap();
    assert_eq!(broken_by(scene.answer(ticket, Ok(Outcome::Doubted))), Invariant::I14);
}

#[test]
fn i14_what_is_decided_was_asked() {
    let mut scene = Scene::new();
    let (pin, _) = scene.prepare(1);
    let change = Change::Doubted { pin, doubtful: false };
    let judged = scene.decide(worker(), Command::Doubt { pin, doubtful: true }, change);
    assert_eq!(broken_by(judged), Invariant::I14);
}

#[test]
fn i14_a_record_may_outlive_its_request() {
    let mut scene = Scene::new();
    let op = scene.op(worker());
    scene.submit(Request::Command(op, Command::Collect { limit: 1 }));
    scene.see(&Seen::Crashed).unwrap();
    let change = Change::Collected { work: Few::new(), more: false };
    scene.record(op, change).unwrap();
    scene.sync(Event::Recovered).unwrap();
    scene.see(&Seen::Recovered).unwrap();
    scene.oracle.end().unwrap();
}

#[test]
fn i18_a_limit_refuses_only_what_adds() {
    let limit = Rejection::LimitExceeded { limit: Limit::Pins, bound: 1, needed: 2 };
    let mut scene = Scene::new();
    let refused = |scene: &mut Scene, command: Command| {
        let op = scene.op(worker());
        let ticket = scene.submit(Request::Command(op, command));
        scene.record(op, Change::Refused(limit)).unwrap();
        scene.answer(ticket, Err(limit))
    };
    refused(&mut scene, Command::Prepare(prepare(1))).unwrap();
    let judged = refused(&mut scene, Command::Collect { limit: 1 });
    assert_eq!(broken_by(judged), Invariant::I18);
}

#[test]
fn l2_an_answer_is_to_what_was_asked() {
    let mut scene = Scene::new();
    let ticket = scene.submit(Request::Query(Query::Job));
    let judged = scene.reply(ticket, Reply::Gauges(Gauges::default()));
    assert_eq!(broken_by(judged), Invariant::L2);
}

/// Each command of a list is judged by itself, up to the first refusal.
#[test]
fn a_list_is_judged_command_by_command() {
    let mut scene = Scene::new();
    let (first, second) = (scene.op(worker()), scene.op(worker()));
    let collect = Command::Collect { limit: 1 };
    let commands = vec![(first, collect.clone()), (second, collect)];
    let ticket = scene.submit(Request::List(commands));
    scene.record(first, Change::Collected { work: Few::new(), more: false }).unwrap();
    let done = Some(Ok(Outcome::Collected { objects: 0, more: false }));
    let judged = scene.clone().reply(ticket, Reply::List(vec![done, done]));
    assert_eq!(broken_by(judged), Invariant::I10);
    // It stops at the first refusal, and only there.
    let judged = scene.clone().reply(ticket, Reply::List(vec![done, None]));
    assert_eq!(broken_by(judged), Invariant::I14);
    let refused = Some(Err(Rejection::NotOperator));
    scene.record(second, Change::Refused(Rejection::NotOperator)).unwrap();
    scene.clone().reply(ticket, Reply::List(vec![done, refused])).unwrap();
    assert_eq!(broken_by(scene.reply(ticket, Reply::List(vec![refused, done]))), Invariant::I14);
}
