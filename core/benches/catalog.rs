//! placeholder
mod cycles;
use cycles::*;
use std::time::{Duration, Instant};
#[inline(never)]
fn counted(catalog: &mut pinfold_core::catalog::Catalog, cycles: Vec<Cycle>) {
    for cycle in cycles { run(catalog, cycle, 8); }
}
fn main() {
    if std::env::var("COUNT").is_ok() {
        let (mut catalog, mut load) = Load::new(2_000, Geometry::Shared(1));
        load.fill(|cycle| run(&mut catalog, cycle, SAVE));
        for _ in 0..100 {
            let cycles: Vec<_> = (0..100).map(|_| load.next_cycle()).collect();
            counted(&mut catalog, cycles);
        }
        return;
    }
    for retained in [1_000, 100_000, 10_000_000] {
    if retained > 100_000 && std::env::var("BIG").is_err() { continue; }
    let (mut catalog, mut load) = Load::new(retained, Geometry::Shared(1));
    let t = Instant::now();
    let info = allocation_counter::measure(|| load.fill(|cycle| run(&mut catalog, cycle, SAVE)));
    eprintln!("{retained} fill {:?} {:.1} B", t.elapsed(), info.bytes_current as f64 / load.retained() as f64);
    let mut rounds = Vec::new();
    for _ in 0..200 {
        let mut total = std::time::Duration::ZERO;
        let n = 16;
        for _ in 0..n {
            let cycles: Vec<_> = (0..128).map(|_| load.next_cycle()).collect();
            let t = Instant::now();
            for cycle in cycles { run(&mut catalog, cycle, 8); }
            total += t.elapsed();
        }
        rounds.push(total.as_nanos() as u64 / (n * 128));
    }
    rounds.sort();
    eprintln!("min {} q1 {} med {} max {}", rounds[0], rounds[50], rounds[100], rounds[199]);
    let mut split = [[Duration::MAX; 2]; 8];
    for _ in 0..30 {
    let mut part = [[Duration::ZERO; 2]; 8];
    let n = 2000;
    for _ in 0..n {
        let cycle = load.next_cycle();
        let mut deletable = None;
        for (i, mut step) in cycle.steps.into_iter().enumerate() {
            name_deleted(&mut step.1, deletable);
            let a = Instant::now();
            let event = decide(&catalog, step.0, step.1);
            let b = Instant::now();
            deletable = apply(&mut catalog, &event);
            let c = Instant::now();
            part[i][0] += b - a; part[i][1] += c - b;
        }
    }
    for i in 0..8 { for j in 0..2 { split[i][j] = split[i][j].min(part[i][j] / 2000); } }
    }
    for (v, s) in VERBS.iter().zip(split) { eprintln!("{v:12} {:5} {:5}", s[0].as_nanos(), s[1].as_nanos()); }
    }
    let a = Instant::now(); for _ in 0..1000 { std::hint::black_box(Instant::now()); } eprintln!("now {:?}/1000", a.elapsed());
    eprintln!("{} {} ", size_of::<pinfold_core::catalog::Event>(), size_of::<pinfold_core::outcome::Outcome>());
}
