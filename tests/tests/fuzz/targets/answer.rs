//! What a coordinator answers, as a client takes it: it may be anybody's.

use std::sync::Mutex;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::{Effect, Reply, Request};
use pinfold_core::id::{Epoch, Incarnation, OwnerId, StartId};
use pinfold_core::outcome::{DeleteOutcome, Outcome};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::coordinator::Coordinator;
use pinfold_host::dto::{Answer, AnswerAndWork, WorkItem, WorkList};
use pinfold_host::node::Gone;
use pinfold_host::owner::Owner;

/// What is taken is written and taken again as the same, in either encoding; and an owner that is
/// answered so, at its registration or after it, goes on or says why not.
pub(super) fn decode(input: &[u8]) -> bool {
    let mut accepted = false;
    if let Some(WorkList { work }) = super::read_form(input) {
        accepted = true;
        judge_work(&work);
    }
    if let Some(AnswerAndWork { answer, work }) = super::read_form(input) {
        accepted = true;
        judge_work(&work);
        judge(&answer);
    }
    if let Some(answer) = super::read_form(input) {
        accepted = true;
        judge(&answer);
    }
    accepted
}

/// What is handed out can be deleted and reported.
fn judge_work(work: &[WorkItem]) {
    for item in work {
        let Effect::Delete { objects, .. } = item.effect();
        let Command::Deleted { outcomes, .. } = item.report(|_| DeleteOutcome::Gone) else {
            panic!("{item:?} is not reported")
        };
        assert_eq!(objects.len(), outcomes.len());
    }
}

fn judge(answer: &Answer) {
    let Some(reply) = answer.clone().into_reply() else {
        assert_eq!(*answer, Answer::Unknown);
        return;
    };
    assert_eq!(Answer::from(reply.clone()), *answer);
    for honest in 0..3 {
        survive(honest, &reply);
    }
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
