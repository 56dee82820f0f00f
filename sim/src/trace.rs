//! A run in the protocol's words: one line a step, and below it one line for each thing that was
//! seen of it.
//!
//! Only what changed is said. Names are those of the scripts: `w1#5` an operation, `c3` the
//! checkpoint of generation 3, `w1.2.1` the first move of the second transfer of `w1`.

use std::collections::BTreeMap;

use pinfold_core::catalog::Verdict;
use pinfold_core::engine::{Query, Reply, Request, Ticket};
use pinfold_core::id::PinId;

use crate::run::Watch;
use crate::script::Names;
use crate::script::world::{say, say_move};
use crate::seen::{Cause, Seen, Way};
use crate::store::{Content, StoreKey};
use crate::world::choice::Choice;
use crate::world::setup::{Library, Setup};
use crate::world::{Kind, World};

/// A trace of a run. See the [module](self).
#[derive(Clone, Debug)]
pub struct Trace {
    setup: Setup,
    names: Names,
    asked: BTreeMap<Ticket, Request>,
    listed: BTreeMap<Ticket, Vec<StoreKey>>,
    steps: u32,
    lines: Vec<String>,
}

impl Trace {
    /// A trace of a World of this size.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        let mut names = Names::default();
        for process in 0..setup.processes() {
            names.owner(&setup.process_name(process));
        }
        for conversation in 1..=setup.conversations {
            for turn in 1..=setup.turns {
                names.turn(&format!("C{conversation}/T{turn}"));
            }
        }
        let library = Library::of(setup);
        for endpoint in 0..library.endpoints() {
            for geometry in 0..3 {
                let manifest = library.manifest(endpoint, geometry);
                let name = format!("E{}", u16::from(endpoint) + 1);
                names.bind_endpoint(&name, manifest.endpoint().id());
                let variant = if geometry == 0 { name } else { format!("{name}-{geometry}") };
                names.bind_digest(&variant, manifest.digest());
            }
        }
        let (asked, listed) = (BTreeMap::new(), BTreeMap::new());
        Self { setup: setup.clone(), names, asked, listed, steps: 0, lines: Vec::new() }
    }

    /// The lines since they were last taken.
    pub fn take(&mut self) -> Vec<String> {
        core::mem::take(&mut self.lines)
    }

    /// What was seen of one step, line by line, without its choice.
    pub fn say_seen(&mut self, seen: &[Seen]) -> Vec<String> {
        seen.iter().flat_map(|it| self.say(it)).collect()
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
    fn step(&mut self, _: &World, _: Kind, choice: Choice, seen: &[Seen]) {
        self.steps += 1;
        let choice = say(&self.setup, choice);
        self.lines.push(format!("{:>5}  {choice}", self.steps));
        for line in self.say_seen(seen) {
            self.lines.push(format!("         {line}"));
        }
    }
}
