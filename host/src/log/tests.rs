use std::io::{self, Write};

use pinfold_core::catalog::{Command, Prepare, Shape, ShardShape};
use pinfold_core::engine::Reply;
use pinfold_core::few::Few;
use pinfold_core::id::{
    AttemptId, CheckpointId, EndpointId, Epoch, Generation, Incarnation, ManifestDigest, ObjectId,
    OpId, OwnerId, PinId, ShardIndex,
};
use pinfold_core::outcome::{
    DeleteOutcome, Field, Limit, Malformed, Outcome, Pinned, Problem, Rejection,
};
use pinfold_core::policy::{Genesis, Limits, Policy};

use super::*;
use crate::dto::Answer;

fn genesis() -> Genesis {
    Genesis {
        namespace: "lines".parse().unwrap(),
        epoch: Epoch::from_u128(0xE),
        operator: OwnerId::from_u128(0x1),
        policy: Policy::default(),
        limits: Limits::default(),
    }
}

fn op() -> OpId {
    OpId { owner: OwnerId::from_u128(0xA), incarnation: Incarnation(2), sequence: 9 }
}

fn checkpoint() -> CheckpointId {
    CheckpointId { endpoint: EndpointId::from_u128(0xC), generation: Generation(3) }
}

fn back(event: Event) -> String {
    let line = Line { n: 1, event };
    let text = serde_json::to_string(&line).unwrap();
    assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line, "{text}");
    text
}

/// The forms of the format's page.
#[test]
fn lines_are_golden() {
    let prepare = Prepare {
        attempt: AttemptId::from_u128(0xB),
        endpoint: checkpoint().endpoint,
        digest: ManifestDigest::from_bytes([7; 32]),
        shape: Shape::new(&[ShardShape { objects: 2, bytes: 640 }]).unwrap(),
        shards: vec![ShardIndex(0)],
    };
    let command = Command::Prepare(prepare);
    let text = back(Event::Command { epoch: Epoch::from_u128(0xE), op: op(), command });
    let expected = "{\"n\":1,\"event\":{\"command\":{\
        \"epoch\":\"0000000000000000000000000000000e\",\
        \"op\":\"0000000000000000000000000000000a.2.9\",\"command\":{\"prepare\":{\
        \"attempt\":\"0000000000000000000000000000000b\",\
        \"endpoint\":\"0000000000000000000000000000000c\",\
        \"digest\":\"0707070707070707070707070707070707070707070707070707070707070707\",\
        \"shape\":[{\"objects\":2,\"bytes\":640}],\"shards\":[0]}}}}}";
    assert_eq!(text, expected);
    let pin = PinId { op: op(), place: 0 };
    let answer = Answer::Ok(Outcome::Prepared { pin, checkpoint: checkpoint() });
    let expected = "{\"n\":1,\"event\":{\"reply\":{\"to\":7,\"answer\":{\"ok\":{\"prepared\":{\
        \"pin\":\"0000000000000000000000000000000a.2.9.0\",\
        \"checkpoint\":\"0000000000000000000000000000000c@3\"}}}}}}";
    assert_eq!(back(Event::Reply { to: 7, answer }), expected);
    assert_eq!(back(Event::Idle), "{\"n\":1,\"event\":\"idle\"}");
}

#[test]
fn every_kind_of_answer_comes_back() {
    let mut pinned = Few::new();
    let one = Pinned { checkpoint: checkpoint(), digest: ManifestDigest::from_bytes([1; 32]) };
    assert!(pinned.push(one));
    let malformed = Malformed { field: Field::Bound(Limit::Answers), problem: Problem::Zero };
    let limit = Rejection::LimitExceeded { limit: Limit::Pins, bound: u64::MAX, needed: 1 };
    let list = vec![
        Some(Ok(Outcome::Pinned(pinned))),
        Some(Err(Rejection::Malformed(malformed))),
        Some(Err(limit)),
        None,
    ];
    for reply in [
        Reply::List(list),
        Reply::Job(genesis()),
        Reply::Gauges(pinfold_core::policy::Gauges::default()),
        Reply::Blockers(None),
        Reply::WrongEpoch,
        Reply::Poisoned,
    ] {
        let answer = Answer::from(reply.clone());
        assert_eq!(answer.clone().into_reply(), Some(reply));
        back(Event::Reply { to: 1, answer });
    }
    assert_eq!(Answer::Unknown.into_reply(), None);
    back(Event::Command {
        epoch: Epoch::from_u128(1),
        op: op(),
        command: Command::Deleted {
            checkpoint: checkpoint(),
            outcomes: vec![(ObjectId::default(), DeleteOutcome::Refused)],
        },
    });
}

#[test]
fn what_is_unknown_is_refused() {
    for bad in [
        r#"{"n":1,"event":"idle","more":1}"#,
        r#"{"n":1,"event":"pause"}"#,
        r#"{"n":1,"n":2,"event":"idle"}"#,
        r#"{"n":-1,"event":"idle"}"#,
        r#"{"n":1,"event":{"recovered":{"records":1,"more":2}}}"#,
        r#"{"n":1,"event":{"retired":{"move":1.5}}}"#,
        r#"{"n":1,"event":{"reply":{"to":1,"answer":{"ok":{"settled":{"evidence":"done"}}}}}}"#,
    ] {
        assert!(serde_json::from_str::<Line>(bad).is_err(), "{bad}");
    }
}

/// A writer that takes so many lines.
struct Full(u32);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("full"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_is_told_once_and_the_log_ends_there() {
    let mut writer = LogWriter::new(Full(2), &Head::new(genesis())).unwrap();
    assert_eq!(writer.write(Event::Idle).unwrap(), 1);
    assert!(writer.write(Event::Idle).is_err());
    writer.leave_gap();
    assert_eq!(writer.write(Event::Idle).unwrap(), 4);
    let log = Log::new(LogWriter::new(Full(1), &Head::new(genesis())).unwrap());
    assert_eq!((log.write(Event::Idle), log.write(Event::Idle)), (1, 2));
    assert!(log.finish().is_err());
    assert!(log.finish().is_ok());
}

/// A process that was killed within a line: the log goes on behind the last whole one.
#[test]
fn a_torn_log_goes_on_behind_its_last_whole_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("job.log");
    let open = || std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    std::fs::write(&path, "{\"n\":1,").unwrap();
    assert!(LogWriter::reopen(open()).is_err(), "it has no head");
    LogWriter::new(std::fs::File::create(&path).unwrap(), &Head::new(genesis())).unwrap();
    assert_eq!(LogWriter::reopen(open()).unwrap().write(Event::Idle).unwrap(), 1);
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{{\"n\":2,\"event\":\"id")).unwrap();
    assert_eq!(LogWriter::reopen(open()).unwrap().write(Event::Crash).unwrap(), 2);
    let crash = "{\"n\":2,\"event\":\"crash\"}\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), whole + crash);
    std::fs::write(&path, "rubbish\n").unwrap();
    assert!(LogWriter::reopen(open()).is_err());
}
