//! A job with a real engine and a store of sizes, for transfers to run against.

mod loads;
mod random;
mod saves;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::catalog::{Command, PROTOCOL_VERSION, Register, Role};
use crate::engine::{Config, Engine, Input, Output, Reply, Request, Ticket};
use crate::id::*;
use crate::layout::Layout;
use crate::object::{self, Digest, TRAILER_BYTES};
use crate::outcome::TurnKey;
use crate::plan::examples::{self, BLOCK, chain};
use crate::plan::plan;
use crate::policy::{Genesis, Limits, Policy};

type Answer = Result<Outcome, Rejection>;

const OPERATOR: u128 = 9;

/// A job, and what its store holds: sizes by checkpoint (none for shared ones) and name.
struct Rig {
    engine: Engine,
    epoch: Epoch,
    owners: BTreeMap<u128, (Incarnation, u64)>,
    store: BTreeMap<(Option<CheckpointId>, ObjectName), u64>,
    put: BTreeSet<(CheckpointId, ObjectName)>,
}

impl Rig {
    fn new() -> Self {
        let epoch = Epoch::from_u128(1);
        let genesis = Genesis {
            namespace: "t".parse().unwrap(),
            epoch,
            operator: OwnerId::from_u128(OPERATOR),
            policy: Policy::default(),
            limits: Limits { unanswered: 4096, ..Limits::default() },
        };
        let engine = Engine::create(Config::default(), genesis).unwrap();
        let (owners, store, put) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let mut rig = Self { engine, epoch, owners, store, put };
        rig.register(OPERATOR, Role::Operator);
        for owner in [1, 2, 3] {
            rig.register(owner, Role::Worker);
        }
        rig
    }

