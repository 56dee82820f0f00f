//! What some scripts leave on a disk: the seeds from which journals and snapshots are fuzzed.

#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pinfold_core::catalog::{Catalog, Change, Event};
use pinfold_core::id::Epoch;
use pinfold_core::journal::record::{FrameWriter, Header};
use pinfold_core::journal::snapshot::encode;
use pinfold_core::replay::{decode_event, follow};
use pinfold_sim::script::Script;
use pinfold_sim::script::bench::run;

/// Together they have an event of every kind, and rows of every kind at their ends.
const SEEDS: [&str; 14] = [
    "attack/revive-drop-lost-between-collects",
    "blockers/order",
    "budget/configure-lowers-n",
    "budget/job",
    "collect/refused-slice-goes-to-the-back",
    "collect/unknown-is-quarantined",
    "durability/restart-keeps-pins",
    "forget/purge-is-bounded",
    "owners/fence-of-many",
    "owners/retire",
    "prepare/already-published",
    "publish/drop",
    "settle/doubt-of-two-shards",
    "settle/operator-and-one-pin",
];

/// `UPDATE_EXPECT=1` writes them.
#[test]
fn seeds_are_what_the_scripts_leave() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut kinds = BTreeSet::new();
    for name in SEEDS {
        let text = fs::read_to_string(folder.join(format!("scripts/{name}.txt"))).unwrap();
        let observed = run(&Script::read(&text).unwrap()).unwrap();
        let (epoch, records) = observed.journal;
        let (catalog, events) = replayed(&records);
        kinds.extend(events.iter().map(kind));
        let seeds = [
            ("journal", journal(epoch, &records)),
            ("snapshot", encode(&catalog, records.len() as u64)),
        ];
        for (target, bytes) in seeds {
            let seed = format!("corpus/{target}/seed-{}", name.replace('/', "-"));
            if std::env::var_os("UPDATE_EXPECT").is_some() {
                fs::write(folder.join(&seed), &bytes).unwrap();
            }
            let found = fs::read(folder.join(&seed)).unwrap_or_default();
            assert!(found == bytes, "{seed}: UPDATE_EXPECT=1 rewrites it");
        }
    }
    let mut all = super::variants::<Change>(serde_json::from_str("\"?\""));
    let others =
        ["Genesis", "Recovered", "Registered", "EndPin", "Expire", "Purge", "Settle", "Trim"];
    all.extend(others.map(str::to_string));
    let missing: Vec<_> = all.iter().filter(|name| !kinds.contains(*name)).collect();
    assert!(missing.is_empty(), "no seed has {missing:?}");
}

/// No digits are left where a script has a name.
#[test]
fn events_are_shown_with_the_names_of_their_script() {
    let is_unnamed = |word: &str| word.len() >= 32 && word.chars().all(|c| c.is_ascii_hexdigit());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in SEEDS {
        let text = fs::read_to_string(folder.join(format!("scripts/{name}.txt"))).unwrap();
        let observed = run(&Script::read(&text).unwrap()).unwrap();
        let (_, events) = replayed(&observed.journal.1);
        for event in events {
            let shown = observed.names.show_event(&event);
            let mut words = shown.split(|c: char| !c.is_ascii_alphanumeric());
            assert!(!shown.is_empty() && !words.any(is_unnamed), "{name}: {shown}");
        }
    }
}

/// The name of what an event changes.
fn kind(event: &Event) -> String {
    let text = match event {
        Event::Decided { change, .. } => format!("{change:?}"),
        Event::FollowedUp(follow_up) => format!("{follow_up:?}"),
        Event::Genesis(_) | Event::Recovered | Event::Registered { .. } => format!("{event:?}"),
    };
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// A journal of small frames.
fn journal(epoch: Epoch, records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Header { epoch, first_sequence: 0 }.encode().to_vec();
    let mut frame = FrameWriter::default();
    for (first, batch) in (0..).step_by(3).zip(records.chunks(3)) {
        frame.begin(first);
        batch.iter().for_each(|record| assert!(frame.push(record).is_ok()));
        file.extend_from_slice(frame.finish(&epoch));
    }
    file
}

fn replayed(records: &[Vec<u8>]) -> (Catalog, Vec<Event>) {
    let events = records.iter().map(|record| decode_event(record, 0).unwrap());
    let events: Vec<_> = events.collect();
    let Event::Genesis(genesis) = events[0].clone() else { panic!("{:?}", events[0]) };
    let mut catalog = Catalog::new(genesis).unwrap();
    for (position, record) in (1..).zip(&records[1..]) {
        follow(&mut catalog, record, position).unwrap();
    }
    (catalog, events)
}
