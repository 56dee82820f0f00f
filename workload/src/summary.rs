//! The summary of a replay: what its table says, in print and on the page.
//!
//! It words figures and computes nothing that the report has not.

use std::fmt::Display;

use crate::report::{Report, Tally, Time};
use crate::unit::{bytes, millis, percent, seconds};

/// The most recoveries that are listed one by one.
const LISTED: usize = 8;

/// Rows under a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// What stands under it.
    pub rows: Vec<Row>,
}

/// A figure with its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What is counted.
    pub name: String,
    /// The figure, with its unit.
    pub value: String,
    /// A sentence about it; often empty.
    pub note: String,
}

impl Section {
    fn new(title: impl Into<String>, rows: Vec<Row>) -> Self {
        Self { title: title.into(), rows }
    }
}

fn row(name: impl Into<String>, value: impl Display) -> Row {
    Row { name: name.into(), value: value.to_string(), note: String::new() }
}

impl Row {
    /// The same row with a sentence about it, where there is one.
    fn with(self, note: Option<String>) -> Self {
        Self { note: note.unwrap_or_default(), ..self }
    }
}

/// The first reason of several, as a note.
fn first(reason: Option<&String>) -> Option<String> {
    reason.map(|reason| format!("the first: {reason}"))
}

/// Everything that the report says in figures, the timeline and the depths aside.
#[must_use]
pub fn summary(report: &Report) -> Vec<Section> {
    let Report { tally, time, .. } = report;
    vec![
        trace(report),
        policy(report),
        restores(report),
        checkpoints(report),
        Section::new(
            "Bytes, private objects",
            vec![
                row("there before, or thrown away", bytes(report.bytes_found)),
                row("written", bytes(tally.bytes_written)),
                row("of them for turns not kept", bytes(tally.bytes_unkept)),
                row("collected", bytes(tally.bytes_collected)),
                row("retained", bytes(report.bytes_retained)),
                row("with a record, at the peak", bytes(report.bytes_peak)),
            ],
        ),
        left(report),
        run(report, time),
    ]
}

fn trace(report: &Report) -> Section {
    let mut rows = vec![
        row("requests", report.requests),
        row("conversations in the trace", report.conversations),
        row("turns", report.turns),
        row("too short to keep", report.tally.too_short),
    ];
    if report.another_trace {
        let note = "equal block ids count as equal prefixes";
        rows.push(row("another trace than the job began with", "yes").with(Some(note.into())));
    }
    Section::new(format!("Trace: {}", report.trace), rows)
}

fn policy(report: &Report) -> Section {
    let budget = |budget: Option<u64>| budget.map_or("none".to_string(), bytes);
    let rows = vec![
        row("turns kept of a conversation", report.turns_kept),
        row("budget of a conversation", budget(report.conversation_bytes)),
        row("budget of the job", budget(report.job_bytes)),
        row("state of a checkpoint", bytes(report.bytes_per_checkpoint)),
    ];
    Section::new("Policy", rows)
}

fn restores(report: &Report) -> Section {
    let Report { tally, restore_failure_text, .. } = report;
    let Tally { tokens_saved, input_tokens, .. } = *tally;
    let saved = format!("{tokens_saved} ({})", percent(tokens_saved, input_tokens));
    let rows = vec![
        row("restored", tally.restores),
        row("of them with wrong bytes", tally.wrong_restores),
        row("nothing kept", tally.restore_misses),
        row("failed", tally.restore_failures).with(first(restore_failure_text.as_ref())),
        row("prefill tokens", input_tokens),
        row("prefill tokens saved", saved),
    ];
    Section::new("Restores", rows)
}

