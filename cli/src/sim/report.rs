//! What a sweep found, as tables and as JSON.

use std::io::{self, Write};
use std::time::Duration;

use pinfold_sim::coverage::Coverage;
use pinfold_sim::coverage::required::required;
use pinfold_sim::run::Found;
use pinfold_sim::script::world::names_of;
use pinfold_sim::swarm;
use pinfold_sim::sweep::{Finding, What};
use serde::Serialize;

use super::Swept;
use super::asked::Asked;
use crate::counterexample::Written;
use crate::number::grouped;
use crate::table::{Table, one_line};

/// The most findings that the table shows, and the most letters of each where there are several.
const SHOWN: usize = 20;
const LETTERS: usize = 100;

/// Everything that is told of a sweep. All but `time` repeats.
#[derive(Serialize)]
pub(crate) struct Report {
    version: &'static str,
    /// A digest of what each seed was asked to do, and of what seeds mean.
    configuration: String,
    /// The command that finds the same.
    command: String,
    verdict: &'static str,
    first_seed: u64,
    seeds_asked: u64,
    seeds: u64,
    /// Seeds that were run twice.
    twice: u64,
    /// Whether one and two jobs gave the same; only with --meta.
    jobs_agree: Option<bool>,
    steps_each: u32,
    steps: u64,
    recovery_steps: u64,
    longest_recovery: Option<LongestRecovery>,
    digest: String,
    findings: Vec<FindingView>,
    /// What was written of the first finding.
    written: Written,
    /// What happened at all.
    coverage: Coverage,
    /// How much must happen, and whether that was asked for.
    #[serde(skip)]
    required: usize,
    #[serde(skip)]
    requires_coverage: bool,
    time: Time,
}

#[derive(Serialize)]
struct LongestRecovery {
    steps: u32,
    seed: u64,
}

#[derive(Serialize)]
struct FindingView {
    seed: u64,
    step: Option<u32>,
    promise: String,
    judge: Option<&'static str>,
    what: String,
    command: String,
}

#[derive(Serialize)]
struct Time {
    millis: u64,
    steps_per_second: u64,
}

impl Report {
    pub(crate) fn of(asked: &Asked, swept: &Swept, took: Duration, written: Written) -> Self {
        let sweep = &swept.sweep;
        let longest = sweep.longest.map(|it| LongestRecovery { steps: it.steps, seed: it.seed });
        Self {
            version: env!("CARGO_PKG_VERSION"),
            configuration: format!("{:016x}", asked.configuration),
            command: asked.command(),
            verdict: swept.verdict().0,
            first_seed: asked.first_seed,
            seeds_asked: asked.seeds,
            seeds: sweep.seeds,
            twice: sweep.twice,
            jobs_agree: swept.jobs_agree,
            steps_each: asked.settings.steps,
            steps: sweep.steps,
            recovery_steps: sweep.recovery_steps,
            longest_recovery: longest,
            digest: format!("{:016x}", sweep.digest),
            findings: sweep.findings.iter().map(|it| FindingView::of(asked, it)).collect(),
            written,
            coverage: sweep.notes.clone(),
            required: required().len(),
            requires_coverage: swept.requires_coverage,
            time: Time::of(swept.taken_steps, took),
        }
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new("Sweep", &["", "#"]);
        let mut row = |name: &str, value: String| table.row([name.into(), value]);
        row("seeds", grouped(self.seeds));
        row("of them run twice", grouped(self.twice));
        if let Some(agree) = self.jobs_agree {
            row("one and two jobs agree", if agree { "yes".into() } else { "no".into() });
        }
        row("steps", grouped(self.steps));
        row("steps of recoveries", grouped(self.recovery_steps));
        if let Some(longest) = &self.longest_recovery {
            row("longest recovery, in steps", grouped(longest.steps));
            row("of seed", longest.seed.to_string());
        }
        let holes = self.coverage.holes();
        let covered = grouped((self.required - holes.len()) as u64);
        row("covered of what must happen", format!("{covered} of {}", self.required));
        row("shapes of Worlds", grouped(self.coverage.shapes().distinct()));
        row("steps per second", grouped(self.time.steps_per_second));
        row("digest", self.digest.clone());
        row("verdict", self.verdict.into());
        table.write(out)?;
        writeln!(out)?;
        let columns = ["#seed", "#step", "promise", "judge", "what"];
        let mut table = Table::new("Findings", &columns);
        for finding in self.findings.iter().take(SHOWN) {
            table.row([
                finding.seed.to_string(),
                finding.step.map(|step| step.to_string()).unwrap_or_default(),
                finding.promise.clone(),
                finding.judge.unwrap_or_default().to_string(),
                if self.findings.len() > 1 { cut(&finding.what) } else { finding.what.clone() },
            ]);
        }
        table.write(out)?;
        if let Some(more) = self.findings.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            writeln!(out, "  and {} more; --json has all", grouped(more as u64))?;
        }
        self.written.write(out)?;
        if self.requires_coverage {
            let mut table = Table::new("Never happened", &[""]);
            table.rows(&holes, usize::MAX, |hole| [hole.to_string()]);
            writeln!(out)?;
            table.write(out)?;
        }
        Ok(())
    }
}

