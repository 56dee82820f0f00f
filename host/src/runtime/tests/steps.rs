//! Transfers side by side, their bound, their cancelling, and what goes wrong on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::id::{CheckpointId, ShardIndex};
use pinfold_core::manifest::ObjectName;
use pinfold_core::outcome::Rejection;
use pinfold_core::transfer::{
    Candidate, Ended, Fault, Miss, Publication, Published, SaveRequest, Transfer,
};

use super::rig::*;
use crate::runtime::{
    Finished, Freight, Placed, Runtime, RuntimeError, RuntimeOptions, Trouble, Waited,
};

fn saved(finished: &Finished) -> CheckpointId {
    match finished.ended {
        Ended::Saved { checkpoint, published: Published::Here { .. } } => checkpoint,
        other => panic!("{other:?}, {:?}", finished.troubles),
    }
}

/// Saves a position and waits for it.
pub(super) fn keep(runtime: &Runtime, conversation: u8, blocks: u8) -> CheckpointId {
    let manifest = manifest(conversation, blocks);
    saved(&runtime.start(save(&manifest, conversation), Hold::shared(&manifest)).wait().unwrap())
}

fn panics(troubles: &[Trouble]) -> usize {
    troubles.iter().filter(|trouble| trouble.panicked).count()
}

/// Twelve conversations over five movers, four at a time: each restores its own bytes, no private
/// key is put twice, and nothing is held afterwards.
#[test]
fn transfers_side_by_side_restore_their_own_bytes() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(5, 4);
    let manifests: Vec<_> = (0..12).map(|conversation| manifest(conversation, 9)).collect();
    let start = |number: usize| {
        let manifest = &manifests[number];
        runtime.start(save(manifest, u8::try_from(number).unwrap()), Hold::shared(manifest))
    };
    let saves: Vec<_> = (0..12).map(start).collect();
    for save in saves {
        let checkpoint = saved(&save.wait().unwrap());
        assert_eq!(rig.blockers(checkpoint), ["retained"]);
    }
    let loads: Vec<_> = manifests
        .iter()
        .map(|manifest| {
            let hold = Hold::shared(manifest);
            (runtime.start(load(manifest), hold.clone()), hold)
        })
        .collect();
    for (load, hold) in loads {
        let finished = load.wait().unwrap();
        assert!(matches!(finished.ended, Ended::Restored { .. }), "{finished:?}");
        assert!(hold.is_restored());
        assert_eq!(finished.troubles, []);
    }
    rig.store.check_puts();
    assert_eq!(rig.pins(), 0);
    rig.check();
    assert_eq!(runtime.shutdown().unsettled.len(), 0);
}

/// The objects of one transfer move at the same time, as many as there are movers.
#[test]
fn one_transfer_uses_every_mover_and_no_more() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(3, 1);
    rig.store.rule(|verb, _| if verb == "share" { Mood::Block } else { Mood::Fine });
    let manifest = manifest(1, 8);
    let handle = runtime.start(save(&manifest, 1), Hold::shared(&manifest));
    rig.store.await_blocked(3);
    assert!(handle.try_wait().is_none());
    rig.store.open_gate();
    saved(&handle.wait().unwrap());
}

/// Back-pressure: with two under way, a third is given back or waits, and asks nothing.
#[test]
fn no_more_transfers_are_admitted_than_may_be() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(8, 2);
    rig.store.rule(|verb, _| if verb == "put" { Mood::Block } else { Mood::Fine });
    let first: Vec<_> = (0..2)
        .map(|number| {
            let manifest = manifest(number, 1);
            runtime.start(save(&manifest, number), Hold::shared(&manifest))
        })
        .collect();
    rig.store.await_blocked(2);
    let third = manifest(2, 1);
    let full = runtime.try_start(save(&third, 2), Hold::shared(&third)).unwrap_err();
    thread::scope(|scope| {
        let (started, told) = channel();
        let runtime = &runtime;
        scope.spawn(move || started.send(runtime.start(full.transfer, full.freight)).unwrap());
        assert_eq!(told.recv_timeout(A_WHILE).unwrap_err(), RecvTimeoutError::Timeout);
        assert_eq!(rig.pins(), 2);
        rig.store.open_gate();
        saved(&told.recv().unwrap().wait().unwrap());
    });
    for handle in first {
        saved(&handle.wait().unwrap());
    }
}

