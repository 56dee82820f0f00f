//! Faults that happened elsewhere, in their whole-system form: real processes and real sockets,
//! each test named after its report's number, as the scripts in `tests/testdata/reports` are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::id::{CheckpointId, ConversationId, PinId, StartId, TurnId};
use pinfold_core::outcome::{Evidence, Outcome, Rejection, TurnKey};
use pinfold_host::file_store::FileStore;
use pinfold_host::owner::{Owner, OwnerError};
use pinfold_host::store::{ObjectStore, Presence, PutOutcome};
use pinfold_http::client::Client;
use serde_json::{Value, json};

use super::crowd::store;
use super::fleet::{AllHeard, WorkerProcess, job, options};
use super::worker::Place;
use super::{Served, asked, eventually, fail, prepare};
use crate::scene::Scene;

/// What an operator sees of an owner.
fn seen(scene: &Scene, url: &str, owner: &Owner) -> Value {
    let id = owner.identity().0.to_string();
    let all = scene.json(&format!("inspect --server {url}"));
    let found = all["owners"].as_array().unwrap().iter().find(|it| it["owner"] == *id);
    found.cloned().unwrap_or(Value::Null)
}

/// B25: a worker that asked for nothing for a while was reaped: its next request says so, it never
/// hangs, and a new registration works. That it was silent ended none of its pins.
#[test]
fn b25_a_reaped_worker_comes_back() {
    let scene = Scene::in_memory();
    let words = "--data job --listen 127.0.0.1:0";
    let served = Served::start(&scene, words);
    let (worker, at) = (served.owner("w"), served.listen());
    let (pin, _) = prepare(&worker, 1);
    served.kill();
    let served = Served::start(&scene, &format!("--data job --listen {at}"));
    assert_eq!(seen(&scene, served.url(), &worker)["pins"], 1, "silence frees nothing");
    fail(&worker, pin);
    let url = served.url().to_string();
    let incarnation = worker.identity().1;
    scene.prints(&format!("fence w {incarnation} --yes --server {url}"));
    let barred = worker.ask(Command::Collect { limit: 1 }).unwrap();
    assert_eq!(barred, Err(Rejection::Fenced));
    scene.prints(&format!("retire w --yes --server {url}"));
    let unknown = worker.ask(Command::Collect { limit: 1 }).unwrap();
    assert_eq!(unknown, Err(Rejection::UnknownOwner));
    let again = served.owner_of("w", "another start");
    assert!(again.identity().1 > incarnation, "{incarnation}");
    let (pin, _) = prepare(&again, 2);
    fail(&again, pin);
}

/// B26: between two words of a worker its coordinator is restarted without its data: nothing of the
/// former job is decided in the new one, and the worker is told, and starts over.
#[test]
fn b26_a_restart_without_data_is_another_job() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --listen 127.0.0.1:0");
    let (worker, at) = (served.owner("w"), served.listen());
    let (pin, _) = prepare(&worker, 1);
    let before = job(served.url());
    served.kill();
    std::fs::rename(scene.path("job"), scene.path("lost")).unwrap();
    let served = Served::start(&scene, &format!("--data job --listen {at}"));
    let now = job(served.url());
    assert!(now.epoch != before.epoch && now.namespace != before.namespace, "{now:?}");
    let release = Command::Settle { pin, shard: None, evidence: Evidence::QuiescedFailure };
    assert!(matches!(worker.ask(release), Err(OwnerError::Gone(_))));
    assert_eq!(worker.reconnect(served.impatient_client()), Err(OwnerError::OtherJob));
    let all = scene.json(&format!("inspect --server {}", served.url()));
    let operator = all["operator"].clone();
    assert_eq!((&all["totals"]["owners"], &all["owners"][0]["owner"]), (&1.into(), &operator));
    assert_eq!((&all["pins"], &all["checkpoints"]), (&json!([]), &json!([])), "{all}");
    drop(served);
    // The data is found again: the worker goes on where it was.
    std::fs::rename(scene.path("job"), scene.path("other")).unwrap();
    std::fs::rename(scene.path("lost"), scene.path("job")).unwrap();
    let served = Served::start(&scene, &format!("--data job --listen {at}"));
    worker.reconnect(served.impatient_client()).unwrap();
    let [(op, _)] = worker.unanswered()[..] else { panic!("it is kept") };
    let evidence = Evidence::QuiescedFailure;
    assert_eq!(worker.send(op), Ok(Ok(Outcome::Settled { evidence })));
}

