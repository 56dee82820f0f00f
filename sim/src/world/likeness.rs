//! A World told as words, for its canonical form: whatever can make a difference to what follows.
//!
//! Every struct is taken apart by all of its fields, so that a new one has to be thought of here.
//! What only counts, and what nobody can mention any more, is left out.

use core::hash::{Hash, Hasher};

use pinfold_core::catalog::{Catalog, Command};
use pinfold_core::engine::Engine;
use pinfold_core::id::{Incarnation, Minted, OpId};

use super::choice::About;
use super::coordinator::Coordinator;
use super::job::{Doing, Job};
use super::network::{Asks, Lane, Says, Sent};
use super::process::{Asked, Process};
use super::{Waiting, World};
use crate::likeness::{Class, Counted, Words};
use crate::store::{Check, Move, Store, Work};

impl World {
    /// Says all of this World.
    pub fn say(&self, words: &mut Words<'_>) {
        let Self {
            setup: _,
            library: _,
            coordinator,
            processes,
            requests,
            arrived,
            answers,
            store,
            lives,
            waiting,
            tickets: _,
            attempts: _,
            started,
            works: _,
            ended: _,
        } = self;
        for (incarnation, (process, _)) in lives {
            words.owner(*incarnation, *process);
        }
        // Only where transfers are bounded does it matter how many there were.
        let left = if self.setup.starts == u32::MAX { 0 } else { *started };
        (left, arrived.len()).hash(words);
        words.set(processes.iter().zip(0..), |words, (process, index)| {
            self.say_process(index, process, words);
        });
        self.say_lanes(requests, answers, words);
        for (_, asks) in arrived {
            self.say_asks(asks, words);
        }
        say_store(store, words);
        for (ticket, waits) in waiting {
            ticket.hash(words);
            match waits {
                Waiting::Message(about) => self.say_about(*about, words),
                Waiting::Audit(keys) => keys.hash(words),
                Waiting::Nobody => words.write_u8(0),
            }
        }
        say_coordinator(coordinator, words);
        self.say_owners(words);
        words.set(lives.iter().filter(|it| self.matters(*it.0)), |words, (number, life)| {
            Incarnation(*number).hash(words);
            words.counted(Counted::Life, life.0, life.1.into());
        });
    }

    /// An incarnation of which something is left, or may still arrive.
    fn matters(&self, incarnation: u64) -> bool {
        let number = Incarnation(incarnation);
        let asks = |asks: &Asks| match asks {
            Asks::Register(register) => register.after == number,
            Asks::Command(op, _) => op.incarnation == number,
            Asks::List(commands) => commands.iter().any(|it| it.0.incarnation == number),
        };
        self.processes.iter().any(|it| it.incarnation == Some(number) || it.after == number)
            || self.requests.sent.iter().any(|it| asks(&it.content))
            || self.arrived.iter().any(|it| asks(&it.1))
            || self.store.moves.iter().any(|it| it.pin.op.incarnation == number)
            || self.catalogs().any(|it| it.has_life(number))
    }

    /// The catalog on disk and the live one, where it differs: at rest it may not (I11), which is
    /// judged.
    fn catalogs(&self) -> impl Iterator<Item = &Catalog> {
        let Coordinator { engine, disk, .. } = &*self.coordinator;
        let live = engine.as_ref().filter(|_| !self.coordinator.is_at_rest());
        core::iter::once(&disk.catalog).chain(live.map(Engine::catalog))
    }

    fn say_owners(&self, words: &mut Words<'_>) {
        for catalog in self.catalogs() {
            words.set(&self.processes, |words, process| {
                catalog.hash_owner(process.owner, |number| self.matters(number.0), words);
            });
        }
    }

    fn say_process(&self, index: u8, process: &Process, words: &mut Words<'_>) {
        let Process {
            owner: _,
            role: _,
            life,
            after,
            incarnation,
            refused,
            next,
            asked,
            queued,
            begun: _,
            jobs,
        } = process;
        words.name(Class::Owner, index);
        words.counted(Counted::Life, index, (*life).into());
        (refused, after, incarnation, asked.len(), queued.len()).hash(words);
        if incarnation.is_some() {
            words.write_u128(Minted::Sequence.word(*next));
        }
        for Asked { op, command, job } in asked {
            self.say_command(*op, command, words);
            say_job_id(job.map(|id| (id.process, id.number)), words);
        }
        for (command, job) in queued {
            command.hash(words);
            say_job_id(job.map(|id| (id.process, id.number)), words);
        }
        words.set(jobs, say_job);
    }

