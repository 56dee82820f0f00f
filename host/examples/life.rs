//! One checkpoint's life on a node: prepared, saved, published, found again.
//!
//! `cargo run -p pinfold-host --example life -- DIR`, with a folder that holds no job yet.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use pinfold_core::catalog::{
    Command, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape,
};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{
    AttemptId, ChainValue, ConversationId, Endpoint, Epoch, Incarnation, ManifestDigest, OpId,
    OwnerId, RepresentationDigest, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{Evidence, Outcome, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::node::{Node, NodeClient};

type Failure = Box<dyn Error>;

/// An owner numbers its commands from 1; a lost reply is asked for again under the same number.
struct Owner {
    client: NodeClient,
    id: OwnerId,
    incarnation: Incarnation,
    sequence: u64,
}

impl Owner {
    fn register(client: NodeClient, name: &str) -> Result<Self, Failure> {
        let id = OwnerId::of_name(name);
        let register = Register {
            owner: id,
            role: Role::Worker,
            after: Incarnation(0),
            // Random in earnest: it tells one start of the process from every other.
            start: StartId::of_name("first start"),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        match client.call(Request::Register(register))? {
            Reply::Command(Ok(Outcome::Registered { incarnation })) => {
                Ok(Self { client, id, incarnation, sequence: 0 })
            }
            other => Err(format!("not registered: {other:?}").into()),
        }
    }

    fn ask(&mut self, command: Command) -> Result<Outcome, Failure> {
        self.sequence += 1;
        let Self { id, incarnation, sequence, .. } = *self;
        let op = OpId { owner: id, incarnation, sequence };
        match self.client.call(Request::Command(op, command))? {
            Reply::Command(answer) => Ok(answer?),
            other => Err(format!("unexpected: {other:?}").into()),
        }
    }
}

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1) else {
        eprintln!("usage: life DIR, a folder that holds no job yet");
        return ExitCode::from(2);
    };
    match live(Path::new(&dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("life: {error}");
            ExitCode::FAILURE
        }
    }
}

fn live(dir: &Path) -> Result<(), Failure> {
    let genesis = Genesis {
        namespace: "example".parse()?,
        // 128 random bits in earnest: a used epoch is never used again.
        epoch: Epoch::of_name("an example's epoch"),
        operator: OwnerId::of_name("operator"),
        policy: Policy::default(),
        limits: Limits::default(),
    };
    // A job that exists already is gone on with by `Node::open`.
    let (node, _effects) = Node::create(dir, genesis)?;
    let mut worker = Owner::register(node.client(), "worker")?;

    // `plan(&layout, &chain, tokens, &[])` gives a manifest with endpoint, digest and shape.
    let endpoint = Endpoint {
        representation: RepresentationDigest::of_name("weights, layout, types"),
        chain: ChainValue::new(b"block 7")?,
        tokens: 512,
    };
    let prepare = Prepare {
        attempt: AttemptId::of_name("first try"),
        endpoint: endpoint.id(),
        digest: ManifestDigest::from_bytes([7; 32]),
        shape: Shape::new(&[ShardShape { objects: 2, bytes: 65_536 }])?,
        shards: vec![ShardIndex(0)],
    };
    let Outcome::Prepared { pin, checkpoint } = worker.ask(Command::Prepare(prepare))? else {
        return Err("somebody keeps this position already".into());
    };
    println!("prepared {checkpoint}: now put its objects, and confirm each one");
    let (shard, evidence) = (Some(ShardIndex(0)), Evidence::QuiescedSuccess);
    worker.ask(Command::Settle { pin, shard, evidence })?;
    let turn = TurnKey {
        conversation: ConversationId::of_name("a conversation"),
        turn: TurnId::of_name("its first turn"),
    };
    worker.ask(Command::Publish { pin, turn: Some(turn) })?;
    worker.ask(Command::Release { pin })?;

    let candidates = vec![endpoint.id()];
    let found = worker.ask(Command::Pin { candidates, limit: 1 })?;
    println!("found again, and held until it is settled: {found:?}");
    let why = Request::Query(Query::Blockers(checkpoint));
    if let Reply::Blockers(Some(blockers)) = worker.client.call(why)? {
        for blocker in blockers.blockers {
            println!("still here: {}, until {}", blocker.name(), blocker.lift());
        }
    }
    node.stop()?;
    Ok(())
}
