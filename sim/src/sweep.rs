//! A sweep: many seeds, on many threads, with one result.
//!
//! What a sweep finds depends on its seeds and settings alone: not on the number of jobs, nor on
//! which of them was faster. Results are taken in the order of the seeds, and unless it is told to
//! keep going, the lowest seed that found something is the last one that counts. It measures no
//! time, and prints nothing.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use crate::caught::caught;
use crate::coverage::Coverage;
use crate::digest::Digest;
use crate::run::{Found, Ran, Settings, Watch, run};
use crate::swarm;

/// Every so many seeds, one is run twice.
pub const SAMPLED: u64 = 16;

/// What a sweep is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The first seed.
    pub first_seed: u64,
    /// How many seeds, one after the other.
    pub seeds: u64,
    /// What each of them is asked to do.
    pub settings: Settings,
    /// How many are run at once.
    pub jobs: NonZero<usize>,
    /// Goes on after a finding.
    pub keep_going: bool,
    /// Which seeds are run twice.
    pub twice: Twice,
}

/// Which seeds are run a second time, to see that they repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twice {
    /// One of [`SAMPLED`].
    Sample,
    /// Each.
    Each,
}

/// How many seeds' draws are part of a configuration.
const DRAWN: u64 = 8;

/// A digest of what every seed is asked to do, and of what a few seeds mean: in a build that gives
/// a seed another meaning it is another one.
#[must_use]
pub fn configuration(settings: &Settings) -> u64 {
    let mut digest = Digest::default();
    digest.take(settings);
    for seed in 0..DRAWN {
        digest.take(&swarm::draw(seed));
    }
    digest.value()
}

/// Somebody who looks at one seed's run, and whose notes on several seeds add up.
pub trait Gather: Watch + Clone + Default + PartialEq + Send {
    /// Adds the notes on another seed.
    fn merge(&mut self, other: &Self);
}

/// Nobody, who notes nothing.
impl Gather for () {
    fn merge(&mut self, (): &Self) {}
}

impl Gather for Coverage {
    fn merge(&mut self, other: &Self) {
        Self::merge(self, other);
    }
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Seeds that have been run.
    pub done: u64,
    /// How many of them found something.
    pub findings: u64,
}

/// Something that a seed found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The seed.
    pub seed: u64,
    /// What.
    pub what: What,
}

/// What a seed can find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A broken promise.
    Broken(Found),
    /// A panic: what it said, and where.
    Panicked(String),
    /// The same seed, run once more, went another way: the digests of both. They are equal when
    /// only what was noted differs.
    Differed([u64; 2]),
}

/// The longest recovery of a sweep: how much it takes at worst to bring everything to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// How many steps it took.
    pub steps: u32,
    /// The lowest seed whose recovery took so many.
    pub seed: u64,
}

/// How a sweep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After its last seed.
    Whole,
    /// At a finding.
    Finding,
    /// It was told to stop.
    Stopped,
}

/// What a sweep found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep<W> {
    /// How it ended.
    pub end: End,
    /// How many seeds count, from the first on.
    pub seeds: u64,
    /// How many of them were run twice.
    pub twice: u64,
    /// How many steps they took, without recoveries.
    pub steps: u64,
    /// How many steps their recoveries took.
    pub recovery_steps: u64,
    /// How many steps were taken in all, also by seeds that were run once more.
    pub taken_steps: u64,
    /// The longest recovery that came to its end.
    pub longest: Option<Longest>,
    /// A digest of all their digests.
    pub digest: u64,
    /// What they found, in the order of the seeds.
    pub findings: Vec<Finding>,
    /// What was noted.
    pub notes: W,
}

impl<W: PartialEq> Sweep<W> {
    /// True when both say the same of the same seeds, however often those were run.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let told = |it: &Self| (it.end, it.seeds, it.steps, it.recovery_steps, it.digest);
        let found = self.longest == other.longest && self.findings == other.findings;
        told(self) == told(other) && found && self.notes == other.notes
    }
}

impl<W> Sweep<W> {
    /// True when a seed did not repeat: nothing else that was found can be relied on.
    #[must_use]
    pub fn differed(&self) -> bool {
        self.findings.iter().any(|finding| matches!(finding.what, What::Differed(_)))
    }
}

