//! How often a coordinator answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinfold_core::engine::{Reply, Request};
use pinfold_host::coordinator::Coordinator;
use pinfold_host::node::Gone;

/// A coordinator whose answers are counted.
#[derive(Debug)]
pub(super) struct Counted {
    coordinator: Arc<dyn Coordinator>,
    answers: Arc<AtomicU64>,
}

impl Counted {
    pub(super) const fn new(coordinator: Arc<dyn Coordinator>, answers: Arc<AtomicU64>) -> Self {
        Self { coordinator, answers }
    }
}

impl Coordinator for Counted {
    fn call(&self, request: Request) -> Result<Reply, Gone> {
        let reply = self.coordinator.call(request)?;
        self.answers.fetch_add(1, Ordering::Relaxed);
        Ok(reply)
    }
}
