//! `pinfold sim`: many seeds of a World in which everything goes wrong, or one, or a script.

mod asked;
mod finding;
pub(crate) mod picture;
mod report;
mod script;
mod spoken;

use std::io::IsTerminal;
use std::num::NonZero;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pinfold_sim::caught::caught;
use pinfold_sim::coverage::Coverage;
use pinfold_sim::run;
use pinfold_sim::swarm::{self, BadKnob, Knob};
use pinfold_sim::sweep::{End, Plan, Progress, Sweep, Twice, sweep};
use pinfold_sim::world::Kind;
use pinfold_workload::unit::{ParseWithinError, parse_within};

use self::asked::Asked;
use self::report::Report;
use self::spoken::Spoken;
use crate::counterexample::Written;
use crate::signals::signals;
use crate::table::{json, print};
use crate::{Ending, Failure};

/// Run seeds of a simulated fleet in which everything goes wrong, and judge every step.
///
/// Each seed draws a World: workers and operators with the real transfers, the real engine, a
/// journal on a disk, a network and a store; and which faults it has, and how often. After its
/// steps the faults end, and a recovery must bring everything to its end. A seed finds the same on
/// every machine. The lowest one that finds a broken promise leaves a script, pinfold-sim-SEED.txt,
/// in the current folder: it needs no seed, and says at which step another build differs.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help(), allow_negative_numbers = true)]
pub(crate) struct Arguments {
    /// The seeds from A up to, and without, B
    #[arg(long, value_name = "A..B", default_value = "0..1000", value_parser = seeds)]
    #[arg(conflicts_with = "seed")]
    seeds: Range<u64>,
    /// One seed
    #[arg(long, value_name = "N", value_parser = seed)]
    seed: Option<u64>,
    /// Steps of each seed, before its recovery
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = steps)]
    steps: u32,
    /// Faults turned by hand, in every seed: dup=2%,crash=off; for an ordinary step a weight
    #[arg(long, value_name = "KNOBS", value_delimiter = ',', value_parser = knob)]
    faults: Vec<Knob>,
    /// Seeds that run at once; without it as many as there are processors
    #[arg(long, value_name = "N", value_parser = jobs)]
    jobs: Option<u32>,
    /// Go on after a seed that found something
    #[arg(long)]
    keep_going: bool,
    /// Shrink what is found to a few steps, and say how far those are the fewest
    #[arg(long)]
    shrink: bool,
    /// Run each seed twice, and all of them with one and with two jobs: the same must come of it
    #[arg(long, conflicts_with = "jobs")]
    meta: bool,
    /// End with 5 when something that must happen did in no seed: a fault without an effect, an
    /// answer that was never given, a blocker that was never named
    #[arg(long)]
    require_coverage: bool,
    /// Print what happens, one line a step and one for what is seen of it; for one seed or script
    #[arg(long, conflicts_with = "json")]
    trace: bool,
    /// Replay a script of a World instead of seeds
    #[arg(long, value_name = "FILE", conflicts_with_all = SEEDED)]
    script: Option<PathBuf>,
    /// Write a page with a picture of one run, that of the first finding or else of the first seed:
    /// one HTML file that needs nothing else
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Print one JSON object on standard output, and nothing else
    #[arg(long)]
    json: bool,
}

/// What a script leaves no room for.
const SEEDED: [&str; 8] =
    ["seeds", "seed", "steps", "faults", "jobs", "keep_going", "meta", "require_coverage"];

const EXAMPLES: &str = "\
Exit codes:
  0  every promise held
  1  a promise was broken, or a run panicked
  2  bad usage or input
  3  incomplete: it was told to stop, or could not write what was asked for
  4  a seed did not repeat, or a script goes another way than it says
  5  something that must happen never did; only with --require-coverage

Examples:
  pinfold sim                                   1,000 seeds
  pinfold sim --seeds 0..100000 --keep-going    many, whatever they find
  pinfold sim --seed 7 --trace                  what happens in one of them
  pinfold sim --seed 7 --report seed-7.html     a picture of it, to look at
  pinfold sim --faults dup=2%,crash=off         more of one fault, none of another
  pinfold sim --seeds 0..10000 --shrink         what is found, in as few steps as it takes
  pinfold sim --seeds 0..2000 --require-coverage
                                                and did everything happen at all?
  pinfold sim --meta --seeds 0..200             is everything repeated exactly?
  pinfold sim --script pinfold-sim-7.txt        what a seed found, without the seed
  pinfold sim --json | jq .verdict              for programs";

fn long_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nFaults, for --faults:\n");
    let mut list = |kinds: &mut dyn Iterator<Item = Kind>| {
        for kind in kinds {
            text += &format!("  {:<16} {}\n", kind.name(), kind.about());
        }
    };
    list(&mut Kind::faults());
    text += "\nOrdinary steps, for weights beside each other, 0 to 1000:\n";
    for kind in Kind::ordinary() {
        text += &format!("  {:<16} {}\n", kind.name(), kind.about());
    }
    text
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let expected = || "expected two whole numbers like 0..1000, the second one larger".to_string();
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| expected());
    let seeds = number(from)?..number(to)?;
    if seeds.is_empty() { Err(expected()) } else { Ok(seeds) }
}

fn seed(text: &str) -> Result<u64, ParseWithinError> {
    parse_within(text, &(0..=u64::MAX))
}

fn steps(text: &str) -> Result<u32, ParseWithinError> {
    // The spec's time grows with the square of what a run holds, and nothing interrupts a run.
    parse_within(text, &(1..=20_000))
}

fn jobs(text: &str) -> Result<u32, ParseWithinError> {
    parse_within(text, &(1..=256))
}

