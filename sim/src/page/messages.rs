//! Messages under way, and records on their way to the disk: where each began.
//!
//! A message is found in the World's network by what it is about. Copies of one are told apart by
//! the step that sent them; the oldest arrives first.

use std::collections::BTreeMap;

use pinfold_core::engine::Effect;

use super::Now;
use super::arrow::{Arrow, End, What};
use super::lane::Lane;
use super::part::Part;
use crate::script::world::{say, say_about};
use crate::seen::Seen;
use crate::world::choice::{About, Choice};
use crate::world::network;

/// By message: the steps that sent its copies, the oldest first.
type UnderWay = BTreeMap<About, Vec<u32>>;

/// What is under way to and from the coordinator. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    requests: UnderWay,
    answers: UnderWay,
    /// Requests that arrived, with the steps that sent them: a copy may come once more.
    arrived: BTreeMap<About, u32>,
    /// The step that wrote what is not yet synced.
    written: Option<u32>,
}

impl Messages {
    /// What arrives at a step, or is lost; and notes what begins.
    pub(super) fn step(&mut self, now: &Now<'_>) -> Vec<Arrow> {
        let mut arrows: Vec<Arrow> = self.carry(now).into_iter().collect();
        arrows.extend(self.sync(now));
        arrows.extend(now.seen.iter().filter_map(|seen| at_once(now, seen)));
        follow(&mut self.requests, &now.world.requests, now.number);
        follow(&mut self.answers, &now.world.answers, now.number);
        arrows
    }

    /// What is under way after the last step.
    pub(super) fn open(&self, now: &Now<'_>) -> Vec<Arrow> {
        let of = |what, lane: &UnderWay| {
            let copies = lane.iter().flat_map(|(about, sent)| sent.iter().map(|it| (*about, *it)));
            copies.map(|(about, sent)| message(now, what, (about, sent), End::Open)).collect()
        };
        let mut open: Vec<Arrow> = of(What::Request, &self.requests);
        open.extend(of(What::Answer, &self.answers));
        open.extend(self.written.map(|step| records(now, step, End::Open)));
        open
    }

    /// Forgets where copies might come from that began before a step.
    pub(super) fn forget(&mut self, before: u32) {
        self.arrived.retain(|_, step| *step >= before);
    }

    fn carry(&mut self, now: &Now<'_>) -> Option<Arrow> {
        let part = Part::of(now.choice);
        if let Part::Replayed(about) = part {
            let sent = self.arrived.get(&about).copied().unwrap_or(now.number);
            self.requests.entry(about).or_default().insert(0, sent);
        }
        let Part::Carried(what, about, end) = part else { return None };
        let is_request = what == What::Request;
        let submitted = now.seen.iter().any(|seen| matches!(seen, Seen::Submitted { .. }));
        if is_request && end != End::Lost && !submitted {
            return None;
        }
        let lane = if is_request { &mut self.requests } else { &mut self.answers };
        let copies = lane.get_mut(&about)?;
        let sent = *copies.first()?;
        if end != End::Copied {
            copies.remove(0);
        }
        if is_request && end == End::Arrived {
            self.arrived.insert(about, sent);
        }
        Some(message(now, what, (about, sent), end))
    }

    /// What becomes of records on their way to the disk.
    fn sync(&mut self, now: &Now<'_>) -> Option<Arrow> {
        let part = Part::of(now.choice);
        if part == Part::Written && now.world.coordinator.batch.is_some() {
            self.written = Some(now.number);
        }
        if part != Part::Synced {
            return None;
        }
        let kept = now.seen.iter().any(|seen| matches!(seen, Seen::Synced { .. }));
        let end = if kept { End::Arrived } else { End::Lost };
        let from = self.written.take().or_else(|| kept.then_some(now.number))?;
        Some(records(now, from, end))
    }
}

/// The network is what the World says; what is more in it than before was sent at this step.
fn follow<T>(known: &mut UnderWay, lane: &network::Lane<T>, step: u32) {
    known.retain(|about, _| lane.sent.iter().any(|it| it.about == *about));
    for it in &lane.sent {
        known.entry(it.about).or_default().resize(usize::from(it.copies), step);
    }
}

fn message(now: &Now<'_>, what: What, (about, sent): (About, u32), end: End) -> Arrow {
    let process = Lane::Process(about.process());
    let is_answer = what == What::Answer;
    let (from, to) =
        if is_answer { (Lane::Coordinator, process) } else { (process, Lane::Coordinator) };
    let name = say_about(&now.world.setup, about);
    Arrow { what, name, from: (from, sent), to: (to, now.number), end }
}

fn records(now: &Now<'_>, from: u32, end: End) -> Arrow {
    let (from, to) = ((Lane::Coordinator, from), (Lane::Disk, now.number));
    Arrow { what: What::Sync, name: "of records".to_string(), from, to, end }
}

/// What begins and arrives in one step.
fn at_once(now: &Now<'_>, seen: &Seen) -> Option<Arrow> {
    let (what, from, to, name) = match seen {
        Seen::HandedOut { effect: Effect::Delete { by, objects, .. } } => {
            let name = format!("for {} objects", objects.len());
            (What::Work, Lane::Coordinator, now.lane_of(by.owner)?, name)
        }
        Seen::Recovered => {
            (What::Read, Lane::Disk, Lane::Coordinator, "of what the disk holds".to_string())
        }
        Seen::Listed { keys, .. } => {
            let name = format!("a listing of {} keys", keys.len());
            (What::Get, Lane::Store, Lane::Coordinator, name)
        }
        Seen::Submitted { .. } => {
            let Choice::Tell(process, _) = now.choice else { return None };
            let name = say(&now.world.setup, now.choice);
            (What::Request, Lane::Process(process), Lane::Coordinator, name)
        }
        Seen::Idled
        | Seen::Synced { .. }
        | Seen::Replied { .. }
        | Seen::SyncFailed
        | Seen::Crashed
        | Seen::OwnerDied { .. }
        | Seen::Compares { .. }
        | Seen::Compared { .. }
        | Seen::Missed { .. }
        | Seen::MoveBegan { .. }
        | Seen::Landed { .. }
        | Seen::PutSucceeded { .. }
        | Seen::Confirmed { .. }
        | Seen::Retired { .. }
        | Seen::Deleted { .. }
        | Seen::StoreLost { .. }
        | Seen::Returned { .. }
        | Seen::SourceReused { .. }
        | Seen::DestinationReused { .. }
        | Seen::Adopted { .. }
        | Seen::FalseProof { .. } => return None,
    };
    let (from, to) = ((from, now.number), (to, now.number));
    Some(Arrow { what, name, from, to, end: End::Arrived })
}
