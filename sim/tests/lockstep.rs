//! The naive spec beside the real engine: random stories in which they must agree, and wrong ones
//! that it must refuse by the promise that is broken.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::engine::{Reply, Request, Ticket};
use pinfold_core::id::{OpId, OwnerId};
use pinfold_core::outcome::{Outcome, Rejection};

#[path = "lockstep/choose.rs"]
mod choose;
#[path = "lockstep/rig.rs"]
mod rig;
#[path = "lockstep/wrong.rs"]
mod wrong;

use choose::{Chance, Chooser, Heard};
use rig::Rig;

/// One random story, and what was answered in it.
struct Story {
    rig: Rig,
    heard: Heard,
    asked: BTreeMap<Ticket, Request>,
    answers: BTreeSet<String>,
    inputs: u32,
}

impl Story {
    fn new(chance: &mut Chance) -> Self {
        let job = rig::job(choose::policy(chance), choose::limits(chance));
        Self {
            rig: Rig::new(job),
            heard: Heard::default(),
            asked: BTreeMap::new(),
            answers: BTreeSet::new(),
            inputs: 0,
        }
    }

    fn step(&mut self, chance: &mut Chance) {
        match chance.below(100) {
            0..70 => {
                let Self { rig, heard, .. } = self;
                let mut chooser = Chooser { chance, rig, heard };
                let (epoch, request) = (chooser.epoch(), chooser.request());
                let ticket = self.rig.submit(epoch, request.clone());
                self.asked.insert(ticket, request);
                self.inputs += 1;
            }
            70..76 => drop(self.rig.idle()),
            76..97 => self.rig.sync(),
            97 => self.rig.crash(),
            98 => self.crash_with_a_frame(chance.once_in(2)),
            _ => {
                if chance.once_in(4) {
                    self.rig.rest();
                }
            }
        }
        self.listen();
    }

    /// A frame is under way when the coordinator dies: it survives, or not; or its sync fails.
    fn crash_with_a_frame(&mut self, fails: bool) {
        let Some(batch) = self.rig.engine.take_batch() else { return };
        if self.inputs.is_multiple_of(2) {
            self.rig.write(&batch);
        }
        if fails {
            self.rig.engine.fail(batch);
            self.rig.poll();
            self.rig.submit(self.rig.job.epoch, Request::List(Vec::new()));
            self.rig.poll();
        }
        self.rig.crash();
    }

    fn listen(&mut self) {
        for (ticket, reply) in std::mem::take(&mut self.rig.replies) {
            match (self.asked.remove(&ticket), reply) {
                (Some(Request::Register(register)), Reply::Command(answer)) => {
                    if let Ok(Outcome::Registered { incarnation }) = answer {
                        self.rig.clients.insert(register.owner, (incarnation, 1));
                    }
                    self.note("Register.", &answer);
                }
                (Some(Request::Command(op, _)), Reply::Command(answer)) => self.answer(op, answer),
                (Some(Request::List(commands)), Reply::List(answers)) => {
                    for ((op, _), answer) in commands.into_iter().zip(answers) {
                        if let Some(answer) = answer {
                            self.answer(op, answer);
                        }
                    }
                }
                (Some(Request::List(_)), Reply::Command(answer)) => self.note("List.", &answer),
                _ => {}
            }
        }
    }

    fn answer(&mut self, op: OpId, answer: Result<Outcome, Rejection>) {
        if let Ok(outcome) = &answer {
            self.heard.hear(op, outcome);
        }
        self.note("", &answer);
    }

    fn note(&mut self, what: &str, answer: &Result<Outcome, Rejection>) {
        let text = match answer {
            Ok(outcome) => format!("{outcome:?}"),
            Err(refusal) => format!("!{refusal:?}"),
        };
        let name = text.split([' ', '(']).next().unwrap_or_default();
        self.answers.insert(format!("{what}{name}"));
    }
}

/// Every kind of answer that random stories must reach: else they would prove little.
const REACHED: &str = "AlreadyPublished Collected Configured Deleted Doubted Dropped Fenced \
    Forgotten Lost Pinned Prepared Published Released Retired Settled Register.Registered \
    !AttemptFailed !Collecting !Dropped !EndpointQuarantined !Fenced !ForeignPin \
    !GenesisOperator !InFlight !LimitExceeded !Lost !Malformed !ManifestMismatch !NotCollecting \
    !NotComplete !NotFinal !NotHolder !NotOperator !OpConflict !OwnerHasPins !PinEnded \
    !ReceiptForgotten !ShardNotClaimed !ShardTaken !StaleIncarnation !TurnExpired \
    !UnknownCheckpoint !UnknownIncarnation !UnknownObject !UnknownOwner !UnknownPin !WrongEpoch \
    List.!LimitExceeded List.!Malformed Register.!Fenced Register.!LimitExceeded \
    Register.!Malformed Register.!PolicyMismatch Register.!RoleMismatch \
    Register.!StaleIncarnation Register.!UnknownVersion Register.!WrongEpoch";

/// The spec and the engine agree on every reply, record and follow-up of random stories; `STORIES`
/// asks for more of them.
#[test]
fn the_spec_and_the_engine_agree() {
    let stories: u64 = std::env::var("STORIES").map_or(50, |n| n.parse().expect("a number"));
    let mut reached = BTreeSet::new();
    let mut inputs = 0;
    for seed in 0..stories {
        let mut chance = Chance::new(seed);
        let mut story = Story::new(&mut chance);
        for owner in [1, 2, 3, 4] {
            let role = match owner {
                1 | 4 => pinfold_core::catalog::Role::Operator,
                _ => pinfold_core::catalog::Role::Worker,
            };
            story.rig.join(owner, role);
        }
        for _ in 0..1000 {
            story.step(&mut chance);
        }
        story.rig.rest();
        assert!(story.rig.clients.contains_key(&OwnerId::from_u128(2)));
        inputs += story.inputs;
        reached.append(&mut story.answers);
    }
    let missing: Vec<_> =
        REACHED.split_whitespace().filter(|name| !reached.contains(*name)).collect();
    assert!(missing.is_empty(), "{inputs} inputs never reached {missing:?}");
}
