//! What a replay and its workers' processes say to each other: one JSON object a line, between
//! processes of one program; and such a process as the replay holds it.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use pinfold_core::id::{Incarnation, OwnerId};
use serde::{Deserialize, Serialize};

use crate::serve::{Served, Turn};

/// What a worker's process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Serve a turn.
    Serve(Turn),
    /// Begin the save of a turn, stop after its first private put, and wait to be killed.
    Vanish(Turn),
}

/// What it says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// It has registered.
    Registered(OwnerId, Incarnation),
    /// What became of a turn, and how much it asked for that.
    Served(Box<Served>, u64),
    /// Whether a save is under way.
    Vanished(bool),
    /// It cannot go on.
    Failed(String),
}

pub(super) fn say(out: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// A worker's process, from the outside. It is killed when this is dropped.
pub(super) struct Process {
    child: Child,
    orders: ChildStdin,
    out: BufReader<ChildStdout>,
    /// Who it is for the coordinator.
    pub(super) identity: (OwnerId, Incarnation),
}

impl Process {
    /// A process that was just started, once it has registered.
    pub(super) fn new(mut child: Child) -> Result<Self, String> {
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (orders, out) = pipes.ok_or("its pipes are missing: this is a fault of pinfold")?;
        let identity = (OwnerId::from_u128(0), Incarnation(0));
        let mut process = Self { child, orders, out: BufReader::new(out), identity };
        match process.hear() {
            Some(Said::Registered(owner, incarnation)) => {
                process.identity = (owner, incarnation);
                Ok(process)
            }
            Some(Said::Failed(what)) => Err(what),
            Some(Said::Served(..) | Said::Vanished(_)) | None => {
                Err("it ended before it had registered".into())
            }
        }
    }

    /// What it says to an order; none when it is dead.
    pub(super) fn ask(&mut self, order: &Order) -> Option<Said> {
        say(&mut self.orders, order).ok()?;
        self.hear()
    }

    fn hear(&mut self) -> Option<Said> {
        let mut line = String::new();
        // A line without its end is what a killed process got to say.
        let is_whole = self.out.read_line(&mut line).is_ok() && line.ends_with('\n');
        if is_whole { serde_json::from_str(&line).ok() } else { None }
    }

    /// Kills it, and waits until it is gone: no process of this incarnation runs any more, which is
    /// the proof that a fence asserts.
    pub(super) fn kill(mut self) -> io::Result<(OwnerId, Incarnation)> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.identity)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that is gone already cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
