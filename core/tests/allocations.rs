//! The catalog's verbs need no allocation in the steady state, and its records keep their bounds.

#[path = "../benches/cycles/mod.rs"]
mod cycles;

use allocation_counter::measure;
use cycles::{Geometry, Load, SAVE, VERBS, apply, decide, name_deleted, run};

/// Only what the job remembers for ever takes memory: the identities of expired turns, which
/// `publish` adds to.
#[test]
fn no_verb_allocates_in_the_steady_state() {
    let (mut catalog, mut load) = Load::new(2_000, Geometry::Shared(1));
    load.fill(|cycle| run(&mut catalog, cycle, SAVE));
    for _ in 0..4_000 {
        run(&mut catalog, load.next_cycle(), VERBS.len());
    }
    let mut counts = [0; VERBS.len()];
    let cycles = 6_000;
    for _ in 0..cycles {
        let mut deletable = None;
        for ((op, mut command), count) in load.next_cycle().steps.into_iter().zip(&mut counts) {
            name_deleted(&mut command, deletable);
            let mut event = None;
            let decided = measure(|| event = Some(decide(&catalog, op, command)));
            let event = event.unwrap();
            let applied = measure(|| deletable = apply(&mut catalog, &event));
            assert_eq!(decided.count_total, 0, "deciding {event:?}");
            *count += applied.count_total;
        }
    }
    let publish = VERBS.iter().position(|verb| *verb == "publish").unwrap();
    for (verb, count) in VERBS.iter().zip(counts).filter(|(verb, _)| **verb != VERBS[publish]) {
        assert_eq!(count, 0, "{verb}");
    }
    // Rows of expired turns come by the thousand, and their index grows by quarters: two
    // allocations a time, one of which stays.
    assert!(counts[publish] <= 12, "{} allocations in {cycles} cycles", counts[publish]);
    catalog.check().unwrap();
}

/// The promised bytes of a retained checkpoint, of a further shard and of an expired turn. Rows
/// come by the thousand, so a small job is allowed a quarter more than a large one.
#[test]
fn records_keep_their_bounds() {
    let retained = 20_000;
    let fill = |geometry| {
        let (mut catalog, mut load) = Load::new(retained, geometry);
        let filled = measure(|| load.fill(|cycle| run(&mut catalog, cycle, SAVE)));
        assert_eq!(catalog.gauges().checkpoints, load.retained());
        (catalog, load, filled.bytes_current)
    };
    let (mut catalog, mut load, bytes) = fill(Geometry::Shared(1));
    let retained = i64::from(retained);
    assert!(bytes <= 160 * retained * 5 / 4, "{} bytes a checkpoint", bytes / retained);

    let (_, _, of_three) = fill(Geometry::Shared(3));
    let further = of_three - bytes;
    assert!(further <= 2 * 16 * retained, "{} bytes for two more shards", further / retained);

    let own = |shards| fill(Geometry::Own(shards)).2;
    let further = own(3) - own(1);
    let most = 2 * 16 * retained * 101 / 100;
    assert!(further <= most, "{} bytes for two shards of its own", further / retained);

    let turns = retained;
    let expired = measure(|| {
        for _ in 0..turns {
            run(&mut catalog, load.next_cycle(), VERBS.len());
        }
    });
    let bytes = expired.bytes_current;
    assert!(bytes <= 40 * turns * 5 / 4, "{} bytes an expired turn", bytes / turns);
    assert_eq!(catalog.gauges().expired_turns, load.retained());
}
