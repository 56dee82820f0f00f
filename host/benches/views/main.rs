//! What looking on costs everybody else: for how long each view of a large job keeps the engine.
//!
//! `cargo bench -p pinfold-host --bench views -- [CHECKPOINTS]`. Whoever asks a node something
//! waits while a view is made, so what counts is the longest look, and not the sum.

#![allow(clippy::unwrap_used, reason = "a benchmark's own steps")]

use std::time::{Duration, Instant};

use pinfold_core::catalog::{
    Command, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape, Walk,
};
use pinfold_core::engine::{Config, Engine, Input, Output, Reply, Request, Ticket};
use pinfold_core::id::{
    AttemptId, ConversationId, EndpointId, Epoch, Generation, Incarnation, ManifestDigest, OpId,
    OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{Evidence, Outcome, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::view::{CheckpointView, ConversationView, JobView, WhyView};

/// Live turns of a conversation.
const TURNS: u64 = 5;
/// Rows of one step of a walk.
const STEP: u32 = 2048;
/// One checkpoint of so many is still pinned.
const PINNED: u64 = 100;

fn main() {
    let asked = std::env::args().skip(1).find_map(|it| it.parse().ok());
    let checkpoints = asked.unwrap_or(1_000_000);
    let began = Instant::now();
    let job = Job::of(checkpoints);
    println!("{checkpoints} checkpoints, made in {:.1} s", began.elapsed().as_secs_f64());
    let catalog = job.engine.catalog();
    timed("gauges", || catalog.gauges());
    timed("inspection, whole", || JobView::of(catalog));
    timed("pins, whole", || catalog.pins());
    timed("live turns, whole", || catalog.live_turns());
    timed("why one checkpoint", || WhyView::of(catalog, Generation(checkpoints / 2)).is_ok());
    timed("why a known checkpoint", || {
        let id = catalog.checkpoints_of(EndpointId::from_u128(u128::from(checkpoints / 2)));
        WhyView::of_known(catalog, Generation(checkpoints / 2), id.first().copied())
    });
    timed("one conversation", || catalog.ledger(ConversationId::from_u128(1)));
    longest("checkpoints", |walk| {
        let ids = catalog.walk_checkpoints(walk, STEP);
        ids.into_iter().filter_map(|id| CheckpointView::of(catalog, id)).count()
    });
    longest("ids of checkpoints", |walk| catalog.walk_checkpoints(walk, STEP).len());
    longest("pins", |walk| catalog.walk_pins(walk, STEP).len());
    timed("a step of conversations", || {
        let rows = catalog.conversations_after(0).take(STEP as usize);
        rows.map(ConversationView::of).collect::<Vec<_>>()
    });
    timed("owners", || catalog.owners_unweighed());
}

/// How long the longest step of a walk takes, and how many there are.
fn longest(name: &str, step: impl Fn(&mut Walk) -> usize) {
    let (mut walk, mut longest, mut steps, mut found) = (Walk::default(), Duration::ZERO, 0, 0);
    let began = Instant::now();
    while !walk.is_over() {
        let began = Instant::now();
        found += step(&mut walk);
        longest = longest.max(began.elapsed());
        steps += 1;
    }
    let (longest, all) = (longest.as_secs_f64() * 1e3, began.elapsed().as_secs_f64() * 1e3);
    println!("{name:24} {longest:10.3} ms at the longest of {steps} steps, {all:.0} ms in all");
    assert!(found > 0, "{name}: nothing was found");
}

/// How long it takes, the least of three.
fn timed<T>(name: &str, what: impl Fn() -> T) {
    let one = || {
        let began = Instant::now();
        drop(std::hint::black_box(what()));
        began.elapsed()
    };
    let least = (0..3).map(|_| one()).min().unwrap_or(Duration::ZERO);
    println!("{name:24} {:10.3} ms", least.as_secs_f64() * 1e3);
}

/// An engine whose journal is nobody's.
struct Job {
    engine: Engine,
    epoch: Epoch,
    incarnation: Incarnation,
    sequence: u64,
}

impl Job {
    fn of(checkpoints: u64) -> Self {
        let epoch = Epoch::from_u128(1);
        let genesis = Genesis {
            namespace: "views".parse().unwrap(),
            epoch,
            operator: OwnerId::from_u128(1),
            policy: Policy::default(),
            limits: Limits::default(),
        };
        let engine = Engine::create(Config::default(), genesis).unwrap();
        let mut job = Self { engine, epoch, incarnation: Incarnation(0), sequence: 0 };
        let register = Register {
            owner: OwnerId::from_u128(2),
            role: Role::Worker,
            after: Incarnation(0),
            start: StartId::from_u128(1),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        match job.submit(Request::Register(register)) {
            Outcome::Registered { incarnation } => job.incarnation = incarnation,
            other => panic!("{other:?}"),
        }
        (0..checkpoints).for_each(|number| job.keep(number));
        job
    }

    fn keep(&mut self, number: u64) {
        let key = u128::from(number) + 1;
        let prepare = Prepare {
            attempt: AttemptId::from_u128(key),
            endpoint: EndpointId::from_u128(key),
            digest: ManifestDigest::from_bytes([1; 32]),
            shape: Shape::new(&[ShardShape { objects: 2, bytes: 1 << 20 }]).unwrap(),
            shards: vec![ShardIndex(0)],
        };
        let Outcome::Prepared { pin, .. } = self.ask(Command::Prepare(prepare)) else { panic!() };
        self.end(pin, number);
    }

    fn end(&mut self, pin: PinId, number: u64) {
        let evidence = Evidence::QuiescedSuccess;
        self.ask(Command::Settle { pin, shard: Some(ShardIndex(0)), evidence });
        let conversation = ConversationId::from_u128(u128::from(number / TURNS) + 1);
        let turn = TurnId::from_u128(u128::from(number) + 1);
        self.ask(Command::Publish { pin, turn: Some(TurnKey { conversation, turn }) });
        if !number.is_multiple_of(PINNED) {
            self.ask(Command::Release { pin });
        }
    }

    fn ask(&mut self, command: Command) -> Outcome {
        self.sequence += 1;
        let (owner, incarnation) = (OwnerId::from_u128(2), self.incarnation);
        let op = OpId { owner, incarnation, sequence: self.sequence };
        self.submit(Request::Command(op, command))
    }

    fn submit(&mut self, request: Request) -> Outcome {
        self.engine.submit(Input { ticket: Ticket(0), epoch: self.epoch, request });
        while let Some(batch) = self.engine.take_batch() {
            self.engine.commit(batch);
        }
        let mut outcome = None;
        while let Some(output) = self.engine.poll_output() {
            if let Output::Reply(_, Reply::Command(reply)) = output {
                outcome = Some(reply.unwrap());
            }
        }
        outcome.unwrap()
    }
}