/// A cancelled save lets go only when its put has retired, and leaves what may be collected.
#[test]
fn a_cancelled_save_settles_and_becomes_collectable() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(2, 2);
    rig.store.rule(|verb, _| if verb == "put" { Mood::Block } else { Mood::Fine });
    let manifest = manifest(1, 2);
    let handle = runtime.start(save(&manifest, 1), Hold::shared(&manifest));
    rig.store.await_blocked(1);
    handle.cancel();
    thread::sleep(A_WHILE);
    assert!(handle.try_wait().is_none(), "the source may still be read");
    assert_eq!(rig.pins(), 1);
    rig.store.open_gate();
    let ended = handle.wait().unwrap().ended;
    let Ended::Cancelled { checkpoint: Some(checkpoint) } = ended else { panic!("{ended:?}") };
    assert_eq!(rig.blockers(checkpoint), ["collectable"]);
    assert_eq!(rig.store.calls("put", "/0000/00000000"), 0, "the manifest is the last put");
    assert_eq!(handle.wait().unwrap().ended, ended, "the end is told as often as it is asked");
}

/// A transfer without a handle goes on to its end.
#[test]
fn a_dropped_handle_loses_nothing() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(2, 1);
    let first = manifest(1, 2);
    drop(runtime.start(save(&first, 1), Hold::shared(&first)));
    // There is room for this one only when the first has ended.
    keep(&runtime, 2, 2);
    let hold = Hold::shared(&first);
    let ended = runtime.start(load(&first), hold.clone()).wait().unwrap().ended;
    let Ended::Restored { checkpoint } = ended else { panic!("{ended:?}") };
    assert!(hold.is_restored());
    assert_eq!(rig.blockers(checkpoint), ["retained"]);
}

/// A store that panics or does not know fails the save, and nothing is lost with it: the mover
/// lives, the checkpoint may be collected.
#[test]
fn a_store_that_panics_or_does_not_know_fails_a_save() {
    for verb in ["put", "share", "size"] {
        for mood in [Mood::Panic, Mood::Unknown] {
            let rig = Rig::new(64);
            let runtime = rig.runtime(1, 1);
            rig.store.rule(move |called, _| if called == verb { mood } else { Mood::Fine });
            let manifest = manifest(1, 2);
            let handle = runtime.start(save(&manifest, 1), Hold::shared(&manifest));
            let finished = handle.wait().unwrap();
            let Ended::Failed { checkpoint, why, .. } = finished.ended else {
                panic!("{finished:?}")
            };
            assert_eq!(why, Fault::Unknown);
            assert_eq!(panics(&finished.troubles), usize::from(mood == Mood::Panic));
            assert_eq!(finished.troubles.len(), 1);
            assert_eq!(rig.blockers(checkpoint), ["collectable"]);
            rig.store.rule(|_, _| Mood::Fine);
            keep(&runtime, 2, 2);
        }
    }
}

/// The ending of the key of a state.
const STATE: &str = "/00000001";

fn bad_gets(rig: &Rig, mood: Mood) {
    rig.store.rule(move |verb, _| if verb == "get" { mood } else { Mood::Fine });
}

