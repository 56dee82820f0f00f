//! A replay under way: the processes of a small fleet, and what is known outside of them.

use std::collections::BTreeSet;
use std::fs;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::catalog::{Blocker, Command, Role, Verdict};
use pinfold_core::engine::{Engine, Query, Reply, Request};
use pinfold_core::id::{ChainValue, CheckpointId, Incarnation, OwnerId, StartId};
use pinfold_core::journal::snapshot;
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::journal::SegmentLog;
use pinfold_host::node::{Effects, Gone, Node, NodeClient, NodeStats};
use pinfold_host::owner::Owner;
use pinfold_host::store::ObjectStore;

use super::{ReplayConfig, ReplayError};
use crate::collector::{Collector, Round};
use crate::fleet::Schedule;
use crate::link::{Figures, Links, TraceTag, chain_values, link};
use crate::model::Model;
use crate::observer::{Observer, Violation};
use crate::report::{Left, Report, Tally, Time};
use crate::serve::{Served, Turn, Worker};
use crate::trace::Trace;

/// The replay's operator, as genesis names it.
const OPERATOR: &str = "operator";
/// How many violations are worded in a report; all are counted.
const WORDED: usize = 20;

/// See the [module](self).
pub(super) struct Job<'a> {
    config: &'a ReplayConfig,
    trace: &'a Trace,
    /// Keeps the conversations of one trace from those of another in the same job.
    tag: TraceTag,
    links: Links,
    figures: Figures,
    schedule: Schedule,
    model: Arc<Model>,
    store: Arc<dyn ObjectStore>,
    /// None only while the process state is thrown away.
    node: Option<Node>,
    effects: Mutex<Option<Effects>>,
    /// Tells this life's attempts from those of every other: the journal's length at its start.
    life: u64,
    outside: Mutex<Outside>,
    violations: Vec<Violation>,
    recoveries: Vec<Duration>,
    /// Of the lives that ended.
    stats: NodeStats,
}

/// What is known outside of the catalog.
#[derive(Debug, Default)]
struct Outside {
    observer: Observer,
    tally: Tally,
    /// Restores that adopted wrong bytes.
    wrong: Vec<Violation>,
}

/// Wakes the collector; who waits for the round's end hears it by `done` being dropped.
struct Bell {
    _done: Option<SyncSender<()>>,
}

/// A request that a worker has; it is finished however the worker ends, so that nobody waits.
struct Taken<'a> {
    schedule: &'a Schedule,
    number: u32,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.schedule.finish(self.number);
    }
}

impl<'a> Job<'a> {
    pub(super) fn open(config: &'a ReplayConfig, trace: &'a Trace) -> Result<Self, ReplayError> {
        let model = Model::new(trace.block_tokens, config.bytes_per_checkpoint)?;
        let dir = &config.dir;
        let mut recoveries = Vec::new();
        let (node, effects, store) = match (SegmentLog::exists(dir)?, config.resume) {
            (true, false) => return Err(ReplayError::Exists { dir: dir.clone() }),
            (false, true) => return Err(ReplayError::Missing { dir: dir.clone() }),
            (false, false) => {
                let store = FileStore::create(dir, FileStoreOptions::default())?;
                let (node, effects) = Node::create(dir, genesis(config))?;
                write_settings(config)?;
                (node, effects, store)
            }
            (true, true) => {
                let store = FileStore::open(dir, FileStoreOptions::default())?;
                let agree = |job: &Genesis| agree(config, job);
                let (node, effects, recovery) = Node::open_if(dir, agree)?;
                recoveries.push(recovery.took);
                (node, effects, store)
            }
        };
        let links = link(trace);
        let mut job = Self {
            config,
            trace,
            tag: TraceTag::of(trace),
            figures: Figures::of(trace, &links),
            schedule: Schedule::new(&links),
            links,
            model: Arc::new(model),
            store: Arc::new(store),
            node: Some(node),
            effects: Mutex::new(Some(effects)),
            life: 0,
            outside: Mutex::default(),
            violations: Vec::new(),
            recoveries,
            stats: NodeStats::default(),
        };
        if config.resume {
            job.take_over()?;
        }
        Ok(job)
    }

