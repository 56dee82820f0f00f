//! Shows what a range of seeds covers, and which cells stay empty.

use pinfold_sim::coverage::Coverage;
use pinfold_sim::coverage::required::required;
use pinfold_sim::run::{Settings, run};

fn main() {
    let bounds: Vec<u64> = std::env::args().skip(1).filter_map(|it| it.parse().ok()).collect();
    let [from, to] = bounds[..] else { return println!("usage: holes FROM TO") };
    let (mut all, mut new_shapes, mut found) = (Coverage::default(), 0, Vec::new());
    for seed in from..to {
        let mut coverage = Coverage::default();
        let ran = run(seed, &Settings::default(), &mut coverage);
        if let Some(it) = ran.found {
            found.push((seed, it.step, it.violation.to_string()));
        }
        if seed >= to - (to - from) / 10 {
            new_shapes += all.shapes().new_in(coverage.shapes());
        }
        all.merge(&coverage);
    }
    println!("{}", serde_json::to_string_pretty(&all).unwrap_or_default());
    for cell in required() {
        let count = all.count(cell);
        if count < 15 {
            println!("thin {count}: {cell:?}");
        }
    }
    println!("{new_shapes} new shapes in the last tenth");
    println!("{} found: {:?}", found.len(), found.first());
}
