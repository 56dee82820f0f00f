//! The coordinator, as those see it who ask it something.

use std::fmt::Debug;
use std::sync::Arc;

use pinfold_core::engine::{Reply, Request};

use crate::node::{Gone, NodeClient};

/// Whoever takes requests for a job's coordinator: the node in this process, or a client of one
/// elsewhere. It believes in one epoch, and never changes to another.
pub trait Coordinator: Debug + Send + Sync {
    /// Sends a request and waits for its reply, which is durable.
    ///
    /// # Errors
    /// [`Gone`] when nobody knows what became of the request. The same operation may be sent again
    /// later.
    fn call(&self, request: Request) -> Result<Reply, Gone>;
}

impl Coordinator for NodeClient {
    fn call(&self, request: Request) -> Result<Reply, Gone> {
        Self::call(self, request)
    }
}

impl<T: Coordinator + ?Sized> Coordinator for Arc<T> {
    fn call(&self, request: Request) -> Result<Reply, Gone> {
        T::call(self, request)
    }
}