/// Sweeps, until it is done or told to stop. What was begun by then counts still.
///
/// # Errors
/// No thread could be started.
pub fn sweep<W: Gather>(
    plan: &Plan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<Sweep<W>> {
    let work = Work { plan, stop, next: AtomicU64::new(0), end: AtomicU64::new(plan.seeds) };
    let (sends, receives) = mpsc::sync_channel(plan.jobs.get().saturating_mul(4));
    thread::scope(|scope| {
        let mut started = Ok(());
        for job in 0..plan.jobs.get() {
            let (work, sends) = (&work, sends.clone());
            let named = thread::Builder::new().name(format!("pinfold-sim-{job}"));
            match named.spawn_scoped(scope, move || work.run(&sends)) {
                Ok(_) => {}
                Err(error) if job == 0 => started = Err(error),
                // Fewer jobs find the same.
                Err(_) => break,
            }
            if started.is_err() {
                break;
            }
        }
        drop(sends);
        started.map(|()| gather(plan, &receives, progress))
    })
}

/// What one seed's run gave.
struct Outcome<W> {
    offset: u64,
    ran: Result<Ran, String>,
    notes: W,
    differed: Option<[u64; 2]>,
    twice: bool,
}

impl<W> Outcome<W> {
    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        match &self.ran {
            Ok(ran) => digest.take(&(ran.digest, ran.choices.len(), ran.recovery_steps)),
            Err(panic) => digest.take(panic),
        }
        digest.value()
    }

    fn what(&self) -> Option<What> {
        match (&self.ran, self.differed) {
            (_, Some(digests)) => Some(What::Differed(digests)),
            (Err(panic), None) => Some(What::Panicked(panic.clone())),
            (Ok(ran), None) => ran.found.clone().map(What::Broken),
        }
    }
}

/// What the jobs share.
struct Work<'a> {
    plan: &'a Plan,
    stop: &'a AtomicBool,
    /// The next seed to run, counted from the first.
    next: AtomicU64,
    /// The first seed that need not be run.
    end: AtomicU64,
}

impl Work<'_> {
    /// Takes seeds, in their order, and runs whatever it took: so those that were run are all
    /// seeds from the first on, up to one of them.
    fn run<W: Gather>(&self, sends: &SyncSender<Outcome<W>>) {
        while !self.stop.load(Ordering::Relaxed) {
            let offset = self.next.fetch_add(1, Ordering::Relaxed);
            if offset >= self.end.load(Ordering::Relaxed) {
                return;
            }
            let outcome = self.run_seed(offset);
            if !self.plan.keep_going && outcome.what().is_some() {
                self.end.fetch_min(offset, Ordering::Relaxed);
            }
            if sends.send(outcome).is_err() {
                return;
            }
        }
    }

    fn run_seed<W: Gather>(&self, offset: u64) -> Outcome<W> {
        let seed = self.plan.first_seed + offset;
        let once = || {
            let mut notes = W::default();
            let ran = caught(|| run(seed, &self.plan.settings, &mut notes));
            (ran, notes)
        };
        let (ran, notes) = once();
        let twice = match self.plan.twice {
            Twice::Sample => seed.is_multiple_of(SAMPLED),
            Twice::Each => true,
        };
        let mut outcome = Outcome { offset, ran, notes, differed: None, twice };
        if twice {
            let (ran, notes) = once();
            let again = Outcome { offset, ran, notes, differed: None, twice };
            if outcome.ran != again.ran || outcome.notes != again.notes {
                outcome.differed = Some([outcome.digest(), again.digest()]);
            }
        }
        outcome
    }
}

