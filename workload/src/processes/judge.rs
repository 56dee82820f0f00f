//! The judge of a replay by processes: what was acknowledged against what the store holds and the
//! coordinator says, and the report.
//!
//! The coordinator finishes by itself what earlier commands made due, and may have a collector of
//! its own. So a fault counts when it stays.

use std::collections::BTreeSet;
use std::mem;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::outcome::TurnKey;
use pinfold_host::collector::Collector;
use pinfold_host::node::NodeStats;
use pinfold_host::owner::OwnerError;

use super::Fleet;
use crate::audit::audit;
use crate::observer::{Violation, stored};
use crate::outside::Outside;
use crate::replay::ReplayError;
use crate::report::{Left, Report, Time};
use crate::serve::Turn;

/// How long faults have to stay as they are until they count.
const STAYS: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

impl Fleet<'_> {
    /// Learns which turns of this trace are live already, from an earlier replay of it, and what
    /// else is there, which is somebody else's.
    pub(super) fn take_over(&mut self) -> Result<(), ReplayError> {
        let roots: BTreeSet<u32> = self.links.requests.iter().map(|linked| linked.root).collect();
        let store = self.config.store.clone();
        let there = stored(&*store, &self.job)?;
        for root in roots {
            let conversation = Turn::conversation(self.tag, root);
            let turns = self.elsewhere.turns(conversation).map_err(ReplayError::Coordinator)?;
            for (turn, generation) in turns {
                let kept = there.keys().find(|it| it.generation == generation);
                if let Some(checkpoint) = kept {
                    let key = TurnKey { conversation, turn };
                    self.outside(|outside| outside.observer.saw_before(key, *checkpoint));
                }
            }
        }
        let job = self.job.clone();
        self.outside(|outside| {
            outside.observer.list(&*store, &job)?;
            outside.observer.begins_among_others(&*store, &job)
        })?;
        Ok(())
    }

    /// Compares what was acknowledged with the store and the policy, until nothing is found, or it
    /// stays. No worker may be at work.
    pub(super) fn judge(&mut self, drained: bool) -> Result<(), ReplayError> {
        let mut found = self.find(drained)?;
        let mut since = Instant::now();
        while !found.is_empty() && since.elapsed() < STAYS {
            thread::sleep(PAUSE);
            let now = self.find(drained)?;
            if now != found {
                (found, since) = (now, Instant::now());
            }
        }
        self.violations.extend(found);
        Ok(())
    }

    fn find(&self, drained: bool) -> Result<Vec<Violation>, ReplayError> {
        let mut retained = BTreeSet::new();
        for conversation in self.outside(|outside| outside.observer.conversations()) {
            let turns = self.elsewhere.turns(conversation).map_err(ReplayError::Coordinator)?;
            retained.extend(turns.into_iter().map(|(turn, _)| TurnKey { conversation, turn }));
        }
        let (store, job) = (self.config.store.clone(), self.job.clone());
        self.outside(|outside| {
            let mut found = outside.observer.saw_retained(&retained);
            found.extend(outside.observer.judge(&*store, &job, drained)?);
            Ok(found)
        })
    }

    /// Ends the workers, collects what nothing holds, judges what is left, and reports.
    pub(super) fn finish(&mut self) -> Result<Report, ReplayError> {
        // Nobody asks them any more.
        self.processes.clear();
        let mut collector = self.take_collector()?;
        self.drain(&mut collector)?;
        drop(collector);
        self.judge(true)?;
        let is_foreign = |it: &_| self.outside(|outside| outside.observer.is_foreign(it));
        let audited = audit(&*self.config.store, &self.job, &*self.coordinator, is_foreign)?;
        self.violations.extend(audited);
        self.take_point(self.figures.requests)?;
        let (gauges, left) = (self.gauges()?, self.left()?);
        self.retire()?;
        let mut outside = self.outside(mem::take);
        self.violations.append(&mut outside.wrong);
        let Outside { observer, tally, depths, timeline, store_failure, restore_failure, .. } =
            outside;
        let worded = Violation::worded(&self.violations);
        let (timeline, timeline_ms) = timeline.into_points();
        let commands = self.answers.load(Ordering::Relaxed);
        let stats = NodeStats { requests: commands, ..NodeStats::default() };
        let config = self.config;
        Ok(Report {
            trace: config.trace_name.clone(),
            coordinator: Some(config.url.clone()),
            another_trace: false,
            requests: self.figures.requests,
            conversations: self.figures.roots,
            workers: config.workers,
            turns_kept: self.job.policy.turns,
            conversation_bytes: self.job.policy.conversation_bytes,
            job_bytes: self.job.policy.job_bytes,
            bytes_per_checkpoint: config.bytes_per_checkpoint,
            crashes: self.crashes.load(Ordering::Relaxed),
            turns: self.figures.requests - tally.too_short,
            violations: self.violations.len() as u64,
            violation_texts: worded,
            store_failure_text: store_failure.map(|why| why.to_string()),
            restore_failure_text: restore_failure.map(|why| why.to_string()),
            turns_expired: observer.expired_turns(),
            bytes_found: observer.bytes_found(),
            bytes_retained: gauges.bytes_retained,
            checkpoints_retained: gauges.checkpoints,
            bytes_peak: self.peak_bytes.load(Ordering::Relaxed),
            commands,
            left,
            tally,
            depths: depths.into_rows(),
            timeline,
            recovered_at: Vec::new(),
            time: Time { timeline_ms, ..Time::of(self.began.elapsed(), &stats) },
        })
    }

    /// Collects until nothing is left, or all that is left was refused once more.
    fn drain(&self, collector: &mut Collector) -> Result<(), ReplayError> {
        let mut barren = 0;
        loop {
            let deleted = self.collect_once(collector)?;
            let left = self.gauges()?.collectable;
            barren = if deleted { 0 } else { barren + 1 };
            // Each round takes at least one checkpoint from the front of the queue.
            if barren > left {
                return Ok(());
            }
        }
    }

    /// What keeps each checkpoint of this replay that is left.
    fn left(&self) -> Result<Left, ReplayError> {
        let mut left = Left::default();
        let there = stored(&*self.config.store, &self.job)?;
        let mut there: BTreeSet<_> = there.into_keys().collect();
        there.extend(self.outside(|outside| outside.observer.retained()));
        there.retain(|it| !self.outside(|outside| outside.observer.is_foreign(it)));
        for checkpoint in there {
            match self.coordinator.call(Request::Query(Query::Blockers(checkpoint)))? {
                Reply::Blockers(Some(found)) => left.add(found.blockers),
                Reply::Blockers(None) => {}
                _ => return Err(OwnerError::Unexpected.into()),
            }
        }
        Ok(left)
    }
}
