//! Recovery: a journal of a million events, opened from a cold file.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::catalog::{Command, PROTOCOL_VERSION, Register, Role};
use pinfold_core::engine::{Config, Effect, Engine, Input, Output, Reply, Request, Ticket};
use pinfold_core::id::{ConversationId, Incarnation, OpId, OwnerId, PinId, StartId, TurnId};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome, TurnKey};
use pinfold_host::journal::{Journal, JournalOptions, SegmentLog};

use crate::load::{genesis, prepare};
use crate::{Line, ROUNDS};

const EVENTS: u64 = 1_000_000;
const CONVERSATIONS: u64 = 10_000;

/// Writes the journal, and opens it with and without a snapshot.
pub(crate) fn measure(dir: &Path, lines: &mut Vec<Line>) {
    for (what, snapshot_bytes) in [("no snapshot", u64::MAX), ("snapshots", 32 << 20)] {
        let job = dir.join("recovery");
        let options = JournalOptions { snapshot_bytes, ..JournalOptions::default() };
        let bytes = write(&job, options);
        let mut seconds = Vec::new();
        let mut cold = true;
        for _ in 0..ROUNDS {
            cold &= drop_caches();
            let begin = Instant::now();
            let (log, recovered) = SegmentLog::open(&job, options).expect("a good journal");
            let engine = Engine::resume(Config::default(), recovered.replay).expect("an engine");
            seconds.push((begin.elapsed().as_secs_f64(), 0.0, 0.0));
            assert!(engine.catalog().gauges().checkpoints > 0);
            drop(log);
        }
        let (seconds, ..) = crate::median(&mut seconds);
        let heat = if cold { "cold" } else { "warm: caches cannot be dropped here" };
        let name = format!("recovery of {EVENTS} events, {what}, {heat}, s");
        lines.push(Line::at_most(&name, seconds, 1.0));
        let mib = bytes as f64 / f64::from(1 << 20);
        lines.push(Line::new(&format!("  the journal's files, {what}, MiB"), format!("{mib:.0}")));
        fs::remove_dir_all(&job).expect("removed");
    }
}

/// Asks the kernel to forget what it has read; only an administrator may.
fn drop_caches() -> bool {
    fs::write("/proc/sys/vm/drop_caches", "1").is_ok()
}

/// A journal of a million events; its size on disk.
fn write(dir: &Path, options: JournalOptions) -> u64 {
    let job = genesis();
    let mut log = SegmentLog::create(dir, job.epoch, options).expect("a journal");
    let mut writer = Writer::new(Engine::create(Config::default(), job).expect("an engine"));
    let incarnation = writer.register();
    let mut number = 0;
    while writer.engine.position() < EVENTS {
        number += 1;
        writer.turn(incarnation, number);
        if writer.engine.is_full() {
            writer.commit(&mut log);
        }
    }
    writer.commit(&mut log);
    // The journal was written at once, in much less time than a job takes for it.
    while snapshot_is_due(&log, options) {
        thread::sleep(Duration::from_millis(20));
    }
    drop(log);
    let sizes = fs::read_dir(dir.join("journal")).expect("a folder");
    sizes.map(|entry| entry.and_then(|entry| entry.metadata()).map_or(0, |found| found.len())).sum()
}

fn snapshot_is_due(log: &SegmentLog, options: JournalOptions) -> bool {
    let report = log.snapshots();
    let report = report.lock().expect("nobody panicked");
    assert_eq!(report.failure, None);
    options.snapshot_bytes != u64::MAX && report.taken == 0
}

struct Writer {
    engine: Engine,
    sequence: u64,
    deletes: Vec<Command>,
}

impl Writer {
    const fn new(engine: Engine) -> Self {
        Self { engine, sequence: 0, deletes: Vec::new() }
    }

    fn register(&mut self) -> Incarnation {
        let register = Register {
            owner: OwnerId::of_name("worker"),
            role: Role::Worker,
            after: Incarnation(0),
            start: StartId::of_name("start"),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        self.submit(Request::Register(register));
        Incarnation(1)
    }

    /// Everything that one turn asks of the catalog. The answers are known in advance, so that
    /// nothing waits for a sync.
    fn turn(&mut self, incarnation: Incarnation, number: u64) {
        let owner = OwnerId::of_name("worker");
        let ask = |writer: &mut Self, command| {
            writer.sequence += 1;
            let op = OpId { owner, incarnation, sequence: writer.sequence };
            writer.submit(Request::Command(op, command));
            op
        };
        for command in std::mem::take(&mut self.deletes) {
            ask(self, command);
        }
        let op = ask(self, Command::Prepare(prepare(number)));
        let pin = PinId { op, place: 0 };
        let evidence = Evidence::QuiescedSuccess;
        ask(self, Command::Settle { pin, shard: None, evidence });
        let turn = TurnKey {
            conversation: ConversationId::from_u128(u128::from(number % CONVERSATIONS) + 1),
            turn: TurnId::from_u128(u128::from(number)),
        };
        ask(self, Command::Publish { pin, turn: Some(turn) });
        ask(self, Command::Release { pin });
        ask(self, Command::Collect { limit: 8 });
    }

    fn submit(&mut self, request: Request) {
        let epoch = genesis().epoch;
        self.engine.submit(Input { ticket: Ticket(0), epoch, request });
    }

    fn commit(&mut self, log: &mut SegmentLog) {
        while let Some(batch) = self.engine.take_batch() {
            log.append(batch.bytes()).expect("a good disk");
            self.engine.commit(batch);
            while let Some(output) = self.engine.poll_output() {
                match output {
                    Output::Effect(Effect::Delete { checkpoint, objects, .. }) => {
                        let gone = |object| (object, DeleteOutcome::Gone);
                        let outcomes = objects.into_iter().map(gone).collect();
                        self.deletes.push(Command::Deleted { checkpoint, outcomes });
                    }
                    Output::Reply(_, Reply::Command(Ok(outcome))) => {
                        assert!(!matches!(outcome, Outcome::AlreadyPublished { .. }));
                    }
                    Output::Reply(_, other) => panic!("refused: {other:?}"),
                }
            }
        }
    }
}
