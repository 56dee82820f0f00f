//! True stories with one thing told wrongly: the judge must name the promise that it breaks.

use pinfold_core::catalog::{
    Blocker, Change, Command, DeleteWork, Event, FollowUp, Prepare, Role, Shape, ShardShape,
    Verdict,
};
use pinfold_core::engine::{Effect, Query, Reply, Request};
use pinfold_core::few::Few;
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Generation, Key, ManifestDigest,
    ObjectId, OpId, PinId, ShardIndex, TurnId,
};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{
    DeleteOutcome, Evidence, Limit, Loss, LostObject, Outcome, Rejection, TurnKey,
};
use pinfold_core::policy::{Limits, Policy};
use pinfold_sim::seen::Seen;
use pinfold_sim::spec::Lockstep;
use pinfold_sim::violation::Violation;

use crate::rig::{self, Rig};

const OPERATOR: u128 = 1;
const WORKER: u128 = 2;

/// A job that keeps one turn, with an operator and a worker.
fn rig() -> Rig {
    let mut rig = Rig::new(rig::job(Policy { turns: 1, ..Policy::default() }, Limits::default()));
    rig.join(OPERATOR, Role::Operator);
    rig.join(WORKER, Role::Worker);
    rig
}

fn prepare(number: u128) -> Prepare {
    Prepare {
        attempt: AttemptId::from_u128(number),
        endpoint: EndpointId::from_u128(number),
        digest: ManifestDigest::from_bytes([7; 32]),
        shape: Shape::new(&[ShardShape { objects: 2, bytes: 60 }]).expect("a good shape"),
        shards: vec![ShardIndex(0)],
    }
}

fn turn(number: u128) -> TurnKey {
    TurnKey { conversation: ConversationId::from_u128(1), turn: TurnId::from_u128(number) }
}

fn checkpoint(number: u128) -> CheckpointId {
    let generation = Generation(u64::try_from(number).expect("a small number"));
    CheckpointId { endpoint: EndpointId::from_u128(number), generation }
}

impl Rig {
    /// Begins to save the next checkpoint, which has this number.
    fn begin(&mut self, number: u128) -> PinId {
        match self.send(WORKER, Command::Prepare(prepare(number))) {
            Reply::Command(Ok(Outcome::Prepared { pin, .. })) => pin,
            other => panic!("prepared: {other:?}"),
        }
    }

    fn settle(&mut self, pin: PinId, evidence: Evidence) {
        self.send(WORKER, Command::Settle { pin, shard: None, evidence });
    }

    /// Saves a checkpoint and publishes a turn of its number on it; the pin stays.
    fn save(&mut self, number: u128) -> PinId {
        let pin = self.begin(number);
        self.settle(pin, Evidence::QuiescedSuccess);
        self.send(WORKER, Command::Publish { pin, turn: Some(turn(number)) });
        pin
    }

    /// A checkpoint that failed, and that nothing holds.
    fn fail(&mut self, number: u128) {
        let pin = self.begin(number);
        self.settle(pin, Evidence::QuiescedFailure);
        self.send(WORKER, Command::Release { pin });
    }
}

/// What a new judge says of a story.
fn judge(rig: &Rig, seen: &[Seen]) -> Result<Lockstep, Violation> {
    let mut judge = Lockstep::new(&rig.job);
    for seen in seen {
        judge.see(seen)?;
    }
    judge.at_rest()?;
    Ok(judge)
}

/// The true story is good, and the story as it is told breaks this promise.
fn breaks(rig: &Rig, invariant: Invariant, tell: impl FnOnce(&mut Vec<Seen>)) {
    let mut seen = rig.seen.clone();
    judge(rig, &seen).expect("a true story");
    tell(&mut seen);
    let violation = judge(rig, &seen).expect_err("a wrong story");
    assert_eq!(violation.invariant, invariant, "{violation}");
}

fn reply(seen: &mut [Seen]) -> &mut Reply {
    let mut replies = seen.iter_mut().rev();
    replies
        .find_map(|seen| match seen {
            Seen::Replied { reply, .. } => Some(reply),
            _ => None,
        })
        .expect("a reply")
}

fn events(seen: &mut [Seen]) -> &mut Vec<Event> {
    let mut synced = seen.iter_mut().rev();
    synced
        .find_map(|seen| match seen {
            Seen::Synced { events } => Some(events),
            _ => None,
        })
        .expect("a sync")
}

