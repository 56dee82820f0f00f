//! What a sweep was asked: as a line that stands first and last, and as the command that asks the
//! same again.

use std::fmt::Write;

use pinfold_sim::run::Settings;
use pinfold_sim::swarm::Knob;
use pinfold_sim::sweep::configuration;

use super::Arguments;
use crate::Failure;
use crate::number::grouped;

/// What a sweep was asked, without what changes nothing of what it finds.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) first_seed: u64,
    pub(crate) seeds: u64,
    pub(crate) settings: Settings,
    /// The knobs in the order in which they were given.
    pub(crate) knobs: Vec<Knob>,
    pub(crate) keep_going: bool,
    pub(crate) meta: bool,
    pub(crate) requires_coverage: bool,
    pub(crate) shrink: bool,
    pub(crate) configuration: u64,
}

impl Asked {
    pub(crate) fn of(arguments: &Arguments) -> Result<Self, Failure> {
        let mut knobs = arguments.faults.clone();
        // Their order changes nothing of what is found.
        knobs.sort_by_key(|knob| knob.kind);
        if let Some(twice) = knobs.windows(2).find(|pair| pair[0].kind == pair[1].kind) {
            let what = format!("--faults turns {} twice", twice[0].kind.name());
            return Err(Failure::Input(what));
        }
        let settings = Settings { steps: arguments.steps, knobs, ..Settings::default() };
        let range = &arguments.seeds;
        let (first_seed, seeds) =
            arguments.seed.map_or((range.start, range.end - range.start), |seed| (seed, 1));
        Ok(Self {
            first_seed,
            seeds,
            configuration: configuration(&settings),
            settings,
            knobs: arguments.faults.clone(),
            keep_going: arguments.keep_going,
            meta: arguments.meta,
            requires_coverage: arguments.require_coverage,
            shrink: arguments.shrink,
        })
    }

    /// The same of one seed alone.
    pub(crate) fn alone(&self, seed: u64) -> Self {
        let (first_seed, keep_going, meta, requires_coverage) = (seed, false, false, false);
        Self { first_seed, seeds: 1, keep_going, meta, requires_coverage, ..self.clone() }
    }

    /// Who asks what, and how to ask it again: two lines, without the end of the last.
    pub(crate) fn line(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let seeds = match self.seeds {
            1 => format!("seed {}", self.first_seed),
            seeds => format!("seeds {}..{}", self.first_seed, self.first_seed + seeds),
        };
        let steps = grouped(self.settings.steps);
        let configuration = self.configuration;
        let command = self.command();
        format!(
            "pinfold {version}, {seeds}, {steps} steps, configuration {configuration:016x}\n\
             again: {command}"
        )
    }

    /// What stands last: the lines that stand first, and where one of several seeds found
    /// something, the command of that seed.
    pub(crate) fn tail(&self, found: Option<&Self>) -> String {
        let line = self.line();
        match found.map(Self::command).filter(|command| *command != self.command()) {
            Some(command) => format!("{line}\nthis seed: {command}"),
            None => line,
        }
    }

    /// The command that finds the same.
    pub(crate) fn command(&self) -> String {
        let seeds = match self.seeds {
            1 => format!("--seed {}", self.first_seed),
            seeds => format!("--seeds {}..{}", self.first_seed, self.first_seed + seeds),
        };
        let mut text = format!("pinfold sim {seeds} --steps {}", self.settings.steps);
        let knobs: Vec<String> = self.knobs.iter().map(ToString::to_string).collect();
        if !knobs.is_empty() {
            let _ = write!(text, " --faults {}", knobs.join(","));
        }
        for (given, flag) in [
            (self.keep_going, " --keep-going"),
            (self.meta, " --meta"),
            (self.requires_coverage, " --require-coverage"),
            (self.shrink, " --shrink"),
        ] {
            text += if given { flag } else { "" };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn asked(words: &str) -> Asked {
        let line = Line::try_parse_from(words.split(' ').skip(1)).unwrap();
        Asked::of(&line.arguments).unwrap_or_else(|_| panic!("{words}"))
    }

    /// The command that is shown asks the same again, and is shown as itself.
    #[test]
    fn the_command_asks_the_same() {
        for words in [
            "pinfold sim --seeds 0..1000 --steps 1000",
            "pinfold sim --seeds 3..5 --steps 7 --faults crash=off,dup=2% --keep-going --meta",
            "pinfold sim --seeds 3..5 --steps 7 --faults dup=2%,crash=off",
            "pinfold sim --seeds 0..2 --steps 1000 --require-coverage --shrink",
            "pinfold sim --seed 18446744073709551615 --steps 1000",
        ] {
            assert_eq!(asked(words).command(), words);
        }
        assert_eq!(asked("pinfold sim").command(), "pinfold sim --seeds 0..1000 --steps 1000");
        let [one, other] = ["dup=2%,crash=off", "crash=off,dup=2.0%"]
            .map(|knobs| asked(&format!("pinfold sim --faults {knobs}")));
        assert_eq!(one.configuration, other.configuration);
        let sweep = asked("pinfold sim --seeds 2..9 --keep-going --shrink");
        let alone = sweep.alone(4);
        assert_eq!(alone.command(), "pinfold sim --seed 4 --steps 1000 --shrink");
        let tail = format!("{}\nthis seed: {}", sweep.line(), alone.command());
        assert_eq!(sweep.tail(Some(&alone)), tail);
        assert_eq!((sweep.tail(None), alone.tail(Some(&alone))), (sweep.line(), alone.line()));
    }
}
