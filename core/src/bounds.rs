//! What no setting can exceed: the bounds that keep every event, row and sum within its size.
//!
//! A job's own [`Limits`](crate::policy::Limits) stay below these. They are part of the form of
//! input: what exceeds one is refused as malformed, before anything else is looked at.

/// Rows of one kind that a catalog's tables can hold.
pub const MAX_ROWS: u32 = (1 << 31) - 1;
/// Shards of a checkpoint: their numbers have 16 bits.
pub const MAX_SHARDS: u32 = 65_535;
/// Private objects of a checkpoint: their outcomes are looked through at once.
pub const MAX_OBJECTS: u32 = 1 << 20;
/// Bytes of a checkpoint: 32 TiB, so that what a conversation's turns refer to can be counted.
pub const MAX_CHECKPOINT_BYTES: u64 = 1 << 45;
/// Records of one endpoint: the index is probed one by one.
pub const MAX_GENERATIONS: u32 = 128;
/// Live turns of a conversation.
pub const MAX_TURNS: u32 = 4096;
/// Checkpoints that one turn refers to.
pub const MAX_REFERENCES: u32 = 64;
/// Candidates of one `Pin`: they are compared pair by pair.
pub const MAX_CANDIDATES: u32 = 1024;
/// Answers of one `Pin`: they live in place.
pub const MAX_ANSWERS: u32 = 8;
/// Objects that one `Collect` asks for, and outcomes that one `Deleted` reports.
pub const MAX_COLLECT: u32 = 65_536;
/// Runs of objects that one `Collect` hands out: they live in place.
pub const MAX_PIECES: u32 = 6;
/// Commands of one list.
pub const MAX_COMMANDS: u32 = 1024;
/// Unanswered commands of one owner, and so its receipts.
pub const MAX_UNANSWERED: u32 = 65_536;
