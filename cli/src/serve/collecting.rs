//! The collector of the process that serves: it deletes what nothing holds any more.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pinfold_core::catalog::Role;
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::OwnerId;
use pinfold_core::policy::Genesis;
use pinfold_host::collector::Collector;
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::node::{Effects, NodeClient};
use pinfold_host::owner::Owner;
use pinfold_host::store::ObjectStore;

use crate::Failure;
use crate::deleting::start;

/// Its name among the owners.
const NAME: &str = "pinfold serve";
/// How often it looks for something to delete; and the longest pause after rounds in which the
/// store did not delete all, each twice as long as the one before.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];
/// How often it looks whether to end.
const LOOKS: Duration = Duration::from_millis(50);

/// The store of a folder, which is made where there is none.
pub(super) fn store(dir: &Path) -> Result<Arc<dyn ObjectStore>, Failure> {
    let options = FileStoreOptions::default();
    let store = FileStore::open(dir, options).or_else(|_| FileStore::create(dir, options));
    let wrong = |error| Failure::Incomplete(format!("--store {}: {error}", dir.display()));
    Ok(Arc::new(store.map_err(wrong)?))
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
    let failed = |error: String| Failure::Incomplete(format!("the collector: {error}"));
    let asks = node.clone();
    let owner = Owner::register(node, NAME, Role::Worker, start()?);
    let owner = owner.map_err(|error| failed(error.to_string()))?;
    let collector = Collector::new(owner, effects, store, job);
    let stop = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stop);
    let thread = thread::Builder::new()
        .name("pinfold-collect".into())
        .spawn(move || collect(&asks, collector, &stops))
        .map_err(|error| failed(error.to_string()))?;
    Ok(Collecting { stop, thread: Some(thread) })
}

/// Collects until it is told to stop, or the node is gone: whoever serves it says so.
fn collect(node: &NodeClient, mut collector: Collector, stop: &AtomicBool) {
    let [first, longest] = PAUSES;
    let mut pause = first;
    while !stop.load(Ordering::Relaxed) {
        // A question leaves no record, and a `Collect` does.
        let Ok(Reply::Gauges(gauges)) = node.call(Request::Query(Query::Gauges)) else { return };
        if gauges.collectable > 0 {
            let Ok(round) = collector.round() else { return };
            if round.left == 0 && round.objects > 0 {
                pause = first;
                continue;
            }
            pause = (pause * 2).min(longest);
        }
        let until = Instant::now() + pause;
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOKS);
        }
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
