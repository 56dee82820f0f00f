//! Deliberate bugs, each of which breaks one promise: so that a suite can prove that every promise
//! is watched.
//!
//! Protects the judges from going blind. It is compiled under `cfg(pinfold_mutants)` alone, which
//! no feature sets: a product build has none of it. One mutant at most is armed at a time, for the
//! whole process. It is never armed by the core itself.

use core::sync::atomic::{AtomicU8, Ordering};

use crate::invariant::Invariant;

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// An unscoped mark goes with the checkpoint's last pin.
    UnscopedEndsWithPin,
    /// Publishing a live turn once more takes its earlier references away.
    SecondPublicationReplaces,
    /// Delete work leaves before the intent to delete is durable.
    DeleteBeforeIntent,
    /// One load's end ends every other load pin on the same checkpoint.
    SettleEndsTwins,
    /// `AlreadyPublished` names a pin and takes none.
    KeptWithoutPin,
    /// A stopped transfer says that nothing started, while bytes still move.
    NotExposedAfterStart,
    /// Delete work for one checkpoint is handed out for its endpoint's others, too.
    DeleteByEndpoint,
    /// An audit calls the keys of a checkpoint that only pins hold strays.
    AuditMissesPins,
    /// A prepared checkpoint whose last save pin ended counts as whole.
    AbandonedIsWhole,
    /// One rank's success stands for the shards of every other rank.
    RankSpeaksForAll,
    /// A failed shard is recorded as one that arrived.
    FailureIsSuccess,
    /// An operator may settle another's pin as a success.
    OperatorSettlesSuccess,
    /// A success that comes after a failure takes its place.
    LaterSuccessCounts,
    /// A shard whose claim has ended can be claimed once more.
    EndedClaimIsFree,
    /// A save counts an object that was put as confirmed, without a check.
    Unconfirmed,
    /// A checkpoint's digest changes when its last shard arrives.
    WholeChangesDigest,
    /// A new generation's digest becomes that of its endpoint's older ones.
    ManifestKeptByEndpoint,
    /// A rank with another manifest joins the attempt.
    JoinIgnoresDigest,
    /// A full conversation expires the job's oldest turn instead of its own.
    ExpireElsewhere,
    /// The newest turn of a conversation expires, and not the oldest.
    ExpireNewest,
    /// Publishing a conversation's oldest turn once more makes it the newest.
    RepublishMoves,
    /// A conversation keeps one live turn more than it may.
    OneTurnMore,
    /// A lowered bound is carried to no conversation.
    LoweredBoundForgotten,
    /// What a lowered bound still makes due is not read back from a snapshot.
    SnapshotDropsTrim,
    /// The identity of a turn goes when the turn expires.
    ExpiredForgotten,
    /// A forgotten conversation takes new turns.
    ForgottenTakesTurns,
    /// Expired turns are not read back from a snapshot.
    SnapshotDropsExpired,
    /// A load pin ends when it is settled `InDoubt`.
    DoubtEndsLoadPin,
    /// Marking a load pin as doubtful ends it.
    DoubtMarkEndsPin,
    /// A save pin is released without final evidence.
    ReleaseUnsettled,
    /// A new incarnation ends the pins of the one that it follows.
    RegisterEndsPins,
    /// A fence of an older incarnation is one of the current one, too.
    FenceTakesTheCurrent,
    /// A transfer in doubt is settled as a quiesced failure.
    DoubtIsFailure,
    /// A lost checkpoint is served.
    ServeLost,
    /// A failed checkpoint counts as whole once its save pins have ended.
    ServeFailed,
    /// A checkpoint that is being deleted is served.
    ServeCollecting,
    /// Outputs leave when a batch is taken, and not when it is synced.
    LeaveAtAppend,
    /// Refusals leave at once, whatever they depend on.
    RefusalsSkipGate,
    /// Answers to queries leave at once, whatever they depend on.
    QueriesSkipGate,
    /// A failed append counts as a durable one.
    FailIsCommit,
    /// A torn tail takes the good frame before it along.
    TornTailTakesMore,
    /// Marks of doubt are not read back from a snapshot.
    SnapshotDropsDoubt,
    /// The queue's first checkpoint is its last one when a snapshot is read back.
    SnapshotTurnsQueue,
    /// Replay passes over refusals and their receipts.
    ReplaySkipsRefusals,
    /// Replay marks no pin as doubtful.
    ReplaySkipsDoubt,
    /// A fenced incarnation is obeyed while it is the current one.
    FencedObeyed,
    /// An older incarnation is obeyed in what it says about its pins.
    OlderObeyed,
    /// A command or registration of another epoch is obeyed.
    OtherEpochObeyed,
    /// A registration need not name the incarnation that it follows.
    AnyoneSucceeds,
    /// The bytes of a cleared unscoped mark stay counted.
    DroppedBytesStay,
    /// An owner's count of pins forgets that its load pins end.
    EndedPinCounted,
    /// A refusal leaves no receipt.
    RefusalsNotKept,
    /// A command whose receipt is forgotten is decided again.
    ForgottenExecuted,
    /// The same operation with other content gets the first answer.
    ConflictAnswered,
    /// Receipts whose operation has no live pin are lost at a restart.
    ReceiptsLostAtRestart,
    /// A load adopts before its last object arrived.
    AdoptEarly,
    /// A private object whose trailer does not fit is adopted.
    WrongBytesAdopted,
    /// A load chooses a checkpoint whose manifest is not the planned one.
    OtherDigestChosen,
    /// A shard is settled as a success while its memory is still read.
    SettleBeforeRetired,
    /// A load adopts memory that somebody may still write.
    AdoptBeforeRetired,
    /// A put that failed is begun once more under the same key.
    PutAgain,
    /// The last minted generation is minted again when its record is gone.
    GenerationReused,
    /// An audit says that a generation without a record still counts its keys.
    StrayCounted,
    /// A delete with an unknown outcome counts as gone.
    UnknownIsGone,
    /// A refused delete counts as gone.
    RefusedIsGone,
    /// A release is refused while all pins are taken.
    LimitRefusesRelease,
    /// `InDoubt` is refused at the bound of bytes in doubt.
    LimitRefusesSettle,
    /// `Collect` is refused beyond the bound of quarantined bytes.
    LimitRefusesCollect,
    /// A checkpoint with a refused object keeps its place at the queue's front.
    RefusedStaysInFront,
    /// `Collect` passes over a lost checkpoint for ever.
    LostPassedOver,
    /// What waits when the engine is poisoned is never answered.
    PoisonSwallows,
    /// A refusal that is decided while a batch is out is never answered.
    RefusalSwallowed,
    /// A transfer takes no notice of `ReceiptForgotten`, and waits for ever.
    ForgottenIgnored,
    /// A fence bars an incarnation and leaves its pins.
    FenceLeavesPins,
    /// `Forget` expires no turn.
    ForgetNeverDue,
    /// `Drop` does nothing for a lost checkpoint.
    DropIgnoresLost,
}

