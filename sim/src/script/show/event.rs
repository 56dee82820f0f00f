//! What happens of it: events and what they change, follow-ups, and work for the host.

use pinfold_core::catalog::{Change, DeleteWork, Event, FollowUp};
use pinfold_core::engine::Effect;
use pinfold_core::id::{CheckpointId, OpId, PinId};

use super::super::names::Names;
use super::super::words::Word;
use super::asked::{
    show_genesis, show_limits, show_lost_object, show_outcomes, show_policy, show_shards,
};
use super::{show_objects, show_rejection};

impl Names {
    /// An event: `w1#5: released p1`, `follow-up: expire C1/T1`.
    ///
    /// Whoever shows a journal lets [`learn`](Self::learn) see each event first.
    #[must_use]
    pub fn show_event(&self, event: &Event) -> String {
        match event {
            Event::Genesis(job) => {
                format!("genesis by {}: {}", self.show_owner(job.operator), show_genesis(job))
            }
            Event::Recovered => "recovered".to_string(),
            Event::Registered { owner, role, start, incarnation } => {
                let (owner, start) = (self.show_owner(*owner), self.show_start(*start));
                format!("{owner}: registered as {incarnation}, {}, start {start}", role.word())
            }
            Event::Decided { op, change, .. } => {
                format!("{}: {}", self.show_op(*op), self.show_change(*op, change))
            }
            Event::FollowedUp(follow_up) => self.show_follow_up(follow_up),
        }
    }

    /// What a decided command of an operation changes: `released p1`, `refused: PinEnded`.
    #[must_use]
    pub fn show_change(&self, op: OpId, change: &Change) -> String {
        match change {
            Change::Refused(rejection) => format!("refused: {}", show_rejection(rejection)),
            Change::Prepared { prepare, generation } => {
                let (endpoint, generation) = (prepare.endpoint, *generation);
                let checkpoint = self.show_checkpoint(CheckpointId { endpoint, generation });
                format!("prepared {checkpoint} for {}", self.show_prepare(prepare))
            }
            Change::Joined { checkpoint, shards } => {
                let checkpoint = self.show_checkpoint(*checkpoint);
                format!("joined {checkpoint} shards={}", show_shards(shards))
            }
            Change::AlreadyPublished { checkpoint } => {
                format!("already published: {}", self.show_checkpoint(*checkpoint))
            }
            Change::Pinned { checkpoints } => self.show_loads(op, checkpoints),
            Change::Settled { pin, shard, evidence } => {
                let shard = shard.map_or(String::new(), |shard| format!(" shard={shard}"));
                format!("settled {} {}{shard}", self.show_pin(*pin), evidence.word())
            }
            Change::Released { pin } => format!("released {}", self.show_pin(*pin)),
            Change::Published { checkpoint, turn, expired } => {
                let turn = turn.map_or("unscoped".to_string(), |turn| self.show_turn(turn));
                let expired = expired.map(|turn| format!(", expired {}", self.show_turn(turn)));
                let checkpoint = self.show_checkpoint(*checkpoint);
                format!("published {checkpoint} {turn}{}", expired.unwrap_or_default())
            }
            Change::Lost { checkpoint, object, why } => {
                let (checkpoint, why) = (self.show_checkpoint(*checkpoint), why.word());
                format!("lost {checkpoint} {} {why}", show_lost_object(*object))
            }
            Change::Doubted { pin, doubtful } => {
                format!("doubted {} {}", self.show_pin(*pin), doubtful.word())
            }
            Change::Collected { work, more } => self.show_work(work, *more),
            Change::Deleted { checkpoint, outcomes } => {
                format!("deleted {}{}", self.show_checkpoint(*checkpoint), show_outcomes(outcomes))
            }
            Change::Configured { policy, limits, trim } => {
                let trim = if *trim { ", a bound was lowered" } else { "" };
                format!("configured {}{}{trim}", show_policy(policy), show_limits(limits))
            }
            Change::Forgotten { conversation } => {
                format!("forgot {}", self.show_conversation(*conversation))
            }
            Change::Dropped { checkpoint } => {
                format!("dropped {}", self.show_checkpoint(*checkpoint))
            }
            Change::Fenced { owner, incarnation } => {
                format!("fenced {}:{incarnation}", self.show_owner(*owner))
            }
            Change::Retired { owner } => format!("retired {}", self.show_owner(*owner)),
        }
    }

    fn show_loads(&self, op: OpId, checkpoints: &[CheckpointId]) -> String {
        let on = checkpoints.iter().zip(0..).map(|(checkpoint, place)| {
            let pin = self.show_pin(PinId { op, place });
            format!("{pin} on {}", self.show_checkpoint(*checkpoint))
        });
        let on: Vec<_> = on.collect();
        if on.is_empty() { "pinned nothing".into() } else { format!("pinned {}", on.join(", ")) }
    }