    /// A command that may arrive, and what it would be answered at once.
    fn say_command(&self, op: OpId, command: &Command, words: &mut Words<'_>) {
        (op, command).hash(words);
        for catalog in self.catalogs() {
            catalog.receipt(op, command).hash(words);
        }
    }

    fn say_asks(&self, asks: &Asks, words: &mut Words<'_>) {
        match asks {
            Asks::Register(register) => register.hash(words),
            Asks::Command(op, command) => self.say_command(*op, command, words),
            Asks::List(commands) => {
                for (op, command) in commands {
                    self.say_command(*op, command, words);
                }
            }
        }
    }

    fn say_lanes(&self, requests: &Lane<Asks>, answers: &Lane<Says>, words: &mut Words<'_>) {
        words.set(&requests.sent, |words, Sent { about, content, copies }| {
            (core::mem::discriminant(about), copies).hash(words);
            words.counted(Counted::Life, about.process(), about.life().into());
            self.say_asks(content, words);
        });
        words.set(&answers.sent, |words, Sent { about, content, copies }| {
            self.say_about(*about, words);
            (content, copies).hash(words);
        });
    }

    /// What an answer is about: its operation, in the incarnation that asked.
    fn say_about(&self, about: About, words: &mut Words<'_>) {
        words.name(Class::Owner, about.process());
        words.counted(Counted::Life, about.process(), about.life().into());
        let process = &self.processes[usize::from(about.process())];
        let of_it = process.incarnation.filter(|_| process.life == about.life());
        let mut sequence = |number: u64| {
            if let Some(incarnation) = of_it {
                incarnation.hash(words);
                words.write_u128(Minted::Sequence.word(number));
            }
        };
        match about {
            About::Register { .. } => {}
            About::Command { sequence: number, .. } => sequence(number),
            About::List { sequences, .. } => sequences.into_iter().for_each(sequence),
        }
    }
}

/// The state on disk, what is decided beyond it, and what is on its way.
fn say_coordinator(coordinator: &Coordinator, words: &mut Words<'_>) {
    let Coordinator { engine, batch, disk } = coordinator;
    disk.catalog.hash_rows(words);
    (engine.is_some(), coordinator.is_at_rest()).hash(words);
    if let Some(engine) = engine.as_ref().filter(|_| !coordinator.is_at_rest()) {
        engine.catalog().hash_rows(words);
        engine.hash_under_way(batch.as_ref(), words);
    }
}

fn say_job_id(id: Option<(u8, u16)>, words: &mut Words<'_>) {
    id.is_some().hash(words);
    if let Some((process, number)) = id {
        words.counted(Counted::Job, process, number.into());
    }
}

fn say_job(words: &mut Words<'_>, job: &Job) {
    let Job {
        id,
        transfer,
        doing,
        stands,
        waits,
        agreed,
        compares,
        told,
        pins,
        begun: _,
        memory,
        reused,
        destination_reused,
    } = job;
    say_job_id(Some((id.process, id.number)), words);
    transfer.hash(words);
    match *doing {
        Doing::Saves { attempt, shards, endpoint, geometry } => {
            words.counted(Counted::Attempt, 0, attempt.into());
            words.name(Class::Endpoint, endpoint);
            (shards, geometry).hash(words);
        }
        Doing::Loads => {}
    }
    (stands, waits, agreed, compares, told, pins).hash(words);
    (memory, reused, destination_reused).hash(words);
}

