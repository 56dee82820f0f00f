//! The header of a World's script: how large the World is.

use pinfold_core::policy::{Limits, Policy};
use serde::Serialize;
use serde_json::Value;

use crate::script::verbs::set;
use crate::script::{Fault, Line, Names};
use crate::world::setup::{GEOMETRIES, Library, Setup};

/// The most commands that a process may be told to send beyond its window.
const MOST_OVERRUN: u32 = 1000;
/// The most requests that a network may hold on to.
const MOST_REMEMBERED: u32 = 100;
/// How many attempts have names before anybody begins one.
const ATTEMPTS: u16 = 200;

/// The names of all that a World of this size can have, but for what it mints on its way.
#[must_use]
pub fn names_of(setup: &Setup) -> Names {
    let mut names = Names::default();
    for process in 0..setup.processes() {
        names.owner(&setup.process_name(process));
    }
    for conversation in 1..=setup.conversations {
        for turn in 1..=setup.turns {
            names.turn(&format!("C{conversation}/T{turn}"));
        }
    }
    for attempt in 1..=ATTEMPTS {
        names.attempt(&format!("A{attempt}"));
    }
    let library = Library::of(setup);
    for endpoint in 0..library.endpoints() {
        for geometry in (0..).take(GEOMETRIES) {
            let manifest = library.manifest(endpoint, geometry);
            let name = format!("E{}", u16::from(endpoint) + 1);
            names.bind_endpoint(&name, manifest.endpoint().id());
            let variant = if geometry == 0 { name } else { format!("{name}-{geometry}") };
            names.bind_digest(&variant, manifest.digest());
        }
    }
    names
}

/// The options of a header that give a World this size; what is as by default is left out.
#[must_use]
pub fn say_setup(setup: &Setup) -> String {
    let default = Setup::default();
    let mut text = Vec::new();
    for (name, value, usual) in sizes(setup, &default) {
        if value != usual {
            text.push(format!("{name}={value}"));
        }
    }
    let [policies, usual] = [&setup.policies, &default.policies];
    for (prefix, place) in ["", "other."].into_iter().zip(0..) {
        let of = |policy: &Policy| fields(policy);
        for (now, then) in of(&policies[place]).into_iter().zip(of(&usual[place])) {
            if now != then {
                text.push(format!("{prefix}{}={}", now.0, now.1));
            }
        }
    }
    for (now, then) in fields(&setup.limits).into_iter().zip(fields(&default.limits)) {
        if now != then {
            text.push(format!("limits.{}={}", now.0, now.1));
        }
    }
    if text.is_empty() { format!("workers={}", setup.workers) } else { text.join(" ") }
}

