//! What an operator deletes: what nothing holds any more, and what nobody counts.

use std::io::Write;
use std::sync::Arc;

use clap::Args;
use pinfold_core::catalog::{Role, Verdict};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::policy::Genesis;
use pinfold_host::collector::Collector;
use pinfold_host::file_store::{FileStore, FileStoreOptions};
use pinfold_host::owner::Owner;
use pinfold_host::store::{DeleteOutcome, ObjectStore};
use pinfold_http::client::Client;
use pinfold_workload::unit::bytes;
use serde::Serialize;

use crate::random::start;
use crate::server::{Server, failure};
use crate::store_place::{StorePlace, opened};
use crate::table::{Table, json, print};
use crate::{Ending, Failure};

/// Keys that one audit judges.
const KEYS: usize = 4096;
/// Strays that a person is shown.
const SHOWN: usize = 20;

/// Delete what nothing holds any more, until nothing is left to delete.
///
/// It volunteers as a collector: it asks the coordinator for delete work, deletes each object of it
/// by its whole key, and reports what became of it. What the store refuses, or does not know,
/// stays for a later time.
#[derive(Args)]
#[command(after_help = COLLECT)]
pub(crate) struct CollectArguments {
    #[command(flatten)]
    server: Server,
    /// The objects, from which is deleted: a folder, or its URL like file:///var/objects
    #[arg(long, value_name = "STORE")]
    store: StorePlace,
    /// Which owner collects
    #[arg(long, value_name = "NAME", default_value = "pinfold collect")]
    owner: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Compare what a store holds with what the job counts, and name what nobody counts.
///
/// A stray is a private object of this job that no record counts any more: a put that landed late,
/// or what a worker left that died. It may be deleted at any time. Objects that are not this job's
/// are none of our business.
#[derive(Args)]
#[command(after_help = AUDIT)]
pub(crate) struct AuditArguments {
    #[command(flatten)]
    server: Server,
    /// The objects: a folder, or its URL like file:///var/objects
    #[arg(long, value_name = "STORE")]
    store: StorePlace,
    /// Delete the strays
    #[arg(long, requires = "yes")]
    sweep: bool,
    /// Do it: they are deleted for good
    #[arg(long, requires = "sweep")]
    yes: bool,
    /// Print one JSON object, with every stray
    #[arg(long)]
    json: bool,
}

const COLLECT: &str = "\
Exit codes:
  0  nothing is left to delete
  2  bad usage or input
  3  the store did not delete all, or nobody answered

Examples:
  pinfold collect --server http://127.0.0.1:7311 --store ./objects";

const AUDIT: &str = "\
Exit codes:
  0  nothing is astray, or all that was is deleted
  1  something is astray
  2  bad usage or input
  3  the store did not delete or list all, or nobody answered

Examples:
  pinfold audit --server http://127.0.0.1:7311 --store ./objects
  pinfold audit --server http://127.0.0.1:7311 --store ./objects --sweep --yes";

/// What was collected.
#[derive(Default, Serialize)]
struct Collected {
    checkpoints: u64,
    objects: u64,
    /// Objects that the store refused to delete, or of which nobody knows.
    left: u64,
}

pub(crate) fn collect(arguments: &CollectArguments) -> Result<Ending, Failure> {
    let store = store(&arguments.store)?;
    let client = arguments.server.connect()?;
    let job = job(&client)?;
    let owner = Owner::register(client.clone(), &arguments.owner, Role::Worker, start()?);
    let owner = owner.map_err(|error| Failure::Incomplete(error.to_string()))?;
    let effects = client.effects(&owner).map_err(failure)?;
    let mut collector = Collector::new(owner, effects, store, job);
    let mut all = Collected::default();
    loop {
        let round = collector.round();
        let round = round.map_err(|error| Failure::Incomplete(error.to_string()))?;
        all.checkpoints += round.checkpoints;
        all.objects += round.objects;
        all.left += round.left;
        // What was not deleted comes again with each round.
        if round.left > 0 || round.objects == 0 && !round.more {
            break;
        }
    }
    let Collected { checkpoints, objects, left } = all;
    print(|out| match arguments.json {
        true => json(out, &all),
        false => writeln!(
            out,
            "{checkpoints} checkpoints collected, {objects} objects deleted, {left} not deleted"
        ),
    })?;
    Ok(if all.left > 0 { Ending::Incomplete } else { Ending::Held })
}

/// What an audit found.
#[derive(Default, Serialize)]
struct Audit {
    objects: u64,
    bytes: u64,
    /// Counted by a record.
    counted: u64,
    not_ours: u64,
    strays: Vec<Stray>,
    bytes_astray: u64,
    /// Strays that were deleted.
    deleted: u64,
}

/// What nobody counts.
#[derive(Serialize)]
struct Stray {
    key: String,
    bytes: u64,
}

pub(crate) fn audit(arguments: &AuditArguments) -> Result<Ending, Failure> {
    let store = store(&arguments.store)?;
    let client = arguments.server.connect()?;
    let mut listed = Vec::new();
    store
        .list(&mut |key, bytes| listed.push((key.to_string(), bytes)))
        .map_err(|error| Failure::Incomplete(error.to_string()))?;
    let mut audit = Audit::default();
    for part in listed.chunks(KEYS) {
        let keys = part.iter().map(|it| it.0.clone()).collect();
        let asked = Request::Query(Query::Audit(keys));
        let Reply::Audit(verdicts) = client.ask(&asked).map_err(failure)? else {
            return Err(Failure::Incomplete("the coordinator answered no audit".into()));
        };
        for ((key, bytes), verdict) in part.iter().zip(verdicts) {
            audit.take(key, *bytes, verdict);
        }
    }
    if arguments.sweep {
        for stray in &audit.strays {
            audit.deleted += u64::from(store.delete(&stray.key) == DeleteOutcome::Gone);
        }
    }
    print(|out| if arguments.json { json(out, &audit) } else { audit.write(out) })?;
    let left = audit.strays.len() as u64 - audit.deleted;
    Ok(match arguments.sweep {
        _ if left == 0 => Ending::Held,
        true => Ending::Incomplete,
        false => Ending::Violated,
    })
}

impl Audit {
    fn take(&mut self, key: &str, bytes: u64, verdict: Verdict) {
        self.objects += 1;
        self.bytes += bytes;
        match verdict {
            Verdict::Counted => self.counted += 1,
            Verdict::NotOurs => self.not_ours += 1,
            Verdict::Stray => {
                self.bytes_astray += bytes;
                self.strays.push(Stray { key: key.to_string(), bytes });
            }
        }
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let mut table = Table::new("The store", &["", "#objects", "#bytes"]);
        table.row(["listed".into(), self.objects.to_string(), bytes(self.bytes)]);
        table.row(["counted by the job".into(), self.counted.to_string(), String::new()]);
        table.row(["of somebody else".into(), self.not_ours.to_string(), String::new()]);
        let strays = self.strays.len().to_string();
        table.row(["astray".into(), strays, bytes(self.bytes_astray)]);
        table.row(["deleted now".into(), self.deleted.to_string(), String::new()]);
        table.write(out)?;
        if self.strays.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let mut table = Table::new("Astray", &["key", "#bytes"]);
        table.rows(&self.strays, SHOWN, |stray| [stray.key.clone(), bytes(stray.bytes)]);
        table.write(out)
    }
}

/// The store of a folder that is there.
fn store(place: &StorePlace) -> Result<Arc<dyn ObjectStore>, Failure> {
    let dir = place.folder();
    opened(dir, FileStore::open(dir, FileStoreOptions::default()))
}

fn job(client: &Client) -> Result<Genesis, Failure> {
    match client.ask(&Request::Query(Query::Job)).map_err(failure)? {
        Reply::Job(job) => Ok(job),
        _ => Err(Failure::Incomplete("the coordinator tells no job".into())),
    }
}
