//! What a runtime asks of the worker whose memory it fills and empties.

use std::borrow::Cow;
use std::sync::Arc;

use pinfold_core::id::{CheckpointId, EndpointId};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::outcome::Pinned;

/// The memory of one transfer, and the few questions that only the worker can answer.
///
/// Movers call it from several threads at once, for different objects, and a call may block: it
/// holds one mover meanwhile. The memory belongs to the transfer until its end is told. A call that
/// panics is reported, counts as failed, and as over: what unwound touches nothing any more. Where
/// that is not so, catch the panic and answer [`Placed::InDoubt`].
///
/// The questions of several ranks have answers for a lone worker, which is asked none of them.
pub trait Freight: Send + Sync {
    /// The payload of an object that is to be put, in the order of its bytes and without any
    /// trailer; object 0 of a shard is [`Manifest::encode`]. None, or not the planned size, when it
    /// cannot be given: the put never begins.
    ///
    /// The parts are read until the put returns, and by nobody afterwards.
    fn parts(&self, object: ObjectName) -> Option<Vec<Cow<'_, [u8]>>>;

    /// Takes the payload of an object that was got, without any trailer and verified, into memory
    /// that nobody has adopted. Each object comes once.
    fn place(&self, object: ObjectName, payload: &[u8]) -> Placed;

    /// The whole of what was placed is the checkpoint's: adopt it now. Without this call nothing
    /// may be.
    fn adopt(&self, checkpoint: CheckpointId);

    /// The manifest of a candidate that is described later, planned for every shard of the load.
    /// None gives the load up, and so does a manifest of another position.
    fn describe(&self, endpoint: EndpointId) -> Option<Arc<Manifest>> {
        let _ = endpoint;
        None
    }

    /// Whether every rank stands here with the same checkpoint; one that ended elsewhere disagrees.
    ///
    /// No by default, because ranks that never compared may not act as one.
    fn agree(&self, checkpoint: CheckpointId) -> bool {
        let _ = checkpoint;
        false
    }

    /// Which of these the ranks load. The longest whose digest is this worker's own by default.
    fn choose(&self, pinned: &[Pinned]) -> Choice {
        let _ = pinned;
        Choice::Longest
    }

    /// Some time has passed while this rank waits for others. To ask again by default.
    fn waited(&self) -> Waited {
        Waited::AskAgain
    }
}

/// What became of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// All of it is in its memory, and nobody writes there any more.
    Whole,
    /// Not all of it is, and nobody writes there any more.
    Failed,
    /// Somebody may write there still: the transfer stays in doubt until
    /// [`Handle::retired`](super::Handle::retired).
    InDoubt,
}

/// What the ranks load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The longest pinned checkpoint whose digest is this worker's own.
    Longest,
    /// This one; nothing when it is not pinned.
    This(CheckpointId),
    /// Nothing.
    Nothing,
}

/// What a rank does that has waited for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Asks again; and waits longer than before when it is still too early.
    AskAgain,
    /// Another rank published: nothing is left to ask.
    PublishedElsewhere,
    /// Another rank failed for good: the transfer is cancelled.
    GiveUp,
}
