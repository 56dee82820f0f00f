//! The worker's side of one save or one load.
//!
//! A [`Transfer`] decides in which order a worker asks, moves, checks, publishes and lets go, and
//! what evidence it may give. It protects source memory against reuse while it is read, the
//! destination against adoption before every byte arrived, and the catalog against evidence that
//! nobody has. It moves no byte, sends no message and reads no clock: the host takes
//! [`Step`]s, does them, and feeds back what happened.
//!
//! ```
//! # use pinfold_core::transfer::*;
//! # use pinfold_core::manifest::ObjectName;
//! # use pinfold_core::catalog::Command;
//! # use pinfold_core::id::{CheckpointId, OpId};
//! # use pinfold_core::outcome::{Outcome, Rejection};
//! # trait Worker {
//! #     fn send(&mut self, command: Command);
//! #     fn start(&mut self, of: Option<CheckpointId>, step: Step);
//! #     fn next_event(&mut self) -> Happened;
//! # }
//! # enum Happened {
//! #     Answer(OpId, Result<Outcome, Rejection>),
//! #     Done(ObjectName, Completion),
//! #     Peers(bool),
//! #     Timer,
//! # }
//! fn drive(transfer: &mut Transfer, worker: &mut impl Worker) {
//!     while !transfer.is_done() {
//!         while transfer.in_flight() < 64 {
//!             match transfer.next_step() {
//!                 Some(Step::Ask(command)) => worker.send(command), // under the next OpId
//!                 Some(step) => worker.start(transfer.checkpoint(), step),
//!                 None => break,
//!             }
//!         }
//!         match worker.next_event() {
//!             Happened::Answer(op, answer) => transfer.answered(op, answer),
//!             Happened::Done(object, completion) => transfer.completed(object, completion),
//!             Happened::Peers(same) => transfer.agreed(same),
//!             Happened::Timer => transfer.proceed(),
//!         }
//!     }
//! }
//! ```
//!
//! # What the host keeps
//! - A [`Step`] is given once. A lost reply needs no call: the host repeats the command under the
//!   same [`OpId`], as after `Poisoned`. [`Transfer::answered`] is for definite answers only.
//! - Completions may come late, twice, or in any order. The first answer of each move and each
//!   check stands; unknown ones change nothing.
//! - Memory is given back only after [`Transfer::may_reuse_source`] or
//!   [`Transfer::may_reuse_destination`] says so, and never on a timer. A watchdog that gives up on
//!   a move reports it as failed and not retired, which puts it in doubt, or sends `Doubt`.
//! - Dropping a transfer is no step of the protocol: it settles nothing and frees nothing, so its
//!   pins stay until an operator settles or fences them. Use [`Transfer::cancel`] and drive on.

mod asking;
mod ended;
mod load;
mod objects;
mod save;
mod step;
#[cfg(test)]
mod tests;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::catalog::Command;
use crate::id::{CheckpointId, ManifestDigest, OpId, ShardIndex};
use crate::manifest::{Manifest, ObjectName};
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{Evidence, Malformed, Outcome, Pinned, Rejection};
use crate::representation::Difference;

pub use ended::{Ended, Fault, Miss, Published};
pub use load::{Candidate, LoadRequest};
pub use save::{Publication, SaveRequest};
pub use step::{CheckAnswer, Completion, GetAnswer, PutAnswer, Step};

/// A manifest that is compared by its digest.
#[derive(Clone, Debug)]
struct Plan {
    manifest: Arc<Manifest>,
    digest: ManifestDigest,
}

