//! Logs: what a host saw of a job, as JSON lines that `pinfold verify-log` judges.
//!
//! Protects whoever embeds the machine: a host that writes down what its coordinator took and
//! answered, and what its workers and its store did, can have all of it replayed by somebody else.
//! The order of the lines is the claim. A log decides nothing, and nobody recovers from one: that
//! is the journal's. Its format is in `docs/log-format.md`.
//!
//! ```
//! use pinfold_core::catalog::{Command, Role};
//! use pinfold_core::id::{Epoch, OwnerId, StartId};
//! use pinfold_core::policy::{Genesis, Limits, Policy};
//! use pinfold_host::log::{Head, Log, LogWriter};
//! use pinfold_host::node::Node;
//! use pinfold_host::owner::Owner;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! let genesis = Genesis {
//!     namespace: "logged".parse()?,
//!     epoch: Epoch::of_name("128 random bits in earnest"),
//!     operator: OwnerId::of_name("operator"),
//!     policy: Policy::default(),
//!     limits: Limits::default(),
//! };
//! let file = std::io::BufWriter::new(std::fs::File::create(dir.join("job.log"))?);
//! let log = Log::new(LogWriter::new(file, &Head::new(genesis.clone()))?);
//! let (node, _effects) = Node::create(&dir.join("job"), genesis)?;
//! // Before the first request: from now on the log has everything.
//! node.watch(Box::new(log.clone()))?;
//!
//! let owner = Owner::register(node.client(), "w", Role::Worker, StartId::of_name("now"))?;
//! owner.ask(Command::Collect { limit: 256 })??;
//! // A thread that deletes or moves bytes writes its own lines with `log.write(event)`.
//! node.stop()?;
//! log.finish()?;
//! // The head; the owner asks for the job, registers and collects: each a line and its reply.
//! assert_eq!(std::fs::read_to_string(dir.join("job.log"))?.lines().count(), 7);
//! # Ok(())
//! # }
//! ```

mod line;
#[cfg(test)]
mod tests;
mod write;

pub use line::{Bytes, Cause, Event, FORMAT, Head, Held, Line, PutResult, VERSION, Way};
pub use write::{Log, LogWriter};
