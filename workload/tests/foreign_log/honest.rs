//! What an honest host writes holds.

use std::io;
use std::sync::{Arc, Mutex};

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::{Engine, Query, Reply, Request};
use pinfold_core::id::{ShardIndex, StartId};
use pinfold_core::outcome::{Evidence, Outcome};
use pinfold_core::policy::{Limits, Policy};
use pinfold_host::dto::Answer;
use pinfold_host::log::{Event, Head, Log, LogWriter};
use pinfold_host::node::Node;
use pinfold_host::owner::Owner;
use pinfold_workload::foreign_log::Verdict;

use crate::log::judged;
use crate::scribe::{Scribe, prepare, turn};
use crate::story::{save, story};

#[test]
fn a_story_holds() {
    let report = story().log.judged();
    assert_eq!((report.verdict, &report.finding), (Verdict::Held, &None));
    assert_eq!(report.unjudged, []);
    let counts = report.counts;
    assert_eq!((counts.crashes, counts.deletes, counts.moves), (1, 2, 8));
    assert_eq!((counts.unanswered, counts.compared), (1, counts.replies));
}

/// Follow-ups are done beside inputs and without them, and a list is one input.
#[test]
fn follow_ups_hold_beside_inputs_and_without() {
    let mut host = Scribe::new(5);
    let mut w = host.register("worker", Role::Worker);
    let mut op = host.register("operator", Role::Operator);
    for number in 1..=5 {
        save(&mut host, &mut w, number);
    }
    let policy = Policy { turns: 1, ..Policy::default() };
    let configure = Command::Configure { policy, limits: Limits::default() };
    let forget = Command::Forget { conversation: turn(1).conversation };
    let list = vec![(op.op(), configure), (op.op(), forget)];
    host.request(Request::List(list));
    while host.idle() {}
    host.ask(&mut w, Command::Collect { limit: 100 });
    let report = judged(&host.text()).unwrap();
    assert_eq!((report.verdict, &report.finding), (Verdict::Held, &None));
    let without = host.text().lines().filter(|line| line.contains("\"idle\"")).count();
    assert!(without > 2, "{without}");
    // Without them the state is another one.
    let text = host.text().replace("\"idle\"", r#"{"store_lost":{"key":"x"}}"#);
    assert_eq!(judged(&text).unwrap().finding.unwrap().rule, "I3");
}

/// After a failed append everything is answered `Poisoned`, and the journal says what it holds.
#[test]
fn a_poisoned_coordinator_holds_and_answers_nothing_more() {
    let mut host = Scribe::new(2);
    let mut w = host.register("worker", Role::Worker);
    let n = host.take(host.job.epoch, Request::Command(w.op(), Command::Collect { limit: 1 }));
    host.write(Event::Reply { to: n, answer: Answer::Poisoned });
    let mut late = Scribe::text(&host);
    let reply = Reply::Command(Ok(Outcome::Released));
    let command = Request::Command(w.op(), Command::Collect { limit: 1 });
    let taken = Event::taken(host.job.epoch, command);
    let behind = host.write(taken);
    host.write(Event::Reply { to: behind, answer: Answer::Poisoned });
    host.crash();
    host.ask(&mut w, Command::Collect { limit: 1 });
    let report = judged(&host.text()).unwrap();
    assert_eq!((report.verdict, &report.finding), (Verdict::Held, &None));
    for (number, event) in [
        Event::taken(host.job.epoch, Request::Query(Query::Gauges)),
        Event::Reply { to: behind, answer: reply.into() },
    ]
    .into_iter()
    .enumerate()
    {
        let n = behind + u64::try_from(number).unwrap();
        late += &(serde_json::to_string(&pinfold_host::log::Line { n, event }).unwrap() + "\n");
    }
    assert_eq!(judged(&late).unwrap().finding.unwrap().rule, "I10");
}

/// What a writer wrote, once it is flushed.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Follow-ups of a node that was opened again, before anybody watches it.
#[test]
fn a_node_that_went_on_before_it_was_watched_holds() {
    let dir = tempfile::tempdir().unwrap();
    let job = Scribe::new(40).job;
    let paper = Paper::default();
    let log = Log::new(LogWriter::new(paper.clone(), &Head::new(job.clone())).unwrap());
    let (node, _effects) = Node::create(dir.path(), job).unwrap();
    node.watch(Box::new(log.clone())).unwrap();
    let owner = |node: &Node, name, role| {
        Owner::register(node.client(), name, role, StartId::from_u128(1)).unwrap()
    };
    let worker = owner(&node, "worker", Role::Worker);
    for number in 1..=40 {
        keep(&worker, number);
    }
    let operator = owner(&node, "operator", Role::Operator);
    let policy = Policy { turns: 1, ..Policy::default() };
    let configure = Command::Configure { policy, limits: Limits::default() };
    operator.ask(configure).unwrap().unwrap();
    node.stop().unwrap();
    log.crashed();
    let (node, _effects, recovery) = Node::open(dir.path()).unwrap();
    let waits = |engine: &Engine, _| engine.catalog().next_follow_up().is_some();
    while node.client().inspect(waits).unwrap() {
        std::thread::yield_now();
    }
    log.recovered(recovery.records);
    node.watch(Box::new(log.clone())).unwrap();
    worker.reconnect(node.client()).unwrap();
    worker.ask(Command::Collect { limit: 1000 }).unwrap().unwrap();
    node.stop().unwrap();
    log.finish().unwrap();
    let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("\"idle\""), "nothing was left to do");
    let report = judged(&text).unwrap();
    assert_eq!((report.verdict, &report.finding), (Verdict::Held, &None));
}