fn knob(text: &str) -> Result<Knob, String> {
    Knob::read(text).map_err(|bad| match (&bad, text.split_once('=')) {
        (BadKnob::Value(_), Some((name, _))) => match Kind::faults().any(|it| it.name() == name) {
            true => format!("{name} is a fault: write off, or from 0.0001% to 100%"),
            false => format!("{name} is a step: write a weight from 0 to 1000"),
        },
        (BadKnob::Form(_) | BadKnob::Name(_) | BadKnob::Value(_), _) => bad.to_string(),
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    if let Some(path) = &arguments.script {
        return script::run(path, arguments);
    }
    let asked = Asked::of(arguments)?;
    if arguments.trace && asked.seeds > 1 {
        return Err(Failure::Input("--trace shows one seed: name it with --seed".into()));
    }
    let page = picture::file(arguments.report.as_deref(), None)?;
    let stop = signals()?;
    if !arguments.json {
        print(|out| writeln!(out, "{}\n", asked.line()))?;
    }
    if arguments.trace {
        trace(&asked)?;
    }
    let begun = Instant::now();
    let swept = swept(&asked, &plan(arguments, &asked), &stop)?;
    let took = begun.elapsed();
    let first = swept.sweep.findings.first();
    let alone = first.map(|finding| asked.alone(finding.seed));
    let tail = asked.tail(alone.as_ref());
    let written = first.map_or_else(Written::default, |finding| {
        finding::of_seed(&asked, finding, arguments.shrink)
    });
    let report = Report::of(&asked, &swept, took, written);
    print(|out| if arguments.json { json(out, &report) } else { report.write(out) })?;
    if !arguments.json {
        print(|out| writeln!(out, "\n{tail}"))?;
    }
    let drawn = || picture::of_seed(&alone.unwrap_or_else(|| asked.alone(asked.first_seed)));
    picture::write(page.as_ref(), drawn, swept.verdict().1)
}

fn plan(arguments: &Arguments, asked: &Asked) -> Plan {
    let processors = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let jobs = arguments.jobs.and_then(|jobs| NonZero::new(usize::try_from(jobs).ok()?));
    Plan {
        first_seed: asked.first_seed,
        seeds: asked.seeds,
        settings: asked.settings.clone(),
        jobs: jobs.unwrap_or(processors),
        keep_going: asked.keep_going,
        twice: Twice::Sample,
    }
}

/// Prints what happens in a seed. That it panics, its sweep says once more.
fn trace(asked: &Asked) -> Result<(), Failure> {
    let (setup, _) = swarm::draw(asked.first_seed);
    print(|out| {
        let mut spoken = Spoken::new(&setup, out);
        let ran = caught(|| run::run(asked.first_seed, &asked.settings, &mut spoken));
        let found = ran.as_ref().map(|ran| ran.found.as_ref()).map_err(String::as_str);
        spoken.end(found)
    })
}

/// What the sweeps of one command gave.
pub(crate) struct Swept {
    pub(crate) sweep: Sweep<Coverage>,
    /// Whether one and two jobs gave the same, where that was asked.
    pub(crate) jobs_agree: Option<bool>,
    /// Whether it was told to stop.
    pub(crate) stopped: bool,
    /// Steps of all of them.
    pub(crate) taken_steps: u64,
    /// Whether everything that must happen had to.
    pub(crate) requires_coverage: bool,
}

impl Swept {
    pub(crate) fn differed(&self) -> bool {
        self.sweep.differed() || self.jobs_agree == Some(false)
    }

    /// What came of it, as a word and as an exit code. What does not repeat cannot be relied on, so
    /// that comes first; what was not run whole need not cover everything.
    pub(crate) fn verdict(&self) -> (&'static str, Ending) {
        if self.differed() {
            ("did not repeat", Ending::Differed)
        } else if !self.sweep.findings.is_empty() {
            ("violated", Ending::Violated)
        } else if self.stopped {
            ("held so far", Ending::Incomplete)
        } else if self.requires_coverage && !self.sweep.notes.holes().is_empty() {
            ("held, not covered", Ending::Uncovered)
        } else {
            ("held", Ending::Held)
        }
    }
}

fn swept(asked: &Asked, plan: &Plan, stop: &AtomicBool) -> Result<Swept, Failure> {
    let sweep = |plan: &Plan| -> Result<Sweep<Coverage>, Failure> {
        let bar = progress(plan.seeds);
        let swept = sweep(plan, stop, &mut |Progress { done, findings }| {
            bar.set_position(done);
            if findings > 0 {
                bar.set_message(format!("{findings} found something, "));
            }
        });
        bar.finish_and_clear();
        swept.map_err(|error| Failure::Incomplete(format!("no thread can be started: {error}")))
    };
    let requires_coverage = asked.requires_coverage;
    if !asked.meta {
        let sweep = sweep(plan)?;
        let (stopped, taken_steps) = (sweep.end == End::Stopped, sweep.taken_steps);
        return Ok(Swept { sweep, jobs_agree: None, stopped, taken_steps, requires_coverage });
    }
    let one = sweep(&Plan { jobs: NonZero::<usize>::MIN, twice: Twice::Each, ..plan.clone() })?;
    let jobs = NonZero::<usize>::MIN.saturating_add(1);
    let two = sweep(&Plan { jobs, ..plan.clone() })?;
    let stopped = one.end == End::Stopped || two.end == End::Stopped;
    let jobs_agree = (!stopped).then(|| one.is_like(&two));
    let taken_steps = one.taken_steps + two.taken_steps;
    Ok(Swept { sweep: one, jobs_agree, stopped, taken_steps, requires_coverage })
}

/// A bar on standard error where a person looks at it; elsewhere nothing.
fn progress(seeds: u64) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(seeds), target);
    match ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {msg}{eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
