//! Events: what was decided, as the journal keeps it, and how the state follows.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::collect::PICKS;
use super::slab::NONE;
use super::{Catalog, DeleteWork, FollowUp, Prepare, Role, Sender};
use crate::few::Few;
use crate::id::{
    CheckpointId, ConversationId, Generation, Incarnation, ObjectId, OpId, OwnerId, PinId,
    ShardIndex, StartId,
};
use crate::outcome::{DeleteOutcome, Evidence, Loss, LostObject, Outcome, Rejection, TurnKey};
use crate::policy::{Genesis, Limits, Policy};

/// One record of the journal: what was decided, with its whole outcome.
///
/// Variants are numbered by position: new ones are appended, old ones never move.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Event {
    /// The job begins.
    Genesis(Genesis),
    /// A host took the journal over; everything before it is durable.
    Recovered,
    /// A new incarnation.
    Registered {
        /// The owner.
        owner: OwnerId,
        /// What it may do.
        role: Role,
        /// The start that asked for it.
        start: StartId,
        /// The minted number.
        incarnation: Incarnation,
    },
    /// A command was decided; its receipt stands.
    Decided {
        /// Whose command.
        op: OpId,
        /// Of which content.
        fingerprint: u64,
        /// What it changed.
        change: Change,
    },
    /// Due work was done.
    FollowedUp(FollowUp),
}

