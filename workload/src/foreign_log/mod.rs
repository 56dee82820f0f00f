//! Judging a log that some host wrote: its lines are replayed through the real engine and shown to
//! the judges, and the first one that no correct run allows is named.
//!
//! Protects whoever trusts a verdict: a log that holds is one of which every line was compared, and
//! whatever could not be is counted and said. It never guesses what a missing line held, never
//! repairs a log, and takes no time from one. The format is in `docs/log-format.md`, its writer in
//! [`pinfold_host::log`].

mod claims;
mod coordinator;
mod genesis;
mod judges;
mod keys;
mod read;
mod report;
mod rules;
mod verifier;

use std::io::BufRead;

use read::{Lines, Next};
use report::Reason;
use verifier::{Stop, Verifier};

pub use judges::SPEC_INPUTS;
pub use read::{LineFault, LogError};
pub use report::{Counts, Finding, Gap, Refusal, Report, Unjudged, Verdict};

/// Judges a log.
///
/// # Errors
/// [`LogError`] names the line, and the field where there is one, of a file that is no log, or one
/// that contradicts itself. A broken promise is no error: it is the report's finding.
pub fn verify<R: BufRead>(reader: R) -> Result<Report, LogError> {
    verify_with(reader, SPEC_INPUTS)
}

/// Judges a log, and lets the naive spec look on at so many inputs.
///
/// # Errors
/// As [`verify`].
pub fn verify_with<R: BufRead>(reader: R, spec_inputs: u64) -> Result<Report, LogError> {
    let (head, mut lines) = Lines::open(reader)?;
    let mut verifier = Verifier::new(head, spec_inputs).map_err(|fault| lines.fault(fault))?;
    loop {
        match lines.next()? {
            Next::End => return Ok(verifier.finish(None)),
            Next::Torn { place } => {
                verifier.gaps.at(place).add(Reason::Torn, 1);
                return Ok(verifier.finish(None));
            }
            Next::Line { place, text, line } => {
                let n = line.n;
                match verifier.take(place, line) {
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