impl FindingView {
    fn of(asked: &Asked, finding: &Finding) -> Self {
        let (step, judge) = match &finding.what {
            What::Broken(found) => (Some(found.step), Some(found.violation.judge.name())),
            What::Panicked(_) | What::Differed(_) => (None, None),
        };
        let (promise, what) = match &finding.what {
            What::Broken(Found { violation, .. }) => {
                let names = names_of(&swarm::draw(finding.seed).0);
                (violation.invariant.to_string(), names.name_in(&violation.what))
            }
            What::Panicked(what) => ("no panic".to_string(), what.clone()),
            What::Differed([one, other]) => {
                let what = format!("digest {one:016x}, and {other:016x} when it ran again");
                ("repeats".to_string(), what)
            }
        };
        let command = asked.alone(finding.seed).command();
        Self { seed: finding.seed, step, promise, judge, what: one_line(&what), command }
    }
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{} ...", text[..end].trim_end()),
        None => text.to_string(),
    }
}

impl Time {
    fn of(steps: u64, took: Duration) -> Self {
        let micros = took.as_micros().max(1);
        let per_second = u128::from(steps) * 1_000_000 / micros;
        Self {
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            steps_per_second: u64::try_from(per_second).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use pinfold_core::invariant::Invariant;
    use pinfold_sim::run::Settings;
    use pinfold_sim::sweep::{End, Sweep};
    use pinfold_sim::violation::{Judge, Violation};
    use pinfold_sim::world::setup::Setup;

    use super::*;
    use crate::Ending;

    fn asked() -> Asked {
        Asked {
            first_seed: 0,
            seeds: 100,
            settings: Settings { steps: 60, ..Settings::default() },
            knobs: Vec::new(),
            keep_going: true,
            shrink: false,
            meta: false,
            requires_coverage: false,
            configuration: 0xabc,
        }
    }

    fn swept(findings: Vec<Finding>) -> Swept {
        let sweep = Sweep {
            end: End::Whole,
            seeds: 100,
            twice: 7,
            steps: 6000,
            recovery_steps: 900,
            taken_steps: 7400,
            longest: None,
            digest: 0xdead,
            findings,
            notes: Coverage::default(),
        };
        Swept {
            sweep,
            jobs_agree: None,
            stopped: false,
            taken_steps: 7400,
            requires_coverage: false,
        }
    }

    fn broken() -> What {
        let owner = Setup::default().owner(0);
        let what = format!("c3/0/1 is deleted,\n  and pinned by {owner}.2.9.0");
        let violation = Violation { invariant: Invariant::I2, judge: Judge::Oracle, what };
        What::Broken(Found { violation, step: 41 })
    }

    fn shown(swept: &Swept, written: Written) -> String {
        let mut out = Vec::new();
        let report = Report::of(&asked(), swept, Duration::from_millis(100), written);
        report.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_violation_is_told_with_its_seed_and_script() {
        let swept = swept(vec![Finding { seed: 17, what: broken() }]);
        assert!(matches!(swept.verdict().1, Ending::Violated));
        let text = shown(&swept, Written { script: Some("a.txt".into()), ..Written::default() });
        let row = "    17    41  I2       oracle  c3/0/1 is deleted, and pinned by w1:2#9\n";
        assert!(text.contains(row) && text.ends_with("script: a.txt\n"), "{text}");
        assert!(text.contains("74,000\n"), "{text}");
        assert!(text.lines().any(|line| line.ends_with(" violated")), "{text}");
        let failed = Written { failure: Some("full".into()), ..Written::default() };
        let report = Report::of(&asked(), &swept, Duration::ZERO, failed);
        let value = serde_json::to_value(&report).unwrap();
        let finding = &value["findings"][0];
        assert_eq!((&finding["seed"], &finding["step"]), (&17.into(), &41.into()));
        assert_eq!(finding["command"], "pinfold sim --seed 17 --steps 60");
        assert_eq!(
            (&value["verdict"], &value["written"]["failure"]),
            (&"violated".into(), &"full".into())
        );
    }

    /// What does not repeat comes before everything else, and a stop only before nothing found.
    #[test]
    fn what_does_not_repeat_comes_first() {
        let panics = || Finding { seed: 2, what: What::Panicked("no at a.rs:1:2".into()) };
        let differs = || Finding { seed: 3, what: What::Differed([1, 2]) };
        let stopped = |findings| Swept { stopped: true, ..swept(findings) };
        assert!(matches!(stopped(vec![panics(), differs()]).verdict().1, Ending::Differed));
        assert!(matches!(stopped(vec![panics()]).verdict().1, Ending::Violated));
        assert!(matches!(stopped(vec![]).verdict().1, Ending::Incomplete));
        let agree = |agree| Swept { jobs_agree: Some(agree), ..swept(vec![]) };
        assert!(matches!(agree(false).verdict().1, Ending::Differed));
        assert!(matches!(agree(true).verdict().1, Ending::Held));
        let covers = Swept { requires_coverage: true, ..swept(vec![]) };
        assert!(matches!(covers.verdict(), ("held, not covered", Ending::Uncovered)));
        let text = shown(&covers, Written::default());
        assert!(text.contains("\nNever happened\n") && text.contains(" 0 of "), "{text}");
        let covers = Swept { stopped: true, ..covers };
        assert!(matches!(covers.verdict().1, Ending::Incomplete));
        let text = shown(&swept(vec![panics(), differs()]), Written::default());
        assert!(text.contains("no panic         no at a.rs:1:2\n"), "{text}");
        assert!(text.contains("0000000000000001, and 0000000000000002"), "{text}");
    }

    #[test]
    fn long_texts_are_cut_where_there_are_several() {
        let long = "no ".repeat(60);
        let panics = |seed| Finding { seed, what: What::Panicked(long.clone()) };
        let one = shown(&swept(vec![panics(1)]), Written::default());
        assert!(one.contains(long.trim_end()), "{one}");
        let two = shown(&swept(vec![panics(1), panics(2)]), Written::default());
        assert_eq!(two.matches(" ...\n").count(), 2, "{two}");
    }

    #[test]
    fn many_findings_are_cut() {
        let findings = (0..30).map(|seed| Finding { seed, what: broken() }).collect();
        assert!(
            shown(&swept(findings), Written::default())
                .ends_with("\n  and 10 more; --json has all\n")
        );
    }
}
