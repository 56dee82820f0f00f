//! The audit log: every operator's command and what came of it, a JSON line each.
//!
//! It is for people and never read back: what is in force stands in the journal. A line is written
//! when the answer is durable, by a thread of its own; one that cannot be written is counted and
//! shown, and stops nobody.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use pinfold_core::catalog::Command;
use pinfold_core::id::OpId;
use pinfold_host::dto::{ListAnswer, ListedCommand};
use serde::Serialize;

/// One line.
#[derive(Debug, Serialize)]
pub(super) struct Audited {
    /// When the answer left.
    at: String,
    /// Which owner asked, under which operation, and what.
    #[serde(flatten)]
    command: ListedCommand,
    answer: ListAnswer,
}

/// What the thread that writes is told.
#[derive(Debug)]
enum Told {
    Line(Box<Audited>),
    /// Whoever ends waits until all lines before this are written.
    End(Sender<()>),
}

/// How long an end waits for lines that are not written yet.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where lines go. Its thread ends with the last clone.
#[derive(Clone, Debug)]
pub(super) struct AuditLog {
    lines: Sender<Told>,
    /// Lines that could not be written.
    pub(super) lost: Arc<AtomicU64>,
}

impl AuditLog {
    /// A log that goes on at the end of a file, which is made for its owner alone.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let (lines, read) = channel::<Told>();
        let lost = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&lost);
        let path = path.to_path_buf();
        thread::Builder::new().name("pinfold-audit".into()).spawn(move || {
            for told in read {
                match told {
                    Told::Line(line) => {
                        if let Err(error) = write(&mut file, &line) {
                            counts.fetch_add(1, Ordering::Relaxed);
                            let path = path.display();
                            tracing::error!(%error, %path, "a line of the audit log is lost");
                        }
                    }
                    Told::End(done) => drop(done.send(())),
                }
            }
        })?;
        Ok(Self { lines, lost })
    }

    /// Writes down what came of a command.
    pub(super) fn write(&self, command: ListedCommand, answer: ListAnswer) {
        let at = Timestamp::now().to_string();
        let line = Box::new(Audited { at, command, answer });
        if self.lines.send(Told::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what was told before is written, or it takes too long.
    pub(super) fn end(&self) {
        let (done, written) = channel();
        if self.lines.send(Told::End(done)).is_ok() {
            // Whoever reads the log sees by the journal what it lacks.
            let _ = written.recv_timeout(PATIENCE);
        }
    }
}

fn write(file: &mut File, line: &Audited) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// Whether a command is an operator's: one that only an operator may ask, or about a pin of
/// somebody else. A loss may be an operator's, and is final.
pub(super) fn is_audited(op: OpId, command: &Command) -> bool {
    match command {
        Command::Configure { .. }
        | Command::Forget { .. }
        | Command::Drop { .. }
        | Command::Fence { .. }
        | Command::Lost { .. }
        | Command::Retire { .. } => true,
        Command::Settle { pin, .. } | Command::Doubt { pin, .. } | Command::Release { pin } => {
            pin.op.owner != op.owner
        }
        Command::Prepare(_)
        | Command::Publish { .. }
        | Command::Pin { .. }
        | Command::Collect { .. }
        | Command::Deleted { .. } => false,
    }
}
