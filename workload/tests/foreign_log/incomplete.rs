//! What cannot be judged is counted and said, and the rest is judged.

use pinfold_workload::foreign_log::{Gap, Report, Verdict, verify_with};
use serde_json::json;

use crate::log::judged;
use crate::story::story;

/// A report that says so often what could not be judged, and nothing else.
fn says(report: &Report, expected: &[(&str, u64)]) {
    assert_eq!((report.verdict, &report.finding), (Verdict::Incomplete, &None));
    let found: Vec<_> = report.unjudged.iter().map(|one| (one.what, one.count)).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((what, count), (words, expected)) in found.iter().zip(expected) {
        assert!(what.contains(words) && count == expected, "{found:?}");
    }
}

#[test]
fn missing_lines_are_seen() {
    let mut story = story();
    let total = story.log.judged().counts.replies;
    story.log.remove(story.settle);
    let report = judged(&story.log.text()).unwrap();
    assert_eq!(report.verdict, Verdict::Incomplete);
    let before = report.counts.compared;
    let (no_state, no_input) = (total - before - 1, 1);
    says(
        &report,
        &[("missing", 1), ("state is not known", no_state), ("not in the log", no_input)],
    );
}

/// Behind a gap the rules go on that need no state.
#[test]
fn behind_a_gap_repeats_and_keys_are_judged() {
    let mut story = story();
    story.log.remove(story.settle);
    *story.log.answer(story.repeat) = json!({"ok": "released"});
    let finding = judged(&story.log.text()).unwrap().finding.unwrap();
    assert_eq!((finding.rule.as_str(), finding.judge), ("I14", "rules"));
    let mut story = self::story();
    story.log.remove(story.settle);
    let began = story.log.event(story.put)["began"].clone();
    *story.log.event(story.delete) = json!({"began": began});
    story.log.event(story.delete)["began"]["move"] = json!(1000);
    assert_eq!(judged(&story.log.text()).unwrap().finding.unwrap().rule, "I17");
}

#[test]
fn a_torn_last_line_is_seen() {
    let text = story().log.text();
    let torn = judged(&text[..text.len() - 5]).unwrap();
    says(&torn, &[("not written whole", 1)]);
    // A last line that only lacks its end is whole.
    assert_eq!(judged(text.trim_end()).unwrap().verdict, Verdict::Held);
    // With its end it is no torn one.
    assert!(judged(&format!("{}\n", &text[..text.len() - 5])).is_err());
}

#[test]
fn an_answer_that_nobody_knows_is_not_compared() {
    let mut story = story();
    *story.log.answer(story.pin_lost) = json!("unknown");
    says(&story.log.judged(), &[("host does not know", 1)]);
}

#[test]
fn a_log_from_the_middle_is_judged_by_itself() {
    let mut story = story();
    story.log.start_at(story.pin);
    let report = judged(&story.log.text()).unwrap();
    says(&report, &[("not begin with", 1), ("state is not known", report.counts.replies)]);
    assert_eq!(report.only_rules_from, Some(1));
    assert_eq!((report.from_genesis, report.counts.compared), (false, 0));
    *story.log.answer(story.wrong_epoch) = json!({"ok": "released"});
    assert_eq!(judged(&story.log.text()).unwrap().finding.unwrap().rule, "I12");
}

#[test]
fn a_recovery_that_does_not_say_its_records_ends_the_comparison() {
    let mut story = story();
    *story.log.event(story.recovered) = json!({"recovered": {}});
    let report = story.log.judged();
    let behind = report.counts.replies - report.counts.compared;
    says(&report, &[("state is not known", behind), ("does not say with how many", 1)]);
}

#[test]
fn work_that_was_not_logged_is_counted() {
    let mut story = story();
    story.log.remove(story.work);
    says(&story.log.judged(), &[("delete work", 1)]);
}

/// Where nothing was judged, nothing holds.
#[test]
fn a_log_in_which_nothing_is_judged_is_incomplete() {
    let mut story = story();
    let text = story.log.text();
    let head = text.lines().next().unwrap();
    let report = judged(head).unwrap();
    says(&report, &[("nothing is logged", 1)]);
    assert_eq!(report.unjudged[0].first_line, 1);
    story.log.start_at(story.delete);
    let text = story.log.text();
    let lines: Vec<_> = text.lines().take(2).collect();
    says(&judged(&lines.join("\n")).unwrap(), &[("not begin with the job", 1)]);
    says(&judged(lines[0]).unwrap(), &[("nothing is logged", 1), ("not begin with the job", 1)]);
}

#[test]
fn the_first_gap_is_named() {
    let mut story = story();
    let (settle, publish) = (story.settle, story.publish);
    story.log.remove(settle);
    let report = judged(&story.log.text()).unwrap();
    let gap = Gap { line: settle + 1, first: settle, last: settle };
    assert_eq!((report.first_gap, report.only_rules_from), (Some(gap), Some(settle + 1)));
    let missing = report.unjudged[0];
    assert_eq!(
        (missing.what, missing.first_line),
        ("line that is missing, by a gap in n", gap.line)
    );
    // A later one, and a wider one in front of it.
    story.log.remove(publish);
    story.log.remove(settle - 1);
    let report = judged(&story.log.text()).unwrap();
    let gap = Gap { line: settle, first: settle - 1, last: settle };
    assert_eq!((report.first_gap, report.only_rules_from), (Some(gap), Some(settle)));
    assert_eq!(report.unjudged[0].what, "lines that are missing, by the gaps in n");
    let whole = self::story().log.judged();
    assert_eq!((whole.first_gap, whole.only_rules_from), (None, None));
}

/// Behind a gap a missing line may be the one that shows it.
#[test]
fn behind_a_gap_no_claim_is_judged() {
    let mut story = story();
    story.log.event(story.delete)["delete"]["outcome"] = json!("refused");
    story.log.remove(story.too_early);
    assert_eq!(judged(&story.log.text()).unwrap().finding, None);
}

/// The spec looks on at the first inputs only, and its limit makes nothing incomplete.
#[test]
fn the_spec_looks_on_at_the_first_inputs() {
    let text = story().log.text();
    let inputs = judged(&text).unwrap().counts.inputs;
    for (limit, shown) in [(0, 0), (3, 3), (inputs - 1, inputs - 1), (inputs + 1, inputs)] {
        let report = verify_with(text.as_bytes(), limit).unwrap();
        assert_eq!((report.verdict, report.counts.by_spec), (Verdict::Held, shown));
        assert_eq!(report.counts.compared, report.counts.replies);
    }
}
