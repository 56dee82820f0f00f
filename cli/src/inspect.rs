//! `pinfold inspect`: what a job holds.

use std::cmp::Reverse;
use std::path::PathBuf;

use clap::Args;
use pinfold_host::journal;
use pinfold_host::view::{Inspection, JobView, JournalView, PinView};

use pinfold_workload::unit::bytes;
use serde_json::Value;

use crate::number::{grouped, rows};
use crate::server::{Server, failure, read, whole};
use crate::table::{Table, json, print};
use crate::{Ending, Failure};

/// Show what a job holds, from its data folder or from its coordinator.
///
/// From the folder it reads the journal and changes nothing, also while a process has it open. What
/// is shown is durable. A checkpoint is named by its generation, a pin by
/// owner.incarnation.operation.place. A checkpoint that several conversations, owners or blockers
/// refer to counts at each of them: their bytes add up to more than the totals, which count it
/// once.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The job's data folder, which holds `journal`
    #[arg(required_unless_present_any = ["server", "descriptor"])]
    #[arg(conflicts_with_all = ["server", "descriptor"])]
    dir: Option<PathBuf>,
    #[command(flatten)]
    server: Server,
    /// Rows of a list that the tables show
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = rows)]
    #[arg(allow_negative_numbers = true)]
    top: u32,
    /// Print one JSON object with everything: every conversation, owner, pin and checkpoint
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Exit codes:
  0  it was read
  1  the journal is damaged: the file and the byte are named
  2  no journal there, or one of another version
  3  something could not be read

Examples:
  pinfold inspect ./job                  totals, policy, and the largest holders
  pinfold inspect ./job --top 100        longer lists
  pinfold inspect --server http://127.0.0.1:7311
  pinfold inspect ./job --json | jq .totals
  pinfold inspect ./job --json | jq '.checkpoints[] | select(.blockers == [\"lost\"])'
  pinfold inspect ./job --json | jq '.pins[] | select(.in_doubt)'

What each figure means: docs/operating.md. Why one checkpoint is still here: pinfold why.";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let (job, journal) = match &arguments.dir {
        Some(dir) => {
            let Inspection { journal, job } = Inspection::of(&journal::read(dir)?);
            (job, Some(journal))
        }
        None => (asked(&arguments.server)?, None),
    };
    let top = usize::try_from(arguments.top).unwrap_or(usize::MAX);
    print(|out| {
        if arguments.json {
            return match journal {
                Some(journal) => json(out, &Inspection { journal, job }),
                None => json(out, &job),
            };
        }
        for (number, table) in tables(&job, journal.as_ref(), top).iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            table.write(out)?;
        }
        Ok(())
    })?;
    Ok(Ending::Held)
}

/// What a coordinator says of its job: the figures, and every list page by page.
fn asked(server: &Server) -> Result<JobView, Failure> {
    let client = server.connect()?;
    let path = "/v1/inspection?limit=1";
    let mut job = client.view(path).map_err(failure)?;
    for list in ["conversations", "owners", "pins", "checkpoints"] {
        job[list] = Value::Array(Vec::new());
    }
    let mut job: JobView = read(path, job)?;
    job.conversations = whole(&client, "/v1/conversations?limit=10000", "items")?;
    job.owners = whole(&client, "/v1/owners?limit=10000", "items")?;
    job.pins = whole(&client, "/v1/pins?by=id&limit=10000", "pins")?;
    job.checkpoints = whole(&client, "/v1/checkpoints?limit=10000", "items")?;
    // Both sorts are stable: equals stay in first-seen order, and by id.
    job.conversations.sort_by_key(|conversation| Reverse(conversation.bytes));
    job.owners.sort_by_key(|owner| Reverse(owner.bytes_pinned));
    Ok(job)
}

fn tables(job: &JobView, journal: Option<&JournalView>, top: usize) -> Vec<Table> {
    vec![
        head(job, journal),
        policy(job),
        totals(job),
        blockers(job),
        conversations(job, top),
        owners(job, top),
        pins("Pins", &job.pins, top),
        in_doubt(job, top),
        quarantined(job, top),
    ]
}

fn head(job: &JobView, journal: Option<&JournalView>) -> Table {
    let mut table = Table::new(format!("Job {}", job.namespace), &["", ""]);
    table.row(["epoch".into(), job.epoch.to_string()]);
    table.row(["first operator".into(), job.operator.to_string()]);
    let Some(journal) = journal else { return table };
    table.row(["journal records".into(), grouped(journal.records)]);
    table.row(["of them in the snapshot".into(), grouped(journal.snapshot_records)]);
    if let Some(torn) = &journal.torn {
        let what = format!("{} bytes at byte {} of {}", torn.bytes, torn.byte, torn.file);
        table.row(["torn, or being written".into(), what]);
    }
    table
}