impl Plan {
    fn new(manifest: Arc<Manifest>) -> Self {
        let digest = manifest.digest();
        Self { manifest, digest }
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Plan {}

impl Hash for Plan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

/// Why a transfer cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// No shard is named.
    #[error("no shard is named: name those that this owner moves")]
    NoShard,
    /// The shards do not ascend.
    #[error("the shards must ascend, each once: shard {shard} does not fit")]
    Unordered {
        /// The first one out of order.
        shard: ShardIndex,
    },
    /// The manifest has no such shard.
    #[error("the manifest has no shard {shard}: plan with the layout of all ranks")]
    UnknownShard {
        /// The shard.
        shard: ShardIndex,
    },
    /// The manifest's geometry is none that a catalog takes.
    #[error("the manifest's geometry cannot be prepared: {0}")]
    Shape(Malformed),
    /// No candidate is named.
    #[error("no candidate is named: name the positions that could be restored")]
    NoCandidate,
}

fn check_shards(shards: &[ShardIndex], manifest: Option<&Manifest>) -> Result<(), TransferError> {
    let last = *shards.last().ok_or(TransferError::NoShard)?;
    for pair in shards.windows(2) {
        if let [first, second] = pair
            && first >= second
        {
            return Err(TransferError::Unordered { shard: *second });
        }
    }
    match manifest {
        Some(manifest) if usize::from(last.0) >= manifest.shape().len() => {
            Err(TransferError::UnknownShard { shard: last })
        }
        Some(_) | None => Ok(()),
    }
}

/// One save or one load of a worker. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "dropping a transfer settles nothing: drive it to its end"]
pub struct Transfer(Flow);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Flow {
    Save(save::Save),
    Load(load::Load),
}

impl Transfer {
    /// A save of some shards of a checkpoint.
    ///
    /// # Errors
    /// [`TransferError`] says what is wrong with the request; nothing was asked then.
    pub fn save(request: SaveRequest) -> Result<Self, TransferError> {
        save::Save::new(request).map(|save| Self(Flow::Save(save)))
    }

    /// A load of some shards of the longest restorable candidate.
    ///
    /// # Errors
    /// [`TransferError`] says what is wrong with the request; nothing was asked then.
    pub fn load(request: LoadRequest) -> Result<Self, TransferError> {
        load::Load::new(request).map(|load| Self(Flow::Load(load)))
    }

    /// The next step that can begin now; none while the transfer waits for what has begun, and at
    /// the end. Several may be taken before any is completed.
    pub fn next_step(&mut self) -> Option<Step> {
        match &mut self.0 {
            Flow::Save(save) => save.next_step(),
            Flow::Load(load) => load.next_step(),
        }
    }

    /// The command that may go out in one list with the one that [`Step::Ask`] just gave, behind it
    /// and behind what this gave since; none when nothing is foreseen. It saves round trips: a save
    /// ends with settle, publish and release in one.
    ///
    /// Whoever takes one sends it. Answers are given in the order of the list, up to a refusal,
    /// which ends it: of what stands behind nothing is told, and what of it is due still is asked
    /// again.
    pub fn next_in_list(&mut self) -> Option<Command> {
        match &mut self.0 {
            Flow::Save(save) => save.next_in_list(),
            Flow::Load(load) => load.next_in_list(),
        }
    }

    /// The last command that [`Self::next_in_list`] gave, and nobody took back, was not sent: it is
    /// asked again if it is still due then.
    pub fn take_back_last(&mut self) {
        match &mut self.0 {
            Flow::Save(save) => save.take_back_last(),
            Flow::Load(load) => load.take_back_last(),
        }
    }

    /// The definite answer to the command that was asked under this operation.
    ///
    /// An answer to anything but the first command that waits changes nothing.
    pub fn answered(&mut self, op: OpId, answer: Result<Outcome, Rejection>) {
        #[cfg(pinfold_mutants)]
        if answer == Err(Rejection::ReceiptForgotten) && is_armed(Mutant::ForgottenIgnored) {
            return;
        }
        match &mut self.0 {
            Flow::Save(save) => save.answered(op, answer),
            Flow::Load(load) => load.answered(op, answer),
        }
    }

    /// What became of a step about an object.
    pub fn completed(&mut self, object: ObjectName, completion: Completion) {
        match &mut self.0 {
            Flow::Save(save) => save.completed(object, completion),
            Flow::Load(load) => load.completed(object, completion),
        }
    }

    /// Whether all ranks stand at [`Step::Agree`] with the same checkpoint.
    pub fn agreed(&mut self, same: bool) {
        match &mut self.0 {
            Flow::Save(save) => save.agreed(same),
            Flow::Load(load) => load.agreed(same),
        }
    }

    /// Asks again what [`Step::Wait`] waited for.
    pub fn proceed(&mut self) {
        match &mut self.0 {
            Flow::Save(save) => save.proceed(),
            Flow::Load(load) => load.proceed(),
        }
    }

    /// Another rank published what this save was to publish.
    pub fn published_elsewhere(&mut self) {
        if let Flow::Save(save) = &mut self.0 {
            save.published_elsewhere();
        }
    }

    /// Begins nothing more, waits for what has begun to be retired, and ends with the evidence at
    /// hand. What is in doubt stays so until proof.
    pub fn cancel(&mut self) {
        match &mut self.0 {
            Flow::Save(save) => save.cancel(),
            Flow::Load(load) => load.cancel(Miss::Cancelled),
        }
    }

