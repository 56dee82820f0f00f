//! A request, as it comes over HTTP or stands in a log.

use pinfold_core::catalog::{PROTOCOL_VERSION, Register, Role};
use pinfold_core::engine::{Config, Engine, Input, Request, Ticket};
use pinfold_core::id::{Epoch, Incarnation, OwnerId, StartId};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::dto::{Ask, Call};

/// What is taken is written and taken again as the same, in either encoding; and an engine judges
/// it, whoever sent it.
pub(super) fn decode(input: &[u8]) -> bool {
    let Some(call) = super::read_form::<Call>(input) else { return false };
    let request = Request::from(call.ask.clone());
    assert_eq!(Ask::from(request.clone()), call.ask);
    // In the epoch that it believes in, and in the job's.
    judge(call.epoch, request.clone());
    judge(genesis().epoch, request);
    true
}

fn genesis() -> Genesis {
    Genesis {
        namespace: "fuzz".parse().unwrap(),
        epoch: Epoch::from_u128(0xe),
        operator: OwnerId::from_u128(0xa),
        policy: Policy::default(),
        limits: Limits { unanswered: 8, ..Limits::default() },
    }
}

/// Whatever is asked of an engine is answered, and leaves a catalog in which everything adds up.
fn judge(epoch: Epoch, request: Request) {
    let mut engine = Engine::create(Config::default(), genesis()).unwrap();
    let register = Register {
        owner: genesis().operator,
        role: Role::Operator,
        after: Incarnation(0),
        start: StartId::from_u128(1),
        version: PROTOCOL_VERSION,
        expected_policy: None,
    };
    // Somebody is known, so that what comes under his name is looked at.
    for (epoch, request) in [(genesis().epoch, Request::Register(register)), (epoch, request)] {
        engine.submit(Input { ticket: Ticket(1), epoch, request });
        while let Some(batch) = engine.take_batch() {
            engine.commit(batch);
        }
        assert!(engine.poll_output().is_some(), "it is answered");
        while engine.poll_output().is_some() {}
    }
    assert_eq!(engine.catalog().check(), Ok(()));
}
