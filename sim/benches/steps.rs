//! How many steps a core takes in a second with all judges looking on, and what looking costs.
//!
//! `cargo bench -p pinfold-sim --bench steps`. It ends with 1 when the limit is missed.

use std::process::ExitCode;
use std::time::Instant;

use pinfold_sim::judges::Bench;
use pinfold_sim::run::{Settings, run};

/// The fewest steps a second and core, with all judges.
const LIMIT: u128 = 300_000;
/// Which seeds are run, one after another.
const SEEDS: u64 = 1_000;

/// Steps, those of recoveries among them, in a second of one core.
fn steps_per_second(bench: Bench) -> u128 {
    let settings = Settings { bench, ..Settings::default() };
    let begin = Instant::now();
    let mut steps = 0;
    for seed in 0..SEEDS {
        let ran = run(seed, &settings, &mut ());
        assert_eq!(ran.found, None, "seed {seed}");
        steps += ran.choices.len() as u128 + u128::from(ran.recovery_steps);
    }
    steps * 1_000_000 / begin.elapsed().as_micros().max(1)
}

fn main() -> ExitCode {
    let mut all: Vec<u128> = Vec::new();
    let mut none: Vec<u128> = Vec::new();
    // Interleaved, so that a busy machine is busy for both.
    for _ in 0..3 {
        all.push(steps_per_second(Bench::ALL));
        none.push(steps_per_second(Bench::NONE));
    }
    all.sort_unstable();
    none.sort_unstable();
    let (all, none) = (all[1], none[1]);
    println!("steps a second and core, seeds 0..{SEEDS}, medians of 3");
    println!("  all judges {all:>12}   limit {LIMIT}");
    println!("  no judge   {none:>12}   {}.{:02} times", none / all, none * 100 / all % 100);
    if all < LIMIT {
        println!("the limit is missed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
