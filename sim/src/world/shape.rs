//! The shape of a World: what it has of everything and how far each is, without the numbers that
//! only grow.
//!
//! Two Worlds of the same shape are alike, not equal: generations, incarnations, sequences and
//! tickets are left out, and what is there many times is counted up to a few. It decides nothing.

use core::mem::discriminant;

use super::World;
use super::job::{Doing, Job};
use super::network::{Asks, Says};
use super::process::Process;
use crate::digest::Digest;
use crate::store::StoreKey;

/// More than so many are alike.
const MANY: u64 = 4;

/// A number of things, as far as it matters.
fn few(count: u64) -> u64 {
    count.min(MANY)
}

impl World {
    /// Takes the shape of this World in.
    pub fn shape(&self, digest: &mut Digest) {
        self.shape_coordinator(digest);
        for process in &self.processes {
            shape_process(process, digest);
        }
        for it in &self.requests.sent {
            digest.take(&(it.about.process(), it.copies.min(2)));
            match &it.content {
                Asks::Register(_) => digest.take(&0_u8),
                Asks::Command(_, command) => digest.take(&discriminant(command)),
                Asks::List(_) => digest.take(&1_u8),
            }
        }
        for it in &self.answers.sent {
            digest.take(&(it.about.process(), it.copies.min(2)));
            match &it.content {
                Says::One(answer) => digest.take(&answer.is_ok()),
                Says::Each(answers) => digest.take(&answers.each_ref().map(Option::is_some)),
                Says::Poisoned => {}
            }
        }
        self.shape_store(digest);
    }

    fn shape_coordinator(&self, digest: &mut Digest) {
        let it = &self.coordinator;
        let up = it.engine.as_ref();
        digest.take(&up.map(|engine| (engine.is_poisoned(), engine.is_idle())));
        digest.take(&it.batch.is_some());
        let catalog = &it.disk.catalog;
        digest.take(&catalog.next_follow_up().as_ref().map(discriminant));
        for id in catalog.checkpoints() {
            if let Some(facts) = catalog.checkpoint(id) {
                digest.take(&(facts.state, facts.lost, facts.unknown > 0));
            }
        }
        for pin in catalog.pins() {
            digest.take(&(pin.save, pin.in_doubt));
        }
        for conversation in catalog.conversations() {
            let expired = few(conversation.expired_turns.into()) > 0;
            digest.take(&(few(conversation.turns.into()), expired, conversation.forgotten));
        }
    }

    fn shape_store(&self, digest: &mut Digest) {
        let store = &self.store;
        let mut last = None;
        let mut each = 0_u64;
        for key in store.objects.keys().chain(store.vanished.keys()) {
            if let StoreKey::Private(checkpoint, _) = key {
                if last.is_some_and(|it| it != *checkpoint) {
                    digest.take(&few(each));
                    each = 0;
                }
                last = Some(*checkpoint);
                each += 1;
            }
        }
        digest.take(&(few(each), few(store.vanished.len() as u64)));
        for it in &store.moves {
            digest.take(&(it.job.process, it.way, it.answered, it.exposed, it.lands));
        }
        for work in &store.work {
            digest.take(&(few(work.objects.len() as u64), few(work.outcomes.len() as u64)));
        }
        let counts = [store.checks.len(), store.late_deletes.len(), store.strays.len()];
        digest.take(&counts.map(|count| few(count as u64)));
    }
}

fn shape_process(process: &Process, digest: &mut Digest) {
    digest.take(&(process.incarnation.is_some(), process.refused));
    for asked in &process.asked {
        digest.take(&discriminant(&asked.command));
    }
    digest.take(&few(process.queued.len() as u64));
    for job in &process.jobs {
        shape_job(job, digest);
    }
}

fn shape_job(job: &Job, digest: &mut Digest) {
    let shards = match job.doing {
        Doing::Saves { shards, geometry, .. } => {
            digest.take(&(true, shards, geometry));
            shards
        }
        Doing::Loads => 1,
    };
    digest.take(&(discriminant(&job.stands), job.agreed.is_some(), few(job.pins.len() as u64)));
    for shard in super::job::shards_of(shards) {
        digest.take(&job.transfer.evidence(shard));
    }
    digest.take(&few(job.transfer.in_flight().into()));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::world::choice::{About, Choice, Coordinate, Passage};
    use crate::world::setup::Setup;

    fn shape(world: &World) -> u64 {
        let mut digest = Digest::default();
        world.shape(&mut digest);
        digest.value()
    }

    /// What only grows doesn't show: how often something was sent, or synced, or lived through.
    /// What is under way does.
    #[test]
    fn only_what_grows_is_left_out() {
        let mut world = World::new(Arc::new(Setup::default())).unwrap();
        let mut step = |choice| {
            assert!(world.step(choice, &mut Vec::new()).unwrap(), "{choice:?}");
            shape(&world)
        };
        let about = About::Register { process: 0, life: 1 };
        let sent = step(Choice::Register(0));
        let lost = step(Choice::Message(about, Passage::Lose));
        assert_ne!(sent, lost);
        assert_eq!(step(Choice::Register(0)), sent);
        let decided = step(Choice::Message(about, Passage::Deliver));
        assert!(![sent, lost].contains(&decided));
        let synced = step(Choice::Coordinator(Coordinate::Sync));
        let heard = step(Choice::Message(about, Passage::Answer));
        assert!(![sent, lost, decided, synced].contains(&heard));
        // A second life comes to the same point, once it was told which incarnation it follows.
        step(Choice::Die(0));
        let about = About::Register { process: 0, life: 2 };
        for choice in [
            Choice::Register(0),
            Choice::Message(about, Passage::Deliver),
            Choice::Message(about, Passage::Answer),
        ] {
            step(choice);
        }
        step(Choice::Register(0));
        assert_eq!(step(Choice::Message(about, Passage::Deliver)), decided);
        assert_eq!(step(Choice::Coordinator(Coordinate::Sync)), synced);
        assert_eq!(step(Choice::Message(about, Passage::Answer)), heard);
    }
}
