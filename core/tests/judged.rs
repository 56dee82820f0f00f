//! The core under the simulator's judges, under every golden script, and under every report.
//!
//! Protects the catalog and the engine where they stand: the tests of this package alone must tell
//! a wrong core from a right one, because they are all that `core/mutants.sh` runs. It never says
//! what a right answer is: the scripts and the judges do.

use std::fs;
use std::path::{Path, PathBuf};

use pinfold_sim::judges::Bench;
use pinfold_sim::run::{Settings, run};
use pinfold_sim::script::{Script, bench, world};

/// So many take a few seconds in a build that is not optimised.
const SEEDS: u64 = 150;

#[test]
fn every_seed_holds_its_promises() {
    for seed in 0..SEEDS {
        let found = run(seed, &Settings::default(), &mut ()).found;
        assert_eq!(found, None, "seed {seed}");
    }
}

#[test]
fn every_script_observes_what_it_expects() {
    for path in below("../tests/scripts") {
        let script = read(&path);
        let observed = bench::run(&script);
        let observed = observed.unwrap_or_else(|fault| panic!("{}: {fault:?}", path.display()));
        let expected: Vec<_> = script.blocks.iter().map(|block| &block.expected).collect();
        assert_eq!(observed.blocks.iter().collect::<Vec<_>>(), expected, "{}", path.display());
    }
}

#[test]
fn every_report_goes_right() {
    for path in below("../tests/testdata/reports") {
        let replayed = world::replay(&read(&path), Bench::ALL, &mut ());
        let replayed = replayed.unwrap_or_else(|fault| panic!("{}: {fault:?}", path.display()));
        assert_eq!(replayed.found, None, "{}", path.display());
        assert!(replayed.is_as_expected(), "{}: {replayed:?}", path.display());
    }
}

fn read(path: &Path) -> Script {
    let text = fs::read_to_string(path).expect("a readable script");
    Script::read(&text).unwrap_or_else(|fault| panic!("{}: {fault:?}", path.display()))
}

/// Every script below a folder beside this package, in order.
fn below(folder: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "txt") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 20, "{folder} has {} scripts", found.len());
    found.sort();
    found
}
