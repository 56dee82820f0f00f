//! Transfers under random orders and faults, judged by what the store and the memory hold.

use super::*;
use crate::transfer::objects::Objects;
use proptest::prelude::*;

/// A move or check that began.
#[derive(Clone, Debug)]
struct Work {
    step: Step,
    answered: bool,
    retired: bool,
    /// The host said that it never began.
    unbegun: bool,
}

/// A worker with one transfer, and what really happens to its memory.
struct Actor {
    owner: u128,
    manifest: Arc<Manifest>,
    shards: Vec<ShardIndex>,
    transfer: Transfer,
    work: Vec<Work>,
    /// One, or a list of them.
    commands: Vec<Command>,
    told: Option<Step>,
    answers: Vec<(OpId, Answer)>,
    confirmed: BTreeSet<ObjectName>,
    verified: BTreeSet<ObjectName>,
    cancelled: bool,
    adopted: bool,
}

struct World {
    rig: Rig,
    actors: Vec<Actor>,
    fenced: BTreeSet<u128>,
    /// Whoever asks sends lists.
    lists: bool,
}

impl Actor {
    fn new(owner: u128, manifest: &Arc<Manifest>, shards: &[u16], transfer: Transfer) -> Self {
        Self {
            owner,
            manifest: Arc::clone(manifest),
            shards: shards.iter().map(|shard| ShardIndex(*shard)).collect(),
            transfer,
            work: vec![],
            commands: vec![],
            told: None,
            answers: vec![],
            confirmed: BTreeSet::new(),
            verified: BTreeSet::new(),
            cancelled: false,
            adopted: false,
        }
    }

    fn is_save(&self) -> bool {
        matches!(self.transfer.0, Flow::Save(_))
    }

    /// What a shard stores, with sizes.
    fn stored(&self, shard: ShardIndex) -> Vec<(ObjectName, u64)> {
        let private = self.manifest.private_objects(shard);
        let private = private.map(|it| (ObjectName::Private(it.id), it.stored_bytes()));
        let shared = self.manifest.shared_objects().filter(|it| it.stored_by == shard);
        let shared = shared.map(|it| (ObjectName::Shared(it.name), it.payload_bytes));
        private.chain(shared).collect()
    }

    fn is_of(&self, object: ObjectName, shard: Option<ShardIndex>) -> bool {
        shard.is_none_or(|shard| self.stored(shard).iter().any(|(name, _)| *name == object))
    }

    fn moves(&self, shard: Option<ShardIndex>) -> impl Iterator<Item = &Work> {
        let is_move = |work: &&Work| !matches!(work.step, Step::Check { .. });
        let moves = self.work.iter().filter(is_move);
        moves.filter(move |work| self.is_of(object_of(&work.step), shard))
    }

    fn check_counts(&self) {
        match &self.transfer.0 {
            Flow::Save(save) => assert!(save.objects().is_consistent()),
            Flow::Load(load) => assert!(load.objects().is_none_or(Objects::is_consistent)),
        }
        let exposed = self.moves(None).any(|work| !work.retired);
        assert!(!(self.transfer.is_done() && exposed), "ended while memory is touched");
        assert!(!(self.transfer.may_reuse_destination() && (exposed || self.adopted)));
        for shard in &self.shards {
            let touched = self.moves(Some(*shard)).any(|work| !work.retired);
            assert!(!(touched && self.transfer.may_reuse_source(*shard)), "I16");
        }
    }
}

impl World {
    /// Judges a command by what really happened.
    fn judge_command(&self, actor: &Actor, command: &Command) {
        let Command::Settle { shard, evidence, .. } = command else { return };
        let only = if actor.is_save() { *shard } else { None };
        let exposed = actor.moves(only).any(|work| !work.retired);
        let began = actor.moves(only).any(|work| !work.unbegun);
        assert!(!(exposed && evidence.is_final()), "I16: {command:?}");
        match evidence {
            Evidence::QuiescedSuccess if actor.is_save() => {
                for (object, bytes) in actor.stored(shard.unwrap()) {
                    let place = Rig::place(&actor.transfer, object);
                    assert_eq!(self.rig.store.get(&place), Some(&bytes), "I4: {object}");
                }
            }
            Evidence::QuiescedSuccess => assert!(actor.adopted),
            Evidence::NotExposed => {
                // A load settles the pins that it did not choose while it moves the chosen one.
                assert!(!began || !actor.is_save(), "{command:?}");
            }
            Evidence::InDoubt => assert!(exposed),
            Evidence::QuiescedFailure | Evidence::Active | Evidence::Quiescing => {}
        }
        assert!(!matches!(evidence, Evidence::Active | Evidence::Quiescing));
    }

