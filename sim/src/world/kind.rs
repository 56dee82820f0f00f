//! The kinds of choices: the knobs of the simulator.
//!
//! A kind has a name, a group that tells quickly whether it can have any choice, and is a fault or
//! is not.

use super::choice::{
    Act, Choice, Coordinate, DeleteEnd, GetEnd, HostCall, ObjectChange, Passage, PutEnd,
};

/// When a kind is worth drawing: a quick look, before anything is listed. The rules may allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Group {
    /// Nothing.
    Always,
    /// A coordinator that runs.
    Up,
    /// A coordinator that does not.
    Down,
    /// Something decided that is not written.
    Dirty,
    /// Something written that is not synced.
    Written,
    /// A request under way.
    Requests,
    /// An answer under way.
    Answers,
    /// A transfer.
    Jobs,
    /// A command without an answer.
    Asked,
    /// A pin on disk.
    Pins,
    /// A checkpoint on disk.
    Checkpoints,
    /// A put or a get without an answer.
    Moves,
    /// A check without an answer.
    Checks,
    /// A move that was answered.
    Lingering,
    /// Delete work.
    Work,
    /// Deletes that may still take effect.
    LateDeletes,
    /// Private objects.
    Objects,
    /// Objects that the store has lost.
    Vanished,
    /// Keys that an audit named strays.
    Strays,
}

/// A kind of choice. Its name is the knob by which it is weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "`about` says it")]
#[repr(u8)]
pub enum Kind {
    Register,
    Save,
    Load,
    Agree,
    Concur,
    Proceed,
    Publish,
    Deliver,
    Answer,
    Resend,
    Sync,
    Write,
    Commit,
    FollowUp,
    Restart,
    Compact,
    PutOk,
    GetAnswered,
    CheckKnown,
    Retire,
    Collect,
    DeleteGone,
    Report,
    Audit,
    Sweep,
    Look,
    Configure,
    Forget,
    Drop,
    ProvenSettle,
    ProvenFence,
    Release,
    Undoubt,
    RetireOwner,
    // Faults.
    Crash,
    FailSync,
    Die,
    Duplicate,
    Replay,
    Lose,
    Misaddress,
    DuplicateAnswer,
    LoseAnswer,
    SendList,
    Conflict,
    Malformed,
    Mistake,
    Pretend,
    GiveUp,
    Cancel,
    Doubt,
    PutUnretired,
    PutNotStarted,
    PutFailed,
    PutInDoubt,
    PutLies,
    Land,
    GetUnretired,
    GetFailed,
    GetInDoubt,
    GetUnverified,
    CheckUnknown,
    DeleteRefused,
    DeleteUnknown,
    LandDelete,
    Probe,
    DropWork,
    Vanish,
    Return,
    Damage,
    RestartStore,
    OperatorLost,
    FalseSettle,
    FalseFence,
}

/// A row of the table of kinds.
struct Row(Kind, Group, &'static str, &'static str);

