//! `pinfold replay`: the main job over a serving trace.

mod processes;
mod table;

use std::fs::File;
use std::io::{BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pinfold_core::id::Epoch;
use pinfold_host::node::NodeError;
use pinfold_workload::generate::{GeneratorConfig, generate};
use pinfold_workload::page::Page;
use pinfold_workload::replay::{
    Progress, ReplayConfig, ReplayError, replay_until, turns_range, workers_range,
};
use pinfold_workload::report::Report;
use pinfold_workload::trace::{Trace, read_trace};
use pinfold_workload::unit::{ParseWithinError, parse_bytes, parse_within};
use tempfile::TempDir;

use crate::report_file::ReportFile;
use crate::server::Server;
use crate::shell::typed;
use crate::signals::signals;
use crate::store_place::StorePlace;
use crate::table::{json, print};
use crate::{Ending, Failure};

pub(crate) use processes::{WorkerArguments, work};

/// Serve a trace through the real engine, journal and store, and judge what was kept.
///
/// Workers take the trace's requests; each looks up and restores the longest kept prefix, saves its
/// own position and publishes it, while collection runs beside. Half-way, or after every N
/// requests, the process state is thrown away with transfers under way, and recovered from disk.
///
/// With --server, the catalog is a coordinator's that runs already, and each worker is a process of
/// its own, which is killed instead.
#[derive(Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub(crate) struct Arguments {
    /// Request trace, one JSON object a line; without it a generated one is served
    trace: Option<PathBuf>,
    #[command(flatten)]
    server: Server,
    /// With --server: the objects that the workers share: a folder, or its URL like
    /// file:///var/objects
    #[arg(long, value_name = "STORE")]
    store: Option<StorePlace>,
    /// Live turns that a conversation keeps [default: 5]
    #[arg(long, value_name = "N", value_parser = turns)]
    turns: Option<u32>,
    /// Bytes that the live turns of one conversation may hold: 65536, 64KiB, 10MiB, 1GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, allow_hyphen_values = true)]
    conversation_bytes: Option<u64>,
    /// Bytes that the live turns of the whole job may hold
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, allow_hyphen_values = true)]
    job_bytes: Option<u64>,
    /// Throw the process state away after every N requests; without it once, half-way
    #[arg(long, value_name = "N", value_parser = crash_every)]
    crash_every: Option<u32>,
    /// Workers that serve at once; with one, every figure repeats
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = workers)]
    workers: u32,
    /// Bytes of private state that each checkpoint holds
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = parse_bytes)]
    #[arg(allow_hyphen_values = true)]
    bytes_per_checkpoint: u64,
    /// Folder for journal and objects; without it a temporary one is used and removed
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Sync each object before it counts as stored: what a power cut takes is lost otherwise, and
    /// found to be
    #[arg(long)]
    sync_objects: bool,
    /// Go on with the job that the folder of --data holds
    #[arg(long, requires = "data")]
    resume: bool,
    /// Seed of the generated trace; without --data also of the job's epoch
    #[arg(long, value_name = "N", value_parser = seed)]
    seed: Option<u64>,
    /// Write a page with charts: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write a log of what the coordinator took and answered, for verify-log, into a new file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Print one JSON object on standard output, and nothing else
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Exit codes:
  0  everything was served, and every promise held
  1  a promise was broken, or a journal is damaged
  2  bad usage or input: the row or the field is named
  3  incomplete: something outside failed, such as a disk, or it was told to stop