    fn take_step(&mut self, index: usize) -> bool {
        let done = self.actors[index].transfer.is_done();
        let Some(step) = self.actors[index].transfer.next_step() else { return false };
        assert!(!done, "a step after the end: {step:?}");
        let actor = &self.actors[index];
        match &step {
            Step::Ask(command) => {
                assert!(actor.commands.is_empty(), "two commands at once");
                let mut commands = vec![command.clone()];
                if self.lists {
                    let transfer = &mut self.actors[index].transfer;
                    commands.extend(core::iter::from_fn(|| transfer.next_in_list()));
                }
                for command in &commands {
                    self.judge_command(&self.actors[index], command);
                }
                self.actors[index].commands = commands;
            }
            Step::Put { object, .. } => {
                if let ObjectName::Private(ObjectId { shard, index: 0 }) = *object {
                    let all = actor.stored(shard);
                    let others = all.iter().filter(|(name, _)| name != object);
                    let mut confirmed = others.map(|(name, _)| actor.confirmed.contains(name));
                    assert!(confirmed.all(|yes| yes), "index 0 is not the last put");
                }
                if let (Some(checkpoint), _) = Rig::place(&actor.transfer, *object) {
                    assert!(self.rig.put.insert((checkpoint, *object)), "I17: put twice");
                }
                self.begin(index, step);
            }
            Step::Check { .. } | Step::Get { .. } => self.begin(index, step),
            Step::Adopt { .. } => {
                for shard in &actor.shards {
                    for (object, _) in actor.stored(*shard) {
                        let is_manifest =
                            matches!(object, ObjectName::Private(ObjectId { index: 0, .. }));
                        assert!(is_manifest || actor.verified.contains(&object), "I15: {object}");
                    }
                }
                assert!(actor.moves(None).all(|work| work.retired && work.answered), "I15");
                self.actors[index].adopted = true;
            }
            Step::Agree { .. } | Step::Wait | Step::Choose => self.actors[index].told = Some(step),
            Step::Describe { .. } | Step::ReadManifest { .. } => panic!("{step:?}"),
        }
        true
    }

    fn begin(&mut self, index: usize, step: Step) {
        let retired = matches!(step, Step::Check { .. });
        let work = Work { step, answered: false, retired, unbegun: false };
        self.actors[index].work.push(work);
    }

    /// Answers a piece of work; `how` 0 is the truth of a healthy store.
    fn complete(&mut self, index: usize, which: usize, how: usize, retired: bool) {
        let actor = &mut self.actors[index];
        let Some(work) = actor.work.get_mut(which).filter(|work| !work.answered) else { return };
        let object = object_of(&work.step);
        let place = Rig::place(&actor.transfer, object);
        let found = self.rig.store.get(&place).copied();
        work.answered = true;
        let completion = match work.step {
            Step::Put { bytes, .. } => {
                let (answer, stored) = match how {
                    0 => (PutAnswer::Stored, Some(bytes)),
                    1 => (PutAnswer::Failed, Some(bytes)),
                    2 => (PutAnswer::Failed, None),
                    3 => (PutAnswer::Stored, Some(bytes / 2)),
                    4 => (PutAnswer::Stored, None),
                    _ => (PutAnswer::NotStarted, None),
                };
                if let Some(bytes) = stored {
                    self.rig.store.insert(place, bytes);
                }
                if answer == PutAnswer::NotStarted && !work.retired {
                    (work.unbegun, work.retired) = (true, true);
                }
                work.retired |= retired;
                Completion::Put { answer, retired }
            }
            Step::Check { bytes, .. } => {
                let answer = match (found, how) {
                    (_, 1) => CheckAnswer::Unknown,
                    (None, _) => CheckAnswer::Absent,
                    (Some(bytes), _) => CheckAnswer::Present { bytes },
                };
                if answer == (CheckAnswer::Present { bytes }) {
                    actor.confirmed.insert(object);
                }
                Completion::Checked(answer)
            }
            Step::Get { bytes, .. } => {
                let answer = match (found, how) {
                    (_, 1 | 2) => GetAnswer::Failed,
                    (None, _) => GetAnswer::Absent,
                    (Some(found), _) if found != bytes => GetAnswer::WrongBytes,
                    (Some(_), _) => {
                        actor.verified.insert(object);
                        let Completion::Got { answer, .. } = arrived(object, bytes) else {
                            panic!()
                        };
                        answer
                    }
                };
                work.retired |= retired;
                Completion::Got { answer, retired }
            }
            _ => panic!(),
        };
        actor.transfer.completed(object, completion);
        actor.check_counts();
    }