/// B31: a coordinator that lost its metadata begins another job beside the old objects: it mints no
/// key of theirs, reads none and deletes none; and a store that came back empty is not taken for
/// one from which everything was deleted.
#[test]
fn b31_lost_metadata_gives_no_key_again() {
    let scene = Scene::in_memory();
    let words = "--data job --store objects --listen 127.0.0.1:0 --namespace same";
    let served = Served::start(&scene, words);
    let worker = served.owner("w");
    let (pin, checkpoint) = prepare(&worker, 1);
    let objects = store(&scene);
    let old = place(&served, &objects).objects(checkpoint);
    for (key, body) in &old {
        assert_eq!(objects.put(key, &[body]), PutOutcome::Stored);
    }
    served.kill();
    let lost = scene.path("lost");
    std::fs::rename(scene.path("job"), &lost).unwrap();
    let served = Served::start(&scene, words);
    let other = served.owner("w");
    let (failed, same) = prepare(&other, 1);
    assert_eq!(same, checkpoint, "a position and a generation are no key");
    for ((key, body), (new, _)) in old.iter().zip(place(&served, &objects).objects(same)) {
        assert_ne!(*key, new);
        assert_eq!(objects.put(&new, &[b"new"]), PutOutcome::Stored);
        let mut read = vec![0; body.len()];
        objects.get(key, &mut read);
        assert_eq!(read, *body);
    }
    fail(&other, failed);
    let why = format!("why --server {} {}", served.url(), same.generation);
    eventually(|| scene.prints(&why).contains("it was collected"));
    let mut left = Vec::new();
    objects.list(&mut |key, _| left.push(key.to_owned())).unwrap();
    left.sort();
    assert_eq!(left, old.iter().map(|it| it.0.clone()).collect::<Vec<_>>(), "none but its own");
    drop(served);
    // The first job's data is back, and its store is not.
    std::fs::rename(scene.path("job"), scene.path("second")).unwrap();
    std::fs::rename(&lost, scene.path("job")).unwrap();
    std::fs::rename(scene.path("objects"), scene.path("unmounted")).unwrap();
    std::fs::create_dir(scene.path("objects")).unwrap();
    scene.refuses(&format!("serve {words}"), 2, &["--store objects"]);
    std::fs::remove_dir(scene.path("objects")).unwrap();
    std::fs::rename(scene.path("unmounted"), scene.path("objects")).unwrap();
    let served = Served::start(&scene, words);
    let pins = scene.json(&format!("inspect --server {}", served.url()))["pins"].clone();
    assert_eq!(pins[0]["pin"], pin.to_string(), "{pins}");
}

/// B36, B59, B70: a coordinator that slept takes nobody for dead, and nobody takes its lock while
/// it sleeps: `stalls.rs`. Here it sleeps while workers work, and they go on.
#[test]
fn b36_nobody_is_expired_by_a_coordinator_that_slept() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --store objects --listen 127.0.0.1:0");
    let heard = AllHeard::default();
    let published = || super::crowd::publications(&heard);
    let workers: Vec<_> = (0..2)
        .map(|number| WorkerProcess::start(&scene, served.url(), number, number, &heard))
        .collect();
    eventually(|| published() > 2);
    served.signal("-STOP");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let before = published();
    served.signal("-CONT");
    eventually(|| published() > before + 5);
    workers.into_iter().for_each(WorkerProcess::end);
    let heard = heard.lock().unwrap().clone();
    super::crowd::finish(&scene, &scene.path("job"), &served, &heard);
}

/// B39, B50: a worker's process dies with pins and is started again under its name: the new life is
/// credited with nothing of the old one, cannot end its pins, is not held up by them, and they end
/// by the proof that the process is gone.
#[test]
fn b39_b50_a_worker_restarts_in_place() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --listen 127.0.0.1:0");
    let first = served.owner("w");
    let (pin, checkpoint) = prepare(&first, 1);
    let second = served.owner_of("w", "another start");
    let stale = first.ask(Command::Release { pin }).unwrap();
    let current = second.identity().1;
    assert_eq!(stale, Err(Rejection::StaleIncarnation { current }));
    let evidence = Evidence::QuiescedSuccess;
    for command in [
        Command::Settle { pin, shard: None, evidence },
        Command::Publish { pin, turn: None },
        Command::Release { pin },
    ] {
        assert_eq!(second.ask(command).unwrap(), Err(Rejection::ForeignPin));
    }
    let candidates = vec![checkpoint.endpoint];
    let pinned = second.ask(Command::Pin { candidates, limit: 1 }).unwrap().unwrap();
    assert!(matches!(pinned, Outcome::Pinned(pinned) if pinned.is_empty()), "{pinned:?}");
    let (other, _) = prepare(&second, 2);
    fail(&second, other);
    let url = served.url().to_string();
    assert_eq!(seen(&scene, &url, &second)["pins"], 1);
    scene.prints(&format!("fence w {} --yes --server {url}", first.identity().1));
    eventually(|| seen(&scene, &url, &second)["pins"] == 0);
    let (pin, _) = prepare(&second, 3);
    fail(&second, pin);
}

