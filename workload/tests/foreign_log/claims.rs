//! What commands say of the store needs lines that show it, where there are any.

use pinfold_core::catalog::{Command, Role};
use pinfold_core::id::ShardIndex;
use pinfold_core::outcome::Evidence;
use pinfold_host::log::{Event, PutResult, Way};
use pinfold_workload::foreign_log::Verdict;
use serde_json::{Value, json};

use crate::log::judged;
use crate::scribe::{Scribe, objects};
use crate::story::{Story, story};

/// What is found in the story with other outcomes in every line of the store, with its moves
/// promised and not.
fn found(kind: &str, outcome: &str) -> [(String, u64); 2] {
    let mut story = story();
    story.log.change(|event| {
        if let Some(store) = event.get_mut(kind) {
            store["outcome"] = json!(outcome);
        }
    });
    let promised = story.log.lie();
    story.log.promise_no_moves();
    [promised, story.log.lie()]
}

#[test]
fn a_delete_that_was_not_done_is_not_reported_as_gone() {
    let reported = ("I17".to_string(), story().delete + 1);
    for outcome in ["refused", "unknown"] {
        assert_eq!(found("delete", outcome), [reported.clone(), reported.clone()]);
    }
}

/// Where the moves are promised, the manifest that goes before its object is stored is seen first.
#[test]
fn a_put_that_failed_is_not_settled_as_saved() {
    let first = story();
    let is_manifest = |event: &Value| {
        event["began"]["key"].as_str().is_some_and(|key| key.ends_with("/00000000"))
    };
    let is_settle = |event: &Value| event["command"]["command"].get("settle").is_some();
    let manifest = ("I4".to_string(), line(&first, is_manifest));
    let settled = ("I4".to_string(), line(&first, is_settle));
    for outcome in ["failed", "unknown"] {
        assert_eq!(found("put", outcome), [manifest.clone(), settled.clone()]);
    }
}

/// The first line with such an event.
fn line(story: &Story, is: impl Fn(&Value) -> bool) -> u64 {
    let mut log = story.log.clone();
    (1..).find(|n| is(log.event(*n))).unwrap()
}

/// One put of several is enough; and one whose end stands behind the settle was not stored yet.
#[test]
fn each_put_of_a_shard_counts() {
    for change in [false, true] {
        let mut story = story();
        let answer = story.put + 1;
        story.log.promise_no_moves();
        if change {
            story.log.event(answer)["put"]["outcome"] = json!("unknown");
        } else {
            story.log.remove(answer);
        }
        assert_eq!(story.log.lie(), ("I4".to_string(), story.settle));
    }
}

/// A settle that names no shard speaks of each that is not final.
#[test]
fn a_settle_of_all_shards_is_judged() {
    let lie = |failed_first: bool| {
        let mut host = Scribe::new(2);
        let mut w = host.register("worker", Role::Worker);
        let (pin, checkpoint) = host.prepare(&mut w, 1);
        let key = host.key(checkpoint, objects()[0]);
        let way = Way::Put;
        host.write(Event::Began { number: 0, way, key, pin: Some(pin) });
        host.write(Event::Put { number: 0, outcome: PutResult::Failed });
        host.write(Event::Retired { number: 0 });
        if failed_first {
            let (shard, evidence) = (Some(ShardIndex(0)), Evidence::QuiescedFailure);
            host.ask(&mut w, Command::Settle { pin, shard, evidence });
        }
        let evidence = Evidence::QuiescedSuccess;
        host.request_any(&mut w, Command::Settle { pin, shard: None, evidence });
        judged(&host.text()).unwrap()
    };
    assert_eq!(lie(false).finding.unwrap().rule, "I4");
    assert_eq!(lie(true).finding, None);
}

/// A probe shows it as well, whatever the delete itself was answered.
#[test]
fn a_probe_shows_that_an_object_is_gone() {
    let probed = |outcome: &str| {
        let mut story = story();
        let key = story.log.event(story.delete)["delete"]["key"].clone();
        story.log.event(story.delete)["delete"]["outcome"] = json!("unknown");
        story.log.insert(story.delete, json!({"probed": {"key": key, "outcome": outcome}}));
        story.log.judged()
    };
    assert_eq!((probed("gone").verdict, probed("gone").finding), (Verdict::Held, None));
    assert_eq!(probed("refused").finding.unwrap().rule, "I17");
}

/// A host that logs no store is not accused; one that promised to is incomplete.
#[test]
fn a_report_that_no_line_shows_is_counted() {
    let mut story = story();
    story.log.remove(story.delete);
    let promised = story.log.judged();
    assert_eq!((promised.verdict, promised.counts.deletes_unshown), (Verdict::Incomplete, 1));
    let [unjudged] = promised.unjudged.as_slice() else { panic!("{:?}", promised.unjudged) };
    assert_eq!(unjudged.what, "object reported gone of which no line shows a delete");
    story.log.promise_no_moves();
    for n in 1..story.settle {
        let event = story.log.event(n);
        if ["began", "put", "confirmed", "retired"].iter().any(|kind| event.get(kind).is_some()) {
            *event = Value::from("idle");
        }
    }
    let report = story.log.judged();
    assert_eq!((report.verdict, &report.finding), (Verdict::Held, &None));
    assert_eq!((report.counts.saves_unshown, report.counts.deletes_unshown), (3, 1));
}
