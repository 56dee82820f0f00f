//! Each durable record, judged in the situation in which it was decided (I4, I5, I7, I8, I9, I12,
//! I14).
//!
//! A record is compared with what was asked, and with what is known of the checkpoint, the pin and
//! the turn that it names. Where nobody knows any more what was asked, that part is not judged.

use std::sync::Arc;

use pinfold_core::catalog::{Change, Command, Prepare};
use pinfold_core::few::Few;
use pinfold_core::id::{CheckpointId, OpId, PinId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{Evidence, LostObject, Outcome, Pinned, Rejection, TurnKey};

use super::desk::{Answer, Receipt};
use super::{Judged, Oracle, broken, demand};
use crate::shared::Shared;
use crate::violation::Violation;

impl Oracle {
    /// A command was decided, and that is durable.
    pub(super) fn decided(&mut self, op: OpId, change: &Change) -> Judged {
        self.judge_sender(op)?;
        let content = self.content_of(op, change)?;
        let again = self.desk.receipts.contains_key(&op) || self.desk.is_forgotten(op, &self.facts);
        demand(!again, Invariant::I14, || format!("{op} was decided a second time"))?;
        self.judge_change(op, change, content.as_deref())?;
        let answer = self.answer_of(op, change);
        if let (
            Change::Refused(Rejection::TurnExpired),
            Some(Command::Publish { turn: Some(turn), .. }),
        ) = (change, content.as_deref())
        {
            self.facts.ledger.remember_expired(*turn);
        }
        self.facts.follow(op, change)?;
        if let Change::Deleted { checkpoint, .. } = change
            && !self.facts.checkpoints.contains_key(checkpoint)
        {
            self.moves.forget(*checkpoint);
        }
        let receipt = Receipt { content, answer, first: None };
        self.desk.receipts.insert(op, Shared::new(receipt));
        self.desk.forget_receipts(op, &self.facts);
        Ok(())
    }

    /// Only the current, unfenced incarnation of an owner is obeyed.
    fn judge_sender(&self, op: OpId) -> Judged {
        let current = self.facts.owners.get(&op.owner).map(|owner| owner.current);
        demand(current == Some(op.incarnation), Invariant::I12, || {
            format!("{op} was decided, and its incarnation is not the current one")
        })?;
        demand(!self.facts.is_fenced(op.owner, op.incarnation), Invariant::I12, || {
            format!("{op} was decided, and its incarnation is fenced")
        })
    }

    /// What was asked with this operation; none when that is not known.
    fn content_of(&self, op: OpId, change: &Change) -> Result<Option<Arc<Command>>, Violation> {
        let (mut asked, mut asked_here) = (false, false);
        let mut fitting: Vec<&Arc<Command>> = Vec::new();
        for (epoch, piece) in self.desk.pieces().filter(|(_, piece)| piece.op == op) {
            asked = true;
            asked_here |= epoch == self.desk.epoch;
            let fits = epoch == self.desk.epoch && fits(change, &piece.command);
            if fits && !fitting.contains(&&piece.command) {
                fitting.push(&piece.command);
            }
        }
        demand(asked_here || !asked, Invariant::I12, || {
            format!("{op} was decided, and every message of it was of another epoch")
        })?;
        let success = matches!(change, Change::Settled { evidence, .. }
            if *evidence == Evidence::QuiescedSuccess);
        let promise = if success { Invariant::I4 } else { Invariant::I14 };
        demand(!fitting.is_empty() || !asked, promise, || {
            format!("{op} was decided as {change:?}, which nobody asked")
        })?;
        let only = (fitting.len() == 1).then(|| fitting.first()).flatten();
        Ok(only.map(|command| Arc::clone(command)))
    }

    /// Nothing is called lost on an unknown outcome; an operator answers for itself.
    fn judge_loss(&self, op: OpId, checkpoint: CheckpointId, object: LostObject) -> Judged {
        let LostObject::Private(object) = object else { return Ok(()) };
        let known = self.facts.is_operator(op.owner) || self.moves.was_missed(checkpoint, object);
        demand(known, Invariant::I9, || {
            format!("{op} calls {object} of {checkpoint} lost, and nobody found it missing")
        })
    }

    fn judge_change(&self, op: OpId, change: &Change, content: Option<&Command>) -> Judged {
        match change {
            Change::Lost { checkpoint, object, .. } => self.judge_loss(op, *checkpoint, *object),
            Change::Refused(rejection) => self.judge_refusal(op, rejection, content),
            Change::Prepared { generation, .. } => {
                demand(*generation > self.facts.minted, Invariant::I17, || {
                    format!("{op} mints generation {generation} again, and with it its keys")
                })
            }
            Change::Joined { checkpoint, .. } => self.judge_join(op, *checkpoint, content, change),
            Change::AlreadyPublished { checkpoint } => {
                self.judge_serving(op, *checkpoint)?;
                self.judge_digest(op, *checkpoint, content)
            }
            Change::Pinned { checkpoints } => {
                checkpoints.iter().try_for_each(|it| self.judge_serving(op, *it))
            }
            Change::Published { checkpoint, turn, .. } => {
                if let Some(Command::Publish { pin, .. }) = content {
                    self.judge_publisher(op, *pin, *checkpoint)?;
                }
                self.judge_publication(op, *checkpoint, *turn)
            }
            Change::Settled { .. }
            | Change::Released { .. }
            | Change::Doubted { .. }
            | Change::Collected { .. }
            | Change::Deleted { .. }
            | Change::Configured { .. }
            | Change::Forgotten { .. }
            | Change::Dropped { .. }
            | Change::Fenced { .. }
            | Change::Retired { .. } => Ok(()),
        }
    }

    fn judge_refusal(&self, op: OpId, rejection: &Rejection, content: Option<&Command>) -> Judged {
        let pin = content.and_then(named_pin);
        let ended = matches!(rejection, Rejection::PinEnded | Rejection::UnknownPin);
        if let Some(pin) = pin.filter(|pin| ended && self.facts.pins.contains_key(pin)) {
            let what = format!("{op} was told {rejection:?} of pin {pin}, which nothing ended");
            return broken(Invariant::I8, what);
        }
        if let (Rejection::TurnExpired, Some(Command::Publish { turn: Some(turn), .. })) =
            (rejection, content)
        {
            return demand(!self.facts.ledger.is_retained(*turn), Invariant::I6, || {
                format!("{op} was told that turn {turn} expired, and nothing expired it")
            });
        }
        Ok(())
    }

    /// An attempt is joined while it is prepared, and by none but its own geometry.
    fn judge_join(
        &self,
        op: OpId,
        id: CheckpointId,
        content: Option<&Command>,
        change: &Change,
    ) -> Judged {
        let Some(row) = self.facts.checkpoints.get(&id) else {
            return broken(Invariant::I9, format!("{op} joins {id}, which has no record"));
        };
        let saved = self.facts.pins.values().any(|pin| pin.save && pin.checkpoint == id);
        let healthy = saved && !row.lost && !row.collected && !row.has_failed();
        demand(healthy, Invariant::I9, || {
            format!("{op} joins {id}, which is lost, failed or being collected")
        })?;
        if let Change::Joined { shards, .. } = change {
            let taken = shards.iter().find(|shard| {
                let there = row.shards.get(usize::from(shard.0));
                there.is_none_or(|there| there.claimed_by.is_some())
            });
            demand(taken.is_none(), Invariant::I4, || {
                format!("{op} claims shards {shards:?} of {id}, and one is taken or not there")
            })?;
        }
        self.judge_digest(op, id, content)
    }

    /// What is prepared on a checkpoint has the digest and the shape with which it was minted.
    fn judge_digest(&self, op: OpId, id: CheckpointId, content: Option<&Command>) -> Judged {
        let Some(Command::Prepare(Prepare { digest, shape, .. })) = content else { return Ok(()) };
        let Some(row) = self.facts.checkpoints.get(&id) else { return Ok(()) };
        demand(row.digest == *digest && row.shape == *shape, Invariant::I5, || {
            format!("{op} prepares {digest} on {id}, which was minted as {}", row.digest)
        })
    }

    /// What is served is whole, not lost and not being collected.
    fn judge_serving(&self, op: OpId, id: CheckpointId) -> Judged {
        let Some(row) = self.facts.checkpoints.get(&id) else {
            return broken(Invariant::I9, format!("{op} is served {id}, which has no record"));
        };
        if let Some(why) = row.unservable() {
            return broken(Invariant::I9, format!("{op} is served {id}, and {why}"));
        }
        self.judge_proof(op, id)
    }

    fn judge_proof(&self, op: OpId, id: CheckpointId) -> Judged {
        let Some(row) = self.facts.checkpoints.get(&id) else { return Ok(()) };
        let Some(shard) = self.moves.unproven(id, row) else { return Ok(()) };
        let what = format!("{op} has {id}, whose shard {shard} was not put, confirmed and retired");
        broken(Invariant::I4, what)
    }

    /// A publication is by a live pin of the caller on that very checkpoint.
    fn judge_publisher(&self, op: OpId, pin: PinId, id: CheckpointId) -> Judged {
        let held = self.facts.pins.get(&pin);
        let Some(held) = held else {
            return broken(
                Invariant::I8,
                format!("{op} publishes by pin {pin}, which is not live"),
            );
        };
        demand(held.checkpoint == id, Invariant::I4, || {
            format!("{op} publishes {id} by pin {pin}, which holds {}", held.checkpoint)
        })?;
        let own = (pin.op.owner, pin.op.incarnation) == (op.owner, op.incarnation);
        demand(own, Invariant::I4, || format!("{op} publishes by pin {pin}, which is another's"))
    }

    fn judge_publication(&self, op: OpId, id: CheckpointId, turn: Option<TurnKey>) -> Judged {
        let Some(row) = self.facts.checkpoints.get(&id) else {
            return broken(Invariant::I4, format!("{op} publishes {id}, which nobody prepared"));
        };
        demand(!row.lost && !row.collected, Invariant::I9, || {
            format!("{op} publishes {id}, which is lost or being collected")
        })?;
        if let Some(turn) = turn {
            demand(!self.facts.ledger.is_over(turn), Invariant::I7, || {
                format!("{op} publishes turn {turn}, which is over for ever")
            })?;
        }
        if row.published {
            return Ok(());
        }
        demand(row.unservable().is_none(), Invariant::I4, || {
            format!("{op} publishes {id}, and not every shard has succeeded")
        })?;
        self.judge_proof(op, id)?;
        let mut asked = self.desk.pieces().filter(|(_, piece)| piece.op == op).peekable();
        let in_time =
            asked.peek().is_none() || asked.any(|(_, piece)| !piece.whole_too_late.contains(&id));
        demand(in_time, Invariant::I4, || {
            format!("{op} published {id} before its last object was confirmed and retired")
        })
    }

    /// What a record answers, as far as it says so; the rest is blank.
    fn answer_of(&self, op: OpId, change: &Change) -> Answer {
        let pin = PinId { op, place: 0 };
        Ok(match change {
            Change::Refused(rejection) => return Err(*rejection),
            Change::Prepared { prepare, generation } => {
                let endpoint = prepare.endpoint;
                let checkpoint = CheckpointId { endpoint, generation: *generation };
                Outcome::Prepared { pin, checkpoint }
            }
            Change::Joined { checkpoint, .. } => Outcome::Prepared { pin, checkpoint: *checkpoint },
            Change::AlreadyPublished { checkpoint } => {
                Outcome::AlreadyPublished { pin, checkpoint: *checkpoint }
            }
            Change::Pinned { checkpoints } => {
                let mut answers = Few::new();
                for checkpoint in checkpoints {
                    let row = self.facts.checkpoints.get(checkpoint);
                    let digest = row.map(|row| row.digest).unwrap_or_default();
                    if !answers.push(Pinned { checkpoint: *checkpoint, digest }) {
                        break;
                    }
                }
                Outcome::Pinned(answers)
            }
            Change::Settled { evidence, .. } => Outcome::Settled { evidence: *evidence },
            Change::Released { .. } => Outcome::Released,
            Change::Published { expired, .. } => {
                Outcome::Published { expired: *expired, follow_ups: false }
            }
            Change::Lost { .. } => Outcome::Lost,
            Change::Doubted { .. } => Outcome::Doubted,
            Change::Collected { work, more } => {
                let objects = work.iter().map(|piece| piece.count).sum();
                Outcome::Collected { objects, more: *more }
            }
            Change::Deleted { .. } => Outcome::Deleted { left: 0 },
            Change::Configured { .. } => Outcome::Configured,
            Change::Forgotten { .. } => Outcome::Forgotten,
            Change::Dropped { .. } => Outcome::Dropped,
            Change::Fenced { .. } => Outcome::Fenced { pins: 0 },
            Change::Retired { .. } => Outcome::Retired,
        })
    }
}

/// The pin that a command names.
fn named_pin(command: &Command) -> Option<PinId> {
    match command {
        Command::Settle { pin, .. }
        | Command::Publish { pin, .. }
        | Command::Release { pin }
        | Command::Doubt { pin, .. } => Some(*pin),
        Command::Prepare(_)
        | Command::Pin { .. }
        | Command::Lost { .. }
        | Command::Collect { .. }
        | Command::Deleted { .. }
        | Command::Configure { .. }
        | Command::Forget { .. }
        | Command::Drop { .. }
        | Command::Fence { .. }
        | Command::Retire { .. } => None,
    }
}

/// Whether a record can be what a command asked for.
fn fits(change: &Change, command: &Command) -> bool {
    let is = |asked: Command| *command == asked;
    match change {
        Change::Refused(_) => true,
        Change::Prepared { prepare, .. } => {
            matches!(command, Command::Prepare(asked) if asked == prepare)
        }
        Change::Joined { checkpoint, shards } => {
            let same =
                |asked: &Prepare| asked.shards == *shards && asked.endpoint == checkpoint.endpoint;
            matches!(command, Command::Prepare(asked) if same(asked))
        }
        Change::AlreadyPublished { checkpoint } => {
            matches!(command, Command::Prepare(asked) if asked.endpoint == checkpoint.endpoint)
        }
        Change::Pinned { checkpoints } => {
            let Command::Pin { candidates, limit } = command else { return false };
            checkpoints.len() as u64 <= u64::from(*limit)
                && checkpoints.iter().all(|id| candidates.contains(&id.endpoint))
        }
        Change::Settled { pin, shard, evidence } => {
            is(Command::Settle { pin: *pin, shard: *shard, evidence: *evidence })
        }
        Change::Released { pin } => is(Command::Release { pin: *pin }),
        Change::Published { turn, .. } => {
            matches!(command, Command::Publish { turn: asked, .. } if asked == turn)
        }
        Change::Lost { checkpoint, object, why } => {
            is(Command::Lost { checkpoint: *checkpoint, object: *object, why: *why })
        }
        Change::Doubted { pin, doubtful } => is(Command::Doubt { pin: *pin, doubtful: *doubtful }),
        Change::Collected { .. } => matches!(command, Command::Collect { .. }),
        Change::Deleted { checkpoint, outcomes } => {
            let Command::Deleted { checkpoint: of, outcomes: asked } = command else {
                return false;
            };
            of == checkpoint && asked == outcomes
        }
        Change::Configured { policy, limits, .. } => {
            is(Command::Configure { policy: *policy, limits: *limits })
        }
        Change::Forgotten { conversation } => is(Command::Forget { conversation: *conversation }),
        Change::Dropped { checkpoint } => is(Command::Drop { checkpoint: *checkpoint }),
        Change::Fenced { owner, incarnation } => {
            is(Command::Fence { owner: *owner, incarnation: *incarnation })
        }
        Change::Retired { owner } => is(Command::Retire { owner: *owner }),
    }
}
