//! What a check found, as tables and as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pinfold_core::invariant::Invariant;
use pinfold_model_check::configuration::{Configuration, Size};
use pinfold_model_check::explore::Explored;
use pinfold_model_check::plan::Step;
use pinfold_model_check::verdict::{Standing, Verdict};
use pinfold_sim::script::world::names_of;
use pinfold_sim::world::Kind;
use pinfold_workload::unit::{bytes, seconds};
use serde::Serialize;

use crate::counterexample::Written;
use crate::number::grouped;
use crate::table::{Table, one_line};

/// What was found in one configuration.
#[derive(Serialize)]
pub(super) struct Checked {
    name: &'static str,
    about: &'static str,
    verdict: &'static str,
    complete: bool,
    states: u64,
    transitions: u64,
    depth: u32,
    /// As it was pinned; none where it was not.
    pinned: Option<[u64; 3]>,
    /// Why not every state was visited.
    stopped: Option<&'static str>,
    faults: Vec<&'static str>,
    /// The longest recovery from any state, and the way to that state.
    longest_recovery_steps: u32,
    longest_recovery_from: Vec<String>,
    violation: Option<Violation>,
    written: Written,
    properties: BTreeMap<String, &'static str>,
    /// How often each kind of choice was made.
    kinds: BTreeMap<&'static str, u64>,
    /// Everything that was answered, and that was refused for.
    answers: Vec<&'static str>,
    refusals: Vec<&'static str>,
    millis: u64,
    memory_bytes: u64,
    bytes_per_state: u64,
    #[serde(skip)]
    came_to: Verdict,
}

#[derive(Serialize)]
struct Violation {
    invariant: String,
    promise: &'static str,
    judge: &'static str,
    what: String,
    /// How many steps lead to it; no way has fewer.
    steps: usize,
    way: Vec<String>,
    /// It is broken by the recovery after these steps.
    by_recovery: bool,
}

impl Checked {
    pub(super) fn of(it: &Configuration, explored: &Explored, written: Written) -> Self {
        let (progress, verdict) = (&explored.progress, explored.verdict(it.pinned));
        let steps = |way: &[Step]| way.iter().map(|step| step.words(&it.setup)).collect();
        let violation = explored.found.as_ref().map(|found| Violation {
            invariant: found.violation.invariant.to_string(),
            promise: found.violation.invariant.promise(),
            judge: found.violation.judge.name(),
            what: one_line(&names_of(&it.setup).name_in(&found.violation.what)),
            steps: found.way.len(),
            way: steps(&found.way),
            by_recovery: found.by_recovery,
        });
        let standing = |it: Invariant| (it.to_string(), explored.standing(it).words());
        let kinds = Kind::all().zip(explored.reached.kinds).filter(|it| it.1 > 0);
        Self {
            name: it.name,
            about: it.about,
            verdict: verdict.word(),
            complete: explored.is_exhaustive(),
            states: progress.states,
            transitions: progress.transitions,
            depth: progress.depth,
            pinned: it.pinned.map(|it| [it.states, it.transitions, it.depth.into()]),
            stopped: explored.stopped.map(|stopped| stopped.words()),
            faults: it.faults(),
            longest_recovery_steps: explored.recovery.0,
            longest_recovery_from: steps(&explored.recovery.1),
            violation,
            written,
            properties: Invariant::ALL.into_iter().map(standing).collect(),
            kinds: kinds.map(|(kind, count)| (kind.name(), count)).collect(),
            answers: explored.reached.answers.iter().copied().collect(),
            refusals: explored.reached.refusals.iter().copied().collect(),
            millis: u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX),
            memory_bytes: progress.memory_bytes,
            bytes_per_state: explored.bytes_per_state,
            came_to: verdict,
        }
    }

    /// A paragraph.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (states, transitions) = (grouped(self.states), grouped(self.transitions));
        let faults = match self.faults.is_empty() {
            true => "without faults".to_string(),
            false => format!("with unlimited {}", self.faults.join(", ")),
        };
        writeln!(out, "{}: {}", self.name, self.about)?;
        match (self.came_to, self.stopped) {
            (Verdict::Exhaustive, _) => writeln!(
                out,
                "  EXHAUSTIVE: all {states} states, {transitions} transitions, {faults}"
            )?,
            (Verdict::Incomplete, stopped) => writeln!(
                out,
                "  INCOMPLETE: {} at depth {}, after {states} states and {transitions} transitions",
                stopped.unwrap_or("it was stopped"),
                self.depth
            )?,
            (Verdict::Changed, _) => {
                let [states_then, transitions_then, depth] =
                    self.pinned.unwrap_or_default().map(grouped);
                writeln!(
                    out,
                    "  CHANGED: all {states} states, {transitions} transitions to depth {}; there \
                     were {states_then}, {transitions_then} to depth {depth}",
                    self.depth
                )?;
            }
            (Verdict::Violated, _) => writeln!(
                out,
                "  VIOLATED within {states} states, {transitions} transitions, {faults}"
            )?,
        }
        if let Some(it) = &self.violation {
            writeln!(out, "  {}: {}", it.invariant, it.promise)?;
            writeln!(out, "  {} saw: {}", it.judge, it.what)?;
            let end = if it.by_recovery { ", and then the recovery" } else { "" };
            writeln!(
                out,
                "  no way to it is shorter than these {} steps{end} (in the script, everybody \
                 registers first, and what follows a step at once stands apart):",
                it.steps
            )?;
            for step in &it.way {
                writeln!(out, "    {step}")?;
            }
            self.written.write(out)?;
        }
        writeln!(
            out,
            "  depth {}; longest recovery {} steps; {}, {} in all, {} B a state\n",
            self.depth,
            self.longest_recovery_steps,
            seconds(self.millis),
            bytes(self.memory_bytes),
            self.bytes_per_state
        )
    }
}