fn say_store(store: &Store, words: &mut Words<'_>) {
    let Store { objects, vanished, moves, checks, late_deletes, work, strays } = store;
    words.set(objects, |words, it| it.hash(words));
    words.set(vanished, |words, it| it.hash(words));
    words.set(moves, |words, it| {
        let Move { id: _, job, pin, way, object, key, bytes, answered, exposed, lands } = it;
        say_job_id(Some((job.process, job.number)), words);
        (pin, way, object, key, bytes, answered, exposed, lands).hash(words);
    });
    words.set(checks, |words, Check { id: _, job, object, key, bytes }| {
        say_job_id(Some((job.process, job.number)), words);
        (object, key, bytes).hash(words);
    });
    words.set(late_deletes, |words, it| it.hash(words));
    // Nobody asks who asked for delete work.
    words.set(work, |words, Work { number: _, by: _, checkpoint, objects, outcomes }| {
        (checkpoint, objects, outcomes).hash(words);
    });
    words.set(strays, |words, it| it.hash(words));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::likeness::{Class, Dictionary, Naming, Words, namings};
    use crate::world::World;
    use crate::world::choice::{
        About, Act, Choice, Coordinate, HostCall, JobId, Passage, Publishes,
    };
    use crate::world::setup::Setup;

    fn setup() -> Setup {
        Setup { remembered: 0, pages: false, ..Setup::default() }
    }

    fn world() -> World {
        let mut world = World::new(Arc::new(setup())).unwrap();
        for process in 0..3 {
            let about = About::Register { process, life: 1 };
            step(&mut world, Choice::Register(process));
            rest(&mut world, about);
        }
        world
    }

    fn step(world: &mut World, choice: Choice) {
        assert!(world.step(choice, &mut Vec::new()).unwrap(), "{choice:?}");
    }

    /// A message arrives, is decided and answered.
    fn rest(world: &mut World, about: About) {
        step(world, Choice::Message(about, Passage::Deliver));
        step(world, Choice::Coordinator(Coordinate::Sync));
        step(world, Choice::Message(about, Passage::Answer));
    }

    fn save(process: u8, attempt: u16, turn: u8) -> Choice {
        Choice::Save {
            process,
            endpoint: 0,
            geometry: 0,
            attempt,
            shards: 1,
            publishes: Publishes::Turn(0, turn),
            compares: true,
        }
    }

    fn digest(world: &World, namings: &[Naming], key: u64) -> u64 {
        let dictionary = Dictionary::new(&setup());
        let mut words = Words::new(&dictionary, 9);
        world.say(&mut words);
        words.digest(namings, key)
    }

    /// Which worker begins, and for which turn, makes no difference where they are interchangeable,
    /// and makes one where they are not.
    #[test]
    fn what_is_interchangeable_is_the_same() {
        let all = namings(&[(Class::Owner, 2), (Class::Turn, 4)]);
        let same = [Naming::same()];
        let begun = |process, turn| {
            let mut world = world();
            step(&mut world, save(process, 1, turn));
            world
        };
        let first = begun(0, 0);
        for (process, turn) in [(0, 1), (0, 3), (1, 0), (1, 2)] {
            let other = begun(process, turn);
            assert_eq!(digest(&first, &all, 0), digest(&other, &all, 0));
            assert_ne!(digest(&first, &same, 0), digest(&other, &same, 0));
            assert_ne!(digest(&first, &all, 0), digest(&first, &all, 1), "another key");
        }
        assert_ne!(digest(&world(), &all, 0), digest(&first, &all, 0));
    }

    /// A save that is given up and collected leaves nothing but larger numbers, which are renamed.
    #[test]
    fn what_only_grows_is_renamed() {
        let mut world = world();
        let before = digest(&world, &[Naming::same()], 0);
        let mut sequence = 0;
        for attempt in 1..4 {
            let job = JobId { process: 0, number: attempt };
            let mut next = |process: u8| {
                sequence += u64::from(process == 0);
                let sequence = if process == 0 { sequence } else { u64::from(attempt) * 2 - 1 };
                About::Command { process, life: 1, sequence }
            };
            step(&mut world, save(0, attempt, 0));
            assert_ne!(digest(&world, &[Naming::same()], 0), before);
            rest(&mut world, next(0));
            step(&mut world, Choice::Host(job, HostCall::Cancel));
            // The puts that began fail; then it settles and lets go.
            while let Some(it) = world.store.moves.first().copied() {
                step(&mut world, Choice::Put(it.id, crate::world::choice::PutEnd::NotStarted));
            }
            while !world.processes[0].jobs.is_empty() {
                rest(&mut world, next(0));
            }
            step(&mut world, Choice::Tell(2, Act::Collect(9)));
            let collect = next(2);
            rest(&mut world, collect);
            let work = world.store.work[0].clone();
            for _ in &work.objects {
                let end = crate::world::choice::DeleteEnd::Gone;
                step(&mut world, Choice::Delete(work.number, end));
            }
            step(&mut world, Choice::Tell(2, Act::Report(work.number)));
            let About::Command { sequence, .. } = collect else { unreachable!() };
            rest(&mut world, About::Command { process: 2, life: 1, sequence: sequence + 1 });
            assert_eq!(digest(&world, &[Naming::same()], 0), before, "{attempt}");
        }
    }
}
