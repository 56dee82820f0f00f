//! How one step of a transfer is done: against the owner, the store and the freight.
//!
//! It is the only place where a step becomes calls. It protects the store's answers: what a store
//! does not know never becomes a success or a loss; and the destination: bytes are read into memory
//! of its own, verified, and only then placed. It never decides which step comes next.

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pinfold_core::catalog::Command;
use pinfold_core::id::{CheckpointId, Key, ObjectId, OpId};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::object::{Checksum, Digest, TRAILER_BYTES, seal, verify};
use pinfold_core::outcome::Pinned;
use pinfold_core::policy::Genesis;
use pinfold_core::transfer::{CheckAnswer, Completion, GetAnswer, PutAnswer, Step, Transfer};

use super::freight::{Choice, Freight, Placed, Waited};
use crate::owner::{Answer, Owner, OwnerError, Unanswered};
use crate::store::{GetOutcome, ObjectStore, Presence, PutOutcome, Why};

/// Does the steps of transfers, one call at a time.
///
/// A [`Runtime`](super::Runtime) has one and shares it among its movers. By itself it is for who
/// takes the steps of a transfer one by one.
#[derive(Clone)]
pub struct Porter {
    owner: Arc<Owner>,
    store: Arc<dyn ObjectStore>,
    job: Genesis,
}

/// Something that went wrong on a transfer's way; what follows is in how the transfer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// A call into the store or the freight panicked: a fault of the program.
    pub panicked: bool,
    /// What was tried, and what came back.
    pub why: Why,
}

/// A step that was taken, with what it needs to know of its transfer.
#[derive(Debug)]
pub(super) struct TakenStep {
    pub(super) step: Step,
    checkpoint: Option<CheckpointId>,
    pinned: Vec<Pinned>,
}

/// A command that waits for its answer, and its operation once it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The command.
    pub command: Command,
    /// None when it was never sent.
    pub op: Option<OpId>,
}

/// What became of the commands of one list.
pub(super) struct Asked {
    /// Those that were sent, under their operations; only the first, without one, where none was.
    pub(super) list: Vec<Waiting>,
    /// How many behind them were not sent.
    pub(super) left_out: usize,
    pub(super) came: Came,
}

/// What came back.
pub(super) enum Came {
    /// The answers up to the first refusal.
    Answered(Vec<(OpId, Answer)>),
    /// To be asked again once there is another node.
    Unanswered(Unanswered),
    /// The owner's window is closed.
    Held,
}

/// What became of any other step.
pub(super) enum Happened {
    Completed(ObjectName, Completion),
    Agreed(bool),
    Chosen(Choice),
    Described(Option<Arc<Manifest>>),
    ManifestRead(Option<Vec<u8>>),
    Waited(Waited),
    Adopted,
}

impl TakenStep {
    pub(super) fn new(transfer: &Transfer, step: Step) -> Self {
        let pinned = if step == Step::Choose { transfer.pinned() } else { Vec::new() };
        Self { step, checkpoint: transfer.checkpoint(), pinned }
    }

    /// What is known when the call for it panicked: it failed, and is over.
    fn unwound(&self) -> Happened {
        match &self.step {
            Step::Put { object, .. } => put(*object, PutAnswer::Failed),
            Step::Get { object, .. } => got(*object, GetAnswer::Failed, true),
            Step::Check { object, .. } => checked(*object, CheckAnswer::Unknown),
            Step::Agree { .. } => Happened::Agreed(false),
            Step::Choose => Happened::Chosen(Choice::Nothing),
            Step::Describe { .. } => Happened::Described(None),
            Step::ReadManifest { .. } => Happened::ManifestRead(None),
            Step::Wait | Step::Ask(_) => Happened::Waited(Waited::AskAgain),
            Step::Adopt { .. } => Happened::Adopted,
        }
    }
}

