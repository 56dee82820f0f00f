//! What the catalog costs: cycles per second, bytes per checkpoint and allocations per verb.
//!
//! `cargo bench -p pinfold-core --bench catalog -- [--retained N]... [--json]`
//!
//! It measures jobs of 10³, 10⁵ and 10⁷ retained checkpoints (or those asked for), compares with
//! the stated limits, and exits with 1 when one is missed. Rounds are short and many, and the
//! figure is that of the fastest tenth of them: other work on the machine only ever slows a round.
//! The median stands beside it.

mod cycles;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use cycles::{Cycle, Geometry, Load, SAVE, VERBS, apply, decide, epoch, name_deleted, run};
use pinfold_core::catalog::{Catalog, Command};
use pinfold_core::engine::{Config, Effect, Engine, Input, Output, Reply, Request, Ticket};
use pinfold_core::id::OpId;
use pinfold_core::replay::Replay;

/// Rounds of a timed run, and cycles of one round, which are built before it in parts.
const ROUNDS: usize = 100;
const PARTS: u32 = 32;
const PART: u32 = 32;
/// Cycles between two batches of the engine: a worker sends less than W commands meanwhile.
const ENGINE_BATCH: u32 = 16;
/// Where speed, and where memory is judged.
const AT_SPEED: u64 = 100_000;
const AT_MEMORY: u64 = 10_000_000;

/// What was measured at one size.
struct Figures {
    retained: u64,
    /// Nanoseconds of one cycle, in the fastest tenth of rounds and in the median one.
    fast_ns: f64,
    median_ns: f64,
    engine_ns: f64,
    bytes_per_checkpoint: f64,
    bytes_per_expired: f64,
    /// By verb, and over all verbs.
    allocations: [f64; VERBS.len()],
    allocations_per_verb: f64,
}

/// Bytes that one more shard costs each checkpoint.
struct PerShard {
    retained: u64,
    shared: f64,
    own: f64,
}

/// A limit and what it was held against; no value when its size was not measured.
struct Judged {
    name: &'static str,
    wanted: String,
    found: Option<f64>,
    holds: bool,
}

fn main() -> ExitCode {
    let (sizes, json) = match arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let figures: Vec<Figures> = sizes.iter().map(|retained| figures(*retained)).collect();
    let per_shard = per_shard(100_000);
    let judged = judge(&figures, &per_shard);
    if json {
        println!("{}", to_json(&figures, &per_shard, &judged));
    } else {
        print!("{}", to_text(&figures, &per_shard, &judged));
    }
    if judged.iter().all(|limit| limit.holds) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn arguments() -> Result<(Vec<u32>, bool), String> {
    let usage = "usage: cargo bench -p pinfold-core --bench catalog -- [--retained N]... [--json]";
    let (mut sizes, mut json) = (Vec::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo's own.
            "--bench" => {}
            "--json" => json = true,
            "--retained" => {
                let number = arguments.next().and_then(|number| number.parse().ok());
                let number = number.filter(|number| (8..=100_000_000).contains(number));
                sizes.push(number.ok_or("--retained takes a number from 8 to 100000000")?);
            }
            other => return Err(format!("unknown argument {other}\n{usage}")),
        }
    }
    if sizes.is_empty() {
        sizes = vec![1_000, 100_000, 10_000_000];
    }
    Ok((sizes, json))
}

// Measuring.

fn figures(retained: u32) -> Figures {
    let (mut catalog, mut load) = Load::new(retained, Geometry::Shared(1));
    let filled = measure(|| load.fill(|cycle| run(&mut catalog, cycle, SAVE)));
    let retained = load.retained();
    eprintln!("{retained} retained: filled");

    // A warm-up of about the size of the job, but of no more than a few seconds.
    for _ in 0..retained.clamp(10_000, 1_000_000) {
        run(&mut catalog, load.next_cycle(), VERBS.len());
    }
    let (fast_ns, median_ns) = time_cycles(&mut catalog, &mut load);
    let (allocations, expired) = count_allocations(&mut catalog, &mut load);
    let engine_ns = time_engine(catalog, &mut load);
    Figures {
        retained,
        fast_ns,
        median_ns,
        engine_ns,
        bytes_per_checkpoint: filled.bytes_current as f64 / retained as f64,
        bytes_per_expired: expired,
        allocations,
        allocations_per_verb: allocations.iter().sum::<f64>() / VERBS.len() as f64,
    }
}

