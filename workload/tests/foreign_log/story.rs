//! One job's life, told by an honest host, and where in the log each part of it stands.

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::{Query, Request};
use pinfold_core::id::{CheckpointId, Epoch, PinId};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Loss, LostObject, Outcome};
use pinfold_host::log::{Cause, Event, Way};

use crate::log::Lines;
use crate::scribe::{Scribe, Sender, endpoint, objects, turn};

/// The lines of the story by what they are.
pub(crate) struct Story {
    pub(crate) log: Lines,
    /// The first put of checkpoint 3.
    pub(crate) put: u64,
    /// The settle of checkpoint 3's save.
    pub(crate) settle: u64,
    /// The publication that expires turn 1.
    pub(crate) publish: u64,
    pub(crate) release: u64,
    /// A publication before the settle.
    pub(crate) too_early: u64,
    /// The `Collect` of checkpoint 1.
    pub(crate) collect: u64,
    pub(crate) work: u64,
    pub(crate) delete: u64,
    /// A `Pin` of checkpoint 3, for a load.
    pub(crate) pin: u64,
    /// The first object's way into memory, and the adoption.
    pub(crate) got: u64,
    pub(crate) adopted: u64,
    /// A `Pin` of the lost checkpoint 2, answered with nothing.
    pub(crate) pin_lost: u64,
    /// The operation of `pin_lost` again.
    pub(crate) repeat: u64,
    pub(crate) wrong_epoch: u64,
    pub(crate) recovered: u64,
    /// A publication of the expired turn 1.
    pub(crate) expired: u64,
    pub(crate) audit: u64,
    /// A key of checkpoint 3, which a turn refers to, and of checkpoint 4, which a pin holds.
    pub(crate) retained_key: String,
    pub(crate) pinned_key: String,
    /// What a `Pin` of checkpoint 2 would be answered, were it not lost.
    pub(crate) lost: (CheckpointId, u8),
}

pub(crate) fn story() -> Story {
    let mut host = Scribe::new(2);
    let mut w = host.register("worker", Role::Worker);
    save(&mut host, &mut w, 1);
    let second = save(&mut host, &mut w, 2);
    let (pin, third) = host.prepare(&mut w, 3);
    let too_early = host.refused(&mut w, Command::Publish { pin, turn: Some(turn(3)) });
    let (put, settle) = host.fill(&mut w, pin, third);
    let publish = host.ask(&mut w, Command::Publish { pin, turn: Some(turn(3)) }).0;
    let release = host.ask(&mut w, Command::Release { pin }).0;
    let (_, fourth) = host.prepare(&mut w, 4);
    let collect = host.ask(&mut w, Command::Collect { limit: 10 }).0;
    let (first, gone) = host.work.pop_front().unwrap();
    let mut delete = 0;
    for object in &gone {
        let (key, outcome) = (host.key(first, *object), DeleteOutcome::Gone);
        delete = host.write(Event::Delete { key, why: Cause::Work, outcome });
    }
    let outcomes = gone.iter().map(|object| (*object, DeleteOutcome::Gone)).collect();
    host.ask(&mut w, Command::Deleted { checkpoint: first, outcomes });
    let (pin, held) = hold(&mut host, &mut w, 3);
    let got = host.carry(Way::Get, &host.key(third, objects()[0]), held);
    host.carry(Way::Get, &host.key(third, objects()[1]), held);
    let adopted = host.adopt(held, third);
    let expired = host.refused(&mut w, Command::Publish { pin: held, turn: Some(turn(1)) });
    settle_load(&mut host, &mut w, held);
    let held = hold(&mut host, &mut w, 2).1;
    let object = LostObject::Private(objects()[0]);
    host.ask(&mut w, Command::Lost { checkpoint: second, object, why: Loss::Absent });
    settle_load(&mut host, &mut w, held);
    let looked = Command::Pin { candidates: vec![endpoint(2)], limit: 1 };
    let pin_lost = host.ask(&mut w, looked.clone()).0;
    let repeat = host.request(Request::Command(w.last(), looked)).0;
    let wrong_epoch = host.take(Epoch::from_u128(0xBAD), Request::Command(w.op(), collects()));
    host.sync();
    // One input that the crash takes with it, and that is sent again.
    let lost = Request::Command(w.op(), collects());
    host.take(host.job.epoch, lost.clone());
    let recovered = host.crash();
    host.request(lost);
    let keys = vec![host.key(third, objects()[0]), host.key(first, objects()[0])];
    let audit = host.take(host.job.epoch, Request::Query(Query::Audit(keys)));
    host.write(Event::Listed { to: audit });
    host.sync();
    Story {
        log: Lines::of(&host.text()),
        put,
        settle,
        publish,
        release,
        too_early,
        collect,
        work: collect + 1,
        delete,
        pin,
        got,
        adopted,
        pin_lost,
        repeat,
        wrong_epoch,
        recovered,
        expired,
        audit,
        retained_key: host.key(third, objects()[0]),
        pinned_key: host.key(fourth, objects()[0]),
        lost: (second, 2),
    }
}

fn collects() -> Command {
    Command::Collect { limit: 1 }
}

/// Saves a position whole and publishes it.
pub(crate) fn save(host: &mut Scribe, w: &mut Sender, number: u8) -> CheckpointId {
    let (pin, checkpoint) = host.prepare(w, number);
    host.fill(w, pin, checkpoint);
    host.ask(w, Command::Publish { pin, turn: Some(turn(number)) });
    host.ask(w, Command::Release { pin });
    checkpoint
}

fn hold(host: &mut Scribe, w: &mut Sender, number: u8) -> (u64, PinId) {
    let (n, outcome) = host.ask(w, Command::Pin { candidates: vec![endpoint(number)], limit: 1 });
    assert!(matches!(&outcome, Outcome::Pinned(pinned) if pinned.len() == 1), "{outcome:?}");
    (n, PinId { op: w.last(), place: 0 })
}

fn settle_load(host: &mut Scribe, w: &mut Sender, pin: PinId) {
    let evidence = Evidence::QuiescedSuccess;
    host.ask(w, Command::Settle { pin, shard: None, evidence });
}