/// A load that a store fails adopts nothing; only what is known to be lost is called lost.
#[test]
fn a_store_that_fails_a_load_makes_a_miss() {
    type Spoil = fn(&Rig);
    let spoils: [(Spoil, Fault, bool); 5] = [
        (|rig| bad_gets(rig, Mood::Panic), Fault::Unknown, false),
        (|rig| bad_gets(rig, Mood::Unknown), Fault::Unknown, false),
        (|rig| rig.store.spoil(STATE, |_| false), Fault::Absent, true),
        (
            |rig| rig.store.spoil(STATE, |object| object.pop().is_some()),
            Fault::WrongSize { bytes: 1207 },
            true,
        ),
        (
            |rig| {
                rig.store.spoil(STATE, |object| {
                    object[7] ^= 1;
                    true
                });
            },
            Fault::WrongBytes,
            true,
        ),
    ];
    for (spoil, fault, is_lost) in spoils {
        let rig = Rig::new(64);
        let runtime = rig.runtime(1, 1);
        let checkpoint = keep(&runtime, 1, 2);
        spoil(&rig);
        let manifest = manifest(1, 2);
        let hold = Hold::shared(&manifest);
        let finished = runtime.start(load(&manifest), hold.clone()).wait().unwrap();
        let Ended::Missed(Miss::Object { why, .. }) = finished.ended else {
            panic!("{fault:?}: {finished:?}")
        };
        assert_eq!(why, fault);
        assert!(hold.is_untouched(), "{fault:?}");
        assert_eq!(rig.blockers(checkpoint).contains(&"lost"), is_lost, "{fault:?}");
        assert_eq!(rig.pins(), 0);
    }
}

/// A freight that panics or refuses fails its own transfer, and nobody else's.
#[test]
fn a_freight_that_fails_makes_a_miss() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(1, 1);
    let checkpoint = keep(&runtime, 1, 2);
    let manifest = manifest(1, 2);
    let later = || {
        let candidate = Candidate::described_later(manifest.endpoint().id());
        Transfer::load(load_request(candidate)).unwrap()
    };
    let holds: [(Hold, usize); 5] = [
        (Hold::new(&manifest).placing(|_| panic!("a freight's bug")), 1),
        (Hold::new(&manifest).placing(|_| Placed::Failed), 0),
        (Hold::new(&manifest).describing(|_| panic!("a planner's bug")), 1),
        (Hold::new(&manifest).describing(|_| None), 0),
        (Hold::new(&manifest).describing(|_| Some(super::rig::manifest(1, 1))), 0),
    ];
    for (hold, expected) in holds {
        let hold = Arc::new(hold);
        let finished = runtime.start(later(), hold.clone()).wait().unwrap();
        assert!(matches!(finished.ended, Ended::Missed(_)), "{finished:?}");
        assert!(hold.is_untouched());
        assert_eq!(panics(&finished.troubles), expected);
        assert_eq!(rig.blockers(checkpoint), ["retained"]);
    }
    let hold = Hold::shared(&manifest);
    runtime.start(later(), hold.clone()).wait().unwrap();
    assert!(hold.is_restored());
}

/// What the freight cannot give in its planned size is never put.
#[test]
fn a_payload_of_another_size_is_never_put() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(1, 1);
    let handle = runtime.start(save(&manifest(1, 1), 1), Hold::shared(&other_geometry(1, 1)));
    let finished = handle.wait().unwrap();
    let Ended::Failed { checkpoint, why, .. } = finished.ended else { panic!("{finished:?}") };
    assert_eq!((why, rig.blockers(checkpoint)), (Fault::NotStarted, vec!["collectable"]));
    assert_eq!(rig.store.calls("put", ""), 0);
    assert!(finished.troubles[0].why.as_str().contains("the freight gave"));
}

/// A rank that saves one shard of two.
struct Rank {
    hold: Hold,
    agrees: bool,
    waits: AtomicU32,
}

impl Rank {
    fn new(agrees: bool) -> Arc<Self> {
        let hold = Hold::new(&two_shards(1, 2));
        Arc::new(Self { hold, agrees, waits: AtomicU32::new(0) })
    }
}

impl Freight for Rank {
    fn parts(&self, object: ObjectName) -> Option<Vec<std::borrow::Cow<'_, [u8]>>> {
        self.hold.parts(object)
    }

    fn place(&self, object: ObjectName, payload: &[u8]) -> Placed {
        self.hold.place(object, payload)
    }

    fn adopt(&self, checkpoint: CheckpointId) {
        self.hold.adopt(checkpoint);
    }

    fn agree(&self, _: CheckpointId) -> bool {
        self.agrees
    }

    fn waited(&self) -> Waited {
        self.waits.fetch_add(1, Ordering::Relaxed);
        Waited::AskAgain
    }
}

