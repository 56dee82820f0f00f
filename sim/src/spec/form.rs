//! The first check: input that cannot be a command is refused by the field that is wrong.
//!
//! It asks the job for nothing but W, and leaves no trace.

use pinfold_core::bounds;
use pinfold_core::catalog::{Command, Prepare, Register};
use pinfold_core::id::{CheckpointId, EndpointId, Generation, Incarnation, ObjectId, OpId};
use pinfold_core::outcome::{DeleteOutcome, Field, Limit, Malformed, Problem};
use pinfold_core::policy::{Limits, Policy};

type Form = Result<(), Malformed>;

fn refuse_if(wrong: bool, field: Field, problem: Problem) -> Form {
    if wrong { Err(Malformed { field, problem }) } else { Ok(()) }
}

/// The form of a registration.
pub(super) fn registration(register: &Register) -> Form {
    refuse_if(register.owner.is_empty(), Field::Owner, Problem::Empty)?;
    refuse_if(register.start.is_empty(), Field::Start, Problem::Empty)
}

/// The form of a command, in a job with this W.
pub(super) fn command(op: OpId, command: &Command, unanswered: u32) -> Form {
    refuse_if(op.owner.is_empty(), Field::Owner, Problem::Empty)?;
    refuse_if(op.incarnation == Incarnation(0), Field::Incarnation, Problem::Zero)?;
    refuse_if(op.sequence == 0, Field::Sequence, Problem::Zero)?;
    match command {
        Command::Prepare(asked) => prepare(asked),
        Command::Publish { turn: Some(key), .. } => {
            refuse_if(key.conversation.is_empty(), Field::Conversation, Problem::Empty)?;
            refuse_if(key.turn.is_empty(), Field::Turn, Problem::Empty)
        }
        Command::Pin { candidates, limit } => pin(candidates, *limit),
        Command::Collect { limit } => {
            refuse_if(*limit == 0, Field::Limit, Problem::Zero)?;
            refuse_if(*limit > bounds::MAX_COLLECT, Field::Limit, Problem::TooLarge)
        }
        Command::Deleted { checkpoint, outcomes } => deleted(*checkpoint, outcomes),
        Command::Configure { policy, limits } => configure(policy, limits, unanswered),
        Command::Forget { conversation } => {
            refuse_if(conversation.is_empty(), Field::Conversation, Problem::Empty)
        }
        Command::Fence { owner, incarnation } => {
            refuse_if(owner.is_empty(), Field::Owner, Problem::Empty)?;
            refuse_if(*incarnation == Incarnation(0), Field::Incarnation, Problem::Zero)
        }
        Command::Retire { owner } => refuse_if(owner.is_empty(), Field::Owner, Problem::Empty),
        Command::Settle { .. }
        | Command::Publish { turn: None, .. }
        | Command::Release { .. }
        | Command::Lost { .. }
        | Command::Doubt { .. }
        | Command::Drop { .. } => Ok(()),
    }
}

/// Neighbours that must ascend: the first pair that does not says how.
fn ascending<T: Ord>(values: &[T], field: Field) -> Form {
    for pair in values.windows(2) {
        refuse_if(pair[0] == pair[1], field, Problem::Duplicate)?;
        refuse_if(pair[0] > pair[1], field, Problem::Unordered)?;
    }
    Ok(())
}

fn prepare(asked: &Prepare) -> Form {
    refuse_if(asked.attempt.is_empty(), Field::Attempt, Problem::Empty)?;
    refuse_if(asked.endpoint.is_empty(), Field::Endpoint, Problem::Empty)?;
    refuse_if(asked.shards.is_empty(), Field::Shards, Problem::Empty)?;
    ascending(&asked.shards, Field::Shards)?;
    let expected = asked.shape.shards().len();
    let beyond = asked.shards.iter().any(|shard| usize::from(shard.0) >= expected);
    refuse_if(beyond, Field::Shards, Problem::OutOfRange)
}

