//! Memory in doubt: its pin stays until proof, and no proof is lost on its way.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pinfold_core::id::{CheckpointId, ShardIndex};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::transfer::Ended;

use super::rig::*;
use super::steps::keep;
use crate::runtime::{Handle, Placed, Runtime, Unfinished};

/// A load of this checkpoint that is in doubt about everything it placed.
fn doubtful_load(rig: &Rig, runtime: &Runtime, checkpoint: CheckpointId) -> (Handle, Arc<Hold>) {
    let manifest = manifest(1, 1);
    let hold = Arc::new(Hold::new(&manifest).placing(|_| Placed::InDoubt));
    let handle = runtime.start(load(&manifest), hold.clone());
    while !rig.blockers(checkpoint).contains(&"in doubt") {
        thread::sleep(Duration::from_millis(1));
    }
    (handle, hold)
}

/// The names of all that a position has.
fn objects(manifest: &Manifest) -> Vec<ObjectName> {
    let shared = manifest.shared_objects().map(|object| ObjectName::Shared(object.name));
    let private = manifest.private_objects(ShardIndex(0));
    shared.chain(private.map(|object| ObjectName::Private(object.id))).collect()
}

/// Memory in doubt keeps its pin, also over a shutdown, until somebody brings the proof.
#[test]
fn memory_in_doubt_keeps_its_pin_until_proof() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(2, 2);
    let checkpoint = keep(&runtime, 1, 1);
    let (handle, hold) = doubtful_load(&rig, &runtime, checkpoint);
    assert!(handle.try_wait().is_none());
    assert!(handle.wait_or_doubt().unwrap().is_none());
    let [unsettled] = runtime.shutdown().unsettled.try_into().unwrap();
    assert!(unsettled.waiting().is_empty());
    assert!(!unsettled.transfer().may_reuse_destination());
    let next = rig.runtime(1, 1);
    let handle = next.resume(unsettled).unwrap();
    thread::sleep(A_WHILE);
    assert!(handle.try_wait().is_none());
    assert!(handle.wait_or_doubt().unwrap().is_none());
    objects(&manifest(1, 1)).into_iter().for_each(|object| handle.retired(object));
    assert!(matches!(end_of(&handle), Ended::Missed(_)));
    assert!(handle.wait_or_doubt().unwrap().is_some());
    assert!(hold.is_untouched());
    assert_eq!((rig.blockers(checkpoint), rig.pins()), (vec!["retained"], 0));
}

/// Who brings a proof whose transfer was handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bringer {
    /// The first handle, before the transfer is resumed.
    HandleBefore,
    /// The first handle, after it.
    HandleAfter,
    /// Whoever holds the transfer.
    Holder,
}

/// No proof is dropped, whoever brings it and wherever its transfer is; one that comes to a
/// transfer at its end changes nothing.
#[test]
fn a_proof_reaches_a_transfer_that_was_handed_over() {
    use Bringer::{HandleAfter, HandleBefore, Holder};
    for (bringer, is_dropped) in
        [HandleBefore, HandleAfter, Holder].into_iter().flat_map(|it| [(it, false), (it, true)])
    {
        let rig = Rig::new(64);
        let runtime = rig.runtime(2, 2);
        let checkpoint = keep(&runtime, 1, 1);
        let (first, hold) = doubtful_load(&rig, &runtime, checkpoint);
        let mut unsettled = if is_dropped {
            drop(runtime);
            let Unfinished::Unsettled(unsettled) = first.wait().unwrap_err() else { panic!() };
            *unsettled
        } else {
            let [unsettled] = runtime.shutdown().unsettled.try_into().unwrap();
            unsettled
        };
        let proofs = objects(&manifest(1, 1));
        match bringer {
            HandleBefore => proofs.iter().for_each(|object| first.retired(*object)),
            HandleAfter => {}
            Holder => {
                proofs.iter().for_each(|object| unsettled.retired(*object));
                assert!(unsettled.transfer().may_reuse_destination());
            }
        }
        let next = rig.runtime(1, 1);
        let handle = next.resume(unsettled).unwrap();
        if bringer == HandleAfter {
            thread::sleep(A_WHILE);
            assert!(handle.try_wait().is_none());
            proofs.iter().for_each(|object| first.retired(*object));
        }
        assert!(matches!(end_of(&handle), Ended::Missed(_)), "{bringer:?}");
        first.retired(proofs[0]);
        assert!(hold.is_untouched());
        assert_eq!((rig.blockers(checkpoint), rig.pins()), (vec!["retained"], 0));
        assert_eq!(next.shutdown().unsettled.len(), 0);
    }
}

/// A shutdown and proofs at the same time: whichever comes first, every proof counts.
#[test]
fn a_proof_that_meets_a_shutdown_is_not_lost() {
    for delay in 0..20 {
        let rig = Rig::new(64);
        let runtime = rig.runtime(2, 2);
        let checkpoint = keep(&runtime, 1, 1);
        let (handle, _hold) = doubtful_load(&rig, &runtime, checkpoint);
        thread::scope(|scope| {
            let handle = &handle;
            scope.spawn(move || {
                thread::sleep(Duration::from_micros(delay * 20));
                objects(&manifest(1, 1)).into_iter().for_each(|object| handle.retired(object));
            });
            let next = rig.runtime(1, 1);
            for unsettled in runtime.shutdown().unsettled {
                end_of(&next.resume(unsettled).unwrap());
            }
        });
        assert_eq!((rig.blockers(checkpoint), rig.pins()), (vec!["retained"], 0));
    }
}