fn change(seen: &mut [Seen]) -> &mut Change {
    let event = events(seen).first_mut();
    match event {
        Some(Event::Decided { change, .. }) => change,
        other => panic!("decided: {other:?}"),
    }
}

fn answers(outcome: Outcome) -> impl FnOnce(&mut Vec<Seen>) {
    move |seen| *reply(seen) = Reply::Command(Ok(outcome))
}

fn refuses(rejection: Rejection) -> impl FnOnce(&mut Vec<Seen>) {
    move |seen| *reply(seen) = Reply::Command(Err(rejection))
}

fn full() -> Rejection {
    Rejection::LimitExceeded { limit: Limit::Pins, bound: 1, needed: 2 }
}

/// Protocol 4: which turn expires, and that an expired one never returns.
#[test]
fn a_wrong_ledger_is_refused() {
    let mut rig = rig();
    rig.save(1);
    let pin = rig.save(2);
    let published = |expired| Outcome::Published { expired, follow_ups: false };
    breaks(&rig, Invariant::I6, answers(published(None)));
    breaks(&rig, Invariant::I6, answers(published(Some(turn(2)))));
    breaks(&rig, Invariant::I6, |seen| {
        *change(seen) =
            Change::Published { checkpoint: checkpoint(2), turn: Some(turn(2)), expired: None };
    });
    let waits = Outcome::Published { expired: Some(turn(1)), follow_ups: true };
    breaks(&rig, Invariant::I11, answers(waits));
    breaks(&rig, Invariant::I6, |seen| {
        events(seen).push(Event::FollowedUp(FollowUp::Expire { turn: turn(2) }));
    });
    rig.send(WORKER, Command::Publish { pin, turn: Some(turn(1)) });
    breaks(&rig, Invariant::I7, answers(published(None)));
    breaks(&rig, Invariant::I7, |seen| {
        let checkpoint = checkpoint(2);
        *change(seen) = Change::Published { checkpoint, turn: Some(turn(1)), expired: None };
    });
}

/// Protocol 4: all or nothing, and nothing lost or failed is served.
#[test]
fn serving_too_much_is_refused() {
    let mut rig = rig();
    let pin = rig.begin(1);
    let turn = Some(turn(1));
    rig.send(WORKER, Command::Publish { pin, turn });
    breaks(&rig, Invariant::I4, |seen| {
        *change(seen) = Change::Published { checkpoint: checkpoint(1), turn, expired: None };
    });
    rig.settle(pin, Evidence::QuiescedSuccess);
    let object = LostObject::Shared(0);
    let lost = Command::Lost { checkpoint: checkpoint(1), object, why: Loss::Absent };
    rig.send(WORKER, lost);
    let candidates = vec![EndpointId::from_u128(1)];
    rig.send(WORKER, Command::Pin { candidates, limit: 1 });
    breaks(&rig, Invariant::I9, |seen| {
        let mut checkpoints = Few::new();
        assert!(checkpoints.push(checkpoint(1)));
        *change(seen) = Change::Pinned { checkpoints };
    });
    rig.query(Query::Blockers(checkpoint(1)));
    breaks(&rig, Invariant::I9, |seen| match reply(seen) {
        Reply::Blockers(Some(all)) => all.blockers.retain(|there| *there != Blocker::Lost),
        other => panic!("blockers: {other:?}"),
    });
}

/// Protocol 4: what a checkpoint is does not change, and no generation is minted twice.
#[test]
fn another_manifest_is_refused() {
    let mut rig = rig();
    rig.save(1);
    let candidates = vec![EndpointId::from_u128(1)];
    rig.send(WORKER, Command::Pin { candidates, limit: 1 });
    breaks(&rig, Invariant::I5, |seen| {
        let mut answers = Few::new();
        let digest = ManifestDigest::from_bytes([8; 32]);
        let checkpoint = checkpoint(1);
        assert!(answers.push(pinfold_core::outcome::Pinned { checkpoint, digest }));
        *reply(seen) = Reply::Command(Ok(Outcome::Pinned(answers)));
    });
    rig.begin(2);
    breaks(&rig, Invariant::I17, |seen| {
        *change(seen) = Change::Prepared { prepare: prepare(2), generation: Generation(1) };
    });
    rig.send(WORKER, Command::Prepare(Prepare { attempt: AttemptId::from_u128(9), ..prepare(2) }));
    breaks(&rig, Invariant::I9, |seen| {
        let prepare = Prepare { attempt: AttemptId::from_u128(9), ..prepare(2) };
        *change(seen) = Change::Prepared { prepare, generation: Generation(3) };
    });
}

