//! What survives real processes that are killed, and real disks that refuse.
//!
//! Nothing here looks into the product: nodes run in processes of their own or through their public
//! calls, and are judged by their answers, by the files that they leave, and by the journal as a
//! reader beside sees it.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

mod cases;
mod folders;
mod full_disk;
mod job;
mod judge;
mod kills;
mod life;
mod load;
mod process;
mod second_journal;
mod small_disk;
mod wire;