impl Happened {
    /// Reports it to the transfer whose step it was.
    pub(super) fn report_to(self, transfer: &mut Transfer) {
        match self {
            Self::Completed(object, completion) => transfer.completed(object, completion),
            Self::Agreed(same) => transfer.agreed(same),
            Self::Chosen(Choice::Longest) => {
                transfer.choose_longest();
            }
            Self::Chosen(Choice::This(checkpoint)) => {
                if !transfer.choose(Some(checkpoint)) {
                    transfer.choose(None);
                }
            }
            Self::Chosen(Choice::Nothing) => {
                transfer.choose(None);
            }
            Self::Described(manifest) => {
                if !manifest.is_some_and(|manifest| transfer.described(&manifest)) {
                    transfer.cancel();
                }
            }
            Self::ManifestRead(payload) => transfer.manifest_read(payload.as_deref()),
            Self::Waited(Waited::AskAgain) => transfer.proceed(),
            Self::Waited(Waited::PublishedElsewhere) => {
                transfer.published_elsewhere();
                transfer.proceed();
            }
            Self::Waited(Waited::GiveUp) => transfer.cancel(),
            Self::Adopted => {}
        }
    }
}

/// Notes what went wrong.
type Troubles<'a> = &'a mut Vec<Trouble>;

impl Porter {
    /// A porter of a job.
    #[must_use]
    pub fn new(owner: Arc<Owner>, store: Arc<dyn ObjectStore>, job: Genesis) -> Self {
        Self { owner, store, job }
    }

    /// Does the step that was just taken from a transfer, and reports it there. Before a
    /// [`Step::Wait`] the caller pauses.
    ///
    /// # Errors
    /// [`OwnerError`] when the node is gone; the command is then among the owner's
    /// [unanswered](Owner::unanswered), if it got its number.
    pub fn step(
        &self,
        transfer: &mut Transfer,
        step: Step,
        freight: &dyn Freight,
    ) -> Result<Vec<Trouble>, OwnerError> {
        let mut troubles = Vec::new();
        if let Step::Ask(command) = step {
            let (op, answer) = self.owner.ask_numbered(command)?;
            transfer.answered(op, answer);
        } else {
            let taken = TakenStep::new(transfer, step);
            self.perform(&taken, freight, &mut troubles).report_to(transfer);
        }
        Ok(troubles)
    }

    pub(super) const fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Asks commands in their order under their operations, or under new ones as far as the window
    /// lets them. Whoever else sends them, the answers are kept for their transfer.
    pub(super) fn ask(&self, mut list: Vec<Waiting>) -> Asked {
        let count = list.len();
        if list.iter().all(|one| one.op.is_none()) {
            let commands: Vec<_> = list.iter().map(|one| one.command.clone()).collect();
            let begun = self.owner.try_begin_list(&commands);
            let ops = begun.as_deref().unwrap_or_default();
            list.truncate(ops.len().max(1));
            for (one, op) in list.iter_mut().zip(ops) {
                one.op = Some(*op);
            }
            if ops.is_empty() {
                let gone = begun.is_err();
                let came = if gone { Came::Unanswered(Unanswered::Gone) } else { Came::Held };
                return Asked { list, left_out: count - 1, came };
            }
        }
        let left_out = count - list.len();
        let sent = list.iter().filter_map(|one| Some((one.op?, one.command.clone())));
        let sent: Vec<_> = sent.collect();
        let came = match self.owner.fetch_list(&sent) {
            Ok(answers) => {
                let answers = sent.iter().zip(answers);
                Came::Answered(answers.filter_map(|((op, _), said)| Some((*op, said?))).collect())
            }
            Err(why) => Came::Unanswered(why),
        };
        Asked { list, left_out, came }
    }

    /// Does anything but a command. A panic of the store or the freight ends here.
    pub(super) fn perform(
        &self,
        taken: &TakenStep,
        freight: &dyn Freight,
        troubles: Troubles<'_>,
    ) -> Happened {
        let mut noted = Vec::new();
        let attempt = AssertUnwindSafe(|| self.try_perform(taken, freight, &mut noted));
        let happened = catch_unwind(attempt);
        troubles.append(&mut noted);
        happened.unwrap_or_else(|panic| {
            let words = format!("{:?}: panicked: {}", taken.step, words(&*panic));
            troubles.push(Trouble { panicked: true, why: Why::new(words) });
            taken.unwound()
        })
    }

