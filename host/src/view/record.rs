//! One record of a journal, in words and as data.

use std::fmt::Display;

use pinfold_core::catalog::{Change, DeleteWork, Event, FollowUp};
use pinfold_core::id::{
    CheckpointId, ConversationId, Generation, Id, Incarnation, Kind, ObjectId, OpId, OwnerId,
    PinId, ShardIndex, TurnId,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Loss, LostObject, TurnKey};
use pinfold_core::policy::{Policy, Quarantine};
use serde::Serialize;

use super::counted;
use super::job::role_name;
use crate::dto::text;

/// A record.
#[derive(Clone, Debug, Serialize)]
pub struct RecordView {
    /// Its number.
    pub record: u64,
    /// What kind of event it is.
    pub kind: &'static str,
    /// Whose command was decided, or who registered.
    #[serde(with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerId>,
    /// Of which registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
    /// The command's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<u64>,
    /// The checkpoints that the event itself names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<Generation>,
    /// The pin that the event itself names.
    #[serde(with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub pin: Option<PinId>,
    /// The conversation that the event itself names.
    #[serde(with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// The turn that it names in that conversation.
    #[serde(with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The whole event, for a person.
    pub text: String,
}

/// How words show identities of 32 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identities {
    /// With all digits.
    Whole,
    /// With their first 8 digits, so that a record is one line that a person can read.
    Short,
}

impl RecordView {
    /// An event and its number.
    #[must_use]
    pub fn of(record: u64, event: &Event, identities: Identities) -> Self {
        let mut view = Self {
            record,
            kind: "",
            owner: None,
            incarnation: None,
            operation: None,
            checkpoints: Vec::new(),
            pin: None,
            conversation: None,
            turn: None,
            text: String::new(),
        };
        match event {
            Event::Genesis(genesis) => {
                view.kind = "genesis";
                view.text = format!(
                    "genesis of job {}, epoch {}, operator {}: {}",
                    genesis.namespace,
                    identities.show(genesis.epoch),
                    identities.show(genesis.operator),
                    policy(&genesis.policy),
                );
            }
            Event::Recovered => {
                view.kind = "recovered";
                view.text = "recovered: a host took the journal over".into();
            }
            Event::Registered { owner, role, incarnation, .. } => {
                (view.kind, view.owner) = ("registered", Some(*owner));
                view.incarnation = Some(*incarnation);
                let (owner, role) = (identities.show(*owner), role_name(*role));
                view.text = format!("{owner} registered as {role}, incarnation {incarnation}");
            }
            Event::Decided { op, change, .. } => {
                (view.owner, view.incarnation) = (Some(op.owner), Some(op.incarnation));
                view.operation = Some(op.sequence);
                view.take_change(change);
                view.text = format!("{} {}", identities.op(*op), identities.change(change));
            }
            Event::FollowedUp(follow_up) => {
                view.kind = "followed up";
                view.take_follow_up(follow_up);
                view.text = format!("follow-up: {}", identities.follow_up(follow_up));
            }
        }
        view
    }

    /// The kind of a change, and what it names.
    fn take_change(&mut self, change: &Change) {
        self.kind = kind(change);
        match change {
            Change::Prepared { generation, .. } => self.checkpoints.push(*generation),
            Change::Joined { checkpoint, .. }
            | Change::AlreadyPublished { checkpoint }
            | Change::Lost { checkpoint, .. }
            | Change::Deleted { checkpoint, .. }
            | Change::Dropped { checkpoint } => self.checkpoints.push(checkpoint.generation),
            Change::Published { checkpoint, turn, .. } => {
                self.checkpoints.push(checkpoint.generation);
                self.take_turn(*turn);
            }
            Change::Pinned { checkpoints } => {
                self.checkpoints = checkpoints.iter().map(|id| id.generation).collect();
            }
            Change::Collected { work, .. } => {
                self.checkpoints = work.iter().map(|work| work.checkpoint.generation).collect();
            }
            Change::Settled { pin, .. }
            | Change::Released { pin }
            | Change::Doubted { pin, .. } => self.pin = Some(*pin),
            Change::Forgotten { conversation } => self.conversation = Some(*conversation),
            Change::Refused(_)
            | Change::Configured { .. }
            | Change::Fenced { .. }
            | Change::Retired { .. } => {}
        }
    }

    fn take_follow_up(&mut self, follow_up: &FollowUp) {
        match follow_up {
            FollowUp::EndPin { pin } => self.pin = Some(*pin),
            FollowUp::Expire { turn } => self.take_turn(Some(*turn)),
            FollowUp::Purge { conversation, .. } | FollowUp::Settle { conversation } => {
                self.conversation = Some(*conversation);
            }
            FollowUp::Trim { .. } => {}
        }
    }

