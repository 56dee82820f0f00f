//! From a step's small numbers to a command about what there is.

use pinfold_core::catalog::{Command, Prepare, Shape, ShardShape};
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, ManifestDigest, OpId, OwnerId, ShardIndex,
    TurnId,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Loss, LostObject, TurnKey};

use crate::world::{OPERATOR, World};
use crate::{Step, Verb, limits, policy};

fn of<T: Copy>(choices: &[T], number: u8) -> Option<T> {
    choices.get(usize::from(number) % choices.len().max(1)).copied()
}

impl World {
    /// A save of one of three positions; rarely with a geometry or an attempt of another one.
    pub(crate) fn prepare(step: Step) -> Prepare {
        let endpoint = step.a % 3;
        let two = (endpoint == 1) != (step.b == 15);
        let one = ShardShape { objects: 2, bytes: 60 };
        let shape: &[_] = if two { &[one, ShardShape { objects: 1, bytes: 40 }] } else { &[one] };
        let all = if two { vec![ShardIndex(0), ShardIndex(1)] } else { vec![ShardIndex(0)] };
        let shards = match step.who % 4 {
            0 => vec![ShardIndex(0)],
            1 => vec![ShardIndex(u16::from(two))],
            _ => all,
        };
        let attempt = if step.b == 14 { 0 } else { endpoint * 4 + step.b % 4 };
        Prepare {
            attempt: AttemptId::from_u128(1 + u128::from(attempt)),
            endpoint: EndpointId::from_u128(1 + u128::from(endpoint)),
            digest: ManifestDigest::from_bytes([1 + u8::from(two); 32]),
            shape: Shape::new(shape).expect("a good shape"),
            shards,
        }
    }

    pub(crate) fn turn(step: Step) -> TurnKey {
        TurnKey {
            conversation: ConversationId::from_u128(1 + u128::from(step.b % 3)),
            turn: TurnId::from_u128(1 + u128::from(step.b / 3 % 5)),
        }
    }

    /// A single command: of an operator's kinds, by the operator.
    pub(crate) fn command(&self, owner: OwnerId, step: Step) -> Option<(OwnerId, Command)> {
        let pin = of(&self.pins, step.a);
        let checkpoint = of(&self.checkpoints, step.a);
        let operator = OwnerId::from_u128(OPERATOR);
        // A pin's own owner is asked more often than another.
        let holder = pin.map_or(owner, |pin| if step.who < 6 { pin.op.owner } else { owner });
        let command = match step.verb {
            Verb::Prepare => return Some((owner, Command::Prepare(Self::prepare(step)))),
            Verb::Settle => {
                let evidences = [
                    Evidence::QuiescedSuccess,
                    Evidence::QuiescedSuccess,
                    Evidence::QuiescedFailure,
                    Evidence::InDoubt,
                    Evidence::NotExposed,
                    Evidence::Active,
                ];
                let shards = [None, None, Some(ShardIndex(0)), Some(ShardIndex(1))];
                let evidence = of(&evidences, step.b)?;
                Command::Settle { pin: pin?, shard: of(&shards, step.who)?, evidence }
            }
            Verb::Publish => Command::Publish { pin: pin?, turn: Some(Self::turn(step)) },
            Verb::Unscoped => Command::Publish { pin: pin?, turn: None },
            Verb::Release => Command::Release { pin: pin? },
            Verb::Doubt => Command::Doubt { pin: pin?, doubtful: step.b.is_multiple_of(2) },
            Verb::Pin => {
                let candidates = (1..=3).map(EndpointId::from_u128).collect();
                let limit = 1 + u32::from(step.b % 3);
                return Some((owner, Command::Pin { candidates, limit }));
            }
            Verb::Lost => {
                let object = LostObject::Shared(0);
                Command::Lost { checkpoint: checkpoint?, object, why: Loss::Absent }
            }
            Verb::Collect => Command::Collect { limit: 1 + u32::from(step.b % 4) },
            Verb::Deleted => self.deleted(checkpoint?, step)?,
            Verb::Configure => {
                let policy = policy(step.a);
                return Some((operator, Command::Configure { policy, limits: limits() }));
            }
            Verb::Forget => {
                let conversation = Self::turn(step).conversation;
                return Some((operator, Command::Forget { conversation }));
            }
            Verb::Drop => return Some((operator, Command::Drop { checkpoint: checkpoint? })),
            Verb::Fence => {
                let OpId { owner, incarnation, .. } = pin?.op;
                return Some((operator, Command::Fence { owner, incarnation }));
            }
            Verb::Retire => {
                let owner = OwnerId::from_u128(1 + u128::from(step.a % 3));
                return Some((operator, Command::Retire { owner }));
            }
            Verb::Save
            | Verb::Register
            | Verb::FollowUp
            | Verb::Crash
            | Verb::Lose
            | Verb::Snapshot
            | Verb::Repeat => return None,
        };
        Some((holder, command))
    }

    fn deleted(&self, checkpoint: CheckpointId, step: Step) -> Option<Command> {
        let shape = self.observer.shapes.get(&checkpoint)?;
        let all = [DeleteOutcome::Gone, DeleteOutcome::Refused, DeleteOutcome::Unknown];
        let from = if self.deletes.early { u32::from(step.b / 4) % shape.objects() } else { 0 };
        let objects = (from..shape.objects()).filter_map(|place| shape.object_at(place));
        let outcome = of(&all, step.b % 4)?;
        let outcomes = objects.map(|object| (object, outcome)).collect();
        Some(Command::Deleted { checkpoint, outcomes })
    }
}
