//! A worker that saves, loads and lets go over whatever network there is, with the real client, a
//! real store, and a list of all that it was told.
//!
//! It never gives up: when its client does, it goes on through another one and sends again what has
//! no answer, under the operation that it has. What it holds by a pin it looks at in the store.

use std::thread;
use std::time::Duration;

use pinfold_core::catalog::{Command, Prepare, Role, Shape, ShardShape};
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Key, ManifestDigest, ObjectId, OpId,
    PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{Evidence, Outcome, Rejection, TurnKey};
use pinfold_core::policy::Genesis;
use pinfold_host::file_store::FileStore;
use pinfold_host::owner::{Answer, Owner, OwnerError};
use pinfold_host::store::{GetOutcome, ObjectStore, PutOutcome};
use pinfold_http::client::{Client, ClientOptions};

/// Conversations that all workers share, and the positions of each.
const CONVERSATIONS: u64 = 3;
const POSITIONS: u64 = 12;
/// Objects of a checkpoint, and bytes of each.
const OBJECTS: u32 = 2;
const OBJECT_BYTES: usize = 200;
/// How often something is tried again that the network, or a kill, comes between.
const TRIES: u32 = 400;

/// What a worker was told.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) op: OpId,
    pub(crate) command: Command,
    pub(crate) answer: Answer,
}

/// Numbers that follow from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// Where a worker works.
#[derive(Clone)]
pub(crate) struct Place<'a> {
    /// A coordinator, or something in front of one.
    pub(crate) url: String,
    pub(crate) options: ClientOptions,
    pub(crate) store: &'a FileStore,
    pub(crate) job: Genesis,
}

impl Place<'_> {
    /// A client, however long it takes.
    pub(crate) fn client(&self) -> Client {
        self.again("a coordinator", || Client::connect(&self.url, self.options.clone()).ok())
    }

    /// A registered owner; asked again, it is the same one.
    pub(crate) fn owner(&self, name: &str, role: Role, start: StartId) -> Owner {
        let register = || match Owner::register(self.client(), name, role, start) {
            Ok(owner) => Some(owner),
            Err(OwnerError::Gone(_)) => None,
            Err(other) => panic!("{name}: {other}"),
        };
        self.again("to be registered", register)
    }

    fn again<T>(&self, what: &str, mut tries: impl FnMut() -> Option<T>) -> T {
        for _ in 0..TRIES {
            if let Some(done) = tries() {
                return done;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("{} never came to {what}", self.url);
    }

    /// The keys of a checkpoint's objects, with the bytes that belong there.
    pub(crate) fn objects(&self, checkpoint: CheckpointId) -> Vec<(String, Vec<u8>)> {
        let Genesis { namespace, epoch, .. } = &self.job;
        let object = |index| {
            let object = ObjectId { shard: ShardIndex(0), index };
            let (namespace, epoch) = (namespace.clone(), *epoch);
            let key = Key { namespace, epoch, checkpoint, object }.to_string();
            let mut body = key.clone().into_bytes();
            body.resize(OBJECT_BYTES, b'.');
            (key, body)
        };
        (0..OBJECTS).map(object).collect()
    }

    /// Every object of a checkpoint is there, as it was saved.
    pub(crate) fn holds(&self, checkpoint: CheckpointId) -> Result<(), String> {
        for (key, body) in self.objects(checkpoint) {
            let mut read = vec![0; body.len()];
            match self.store.get(&key, &mut read) {
                GetOutcome::Read if read == body => {}
                other => return Err(format!("{checkpoint}: {key} is held, and {other:?}")),
            }
        }
        Ok(())
    }
}

/// See the [module](self).
pub(crate) struct Worker<'a> {
    place: Place<'a>,
    owner: Owner,
    /// Its identities differ from those of every other worker.
    number: u64,
    draws: Draws,
    /// How many commands it has numbered.
    sequence: u64,
    tell: Box<dyn FnMut(Heard) + 'a>,
}

impl<'a> Worker<'a> {
    /// A worker of this number, which tells all that it is told.
    pub(crate) fn start(
        place: Place<'a>,
        number: u64,
        seed: u64,
        tell: impl FnMut(Heard) + 'a,
    ) -> Self {
        let mut draws = Draws::new(seed ^ number << 32);
        let start = StartId::from_u128(u128::from(draws.next()) << 64 | u128::from(draws.next()));
        let owner = place.owner(&format!("worker {number}"), Role::Worker, start);
        Self { place, owner, number, draws, sequence: 0, tell: Box::new(tell) }
    }

    /// Does one thing, from its beginning to its end.
    pub(crate) fn step(&mut self) {
        match self.draws.below(10) {
            0..=5 => self.save(true),
            6 => self.save(false),
            _ => self.load(),
        }
    }

    /// Saves a position that others may be saving too, or fails to.
    fn save(&mut self, succeeds: bool) {
        let (conversation, position) =
            (self.draws.below(CONVERSATIONS), self.draws.below(POSITIONS));
        let turn = TurnKey {
            conversation: ConversationId::from_u128(1 + u128::from(conversation)),
            turn: TurnId::from_u128(self.mine()),
        };
        self.save_for(endpoint(conversation, position), turn, succeeds);
    }

    /// An identity of its own.
    fn mine(&mut self) -> u128 {
        u128::from(self.number + 1) << 96 | u128::from(self.draws.next())
    }

