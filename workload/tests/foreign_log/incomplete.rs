//! What cannot be judged is counted and said, and the rest is judged.

use pinfold_workload::foreign_log::{Report, Verdict};
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
    says(&report, &[("state is not known", report.counts.replies)]);
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
    says(&report, &[("state is not known", behind), ("do not say with how many", 1)]);
}

#[test]
fn work_that_was_not_logged_is_counted() {
    let mut story = story();
    story.log.remove(story.work);
    says(&story.log.judged(), &[("delete work", 1)]);
}
