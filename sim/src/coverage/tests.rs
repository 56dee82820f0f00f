//! Tests of the coverage: its table is the page's, its numbers add up, and what never happens is
//! named.

use super::required::{UNREACHABLE, required};
use super::verbs::{ANY, VERBS};
use super::{Cell, Coverage, Hole, names};
use crate::judges::Bench;
use crate::run::{Settings, run};
use crate::swarm::Knob;
use crate::violation::Judge;
use crate::world::Kind;

fn settings(knobs: &[&str]) -> Settings {
    let knobs = knobs.iter().map(|text| Knob::read(text).unwrap()).collect();
    Settings { steps: 500, bench: Bench::only(Judge::Recovery), knobs }
}

fn covered(seed: u64, settings: &Settings) -> Coverage {
    let mut coverage = Coverage::default();
    let ran = run(seed, settings, &mut coverage);
    assert_eq!((ran.found, coverage.steps()), (None, ran.choices.len() as u64));
    coverage
}

fn merged(seeds: core::ops::Range<u64>, settings: &Settings) -> Coverage {
    let mut all = Coverage::default();
    seeds.for_each(|seed| all.merge(&covered(seed, settings)));
    all
}

/// `docs/verbs.md` shows the same table, word for word.
#[test]
fn the_table_of_verbs_is_the_page_s() {
    let words = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(" ")
    };
    let mut table = String::from("| verb | answers | refusals |\n|---|---|---|\n");
    for row in &VERBS {
        table += &if row.0 == ANY {
            format!("| {ANY} | | {} |\n", words(row.2))
        } else {
            format!("| `{}` | {} | {} |\n", row.0, words(row.1), words(row.2))
        };
    }
    let page = include_str!("../../../docs/verbs.md");
    let (_, rest) = page.split_once("<!-- verbs -->\n").unwrap();
    let (shown, _) = rest.split_once("<!-- end of verbs -->").unwrap();
    assert_eq!(table, shown);
}

/// Whatever is left out is a row of the table, once, and is not required.
#[test]
fn what_is_left_out_is_in_the_table() {
    let required = required();
    for it in &UNREACHABLE {
        let is_there = |row: &&super::verbs::Row| row.0 == it.0 && row.2.contains(&it.1);
        assert_eq!(VERBS.iter().filter(is_there).count(), 1, "{} {}", it.0, it.1);
        assert!(!required.contains(&Cell::Answer(it.0, it.1)), "{} {}", it.0, it.1);
        assert!(!it.2.is_empty(), "{} {}", it.0, it.1);
    }
    for (place, cell) in required.iter().enumerate() {
        assert!(!required[..place].contains(cell), "{cell:?} is required twice");
    }
}

/// Runs get only answers that the table has, none that is said to be unreachable, and end their
/// transfers only in ways that are required.
#[test]
fn runs_stay_within_the_table() {
    let coverage = merged(0..120, &settings(&[]));
    let is_row = |verb, answer| {
        let has = |row: &super::verbs::Row| row.1.contains(&answer) || row.2.contains(&answer);
        VERBS.iter().any(|row| row.0 == verb && has(row))
    };
    let beside = [
        (names::LIST, names::NOT_TRIED),
        (names::LIST, "LimitExceeded"),
        (names::LIST, "WrongEpoch"),
        (ANY, names::POISONED),
    ];
    let mut answers = 0;
    for (cell, count) in coverage.cells() {
        assert!(count > 0, "{cell:?}");
        match cell {
            Cell::Answer(verb, answer) => {
                assert!(is_row(verb, answer) || beside.contains(&(verb, answer)), "{cell:?}");
                answers += 1;
            }
            Cell::End(name) => assert!(names::ENDS.contains(&name), "{name}"),
            Cell::Injected(_)
            | Cell::Effect(_)
            | Cell::Blocker(_)
            | Cell::Verdict(_)
            | Cell::FollowUp(_)
            | Cell::Phase(..) => {}
        }
    }
    assert!(answers > 50, "{answers}");
    for it in &UNREACHABLE {
        assert_eq!(coverage.count(Cell::Answer(it.0, it.1)), 0, "{} {}", it.0, it.1);
    }
}

