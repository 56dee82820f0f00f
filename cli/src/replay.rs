//! `pinfold replay`: the main job over a serving trace.

use std::fs::File;
use std::io::{BufReader, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pinfold_core::id::Epoch;
use pinfold_workload::generate::{GeneratorConfig, generate};
use pinfold_workload::replay::{ReplayConfig, ReplayError, replay};
use pinfold_workload::report::Report;
use pinfold_workload::trace::{Trace, read_trace};

use crate::{Ending, Failure};

/// Serve a trace through the real engine, journal and store, and judge what was kept.
///
/// Workers take the trace's requests; each looks up and restores the longest kept prefix, saves its
/// own position and publishes it, while collection runs beside. Half-way the process state is
/// thrown away and recovered from disk.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Request trace, one JSON object a line; without it a generated one is served
    trace: Option<PathBuf>,
    /// Live turns that a conversation keeps
    #[arg(long, value_name = "N", default_value_t = 5)]
    turns: u32,
    /// Workers that serve at once; with one, every figure repeats
    #[arg(long, value_name = "N", default_value_t = 8)]
    workers: u32,
    /// Bytes of private state that each checkpoint holds
    #[arg(long, value_name = "BYTES", default_value_t = 65_536)]
    bytes_per_checkpoint: u64,
    /// Folder for journal and objects; without it a temporary one is used and removed
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Go on with the job that the folder of --data holds
    #[arg(long, requires = "data")]
    resume: bool,
    /// Seed of the generated trace; without --data also of the job's epoch
    #[arg(long)]
    seed: Option<u64>,
    /// Print one JSON object on standard output, and nothing else
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
A trace row, with one hash id for every 512 tokens of input, the last for what is left:
  {\"timestamp\": 0, \"input_length\": 1300, \"output_length\": 5, \"hash_ids\": [1, 2, 3]}

Other formats are told by the first row, and name the conversations (docs/traces.md):
  the same with session_id, and delay (ms) beside or instead of timestamp (ms)
  chat_id, parent_chat_id (-1 for none), turn, timestamp (s), input_length, output_length, type,
  and hash_ids at 16 tokens

Examples:
  pinfold replay                            the generated trace, in a temporary folder
  pinfold replay trace.jsonl --turns 3      a trace of your own, keeping three turns
  pinfold replay --workers 1 --seed 7       every figure repeats
  pinfold replay --data ./job               keep journal and objects
  pinfold replay --data ./job --resume      serve again on what is kept
  pinfold replay --json | jq .violations    for programs";

/// The namespace of a replay's job.
const NAMESPACE: &str = "replay";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let (trace, trace_name) = read(arguments)?;
    let temporary = match arguments.data {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(|error| {
            Failure::Incomplete(format!("no temporary folder: {error}; name one with --data"))
        })?),
    };
    let dir = match (&arguments.data, &temporary) {
        (Some(dir), _) => dir.clone(),
        (None, Some(temporary)) => temporary.path().to_path_buf(),
        (None, None) => PathBuf::from("."),
    };
    let namespace = NAMESPACE
        .parse()
        .map_err(|error| Failure::Incomplete(format!("the namespace {NAMESPACE}: {error}")))?;
    let config = ReplayConfig {
        dir,
        resume: arguments.resume,
        turns: arguments.turns,
        workers: arguments.workers,
        bytes_per_checkpoint: arguments.bytes_per_checkpoint,
        namespace,
        // A folder may hold the objects of an older job: only what is removed may repeat.
        epoch: epoch(arguments.seed.filter(|_| temporary.is_some()))?,
        trace_name,
    };
    let bar = progress(trace.requests.len() as u64);
    let report = replay(&config, &trace, &|done| bar.set_position(u64::from(done)));
    bar.finish_and_clear();
    let report = report.map_err(|error| failure(&error))?;
    match show(&report, arguments.json) {
        // Whoever reads it has read enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        shown => shown.map_err(|error| {
            Failure::Incomplete(format!("the report cannot be written: {error}"))
        })?,
    }
    Ok(if report.violations == 0 { Ending::Held } else { Ending::Violated })
}

fn read(arguments: &Arguments) -> Result<(Trace, String), Failure> {
    let Some(path) = &arguments.trace else {
        let mut config = GeneratorConfig::default();
        config.seed = arguments.seed.unwrap_or(config.seed);
        let trace = generate(&config).map_err(|error| Failure::Input(error.to_string()))?;
        return Ok((trace, format!("generated, seed {}", config.seed)));
    };
    let input = |what: String| Failure::Input(format!("{}: {what}", path.display()));
    if path.is_dir() {
        return Err(input("is a folder, not a trace".into()));
    }
    let file = File::open(path).map_err(|error| input(error.to_string()))?;
    let trace = read_trace(BufReader::new(file)).map_err(|error| input(error.to_string()))?;
    let name = Path::new(path).file_name().unwrap_or(path.as_os_str());
    Ok((trace, name.to_string_lossy().into_owned()))
}

