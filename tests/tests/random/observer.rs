//! A naive observer from outside: it hears commands, answers, follow-ups and delete work, and keeps
//! plain lists of what they must mean. It shares no code with the machine that it watches.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::catalog::{Command, FollowUp, Shape};
use pinfold_core::id::{CheckpointId, ConversationId, Incarnation, ObjectId, OpId, OwnerId, PinId};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome, TurnKey};
use pinfold_core::policy::Policy;

/// What a pin is, as its taker heard.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) checkpoint: CheckpointId,
    /// The shards that it saves; none for a load.
    pub(crate) shards: Vec<u16>,
}

/// A live turn and the checkpoints that it refers to.
#[derive(Clone, Debug)]
struct Turn {
    key: TurnKey,
    on: Vec<CheckpointId>,
}

/// Everything that the observer believes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observer {
    policy: Policy,
    pub(crate) shapes: BTreeMap<CheckpointId, Shape>,
    pub(crate) pins: BTreeMap<PinId, Held>,
    /// First final evidence of each shard.
    evidence: BTreeMap<(CheckpointId, u16), Evidence>,
    claimed: BTreeSet<(CheckpointId, u16)>,
    /// Live turns of the job, in order of first publication.
    turns: Vec<Turn>,
    expired: BTreeSet<TurnKey>,
    forgotten: BTreeSet<ConversationId>,
    unscoped: BTreeSet<CheckpointId>,
    dropped: BTreeSet<CheckpointId>,
    lost: BTreeSet<CheckpointId>,
    collecting: BTreeSet<CheckpointId>,
    gone: BTreeSet<(CheckpointId, ObjectId)>,
}

fn require(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_string()) }
}