    fn take_turn(&mut self, turn: Option<TurnKey>) {
        self.conversation = turn.map(|turn| turn.conversation);
        self.turn = turn.map(|turn| turn.turn);
    }
}

const fn kind(change: &Change) -> &'static str {
    match change {
        Change::Refused(_) => "refused",
        Change::Prepared { .. } => "prepared",
        Change::Joined { .. } => "joined",
        Change::AlreadyPublished { .. } => "already published",
        Change::Pinned { .. } => "pinned",
        Change::Settled { .. } => "settled",
        Change::Released { .. } => "released",
        Change::Published { .. } => "published",
        Change::Lost { .. } => "lost",
        Change::Doubted { .. } => "doubted",
        Change::Collected { .. } => "collected",
        Change::Deleted { .. } => "deleted",
        Change::Configured { .. } => "configured",
        Change::Forgotten { .. } => "forgotten",
        Change::Dropped { .. } => "dropped",
        Change::Fenced { .. } => "fenced",
        Change::Retired { .. } => "retired",
    }
}

impl Identities {
    fn show<K: Kind>(self, id: Id<K>) -> String {
        let mut digits = id.to_string();
        if self == Self::Short {
            digits.truncate(8);
        }
        digits
    }

    /// `owner.incarnation.sequence`, as everywhere.
    fn op(self, op: OpId) -> String {
        format!("{}.{}.{}", self.show(op.owner), op.incarnation, op.sequence)
    }

    /// The operation that took the pin, and the pin's place among its answers.
    fn pin(self, pin: PinId) -> String {
        format!("{}.{}", self.op(pin.op), pin.place)
    }

    /// `conversation/turn`.
    fn turn(self, turn: TurnKey) -> String {
        format!("{}/{}", self.show(turn.conversation), self.show(turn.turn))
    }

    fn change(self, change: &Change) -> String {
        match change {
            Change::Refused(rejection) => format!("refused: {rejection}"),
            Change::Prepared { prepare, generation } => {
                let (shape, endpoint) = (&prepare.shape, self.show(prepare.endpoint));
                let size = format!(
                    "{}, {}, {} bytes",
                    counted(shape.shards().len() as u64, "shard"),
                    counted(shape.objects(), "object"),
                    shape.bytes()
                );
                let (shards, attempt) = (shards(&prepare.shards), self.show(prepare.attempt));
                format!(
                    "prepared checkpoint {generation} for {shards}: {size}, endpoint {endpoint}, \
                     attempt {attempt}"
                )
            }
            Change::Joined { checkpoint, shards: joined } => {
                format!("joined {} for {}", named(*checkpoint), shards(joined))
            }
            Change::AlreadyPublished { checkpoint } => {
                format!("found the position kept, and pinned {}", named(*checkpoint))
            }
            Change::Pinned { checkpoints } if checkpoints.is_empty() => "pinned nothing".into(),
            Change::Pinned { checkpoints } => {
                format!("pinned {}", list(checkpoints.iter().map(|id| named(*id))))
            }
            Change::Settled { pin, shard, evidence } => {
                let shard = shard.map(|shard| format!(", shard {shard}")).unwrap_or_default();
                format!("settled pin {}{shard}: {}", self.pin(*pin), evidence_words(*evidence))
            }
            Change::Released { pin } => format!("released pin {}", self.pin(*pin)),
            Change::Published { checkpoint, turn, expired } => {
                self.published(*checkpoint, *turn, *expired)
            }
            Change::Lost { checkpoint, object, why } => {
                let object = match object {
                    LostObject::Private(object) => format!("object {object}"),
                    LostObject::Shared(place) => format!("shared object {place}"),
                };
                format!("marked {} lost: {object} {}", named(*checkpoint), loss(*why))
            }
            Change::Doubted { pin, doubtful: true } => format!("doubted pin {}", self.pin(*pin)),
            Change::Doubted { pin, doubtful: false } => format!("undoubted pin {}", self.pin(*pin)),
            Change::Collected { work, more } => collected(work, *more),
            Change::Deleted { checkpoint, outcomes } => deleted(*checkpoint, outcomes),
            Change::Configured { policy: new, trim, .. } => {
                let trim = if *trim { "; what is beyond it expires" } else { "" };
                format!("configured: {}{trim}", policy(new))
            }
            Change::Forgotten { conversation } => {
                format!("forgot conversation {}", self.show(*conversation))
            }
            Change::Dropped { checkpoint } => {
                format!("dropped the unscoped mark of {}", named(*checkpoint))
            }
            Change::Fenced { owner, incarnation } => {
                format!("fenced {}, incarnation {incarnation}", self.show(*owner))
            }
            Change::Retired { owner } => format!("retired {}", self.show(*owner)),
        }
    }