/// Every kind with its group, its name, and what it stands for.
const ROWS: [Row; 74] = [
    Row(Kind::Register, Group::Always, "register", "a process registers"),
    Row(Kind::Save, Group::Always, "save", "a worker begins a save"),
    Row(Kind::Load, Group::Always, "load", "a worker begins a load"),
    Row(Kind::Agree, Group::Jobs, "agree", "the ranks of an attempt compare checkpoints"),
    Row(Kind::Concur, Group::Jobs, "concur", "the other ranks of a load hold the same"),
    Row(Kind::Proceed, Group::Jobs, "proceed", "a transfer asks again"),
    Row(Kind::Publish, Group::Jobs, "publish", "a worker publishes one more turn with its pin"),
    Row(Kind::Deliver, Group::Requests, "deliver", "a request arrives"),
    Row(Kind::Answer, Group::Answers, "answer", "an answer arrives"),
    Row(Kind::Resend, Group::Asked, "resend", "a command is sent again"),
    Row(Kind::Sync, Group::Dirty, "sync", "the coordinator writes and syncs"),
    Row(Kind::Write, Group::Dirty, "write", "the coordinator writes, without a sync"),
    Row(Kind::Commit, Group::Written, "commit", "what was written is synced"),
    Row(Kind::FollowUp, Group::Up, "follow-up", "the coordinator does a follow-up"),
    Row(Kind::Restart, Group::Down, "restart", "the coordinator comes back"),
    Row(Kind::Compact, Group::Always, "compact", "the journal becomes a snapshot"),
    Row(Kind::PutOk, Group::Moves, "put-ok", "a put succeeds"),
    Row(Kind::GetAnswered, Group::Moves, "get-answered", "a get brings what there is"),
    Row(Kind::CheckKnown, Group::Checks, "check-known", "a check is answered"),
    Row(Kind::Retire, Group::Lingering, "retire", "a move's memory is done with"),
    Row(Kind::Collect, Group::Up, "collect", "somebody asks for delete work"),
    Row(Kind::DeleteGone, Group::Work, "delete-gone", "an object is deleted"),
    Row(Kind::Report, Group::Work, "report", "outcomes of deletes are reported"),
    Row(Kind::Audit, Group::Up, "audit", "the store is listed and audited"),
    Row(Kind::Sweep, Group::Strays, "sweep", "a stray is deleted"),
    Row(Kind::Look, Group::Up, "look", "somebody asks why a checkpoint is here"),
    Row(Kind::Configure, Group::Up, "configure", "an operator changes the policy"),
    Row(Kind::Forget, Group::Up, "forget", "an operator forgets a conversation"),
    Row(Kind::Drop, Group::Checkpoints, "drop", "an operator drops an unscoped mark"),
    Row(Kind::ProvenSettle, Group::Pins, "settle", "an operator settles a pin, on proof"),
    Row(Kind::ProvenFence, Group::Up, "fence", "an operator fences an incarnation, on proof"),
    Row(Kind::Release, Group::Pins, "release", "an operator releases a pin"),
    Row(Kind::Undoubt, Group::Pins, "undoubt", "a doubt mark is taken away"),
    Row(Kind::RetireOwner, Group::Up, "retire-owner", "an operator retires an owner"),
    Row(Kind::Crash, Group::Up, "crash", "the coordinator dies; part of a frame may be kept"),
    Row(Kind::FailSync, Group::Written, "fail-sync", "a sync fails"),
    Row(Kind::Die, Group::Always, "die", "a process dies and comes back with nothing"),
    Row(Kind::Duplicate, Group::Requests, "dup", "a request arrives twice"),
    Row(Kind::Replay, Group::Up, "replay", "a request that had arrived comes once more"),
    Row(Kind::Lose, Group::Requests, "lose", "a request is lost"),
    Row(Kind::Misaddress, Group::Requests, "misaddress", "a request of another epoch arrives"),
    Row(Kind::DuplicateAnswer, Group::Answers, "dup-answer", "an answer arrives twice"),
    Row(Kind::LoseAnswer, Group::Answers, "lose-answer", "an answer is lost"),
    Row(Kind::SendList, Group::Asked, "list", "two commands are sent again as a list"),
    Row(Kind::Conflict, Group::Up, "conflict", "an operation comes with other content"),
    Row(Kind::Malformed, Group::Up, "malformed", "something comes that is no command"),
    Row(Kind::Mistake, Group::Up, "mistake", "somebody says what is not so"),
    Row(Kind::Pretend, Group::Up, "pretend", "a worker sends what only an operator may"),
    Row(Kind::GiveUp, Group::Jobs, "give-up", "a rank stops waiting for the others"),
    Row(Kind::Cancel, Group::Jobs, "cancel", "a transfer is cancelled"),
    Row(Kind::Doubt, Group::Pins, "doubt", "somebody marks a pin as doubtful"),
    Row(Kind::PutUnretired, Group::Moves, "put-unretired", "a put is ok, its memory in use"),
    Row(Kind::PutNotStarted, Group::Moves, "put-not-started", "a put cannot even begin"),
    Row(Kind::PutFailed, Group::Moves, "put-failed", "a put fails; its bytes may land"),
    Row(Kind::PutInDoubt, Group::Moves, "put-in-doubt", "a put fails, its memory in use"),
    Row(Kind::PutLies, Group::Moves, "put-lies", "a put is ok, and its bytes are not there"),
    Row(Kind::Land, Group::Lingering, "land", "bytes of a failed put land late"),
    Row(Kind::GetUnretired, Group::Moves, "get-unretired", "a get is ok, its memory in use"),
    Row(Kind::GetFailed, Group::Moves, "get-failed", "a get fails"),
    Row(Kind::GetInDoubt, Group::Moves, "get-in-doubt", "a get fails, its memory in use"),
    Row(Kind::GetUnverified, Group::Moves, "get-unverified", "a get is not verified"),
    Row(Kind::CheckUnknown, Group::Checks, "check-unknown", "a check has no answer"),
    Row(Kind::DeleteRefused, Group::Work, "delete-refused", "a delete is refused"),
    Row(Kind::DeleteUnknown, Group::Work, "delete-unknown", "a delete's outcome is unknown"),
    Row(Kind::LandDelete, Group::LateDeletes, "land-delete", "a delete takes effect late"),
    Row(Kind::Probe, Group::Work, "probe", "an object is looked at instead of deleted"),
    Row(Kind::DropWork, Group::Work, "drop-work", "delete work is forgotten"),
    Row(Kind::Vanish, Group::Objects, "vanish", "the store loses an object"),
    Row(Kind::Return, Group::Vanished, "return", "a lost object is back"),
    Row(Kind::Damage, Group::Objects, "damage", "an object's bytes are damaged"),
    Row(Kind::RestartStore, Group::Always, "restart-store", "the store restarts"),
    Row(
        Kind::OperatorLost,
        Group::Checkpoints,
        "say-lost",
        "an operator says a checkpoint is lost",
    ),
    Row(Kind::FalseSettle, Group::Pins, "false-settle", "an operator settles without proof"),
    Row(Kind::FalseFence, Group::Up, "false-fence", "an operator fences without proof"),
];