const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// What a whole run found.
#[derive(Serialize)]
pub(super) struct Report {
    version: &'static str,
    command: String,
    /// Every state of every configuration was visited.
    complete: bool,
    /// Configurations that were asked for and not begun, because somebody stopped the run.
    left_out: usize,
    violations: u64,
    states: u64,
    transitions: u64,
    configurations: Vec<Checked>,
    properties: BTreeMap<String, &'static str>,
    #[serde(skip)]
    standings: BTreeMap<Invariant, [Vec<&'static str>; 3]>,
}

impl Report {
    pub(super) fn new(command: String) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            command,
            complete: true,
            left_out: 0,
            violations: 0,
            states: 0,
            transitions: 0,
            configurations: Vec::new(),
            properties: BTreeMap::new(),
            standings: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, checked: Checked, explored: &Explored) {
        let Size { states, transitions, .. } = explored.size();
        self.complete &= checked.complete;
        self.violations += u64::from(checked.violation.is_some());
        self.states += states;
        self.transitions += transitions;
        for invariant in Invariant::ALL {
            let standing = explored.standing(invariant);
            self.standings.entry(invariant).or_default()[standing as usize].push(checked.name);
        }
        self.configurations.push(checked);
        self.properties = Invariant::ALL
            .into_iter()
            .map(|it| (it.to_string(), self.standing(it).words()))
            .collect();
    }

    /// So many configurations were asked for; those that were not begun count as incomplete.
    pub(super) fn left_out(&mut self, asked: usize) {
        self.left_out = asked - self.configurations.len();
        self.complete &= self.left_out == 0;
    }

    /// Violated anywhere, else held where it was at stake.
    fn standing(&self, invariant: Invariant) -> Standing {
        let of = |standing: Standing| {
            self.standings.get(&invariant).is_some_and(|it| !it[standing as usize].is_empty())
        };
        let known = [Standing::Violated, Standing::Held].into_iter().find(|it| of(*it));
        known.unwrap_or(Standing::NotReached)
    }

    /// The worst that came of any: a broken promise, then another size, then an early end.
    pub(super) fn verdict(&self) -> Verdict {
        let visited = if self.left_out > 0 { Verdict::Incomplete } else { Verdict::Exhaustive };
        let is = |verdict: &Verdict| self.configurations.iter().any(|it| it.came_to == *verdict);
        let worst = [Verdict::Violated, Verdict::Changed, Verdict::Incomplete];
        worst.into_iter().find(is).unwrap_or(visited)
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new("Promises", &["", "", "#at stake in", "promise"]);
        for invariant in Invariant::ALL {
            let at_stake = self.standings.get(&invariant).map_or(0, |it| {
                it[Standing::Held as usize].len() + it[Standing::Violated as usize].len()
            });
            table.row([
                invariant.to_string(),
                self.standing(invariant).words().into(),
                at_stake.to_string(),
                invariant.promise().into(),
            ]);
        }
        table.write(out)?;
        let count = self.configurations.len();
        writeln!(
            out,
            "\n{}: {} states, {} transitions in {count} configuration{}; {} violation{}",
            self.verdict().word(),
            grouped(self.states),
            grouped(self.transitions),
            plural(count as u64),
            self.violations,
            plural(self.violations)
        )?;
        // Whoever looks at the end of a long run finds here where to look.
        for it in self.configurations.iter().filter(|it| it.came_to != Verdict::Exhaustive) {
            let promise = it.violation.as_ref().map(|it| format!(" {}", it.invariant));
            writeln!(out, "  {} {}{}", it.came_to.word(), it.name, promise.unwrap_or_default())?;
        }
        Ok(())
    }
}