    /// How many requests there are.
    pub(super) const fn requests(&self) -> u32 {
        self.figures.requests
    }

    fn client(&self) -> Result<NodeClient, ReplayError> {
        Ok(self.node.as_ref().ok_or(Gone)?.client()?)
    }

    fn job(&self) -> Result<&Genesis, ReplayError> {
        Ok(self.node.as_ref().ok_or(Gone)?.job())
    }

    /// Registers a new incarnation. The journal's length tells its start from every earlier one.
    fn owner(&self, name: &str, role: Role) -> Result<Owner, ReplayError> {
        let client = self.client()?;
        let start = StartId::from_u128(client.inspect(|engine, _| engine.position())?.into());
        Ok(Owner::register(client, name, role, start)?)
    }

    fn worker(&self, number: u32) -> Result<(Worker, (OwnerId, Incarnation)), ReplayError> {
        let owner = self.owner(&format!("worker-{number}"), Role::Worker)?;
        let identity = owner.identity();
        let (model, store) = (Arc::clone(&self.model), Arc::clone(&self.store));
        Ok((Worker::new(owner, model, store, self.job()?.clone())?, identity))
    }

    fn collector(&mut self) -> Result<Collector, ReplayError> {
        let owner = self.owner("collector", Role::Worker)?;
        let effects = self.put_effects(None).ok_or(Gone)?;
        Ok(Collector::new(owner, effects, Arc::clone(&self.store), self.job()?.clone()))
    }

    fn put_effects(&mut self, effects: Option<Effects>) -> Option<Effects> {
        let place = self.effects.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(place, effects)
    }

