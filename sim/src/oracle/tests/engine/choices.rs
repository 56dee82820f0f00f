//! What is asked next: random commands about what there is.

use pinfold_core::id::Key;
use pinfold_core::outcome::{Loss, LostObject};

use super::*;

impl Run {
    /// SplitMix64.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// One of the last `most` places among `count`.
    pub(super) fn recent(&mut self, count: usize, most: usize) -> usize {
        let width = count.clamp(1, most);
        let back = self.below(width as u64);
        count.saturating_sub(1 + usize::try_from(back).unwrap())
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let place = self.below(from.len().max(1) as u64);
        from.get(usize::try_from(place).unwrap()).cloned()
    }

    pub(super) fn prepare(&mut self) -> Command {
        let number = 1 + u128::from(self.below(3));
        let shards = match self.below(4) {
            0 => vec![ShardIndex(0)],
            1 => vec![ShardIndex(1)],
            _ => vec![ShardIndex(0), ShardIndex(1)],
        };
        let attempt = AttemptId::from_u128(number * 100 + u128::from(self.below(6)));
        let digest = ManifestDigest::from_bytes([u8::try_from(self.below(20) / 19).unwrap(); 32]);
        let endpoint = EndpointId::from_u128(number);
        Command::Prepare(Prepare { attempt, endpoint, digest, shape: two_shards(), shards })
    }

    /// One of the last pins.
    pub(super) fn pick_pin(&mut self) -> Option<(PinId, Vec<ShardIndex>)> {
        let place = self.recent(self.pins.len(), 5);
        self.pins.get(place).cloned()
    }

    /// Two commands sent together.
    pub(super) fn list(&mut self, owner: OwnerId) {
        let Some((incarnation, next)) = self.clients.get(&owner).copied() else { return };
        let commands = [self.prepare(), Command::Collect { limit: 4 }];
        let ops = (next..).map(|sequence| OpId { owner, incarnation, sequence });
        let commands: Vec<_> = ops.zip(commands).collect();
        self.clients.insert(owner, (incarnation, next + 2));
        self.sent.extend(commands.iter().cloned());
        self.submit(Request::List(commands));
    }

    /// What an owner may say of a pin; success only of what it saved.
    pub(super) fn settle(&mut self) -> Option<(OwnerId, Command)> {
        let (pin, whole) = self.pick_pin()?;
        let owner = if self.below(4) == 0 { operator().0 } else { pin.op.owner };
        let evidence = match self.below(8) {
            0 => Evidence::InDoubt,
            1 => Evidence::QuiescedFailure,
            2 => Evidence::NotExposed,
            _ => Evidence::QuiescedSuccess,
        };
        if evidence != Evidence::QuiescedSuccess {
            return Some((owner, Command::Settle { pin, shard: None, evidence }));
        }
        let shard = Some(self.pick(&whole)?);
        Some((owner, Command::Settle { pin, shard, evidence }))
    }

    pub(super) fn of_pin(&mut self) -> Option<(OwnerId, Command)> {
        let (pin, _) = self.pick_pin()?;
        let turn = turn(1 + u128::from(self.below(3)), 1 + u128::from(self.below(6)));
        let command = match self.below(8) {
            0..=3 => Command::Publish { pin, turn: Some(turn) },
            4 => Command::Publish { pin, turn: None },
            5 => Command::Doubt { pin, doubtful: self.below(2) == 0 },
            _ => Command::Release { pin },
        };
        Some((pin.op.owner, command))
    }

    pub(super) fn of_operator(&mut self) -> Option<Command> {
        let checkpoint = self.pick(&self.checkpoints.clone())?;
        let owner = OwnerId::from_u128(2 + u128::from(self.below(2)));
        let object = ObjectId { shard: ShardIndex(0), index: 0 };
        let budgets = [None, None, Some(100), Some(200)];
        Some(match self.below(12) {
            0..=2 => {
                let object = LostObject::Private(object);
                Command::Lost { checkpoint, object, why: Loss::Absent }
            }
            3 => Command::Drop { checkpoint },
            4 if self.below(6) == 0 => {
                let conversation = 1 + u128::from(self.below(3));
                Command::Forget { conversation: ConversationId::from_u128(conversation) }
            }
            5 => Command::Retire { owner },
            6 => {
                let incarnation = Incarnation(1 + self.below(6));
                Command::Fence { owner, incarnation }
            }
            7..=9 => {
                let conversation_bytes = self.pick(&budgets).flatten();
                let job_bytes = self.pick(&budgets).flatten();
                let turns = 1 + u32::try_from(self.below(3)).unwrap();
                let quarantine = Policy::default().quarantine;
                let policy = Policy { turns, conversation_bytes, job_bytes, quarantine };
                Command::Configure { policy, limits: genesis().limits }
            }
            _ => Command::Collect { limit: 1 + u32::try_from(self.below(6)).unwrap() },
        })
    }

