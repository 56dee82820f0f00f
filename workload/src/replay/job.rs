//! A replay under way: the processes of a small fleet, and what is known outside of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::Engine;
use pinfold_core::id::{ChainValue, Incarnation, OwnerId, StartId};
use pinfold_core::journal::snapshot;
use pinfold_core::policy::Genesis;
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::journal::{SegmentLog, SnapshotReport};
use pinfold_host::node::{Effects, Gone, Node, NodeClient, NodeStats};
use pinfold_host::owner::Owner;
use pinfold_host::store::ObjectStore;

use super::logged::Logged;
use super::settings::{OPERATOR, agree, genesis, write_missing_settings, write_settings};
use super::{Progress, ReplayConfig, ReplayError, check_longest};
use crate::fleet::Schedule;
use crate::link::{Figures, Links, TraceTag, chain_values, link};
use crate::model::Model;
use crate::observer::{Moment, Violation};
use crate::outside::{Outside, Standing};
use crate::report::Tally;
use crate::serve::{Served, Turn, Worker};
use crate::trace::Trace;
use pinfold_host::collector::{Collector, Round};

/// See the [module](self).
pub(super) struct Job<'a> {
    pub(super) config: &'a ReplayConfig,
    trace: &'a Trace,
    /// Set by whoever wishes the replay to end.
    stop: &'a AtomicBool,
    pub(super) began: Instant,
    /// Keeps the conversations of one trace from those of another in the same job.
    tag: TraceTag,
    /// Whether the job is known to have begun with another trace.
    pub(super) another_trace: bool,
    links: Links,
    pub(super) figures: Figures,
    schedule: Schedule,
    model: Arc<Model>,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) log: Logged,
    /// None only while the process state is thrown away.
    node: Option<Node>,
    effects: Mutex<Option<Effects>>,
    /// Tells this life's attempts from those of every other: the journal's length at its start.
    life: u64,
    pub(super) crashes: u32,
    outside: Mutex<Outside>,
    pub(super) violations: Vec<Violation>,
    pub(super) recoveries: Vec<Recovered>,
    /// Of the lives that ended.
    pub(super) stats: NodeStats,
    /// What became of the snapshots of the lives that ended.
    pub(super) snapshots: SnapshotReport,
}

