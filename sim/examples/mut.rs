//! quick
#[cfg(pinfold_mutants)]
fn main() {
    use pinfold_core::mutant::*;
    use pinfold_sim::judges::Bench;
    use pinfold_sim::run::*;
    use pinfold_sim::violation::Judge;
    let max: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let only = std::env::args().nth(2);
    for m in Mutant::ALL {
        if only.as_ref().is_some_and(|o| o != m.name()) {
            continue;
        }
        arm(Some(m));
        print!("{:<4} {:<28}", m.invariant().to_string(), m.name());
        for j in Judge::ALL {
            let settings = Settings { bench: Bench::only(j), ..Settings::default() };
            let mut hit = None;
            let mut named = None;
            for seed in 0..max {
                let r = std::panic::catch_unwind(|| run(seed, &settings, &mut ()));
                match r {
                    Ok(r) => {
                        if let Some(f) = r.found {
                            if hit.is_none() {
                                hit = Some((seed, f.violation.invariant));
                            }
                            if f.violation.invariant == m.invariant() {
                                named = Some(seed);
                                break;
                            }
                            if seed > max / 4 && hit.is_some() {
                                break;
                            }
                        }
                    }
                    Err(_) => {
                        print!(" PANIC@{seed}");
                        break;
                    }
                }
            }
            print!(" | {} {:?}", hit.map_or("-".into(), |h| format!("{}:{}", h.0, h.1)), named);
        }
        println!();
    }
}
#[cfg(not(pinfold_mutants))]
fn main() {}
