//! What a replay asks of its job, and whether a job that is there already agrees.
//!
//! It is judged before the job is gone on with; a disagreement names each difference and the flag
//! that fits, and changes nothing.

use std::fmt;
use std::fs;
use std::io::ErrorKind;

use pinfold_core::id::OwnerId;
use pinfold_core::policy::{Genesis, Limits, Policy};
use serde_json::Value;

use super::{ReplayConfig, ReplayError};
use crate::link::TraceTag;

/// The replay's operator, as genesis names it.
pub(super) const OPERATOR: &str = "operator";
/// What a replay must know of its job beside the journal: the size of a state, which is part of
/// what the bytes mean, and the trace that the job began with.
const SETTINGS: &str = "replay.json";
const NEW_SETTINGS: &str = "replay.json.tmp";

/// Where the job's policy is another than the one that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// N, the live turns per conversation.
    Turns {
        /// What was asked.
        expected: u32,
        /// What the job has.
        found: u32,
    },
    /// The byte budget of each conversation; none is unbounded.
    ConversationBytes {
        /// What was asked.
        expected: Option<u64>,
        /// What the job has.
        found: Option<u64>,
    },
    /// The byte budget of the job; none is unbounded.
    JobBytes {
        /// What was asked.
        expected: Option<u64>,
        /// What the job has.
        found: Option<u64>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scope, flag, expected, found) = match *self {
            Self::Turns { expected, found } => {
                return write!(
                    f,
                    "the job keeps {found} turns per conversation, not {expected}: \
                     use --turns {found}"
                );
            }
            Self::ConversationBytes { expected, found } => {
                ("each conversation", "--conversation-bytes", expected, found)
            }
            Self::JobBytes { expected, found } => ("all of it", "--job-bytes", expected, found),
        };
        let asked = expected.map_or("without one".to_string(), |bytes| format!("{bytes} bytes"));
        match found {
            Some(found) => write!(
                f,
                "the job has a budget of {found} bytes for {scope}, not {asked}: \
                 use {flag} {found}"
            ),
            None => write!(
                f,
                "the job has no budget of bytes for {scope}, not {asked}: leave out {flag}"
            ),
        }
    }
}

/// The differences in one text.
pub(super) fn worded(differences: &[Difference]) -> String {
    differences.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ")
}

/// The policy that a replay asks for.
pub(super) fn policy(config: &ReplayConfig) -> Policy {
    Policy {
        turns: config.turns,
        conversation_bytes: config.conversation_bytes,
        job_bytes: config.job_bytes,
        ..Policy::default()
    }
}

pub(super) fn genesis(config: &ReplayConfig) -> Genesis {
    Genesis {
        namespace: config.namespace.clone(),
        epoch: config.epoch,
        operator: OwnerId::of_name(OPERATOR),
        policy: policy(config),
        limits: Limits::default(),
    }
}

/// A job that is gone on with must keep what the replay is asked to keep. Tells the trace that the
/// job began with, if that is known.
pub(super) fn agree(config: &ReplayConfig, job: &Genesis) -> Result<Option<TraceTag>, ReplayError> {
    let (asked, found) = (policy(config), job.policy);
    let turns = Difference::Turns { expected: asked.turns, found: found.turns };
    let conversation = Difference::ConversationBytes {
        expected: asked.conversation_bytes,
        found: found.conversation_bytes,
    };
    let all = Difference::JobBytes { expected: asked.job_bytes, found: found.job_bytes };
    let differences: Vec<_> = [
        (turns, asked.turns == found.turns),
        (conversation, asked.conversation_bytes == found.conversation_bytes),
        (all, asked.job_bytes == found.job_bytes),
    ]
    .into_iter()
    .filter_map(|(difference, agrees)| (!agrees).then_some(difference))
    .collect();
    if differences.is_empty() { settings(config) } else { Err(ReplayError::Policy { differences }) }
}

/// Writes them whole, for a folder whose journal this process has. A job that is killed in front of
/// this has none, and its next start says what they are: states of another size are others.
pub(super) fn write_settings(config: &ReplayConfig, trace: TraceTag) -> Result<(), ReplayError> {
    let settings = serde_json::json!({
        "bytes_per_checkpoint": config.bytes_per_checkpoint,
        "trace": format!("{:016x}", trace.0),
    });
    let (path, new) = (config.dir.join(SETTINGS), config.dir.join(NEW_SETTINGS));
    fs::write(&new, settings.to_string())
        .and_then(|()| fs::File::open(&new)?.sync_all())
        .and_then(|()| fs::rename(&new, &path))
        .map_err(|source| ReplayError::Settings { path, source })
}

/// A job that lost them, or never had any, is from now on what it was taken for.
pub(super) fn write_missing_settings(
    config: &ReplayConfig,
    trace: TraceTag,
) -> Result<(), ReplayError> {
    if config.dir.join(SETTINGS).exists() { Ok(()) } else { write_settings(config, trace) }
}

/// A folder without settings is taken as it is, and so are settings that name no trace: an older
/// pinfold wrote them.
fn settings(config: &ReplayConfig) -> Result<Option<TraceTag>, ReplayError> {
    let path = config.dir.join(SETTINGS);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // Bytes that are no text are damage, as a text without the setting is.
        Err(error) if error.kind() == ErrorKind::InvalidData => String::new(),
        Err(source) => return Err(ReplayError::Settings { path, source }),
    };
    let settings: Value = serde_json::from_str(&text).unwrap_or_default();
    let trace = match &settings["trace"] {
        Value::Null => Some(None),
        named => named.as_str().and_then(|tag| u64::from_str_radix(tag, 16).ok()).map(Some),
    };
    match (settings["bytes_per_checkpoint"].as_u64(), trace) {
        (Some(found), _) if found != config.bytes_per_checkpoint => {
            Err(ReplayError::Size { expected: config.bytes_per_checkpoint, found })
        }
        (Some(_), Some(trace)) => Ok(trace.map(TraceTag)),
        (None, _) | (_, None) => Err(ReplayError::DamagedSettings { path }),
    }
}