/// A recovery: after how many requests, how long it took, and when it was over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovered {
    pub(super) requests: u32,
    pub(super) took: Duration,
    pub(super) over: Duration,
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
    pub(super) fn open(
        config: &'a ReplayConfig,
        trace: &'a Trace,
        stop: &'a AtomicBool,
    ) -> Result<Self, ReplayError> {
        let began = Instant::now();
        let model = Model::new(trace.block_tokens, config.bytes_per_checkpoint)?;
        check_longest(&model, trace)?;
        let dir = &config.dir;
        let file = Logged::file(config.log.as_deref())?;
        let options = FileStoreOptions { sync_objects: config.sync_objects };
        let tag = TraceTag::of(trace);
        let mut began_with = None;
        let mut recoveries = Vec::new();
        let (node, effects, store) = match (SegmentLog::exists(dir)?, config.resume) {
            (true, false) => return Err(ReplayError::Exists { dir: dir.clone() }),
            (false, true) => return Err(ReplayError::Missing { dir: dir.clone() }),
            (false, false) => {
                let store = FileStore::create(dir, options)?;
                let (node, effects) = Node::create(dir, genesis(config))?;
                // Only who has the journal may say what the job's states are like.
                write_settings(config, tag)?;
                (node, effects, store)
            }
            (true, true) => {
                let store = FileStore::open(dir, options)?;
                let agree = |job: &Genesis| agree(config, job).map(|trace| began_with = trace);
                let (node, effects, recovery) = Node::open_if(dir, agree)?;
                write_missing_settings(config, tag)?;
                let over = began.elapsed();
                recoveries.push(Recovered { requests: 0, took: recovery.took, over });
                (node, effects, store)
            }
        };
        let log = Logged::begin(config.log.as_deref(), file, &node, config.resume)?;
        let links = link(trace);
        let figures = Figures::of(trace, &links);
        let outside = Outside::of(figures.requests);
        let job = Self {
            config,
            trace,
            stop,
            began,
            tag,
            another_trace: began_with.is_some_and(|began| began != tag),
            figures,
            schedule: Schedule::new(&links),
            links,
            model: Arc::new(model),
            store: log.store(Arc::new(store)),
            log,
            node: Some(node),
            effects: Mutex::new(Some(effects)),
            life: 0,
            crashes: 0,
            outside: Mutex::new(outside),
            violations: Vec::new(),
            recoveries,
            stats: NodeStats::default(),
            snapshots: SnapshotReport::default(),
        };
        Ok(job)
    }

    /// What an error comes from: a node that ended badly says why, and everybody who asked it says
    /// only that it is gone.
    pub(super) fn cause(&mut self, error: ReplayError) -> ReplayError {
        match self.node.take().map(Node::stop) {
            Some(Err(why)) => why.into(),
            Some(Ok(())) | None => error,
        }
    }

    /// How many requests there are.
    pub(super) const fn requests(&self) -> u32 {
        self.figures.requests
    }

    pub(super) fn client(&self) -> Result<NodeClient, ReplayError> {
        Ok(self.node.as_ref().ok_or(Gone)?.client())
    }

    pub(super) fn job(&self) -> Result<&Genesis, ReplayError> {
        Ok(self.node.as_ref().ok_or(Gone)?.job())
    }

    /// Registers a new incarnation. The journal's length tells its start from every earlier one.
    pub(super) fn owner(&self, name: &str, role: Role) -> Result<Owner, ReplayError> {
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

    pub(super) fn collector(&mut self) -> Result<Collector, ReplayError> {
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
        progress: &(dyn Fn(Progress) + Sync),
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
        result?;
        match self.schedule.done() {
            requests if requests < until => Err(ReplayError::Stopped { requests }),
            _ => Ok(()),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// One worker's thread: takes requests until there are none.
    fn work(
        &self,
        mut worker: Worker,
        bell: &SyncSender<Bell>,
        failed: &AtomicBool,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), ReplayError> {
        while !self.is_stopped()
            && let Some(number) = self.schedule.take()
        {
            let taken = Taken { schedule: &self.schedule, number };
            // When another worker failed, the rest only runs out.
            let turn = self.turn(number).filter(|_| !failed.load(Ordering::Relaxed));
            if let Some(turn) = turn {
                let asked = self.outside(|outside| outside.observer.begins());
                match worker.serve(&turn) {
                    Ok(served) => self.saw(number, &turn, &served, asked),
                    Err(error) => {
                        failed.store(true, Ordering::Relaxed);
                        return Err(error.into());
                    }
                }
                self.ring(bell)?;
            } else {
                self.tally(|tally| tally.too_short += 1);
            }
            drop(taken);
            let done = self.schedule.done();
            self.sample(done)?;
            progress(Progress { done, crashes: self.crashes });
        }
        Ok(())
    }

    /// Takes a point of the timeline, if one is due.
    fn sample(&self, done: u32) -> Result<(), ReplayError> {
        if self.outside(|outside| outside.timeline.is_due(done)) {
            self.take_point(done)?;
        }
        Ok(())
    }

    /// Takes a point of the timeline: what the job holds now that so many requests are done.
    pub(super) fn take_point(&self, done: u32) -> Result<(), ReplayError> {
        let gauges = self.client()?.inspect(|engine, _| engine.catalog().gauges())?;
        let Outside { timeline, tally, .. } = &mut *self.lock();
        timeline.add(done, &gauges, tally, self.began.elapsed());
        Ok(())
    }

    /// Wakes the collector. A single worker waits for it, and for what follows of its publication,
    /// so that every figure repeats.
    fn ring(&self, bell: &SyncSender<Bell>) -> Result<(), ReplayError> {
        if self.config.workers == 1 {
            self.settle()?;
            let (done, ended) = sync_channel(0);
            if bell.send(Bell { _done: Some(done) }).is_ok() {
                // It ends by the bell being dropped.
                let _ = ended.recv();
            }
        } else {
            // A full bell is ringing already.
            let _ = bell.try_send(Bell { _done: None });
        }
        Ok(())
    }

    /// Waits until no follow-up is due: what earlier events made due has been done.
    pub(super) fn settle(&self) -> Result<(), ReplayError> {
        let client = self.client()?;
        while client.inspect(|engine, _| engine.catalog().next_follow_up().is_some())? {
            thread::yield_now();
        }
        Ok(())
    }

    fn collect(&self, collector: &mut Collector, rung: Receiver<Bell>) -> Result<(), ReplayError> {
        for bell in rung {
            self.collect_once(collector)?;
            drop(bell);
        }
        Ok(())
    }

    /// Collects until nothing is left, or all that is left was refused once more.
    pub(super) fn drain(&self, collector: &mut Collector) -> Result<(), ReplayError> {
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
        let collected = collector.take_collected();
        self.outside(|outside| outside.saw_round(&round, collected));
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

    pub(super) fn outside<T>(&self, look: impl FnOnce(&mut Outside) -> T) -> T {
        look(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Outside> {
        // Who panicked in here left whole counts behind.
        self.outside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tally(&self, change: impl FnOnce(&mut Tally)) {
        self.outside(|outside| change(&mut outside.tally));
    }

    fn saw(&self, number: u32, turn: &Turn, served: &Served, asked: Moment) {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let request = self.trace.requests.get(place);
        let tokens = request.map_or(0, |request| u64::from(request.input_tokens));
        let links = self.links.requests.get(place).map_or(0, |linked| linked.depth);
        let block = u64::from(self.trace.block_tokens);
        let standing = Standing { tokens, depth: links, block };
        self.outside(|outside| outside.saw(turn, standing, served, asked));
    }

    /// Leaves a transfer of every worker under way, throws the process state away, recovers it from
    /// disk, and proves the dead incarnations dead.
    pub(super) fn throw_away(&mut self) -> Result<(), ReplayError> {
        self.schedule.run_until(u32::MAX);
        let dead = self.vanish()?;
        // What is due is done in one life or the other: here, so that the two can be compared.
        self.settle()?;
        let canonical = |engine: &Engine, _| snapshot::encode(engine.catalog(), 0);
        let live = self.client()?.inspect(canonical)?;
        self.end_life()?;
        self.log.crashed();
        let (node, effects, recovery) = Node::open(&self.config.dir)?;
        self.log.recovered(&node, recovery)?;
        self.node = Some(node);
        self.put_effects(Some(effects));
        let (requests, over) = (self.schedule.done(), self.began.elapsed());
        self.recoveries.push(Recovered { requests, took: recovery.took, over });
        self.crashes += 1;
        if self.client()?.inspect(canonical)? != live {
            self.violated("I11: the recovered state is not the one that was thrown away".into());
        }
        self.judge(false)?;
        // Nothing of those incarnations runs any more: that is the proof which a fence asserts.
        self.fence(dead)?;
        self.settle()
    }

    /// Every worker begins the save of a request that is ready, and stops in the middle.
    fn vanish(&mut self) -> Result<Vec<(OwnerId, Incarnation)>, ReplayError> {
        let mut dead = Vec::new();
        let mut requests = Vec::new();
        while let Ok(number) = u32::try_from(dead.len())
            && number < self.config.workers
            && let Some(request) = self.schedule.take_ready()
        {
            requests.push(request);
            // Without a full block there is nothing to save.
            if let Some(turn) = self.turn(request) {
                let (mut worker, identity) = self.worker(number)?;
                dead.push(identity);
                let begun = worker.begin_and_vanish(&turn)?;
                self.tally(|tally| tally.thrown_away += u64::from(begun));
            }
        }
        for request in requests {
            self.schedule.give_back(request);
        }
        Ok(dead)
    }

    pub(super) fn fence(
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

    pub(super) fn end_life(&mut self) -> Result<(), ReplayError> {
        let stats = self.client()?.inspect(|_, stats| stats)?;
        self.stats.requests += stats.requests;
        self.stats.syncs += stats.syncs;
        self.stats.journal_bytes += stats.journal_bytes;
        self.stats.peak_bytes = self.stats.peak_bytes.max(stats.peak_bytes);
        self.put_effects(None);
        let Some(node) = self.node.take() else { return Ok(()) };
        let snapshots = node.snapshots();
        self.snapshots.taken += snapshots.taken;
        self.snapshots.failure = snapshots.failure.or(self.snapshots.failure.take());
        Ok(node.stop()?)
    }
}
