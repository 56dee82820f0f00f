//! What is no log, or contradicts itself, is refused with its line and its field.

use serde_json::json;

use crate::log::{Lines, judged};
use crate::story::story;

fn refuses(text: &str, expected: &str) {
    let error = judged(text).unwrap_err().to_string();
    assert!(error.contains(expected), "no {expected:?} in {error}");
}

#[test]
fn what_is_no_log_is_refused() {
    refuses("", "found an empty file");
    refuses("\n \n", "found an empty file");
    refuses("rubbish\n", "line 1: expected one JSON object a line");
    refuses("{}\n", "line 1: column 2: missing field `format`");
    let text = story().log.text();
    refuses(&text.replacen("pinfold-log", "a log", 1), "line 1: expected a log's head");
    refuses(&text.replacen("\"version\":1", "\"version\":2", 1), "version 1, found version 2");
    let other = text.replacen("\"turns\":2", "\"turns\":0", 1);
    refuses(&other, "line 1: genesis.turns: must be at least 1");
    refuses(&text.replacen("\"n\":1}", "\"m\":1,\"n\":1}", 1), "line 2: column");
}

#[test]
fn fields_are_named() {
    let mut story = story();
    let changed = |change: &dyn Fn(&mut Lines)| {
        let mut log = story.log.clone();
        change(&mut log);
        log.text()
    };
    let line = |n: u64| format!("line {}: ", n + 1);
    let (settle, release) = (story.settle, story.release);
    let text = changed(&|log| log.event(settle)["command"]["op"] = json!("7.1"));
    refuses(&text, &format!("{}column", line(settle)));
    refuses(&text, "event.command.op: expected an operation, owner.incarnation.sequence");
    let text = changed(&|log| log.event(settle)["command"]["why"] = json!(1));
    refuses(&text, "unknown field `why`");
    let text =
        changed(&|log| log.event(settle)["command"]["command"]["settle"]["shard"] = json!(65_536));
    refuses(&text, "event.command.command.settle.shard: invalid value");
    let retired = story.got + 1;
    let text = changed(&|log| log.event(retired)["retired"]["move"] = json!(99));
    refuses(&text, &format!("{}move: 99 is not under way", line(retired)));
    let put = story.put;
    let text = changed(&|log| log.event(put)["began"]["move"] = json!(0));
    refuses(&text, "move: 0 was used before");
    let text = changed(&|log| drop(log.event(put)["began"].as_object_mut().unwrap().remove("pin")));
    refuses(&text, "pin: missing, although the head says that moves are logged");
    let text = changed(&|log| *log.event(settle) = json!({"recovered": {"records": 1}}));
    refuses(&text, "expected a crash before a recovery");
    let text = changed(&|log| log.event(log.reply(settle))["reply"]["to"] = json!(put));
    refuses(&text, &format!("to: line {put} is no input"));
    let text = changed(&|log| *log.event(log.reply(release)) = json!("crash"));
    refuses(&text, "the coordinator had crashed and was not back");
    let last = story.log.event(settle).clone();
    story.log.insert(settle, last);
    refuses(&story.log.text(), &format!("n: expected more than {settle}, found 0"));
}

/// The largest number is followed by none.
#[test]
fn the_largest_number_does_not_stand_twice() {
    let text = story().log.text();
    let head = text.lines().next().unwrap();
    let head = head.replace("\"from_genesis\":true", "\"from_genesis\":false");
    let line = format!("{{\"n\":{},\"event\":\"idle\"}}\n", u64::MAX);
    assert!(judged(&format!("{head}\n{line}")).is_ok());
    let expected = format!("line 3: n: expected more than {0}, found {0}", u64::MAX);
    refuses(&format!("{head}\n{line}{line}"), &expected);
}
