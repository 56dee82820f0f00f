//! The bytes that outlive a process: frames of records, and snapshots.

pub mod record;
pub mod snapshot;
