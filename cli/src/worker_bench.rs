//! `pinfold worker-bench`: how many turns a second a coordinator takes.

use std::time::Duration;

use clap::Args;
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{Epoch, OwnerId};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::node::Node;
use pinfold_http::client::Client;
use pinfold_http::load::{LoadError, LoadOptions, LoadReport, run as load};
use pinfold_http::service::{Service, ServiceOptions};
use pinfold_workload::unit::{ParseWithinError, parse_within};

use crate::random::random;
use crate::server::{Server, failure};
use crate::table::{Table, json, print};
use crate::{Ending, Failure};

/// Load a coordinator with clients that keep one position after another, and say how fast it is.
///
/// A cycle is two requests, each durable when it is answered: pin and prepare; then settle,
/// publish, release and collect, with the reports on what the cycle before handed out. No bytes
/// are moved. Without --server a coordinator is started in this process, on a temporary folder of
/// this disk. What was kept is forgotten in the end; the 64 conversations of each run stay known.
/// A coordinator whose job holds something is not loaded without --yes: it would lose turns.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// Clients at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clients)]
    clients: u32,
    /// For how many seconds
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = seconds)]
    seconds: u64,
    /// Checkpoints that are kept beside, before the clock starts, in a coordinator of its own
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(conflicts_with_all = ["server", "descriptor"])]
    retained: u64,
    /// Load a job that holds something, or has a budget: it is a test's job, and may lose its turns
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Exit codes:
  0  it ran
  1  the coordinator refused something
  2  bad usage or input
  3  nobody answered

Examples:
  pinfold worker-bench                                   a coordinator of its own, 16 clients
  pinfold worker-bench --clients 1 --seconds 10
  pinfold worker-bench --retained 1000000                beside a million checkpoints
  pinfold worker-bench --server http://127.0.0.1:7311 --json";

fn clients(text: &str) -> Result<u32, ParseWithinError> {
    parse_within(text, &(1..=1024))
}

fn seconds(text: &str) -> Result<u64, ParseWithinError> {
    parse_within(text, &(1..=3600))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let salt = u64::from_be_bytes(random("salt")?);
    let (clients, time) = (arguments.clients, Duration::from_secs(arguments.seconds));
    let options = LoadOptions { clients, time, retained: arguments.retained, salt };
    let report = if arguments.server.is_given() {
        let (url, client) = arguments.server.options()?;
        if !arguments.yes {
            refuse_what_is_used(&arguments.server.connect()?)?;
        }
        load(&url, &client, options)
    } else {
        let own = Own::start(Epoch::from_u128(u128::from_be_bytes(random("epoch")?)))?;
        load(&own.service.url(), &Default::default(), options)
    };
    let report = report.map_err(|error| match error {
        LoadError::Client(error) => failure(error),
        LoadError::Refused(_) => Failure::Violated(error.to_string()),
        LoadError::Unexpected(_) | LoadError::Task(_) => Failure::Incomplete(error.to_string()),
    })?;
    print(|out| if arguments.json { json(out, &report) } else { table(&report).write(out) })?;
    Ok(Ending::Held)
}

/// Refuses a job in earnest: under a byte budget the load's checkpoints push out real turns, and
/// delete work that it is handed is reported as done, whoever's it is.
fn refuse_what_is_used(client: &Client) -> Result<(), Failure> {
    let reply = |query| client.ask(&Request::Query(query)).map_err(failure);
    let (Reply::Job(job), Reply::Gauges(gauges)) = (reply(Query::Job)?, reply(Query::Gauges)?)
    else {
        return Err(Failure::Incomplete("the coordinator does not tell its job".into()));
    };
    let has_budget = job.policy.job_bytes.or(job.policy.conversation_bytes).is_some();
    if gauges.checkpoints == 0 && !has_budget {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "the job {} holds {} checkpoints{}: under load its turns may expire, and what it deletes \
         is reported as deleted by nobody who did. Nothing was done; add --yes if it is there to \
         be tried",
        job.namespace,
        gauges.checkpoints,
        if has_budget { ", and has a budget of bytes" } else { "" }
    )))
}

/// A coordinator of this process; its folder goes with it.
struct Own {
    service: Service,
    _dir: tempfile::TempDir,
}

impl Own {
    fn start(epoch: Epoch) -> Result<Self, Failure> {
        let failed = |error: &dyn std::error::Error| Failure::Incomplete(error.to_string());
        let dir = tempfile::Builder::new().prefix("pinfold-").tempdir_in(".");
        let dir = dir.map_err(|error| failed(&error))?;
        let genesis = Genesis {
            namespace: "worker-bench".parse().map_err(|error| failed(&error))?,
            epoch,
            operator: OwnerId::of_name("operator"),
            policy: Policy { turns: 8, ..Policy::default() },
            limits: Limits::default(),
        };
        let (node, effects) = Node::create(dir.path(), genesis)?;
        let service = Service::start(node, effects, ServiceOptions::default());
        Ok(Self { service: service.map_err(|error| failed(&error))?, _dir: dir })
    }
}

fn table(report: &LoadReport) -> Table {
    let clients = report.clients;
    let mut table = Table::new(format!("{clients} clients, two answers a cycle"), &["", "#"]);
    table.row(["cycles a second".into(), format!("{:.0}", report.cycles_per_second)]);
    table.row(["cycles".into(), report.cycles.to_string()]);
    for (name, ms) in [
        ("half of them within", report.p50_ms),
        ("99 of 100 within", report.p99_ms),
        ("999 of 1000 within", report.p999_ms),
        ("all within", report.max_ms),
    ] {
        table.row([name.into(), format!("{ms:.2} ms")]);
    }
    table.row(["objects reported as deleted".into(), report.deleted.to_string()]);
    table.row(["checkpoints kept beside".into(), report.retained.to_string()]);
    table
}