const COUNT: usize = 76;

/// Each mutant's name, and the promise that it breaks, in the order of the enum.
const ROWS: [(Mutant, &str, Invariant); COUNT] = [
    (Mutant::UnscopedEndsWithPin, "unscoped-ends-with-pin", Invariant::I1),
    (Mutant::SecondPublicationReplaces, "second-publication-replaces", Invariant::I1),
    (Mutant::DeleteBeforeIntent, "delete-before-intent", Invariant::I10),
    (Mutant::SettleEndsTwins, "settle-ends-twins", Invariant::I2),
    (Mutant::KeptWithoutPin, "kept-without-pin", Invariant::I2),
    (Mutant::NotExposedAfterStart, "not-exposed-after-start", Invariant::I16),
    (Mutant::DeleteByEndpoint, "delete-by-endpoint", Invariant::I3),
    (Mutant::AuditMissesPins, "audit-misses-pins", Invariant::I3),
    (Mutant::AbandonedIsWhole, "abandoned-is-whole", Invariant::I9),
    (Mutant::RankSpeaksForAll, "rank-speaks-for-all", Invariant::I4),
    (Mutant::FailureIsSuccess, "failure-is-success", Invariant::I4),
    (Mutant::OperatorSettlesSuccess, "operator-settles-success", Invariant::I8),
    (Mutant::LaterSuccessCounts, "later-success-counts", Invariant::I4),
    (Mutant::EndedClaimIsFree, "ended-claim-is-free", Invariant::I4),
    (Mutant::Unconfirmed, "unconfirmed", Invariant::I4),
    (Mutant::WholeChangesDigest, "whole-changes-digest", Invariant::I5),
    (Mutant::ManifestKeptByEndpoint, "manifest-kept-by-endpoint", Invariant::I5),
    (Mutant::JoinIgnoresDigest, "join-ignores-digest", Invariant::I5),
    (Mutant::ExpireElsewhere, "expire-elsewhere", Invariant::I6),
    (Mutant::ExpireNewest, "expire-newest", Invariant::I6),
    (Mutant::RepublishMoves, "republish-moves", Invariant::I6),
    (Mutant::OneTurnMore, "one-turn-more", Invariant::I6),
    (Mutant::LoweredBoundForgotten, "lowered-bound-forgotten", Invariant::I6),
    (Mutant::SnapshotDropsTrim, "snapshot-drops-trim", Invariant::I11),
    (Mutant::ExpiredForgotten, "expired-forgotten", Invariant::I7),
    (Mutant::ForgottenTakesTurns, "forgotten-takes-turns", Invariant::I7),
    (Mutant::SnapshotDropsExpired, "snapshot-drops-expired", Invariant::I7),
    (Mutant::DoubtEndsLoadPin, "doubt-ends-load-pin", Invariant::I8),
    (Mutant::DoubtMarkEndsPin, "doubt-mark-ends-pin", Invariant::I8),
    (Mutant::ReleaseUnsettled, "release-unsettled", Invariant::I8),
    (Mutant::RegisterEndsPins, "register-ends-pins", Invariant::I8),
    (Mutant::FenceTakesTheCurrent, "fence-takes-the-current", Invariant::I8),
    (Mutant::DoubtIsFailure, "doubt-is-failure", Invariant::I16),
    (Mutant::ServeLost, "serve-lost", Invariant::I9),
    (Mutant::ServeFailed, "serve-failed", Invariant::I9),
    (Mutant::ServeCollecting, "serve-collecting", Invariant::I9),
    (Mutant::LeaveAtAppend, "leave-at-append", Invariant::I10),
    (Mutant::RefusalsSkipGate, "refusals-skip-gate", Invariant::I10),
    (Mutant::QueriesSkipGate, "queries-skip-gate", Invariant::I10),
    (Mutant::FailIsCommit, "fail-is-commit", Invariant::I10),
    (Mutant::TornTailTakesMore, "torn-tail-takes-more", Invariant::I10),
    (Mutant::SnapshotDropsDoubt, "snapshot-drops-doubt", Invariant::I11),
    (Mutant::SnapshotTurnsQueue, "snapshot-turns-queue", Invariant::I11),
    (Mutant::ReplaySkipsRefusals, "replay-skips-refusals", Invariant::I11),
    (Mutant::ReplaySkipsDoubt, "replay-skips-doubt", Invariant::I11),
    (Mutant::FencedObeyed, "fenced-obeyed", Invariant::I12),
    (Mutant::OlderObeyed, "older-obeyed", Invariant::I12),
    (Mutant::OtherEpochObeyed, "other-epoch-obeyed", Invariant::I12),
    (Mutant::AnyoneSucceeds, "anyone-succeeds", Invariant::I12),
    (Mutant::DroppedBytesStay, "dropped-bytes-stay", Invariant::I13),
    (Mutant::EndedPinCounted, "ended-pin-counted", Invariant::I13),
    (Mutant::RefusalsNotKept, "refusals-not-kept", Invariant::I14),
    (Mutant::ForgottenExecuted, "forgotten-executed", Invariant::I14),
    (Mutant::ConflictAnswered, "conflict-answered", Invariant::I14),
    (Mutant::ReceiptsLostAtRestart, "receipts-lost-at-restart", Invariant::I14),
    (Mutant::AdoptEarly, "adopt-early", Invariant::I15),
    (Mutant::WrongBytesAdopted, "wrong-bytes-adopted", Invariant::I15),
    (Mutant::OtherDigestChosen, "other-digest-chosen", Invariant::I15),
    (Mutant::SettleBeforeRetired, "settle-before-retired", Invariant::I16),
    (Mutant::AdoptBeforeRetired, "adopt-before-retired", Invariant::I16),
    (Mutant::PutAgain, "put-again", Invariant::I17),
    (Mutant::GenerationReused, "generation-reused", Invariant::I17),
    (Mutant::StrayCounted, "stray-counted", Invariant::I17),
    (Mutant::UnknownIsGone, "unknown-is-gone", Invariant::I14),
    (Mutant::RefusedIsGone, "refused-is-gone", Invariant::I14),
    (Mutant::LimitRefusesRelease, "limit-refuses-release", Invariant::I18),
    (Mutant::LimitRefusesSettle, "limit-refuses-settle", Invariant::I18),
    (Mutant::LimitRefusesCollect, "limit-refuses-collect", Invariant::I18),
    (Mutant::RefusedStaysInFront, "refused-stays-in-front", Invariant::L1),
    (Mutant::LostPassedOver, "lost-passed-over", Invariant::L1),
    (Mutant::PoisonSwallows, "poison-swallows", Invariant::L2),
    (Mutant::RefusalSwallowed, "refusal-swallowed", Invariant::L2),
    (Mutant::ForgottenIgnored, "forgotten-ignored", Invariant::L2),
    (Mutant::FenceLeavesPins, "fence-leaves-pins", Invariant::L3),
    (Mutant::ForgetNeverDue, "forget-never-due", Invariant::L3),
    (Mutant::DropIgnoresLost, "drop-ignores-lost", Invariant::L3),
];

/// The armed mutant's number, from 1; 0 for none.
static ARMED: AtomicU8 = AtomicU8::new(0);

/// Arms one mutant in place of the one before, or none.
pub fn arm(mutant: Option<Mutant>) {
    ARMED.store(mutant.map_or(0, Mutant::number), Ordering::Relaxed);
}

/// Whether this mutant is the armed one.
#[must_use]
pub fn is_armed(mutant: Mutant) -> bool {
    ARMED.load(Ordering::Relaxed) == mutant.number()
}

impl Mutant {
    /// All of them, in the order of the enum.
    pub const ALL: [Self; COUNT] = {
        let mut all = [ROWS[0].0; COUNT];
        let mut place = 0;
        while place < COUNT {
            all[place] = ROWS[place].0;
            assert!(all[place] as usize == place, "a row is out of order");
            place += 1;
        }
        all
    };

    /// The mutant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ROWS[self as usize].1
    }

    /// The promise that it breaks.
    #[must_use]
    pub const fn invariant(self) -> Invariant {
        ROWS[self as usize].2
    }

    const fn number(self) -> u8 {
        self as u8 + 1
    }
}
