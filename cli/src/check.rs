//! `pinfold check`: every state of small Worlds, with the real core.

mod listing;
mod report;

use std::io::IsTerminal;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pinfold_model_check::configuration::{Configuration, Tier};
use pinfold_model_check::explore::{Counterexample, Options, Progress, explore};
use pinfold_model_check::node::Node;
use pinfold_model_check::plan::Plan;
use pinfold_model_check::verdict::Verdict;
use pinfold_model_check::watchdog::Limits;
use pinfold_model_check::{model, named, selfcheck};
use pinfold_sim::caught::caught;
use pinfold_sim::run::Found;
use pinfold_sim::script::Script;
use pinfold_workload::unit::{ParseWithinError, bytes, parse_bytes, parse_within};

use self::report::{Checked, Report};
use crate::counterexample::{Broken, Written};
use crate::number::grouped;
use crate::signals::signals;
use crate::sim::picture;
use crate::table::{json, print};
use crate::{Ending, Failure};

/// Visit every state of small Worlds, with the real core, and judge every step.
///
/// A configuration says how large a World is, and what may happen in it, as often as it likes:
/// requests that are lost or come twice, crashes, deaths, deletes with an unknown outcome. All of
/// its states are visited, level by level; each is judged, and from each the recovery is tried. A
/// broken promise is shown by a way to it that is as short as any, as a script,
/// pinfold-check-NAME.txt, in the current folder.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A configuration's name; or `ci`, or `full` for all but the long ones; --list shows them
    #[arg(value_name = "CONFIG", default_value = "ci")]
    #[arg(value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    name: String,
    /// List the configurations: how large they are, and what each is about
    #[arg(long)]
    list: bool,
    /// Print one JSON object on standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Stop a configuration after so long: 30s, 5m, 2h
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Stop when the program holds so much memory: 500MiB, 4GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Threads; without it as many as there are processors
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<u32>,
    /// Take nothing for interchangeable: more states, and the same verdict
    #[arg(long)]
    no_symmetry: bool,
    /// Take every step apart: many more states, and the same verdict
    #[arg(long)]
    no_merge: bool,
    /// Use this key for the digests of states: another key must see as many states
    #[arg(long, value_name = "N", default_value_t = 0)]
    key: u64,
    /// Check one configuration in every way, with stateright as well: all must agree
    #[arg(long, conflicts_with_all = ["no_symmetry", "no_merge", "key", "report", "list"])]
    self_check: bool,
    /// Serve stateright's explorer of one configuration, to look at states and steps in a browser:
    /// at localhost:3000 unless another address of this machine is given
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = EXPLORED)]
    #[arg(conflicts_with_all = ["self_check", "json", "report", "list"], value_parser = address)]
    explore: Option<SocketAddr>,
    /// Write a page with a picture of the first broken promise: one HTML file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

/// Where stateright's explorer is served.
const EXPLORED: &str = "localhost:3000";

const EXAMPLES: &str = "\
Exit codes:
  0  every state was visited, and every promise held
  1  a promise is broken
  2  bad usage or input
  3  incomplete: time or memory was spent, or it was told to stop
  4  other numbers of states or transitions than are pinned, or two ways to check do not agree

Examples:
  pinfold check                          the configurations of every run, in about a minute
  pinfold check --list                   which there are, and what each is about
  pinfold check deletes                  one of them
  pinfold check full --time 10m          all but the long ones, none longer than ten minutes
  pinfold check network --no-symmetry    without taking workers for interchangeable
  pinfold check --self-check basics      do other keys, threads and engines see the same?
  pinfold check basics --explore         look at its states in a browser
  pinfold check --json | jq .complete    for programs";

fn time(text: &str) -> Result<Duration, String> {
    let expected = || "expected a whole number with s, m or h behind it, like 90s".to_string();
    let unit = text.chars().last().ok_or_else(expected)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return Err(expected()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| expected())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(expected)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address and a port, like localhost:3000";
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {expected}"))?;
    found.next().ok_or_else(|| expected.to_string())
}

