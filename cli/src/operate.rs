//! An operator's ways out: each a command to a coordinator, with the proof that it stands for.
//!
//! Protects the fleet from a hasty hand: what cannot be taken back is said first, and done only
//! with `--yes`.

use std::io::Write;

use clap::{Args, Subcommand, ValueEnum};
use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{
    CheckpointId, ConversationId, Generation, Incarnation, OwnerId, PinId, ShardIndex,
};
use pinfold_core::outcome::{Evidence, Outcome, Rejection};
use pinfold_host::dto::{ListAnswer, read_pin};
use pinfold_host::owner::{Answer, Owner, OwnerError};
use pinfold_host::view::WhyView;
use pinfold_http::client::Client;
use pinfold_workload::unit::parse_bytes;
use serde::Serialize;

use crate::number::generation;
use crate::random::start;
use crate::server::{Server, failure};
use crate::table::{json, print};
use crate::{Ending, Failure};

/// What an operator does.
#[derive(Subcommand)]
pub(crate) enum Act {
    /// Bar an incarnation of an owner for good, and end its pins
    #[command(after_help = FENCE)]
    Fence {
        /// The owner, by its id or its name
        #[arg(value_parser = owner)]
        owner: OwnerId,
        /// Which of its incarnations, as `inspect` shows them
        incarnation: u64,
        #[command(flatten)]
        asked: Asked,
    },
    /// Say what became of a transfer whose owner cannot say it any more
    #[command(after_help = SETTLE)]
    Settle {
        /// The pin, as `inspect` shows it
        #[arg(value_parser = read_pin)]
        pin: PinId,
        /// What is known
        evidence: Known,
        /// One shard of a save; without it every shard that is open
        #[arg(long, value_name = "N")]
        shard: Option<u16>,
        #[command(flatten)]
        asked: Asked,
    },
    /// Mark a pin whose memory may still be touched, or take the mark away
    Doubt {
        /// The pin, as `inspect` shows it
        #[arg(value_parser = read_pin)]
        pin: PinId,
        /// Take the mark away
        #[arg(long)]
        clear: bool,
        #[command(flatten)]
        asked: Asked,
    },
    /// End a conversation for ever: its turns expire, and no turn of it is taken again
    Forget {
        /// The conversation's id, as `inspect` shows it
        conversation: ConversationId,
        #[command(flatten)]
        asked: Asked,
    },
    /// Let go of a checkpoint that was published without a conversation
    Drop {
        /// The checkpoint's generation
        #[arg(value_parser = generation)]
        checkpoint: u64,
        #[command(flatten)]
        asked: Asked,
    },
    /// Forget an owner that will never come back
    Retire {
        /// The owner, by its id or its name
        #[arg(value_parser = owner)]
        owner: OwnerId,
        #[command(flatten)]
        asked: Asked,
    },
    /// Change how much is kept
    Configure {
        /// Live turns that a conversation keeps
        #[arg(long, value_name = "N")]
        turns: Option<u32>,
        /// Bytes that the live turns of one conversation may hold; or none
        #[arg(long, value_name = "BYTES", value_parser = budget)]
        conversation_bytes: Option<Budget>,
        /// Bytes that the live turns of the whole job may hold; or none
        #[arg(long, value_name = "BYTES", value_parser = budget)]
        job_bytes: Option<Budget>,
        #[command(flatten)]
        asked: Asked,
    },
}

/// Whom to ask, and how.
#[derive(Args)]
pub(crate) struct Asked {
    #[command(flatten)]
    server: Server,
    /// Which operator asks; another command of the same one at the same time may be refused
    #[arg(long, value_name = "NAME", default_value = "operator")]
    operator: String,
    /// Do it: what it stands for is so
    #[arg(long)]
    yes: bool,
    /// Say what would be asked, and ask nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What an operator can know of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Known {
    /// It failed, and nothing touches its memory any more
    Failed,
    /// It never began
    NotExposed,
    /// Its memory may still be touched
    InDoubt,
}

/// A budget, or that there shall be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget(Option<u64>);

const FENCE: &str = "\
What it stands for: no process of this incarnation, and no hardware that one used, touches its
memory or the store any more. The machine is off, the device was reset, the memory was unmapped;
time and silence prove nothing. A proof that was none corrupts memory in silence.

