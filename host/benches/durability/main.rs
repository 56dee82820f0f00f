//! What durability costs: `cargo bench -p pinfold-host --bench durability`.
//!
//! Every figure stands beside the raw rate of `pwrite` and `fdatasync` that was measured right
//! before it in the same folder, because the machine and the hour decide that; ratios compare.
//! Exits with 1 when a limit is missed. `-- many DIR` measures 16 clients alone, on DIR's disk.

mod load;
mod raw;
mod recovery;
mod sqlite;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use pinfold_host::journal::JournalOptions;

/// How long each figure is measured.
const SECONDS: Duration = Duration::from_secs(3);
/// Acknowledgements of one cycle: pin and prepare before the transfer, the rest after it.
const ACKS: f64 = 2.0;
/// How often a pair of figures is measured; the median counts.
const ROUNDS: usize = 3;

/// What can be measured: one client, 16 clients, the cost of snapshots, recovery.
const PARTS: [&str; 4] = ["one", "many", "snapshots", "recovery"];

/// One line of the result.
struct Line {
    name: String,
    value: String,
    /// The limit in words, and whether it holds.
    limit: Option<(String, bool)>,
}

impl Line {
    fn new(name: &str, value: String) -> Self {
        Self { name: name.into(), value, limit: None }
    }

    fn at_least(name: &str, value: f64, limit: f64) -> Self {
        let limit = Some((format!("at least {limit:.2}"), value >= limit));
        Self { name: name.into(), value: format!("{value:.2}"), limit }
    }

    fn at_most(name: &str, value: f64, limit: f64) -> Self {
        let limit = Some((format!("at most {limit:.2}"), value <= limit));
        Self { name: name.into(), value: format!("{value:.2}"), limit }
    }
}

fn main() -> ExitCode {
    // Cargo passes `--bench`. Other arguments are the parts to be measured, all without one, and a
    // folder on the disk that is meant.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let (parts, folders): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| PARTS.contains(&argument.as_str()));
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| *wanted == part);
    let folder =
        folders.first().map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    let dir = tempfile::tempdir_in(&folder).expect("a folder to measure in");
    println!("in {}, {} s a figure, median of {ROUNDS}", folder.display(), SECONDS.as_secs());
    let mut lines = Vec::new();
    if wanted("one") {
        clients(dir.path(), 1, &mut lines);
    }
    if wanted("many") {
        clients(dir.path(), 16, &mut lines);
    }
    if wanted("snapshots") {
        snapshots(dir.path(), &mut lines);
    }
    if wanted("recovery") {
        recovery::measure(dir.path(), &mut lines);
    }
    let mut held = true;
    for Line { name, value, limit } in &lines {
        match limit {
            None => println!("{name:<58} {value:>12}"),
            Some((limit, holds)) => {
                held &= holds;
                let verdict = if *holds { "held" } else { "MISSED" };
                println!("{name:<58} {value:>12}   {limit}: {verdict}");
            }
        }
    }
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Cycles per second of ours and of SQLite, each beside the raw rate.
fn clients(dir: &Path, clients: u32, lines: &mut Vec<Line>) {
    let mut ours = Vec::new();
    for _ in 0..ROUNDS {
        let raw = raw::syncs_per_second(dir);
        let rate = load::cycles_per_second(dir, clients, SECONDS, JournalOptions::default());
        ours.push((rate / raw, rate, raw));
    }
    let (ratio, rate, raw) = median(&mut ours);
    let who = if clients == 1 { "1 client".into() } else { format!("{clients} clients") };
    lines.push(Line::new(&format!("{who}: raw syncs/s"), format!("{raw:.0}")));
    lines.push(Line::new(&format!("{who}: cycles/s, {ACKS} acks each"), format!("{rate:.0}")));
    if clients == 1 {
        let name = format!("{who}: cycles ÷ (raw ÷ acks)");
        lines.push(Line::at_least(&name, ratio * ACKS, 0.9));
    } else {
        // At least 30,000 cycles where the disk makes 7,000 syncs. A faster one asks for no more:
        // from there on it is the cores that limit.
        let of_disk = rate / raw.min(7_000.0);
        let name = format!("{who}: cycles ÷ raw, of which 7,000 count");
        lines.push(Line::at_least(&name, of_disk, 30.0 / 7.0));
        lines.push(Line::new(&format!("{who}: cycles ÷ raw"), format!("{ratio:.2}")));
    }
    let raw = raw::syncs_per_second(dir);
    let peer = sqlite::cycles_per_second(dir, clients, SECONDS);
    let name = format!("{who}: SQLite WAL FULL, cycles/s");
    lines.push(Line::new(&name, format!("{peer:.0}")));
    lines.push(Line::new(&format!("{who}: SQLite, cycles ÷ raw"), format!("{:.2}", peer / raw)));
}

/// What the background costs: the same load with and without snapshots, in pairs.
fn snapshots(dir: &Path, lines: &mut Vec<Line>) {
    let none = JournalOptions { snapshot_bytes: u64::MAX, ..JournalOptions::default() };
    let time = 3 * SECONDS;
    let mut pairs = Vec::new();
    for _ in 0..ROUNDS {
        let without = load::cycles_per_second(dir, 16, time, none);
        let with = load::cycles_per_second(dir, 16, time, JournalOptions::default());
        pairs.push((without / with, with, without));
    }
    let (ratio, ..) = median(&mut pairs);
    lines.push(Line::at_most("16 clients: without ÷ with background snapshots", ratio, 1.1));
}

fn median(samples: &mut [(f64, f64, f64)]) -> (f64, f64, f64) {
    samples.sort_by(|left, right| left.0.total_cmp(&right.0));
    samples[samples.len() / 2]
}
