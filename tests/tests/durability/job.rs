//! A small job and its clients, for every test here.

use pinfold_core::catalog::{Prepare, Role, Shape, ShardShape};
use pinfold_core::engine::Reply;
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Incarnation, ManifestDigest, OpId,
    OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{Evidence, Outcome, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::journal::JournalOptions;
use pinfold_host::node::NodeClient;

use crate::wire::{Answer, Ask, Verb};

/// W: how many receipts are kept.
pub(crate) const W: u32 = 8;
/// N: how many turns of a conversation stay.
pub(crate) const TURNS: usize = 2;
/// Sizes at which a short test has many segments and snapshots.
pub(crate) const SMALL: JournalOptions = JournalOptions {
    first_segment_bytes: 4 << 10,
    segment_bytes: 16 << 10,
    snapshot_bytes: 8 << 10,
};

pub(crate) fn genesis(epoch: &str) -> Genesis {
    Genesis {
        namespace: "durable".parse().expect("a namespace"),
        epoch: Epoch::of_name(epoch),
        operator: OwnerId::of_name("operator"),
        policy: Policy { turns: 2, ..Policy::default() },
        limits: Limits { unanswered: W, ..Limits::default() },
    }
}

/// Two shards, three objects.
pub(crate) fn shape() -> Shape {
    let shards = [ShardShape { objects: 2, bytes: 60 }, ShardShape { objects: 1, bytes: 40 }];
    Shape::new(&shards).expect("a good shape")
}

pub(crate) fn endpoint(number: u64) -> EndpointId {
    EndpointId::from_u128(1 + u128::from(number))
}

/// A save of a whole checkpoint.
pub(crate) fn prepare(endpoint: EndpointId, attempt: u128) -> Verb {
    Verb::Prepare(Prepare {
        attempt: AttemptId::from_u128(attempt),
        endpoint,
        digest: ManifestDigest::from_bytes([7; 32]),
        shape: shape(),
        shards: vec![ShardIndex(0), ShardIndex(1)],
    })
}

pub(crate) fn turn(conversation: u64, turn: u64) -> TurnKey {
    TurnKey {
        conversation: ConversationId::from_u128(1 + u128::from(conversation)),
        turn: TurnId::from_u128(1 + u128::from(turn)),
    }
}

/// Whoever takes a request to a node and brings its answer; none when the node is gone.
pub(crate) trait Calls {
    fn answer_to(&mut self, ask: Ask) -> Option<Answer>;
}

impl Calls for NodeClient {
    fn answer_to(&mut self, ask: Ask) -> Option<Answer> {
        match self.call(ask.request()) {
            Ok(Reply::Command(answer)) => Some(answer),
            Ok(other) => panic!("a command was answered with {other:?}"),
            Err(_) => None,
        }
    }
}

/// An owner that outlives its coordinator: it numbers its commands, and may be asked to repeat one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    id: OwnerId,
    incarnation: Incarnation,
    sequence: u64,
}

impl Owner {
    /// A worker of this name, registered.
    pub(crate) fn worker(name: &str, node: &mut impl Calls) -> Self {
        let (id, start) = (OwnerId::of_name(name), StartId::of_name("the first"));
        let (role, after) = (Role::Worker, Incarnation(0));
        match node.answer_to(Ask::Register { owner: id, role, after, start }) {
            Some(Ok(Outcome::Registered { incarnation })) => Self { id, incarnation, sequence: 0 },
            other => panic!("{name} is not registered: {other:?}"),
        }
    }

    /// The next command.
    pub(crate) fn next(&mut self, verb: Verb) -> Ask {
        self.sequence += 1;
        let Self { id: owner, incarnation, sequence, .. } = *self;
        Ask::Command(OpId { owner, incarnation, sequence }, verb)
    }

    /// Asks, and is answered.
    pub(crate) fn ask(&mut self, verb: Verb, node: &mut impl Calls) -> Answer {
        let ask = self.next(verb);
        node.answer_to(ask.clone()).unwrap_or_else(|| panic!("the node is gone: {ask:?}"))
    }

    /// Prepares a position and settles it with success; its pin stays.
    pub(crate) fn save(&mut self, number: u64, node: &mut impl Calls) -> (PinId, CheckpointId) {
        let attempt = u128::from(self.incarnation.0) << 64 | u128::from(self.sequence + 1);
        let prepared = self.ask(prepare(endpoint(number), attempt), node);
        let Ok(Outcome::Prepared { pin, checkpoint }) = prepared else {
            panic!("not prepared: {prepared:?}")
        };
        let evidence = Evidence::QuiescedSuccess;
        let settled = self.ask(Verb::Settle { pin, evidence }, node);
        assert_eq!(settled, Ok(Outcome::Settled { evidence }));
        (pin, checkpoint)
    }

    /// A whole save of a turn, and what became of its publication.
    pub(crate) fn publish(
        &mut self,
        number: u64,
        turn: TurnKey,
        node: &mut impl Calls,
    ) -> (CheckpointId, Answer) {
        let (pin, checkpoint) = self.save(number, node);
        let published = self.ask(Verb::Publish { pin, turn: Some(turn) }, node);
        assert_eq!(self.ask(Verb::Release { pin }, node), Ok(Outcome::Released));
        (checkpoint, published)
    }
}
