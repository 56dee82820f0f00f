//! A run in the protocol's words: one line a step, and below it one line for each thing that was
//! seen of it.
//!
//! Only what changed is said. A choice that could not happen is said to be skipped, and has no
//! number. Names are those of the scripts: `w1#5` an operation, `c3` the
//! checkpoint of generation 3, `w1.2.1` the first move of the second transfer of `w1`.

use std::collections::BTreeMap;

use pinfold_core::catalog::Verdict;
use pinfold_core::engine::{Query, Reply, Request, Ticket};
use pinfold_core::id::PinId;

use crate::run::Watch;
use crate::script::Names;
use crate::script::world::{names_of, say, say_move};
use crate::seen::{Cause, Seen, Way};
use crate::store::{Content, StoreKey};
use crate::world::choice::{Choice, Coordinate, GetEnd, PutEnd};
use crate::world::setup::Setup;
use crate::world::{Kind, World};

/// A trace of a run. See the [module](self).
#[derive(Clone, Debug)]
pub struct Trace {
    setup: Setup,
    names: Names,
    asked: BTreeMap<Ticket, Request>,
    listed: BTreeMap<Ticket, Vec<StoreKey>>,
    steps: u32,
    /// What was there before the step that is under way; none in a recovery.
    before: Option<Before>,
    /// The last step was one of a recovery.
    recovers: bool,
    lines: Vec<String>,
}

/// What a step makes disappear.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// The choice can happen.
    happens: bool,
    /// How long the frame is that is written and not synced.
    written_bytes: Option<usize>,
}

