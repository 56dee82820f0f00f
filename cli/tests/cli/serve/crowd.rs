//! Many workers at once: as processes that contest the same positions, and as processes that are
//! killed together with their coordinator.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::id::{CheckpointId, EndpointId, Incarnation, OwnerId, StartId};
use pinfold_core::outcome::Outcome;
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::owner::Owner;
use pinfold_http::client::Client;

use super::drain::drain;
use super::fleet::{AllHeard, WorkerProcess, is_publication, job, options};
use super::judge::{Found, judge};
use super::worker::{Draws, Heard, Place};
use super::{Served, eventually};
use crate::scene::Scene;

/// Processes that contest the same positions, and how many of these there are.
const CONTESTANTS: u64 = 12;
const POSITIONS: u64 = 8;
/// Processes that are killed and started again.
const WORKERS: u64 = 4;

fn number_of(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

pub(super) fn store(scene: &Scene) -> Arc<FileStore> {
    let store = FileStore::open(&scene.path("objects"), FileStoreOptions::default());
    Arc::new(store.unwrap())
}

/// How many publications workers were told of.
pub(super) fn publications(heard: &AllHeard) -> usize {
    heard.lock().unwrap().iter().filter(|it| is_publication(it)).count()
}

/// Judges a job whose workers have ended, and then lets all of it go.
pub(super) fn finish(scene: &Scene, data: &Path, served: &Served, heard: &[Heard]) -> Found {
    let (url, store) = (served.url().to_string(), store(scene));
    let place = Place { url, options: options(), store: &store, job: job(served.url()) };
    let found = judge(data, heard).unwrap_or_else(|why| panic!("{why}"));
    for checkpoint in found.live.values() {
        place.holds(*checkpoint).unwrap_or_else(|why| panic!("live: {why}"));
    }
    let told = heard.iter().filter(|it| is_publication(it)).count();
    assert!(found.publications >= told, "{} and {told}", found.publications);
    drain(&place, &store);
    found
}

/// Of everybody who saves a position one does, whom the others follow; and whatever was published
/// is there.
#[test]
fn each_position_is_saved_by_one_of_twelve_processes() {
    let scene = Scene::in_memory();
    let words = "--data job --store objects --listen 127.0.0.1:0 --collect manual --turns 8";
    let served = Served::start(&scene, words);
    let heard = AllHeard::default();
    let contest = |number| WorkerProcess::contest(&scene, served.url(), number, POSITIONS, &heard);
    let all: Vec<_> = (0..CONTESTANTS).map(contest).collect();
    all.into_iter().for_each(WorkerProcess::end);
    let heard = heard.lock().unwrap().clone();
    let found = finish(&scene, &scene.path("job"), &served, &heard);
    let told = CONTESTANTS * POSITIONS;
    let published = heard.iter().filter(|it| is_publication(it)).count();
    assert_eq!((published as u64, found.live.len() as u64), (told, told));
    assert_eq!(found.catalog.pins(), [], "each pin ended");
    let mut winners = BTreeMap::<EndpointId, Vec<CheckpointId>>::new();
    let mut followed = BTreeMap::<EndpointId, BTreeSet<CheckpointId>>::new();
    for Heard { answer, .. } in &heard {
        match answer {
            Ok(Outcome::Prepared { checkpoint, .. }) => {
                winners.entry(checkpoint.endpoint).or_default().push(*checkpoint);
            }
            Ok(Outcome::AlreadyPublished { checkpoint, .. }) => {
                followed.entry(checkpoint.endpoint).or_default().insert(*checkpoint);
            }
            _ => {}
        }
    }
    assert_eq!(winners.len() as u64, POSITIONS);
    for (endpoint, winners) in &winners {
        assert_eq!(winners.len(), 1, "{endpoint} was saved more than once");
        assert_eq!(followed[endpoint], winners.iter().copied().collect(), "{endpoint}");
    }
    let ended = served.terminate();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

/// Coordinator and workers are killed at any moment and started again: it has decided each
/// operation once, whoever was told something is right, what is held is there, and in the end all
/// of it goes. `PINFOLD_KILLS` is how often, `PINFOLD_SEED` where the random numbers start.
#[test]
fn nothing_is_lost_or_done_twice_when_it_is_killed() {
    let (seed, kills) = (number_of("PINFOLD_SEED", 0x5eed), number_of("PINFOLD_KILLS", 18));
    eprintln!("PINFOLD_SEED={seed} PINFOLD_KILLS={kills}");
    let scene = Scene::in_memory();
    let mut soak = Soak::begin(&scene, seed);
    for _ in 0..kills {
        soak.kill();
    }
    let Soak { served, workers, heard, happened, .. } = soak;
    let served = served.unwrap();
    // However slow the machine is: enough is published.
    eventually(|| publications(&heard) > 40);
    workers.into_iter().for_each(WorkerProcess::end);
    let (told, heard) = (publications(&heard), heard.lock().unwrap().clone());
    let found = finish(&scene, &scene.path("job"), &served, &heard);
    let (answers, published) = (heard.len(), found.publications);
    let [coordinators, killed, ends, sleeps] = happened;
    eprintln!(
        "killed: {coordinators} coordinators and {killed} workers; {ends} ends, {sleeps} sleeps; \
         {answers} answers, {told} of {published} publications"
    );
    assert!(coordinators > 0 && killed > 0, "both are killed: {happened:?}");
    let ended = served.terminate();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

struct Soak<'a> {
    scene: &'a Scene,
    served: Option<Served>,
    url: String,
    words: String,
    workers: Vec<WorkerProcess>,
    /// How often each of them was started.
    lives: u64,
    heard: AllHeard,
    operator: Owner,
    draws: Draws,
    /// Coordinators and workers that were killed, ends, and sleeps.
    happened: [u32; 4],
}

impl<'a> Soak<'a> {
    fn begin(scene: &'a Scene, seed: u64) -> Self {
        let first = "--data job --store objects --turns 3 --listen";
        let served = Served::start(scene, &format!("{first} 127.0.0.1:0"));
        let (words, url) = (format!("{first} {}", served.listen()), served.url().to_string());
        let client = Client::connect(&url, options()).unwrap();
        let start = StartId::of_name("the soak");
        let operator = Owner::register(client, "second operator", Role::Operator, start).unwrap();
        let (draws, heard) = (Draws::new(seed), AllHeard::default());
        let (workers, lives, happened) = (Vec::new(), 0, [0; 4]);
        let served = Some(served);
        let mut soak =
            Self { scene, served, url, words, workers, lives, heard, operator, draws, happened };
        for number in 0..WORKERS {
            let worker = soak.worker(number);
            soak.workers.push(worker);
        }
        soak
    }

    /// The next life of a worker; its identities are new.
    fn worker(&mut self, number: u64) -> WorkerProcess {
        self.lives += 1;
        let number = WORKERS * self.lives + number;
        WorkerProcess::start(self.scene, &self.url, number, self.draws.next(), &self.heard)
    }

    /// Lets everybody work for a while; then somebody is killed, or the coordinator told to end or
    /// to sleep.
    fn kill(&mut self) {
        thread::sleep(Duration::from_micros(self.draws.below(200_000)));
        let what = [0, 0, 0, 1, 1, 2, 3][usize::try_from(self.draws.below(7)).unwrap()];
        self.happened[what] += 1;
        match what {
            0 => {
                self.served.take().unwrap().kill();
                self.served = Some(Served::start(self.scene, &self.words));
            }
            1 => {
                let place = usize::try_from(self.draws.below(WORKERS)).unwrap();
                let next = self.worker(place as u64);
                std::mem::replace(&mut self.workers[place], next).kill();
                self.fence(place as u64);
            }
            2 => {
                let ended = self.served.take().unwrap().terminate();
                assert_eq!(ended.code, Some(0), "{}", ended.err);
                self.served = Some(Served::start(self.scene, &self.words));
            }
            _ => {
                let served = self.served.as_ref().unwrap();
                served.signal("-STOP");
                thread::sleep(Duration::from_micros(self.draws.below(100_000)));
                served.signal("-CONT");
            }
        }
    }

    /// Bars the lives of a worker before its last one: their processes are gone.
    fn fence(&self, worker: u64) {
        let ended = (1..self.lives).map(|life| WORKERS * life + worker);
        let names: Vec<OwnerId> =
            ended.map(|number| OwnerId::of_name(&format!("worker {number}"))).collect();
        let client = Client::connect(&self.url, options()).unwrap();
        let all = client.view("/v1/owners?limit=10000").unwrap();
        for owner in all["items"].as_array().unwrap() {
            let id: OwnerId = owner["owner"].as_str().unwrap().parse().unwrap();
            if names.contains(&id) && owner["fenced"] == false {
                let incarnation = Incarnation(owner["incarnation"].as_u64().unwrap());
                let fenced = self.operator.ask(Command::Fence { owner: id, incarnation }).unwrap();
                assert!(fenced.is_ok(), "{id} {incarnation}: {fenced:?}");
            }
        }
    }
}
