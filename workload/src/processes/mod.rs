//! The main job over a coordinator that runs already: each worker is a process of its own.
//!
//! The replay says which turn is next, hears what became of it, and kills the workers' processes in
//! the middle of their saves; the coordinator and the store are somebody else's. What was
//! acknowledged and adopted is judged from outside, as in a [replay](crate::replay) with a node of
//! its own; what only that node could tell, its recount and its recovered state, is not. It fences
//! an incarnation only when its process is gone, and counts what was there before as somebody
//! else's.

mod counted;
mod judge;
mod pipe;
mod worker;

use std::collections::BTreeMap;
use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{ConversationId, Generation, Incarnation, OwnerId, StartId, TurnId};
use pinfold_core::outcome::Rejection;
use pinfold_core::policy::{Gauges, Genesis};
use pinfold_host::collector::Collector;
use pinfold_host::coordinator::Coordinator;
use pinfold_host::node::{Effects, Gone};
use pinfold_host::owner::{Owner, OwnerError};
use pinfold_host::store::ObjectStore;

use crate::fleet::Schedule;
use crate::link::{Figures, Links, TraceTag, chain_values, link};
use crate::model::Model;
use crate::observer::{Moment, Violation};
use crate::outside::{Outside, Standing};
use crate::replay::{Progress, ReplayError, check_longest};
use crate::report::Report;
use crate::serve::{Served, Turn};
use crate::trace::Trace;
use counted::Counted;
use pipe::{Order, Process, Said};

pub use worker::{WorkerConfig, work};

/// How often a worker's process may die over one turn.
const DEATHS: u32 = 3;
const COLLECTOR: &str = "collector";

/// How a trace is replayed by processes.
#[derive(Clone)]
pub struct ProcessesConfig {
    /// Where objects live, for everybody.
    pub store: Arc<dyn ObjectStore>,
    /// After how many requests the workers' processes are killed, again and again; none means once,
    /// half-way.
    pub crash_every: Option<u32>,
    /// Processes that serve at once.
    pub workers: u32,
    /// Bytes of private state at each position.
    pub bytes_per_checkpoint: u64,
    /// The name of the trace, for the report.
    pub trace_name: String,
    /// Where the coordinator is, for the report.
    pub url: String,
    /// Random: tells this replay from every other, also over the same job.
    pub mark: u64,
}

/// The coordinator that runs already, and how a worker's process is started.
pub trait Elsewhere: Sync {
    /// Who takes this replay's requests.
    fn coordinator(&self) -> Arc<dyn Coordinator>;

    /// The delete work that is handed out to an owner.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn effects(&self, owner: &Owner) -> Result<Effects, String>;

    /// The live turns of a conversation, each with every checkpoint that it refers to; none of one
    /// that was never seen.
    ///
    /// # Errors
    /// Why nobody can tell.
    fn turns(&self, conversation: ConversationId) -> Result<Vec<(TurnId, Generation)>, String>;

    /// Starts the process of a worker of this name, which calls [`work`], with pipes to its
    /// standard input and output.
    ///
    /// # Errors
    /// What the system says.
    fn spawn(&self, name: &str) -> io::Result<Child>;
}

/// Replays a trace by processes until `stop` is set. `progress` is told how far it is after each
/// request, from any thread.
///
/// # Errors
/// [`ReplayError`] says what was wrong and what to do. Broken promises are no error: they are
/// counted in the report.
pub fn replay_by_processes(
    config: &ProcessesConfig,
    trace: &Trace,
    elsewhere: &dyn Elsewhere,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, ReplayError> {
    let model = Model::new(trace.block_tokens, config.bytes_per_checkpoint)?;
    check_longest(&model, trace)?;
    let mut fleet = Fleet::new(config, trace, elsewhere, stop)?;
    fleet.take_over()?;
    fleet.take_point(0)?;
    let all = fleet.figures.requests;
    let (mut until, every) = match config.crash_every {
        Some(every) => (every, every),
        None => (all / 2, all),
    };
    while until < all {
        fleet.serve(until, progress)?;
        fleet.throw_away()?;
        until = until.saturating_add(every);
    }
    fleet.serve(all, progress)?;
    fleet.finish()
}

/// A replay under way.
struct Fleet<'a> {
    config: &'a ProcessesConfig,
    trace: &'a Trace,
    elsewhere: &'a dyn Elsewhere,
    stop: &'a AtomicBool,
    began: Instant,
    tag: TraceTag,
    links: Links,
    figures: Figures,
    schedule: Schedule,
    job: Genesis,
    /// Answers to everybody of this replay.
    answers: Arc<AtomicU64>,
    coordinator: Arc<dyn Coordinator>,
    operator: Owner,
    processes: Vec<Process>,
    /// None before the first request, and while it collects.
    collector: Mutex<Option<Collector>>,
    /// How many turns were begun so far, by which attempts are told from each other.
    tries: AtomicU64,
    crashes: AtomicU32,
    /// When each request was asked for first: a process that died may have published it.
    asked: Mutex<BTreeMap<u32, Moment>>,
    outside: Mutex<Outside>,
    violations: Vec<Violation>,
    peak_bytes: AtomicU64,
}