impl Trace {
    /// A trace of a World of this size.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        Self {
            setup: setup.clone(),
            names: names_of(setup),
            asked: BTreeMap::new(),
            listed: BTreeMap::new(),
            steps: 0,
            before: None,
            recovers: false,
            lines: Vec::new(),
        }
    }

    /// The lines since they were last taken.
    pub fn take(&mut self) -> Vec<String> {
        core::mem::take(&mut self.lines)
    }

    /// What was seen of one step, line by line, without its choice.
    pub fn say_seen(&mut self, choice: Choice, seen: &[Seen]) -> Vec<String> {
        let before = self.before.take();
        let mut lines: Vec<String> = self.say_end(before, choice).into_iter().collect();
        lines.extend(seen.iter().flat_map(|it| self.say(it)));
        lines
    }

    /// What only the choice says of its end: what a crash keeps, and that a move failed.
    fn say_end(&self, before: Option<Before>, choice: Choice) -> Option<String> {
        if let Choice::Coordinator(Coordinate::Crash(kept) | Coordinate::FailSync(kept)) = choice {
            let written = before.and_then(|before| before.written_bytes)?;
            let kept = usize::try_from(kept).map_or(written, |kept| kept.min(written));
            return Some(format!("{kept} of {written} written bytes are on the disk"));
        }
        let (id, how) = if let Choice::Put(id, PutEnd::NotStarted) = choice {
            (id, "not started")
        } else if let Choice::Put(id, PutEnd::Failed { .. })
        | Choice::Get(id, GetEnd::Failed { .. }) = choice
        {
            (id, "failed")
        } else {
            return None;
        };
        Some(format!("{}: {how}", say_move(&self.setup, id)))
    }

    fn say(&mut self, seen: &Seen) -> Vec<String> {
        let line = match seen {
            Seen::Submitted { ticket, input } => {
                self.asked.insert(*ticket, input.request.clone());
                if let Request::Query(Query::Audit(keys)) = &input.request {
                    return vec![format!("asks: audit of {} keys", keys.len())];
                }
                let asks = self.names.show_request(&input.request);
                return asks.into_iter().map(|line| format!("asks: {line}")).collect();
            }
            Seen::Synced { events } => {
                let synced = events.iter().map(|event| {
                    self.names.learn(event);
                    format!("synced: {}", self.names.show_event(event))
                });
                return synced.collect();
            }
            Seen::Replied { ticket, reply: Reply::Audit(verdicts) } => {
                self.asked.remove(ticket);
                return self.say_audit(*ticket, verdicts);
            }
            Seen::Replied { ticket, reply } => {
                let request = self.asked.remove(ticket);
                return request.map_or(Vec::new(), |it| self.names.show_reply(&it, reply));
            }
            Seen::HandedOut { effect } => self.names.show_effect(effect),
            Seen::Idled => return Vec::new(),
            Seen::SyncFailed => "the sync failed: the coordinator is over".to_string(),
            Seen::Crashed => "the coordinator is gone".to_string(),
            Seen::Recovered => "the coordinator is back".to_string(),
            Seen::OwnerDied { owner, incarnation } => {
                let number = incarnation.map_or(String::new(), |number| format!(":{number}"));
                format!("{}{number} died", self.names.show_owner(*owner))
            }
            Seen::Compares { .. } => return Vec::new(),
            Seen::Compared { pin, same } => {
                let what = if *same { "agrees with the other ranks" } else { "does not agree" };
                format!("{} {what}", self.say_pin(*pin))
            }
            Seen::Missed { key, .. } => format!("{} is missing or wrong", self.say_key(*key)),
            Seen::MoveBegan { .. }
            | Seen::Landed { .. }
            | Seen::PutSucceeded { .. }
            | Seen::Confirmed { .. }
            | Seen::Retired { .. }
            | Seen::Deleted { .. }
            | Seen::StoreLost { .. }
            | Seen::Returned { .. }
            | Seen::SourceReused { .. }
            | Seen::DestinationReused { .. }
            | Seen::Adopted { .. } => self.say_bytes(seen),
            Seen::FalseProof { owner, incarnation } => {
                let name = self.names.show_owner(*owner);
                format!("{name}:{incarnation} is said to be done, and is not")
            }
            Seen::Listed { ticket, keys } => {
                self.listed.insert(*ticket, keys.clone());
                return Vec::new();
            }
        };
        vec![line]
    }

    /// What became of bytes, in the store and in workers' memory.
    fn say_bytes(&self, seen: &Seen) -> String {
        match seen {
            Seen::MoveBegan { id, way, key, pin, .. } => {
                let way = match way {
                    Way::Put => "put",
                    Way::Get => "get",
                };
                let (name, key) = (say_move(&self.setup, *id), self.say_key(*key));
                format!("{name}: {way} {key} begins under {}", self.say_pin(*pin))
            }
            Seen::Landed { key, content, .. } => {
                let what = if *content == Content::Garbage { "other bytes" } else { "its bytes" };
                format!("the store has {what} as {}", self.say_key(*key))
            }
            Seen::PutSucceeded { id } => format!("{}: ok", say_move(&self.setup, *id)),
            Seen::Confirmed { key, .. } => format!("{} is confirmed", self.say_key(*key)),
            Seen::Retired { id } => format!("{}: retired", say_move(&self.setup, *id)),
            Seen::Deleted { key, cause } => {
                let cause = match cause {
                    Cause::Work => "",
                    Cause::Stray => ", a stray",
                };
                format!("the store deletes {}{cause}", self.say_key(*key))
            }
            Seen::StoreLost { key } => format!("the store lost {}", self.say_key(*key)),
            Seen::Returned { key } => format!("the store has {} again", self.say_key(*key)),
            Seen::SourceReused { pin, shard } => {
                format!("the memory of shard {shard} of {} is reused", self.say_pin(*pin))
            }
            Seen::DestinationReused { pin } => {
                format!("the memory of {} is reused", self.say_pin(*pin))
            }
            Seen::Adopted { pin, checkpoint, memory, digest: _ } => {
                let count = memory.iter().filter(|(_, content)| content.is_some()).count();
                let name = self.names.show_checkpoint(*checkpoint);
                format!("{} adopts {count} objects of {name}", self.say_pin(*pin))
            }
            _ => String::new(),
        }
    }

    /// How many keys are what, and which are strays.
    fn say_audit(&mut self, ticket: Ticket, verdicts: &[Verdict]) -> Vec<String> {
        let keys = self.listed.remove(&ticket).unwrap_or_default();
        let count = |verdict| verdicts.iter().filter(|it| **it == verdict).count();
        let (counted, foreign) = (count(Verdict::Counted), count(Verdict::NotOurs));
        let strays = keys.iter().zip(verdicts).filter(|(_, verdict)| **verdict == Verdict::Stray);
        let strays = strays.map(|(key, _)| format!("audit: {} is a stray", self.say_key(*key)));
        let sums = format!("audit: {counted} counted, {foreign} not ours");
        core::iter::once(sums).chain(strays).collect()
    }

    fn say_pin(&self, pin: PinId) -> String {
        self.names.show_pin(pin)
    }

    fn say_key(&self, key: StoreKey) -> String {
        match key {
            StoreKey::Private(id, object) => {
                format!("{}/{object}", self.names.show_checkpoint(id))
            }
            StoreKey::Shared(name) => {
                let bytes = name.chain.as_bytes().iter().map(u8::to_string);
                format!("page {}", bytes.collect::<Vec<_>>().join("."))
            }
            StoreKey::Foreign(number) => format!("foreign {number}"),
        }
    }
}

impl Watch for Trace {
    fn before(&mut self, world: &World, _: Kind, choice: Choice) {
        let written_bytes = world.coordinator.batch.as_ref().map(|batch| batch.bytes().len());
        self.before = Some(Before { happens: world.allows(choice), written_bytes });
    }

    fn step(&mut self, _: &World, _: Kind, choice: Choice, seen: &[Seen]) {
        let said = say(&self.setup, choice);
        if self.before.take_if(|before| !before.happens).is_some() {
            self.lines.push(format!("       {said}: cannot happen here: skipped"));
            return;
        }
        // Only a recovery's steps come unannounced.
        let recovers = self.before.is_none();
        if recovers && !self.recovers {
            self.lines.push("recovery".to_string());
        }
        self.recovers = recovers;
        self.steps += 1;
        self.lines.push(format!("{:>5}  {said}", self.steps));
        for line in self.say_seen(choice, seen) {
            self.lines.push(format!("         {line}"));
        }
    }
}