impl Observer {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// Hears that a command succeeded.
    pub(crate) fn succeeded(
        &mut self,
        op: OpId,
        command: &Command,
        outcome: &Outcome,
    ) -> Result<(), String> {
        match (command, outcome) {
            (Command::Prepare(prepare), Outcome::Prepared { pin, checkpoint }) => {
                self.shapes.entry(*checkpoint).or_insert_with(|| prepare.shape.clone());
                let shards: Vec<_> = prepare.shards.iter().map(|shard| shard.0).collect();
                for shard in &shards {
                    require(self.claimed.insert((*checkpoint, *shard)), "a shard claimed twice")?;
                }
                require(*pin == PinId { op, place: 0 }, "a pin's id is not its operation's")?;
                self.pins.insert(*pin, Held { checkpoint: *checkpoint, shards });
            }
            (_, Outcome::AlreadyPublished { pin, checkpoint }) => {
                self.serve(*pin, *checkpoint)?;
            }
            (_, Outcome::Pinned(answers)) => {
                for (answer, place) in answers.iter().zip(0..) {
                    self.serve(PinId { op, place }, answer.checkpoint)?;
                }
            }
            (Command::Settle { pin, shard, evidence }, Outcome::Settled { evidence: stands }) => {
                let only = shard.map(|shard| shard.0);
                self.settle(*pin, only, [*evidence, *stands])?;
            }
            (Command::Release { pin }, _) => {
                let held = self.pins.remove(pin).ok_or("a pin ended twice")?;
                let settled = |shard: &u16| self.evidence.contains_key(&(held.checkpoint, *shard));
                require(held.shards.iter().all(settled), "released before it was final")?;
            }
            (Command::Publish { pin, turn }, Outcome::Published { expired, follow_ups }) => {
                self.publish(*pin, *turn)?;
                if let Some(expired) = expired {
                    require(self.is_over(), "I6: a turn expires that may stay")?;
                    self.expire(*expired)?;
                }
                require(!self.is_over() || *follow_ups, "over a bound, and nothing follows")?;
            }
            (Command::Lost { checkpoint, .. }, _) => {
                require(!self.collecting.contains(checkpoint), "lost while collecting")?;
                self.lost.insert(*checkpoint);
            }
            (Command::Drop { checkpoint }, _) => {
                self.unscoped.remove(checkpoint);
                self.dropped.insert(*checkpoint);
            }
            (Command::Forget { conversation }, _) => {
                self.forgotten.insert(*conversation);
            }
            (Command::Configure { policy, .. }, _) => self.policy = *policy,
            (Command::Deleted { checkpoint, outcomes }, Outcome::Deleted { left }) => {
                let gone = outcomes.iter().filter(|(_, outcome)| *outcome == DeleteOutcome::Gone);
                self.gone.extend(gone.map(|(object, _)| (*checkpoint, *object)));
                let shape = &self.shapes[checkpoint];
                let objects = (0..shape.objects()).filter_map(|place| shape.object_at(place));
                let there = objects.filter(|object| !self.gone.contains(&(*checkpoint, *object)));
                require(there.count() == *left as usize, "another number of objects is left")?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Hears of a follow-up.
    pub(crate) fn followed_up(&mut self, follow_up: &FollowUp) -> Result<(), String> {
        match follow_up {
            FollowUp::EndPin { pin } => {
                let held = self.pins.remove(pin).ok_or("a pin ended twice")?;
                for shard in held.shards {
                    let failed = Evidence::QuiescedFailure;
                    self.evidence.entry((held.checkpoint, shard)).or_insert(failed);
                }
                Ok(())
            }
            FollowUp::Expire { turn } => {
                let due = self.is_over() || self.forgotten.contains(&turn.conversation);
                require(due, "a follow-up expires a turn that may stay")?;
                self.expire(*turn)
            }
            FollowUp::Purge { .. } | FollowUp::Settle { .. } | FollowUp::Trim { .. } => Ok(()),
        }
    }

    /// Hears of delete work: nothing that is referred to or held may be in it.
    pub(crate) fn delete(&mut self, id: CheckpointId, objects: &[ObjectId]) -> Result<(), String> {
        let referred = self.turns.iter().any(|turn| turn.on.contains(&id));
        require(!referred, "I1: a retained turn's object is deleted")?;
        require(!self.unscoped.contains(&id), "I1: an unscoped object is deleted")?;
        let held = self.pins.values().any(|held| held.checkpoint == id);
        require(!held, "I2: a pinned object is deleted")?;
        let known = objects.iter().all(|object| self.shapes[&id].place_of(*object).is_some());
        require(known && !objects.is_empty(), "I3: a key that is none of the checkpoint's")?;
        self.collecting.insert(id);
        Ok(())
    }

    fn is_whole(&self, id: CheckpointId) -> bool {
        let success = Some(&Evidence::QuiescedSuccess);
        let shards = self.shapes.get(&id).map_or(0, |shape| shape.shards().len());
        (0..shards).all(|shard| {
            let shard = u16::try_from(shard).unwrap_or(u16::MAX);
            self.evidence.get(&(id, shard)) == success
        })
    }

    fn serve(&mut self, pin: PinId, id: CheckpointId) -> Result<(), String> {
        let good = self.is_whole(id) && !self.lost.contains(&id) && !self.collecting.contains(&id);
        require(good, "I9: something else than a whole checkpoint is served")?;
        self.pins.insert(pin, Held { checkpoint: id, shards: Vec::new() });
        Ok(())
    }

    /// The first final value of each shard stands; the answer is the shard's, or the first among
    /// all that is no success.
    fn settle(
        &mut self,
        pin: PinId,
        only: Option<u16>,
        [given, stands]: [Evidence; 2],
    ) -> Result<(), String> {
        let held = self.pins.get(&pin).cloned().ok_or("an ended pin is settled")?;
        if held.shards.is_empty() {
            if given.is_final() {
                self.pins.remove(&pin);
            }
            return require(stands == given, "a load was not answered with its evidence");
        }
        let asked = held.shards.iter().filter(|shard| only.is_none_or(|only| only == **shard));
        let mut found = Evidence::QuiescedSuccess;
        for shard in asked {
            let known = self.evidence.get(&(held.checkpoint, *shard)).copied();
            if known.is_none() && given.is_final() {
                self.evidence.insert((held.checkpoint, *shard), given);
            }
            let shown = known.unwrap_or(given);
            if found == Evidence::QuiescedSuccess {
                found = shown;
            }
        }
        require(stands == found, "a final value was not answered with the first")
    }

    fn publish(&mut self, pin: PinId, turn: Option<TurnKey>) -> Result<(), String> {
        let id = self.pins.get(&pin).ok_or("published with an ended pin")?.checkpoint;
        require(self.is_whole(id), "I4: published, and not whole")?;
        require(!self.lost.contains(&id), "I9: published, and lost")?;
        let Some(key) = turn else {
            require(!self.dropped.contains(&id), "a dropped mark came back")?;
            self.unscoped.insert(id);
            return Ok(());
        };
        let over = self.expired.contains(&key) || self.forgotten.contains(&key.conversation);
        require(!over, "I7: an expired turn returned")?;
        let lost = &self.lost;
        match self.turns.iter_mut().find(|turn| turn.key == key) {
            Some(turn) if turn.on.contains(&id) => {}
            Some(turn) => {
                turn.on.retain(|on| !(lost.contains(on) && on.endpoint == id.endpoint));
                turn.on.push(id);
            }
            None => self.turns.push(Turn { key, on: vec![id] }),
        }
        Ok(())
    }

    /// Only the oldest live turn of a conversation ever expires.
    fn expire(&mut self, key: TurnKey) -> Result<(), String> {
        let of_it = |turn: &Turn| turn.key.conversation == key.conversation;
        let place = self.turns.iter().position(of_it).ok_or("I6: no turn to expire")?;
        require(self.turns[place].key == key, "I6: not the oldest of its conversation")?;
        self.turns.remove(place);
        self.expired.insert(key);
        Ok(())
    }

    fn bytes(&self, within: Option<ConversationId>) -> u64 {
        let inside = |turn: &&Turn| within.is_none_or(|within| turn.key.conversation == within);
        let on: BTreeSet<_> = self.turns.iter().filter(inside).flat_map(|turn| &turn.on).collect();
        on.into_iter().map(|id| self.shapes[id].bytes()).sum()
    }

    /// Whether any bound of the policy asks for a turn to go.
    pub(crate) fn is_over(&self) -> bool {
        let Policy { turns, conversation_bytes, job_bytes, .. } = self.policy;
        let conversations: BTreeSet<_> =
            self.turns.iter().map(|turn| turn.key.conversation).collect();
        let over = |within: ConversationId| {
            let live = self.turns.iter().filter(|turn| turn.key.conversation == within).count();
            let bytes = self.bytes(Some(within));
            live > turns as usize || live > 1 && conversation_bytes.is_some_and(|most| bytes > most)
        };
        let over_job = job_bytes.is_some_and(|most| self.bytes(None) > most);
        conversations.into_iter().any(over) || over_job && self.turns.len() > 1
    }

    /// Whether forgotten conversations still have live turns.
    pub(crate) fn forgets(&self) -> bool {
        self.turns.iter().any(|turn| self.forgotten.contains(&turn.key.conversation))
    }

    /// The live turns on a checkpoint.
    pub(crate) fn turns_on(&self, id: CheckpointId) -> BTreeSet<TurnKey> {
        self.turns.iter().filter(|turn| turn.on.contains(&id)).map(|turn| turn.key).collect()
    }

    /// Live turns, live pins, and bytes that turns refer to.
    pub(crate) fn sums(&self) -> (u64, u64, u64) {
        (self.turns.len() as u64, self.pins.len() as u64, self.bytes(None))
    }

    /// Whose pins there are.
    pub(crate) fn holders(&self) -> BTreeSet<(OwnerId, Incarnation)> {
        self.pins.keys().map(|pin| (pin.op.owner, pin.op.incarnation)).collect()
    }

    /// Every conversation that was ever published into or forgotten.
    pub(crate) fn conversations(&self) -> BTreeSet<ConversationId> {
        let live = self.turns.iter().map(|turn| turn.key.conversation);
        live.chain(self.expired.iter().map(|key| key.conversation)).collect()
    }
}