    fn try_perform(
        &self,
        taken: &TakenStep,
        freight: &dyn Freight,
        troubles: Troubles<'_>,
    ) -> Happened {
        match taken.step {
            Step::Put { object, bytes } => {
                let Some(of) = taken.checkpoint else { return put(object, PutAnswer::NotStarted) };
                put(object, self.put((of, object), bytes, freight, troubles))
            }
            Step::Check { object, .. } => {
                let Some(of) = taken.checkpoint else { return taken.unwound() };
                checked(object, self.check(&self.key(of, object), troubles))
            }
            Step::Get { object, bytes } => {
                let Some(of) = taken.checkpoint else {
                    return got(object, GetAnswer::NotStarted, true);
                };
                let (answer, retired) = self.get((of, object), bytes, freight, troubles);
                got(object, answer, retired)
            }
            Step::Agree { checkpoint } => Happened::Agreed(freight.agree(checkpoint)),
            Step::Choose => Happened::Chosen(freight.choose(&taken.pinned)),
            Step::Describe { endpoint } => Happened::Described(freight.describe(endpoint)),
            Step::ReadManifest { checkpoint, object } => {
                Happened::ManifestRead(self.read_manifest(checkpoint, object, troubles))
            }
            Step::Wait => Happened::Waited(freight.waited()),
            Step::Adopt { checkpoint } => {
                freight.adopt(checkpoint);
                Happened::Adopted
            }
            Step::Ask(_) => taken.unwound(),
        }
    }

    fn private_key(&self, checkpoint: CheckpointId, object: ObjectId) -> Key {
        let Genesis { namespace, epoch, .. } = &self.job;
        Key { namespace: namespace.clone(), epoch: *epoch, checkpoint, object }
    }

    fn key(&self, checkpoint: CheckpointId, object: ObjectName) -> String {
        match object {
            ObjectName::Private(id) => self.private_key(checkpoint, id).to_string(),
            ObjectName::Shared(name) => name.key(&self.job.namespace, &self.job.epoch),
        }
    }

    fn check(&self, key: &str, troubles: Troubles<'_>) -> CheckAnswer {
        let presence = self.store.size(key);
        if let Presence::Unknown(why) = &presence {
            note(troubles, "check", key, why);
        }
        (&presence).into()
    }

    fn put(
        &self,
        (checkpoint, object): (CheckpointId, ObjectName),
        bytes: u64,
        freight: &dyn Freight,
        troubles: Troubles<'_>,
    ) -> PutAnswer {
        let key = self.key(checkpoint, object);
        let parts = freight.parts(object).unwrap_or_default();
        let mut slices: Vec<&[u8]> = parts.iter().map(Cow::as_ref).collect();
        let payload_bytes: u64 = slices.iter().map(|part| part.len() as u64).sum();
        let trailer_bytes = match object {
            ObjectName::Shared(_) => 0,
            ObjectName::Private(_) => u64::from(TRAILER_BYTES),
        };
        if payload_bytes + trailer_bytes != bytes {
            let expected = bytes.saturating_sub(trailer_bytes);
            let words = format!("the freight gave {payload_bytes} bytes and not {expected}");
            note(troubles, "put", &key, &Why::new(words));
            return PutAnswer::NotStarted;
        }
        let outcome = match object {
            ObjectName::Shared(_) => self.store.put_shared(&key, &slices),
            ObjectName::Private(id) => {
                let sealed = self.private_key(checkpoint, id);
                let trailer = seal(&sealed, payload_bytes, checksum(&slices));
                slices.push(&trailer);
                self.store.put(&key, &slices)
            }
        };
        match &outcome {
            PutOutcome::Stored => {}
            PutOutcome::Failed(why) | PutOutcome::Unknown(why) => note(troubles, "put", &key, why),
        }
        (&outcome).into()
    }

