//! A replay over a coordinator that runs already, and the processes of its workers.

use std::io::{self, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{ConversationId, Generation, TurnId};
use pinfold_host::coordinator::Coordinator;
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::node::Effects;
use pinfold_host::owner::Owner;
use pinfold_host::store::ObjectStore;
use pinfold_http::client::{Client, ClientError};
use pinfold_http::problem::Code;
use pinfold_workload::processes::{
    self, Elsewhere, ProcessesConfig, WorkerConfig, replay_by_processes,
};
use pinfold_workload::replay::{Progress, ReplayError};
use pinfold_workload::report::Report;
use pinfold_workload::trace::Trace;
use serde::Deserialize;

use super::Arguments;
use crate::random::{random, start};
use crate::server::{Server, failure};
use crate::store_place::{StorePlace, opened};
use crate::{Ending, Failure};

/// One worker's process of a replay; it is started by the replay.
#[derive(Args)]
pub(crate) struct WorkerArguments {
    #[command(flatten)]
    server: Server,
    /// Its name in the job
    #[arg(long)]
    name: String,
    /// The folder of objects that the workers share
    #[arg(long)]
    store: PathBuf,
    /// Tokens of a block of the trace
    #[arg(long)]
    block_tokens: u32,
    /// Bytes of private state that each checkpoint holds
    #[arg(long)]
    bytes_per_checkpoint: u64,
    /// Sync each object before it counts as stored
    #[arg(long)]
    sync_objects: bool,
}

/// A worker's process: it does what the replay asks it to on its standard input.
pub(crate) fn work(arguments: &WorkerArguments) -> Result<Ending, Failure> {
    let (_, client) = arguments.server.connect_patiently()?;
    let options = FileStoreOptions { sync_objects: arguments.sync_objects };
    let config = WorkerConfig {
        coordinator: Arc::new(client),
        name: arguments.name.clone(),
        start: start()?,
        store: opened(&arguments.store, FileStore::open(&arguments.store, options))?,
        block_tokens: arguments.block_tokens,
        bytes_per_checkpoint: arguments.bytes_per_checkpoint,
    };
    processes::work(config, BufReader::new(io::stdin()), io::stdout())
        .map(|()| Ending::Held)
        .map_err(|error| Failure::Incomplete(format!("a worker's pipe: {error}")))
}

/// What only a replay with a coordinator of its own can be told, and why.
fn check(arguments: &Arguments) -> Result<&Path, Failure> {
    let policy = "the coordinator's policy is in force, and `pinfold configure` changes it";
    let flags = [
        ("--data", arguments.data.is_some(), "the journal is the coordinator's; name --store"),
        ("--resume", arguments.resume, "it always goes on with the coordinator's job"),
        ("--turns", arguments.turns.is_some(), policy),
        ("--conversation-bytes", arguments.conversation_bytes.is_some(), policy),
        ("--job-bytes", arguments.job_bytes.is_some(), policy),
        ("--log", arguments.log.is_some(), "only the coordinator sees the order of all requests"),
    ];
    if let Some((flag, _, why)) = flags.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(Failure::Input(format!("{flag} does not go with --server: {why}")));
    }
    arguments.store.as_ref().map(StorePlace::folder).ok_or_else(|| {
        let what = "name the objects that the workers share: --store STORE";
        Failure::Input(what.into())
    })
}

/// The store, which a job that holds nothing yet may have none of.
fn store(
    dir: &Path,
    options: FileStoreOptions,
    client: &Client,
) -> Result<Arc<dyn ObjectStore>, Failure> {
    let reply = client.ask(&Request::Query(Query::Gauges)).map_err(failure)?;
    let is_new = matches!(reply, Reply::Gauges(gauges) if gauges.checkpoints == 0);
    let store = match is_new {
        true => FileStore::create(dir, options),
        false => FileStore::open(dir, options),
    };
    opened(dir, store)
}

pub(super) fn replay(
    arguments: &Arguments,
    (trace, trace_name): (&Trace, String),
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, Failure> {
    let dir = check(arguments)?;
    // Whoever types a wrong URL hears of it soon.
    arguments.server.connect()?;
    let (url, client) = arguments.server.connect_patiently()?;
    let options = FileStoreOptions { sync_objects: arguments.sync_objects };
    let config = ProcessesConfig {
        store: store(dir, options, &client)?,
        crash_every: arguments.crash_every,
        workers: arguments.workers,
        bytes_per_checkpoint: arguments.bytes_per_checkpoint,
        trace_name,
        url,
        mark: u64::from_be_bytes(random("mark")?),
    };
    let elsewhere = Started { client, arguments, dir, block_tokens: trace.block_tokens };
    let report = replay_by_processes(&config, trace, &elsewhere, stop, progress);
    report.map_err(|error| match error {
        ReplayError::Owner(_) | ReplayError::Gone(_) => Failure::Incomplete(format!(
            "the coordinator at {} does not answer, or serves another life of the job: {error}",
            config.url
        )),
        error => super::failure(error),
    })
}

/// The coordinator, and what its workers' processes are told.
struct Started<'a> {
    client: Client,
    arguments: &'a Arguments,
    dir: &'a Path,
    block_tokens: u32,
}

/// A conversation, as the coordinator tells it.
#[derive(Deserialize)]
struct Ledger {
    turns: Vec<LedgerTurn>,
}

#[derive(Deserialize)]
struct LedgerTurn {
    turn: String,
    checkpoint: u64,
}

impl Elsewhere for Started<'_> {
    fn coordinator(&self) -> Arc<dyn Coordinator> {
        Arc::new(self.client.clone())
    }

    fn effects(&self, owner: &Owner) -> Result<Effects, String> {
        self.client.effects(owner).map_err(|error| error.to_string())
    }

    fn turns(&self, conversation: ConversationId) -> Result<Vec<(TurnId, Generation)>, String> {
        let path = format!("/v1/conversations/{conversation}");
        let value = match self.client.view(&path) {
            Ok(value) => value,
            Err(ClientError::Problem(problem)) if problem.code == Code::NotFound => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.to_string()),
        };
        let strange = |what: String| format!("{path} cannot be read: {what}");
        let ledger: Ledger =
            serde_json::from_value(value).map_err(|error| strange(error.to_string()))?;
        let turn = |one: LedgerTurn| match one.turn.parse() {
            Ok(turn) => Ok((turn, Generation(one.checkpoint))),
            Err(_) => Err(strange(one.turn)),
        };
        ledger.turns.into_iter().map(turn).collect()
    }

    fn spawn(&self, name: &str) -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("replay-worker").args(self.arguments.server.flags()).args(["--name", name]);
        command.arg("--store").arg(self.dir);
        let bytes = self.arguments.bytes_per_checkpoint;
        command.arg(format!("--block-tokens={}", self.block_tokens));
        command.arg(format!("--bytes-per-checkpoint={bytes}"));
        if self.arguments.sync_objects {
            command.arg("--sync-objects");
        }
        // Ctrl-C is for the replay, which lets each worker end its request.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    }
}
