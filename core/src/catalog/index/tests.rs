//! Tests of the index.

use super::*;

fn hash_of(slot: Slot) -> u64 {
    hash_words(u64::from(slot / 3), 0)
}

/// Adding and removing in any order leaves exactly what was added and not removed.
#[test]
fn holds_what_was_put_in_across_growth_and_split() {
    let mut index = Index::new();
    let slots = 90_000;
    for slot in 0..slots {
        index.insert(hash_of(slot), slot, hash_of);
    }
    for slot in (0..slots).step_by(2) {
        assert!(index.remove(hash_of(slot), slot, hash_of));
        assert!(!index.remove(hash_of(slot), slot, hash_of));
    }
    assert_eq!(index.len(), slots / 2);
    for slot in 0..slots {
        let found = index.find(hash_of(slot), |there| there == slot);
        assert_eq!(found.is_some(), slot % 2 == 1, "{slot}");
    }
}

/// Whatever is added, replaced and removed, also where hundreds share a few homes, exactly what
/// should be there is found: crowded entries stand as far from home as entries ever do.
#[test]
fn crowded_homes_lose_nothing() {
    for homes in [1, 3, 40, 1_000] {
        // Neighbouring homes, so that their entries displace each other.
        let hash_of = |slot: Slot| {
            let home = u64::from(slot % homes);
            hash_words(home, 1) << 40 | home << 24 | 0x8000_0000
        };
        let mut index = Index::new();
        let mut model: Vec<Slot> = Vec::new();
        let mut random = u64::from(homes);
        let mut unused = 0;
        for _ in 0..6_000 {
            random = hash_words(random, 5);
            let room = homes as usize * 100;
            let place = (random >> 8) as usize % model.len().max(1);
            if model.len() < room.min(2_000) && random % 8 < 5 {
                index.insert(hash_of(unused), unused, hash_of);
                model.push(unused);
                unused += 1;
            } else if random % 8 == 5 && !model.is_empty() {
                let new = unused - unused % homes + homes + model[place] % homes;
                assert!(index.replace(hash_of(new), model[place], new));
                model[place] = new;
                unused = new + 1;
            } else if !model.is_empty() {
                let slot = model.swap_remove(place);
                assert!(index.remove(hash_of(slot), slot, hash_of));
                assert_eq!(index.find(hash_of(slot), |there| there == slot), None);
            }
            assert_eq!(index.len() as usize, model.len());
        }
        for slot in &model {
            assert_eq!(index.find(hash_of(*slot), |there| there == *slot), Some(*slot));
        }
        let mut found: Vec<Slot> = index.segments.iter().flat_map(Segment::slots).collect();
        found.sort_unstable();
        model.sort_unstable();
        assert_eq!(found, model, "{homes} homes");
    }
}

/// Marks fall with distance, keep it, and are never the empty one.
#[test]
fn marks_keep_the_distance() {
    for hash in (0..=255_u64).map(|byte| byte << 40) {
        for distance in 0..=FAR {
            let mark = mark(hash, distance);
            assert!(mark > 0 && mark <= mark_from(distance));
            assert_eq!(far(mark), distance);
            if distance < FAR {
                assert_eq!(farther(mark), super::mark(hash, distance + 1));
                assert_eq!(nearer(farther(mark), || hash), mark);
            }
        }
    }
}

/// Several rows of one identity are all found.
#[test]
fn same_identity_gives_every_row() {
    let mut index = Index::new();
    for slot in 0..100 {
        index.insert(7, slot, |_| 7);
    }
    let mut found: Vec<Slot> = index.candidates(7).collect();
    found.sort_unstable();
    assert_eq!(found, (0..100).collect::<Vec<_>>());
}

/// Five bytes an entry at a load of about 13/16, whatever the number of entries.
#[test]
fn load_stays_high() {
    let mut index = Index::new();
    for slot in 0..200_000 {
        index.insert(hash_words(u64::from(slot), 9), slot, |s| hash_words(u64::from(s), 9));
    }
    let places: usize = index.segments.iter().map(|segment| segment.groups.len() * PLACES).sum();
    assert!(places * 3 < 200_000 * 4, "{places}");
}

/// Puts in, finds, replaces and removes entries that all have one hash, among others of their own.
fn holds_entries_of_one_hash(equal: Slot, others: Slot) {
    let hash_of = |slot: Slot| {
        if slot & 1 == 0 { 0x1234_5678_9abc_def0 } else { hash_words(u64::from(slot), 3) }
    };
    let find = |index: &Index, slot| index.find(hash_of(slot), |there| there == slot);
    let mut index = Index::new();
    let all: Vec<Slot> =
        (0..others).map(|slot| slot * 2 + 1).chain((0..equal).map(|slot| slot * 2)).collect();
    for slot in &all {
        index.insert(hash_of(*slot), *slot, hash_of);
    }
    assert_eq!(index.len(), equal + others);
    assert!(all.iter().all(|slot| find(&index, *slot) == Some(*slot)));
    assert_eq!(index.candidates(hash_of(0)).filter(|slot| slot % 2 == 0).count(), equal as usize);
    let places: usize = index.segments.iter().map(|segment| segment.groups.len() * PLACES).sum();
    assert!(places < all.len() * 3 / 2 + 8_192, "{places}");

    let moved = |slot: Slot| slot + 1_000_000;
    for slot in &all {
        assert!(!index.replace(hash_of(*slot), moved(*slot), *slot));
        if slot % 2 == 0 {
            assert!(index.replace(hash_of(*slot), *slot, moved(*slot)));
        }
    }
    for slot in &all {
        let (now, gone) = if slot % 2 == 0 { (moved(*slot), *slot) } else { (*slot, moved(*slot)) };
        assert_eq!((find(&index, now), find(&index, gone)), (Some(now), None));
        assert!(index.remove(hash_of(now), now, hash_of));
        assert!(!index.remove(hash_of(now), now, hash_of));
    }
    assert_eq!(index.len(), 0);
    assert!(index.segments.iter().all(|segment| segment.aside.is_empty()));
}

/// Thousands of entries of one hash are slow, and nothing else: growth follows their number alone.
#[test]
fn entries_of_one_hash_never_stop_it() {
    holds_entries_of_one_hash(5_000, 0);
    holds_entries_of_one_hash(2_000, 500);
    holds_entries_of_one_hash(2_000, SPLIT_ENTRIES + 10_000);
}

/// No choice of one half makes the other count for nothing, not even a constant of the hash.
#[test]
fn no_word_absorbs_the_other() {
    let fixed = [0, 1, u64::MAX, ROOTS[0], ROOTS[1], ROOTS[2], 1 << 63, 0xffff_ffff];
    for fixed in fixed {
        for swapped in [false, true] {
            let hash = |word: u64| {
                let (first, second) = if swapped { (word, fixed) } else { (fixed, word) };
                let number = u128::from(second) << 64 | u128::from(first);
                assert_eq!(hash_id(&number.to_le_bytes()), hash_words(first, second));
                hash_words(first, second)
            };
            // Counting up, at either end of the word, spreads over every part of the hash.
            for shift in [0, 16, 44] {
                let hashes: Vec<u64> = (0..4_096).map(|word| hash(word << shift)).collect();
                for byte in [3, 5, 7] {
                    let mut counts = [0; 256];
                    hashes
                        .iter()
                        .for_each(|hash| counts[usize::from(hash.to_le_bytes()[byte])] += 1);
                    assert!(counts.iter().all(|count| *count <= 48), "{fixed:x} {counts:?}");
                }
            }
        }
    }
}
