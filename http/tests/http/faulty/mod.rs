//! Owners behind a network that does whatever networks do: nothing that was acknowledged is lost,
//! nothing is done twice, nothing that is held is deleted, and in the end everything can go.
//!
//! `PINFOLD_SEED` is where the random numbers start and `PINFOLD_NETWORKS` how many of them are
//! tried, one seed after another. What the network does follows from the seed, what that meets from
//! the threads.

mod drain;
mod judge;
mod proxy;
mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use pinfold_core::catalog::Role;
use pinfold_core::id::StartId;
use pinfold_core::outcome::Outcome;
use pinfold_core::policy::{Genesis, Policy};
use pinfold_host::collector::Collector;
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::node::Node;
use pinfold_host::store::ObjectStore;
use pinfold_http::client::ClientOptions;
use pinfold_http::encoding::Encoding;
use pinfold_http::service::{Service, ServiceOptions};

use crate::scene::genesis;
use drain::drain;
use judge::judge;
use proxy::{Fault, Proxy};
use worker::{Heard, Place, Worker};

/// Networks at once.
const AT_ONCE: u64 = 6;
const WORKERS: u64 = 4;
/// How many things each of them does.
const STEPS: u32 = 30;
/// How long a client waits for one answer, and for an answer at all: some give up.
const DEADLINE: Duration = Duration::from_millis(80);
const GIVES_UP: Duration = Duration::from_millis(250);

fn number_of(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn a_faulty_network_loses_nothing_and_doubles_nothing() {
    let (seed, networks) = (number_of("PINFOLD_SEED", 0x5eed), number_of("PINFOLD_NETWORKS", 6));
    eprintln!("PINFOLD_SEED={seed} PINFOLD_NETWORKS={networks}");
    let next = AtomicU64::new(seed);
    let (happened, publications) = (Mutex::default(), AtomicUsize::new(0));
    // Mostly they wait, so some run at once.
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(networks) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= seed + networks {
                        return;
                    }
                    let network = Network::of(at);
                    publications.fetch_add(network.run(), Ordering::Relaxed);
                    let mut all: MutexGuard<'_, BTreeMap<Fault, u64>> = happened.lock().unwrap();
                    for (fault, times) in network.proxy.happened() {
                        *all.entry(fault).or_default() += times;
                    }
                }
            });
        }
    });
    let (happened, publications) = (happened.into_inner().unwrap(), publications.into_inner());
    eprintln!("{publications} publications, {happened:?}");
    for fault in Fault::ALL {
        assert!(happened.contains_key(&fault), "{fault:?} never happened: {happened:?}");
    }
    assert!(publications as u64 > 10 * networks, "too little is asked: {publications}");
}

/// A job, its store, its coordinator, and the network before it.
struct Network {
    seed: u64,
    dir: tempfile::TempDir,
    service: Mutex<Option<Service>>,
    proxy: Proxy,
    store: Arc<FileStore>,
    job: Genesis,
}

