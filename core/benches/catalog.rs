//! placeholder
mod cycles;
use cycles::*;
use std::time::Instant;
fn main() {
    for retained in [1_000, 100_000] {
    let (mut catalog, mut load) = Load::new(retained, Geometry::Shared(1));
    let t = Instant::now();
    let info = allocation_counter::measure(|| load.fill(|cycle| run(&mut catalog, cycle, SAVE)));
    eprintln!("{retained} fill {:?} {:.1} B", t.elapsed(), info.bytes_current as f64 / load.retained() as f64);
    for _ in 0..8 {
        let mut total = std::time::Duration::ZERO;
        let n = 400;
        for _ in 0..n {
            let cycles: Vec<_> = (0..256).map(|_| load.next_cycle()).collect();
            let t = Instant::now();
            for cycle in cycles { run(&mut catalog, cycle, 8); }
            total += t.elapsed();
        }
        let ns = total.as_nanos() as f64 / (n * 256) as f64;
        eprintln!("{ns:.0} ns/cycle {:.0}/s", 1e9 / ns);
    }
    }
    eprintln!("{} {} ", size_of::<pinfold_core::catalog::Event>(), size_of::<pinfold_core::outcome::Outcome>());
}
