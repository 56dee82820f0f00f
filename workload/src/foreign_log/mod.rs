//! Judging a log that some host wrote: its lines are replayed through the real engine and shown to
//! the judges, and the first one that no correct run allows is named.
//!
//! Protects whoever trusts a verdict: a log that holds is one of which every line was compared, and
//! whatever could not be is counted and said. It never guesses what a missing line held, never
//! repairs a log, and takes no time from one. The format is in `docs/log-format.md`, its writer in
//! [`pinfold_host::log`].

mod blame;
mod coordinator;
mod keys;
mod read;
mod report;
mod rules;
mod verifier;

use std::io::BufRead;

use pinfold_sim::seen::Seen;
use pinfold_sim::violation::Violation;

use read::{Lines, Next};
use report::Reason;
use verifier::{Stop, Verifier};

pub use read::{LineFault, LogError};
pub use report::{Counts, Finding, Report, Unjudged, Verdict};

/// Somebody who looks on and says when a promise is broken.
trait Judge {
    /// Looks at the next thing that was seen.
    fn see(&mut self, seen: &Seen) -> Result<(), Violation>;
}

/// Judges a log.
///
/// # Errors
/// [`LogError`] names the line, and the field where there is one, of a file that is no log, or one
/// that contradicts itself. A broken promise is no error: it is the report's finding.
pub fn verify<R: BufRead>(reader: R) -> Result<Report, LogError> {
    let (head, mut lines) = Lines::open(reader)?;
    let mut verifier = Verifier::new(head).map_err(|fault| lines.fault(fault))?;
    loop {
        match lines.next()? {
            Next::End => return Ok(verifier.finish(None)),
            Next::Torn => {
                verifier.gaps.add(Reason::Torn, 1);
                return Ok(verifier.finish(None));
            }
            Next::Line { place, text, line } => {
                let n = line.n;
                match verifier.take(line) {
                    Ok(()) => {}
                    Err(Stop::Fault(fault)) => return Err(lines.fault(fault)),
                    Err(Stop::Breach { invariant, judge, what, expected }) => {
                        let (rule, promise) = (invariant.to_string(), invariant.promise());
                        let finding =
                            Finding { line: place, n, rule, promise, judge, what, expected, text };
                        return Ok(verifier.finish(Some(finding)));
                    }
                }
            }
        }
    }
}
