//! What is true of a World just before a choice: whether there is something for it to change.

use pinfold_core::outcome::Evidence;

use crate::store::StoreKey;
use crate::world::World;
use crate::world::choice::{
    Choice, Coordinate, DeleteEnd, GetEnd, HostCall, JobId, ObjectChange, Passage, parts_of,
};
use crate::world::job::{Doing, Job, shards_of};

/// How far the processes are, as far as one step shows: what waits, what was asked, what was begun,
/// and who is there.
pub(super) type Tally = [u64; 4];

pub(super) fn tally(world: &World) -> Tally {
    let mut tally = [0; 4];
    for process in &world.processes {
        let began: u64 = process.jobs.iter().map(|job| u64::from(job.begun)).sum();
        let is_there = u64::from(process.incarnation.is_some());
        let knows = process.after.0 + u64::from(process.life) + u64::from(process.refused);
        tally[0] += process.asked.len() as u64;
        tally[1] += process.next + process.queued.len() as u64;
        tally[2] += began;
        tally[3] += process.jobs.len() as u64 + is_there + knows;
    }
    tally
}

fn job(world: &World, id: JobId) -> Option<&Job> {
    world.processes[usize::from(id.process)].job(id.number)
}

/// How many shards' bytes are still on their way in the transfer that a choice is about.
pub(super) fn open_shards(world: &World, choice: Choice) -> u32 {
    let (Choice::Put(id, _) | Choice::Get(id, _) | Choice::Check(id, _)) = choice else { return 0 };
    let Some(job) = job(world, parts_of(id).0) else { return 0 };
    let shards = match job.doing {
        Doing::Saves { shards, .. } => shards,
        Doing::Loads => 1,
    };
    let is_open = |shard: &_| job.transfer.evidence(*shard) == Some(Evidence::Active);
    shards_of(shards).filter(is_open).map(|_| 1).sum()
}

/// The object that a choice is about.
pub(super) fn key_of(world: &World, choice: Choice) -> Option<StoreKey> {
    let store = &world.store;
    match choice {
        Choice::Put(id, _) | Choice::Get(id, _) => {
            store.place_of(id).map(|place| store.moves[place].key)
        }
        Choice::Check(id, _) => store.checks.iter().find(|it| it.id == id).map(|it| it.key),
        Choice::Object(generation, object, ObjectChange::Vanish | ObjectChange::Return)
        | Choice::Object(
            generation,
            object,
            ObjectChange::Damage | ObjectChange::LandDelete | ObjectChange::Sweep,
        ) => world.key_at((generation, object)),
        Choice::Delete(number, _) => {
            let work = store.work.iter().find(|work| work.number == number)?;
            let object = work.objects.get(work.outcomes.len())?;
            Some(StoreKey::Private(work.checkpoint, *object))
        }
        _ => None,
    }
}

/// True when there is something for a choice to change.
pub(super) fn is_ripe(world: &World, choice: Choice, compacted: u64) -> bool {
    let is_there = || key_of(world, choice).is_some_and(|it| world.store.objects.contains_key(&it));
    let it = &world.coordinator;
    match choice {
        Choice::Message(about, Passage::Resend) => !world.answers.has(about),
        Choice::Coordinator(Coordinate::Restart) => it.disk.catalog.gauges().checkpoints > 0,
        Choice::Coordinator(Coordinate::Compact) => it.disk.position > compacted,
        Choice::Coordinator(Coordinate::Crash(_)) => {
            it.engine.as_ref().is_some_and(|engine| !engine.is_idle())
        }
        Choice::Die(process) => {
            let process = &world.processes[usize::from(process)];
            !process.jobs.is_empty() || !process.asked.is_empty()
        }
        Choice::Host(id, HostCall::Cancel) => {
            let mut asked = world.processes[usize::from(id.process)].asked.iter();
            let holds = job(world, id).is_some_and(|job| job.pin().is_some());
            holds || asked.any(|asked| asked.job == Some(id))
        }
        Choice::Put(id, _) => job(world, parts_of(id).0).is_some(),
        Choice::Get(id, end) => {
            let lives = job(world, parts_of(id).0).is_some();
            lives && (end == GetEnd::AnsweredUnretired || is_there())
        }
        Choice::Delete(_, DeleteEnd::Probed) => !is_there(),
        Choice::Delete(..)
        | Choice::Object(_, _, ObjectChange::LandDelete | ObjectChange::Sweep) => is_there(),
        Choice::RestartStore => world.store.moves.iter().any(|it| !it.answered || it.exposed),
        _ => false,
    }
}