    fn retire(&mut self, index: usize, which: usize) {
        let actor = &mut self.actors[index];
        let Some(work) = actor.work.get_mut(which) else { return };
        if !matches!(work.step, Step::Check { .. }) {
            work.retired = true;
            let object = object_of(&work.step);
            actor.transfer.completed(object, Completion::Retired);
        }
        actor.check_counts();
    }

    fn answer(&mut self, index: usize, most: usize) {
        let actor = &mut self.actors[index];
        let commands = core::mem::take(&mut actor.commands);
        // The window of the one who sends may be too small for the whole list.
        let sent = commands.len() - usize::from(commands.len() > 1 && most == 0);
        (sent..commands.len()).for_each(|_| actor.transfer.take_back_last());
        for command in commands.into_iter().take(sent) {
            let (op, answer) = self.rig.ask(actor.owner, command);
            actor.transfer.answered(op, answer);
            actor.answers.push((op, answer));
            actor.check_counts();
            if answer.is_err() {
                break;
            }
        }
    }

    /// Repeats an old answer and an old completion: nothing may change.
    fn repeat(&mut self, index: usize, which: usize) {
        let actor = &mut self.actors[index];
        let before = actor.transfer.clone();
        if let Some((op, answer)) = actor.answers.get(which % actor.answers.len().max(1)) {
            actor.transfer.answered(*op, *answer);
        }
        let old = actor.work.iter().filter(|work| work.answered).nth(which);
        if let Some(Work { step, .. }) = old {
            let object = object_of(step);
            match step {
                Step::Check { .. } => actor.transfer.completed(object, present(0)),
                Step::Put { .. } => actor.transfer.completed(object, put_failed(false)),
                _ => {
                    let answer = GetAnswer::Absent;
                    let again = Completion::Got { answer, retired: false };
                    actor.transfer.completed(object, again);
                }
            }
        }
        assert_eq!(actor.transfer, before);
    }

    /// The other ranks' part: agreeing, choosing, waiting.
    fn answer_told(&mut self, index: usize, how: usize) {
        let peer = index ^ 1;
        let Some(told) = self.actors[index].told.clone() else { return };
        let is_save = self.actors[index].is_save();
        let (peer_ended, peer_saved) = self.actors.get(peer).map_or((true, true), |peer| {
            let report = peer.transfer.report();
            (report.is_some(), matches!(report, None | Some(Ended::Saved { .. })))
        });
        match told {
            Step::Agree { checkpoint } if is_save && self.actors[index].shards.len() == 1 => {
                let stands = self.actors[peer].told == Some(Step::Agree { checkpoint });
                if stands {
                    self.actors[peer].transfer.agreed(true);
                    self.actors[peer].told = None;
                    self.actors[index].transfer.agreed(true);
                } else if peer_ended || self.actors[peer].told.is_some() {
                    self.actors[index].transfer.agreed(false);
                } else {
                    return;
                }
            }
            Step::Agree { .. } => self.actors[index].transfer.agreed(how != 1),
            Step::Choose => {
                let transfer = &mut self.actors[index].transfer;
                let chosen =
                    if how == 1 { transfer.choose(None) } else { transfer.choose_longest() };
                assert!(chosen || self.actors[index].cancelled);
            }
            Step::Wait if !peer_saved => self.actors[index].transfer.cancel(),
            Step::Wait => self.actors[index].transfer.proceed(),
            _ => panic!(),
        }
        self.actors[index].told = None;
        self.actors[index].check_counts();
    }

    fn act(&mut self, word: u32) {
        let index = word as usize % self.actors.len();
        let (action, detail) = (word / 8 % 32, (word / 256) as usize);
        let how = detail / 64 % 8;
        let actor = &self.actors[index];
        let open: Vec<_> = (0..actor.work.len()).filter(|it| !actor.work[*it].answered).collect();
        let which = open.get(detail % open.len().max(1)).copied();
        match action {
            0..10 => drop(self.take_step(index)),
            10..17 => self.complete(index, which.unwrap_or(999), 0, how > 0),
            17 => self.complete(index, which.unwrap_or(999), how, detail.is_multiple_of(2)),
            18..21 => self.retire(index, detail % actor.work.len().max(1)),
            21..26 => self.answer(index, how),
            26 | 27 => self.repeat(index, detail),
            28 | 29 => self.answer_told(index, how),
            30 if how == 0 => {
                self.actors[index].transfer.cancel();
                self.actors[index].cancelled = true;
            }
            30 if how == 1 => self.actors[index].transfer.published_elsewhere(),
            31 if how == 0 && detail.is_multiple_of(3) => {
                let (owner, fenced) = (actor.owner, self.rig.owners[&actor.owner].0);
                self.fenced.insert(owner);
                let owner = OwnerId::from_u128(owner);
                let _ = self.rig.ask(OPERATOR, Command::Fence { owner, incarnation: fenced });
            }
            31 if how == 1 && !self.actors[0].shards.is_empty() && detail % 3 == 1 => {
                self.lose(detail);
            }
            _ => {}
        }
        for actor in &self.actors {
            actor.check_counts();
        }
    }

