//! One bounded run: the corpus first, then mutations of it; what fails is kept.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use pinfold_core::object::Digest;

use super::mutate::Mutator;
use super::targets::Target;

/// How the name of a seed begins; every other file of a corpus once failed.
const SEED: &str = "seed-";
/// How many mutations of each corpus `cargo test` judges.
const RUNS: u64 = 1000;

/// Judges a target's corpus, then its mutations.
pub(crate) fn run(target: &Target) {
    let mut seeds = Vec::new();
    for path in files(&corpus(target)) {
        let input = fs::read(&path).unwrap();
        let Ok(accepted) = judged(target, &input) else { fail(target, &path) };
        let seed = path.file_name().unwrap().to_string_lossy().starts_with(SEED);
        assert!(accepted || !seed, "{} is refused: UPDATE_EXPECT=1 writes it anew", path.display());
        seeds.push(input);
    }
    assert!(!seeds.is_empty(), "{} has no seed", corpus(target).display());
    let mut mutator = Mutator::new(number("PINFOLD_FUZZ_SEED").unwrap_or(0));
    // An input that ends the process, such as by an allocation that fails, is found here.
    let current = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}", target.name));
    for _ in 0..number("PINFOLD_FUZZ_RUNS").unwrap_or(RUNS) {
        let input = mutator.mutate(&seeds);
        fs::write(&current, &input).unwrap();
        if judged(target, &input).is_err() {
            let path = corpus(target).join(format!("fail-{:016x}", Digest::of(&input).sum));
            fs::copy(&current, &path).unwrap();
            fail(target, &path);
        }
    }
    fs::remove_file(current).ok();
}

fn corpus(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

fn judged(target: &Target, input: &[u8]) -> Result<bool, ()> {
    catch_unwind(AssertUnwindSafe(|| target.judge(input))).map_err(drop)
}

fn fail(target: &Target, path: &Path) -> ! {
    let name = target.name;
    panic!(
        "{name} failed on {}, as said above; again: cargo test -p pinfold-tests --test fuzz {name}",
        path.display()
    )
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// A decoder that breaks what every target promises is seen to do so.
mod samples {
    use super::*;

    fn sample(decode: fn(&[u8]) -> bool) -> Target {
        Target { name: "none", decode, bytes_per_byte: 2 }
    }

    #[test]
    fn a_panic_and_too_much_memory_are_failures() {
        let panics = sample(|input| input[3] == 0);
        assert_eq!(judged(&panics, &[0; 4]), Ok(true));
        assert_eq!(judged(&panics, &[1; 4]), Ok(false));
        assert_eq!(judged(&panics, &[0; 3]), Err(()));
        let hungry = sample(|input| Vec::<u8>::with_capacity((64 << 10) + input.len()).is_empty());
        assert_eq!(judged(&hungry, &[1]), Ok(true));
        let hungrier = sample(|input| Vec::<[u8; 3]>::with_capacity(input.len()).is_empty());
        assert_eq!(judged(&hungrier, &[0; 64 << 10]), Ok(true));
        assert_eq!(judged(&hungrier, &[0; (64 << 10) + 1]), Err(()));
    }
}
