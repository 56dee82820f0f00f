//! Looking on at a node: what its engine takes and lets out, in that order.

use pinfold_core::engine::{Input, Output};

/// Somebody who looks on at a node. It is called under the node's lock.
pub trait Watch: Send {
    /// The engine takes an input.
    fn took(&mut self, input: &Input);

    /// The engine does a follow-up without an input.
    fn idled(&mut self);

    /// Something left the engine: what it depends on is durable.
    fn let_out(&mut self, output: &Output);
}

/// The node has taken a request already, which nobody can look on at any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node has taken a request already: watch it before the first one")]
pub struct Late;
