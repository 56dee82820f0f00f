//! Commands at the bounds of their form: what is as large as it may be is taken, and what is larger
//! is refused as malformed, by the field.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use pinfold_core::bounds::{MAX_ANSWERS, MAX_CANDIDATES, MAX_COLLECT};
use pinfold_core::catalog::{Catalog, Command, Decision, Event, PROTOCOL_VERSION, Register, Role};
use pinfold_core::id::{
    CheckpointId, EndpointId, Epoch, Generation, Incarnation, ObjectId, OpId, OwnerId, ShardIndex,
    StartId,
};
use pinfold_core::outcome::{DeleteOutcome, Field, Malformed, Problem, Rejection};
use pinfold_core::policy::{Genesis, Limits, Policy};

const OPERATOR: OwnerId = OwnerId::from_u128(7);
const EPOCH: Epoch = Epoch::from_u128(1);

fn job() -> Catalog {
    let mut catalog = Catalog::new(Genesis {
        namespace: "bounds".parse().unwrap(),
        epoch: EPOCH,
        operator: OPERATOR,
        policy: Policy::default(),
        limits: Limits::default(),
    })
    .unwrap();
    let register = Register {
        owner: OPERATOR,
        role: Role::Operator,
        after: Incarnation(0),
        start: StartId::from_u128(8),
        version: PROTOCOL_VERSION,
        expected_policy: None,
    };
    let Decision::Event(event) = catalog.decide_registration(EPOCH, &register) else {
        panic!("the operator may not register")
    };
    let Event::Registered { incarnation: Incarnation(1), .. } = event else { panic!("{event:?}") };
    catalog.apply(&event);
    catalog
}

/// What is wrong with the form of a command, if anything is.
fn malformed(command: Command) -> Option<Malformed> {
    let op = OpId { owner: OPERATOR, incarnation: Incarnation(1), sequence: 1 };
    match job().decide(EPOCH, op, command) {
        Decision::Answer(Err(Rejection::Malformed(malformed))) => Some(malformed),
        Decision::Answer(Ok(_) | Err(_)) | Decision::Event(_) => None,
    }
}

/// Three sizes around a bound: the largest that is taken, and two beyond it.
fn at_the_bound(bound: u32, field: Field, of_size: impl Fn(u32) -> Command) {
    assert_eq!(malformed(of_size(bound)), None, "{field:?}");
    for larger in [bound + 1, bound + 2] {
        let too_large = Malformed { field, problem: Problem::TooLarge };
        assert_eq!(malformed(of_size(larger)), Some(too_large), "{larger}");
    }
}

/// Protocol 8.
#[test]
fn what_is_as_large_as_it_may_be_is_taken() {
    let endpoint = |number: u32| EndpointId::from_u128(u128::from(number) + 1);
    at_the_bound(MAX_CANDIDATES, Field::Candidates, |size| Command::Pin {
        candidates: (0..size).map(endpoint).collect(),
        limit: 1,
    });
    at_the_bound(MAX_ANSWERS, Field::Limit, |limit| Command::Pin {
        candidates: vec![endpoint(0)],
        limit,
    });
    at_the_bound(MAX_COLLECT, Field::Limit, |limit| Command::Collect { limit });
    let checkpoint = CheckpointId { endpoint: endpoint(0), generation: Generation(1) };
    let gone = |index| (ObjectId { shard: ShardIndex(0), index }, DeleteOutcome::Gone);
    at_the_bound(MAX_COLLECT, Field::Objects, |size| Command::Deleted {
        checkpoint,
        outcomes: (0..size).map(gone).collect(),
    });
}