    fn register(&mut self, owner: u128, role: Role) {
        let after = self.owners.get(&owner).map_or(Incarnation(0), |known| known.0);
        let register = Register {
            owner: OwnerId::from_u128(owner),
            role,
            after,
            start: StartId::from_u128((owner << 32) | (u128::from(after.0) + 1)),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        let answer = self.submit(Request::Register(register));
        let Ok(Outcome::Registered { incarnation }) = answer else { panic!("{answer:?}") };
        self.owners.insert(owner, (incarnation, 0));
    }

    fn submit(&mut self, request: Request) -> Answer {
        self.engine.submit(Input { ticket: Ticket(0), epoch: self.epoch, request });
        let mut answer = None;
        while let Some(batch) = self.engine.take_batch() {
            self.engine.commit(batch);
        }
        while let Some(output) = self.engine.poll_output() {
            if let Output::Reply(_, Reply::Command(reply)) = output {
                answer = Some(reply);
            }
        }
        self.engine.check().unwrap();
        answer.unwrap()
    }

    fn ask(&mut self, owner: u128, command: Command) -> (OpId, Answer) {
        let (incarnation, sequence) = self.owners.get_mut(&owner).unwrap();
        *sequence += 1;
        let (incarnation, sequence) = (*incarnation, *sequence);
        let op = OpId { owner: OwnerId::from_u128(owner), incarnation, sequence };
        (op, self.submit(Request::Command(op, command)))
    }

    /// Takes a step; a command is asked and answered at once.
    fn step(&mut self, owner: u128, transfer: &mut Transfer) -> Option<Step> {
        let step = transfer.next_step();
        if let Some(Step::Ask(command)) = &step {
            let (op, answer) = self.ask(owner, command.clone());
            transfer.answered(op, answer);
        }
        step
    }

    /// Takes steps until one is about an object, or until there is none.
    fn skip_asks(&mut self, owner: u128, transfer: &mut Transfer) -> Option<Step> {
        loop {
            match self.step(owner, transfer) {
                Some(Step::Ask(_)) => {}
                other => return other,
            }
        }
    }

    /// Takes every step that can begin now.
    fn all_steps(&mut self, owner: u128, transfer: &mut Transfer) -> Vec<Step> {
        core::iter::from_fn(|| self.skip_asks(owner, transfer)).collect()
    }

    fn place(transfer: &Transfer, object: ObjectName) -> (Option<CheckpointId>, ObjectName) {
        match object {
            ObjectName::Shared(_) => (None, object),
            ObjectName::Private(_) => (Some(transfer.checkpoint().unwrap()), object),
        }
    }

    fn do_put(&mut self, transfer: &Transfer, object: ObjectName, bytes: u64) {
        let place = Self::place(transfer, object);
        if let (Some(checkpoint), _) = place {
            assert!(self.put.insert((checkpoint, object)), "I17: {object} is put twice");
        }
        self.store.insert(place, bytes);
    }

    /// Does a step about an object as a faultless store would.
    fn perform(&mut self, transfer: &mut Transfer, step: &Step) {
        match *step {
            Step::Put { object, bytes } => {
                self.do_put(transfer, object, bytes);
                transfer.completed(object, STORED);
            }
            Step::Check { object, .. } => {
                let found = self.store.get(&Self::place(transfer, object));
                let absent = CheckAnswer::Absent;
                let answer = found.map_or(absent, |bytes| CheckAnswer::Present { bytes: *bytes });
                transfer.completed(object, Completion::Checked(answer));
            }
            Step::Get { object, bytes } => transfer.completed(object, arrived(object, bytes)),
            _ => panic!("not about an object: {step:?}"),
        }
    }

    /// Drives a transfer until it ends or waits for somebody else; gives back all steps but asks.
    fn drive(&mut self, owner: u128, transfer: &mut Transfer) -> Vec<Step> {
        let mut steps = vec![];
        while let Some(step) = self.skip_asks(owner, transfer) {
            match &step {
                Step::Put { .. } | Step::Check { .. } | Step::Get { .. } => {
                    self.perform(transfer, &step);
                }
                Step::Agree { .. } => transfer.agreed(true),
                Step::Choose => assert!(transfer.choose_longest()),
                Step::Wait | Step::Adopt { .. } => {}
                Step::Ask(_) | Step::Describe { .. } | Step::ReadManifest { .. } => {
                    panic!("{step:?}")
                }
            }
            steps.push(step);
        }
        steps
    }

    /// Saves and publishes a whole checkpoint by one owner.
    fn saved(&mut self, manifest: &Arc<Manifest>, turn: u128) -> CheckpointId {
        let mut save = Transfer::save(request(manifest, turn)).unwrap();
        self.drive(1, &mut save);
        let Some(Ended::Saved { checkpoint, .. }) = save.report() else {
            panic!("{:?}", save.report())
        };
        checkpoint
    }

    fn pins(&self) -> u64 {
        self.engine.catalog().gauges().pins
    }
}

const STORED: Completion = Completion::Put { answer: PutAnswer::Stored, retired: true };

const fn put_failed(retired: bool) -> Completion {
    Completion::Put { answer: PutAnswer::Failed, retired }
}

const fn present(bytes: u64) -> Completion {
    Completion::Checked(CheckAnswer::Present { bytes })
}

const fn arrived(object: ObjectName, bytes: u64) -> Completion {
    let answer = match object {
        ObjectName::Private(_) => GetAnswer::Verified { bytes },
        ObjectName::Shared(_) => GetAnswer::Arrived { bytes },
    };
    Completion::Got { answer, retired: true }
}

fn planned(layout: &Layout, blocks: u64) -> Arc<Manifest> {
    Arc::new(plan(layout, &chain(blocks), blocks * u64::from(BLOCK), &[]).unwrap())
}

/// One shard: two shared pages and one private object beside the manifest.
fn small() -> Arc<Manifest> {
    planned(&examples::convolutions(), 2)
}

/// Two shards: for each two shared pages and one private object beside the manifest.
fn pair() -> Arc<Manifest> {
    planned(&examples::hybrid(), 2)
}

fn turn(number: u128) -> TurnKey {
    let conversation = ConversationId::from_u128(1);
    TurnKey { conversation, turn: TurnId::from_u128(number) }
}

/// A save of all shards by one owner, under the attempt and turn of this number.
fn request(manifest: &Arc<Manifest>, number: u128) -> SaveRequest {
    SaveRequest {
        attempt: AttemptId::from_u128(number),
        manifest: Arc::clone(manifest),
        shards: (0..manifest.shape().len()).map(|s| ShardIndex(s.try_into().unwrap())).collect(),
        publication: Publication::Turn(turn(number)),
        has_peers: false,
    }
}

/// A load of all shards by one owner, from these manifests.
fn wanted(manifests: &[&Arc<Manifest>]) -> LoadRequest {
    LoadRequest {
        candidates: manifests.iter().map(|it| Candidate::planned(Arc::clone(it))).collect(),
        limit: 8,
        shards: request(manifests[0], 1).shards,
        has_peers: false,
        explains: false,
    }
}

fn object_of(step: &Step) -> ObjectName {
    match step {
        Step::Put { object, .. } | Step::Check { object, .. } | Step::Get { object, .. } => *object,
        _ => panic!("not about an object: {step:?}"),
    }
}

const fn private(shard: u16, index: u32) -> ObjectName {
    ObjectName::Private(ObjectId { shard: ShardIndex(shard), index })
}

const S0: ShardIndex = ShardIndex(0);
const S1: ShardIndex = ShardIndex(1);
