//! Each lie is found at its own line, by the rule that it breaks.

use pinfold_core::engine::{Query, Request};
use serde_json::{Value, json};

use crate::log::Lines;
use crate::scribe::Scribe;
use crate::story::{Story, story};

/// Tells the story with one lie, which must be found by this rule at the line that it names.
fn finds(rule: &str, lie: impl FnOnce(&mut Story) -> u64) {
    let mut story = story();
    let line = lie(&mut story);
    assert_eq!(story.log.lie(), (rule.to_string(), line));
}

#[test]
fn evidence_that_changes_is_found() {
    finds("I8", |story| {
        *story.log.answer(story.settle) =
            json!({"ok": {"settled": {"evidence": "quiesced_failure"}}});
        story.log.reply(story.settle)
    });
}

#[test]
fn an_answer_before_its_input_is_found() {
    finds("I10", |story| {
        let reply = story.log.reply(story.settle);
        story.log.advance(reply, story.settle);
        reply
    });
}

#[test]
fn a_second_answer_is_found() {
    finds("I14", |story| {
        let n = story.log.reply(story.settle);
        let again = story.log.event(n).clone();
        story.log.insert(n, again);
        0
    });
}

#[test]
fn a_delete_of_a_retained_object_is_found() {
    finds("I1", |story| {
        story.log.event(story.delete)["delete"]["key"] = json!(story.retained_key);
        story.delete
    });
}

#[test]
fn a_delete_of_a_pinned_object_is_found_also_when_it_is_refused() {
    finds("I2", |story| {
        let delete = json!({"key": story.pinned_key, "why": "stray", "outcome": "refused"});
        *story.log.event(story.delete) = json!({"delete": delete});
        story.delete
    });
}

#[test]
fn a_delete_of_what_is_not_ours_is_found() {
    for key in ["somebody/else", "told/000000000000000000000000000000e0/shared/x"] {
        finds("I3", |story| {
            story.log.event(story.delete)["delete"]["key"] = json!(key);
            story.delete
        });
    }
}

#[test]
fn a_delete_before_its_work_is_found() {
    finds("I1", |story| {
        // Turn 1 refers to it until the publication that expires it.
        story.log.advance(story.delete, story.publish);
        story.delete
    });
    finds("I3", |story| {
        story.log.advance(story.delete, story.collect);
        story.delete
    });
}

#[test]
fn work_that_nobody_may_do_is_found() {
    finds("I3", |story| {
        story.log.event(story.work)["work"]["objects"] = json!(["0/1"]);
        story.work
    });
    finds("I3", |story| {
        *story.log.answer(story.collect) =
            json!({"ok": {"collected": {"objects": 7, "more": false}}});
        story.log.reply(story.collect)
    });
}

#[test]
fn a_lost_checkpoint_that_is_served_is_found() {
    finds("I9", |story| {
        let (checkpoint, digest) = story.lost;
        let digest = format!("{digest:02x}").repeat(32);
        let pinned = json!([{"checkpoint": checkpoint.to_string(), "digest": digest}]);
        *story.log.answer(story.pin_lost) = json!({"ok": {"pinned": pinned}});
        story.log.reply(story.pin_lost)
    });
}

#[test]
fn another_manifest_is_found() {
    finds("I5", |story| {
        let digest = json!("ab".repeat(32));
        story.log.answer(story.pin)["ok"]["pinned"][0]["digest"] = digest;
        story.log.reply(story.pin)
    });
}

#[test]
fn a_key_that_is_put_twice_is_found() {
    finds("I17", |story| {
        let mut again = story.log.event(story.put).clone();
        again["began"]["move"] = json!(1000);
        story.log.insert(story.settle, again);
        0
    });
}

#[test]
fn another_epoch_that_is_obeyed_is_found() {
    finds("I12", |story| {
        *story.log.answer(story.wrong_epoch) =
            json!({"ok": {"collected": {"objects": 0, "more": false}}});
        story.log.reply(story.wrong_epoch)
    });
}

#[test]
fn an_operation_that_is_answered_twice_is_found() {
    finds("I14", |story| {
        *story.log.answer(story.repeat) = json!({"refused": {
            "limit_exceeded": {"limit": "pins", "bound": 1, "needed": 2}}});
        story.log.reply(story.repeat)
    });
}