/// Publishes a position, whose bytes are nobody's concern here.
fn keep(worker: &Owner, number: u8) {
    let ask = |command| worker.ask(command).unwrap().unwrap();
    let Outcome::Prepared { pin, .. } = ask(Command::Prepare(prepare(number))) else { panic!() };
    let (shard, evidence) = (Some(ShardIndex(0)), Evidence::QuiescedSuccess);
    ask(Command::Settle { pin, shard, evidence });
    ask(Command::Publish { pin, turn: Some(turn(number)) });
    ask(Command::Release { pin });
}

/// A node that many threads ask, over two lives, watched by a log.
#[test]
fn a_node_under_load_holds() {
    let dir = tempfile::tempdir().unwrap();
    let job = Scribe::new(3).job;
    let paper = Paper::default();
    let writer = LogWriter::new(io::BufWriter::new(paper.clone()), &Head::new(job.clone()));
    let log = Log::new(writer.unwrap());
    for life in 0..2 {
        let (node, _effects) = match life {
            0 => Node::create(dir.path(), job.clone()).unwrap(),
            _ => {
                let (node, effects, recovery) = Node::open(dir.path()).unwrap();
                log.recovered(recovery.records);
                (node, effects)
            }
        };
        node.watch(Box::new(log.clone())).unwrap();
        std::thread::scope(|scope| {
            for number in 0..4_u8 {
                let client = node.client();
                scope.spawn(move || {
                    let start = StartId::from_u128(1 + life);
                    let name = format!("worker {number}");
                    let owner = Owner::register(client, &name, Role::Worker, start).unwrap();
                    for _ in 0..20 {
                        owner.ask(Command::Collect { limit: 3 }).unwrap().unwrap();
                    }
                });
            }
        });
        assert!(node.watch(Box::new(log.clone())).is_err(), "too late to see everything");
        node.stop().unwrap();
        log.crashed();
    }
    log.finish().unwrap();
    let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    let report = judged(&text).unwrap();
    assert_eq!((report.verdict, &report.finding), (Verdict::Held, &None));
    assert_eq!((report.counts.commands, report.counts.crashes), (160, 2));
}
