//! What a choice is to the picture.

use super::Now;
use super::arrow::{End, What};
use super::lane::Lane;
use crate::world::choice::{About, Choice, Coordinate, ObjectChange, Passage};

/// What a choice is to the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Somebody does something.
    Done(Lane),
    /// The ranks of an attempt compare.
    Agreed(u16),
    /// A message comes to an end.
    Carried(What, About, End),
    /// A copy of a message that had arrived is under way.
    Replayed(About),
    /// Records are on their way to the disk.
    Written,
    /// They are on it, or never will be.
    Synced,
    /// Something is seen of the store, or of a disk that is read again.
    Stored,
}

impl Part {
    /// What a choice is.
    pub(super) fn of(choice: Choice) -> Self {
        match choice {
            Choice::Register(process)
            | Choice::Die(process)
            | Choice::Save { process, .. }
            | Choice::Load { process, .. }
            | Choice::Tell(process, _) => Self::Done(Lane::Process(process)),
            Choice::Host(job, _) | Choice::Publish(job, _) => {
                Self::Done(Lane::Process(job.process))
            }
            Choice::Message(about, Passage::Resend | Passage::SendList) => {
                Self::Done(Lane::Process(about.process()))
            }
            Choice::Retire(id) => Self::Done(Now::lane_of_move(id)),
            Choice::Coordinator(Coordinate::FollowUp) | Choice::Look(_) => {
                Self::Done(Lane::Coordinator)
            }
            Choice::Coordinator(Coordinate::Compact) => Self::Done(Lane::Disk),
            Choice::RestartStore | Choice::Object(_, _, ObjectChange::Sweep) => {
                Self::Done(Lane::Store)
            }
            Choice::Agree(attempt) => Self::Agreed(attempt),
            Choice::Message(about, Passage::Deliver) => {
                Self::Carried(What::Request, about, End::Arrived)
            }
            Choice::Message(about, Passage::Duplicate | Passage::Misaddress) => {
                Self::Carried(What::Request, about, End::Copied)
            }
            Choice::Message(about, Passage::Lose) => Self::Carried(What::Request, about, End::Lost),
            Choice::Message(about, Passage::Answer) => {
                Self::Carried(What::Answer, about, End::Arrived)
            }
            Choice::Message(about, Passage::DuplicateAnswer) => {
                Self::Carried(What::Answer, about, End::Copied)
            }
            Choice::Message(about, Passage::LoseAnswer) => {
                Self::Carried(What::Answer, about, End::Lost)
            }
            Choice::Message(about, Passage::Replay) => Self::Replayed(about),
            Choice::Coordinator(Coordinate::Write) => Self::Written,
            Choice::Coordinator(Coordinate::Sync | Coordinate::Commit)
            | Choice::Coordinator(Coordinate::FailSync(_) | Coordinate::Crash(_)) => Self::Synced,
            Choice::Put(..)
            | Choice::Get(..)
            | Choice::Check(..)
            | Choice::Land(_)
            | Choice::Delete(..)
            | Choice::Object(_, _, ObjectChange::LandDelete)
            | Choice::DropWork(_)
            | Choice::Object(
                _,
                _,
                ObjectChange::Vanish | ObjectChange::Return | ObjectChange::Damage,
            )
            | Choice::Coordinator(Coordinate::Restart)
            | Choice::Audit => Self::Stored,
        }
    }
}