fn checkpoints(report: &Report) -> Section {
    let Report { tally, store_failure_text, .. } = report;
    let rows = vec![
        row("written", tally.checkpoints_written),
        row("kept already", tally.already_published),
        row("not kept: expired before", tally.unsaved_expired),
        row("not kept: another save under way", tally.unsaved_in_flight),
        row("not kept: ids of another prefix", tally.unsaved_mismatches),
        row("not kept: the store failed", tally.store_failures)
            .with(first(store_failure_text.as_ref())),
        row("not kept: larger than a budget", tally.over_budget).with(over_budget(tally)),
        row("thrown away under way", tally.thrown_away),
        row("turns expired", report.turns_expired),
        row("collected", tally.checkpoints_collected),
        row("retained", report.checkpoints_retained),
    ];
    Section::new("Checkpoints", rows)
}

/// What budget would have been large enough.
fn over_budget(tally: &Tally) -> Option<String> {
    let larger = match tally.over_budget {
        0 => return None,
        1 => "1 turn is larger than the budget".to_string(),
        turns => format!("{turns} turns are larger than the budget"),
    };
    Some(format!("{larger}: a checkpoint has about {}", bytes(tally.over_budget_bytes)))
}

/// What `blockers` says of what is left, and how each is lifted by whom.
fn left(report: &Report) -> Section {
    let rows = report.left.blockers.iter().map(|(name, checkpoints)| {
        let lift = report.left.lifts.get(name);
        let note = lift.map(|lift| {
            let by = if lift.by.is_empty() { String::new() } else { lift.by.join(" or ") + ": " };
            by + lift.how
        });
        row(*name, checkpoints).with(note)
    });
    let mut rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        rows.push(row("nothing is left", ""));
    }
    Section::new("Why the rest is still here, and who lifts it", rows)
}

fn run(report: &Report, time: &Time) -> Section {
    let mut rows = vec![
        row("workers", report.workers),
        row("wall time", seconds(time.wall_ms)),
        row("commands", report.commands),
        row("commands per second", time.commands_per_second),
    ];
    match &report.coordinator {
        Some(url) => rows.insert(0, row("coordinator", url)),
        None => rows.extend([
            row("journal syncs", time.journal_syncs),
            row("journal bytes", bytes(time.journal_bytes)),
            snapshots(time),
        ]),
    }
    rows.push(row("crashes", report.crashes));
    rows.extend(recoveries(&time.recovery_us));
    rows.push(row("invariant violations", report.violations));
    Section::new("Run", rows)
}

fn snapshots(time: &Time) -> Row {
    let taken = row("journal snapshots", time.journal_snapshots);
    let failure = time.snapshot_failure.as_ref();
    Row { note: failure.map_or(String::new(), |why| format!("one failed: {why}")), ..taken }
}

/// Each recovery; of many, the least, the middle and the most.
fn recoveries(took: &[u64]) -> Vec<Row> {
    if took.len() <= LISTED {
        return took.iter().map(|took| row("recovered in", millis(*took))).collect();
    }
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    let at = |place: usize| sorted.get(place).copied().map(millis).unwrap_or_default();
    vec![
        row("recoveries", took.len()),
        row("recovered in, at least", at(0)),
        row("recovered in, median", at((sorted.len() - 1) / 2)),
        row("recovered in, at most", at(sorted.len() - 1)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(rows: &[Row]) -> Vec<(&str, &str)> {
        rows.iter().map(|row| (row.name.as_str(), row.value.as_str())).collect()
    }

    #[test]
    fn few_recoveries_are_listed_and_many_are_summed_up() {
        assert!(recoveries(&[]).is_empty());
        let two = recoveries(&[20_000, 1_500]);
        assert_eq!(values(&two), [("recovered in", "20.000 ms"), ("recovered in", "1.500 ms")]);
        let many = recoveries(&[9_000, 1_000, 8_000, 2_000, 7_000, 3_000, 6_000, 4_000, 5_000]);
        let expected = [
            ("recoveries", "9"),
            ("recovered in, at least", "1.000 ms"),
            ("recovered in, median", "5.000 ms"),
            ("recovered in, at most", "9.000 ms"),
        ];
        assert_eq!(values(&many), expected);
    }
}