impl Kind {
    /// How many there are.
    pub const COUNT: usize = ROWS.len();

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.0)
    }

    /// What goes on.
    pub fn ordinary() -> impl Iterator<Item = Self> + Clone {
        ROWS[..Self::Crash.place()].iter().map(|row| row.0)
    }

    /// What goes wrong.
    pub fn faults() -> impl Iterator<Item = Self> + Clone {
        ROWS[Self::Crash.place()..].iter().map(|row| row.0)
    }

    /// Its place in the order of all.
    #[must_use]
    pub const fn place(self) -> usize {
        self as usize
    }

    /// The name by which a knob turns it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ROWS[self.place()].2
    }

    /// What it is, in a few words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        ROWS[self.place()].3
    }

    /// What must be there for it.
    #[must_use]
    pub const fn group(self) -> Group {
        ROWS[self.place()].1
    }

    /// True for what goes wrong, and false for what goes on.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        self.place() >= Self::Crash.place()
    }

    /// The kind of a choice, as far as the choice alone tells it: whether an operator's proof is
    /// true, only the World knows.
    #[must_use]
    pub const fn of(choice: Choice) -> Self {
        match choice {
            Choice::Register(_) => Self::Register,
            Choice::Die(_) => Self::Die,
            Choice::Save { .. } => Self::Save,
            Choice::Load { .. } => Self::Load,
            Choice::Agree(_) => Self::Agree,
            Choice::Host(_, call) => Self::of_call(call),
            Choice::Publish(..) => Self::Publish,
            Choice::Tell(_, act) => Self::of_act(act),
            Choice::Message(_, passage) => Self::of_passage(passage),
            Choice::Coordinator(what) => Self::of_coordinator(what),
            Choice::Put(_, end) => Self::of_put(end),
            Choice::Get(_, GetEnd::Answered) => Self::GetAnswered,
            Choice::Get(_, GetEnd::AnsweredUnretired) => Self::GetUnretired,
            Choice::Get(_, GetEnd::Unverified) => Self::GetUnverified,
            Choice::Get(_, GetEnd::Failed { retired: true }) => Self::GetFailed,
            Choice::Get(_, GetEnd::Failed { retired: false }) => Self::GetInDoubt,
            Choice::Check(_, true) => Self::CheckKnown,
            Choice::Check(_, false) => Self::CheckUnknown,
            Choice::Retire(_) => Self::Retire,
            Choice::Land(_) => Self::Land,
            Choice::Delete(_, DeleteEnd::Gone) => Self::DeleteGone,
            Choice::Delete(_, DeleteEnd::Refused) => Self::DeleteRefused,
            Choice::Delete(_, DeleteEnd::Unknown(_)) => Self::DeleteUnknown,
            Choice::Delete(_, DeleteEnd::Probed) => Self::Probe,
            Choice::DropWork(_) => Self::DropWork,
            Choice::RestartStore => Self::RestartStore,
            Choice::Audit => Self::Audit,
            Choice::Object(_, _, change) => Self::of_change(change),
            Choice::Look(_) => Self::Look,
        }
    }

    /// The kind of a host's decision.
    #[must_use]
    pub const fn of_call(call: HostCall) -> Self {
        match call {
            HostCall::GiveUp => Self::GiveUp,
            HostCall::Concur => Self::Concur,
            HostCall::Proceed => Self::Proceed,
            HostCall::Cancel => Self::Cancel,
        }
    }

    /// The kind of what becomes of a message.
    #[must_use]
    pub const fn of_passage(passage: Passage) -> Self {
        match passage {
            Passage::Resend => Self::Resend,
            Passage::SendList => Self::SendList,
            Passage::Deliver => Self::Deliver,
            Passage::Duplicate => Self::Duplicate,
            Passage::Misaddress => Self::Misaddress,
            Passage::Replay => Self::Replay,
            Passage::Lose => Self::Lose,
            Passage::Answer => Self::Answer,
            Passage::DuplicateAnswer => Self::DuplicateAnswer,
            Passage::LoseAnswer => Self::LoseAnswer,
        }
    }

    /// The kind of what becomes of a stored object.
    #[must_use]
    pub const fn of_change(change: ObjectChange) -> Self {
        match change {
            ObjectChange::LandDelete => Self::LandDelete,
            ObjectChange::Vanish => Self::Vanish,
            ObjectChange::Return => Self::Return,
            ObjectChange::Damage => Self::Damage,
            ObjectChange::Sweep => Self::Sweep,
        }
    }

    const fn of_coordinator(what: Coordinate) -> Self {
        match what {
            Coordinate::FollowUp => Self::FollowUp,
            Coordinate::Sync => Self::Sync,
            Coordinate::Write => Self::Write,
            Coordinate::Commit => Self::Commit,
            Coordinate::FailSync(_) => Self::FailSync,
            Coordinate::Crash(_) => Self::Crash,
            Coordinate::Restart => Self::Restart,
            Coordinate::Compact => Self::Compact,
        }
    }

    /// True for what only an operator may ask.
    #[must_use]
    pub const fn is_for_operators(act: Act) -> bool {
        match act {
            Act::Settle(..)
            | Act::Release(_)
            | Act::Configure(_)
            | Act::Forget(_)
            | Act::Drop(_)
            | Act::Lost(_)
            | Act::Fence(..)
            | Act::Retire(_) => true,
            Act::Doubt(..)
            | Act::Collect(_)
            | Act::Report(_)
            | Act::Malformed
            | Act::Conflict
            | Act::Mistake(_) => false,
        }
    }

    const fn of_act(act: Act) -> Self {
        match act {
            Act::Doubt(_, true) => Self::Doubt,
            Act::Doubt(_, false) => Self::Undoubt,
            Act::Collect(_) => Self::Collect,
            Act::Report(_) => Self::Report,
            Act::Settle(..) => Self::ProvenSettle,
            Act::Release(_) => Self::Release,
            Act::Configure(_) => Self::Configure,
            Act::Forget(_) => Self::Forget,
            Act::Drop(_) => Self::Drop,
            Act::Lost(_) => Self::OperatorLost,
            Act::Fence(..) => Self::ProvenFence,
            Act::Retire(_) => Self::RetireOwner,
            Act::Malformed => Self::Malformed,
            Act::Conflict => Self::Conflict,
            Act::Mistake(_) => Self::Mistake,
        }
    }

    const fn of_put(end: PutEnd) -> Self {
        match end {
            PutEnd::Ok => Self::PutOk,
            PutEnd::OkUnretired => Self::PutUnretired,
            PutEnd::NotStarted => Self::PutNotStarted,
            PutEnd::Failed { retired: true, .. } => Self::PutFailed,
            PutEnd::Failed { retired: false, .. } => Self::PutInDoubt,
            PutEnd::OkAbsent | PutEnd::OkGarbage | PutEnd::OkShort => Self::PutLies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of kinds is in the order of the kinds, and no two have the same name.
    #[test]
    fn every_kind_has_its_row() {
        let mut names = Vec::new();
        for (kind, place) in Kind::all().zip(0..) {
            assert_eq!(kind.place(), place, "{kind:?}");
            assert!(!names.contains(&kind.name()), "{kind:?}");
            names.push(kind.name());
        }
        assert_eq!(names.len(), Kind::FalseFence.place() + 1);
    }
}
