//! smoke
use pinfold_sim::run::*;
use pinfold_sim::seen::Seen;
use pinfold_sim::world::{Kind, World, choice::Choice};
use std::collections::BTreeMap;
struct Count(BTreeMap<&'static str, u64>);
impl Watch for Count {
    fn step(&mut self, _: &World, kind: Kind, _: Choice, _: &[Seen]) {
        *self.0.entry(kind.name()).or_default() += 1;
    }
}
fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let mut count = Count(BTreeMap::new());
    let (mut steps, mut most) = (0, 0);
    let t = std::time::Instant::now();
    let mut bad = BTreeMap::new();
    for seed in args[0]..args[1] {
        let ran = run(seed, &Settings::default(), &mut count);
        steps += ran.choices.len() + ran.recovery_steps as usize;
        most = most.max(ran.recovery_steps);
        if let Some(f) = ran.found {
            let e = bad
                .entry(format!("{} {:?}", f.violation.invariant, f.violation.judge))
                .or_insert_with(Vec::new);
            e.push((seed, f.step, f.violation.what));
        }
    }
    let s = t.elapsed().as_secs_f64();
    for (k, v) in bad {
        println!("{k}: {}", v.len());
        for x in v.iter().take(3) {
            println!("   {x:?}");
        }
    }
    println!("{steps} steps {:.0}/s, recovery at most {most}", steps as f64 / s);
    println!("{:?}", count.0);
}
