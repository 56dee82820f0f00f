//! What a choice is to the picture.

use super::Now;
use super::arrow::{End, What};
use super::lane::Lane;
use crate::world::choice::{About, Choice};

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
            Choice::GiveUp(job)
            | Choice::Proceed(job)
            | Choice::Cancel(job)
            | Choice::Publish(job, _) => Self::Done(Lane::Process(job.process)),
            Choice::Resend(about) | Choice::SendList(about) => {
                Self::Done(Lane::Process(about.process()))
            }
            Choice::Retire(id) => Self::Done(Now::lane_of_move(id)),
            Choice::FollowUp | Choice::Look(_) => Self::Done(Lane::Coordinator),
            Choice::Compact => Self::Done(Lane::Disk),
            Choice::RestartStore | Choice::Sweep(..) => Self::Done(Lane::Store),
            Choice::Agree(attempt) => Self::Agreed(attempt),
            Choice::Deliver(about) => Self::Carried(What::Request, about, End::Arrived),
            Choice::Duplicate(about) | Choice::Misaddress(about) => {
                Self::Carried(What::Request, about, End::Copied)
            }
            Choice::Lose(about) => Self::Carried(What::Request, about, End::Lost),
            Choice::Answer(about) => Self::Carried(What::Answer, about, End::Arrived),
            Choice::DuplicateAnswer(about) => Self::Carried(What::Answer, about, End::Copied),
            Choice::LoseAnswer(about) => Self::Carried(What::Answer, about, End::Lost),
            Choice::Replay(about) => Self::Replayed(about),
            Choice::Write => Self::Written,
            Choice::Sync | Choice::Commit | Choice::FailSync(_) | Choice::Crash(_) => Self::Synced,
            Choice::Put(..)
            | Choice::Get(..)
            | Choice::Check(..)
            | Choice::Land(_)
            | Choice::Delete(..)
            | Choice::LandDelete(..)
            | Choice::DropWork(_)
            | Choice::Vanish(..)
            | Choice::Return(..)
            | Choice::Damage(..)
            | Choice::Restart
            | Choice::Audit => Self::Stored,
        }
    }
}