/// What can be named.
fn names() -> impl Iterator<Item = &'static str> {
    ["ci", "full"].into_iter().chain(named::all().into_iter().map(|it| it.name))
}

fn threads(text: &str) -> Result<u32, ParseWithinError> {
    parse_within(text, &(1..=256))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let chosen = chosen(&arguments.name);
    if arguments.list {
        let all = named::all();
        return listing::write(&all, arguments.json).map(|()| Ending::Held);
    }
    if let Some(address) = arguments.explore {
        return serve(arguments, chosen, address);
    }
    let page = picture::file(arguments.report.as_deref(), None)?;
    let stop = signals()?;
    if arguments.self_check {
        return self_check(arguments, chosen, &stop);
    }
    let mut report = Report::new(crate::shell::typed());
    let mut scripts = Vec::new();
    let asked = chosen.len();
    for configuration in chosen {
        let plan = Plan::new(reduced(arguments, configuration), arguments.key);
        let bar = progress(plan.configuration.name);
        let explored =
            caught(|| explore(&plan, &options(arguments), &|now| show(&bar, now, &stop)));
        bar.finish_and_clear();
        let explored = explored.map_err(|panic| fell_over(&plan, &panic))?;
        let written = explored.found.as_ref().map(|found| shown(&plan, found)).unwrap_or_default();
        scripts.extend(written.script.clone());
        let checked = Checked::of(&plan.configuration, &explored, written);
        if !arguments.json {
            print(|out| checked.write(out))?;
        }
        report.add(checked, &explored);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    report.left_out(asked);
    print(|out| if arguments.json { json(out, &report) } else { report.write(out) })?;
    let ending = ending(report.verdict());
    if page.is_some() && scripts.is_empty() && matches!(ending, Ending::Held) {
        eprintln!("no report: no promise is broken, so there is no run to draw");
        return Ok(ending);
    }
    picture::write(page.as_ref(), || drawn(scripts.first()), ending)
}

/// The core, or its World, panicked: a broken promise without a way to it.
fn fell_over(plan: &Plan, panic: &str) -> Failure {
    Failure::Violated(format!("{}: it panicked: {panic}", plan.configuration.name))
}

/// The configurations of a name.
fn chosen(name: &str) -> Vec<Configuration> {
    let mut all = named::all();
    match name {
        "ci" => all.retain(|it| it.tier == Tier::Ci),
        "full" => all.retain(|it| matches!(it.tier, Tier::Ci | Tier::Full)),
        name => all.retain(|it| it.name == name),
    }
    all
}

fn reduced(arguments: &Arguments, mut configuration: Configuration) -> Configuration {
    if arguments.no_symmetry {
        configuration = configuration.without_symmetry();
    }
    if arguments.no_merge {
        configuration = configuration.without_merging();
    }
    configuration
}

fn options(arguments: &Arguments) -> Options {
    let processors = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN).get();
    let asked = arguments.threads.and_then(|threads| usize::try_from(threads).ok());
    let limits = Limits { time: arguments.time, memory_bytes: arguments.memory };
    Options { threads: asked.unwrap_or(processors), limits, ..Options::default() }
}

/// One configuration, where several cannot be meant.
fn one(arguments: &Arguments, chosen: Vec<Configuration>) -> Result<Configuration, Failure> {
    match <[Configuration; 1]>::try_from(chosen) {
        Ok([configuration]) => Ok(configuration),
        Err(_) => Err(Failure::Input(format!(
            "{} is more than one configuration: name one, like {}",
            arguments.name,
            named::all()[0].name
        ))),
    }
}