    /// Serves until so many requests are done, with collection beside it.
    pub(super) fn serve(
        &mut self,
        until: u32,
        progress: &(dyn Fn(u32) + Sync),
    ) -> Result<(), ReplayError> {
        self.schedule.run_until(until);
        self.life = self.client()?.inspect(|engine, _| engine.position())?;
        let workers = (0..self.config.workers).map(|number| Ok(self.worker(number)?.0));
        let workers = workers.collect::<Result<Vec<_>, ReplayError>>()?;
        let mut collector = self.collector()?;
        let this = &*self;
        let failed = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            let (bell, rung) = sync_channel(1);
            let collecting = scope.spawn(|| this.collect(&mut collector, rung));
            let serving = workers.into_iter().map(|worker| {
                let (bell, failed) = (bell.clone(), &failed);
                scope.spawn(move || this.work(worker, &bell, failed, progress))
            });
            let serving: Vec<_> = serving.collect();
            drop(bell);
            let mut result = Ok(());
            for thread in serving.into_iter().chain([collecting]) {
                result = result.and(thread.join().unwrap_or(Err(ReplayError::Died)));
            }
            result
        });
        self.put_effects(Some(collector.into_effects()));
        result
    }

    /// One worker's thread: takes requests until there are none.
    fn work(
        &self,
        mut worker: Worker,
        bell: &SyncSender<Bell>,
        failed: &AtomicBool,
        progress: &(dyn Fn(u32) + Sync),
    ) -> Result<(), ReplayError> {
        while let Some(number) = self.schedule.take() {
            let taken = Taken { schedule: &self.schedule, number };
            // When another worker failed, the rest only runs out.
            let turn = self.turn(number).filter(|_| !failed.load(Ordering::Relaxed));
            if let Some(turn) = turn {
                match worker.serve(&turn) {
                    Ok(served) => self.saw(number, &turn, &served),
                    Err(error) => {
                        failed.store(true, Ordering::Relaxed);
                        return Err(error.into());
                    }
                }
                self.ring(bell);
            } else {
                self.tally(|tally| tally.too_short += 1);
            }
            drop(taken);
            progress(self.schedule.done());
        }
        Ok(())
    }

    /// Wakes the collector. A single worker waits for it, so that every figure repeats.
    fn ring(&self, bell: &SyncSender<Bell>) {
        if self.config.workers == 1 {
            let (done, ended) = sync_channel(0);
            if bell.send(Bell { _done: Some(done) }).is_ok() {
                // It ends by the bell being dropped.
                let _ = ended.recv();
            }
        } else {
            // A full bell is ringing already.
            let _ = bell.try_send(Bell { _done: None });
        }
    }

    fn collect(&self, collector: &mut Collector, rung: Receiver<Bell>) -> Result<(), ReplayError> {
        for bell in rung {
            self.collect_once(collector)?;
            drop(bell);
        }
        Ok(())
    }

    /// Collects until nothing is left, or all that is left was refused once more.
    fn drain(&self, collector: &mut Collector) -> Result<(), ReplayError> {
        let mut barren = 0;
        loop {
            let round = self.collect_once(collector)?;
            let left = self.client()?.inspect(|engine, _| engine.catalog().gauges().collectable)?;
            barren = if round.objects > 0 { 0 } else { barren + 1 };
            // Each round takes at least one checkpoint from the front of the queue.
            if barren > left {
                return Ok(());
            }
        }
    }

    fn collect_once(&self, collector: &mut Collector) -> Result<Round, ReplayError> {
        let round = collector.round()?;
        self.tally(|tally| {
            tally.checkpoints_collected += round.checkpoints;
            tally.objects_collected += round.objects;
        });
        Ok(round)
    }

    /// The turn of a request; none when it has no full block.
    fn turn(&self, number: u32) -> Option<Turn> {
        let place = usize::try_from(number).ok()?;
        let linked = self.links.requests.get(place)?;
        let request = self.trace.requests.get(place)?;
        let chain: Vec<ChainValue> =
            chain_values(TraceTag::default(), request, self.trace.block_tokens);
        (!chain.is_empty()).then(|| Turn::new(self.tag, linked.root, number, self.life, chain))
    }

    fn outside<T>(&self, look: impl FnOnce(&mut Outside) -> T) -> T {
        // Who panicked in here left whole counts behind.
        look(&mut self.outside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tally(&self, change: impl FnOnce(&mut Tally)) {
        self.outside(|outside| change(&mut outside.tally));
    }

    fn saw(&self, number: u32, turn: &Turn, served: &Served) {
        let request = usize::try_from(number).ok().and_then(|n| self.trace.requests.get(n));
        let tokens = request.map_or(0, |request| u64::from(request.input_tokens));
        let block = u64::from(self.trace.block_tokens);
        self.outside(|outside| {
            outside.tally.saw(served, tokens, block);
            if served.wrong_bytes > 0 {
                let (turn, bytes) = (turn.key, served.wrong_bytes);
                let what = format!("I15: the restore of turn {turn} adopted {bytes} wrong bytes");
                outside.wrong.push(Violation { what });
            }
            if let Some(checkpoint) = served.published {
                if !served.already {
                    outside.observer.saw_written(checkpoint, served.private_bytes);
                }
                outside.observer.saw_published(turn.key, checkpoint, served.expired);
            }
        });
    }

    /// Leaves a transfer of every worker under way, throws the process state away, recovers it from
    /// disk, and proves the dead incarnations dead.
    pub(super) fn throw_away(&mut self) -> Result<(), ReplayError> {
        self.schedule.run_until(u32::MAX);
        let mut dead = Vec::new();
        let mut requests = Vec::new();
        for number in 0..self.config.workers {
            let Some(request) = self.schedule.take_ready() else { break };
            requests.push(request);
            let (mut worker, identity) = self.worker(number)?;
            dead.push(identity);
            if let Some(turn) = self.turn(request) {
                worker.begin_and_vanish(&turn)?;
            }
        }
        for request in requests {
            self.schedule.give_back(request);
        }
        let canonical = |engine: &Engine, _| snapshot::encode(engine.catalog(), 0);
        let live = self.client()?.inspect(canonical)?;
        self.end_life()?;
        let (node, effects, recovery) = Node::open(&self.config.dir)?;
        self.node = Some(node);
        self.put_effects(Some(effects));
        self.recoveries.push(recovery.took);
        if self.client()?.inspect(canonical)? != live {
            self.violated("I11: the recovered state is not the one that was thrown away".into());
        }
        self.judge(false)?;
        self.tally(|tally| tally.thrown_away += dead.len() as u64);
        // Nothing of those incarnations runs any more: that is the proof which a fence asserts.
        self.fence(dead)
    }

    fn fence(
        &self,
        dead: impl IntoIterator<Item = (OwnerId, Incarnation)>,
    ) -> Result<(), ReplayError> {
        let operator = self.owner(OPERATOR, Role::Operator)?;
        for (owner, incarnation) in dead {
            let fence = Command::Fence { owner, incarnation };
            operator.ask(fence)?.map_err(ReplayError::Refused)?;
        }
        Ok(())
    }

    fn end_life(&mut self) -> Result<(), ReplayError> {
        let stats = self.client()?.inspect(|_, stats| stats)?;
        self.stats.requests += stats.requests;
        self.stats.syncs += stats.syncs;
        self.stats.journal_bytes += stats.journal_bytes;
        self.stats.peak_bytes = self.stats.peak_bytes.max(stats.peak_bytes);
        self.put_effects(None);
        match self.node.take() {
            Some(node) => Ok(node.stop()?),
            None => Ok(()),
        }
    }

    /// Learns from a job that is gone on with what it holds, because nobody else can tell any more,
    /// and ends the pins of its dead processes. That their lock on the journal is free is the proof
    /// which a fence asserts: they moved bytes by blocking calls of their own.
    fn take_over(&mut self) -> Result<(), ReplayError> {
        let blockers = self.client()?.inspect(|engine, _| every_blocker(engine))?;
        let mut dead = BTreeSet::new();
        for (checkpoint, blocker) in blockers {
            match blocker {
                Blocker::Retained { turn } => {
                    self.outside(|outside| outside.observer.saw_before(turn, checkpoint));
                }
                Blocker::Pinned { pin, .. } => {
                    dead.insert((pin.op.owner, pin.op.incarnation));
                }
                Blocker::Unscoped
                | Blocker::WaitingForShard { .. }
                | Blocker::InFlight { .. }
                | Blocker::InDoubt { .. }
                | Blocker::Collectable
                | Blocker::Collecting { .. }
                | Blocker::Quarantined { .. }
                | Blocker::Lost => {}
            }
        }
        self.fence(dead)
    }

    fn violated(&mut self, what: String) {
        self.violations.push(Violation { what });
    }

    /// Compares what was acknowledged with the store, and the catalog with its recount.
    fn judge(&mut self, drained: bool) -> Result<(), ReplayError> {
        let job = self.job()?.clone();
        let turns = self.config.turns;
        let store = Arc::clone(&self.store);
        let found =
            self.outside(|outside| outside.observer.judge(&*store, &job, turns, drained))?;
        self.violations.extend(found);
        if let Err(broken) = self.client()?.inspect(|engine, _| engine.check())? {
            self.violated(broken.to_string());
        }
        Ok(())
    }

    /// Collects what nothing holds, judges what is left, and reports.
    pub(super) fn finish(mut self, began: Instant) -> Result<Report, ReplayError> {
        let mut collector = self.collector()?;
        self.drain(&mut collector)?;
        drop(collector);
        self.judge(true)?;
        self.audit()?;
        let (gauges, left) =
            self.client()?.inspect(|engine, _| (engine.catalog().gauges(), Left::of(engine)))?;
        self.end_life()?;
        let wall = began.elapsed();
        let (tally, wrong) = self.outside(|outside| (outside.tally, mem::take(&mut outside.wrong)));
        self.violations.extend(wrong);
        let worded = self.violations.iter().take(WORDED).map(|one| one.what.clone()).collect();
        Ok(Report {
            trace: self.config.trace_name.clone(),
            requests: self.figures.requests,
            conversations: self.figures.roots,
            workers: self.config.workers,
            turns_kept: self.config.turns,
            turns: self.figures.requests - tally.too_short,
            violations: self.violations.len() as u64,
            violation_texts: worded,
            bytes_retained: gauges.bytes_retained,
            checkpoints_retained: gauges.checkpoints,
            bytes_peak: self.stats.peak_bytes,
            commands: self.stats.requests,
            left,
            tally,
            time: Time::of(wall, &self.stats, &self.recoveries),
        })
    }

    /// Lists the store: every private key must be one that a record counts.
    fn audit(&mut self) -> Result<(), ReplayError> {
        let namespace = self.job()?.namespace.clone();
        let epoch = self.job()?.epoch;
        let mut keys = Vec::new();
        let prefix = format!("{namespace}/{epoch}/");
        let shared = format!("{prefix}shared/");
        self.store.list(&mut |key, _| {
            if key.starts_with(&prefix) && !key.starts_with(&shared) {
                keys.push(key.to_string());
            }
        })?;
        let query = Request::Query(Query::Audit(keys.clone()));
        let Reply::Audit(verdicts) = self.client()?.call(query)? else {
            return Err(ReplayError::Gone(Gone));
        };
        let strays = keys.iter().zip(verdicts).filter(|(_, verdict)| *verdict != Verdict::Counted);
        for (key, verdict) in strays {
            self.violations.push(Violation { what: format!("I17: {key} is {verdict:?}") });
        }
        Ok(())
    }
}

/// Everything that keeps any checkpoint.
fn every_blocker(engine: &Engine) -> Vec<(CheckpointId, Blocker)> {
    let catalog = engine.catalog();
    let of = |checkpoint| catalog.blockers(checkpoint).into_iter().flat_map(|all| all.blockers);
    let checkpoints = catalog.checkpoints().into_iter();
    checkpoints
        .flat_map(|checkpoint| of(checkpoint).map(move |blocker| (checkpoint, blocker)))
        .collect()
}

/// What a replay must know of its job beside the journal: the size of a state, which is part of
/// what the bytes mean.
const SETTINGS: &str = "replay.json";

fn write_settings(config: &ReplayConfig) -> Result<(), ReplayError> {
    let settings = serde_json::json!({ "bytes_per_checkpoint": config.bytes_per_checkpoint });
    let path = config.dir.join(SETTINGS);
    fs::write(&path, settings.to_string()).map_err(|source| ReplayError::Settings { path, source })
}

/// A folder without settings was not made by a replay, and is taken as it is.
fn check_settings(config: &ReplayConfig) -> Result<(), ReplayError> {
    let Ok(text) = fs::read_to_string(config.dir.join(SETTINGS)) else { return Ok(()) };
    let settings: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    match settings["bytes_per_checkpoint"].as_u64() {
        Some(found) if found != config.bytes_per_checkpoint => {
            Err(ReplayError::Size { expected: config.bytes_per_checkpoint, found })
        }
        Some(_) | None => Ok(()),
    }
}

/// A job that is gone on with must keep what the replay is asked to keep.
fn agree(config: &ReplayConfig, job: &Genesis) -> Result<(), ReplayError> {
    let found = job.policy.turns;
    if found == config.turns {
        check_settings(config)
    } else {
        Err(ReplayError::Policy { expected: config.turns, found })
    }
}

fn genesis(config: &ReplayConfig) -> Genesis {
    Genesis {
        namespace: config.namespace.clone(),
        epoch: config.epoch,
        operator: OwnerId::of_name(OPERATOR),
        policy: Policy { turns: config.turns, ..Policy::default() },
        limits: Limits::default(),
    }
}
