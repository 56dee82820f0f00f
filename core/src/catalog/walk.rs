//! Looking at everything without keeping everybody else waiting: a walk in short steps.
//!
//! A walk looks at so many rows and stops; between two steps commands go on. What was there during
//! the whole walk is given exactly once; what came or went meanwhile may be given or not. It
//! decides nothing, and no decision looks here.

use alloc::vec::Vec;

use super::slab::Slot;
use super::{Catalog, ConversationFacts, PinFacts};
use crate::id::CheckpointId;

/// How far a walk is. It means something to the next step of the same walk alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    next: Slot,
    is_over: bool,
}

impl Walk {
    /// True once everything was looked at.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next slots, at most so many.
    fn step(&mut self, end: Slot, most: u32) -> core::ops::Range<Slot> {
        let from = self.next.min(end);
        self.next = from.saturating_add(most.max(1)).min(end);
        self.is_over = self.next == end;
        from..self.next
    }
}

impl Catalog {
    /// The checkpoints among the next rows, in no order.
    pub fn walk_checkpoints(&self, walk: &mut Walk, most: u32) -> Vec<CheckpointId> {
        let rows = &self.table.checkpoints;
        let slots = walk.step(rows.end(), most);
        // A freed row is as it was, until it is used again.
        let is_used = |slot: &Slot| self.table.checkpoint(rows[*slot].id()) == Some(*slot);
        slots.filter(is_used).map(|slot| rows[slot].id()).collect()
    }

    /// The live pins among the next rows, in no order.
    pub fn walk_pins(&self, walk: &mut Walk, most: u32) -> Vec<PinFacts> {
        let slots = walk.step(self.table.pins.end(), most);
        let is_used = |slot: &Slot| self.table.pin(self.table.pin_id(*slot)) == Some(*slot);
        slots.filter(is_used).map(|slot| self.pin_facts(slot)).collect()
    }

