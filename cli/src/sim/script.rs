//! A script of a World, replayed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use pinfold_sim::caught::caught;
use pinfold_sim::judges::Bench;
use pinfold_sim::run::Found;
use pinfold_sim::script::world::{Replayed, names_of, replay, setup_of};
use pinfold_sim::script::{Fault, Script};
use serde::Serialize;

use super::Arguments;
use super::picture;
use super::spoken::Spoken;
use crate::counterexample::{Broken, Written};
use crate::shell::quoted;
use crate::table::{Table, json, one_line, print};
use crate::{Ending, Failure};

/// The longest script that is read: it has some hundred thousand steps.
const MOST_BYTES: u64 = 16 << 20;

/// Everything that is told of a script.
#[derive(Serialize)]
struct Report {
    version: &'static str,
    script: String,
    about: String,
    command: String,
    verdict: String,
    steps: usize,
    /// What was found, if anything was.
    what: Option<String>,
    /// Where it first went another way than when it was written.
    diverged: Option<Diverged>,
    /// What could not happen where it stands.
    skipped: Vec<Named>,
    /// What it expects and was not seen.
    missing: Vec<Named>,
    /// What was written of what was found.
    written: Written,
}

#[derive(Serialize)]
struct Diverged {
    step: u32,
    line: usize,
    what: String,
}

/// A line of the script.
#[derive(Serialize)]
struct Named {
    line: usize,
    text: String,
}

pub(crate) fn run(path: &Path, arguments: &Arguments) -> Result<Ending, Failure> {
    let (traces, as_json) = (arguments.trace, arguments.json);
    let input = |what: String| Failure::Input(format!("{}: {what}", path.display()));
    let fault = |fault: Fault| input(fault.to_string());
    let text = read(path).map_err(input)?;
    let script = Script::read(&text).map_err(fault)?;
    let page = picture::file(arguments.report.as_deref(), Some(path))?;
    let command = command(path, arguments.shrink);
    let head = head(path, &command);
    if !as_json {
        print(|out| writeln!(out, "{head}\n"))?;
    }
    let replayed = match traces {
        false => caught(|| replay(&script, Bench::ALL, &mut ())),
        true => traced(&script)?,
    };
    let replayed = replayed
        .map_err(|panic| Failure::Violated(format!("{}: panicked: {panic}", path.display())))?
        .map_err(fault)?;
    let mut report = Report::of(path, &script, &replayed, command);
    if arguments.shrink
        && let Some(broken) = broken(path, &replayed, &report.command)
    {
        report.written.take(broken.shrink());
    }
    print(|out| if as_json { json(out, &report) } else { report.write(out, &head) })?;
    let ending = match (&replayed.found, replayed.is_as_expected()) {
        (Some(_), _) => Ending::Violated,
        (None, true) => Ending::Held,
        (None, false) => Ending::Differed,
    };
    picture::write(page.as_ref(), || picture::of_script(&script, &report.command), ending)
}

/// The text of a script, which is refused where it is too long.
fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    match text.len() as u64 > MOST_BYTES {
        true => Err("longer than 16 MiB, which is the most that is read".to_string()),
        false => Ok(text),
    }
}

/// What can be shrunk of a script, beside which it is written.
fn broken(path: &Path, replayed: &Replayed, command: &str) -> Option<Broken> {
    Some(Broken {
        stem: path.with_extension(""),
        setup: Arc::clone(&replayed.setup),
        choices: replayed.choices.clone(),
        found: replayed.found.clone()?,
        command: command.to_string(),
    })
}

/// How a replay ends: with what it found, with a fault of the script, or with a panic.
type Ended = Result<Result<Replayed, Fault>, String>;

/// Replays a script, and prints what happens.
fn traced(script: &Script) -> Result<Ended, Failure> {
    // What no World can have is a fault that the replay names.
    let setup = setup_of(&script.header).unwrap_or_default();
    let mut ended = None;
    print(|out| {
        let mut spoken = Spoken::new(&setup, out);
        let replayed = caught(|| replay(script, Bench::ALL, &mut spoken));
        let written = match &replayed {
            Ok(Ok(replayed)) => spoken.end(Ok(replayed.found.as_ref())),
            Ok(Err(_)) => Ok(()),
            Err(panic) => spoken.end(Err(panic)),
        };
        ended = Some(replayed);
        written
    })?;
    ended.ok_or_else(|| Failure::Incomplete("nothing was replayed".into()))
}

/// Two lines that stand first and last.
fn head(path: &Path, command: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("pinfold {version}, script {}\nagain: {command}", path.display())
}

fn command(path: &Path, shrinks: bool) -> String {
    let shrink = if shrinks { " --shrink" } else { "" };
    format!("pinfold sim --script {}{shrink}", quoted(&path.to_string_lossy()))
}

impl Report {
    fn of(path: &Path, script: &Script, replayed: &Replayed, command: String) -> Self {
        let named = |(line, text): &(usize, String)| Named { line: *line, text: text.clone() };
        let names = names_of(&replayed.setup);
        let what = |found: &Found| names.name_in(&found.violation.to_string());
        let diverged = replayed.diverged.clone();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            script: path.display().to_string(),
            about: script.about.clone(),
            command,
            verdict: replayed.verdict(),
            steps: replayed.choices.len(),
            what: replayed.found.as_ref().map(what),
            diverged: diverged.map(|(step, line, what)| Diverged { step, line, what }),
            skipped: replayed.skipped.iter().map(named).collect(),
            missing: replayed.missing.iter().map(named).collect(),
            written: Written::default(),
        }
    }

    fn write(&self, out: &mut dyn Write, head: &str) -> io::Result<()> {
        let mut table = Table::new(&self.about, &["", ""]);
        table.row(["steps".into(), self.steps.to_string()]);
        table.row(["verdict".into(), self.verdict.clone()]);
        table.row(["found".into(), self.what.as_deref().map_or("nothing".into(), one_line)]);
        table.row([
            "goes another way".into(),
            self.diverged.as_ref().map_or("no".into(), |it| {
                format!("from step {} on, line {}: {}", it.step, it.line, it.what)
            }),
        ]);
        for skipped in &self.skipped {
            table.row([format!("skipped, line {}", skipped.line), skipped.text.clone()]);
        }
        for missing in &self.missing {
            table.row([format!("not seen, line {}", missing.line), missing.text.clone()]);
        }
        table.write(out)?;
        self.written.write(out)?;
        writeln!(out, "\n{head}")
    }
}
