//! Faults that happened elsewhere, with real journals, real stores and real processes.
//!
//! Each names its number; the golden scripts of `tests/scripts/cases` tell the same stories in
//! memory.

mod failing;
mod restarts;
mod torn;
mod writers;

use std::collections::BTreeSet;
use std::path::Path;

use pinfold_core::catalog::Blocker;
use pinfold_core::id::{CheckpointId, Key, ObjectId};
use pinfold_core::outcome::{DeleteOutcome, TurnKey};
use pinfold_core::policy::Genesis;
use pinfold_host::file_store::FileStore;
use pinfold_host::journal;
use pinfold_host::node::{Effects, Node, NodeClient, NodeError};
use pinfold_host::store::{GetOutcome, ObjectStore, Presence, PutOutcome};

use crate::job::{SMALL, shape};
use crate::judge::retained;
use crate::wire::Verb;

pub(super) const FIRST: &str = "journal/00000000000000000000.log";

pub(super) fn begin(dir: &Path, genesis: Genesis) -> (Node, Effects, NodeClient) {
    let (node, effects) = Node::create_with(dir, genesis, SMALL).unwrap();
    let client = node.client();
    (node, effects, client)
}

pub(super) fn open(dir: &Path) -> (Node, Effects, NodeClient) {
    let (node, effects, _) = Node::open_with(dir, SMALL, |_| Ok::<_, NodeError>(())).unwrap();
    let client = node.client();
    (node, effects, client)
}

pub(super) fn blockers(dir: &Path, checkpoint: CheckpointId) -> Vec<Blocker> {
    let catalog = journal::read(dir).unwrap().catalog;
    catalog.blockers(checkpoint).map(|there| there.blockers).unwrap_or_default()
}

pub(super) fn turns_in(dir: &Path) -> BTreeSet<TurnKey> {
    retained(&journal::read(dir).unwrap().catalog)
}

pub(super) fn keys(job: &Genesis, checkpoint: CheckpointId) -> Vec<String> {
    let objects = (0..shape().objects()).filter_map(|place| shape().object_at(place));
    let key =
        |object| Key { namespace: job.namespace.clone(), epoch: job.epoch, checkpoint, object };
    objects.map(|object| key(object).to_string()).collect()
}

pub(super) fn put_all(store: &FileStore, keys: &[String], body: &[u8]) {
    for key in keys {
        assert_eq!(store.put(key, &[body]), PutOutcome::Stored, "{key}");
    }
}

pub(super) fn all_read(store: &FileStore, keys: &[String], body: &[u8]) {
    for key in keys {
        let mut into = vec![0; body.len()];
        assert_eq!(store.get(key, &mut into), GetOutcome::Read, "{key}");
        assert_eq!(into, body, "{key}");
    }
}

pub(super) fn is_absent(store: &FileStore, keys: &[String]) {
    for key in keys {
        assert_eq!(store.size(key), Presence::Absent, "{key}");
    }
}

/// Deletes what was handed out, and reports what became of it.
pub(super) fn delete(
    store: &FileStore,
    job: &Genesis,
    (id, objects): (CheckpointId, Vec<ObjectId>),
) -> Verb {
    let outcome = |object: ObjectId| -> DeleteOutcome {
        let (namespace, epoch) = (job.namespace.clone(), job.epoch);
        let key = Key { namespace, epoch, checkpoint: id, object };
        store.delete(&key.to_string()).into()
    };
    let outcomes = objects.into_iter().map(|object| (object, outcome(object))).collect();
    Verb::Deleted { checkpoint: id, outcomes }
}
