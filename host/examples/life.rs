//! One checkpoint's life on a node: prepared, saved, published, found again.
//!
//! `cargo run -p pinfold-host --example life -- DIR`, with a folder that holds no job yet.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use pinfold_core::catalog::{Command, Prepare, Role, Shape, ShardShape};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{
    AttemptId, ChainValue, ConversationId, Endpoint, Epoch, ManifestDigest, OwnerId,
    RepresentationDigest, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{Evidence, Outcome, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::node::Node;
use pinfold_host::owner::Owner;

type Failure = Box<dyn Error>;

/// Asks, and takes a refusal for a failure.
fn ask(owner: &Owner, command: Command) -> Result<Outcome, Failure> {
    Ok(owner.ask(command)??)
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
    let client = node.client();
    // Random in earnest: it tells one start of the process from every other.
    let start = StartId::of_name("first start");
    let worker = Owner::register(client.clone(), "worker", Role::Worker, start)?;

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
    let Outcome::Prepared { pin, checkpoint } = ask(&worker, Command::Prepare(prepare))? else {
        return Err("somebody keeps this position already".into());
    };
    println!("prepared {checkpoint}: now put its objects, and confirm each one");
    let (shard, evidence) = (Some(ShardIndex(0)), Evidence::QuiescedSuccess);
    ask(&worker, Command::Settle { pin, shard, evidence })?;
    let turn = TurnKey {
        conversation: ConversationId::of_name("a conversation"),
        turn: TurnId::of_name("its first turn"),
    };
    ask(&worker, Command::Publish { pin, turn: Some(turn) })?;
    ask(&worker, Command::Release { pin })?;

    let candidates = vec![endpoint.id()];
    let Outcome::Pinned(found) = ask(&worker, Command::Pin { candidates, limit: 1 })? else {
        return Err("a pin is answered with what it holds".into());
    };
    for there in found.iter() {
        println!("found again, and held until it is settled: {}", there.checkpoint);
    }
    let why = Request::Query(Query::Blockers(checkpoint));
    if let Reply::Blockers(Some(blockers)) = client.call(why)? {
        for blocker in blockers.blockers {
            println!("still here: {}; to lift it: {}", blocker.name(), blocker.lift());
        }
    }
    node.stop()?;
    Ok(())
}