    fn published(
        self,
        checkpoint: CheckpointId,
        turn: Option<TurnKey>,
        expired: Option<TurnKey>,
    ) -> String {
        let turn = turn.map_or("without a conversation".into(), |turn| {
            format!("for turn {}", self.turn(turn))
        });
        let expired = expired.map(|turn| format!("; turn {} expired", self.turn(turn)));
        format!("published {} {turn}{}", named(checkpoint), expired.unwrap_or_default())
    }

    fn follow_up(self, follow_up: &FollowUp) -> String {
        match follow_up {
            FollowUp::EndPin { pin } => format!("ended pin {}, which was fenced", self.pin(*pin)),
            FollowUp::Expire { turn } => format!("turn {} expired", self.turn(*turn)),
            FollowUp::Purge { conversation, turns } => {
                let turns = counted(*turns, "expired turn");
                format!("dropped {turns} of forgotten conversation {}", self.show(*conversation))
            }
            FollowUp::Settle { conversation } => {
                format!("nothing more is due in conversation {}", self.show(*conversation))
            }
            FollowUp::Trim { next: None } => "looked at every conversation".into(),
            FollowUp::Trim { next: Some(next) } => {
                format!("looked at the first {}", counted(*next, "conversation"))
            }
        }
    }
}

fn named(checkpoint: CheckpointId) -> String {
    format!("checkpoint {}", checkpoint.generation)
}

fn list<T: Display>(all: impl Iterator<Item = T>) -> String {
    let texts: Vec<_> = all.map(|one| one.to_string()).collect();
    texts.join(", ")
}

fn shards(all: &[ShardIndex]) -> String {
    let what = if all.len() == 1 { "shard" } else { "shards" };
    format!("{what} {}", list(all.iter()))
}

fn policy(policy: &Policy) -> String {
    let budget = |bytes: Option<u64>, of: &str| match bytes {
        Some(bytes) => format!(", {bytes} bytes per {of}"),
        None => String::new(),
    };
    let quarantine = match policy.quarantine {
        Quarantine::Generation => "",
        Quarantine::Endpoint => ", quarantine by endpoint",
    };
    format!(
        "{} per conversation{}{}{quarantine}",
        counted(policy.turns, "turn"),
        budget(policy.conversation_bytes, "conversation"),
        budget(policy.job_bytes, "job"),
    )
}

const fn evidence_words(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::NotExposed => "not exposed",
        Evidence::Active => "active",
        Evidence::Quiescing => "quiescing",
        Evidence::QuiescedSuccess => "success",
        Evidence::QuiescedFailure => "failure",
        Evidence::InDoubt => "in doubt",
    }
}

const fn loss(why: Loss) -> &'static str {
    match why {
        Loss::Absent => "is absent",
        Loss::WrongSize => "has another size",
        Loss::WrongBytes => "has wrong bytes",
        Loss::Unreadable => "cannot be read",
    }
}

fn collected(work: &[DeleteWork], more: bool) -> String {
    let piece = |work: &DeleteWork| {
        let DeleteWork { checkpoint, first, count } = *work;
        let objects = match count {
            1 => format!("object {first}"),
            count => {
                format!("objects {first} to {}", first.saturating_add(count).saturating_sub(1))
            }
        };
        format!("{objects} of {}", named(checkpoint))
    };
    let more = if more { "; more is left" } else { "" };
    match work {
        [] => format!("collected nothing{more}"),
        work => format!("handed out for deletion: {}{more}", list(work.iter().map(piece))),
    }
}

fn deleted(checkpoint: CheckpointId, outcomes: &[(ObjectId, DeleteOutcome)]) -> String {
    let number = |wanted| outcomes.iter().filter(|(_, outcome)| *outcome == wanted).count();
    let parts = [
        (DeleteOutcome::Gone, "gone"),
        (DeleteOutcome::Refused, "refused"),
        (DeleteOutcome::Unknown, "unknown"),
    ];
    let parts = parts.map(|(outcome, word)| (number(outcome), word));
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let parts = list(parts.map(|(number, word)| format!("{number} {word}")));
    format!("deleted of {}: {parts}", named(checkpoint))
}