Exit codes:
  0  it is done, or --dry-run
  1  the coordinator refused it
  2  bad usage or input, or --yes is missing
  3  nobody answered

Examples:
  pinfold inspect --server http://127.0.0.1:7311               who has which pins?
  pinfold fence w7 12 --server http://127.0.0.1:7311 --dry-run
  pinfold fence w7 12 --server http://127.0.0.1:7311 --yes";

const SETTLE: &str = "\
What it stands for: `failed` and `not-exposed` say that nothing moves bytes for this pin any more,
and that its memory is done with. That a transfer succeeded only its own worker can say. The pin
of a save is released along with it, once all its shards are settled.

Examples:
  pinfold settle 9f..e2.3.17.0 failed --server http://127.0.0.1:7311 --yes
  pinfold settle 9f..e2.3.17.0 in-doubt --descriptor ./job.json --yes";

fn owner(text: &str) -> Result<OwnerId, String> {
    match text.parse() {
        Ok(id) => Ok(id),
        Err(_) if text.is_empty() => Err("an owner has a name".into()),
        Err(_) => Ok(OwnerId::of_name(text)),
    }
}

fn budget(text: &str) -> Result<Budget, String> {
    match text {
        "none" => Ok(Budget(None)),
        text => parse_bytes(text).map(|it| Budget(Some(it))).map_err(|error| error.to_string()),
    }
}

impl Act {
    const fn asked(&self) -> &Asked {
        match self {
            Self::Fence { asked, .. }
            | Self::Settle { asked, .. }
            | Self::Doubt { asked, .. }
            | Self::Forget { asked, .. }
            | Self::Drop { asked, .. }
            | Self::Retire { asked, .. }
            | Self::Configure { asked, .. } => asked,
        }
    }

    /// Along with a settle after which nothing is under way: nobody else releases a save whose
    /// owner is no more.
    const fn release(&self) -> Option<Command> {
        match self {
            Self::Settle { pin, evidence: Known::Failed | Known::NotExposed, .. } => {
                Some(Command::Release { pin: *pin })
            }
            Self::Settle { .. }
            | Self::Fence { .. }
            | Self::Doubt { .. }
            | Self::Forget { .. }
            | Self::Drop { .. }
            | Self::Retire { .. }
            | Self::Configure { .. } => None,
        }
    }

    /// The command, and what whoever asks for it says by that.
    fn command(&self, client: &Client) -> Result<(Command, &'static str), Failure> {
        Ok(match self {
            Self::Fence { owner, incarnation, .. } => {
                let incarnation = Incarnation(*incarnation);
                let says = "no process of this incarnation, and no hardware that one used, touches \
                            its memory or the store any more; its pins end, and what only they \
                            hold is deleted";
                (Command::Fence { owner: *owner, incarnation }, says)
            }
            Self::Settle { pin, evidence, shard, .. } => {
                let says = match evidence {
                    Known::Failed => "the transfer failed, and nothing touches its memory any more",
                    Known::NotExposed => "the transfer never began, and never will",
                    Known::InDoubt => "the memory may still be touched, so the pin stays",
                };
                let evidence = match evidence {
                    Known::Failed => Evidence::QuiescedFailure,
                    Known::NotExposed => Evidence::NotExposed,
                    Known::InDoubt => Evidence::InDoubt,
                };
                let shard = shard.map(ShardIndex);
                (Command::Settle { pin: *pin, shard, evidence }, says)
            }
            Self::Doubt { pin, clear, .. } => {
                let says = match clear {
                    true => "its owner speaks for it again",
                    false => "its memory may still be touched; it stays until that is settled",
                };
                (Command::Doubt { pin: *pin, doubtful: !clear }, says)
            }
            Self::Forget { conversation, .. } => {
                let says = "this conversation is over for ever: its turns expire, what only they \
                            hold is deleted, and no turn of it is taken again";
                (Command::Forget { conversation: *conversation }, says)
            }
            Self::Drop { checkpoint, .. } => {
                let says = "nobody needs it any more: it is deleted as soon as nothing else holds \
                            it, and is never published without a conversation again";
                (Command::Drop { checkpoint: named(client, *checkpoint)? }, says)
            }
            Self::Retire { owner, .. } => {
                let says = "no process of this owner runs or will run: its receipts are forgotten";
                (Command::Retire { owner: *owner }, says)
            }
            Self::Configure { turns, conversation_bytes, job_bytes, .. } => {
                let Reply::Job(job) = client.ask(&Request::Query(Query::Job)).map_err(failure)?
                else {
                    return Err(Failure::Incomplete("the coordinator tells no job".into()));
                };
                let (mut policy, limits) = (job.policy, job.limits);
                policy.turns = turns.unwrap_or(policy.turns);
                if let Some(Budget(bytes)) = conversation_bytes {
                    policy.conversation_bytes = *bytes;
                }
                if let Some(Budget(bytes)) = job_bytes {
                    policy.job_bytes = *bytes;
                }
                let says = "turns beyond the new bounds expire, and what only they hold is deleted";
                (Command::Configure { policy, limits }, says)
            }
        })
    }
}

