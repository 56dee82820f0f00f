//! What a job's journal holds, against what its workers were told.
//!
//! It reads the journal as somebody beside it does, after the end, and asks no coordinator: each
//! operation stands there once at most, whoever was told an outcome finds just that one, and of
//! each conversation the last turns are live. Conversations are kept as plain lists.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use pinfold_core::catalog::{Catalog, Change, Event};
use pinfold_core::id::{CheckpointId, ConversationId, OpId};
use pinfold_core::outcome::TurnKey;
use pinfold_host::journal::{self, Shown};
use pinfold_host::owner::Answer;

use super::worker::Heard;

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) catalog: Catalog,
    /// Publications in the journal.
    pub(crate) publications: usize,
    /// What each live turn keeps.
    pub(crate) live: BTreeMap<TurnKey, CheckpointId>,
}

/// Judges a job that kept all of its records.
pub(crate) fn judge(dir: &Path, heard: &[Heard]) -> Result<Found, String> {
    let mut told = BTreeMap::new();
    for Heard { op, command, answer } in heard {
        if let Some(before) = told.insert(*op, *answer).filter(|before| before != answer) {
            return Err(format!("{op} {command:?} was answered {before:?} and {answer:?}"));
        }
    }
    let mut followed = Followed { told, ..Followed::default() };
    let mut fault = None;
    let read = journal::records(dir, &mut |shown| {
        let judged = match shown {
            Shown::Record { sequence, event } => {
                followed.follow(event).map_err(|why| format!("record {sequence}: {why}"))
            }
            Shown::InSnapshot { .. } => Err("records are gone: the load is too large".into()),
        };
        fault = judged.err();
        if fault.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.map_err(|error| error.to_string())?;
    fault.map_or(Ok(()), Err)?;
    followed.end()
}

#[derive(Default)]
struct Followed {
    told: BTreeMap<OpId, Answer>,
    catalog: Option<Catalog>,
    decided: BTreeSet<OpId>,
    turns: BTreeMap<ConversationId, Vec<(TurnKey, CheckpointId)>>,
    publications: usize,
}

impl Followed {
    fn follow(&mut self, event: &Event) -> Result<(), String> {
        let Some(catalog) = &mut self.catalog else {
            let Event::Genesis(job) = event else { return Err("it begins without a job".into()) };
            self.catalog = Some(Catalog::new(job.clone()).map_err(|error| error.to_string())?);
            return Ok(());
        };
        let gives = catalog.apply(event);
        let Event::Decided { op, change, .. } = event else { return Ok(()) };
        if !self.decided.insert(*op) {
            return Err(format!("{op} was decided twice: {change:?}"));
        }
        if let Some(told) = self.told.get(op).filter(|told| Some(**told) != gives) {
            return Err(format!("{op} gives {gives:?}, and {told:?} was acknowledged"));
        }
        match change {
            Change::Published { checkpoint, turn: Some(turn), .. } => {
                self.publications += 1;
                self.turns.entry(turn.conversation).or_default().push((*turn, *checkpoint));
            }
            Change::Forgotten { conversation } => drop(self.turns.remove(conversation)),
            _ => {}
        }
        Ok(())
    }

    fn end(self) -> Result<Found, String> {
        let catalog = self.catalog.ok_or("there is no job")?;
        let has_record =
            |(op, answer): &(&OpId, &Answer)| answer.is_err() || self.decided.contains(*op);
        if let Some((op, answer)) = self.told.iter().find(|told| !has_record(told)) {
            return Err(format!("{op} was answered {answer:?}, and has no record"));
        }
        catalog.check().map_err(|broken| broken.to_string())?;
        let most = usize::try_from(catalog.job().policy.turns).unwrap_or(usize::MAX);
        let last = |turns: Vec<_>| turns.into_iter().rev().take(most).collect::<Vec<_>>();
        let live: BTreeMap<_, _> = self.turns.into_values().flat_map(last).collect();
        let found: BTreeMap<_, _> = catalog.live_turns().into_iter().collect();
        if live != found {
            return Err(format!("these turns should be live: {live:?}\nand these are: {found:?}"));
        }
        Ok(Found { catalog, publications: self.publications, live })
    }
}
