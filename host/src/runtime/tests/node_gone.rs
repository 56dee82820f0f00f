//! The node goes while transfers are under way: no evidence is lost, and none is given twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pinfold_core::catalog::Command;
use pinfold_core::engine::{Reply, Request};
use pinfold_core::outcome::Outcome;
use pinfold_core::transfer::{Ended, Published};

use super::rig::*;
use crate::runtime::{Handle, OtherOwner, Runtime, Unfinished};

/// A save whose puts of private objects wait at the gate.
fn blocked_save(rig: &Rig, runtime: &Runtime) -> Handle {
    rig.store.rule(|verb, _| if verb == "put" { Mood::Block } else { Mood::Fine });
    let manifest = manifest(1, 2);
    let handle = runtime.start(save(&manifest, 1), Hold::shared(&manifest));
    rig.store.await_blocked(1);
    handle
}

/// The node stops under the puts; what they came to is to be told.
fn lose_node(rig: &mut Rig, handle: &Handle) {
    rig.stop_node();
    rig.store.open_gate();
    assert!(matches!(handle.wait().unwrap_err(), Unfinished::NodeGone));
}

/// How many records an undisturbed save adds.
fn records_of_a_save() -> u64 {
    let rig = Rig::new(64);
    let before = rig.records();
    let manifest = manifest(1, 2);
    rig.runtime(2, 1).start(save(&manifest, 1), Hold::shared(&manifest)).wait().unwrap();
    rig.records() - before
}

/// Evidence arrives once the node is there again, under the operation it had.
#[test]
fn evidence_arrives_exactly_once_after_a_reconnect() {
    let mut rig = Rig::new(64);
    let runtime = rig.runtime(2, 1);
    let before = rig.records();
    let handle = blocked_save(&rig, &runtime);
    lose_node(&mut rig, &handle);
    let waiting: Vec<_> = rig.owner.unanswered().into_iter().map(|(_, command)| command).collect();
    let [Command::Settle { .. }, Command::Publish { .. }, Command::Release { .. }] = waiting[..]
    else {
        panic!("one list: {waiting:?}")
    };
    runtime.reconnect(rig.open_node()).unwrap();
    let ended = handle.wait().unwrap().ended;
    let Ended::Saved { checkpoint, published: Published::Here { .. } } = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(rig.blockers(checkpoint), ["retained"]);
    assert_eq!((rig.owner.unanswered().len(), rig.pins()), (0, 0));
    // The recovery is a record of its own.
    assert_eq!(rig.records() - before, records_of_a_save() + 1);
    rig.store.check_puts();
}

/// The same when the node had decided, and only its answer was lost.
#[test]
fn a_decision_whose_answer_was_lost_is_taken_once() {
    let mut rig = Rig::new(64);
    let runtime = rig.runtime(2, 1);
    let before = rig.records();
    let handle = blocked_save(&rig, &runtime);
    lose_node(&mut rig, &handle);
    let [(op, command), _, _] = rig.owner.unanswered().try_into().unwrap();
    assert!(matches!(command, Command::Settle { .. }), "{command:?}");
    let decided = rig.open_node().call(Request::Command(op, command)).unwrap();
    assert!(matches!(decided, Reply::Command(Ok(Outcome::Settled { .. }))));
    rig.stop_node();
    runtime.reconnect(rig.open_node()).unwrap();
    let ended = handle.wait().unwrap().ended;
    assert!(matches!(ended, Ended::Saved { published: Published::Here { .. }, .. }), "{ended:?}");
    assert_eq!(rig.records() - before, records_of_a_save() + 2);
    rig.check();
}

/// Somebody else sends again what is unanswered, and asks so much more that the receipts are
/// forgotten: the transfer gets the first answer nevertheless, and nothing is asked twice.
#[test]
fn a_command_that_somebody_else_resends_answers_its_transfer() {
    for more in [0, 5] {
        let mut rig = Rig::new(2);
        let runtime = rig.runtime(2, 1);
        let before = rig.records();
        let handle = blocked_save(&rig, &runtime);
        lose_node(&mut rig, &handle);
        let client = rig.open_node();
        rig.owner.reconnect(client.clone()).unwrap();
        // As far as the window lets them in one list.
        let [(op, _), (next, _)] = rig.owner.unanswered().try_into().unwrap();
        assert!(matches!(rig.owner.send(op), Ok(Ok(Outcome::Settled { .. }))));
        if more > 0 {
            assert!(matches!(rig.owner.send(next), Ok(Ok(Outcome::Published { .. }))));
        }
        for _ in 0..more {
            rig.owner.ask(Command::Collect { limit: 1 }).unwrap().unwrap();
        }
        runtime.reconnect(client).unwrap();
        let ended = end_of(&handle);
        let Ended::Saved { checkpoint, published: Published::Here { .. } } = ended else {
            panic!("{ended:?}")
        };
        assert_eq!((rig.blockers(checkpoint), rig.pins()), (vec!["retained"], 0));
        assert_eq!(rig.owner.unanswered(), []);
        assert_eq!(rig.records() - before, records_of_a_save() + 1 + more);
        rig.check();
    }
}

