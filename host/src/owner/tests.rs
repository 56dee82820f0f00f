//! Owners against real nodes: numbers, windows, lists, and what a lost node leaves unanswered.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pinfold_core::id::{ConversationId, Epoch};
use pinfold_core::policy::{Genesis, Policy};

use super::*;
use crate::node::Node;

/// Long enough that a thread which can go on has gone on.
const A_WHILE: Duration = Duration::from_millis(50);

fn node(dir: &Path, unanswered: u32) -> Node {
    let genesis = Genesis {
        namespace: "owner".parse().unwrap(),
        epoch: Epoch::of_name("owner test"),
        operator: OwnerId::of_name("operator"),
        policy: Policy::default(),
        limits: Limits { unanswered, ..Limits::default() },
    };
    Node::create(dir, genesis).unwrap().0
}

fn register(node: &Node, name: &str, role: Role, start: u128) -> Result<Owner, OwnerError> {
    Owner::register(node.client().unwrap(), name, role, StartId::from_u128(start))
}

fn forget(number: u128) -> Command {
    Command::Forget { conversation: ConversationId::from_u128(number) }
}

fn sequences(owner: &Owner) -> Vec<u64> {
    owner.unanswered().iter().map(|(op, _)| op.sequence).collect()
}

/// A start that is new follows whatever incarnation there is; the same start is the same one.
#[test]
fn an_owner_follows_its_earlier_life() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 64);
    let worker = |start| register(&node, "worker", Role::Worker, start).unwrap();
    let first = worker(1);
    assert_eq!(first.identity(), (OwnerId::of_name("worker"), Incarnation(1)));
    assert!(first.ask(Command::Collect { limit: 1 }).unwrap().is_ok());
    assert_eq!(worker(1).identity(), first.identity());
    let second = worker(2);
    assert_eq!(second.identity().1, Incarnation(2));
    let stale = Err(Rejection::StaleIncarnation { current: Incarnation(2) });
    assert_eq!(first.ask(Command::Collect { limit: 1 }), Ok(stale));
    assert_eq!(first.begin(forget(1)).unwrap().sequence, 3);
}

#[test]
fn a_role_is_for_life() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 64);
    register(&node, "one", Role::Worker, 1).unwrap();
    let refused = register(&node, "one", Role::Operator, 1).unwrap_err();
    assert_eq!(refused, OwnerError::Refused(Rejection::RoleMismatch));
}

/// A refusal ends a list: what stands behind it has no answer, in later lists too.
#[test]
fn a_list_ends_with_its_first_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 2);
    let operator = register(&node, "operator", Role::Operator, 1).unwrap();
    let unknown = Command::Retire { owner: OwnerId::of_name("nobody") };
    let all = vec![forget(1), forget(2), forget(3), unknown, forget(4), forget(5)];
    let answers = operator.ask_all(all).unwrap();
    let done = Some(Ok(Outcome::Forgotten));
    let refused = Some(Err(Rejection::UnknownOwner));
    assert_eq!(answers, [done, done, done, refused, None, None]);
    assert_eq!(sequences(&operator), []);
    assert_eq!(operator.begin(forget(6)).unwrap().sequence, 5);
    assert_eq!(operator.ask_all(Vec::new()), Ok(Vec::new()));
}

/// Protocol 6: s is numbered only when everything up to s − W is answered.
#[test]
fn the_window_holds_back_whoever_is_too_far() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 3);
    let operator = register(&node, "operator", Role::Operator, 1).unwrap();
    let ops = [1, 2, 3].map(|number| operator.begin(forget(number)).unwrap());
    assert_eq!(operator.send(ops[2]), Ok(Ok(Outcome::Forgotten)));
    assert_eq!(operator.try_begin(&forget(4)), Ok(None));
    thread::scope(|scope| {
        let (numbered, told) = channel();
        let waiting = &operator;
        scope.spawn(move || numbered.send(waiting.begin(forget(4))).unwrap());
        assert_eq!(told.recv_timeout(A_WHILE), Err(RecvTimeoutError::Timeout));
        assert_eq!(operator.send(ops[1]), Ok(Ok(Outcome::Forgotten)));
        assert_eq!(told.recv_timeout(A_WHILE), Err(RecvTimeoutError::Timeout));
        assert_eq!(operator.send(ops[0]), Ok(Ok(Outcome::Forgotten)));
        assert_eq!(told.recv().unwrap().unwrap().sequence, 4);
    });
    let op = ops[0];
    assert_eq!(operator.send(op), Err(OwnerError::NotWaiting { op }));
}

/// Many threads, a window of two: every command is decided once, none is called forgotten.
#[test]
fn threads_share_the_window() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 2);
    let operator = register(&node, "operator", Role::Operator, 1).unwrap();
    thread::scope(|scope| {
        for thread in 0..8 {
            let operator = &operator;
            scope.spawn(move || {
                for number in 0..10 {
                    let answer = operator.ask(forget(thread * 10 + number + 1)).unwrap();
                    assert_eq!(answer, Ok(Outcome::Forgotten));
                }
            });
        }
    });
    assert_eq!(sequences(&operator), []);
    let gauges = node.client().unwrap().inspect(|engine, _| engine.catalog().gauges()).unwrap();
    assert_eq!(gauges.conversations, 80);
}

/// A command without an answer keeps its operation, and a node that was opened again answers
/// it: the first answer, if it was decided before.
#[test]
fn what_is_unanswered_is_asked_again_under_its_operation() {
    let dir = tempfile::tempdir().unwrap();
    let first = node(dir.path(), 4);
    let operator = register(&first, "operator", Role::Operator, 1).unwrap();
    let decided = operator.begin(forget(1)).unwrap();
    // Decided, and the answer does not arrive.
    first.client().unwrap().call(Request::Command(decided, forget(1))).unwrap();
    let client = first.client().unwrap();
    first.stop().unwrap();
    assert_eq!(operator.send(decided), Err(OwnerError::Gone(Gone)));
    assert_eq!(operator.ask(forget(2)), Err(OwnerError::Gone(Gone)));
    assert_eq!(operator.begin(forget(2)), Err(Gone));
    assert_eq!(operator.reconnect(client), Err(OwnerError::Gone(Gone)));
    assert_eq!(sequences(&operator), [1]);
    let (again, _effects, _) = Node::open(dir.path()).unwrap();
    operator.reconnect(again.client().unwrap()).unwrap();
    assert_eq!(operator.send(decided), Ok(Ok(Outcome::Forgotten)));
    assert_eq!(operator.ask(forget(2)), Ok(Ok(Outcome::Forgotten)));
    assert_eq!(sequences(&operator), []);
    let records = again.client().unwrap().inspect(|engine, _| engine.position()).unwrap();
    again.stop().unwrap();
    let (_, _, recovery) = Node::open(dir.path()).unwrap();
    assert_eq!(recovery.records, records, "a repetition is no event");
}

/// Whoever waits for the window hears that the node is gone, and has no number then.
#[test]
fn a_gone_node_ends_the_wait_for_the_window() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 1);
    let client = node.client().unwrap();
    let operator = register(&node, "operator", Role::Operator, 1).unwrap();
    let first = operator.begin(forget(1)).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| operator.begin(forget(2)));
        node.stop().unwrap();
        assert_eq!(operator.send(first), Err(OwnerError::Gone(Gone)));
        assert_eq!(waiting.join().unwrap(), Err(Gone));
    });
    assert_eq!(sequences(&operator), [1]);
    let start = StartId::from_u128(2);
    let again = Owner::register(client, "operator", Role::Operator, start);
    assert_eq!(again.unwrap_err(), OwnerError::Gone(Gone));
}