A trace row, with one hash id for every 512 tokens of input, the last for what is left:
  {\"timestamp\": 0, \"input_length\": 1300, \"output_length\": 5, \"hash_ids\": [1, 2, 3]}

Other formats are told by the first row, and name the conversations (docs/traces.md):
  the same with session_id, and delay (ms) beside or instead of timestamp (ms)
  chat_id, parent_chat_id (-1 for none), turn, timestamp (s), input_length, output_length, type,
  and hash_ids at 16 tokens

Examples:
  pinfold replay                            the generated trace, in a temporary folder
  pinfold replay trace.jsonl --turns 3      a trace of your own, keeping three turns
  pinfold replay --job-bytes 10MiB          and no more than so many bytes
  pinfold replay --crash-every 100          crash and recover again and again
  pinfold replay --report replay.html       a page with charts, to look at
  pinfold replay --log job.log              a log, to be judged by pinfold verify-log
  pinfold replay --workers 1 --seed 7       every figure repeats
  pinfold replay --data ./job               keep journal and objects
  pinfold replay --data ./job --resume      serve again on what is kept
  pinfold replay --json | jq .violations    for programs

Over a coordinator that runs already, with each worker a process of its own:
  pinfold serve --data ./job --store ./objects
  pinfold replay --server http://127.0.0.1:7311 --store ./objects --workers 4
  pinfold replay --server http://127.0.0.1:7311 --store ./objects --crash-every 100";

/// Live turns that a conversation keeps, unless somebody says so.
const TURNS: u32 = 5;

/// How the name of a temporary folder begins.
const TEMPORARY: &str = "pinfold-replay-";
/// The namespace of a replay's job.
const NAMESPACE: &str = "replay";

fn turns(text: &str) -> Result<u32, ParseWithinError> {
    parse_within(text, &turns_range())
}

fn workers(text: &str) -> Result<u32, ParseWithinError> {
    parse_within(text, &workers_range())
}

fn crash_every(text: &str) -> Result<u32, ParseWithinError> {
    parse_within(text, &(1..=u32::MAX))
}

fn seed(text: &str) -> Result<u64, ParseWithinError> {
    parse_within(text, &(0..=u64::MAX))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let (trace, trace_name) = read(arguments)?;
    let page = page_file(arguments)?;
    if let Some(dir) = arguments.data.as_deref().filter(|dir| dir.exists() && !dir.is_dir()) {
        let what = format!("--data {}: is a file, name a folder", dir.display());
        return Err(Failure::Input(what));
    }
    let stop = signals()?;
    if arguments.server.is_given() {
        let (bar, told) = (progress(trace.requests.len() as u64), trace_name);
        let report = processes::replay(arguments, (&trace, told), &stop, &|so_far| {
            show(&bar, so_far);
        });
        bar.finish_and_clear();
        return tell(arguments, &report?, page);
    }
    if arguments.store.is_some() {
        let what = "--store goes with --server; without a coordinator, --data holds the objects";
        return Err(Failure::Input(what.into()));
    }
    let temporary = match arguments.data {
        Some(_) => None,
        None => Some(temporary()?),
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
        turns: arguments.turns.unwrap_or(TURNS),
        conversation_bytes: arguments.conversation_bytes,
        job_bytes: arguments.job_bytes,
        crash_every: arguments.crash_every,
        workers: arguments.workers,
        bytes_per_checkpoint: arguments.bytes_per_checkpoint,
        sync_objects: arguments.sync_objects,
        namespace,
        // A folder may hold the objects of an older job: only what is removed may repeat.
        epoch: epoch(arguments.seed.filter(|_| temporary.is_some()))?,
        trace_name,
        log: arguments.log.clone(),
    };
    let bar = progress(trace.requests.len() as u64);
    let report = replay_until(&config, &trace, &stop, &|so_far| show(&bar, so_far));
    bar.finish_and_clear();
    let report = report.map_err(|error| match error {
        ReplayError::Stopped { .. } if arguments.data.is_some() => {
            Failure::Incomplete(format!("{error}; go on with --resume"))
        }
        error => failure(error),
    })?;
    tell(arguments, &report, page)
}

fn show(bar: &ProgressBar, Progress { done, crashes }: Progress) {
    bar.set_message(match crashes {
        1 => "1 crash".to_string(),
        crashes => format!("{crashes} crashes"),
    });
    bar.set_position(u64::from(done));
}

/// Prints the report, and writes its page.
fn tell(
    arguments: &Arguments,
    report: &Report,
    page: Option<ReportFile>,
) -> Result<Ending, Failure> {
    let written = page.map_or(Ok(()), |page| write_page(&page, report));
    print(|out| match arguments.json {
        true => json(out, report),
        false => table::write(out, report),
    })?;
    written.map_err(Failure::Incomplete)?;
    if let (Some(path), false) = (&arguments.report, arguments.json) {
        eprintln!("report: {}", path.display());
    }
    Ok(match (report.violations, report.tally.store_failures) {
        (0, 0) => Ending::Held,
        (0, _) => Ending::Incomplete,
        _ => Ending::Violated,
    })
}

/// A folder that goes when it is dropped.
fn temporary() -> Result<TempDir, Failure> {
    tempfile::Builder::new().prefix(TEMPORARY).tempdir().map_err(|error| {
        Failure::Incomplete(format!("no temporary folder: {error}; name one with --data"))
    })
}

/// The place of the page, which must not be the trace's.
fn page_file(arguments: &Arguments) -> Result<Option<ReportFile>, Failure> {
    let Some(path) = &arguments.report else { return Ok(None) };
    let file = ReportFile::at(path).map_err(Failure::Input)?;
    match &arguments.trace {
        Some(trace) if file.is(trace) => {
            Err(Failure::Input(format!("--report {}: is the trace itself", path.display())))
        }
        Some(_) | None => Ok(Some(file)),
    }
}

fn write_page(file: &ReportFile, report: &Report) -> Result<(), String> {
    let command = typed();
    let version = env!("CARGO_PKG_VERSION");
    file.write(&Page { command: &command, version, report }.html())
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
    // A terminal obeys what a name may hold.
    let printable = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    Ok((trace, name.to_string_lossy().chars().map(printable).collect()))
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

fn failure(error: ReplayError) -> Failure {
    let text = error.to_string();
    match error {
        ReplayError::Journal(error) | ReplayError::Node(NodeError::Journal(error)) => error.into(),
        ReplayError::Exists { .. }
        | ReplayError::NoLog { .. }
        | ReplayError::Missing { .. }
        | ReplayError::Policy { .. }
        | ReplayError::Size { .. }
        | ReplayError::OutOfRange { .. }
        | ReplayError::Zero { .. }
        | ReplayError::DamagedSettings { .. }
        | ReplayError::Prompt { .. }
        | ReplayError::Model(_) => Failure::Input(text),
        ReplayError::Node(_)
        | ReplayError::Log { .. }
        | ReplayError::Settings { .. }
        | ReplayError::Gone(_)
        | ReplayError::Store(_)
        | ReplayError::List(_)
        | ReplayError::Serve(_)
        | ReplayError::Owner(_)
        | ReplayError::Refused(_)
        | ReplayError::Stopped { .. }
        | ReplayError::Process { .. }
        | ReplayError::Coordinator(_)
        | ReplayError::Died => Failure::Incomplete(text),
    }
}

/// A bar on standard error where a person looks at it; elsewhere nothing.
fn progress(requests: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} requests, {msg}, {eta} left");
    let bar = ProgressBar::with_draw_target(Some(requests), target).with_message("0 crashes");
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