/// A coordinator that deletes, and a worker with a save under way whose objects are all there.
fn saving(scene: &Scene) -> (Served, Owner, PinId, CheckpointId) {
    let words = "--data job --store objects --listen 127.0.0.1:0";
    let served = Served::start(scene, words);
    let worker = served.owner("w");
    let (pin, checkpoint) = prepare(&worker, 1);
    put(scene, &served, checkpoint);
    (served, worker, pin, checkpoint)
}

fn put(scene: &Scene, served: &Served, checkpoint: CheckpointId) {
    let objects = store(scene);
    for (key, body) in place(served, &objects).objects(checkpoint) {
        assert_eq!(objects.put(&key, &[&body]), PutOutcome::Stored);
    }
}

fn place<'a>(served: &Served, store: &'a FileStore) -> Place<'a> {
    let url = served.url().to_string();
    Place { url, options: options(), store, job: job(served.url()) }
}

/// A save that nothing holds is made and deleted: by then the collector has looked at all.
fn let_it_collect(scene: &Scene, served: &Served) {
    let other = served.owner("other");
    let (pin, checkpoint) = prepare(&other, 1 << 64);
    fail(&other, pin);
    let why = format!("why --server {} {}", served.url(), checkpoint.generation);
    eventually(|| scene.prints(&why).contains("it was collected"));
}

fn publish(owner: &Owner, pin: PinId, turn: TurnKey) {
    let evidence = Evidence::QuiescedSuccess;
    owner.ask(Command::Settle { pin, shard: None, evidence }).unwrap().unwrap();
    owner.ask(Command::Publish { pin, turn: Some(turn) }).unwrap().unwrap();
    owner.ask(Command::Release { pin }).unwrap().unwrap();
}

fn turn() -> TurnKey {
    TurnKey { conversation: ConversationId::of_name("c"), turn: TurnId::from_u128(1) }
}

/// B27: a writer dies between its first object and its last: its position is held until somebody
/// has proof of that; then exactly its keys go, and the next attempt has others.
#[test]
fn b27_a_writer_dies_between_begin_and_end() {
    let scene = Scene::in_memory();
    let (served, worker, _, checkpoint) = saving(&scene);
    let (objects, url) = (store(&scene), served.url().to_string());
    objects.delete(&place(&served, &objects).objects(checkpoint)[1].0);
    let next = served.owner("next");
    let attempt = |number| Command::Prepare(asked(checkpoint.endpoint, number));
    assert_eq!(next.ask(attempt(7)).unwrap(), Err(Rejection::InFlight));
    let_it_collect(&scene, &served);
    let there = objects.size(&place(&served, &objects).objects(checkpoint)[0].0);
    assert!(matches!(there, Presence::Present { .. }), "{there:?}");
    scene.prints(&format!("fence w {} --yes --server {url}", worker.identity().1));
    let why = format!("why --server {url} {}", checkpoint.generation);
    eventually(|| scene.prints(&why).contains("it was collected"));
    let mut left = 0;
    objects.list(&mut |_, _| left += 1).unwrap();
    assert_eq!(left, 0);
    let Ok(Outcome::Prepared { pin, checkpoint: other }) = next.ask(attempt(8)).unwrap() else {
        panic!("the position is free")
    };
    assert!(other.generation > checkpoint.generation, "{other}");
    put(&scene, &served, other);
    publish(&next, pin, turn());
    place(&served, &objects).holds(other).unwrap();
}

