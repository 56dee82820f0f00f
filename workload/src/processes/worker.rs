//! A worker's process, from the inside.
//!
//! It does one thing at a time and keeps nothing: which turn is next, and what came of it, is the
//! replay's. It ends when nobody asks it any more.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinfold_core::catalog::Role;
use pinfold_core::id::{Incarnation, OwnerId, StartId};
use pinfold_host::coordinator::Coordinator;
use pinfold_host::owner::Owner;
use pinfold_host::store::ObjectStore;

use super::counted::Counted;
use super::job;
use super::pipe::{Order, Said, say};
use crate::model::Model;
use crate::replay::ReplayError;
use crate::serve::Worker;

/// What a worker's process needs.
pub struct WorkerConfig {
    /// Who takes its requests.
    pub coordinator: Arc<dyn Coordinator>,
    /// Its name in the job.
    pub name: String,
    /// Random: tells this start of it from every other.
    pub start: StartId,
    /// Where objects live, for everybody.
    pub store: Arc<dyn ObjectStore>,
    /// Tokens of a block of the trace.
    pub block_tokens: u32,
    /// Bytes of private state at each position.
    pub bytes_per_checkpoint: u64,
}

/// A worker's process: it registers, says so on `out`, and serves what it is asked to until nobody
/// asks.
///
/// # Errors
/// When it cannot read or say anything; what else goes wrong it says.
pub fn work(config: WorkerConfig, orders: impl BufRead, mut out: impl Write) -> io::Result<()> {
    let answers = Arc::<AtomicU64>::default();
    match begin(config, &answers) {
        Ok((worker, (owner, incarnation))) => {
            say(&mut out, &Said::Registered(owner, incarnation))?;
            obey(worker, &answers, orders, out)
        }
        Err(error) => say(&mut out, &Said::Failed(error.to_string())),
    }
}

fn begin(
    config: WorkerConfig,
    answers: &Arc<AtomicU64>,
) -> Result<(Worker, (OwnerId, Incarnation)), ReplayError> {
    let WorkerConfig { coordinator, name, start, store, block_tokens, bytes_per_checkpoint } =
        config;
    let model = Arc::new(Model::new(block_tokens, bytes_per_checkpoint)?);
    let job = job(&coordinator)?;
    let client = Counted::new(coordinator, Arc::clone(answers));
    let owner = Owner::register(client, &name, Role::Worker, start)?;
    let identity = owner.identity();
    Ok((Worker::new(owner, model, store, job)?, identity))
}

/// Its life: it does what it is asked for, until nobody asks.
fn obey(
    mut worker: Worker,
    answers: &AtomicU64,
    orders: impl BufRead,
    mut out: impl Write,
) -> io::Result<()> {
    for line in orders.lines() {
        let said = match serde_json::from_str(&line?)? {
            Order::Serve(turn) => match worker.serve(&turn) {
                Ok(served) => Said::Served(Box::new(served), answers.swap(0, Ordering::Relaxed)),
                Err(error) => Said::Failed(error.to_string()),
            },
            Order::Vanish(turn) => match worker.begin_and_vanish(&turn) {
                Ok(begun) => Said::Vanished(begun),
                Err(error) => Said::Failed(error.to_string()),
            },
        };
        say(&mut out, &said)?;
    }
    Ok(())
}