impl Network {
    fn of(seed: u64) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let job = Genesis { policy: Policy { turns: 3, ..Policy::default() }, ..genesis() };
        let (node, effects) = Node::create(dir.path(), job.clone()).unwrap();
        let service = Service::start(node, effects, ServiceOptions::default()).unwrap();
        let proxy = Proxy::start(service.address(), DEADLINE, seed);
        let store = FileStore::create(&dir.path().join("store"), FileStoreOptions::default());
        let (service, store) = (Mutex::new(Some(service)), Arc::new(store.unwrap()));
        Self { seed, dir, service, proxy, store, job }
    }

    fn place(&self, url: String) -> Place<'_> {
        let (try_within, give_up_after) = (DEADLINE, GIVES_UP);
        let options = ClientOptions { try_within, give_up_after, ..ClientOptions::default() };
        Place { url, options, store: &self.store, job: self.job.clone() }
    }

    /// From the first registration to the last deletion; how much was published.
    fn run(&self) -> usize {
        let heard = self.work();
        self.proxy.flush();
        let (dir, seed) = (self.dir.path(), self.seed);
        assert_eq!(self.proxy.wrong(), [""; 0], "seed {seed}");
        assert!(self.proxy.compared() > 0, "seed {seed}: no request came twice");
        let found = judge(dir, &heard).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let published =
            heard.iter().filter(|it| matches!(it.answer, Ok(Outcome::Published { .. })));
        assert_eq!(found.publications, published.count(), "seed {seed}: each is there once");
        assert_eq!(found.catalog.pins(), [], "seed {seed}: each pin ended");
        let place = self.place(String::new());
        for checkpoint in found.live.values() {
            place.holds(*checkpoint).unwrap_or_else(|why| panic!("seed {seed}: live: {why}"));
        }
        self.drain();
        found.publications
    }

    /// Everybody works behind the network, and one of them collects; what the workers were told.
    fn work(&self) -> Vec<Heard> {
        let (tell, heard) = channel();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let collects = scope.spawn(|| self.collect(&over));
            let workers: Vec<_> = (0..WORKERS)
                .map(|number| {
                    let (tell, mut place) = (tell.clone(), self.place(self.proxy.url()));
                    if number % 2 == 0 {
                        place.options.encoding = Encoding::Json;
                    }
                    scope.spawn(move || {
                        let tell = move |heard| tell.send(heard).unwrap();
                        let mut worker = Worker::start(place, number, self.seed, tell);
                        (0..STEPS).for_each(|_| worker.step());
                    })
                })
                .collect();
            let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            over.store(true, Ordering::Relaxed);
            collects.join().unwrap();
            ended.into_iter().for_each(|worker| worker.expect("a worker ends"));
        });
        drop(tell);
        heard.iter().collect()
    }

    /// Collects until it is over; where its client gives up, another life of it goes on.
    fn collect(&self, over: &AtomicBool) {
        let place = self.place(self.proxy.url());
        for life in 1.. {
            let start = StartId::from_u128(u128::from(self.seed) << 64 | life);
            let owner = place.owner("collector", Role::Worker, start);
            let Ok(effects) = place.client().effects(&owner) else { continue };
            let store: Arc<dyn ObjectStore> = self.store.clone();
            let mut collector = Collector::new(owner, effects, store, self.job.clone());
            while !over.load(Ordering::Relaxed) && collector.round().is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
            if over.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Everybody is fenced, everything forgotten and collected: nothing is left.
    fn drain(&self) {
        let service = self.service.lock().unwrap().take().unwrap();
        let place = self.place(format!("http://{}", service.address()));
        drain(&place, &self.store);
        service.stop().unwrap();
    }
}

/// What was acknowledged and is not so is found.
#[test]
fn an_answer_that_is_not_held_is_found() {
    let network = Network::of(1);
    let place = network.place(network.proxy.url());
    let heard = std::cell::RefCell::new(Vec::new());
    let mut worker = Worker::start(place, 0, 1, |told| heard.borrow_mut().push(told));
    (0..8).for_each(|_| worker.step());
    drop(worker);
    let mut heard = heard.into_inner();
    judge(network.dir.path(), &heard).unwrap();
    let last = heard.len() - 1;
    heard[last].answer = Ok(Outcome::Forgotten);
    let why = judge(network.dir.path(), &heard).unwrap_err();
    assert!(why.contains("Ok(Forgotten) was acknowledged"), "{why}");
    heard[last].op.sequence += 1000;
    let why = judge(network.dir.path(), &heard).unwrap_err();
    assert!(why.contains("has no record"), "{why}");
    let found = judge(network.dir.path(), &heard[..last]).unwrap();
    let checkpoint = *found.live.values().next().expect("something is published");
    let place = network.place(String::new());
    place.holds(checkpoint).unwrap();
    network.store.delete(&place.objects(checkpoint)[1].0);
    let why = place.holds(checkpoint).unwrap_err();
    assert!(why.contains("is held, and Absent"), "{why}");
}
