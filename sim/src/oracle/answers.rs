//! Each answer that leaves, compared with what is durable (I5, I10, I12, I14, I18).
//!
//! An answer says that something was decided, so its record must be on the disk; and whoever asks
//! again is told the same. It takes the record's word for what was decided.

use pinfold_core::catalog::Register;
use pinfold_core::engine::{Input, Reply, Ticket};
use pinfold_core::id::{Incarnation, OpId, OwnerId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{Evidence, Outcome, Rejection};

use super::desk::{Answer, Asked, Piece, What};
use super::{Judged, Oracle, broken, demand};
use crate::protocol::{leaves_no_record, lifts};
use crate::store::StoreKey;

impl Oracle {
    pub(super) fn submitted(&mut self, ticket: Ticket, input: &Input) {
        self.desk.submitted(ticket, input, &self.facts);
    }

    /// An answer leaves.
    pub(super) fn replied(&mut self, ticket: Ticket, reply: &Reply) -> Judged {
        if let Reply::Poisoned = reply {
            // Nobody knows what became of it; its record may still show up.
            if let Some(asked) = self.desk.open.get_mut(&ticket) {
                asked.dead = true;
            }
            self.desk.listed.remove(&ticket);
            return Ok(());
        }
        let listed = self.desk.listed.remove(&ticket);
        let Some(asked) = self.desk.open.remove(&ticket) else { return Ok(()) };
        if asked.epoch != self.desk.epoch {
            return demand(is_barred(reply), Invariant::I12, || {
                format!("ticket {} is of another epoch, and was answered {reply:?}", ticket.0)
            });
        }
        self.judge_reply(&asked, reply, &listed.unwrap_or_default())
    }

    fn judge_reply(&mut self, asked: &Asked, reply: &Reply, listed: &[StoreKey]) -> Judged {
        match (&asked.what, reply) {
            (What::Register { register, granted }, Reply::Command(answer)) => {
                self.judge_registration(register, granted, answer)
            }
            (What::Command(piece), Reply::Command(answer)) => self.judge_answer(piece, answer),
            (What::List(pieces), Reply::List(answers)) if pieces.len() == answers.len() => {
                let mut stopped = false;
                for (piece, answer) in pieces.iter().zip(answers) {
                    demand(answer.is_none() == stopped, Invariant::I14, || {
                        format!("a list did not stop at its first refusal, but at {}", piece.op)
                    })?;
                    let Some(answer) = answer else { continue };
                    stopped = answer.is_err();
                    self.judge_answer(piece, answer)?;
                }
                Ok(())
            }
            (What::List(_), Reply::Command(Err(_))) | (What::Job, Reply::Job(_)) => Ok(()),
            (What::Gauges { since }, Reply::Gauges(gauges)) => {
                judge_counts(since, (gauges.turns, gauges.pins))
            }
            (What::Blockers { checkpoint, at_first, since }, Reply::Blockers(blockers)) => {
                self.judge_blockers(*checkpoint, [at_first, since], blockers.as_ref())
            }
            (What::Audit { minted }, Reply::Audit(verdicts)) => {
                self.judge_audit(*minted, listed, verdicts)
            }
            (
                What::Register { .. }
                | What::Command(_)
                | What::List(_)
                | What::Job
                | What::Gauges { .. }
                | What::Blockers { .. }
                | What::Audit { .. },
                _,
            ) => broken(Invariant::L2, format!("{:?} was answered {reply:?}", asked.what)),
        }
    }

    fn judge_registration(
        &self,
        register: &Register,
        granted: &[Incarnation],
        answer: &Answer,
    ) -> Judged {
        let owner = register.owner;
        match answer {
            Ok(Outcome::Registered { incarnation }) => {
                demand(granted.contains(incarnation), Invariant::I10, || {
                    format!(
                        "owner {owner} was told incarnation {incarnation}, which is not durable"
                    )
                })
            }
            Ok(other) => broken(Invariant::L2, format!("a registration was answered {other:?}")),
            Err(rejection) => self.judge_current(owner, rejection),
        }
    }

    /// A refusal that names an incarnation reveals its registration.
    fn judge_current(&self, owner: OwnerId, rejection: &Rejection) -> Judged {
        let Rejection::StaleIncarnation { current } = rejection else { return Ok(()) };
        let known = self.facts.owners.get(&owner);
        // One that was retired since tells nothing any more.
        let durable = known.is_some_and(|row| row.current >= *current || row.current.0 == 0);
        demand(current.0 == 0 || durable, Invariant::I10, || {
            format!("owner {owner} was told of incarnation {current}, which is not durable")
        })
    }

    fn judge_answer(&mut self, piece: &Piece, answer: &Answer) -> Judged {
        let op = piece.op;
        let limited = matches!(answer, Err(Rejection::LimitExceeded { .. }));
        demand(!limited || !lifts(&piece.command), Invariant::I18, || {
            format!("{op} lifts, and was refused by a limit: {answer:?}")
        })?;
        if let Err(rejection) = answer {
            self.judge_current(op.owner, rejection)?;
        }
        let forgotten = self.desk.is_forgotten(op, &self.facts);
        let current = self.facts.owners.get(&op.owner).map(|owner| owner.current);
        let recorded = !answer.as_ref().is_err_and(leaves_no_record);
        if let Some(receipt) = self.desk.receipts.get_mut(&op) {
            let same = receipt.content.as_ref().is_none_or(|content| *content == piece.command);
            if recorded || same && *answer == receipt.answer {
                demand(same, Invariant::I14, || {
                    format!("{op} was used for other content, and answered {answer:?}")
                })?;
                judge_digests(op, &receipt.answer, answer)?;
                let first = receipt.first.get_or_insert(*answer);
                return demand(
                    first == answer && agrees(&receipt.answer, answer),
                    Invariant::I14,
                    || format!("{op} was decided as {:?}, and answered {answer:?}", receipt.answer),
                );
            }
            let conflict = *answer == Err(Rejection::OpConflict);
            demand(!conflict || receipt.content.is_none() || !same, Invariant::I14, || {
                format!("{op} was repeated as it was, and told of a conflict")
            })?;
        } else if recorded {
            let promise = if forgotten { Invariant::I14 } else { Invariant::I10 };
            let what = format!("{op} was answered {answer:?}, and no such record is durable");
            return broken(promise, what);
        }
        let early = *answer == Err(Rejection::ReceiptForgotten)
            && current == Some(op.incarnation)
            && !forgotten;
        demand(!early, Invariant::I14, || format!("the receipt of {op} was forgotten too early"))
    }
}

/// Whether a reply says no more than that the message is of another epoch, or ill-formed.
fn is_barred(reply: &Reply) -> bool {
    let barred =
        |answer: &Answer| matches!(answer, Err(Rejection::WrongEpoch | Rejection::Malformed(_)));
    match reply {
        // The form of a list and the version of a client come before the epoch.
        Reply::Command(answer) => {
            let form = matches!(
                answer,
                Err(Rejection::UnknownVersion { .. } | Rejection::LimitExceeded { .. })
            );
            form || barred(answer)
        }
        Reply::List(answers) => answers.iter().flatten().all(barred),
        Reply::WrongEpoch | Reply::Poisoned => true,
        Reply::Job(_) | Reply::Gauges(_) | Reply::Blockers(_) | Reply::Audit(_) => false,
    }
}

/// Gauges count what was live in one of the durable situations since they were asked for.
fn judge_counts(since: &[(u64, u64)], shown: (u64, u64)) -> Judged {
    let promise = if since.iter().all(|(_, pins)| shown.1 < *pins) {
        Invariant::I8
    } else if since.iter().all(|(turns, _)| shown.0 < *turns) {
        Invariant::I6
    } else {
        Invariant::I10
    };
    demand(since.contains(&shown), promise, || {
        format!("gauges show {} turns and {} pins, not one of {since:?}", shown.0, shown.1)
    })
}

/// A pinned checkpoint's digest is the one with which it was minted.
fn judge_digests(op: OpId, expected: &Answer, answer: &Answer) -> Judged {
    let (Ok(Outcome::Pinned(expected)), Ok(Outcome::Pinned(got))) = (expected, answer) else {
        return Ok(());
    };
    for (expected, got) in expected.iter().zip(got) {
        let same = expected.checkpoint != got.checkpoint || expected.digest == got.digest;
        demand(same, Invariant::I5, || {
            let (was, is) = (expected.digest, got.digest);
            format!("{op} was told {is} of {}, which was minted as {was}", got.checkpoint)
        })?;
    }
    Ok(())
}

/// Whether an answer is what the record says.
fn agrees(record: &Answer, answer: &Answer) -> bool {
    match (record, answer) {
        (Ok(record), Ok(answer)) => told(record) == told(answer),
        (Err(record), Err(answer)) => record == answer,
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

/// An outcome without what no record says.
fn told(outcome: &Outcome) -> Outcome {
    match *outcome {
        Outcome::Settled { .. } => Outcome::Settled { evidence: Evidence::InDoubt },
        Outcome::Published { expired, .. } => Outcome::Published { expired, follow_ups: false },
        Outcome::Deleted { .. } => Outcome::Deleted { left: 0 },
        Outcome::Fenced { .. } => Outcome::Fenced { pins: 0 },
        Outcome::Registered { .. }
        | Outcome::Prepared { .. }
        | Outcome::AlreadyPublished { .. }
        | Outcome::Pinned(_)
        | Outcome::Released
        | Outcome::Lost
        | Outcome::Doubted
        | Outcome::Collected { .. }
        | Outcome::Configured
        | Outcome::Forgotten
        | Outcome::Dropped
        | Outcome::Retired => *outcome,
    }
}
