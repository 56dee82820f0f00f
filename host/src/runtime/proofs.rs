//! The way of proofs to their transfer, wherever that is.
//!
//! One transfer keeps it for its whole life, through every runtime that resumes it, and shares it
//! with all its handles. It protects proofs: one that comes while the transfer is with no runtime
//! waits here until one resumes it. It never judges a proof: that is the transfer.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use pinfold_core::manifest::ObjectName;
use pinfold_core::transfer::{Completion, Transfer};

use super::pool::Pool;

/// Proofs that nobody touches an object's memory any more. See the [module](self).
#[derive(Default)]
pub(super) struct Proofs(Mutex<Brought>);

#[derive(Default)]
struct Brought {
    /// Not delivered yet.
    objects: BTreeSet<ObjectName>,
    /// Where the transfer is or was last, and its number there.
    pool: Weak<Pool>,
    number: u64,
}

impl Proofs {
    /// Takes a proof, and delivers it if the transfer is under way.
    pub(super) fn bring(&self, object: ObjectName) {
        let mut brought = self.lock();
        brought.objects.insert(object);
        let (pool, number) = (brought.pool.upgrade(), brought.number);
        // A pool that admits the transfer asks for proofs under its own lock.
        drop(brought);
        if let Some(pool) = pool {
            pool.prove(number);
        }
    }

    /// The transfer is with this pool from now on.
    pub(super) fn lead_to(&self, pool: Weak<Pool>, number: u64) {
        let mut brought = self.lock();
        (brought.pool, brought.number) = (pool, number);
    }

    /// Reports to the transfer what was brought.
    pub(super) fn deliver(&self, transfer: &mut Transfer) {
        let objects = std::mem::take(&mut self.lock().objects);
        for object in objects {
            transfer.completed(object, Completion::Retired);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Brought> {
        // Nobody panics under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
