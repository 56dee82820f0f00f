//! Looking at the engine, and whatever else waits for the node: on a thread that may.

use std::sync::Arc;

use pinfold_core::engine::Engine;
use pinfold_host::node::{Gone, NodeStats};

use super::Shared;
use crate::problem::{Code, Problem};

/// What is said of a node that is gone.
pub(super) fn gone(Gone: Gone) -> Problem {
    let detail = "nobody knows what became of the request: start the coordinator again on its \
                  data, and ask again under the same operation";
    Problem::new(Code::Gone, detail)
}

/// Runs what waits on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, Gone> + Send + 'static,
) -> Result<T, Gone> {
    tokio::task::spawn_blocking(what).await.unwrap_or(Err(Gone))
}

/// Looks at the engine when all of it is durable.
pub(super) async fn look<T: Send + 'static>(
    shared: &Arc<Shared>,
    what: impl FnOnce(&Engine, NodeStats) -> T + Send + 'static,
) -> Result<T, Problem> {
    let node = shared.node.clone();
    blocking(move || node.inspect(what)).await.map_err(gone)
}