impl<'a> Fleet<'a> {
    fn new(
        config: &'a ProcessesConfig,
        trace: &'a Trace,
        elsewhere: &'a dyn Elsewhere,
        stop: &'a AtomicBool,
    ) -> Result<Self, ReplayError> {
        let began = Instant::now();
        let answers = Arc::<AtomicU64>::default();
        let coordinator: Arc<dyn Coordinator> =
            Arc::new(Counted::new(elsewhere.coordinator(), Arc::clone(&answers)));
        let job = job(&coordinator)?;
        let links = link(trace);
        let figures = Figures::of(trace, &links);
        let name = name(config.mark, "operator");
        let start = StartId::from_u128(config.mark.into());
        let operator = Owner::register(Arc::clone(&coordinator), &name, Role::Operator, start)?;
        Ok(Self {
            config,
            trace,
            elsewhere,
            stop,
            began,
            tag: TraceTag::of(trace),
            schedule: Schedule::new(&links),
            links,
            outside: Mutex::new(Outside::of(figures.requests)),
            figures,
            job,
            answers,
            coordinator,
            operator,
            processes: Vec::new(),
            collector: Mutex::new(None),
            tries: AtomicU64::new(0),
            crashes: AtomicU32::new(0),
            asked: Mutex::default(),
            violations: Vec::new(),
            peak_bytes: AtomicU64::new(0),
        })
    }

    fn start(&self, number: u32) -> Result<Process, ReplayError> {
        let failed = |what| ReplayError::Process { number, what };
        let name = self.worker(number);
        let child = self.elsewhere.spawn(&name).map_err(|error| failed(error.to_string()))?;
        Process::new(child).map_err(failed)
    }

    /// Serves until so many requests are done, with collection beside it.
    fn serve(
        &mut self,
        until: u32,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), ReplayError> {
        self.schedule.run_until(until);
        while let Ok(number) = u32::try_from(self.processes.len())
            && number < self.config.workers
        {
            self.processes.push(self.start(number)?);
        }
        let mut collector = self.take_collector()?;
        let processes = std::mem::take(&mut self.processes);
        let (this, failed) = (&*self, &AtomicBool::new(false));
        let (result, processes) = thread::scope(|scope| {
            let (bell, rung) = sync_channel(1);
            let collecting = scope.spawn(|| this.collect(&mut collector, rung));
            let serving = processes.into_iter().zip(0_u32..).map(|(process, number)| {
                let bell = bell.clone();
                scope.spawn(move || this.work((number, process), &bell, failed, progress))
            });
            let serving: Vec<_> = serving.collect();
            drop(bell);
            let (mut result, mut processes) = (Ok(()), Vec::new());
            for thread in serving {
                match thread.join().unwrap_or(Err(ReplayError::Died)) {
                    Ok(process) => processes.push(process),
                    Err(error) => result = result.and(Err(error)),
                }
            }
            let collected = collecting.join().unwrap_or(Err(ReplayError::Died));
            (result.and(collected), processes)
        });
        self.processes = processes;
        self.collector = Mutex::new(Some(collector));
        result?;
        match self.schedule.done() {
            requests if requests < until => Err(ReplayError::Stopped { requests }),
            _ => Ok(()),
        }
    }

