//! scratch
use pinfold_sim::{run::*, swarm, trace::Trace};
fn main() {
    let seed: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let (setup, _) = swarm::draw(seed);
    let mut t = Trace::new(&setup);
    #[cfg(pinfold_mutants)] if let Some(m) = std::env::args().nth(3) { pinfold_core::mutant::arm(pinfold_core::mutant::Mutant::ALL.into_iter().find(|x| x.name() == m)); }
    let r = run(seed, &Settings::default(), &mut t);
    println!("{}", pinfold_sim::script::world::say_setup(&setup));
    let l = t.take();
    let n: usize = std::env::args().nth(2).map_or(60, |n| n.parse().unwrap());
    for x in l.iter().skip(l.len().saturating_sub(n)) {
        println!("{x}");
    }
    println!("{:?}", r.found);
}