/// The same while the transfer is with no runtime: the one that resumes it gets the answer.
#[test]
fn a_command_that_is_resent_after_a_shutdown_answers_its_transfer() {
    let mut rig = Rig::new(1);
    let runtime = rig.runtime(2, 1);
    let handle = blocked_save(&rig, &runtime);
    lose_node(&mut rig, &handle);
    let [unsettled] = runtime.shutdown().unsettled.try_into().unwrap();
    let client = rig.open_node();
    rig.owner.reconnect(client).unwrap();
    for (op, _) in rig.owner.unanswered() {
        rig.owner.send(op).unwrap().unwrap();
    }
    rig.owner.ask(Command::Collect { limit: 1 }).unwrap().unwrap();
    rig.owner.ask(Command::Collect { limit: 1 }).unwrap().unwrap();
    let next = rig.runtime(1, 1);
    let ended = end_of(&next.resume(unsettled).unwrap());
    assert!(matches!(ended, Ended::Saved { published: Published::Withheld, .. }), "{ended:?}");
    assert_eq!((rig.owner.unanswered().len(), rig.pins()), (0, 0));
}

/// A node that goes twice, and a client of the node that is gone already.
#[test]
fn a_reconnect_to_a_gone_node_changes_nothing() {
    let mut rig = Rig::new(64);
    let runtime = rig.runtime(2, 1);
    let handle = blocked_save(&rig, &runtime);
    lose_node(&mut rig, &handle);
    let client = rig.open_node();
    rig.stop_node();
    runtime.reconnect(client).unwrap_err();
    assert!(matches!(handle.wait().unwrap_err(), Unfinished::NodeGone));
    runtime.reconnect(rig.open_node()).unwrap();
    assert!(matches!(handle.wait().unwrap().ended, Ended::Saved { .. }));
}

/// A shutdown without a node gives back what cannot be told; a second runtime tells it.
#[test]
fn a_second_runtime_finishes_what_a_shutdown_gave_back() {
    let mut rig = Rig::new(64);
    let runtime = rig.runtime(2, 1);
    let handle = blocked_save(&rig, &runtime);
    lose_node(&mut rig, &handle);
    let [unsettled] = runtime.shutdown().unsettled.try_into().unwrap();
    assert!(matches!(handle.wait().unwrap_err(), Unfinished::HandedOver));
    let waiting: Vec<_> = unsettled.waiting().iter().filter_map(|one| one.op).collect();
    let unanswered: Vec<_> = rig.owner.unanswered().into_iter().map(|(op, _)| op).collect();
    assert_eq!((waiting.len(), waiting), (unanswered.len(), unanswered));
    let checkpoint = unsettled.transfer().checkpoint().unwrap();

    let stranger = Rig::new(64);
    let other = stranger.runtime(1, 1);
    let OtherOwner(unsettled) = other.resume(unsettled).unwrap_err();

    let next = rig.runtime(1, 1);
    let handle = next.resume(*unsettled).unwrap();
    assert!(matches!(handle.wait().unwrap_err(), Unfinished::NodeGone));
    next.reconnect(rig.open_node()).unwrap();
    // All arrived, and settle, publish and release were asked in one list, before the shutdown.
    let Ended::Saved { checkpoint: saved, published: Published::Here { .. } } =
        handle.wait().unwrap().ended
    else {
        panic!()
    };
    assert_eq!(saved, checkpoint);
    assert_eq!(rig.owner.unanswered(), []);
    assert_eq!((rig.blockers(checkpoint), rig.pins()), (vec!["retained"], 0));
    assert_eq!(next.shutdown().unsettled.len(), 0);
}