#[test]
fn an_expired_turn_that_returns_is_found() {
    finds("I7", |story| {
        *story.log.answer(story.expired) = json!({"ok": {"published": {"follow_ups": false}}});
        story.log.reply(story.expired)
    });
}

#[test]
fn a_turn_that_does_not_expire_is_found() {
    finds("I6", |story| {
        *story.log.answer(story.publish) = json!({"ok": {"published": {"follow_ups": false}}});
        story.log.reply(story.publish)
    });
}

#[test]
fn a_publication_before_all_is_there_is_found() {
    finds("I4", |story| {
        *story.log.answer(story.too_early) = json!({"ok": {"published": {"follow_ups": false}}});
        story.log.reply(story.too_early)
    });
}

#[test]
fn a_limit_that_bars_a_way_out_is_found() {
    finds("I18", |story| {
        *story.log.answer(story.release) = json!({"refused": {
            "limit_exceeded": {"limit": "bytes_pinned", "bound": 1, "needed": 2}}});
        story.log.reply(story.release)
    });
}

#[test]
fn what_was_acknowledged_and_lost_is_found() {
    let records = |story: &mut Story, change: i64| {
        let records = &mut story.log.event(story.recovered)["recovered"]["records"];
        *records = json!(records.as_i64().unwrap() + change);
        story.recovered
    };
    finds("I10", |story| records(story, -1));
    // One input was under way: there can be one record more, and not three.
    finds("I11", |story| records(story, 3));
}

#[test]
fn wrong_bytes_in_memory_are_found() {
    for bytes in ["wrong", "missing"] {
        finds("I15", |story| {
            story.log.event(story.adopted)["adopted"]["memory"][0]["bytes"] = json!(bytes);
            story.adopted
        });
    }
    finds("I15", |story| {
        let key = json!(story.pinned_key);
        story.log.event(story.adopted)["adopted"]["memory"][0]["key"] = key;
        story.adopted
    });
}

#[test]
fn memory_that_is_used_while_bytes_move_is_found() {
    finds("I16", |story| {
        let retired = story.got + 1;
        assert_eq!(story.log.event(retired)["retired"], json!({"move": 6}));
        story.log.remove(retired);
        story.adopted
    });
}

#[test]
fn a_wrong_audit_is_found() {
    finds("I17", |story| {
        assert_eq!(story.log.answer(story.audit)["audit"], json!(["counted", "stray"]));
        *story.log.answer(story.audit) = json!({"audit": ["stray", "stray"]});
        story.log.reply(story.audit)
    });
}

/// A finding says what a correct run would have said.
#[test]
fn a_finding_says_what_was_expected() {
    let mut story = story();
    *story.log.answer(story.settle) = json!({"ok": {"settled": {"evidence": "in_doubt"}}});
    let finding = story.log.judged().finding.unwrap();
    let expected: Value = serde_json::from_str(&finding.expected.unwrap()).unwrap();
    assert_eq!(expected, json!({"ok": {"settled": {"evidence": "quiesced_success"}}}));
    assert!(finding.text.contains("in_doubt"), "{}", finding.text);
    assert_eq!((finding.judge, finding.promise.is_empty()), ("engine", false));
}

/// A job that is not the head's: the field is named, and not two long lines to compare.
#[test]
fn another_genesis_is_named_by_its_field() {
    for (rule, field, value) in [
        ("I12", "operator", json!("000000000000000000000000000000aa")),
        ("I6", "policy.turns", json!(3)),
        ("I9", "policy.quarantine", json!("endpoint")),
        ("I11", "limits.pins", json!(7)),
    ] {
        let mut host = Scribe::new(2);
        let asked = host.request(Request::Query(Query::Job)).0;
        let mut log = Lines::of(&host.text());
        let place = format!("/job/{}", field.replace('.', "/"));
        let found = log.answer(asked).pointer_mut(&place).unwrap();
        let honest = std::mem::replace(found, value.clone());
        let finding = log.judged().finding.unwrap();
        assert_eq!((finding.rule.as_str(), finding.n, finding.expected), (rule, asked + 1, None));
        let what = format!("the job's {field} is {honest}, and was answered as {value}");
        assert_eq!(finding.what, what);
    }
}
