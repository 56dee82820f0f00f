//! What survives real processes that are killed, and real disks that refuse.
//!
//! Nothing here looks into the product: nodes run in processes of their own or through their public
//! calls, and are judged by their answers, by the files that they leave, and by the journal as a
//! reader beside sees it.

mod job;
mod judge;
mod kills;
mod load;
mod process;
mod wire;
