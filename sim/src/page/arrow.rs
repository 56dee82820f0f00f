//! What goes from one lane of the picture to another.

use super::lane::Lane;

/// What an arrow stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A message to the coordinator.
    Request,
    /// Its answer.
    Answer,
    /// Delete work that the coordinator hands out.
    Work,
    /// Bytes on their way into the store.
    Put,
    /// A get or a check on its way to the store.
    Ask,
    /// What the store gives back: bytes, or that they are there.
    Get,
    /// A delete on its way to the store.
    Delete,
    /// Records on their way to the disk.
    Sync,
    /// What the disk gives back to a coordinator that begins anew.
    Read,
}

impl What {
    /// Its class on the page.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Answer => "answer",
            Self::Work => "work",
            Self::Put => "put",
            Self::Ask => "ask",
            Self::Get => "get",
            Self::Delete => "delete",
            Self::Sync => "sync",
            Self::Read => "read",
        }
    }
}

/// How an arrow ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// It arrives.
    Arrived,
    /// It arrives, and a copy of it goes on.
    Copied,
    /// It never arrives.
    Lost,
    /// It is under way when the picture ends.
    Open,
}

/// One arrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    /// What it stands for.
    pub(super) what: What,
    /// What is sent, in the trace's words.
    pub(super) name: String,
    /// Where it begins, and at which step.
    pub(super) from: (Lane, u32),
    /// Where it ends, and at which step.
    pub(super) to: (Lane, u32),
    /// How it ends.
    pub(super) end: End,
}

impl Arrow {
    /// The whole of it in a line.
    pub(super) fn title(&self) -> String {
        let Self { what, name, from, to, end } = self;
        let (what, from, to) = (what.class(), from.1, to.1);
        match end {
            End::Arrived if from == to => format!("{what} {name}: step {to}"),
            End::Arrived => format!("{what} {name}: from step {from}, arrives at step {to}"),
            End::Copied => {
                format!("{what} {name}: from step {from}, arrives at step {to}, and will again")
            }
            End::Lost => format!("{what} {name}: from step {from}, lost at step {to}"),
            End::Open => format!("{what} {name}: from step {from}, under way at the end"),
        }
    }
}
