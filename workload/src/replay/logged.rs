//! The log of a replay: what its coordinator took and let out, and what its workers put and
//! deleted.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinfold_core::outcome;
use pinfold_host::log::{Cause, Event, Head, Log, LogWriter, PutResult, Way};
use pinfold_host::node::{Node, NodeError, Recovery};
use pinfold_host::store::{
    DeleteOutcome, GetOutcome, ListError, ObjectStore, Presence, PutOutcome,
};

use super::ReplayError;

type FileLog = Log<BufWriter<File>>;

/// A replay's log, if it has one.
#[derive(Default)]
pub(super) struct Logged(Option<(PathBuf, FileLog)>);

impl Logged {
    /// Makes the file, which must not be there: a log is never written over.
    pub(super) fn file(path: Option<&Path>) -> Result<Option<File>, ReplayError> {
        let make = |path: &Path| {
            let made = File::create_new(path);
            made.map_err(|source| ReplayError::NoLog { path: path.to_path_buf(), source })
        };
        path.map(make).transpose()
    }

    /// Begins the log of a node that has not taken a request yet.
    pub(super) fn begin(
        path: Option<&Path>,
        file: Option<File>,
        node: &Node,
        resumes: bool,
    ) -> Result<Self, ReplayError> {
        let (Some(path), Some(file)) = (path, file) else { return Ok(Self::default()) };
        let mut head = Head::new(node.job().clone());
        head.from_genesis = !resumes;
        let writer = LogWriter::new(BufWriter::new(file), &head);
        let log = Log::new(writer.map_err(|error| failed(path, error))?);
        let logged = Self(Some((path.to_path_buf(), log)));
        logged.watch(node)?;
        Ok(logged)
    }

    fn watch(&self, node: &Node) -> Result<(), ReplayError> {
        let Some((_, log)) = &self.0 else { return Ok(()) };
        node.watch(Box::new(log.clone())).map_err(|_| NodeError::Panicked.into())
    }

    /// A store whose private puts and whose deletes are logged.
    pub(super) fn store(&self, store: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        match &self.0 {
            Some((_, log)) => {
                Arc::new(LoggedStore { store, log: log.clone(), moves: AtomicU64::new(0) })
            }
            None => store,
        }
    }

    /// The node ended, and with it its state.
    pub(super) fn crashed(&self) {
        if let Some((_, log)) = &self.0 {
            log.crashed();
        }
    }

    /// A node is back, and has not taken a request yet.
    pub(super) fn recovered(&self, node: &Node, recovery: Recovery) -> Result<(), ReplayError> {
        if let Some((_, log)) = &self.0 {
            log.recovered(recovery.records);
        }
        self.watch(node)
    }

    /// Everything was logged; or it was not, and why.
    pub(super) fn finish(&self) -> Result<(), ReplayError> {
        let Some((path, log)) = &self.0 else { return Ok(()) };
        log.finish().map_err(|error| failed(path, error))
    }
}

fn failed(path: &Path, source: std::io::Error) -> ReplayError {
    ReplayError::Log { path: path.to_path_buf(), source }
}

/// A store whose private puts and whose deletes are logged. Its calls block, so a put that is
/// answered is retired.
struct LoggedStore {
    store: Arc<dyn ObjectStore>,
    log: FileLog,
    moves: AtomicU64,
}

impl ObjectStore for LoggedStore {
    fn put(&self, key: &str, parts: &[&[u8]]) -> PutOutcome {
        let number = self.moves.fetch_add(1, Ordering::Relaxed);
        self.log.write(Event::Began { number, way: Way::Put, key: key.to_string(), pin: None });
        let stored = self.store.put(key, parts);
        let outcome = match &stored {
            PutOutcome::Stored => PutResult::Stored,
            PutOutcome::Failed(_) => PutResult::Failed,
            PutOutcome::Unknown(_) => PutResult::Unknown,
        };
        self.log.write(Event::Put { number, outcome });
        self.log.write(Event::Retired { number });
        stored
    }

    fn put_shared(&self, key: &str, parts: &[&[u8]]) -> PutOutcome {
        self.store.put_shared(key, parts)
    }

    fn size(&self, key: &str) -> Presence {
        self.store.size(key)
    }

    fn get(&self, key: &str, into: &mut [u8]) -> GetOutcome {
        self.store.get(key, into)
    }

    fn delete(&self, key: &str) -> DeleteOutcome {
        let deleted = self.store.delete(key);
        let outcome = outcome::DeleteOutcome::from(deleted.clone());
        self.log.write(Event::Delete { key: key.to_string(), why: Cause::Work, outcome });
        deleted
    }

    fn list(&self, visit: &mut dyn FnMut(&str, u64)) -> Result<(), ListError> {
        self.store.list(visit)
    }
}