/// A checkpoint by its generation.
fn named(client: &Client, generation: u64) -> Result<CheckpointId, Failure> {
    let value = client.view(&format!("/v1/checkpoints/{generation}")).map_err(failure)?;
    let why: Result<WhyView, _> = serde_json::from_value(value);
    let endpoint = why.ok().and_then(|why| why.endpoint);
    let gone = || Failure::Input(format!("checkpoint {generation} has no record any more"));
    Ok(CheckpointId { endpoint: endpoint.ok_or_else(gone)?, generation: Generation(generation) })
}

/// What came of it, for a program.
#[derive(Serialize)]
struct Done {
    says: &'static str,
    done: bool,
    answer: Option<ListAnswer>,
    /// To the release of a save whose transfer is settled for good.
    released: Option<ListAnswer>,
}

pub(crate) fn run(act: &Act) -> Result<Ending, Failure> {
    let asked = act.asked();
    let client = asked.server.connect()?;
    let (command, says) = act.command(&client)?;
    if asked.dry_run {
        let done = Done { says, done: false, answer: None, released: None };
        print(|out| match asked.json {
            true => json(out, &done),
            false => writeln!(out, "It would ask for {command:?}\nBy that you say: {says}."),
        })?;
        return Ok(Ending::Held);
    }
    if !asked.yes {
        return Err(Failure::Input(format!(
            "nothing was done. By this you say: {says}. Add --yes if that is so, or --dry-run"
        )));
    }
    let owner = registered(client, &asked.operator)?;
    let release = act.release();
    let answer = owner.ask(command).map_err(|error| failed(&asked.operator, error))?;
    let release = release.filter(|_| answer.is_ok());
    let released = release.map(|release| owner.ask(release)).transpose();
    let released = released.map_err(|error| failed(&asked.operator, error))?;
    let listed = |answer| ListAnswer::from(Some(answer));
    let done = Done {
        says,
        done: answer.is_ok(),
        answer: Some(listed(answer)),
        released: released.map(listed),
    };
    print(|out| match (asked.json, &answer) {
        (true, _) => json(out, &done),
        (false, Ok(outcome)) => said(out, outcome, released.as_ref()),
        (false, Err(rejection)) => writeln!(out, "refused: {rejection}"),
    })?;
    Ok(if answer.is_ok() { Ending::Held } else { Ending::Violated })
}

fn said(out: &mut dyn Write, outcome: &Outcome, released: Option<&Answer>) -> std::io::Result<()> {
    match outcome {
        Outcome::Fenced { pins } => writeln!(out, "fenced: {pins} pins end"),
        Outcome::Settled { evidence } => writeln!(out, "settled: {evidence:?} stands"),
        other => writeln!(out, "done: {other:?}"),
    }?;
    match released {
        // The pin of a load ends as it is settled.
        None | Some(Err(Rejection::PinEnded)) => Ok(()),
        Some(Ok(_)) => writeln!(out, "and its pin is released"),
        Some(Err(rejection)) => writeln!(out, "its pin stays: {rejection}"),
    }
}

/// An operator, who asks.
fn registered(client: Client, operator: &str) -> Result<Owner, Failure> {
    let registered = Owner::register(client, operator, Role::Operator, start()?);
    registered.map_err(|error| failed(operator, error))
}

fn failed(operator: &str, error: OwnerError) -> Failure {
    match error {
        OwnerError::Refused(rejection) => {
            Failure::Violated(format!("{operator} cannot ask: {rejection}"))
        }
        other => Failure::Incomplete(other.to_string()),
    }
}