/// B28: a load is slower than any lease: what it reads stays until it has ended, although its
/// conversation is forgotten and somebody collects; then it goes.
#[test]
fn b28_a_slow_read_is_protected_by_its_pin() {
    let scene = Scene::in_memory();
    let (served, worker, pin, checkpoint) = saving(&scene);
    publish(&worker, pin, turn());
    let reader = served.owner("reader");
    let candidates = vec![checkpoint.endpoint];
    let op = reader.begin(Command::Pin { candidates, limit: 1 }).unwrap();
    assert!(matches!(reader.send(op), Ok(Ok(Outcome::Pinned(pinned))) if pinned.iter().len() == 1));
    let conversation = turn().conversation;
    scene.prints(&format!("forget {conversation} --yes --server {}", served.url()));
    let_it_collect(&scene, &served);
    let objects = store(&scene);
    place(&served, &objects).holds(checkpoint).unwrap();
    let (pin, evidence) = (PinId { op, place: 0 }, Evidence::QuiescedSuccess);
    reader.ask(Command::Settle { pin, shard: None, evidence }).unwrap().unwrap();
    let why = format!("why --server {} {}", served.url(), checkpoint.generation);
    eventually(|| scene.prints(&why).contains("it was collected"));
    let mut left = 0;
    objects.list(&mut |_, _| left += 1).unwrap();
    assert_eq!(left, 0);
}

/// B59: a save that takes for ever, over restarts of its coordinator, with a collector beside it:
/// nothing grows stale by age, and it is published with every byte.
#[test]
fn b59_a_save_has_no_age() {
    let scene = Scene::in_memory();
    let (served, worker, pin, checkpoint) = saving(&scene);
    let words = format!("--data job --store objects --listen {}", served.listen());
    let_it_collect(&scene, &served);
    served.kill();
    let served = Served::start(&scene, &words);
    let other = served.owner_of("other", "another start");
    let (failed, gone) = prepare(&other, 2);
    fail(&other, failed);
    let why = format!("why --server {} {}", served.url(), gone.generation);
    eventually(|| scene.prints(&why).contains("it was collected"));
    publish(&worker, pin, turn());
    place(&served, &store(&scene)).holds(checkpoint).unwrap();
}

/// B69: a worker that is being barred asks on: whatever is asked after the fence was answered is
/// refused, its old start too, and a new one is somebody else.
#[test]
fn b69_nothing_is_renewed_behind_a_fence() {
    let scene = Scene::in_memory();
    let (served, worker, pin, checkpoint) = saving(&scene);
    let (url, incarnation) = (served.url(), worker.identity().1);
    let over = AtomicBool::new(false);
    let last = thread::scope(|scope| {
        let asks = scope.spawn(|| {
            loop {
                let after = over.load(Ordering::SeqCst);
                let answer = worker.ask(Command::Collect { limit: 1 }).unwrap();
                if after {
                    return answer;
                }
            }
        });
        scene.prints(&format!("fence w {incarnation} --yes --server {url}"));
        over.store(true, Ordering::SeqCst);
        asks.join().unwrap()
    });
    assert_eq!(last, Err(Rejection::Fenced));
    let evidence = Evidence::QuiescedSuccess;
    let settle = Command::Settle { pin, shard: None, evidence };
    assert_eq!(worker.ask(settle).unwrap(), Err(Rejection::Fenced));
    let client = Client::connect(url, options()).unwrap();
    let same = Owner::register(client, "w", Role::Worker, StartId::of_name("w"));
    assert!(matches!(same, Err(OwnerError::Refused(_))), "{same:?}");
    let again = served.owner_of("w", "another start");
    assert!(again.identity().1 > incarnation);
    let why = format!("why --server {url} {}", checkpoint.generation);
    eventually(|| scene.prints(&why).contains("it was collected"));
}

/// B72: a worker publishes, dies and is barred: what it published stays as long as its conversation
/// or anybody's pin refers to it.
#[test]
fn b72_an_owner_dies_and_its_objects_stay() {
    let scene = Scene::in_memory();
    let (served, worker, pin, checkpoint) = saving(&scene);
    publish(&worker, pin, turn());
    let at = format!("--yes --server {}", served.url());
    scene.prints(&format!("fence w {} {at}", worker.identity().1));
    scene.prints(&format!("retire w {at}"));
    let_it_collect(&scene, &served);
    let (objects, reader) = (store(&scene), served.owner("reader"));
    place(&served, &objects).holds(checkpoint).unwrap();
    let pin = Command::Pin { candidates: vec![checkpoint.endpoint], limit: 1 };
    let pinned = reader.ask(pin).unwrap().unwrap();
    let Outcome::Pinned(pinned) = pinned else { panic!("{pinned:?}") };
    assert!(pinned.iter().map(|it| it.checkpoint).eq([checkpoint]), "{pinned:?}");
}