    /// The thread of one worker's process: it takes requests until there are none.
    fn work(
        &self,
        (number, mut process): (u32, Process),
        bell: &SyncSender<()>,
        failed: &AtomicBool,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Process, ReplayError> {
        while !self.stop.load(Ordering::Relaxed)
            && !failed.load(Ordering::Relaxed)
            && let Some(request) = self.schedule.take()
        {
            match self.serve_one((number, process), request) {
                Ok(served_by) => process = served_by,
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    self.schedule.run_until(0);
                    self.schedule.give_back(request);
                    return Err(error);
                }
            }
            self.schedule.finish(request);
            // A full bell is ringing already.
            let _ = bell.try_send(());
            let done = self.schedule.done();
            if self.outside(|outside| outside.timeline.is_due(done)) {
                self.take_point(done)?;
            }
            progress(Progress { done, crashes: self.crashes.load(Ordering::Relaxed) });
        }
        Ok(process)
    }

    /// Has a request served. A process that dies over it is replaced, and its successor begins
    /// again with another attempt.
    fn serve_one(
        &self,
        (number, mut process): (u32, Process),
        request: u32,
    ) -> Result<Process, ReplayError> {
        let failed = |what: String| ReplayError::Process { number, what };
        if self.turn(request).is_none() {
            self.outside(|outside| outside.tally.too_short += 1);
            return Ok(process);
        }
        for _ in 0..DEATHS {
            let Some(turn) = self.turn(request) else { break };
            let asked = self.asks(request);
            match process.ask(&Order::Serve(turn.clone())) {
                Some(Said::Served(served, answers)) => {
                    self.answers.fetch_add(answers, Ordering::Relaxed);
                    self.saw(request, &turn, &served, asked);
                    return Ok(process);
                }
                Some(Said::Failed(what)) => return Err(failed(what)),
                Some(Said::Registered(..) | Said::Vanished(_)) => {
                    return Err(failed("it said something else than it was asked".into()));
                }
                None => {
                    let dead = process.kill().map_err(|error| failed(error.to_string()))?;
                    self.fence(dead)?;
                    self.crashes.fetch_add(1, Ordering::Relaxed);
                    process = self.start(number)?;
                }
            }
        }
        Err(failed(format!("its process died {DEATHS} times over request {}", request + 1)))
    }

    /// When a request was asked for first.
    fn asks(&self, request: u32) -> Moment {
        let now = self.outside(|outside| outside.observer.begins());
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        *asked.entry(request).or_insert(now)
    }

    /// The turn of a request, under an attempt of its own; none when it has no full block.
    fn turn(&self, request: u32) -> Option<Turn> {
        let place = usize::try_from(request).ok()?;
        let linked = self.links.requests.get(place)?;
        let one = self.trace.requests.get(place)?;
        let chain = chain_values(TraceTag::default(), one, self.trace.block_tokens);
        let life = self.config.mark.wrapping_add(self.tries.fetch_add(1, Ordering::Relaxed));
        (!chain.is_empty()).then(|| Turn::new(self.tag, linked.root, request, life, chain))
    }

    fn saw(&self, request: u32, turn: &Turn, served: &Served, asked: Moment) {
        let place = usize::try_from(request).unwrap_or(usize::MAX);
        let tokens = self.trace.requests.get(place).map_or(0, |one| u64::from(one.input_tokens));
        let depth = self.links.requests.get(place).map_or(0, |linked| linked.depth);
        let standing = Standing { tokens, depth, block: u64::from(self.trace.block_tokens) };
        self.outside(|outside| outside.saw(turn, standing, served, asked));
    }

    /// Leaves a save of every worker under way, kills the processes, proves their incarnations
    /// dead, and judges.
    fn throw_away(&mut self) -> Result<(), ReplayError> {
        self.schedule.run_until(u32::MAX);
        let mut begun = Vec::new();
        let mut processes = std::mem::take(&mut self.processes);
        for process in &mut processes {
            let Some(request) = self.schedule.take_ready() else { break };
            begun.push(request);
            // Without a full block there is nothing to save.
            if let Some(turn) = self.turn(request) {
                self.asks(request);
                if let Some(Said::Vanished(true)) = process.ask(&Order::Vanish(turn)) {
                    self.outside(|outside| outside.tally.thrown_away += 1);
                }
            }
        }
        for request in begun {
            self.schedule.give_back(request);
        }
        for (process, number) in processes.into_iter().zip(0..) {
            let failed =
                |error: io::Error| ReplayError::Process { number, what: error.to_string() };
            let dead = process.kill().map_err(failed)?;
            self.fence(dead)?;
        }
        self.crashes.fetch_add(1, Ordering::Relaxed);
        self.judge(false)
    }

