//! `pinfold serve`: the coordinator of a job, over HTTP.

mod collecting;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pinfold_core::id::{Epoch, Namespace, OwnerId};
use pinfold_core::policy::{Genesis, Limits, Policy, Quarantine};
use pinfold_host::journal::SegmentLog;
use pinfold_host::node::{Effects, Node, NodeError};
use pinfold_http::descriptor::Descriptor;
use pinfold_http::service::{Service, ServiceError, ServiceOptions, listen};
use pinfold_http::tls::{Pem, ServerTls};
use pinfold_workload::unit::{bytes, parse_bytes, parse_within};
use serde::Serialize;

use crate::server::{identity, token};
use crate::signals::signals;
use crate::table::{json, print};
use crate::{Ending, Failure};

/// Files that are not connections: those of the journal, the store and the program.
const FILES: u64 = 128;
/// How often somebody looks whether to end.
const LOOKS: Duration = Duration::from_millis(50);

/// Serve a job's catalog over HTTP, until Ctrl-C or SIGTERM.
///
/// The first start makes the job in an empty folder: it mints the job's epoch, and its namespace
/// unless one is given. A later start goes on with it. Whatever is acknowledged is in the journal;
/// a client that heard no answer asks again under the same operation, also after a restart.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The job's data folder
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7311")]
    listen: SocketAddr,
    /// The job's namespace, the first part of every key
    #[arg(long, value_name = "NAME")]
    namespace: Option<Namespace>,
    /// Live turns that a conversation keeps; 5 for a new job
    #[arg(long, value_name = "N", value_parser = turns)]
    turns: Option<u32>,
    /// Bytes that the live turns of one conversation may hold
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    conversation_bytes: Option<u64>,
    /// Bytes that the live turns of the whole job may hold
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    job_bytes: Option<u64>,
    /// What a checkpoint bars whose deletion has an unknown outcome
    #[arg(long, value_name = "WHAT")]
    quarantine: Option<Bars>,
    /// A folder of objects, from which this process deletes what nothing holds any more
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Make the store where there is none; a new job does so by itself, and any other start takes a
    /// store that is not there for one whose disk is not mounted
    #[arg(long, requires = "store")]
    create_store: bool,
    /// Whether this process deletes by itself
    #[arg(long, value_name = "HOW", default_value = "auto", requires = "store")]
    collect: Collect,
    /// The file of the token that every request has to bring along
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Speak TLS: the file of its certificate, with those behind it that vouch for it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The file of that certificate's private key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Take only clients with a certificate, which a CA of this file vouches for
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    client_ca: Option<PathBuf>,
    /// By which name it is asked: it stands in the URL that is printed and described, in place of
    /// the address
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Write here where the coordinator is, for those on this machine
    #[arg(long, value_name = "FILE")]
    descriptor: Option<PathBuf>,
    /// Say where it listens as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bars {
    /// No other attempt at its position until it is known
    Endpoint,
    /// Nothing but itself
    Generation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Collect {
    /// It does
    Auto,
    /// Only workers that ask for delete work do
    Manual,
}

const EXAMPLES: &str = "\
Exit codes:
  0  it was told to end, and did
  1  the journal is damaged: the file and the byte are named
  2  bad usage or input, such as a job of another policy
  3  something could not be read, written or listened on

Examples:
  pinfold serve --data ./job                       a new job, or the one of this folder
  pinfold serve --data ./job --store ./objects     it also deletes what nothing holds any more
  pinfold serve --data ./job --listen 0.0.0.0:7311 --token-file ./token
  pinfold serve --data ./job --listen 0.0.0.0:7311 --host job.example \
      --tls-cert ./job.pem --tls-key ./job.key --client-ca ./workers.pem
  curl http://127.0.0.1:7311/v1/job                which job is that, and what does it hold?
  curl http://127.0.0.1:7311/v1/checkpoints/7      why is checkpoint 7 still here?

A token: openssl rand -hex 32 > ./token; chmod 600 ./token. What it serves: docs/coordinator.md.";

fn turns(text: &str) -> Result<u32, String> {
    parse_within(text, &(1..=Limits::default().turns)).map_err(|error| error.to_string())
}