    /// The conversations that were seen first after so many others, in that order.
    pub fn conversations_after(
        &self,
        others: u32,
    ) -> impl Iterator<Item = ConversationFacts> + use<'_> {
        let end = self.table.conversations.end();
        (others.min(end)..end).map(|slot| self.conversation_facts(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{
        Command, OwnerFacts, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape,
    };
    use crate::engine::{Config, Engine, Input, Output, Reply, Request, Ticket};
    use crate::id::{
        AttemptId, ConversationId, EndpointId, Epoch, Incarnation, ManifestDigest, OpId, OwnerId,
        PinId, ShardIndex, StartId, TurnId,
    };
    use crate::outcome::{Evidence, Outcome, TurnKey};
    use crate::policy::{Genesis, Limits, Policy};

    struct Job(Engine, u64);

    impl Job {
        fn new() -> Self {
            let genesis = Genesis {
                namespace: "w".parse().unwrap(),
                epoch: Epoch::from_u128(1),
                operator: OwnerId::from_u128(1),
                policy: Policy::default(),
                limits: Limits::default(),
            };
            let mut job = Self(Engine::create(Config::default(), genesis).unwrap(), 0);
            job.submit(Request::Register(Register {
                owner: OwnerId::from_u128(2),
                role: Role::Worker,
                after: Incarnation(0),
                start: StartId::from_u128(1),
                version: PROTOCOL_VERSION,
                expected_policy: None,
            }));
            job
        }

        fn submit(&mut self, request: Request) -> Outcome {
            self.0.submit(Input { ticket: Ticket(0), epoch: Epoch::from_u128(1), request });
            while let Some(batch) = self.0.take_batch() {
                self.0.commit(batch);
            }
            let mut outcome = None;
            while let Some(output) = self.0.poll_output() {
                if let Output::Reply(_, Reply::Command(answer)) = output {
                    outcome = Some(answer.unwrap());
                }
            }
            outcome.unwrap()
        }

        fn ask(&mut self, command: Command) -> Outcome {
            self.1 += 1;
            let owner = OwnerId::from_u128(2);
            let op = OpId { owner, incarnation: Incarnation(1), sequence: self.1 };
            self.submit(Request::Command(op, command))
        }

        fn prepare(&mut self, number: u128) -> (PinId, CheckpointId) {
            let prepare = Prepare {
                attempt: AttemptId::from_u128(number),
                endpoint: EndpointId::from_u128(number),
                digest: ManifestDigest::from_bytes([1; 32]),
                shape: Shape::new(&[ShardShape { objects: 1, bytes: 10 }]).unwrap(),
                shards: alloc::vec![ShardIndex(0)],
            };
            match self.ask(Command::Prepare(prepare)) {
                Outcome::Prepared { pin, checkpoint } => (pin, checkpoint),
                other => panic!("{other:?}"),
            }
        }

        fn end(&mut self, pin: PinId, turn: Option<TurnKey>) {
            let evidence =
                if turn.is_some() { Evidence::QuiescedSuccess } else { Evidence::QuiescedFailure };
            self.ask(Command::Settle { pin, shard: Some(ShardIndex(0)), evidence });
            if turn.is_some() {
                self.ask(Command::Publish { pin, turn });
            }
            self.ask(Command::Release { pin });
        }

        /// Walks in steps of every length find what is there, and no freed row.
        fn check(&self) {
            let catalog = self.0.catalog();
            for most in [1, 2, 3, 1000] {
                let (mut walk, mut ids, mut steps) = (Walk::default(), Vec::new(), 0);
                while !walk.is_over() {
                    ids.extend(catalog.walk_checkpoints(&mut walk, most));
                    steps += 1;
                }
                ids.sort_by_key(|id| id.generation);
                assert_eq!(ids, catalog.checkpoints());
                assert!(steps > 1 || most > 3 || ids.len() < 3);
                let (mut walk, mut pins) = (Walk::default(), Vec::new());
                while !walk.is_over() {
                    pins.extend(catalog.walk_pins(&mut walk, most));
                }
                pins.sort_by_key(|pin| pin.id);
                assert_eq!(pins, catalog.pins());
            }
            for id in catalog.checkpoints() {
                assert_eq!(catalog.checkpoints_of(id.endpoint), [id]);
            }
            let unweighed = |owner| OwnerFacts { bytes_pinned: 0, ..owner };
            let owners: Vec<_> = catalog.owners().into_iter().map(unweighed).collect();
            assert_eq!(catalog.owners_unweighed(), owners);
        }
    }

    #[test]
    fn walks_find_what_is_there_and_no_freed_row() {
        let mut job = Job::new();
        job.check();
        let conversation = ConversationId::from_u128(1);
        let pins: Vec<_> = (1..=9).map(|number| job.prepare(number)).collect();
        job.check();
        for (number, (pin, _)) in (1..=9_u128).zip(&pins) {
            // Named downwards, so that the order of publication is not that of the names.
            let turn = TurnKey { conversation, turn: TurnId::from_u128(100 - number) };
            if number % 3 > 0 {
                job.end(*pin, (number % 3 == 1).then_some(turn));
            }
        }
        job.check();
        let collected = job.ask(Command::Collect { limit: 9 });
        assert_eq!(collected, Outcome::Collected { objects: 3, more: false });
        for number in [2_usize, 5] {
            let checkpoint = pins[number - 1].1;
            let object = crate::id::ObjectId { shard: ShardIndex(0), index: 0 };
            let gone = crate::outcome::DeleteOutcome::Gone;
            job.ask(Command::Deleted { checkpoint, outcomes: alloc::vec![(object, gone)] });
        }
        job.check();
        assert_eq!(job.0.catalog().checkpoints().len(), 7);
        // A freed row is used again.
        job.prepare(10);
        job.check();
        let (facts, turns) = job.0.catalog().ledger(conversation).unwrap();
        let kept: Vec<u64> = turns.iter().map(|(_, checkpoint)| checkpoint.generation.0).collect();
        assert_eq!((facts.turns, kept), (3, alloc::vec![1, 4, 7]));
        assert_eq!(job.0.catalog().ledger(ConversationId::from_u128(2)), None);
        let after = job.0.catalog().conversations_after(1).count();
        assert_eq!((job.0.catalog().conversations_after(0).count(), after), (1, 0));
    }
}