/// Protocol 5 and 8: pins end by evidence alone, and no limit refuses what lifts.
#[test]
fn a_pin_that_ends_wrongly_is_refused() {
    let mut rig = rig();
    let pin = rig.begin(1);
    breaks(&rig, Invariant::I8, |seen| {
        events(seen).push(Event::FollowedUp(FollowUp::EndPin { pin }));
    });
    rig.settle(pin, Evidence::InDoubt);
    breaks(&rig, Invariant::I8, answers(Outcome::Settled { evidence: Evidence::NotExposed }));
    rig.send(WORKER, Command::Release { pin });
    breaks(&rig, Invariant::I8, |seen| *change(seen) = Change::Released { pin });
    rig.settle(pin, Evidence::QuiescedFailure);
    breaks(&rig, Invariant::I18, refuses(full()));
    rig.send(WORKER, Command::Release { pin });
    breaks(&rig, Invariant::I18, |seen| *change(seen) = Change::Refused(full()));
}

/// Protocol 6: a command is decided once; another epoch and an old incarnation change nothing.
#[test]
fn a_wrong_retry_is_refused() {
    let mut rig = rig();
    rig.begin(1);
    let op = rig.next_op(WORKER);
    let ask = Request::Command(op, Command::Collect { limit: 1 });
    rig.ask(ask.clone());
    let decided = events(&mut rig.seen).first().cloned().expect("a record");
    rig.ask(ask.clone());
    breaks(&rig, Invariant::I14, answers(Outcome::Collected { objects: 1, more: false }));
    breaks(&rig, Invariant::I14, refuses(Rejection::OpConflict));
    let again = |seen: &mut Vec<Seen>| {
        let place = seen.len() - 1;
        seen.insert(place, Seen::Synced { events: vec![decided] });
    };
    breaks(&rig, Invariant::I14, again);
    rig.submit(Epoch::from_u128(3), ask);
    rig.sync();
    breaks(&rig, Invariant::I12, answers(Outcome::Collected { objects: 0, more: false }));
    rig.join(WORKER, Role::Worker);
    rig.ask(Request::Command(OpId { sequence: 9, ..op }, Command::Collect { limit: 1 }));
    breaks(&rig, Invariant::I12, answers(Outcome::Collected { objects: 0, more: false }));
    rig.send(WORKER, Command::Collect { limit: 1 });
    breaks(&rig, Invariant::I14, |seen| {
        let ticket = rig::last_ticket(seen);
        seen.push(Seen::Replied { ticket, reply: Reply::Job(rig.job.clone()) });
    });
}

/// Protocol 8 and 10: what is counted, and what a limit refuses.
#[test]
fn wrong_figures_are_refused() {
    let mut rig = rig();
    rig.save(1);
    rig.query(Query::Gauges);
    breaks(&rig, Invariant::I13, |seen| match reply(seen) {
        Reply::Gauges(gauges) => gauges.bytes_pinned += 1,
        other => panic!("gauges: {other:?}"),
    });
    rig.query(Query::Blockers(checkpoint(1)));
    breaks(&rig, Invariant::I8, |seen| match reply(seen) {
        Reply::Blockers(Some(all)) => all.blockers.truncate(1),
        other => panic!("blockers: {other:?}"),
    });
    let object = ObjectId { shard: ShardIndex(0), index: 1 };
    let Rig { job, .. } = &rig;
    let (namespace, epoch) = (job.namespace.clone(), job.epoch);
    let key = Key { namespace, epoch, checkpoint: checkpoint(1), object };
    rig.query(Query::Audit(vec![key.to_string()]));
    breaks(&rig, Invariant::I17, |seen| *reply(seen) = Reply::Audit(vec![Verdict::Stray]));
    rig.begin(2);
    breaks(&rig, Invariant::I13, |seen| *change(seen) = Change::Refused(full()));
}

