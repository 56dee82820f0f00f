//! Small configurations from end to end: sizes, engines, reductions and budgets.

use std::time::Duration;

use pinfold_core::invariant::Invariant;
use pinfold_model_check::configuration::{Configuration, Tier};
use pinfold_model_check::explore::{Explored, Options, Recovering, Stopped, explore};
use pinfold_model_check::model::compare;
use pinfold_model_check::named::{all, named};
use pinfold_model_check::plan::Plan;
use pinfold_model_check::selfcheck::{forms, self_check};
use pinfold_model_check::verdict::{Standing, Verdict};
use pinfold_model_check::watchdog::{Limits, Spent};

fn checked(configuration: &Configuration, key: u64, options: &Options) -> Explored {
    explore(&Plan::new(configuration.clone(), key), options, &|_| true)
}

/// The configurations that a debug build visits in moments.
fn small() -> Vec<Configuration> {
    let is_small = |it: &Configuration| it.pinned.is_some_and(|size| size.states < 1000);
    all().into_iter().filter(is_small).collect()
}

/// Another key or number of threads, and stateright, see the very same states and transitions.
#[test]
fn every_engine_key_and_number_of_threads_counts_the_same() {
    assert!(small().len() >= 3);
    for it in small() {
        for (key, threads) in [(0, 1), (1, 1), (0, 2)] {
            let options = Options { threads, ..Options::default() };
            let explored = checked(&it, key, &options);
            assert_eq!(explored.verdict(it.pinned), Verdict::Exhaustive, "{}", it.name);
        }
        let size = it.pinned.unwrap();
        let seen = compare(Plan::new(it.clone(), 0), Duration::from_secs(3600));
        assert_eq!((seen.states, seen.transitions), (size.states, size.transitions), "{}", it.name);
        assert!(seen.broken.is_empty() && seen.is_complete, "{}", it.name);
    }
}

/// Without symmetry, and with every step apart, there is more to see, and nothing else to find.
#[test]
fn reductions_change_no_verdict() {
    let basics = named("basics").unwrap();
    let rows = self_check(&basics, &Options { threads: 2, ..Options::default() }, &|_| true);
    assert!(rows.iter().all(|row| row.agrees && row.verdict == Verdict::Exhaustive), "{rows:?}");
    let states = |name| rows.iter().find(|row| row.way.name() == name).unwrap().states;
    assert!(states("without merged steps") > states("as it is checked"));
    let two = named("pretenders").unwrap();
    let explored = checked(&two.clone().without_symmetry(), 0, &Options::default());
    assert_eq!(explored.verdict(None), Verdict::Exhaustive);
    assert!(explored.size().states > two.pinned.unwrap().states);
}

/// What is visited without symmetry has as many canonical forms as are visited with it: what counts
/// as interchangeable is.
#[test]
fn symmetry_leaves_no_state_out() {
    let symmetric = |it: &Configuration| it.symmetry.iter().any(|row| row.1 > 1);
    let all: Vec<_> = small().into_iter().filter(symmetric).collect();
    assert!(!all.is_empty());
    for it in all {
        assert_eq!(forms(&it), it.pinned.map(|size| size.states), "{}", it.name);
    }
}

/// What was not seen is never called seen.
#[test]
fn a_spent_budget_or_a_stop_is_incomplete() {
    let large = named("retention").unwrap();
    let stopped = |limits: Limits| {
        let explored = checked(&large, 0, &Options { limits, ..Options::default() });
        assert_eq!(explored.verdict(large.pinned), Verdict::Incomplete);
        explored.stopped
    };
    let time = Limits { time: Some(Duration::ZERO), memory_bytes: None };
    assert_eq!(stopped(time), Some(Stopped::Spent(Spent::Time)));
    let memory = Limits { time: None, memory_bytes: Some(1) };
    assert_eq!(stopped(memory), Some(Stopped::Spent(Spent::Memory)));
    let told = explore(&Plan::new(large, 0), &Options::default(), &|_| false);
    assert_eq!(told.stopped, Some(Stopped::Told));
}

/// A promise that was never at stake is not called held, and another size is told.
#[test]
fn a_verdict_promises_no_more_than_was_seen() {
    let basics = named("basics").unwrap();
    let explored = checked(&basics, 0, &Options::default());
    assert_eq!(explored.standing(Invariant::I4), Standing::Held);
    assert_eq!(explored.standing(Invariant::I12), Standing::NotReached);
    let mut other = basics.pinned.unwrap();
    other.states += 1;
    assert_eq!(explored.verdict(Some(other)), Verdict::Changed);
    assert!(explored.recovery.0 > 0);
}

/// States that are walked to instead of kept, and recoveries that go their own way to the end, come
/// to the same.
#[test]
fn what_is_spared_changes_nothing() {
    for it in small() {
        let walked = Options { kept: 0, ..Options::default() };
        let whole = Options { recovering: Recovering::Whole, ..Options::default() };
        for options in [walked, whole] {
            let explored = checked(&it, 0, &options);
            assert_eq!(explored.verdict(it.pinned), Verdict::Exhaustive, "{}", it.name);
            assert!(explored.recovery.0 > 0, "{}", it.name);
        }
    }
}

/// Whatever is checked in every run has a pinned size.
#[test]
fn every_configuration_of_a_run_is_pinned() {
    for it in all().iter().filter(|it| it.tier == Tier::Ci) {
        assert!(it.pinned.is_some(), "{}", it.name);
    }
}