/// Takes the outcomes in the order of their seeds.
fn gather<W: Gather>(
    plan: &Plan,
    receives: &Receiver<Outcome<W>>,
    progress: &mut dyn FnMut(Progress),
) -> Sweep<W> {
    let mut sweep = Sweep {
        end: End::Stopped,
        seeds: 0,
        twice: 0,
        steps: 0,
        recovery_steps: 0,
        taken_steps: 0,
        longest: None,
        digest: 0,
        findings: Vec::new(),
        notes: W::default(),
    };
    let (mut digest, mut early) = (Digest::default(), BTreeMap::new());
    for outcome in receives {
        early.insert(outcome.offset, outcome);
        while let Some(outcome) = early.remove(&sweep.seeds).filter(|_| sweep.goes_on(plan)) {
            digest.take(&outcome.digest());
            sweep.take(plan.first_seed + outcome.offset, &outcome);
            progress(Progress { done: sweep.seeds, findings: sweep.findings.len() as u64 });
        }
    }
    if !sweep.goes_on(plan) {
        sweep.end = End::Finding;
    } else if sweep.seeds == plan.seeds {
        sweep.end = End::Whole;
    }
    sweep.digest = digest.value();
    sweep
}

impl<W: Gather> Sweep<W> {
    fn goes_on(&self, plan: &Plan) -> bool {
        plan.keep_going || self.findings.is_empty()
    }