    /// Saves a position for a turn, or fails to; which checkpoint keeps it now, and whether that is
    /// this save's. None while somebody else saves it.
    pub(crate) fn save_for(
        &mut self,
        endpoint: EndpointId,
        turn: TurnKey,
        succeeds: bool,
    ) -> Option<(CheckpointId, bool)> {
        let publish = |pin| Command::Publish { pin, turn: Some(turn) };
        let settle = |pin, evidence| Command::Settle { pin, shard: None, evidence };
        let attempt = self.mine();
        match self.ask(prepare(endpoint, attempt)) {
            Ok(Outcome::Prepared { pin, checkpoint }) if succeeds => {
                self.put(checkpoint);
                let evidence = Evidence::QuiescedSuccess;
                let all = [settle(pin, evidence), publish(pin), Command::Release { pin }];
                self.ask_in_order(all.to_vec());
                Some((checkpoint, true))
            }
            Ok(Outcome::Prepared { pin, checkpoint }) => {
                let failed = settle(pin, Evidence::QuiescedFailure);
                self.ask_in_order(vec![failed, Command::Release { pin }]);
                Some((checkpoint, true))
            }
            Ok(Outcome::AlreadyPublished { pin, checkpoint }) => {
                self.ask_in_order(vec![publish(pin), settle(pin, Evidence::NotExposed)]);
                Some((checkpoint, false))
            }
            Err(Rejection::InFlight) => None,
            other => panic!("a save of {endpoint} is answered {other:?}"),
        }
    }

    /// Pins what there is of some positions, and looks whether it is there.
    fn load(&mut self) {
        let conversation = self.draws.below(CONVERSATIONS);
        let first = self.draws.below(POSITIONS);
        let candidates = (0..6).map(|at| endpoint(conversation, (first + at) % POSITIONS));
        let pin = Command::Pin { candidates: candidates.collect(), limit: 2 };
        let Ok((op, Outcome::Pinned(pinned))) = self.ask_numbered(pin) else {
            panic!("nothing is refused to who pins");
        };
        let mut settles = Vec::new();
        for (place, pinned) in (0..).zip(pinned.iter()) {
            self.place.holds(pinned.checkpoint).unwrap_or_else(|why| panic!("pinned: {why}"));
            let (pin, evidence) = (PinId { op, place }, Evidence::QuiescedSuccess);
            settles.push(Command::Settle { pin, shard: None, evidence });
        }
        self.ask_in_order(settles);
    }

    fn put(&self, checkpoint: CheckpointId) {
        for (key, body) in self.place.objects(checkpoint) {
            let stored = self.place.store.put(&key, &[&body]);
            assert_eq!(stored, PutOutcome::Stored, "{key}: a key is put once");
        }
    }

    fn ask(&mut self, command: Command) -> Answer {
        self.ask_numbered(command).map(|(_, outcome)| outcome)
    }

    fn ask_numbered(&mut self, command: Command) -> Result<(OpId, Outcome), Rejection> {
        let op = loop {
            match self.owner.begin(command.clone()) {
                Ok(op) => break op,
                Err(_) => self.reconnect(),
            }
        };
        self.sequence = op.sequence;
        Ok((op, self.send(op, command)?))
    }

    /// Sends a command until it is answered.
    fn send(&mut self, op: OpId, command: Command) -> Answer {
        loop {
            match self.owner.send(op) {
                Ok(answer) => {
                    (self.tell)(Heard { op, command, answer });
                    return answer;
                }
                Err(OwnerError::Gone(_)) => self.reconnect(),
                Err(other) => panic!("{op}: {other}"),
            }
        }
    }

    /// Asks several things, in one list or one after another: none of them may be refused.
    fn ask_in_order(&mut self, commands: Vec<Command>) {
        if self.draws.below(2) == 0 {
            for command in commands {
                self.ask(command).unwrap_or_else(|why| panic!("refused: {why}"));
            }
            return;
        }
        let (owner, incarnation) = self.owner.identity();
        let first = self.sequence + 1;
        let op = |number| OpId { owner, incarnation, sequence: first + number };
        let listed: Vec<_> = (0..).map(op).zip(commands.clone()).collect();
        let answers = loop {
            match self.owner.ask_all(commands.clone()) {
                Ok(answers) => break answers,
                Err(OwnerError::Gone(_)) => self.reconnect(),
                Err(other) => panic!("{other}"),
            }
            // It has its numbers by now, unless there was no client then.
            if !self.owner.unanswered().is_empty() {
                self.sequence += listed.len() as u64;
                for (op, command) in listed {
                    self.send(op, command).unwrap_or_else(|why| panic!("refused: {why}"));
                }
                return;
            }
        };
        self.sequence += listed.len() as u64;
        for ((op, command), answer) in listed.into_iter().zip(answers) {
            let answer = answer.unwrap_or_else(|| panic!("{op} was not tried"));
            assert!(answer.is_ok(), "{op} {command:?}: {answer:?}");
            (self.tell)(Heard { op, command, answer });
        }
    }

    /// Goes on through another client, however long that takes.
    fn reconnect(&self) {
        let goes_on = || match self.owner.reconnect(self.place.client()) {
            Ok(()) => Some(()),
            Err(OwnerError::Gone(_)) => None,
            Err(other) => panic!("worker {}: {other}", self.number),
        };
        self.place.again("go on", goes_on);
    }
}

const fn shape() -> ShardShape {
    ShardShape { objects: OBJECTS, bytes: OBJECT_BYTES as u64 * OBJECTS as u64 }
}

fn endpoint(conversation: u64, position: u64) -> EndpointId {
    EndpointId::from_u128(u128::from(conversation + 1) << 64 | u128::from(position + 1))
}

fn prepare(endpoint: EndpointId, attempt: u128) -> Command {
    Command::Prepare(Prepare {
        attempt: AttemptId::from_u128(attempt),
        endpoint,
        digest: ManifestDigest::from_bytes([1; 32]),
        shape: Shape::new(&[shape()]).unwrap(),
        shards: vec![ShardIndex(0)],
    })
}
