//! Writing a log: a line for each thing that a host saw.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinfold_core::engine::{Input, Output, Ticket};

use super::line::{Event, Head, Line};
use crate::node::Watch;

/// Writes the lines of a log and numbers them.
///
/// The first error of the writer is returned, once: after it nothing more is written, so that the
/// log ends there and has no hole, and every later call succeeds.
#[derive(Debug)]
pub struct LogWriter<W> {
    /// None once it failed.
    writer: Option<W>,
    next: u64,
}

impl<W: Write> LogWriter<W> {
    /// Begins a log with its head.
    ///
    /// # Errors
    /// What the writer says.
    pub fn new(mut writer: W, head: &Head) -> io::Result<Self> {
        write_line(&mut writer, head)?;
        Ok(Self::continued(writer, 1))
    }

    /// Goes on with a log whose last line has the number `next` − 1: after a restart, for example.
    #[must_use]
    pub const fn continued(writer: W, next: u64) -> Self {
        Self { writer: Some(writer), next }
    }

    /// Writes that something happened; the line's number is what a reply names its input by.
    ///
    /// # Errors
    /// What the writer says, the first time.
    pub fn write(&mut self, event: Event) -> io::Result<u64> {
        let n = self.next;
        self.next = n.saturating_add(1);
        let Some(writer) = &mut self.writer else { return Ok(n) };
        if let Err(error) = write_line(writer, &Line { n, event }) {
            self.writer = None;
            return Err(error);
        }
        Ok(n)
    }

    /// Leaves a number out: lines may be missing here, such as those that a machine took with it
    /// when it stopped. Whoever judges the log then takes nothing for granted behind it.
    pub const fn leave_gap(&mut self) {
        self.next = self.next.saturating_add(1);
    }

    /// Hands on what the writer keeps back.
    ///
    /// # Errors
    /// What the writer says, the first time.
    pub fn flush(&mut self) -> io::Result<()> {
        let flushed = self.writer.as_mut().map_or(Ok(()), Write::flush);
        if flushed.is_err() {
            self.writer = None;
        }
        flushed
    }
}

impl LogWriter<File> {
    /// Goes on with a log in a file, whose writer may have died within a line: what is behind the
    /// last whole line is cut. Write that the coordinator crashed and recovered before anything
    /// else.
    ///
    /// A file is written line by line, so a process that is killed loses none that it had written.
    /// A machine that stops may: then [leave a gap](Self::leave_gap) first.
    ///
    /// # Errors
    /// What the file system says, or that the last whole line is none of a log.
    pub fn reopen(mut file: File) -> io::Result<Self> {
        let (mut reader, mut line) = (BufReader::new(&mut file), Vec::new());
        let (mut length, mut next) = (0, None);
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            length += line.len() as u64;
            next = Some(std::mem::take(&mut line));
        }
        let Some(last) = next else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let next = match serde_json::from_slice::<Line>(&last) {
            Ok(line) => line.n.saturating_add(1),
            // Behind its head a log is empty.
            Err(_) => serde_json::from_slice::<Head>(&last).map(|_| 1)?,
        };
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Self::continued(file, next))
    }
}

/// A log that several threads write: the [`Watch`] of a node, and whoever moves or deletes bytes.
///
/// It stands behind a lock of its own, which is held for one line. A node waits while its line is
/// written: a buffered writer costs it least, and a file without a buffer loses nothing when the
/// process is killed.
#[derive(Debug)]
pub struct Log<W>(Arc<Mutex<State<W>>>);

#[derive(Debug)]
struct State<W> {
    writer: LogWriter<W>,
    /// The line of each input that has no answer yet.
    inputs: BTreeMap<Ticket, u64>,
    /// The first error, until somebody takes it.
    error: Option<io::Error>,
}

impl<W> Clone for Log<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: Write> Log<W> {
    /// A log that this writer writes.
    #[must_use]
    pub fn new(writer: LogWriter<W>) -> Self {
        Self(Arc::new(Mutex::new(State { writer, inputs: BTreeMap::new(), error: None })))
    }

    /// Writes that something happened; the number of the line. An error is for
    /// [`finish`](Self::finish) to tell.
    pub fn write(&self, event: Event) -> u64 {
        self.lock().write(event)
    }

    /// The coordinator ended: its tickets begin anew.
    pub fn crashed(&self) {
        let mut state = self.lock();
        state.inputs.clear();
        state.write(Event::Crash);
    }

    /// The coordinator is back, and its journal had so many records:
    /// [`Recovery::records`](crate::node::Recovery::records). Watch the node behind this.
    pub fn recovered(&self, records: u64) {
        self.write(Event::Recovered { records: Some(records) });
    }

    /// Hands on what the writer keeps back.
    ///
    /// # Errors
    /// The first error since the last call: the log ends before it.
    pub fn finish(&self) -> io::Result<()> {
        let mut state = self.lock();
        let flushed = state.writer.flush();
        state.error.take().map_or(flushed, Err)
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        // Nobody panics with half a line written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> State<W> {
    fn write(&mut self, event: Event) -> u64 {
        let n = self.writer.next;
        if let Err(error) = self.writer.write(event) {
            self.error.get_or_insert(error);
        }
        n
    }
}

impl<W: Write + Send> Watch for Log<W> {
    fn took(&mut self, input: &Input) {
        let mut state = self.lock();
        let n = state.write(Event::taken(input.epoch, input.request.clone()));
        state.inputs.insert(input.ticket, n);
    }

    fn idled(&mut self) {
        self.lock().write(Event::Idle);
    }

    fn let_out(&mut self, output: &Output) {
        let mut state = self.lock();
        let event = match output {
            Output::Effect(effect) => Event::handed_out(effect.clone()),
            Output::Reply(ticket, reply) => match state.inputs.remove(ticket) {
                Some(to) => Event::Reply { to, answer: reply.clone().into() },
                // An input from before the log began.
                None => return,
            },
        };
        state.write(event);
    }
}

fn write_line<W: Write>(writer: &mut W, line: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    writer.write_all(&text)
}
