//! What a coordinator answers, as a client takes it: it may be anybody's.

use std::sync::Mutex;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::{Reply, Request};
use pinfold_core::id::{Epoch, Incarnation, OwnerId, StartId};
use pinfold_core::outcome::Outcome;
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::coordinator::Coordinator;
use pinfold_host::dto::{Answer, WorkList};
use pinfold_host::node::Gone;
use pinfold_host::owner::Owner;

/// What is taken is written and taken again as the same; and an owner that is answered so, at its
/// registration or after it, goes on or says why not.
pub(super) fn decode(input: &[u8]) -> bool {
    if let Ok(work) = serde_json::from_slice::<WorkList>(input) {
        let written = serde_json::to_vec(&work).unwrap();
        assert_eq!(serde_json::from_slice::<WorkList>(&written).unwrap(), work);
        work.work.iter().for_each(|item| drop(item.effect()));
        return true;
    }
    let Ok(answer) = serde_json::from_slice::<Answer>(input) else { return false };
    let written = serde_json::to_vec(&answer).unwrap();
    assert_eq!(serde_json::from_slice::<Answer>(&written).unwrap(), answer);
    let Some(reply) = answer.clone().into_reply() else {
        assert_eq!(answer, Answer::Unknown);
        return true;
    };
    assert_eq!(Answer::from(reply.clone()), answer);
    for honest in 0..3 {
        survive(honest, &reply);
    }
    true
}

/// A coordinator that answers well for a while, and then always the same.
#[derive(Debug)]
struct Says {
    honest: Mutex<Vec<Reply>>,
    then: Reply,
}

impl Coordinator for Says {
    fn call(&self, _: Request) -> Result<Reply, Gone> {
        Ok(self.honest.lock().unwrap().pop().unwrap_or_else(|| self.then.clone()))
    }
}

fn survive(honest: usize, then: &Reply) {
    let job = Genesis {
        namespace: "fuzz".parse().unwrap(),
        epoch: Epoch::from_u128(0xe),
        operator: OwnerId::from_u128(0xa),
        policy: Policy::default(),
        limits: Limits::default(),
    };
    let registered = Reply::Command(Ok(Outcome::Registered { incarnation: Incarnation(3) }));
    let mut first = vec![Reply::Job(job), registered];
    first.truncate(honest);
    first.reverse();
    let says = Says { honest: Mutex::new(first), then: then.clone() };
    let start = StartId::from_u128(1);
    let Ok(owner) = Owner::register(says, "w", Role::Worker, start) else { return };
    let collect = Command::Collect { limit: 1 };
    // How it ends is the owner's to say; one that is told nonsense may leave both unanswered.
    let _ = owner.ask(collect.clone());
    if owner.unanswered().is_empty() {
        let _ = owner.ask_all(vec![collect.clone(), collect]);
    }
    assert!(owner.unanswered().len() <= 2);
}
