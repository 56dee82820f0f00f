//! The script of what a seed found.

use std::path::PathBuf;

use pinfold_sim::caught::caught;
use pinfold_sim::run::run;
use pinfold_sim::sweep::{Finding, What};

use super::asked::Asked;
use crate::counterexample::{Broken, Written};

/// Writes the script of a finding into the folder it is run in, under the name of its seed. Nothing
/// for what a script cannot show: a panic, and a seed that does not repeat.
pub(crate) fn of_seed(asked: &Asked, finding: &Finding, shrinks: bool) -> Written {
    let What::Broken(found) = &finding.what else { return Written::default() };
    let alone = asked.alone(finding.seed);
    match caught(|| run(finding.seed, &asked.settings, &mut ())) {
        Err(panic) => Written { failure: Some(panic), ..Written::default() },
        Ok(ran) => {
            let broken = Broken {
                stem: PathBuf::from(format!("pinfold-sim-{}", finding.seed)),
                setup: ran.setup,
                choices: ran.choices,
                found: found.clone(),
                command: alone.command(),
            };
            let mut written = match broken.write() {
                Ok(path) => Written { script: Some(path), ..Written::default() },
                Err(failure) => Written { failure: Some(failure), ..Written::default() },
            };
            if shrinks {
                written.take(broken.shrink());
            }
            written
        }
    }
}
