//! Every verb with its answers and refusals: the table of `docs/verbs.md`, to be counted.

/// A verb, what it can answer, and what it can be refused for.
pub struct Row(pub &'static str, pub &'static [&'static str], pub &'static [&'static str]);

/// The row of refusals that come before a verb's own checks.
pub const ANY: &str = "any command";

/// The table; a test compares it with the page.
pub const VERBS: [Row; 16] = [
    Row("Collect", &["Collected"], &[]),
    Row("Configure", &["Configured"], &["NotOperator"]),
    Row("Deleted", &["Deleted"], &["NotCollecting", "UnknownCheckpoint", "UnknownObject"]),
    Row("Doubt", &["Doubted"], &["ForeignPin", "PinEnded", "UnknownPin"]),
    Row("Drop", &["Dropped"], &["NotOperator", "UnknownCheckpoint"]),
    Row("Fence", &["Fenced"], &["Malformed", "NotOperator", "UnknownIncarnation", "UnknownOwner"]),
    Row("Forget", &["Forgotten"], &["LimitExceeded", "NotOperator"]),
    Row("Lost", &["Lost"], &["Collecting", "NotHolder", "UnknownCheckpoint", "UnknownObject"]),
    Row("Pin", &["Pinned"], &["LimitExceeded"]),
    Row(
        "Prepare",
        &["AlreadyPublished", "Prepared"],
        &[
            "AttemptFailed",
            "EndpointQuarantined",
            "InFlight",
            "LimitExceeded",
            "ManifestMismatch",
            "ShardTaken",
        ],
    ),
    Row(
        "Publish",
        &["Published"],
        &[
            "Dropped",
            "ForeignPin",
            "LimitExceeded",
            "Lost",
            "NotComplete",
            "PinEnded",
            "TurnExpired",
            "UnknownPin",
        ],
    ),
    Row(
        "Register",
        &["Registered"],
        &[
            "Fenced",
            "LimitExceeded",
            "Malformed",
            "PolicyMismatch",
            "RoleMismatch",
            "StaleIncarnation",
            "UnknownVersion",
            "WrongEpoch",
        ],
    ),
    Row("Release", &["Released"], &["ForeignPin", "NotFinal", "PinEnded", "UnknownPin"]),
    Row(
        "Retire",
        &["Retired"],
        &["GenesisOperator", "NotOperator", "OwnerHasPins", "UnknownOwner"],
    ),
    Row(
        "Settle",
        &["Settled"],
        &["ForeignPin", "NotFinal", "PinEnded", "ShardNotClaimed", "UnknownPin"],
    ),
    Row(
        ANY,
        &[],
        &[
            "Fenced",
            "Malformed",
            "OpConflict",
            "ReceiptForgotten",
            "StaleIncarnation",
            "UnknownIncarnation",
            "UnknownOwner",
            "WrongEpoch",
        ],
    ),
];

/// The row in which a refusal of a verb is counted: its own, unless any command can meet it and
/// the verb's row doesn't name it.
#[must_use]
pub fn row_of(verb: &'static str, refusal: &'static str) -> &'static str {
    let names = |row: &Row| row.2.contains(&refusal);
    let own = VERBS.iter().any(|row| row.0 == verb && names(row));
    let any = VERBS.iter().any(|row| row.0 == ANY && names(row));
    if any && !own { ANY } else { verb }
}