/// Protocol 4: delete work names what nothing holds, oldest first, and all of it in the end.
#[test]
fn wrong_delete_work_is_refused() {
    let mut rig = rig();
    rig.save(1);
    rig.fail(2);
    rig.fail(3);
    rig.send(WORKER, Command::Collect { limit: 2 });
    let collected = |number| {
        let mut work = Few::new();
        let checkpoint = checkpoint(number);
        assert!(work.push(DeleteWork { checkpoint, first: 0, count: 2 }));
        Change::Collected { work, more: true }
    };
    breaks(&rig, Invariant::I3, |seen| *change(seen) = collected(1));
    breaks(&rig, Invariant::I3, |seen| *change(seen) = collected(3));
    breaks(&rig, Invariant::L1, |seen| {
        *change(seen) = Change::Collected { work: Few::new(), more: true };
    });
    breaks(&rig, Invariant::L1, answers(Outcome::Collected { objects: 2, more: false }));
    breaks(&rig, Invariant::L1, |seen| {
        seen.retain(|seen| !matches!(seen, Seen::HandedOut { .. }));
    });
    breaks(&rig, Invariant::I3, |seen| {
        for seen in seen {
            if let Seen::HandedOut { effect: Effect::Delete { objects, .. } } = seen {
                objects.pop();
            }
        }
    });
    let object = |index| ObjectId { shard: ShardIndex(0), index };
    let outcomes = vec![(object(0), DeleteOutcome::Gone)];
    rig.send(WORKER, Command::Deleted { checkpoint: checkpoint(2), outcomes });
    breaks(&rig, Invariant::L1, answers(Outcome::Deleted { left: 0 }));
}

/// Protocol 7: nothing leaves before its record is durable, and what is due is done.
#[test]
fn what_is_not_durable_is_refused() {
    let mut rig = rig();
    rig.begin(1);
    breaks(&rig, Invariant::I10, |seen| {
        let place = seen.len() - 2;
        assert!(matches!(seen[place], Seen::Synced { .. }));
        seen.remove(place);
    });
    let worker = rig.clients[&pinfold_core::id::OwnerId::from_u128(WORKER)].0;
    let owner = pinfold_core::id::OwnerId::from_u128(WORKER);
    rig.begin(2);
    rig.send(OPERATOR, Command::Fence { owner, incarnation: worker });
    rig.rest();
    breaks(&rig, Invariant::I6, |seen| {
        assert!(matches!(events(seen).pop(), Some(Event::FollowedUp(_))));
    });
    rig.send(OPERATOR, Command::Collect { limit: 9 });
    breaks(&rig, Invariant::I11, |seen| {
        let mut synced = seen.iter_mut().filter_map(|seen| match seen {
            Seen::Synced { events } => Some(events),
            _ => None,
        });
        let fence = synced.find(|events| events.len() > 1).expect("a fence and its first end");
        assert!(matches!(fence.pop(), Some(Event::FollowedUp(_))));
        let next = synced.next().expect("the second end");
        assert!(matches!(next.pop(), Some(Event::FollowedUp(_))));
    });
    breaks(&rig, Invariant::I10, |seen| {
        let handed = seen.iter().position(|seen| matches!(seen, Seen::HandedOut { .. }));
        seen.truncate(handed.expect("delete work") + 1);
        seen.retain(|seen| match seen {
            Seen::Synced { events } => !matches!(
                events.first(),
                Some(Event::Decided { change: Change::Collected { .. }, .. })
            ),
            _ => true,
        });
        seen.push(Seen::Crashed);
    });
}

/// A full frame may part a follow-up's record from that of the command beside it.
#[test]
fn a_follow_up_may_be_durable_after_the_reply() {
    let mut rig = rig();
    rig.begin(1);
    rig.begin(2);
    let owner = pinfold_core::id::OwnerId::from_u128(WORKER);
    let incarnation = rig.clients[&owner].0;
    rig.send(OPERATOR, Command::Fence { owner, incarnation });
    let mut seen = rig.seen.clone();
    let follow_up = events(&mut seen).pop().expect("the end of a pin");
    assert!(matches!(follow_up, Event::FollowedUp(_)));
    seen.push(Seen::Synced { events: vec![follow_up] });
    rig.rest();
    seen.extend_from_slice(&rig.seen[seen.len() - 1..]);
    let judged = judge(&rig, &seen).expect("a true story");
    assert_eq!(judged, judge(&rig, &rig.seen).expect("a true story"));
}