    fn take(&mut self, seed: u64, outcome: &Outcome<W>) {
        self.seeds += 1;
        self.twice += u64::from(outcome.twice);
        self.notes.merge(&outcome.notes);
        if let Ok(ran) = &outcome.ran {
            self.steps += ran.choices.len() as u64;
            self.recovery_steps += u64::from(ran.recovery_steps);
            let steps = ran.choices.len() as u64 + u64::from(ran.recovery_steps);
            self.taken_steps += steps * (1 + u64::from(outcome.twice));
            let longer = self.longest.is_none_or(|longest| longest.steps < ran.recovery_steps);
            if ran.found.is_none() && longer {
                self.longest = Some(Longest { steps: ran.recovery_steps, seed });
            }
        }
        if let Some(what) = outcome.what() {
            self.findings.push(Finding { seed, what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::Seen;
    use crate::swarm::Knob;
    use crate::world::choice::Choice;
    use crate::world::{Kind, World};

    fn plan(seeds: u64, jobs: usize) -> Plan {
        Plan {
            first_seed: 0,
            seeds,
            settings: Settings { steps: 60, ..Settings::default() },
            jobs: NonZero::new(jobs).unwrap(),
            keep_going: false,
            twice: Twice::Sample,
        }
    }

    fn swept<W: Gather>(plan: &Plan) -> Sweep<W> {
        sweep(plan, &AtomicBool::new(false), &mut |_| {}).unwrap()
    }

    /// Counts the steps, and panics at the first crash of a coordinator.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    struct Crashes(u64);

    impl Watch for Crashes {
        fn step(&mut self, _: &World, kind: Kind, _: Choice, _: &[Seen]) {
            assert!(kind != Kind::Crash, "a crash after {} steps", self.0);
            self.0 += 1;
        }
    }

    impl Gather for Crashes {
        fn merge(&mut self, other: &Self) {
            self.0 += other.0;
        }
    }

    #[test]
    fn what_is_found_does_not_depend_on_the_jobs() {
        for keep_going in [false, true] {
            let with = |jobs| swept::<Crashes>(&Plan { keep_going, ..plan(48, jobs) });
            let one = with(1);
            for jobs in [2, 5] {
                assert_eq!(one, with(jobs));
            }
            let seeds: Vec<u64> = one.findings.iter().map(|finding| finding.seed).collect();
            assert!(seeds.is_sorted() && !seeds.is_empty(), "{seeds:?}");
            match keep_going {
                true => assert_eq!((one.end, one.seeds), (End::Whole, 48)),
                false => assert_eq!((one.end, one.seeds), (End::Finding, seeds[0] + 1)),
            }
            assert_eq!(one.twice, one.seeds.div_ceil(SAMPLED));
            assert!(!one.differed(), "{:?}", one.findings);
            let What::Panicked(panic) = &one.findings[0].what else { panic!("{one:?}") };
            assert!(panic.starts_with("a crash after "), "{panic}");
        }
    }

    /// The lowest seed that found something is found alone, too; the seeds below it are clean.
    #[test]
    fn the_lowest_finding_is_the_one() {
        let all = swept::<Crashes>(&Plan { keep_going: true, ..plan(48, 2) });
        let first = swept::<Crashes>(&plan(48, 3));
        assert_eq!(first.findings[..], all.findings[..1]);
        let seed = first.findings[0].seed;
        let alone = swept::<Crashes>(&Plan { first_seed: seed, ..plan(1, 1) });
        assert_eq!(alone.findings, first.findings);
    }

    #[test]
    fn a_clean_sweep_counts_its_steps() {
        let mut last = Progress::default();
        let (plan, go) = (Plan { first_seed: 5, ..plan(12, 2) }, AtomicBool::new(false));
        let sweep: Sweep<()> = sweep(&plan, &go, &mut |now| last = now).unwrap();
        assert_eq!((sweep.end, sweep.seeds, last.done), (End::Whole, 12, 12));
        assert_eq!(sweep.findings, []);
        assert!(sweep.steps > 12 * 50 && sweep.steps <= 12 * 60, "{}", sweep.steps);
        let longest = sweep.longest.unwrap();
        assert!((5..17).contains(&longest.seed) && longest.steps > 0, "{longest:?}");
        assert!(u64::from(longest.steps) <= sweep.recovery_steps);
        assert!(sweep.taken_steps > sweep.steps + sweep.recovery_steps);
        let other: Sweep<()> = swept(&Plan { first_seed: 4, ..plan.clone() });
        assert_ne!(sweep.digest, other.digest);
        let each: Sweep<()> = swept(&Plan { twice: Twice::Each, ..plan });
        assert_eq!(each.twice, 12);
        assert!(each.is_like(&sweep) && !other.is_like(&sweep));
    }

    /// The number of steps and every knob are part of it.
    #[test]
    fn a_configuration_tells_settings_apart() {
        let knobs = vec![Knob::read("dup=2%").unwrap()];
        let usual = Settings::default();
        let all = [
            usual.clone(),
            Settings { steps: 501, ..usual.clone() },
            Settings { knobs, ..Settings::default() },
        ];
        let mut digests: Vec<u64> = all.iter().map(configuration).collect();
        assert_eq!(digests[0], configuration(&usual));
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 3);
    }

    /// What was covered does not depend on the jobs, and holds the shapes of all seeds.
    #[test]
    fn coverage_is_gathered_from_all_seeds() {
        let one: Sweep<Coverage> = swept(&plan(20, 1));
        let three: Sweep<Coverage> = swept(&plan(20, 3));
        assert_eq!(one, three);
        let all = one.steps..=one.steps + one.recovery_steps;
        assert!(all.contains(&one.notes.steps()), "{all:?}");
        let alone: Sweep<Coverage> = swept(&plan(1, 1));
        assert!(one.notes.holes().len() < alone.notes.holes().len());
    }

    /// The last seed of all is one like the others.
    #[test]
    fn the_largest_seed_is_run() {
        let plan = Plan { first_seed: u64::MAX - 1, ..plan(2, 3) };
        let sweep = swept::<()>(&plan);
        assert_eq!((sweep.end, sweep.seeds), (End::Whole, 2));
    }

    #[test]
    fn a_sweep_that_is_told_to_stop_is_not_whole() {
        let (plan, stop) = (plan(1_000_000, 2), AtomicBool::new(true));
        let sweep: Sweep<()> = sweep(&plan, &stop, &mut |_| {}).unwrap();
        assert_eq!((sweep.end, sweep.seeds), (End::Stopped, 0));
        let stop = AtomicBool::new(false);
        let mut halts = |now: Progress| stop.store(now.done >= 5, Ordering::Relaxed);
        let sweep: Sweep<()> = super::sweep(&plan, &stop, &mut halts).unwrap();
        assert_eq!(sweep.end, End::Stopped);
        assert!((5..100).contains(&sweep.seeds), "{}", sweep.seeds);
    }

    /// Counts on over all runs of the process: what no World may do.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    struct Forgetful(u64);

    impl Watch for Forgetful {
        fn step(&mut self, _: &World, _: Kind, _: Choice, _: &[Seen]) {
            static STEPS: AtomicU64 = AtomicU64::new(0);
            self.0 = STEPS.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Gather for Forgetful {
        fn merge(&mut self, _: &Self) {}
    }

    #[test]
    fn a_seed_that_does_not_repeat_is_found() {
        let sweep: Sweep<Forgetful> = swept(&plan(20, 2));
        assert_eq!((sweep.end, sweep.seeds), (End::Finding, 1));
        assert!(sweep.differed());
    }
}
