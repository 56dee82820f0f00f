//! A worker's saves and loads through real sockets, judged by the store, the memory and the
//! catalog's views.

use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pinfold_core::catalog::Role;
use pinfold_core::id::{CheckpointId, ObjectId, ShardIndex};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::outcome::{Loss, Rejection};
use pinfold_core::policy::Policy;
use pinfold_host::collector::Collector;
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::runtime::{Freight, Placed};
use pinfold_http::client::ClientOptions;
use pinfold_http::worker::{Loaded, NotEnded, Refused, Saved, Worker, WorkerOptions};

use crate::save_and_load::{Memory, load, manifest, save};
use crate::scene::Scene;

fn store(scene: &Scene) -> Arc<FileStore> {
    Arc::new(FileStore::create(scene.dir.path(), FileStoreOptions::default()).unwrap())
}

fn worker(scene: &Scene, patience: Duration) -> Worker {
    let client = ClientOptions { give_up_after: patience, ..ClientOptions::default() };
    let options = WorkerOptions { client, ..WorkerOptions::default() };
    Worker::connect(&scene.url(), "w", store(scene), options).unwrap()
}

fn patient(scene: &Scene) -> Worker {
    worker(scene, Duration::from_secs(60))
}

fn keep(worker: &Worker, manifest: &Arc<Manifest>, turn: u64) -> CheckpointId {
    let computed = Arc::new(Memory::computed(manifest, 7));
    match worker.save(save(manifest, turn), computed).unwrap() {
        Saved::Saved { checkpoint, .. } => checkpoint,
        other => panic!("{other:?}"),
    }
}

/// What is loaded is what was saved, byte for byte.
fn is_restored(worker: &Worker, manifest: &Arc<Manifest>) {
    let memory = Arc::new(Memory::default());
    let loaded = worker.load(load(manifest), memory.clone()).unwrap();
    assert!(matches!(loaded, Loaded::Loaded { .. }), "{loaded:?}");
    assert!(memory.is_adopted());
    assert_eq!(memory.contents(), Memory::computed(manifest, 7).contents());
}

fn pins(scene: &Scene) -> usize {
    scene.get("/v1/pins").json()["pins"].as_array().unwrap().len()
}

