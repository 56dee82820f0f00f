//! What happened beside the coordinator: moves of bytes, deletes, adoptions and listings.

use pinfold_core::engine::{Query, Request, Ticket};
use pinfold_core::id::{CheckpointId, PinId};
use pinfold_core::invariant::Invariant;
use pinfold_core::manifest::ObjectName;
use pinfold_core::outcome::DeleteOutcome;
use pinfold_host::log::{Bytes, Cause, Event, Held, PutResult, Way};
use pinfold_sim::seen::{self, MoveId, Seen};
use pinfold_sim::store::{Content, StoreKey};

use super::super::read::LineFault;
use super::super::report::Reason;
use super::{Asked, Move, Stop, Verifier, breach, by_rules, fault};

impl Verifier {
    /// Takes what happened beside the coordinator.
    pub(super) fn take_beside(&mut self, event: Event) -> Result<(), Stop> {
        match event {
            Event::Began { number, way, key, pin } => self.begin(number, way, &key, pin),
            Event::Put { number, outcome } => self.put(number, outcome),
            Event::Retired { number } => self.retire(number),
            Event::Confirmed { pin, key } => {
                let key = self.keys.named(&key);
                self.show(&Seen::Confirmed { pin, key })
            }
            Event::Delete { key, why, outcome } => self.delete(&key, why, outcome),
            Event::Probed { key, outcome } => {
                let key = self.keys.named(&key);
                self.look(key, outcome);
                Ok(())
            }
            Event::StoreLost { key } => {
                let key = self.keys.named(&key);
                self.show(&Seen::StoreLost { key })
            }
            Event::SourceReused { pin, shard } => self.show(&Seen::SourceReused { pin, shard }),
            Event::DestinationReused { pin } => self.show(&Seen::DestinationReused { pin }),
            Event::Adopted { pin, checkpoint, memory } => self.adopt(pin, checkpoint, &memory),
            Event::OwnerDied { owner, incarnation } => {
                self.show(&Seen::OwnerDied { owner, incarnation })
            }
            Event::Listed { to } => self.listed(to),
            Event::Register { .. }
            | Event::Command { .. }
            | Event::List { .. }
            | Event::Query { .. }
            | Event::Idle
            | Event::Reply { .. }
            | Event::Work { .. }
            | Event::Crash
            | Event::Recovered { .. } => Ok(()),
        }
    }

    fn begin(&mut self, number: u64, way: Way, key: &str, pin: Option<PinId>) -> Result<(), Stop> {
        self.counts.moves += 1;
        let key = self.keys.named(key);
        let id = MoveId(self.used.len() as u64);
        if !self.used.insert(number) {
            return fault(LineFault::UsedMove { number });
        }
        let seen_way = match way {
            Way::Put => seen::Way::Put,
            Way::Get => seen::Way::Get,
        };
        let is_shown = matches!((key, pin), (StoreKey::Private(..), Some(_)));
        self.moves.insert(number, Move { id, way, key, is_shown });
        if let (Some(claims), Way::Put) = (&mut self.claims, way) {
            claims.begin_put(key);
        }
        match (key, pin) {
            (StoreKey::Private(checkpoint, _), Some(pin)) => {
                self.show(&Seen::MoveBegan { id, way: seen_way, key, checkpoint, pin })
            }
            (StoreKey::Private(..), None) if self.head.moves => fault(LineFault::NoPin),
            (StoreKey::Private(..) | StoreKey::Shared(_) | StoreKey::Foreign(_), pin) => {
                self.rules.begin(id, seen_way, key, pin).map_err(by_rules)
            }
        }
    }

    fn put(&mut self, number: u64, outcome: PutResult) -> Result<(), Stop> {
        let Some(one) = self.moves.get(&number).filter(|one| one.way == Way::Put) else {
            return self.miss_move(number);
        };
        let &Move { id, key, is_shown, .. } = one;
        if let Some(claims) = &mut self.claims {
            claims.end_put(key, outcome);
        }
        match outcome {
            PutResult::Stored if is_shown => {
                self.show(&Seen::Landed { id, key, content: Content::Of(key) })?;
                self.show(&Seen::PutSucceeded { id })
            }
            PutResult::Stored | PutResult::Failed | PutResult::Unknown => Ok(()),
        }
    }

    fn retire(&mut self, number: u64) -> Result<(), Stop> {
        let Some(Move { id, is_shown, .. }) = self.moves.remove(&number) else {
            return self.miss_move(number);
        };
        let seen = Seen::Retired { id };
        if is_shown { self.show(&seen) } else { self.rules.see(&seen).map_err(by_rules) }
    }

    fn miss_move(&mut self, number: u64) -> Result<(), Stop> {
        if self.whole {
            return fault(LineFault::NoMove { number });
        }
        self.gaps.add(Reason::NoMove, 1);
        Ok(())
    }

    fn delete(&mut self, key: &str, why: Cause, outcome: DeleteOutcome) -> Result<(), Stop> {
        self.counts.deletes += 1;
        let key = self.keys.named(key);
        self.look(key, outcome);
        if let (Some(coordinator), StoreKey::Private(checkpoint, object)) = (&self.coordinator, key)
        {
            coordinator.judge_delete(checkpoint, object)?;
        }
        let cause = match why {
            Cause::Work => seen::Cause::Work,
            Cause::Stray => seen::Cause::Stray,
        };
        let seen = Seen::Deleted { key, cause };
        match outcome {
            DeleteOutcome::Gone | DeleteOutcome::Unknown => self.show(&seen),
            // It hit nothing, and still should not have been asked.
            DeleteOutcome::Refused => self.rules.see(&seen).map_err(by_rules),
        }
    }

    fn adopt(&mut self, pin: PinId, checkpoint: CheckpointId, memory: &[Held]) -> Result<(), Stop> {
        let mut held = Vec::with_capacity(memory.len());
        for one in memory {
            let key = self.keys.named(&one.key);
            let object = match key {
                StoreKey::Private(of, object) if of == checkpoint => ObjectName::Private(object),
                StoreKey::Shared(name) => ObjectName::Shared(name),
                StoreKey::Private(..) | StoreKey::Foreign(_) => {
                    let what = format!("{} is no object of checkpoint {checkpoint}", one.key);
                    return breach(Invariant::I15, "log", what, None);
                }
            };
            let content = match one.bytes {
                Bytes::Right => Some(Content::Of(key)),
                Bytes::Wrong => Some(Content::Garbage),
                Bytes::Missing => None,
            };
            held.push((object, content));
        }
        self.show(&Seen::Adopted { pin, checkpoint, digest: None, memory: held })
    }

    fn listed(&mut self, to: u64) -> Result<(), Stop> {
        let keys = match self.inputs.get(&to) {
            Some(Asked::Waiting(Request::Query(Query::Audit(keys)))) => keys.clone(),
            Some(_) => return fault(LineFault::NoInput { to }),
            None if self.whole => return fault(LineFault::NoInput { to }),
            None => {
                self.gaps.add(Reason::NoInput, 1);
                return Ok(());
            }
        };
        let keys = keys.iter().map(|key| self.keys.named(key)).collect();
        self.show(&Seen::Listed { ticket: Ticket(to), keys })
    }

    /// A delete or a probe was answered.
    fn look(&mut self, key: StoreKey, outcome: DeleteOutcome) {
        if let Some(claims) = &mut self.claims {
            claims.look(key, outcome);
        }
    }
}