    /// The answer, and whether nobody touches the freight's memory any more.
    fn get(
        &self,
        (checkpoint, object): (CheckpointId, ObjectName),
        bytes: u64,
        freight: &dyn Freight,
        troubles: Troubles<'_>,
    ) -> (GetAnswer, bool) {
        let key = self.key(checkpoint, object);
        let read = match self.read(&key, bytes, troubles) {
            Ok(read) => read,
            Err(answer) => return (answer, true),
        };
        let (payload, answer) = match object {
            ObjectName::Shared(_) => (&read[..], GetAnswer::Arrived { bytes }),
            ObjectName::Private(id) => match verify(&self.private_key(checkpoint, id), &read) {
                Ok(payload) => (payload, GetAnswer::Verified { bytes }),
                Err(error) => {
                    note(troubles, "get", &key, &Why::new(error.to_string()));
                    return (error.into(), true);
                }
            },
        };
        let placed = freight.place(object, payload);
        if placed != Placed::Whole {
            note(troubles, "get", &key, &Why::new("the freight did not take all of it"));
        }
        match placed {
            Placed::Whole => (answer, true),
            Placed::Failed => (GetAnswer::Failed, true),
            Placed::InDoubt => (GetAnswer::Failed, false),
        }
    }

    /// Reads a whole object into memory that only this call knows.
    fn read(&self, key: &str, bytes: u64, troubles: Troubles<'_>) -> Result<Vec<u8>, GetAnswer> {
        let mut read = Vec::new();
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        if read.try_reserve_exact(length).is_err() {
            note(troubles, "get", key, &Why::new(format!("no memory for {bytes} bytes")));
            return Err(GetAnswer::NotStarted);
        }
        read.resize(length, 0);
        let (answer, why) = match self.store.get(key, &mut read) {
            GetOutcome::Read => return Ok(read),
            GetOutcome::Absent => (GetAnswer::Absent, Why::new("absent")),
            GetOutcome::WrongSize { bytes: found } => {
                let words = format!("it has {found} bytes and not {bytes}");
                (GetAnswer::WrongSize { bytes: found }, Why::new(words))
            }
            GetOutcome::Unreadable(why) => (GetAnswer::Unreadable, why),
            GetOutcome::Unknown(why) => (GetAnswer::Failed, why),
        };
        note(troubles, "get", key, &why);
        Err(answer)
    }

    /// The verified payload of a stored manifest.
    fn read_manifest(
        &self,
        checkpoint: CheckpointId,
        object: ObjectId,
        troubles: Troubles<'_>,
    ) -> Option<Vec<u8>> {
        let sealed = self.private_key(checkpoint, object);
        let key = sealed.to_string();
        let Presence::Present { bytes } = self.store.size(&key) else { return None };
        let read = self.read(&key, bytes, troubles).ok()?;
        verify(&sealed, &read).ok().map(<[u8]>::to_vec)
    }
}

const fn put(object: ObjectName, answer: PutAnswer) -> Happened {
    // A store's call that has ended reads its parts no more: they were lent to the call.
    Happened::Completed(object, Completion::Put { answer, retired: true })
}

const fn got(object: ObjectName, answer: GetAnswer, retired: bool) -> Happened {
    Happened::Completed(object, Completion::Got { answer, retired })
}

const fn checked(object: ObjectName, answer: CheckAnswer) -> Happened {
    Happened::Completed(object, Completion::Checked(answer))
}

fn note(troubles: Troubles<'_>, verb: &str, key: &str, why: &Why) {
    troubles.push(Trouble { panicked: false, why: Why::new(format!("{verb} of {key}: {why}")) });
}

/// The checksum of a payload that lies in parts.
fn checksum(parts: &[&[u8]]) -> Digest {
    let mut checksum = Checksum::default();
    let mut offset = 0;
    for part in parts {
        // Parts that follow each other never overlap.
        let _ = checksum.update_at(offset, part);
        offset += part.len() as u64;
    }
    checksum.finish(offset).unwrap_or_default()
}

/// What a panic said.
pub(super) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".into())
}
