//! Random commands of two workers and an operator, in tiny spaces of ids and with tiny limits,
//! against a recount, a replay, a snapshot, repetitions, and an observer from outside.

use pinfold_core::policy::{Limits, Policy, Quarantine};
use proptest::prelude::*;

#[path = "random/choose.rs"]
mod choose;
#[path = "random/facts.rs"]
mod facts;
#[path = "random/observer.rs"]
mod observer;
#[path = "random/world.rs"]
mod world;

use world::World;

/// W: how many receipts are kept.
const W: u32 = 4;

/// One random step: what is done, and small numbers that choose among what there is.
#[derive(Clone, Copy, Debug)]
struct Step {
    verb: Verb,
    who: u8,
    a: u8,
    b: u8,
    /// Send it twice.
    twice: bool,
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Save,
    Prepare,
    Settle,
    Publish,
    Unscoped,
    Release,
    Pin,
    Lost,
    Doubt,
    Collect,
    Deleted,
    Configure,
    Forget,
    Drop,
    Fence,
    Register,
    Retire,
    FollowUp,
    Crash,
    /// A command whose record and reply a crash takes away.
    Lose,
    Snapshot,
    Repeat,
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        6 => Just(Verb::Save),
        6 => Just(Verb::Prepare),
        6 => Just(Verb::Settle),
        6 => Just(Verb::Publish),
        1 => Just(Verb::Unscoped),
        4 => Just(Verb::Release),
        4 => Just(Verb::Pin),
        2 => Just(Verb::Lost),
        2 => Just(Verb::Doubt),
        4 => Just(Verb::Collect),
        4 => Just(Verb::Deleted),
        2 => Just(Verb::Configure),
        1 => Just(Verb::Forget),
        1 => Just(Verb::Drop),
        1 => Just(Verb::Fence),
        2 => Just(Verb::Register),
        1 => Just(Verb::Retire),
        2 => Just(Verb::FollowUp),
        1 => Just(Verb::Crash),
        1 => Just(Verb::Lose),
        1 => Just(Verb::Snapshot),
        3 => Just(Verb::Repeat),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    (verb(), 0..8_u8, 0..16_u8, 0..16_u8, any::<bool>()).prop_map(|(verb, who, a, b, twice)| Step {
        verb,
        who,
        a,
        b,
        twice,
    })
}

fn limits() -> Limits {
    Limits {
        owners: 4,
        pins_per_owner: 4,
        pins: 6,
        bytes_pinned: 400,
        bytes_unscoped: 150,
        bytes_in_doubt: 250,
        bytes_quarantined: 150,
        generations_per_endpoint: 3,
        references_per_turn: 2,
        conversations: 3,
        expired_turns: 12,
        unanswered: W,
        ..Limits::default()
    }
}

fn policy(choice: u8) -> Policy {
    Policy {
        turns: 1 + u32::from(choice & 1),
        conversation_bytes: (choice & 2 > 0).then_some(150),
        job_bytes: (choice & 4 > 0).then_some(200),
        quarantine: if choice & 8 > 0 { Quarantine::Endpoint } else { Quarantine::Generation },
    }
}

/// What deletes are reported, and what `Collect` must reach in the end.
#[derive(Clone, Copy, Debug)]
struct Deletes {
    /// A report may name a part of the objects, whatever was handed out.
    early: bool,
    /// `Collect` alone must empty the store.
    strict: bool,
}

/// Runs the steps, then lets an operator empty the store.
fn live(choice: u8, steps: &[Step], deletes: Deletes) -> Result<(), TestCaseError> {
    let fail = |what: String| TestCaseError::fail(what);
    let mut world = World::new(choice, deletes).map_err(fail)?;
    for (step, number) in steps.iter().zip(1..) {
        world.run(*step).map_err(|what| fail(format!("step {number}, {step:?}: {what}")))?;
    }
    world.end().map_err(|what| fail(format!("at the end: {what}")))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..100)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// The promises hold after every step, and everything can be ended.
    #[test]
    fn promises_hold(choice in 0..16_u8, steps in steps()) {
        live(choice, &steps, Deletes { early: true, strict: false })?;
    }

    /// L1: collecting alone empties the store once nothing is held.
    #[test]
    fn everything_is_collected(choice in 0..16_u8, steps in steps()) {
        live(choice, &steps, Deletes { early: false, strict: true })?;
    }

    /// L1, whatever was reported early.
    #[test]
    fn everything_is_collected_after_early_reports(choice in 0..16_u8, steps in steps()) {
        live(choice, &steps, Deletes { early: true, strict: true })?;
    }
}
