//! The judge of a replay: what was acknowledged against what is there, and the report.
//!
//! It asks and lists; it never decides what stays.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use pinfold_core::catalog::PinFacts;
use pinfold_core::engine::Engine;

use super::ReplayError;
use super::job::{Job, Recovered};
use crate::audit::audit;
use crate::observer::Violation;
use crate::outside::Outside;
use crate::report::{Left, Report, Time};

impl Job<'_> {
    /// Learns from a job that is gone on with what it holds, because nobody else can tell any more,
    /// and ends the pins of its dead processes. That their lock on the journal is free is the proof
    /// which a fence asserts: they moved bytes by blocking calls of their own.
    pub(super) fn take_over(&mut self) -> Result<(), ReplayError> {
        self.settle()?;
        let (store, job) = (Arc::clone(&self.store), self.job()?.clone());
        self.outside(|outside| outside.observer.list(&*store, &job))?;
        let held = |engine: &Engine, _| (engine.catalog().live_turns(), engine.catalog().pins());
        let (turns, pins) = self.client()?.inspect(held)?;
        self.outside(|outside| {
            for (turn, checkpoint) in turns {
                outside.observer.saw_before(turn, checkpoint);
            }
        });
        let of = |pin: &PinFacts| (pin.id.op.owner, pin.id.op.incarnation);
        let dead: BTreeSet<_> = pins.iter().map(of).collect();
        self.fence(dead)
    }

    pub(super) fn violated(&mut self, what: String) {
        self.violations.push(Violation { what });
    }

    /// Compares what was acknowledged with the store and the policy, and the catalog with its
    /// recount. Nobody else may be at work, so that no follow-up is under way.
    pub(super) fn judge(&mut self, drained: bool) -> Result<(), ReplayError> {
        self.settle()?;
        let turns = self.client()?.inspect(|engine, _| engine.catalog().live_turns())?;
        let retained = turns.into_iter().map(|(turn, _)| turn).collect();
        let (store, job) = (Arc::clone(&self.store), self.job()?.clone());
        let found = self.outside(|outside| {
            let mut found = outside.observer.saw_retained(&retained);
            found.extend(outside.observer.judge(&*store, &job, drained)?);
            Ok::<_, ReplayError>(found)
        })?;
        self.violations.extend(found);
        if let Err(broken) = self.client()?.inspect(|engine, _| engine.check())? {
            self.violated(broken.to_string());
        }
        Ok(())
    }

    /// Collects what nothing holds, judges what is left, and reports.
    pub(super) fn finish(&mut self) -> Result<Report, ReplayError> {
        self.settle()?;
        let mut collector = self.collector()?;
        self.drain(&mut collector)?;
        drop(collector);
        self.judge(true)?;
        let audited = audit(&*self.store, self.job()?, &self.client()?, |_| false)?;
        self.violations.extend(audited);
        self.take_point(self.figures.requests)?;
        let (gauges, left) =
            self.client()?.inspect(|engine, _| (engine.catalog().gauges(), Left::of(engine)))?;
        self.end_life()?;
        self.log.finish()?;
        let mut outside = self.outside(mem::take);
        self.violations.append(&mut outside.wrong);
        let Outside { observer, tally, depths, timeline, store_failure, restore_failure, .. } =
            outside;
        let worded = Violation::worded(&self.violations);
        let (timeline, timeline_ms) = timeline.into_points();
        let mut time = self.time();
        time.timeline_ms = timeline_ms;
        let config = self.config;
        Ok(Report {
            trace: config.trace_name.clone(),
            coordinator: None,
            another_trace: self.another_trace,
            requests: self.figures.requests,
            conversations: self.figures.roots,
            workers: config.workers,
            turns_kept: config.turns,
            conversation_bytes: config.conversation_bytes,
            job_bytes: config.job_bytes,
            bytes_per_checkpoint: config.bytes_per_checkpoint,
            crashes: self.crashes,
            turns: self.figures.requests - tally.too_short,
            violations: self.violations.len() as u64,
            violation_texts: worded,
            store_failure_text: store_failure.map(|why| why.to_string()),
            restore_failure_text: restore_failure.map(|why| why.to_string()),
            turns_expired: observer.expired_turns(),
            bytes_found: observer.bytes_found(),
            bytes_retained: gauges.bytes_retained,
            checkpoints_retained: gauges.checkpoints,
            bytes_peak: self.stats.peak_bytes,
            commands: self.stats.requests,
            left,
            tally,
            depths: depths.into_rows(),
            timeline,
            recovered_at: self.recoveries.iter().map(|one| one.requests).collect(),
            time,
        })
    }

    fn time(&self) -> Time {
        let mut time = Time::of(self.began.elapsed(), &self.stats);
        time.journal_snapshots = self.snapshots.taken;
        time.snapshot_failure.clone_from(&self.snapshots.failure);
        for Recovered { took, over, .. } in &self.recoveries {
            time.recovered(*took, *over);
        }
        time
    }
}