/// How many requests the node has answered.
fn requests(scene: &Scene) -> u64 {
    let body = scene.get("/metrics").body;
    let line = body.lines().find(|line| line.starts_with("pinfold_requests_total ")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Where a private object of a checkpoint lies.
fn file_of(scene: &Scene, checkpoint: CheckpointId) -> PathBuf {
    let tail = format!("{:016x}", checkpoint.generation.0);
    let mut folders = vec![scene.dir.path().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = path.to_string_lossy().replace('/', "");
            if path.is_dir() {
                folders.push(path);
            } else if text.contains(&tail) && text.contains("00000001") {
                return path;
            }
        }
    }
    panic!("nothing of {checkpoint}")
}

#[test]
fn what_is_saved_is_loaded() {
    let scene = Scene::new();
    let worker = patient(&scene);
    let manifest = manifest(&[b"block 0", b"block 1"]).unwrap();
    let memory = Arc::new(Memory::default());
    let loaded = worker.load(load(&manifest), memory.clone()).unwrap();
    assert_eq!((loaded, memory.is_adopted()), (Loaded::NotThere, false));
    let checkpoint = keep(&worker, &manifest, 1);
    is_restored(&worker, &manifest);
    // Another turn at the same position: nothing moves, and both hold it.
    let again = worker.save(save(&manifest, 2), Arc::new(Memory::computed(&manifest, 7))).unwrap();
    assert_eq!(again, Saved::AlreadyThere { checkpoint, expired: None });
    let why = scene.get(&format!("/v1/checkpoints/{}", checkpoint.generation)).body;
    assert_eq!(why.matches("\"turn\"").count(), 2, "{why}");
    assert_eq!(pins(&scene), 0);
    assert_eq!(worker.shutdown().unsettled.len(), 0);
}

/// One round trip before the bytes move, and one after them.
#[test]
fn a_save_and_a_load_ask_twice_each() {
    let scene = Scene::new();
    let worker = patient(&scene);
    let manifest = manifest(&[b"block 0"]).unwrap();
    let before = requests(&scene);
    keep(&worker, &manifest, 1);
    let saved = requests(&scene);
    is_restored(&worker, &manifest);
    assert_eq!((saved - before, requests(&scene) - saved), (2, 2));
}

/// Settle, publish and release, all or nothing: a refused turn keeps nothing, and holds nothing.
#[test]
fn who_refuses_is_told() {
    let scene = Scene::with_policy(Policy { turns: 1, ..Policy::default() });
    let worker = patient(&scene);
    let [first, second] = [b"block 1", b"block 2"].map(|block| manifest(&[block]).unwrap());
    keep(&worker, &first, 1);
    keep(&worker, &second, 2);
    let late = worker.save(save(&first, 1), Arc::new(Memory::computed(&first, 7))).unwrap();
    assert_eq!(late, Saved::Refused(Refused::ByCatalog(Rejection::TurnExpired)));
    // The store is not asked for what the memory cannot give.
    let third = manifest(&[b"block 3"]).unwrap();
    match worker.save(save(&third, 3), Arc::new(Memory::default())).unwrap() {
        Saved::Refused(Refused::ByStore { troubles, .. }) => assert!(!troubles.is_empty()),
        other => panic!("{other:?}"),
    }
    assert_eq!(pins(&scene), 0);
}

#[test]
fn a_damaged_object_is_lost_and_nothing_is_adopted() {
    let scene = Scene::new();
    let worker = patient(&scene);
    let manifest = manifest(&[b"block 0"]).unwrap();
    let checkpoint = keep(&worker, &manifest, 1);
    let file = file_of(&scene, checkpoint);
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 1;
    fs::write(&file, bytes).unwrap();
    let memory = Arc::new(Memory::default());
    let loaded = worker.load(load(&manifest), memory.clone()).unwrap();
    let object = ObjectName::Private(ObjectId { shard: ShardIndex(0), index: 1 });
    assert_eq!(loaded, Loaded::Lost { checkpoint, object, why: Loss::WrongBytes });
    assert!(!memory.is_adopted());
    let again = worker.load(load(&manifest), memory).unwrap();
    assert_eq!((again, pins(&scene)), (Loaded::NotThere, 0), "nobody is served it again");
}

/// The coordinator is away while the bytes move. Whoever waits is told so; the end comes under the
/// same operations once it is back.
#[test]
fn a_coordinator_may_be_restarted_in_between() {
    let mut scene = Scene::new();
    let worker = worker(&scene, Duration::from_millis(200));
    let manifest = manifest(&[b"block 0"]).unwrap();
    let (gate, told, open) = Gate::new(Memory::computed(&manifest, 7));
    let under_way = thread::scope(|scope| {
        let save = scope.spawn(|| worker.save(save(&manifest, 1), gate));
        told.recv().unwrap();
        scene.stop();
        open.send(()).unwrap();
        match save.join().unwrap() {
            Err(NotEnded::NotAnswered(under_way)) => under_way,
            other => panic!("{other:?}"),
        }
    });
    let refused = worker.save(save(&manifest, 2), Arc::new(Memory::default()));
    assert!(matches!(refused, Err(NotEnded::NotReached)), "{refused:?}");
    scene.start();
    let saved = worker.wait(under_way).unwrap();
    assert!(matches!(saved, Saved::Saved { .. }), "{saved:?}");
    is_restored(&worker, &manifest);
    scene.restart();
    is_restored(&worker, &manifest);
    assert_eq!((pins(&scene), worker.owner().unanswered().len()), (0, 0));
}

/// Another life of the job: what was under way counts for nothing there, and a new worker starts
/// over with it.
#[test]
fn another_epoch_is_told_and_started_over() {
    let mut scene = Scene::new();
    let worker = worker(&scene, Duration::from_millis(200));
    let manifest = manifest(&[b"block 0"]).unwrap();
    let (gate, told, open) = Gate::new(Memory::computed(&manifest, 7));
    thread::scope(|scope| {
        let save = scope.spawn(|| worker.save(save(&manifest, 1), gate));
        told.recv().unwrap();
        scene.stop();
        scene.start_another_life();
        open.send(()).unwrap();
        let ended = save.join().unwrap();
        assert!(matches!(ended, Err(NotEnded::OtherJob(Some(_)))), "{ended:?}");
    });
    let refused = worker.load(load(&manifest), Arc::new(Memory::default()));
    assert!(matches!(refused, Err(NotEnded::OtherJob(None))), "{refused:?}");
    drop(worker);
    let worker = patient(&scene);
    keep(&worker, &manifest, 1);
    is_restored(&worker, &manifest);
    assert_eq!(pins(&scene), 0);
}

/// The turn expires while its bytes are loaded: they stay until the load lets go.
#[test]
fn a_load_keeps_what_it_reads() {
    let scene = Scene::with_policy(Policy { turns: 1, ..Policy::default() });
    let worker = patient(&scene);
    let collector = scene.owner("collector", Role::Worker);
    let effects = scene.client().effects(&collector).unwrap();
    let job = worker.job().clone();
    let mut collector = Collector::new(collector, effects, store(&scene), job);
    let [first, second] = [b"block 1", b"block 2"].map(|block| manifest(&[block]).unwrap());
    let checkpoint = keep(&worker, &first, 1);
    let (gate, told, open) = Gate::new(Memory::default());
    thread::scope(|scope| {
        let loading = scope.spawn(|| worker.load(load(&first), gate.clone()));
        told.recv().unwrap();
        keep(&worker, &second, 2);
        collector.round().unwrap();
        assert_eq!(collector.take_collected(), []);
        file_of(&scene, checkpoint);
        open.send(()).unwrap();
        let loaded = loading.join().unwrap().unwrap();
        assert_eq!(loaded, Loaded::Loaded { checkpoint });
    });
    assert_eq!(gate.memory.contents(), Memory::computed(&first, 7).contents());
    collector.round().unwrap();
    assert_eq!(collector.take_collected(), [checkpoint]);
}

/// Memory that somebody may still write is not given back before the proof.
#[test]
fn memory_in_doubt_comes_back_with_its_proof() {
    let scene = Scene::new();
    let worker = patient(&scene);
    let manifest = manifest(&[b"block 0"]).unwrap();
    keep(&worker, &manifest, 1);
    let doubtful = Arc::new(Doubtful::default());
    let under_way = match worker.load(load(&manifest), doubtful.clone()) {
        Err(NotEnded::InDoubt(under_way)) => under_way,
        other => panic!("{other:?}"),
    };
    assert_eq!(pins(&scene), 1);
    let objects = doubtful.0.lock().unwrap().clone();
    objects.into_iter().for_each(|object| under_way.retired(object));
    let mut ended = worker.wait(under_way);
    // Each object that was placed meanwhile needs its proof, too.
    while let Err(NotEnded::InDoubt(under_way)) = ended {
        let objects = doubtful.0.lock().unwrap().clone();
        objects.into_iter().for_each(|object| under_way.retired(object));
        ended = worker.wait(under_way);
    }
    assert!(matches!(ended, Ok(Loaded::Refused(Refused::ByStore { .. }))), "{ended:?}");
    assert_eq!(pins(&scene), 0);
}

/// Memory whose first move tells that it began, and waits.
struct Gate {
    memory: Memory,
    waits: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Gate {
    fn new(memory: Memory) -> (Arc<Self>, Receiver<()>, Sender<()>) {
        let ((tell, told), (open, opened)) = (channel(), channel());
        (Arc::new(Self { memory, waits: Mutex::new(Some((tell, opened))) }), told, open)
    }

    fn pass(&self) {
        if let Some((tell, opened)) = self.waits.lock().unwrap().take() {
            tell.send(()).unwrap();
            opened.recv().unwrap();
        }
    }
}

impl Freight for Gate {
    fn parts(&self, object: ObjectName) -> Option<Vec<Cow<'_, [u8]>>> {
        self.pass();
        self.memory.parts(object)
    }

    fn place(&self, object: ObjectName, payload: &[u8]) -> Placed {
        self.pass();
        self.memory.place(object, payload)
    }

    fn adopt(&self, checkpoint: CheckpointId) {
        self.memory.adopt(checkpoint);
    }
}

/// Memory that is in doubt about whatever it places.
#[derive(Default)]
struct Doubtful(Mutex<Vec<ObjectName>>);

impl Freight for Doubtful {
    fn parts(&self, _: ObjectName) -> Option<Vec<Cow<'_, [u8]>>> {
        None
    }

    fn place(&self, object: ObjectName, _: &[u8]) -> Placed {
        self.0.lock().unwrap().push(object);
        Placed::InDoubt
    }

    fn adopt(&self, _: CheckpointId) {
        panic!("adopted in doubt")
    }
}
