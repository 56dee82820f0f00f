//! In which configuration of the model checker each bug is found, or why in none.

/// Where a bug is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this configuration.
    In(&'static str),
    /// No World of the checker can have it; why.
    Nowhere(&'static str),
}

/// Where a bug is found; none for one that nobody has looked for.
pub(crate) fn place(bug: &str) -> Option<Place> {
    PLACES.iter().find(|it| it.0 == bug).map(|it| it.1)
}

/// By the name of the bug.
const PLACES: [(&str, Place); 76] = [
    ("abandoned-is-whole", Place::In("geometries")),
    ("adopt-before-retired", Place::In("doubts")),
    ("adopt-early", Place::In("basics")),
    ("anyone-succeeds", Place::In("deaths")),
    ("audit-misses-pins", Place::In("strays")),
    ("conflict-answered", Place::In("refusals")),
    ("delete-before-intent", Place::In("basics")),
    ("delete-by-endpoint", Place::In("cancels")),
    ("doubt-ends-load-pin", Place::In("doubts")),
    ("doubt-is-failure", Place::In("limits")),
    ("doubt-mark-ends-pin", Place::In("doubts")),
    ("drop-ignores-lost", Place::In("late")),
    ("dropped-bytes-stay", Place::In("unscoped")),
    ("ended-claim-is-free", Place::In("shards")),
    ("ended-pin-counted", Place::In("pretenders")),
    ("expire-elsewhere", Place::In("policies")),
    ("expire-newest", Place::In("deletes")),
    ("expired-forgotten", Place::In("basics")),
    ("fail-is-commit", Place::In("crashes")),
    ("failure-is-success", Place::In("collections")),
    ("fence-leaves-pins", Place::In("deaths")),
    ("fence-takes-the-current", Place::In("deaths")),
    ("fenced-obeyed", Place::In("deaths")),
    ("forget-never-due", Place::In("basics")),
    ("forgotten-executed", Place::In("network")),
    ("forgotten-ignored", Place::Nowhere("no process sends beyond its window")),
    ("forgotten-takes-turns", Place::In("limits")),
    ("generation-reused", Place::In("strays")),
    ("join-ignores-digest", Place::In("geometries")),
    ("kept-without-pin", Place::In("basics")),
    ("later-success-counts", Place::In("deaths")),
    ("leave-at-append", Place::In("crashes")),
    ("limit-refuses-collect", Place::Nowhere("no bound of bytes is small")),
    ("limit-refuses-release", Place::In("limits")),
    ("limit-refuses-settle", Place::Nowhere("no bound of bytes is small")),
    ("lost-passed-over", Place::In("lies")),
    ("lowered-bound-forgotten", Place::In("policies")),
    (
        "manifest-kept-by-endpoint",
        Place::Nowhere(
            "no save of another geometry comes after a whole one of its position was collected",
        ),
    ),
    ("not-exposed-after-start", Place::In("collections")),
    ("older-obeyed", Place::In("deaths")),
    ("one-turn-more", Place::In("deletes")),
    ("operator-settles-success", Place::In("proofs")),
    ("other-digest-chosen", Place::Nowhere("every load plans the geometry that is saved")),
    ("other-epoch-obeyed", Place::In("refusals")),
    ("poison-swallows", Place::In("crashes")),
    ("put-again", Place::In("cancels")),
    ("queries-skip-gate", Place::Nowhere("nobody asks while a record waits for its sync")),
    ("rank-speaks-for-all", Place::In("shards")),
    ("receipts-lost-at-restart", Place::In("crashes")),
    ("refusal-swallowed", Place::Nowhere("nothing is refused while a frame is written")),
    ("refusals-not-kept", Place::In("network")),
    ("refusals-skip-gate", Place::In("pretenders")),
    ("refused-is-gone", Place::In("deletes")),
    (
        "refused-stays-in-front",
        Place::Nowhere("nothing waits behind a checkpoint with a refused object"),
    ),
    ("register-ends-pins", Place::In("deaths")),
    ("release-unsettled", Place::In("deaths")),
    ("replay-skips-doubt", Place::Nowhere("no crash comes while a pin is doubtful")),
    ("replay-skips-refusals", Place::In("pretenders")),
    ("republish-moves", Place::In("policies")),
    ("second-publication-replaces", Place::In("deletes")),
    ("serve-collecting", Place::In("cancels")),
    ("serve-failed", Place::In("cancels")),
    ("serve-lost", Place::In("lies")),
    ("settle-before-retired", Place::In("doubts")),
    ("settle-ends-twins", Place::In("retention")),
    ("snapshot-drops-doubt", Place::Nowhere("a snapshot is taken only where no pin is doubtful")),
    (
        "snapshot-drops-expired",
        Place::Nowhere("a snapshot is taken only where no turn has expired"),
    ),
    ("snapshot-drops-trim", Place::Nowhere("a snapshot is taken only where no bound is lowered")),
    (
        "snapshot-turns-queue",
        Place::Nowhere("a snapshot is taken only where nothing waits to be collected"),
    ),
    ("stray-counted", Place::In("strays")),
    (
        "torn-tail-takes-more",
        Place::Nowhere("a crash keeps nothing or all of a frame, and tears none"),
    ),
    ("unconfirmed", Place::In("basics")),
    ("unknown-is-gone", Place::In("deletes")),
    ("unscoped-ends-with-pin", Place::In("unscoped")),
    ("whole-changes-digest", Place::In("basics")),
    ("wrong-bytes-adopted", Place::In("lies")),
];
