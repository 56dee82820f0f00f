//! The choice nearest to one that is none any more.
//!
//! When steps before it are left out, a message, a move or a checkpoint has another number, and a
//! choice that names it by the old one means nothing. What it meant is most often the choice of the
//! same kind, by the same process and with the same end, whose numbers are nearest.

use pinfold_core::id::Generation;

use super::choice::{About, Act, Choice, Coordinate, JobId, Mistake, PinName, parts_of};
use super::{Kind, World};
use crate::seen::MoveId;

/// What two choices must have in common, and the numbers in which they may differ.
type Likeness = (Choice, [u64; 4]);

impl World {
    /// This choice where it is one; else the nearest that is one.
    #[must_use]
    pub fn nearest(&self, choice: Choice) -> Option<Choice> {
        if self.allows(choice) {
            return Some(choice);
        }
        let (same, numbers) = likeness(choice);
        let mut offers = Vec::new();
        // Whether a proof is true may change with the numbers.
        let kinds = match self.kind_of(choice) {
            Kind::ProvenSettle | Kind::FalseSettle => vec![Kind::ProvenSettle, Kind::FalseSettle],
            Kind::ProvenFence | Kind::FalseFence => vec![Kind::ProvenFence, Kind::FalseFence],
            kind => vec![kind],
        };
        kinds.into_iter().for_each(|kind| self.offer(kind, &mut offers));
        let distance = |other: [u64; 4]| {
            numbers.iter().zip(other).fold(0_u64, |sum, (one, other)| {
                sum.saturating_mul(64).saturating_add(one.abs_diff(other))
            })
        };
        let alike = offers.into_iter().filter(|offer| likeness(*offer).0 == same);
        alike.min_by_key(|offer| distance(likeness(*offer).1))
    }
}

fn job(id: JobId) -> (JobId, u64) {
    (JobId { number: 0, ..id }, id.number.into())
}

fn moving(id: MoveId) -> (MoveId, [u64; 2]) {
    let (id, number) = parts_of(id);
    let (same, of_job) = job(id);
    (super::choice::move_id(same, 0), [of_job, number.into()])
}

fn message(about: About) -> (About, [u64; 4]) {
    match about {
        About::Register { process, life } => {
            (About::Register { process, life: 0 }, [life.into(), 0, 0, 0])
        }
        About::Command { process, life, sequence } => {
            (About::Command { process, life: 0, sequence: 0 }, [life.into(), sequence, 0, 0])
        }
        About::List { process, life, sequences: [first, second] } => {
            let same = About::List { process, life: 0, sequences: [0; 2] };
            (same, [life.into(), first, second, 0])
        }
    }
}

fn pin(name: PinName) -> (PinName, [u64; 4]) {
    let PinName { process, incarnation, sequence, place } = name;
    let same = PinName { process, incarnation: 0, sequence: 0, place: 0 };
    (same, [incarnation, sequence, place.into(), 0])
}

