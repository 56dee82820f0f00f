//! A log as lines that can be changed: removed, moved, or made to lie.

use pinfold_workload::foreign_log::{LogError, Report, verify};
use serde_json::{Value, json};

/// The lines behind a head. Each keeps the number that it had, until the log is written.
#[derive(Clone)]
pub(crate) struct Lines {
    head: Value,
    lines: Vec<(u64, Value)>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let mut values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let head = values.next().unwrap();
        let line = |value: Value| (value["n"].as_u64().unwrap(), value["event"].clone());
        Self { head, lines: values.map(line).collect() }
    }

    fn place(&self, n: u64) -> usize {
        self.lines.iter().position(|(number, _)| *number == n).unwrap()
    }

    /// The event of a line.
    pub(crate) fn event(&mut self, n: u64) -> &mut Value {
        let place = self.place(n);
        &mut self.lines[place].1
    }

    /// The answer to the input of a line.
    pub(crate) fn answer(&mut self, to: u64) -> &mut Value {
        let n = self.reply(to);
        &mut self.event(n)["reply"]["answer"]
    }

    /// The line that answers an input.
    pub(crate) fn reply(&self, to: u64) -> u64 {
        let is_reply = |(_, event): &&(u64, Value)| event["reply"]["to"] == json!(to);
        self.lines.iter().find(is_reply).unwrap().0
    }

    pub(crate) fn remove(&mut self, n: u64) {
        let place = self.place(n);
        self.lines.remove(place);
    }

    /// Puts a new line behind a line.
    pub(crate) fn insert(&mut self, behind: u64, event: Value) {
        let place = self.place(behind) + 1;
        self.lines.insert(place, (0, event));
    }

    /// Moves a line in front of another one.
    pub(crate) fn advance(&mut self, n: u64, before: u64) {
        let line = self.lines.remove(self.place(n));
        let place = self.place(before);
        self.lines.insert(place, line);
    }

    /// Forgets all lines before this one, as a log that starts in the middle.
    pub(crate) fn start_at(&mut self, n: u64) {
        self.lines.drain(..self.place(n));
        self.head["from_genesis"] = json!(false);
    }

    /// Promises no moves, so that nothing is concluded from what is not there.
    pub(crate) fn promise_no_moves(&mut self) {
        self.head["moves"] = json!(false);
    }

    /// Changes every event.
    pub(crate) fn change(&mut self, change: impl Fn(&mut Value)) {
        self.lines.iter_mut().for_each(|(_, event)| change(event));
    }

    /// The log with the numbers that its lines have.
    pub(crate) fn text(&self) -> String {
        let line = |(n, event): &(u64, Value)| json!({"n": n, "event": event}).to_string() + "\n";
        self.head.to_string() + "\n" + &self.lines.iter().map(line).collect::<String>()
    }

    /// The log with lines that are numbered anew, and what they name by line with them.
    fn renumbered(&self) -> String {
        let mut new = self.clone();
        for (n, (number, _)) in (1..).zip(&mut new.lines) {
            *number = n;
        }
        for (_, event) in &mut new.lines {
            for kind in ["reply", "listed"] {
                let Some(to) = event.get(kind).and_then(|event| event["to"].as_u64()) else {
                    continue;
                };
                let place = self.lines.iter().position(|(number, _)| *number == to).unwrap();
                event[kind]["to"] = json!(place + 1);
            }
        }
        new.text()
    }

    /// What is found in the renumbered log: the rule, and the line's old number; 0 for a new line.
    pub(crate) fn lie(&self) -> (String, u64) {
        let report = judged(&self.renumbered()).unwrap();
        let finding = report.finding.unwrap_or_else(|| panic!("{:?}", report.verdict));
        assert_eq!(finding.line, finding.n + 1, "the head is line 1");
        assert!(!finding.text.is_empty() && !finding.what.is_empty());
        (finding.rule, self.lines[usize::try_from(finding.n).unwrap() - 1].0)
    }

    /// What becomes of the renumbered log.
    pub(crate) fn judged(&self) -> Report {
        judged(&self.renumbered()).unwrap()
    }
}

pub(crate) fn judged(text: &str) -> Result<Report, LogError> {
    verify(text.as_bytes())
}
