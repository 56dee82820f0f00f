//! The collector of the process that serves: it deletes what nothing holds any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pinfold_core::catalog::Role;
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::OwnerId;
use pinfold_core::policy::Genesis;
use pinfold_host::collector::Collector;
use pinfold_host::file_store::{FileStore, FileStoreError, FileStoreOptions};
use pinfold_host::node::{Effects, NodeClient};
use pinfold_host::owner::{Owner, OwnerError};
use pinfold_host::store::ObjectStore;

use crate::Failure;
use crate::random::start;
use crate::store_place::{StorePlace, opened};

/// Its name among the owners.
const NAME: &str = "pinfold serve";
/// How often it looks for something to delete; and the longest pause after rounds in which the
/// store did not delete all, each twice as long as the one before.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];
/// How often it looks whether to end.
const LOOKS: Duration = Duration::from_millis(50);

/// The store of a folder. It is only made where somebody says so: a store that is not there,
/// because its disk is not mounted, is none from which everything is gone.
pub(super) fn store(place: &StorePlace, makes: bool) -> Result<Arc<dyn ObjectStore>, Failure> {
    let dir = place.folder();
    let options = FileStoreOptions::default();
    let store = match FileStore::open(dir, options) {
        Err(FileStoreError::Missing { .. }) if makes => FileStore::create(dir, options),
        opened => opened,
    };
    opened(dir, store)
}

/// Which owner it is.
pub(super) fn owner() -> OwnerId {
    OwnerId::of_name(NAME)
}

/// A collector that runs; dropping it ends it after its round.
pub(super) struct Collecting {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Starts to collect.
pub(super) fn begin(
    node: NodeClient,
    effects: Effects,
    store: Arc<dyn ObjectStore>,
    job: Genesis,
) -> Result<Collecting, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stop);
    let mut deletes = Deletes { node, store, job, effects: Some(effects) };
    let thread = thread::Builder::new()
        .name("pinfold-collect".into())
        .spawn(move || deletes.run(&stops))
        .map_err(|error| Failure::Incomplete(format!("the collector: {error}")))?;
    Ok(Collecting { stop, thread: Some(thread) })
}

/// What a collector needs, also the next one.
struct Deletes {
    node: NodeClient,
    store: Arc<dyn ObjectStore>,
    job: Genesis,
    effects: Option<Effects>,
}

impl Deletes {
    /// Collects until it is told to stop, or the node is gone: whoever serves it says so. A
    /// collector that is barred, or that somebody registered over, is followed by another.
    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) && !self.node.is_gone() {
            match self.registered() {
                Ok(mut collector) => {
                    let why = self.collect(&mut collector, stop);
                    self.effects = Some(collector.into_effects());
                    if let Err(why) = why {
                        tracing::warn!("the collector begins again: {why}");
                    }
                }
                Err(why) => tracing::warn!("nothing is collected: {why}"),
            }
            rest(PAUSES[1], stop);
        }
    }

    fn registered(&mut self) -> Result<Collector, String> {
        let start = start().map_err(|_| "no random start")?;
        let owner = Owner::register(self.node.clone(), NAME, Role::Worker, start);
        let owner = owner.map_err(|error| error.to_string())?;
        let effects = self.effects.take().ok_or("its work goes elsewhere")?;
        let (store, job) = (Arc::clone(&self.store), self.job.clone());
        Ok(Collector::new(owner, effects, store, job))
    }

    fn collect(&self, collector: &mut Collector, stop: &AtomicBool) -> Result<(), OwnerError> {
        let [first, longest] = PAUSES;
        let mut pause = first;
        while !stop.load(Ordering::Relaxed) {
            // A question leaves no record, and a `Collect` does.
            let Reply::Gauges(gauges) = self.node.call(Request::Query(Query::Gauges))? else {
                return Err(OwnerError::Unexpected);
            };
            if gauges.collectable > 0 {
                let round = collector.round()?;
                if round.left == 0 && round.objects > 0 {
                    pause = first;
                    continue;
                }
                pause = (pause * 2).min(longest);
            }
            rest(pause, stop);
        }
        Ok(())
    }
}

/// Waits for so long, or until it is told to stop.
fn rest(pause: Duration, stop: &AtomicBool) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOKS);
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends by returning; there is nothing to learn from how.
            let _ = thread.join();
        }
    }
}
