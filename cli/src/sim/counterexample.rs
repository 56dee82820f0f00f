//! The script of what a seed found: it shows the same without the seed.

use std::fs;
use std::path::PathBuf;

use pinfold_sim::caught::caught;
use pinfold_sim::judges::Bench;
use pinfold_sim::run::{Found, Ran, run};
use pinfold_sim::script::Script;
use pinfold_sim::script::world::{Story, replay, verdict, write as script};
use pinfold_sim::sweep::{Finding, What};

use super::asked::Asked;

/// A script that was written for a finding, or why none was.
pub(crate) type Example = Result<PathBuf, String>;

/// Writes the script of a broken promise into the folder it is run in, under the name of its seed.
/// None for what a script cannot show: a panic, and a seed that does not repeat.
pub(crate) fn write(asked: &Asked, finding: &Finding) -> Option<Example> {
    let What::Broken(found) = &finding.what else { return None };
    let alone = asked.alone(finding.seed);
    let written = caught(|| run(finding.seed, &asked.settings, &mut ()))
        .and_then(|ran| shown(&alone, &ran, found))
        .and_then(|text| {
            let path = PathBuf::from(format!("pinfold-sim-{}.txt", finding.seed));
            let written = fs::write(&path, text);
            written.map(|()| path.clone()).map_err(|error| format!("{}: {error}", path.display()))
        });
    Some(written)
}

/// The script, which was replayed and shows what was found.
fn shown(alone: &Asked, ran: &Ran, found: &Found) -> Result<String, String> {
    let about = format!("{}: {}", found.violation.invariant, found.violation.invariant.promise());
    let words: Vec<&str> = found.violation.what.split_whitespace().collect();
    let notes = [
        format!("{} saw: {}", found.violation.judge.name(), words.join(" ")),
        format!("pinfold {}: {}", env!("CARGO_PKG_VERSION"), alone.command()),
    ];
    let story = Story {
        about: &about,
        notes: &notes,
        setup: &ran.setup,
        choices: &ran.choices,
        // A build in which the promise holds is judged to the end.
        recovers: true,
        verdict: &verdict(Some(found)),
    };
    let text = script(&story);
    let read = Script::read(&text).map_err(|fault| fault.to_string())?;
    let again = replay(&read, Bench::ALL, &mut ()).map_err(|fault| fault.to_string())?;
    match again.found {
        Some(other) if other.violation.invariant == found.violation.invariant => Ok(text),
        Some(_) | None => Err("the steps alone do not show it; the seed does".to_string()),
    }
}