/// An epoch is random; a seed makes it repeat, as everything else of the replay.
fn epoch(seed: Option<u64>) -> Result<Epoch, Failure> {
    if let Some(seed) = seed {
        return Ok(Epoch::of_name(&format!("replay {seed}")));
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::Incomplete(format!("no random epoch: {error}; use --seed")))?;
    Ok(Epoch::from_bytes(bytes))
}

fn failure(error: &ReplayError) -> Failure {
    match error {
        ReplayError::Exists { .. }
        | ReplayError::Missing { .. }
        | ReplayError::Policy { .. }
        | ReplayError::Size { .. }
        | ReplayError::OutOfRange { .. }
        | ReplayError::Model(_) => Failure::Input(error.to_string()),
        ReplayError::Journal(_)
        | ReplayError::Node(_)
        | ReplayError::Settings { .. }
        | ReplayError::Gone(_)
        | ReplayError::Store(_)
        | ReplayError::List(_)
        | ReplayError::Serve(_)
        | ReplayError::Owner(_)
        | ReplayError::Refused(_)
        | ReplayError::Died => Failure::Incomplete(error.to_string()),
    }
}

/// A bar on standard error where a person looks at it; elsewhere nothing.
fn progress(requests: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} requests, {eta} left");
    let bar = ProgressBar::with_draw_target(Some(requests), target);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn show(report: &Report, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, report)?;
        return writeln!(out);
    }
    for (name, value) in rows(report) {
        if value.is_empty() {
            writeln!(out, "{name}")?;
        } else {
            writeln!(out, "  {name:<38} {value:>16}")?;
        }
    }
    for text in &report.violation_texts {
        writeln!(out, "  ! {text}")?;
    }
    Ok(())
}

/// The table: a row without a value is a heading.
fn rows(report: &Report) -> Vec<(String, String)> {
    let Report { tally, time, .. } = report;
    let count = |number: u64| number.to_string();
    let mut rows: Vec<(String, String)> = Vec::new();
    let heading = |rows: &mut Vec<_>, text: &str| rows.push((text.to_string(), String::new()));
    let row = |rows: &mut Vec<(String, String)>, name: &str, value: String| {
        rows.push((name.to_string(), value));
    };
    heading(&mut rows, &format!("Trace: {}", report.trace));
    row(&mut rows, "requests", count(u64::from(report.requests)));
    row(&mut rows, "conversations", count(u64::from(report.conversations)));
    row(&mut rows, "turns", count(u64::from(report.turns)));
    row(&mut rows, "too short to keep", count(u64::from(tally.too_short)));
    heading(&mut rows, "Restores");
    row(&mut rows, "restored, every byte verified", count(u64::from(tally.restores)));
    row(&mut rows, "nothing kept", count(u64::from(tally.restore_misses)));
    row(&mut rows, "failed", count(u64::from(tally.restore_failures)));
    row(&mut rows, "prefill tokens", count(tally.input_tokens));
    row(&mut rows, "prefill tokens saved", share(tally.tokens_saved, tally.input_tokens));
    heading(&mut rows, "Checkpoints");
    row(&mut rows, "written", count(u64::from(tally.checkpoints_written)));
    row(&mut rows, "kept already", count(u64::from(tally.already_published)));
    row(&mut rows, "not kept: expired, or saved by others", count(u64::from(tally.unsaved)));
    row(&mut rows, "thrown away half-way", count(tally.thrown_away));
    row(&mut rows, "collected", count(tally.checkpoints_collected));
    row(&mut rows, "retained", count(report.checkpoints_retained));
    row(&mut rows, "bytes written", bytes(tally.bytes_written));
    row(&mut rows, "bytes at the peak", bytes(report.bytes_peak));
    row(&mut rows, "bytes retained", bytes(report.bytes_retained));
    heading(&mut rows, "Why the rest is still here");
    for (name, checkpoints) in &report.left.blockers {
        row(&mut rows, name, count(*checkpoints));
    }
    heading(&mut rows, "Run");
    row(&mut rows, "workers", count(u64::from(report.workers)));
    row(&mut rows, "wall time", format!("{}.{:03} s", time.wall_ms / 1000, time.wall_ms % 1000));
    row(&mut rows, "commands", count(report.commands));
    row(&mut rows, "commands per second", count(time.commands_per_second));
    row(&mut rows, "journal syncs", count(time.journal_syncs));
    row(&mut rows, "journal bytes", bytes(time.journal_bytes));
    for took in &time.recovery_us {
        row(&mut rows, "recovered in", format!("{}.{:03} ms", took / 1000, took % 1000));
    }
    row(&mut rows, "invariant violations", count(report.violations));
    rows
}

/// A part and its share of the whole, in per cent with one decimal.
fn share(part: u64, whole: u64) -> String {
    let per_mille = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{part} ({}.{} %)", per_mille / 10, per_mille % 10)
}

/// Bytes in the largest binary unit that leaves at least one, with one decimal.
fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (bytes.max(1).ilog2() / 10) as usize;
    if unit == 0 {
        return format!("{bytes} B");
    }
    let tenths = (u128::from(bytes) * 10) >> (unit * 10);
    format!("{}.{} {}", tenths / 10, tenths % 10, units[unit])
}