fn policy(job: &JobView) -> Table {
    let budget = |budget: Option<u64>| budget.map_or("none".into(), bytes);
    let mut table = Table::new("Policy", &["", ""]);
    table.row(["turns kept per conversation".into(), grouped(job.policy.turns)]);
    table.row(["budget of a conversation".into(), budget(job.policy.conversation_bytes)]);
    table.row(["budget of the job".into(), budget(job.policy.job_bytes)]);
    table.row(["quarantine by".into(), job.policy.quarantine.to_string()]);
    table
}

fn totals(job: &JobView) -> Table {
    let (totals, limits) = (&job.totals, &job.limits);
    let mut table = Table::new("Totals", &["", "#now", "#limit"]);
    let mut size = |name: &str, now: u64, limit: Option<u64>| {
        table.row([name.into(), bytes(now), limit.map(bytes).unwrap_or_default()]);
    };
    size("bytes with a record", totals.bytes, None);
    size("bytes retained", totals.bytes_retained, job.policy.job_bytes);
    size("bytes pinned", totals.bytes_pinned, Some(limits.bytes_pinned));
    size("bytes unscoped", totals.bytes_unscoped, Some(limits.bytes_unscoped));
    size("bytes in doubt", totals.bytes_in_doubt, Some(limits.bytes_in_doubt));
    size("bytes quarantined", totals.bytes_quarantined, Some(limits.bytes_quarantined));
    let mut count = |name: &str, now: u64, limit: Option<u32>| {
        table.row([name.into(), grouped(now), limit.map(grouped).unwrap_or_default()]);
    };
    count("checkpoints", totals.checkpoints, None);
    count("collectable or collecting", totals.collectable, None);
    count("live turns", totals.turns, None);
    count("expired turns", totals.expired_turns, Some(limits.expired_turns));
    count("conversations", totals.conversations, Some(limits.conversations));
    count("owners", totals.owners, Some(limits.owners));
    count("pins", totals.pins, Some(limits.pins));
    table
}

fn blockers(job: &JobView) -> Table {
    let mut table = Table::new("Why it is here", &["blocker", "#checkpoints", "#bytes"]);
    table.rows(&job.blockers, usize::MAX, |count| {
        [count.name.to_string(), grouped(count.checkpoints), bytes(count.bytes)]
    });
    table
}

fn conversations(job: &JobView, top: usize) -> Table {
    let columns = ["conversation", "#live turns", "#bytes", "#expired turns", ""];
    let mut table = Table::new("Conversations, largest first", &columns);
    table.rows(&job.conversations, top, |one| {
        [
            one.conversation.to_string(),
            grouped(one.turns),
            bytes(one.bytes),
            grouped(one.expired_turns),
            if one.forgotten { "forgotten".into() } else { String::new() },
        ]
    });
    table
}

fn owners(job: &JobView, top: usize) -> Table {
    let columns = ["owner", "role", "#incarnation", "#pins", "#bytes pinned", ""];
    let mut table = Table::new("Owners, most bytes pinned first", &columns);
    table.rows(&job.owners, top, |one| {
        [
            one.owner.to_string(),
            one.role.to_string(),
            one.incarnation.to_string(),
            grouped(one.pins),
            bytes(one.bytes_pinned),
            if one.fenced { "fenced".into() } else { String::new() },
        ]
    });
    table
}

fn pins(title: &str, pins: &[PinView], top: usize) -> Table {
    let columns = ["pin", "purpose", "#checkpoint", "#bytes", ""];
    let mut table = Table::new(title, &columns);
    table.rows(pins, top, |one| {
        [
            one.pin.to_string(),
            one.purpose.to_string(),
            one.checkpoint.to_string(),
            bytes(one.bytes),
            if one.in_doubt { "in doubt".into() } else { String::new() },
        ]
    });
    table
}

fn in_doubt(job: &JobView, top: usize) -> Table {
    let doubted: Vec<PinView> = job.pins.iter().filter(|pin| pin.in_doubt).cloned().collect();
    pins("Pins in doubt", &doubted, top)
}

fn quarantined(job: &JobView, top: usize) -> Table {
    let columns = ["#checkpoint", "#bytes", "#objects", "#of unknown outcome"];
    let mut table = Table::new("Quarantined checkpoints", &columns);
    let all: Vec<_> = job.checkpoints.iter().filter(|one| one.unknown > 0).collect();
    table.rows(&all, top, |one| {
        [one.checkpoint.to_string(), bytes(one.bytes), grouped(one.objects), grouped(one.unknown)]
    });
    table
}