/// Where it listens, for a program.
#[derive(Serialize)]
struct Listening<'a> {
    version: &'static str,
    #[serde(flatten)]
    descriptor: &'a Descriptor,
    recovered_records: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let token = arguments.token_file.as_deref().map(token).transpose()?;
    let tls = tls(arguments)?;
    let trusted = arguments.tls_cert.as_deref();
    let trusted = trusted.filter(|_| tls.as_ref().is_some_and(ServerTls::is_self_contained));
    let stop = signals()?;
    let collects = arguments.store.is_some() && arguments.collect == Collect::Auto;
    let options = ServiceOptions {
        listen: arguments.listen,
        token,
        tls,
        collector: collects.then(collecting::owner),
        audit: Some(arguments.data.join("audit.jsonl")),
        connections: connections(),
        ..ServiceOptions::default()
    };
    // Nothing is made for a start that is refused.
    let listener = listen(&options).map_err(failure)?;
    let makes = arguments.create_store || !SegmentLog::exists(&arguments.data)?;
    let store = arguments.store.as_deref().map(|dir| collecting::store(dir, makes)).transpose()?;
    let (node, effects, recovered) = open(arguments)?;
    let job = node.job().clone();
    let service = Service::start_on(listener, node, effects, options).map_err(failure)?;
    let descriptor = Descriptor {
        url: match &arguments.host {
            Some(host) => service.url_by(host),
            None => service.url(),
        },
        namespace: job.namespace.to_string(),
        epoch: job.epoch.to_string(),
        token_file: arguments.token_file.as_deref().map(absolute),
        ca_file: trusted.map(absolute),
    };
    if let Some(path) = &arguments.descriptor {
        descriptor.write(path).map_err(|error| Failure::Input(error.to_string()))?;
    }
    let collector = match (store.filter(|_| collects), service.own_effects()) {
        (Some(store), Some(effects)) => {
            Some(collecting::begin(service.node(), effects, store, job.clone())?)
        }
        _ => None,
    };
    print(|out| match arguments.json {
        true => {
            let version = env!("CARGO_PKG_VERSION");
            let listening =
                Listening { version, descriptor: &descriptor, recovered_records: recovered };
            json(out, &listening)
        }
        false => greet(out, &descriptor, &job, recovered),
    })?;
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOKS);
        if service.node().is_gone() {
            break;
        }
    }
    if let Some(path) = &arguments.descriptor {
        descriptor.remove(path);
    }
    service.drain();
    drop(collector);
    service.stop().map_err(node_failure)?;
    Ok(Ending::Held)
}

/// How it speaks TLS; what cannot work is refused.
fn tls(arguments: &Arguments) -> Result<Option<ServerTls>, Failure> {
    let (Some(certificate), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) else {
        return Ok(None);
    };
    let ca = arguments.client_ca.as_deref().map(Pem::read).transpose()?;
    let tls = ServerTls::new(identity(certificate, key)?, ca.as_ref())?;
    match &arguments.host {
        Some(host) if !tls.is_for(host) => Err(Failure::Input(format!(
            "--host {host}: the certificate of {} is not for this name",
            certificate.display()
        ))),
        _ => Ok(Some(tls)),
    }
}

fn greet(
    out: &mut dyn std::io::Write,
    descriptor: &Descriptor,
    job: &Genesis,
    recovered: Option<u64>,
) -> std::io::Result<()> {
    let Descriptor { url, namespace, epoch, .. } = descriptor;
    let is_new = match recovered {
        Some(records) => format!("recovered from {records} records"),
        None => "new".to_string(),
    };
    let budget = |budget: Option<u64>| budget.map_or("no budget".into(), bytes);
    writeln!(out, "{url} serves the job {namespace}, {is_new}")?;
    writeln!(out, "  epoch           {epoch}")?;
    writeln!(out, "  turns           {} per conversation", job.policy.turns)?;
    writeln!(out, "  a conversation  {}", budget(job.policy.conversation_bytes))?;
    writeln!(out, "  the job         {}", budget(job.policy.job_bytes))
}