/// Allocations of each verb inside decide and apply, and the bytes left by one expired turn.
fn count_allocations(catalog: &mut Catalog, load: &mut Load) -> ([f64; VERBS.len()], f64) {
    let cycles = 100_000;
    let mut counts = [0; VERBS.len()];
    let mut bytes = 0;
    for _ in 0..cycles {
        let mut deletable = None;
        for ((op, mut command), count) in load.next_cycle().steps.into_iter().zip(&mut counts) {
            name_deleted(&mut command, deletable);
            let mut event = None;
            // Decide frees the host's vector of candidates, and apply nothing of the host's.
            let decided = measure(|| event = Some(decide(catalog, op, command)));
            let event = event.expect("an event");
            let applied = measure(|| deletable = apply(catalog, &event));
            *count += decided.count_total + applied.count_total;
            bytes += applied.bytes_current;
        }
    }
    (counts.map(|count| count as f64 / f64::from(cycles)), bytes as f64 / f64::from(cycles))
}

fn time_cycles(catalog: &mut Catalog, load: &mut Load) -> (f64, f64) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let mut time = Duration::ZERO;
            for _ in 0..PARTS {
                let cycles: Vec<Cycle> = (0..PART).map(|_| load.next_cycle()).collect();
                let begin = Instant::now();
                for cycle in cycles {
                    run(catalog, cycle, VERBS.len());
                }
                time += begin.elapsed();
            }
            time.as_nanos() as f64 / f64::from(PARTS * PART)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    (rounds[ROUNDS / 10], rounds[ROUNDS / 2])
}

/// The same cycles through the engine, with a journal that takes every batch and forgets it.
fn time_engine(catalog: Catalog, load: &mut Load) -> f64 {
    let resumed = Engine::resume(Config::default(), Replay::from_snapshot(catalog, 1));
    let mut engine = resumed.expect("an engine");
    let mut deleted: Vec<(OpId, Command)> = Vec::new();
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let mut time = Duration::ZERO;
            for _ in 0..PARTS * PART / ENGINE_BATCH {
                let cycles: Vec<Cycle> = (0..ENGINE_BATCH).map(|_| load.next_cycle()).collect();
                let begin = Instant::now();
                run_engine(&mut engine, cycles, &mut deleted);
                time += begin.elapsed();
            }
            time.as_nanos() as f64 / f64::from(PARTS * PART)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 10]
}

/// A batch of cycles. What they hand out for deletion is reported with the next batch.
fn run_engine(engine: &mut Engine, cycles: Vec<Cycle>, deleted: &mut Vec<(OpId, Command)>) {
    let submit = |engine: &mut Engine, op, command| {
        let request = Request::Command(op, command);
        engine.submit(Input { ticket: Ticket(0), epoch: epoch(), request });
    };
    for (op, command) in deleted.drain(..) {
        submit(engine, op, command);
    }
    for cycle in cycles {
        for (op, command) in cycle.steps {
            match command {
                Command::Deleted { .. } => deleted.push((op, command)),
                command => submit(engine, op, command),
            }
        }
    }
    while let Some(batch) = engine.take_batch() {
        engine.commit(batch);
    }
    let mut reports = deleted.iter_mut();
    while let Some(output) = engine.poll_output() {
        match output {
            Output::Reply(_, Reply::Command(Ok(_))) => {}
            Output::Effect(Effect::Delete { checkpoint, .. }) => {
                let (_, command) = reports.next().expect("a report");
                name_deleted(command, Some(checkpoint));
            }
            Output::Reply(_, reply) => panic!("not done: {reply:?}"),
        }
    }
}

fn per_shard(retained: u32) -> PerShard {
    let bytes = |geometry| {
        let (mut catalog, mut load) = Load::new(retained, geometry);
        let filled = measure(|| load.fill(|cycle| run(&mut catalog, cycle, SAVE)));
        filled.bytes_current as f64 / load.retained() as f64
    };
    let further = 8;
    let shared = bytes(Geometry::Shared(1 + further)) - bytes(Geometry::Shared(1));
    let own = bytes(Geometry::Own(1 + further)) - bytes(Geometry::Own(1));
    let further = f64::from(further);
    // To a tenth of a byte: a few buffers beside the records are reused.
    let tenth = |bytes: f64| (bytes / further * 10.0).round() / 10.0;
    PerShard { retained: u64::from(retained), shared: tenth(shared), own: tenth(own) }
}

// Judging.