fn self_check(
    arguments: &Arguments,
    chosen: Vec<Configuration>,
    stop: &AtomicBool,
) -> Result<Ending, Failure> {
    let configuration = one(arguments, chosen)?;
    let bar = progress(configuration.name);
    let rows =
        selfcheck::self_check(&configuration, &options(arguments), &|now| show(&bar, now, stop));
    bar.finish_and_clear();
    listing::agreement(configuration.name, &rows, arguments.json)?;
    let any = |verdict| rows.iter().any(|row| row.verdict == verdict);
    Ok(match rows.iter().all(|row| row.agrees) {
        _ if any(Verdict::Violated) => Ending::Violated,
        _ if stop.load(Ordering::Relaxed) || any(Verdict::Incomplete) => Ending::Incomplete,
        false => Ending::Differed,
        true => Ending::Held,
    })
}

fn serve(
    arguments: &Arguments,
    chosen: Vec<Configuration>,
    address: SocketAddr,
) -> Result<Ending, Failure> {
    let configuration = reduced(arguments, one(arguments, chosen)?);
    if !address.ip().is_loopback() {
        return Err(Failure::Input(format!(
            "--explore {address}: it has no password, so only an address of this machine will do"
        )));
    }
    // It would panic; whoever typed the address hears what is wrong with it instead.
    let free = std::net::TcpListener::bind(address);
    drop(free.map_err(|error| Failure::Incomplete(format!("--explore {address}: {error}")))?);
    eprintln!("{}: look at http://{address}; Ctrl-C ends it", configuration.name);
    model::serve(Plan::new(configuration, arguments.key), address);
    Ok(Ending::Held)
}

const fn ending(verdict: Verdict) -> Ending {
    match verdict {
        Verdict::Exhaustive => Ending::Held,
        Verdict::Violated => Ending::Violated,
        Verdict::Incomplete => Ending::Incomplete,
        Verdict::Changed => Ending::Differed,
    }
}

/// The scripts of a broken promise: the way that was found, and the shortest that shows it.
fn shown(plan: &Plan, found: &Counterexample) -> Written {
    let setup = Arc::new(plan.configuration.setup.clone());
    let Ok((mut node, mut choices)) = Node::first(plan) else { return Written::default() };
    let mut seen = Vec::new();
    for step in &found.way {
        let _ = node.take(plan, *step, &mut seen, |choice, _| choices.push(choice));
    }
    let name = plan.configuration.name;
    let broken = Broken {
        stem: PathBuf::from(format!("pinfold-check-{name}")),
        setup,
        found: Found {
            violation: found.violation.clone(),
            step: u32::try_from(choices.len()).unwrap_or(u32::MAX),
        },
        choices,
        command: format!("pinfold check {name}"),
    };
    let mut written = match broken.write() {
        Ok(path) => Written { script: Some(path), ..Written::default() },
        Err(failure) => Written { failure: Some(failure), ..Written::default() },
    };
    written.take(broken.shrink());
    written
}

/// The picture of the first script that was written.
fn drawn(script: Option<&String>) -> Result<String, String> {
    let path = script.ok_or("no report: there is no script to draw")?;
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let script = Script::read(&text).map_err(|fault| fault.to_string())?;
    picture::of_script(&script, &format!("pinfold sim --script {path}"))
}

/// Tells how far it is; false when it shall stop.
fn show(bar: &ProgressBar, now: &Progress, stop: &AtomicBool) -> bool {
    let rate = now.states * 1000 / u64::try_from(now.elapsed.as_millis().max(1)).unwrap_or(1);
    let [level, looked_at] = now.level;
    bar.set_message(format!(
        "{} states, {}/s, level {} ({} of {}), {}",
        grouped(now.states),
        grouped(rate),
        now.depth,
        grouped(looked_at),
        grouped(level),
        bytes(now.memory_bytes)
    ));
    bar.tick();
    !stop.load(Ordering::Relaxed)
}

/// A line on standard error where a person looks at it; elsewhere nothing.
fn progress(name: &str) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(None, target).with_prefix(name.to_string());
    match ProgressStyle::with_template("{spinner} {prefix}: {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_its_unit() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "s", "90", "1.5m", "m5", "99999999999999999999s", "9999999999999999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
