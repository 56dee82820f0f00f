//! The page of `--report`: one run as a picture, from a seed or a script.

use std::path::Path;

use pinfold_sim::caught::caught;
use pinfold_sim::judges::Bench;
use pinfold_sim::page::{Head, Picture};
use pinfold_sim::run::{Found, run};
use pinfold_sim::script::Script;
use pinfold_sim::script::world::{replay, setup_of};
use pinfold_sim::swarm;

use super::asked::Asked;
use crate::report_file::ReportFile;
use crate::{Ending, Failure};

/// A place for a page, which must not be the script's.
pub(crate) fn file(
    path: Option<&Path>,
    script: Option<&Path>,
) -> Result<Option<ReportFile>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let file = ReportFile::at(path).map_err(Failure::Input)?;
    if script.is_some_and(|script| file.is(script)) {
        return Err(Failure::Input(format!("--report {}: is the script itself", path.display())));
    }
    Ok(Some(file))
}

/// Draws the run of one seed.
///
/// # Errors
/// It panics, so that there is no whole run to look at.
pub(crate) fn of_seed(alone: &Asked) -> Result<String, String> {
    let seed = alone.first_seed;
    let mut picture = Picture::new(&swarm::draw(seed).0);
    let ran = caught(|| run(seed, &alone.settings, &mut picture));
    let ran = ran.map_err(|panic| format!("no report: seed {seed} panicked: {panic}"))?;
    let recovers_after = recovered(ran.choices.len(), ran.found.as_ref());
    let (title, command) = (format!("Seed {seed}"), alone.command());
    let head = Head { recovers_after, ..head(&title, &command) };
    Ok(picture.page(&head, ran.found.as_ref()))
}

/// Draws a script's run; `command` replays it.
///
/// # Errors
/// The script is at fault, or it panics.
pub(crate) fn of_script(script: &Script, command: &str) -> Result<String, String> {
    let setup = setup_of(&script.header).map_err(|fault| fault.to_string())?;
    let mut picture = Picture::new(&setup);
    let replayed = caught(|| replay(script, Bench::ALL, &mut picture));
    let replayed = replayed.map_err(|panic| format!("no report: it panicked: {panic}"))?;
    let replayed = replayed.map_err(|fault| fault.to_string())?;
    let mut lines = script.blocks.iter().flat_map(|block| &block.commands);
    let recovers = lines.any(|line| line.words == ["recover"]);
    let after = recovered(replayed.choices.len(), replayed.found.as_ref());
    let differences = replayed.differences();
    let recovers_after = after.filter(|_| recovers);
    let head = Head { recovers_after, differences: &differences, ..head(&script.about, command) };
    Ok(picture.page(&head, replayed.found.as_ref()))
}

/// Writes a page, where one was asked for. That it cannot be written does not hide a finding.
pub(crate) fn write(
    file: Option<&ReportFile>,
    page: impl FnOnce() -> Result<String, String>,
    ending: Ending,
) -> Result<Ending, Failure> {
    let Some(file) = file else { return Ok(ending) };
    match (page().and_then(|page| file.write(&page)), ending) {
        (Ok(()), ending) => Ok(ending),
        (Err(failure), Ending::Held) => Err(Failure::Incomplete(failure)),
        (Err(failure), ending) => {
            eprintln!("pinfold: {failure}");
            Ok(ending)
        }
    }
}

fn head<'a>(title: &'a str, command: &'a str) -> Head<'a> {
    let version = env!("CARGO_PKG_VERSION");
    Head { title, command, version, recovers_after: None, differences: &[] }
}

/// After how many steps a recovery began, if a run came so far.
fn recovered(choices: usize, found: Option<&Found>) -> Option<u32> {
    let steps = u32::try_from(choices).ok()?;
    found.is_none_or(|found| found.step > steps).then_some(steps)
}