fn rank(shard: u16, publication: Publication) -> Transfer {
    let request = save_request(&two_shards(1, 2), 1);
    let shards = vec![ShardIndex(shard)];
    Transfer::save(SaveRequest { shards, publication, has_peers: true, ..request }).unwrap()
}

/// A rank that publishes waits for the others with growing pauses, and without holding a mover.
#[test]
fn a_rank_that_waits_asks_again_after_growing_pauses() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(1, 3);
    let first = Rank::new(true);
    let began = Instant::now();
    let waiting = runtime.start(rank(0, Publication::Turn(turn(1))), first.clone());
    while first.waits.load(Ordering::Relaxed) < 4 {
        thread::sleep(Duration::from_millis(1));
    }
    // After 10, 30, 70, 150 milliseconds, and so on.
    let waits = first.waits.load(Ordering::Relaxed);
    assert!(began.elapsed() >= Duration::from_millis(10 * ((1 << waits) - 1)));
    let other = runtime.start(rank(1, Publication::Elsewhere), Rank::new(true));
    let ended = other.wait().unwrap().ended;
    assert!(matches!(ended, Ended::Saved { published: Published::Elsewhere, .. }), "{ended:?}");
    let checkpoint = saved(&waiting.wait().unwrap());
    assert_eq!(rig.blockers(checkpoint), ["retained"]);
}

/// A cancel ends a pause at once.
#[test]
fn a_cancelled_rank_waits_no_more() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(1, 1);
    let first = Rank::new(true);
    let waiting = runtime.start(rank(0, Publication::Turn(turn(1))), first.clone());
    while first.waits.load(Ordering::Relaxed) < 2 {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(waiting.try_wait().is_none());
    waiting.cancel();
    // It may be asking just then, and take the refusal for its answer.
    let ended = waiting.wait().unwrap().ended;
    let Ended::Saved { checkpoint, published } = ended else { panic!("{ended:?}") };
    let expected = [Published::Withheld, Published::Refused(Rejection::NotComplete)];
    assert!(expected.contains(&published), "{published:?}");
    assert_eq!((rig.blockers(checkpoint).contains(&"retained"), rig.pins()), (false, 0));
}

/// Ranks that do not agree move nothing.
#[test]
fn ranks_that_disagree_put_nothing() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(1, 1);
    let handle = runtime.start(rank(0, Publication::Elsewhere), Rank::new(false));
    let ended = handle.wait().unwrap().ended;
    let Ended::Disagreed { checkpoint } = ended else { panic!("{ended:?}") };
    assert_eq!(rig.blockers(checkpoint), ["collectable"]);
    assert_eq!(rig.store.calls("", ""), 0);
}

/// A load whose manifest is another one says in which fields, from the stored one.
#[test]
fn a_manifest_that_differs_is_explained() {
    let rig = Rig::new(64);
    let runtime = rig.runtime(1, 1);
    let checkpoint = keep(&runtime, 1, 2);
    let other = other_geometry(1, 2);
    let mut request = load_request(Candidate::planned(other.clone()));
    request.explains = true;
    let handle = runtime.start(Transfer::load(request).unwrap(), Hold::shared(&other));
    let finished = handle.wait().unwrap();
    assert_eq!(finished.ended, Ended::Missed(Miss::ManifestMismatch { checkpoint }));
    assert!(!finished.differences.is_empty());
    assert_eq!(rig.blockers(checkpoint), ["retained"]);
}

#[test]
fn a_runtime_needs_a_thread_and_room() {
    let rig = Rig::new(64);
    let job = |threads, transfers| {
        let job = rig.look(|engine| engine.catalog().job().clone());
        let options = RuntimeOptions { threads, transfers };
        Runtime::new(rig.owner.clone(), rig.store.clone(), job, options).unwrap_err()
    };
    assert!(matches!(job(0, 1), RuntimeError::NoThread));
    assert!(matches!(job(1, 0), RuntimeError::NoTransfer));
}