    /// This rank needs no bytes: a load lets go of everything it holds; a save is cancelled.
    pub fn decline(&mut self) {
        match &mut self.0 {
            Flow::Save(save) => save.cancel(),
            Flow::Load(load) => load.cancel(Miss::Declined),
        }
    }

    /// What a load's `Pin` answered, in the order of the candidates.
    pub fn pinned(&self) -> Vec<Pinned> {
        match &self.0 {
            Flow::Save(_) => Vec::new(),
            Flow::Load(load) => load.pinned(),
        }
    }

    /// True for a pinned checkpoint whose digest equals that of this worker's own plan.
    #[must_use]
    pub fn agrees(&self, checkpoint: CheckpointId) -> bool {
        match &self.0 {
            Flow::Save(_) => false,
            Flow::Load(load) => load.agrees(checkpoint),
        }
    }

    /// Loads this pinned checkpoint, or none; false, and nothing changed, when it is not pinned or
    /// there is nothing to choose. One whose digest differs is a miss.
    pub fn choose(&mut self, checkpoint: Option<CheckpointId>) -> bool {
        match &mut self.0 {
            Flow::Save(_) => false,
            Flow::Load(load) => load.choose(checkpoint),
        }
    }

    /// Loads the longest pinned checkpoint whose digest equals that of the own plan.
    pub fn choose_longest(&mut self) -> bool {
        match &mut self.0 {
            Flow::Save(_) => false,
            Flow::Load(load) => load.choose_longest(),
        }
    }

    /// The manifest that [`Step::Describe`] asked for; false, and nothing changed, when it is of
    /// another position, or has not all shards of this load. One whose digest differs from the
    /// pinned checkpoint's is a miss.
    pub fn described(&mut self, manifest: &Manifest) -> bool {
        match &mut self.0 {
            Flow::Save(_) => false,
            Flow::Load(load) => load.described(manifest),
        }
    }

    /// The verified payload of the stored manifest, or none when it could not be read. The read is
    /// over: nobody writes its buffer any more.
    pub fn manifest_read(&mut self, payload: Option<&[u8]>) {
        if let Flow::Load(load) = &mut self.0 {
            load.manifest_read(payload);
        }
    }

    /// In which fields the stored manifest differs from the own plan, once it was read.
    #[must_use]
    pub fn differences(&self) -> Vec<Difference> {
        match &self.0 {
            Flow::Save(_) => Vec::new(),
            Flow::Load(load) => load.differences(),
        }
    }

    /// The checkpoint whose objects are moved, which the keys of private ones are made of.
    #[must_use]
    pub fn checkpoint(&self) -> Option<CheckpointId> {
        match &self.0 {
            Flow::Save(save) => save.checkpoint(),
            Flow::Load(load) => load.checkpoint(),
        }
    }

    /// True while nothing but a proof ends it: memory of it may still be touched, and nobody says
    /// by whom and how long.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        match &self.0 {
            Flow::Save(save) => save.is_in_doubt(),
            Flow::Load(load) => load.is_in_doubt(),
        }
    }

    /// How many puts, gets and checks somebody still works on.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        match &self.0 {
            Flow::Save(save) => save.in_flight(),
            Flow::Load(load) => load.in_flight(),
        }
    }

    /// True at the end: no step will follow, and no memory of it may be touched any more. A check
    /// may still be under way; its completion is nobody's business.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.report().is_some()
    }

    /// How it ended.
    #[must_use]
    pub fn report(&self) -> Option<Ended> {
        match &self.0 {
            Flow::Save(save) => save.report(),
            Flow::Load(load) => load.report(),
        }
    }

    /// What is known about a shard's bytes, the worker's own states included; none for a shard that
    /// this transfer does not move. A load is one whole, so all its shards say the same.
    #[must_use]
    pub fn evidence(&self, shard: ShardIndex) -> Option<Evidence> {
        match &self.0 {
            Flow::Save(save) => save.evidence(shard),
            Flow::Load(load) => load.evidence(shard),
        }
    }

    /// True when the memory that a shard was saved from is provably done with.
    #[must_use]
    pub fn may_reuse_source(&self, shard: ShardIndex) -> bool {
        match &self.0 {
            Flow::Save(save) => save.evidence(shard).is_some_and(Evidence::is_final),
            Flow::Load(_) => false,
        }
    }

    /// True when a load will adopt nothing, and its memory is provably done with.
    #[must_use]
    pub fn may_reuse_destination(&self) -> bool {
        match &self.0 {
            Flow::Save(_) => false,
            Flow::Load(load) => load.may_reuse_destination(),
        }
    }
}
