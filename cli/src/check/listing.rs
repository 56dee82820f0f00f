//! Lists of `pinfold check`: the configurations, and whether ways to check one agree.

use pinfold_model_check::configuration::Configuration;
use pinfold_model_check::selfcheck::Row;
use pinfold_model_check::verdict::Verdict;
use serde::Serialize;

use crate::Failure;
use crate::number::grouped;
use crate::table::{Table, json, print};

#[derive(Serialize)]
struct View {
    name: &'static str,
    set: &'static str,
    about: &'static str,
    states: Option<u64>,
    transitions: Option<u64>,
    depth: Option<u32>,
    /// Choices that are no faults, and those that are, by name.
    kinds: Vec<&'static str>,
    faults: Vec<&'static str>,
}

impl View {
    fn of(it: &Configuration) -> Self {
        let ordinary = it.menu.kinds.iter().filter(|kind| !kind.is_fault());
        Self {
            name: it.name,
            set: it.tier.name(),
            about: it.about,
            states: it.pinned.map(|size| size.states),
            transitions: it.pinned.map(|size| size.transitions),
            depth: it.pinned.map(|size| size.depth),
            kinds: ordinary.map(|kind| kind.name()).collect(),
            faults: it.faults(),
        }
    }
}

/// The configurations.
pub(super) fn write(all: &[Configuration], as_json: bool) -> Result<(), Failure> {
    let views: Vec<View> = all.iter().map(View::of).collect();
    if as_json {
        return print(|out| json(out, &serde_json::json!({ "configurations": views })));
    }
    let columns = ["name", "set", "#states", "#transitions", "#depth", "what it is about"];
    let mut table = Table::new("Configurations", &columns);
    let number = |number: Option<u64>| number.map_or("-".to_string(), grouped);
    for view in &views {
        table.row([
            view.name.into(),
            view.set.into(),
            number(view.states),
            number(view.transitions),
            number(view.depth.map(u64::from)),
            view.about.into(),
        ]);
    }
    print(|out| {
        table.write(out)?;
        writeln!(out, "\nFaults in each, as often as they like:")?;
        for view in &views {
            let faults = if view.faults.is_empty() { "none".into() } else { view.faults.join(" ") };
            writeln!(out, "  {:<22}{faults}", view.name)?;
        }
        Ok(())
    })
}

/// Whether all ways to check a configuration agree.
pub(super) fn agreement(name: &str, rows: &[Row], as_json: bool) -> Result<(), Failure> {
    let all = rows.iter().all(|row| row.agrees);
    if as_json {
        let views: Vec<_> = rows
            .iter()
            .map(|row| {
                serde_json::json!({
                    "way": row.way.name(),
                    "states": row.states,
                    "transitions": row.transitions,
                    "verdict": row.verdict.word(),
                    "agrees": row.agrees,
                })
            })
            .collect();
        let view = serde_json::json!({ "configuration": name, "agree": all, "ways": views });
        return print(|out| json(out, &view));
    }
    let columns = ["way", "#states", "#transitions", "verdict", "agrees"];
    let mut table = Table::new(format!("{name}, checked in every way"), &columns);
    for row in rows {
        table.row([
            row.way.name().into(),
            grouped(row.states),
            grouped(row.transitions),
            row.verdict.word().into(),
            match row.verdict {
                Verdict::Incomplete => "-",
                _ if row.agrees => "yes",
                _ => "NO",
            }
            .into(),
        ]);
    }
    print(|out| {
        table.write(out)?;
        let stopped = rows.iter().any(|row| row.verdict == Verdict::Incomplete);
        let agreement = match all {
            false => "They do not agree.",
            true if stopped => "Those that came to their end agree.",
            true => "All agree.",
        };
        writeln!(out, "\n{agreement}")
    })
}
