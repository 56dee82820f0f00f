//! What is under way between processes and the store: where each began.
//!
//! A put arrives when its bytes are in the store, whatever its process was told; it is lost when
//! they never will be. A get arrives when what the store holds is brought.

use std::collections::BTreeMap;

use pinfold_core::id::{CheckpointId, ObjectId};

use super::Now;
use super::arrow::{Arrow, End, What};
use super::lane::Lane;
use crate::script::world::say_move;
use crate::seen::{MoveId, Seen, Way};
use crate::store::StoreKey;
use crate::world::choice::{Choice, DeleteEnd, GetEnd, Lands, ObjectChange};

/// A move that has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    step: u32,
    way: Way,
    key: StoreKey,
}

/// A delete whose answer is lost and that may still take effect.
#[derive(Clone, Copy, Debug)]
struct Late {
    step: u32,
    lane: Lane,
    object: (CheckpointId, ObjectId),
}

/// What is under way to and from the store. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    moves: BTreeMap<MoveId, Begun>,
    checks: BTreeMap<MoveId, u32>,
    late: Vec<Late>,
}

impl Moves {
    /// What arrives at a step, or is lost; and notes what begins.
    pub(super) fn step(&mut self, now: &Now<'_>) -> Vec<Arrow> {
        let mut arrows = self.end_moves(now);
        arrows.extend(self.end_checks(now));
        arrows.extend(self.end_deletes(now));
        for seen in now.seen {
            if let Seen::MoveBegan { id, way, key, .. } = *seen {
                self.moves.insert(id, Begun { step: now.number, way, key });
            }
        }
        for check in &now.world.store.checks {
            self.checks.entry(check.id).or_insert(now.number);
        }
        arrows
    }

    /// What is under way after the last step.
    pub(super) fn open(&self, now: &Now<'_>) -> Vec<Arrow> {
        let moves = self.moves.iter().map(|(id, it)| (*id, it.step, of_way(it.way)));
        let checks = self.checks.iter().map(|(id, step)| (*id, *step, What::Ask));
        let open = moves.chain(checks).map(|(id, step, what)| towards(now, what, (id, step)));
        let mut open: Vec<Arrow> = open.map(|arrow| Arrow { end: End::Open, ..arrow }).collect();
        open.extend(self.late.iter().map(|late| delete(now, *late, End::Open)));
        open
    }

    fn end_moves(&mut self, now: &Now<'_>) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        for seen in now.seen {
            if let Seen::Landed { id, .. } = seen
                && let Some(it) = self.moves.remove(id)
            {
                arrows.push(towards(now, What::Put, (*id, it.step)));
            }
        }
        let store = &now.world.store;
        self.moves.retain(|id, it| {
            let place = store.place_of(*id);
            let left = place.map(|place| &store.moves[place]);
            if left.is_some_and(|left| !left.answered || left.lands) {
                return true;
            }
            let brings = it.way == Way::Get && is_answered(now, *id);
            let end = match brings && store.objects.contains_key(&it.key) {
                true => End::Arrived,
                false => End::Lost,
            };
            arrows.push(Arrow { end, ..towards(now, of_way(it.way), (*id, it.step)) });
            if end == End::Arrived {
                arrows.push(back(now, *id));
            }
            false
        });
        arrows
    }

    fn end_checks(&mut self, now: &Now<'_>) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        self.checks.retain(|id, step| {
            if now.world.store.checks.iter().any(|check| check.id == *id) {
                return true;
            }
            let is_known = now.choice == Choice::Check(*id, true);
            let end = if is_known { End::Arrived } else { End::Lost };
            arrows.push(Arrow { end, ..towards(now, What::Ask, (*id, *step)) });
            if is_known {
                arrows.push(back(now, *id));
            }
            false
        });
        arrows
    }

    fn end_deletes(&mut self, now: &Now<'_>) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        self.late.retain(|late| {
            let (id, object) = late.object;
            let lands =
                now.choice == Choice::Object(id.generation, object, ObjectChange::LandDelete);
            let end = if lands { End::Arrived } else { End::Lost };
            let is_over = !now.world.store.late_deletes.contains(&late.object);
            if is_over {
                arrows.push(delete(now, *late, end));
            }
            !is_over
        });
        let Choice::Delete(number, end) = now.choice else { return arrows };
        let Some(deleting) = begun_delete(now, number) else { return arrows };
        match end {
            DeleteEnd::Gone | DeleteEnd::Unknown(Lands::Now) => {
                arrows.push(delete(now, deleting, End::Arrived));
            }
            DeleteEnd::Refused | DeleteEnd::Unknown(Lands::Never) => {
                arrows.push(delete(now, deleting, End::Lost));
            }
            DeleteEnd::Unknown(Lands::Later) => self.late.push(deleting),
            DeleteEnd::Probed => {
                let probe = delete(now, deleting, End::Arrived);
                arrows.push(Arrow { what: What::Ask, ..probe });
            }
        }
        arrows
    }
}

const fn of_way(way: Way) -> What {
    match way {
        Way::Put => What::Put,
        Way::Get => What::Ask,
    }
}

/// True when a get is answered at this step with what the store holds.
fn is_answered(now: &Now<'_>, id: MoveId) -> bool {
    let ends = [GetEnd::Answered, GetEnd::AnsweredUnretired];
    ends.into_iter().any(|end| now.choice == Choice::Get(id, end))
}

/// The delete that was the last one of some work; none when the work is nobody's.
fn begun_delete(now: &Now<'_>, number: u16) -> Option<Late> {
    let work = now.world.store.work.iter().find(|work| work.number == number)?;
    let (object, _) = work.outcomes.last()?;
    let lane = now.lane_of(work.by.owner)?;
    Some(Late { step: now.number, lane, object: (work.checkpoint, *object) })
}

/// From a process to the store.
fn towards(now: &Now<'_>, what: What, (id, step): (MoveId, u32)) -> Arrow {
    let (from, to) = ((Now::lane_of_move(id), step), (Lane::Store, now.number));
    Arrow { what, name: say_move(&now.world.setup, id), from, to, end: End::Arrived }
}

/// From the store to a process.
fn back(now: &Now<'_>, id: MoveId) -> Arrow {
    let (from, to) = ((Lane::Store, now.number), (Now::lane_of_move(id), now.number));
    let name = say_move(&now.world.setup, id);
    Arrow { what: What::Get, name, from, to, end: End::Arrived }
}

fn delete(now: &Now<'_>, late: Late, end: End) -> Arrow {
    let (CheckpointId { generation, .. }, object) = late.object;
    let (from, to) = ((late.lane, late.step), (Lane::Store, now.number));
    Arrow { what: What::Delete, name: format!("of c{generation}/{object}"), from, to, end }
}
