//! What must be seen before a choice counts as one that made a difference.
//!
//! A fault that is injected and changes nothing tests nothing. So each kind says what its effect
//! is, in words and as a [`Proof`]; `notes` looks for it.

use crate::world::Kind;

/// Where the effect of a kind of choice is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// Something for it to change was there when it was chosen.
    Ripe,
    /// Something came of it in its own step.
    Stirred,
    /// The command that it sent was answered with more than a refusal.
    Achieved,
    /// An answer or a record that nothing else leads to was seen, now or later.
    Heard,
    /// What it left behind was met in a later step.
    Met,
}

/// A kind of choice, how its effect is seen, and what it is.
struct Row(Kind, Proof, &'static str);

use Proof::{Achieved, Heard, Met, Ripe, Stirred};

const ROWS: [Row; Kind::COUNT] = [
    Row(Kind::Register, Heard, "an incarnation was minted"),
    Row(Kind::Save, Heard, "a save pin was taken"),
    Row(Kind::Load, Heard, "a load pin was taken"),
    Row(Kind::Agree, Stirred, "a rank went on"),
    Row(Kind::Concur, Stirred, "a load adopted what it had brought"),
    Row(Kind::Proceed, Stirred, "the transfer asked again"),
    Row(Kind::Publish, Achieved, "the publication stands"),
    Row(Kind::Deliver, Heard, "a decision became durable"),
    Row(Kind::Answer, Stirred, "its process still waited for it"),
    Row(Kind::Resend, Ripe, "neither the request nor its answer was under way"),
    Row(Kind::Sync, Stirred, "a reply or delete work left"),
    Row(Kind::Write, Stirred, "a frame is written and not synced"),
    Row(Kind::Commit, Stirred, "a reply or delete work left"),
    Row(Kind::FollowUp, Stirred, "its record waits to be written"),
    Row(Kind::Restart, Ripe, "the disk held a checkpoint"),
    Row(Kind::Compact, Ripe, "the disk held records that came after the last snapshot"),
    Row(Kind::PutOk, Stirred, "the bytes are in the store"),
    Row(Kind::GetAnswered, Ripe, "the object was in the store"),
    Row(Kind::CheckKnown, Stirred, "an object was confirmed, or the transfer went on"),
    Row(Kind::Retire, Stirred, "the transfer went on, or its memory was given away"),
    Row(Kind::Collect, Achieved, "delete work was handed out"),
    Row(Kind::DeleteGone, Ripe, "the object was in the store"),
    Row(Kind::Report, Achieved, "the outcomes were taken"),
    Row(Kind::Audit, Heard, "a stray was named"),
    Row(Kind::Sweep, Ripe, "the object was in the store"),
    Row(Kind::Look, Heard, "blockers were told"),
    Row(Kind::Configure, Achieved, "the policy was taken"),
    Row(Kind::Forget, Achieved, "the conversation is over"),
    Row(Kind::Drop, Achieved, "the checkpoint has no unscoped mark"),
    Row(Kind::ProvenSettle, Achieved, "evidence stands"),
    Row(Kind::ProvenFence, Achieved, "the incarnation is barred"),
    Row(Kind::Release, Achieved, "the pin ended"),
    Row(Kind::Undoubt, Achieved, "the pin has no doubt mark"),
    Row(Kind::RetireOwner, Achieved, "the owner is forgotten"),
    Row(Kind::Crash, Ripe, "something decided was not durable, or a reply had not left"),
    Row(Kind::FailSync, Stirred, "somebody who waited was told that nothing is known"),
    Row(Kind::Die, Ripe, "the process had a transfer or an unanswered command"),
    Row(Kind::Duplicate, Met, "the second copy was answered, too"),
    Row(Kind::Replay, Met, "the request was answered once more"),
    Row(Kind::Lose, Met, "the request was sent again"),
    Row(Kind::Misaddress, Heard, "it was refused as one of another epoch"),
    Row(Kind::DuplicateAnswer, Met, "the answer came again, and changed nothing"),
    Row(Kind::LoseAnswer, Met, "the request was sent again"),
    Row(Kind::SendList, Heard, "a list was answered command by command"),
    Row(Kind::Conflict, Heard, "one of the two contents was refused"),
    Row(Kind::Malformed, Heard, "it was refused by the field that is wrong"),
    Row(Kind::Mistake, Heard, "it was refused as unknown, or not so"),
    Row(Kind::Pretend, Heard, "it was refused as not an operator's"),
    Row(Kind::GiveUp, Stirred, "the transfer went on"),
    Row(Kind::Cancel, Ripe, "the transfer held a pin, or its question was under way"),
    Row(Kind::Doubt, Achieved, "the pin has its doubt mark"),
    Row(Kind::PutUnretired, Ripe, "its transfer still lived, and had to wait"),
    Row(Kind::PutNotStarted, Stirred, "its transfer began to end"),
    Row(Kind::PutFailed, Stirred, "its transfer began to end"),
    Row(Kind::PutInDoubt, Met, "its pin was settled as in doubt"),
    Row(Kind::PutLies, Met, "a check or a get found it"),
    Row(Kind::Land, Stirred, "the bytes are in the store"),
    Row(Kind::GetUnretired, Ripe, "its transfer still lived, and had to wait"),
    Row(Kind::GetFailed, Stirred, "its transfer began to end"),
    Row(Kind::GetInDoubt, Met, "its pin was settled as in doubt"),
    Row(Kind::GetUnverified, Stirred, "its transfer began to end"),
    Row(Kind::CheckUnknown, Stirred, "its transfer began to end"),
    Row(Kind::DeleteRefused, Heard, "a refused object is on record"),
    Row(Kind::DeleteUnknown, Heard, "an unknown outcome is on record"),
    Row(Kind::LandDelete, Ripe, "the object was in the store"),
    Row(Kind::Probe, Ripe, "the object was not in the store"),
    Row(Kind::DropWork, Met, "work on its checkpoint was handed out again"),
    Row(Kind::Vanish, Met, "a check or a get missed the object"),
    Row(Kind::Return, Met, "somebody met the object again"),
    Row(Kind::Damage, Met, "a get found the damage"),
    Row(Kind::RestartStore, Ripe, "somebody still worked on a move"),
    Row(Kind::OperatorLost, Achieved, "the checkpoint has its mark"),
    Row(Kind::FalseSettle, Achieved, "evidence stands"),
    Row(Kind::FalseFence, Achieved, "the incarnation is barred"),
];

/// The table is in the order of the kinds.
const _: () = {
    let mut place = 0;
    while place < Kind::COUNT {
        assert!(ROWS[place].0.place() == place, "a row stands in another kind's place");
        place += 1;
    }
};

/// How the effect of a kind of choice is seen.
#[must_use]
pub const fn proof(kind: Kind) -> Proof {
    ROWS[kind.place()].1
}

/// What the effect of a kind of choice is, in words.
#[must_use]
pub const fn words(kind: Kind) -> &'static str {
    ROWS[kind.place()].2
}