/// A choice without its numbers, and the numbers.
fn likeness(choice: Choice) -> Likeness {
    let none = [0; 4];
    let of_move = |make: &dyn Fn(MoveId) -> Choice, id| {
        let (same, [job, number]) = moving(id);
        (make(same), [job, number, 0, 0])
    };
    match choice {
        Choice::Host(id, call) => {
            let (same, number) = job(id);
            (Choice::Host(same, call), [number, 0, 0, 0])
        }
        Choice::Publish(id, publishes) => {
            let (same, number) = job(id);
            (Choice::Publish(same, publishes), [number, 0, 0, 0])
        }
        Choice::Agree(attempt) => (Choice::Agree(0), [attempt.into(), 0, 0, 0]),
        Choice::Tell(process, act) => {
            let (same, numbers) = act_likeness(act);
            (Choice::Tell(process, same), numbers)
        }
        Choice::Message(about, passage) => {
            let (same, numbers) = message(about);
            (Choice::Message(same, passage), numbers)
        }
        Choice::Put(id, end) => of_move(&|id| Choice::Put(id, end), id),
        Choice::Get(id, end) => of_move(&|id| Choice::Get(id, end), id),
        Choice::Check(id, known) => of_move(&|id| Choice::Check(id, known), id),
        Choice::Retire(id) => of_move(&Choice::Retire, id),
        Choice::Land(id) => of_move(&Choice::Land, id),
        Choice::Delete(work, end) => (Choice::Delete(0, end), [work.into(), 0, 0, 0]),
        Choice::DropWork(work) => (Choice::DropWork(0), [work.into(), 0, 0, 0]),
        Choice::Object(generation, object, change) => {
            (Choice::Object(Generation(0), object, change), [generation.0, 0, 0, 0])
        }
        Choice::Look(Generation(number)) => (Choice::Look(Generation(0)), [number, 0, 0, 0]),
        Choice::Coordinator(Coordinate::Crash(kept)) => {
            (Choice::Coordinator(Coordinate::Crash(0)), [kept.into(), 0, 0, 0])
        }
        Choice::Coordinator(Coordinate::FailSync(kept)) => {
            (Choice::Coordinator(Coordinate::FailSync(0)), [kept.into(), 0, 0, 0])
        }
        Choice::Coordinator(
            Coordinate::FollowUp
            | Coordinate::Sync
            | Coordinate::Write
            | Coordinate::Commit
            | Coordinate::Restart
            | Coordinate::Compact,
        )
        | Choice::Register(_)
        | Choice::Die(_)
        | Choice::Save { .. }
        | Choice::Load { .. }
        | Choice::RestartStore
        | Choice::Audit => (choice, none),
    }
}

fn act_likeness(act: Act) -> (Act, [u64; 4]) {
    match act {
        Act::Doubt(name, yes) => {
            let (same, numbers) = pin(name);
            (Act::Doubt(same, yes), numbers)
        }
        Act::Settle(name, evidence) => {
            let (same, numbers) = pin(name);
            (Act::Settle(same, evidence), numbers)
        }
        Act::Release(name) => {
            let (same, numbers) = pin(name);
            (Act::Release(same), numbers)
        }
        Act::Report(work) => (Act::Report(0), [work.into(), 0, 0, 0]),
        Act::Drop(Generation(number)) => (Act::Drop(Generation(0)), [number, 0, 0, 0]),
        Act::Lost(Generation(number)) => (Act::Lost(Generation(0)), [number, 0, 0, 0]),
        Act::Fence(process, number) => (Act::Fence(process, 0), [number, 0, 0, 0]),
        Act::Collect(_)
        | Act::Configure(_)
        | Act::Forget(_)
        | Act::Retire(_)
        | Act::Malformed
        | Act::Conflict => (act, [0; 4]),
        Act::Mistake(mistake) => {
            let (same, numbers) = mistake_likeness(mistake);
            (Act::Mistake(same), numbers)
        }
    }
}

fn mistake_likeness(mistake: Mistake) -> (Mistake, [u64; 4]) {
    let of_pin = |same: fn(PinName) -> Mistake, name| {
        let (name, numbers) = pin(name);
        (same(name), numbers)
    };
    let of_checkpoint = |same: fn(Generation) -> Mistake, generation: Generation| {
        (same(Generation(0)), [generation.0, 0, 0, 0])
    };
    match mistake {
        Mistake::Foreign(name) => of_pin(Mistake::Foreign, name),
        Mistake::Shard(name) => of_pin(Mistake::Shard, name),
        Mistake::Active(name) => of_pin(Mistake::Active, name),
        Mistake::Lost(generation) => of_checkpoint(Mistake::Lost, generation),
        Mistake::NotHeld(generation) => of_checkpoint(Mistake::NotHeld, generation),
        Mistake::Deleted(generation) => of_checkpoint(Mistake::Deleted, generation),
        Mistake::DeletedOther(generation) => of_checkpoint(Mistake::DeletedOther, generation),
        Mistake::Publish
        | Mistake::Settle
        | Mistake::Release
        | Mistake::Doubt
        | Mistake::DeletedNothing
        | Mistake::Fence(_)
        | Mistake::Incarnation => (mistake, [0; 4]),
    }
}
