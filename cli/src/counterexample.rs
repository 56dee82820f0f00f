//! Scripts of a run that breaks a promise: they show the same without a seed, long or shrunk.
//!
//! Protects whoever reads them: a script is replayed before it is written, and one that does not
//! show what it should is not written.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use pinfold_sim::caught::caught;
use pinfold_sim::judges::Bench;
use pinfold_sim::run::Found;
use pinfold_sim::script::Script;
use pinfold_sim::script::world::{Story, names_of, replay, verdict, write as script};
use pinfold_sim::shrink::{Case, Certificate};
use pinfold_sim::world::choice::Choice;
use pinfold_sim::world::setup::Setup;
use serde::Serialize;

use crate::number::grouped;
use crate::table::one_line;

/// How many situations each search for something shorter may look at: they fit into a gigabyte.
const SITUATIONS: u32 = 50_000;

/// A run that breaks a promise.
pub(crate) struct Broken {
    /// How its files are called, without the end of the name.
    pub(crate) stem: PathBuf,
    pub(crate) setup: Arc<Setup>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) found: Found,
    /// The command that finds it.
    pub(crate) command: String,
}

/// What was written of a run that breaks a promise.
#[derive(Default, Serialize)]
pub(crate) struct Written {
    /// The file that shows it without its seed.
    pub(crate) script: Option<String>,
    /// The shrunk one.
    pub(crate) shrunk: Option<Shrunk>,
    /// Why one of them is missing.
    pub(crate) failure: Option<String>,
}

/// A shrunk script.
#[derive(Serialize)]
pub(crate) struct Shrunk {
    pub(crate) script: String,
    pub(crate) steps: usize,
    pub(crate) replays: u32,
    /// No sequence of its own choices is shorter.
    pub(crate) shortest_of_its_own: bool,
    /// No sequence of any choices with at most so many steps breaks a promise.
    pub(crate) none_within: u32,
    /// How many situations were looked at to say so.
    pub(crate) situations: u32,
}

impl Shrunk {
    /// How far it is known to be the shortest, in words.
    pub(crate) fn certificate(&self) -> String {
        let Self { shortest_of_its_own, none_within, .. } = self;
        let own = match shortest_of_its_own {
            true => "no order of its own steps is shorter",
            false => "orders of its own steps were not all tried",
        };
        format!("{own}; nothing breaks within {none_within} steps of any kind")
    }
}

impl Written {
    /// Says what there is, a line each.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(path) = &self.script {
            writeln!(out, "script: {path}")?;
        }
        if let Some(shrunk) = &self.shrunk {
            let steps = grouped(shrunk.steps as u64);
            writeln!(out, "shrunk to {steps} steps: {}", shrunk.script)?;
            writeln!(out, "  {}", shrunk.certificate())?;
        }
        match &self.failure {
            Some(why) => writeln!(out, "no script: {why}"),
            None => Ok(()),
        }
    }

    /// Adds the shrunk script, or why there is none.
    pub(crate) fn take(&mut self, shrunk: Result<Shrunk, String>) {
        match shrunk {
            Ok(shrunk) => self.shrunk = Some(shrunk),
            Err(failure) => {
                self.failure.get_or_insert(failure);
            }
        }
    }
}

impl Broken {
    /// Writes it as it is; the name of the file.
    pub(crate) fn write(&self) -> Result<String, String> {
        let text = self.shown(&self.setup, &self.choices, &[])?;
        self.save("", &text)
    }

    /// Shrinks it, says how far the rest is the shortest, and writes that.
    pub(crate) fn shrink(&self) -> Result<Shrunk, String> {
        let case = |recovers| Case {
            setup: Arc::clone(&self.setup),
            choices: self.choices.clone(),
            recovers,
            bench: Bench::ALL,
            invariant: self.found.violation.invariant,
        };
        let shrunk = caught(|| {
            // Without a recovery, if it was not needed.
            [false, true].map(case).iter().find_map(|case| {
                let shrunk = case.shrink()?;
                let certificate = case.certify(&shrunk.setup, &shrunk.choices, SITUATIONS);
                Some((shrunk, certificate))
            })
        });
        let not_shown = || "the steps alone do not show it, so nothing is shrunk".to_string();
        let (shrunk, certificate) = shrunk?.ok_or_else(not_shown)?;
        let Certificate { shortest_of_its_own, none_within, situations } = certificate;
        let mut told = Shrunk {
            script: String::new(),
            steps: shrunk.choices.len(),
            replays: shrunk.replays,
            shortest_of_its_own,
            none_within,
            situations,
        };
        let from = grouped(self.choices.len() as u64);
        let notes = [format!("shrunk from {from} steps: {}", told.certificate())];
        let text = self.shown(&shrunk.setup, &shrunk.choices, &notes)?;
        told.script = self.save("-short", &text)?;
        Ok(told)
    }

    /// The script of these choices, which was replayed and breaks the same promise.
    fn shown(
        &self,
        setup: &Arc<Setup>,
        choices: &[Choice],
        notes: &[String],
    ) -> Result<String, String> {
        let text = caught(|| self.told(setup, choices, notes, &self.found))?;
        let read = Script::read(&text).map_err(|fault| fault.to_string())?;
        let again = caught(|| replay(&read, Bench::ALL, &mut ()))?;
        let again = again.map_err(|fault| fault.to_string())?;
        match again.found {
            Some(found) if found.violation.invariant == self.found.violation.invariant => {
                Ok(self.told(setup, choices, notes, &found))
            }
            Some(_) | None => Err("the steps alone do not show it; the seed does".to_string()),
        }
    }

    fn told(
        &self,
        setup: &Arc<Setup>,
        choices: &[Choice],
        notes: &[String],
        found: &Found,
    ) -> String {
        let violation = &found.violation;
        let what = names_of(setup).name_in(&violation.what);
        let saw = format!("{} saw: {}", violation.judge.name(), one_line(&what));
        let command = format!("pinfold {}: {}", env!("CARGO_PKG_VERSION"), self.command);
        let notes: Vec<String> = [saw, command].into_iter().chain(notes.iter().cloned()).collect();
        script(&Story {
            about: &format!("{}: {}", violation.invariant, violation.invariant.promise()),
            notes: &notes,
            setup,
            choices,
            // A build in which the promise holds is judged to the end.
            recovers: true,
            verdict: &verdict(Some(found)),
        })
    }

    fn save(&self, end: &str, text: &str) -> Result<String, String> {
        let mut name = self.stem.clone().into_os_string();
        name.push(format!("{end}.txt"));
        let path = PathBuf::from(name).display().to_string();
        fs::write(&path, text).map_err(|error| format!("{path}: {error}"))?;
        Ok(path)
    }
}
