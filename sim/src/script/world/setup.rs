//! The header of a World's script: how large the World is.

use pinfold_core::policy::{Limits, Policy};
use serde::Serialize;
use serde_json::Value;

use crate::script::verbs::set;
use crate::script::{Fault, Line};
use crate::world::setup::Setup;

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

/// The numbers of a setup, by their names in a header, beside those of another one.
fn sizes(setup: &Setup, other: &Setup) -> [(&'static str, u32, u32); 9] {
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
            let number: u8 = header.parse(value)?;
            let inside = (from..=to).contains(&number);
            let what = || header.fault(format!("{key}={value}: write {from} to {to}"));
            if inside { Ok(number) } else { Err(what()) }
        };
        match key.as_str() {
            "workers" => setup.workers = small(1, 8)?,
            "operators" => setup.operators = small(1, 2)?,
            "endpoints" => setup.endpoints = small(1, 8)?,
            "shards" => setup.shards = small(1, 2)?,
            "conversations" => setup.conversations = small(1, 8)?,
            "turn_ids" => setup.turns = small(1, 16)?,
            "transfers" => setup.transfers = small(1, 3)?,
            "overrun" => setup.overrun = header.parse(value)?,
            "starts" => setup.starts = header.parse(value)?,
            _ => match key.strip_prefix("other.") {
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