    /// How many objects of which checkpoint, and from which place of all its objects on.
    fn show_work(&self, work: &[DeleteWork], more: bool) -> String {
        let runs = work.iter().map(|run| {
            let name = self.show_checkpoint(run.checkpoint);
            format!("{} of {name} from {}", run.count, run.first)
        });
        let runs: Vec<_> = runs.collect();
        let runs = if runs.is_empty() { "nothing".to_string() } else { runs.join(", ") };
        format!("collected {runs}{}", if more { ", more is left" } else { "" })
    }

    /// A follow-up that the engine did by itself: `follow-up: end p1`.
    #[must_use]
    pub fn show_follow_up(&self, follow_up: &FollowUp) -> String {
        match follow_up {
            FollowUp::EndPin { pin } => format!("follow-up: end {}", self.show_pin(*pin)),
            FollowUp::Expire { turn } => format!("follow-up: expire {}", self.show_turn(*turn)),
            FollowUp::Purge { conversation, turns } => {
                let conversation = self.show_conversation(*conversation);
                format!("follow-up: purge {turns} of {conversation}")
            }
            FollowUp::Settle { conversation } => {
                format!("follow-up: nothing due in {}", self.show_conversation(*conversation))
            }
            FollowUp::Trim { next: None } => "follow-up: looked at all conversations".into(),
            FollowUp::Trim { next: Some(next) } => format!("follow-up: looked up to {next}"),
        }
    }

    /// Work for the host, without who asked for it: `delete c1 0/0 0/1`.
    #[must_use]
    pub fn show_effect(&self, effect: &Effect) -> String {
        let Effect::Delete { by: _, checkpoint, objects } = effect;
        format!("delete {} {}", self.show_checkpoint(*checkpoint), show_objects(objects))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_core::catalog::{Prepare, Role, Shape, ShardShape};
    use pinfold_core::id::{Generation, Incarnation, ShardIndex};
    use pinfold_core::outcome::Rejection;

    /// `w1` in incarnation 2, and its operation 5.
    fn scene() -> (Names, OpId, CheckpointId) {
        let mut names = Names::default();
        let (owner, incarnation) = (names.owner("w1"), Incarnation(2));
        let start = names.start("s1");
        let event = Event::Registered { owner, role: Role::Worker, start, incarnation };
        names.learn(&event);
        assert_eq!(names.show_event(&event), "w1: registered as 2, worker, start s1");
        let checkpoint = CheckpointId { endpoint: names.endpoint("E1"), generation: Generation(3) };
        (names, OpId { owner, incarnation, sequence: 5 }, checkpoint)
    }

    fn decided(op: OpId, change: Change) -> Event {
        Event::Decided { op, fingerprint: 0, change }
    }

    #[test]
    fn a_minted_checkpoint_is_learnt() {
        let (mut names, op, checkpoint) = scene();
        let shape = [ShardShape { objects: 2, bytes: 100 }, ShardShape { objects: 1, bytes: 50 }];
        let prepare = Prepare {
            attempt: names.attempt("A1"),
            endpoint: checkpoint.endpoint,
            digest: names.digest("D1"),
            shape: Shape::new(&shape).unwrap(),
            shards: vec![ShardIndex(0), ShardIndex(1)],
        };
        let generation = checkpoint.generation;
        let event = decided(op, Change::Prepared { prepare, generation });
        names.learn(&event);
        assert_eq!(
            names.show_event(&event),
            "w1#5: prepared c3 for A1 E1 shape=2x100,1x50 shards=0,1 digest=D1"
        );
    }

    #[test]
    fn events_are_shown_with_names() {
        let (mut names, op, checkpoint) = scene();
        let shown = |names: &Names, change| names.show_event(&decided(op, change));
        let refused = Change::Refused(Rejection::ShardTaken { shard: ShardIndex(1) });
        assert_eq!(shown(&names, refused), "w1#5: refused: ShardTaken, 1");
        let mut checkpoints = pinfold_core::few::Few::new();
        assert_eq!(shown(&names, Change::Pinned { checkpoints }), "w1#5: pinned nothing");
        assert!(checkpoints.push(checkpoint));
        let pinned = Change::Pinned { checkpoints };
        assert_eq!(shown(&names, pinned), "w1#5: pinned w1#5 on E1@3");
        let mut work = pinfold_core::few::Few::new();
        assert!(work.push(DeleteWork { checkpoint, first: 1, count: 2 }));
        let collected = Change::Collected { work, more: true };
        assert_eq!(shown(&names, collected), "w1#5: collected 2 of E1@3 from 1, more is left");
        let turn = names.turn("C1/T2");
        let published = Change::Published { checkpoint, turn, expired: names.turn("C1/T1") };
        assert_eq!(shown(&names, published), "w1#5: published E1@3 C1/T2, expired C1/T1");
        let expired = Event::FollowedUp(FollowUp::Expire { turn: names.turn("C1/T1").unwrap() });
        assert_eq!(names.show_event(&expired), "follow-up: expire C1/T1");
    }

    #[test]
    fn an_effect_names_the_objects() {
        let (names, by, checkpoint) = scene();
        let objects = vec![Names::object("0/0").unwrap(), Names::object("1/2").unwrap()];
        let effect = Effect::Delete { by, checkpoint, objects };
        assert_eq!(names.show_effect(&effect), "delete E1@3 0/0 1/2");
    }
}
