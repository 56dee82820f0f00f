//! The runtime, judged from outside: by what the store holds, what the catalog says, and what was
//! adopted.

mod doubt;
mod node_gone;
mod rig;
mod steps;
