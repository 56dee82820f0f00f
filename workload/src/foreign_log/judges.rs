//! The judges of the simulator, beside the engine and the rules, in a log from genesis.
//!
//! Protects a verdict from the engine's own faults: the naive spec decides every input a second
//! time, and the oracle, where the head promises the moves, looks on from outside. The spec keeps
//! lists and searches them, so that it is slow in a large job: it looks on at the first
//! [`SPEC_INPUTS`] inputs, and the report says at how many. Neither ever looks on behind a hole.

use pinfold_host::log::Head;
use pinfold_sim::oracle::Oracle;
use pinfold_sim::seen::Seen;
use pinfold_sim::spec::Lockstep;
use pinfold_sim::violation::Violation;

/// At how many inputs the naive spec looks on: some seconds' worth, while its time grows faster
/// than the square of them.
pub const SPEC_INPUTS: u64 = 8_000;

/// See the [module](self).
pub(super) struct Judges {
    spec: Option<Lockstep>,
    oracle: Option<Oracle>,
    /// How many inputs the spec was shown.
    shown_to_spec: u64,
    /// How many it is shown at most.
    spec_inputs: u64,
}

impl Judges {
    pub(super) fn new(head: &Head, spec_inputs: u64) -> Self {
        let Head { from_genesis, moves, genesis, .. } = head;
        Self {
            spec: from_genesis.then(|| Lockstep::new(genesis)),
            oracle: (*from_genesis && *moves).then(|| Oracle::new(genesis)),
            shown_to_spec: 0,
            spec_inputs,
        }
    }

    /// Shows something to all who still look on.
    pub(super) fn see(&mut self, seen: &Seen) -> Result<(), Violation> {
        if let Seen::Submitted { .. } = seen {
            if self.shown_to_spec == self.spec_inputs {
                self.spec = None;
            }
            self.shown_to_spec += u64::from(self.spec.is_some());
        }
        if let Some(spec) = &mut self.spec {
            spec.see(seen)?;
        }
        match &mut self.oracle {
            Some(oracle) => oracle.see(seen),
            None => Ok(()),
        }
    }

    /// The state cannot be known any more: nobody looks on.
    pub(super) fn leave(&mut self) {
        self.spec = None;
        self.oracle = None;
    }

    /// How many inputs the spec was shown.
    pub(super) const fn shown_to_spec(&self) -> u64 {
        self.shown_to_spec
    }
}