    /// That its process is gone is the proof.
    fn fence(&self, (owner, incarnation): (OwnerId, Incarnation)) -> Result<(), ReplayError> {
        let answer = self.operator.ask(Command::Fence { owner, incarnation })?;
        answer.map(drop).map_err(ReplayError::Refused)
    }

    fn worker(&self, number: u32) -> String {
        name(self.config.mark, &format!("worker-{number}"))
    }

    /// The job forgets everybody of this replay. None of them holds a pin.
    fn retire(&self) -> Result<(), ReplayError> {
        let workers = (0..self.config.workers).map(|number| self.worker(number));
        let all = workers.chain([name(self.config.mark, COLLECTOR)]);
        for name in all {
            let owner = OwnerId::of_name(&name);
            match self.operator.ask(Command::Retire { owner })? {
                // One that never registered is forgotten.
                Ok(_) | Err(Rejection::UnknownOwner) => {}
                Err(rejection) => return Err(ReplayError::Refused(rejection)),
            }
        }
        let (owner, _) = self.operator.identity();
        self.operator.ask(Command::Retire { owner })?.map(drop).map_err(ReplayError::Refused)
    }

    fn take_collector(&mut self) -> Result<Collector, ReplayError> {
        let place = self.collector.get_mut().unwrap_or_else(PoisonError::into_inner);
        place.take().map_or_else(|| self.new_collector(), Ok)
    }

    fn new_collector(&self) -> Result<Collector, ReplayError> {
        let name = name(self.config.mark, COLLECTOR);
        let start = StartId::from_u128(self.config.mark.into());
        let owner = Owner::register(Arc::clone(&self.coordinator), &name, Role::Worker, start)?;
        let effects = self.elsewhere.effects(&owner).map_err(ReplayError::Coordinator)?;
        let store = Arc::clone(&self.config.store);
        Ok(Collector::new(owner, effects, store, self.job.clone()))
    }

    fn collect(&self, collector: &mut Collector, rung: Receiver<()>) -> Result<(), ReplayError> {
        for () in rung {
            self.collect_once(collector)?;
        }
        Ok(())
    }

    /// One round; whether anything was deleted.
    fn collect_once(&self, collector: &mut Collector) -> Result<bool, ReplayError> {
        let round = collector.round()?;
        let collected = collector.take_collected();
        self.outside(|outside| outside.saw_round(&round, collected));
        Ok(round.objects > 0)
    }

    /// Takes a point of the timeline: what the job holds now that so many requests are done.
    fn take_point(&self, done: u32) -> Result<(), ReplayError> {
        let gauges = self.gauges()?;
        self.peak_bytes.fetch_max(gauges.bytes, Ordering::Relaxed);
        let Outside { timeline, tally, .. } = &mut *self.lock();
        timeline.add(done, &gauges, tally, self.began.elapsed());
        Ok(())
    }

    fn gauges(&self) -> Result<Gauges, ReplayError> {
        match self.coordinator.call(Request::Query(Query::Gauges))? {
            Reply::Gauges(gauges) => Ok(gauges),
            _ => Err(OwnerError::Unexpected.into()),
        }
    }

    fn outside<T>(&self, look: impl FnOnce(&mut Outside) -> T) -> T {
        look(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Outside> {
        // Who panicked in here left whole counts behind.
        self.outside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of one of this replay.
fn name(mark: u64, role: &str) -> String {
    format!("replay-{mark:016x}-{role}")
}

/// The job, as it is now.
fn job(coordinator: &Arc<dyn Coordinator>) -> Result<Genesis, ReplayError> {
    match coordinator.call(Request::Query(Query::Job))? {
        Reply::Job(job) => Ok(job),
        _ => Err(ReplayError::Gone(Gone)),
    }
}
