//! The job that is served: the one of its folder, or a new one.

use pinfold_core::id::{Epoch, Namespace, OwnerId};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::journal::SegmentLog;
use pinfold_host::node::{Effects, Node, NodeError};

use super::settings::{Bars, Settings};
use crate::Failure;
use crate::random::random;

/// The node of the folder's job, or of a new one.
pub(super) fn open(settings: &Settings) -> Result<(Node, Effects, Option<u64>), Failure> {
    let dir = settings.data()?;
    if SegmentLog::exists(dir)? {
        let agree = |job: &Genesis| agree(settings, job);
        let (node, effects, recovery) = Node::open_if(dir, agree)?;
        return Ok((node, effects, Some(recovery.records)));
    }
    let genesis = genesis(settings)?;
    let (node, effects) = Node::create(dir, genesis).map_err(node_failure)?;
    Ok((node, effects, None))
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        node_failure(error)
    }
}

pub(super) fn node_failure(error: NodeError) -> Failure {
    match error {
        NodeError::Journal(error) => error.into(),
        NodeError::Recover(error) => Failure::Violated(error.to_string()),
        NodeError::Append(_) | NodeError::Thread(_) | NodeError::Panicked => {
            Failure::Incomplete(error.to_string())
        }
    }
}

fn genesis(settings: &Settings) -> Result<Genesis, Failure> {
    let name = u64::from_be_bytes(random("name")?);
    let named = || format!("job-{name:016x}").parse();
    let namespace = settings.namespace.clone().map_or_else(named, Ok);
    let policy = Policy::default();
    Ok(Genesis {
        namespace: namespace.map_err(|error| Failure::Incomplete(error.to_string()))?,
        epoch: Epoch::from_u128(u128::from_be_bytes(random("epoch")?)),
        operator: OwnerId::of_name("operator"),
        policy: Policy {
            turns: settings.turns.unwrap_or(policy.turns),
            conversation_bytes: settings.conversation_bytes,
            job_bytes: settings.job_bytes,
            quarantine: settings.quarantine.map_or(policy.quarantine, Bars::means),
        },
        limits: Limits::default(),
    })
}

/// What is said of a job that is there must be so.
fn agree(settings: &Settings, job: &Genesis) -> Result<(), Failure> {
    let mut differences = Vec::new();
    let mut differs = |flag: &str, asked: Option<String>, found: String| {
        if let Some(asked) = asked.filter(|asked| *asked != found) {
            differences.push(format!("{flag} {asked}, and it has {found}"));
        }
    };
    let budget = |bytes: Option<u64>| bytes.map_or("none".to_string(), |bytes| bytes.to_string());
    let namespace = settings.namespace.as_ref().map(Namespace::to_string);
    differs("--namespace", namespace, job.namespace.to_string());
    let turns = settings.turns.map(|turns| turns.to_string());
    differs("--turns", turns, job.policy.turns.to_string());
    let asked = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string());
    let conversation = asked(settings.conversation_bytes);
    differs("--conversation-bytes", conversation, budget(job.policy.conversation_bytes));
    differs("--job-bytes", asked(settings.job_bytes), budget(job.policy.job_bytes));
    let quarantine = settings.quarantine.map(|it| format!("{:?}", it.means()).to_lowercase());
    differs("--quarantine", quarantine, format!("{:?}", job.policy.quarantine).to_lowercase());
    match differences.is_empty() {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "the job of {} is another: {}; leave out what differs",
            settings.data()?.display(),
            differences.join("; ")
        ))),
    }
}