/// How many connections there may be: as many as the default allows, and so many that files are
/// left for the journal.
fn connections() -> usize {
    let most = ServiceOptions::default().connections;
    // Where the limit cannot be raised it is as it is.
    let files = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(256);
    usize::try_from(files.saturating_sub(FILES)).map_or(most, |left| left.clamp(1, most))
}

/// A path that is the same from every folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The node of the folder's job, or of a new one.
fn open(arguments: &Arguments) -> Result<(Node, Effects, Option<u64>), Failure> {
    let dir = &arguments.data;
    if SegmentLog::exists(dir)? {
        let agree = |job: &Genesis| agree(arguments, job);
        let (node, effects, recovery) = Node::open_if(dir, agree)?;
        return Ok((node, effects, Some(recovery.records)));
    }
    let genesis = genesis(arguments)?;
    let (node, effects) = Node::create(dir, genesis).map_err(node_failure)?;
    Ok((node, effects, None))
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        node_failure(error)
    }
}

fn node_failure(error: NodeError) -> Failure {
    match error {
        NodeError::Journal(error) => error.into(),
        NodeError::Recover(error) => Failure::Violated(error.to_string()),
        NodeError::Append(_) | NodeError::Thread(_) | NodeError::Panicked => {
            Failure::Incomplete(error.to_string())
        }
    }
}

fn failure(error: ServiceError) -> Failure {
    match error {
        ServiceError::Node(error) => node_failure(error),
        ServiceError::Open(_) => Failure::Input(error.to_string()),
        ServiceError::Listen { .. }
        | ServiceError::Audit { .. }
        | ServiceError::Threads(_)
        | ServiceError::Late(_) => Failure::Incomplete(error.to_string()),
    }
}

fn genesis(arguments: &Arguments) -> Result<Genesis, Failure> {
    let mut random = [0; 24];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::Incomplete(format!("no random epoch: {error}")))?;
    let (epoch, name) = random.split_at(16);
    let mut number = [0; 16];
    number.copy_from_slice(epoch);
    let named = || {
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("job-{name}").parse()
    };
    let namespace = arguments.namespace.clone().map_or_else(named, Ok);
    let policy = Policy::default();
    Ok(Genesis {
        namespace: namespace.map_err(|error| Failure::Incomplete(error.to_string()))?,
        epoch: Epoch::from_u128(u128::from_be_bytes(number)),
        operator: OwnerId::of_name("operator"),
        policy: Policy {
            turns: arguments.turns.unwrap_or(policy.turns),
            conversation_bytes: arguments.conversation_bytes,
            job_bytes: arguments.job_bytes,
            quarantine: arguments.quarantine.map_or(policy.quarantine, Bars::means),
        },
        limits: Limits::default(),
    })
}

impl Bars {
    const fn means(self) -> Quarantine {
        match self {
            Self::Endpoint => Quarantine::Endpoint,
            Self::Generation => Quarantine::Generation,
        }
    }
}

/// What is said of a job that is there must be so.
fn agree(arguments: &Arguments, job: &Genesis) -> Result<(), Failure> {
    let mut differences = Vec::new();
    let mut differs = |flag: &str, asked: Option<String>, found: String| {
        if let Some(asked) = asked.filter(|asked| *asked != found) {
            differences.push(format!("{flag} {asked}, and it has {found}"));
        }
    };
    let budget = |bytes: Option<u64>| bytes.map_or("none".to_string(), |bytes| bytes.to_string());
    let namespace = arguments.namespace.as_ref().map(Namespace::to_string);
    differs("--namespace", namespace, job.namespace.to_string());
    let turns = arguments.turns.map(|turns| turns.to_string());
    differs("--turns", turns, job.policy.turns.to_string());
    let asked = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string());
    let conversation = asked(arguments.conversation_bytes);
    differs("--conversation-bytes", conversation, budget(job.policy.conversation_bytes));
    differs("--job-bytes", asked(arguments.job_bytes), budget(job.policy.job_bytes));
    let quarantine = arguments.quarantine.map(|it| format!("{:?}", it.means()).to_lowercase());
    differs("--quarantine", quarantine, format!("{:?}", job.policy.quarantine).to_lowercase());
    match differences.is_empty() {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "the job of {} is another: {}; leave out what differs",
            arguments.data.display(),
            differences.join("; ")
        ))),
    }
}
