//! What those see who look on, against the gauges and the blockers: two ways to one figure.

use std::collections::BTreeMap;

use pinfold_core::catalog::{Blocker, Catalog, Fate, State};
use pinfold_core::id::{Generation, OwnerId};

/// Compares every list of facts with the gauges, and every fact with the blockers.
pub(crate) fn judge(catalog: &Catalog) -> Result<(), String> {
    checkpoints(catalog)?;
    live_turns(catalog)?;
    pins(catalog)?;
    conversations(catalog)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: &T, expected: &T) -> Result<(), String> {
    if seen == expected { Ok(()) } else { Err(format!("{what}: {seen:?}, not {expected:?}")) }
}

fn checkpoints(catalog: &Catalog) -> Result<(), String> {
    let gauges = catalog.gauges();
    let ids = catalog.checkpoints();
    let (mut bytes, mut quarantined) = (0, 0);
    for id in &ids {
        let facts = catalog.checkpoint(*id).ok_or_else(|| format!("{id} has no facts"))?;
        let all = catalog.blockers(*id).ok_or_else(|| format!("{id} has no blockers"))?;
        bytes += facts.bytes;
        quarantined += if facts.unknown > 0 { facts.bytes } else { 0 };
        let has = |name: &str| all.blockers.iter().any(|blocker| blocker.name() == name);
        let refers = has("retained") || has("unscoped");
        let seen = (facts.bytes, facts.lost, facts.unknown > 0, facts.state);
        let expected_state = match facts.state {
            State::Published | State::Complete if refers => State::Published,
            State::Published | State::Complete => State::Complete,
            early @ (State::Prepared | State::Failed) if !refers => early,
            _ => State::Collecting,
        };
        let expected = (all.bytes, has("lost"), has("quarantined"), expected_state);
        same(&id.to_string(), &seen, &expected)?;
        same("collecting", &(facts.state == State::Collecting), &has("collecting"))?;
    }
    let seen = (ids.len() as u64, bytes, quarantined);
    same("checkpoints", &seen, &(gauges.checkpoints, gauges.bytes, gauges.bytes_quarantined))?;
    let last = catalog.last_generation();
    for number in 0..=last.0 + 1 {
        let generation = Generation(number);
        let counted = ids.iter().find(|id| id.generation == generation);
        let expected = match counted {
            Some(id) => Fate::Counted(*id),
            None if number == 0 || generation > last => Fate::NeverMinted,
            None => Fate::Collected,
        };
        same("fate", &catalog.fate(generation), &expected)?;
    }
    Ok(())
}

fn live_turns(catalog: &Catalog) -> Result<(), String> {
    let mut expected = Vec::new();
    for id in catalog.checkpoints() {
        let blockers = catalog.blockers(id).map(|all| all.blockers).unwrap_or_default();
        expected.extend(blockers.into_iter().filter_map(|blocker| match blocker {
            Blocker::Retained { turn } => Some((turn, id)),
            _ => None,
        }));
    }
    expected.sort_unstable();
    same("live turns", &catalog.live_turns(), &expected)
}

fn pins(catalog: &Catalog) -> Result<(), String> {
    let gauges = catalog.gauges();
    let (mut in_doubt, mut pinned) = (0, BTreeMap::new());
    let mut held: BTreeMap<OwnerId, BTreeMap<_, u64>> = BTreeMap::new();
    let pins = catalog.pins();
    for pin in &pins {
        let all = catalog.blockers(pin.checkpoint).map(|all| (all.bytes, all.blockers));
        let (bytes, blockers) = all.ok_or_else(|| format!("{} holds nothing", pin.id))?;
        let (id, save) = (pin.id, pin.save);
        if !blockers.contains(&Blocker::Pinned { pin: id, save }) {
            return Err(format!("{id} is no blocker"));
        }
        same("in doubt", &pin.in_doubt, &blockers.contains(&Blocker::InDoubt { pin: id }))?;
        in_doubt += if pin.in_doubt { pin.bytes } else { 0 };
        pinned.insert(pin.checkpoint, bytes);
        held.entry(id.op.owner).or_default().insert(pin.checkpoint, bytes);
    }
    let seen = (pins.len() as u64, in_doubt, pinned.values().sum::<u64>());
    same("pins", &seen, &(gauges.pins, gauges.bytes_in_doubt, gauges.bytes_pinned))?;
    let owners = catalog.owners();
    same("owners", &(owners.len() as u64), &gauges.owners)?;
    for owner in owners {
        let bytes = held.get(&owner.id).map_or(0, |held| held.values().sum());
        let count = pins.iter().filter(|pin| pin.id.op.owner == owner.id).count() as u64;
        same("owner", &(owner.bytes_pinned, u64::from(owner.pins)), &(bytes, count))?;
    }
    Ok(())
}

fn conversations(catalog: &Catalog) -> Result<(), String> {
    let gauges = catalog.gauges();
    let mut sums = (0, 0, 0);
    let mut bytes = BTreeMap::new();
    for (turn, id) in catalog.live_turns() {
        let held: &mut BTreeMap<_, u64> = bytes.entry(turn.conversation).or_default();
        held.insert(id, catalog.checkpoint(id).map_or(0, |facts| facts.bytes));
    }
    for conversation in catalog.conversations() {
        let held = bytes.get(&conversation.id).map_or(0, |held| held.values().sum());
        same("bytes of a conversation", &conversation.bytes, &held)?;
        sums.0 += 1;
        sums.1 += u64::from(conversation.turns);
        sums.2 += u64::from(conversation.expired_turns) + u64::from(conversation.forgotten);
    }
    same("conversations", &sums, &(gauges.conversations, gauges.turns, gauges.expired_turns))
}
