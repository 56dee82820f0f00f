//! What seeds mean is the same on every machine, in debug and in release.
//!
//! The table has a digest for each of some seeds, which this test repeats in whatever build it
//! runs; and one for all of `0..2000`, which `./ci.sh sim` repeats in a release build.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use pinfold_sim::run::{Settings, run};

/// How many seeds have a row of their own.
const ROWS: u64 = 32;

fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/seeds.txt")
}

/// `UPDATE_EXPECT=1` writes the rows of single seeds; the row of `0..2000` is what `pinfold sim
/// --seeds 0..2000` prints as its digest in a release build.
#[test]
fn seeds_mean_what_the_table_says() {
    let mut rows = String::new();
    for seed in 0..ROWS {
        let ran = run(seed, &Settings::default(), &mut ());
        assert_eq!(ran.found, None, "seed {seed}");
        writeln!(rows, "{seed} {:016x}", ran.digest).expect("a string takes anything");
    }
    let text = fs::read_to_string(table()).unwrap_or_default();
    let (own, all): (Vec<_>, Vec<_>) = text.lines().partition(|line| !line.contains(".."));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(table(), rows + &all.join("\n") + "\n").expect("a writable folder");
        return;
    }
    assert!(own.iter().copied().eq(rows.lines()), "seeds mean something else: {rows}");
    assert_eq!(all.len(), 1, "the row of all is missing");
}