/// What a decided command changes. Variants are numbered by position.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Change {
    /// Nothing but the receipt.
    Refused(Rejection),
    /// A new checkpoint with a save pin.
    Prepared {
        /// What was asked.
        prepare: Prepare,
        /// The minted generation.
        generation: Generation,
    },
    /// A save pin on the attempt's checkpoint.
    Joined {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The claimed shards.
        shards: Vec<ShardIndex>,
    },
    /// A load pin on the checkpoint that keeps the position already.
    AlreadyPublished {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// Load pins.
    Pinned {
        /// On these, in the order of the candidates.
        checkpoints: Few<CheckpointId, 8>,
    },
    /// Evidence.
    Settled {
        /// Of this pin.
        pin: PinId,
        /// For this shard, or all that are not final.
        shard: Option<ShardIndex>,
        /// What stands.
        evidence: Evidence,
    },
    /// A save pin ended.
    Released {
        /// The pin.
        pin: PinId,
    },
    /// A publication.
    Published {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The turn; none for the unscoped mark.
        turn: Option<TurnKey>,
        /// The turn that expires with it.
        expired: Option<TurnKey>,
    },
    /// A `Lost` mark.
    Lost {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The object that was found lost.
        object: LostObject,
        /// What was found.
        why: Loss,
    },
    /// A doubt mark, set or cleared.
    Doubted {
        /// The pin.
        pin: PinId,
        /// Whether it is doubtful.
        doubtful: bool,
    },
    /// The intent to delete.
    Collected {
        /// What is handed out.
        work: Few<DeleteWork, PICKS>,
        /// Something is left beyond it.
        more: bool,
    },
    /// Outcomes of deletes.
    Deleted {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// By object, ascending.
        outcomes: Vec<(ObjectId, DeleteOutcome)>,
    },
    /// New policy and limits.
    Configured {
        /// The policy.
        policy: Policy,
        /// The limits.
        limits: Limits,
        /// A bound was lowered: every conversation has to be looked at.
        trim: bool,
    },
    /// A conversation is over for ever.
    Forgotten {
        /// The conversation.
        conversation: ConversationId,
    },
    /// An unscoped mark is gone for ever.
    Dropped {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// An incarnation is barred for good.
    Fenced {
        /// The owner.
        owner: OwnerId,
        /// The incarnation.
        incarnation: Incarnation,
    },
    /// An owner is forgotten wholly.
    Retired {
        /// The owner.
        owner: OwnerId,
    },
}

impl Catalog {
    /// Follows an event. What it answers is given back: none for what answers nobody.
    ///
    /// It trusts the event, which was decided in this very state or which [`fits`](Self::fits) it.
    /// After any other one nothing is promised: it may panic, run without end, or leave a state
    /// that [`check`](Self::check) refuses.
    pub fn apply(&mut self, event: &Event) -> Option<Result<Outcome, Rejection>> {
        #[cfg(pinfold_mutants)]
        if *event == Event::Recovered {
            self.lose_receipts();
        }
        match event {
            Event::Genesis(_) | Event::Recovered => None,
            Event::Registered { owner, role, start, incarnation } => {
                self.apply_registered(*owner, *role, *start, *incarnation);
                Some(Ok(Outcome::Registered { incarnation: *incarnation }))
            }
            Event::Decided { op, fingerprint, change } => {
                let sender = self.sender_of(*op)?;
                let answer = self.apply_change(&sender, *op, change);
                self.keep_receipt(&sender, *op, *fingerprint, &answer);
                Some(answer)
            }
            Event::FollowedUp(follow_up) => {
                self.apply_follow_up(follow_up);
                None
            }
        }
    }

    fn apply_change(
        &mut self,
        sender: &Sender,
        op: OpId,
        change: &Change,
    ) -> Result<Outcome, Rejection> {
        Ok(match change {
            Change::Refused(rejection) => return Err(*rejection),
            Change::Prepared { prepare, generation } => {
                self.apply_prepared(sender, op, prepare, *generation)
            }
            Change::Joined { checkpoint, shards } => {
                self.apply_joined(sender, op, *checkpoint, shards)
            }
            Change::AlreadyPublished { checkpoint } => {
                self.apply_already_published(sender, op, *checkpoint)
            }
            Change::Pinned { checkpoints } => self.apply_pinned(sender, op, checkpoints),
            Change::Settled { pin, shard, evidence } => self.apply_settled(*pin, *shard, *evidence),
            Change::Released { pin } => self.apply_released(*pin),
            Change::Published { checkpoint, turn, expired } => {
                self.apply_published(*checkpoint, *turn, *expired)
            }
            Change::Lost { checkpoint, .. } => self.apply_lost(*checkpoint),
            Change::Doubted { pin, doubtful } => self.apply_doubted(*pin, *doubtful),
            Change::Collected { work, more } => self.apply_collected(work, *more),
            Change::Deleted { checkpoint, outcomes } => self.apply_deleted(*checkpoint, outcomes),
            Change::Configured { policy, limits, trim } => {
                self.apply_configured(*policy, *limits, *trim)
            }
            Change::Forgotten { conversation } => self.apply_forgotten(*conversation),
            Change::Dropped { checkpoint } => self.apply_dropped(*checkpoint),
            Change::Fenced { owner, incarnation } => self.apply_fenced(*owner, *incarnation),
            Change::Retired { owner } => self.apply_retired(*owner),
        })
    }

    /// The rows of an admitted operation's sender: its incarnation is the current one.
    fn sender_of(&self, op: OpId) -> Option<Sender> {
        let owner = self.table.owner(op.owner)?;
        #[cfg(pinfold_mutants)]
        if let Some(life) = self.obeyed_older_life(op) {
            return Some(Sender { owner, life });
        }
        let life = self.table.owners[owner].current;
        (life != NONE).then_some(Sender { owner, life })
    }

    fn keep_receipt(
        &mut self,
        sender: &Sender,
        op: OpId,
        fingerprint: u64,
        answer: &Result<Outcome, Rejection>,
    ) {
        // An operator that retired itself has nobody left to keep it for.
        if *answer == Ok(Outcome::Retired) && self.table.owner(op.owner).is_none() {
            return;
        }
        #[cfg(pinfold_mutants)]
        if self.leaves_no_receipt(op, answer) {
            return;
        }
        let window = self.table.job.limits.unanswered;
        let receipts = &mut self.table.owners[sender.owner].receipts;
        receipts.keep(op.sequence, fingerprint, answer, window);
    }
}