fn pin(candidates: &[EndpointId], limit: u32) -> Form {
    let empty = candidates.is_empty() || candidates.iter().any(EndpointId::is_empty);
    refuse_if(empty, Field::Candidates, Problem::Empty)?;
    let most = bounds::MAX_CANDIDATES as usize;
    refuse_if(candidates.len() > most, Field::Candidates, Problem::TooLarge)?;
    let repeats = |place: usize| candidates[..place].contains(&candidates[place]);
    let repeated = (1..candidates.len()).any(repeats);
    refuse_if(repeated, Field::Candidates, Problem::Duplicate)?;
    refuse_if(limit == 0, Field::Limit, Problem::Zero)?;
    refuse_if(limit > bounds::MAX_ANSWERS, Field::Limit, Problem::TooLarge)
}

fn deleted(checkpoint: CheckpointId, outcomes: &[(ObjectId, DeleteOutcome)]) -> Form {
    let zero = checkpoint.generation == Generation(0);
    refuse_if(zero, Field::Generation, Problem::Zero)?;
    refuse_if(outcomes.is_empty(), Field::Objects, Problem::Empty)?;
    let most = bounds::MAX_COLLECT as usize;
    refuse_if(outcomes.len() > most, Field::Objects, Problem::TooLarge)?;
    let mut neighbours = outcomes.windows(2);
    let same = neighbours.clone().any(|pair| pair[0].0 == pair[1].0);
    refuse_if(same, Field::Objects, Problem::Duplicate)?;
    let falls = neighbours.any(|pair| pair[0].0 > pair[1].0);
    refuse_if(falls, Field::Objects, Problem::Unordered)
}

fn configure(policy: &Policy, limits: &Limits, unanswered: u32) -> Form {
    for (limit, value, most) in counts(limits) {
        refuse_if(value == 0, Field::Bound(limit), Problem::Zero)?;
        refuse_if(value > most, Field::Bound(limit), Problem::TooLarge)?;
    }
    refuse_if(policy.turns == 0, Field::Turns, Problem::Zero)?;
    refuse_if(policy.turns > limits.turns, Field::Turns, Problem::TooLarge)?;
    let none = Some(0);
    refuse_if(policy.conversation_bytes == none, Field::ConversationBytes, Problem::Zero)?;
    refuse_if(policy.job_bytes == none, Field::JobBytes, Problem::Zero)?;
    let window = Field::Bound(Limit::Unanswered);
    refuse_if(limits.unanswered != unanswered, window, Problem::OutOfRange)
}

/// Every limit that is a count, and what it may not exceed.
fn counts(limits: &Limits) -> [(Limit, u32, u32); 15] {
    [
        (Limit::Owners, limits.owners, bounds::MAX_ROWS),
        (Limit::PinsPerOwner, limits.pins_per_owner, bounds::MAX_ROWS),
        (Limit::Pins, limits.pins, bounds::MAX_ROWS),
        (Limit::Shards, limits.shards, bounds::MAX_SHARDS),
        (Limit::ObjectsPerShard, limits.objects_per_shard, bounds::MAX_OBJECTS),
        (Limit::ObjectsPerCheckpoint, limits.objects_per_checkpoint, bounds::MAX_OBJECTS),
        (Limit::GenerationsPerEndpoint, limits.generations_per_endpoint, bounds::MAX_GENERATIONS),
        (Limit::ReferencesPerTurn, limits.references_per_turn, bounds::MAX_REFERENCES),
        (Limit::Candidates, limits.candidates, bounds::MAX_CANDIDATES),
        (Limit::Answers, limits.answers, bounds::MAX_ANSWERS),
        (Limit::Turns, limits.turns, bounds::MAX_TURNS),
        (Limit::Conversations, limits.conversations, bounds::MAX_ROWS),
        (Limit::ExpiredTurns, limits.expired_turns, bounds::MAX_ROWS),
        (Limit::CommandsPerList, limits.commands_per_list, bounds::MAX_COMMANDS),
        (Limit::Unanswered, limits.unanswered, bounds::MAX_UNANSWERED),
    ]
}