fn judge(figures: &[Figures], per_shard: &PerShard) -> Vec<Judged> {
    let at = |retained| figures.iter().find(|row| row.retained == retained);
    let speed = at(AT_SPEED).map(|row| 1e9 / row.fast_ns);
    let ratio = at(AT_SPEED).zip(at(AT_MEMORY)).map(|(few, many)| few.fast_ns / many.fast_ns);
    let at_most = |name, bound: f64, found: Option<f64>| Judged {
        name,
        wanted: format!("at most {bound}"),
        found,
        holds: found.is_none_or(|found| found <= bound),
    };
    let at_least = |name, bound: f64, found: Option<f64>| Judged {
        name,
        wanted: format!("at least {bound}"),
        found,
        holds: found.is_none_or(|found| found >= bound),
    };
    let memory = at(AT_MEMORY);
    // `publish` adds to what the job remembers for ever, which nothing can hold in no memory.
    let others = |row: &Figures| {
        let verbs = VERBS.iter().zip(row.allocations).filter(|(verb, _)| **verb != "publish");
        verbs.map(|(_, count)| count).sum::<f64>() / (VERBS.len() - 1) as f64
    };
    let allocations = figures.iter().map(others).max_by(f64::total_cmp);
    let expired = figures.iter().map(|row| row.bytes_per_expired).max_by(f64::total_cmp);
    vec![
        at_least("cycles per second at 10^5", 500_000.0, speed.map(f64::round)),
        at_least("speed at 10^7 as a part of that at 10^5", 0.333, ratio),
        at_most(
            "bytes per retained checkpoint at 10^7",
            160.0,
            memory.map(|row| row.bytes_per_checkpoint),
        ),
        at_most("bytes per further shard, shapes shared", 16.0, Some(per_shard.shared)),
        at_most("bytes per further shard, each shape its own", 16.0, Some(per_shard.own)),
        at_most("bytes per expired turn", 40.0, expired),
        at_most("allocations per verb beside publish", 0.001, allocations),
    ]
}

// Showing.

fn to_text(figures: &[Figures], per_shard: &PerShard, judged: &[Judged]) -> String {
    let base = figures.iter().find(|row| row.retained == AT_SPEED).map(|row| row.fast_ns);
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        let row: Vec<String> = cells.iter().map(|cell| format!("{cell:>12}")).collect();
        let _ = writeln!(text, "{}", row.join(" "));
    };
    let head = [
        "retained",
        "cycles/s",
        "ns/cycle",
        "median ns",
        "to 10^5",
        "engine/s",
        "B/checkpoint",
        "B/expired",
        "allocs/verb",
    ];
    line(&head.map(String::from));
    for row in figures {
        line(&[
            row.retained.to_string(),
            format!("{:.0}", 1e9 / row.fast_ns),
            format!("{:.0}", row.fast_ns),
            format!("{:.0}", row.median_ns),
            base.map_or("-".into(), |base| format!("{:.2}", base / row.fast_ns)),
            format!("{:.0}", 1e9 / row.engine_ns),
            format!("{:.1}", row.bytes_per_checkpoint),
            format!("{:.1}", row.bytes_per_expired),
            format!("{:.5}", row.allocations_per_verb),
        ]);
    }
    let _ = writeln!(text, "\nallocations by verb");
    for row in figures {
        let verbs = VERBS.iter().zip(row.allocations);
        let verbs = verbs.filter(|(_, count)| *count > 0.0);
        let verbs: Vec<String> = verbs.map(|(verb, count)| format!("{verb} {count:.5}")).collect();
        let verbs = if verbs.is_empty() { "none".into() } else { verbs.join(", ") };
        let _ = writeln!(text, "{:>12} {verbs}", row.retained);
    }
    let PerShard { retained, shared, own } = per_shard;
    let _ =
        writeln!(text, "\nbytes per further shard at {retained}: {shared:.1} where checkpoints");
    let _ = writeln!(text, "share shapes, {own:.1} where each has a shape of its own\n");
    for Judged { name, wanted, found, holds } in judged {
        let verdict = match (found, holds) {
            (None, _) => "not measured",
            (Some(_), true) => "held",
            (Some(_), false) => "MISSED",
        };
        let found = found.map_or("-".into(), |found| format!("{found:.3}"));
        let _ = writeln!(text, "{name:<44} {wanted:>16} {found:>12}  {verdict}");
    }
    text
}

fn to_json(figures: &[Figures], per_shard: &PerShard, judged: &[Judged]) -> serde_json::Value {
    let rows = figures.iter().map(|row| {
        let by_verb = VERBS.iter().zip(row.allocations);
        serde_json::json!({
            "retained": row.retained,
            "cycles_per_second": 1e9 / row.fast_ns,
            "ns_per_cycle": row.fast_ns,
            "median_ns_per_cycle": row.median_ns,
            "engine_cycles_per_second": 1e9 / row.engine_ns,
            "bytes_per_checkpoint": row.bytes_per_checkpoint,
            "bytes_per_expired_turn": row.bytes_per_expired,
            "allocations_per_verb": row.allocations_per_verb,
            "allocations": by_verb.map(|(verb, count)| (verb.to_string(), count.into()))
                .collect::<serde_json::Map<_, _>>(),
        })
    });
    let limits = judged.iter().map(|limit| {
        serde_json::json!({
            "name": limit.name,
            "wanted": limit.wanted,
            "found": limit.found,
            "holds": limit.holds,
        })
    });
    serde_json::json!({
        "figures": rows.collect::<Vec<_>>(),
        "bytes_per_further_shard": {
            "retained": per_shard.retained,
            "shared": per_shard.shared,
            "own": per_shard.own,
        },
        "limits": limits.collect::<Vec<_>>(),
    })
}