/// The order in which runs are merged doesn't matter, and nothing is lost by it.
#[test]
fn merging_is_commutative_and_associative() {
    let [a, b, c] = [1, 2, 3].map(|seed| covered(seed, &settings(&[])));
    let sum = |one: &Coverage, other: &Coverage| {
        let mut sum = one.clone();
        sum.merge(other);
        sum
    };
    assert_eq!(sum(&a, &b), sum(&b, &a));
    let all = sum(&sum(&a, &b), &c);
    assert_eq!(all, sum(&a, &sum(&b, &c)));
    assert_eq!(sum(&Coverage::default(), &all), all);
    assert_eq!(all.steps(), a.steps() + b.steps() + c.steps());
    for kind in Kind::all() {
        let rows = [&a, &b, &c].map(|it| it.row(kind));
        let injections: u64 = rows.iter().map(|row| row.injections).sum();
        let opportunities: u64 = rows.iter().map(|row| row.opportunities).sum();
        assert_eq!(all.row(kind).injections, injections, "{kind:?}");
        assert_eq!(all.row(kind).opportunities, opportunities, "{kind:?}");
        assert!(injections <= opportunities, "{kind:?}");
    }
    let shapes = all.shapes();
    let sampled: u64 = [&a, &b, &c].map(|it| it.shapes().sampled()).into_iter().sum();
    assert_eq!(shapes.sampled(), sampled);
    assert_eq!(shapes.new_in(c.shapes()), 0);
    let before = sum(&a, &b);
    let new = before.shapes().new_in(c.shapes());
    assert_eq!(before.shapes().distinct() + new, shapes.distinct());
}

/// A kind that is turned off leaves its cells empty, and each of them is named.
#[test]
fn a_kind_that_is_off_leaves_named_holes() {
    let with = merged(0..25, &settings(&[]));
    let without = merged(0..25, &settings(&["dup=off"]));
    let cells = [
        Cell::Injected(Kind::Duplicate),
        Cell::Effect(Kind::Duplicate),
        Cell::Phase(Kind::Duplicate, "Prepare"),
    ];
    for cell in cells {
        assert!(with.count(cell) > 0 && !with.holes().contains(&Hole(cell)), "{cell:?}");
        assert!(without.count(cell) == 0 && without.holes().contains(&Hole(cell)), "{cell:?}");
    }
    assert!(without.row(Kind::Duplicate).opportunities > 0);
    let named: Vec<_> = without.holes().iter().map(Hole::to_string).collect();
    for words in [
        "dup never happened: a request arrives twice",
        "dup made no difference: never was it seen that the second copy was answered, too",
        "dup never hit: Prepare",
    ] {
        assert!(named.iter().any(|it| it == words), "{words} is none of {named:?}");
    }
}

/// Nothing was looked at, so everything is missing.
#[test]
fn without_a_run_every_required_cell_is_a_hole() {
    let holes = Coverage::default().holes();
    assert_eq!(holes.len(), required().len());
    assert!(holes.iter().all(|hole| !hole.to_string().is_empty()));
}

/// A run is the same whoever looks on.
#[test]
fn looking_on_changes_nothing() {
    for seed in 10..16 {
        let settings = Settings::default();
        let watched = run(seed, &settings, &mut Coverage::default());
        assert_eq!(watched, run(seed, &settings, &mut ()), "{seed}");
    }
}

/// As JSON, every table is there by name.
#[test]
fn it_is_shown_by_name() {
    let coverage = covered(4, &settings(&[]));
    let shown = serde_json::to_value(&coverage).unwrap();
    assert_eq!(shown["steps"], coverage.steps());
    assert_eq!(shown["kinds"]["deliver"]["injections"], coverage.row(Kind::Deliver).injections);
    let registered = coverage.count(Cell::Answer("Register", "Registered"));
    assert!(registered > 0);
    assert_eq!(shown["answers"]["Register"]["Registered"], registered);
    assert_eq!(shown["shapes"]["sampled"], coverage.shapes().sampled());
    assert_eq!(shown["holes"].as_array().unwrap().len(), coverage.holes().len());
}

/// What the default seeds must show, they show.
#[test]
#[cfg_attr(debug_assertions, ignore = "needs optimisation: a million steps")]
fn the_default_seeds_leave_no_hole() {
    let coverage = merged(0..2000, &settings(&[]));
    let named: Vec<_> = coverage.holes().iter().map(Hole::to_string).collect();
    assert!(named.is_empty(), "{named:#?}");
}