/// A shutdown whose node is there gives nothing back: all is cancelled, retired and told.
#[test]
fn a_shutdown_waits_for_moves_and_delivers_their_evidence() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(3, 2);
    let handle = blocked_save(&rig, &runtime);
    let store = rig.store.clone();
    let opening = thread::spawn(move || {
        thread::sleep(A_WHILE);
        store.open_gate();
    });
    assert_eq!(runtime.shutdown().unsettled.len(), 0);
    opening.join().unwrap();
    let ended = handle.wait().unwrap().ended;
    let Ended::Cancelled { checkpoint: Some(checkpoint) } = ended else { panic!("{ended:?}") };
    assert_eq!((rig.blockers(checkpoint), rig.pins()), (vec!["collectable"], 0));
}

/// Dropping a runtime without a node does not hang, and hands its transfers to their handles.
#[test]
fn a_dropped_runtime_hands_its_transfers_to_their_handles() {
    let mut rig = Rig::new(64);
    let runtime = rig.runtime(2, 1);
    let handle = blocked_save(&rig, &runtime);
    lose_node(&mut rig, &handle);
    drop(runtime);
    let Unfinished::Unsettled(unsettled) = handle.wait().unwrap_err() else { panic!() };
    assert!(matches!(handle.wait().unwrap_err(), Unfinished::HandedOver), "it goes on once");
    let next = rig.runtime(1, 1);
    let handle = next.resume(*unsettled).unwrap();
    next.reconnect(rig.open_node()).unwrap();
    assert!(matches!(handle.wait().unwrap().ended, Ended::Saved { .. }));
    assert_eq!(rig.pins(), 0);
}

/// A transfer that was started without a node asks when there is one.
#[test]
fn a_transfer_may_be_started_while_the_node_is_gone() {
    let mut rig = Rig::new(64);
    let runtime = rig.runtime(1, 2);
    rig.stop_node();
    let starts = [1, 2].map(|number| {
        let manifest = manifest(number, 1);
        runtime.start(save(&manifest, number), Hold::shared(&manifest))
    });
    for handle in &starts {
        assert!(matches!(handle.wait().unwrap_err(), Unfinished::NodeGone));
    }
    runtime.reconnect(rig.open_node()).unwrap();
    for handle in starts {
        let ended = handle.wait().unwrap().ended;
        assert!(matches!(ended, Ended::Saved { published: Published::Here { .. }, .. }));
    }
}

/// Protocol 6: many movers never number a command while one W below it is unanswered, however small
/// W is; no answer is forgotten, and every transfer ends.
#[test]
fn many_movers_keep_a_small_window() {
    for unanswered in [1, 2] {
        let rig = Rig::new(unanswered);
        let runtime = rig.runtime(8, 8);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let waiting = rig.owner.unanswered();
                    let ends = waiting.first().zip(waiting.last());
                    let span = ends.map_or(0, |(first, last)| last.0.sequence - first.0.sequence);
                    assert!(span < u64::from(unanswered), "{waiting:?}");
                }
            });
            let handles = (0..16).map(|number| {
                let manifest = manifest(number, 1);
                runtime.start(save(&manifest, number), Hold::shared(&manifest))
            });
            let handles: Vec<_> = handles.collect();
            let ends: Vec<_> = handles.iter().map(Handle::wait).collect();
            done.store(true, Ordering::Relaxed);
            for end in ends {
                let ended = end.unwrap().ended;
                assert!(matches!(ended, Ended::Saved { published: Published::Here { .. }, .. }));
            }
        });
        assert_eq!((rig.owner.unanswered().len(), rig.pins()), (0, 0));
        rig.check();
    }
}

/// A command of somebody else's that is never sent closes the window; a shutdown does not wait for
/// it, and what has no number yet is given back too.
#[test]
fn a_shutdown_does_not_wait_for_a_closed_window() {
    let rig = Rig::new(1);
    let runtime = rig.runtime(1, 1);
    let first = rig.owner.begin(Command::Collect { limit: 1 }).unwrap();
    let manifest = manifest(1, 1);
    let _handle = runtime.start(save(&manifest, 1), Hold::shared(&manifest));
    thread::sleep(A_WHILE);
    let [unsettled] = runtime.shutdown().unsettled.try_into().unwrap();
    assert_eq!(unsettled.waiting()[0].op, None);
    rig.owner.send(first).unwrap().unwrap();
    let next = rig.runtime(1, 1);
    let ended = next.resume(unsettled).unwrap().wait().unwrap().ended;
    assert!(matches!(ended, Ended::Cancelled { checkpoint: Some(_) }), "{ended:?}");
    assert_eq!(rig.pins(), 0);
}
