//! The engine for those who prefer three callbacks to polling.
//!
//! ```
//! use std::io::{self, Write};
//! use std::sync::mpsc::Receiver;
//! use pinfold_core::engine::{Config, Effect, Engine, Input, Reply, Ticket};
//! use pinfold_core::host::Host;
//!
//! # struct Pool; impl Pool { fn start(&mut self, _: Effect) {} }
//! # struct Clients; impl Clients { fn finish(&mut self, _: Ticket, _: Reply) {} }
//! struct Node { wal: std::fs::File, pool: Pool, clients: Clients }
//!
//! impl Host for Node {
//!     type Error = io::Error;
//!     fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
//!         self.wal.write_all(bytes)?;
//!         self.wal.sync_data()
//!     }
//!     fn start(&mut self, effect: Effect) { self.pool.start(effect) } // completes as an Input
//!     fn reply(&mut self, ticket: Ticket, reply: Reply) { self.clients.finish(ticket, reply) }
//! }
//!
//! # type Failure = Box<dyn std::error::Error>;
//! fn run(node: &mut Node, log: &[Vec<u8>], inbox: &Receiver<Input>) -> Result<(), Failure> {
//!     let mut engine = Engine::recover(Config::default(), log.iter().map(Vec::as_slice))?;
//!     while let Ok(input) = inbox.recv() {
//!         engine.submit(input);
//!         engine.drive(node)?;
//!     }
//!     Ok(())
//! }
//! ```

use crate::engine::{Effect, Engine, Output, Reply, Ticket};

/// What a host does for the engine.
pub trait Host {
    /// What can go wrong with the journal.
    type Error;

    /// Appends a frame to the journal and makes it durable.
    ///
    /// # Errors
    /// Any error is final: the engine is poisoned, and the host recovers from the journal.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Starts an effect. Its completion comes back as an input.
    fn start(&mut self, effect: Effect);

    /// Answers the client behind a ticket.
    fn reply(&mut self, ticket: Ticket, reply: Reply);
}

impl Engine {
    /// Persists what was decided, and lets out what that makes durable, until nothing waits.
    ///
    /// # Errors
    /// The host's own, when an append failed; what waited was answered [`Reply::Poisoned`].
    pub fn drive<H: Host>(&mut self, host: &mut H) -> Result<(), H::Error> {
        let mut result = Ok(());
        while let Some(batch) = self.take_batch() {
            match host.append(batch.bytes()) {
                Ok(()) => self.commit(batch),
                Err(error) => {
                    self.fail(batch);
                    result = Err(error);
                }
            }
            self.let_out(host);
        }
        self.let_out(host);
        result
    }

    fn let_out<H: Host>(&mut self, host: &mut H) {
        while let Some(output) = self.poll_output() {
            match output {
                Output::Reply(ticket, reply) => host.reply(ticket, reply),
                Output::Effect(effect) => host.start(effect),
            }
        }
    }
}
