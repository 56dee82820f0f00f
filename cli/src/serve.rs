//! `pinfold serve`: the coordinator of a job, over HTTP.

mod collecting;
mod job;
mod logging;
mod settings;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use clap::Args;
use pinfold_core::policy::Genesis;
use pinfold_host::journal::SegmentLog;
use pinfold_http::descriptor::Descriptor;
use pinfold_http::service::{Service, ServiceError, ServiceOptions, listen};
use pinfold_http::tls::ServerTls;
use pinfold_workload::unit::bytes;
use serde::Serialize;

use job::{node_failure, open};
use logging::Logging;
use settings::Settings;

use crate::server::{identity, pem, token};
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
    /// A TOML file with any of these settings, by the same names; what is said here wins
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Say where it listens as one JSON object
    #[arg(long)]
    json: bool,
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
  pinfold serve --config ./job.toml --turns 8      settings of a file, but for this one
  curl http://127.0.0.1:7311/v1/job                which job is that, and what does it hold?
  curl http://127.0.0.1:7311/v1/checkpoints/7      why is checkpoint 7 still here?

A token: openssl rand -hex 32 > ./token; chmod 600 ./token. What it serves: docs/coordinator.md.";

/// Where it listens, for a program.
#[derive(Serialize)]
struct Listening<'a> {
    version: &'static str,
    #[serde(flatten)]
    descriptor: &'a Descriptor,
    recovered_records: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let settings = arguments.settings.clone().with_file(arguments.config.as_deref())?;
    // Until all has ended.
    let _logging = Logging::begin(&settings)?;
    let stop = signals()?;
    let tls = tls(&settings)?;
    let vouches = tls.as_ref().is_some_and(ServerTls::is_self_contained);
    let options = options(&settings, tls)?;
    // Nothing is made for a start that is refused.
    let listener = listen(&options).map_err(failure)?;
    let makes = settings.creates_store() || !SegmentLog::exists(settings.data()?)?;
    let store = settings.store.as_ref().map(|place| collecting::store(place, makes)).transpose()?;
    let (node, effects, recovered) = open(&settings)?;
    let job = node.job().clone();
    let service = Service::start_on(listener, node, effects, options).map_err(failure)?;
    let descriptor = described(&settings, &service, &job, vouches);
    let found = settings.descriptor.as_deref().map(|path| Found::at(path, &descriptor));
    let found = found.transpose()?;
    let collector = match (store, service.own_effects()) {
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
    while !stop.load(Ordering::Relaxed) && !service.node().is_gone() {
        thread::sleep(LOOKS);
    }
    drop(found);
    service.drain();
    drop(collector);
    service.stop().map_err(node_failure)?;
    Ok(Ending::Held)
}

/// The descriptor's file, for as long as the coordinator can be asked: it goes whichever way the
/// start or the end goes.
struct Found<'a> {
    path: &'a Path,
    descriptor: &'a Descriptor,
}

impl<'a> Found<'a> {
    fn at(path: &'a Path, descriptor: &'a Descriptor) -> Result<Self, Failure> {
        descriptor.write(path).map_err(|error| Failure::Input(error.to_string()))?;
        Ok(Self { path, descriptor })
    }
}

impl Drop for Found<'_> {
    fn drop(&mut self) {
        self.descriptor.remove(self.path);
    }
}

/// How it speaks TLS; what cannot work is refused.
fn tls(settings: &Settings) -> Result<Option<ServerTls>, Failure> {
    let Some((certificate, key)) = settings.identity() else { return Ok(None) };
    let ca = settings.client_ca.as_deref().map(|file| pem("--client-ca", file)).transpose()?;
    let tls = ServerTls::new(identity(certificate, key)?, ca.as_ref())?;
    if tls.is_out_of_date() {
        let file = certificate.display();
        tracing::warn!(%file, "the certificate is of another time: clients will not take it");
    }
    match &settings.host {
        Some(host) if !tls.is_for(host) => Err(Failure::Input(format!(
            "--host {host}: the certificate of {} is not for this name",
            certificate.display()
        ))),
        _ => Ok(Some(tls)),
    }
}

fn options(settings: &Settings, tls: Option<ServerTls>) -> Result<ServiceOptions, Failure> {
    Ok(ServiceOptions {
        listen: settings.listen(),
        token: settings.token_file.as_deref().map(token).transpose()?,
        tls,
        collector: settings.collects().then(collecting::owner),
        audit: Some(settings.data()?.join("audit.jsonl")),
        connections: connections(),
        ..ServiceOptions::default()
    })
}

/// Where it is; with its certificate where that vouches for itself.
fn described(settings: &Settings, service: &Service, job: &Genesis, vouches: bool) -> Descriptor {
    let url = settings.host.as_ref().map_or_else(|| service.url(), |host| service.url_by(host));
    let certificate = settings.identity().filter(|_| vouches);
    Descriptor {
        url,
        namespace: job.namespace.to_string(),
        epoch: job.epoch.to_string(),
        token_file: settings.token_file.as_deref().map(absolute),
        ca_file: certificate.map(|(file, _)| absolute(file)),
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