/// The fields of a policy, or of limits, as a header writes them.
fn fields(of: &impl Serialize) -> Vec<(String, String)> {
    let value = serde_json::to_value(of).unwrap_or_default();
    let shown = |value: &Value| match value {
        Value::Null => "none".to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let all = value.as_object().into_iter().flatten();
    all.map(|(name, value)| (name.clone(), shown(value))).collect()
}

/// The options of a job's policies and limits, by their names in a header.
fn rules() -> impl Iterator<Item = String> {
    let names = |of: Vec<(String, String)>| of.into_iter().map(|(name, _)| name);
    let (policy, limits) = (fields(&Policy::default()), fields(&Limits::default()));
    let other = names(policy.clone()).map(|name| format!("other.{name}"));
    names(policy).chain(other).chain(names(limits).map(|name| format!("limits.{name}")))
}

fn is_rule(key: &str) -> bool {
    rules().any(|rule| rule == key)
}

fn unknown(key: &str) -> String {
    let default = Setup::default();
    let known = sizes(&default, &default).map(|(name, ..)| name.to_string());
    let known: Vec<_> = known.into_iter().chain(rules()).collect();
    format!("no such option: {key}: known are {}", known.join(", "))
}

/// The numbers of a setup, by their names in a header, beside those of another one.
fn sizes(setup: &Setup, other: &Setup) -> [(&'static str, u32, u32); 11] {
    let of = |setup: &Setup| {
        [
            setup.workers.into(),
            setup.operators.into(),
            setup.endpoints.into(),
            setup.shards.into(),
            setup.conversations.into(),
            setup.turns.into(),
            setup.transfers.into(),
            setup.overrun,
            setup.starts,
            setup.remembered,
            setup.pages.into(),
        ]
    };
    let names = [
        "workers",
        "operators",
        "endpoints",
        "shards",
        "conversations",
        "turn_ids",
        "transfers",
        "overrun",
        "starts",
        "remembered",
        "pages",
    ];
    let (own, others) = (of(setup), of(other));
    core::array::from_fn(|place| (names[place], own[place], others[place]))
}

/// The setup that a header names.
///
/// # Errors
/// The fault says which option is none, or out of its range.
pub fn setup_of(header: &Line) -> Result<Setup, Fault> {
    let mut setup = Setup::default();
    let (mut first, mut second, mut limits) = (Vec::new(), Vec::new(), Vec::new());
    for (key, value) in &header.options {
        let small = |from: u8, to: u8| {
            let number = value.parse().ok().filter(|number| (from..=to).contains(number));
            let what = || header.fault(format!("{key}={value}: write {from} to {to}"));
            number.ok_or_else(what)
        };
        let large = |to: u32| {
            let number = value.parse().ok().filter(|number| *number <= to);
            number.ok_or_else(|| header.fault(format!("{key}={value}: write 0 to {to}")))
        };
        match key.as_str() {
            "workers" => setup.workers = small(1, 8)?,
            "operators" => setup.operators = small(1, 2)?,
            "endpoints" => setup.endpoints = small(1, 8)?,
            "shards" => setup.shards = small(1, 2)?,
            "conversations" => setup.conversations = small(1, 8)?,
            "turn_ids" => setup.turns = small(1, 16)?,
            "transfers" => setup.transfers = small(1, 3)?,
            "overrun" => setup.overrun = large(MOST_OVERRUN)?,
            "starts" => setup.starts = large(u32::MAX)?,
            "remembered" => setup.remembered = large(MOST_REMEMBERED)?,
            "pages" => setup.pages = small(0, 1)? > 0,
            _ => match key.strip_prefix("other.") {
                _ if !is_rule(key) => return Err(header.fault(unknown(key))),
                Some(name) => second.push((name.to_string(), value.clone())),
                None if key.starts_with("limits.") => limits.push((key.clone(), value.clone())),
                None => first.push((key.clone(), value.clone())),
            },
        }
    }
    let part = |options: Vec<_>| Line { options, ..header.clone() };
    let (mut limits_of_none, mut policy_of_none) = (Limits::default(), Policy::default());
    set(&mut setup.policies[0], &mut limits_of_none, &part(first), "")?;
    set(&mut setup.policies[1], &mut limits_of_none, &part(second), "")?;
    set(&mut policy_of_none, &mut setup.limits, &part(limits), "")?;
    let form = setup.genesis().form();
    form.map_err(|malformed| header.fault(format!("no job can be like this: {malformed}")))?;
    Ok(setup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_header_says_what_can_be_written() {
        let fault = |options: &str| {
            let line = Line::read(2, &format!("world {options}")).unwrap();
            setup_of(&line).unwrap_err().what
        };
        for unknown in ["wokers=3", "other.wokers=3", "limits.wokers=3", "limit.pins=3"] {
            let what = fault(unknown);
            for known in ["workers, ", "starts, ", "turns, ", "other.job_bytes, ", "limits.pins"] {
                assert!(what.contains(known), "{known}: {what}");
            }
        }
        assert_eq!(fault("workers=9"), "workers=9: write 1 to 8");
        assert_eq!(fault("workers=many"), "workers=many: write 1 to 8");
        assert_eq!(fault("overrun=1001"), "overrun=1001: write 0 to 1000");
        assert_eq!(fault("starts=4294967296"), "starts=4294967296: write 0 to 4294967295");
    }
}