    pub(super) fn delete(&mut self, owner: OwnerId) {
        let Some((checkpoint, objects)) = self.work.pop() else { return };
        for object in &objects {
            let key = StoreKey::Private(checkpoint, *object);
            self.stored.remove(&key);
            self.see(&Seen::Deleted { key, cause: Cause::Work });
        }
        let outcomes = objects.into_iter().map(|object| (object, DeleteOutcome::Gone));
        let outcomes = outcomes.collect();
        self.send(owner, Command::Deleted { checkpoint, outcomes });
    }

    pub(super) fn audit(&mut self) {
        let genesis = genesis();
        let foreign = StoreKey::Foreign(1);
        let keys: Vec<_> = self.stored.iter().copied().chain([foreign]).collect();
        let text = |key: &StoreKey| match key {
            StoreKey::Private(checkpoint, object) => {
                let namespace = genesis.namespace.clone();
                let (checkpoint, object) = (*checkpoint, *object);
                Key { namespace, epoch: epoch(), checkpoint, object }.to_string()
            }
            StoreKey::Shared(_) | StoreKey::Foreign(_) => "other".into(),
        };
        let asked = keys.iter().map(text).collect();
        let ticket = self.submit(Request::Query(Query::Audit(asked)));
        self.listed.insert(ticket, keys.clone());
        self.see(&Seen::Listed { ticket, keys });
    }

    /// An operation once more: as it was, with other content, or from another epoch.
    pub(super) fn repeat(&mut self) {
        let place = self.recent(self.sent.len(), 12);
        let Some((op, command)) = self.sent.get(place).cloned() else { return };
        match self.below(5) {
            0 => {
                let other = self.prepare();
                self.submit(Request::Command(op, other));
            }
            1 => {
                self.submit_to(Epoch::from_u128(99), Request::Command(op, command));
            }
            _ => {
                self.submit(Request::Command(op, command));
            }
        }
    }

    pub(super) fn step(&mut self) {
        let owner = OwnerId::from_u128(1 + u128::from(self.below(3)));
        match self.below(40) {
            0..=4 => {
                let prepare = self.prepare();
                self.send(owner, prepare);
            }
            5..=10 => {
                if let Some((owner, command)) = self.settle() {
                    self.send(owner, command);
                }
            }
            11..=16 => {
                if let Some((owner, command)) = self.of_pin() {
                    self.send(owner, command);
                }
            }
            17..=19 => {
                let of = self.below(3);
                let candidates =
                    (0..2).map(|n| EndpointId::from_u128(1 + u128::from((of + n) % 3)));
                self.send(owner, Command::Pin { candidates: candidates.collect(), limit: 2 });
            }
            20..=22 => {
                if let Some(command) = self.of_operator() {
                    self.send(operator().0, command);
                }
            }
            23..=24 => self.delete(owner),
            25 => self.audit(),
            26 => {
                if let Some(checkpoint) = self.pick(&self.checkpoints.clone()) {
                    self.submit(Request::Query(Query::Blockers(checkpoint)));
                }
            }
            27 => {
                self.submit(Request::Query(Query::Gauges));
            }
            28..=30 => self.repeat(),
            31 => {
                self.engine.follow_up();
            }
            32 => {
                let owner = 1 + u128::from(self.below(3));
                self.register(owner);
            }
            33 if self.below(3) == 0 => self.crash(),
            34 if self.below(4) == 0 => self.land(),
            35 => self.list(owner),
            // Whatever may leave before the disk is asked again.
            36 => self.let_out(),
            _ => self.sync(),
        }
    }
}
