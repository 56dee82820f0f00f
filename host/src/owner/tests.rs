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
    Owner::register(node.client(), name, role, StartId::from_u128(start))
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
    assert!(sequences(&operator).is_empty());
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
    assert!(sequences(&operator).is_empty());
    let gauges = node.client().inspect(|engine, _| engine.catalog().gauges()).unwrap();
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
    first.client().call(Request::Command(decided, forget(1))).unwrap();
    let client = first.client();
    first.stop().unwrap();
    assert_eq!(operator.send(decided), Err(OwnerError::Gone(Gone)));
    assert_eq!(operator.ask(forget(2)), Err(OwnerError::Gone(Gone)));
    assert_eq!(operator.begin(forget(2)), Err(Gone));
    assert_eq!(operator.reconnect(client), Err(OwnerError::Gone(Gone)));
    assert_eq!(sequences(&operator), [1]);
    let (again, _effects, _) = Node::open(dir.path()).unwrap();
    operator.reconnect(again.client()).unwrap();
    assert_eq!(operator.send(decided), Ok(Ok(Outcome::Forgotten)));
    assert_eq!(operator.ask(forget(2)), Ok(Ok(Outcome::Forgotten)));
    assert!(sequences(&operator).is_empty());
    let records = again.client().inspect(|engine, _| engine.position()).unwrap();
    again.stop().unwrap();
    let (_, _, recovery) = Node::open(dir.path()).unwrap();
    assert_eq!(recovery.records, records, "a repetition is no event");
}

/// Protocol 6: a list that is sent again stops at its first refusal too, and the rest counts as
/// answered: it opens the window and is never tried behind the refusal.
#[test]
fn a_lost_list_ends_with_its_first_refusal_too() {
    let dir = tempfile::tempdir().unwrap();
    let first = node(dir.path(), 4);
    let operator = register(&first, "operator", Role::Operator, 1).unwrap();
    let unknown = Command::Retire { owner: OwnerId::of_name("nobody") };
    first.stop().unwrap();
    let list = vec![forget(1), unknown, forget(2), forget(3)];
    assert_eq!(operator.ask_all(list), Err(OwnerError::Gone(Gone)));
    let (again, _effects, _) = Node::open(dir.path()).unwrap();
    operator.reconnect(again.client()).unwrap();
    let ops: Vec<OpId> = operator.unanswered().into_iter().map(|(op, _)| op).collect();
    let [first, second, third, fourth] = ops[..] else { panic!("{ops:?}") };
    assert_eq!(operator.send(fourth), Err(OwnerError::Behind { op: fourth, first }));
    assert_eq!(operator.send(first), Ok(Ok(Outcome::Forgotten)));
    assert_eq!(operator.send(third), Err(OwnerError::Behind { op: third, first: second }));
    assert_eq!(operator.send(second), Ok(Err(Rejection::UnknownOwner)));
    assert!(sequences(&operator).is_empty());
    assert_eq!(operator.send(third), Err(OwnerError::NotWaiting { op: third }));
    for number in 5..15 {
        let op = operator.try_begin(&forget(number)).unwrap().expect("the window is open");
        assert_eq!(operator.send(op), Ok(Ok(Outcome::Forgotten)));
    }
    let client = again.client();
    let gauges = client.inspect(|engine, _| engine.catalog().gauges()).unwrap();
    assert_eq!(gauges.conversations, 11, "what stood behind the refusal was never tried");
}

/// The same for a list that the node had decided: the first answers come again, up to the refusal.
#[test]
fn a_decided_list_gives_its_first_answers_again() {
    let dir = tempfile::tempdir().unwrap();
    let first = node(dir.path(), 3);
    let operator = register(&first, "operator", Role::Operator, 1).unwrap();
    let unknown = Command::Retire { owner: OwnerId::of_name("nobody") };
    let client = first.client();
    first.stop().unwrap();
    operator.ask_all(vec![forget(1), unknown, forget(2)]).unwrap_err();
    assert!(operator.reconnect(client).is_err());
    let (again, _effects, _) = Node::open(dir.path()).unwrap();
    // The node decides it, and the answer does not arrive.
    let list = operator.unanswered();
    let (done, refused) = (Ok(Outcome::Forgotten), Err(Rejection::UnknownOwner));
    let reply = again.client().call(Request::List(list.clone())).unwrap();
    assert_eq!(reply, Reply::List(vec![Some(done), Some(refused), None]));
    operator.reconnect(again.client()).unwrap();
    let answers: Vec<_> = list.iter().map(|(op, _)| operator.send(*op)).collect();
    let skipped = Err(OwnerError::NotWaiting { op: list[2].0 });
    assert_eq!(answers, [Ok(done), Ok(refused), skipped]);
    assert!(sequences(&operator).is_empty());
    for number in 3..9 {
        assert_eq!(operator.ask(forget(number)), Ok(Ok(Outcome::Forgotten)));
    }
}

