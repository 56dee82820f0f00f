//! Coverage as data, for whoever asked for JSON: by table, then by name.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::{Cell, Coverage, Hole, Row, Shapes};
use crate::world::Kind;

type Counts = BTreeMap<&'static str, u64>;

/// The tables, in the order in which they are shown.
#[derive(Default, Serialize)]
struct Tables {
    steps: u64,
    kinds: BTreeMap<&'static str, Row>,
    answers: BTreeMap<&'static str, Counts>,
    blockers: Counts,
    verdicts: Counts,
    follow_ups: Counts,
    ends: Counts,
    phases: BTreeMap<&'static str, Counts>,
    shapes: Option<Shapes>,
    holes: Vec<String>,
}

impl Serialize for Coverage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tables = Tables {
            steps: self.steps(),
            kinds: Kind::all().map(|kind| (kind.name(), self.row(kind))).collect(),
            shapes: Some(self.shapes().clone()),
            holes: self.holes().iter().map(Hole::to_string).collect(),
            ..Tables::default()
        };
        for (cell, count) in self.cells() {
            let (table, name) = match cell {
                Cell::Injected(_) | Cell::Effect(_) => continue,
                Cell::Answer(verb, answer) => (tables.answers.entry(verb).or_default(), answer),
                Cell::Blocker(name) => (&mut tables.blockers, name),
                Cell::Verdict(name) => (&mut tables.verdicts, name),
                Cell::FollowUp(name) => (&mut tables.follow_ups, name),
                Cell::End(name) => (&mut tables.ends, name),
                Cell::Phase(kind, phase) => (tables.phases.entry(kind.name()).or_default(), phase),
            };
            table.insert(name, count);
        }
        tables.serialize(serializer)
    }
}

impl Serialize for Shapes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Counts::from([("sampled", self.sampled()), ("distinct", self.distinct())])
            .serialize(serializer)
    }
}
