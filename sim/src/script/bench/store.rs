//! A tiny object store that watches from outside: what was put, what was deleted, what is left.

use std::collections::BTreeSet;

use pinfold_core::id::{CheckpointId, Generation, ObjectId, OpId};

/// Delete work that left the engine and waits to be carried out.
#[derive(Clone, Debug)]
pub(super) struct Delete {
    pub(super) by: OpId,
    pub(super) checkpoint: CheckpointId,
    pub(super) objects: Vec<ObjectId>,
}

/// The objects that the store holds, and the work that it was given.
#[derive(Debug, Default)]
pub(super) struct Store {
    objects: BTreeSet<(Generation, CheckpointId, ObjectId)>,
    deletes: Vec<Delete>,
}

impl Store {
    pub(super) fn put(&mut self, checkpoint: CheckpointId, object: ObjectId) {
        self.objects.insert((checkpoint.generation, checkpoint, object));
    }

    /// True when it was there.
    pub(super) fn remove(&mut self, checkpoint: CheckpointId, object: ObjectId) -> bool {
        self.objects.remove(&(checkpoint.generation, checkpoint, object))
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = (CheckpointId, ObjectId)> + '_ {
        self.objects.iter().map(|(_, checkpoint, object)| (*checkpoint, *object))
    }

    /// Keeps work under the next number, from 1.
    pub(super) fn take_work(&mut self, delete: Delete) -> usize {
        self.deletes.push(delete);
        self.deletes.len()
    }

    pub(super) fn work(&self, number: usize) -> Option<&Delete> {
        self.deletes.get(number.checked_sub(1)?)
    }
}
