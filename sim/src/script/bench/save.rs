//! `w1 save A1 E1 C1/T1`: a whole save in one line, for scripts that are about something else.

use super::super::reader::{Fault, Line};
use super::Bench;

impl Bench {
    /// Prepares, puts, settles and publishes, and releases where the line gives the pin no name.
    /// Behind the endpoint stands a turn, `unscoped`, or nothing for a checkpoint that is only
    /// whole. One line is shown when all goes well; else the answers, up to the refusal.
    pub(super) fn save(&mut self, line: &Line) -> Result<(), Fault> {
        let owner = line.word(0)?.to_string();
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let pin = line.binds.first().cloned().unwrap_or_else(|| "a save's pin".to_string());
        let shards = line.option("shape").unwrap_or("").split(',').count();
        let shards: Vec<_> = (0..shards).map(|shard| shard.to_string()).collect();
        let mut prepare = line.clone();
        prepare.binds = vec![pin.clone()];
        prepare.words = words(&[&owner, "prepare", line.word(2)?, line.word(3)?]);
        prepare.options.push(("shards".to_string(), shards.join(",")));
        let plain = Line { binds: Vec::new(), options: Vec::new(), ..line.clone() };
        let settle = words(&[&owner, "settle", &pin, "success"]);
        let publish = match line.words.get(4).map(String::as_str) {
            None => Vec::new(),
            Some("unscoped") => words(&[&owner, "publish", &pin]),
            Some(turn) => words(&[&owner, "publish", &pin, turn]),
        };
        let release =
            if line.binds.is_empty() { words(&[&owner, "release", &pin]) } else { Vec::new() };

        let before = core::mem::take(&mut self.out);
        let mut steps = vec![prepare];
        for words in [settle, publish, release].into_iter().filter(|words| !words.is_empty()) {
            steps.push(Line { words, ..plain.clone() });
        }
        for step in &steps {
            self.line(step)?;
            if self.out.iter().any(|text| text.contains("refused")) {
                break;
            }
        }
        let observed = core::mem::replace(&mut self.out, before);
        if observed.iter().any(|text| text.contains("refused")) {
            self.out.extend(observed);
            return Ok(());
        }
        let name = observed.first().and_then(|text| text.split(" on ").nth(1)).unwrap_or("?");
        let published = observed.iter().find_map(|text| text.split(" -> published").nth(1));
        self.out.push(format!("{owner} saved {name}{}", published.unwrap_or_default()));
        self.out.extend(observed.iter().filter(|text| text.starts_with("follow-up")).cloned());
        if let Some(checkpoint) = self.names.checkpoint(name) {
            self.put_all(checkpoint);
        }
        Ok(())
    }
}