    /// The store forgets something that nobody is saving any more.
    fn lose(&mut self, detail: usize) {
        if self.actors.iter().any(|actor| actor.is_save() && !actor.transfer.is_done()) {
            return;
        }
        let places: Vec<_> = self.rig.store.keys().copied().collect();
        if let Some(place) = places.get(detail % places.len().max(1)) {
            self.rig.store.remove(place);
        }
    }

    /// Delivers everything: every transfer ends, and nothing stays pinned.
    fn deliver(&mut self) {
        let mut rounds = 0;
        while rounds < 400 && self.actors.iter().any(|actor| !actor.transfer.is_done()) {
            rounds += 1;
            for index in 0..self.actors.len() {
                while self.take_step(index) {}
                for which in 0..self.actors[index].work.len() {
                    self.complete(index, which, 0, true);
                    self.retire(index, which);
                }
                self.answer(index, 1);
                self.answer_told(index, 0);
            }
        }
        for actor in &mut self.actors {
            assert!(actor.transfer.is_done(), "{:?}", actor.transfer);
            assert_eq!(actor.transfer.next_step(), None);
            let restored = matches!(actor.transfer.report(), Some(Ended::Restored { .. }));
            assert_eq!(restored, actor.adopted);
            for shard in &actor.shards {
                let evidence = actor.transfer.evidence(*shard).unwrap();
                assert!(evidence.is_final(), "{evidence:?}");
            }
        }
        while self.rig.engine.follow_up() {}
        assert_eq!(self.rig.pins(), 0);
    }
}

fn run(first: &[u32], second: &[u32], has_peers: bool) -> [Option<Ended>; 4] {
    let manifest = pair();
    let rig = Rig::new();
    let one = |shard: u16| {
        let mut rank = request(&manifest, 1);
        rank.shards = vec![ShardIndex(shard)];
        rank.has_peers = true;
        if shard == 1 {
            rank.publication = Publication::Elsewhere;
        }
        Actor::new(1 + u128::from(shard), &manifest, &[shard], Transfer::save(rank).unwrap())
    };
    let (actors, fenced) = (vec![one(0), one(1)], BTreeSet::new());
    let mut world = World { rig, actors, fenced, lists: first.len() % 2 == 1 };
    for word in first {
        world.act(*word);
    }
    world.deliver();
    let saves = [0, 1].map(|index| world.actors[index].transfer.report());
    for owner in core::mem::take(&mut world.fenced) {
        world.rig.register(owner, Role::Worker);
    }
    let load = Transfer::load(LoadRequest { has_peers, ..wanted(&[&manifest]) }).unwrap();
    let again = Transfer::save(request(&manifest, 2)).unwrap();
    world.actors =
        vec![Actor::new(3, &manifest, &[0, 1], load), Actor::new(1, &manifest, &[0, 1], again)];
    for word in second {
        world.act(*word);
    }
    world.deliver();
    let rest = [0, 1].map(|index| world.actors[index].transfer.report());
    [saves[0], saves[1], rest[0], rest[1]]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// I4, I15, I16, I17: under any order, doubling, fault, cancel and fence.
    #[test]
    fn any_order_keeps_the_promises(
        first in proptest::collection::vec(any::<u32>(), 0..400),
        second in proptest::collection::vec(any::<u32>(), 0..400),
        has_peers: bool,
    ) {
        run(&first, &second, has_peers);
    }
}

/// The random runs reach every kind of end.
#[test]
fn random_runs_reach_good_and_bad_ends() {
    let mut seen = BTreeMap::new();
    let mut state = 1_u32;
    for _ in 0..300 {
        let mut words = |count: usize| -> Vec<u32> {
            let mut word = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 4) ^ (state << 9)
            };
            (0..count).map(|_| word()).collect()
        };
        let (first, second) = (words(150 + seen.len() % 2), words(90));
        for ended in run(&first, &second, state & (1 << 20) > 0).into_iter().flatten() {
            let text = alloc::format!("{ended:?}");
            let name: alloc::string::String = text.chars().take_while(|it| *it != ' ').collect();
            *seen.entry(name).or_insert(0_u32) += 1;
        }
    }
    let wanted = ["Saved", "Failed", "Cancelled", "Restored", "AlreadyPublished", "Barred"];
    for name in wanted {
        assert!(seen.contains_key(name), "{name} not in {seen:?}");
    }
}