/// Somebody sends again what another thread still asks, and goes on; both get the first answer,
/// although the receipt is forgotten by the time the slower one is asked.
#[test]
fn all_who_wait_for_an_answer_get_the_first_one() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 1);
    let operator = register(&node, "operator", Role::Operator, 1).unwrap();
    let command = Command::Retire { owner: OwnerId::of_name("nobody") };
    let op = operator.try_begin_list(std::slice::from_ref(&command)).unwrap()[0];
    assert_eq!(operator.send(op), Ok(Err(Rejection::UnknownOwner)));
    assert!(sequences(&operator).is_empty(), "what is answered does not wait");
    for number in 1..4 {
        assert_eq!(operator.ask(forget(number)), Ok(Ok(Outcome::Forgotten)));
    }
    let forgotten = node.client().call(Request::Command(op, command.clone()));
    assert_eq!(forgotten, Ok(Reply::Command(Err(Rejection::ReceiptForgotten))));
    assert_eq!(operator.send(op), Ok(Err(Rejection::UnknownOwner)));
    assert_eq!(operator.fetch(op, command), Ok(Err(Rejection::UnknownOwner)));
    assert_eq!(operator.send(op), Err(OwnerError::NotWaiting { op }), "nobody comes for it");
}

/// The same for a list that is under way: its commands are sent by somebody else, who goes on, and
/// what the node says to the list then is not the first answer.
#[test]
fn a_list_gets_the_first_answers_too() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 2);
    let operator = register(&node, "operator", Role::Operator, 1).unwrap();
    let unknown = Command::Retire { owner: OwnerId::of_name("nobody") };
    let (done, refused) = (Ok(Outcome::Forgotten), Err(Rejection::UnknownOwner));
    for (second, answer) in [(forget(1), done), (unknown, refused)] {
        let list = operator.begin_list(&mut [forget(2), second].into_iter()).unwrap();
        for (op, _) in operator.unanswered() {
            operator.send(op).unwrap().ok();
        }
        for number in 3..6 {
            assert_eq!(operator.ask(forget(number)), Ok(done));
        }
        let reply = node.client().call(Request::List(list.clone())).unwrap();
        assert_eq!(reply, Reply::List(vec![Some(Err(Rejection::ReceiptForgotten)), None]));
        assert_eq!(operator.send_list(&list), Ok(vec![Some(done), Some(answer)]));
        assert_eq!(operator.desk().numbered.len(), 0, "nothing is kept that nobody comes for");
    }
}

/// A node that is opened again with a smaller window takes what waited for the larger one.
#[test]
fn a_list_that_waits_fits_the_window_that_comes() {
    let dir = tempfile::tempdir().unwrap();
    let wide = node(dir.path(), 3);
    let other = tempfile::tempdir().unwrap();
    let narrow = node(other.path(), 2);
    let operator = register(&wide, "operator", Role::Operator, 1).unwrap();
    register(&narrow, "operator", Role::Operator, 1).unwrap();
    let first = operator.begin(forget(1)).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| operator.ask_all(vec![forget(2), forget(3), forget(4)]));
        thread::sleep(A_WHILE);
        operator.reconnect(narrow.client()).unwrap();
        operator.send(first).unwrap().unwrap();
        let done = Some(Ok(Outcome::Forgotten));
        assert_eq!(waiting.join().unwrap(), Ok(vec![done, done, done]));
    });
    assert!(sequences(&operator).is_empty());
}

/// Whoever waits for the window hears that the node is gone, and has no number then.
#[test]
fn a_gone_node_ends_the_wait_for_the_window() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 1);
    let client = node.client();
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

/// A node of another job is refused: its refusals are no answers to what the owner asked.
#[test]
fn an_owner_goes_on_only_with_its_own_job() {
    let dir = tempfile::tempdir().unwrap();
    let mine = node(dir.path(), 64);
    let worker = register(&mine, "worker", Role::Worker, 1).unwrap();
    let op = worker.begin(Command::Collect { limit: 1 }).unwrap();
    mine.stop().unwrap();
    assert_eq!(worker.send(op), Err(OwnerError::Gone(Gone)));
    let other = tempfile::tempdir().unwrap();
    let genesis = Genesis {
        namespace: "owner".parse().unwrap(),
        epoch: Epoch::of_name("another job"),
        operator: OwnerId::of_name("operator"),
        policy: Policy::default(),
        limits: Limits::default(),
    };
    let (other, _) = Node::create(other.path(), genesis).unwrap();
    let reconnected = worker.reconnect(other.client());
    let sent = worker.send(op);
    assert_eq!((sequences(&worker), sent), (vec![op.sequence], Err(OwnerError::Gone(Gone))));
    assert_eq!(reconnected, Err(OwnerError::OtherJob));
}
