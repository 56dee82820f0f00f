//! A trace that is printed while it happens.

use std::io::{self, Write};

use pinfold_sim::run::{Found, Watch};
use pinfold_sim::script::world::verdict;
use pinfold_sim::seen::Seen;
use pinfold_sim::trace::Trace;
use pinfold_sim::world::choice::Choice;
use pinfold_sim::world::setup::Setup;
use pinfold_sim::world::{Kind, World};

/// Prints each step; what cannot be printed is said at the end.
pub(crate) struct Spoken<'a> {
    trace: Trace,
    out: &'a mut dyn Write,
    written: io::Result<()>,
}

impl<'a> Spoken<'a> {
    pub(crate) fn new(setup: &Setup, out: &'a mut dyn Write) -> Self {
        Self { trace: Trace::new(setup), out, written: Ok(()) }
    }

    /// The last line: what was found, or what a panic said.
    pub(crate) fn end(mut self, found: Result<Option<&Found>, &str>) -> io::Result<()> {
        self.written?;
        let _ = self.trace.take();
        match found {
            Ok(found) => writeln!(self.out, "{}\n", verdict(found)),
            Err(panic) => writeln!(self.out, "panicked: {panic}\n"),
        }
    }
}

impl Watch for Spoken<'_> {
    fn before(&mut self, world: &World, kind: Kind, choice: Choice) {
        self.trace.before(world, kind, choice);
    }

    fn step(&mut self, world: &World, kind: Kind, choice: Choice, seen: &[Seen]) {
        self.trace.step(world, kind, choice, seen);
        for line in self.trace.take() {
            if self.written.is_ok() {
                self.written = writeln!(self.out, "{line}");
            }
        }
    }
}
