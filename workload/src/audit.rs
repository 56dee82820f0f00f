//! The audit of a store: every private key of a job must be one that a record counts.
//!
//! It lists the store and asks the coordinator about each key; what is astray is a violation.

use pinfold_core::catalog::Verdict;
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::CheckpointId;
use pinfold_core::policy::Genesis;
use pinfold_host::coordinator::Coordinator;
use pinfold_host::owner::OwnerError;
use pinfold_host::store::ObjectStore;

use crate::observer::{Violation, private_key};
use crate::replay::ReplayError;

/// Keys of one question.
const KEYS: usize = 10_000;

/// Lists the keys of a job, but for shared pages and for checkpoints of somebody else, and asks
/// about each. A key under the job's prefix that names no checkpoint is nobody's, and is asked
/// about, too.
pub(crate) fn audit(
    store: &dyn ObjectStore,
    job: &Genesis,
    coordinator: &dyn Coordinator,
    is_foreign: impl Fn(&CheckpointId) -> bool,
) -> Result<Vec<Violation>, ReplayError> {
    let prefix = format!("{}/{}/", job.namespace, job.epoch);
    let shared = format!("{prefix}shared/");
    let mut keys = Vec::new();
    store.list(&mut |text, _| {
        let is_foreign = || private_key(text, job).is_some_and(|key| is_foreign(&key.checkpoint));
        if text.starts_with(&prefix) && !text.starts_with(&shared) && !is_foreign() {
            keys.push(text.to_string());
        }
    })?;
    let mut found = Vec::new();
    for keys in keys.chunks(KEYS) {
        let query = Request::Query(Query::Audit(keys.to_vec()));
        let Reply::Audit(verdicts) = coordinator.call(query)? else {
            return Err(OwnerError::Unexpected.into());
        };
        let strays = keys.iter().zip(verdicts).filter(|(_, verdict)| *verdict != Verdict::Counted);
        let astray = |(key, verdict)| Violation { what: format!("I17: {key} is {verdict:?}") };
        found.extend(strays.map(astray));
    }
    Ok(found)
}
