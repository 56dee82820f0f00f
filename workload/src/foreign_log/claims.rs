//! What commands say of the store, against what the log says that the store did.
//!
//! Protects the catalog from a host that reports what it did not see: an object is reported gone
//! when a delete or a probe of it said so, and a shard is settled as saved when every put of it
//! was stored. Where no line shows the object or the shard at all, the report is counted and not
//! held against anybody: not every host logs its store. It judges only a log from genesis and only
//! before its first gap, because a missing line may be the one that it looks for.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::catalog::Command;
use pinfold_core::engine::{Reply, Request};
use pinfold_core::id::{CheckpointId, ObjectId, PinId, ShardIndex};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome};
use pinfold_host::log::PutResult;
use pinfold_sim::store::StoreKey;
use pinfold_sim::violation::{self, Violation};

/// See the [module](self).
#[derive(Default)]
pub(super) struct Claims {
    /// Private keys that were deleted or probed, and whether one answer said gone.
    deleted: BTreeMap<StoreKey, bool>,
    /// The puts of each shard, and whether each was stored.
    puts: BTreeMap<(CheckpointId, ShardIndex), BTreeMap<ObjectId, bool>>,
    /// What each save pin claimed.
    saves: BTreeMap<PinId, Save>,
}

struct Save {
    checkpoint: CheckpointId,
    claimed: BTreeSet<ShardIndex>,
    /// Those without final evidence.
    open: BTreeSet<ShardIndex>,
}

/// What was claimed although no line of the log shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unshown {
    /// Shards settled as saved.
    pub(super) saves: u64,
    /// Objects reported gone.
    pub(super) deletes: u64,
}

impl Claims {
    /// A put began.
    pub(super) fn begin_put(&mut self, key: StoreKey) {
        if let StoreKey::Private(checkpoint, object) = key {
            let puts = self.puts.entry((checkpoint, object.shard)).or_default();
            puts.entry(object).or_insert(false);
        }
    }

    /// The store answered a put.
    pub(super) fn end_put(&mut self, key: StoreKey, outcome: PutResult) {
        if let StoreKey::Private(checkpoint, object) = key {
            let puts = self.puts.entry((checkpoint, object.shard)).or_default();
            puts.insert(object, outcome == PutResult::Stored);
        }
    }

    /// A delete or a probe was answered. What is gone stays so.
    pub(super) fn look(&mut self, key: StoreKey, outcome: DeleteOutcome) {
        let is_gone = self.deleted.entry(key).or_insert(false);
        *is_gone |= outcome == DeleteOutcome::Gone;
    }

    /// An answer left: a save pin has its checkpoint.
    pub(super) fn answer(&mut self, request: &Request, reply: &Reply) {
        match (request, reply) {
            (Request::Command(_, command), Reply::Command(Ok(outcome))) => {
                self.claim(command, outcome);
            }
            (Request::List(commands), Reply::List(answers)) => {
                for ((_, command), answer) in commands.iter().zip(answers) {
                    if let Some(Ok(outcome)) = answer {
                        self.claim(command, outcome);
                    }
                }
            }
            (
                Request::Register(_) | Request::Command(..) | Request::List(_) | Request::Query(_),
                _,
            ) => {}
        }
    }

    fn claim(&mut self, command: &Command, outcome: &Outcome) {
        if let (Command::Prepare(prepare), Outcome::Prepared { pin, checkpoint }) =
            (command, outcome)
        {
            let claimed: BTreeSet<_> = prepare.shards.iter().copied().collect();
            let save = Save { checkpoint: *checkpoint, open: claimed.clone(), claimed };
            self.saves.entry(*pin).or_insert(save);
        }
    }

    /// Judges what an input of this job says of the store.
    pub(super) fn judge(&mut self, request: &Request) -> Result<Unshown, Violation> {
        let mut unshown = Unshown::default();
        match request {
            Request::Command(_, command) => self.judge_command(command, &mut unshown)?,
            Request::List(commands) => {
                for (_, command) in commands {
                    self.judge_command(command, &mut unshown)?;
                }
            }
            Request::Register(_) | Request::Query(_) => {}
        }
        Ok(unshown)
    }

    fn judge_command(&mut self, command: &Command, unshown: &mut Unshown) -> Result<(), Violation> {
        match command {
            Command::Deleted { checkpoint, outcomes } => {
                for (object, outcome) in outcomes {
                    if *outcome == DeleteOutcome::Gone {
                        unshown.deletes += u64::from(!self.shows_gone(*checkpoint, *object)?);
                    }
                }
            }
            Command::Settle { pin, shard, evidence } => {
                let Some(save) = self.saves.get_mut(pin) else { return Ok(()) };
                let settled: Vec<_> = match shard {
                    Some(shard) => save.claimed.get(shard).copied().into_iter().collect(),
                    None => save.open.iter().copied().collect(),
                };
                if *evidence != Evidence::InDoubt {
                    save.open.retain(|shard| !settled.contains(shard));
                }
                let checkpoint = save.checkpoint;
                if *evidence == Evidence::QuiescedSuccess {
                    for shard in settled {
                        unshown.saves += u64::from(!self.shows_saved(checkpoint, shard)?);
                    }
                }
            }
            Command::Prepare(_)
            | Command::Publish { .. }
            | Command::Pin { .. }
            | Command::Release { .. }
            | Command::Lost { .. }
            | Command::Doubt { .. }
            | Command::Collect { .. }
            | Command::Configure { .. }
            | Command::Forget { .. }
            | Command::Drop { .. }
            | Command::Fence { .. }
            | Command::Retire { .. } => {}
        }
        Ok(())
    }

    /// Whether the log shows that an object is gone; false when it never speaks of it.
    fn shows_gone(&self, checkpoint: CheckpointId, object: ObjectId) -> Result<bool, Violation> {
        match self.deleted.get(&StoreKey::Private(checkpoint, object)) {
            None => Ok(false),
            Some(true) => Ok(true),
            Some(false) => {
                let what = format!(
                    "object {object} of checkpoint {checkpoint} is reported gone, and no delete \
                     or probe of it said so"
                );
                Err(broken(Invariant::I17, what))
            }
        }
    }

    /// Whether the log shows that a shard was stored; false when it has no put of it.
    fn shows_saved(&self, checkpoint: CheckpointId, shard: ShardIndex) -> Result<bool, Violation> {
        let Some(puts) = self.puts.get(&(checkpoint, shard)) else { return Ok(false) };
        match puts.iter().find(|(_, is_stored)| !**is_stored) {
            None => Ok(true),
            Some((object, _)) => {
                let what = format!(
                    "shard {shard} of checkpoint {checkpoint} is settled as saved, and object \
                     {object} of it was not stored"
                );
                Err(broken(Invariant::I4, what))
            }
        }
    }
}

fn broken(invariant: Invariant, what: String) -> Violation {
    Violation { invariant, judge: violation::Judge::Oracle, what }
}
