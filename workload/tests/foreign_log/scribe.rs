//! A host that runs the real engine and writes down what it sees.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;

use pinfold_core::catalog::{
    Command, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape,
};
use pinfold_core::engine::{Config, Engine, Input, Output, Reply, Request, Ticket};
use pinfold_core::id::{
    AttemptId, CheckpointId, EndpointId, Epoch, Incarnation, Key, ManifestDigest, ObjectId, OpId,
    OwnerId, PinId, ShardIndex, StartId,
};
use pinfold_core::journal::record::scan;
use pinfold_core::outcome::{Evidence, Outcome, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::log::{Bytes, Event, Head, Held, LogWriter, PutResult, Way};

/// What is written, for somebody else to read.
#[derive(Clone, Default)]
struct Paper(Rc<RefCell<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) struct Scribe {
    pub(crate) job: Genesis,
    engine: Engine,
    log: LogWriter<Paper>,
    paper: Paper,
    /// The records that are durable.
    records: Vec<Vec<u8>>,
    next_move: u64,
    /// Effects that left.
    pub(crate) work: VecDeque<(CheckpointId, Vec<ObjectId>)>,
}

/// A registered owner.
pub(crate) struct Sender {
    owner: OwnerId,
    incarnation: Incarnation,
    sequence: u64,
}

impl Sender {
    pub(crate) fn op(&mut self) -> OpId {
        self.sequence += 1;
        self.last()
    }

    /// The operation that was sent last.
    pub(crate) fn last(&self) -> OpId {
        let Self { owner, incarnation, sequence } = *self;
        OpId { owner, incarnation, sequence }
    }
}

impl Scribe {
    /// A job that keeps so many turns.
    pub(crate) fn new(turns: u32) -> Self {
        let job = Genesis {
            namespace: "told".parse().unwrap(),
            epoch: Epoch::from_u128(0xE0),
            operator: OwnerId::of_name("operator"),
            policy: Policy { turns, ..Policy::default() },
            limits: Limits::default(),
        };
        let paper = Paper::default();
        let head = Head { moves: true, ..Head::new(job.clone()) };
        let mut scribe = Self {
            engine: Engine::create(Config::default(), job.clone()).unwrap(),
            job,
            log: LogWriter::new(paper.clone(), &head).unwrap(),
            paper,
            records: Vec::new(),
            next_move: 0,
            work: VecDeque::new(),
        };
        assert_eq!(scribe.sync(), None);
        scribe
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.paper.0.borrow().clone()).unwrap()
    }

    pub(crate) fn write(&mut self, event: Event) -> u64 {
        self.log.write(event).unwrap()
    }

    /// Takes an input, which is not durable yet.
    pub(crate) fn take(&mut self, epoch: Epoch, request: Request) -> u64 {
        let n = self.write(Event::taken(epoch, request.clone()));
        self.engine.submit(Input { ticket: Ticket(n), epoch, request });
        n
    }

    /// Makes everything durable and lets it out: the last answer.
    pub(crate) fn sync(&mut self) -> Option<Reply> {
        while let Some(batch) = self.engine.take_batch() {
            let first = u64::try_from(self.records.len()).unwrap();
            let frames = scan(&self.job.epoch, first, batch.bytes()).unwrap();
            for frame in frames.frames() {
                self.records.extend(frame.records().map(|(_, record)| record.to_vec()));
            }
            self.engine.commit(batch);
        }
        let mut last = None;
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Reply(Ticket(to), reply) => {
                    self.write(Event::Reply { to, answer: reply.clone().into() });
                    last = Some(reply);
                }
                Output::Effect(effect) => {
                    let event = Event::handed_out(effect);
                    if let Event::Work { checkpoint, objects, .. } = &event {
                        self.work.push_back((*checkpoint, objects.clone()));
                    }
                    self.write(event);
                }
            }
        }
        last
    }

    /// Does a follow-up without input; true when more wait.
    pub(crate) fn idle(&mut self) -> bool {
        self.write(Event::Idle);
        let more = self.engine.follow_up();
        self.sync();
        more
    }

    /// Ends the coordinator; what was not synced is lost.
    pub(crate) fn crash(&mut self) -> u64 {
        self.write(Event::Crash);
        let records = Some(u64::try_from(self.records.len()).unwrap());
        let recovered = self.write(Event::Recovered { records });
        let records = self.records.iter().map(Vec::as_slice);
        self.engine = Engine::recover(Config::default(), records).unwrap();
        self.sync();
        recovered
    }

    pub(crate) fn request(&mut self, request: Request) -> (u64, Reply) {
        let n = self.take(self.job.epoch, request);
        (n, self.sync().unwrap())
    }

    pub(crate) fn register(&mut self, name: &str, role: Role) -> Sender {
        let owner = OwnerId::of_name(name);
        let register = Register {
            owner,
            role,
            after: Incarnation(0),
            start: StartId::of_name(name),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        match self.request(Request::Register(register)).1 {
            Reply::Command(Ok(Outcome::Registered { incarnation })) => {
                Sender { owner, incarnation, sequence: 0 }
            }
            reply => panic!("{reply:?}"),
        }
    }

    /// Sends a command; its line and its outcome.
    pub(crate) fn ask(&mut self, sender: &mut Sender, command: Command) -> (u64, Outcome) {
        match self.request(Request::Command(sender.op(), command)) {
            (n, Reply::Command(Ok(outcome))) => (n, outcome),
            (n, reply) => panic!("line {n}: {reply:?}"),
        }
    }

    /// Sends a command, whatever it is answered.
    pub(crate) fn request_any(&mut self, sender: &mut Sender, command: Command) {
        self.request(Request::Command(sender.op(), command));
    }

    /// Sends a command that is refused; its line.
    pub(crate) fn refused(&mut self, sender: &mut Sender, command: Command) -> u64 {
        let (n, reply) = self.request(Request::Command(sender.op(), command));
        assert!(matches!(reply, Reply::Command(Err(_))), "line {n}: {reply:?}");
        n
    }

    pub(crate) fn key(&self, checkpoint: CheckpointId, object: ObjectId) -> String {
        let (namespace, epoch) = (self.job.namespace.clone(), self.job.epoch);
        Key { namespace, epoch, checkpoint, object }.to_string()
    }

    /// Moves one object; the line at which it begins.
    pub(crate) fn carry(&mut self, way: Way, key: &str, pin: PinId) -> u64 {
        let number = self.next_move;
        self.next_move += 1;
        let began = Event::Began { number, way, key: key.to_string(), pin: Some(pin) };
        let n = self.write(began);
        if way == Way::Put {
            self.write(Event::Put { number, outcome: PutResult::Stored });
            self.write(Event::Confirmed { pin, key: key.to_string() });
        }
        self.write(Event::Retired { number });
        n
    }

    pub(crate) fn prepare(&mut self, sender: &mut Sender, number: u8) -> (PinId, CheckpointId) {
        match self.ask(sender, Command::Prepare(prepare(number))).1 {
            Outcome::Prepared { pin, checkpoint } => (pin, checkpoint),
            outcome => panic!("{outcome:?}"),
        }
    }

    /// Puts and confirms what was prepared, and settles it: the lines of the put of the object at
    /// index 1, and of the settle.
    pub(crate) fn fill(
        &mut self,
        sender: &mut Sender,
        pin: PinId,
        checkpoint: CheckpointId,
    ) -> (u64, u64) {
        let [one, manifest] = objects().map(|object| self.key(checkpoint, object));
        let put = self.carry(Way::Put, &one, pin);
        self.carry(Way::Put, &manifest, pin);
        let evidence = Evidence::QuiescedSuccess;
        let settle = Command::Settle { pin, shard: Some(ShardIndex(0)), evidence };
        (put, self.ask(sender, settle).0)
    }

    pub(crate) fn adopt(&mut self, pin: PinId, checkpoint: CheckpointId) -> u64 {
        let memory = objects().map(|object| {
            let key = self.key(checkpoint, object);
            Held { key, bytes: Bytes::Right }
        });
        self.write(Event::Adopted { pin, checkpoint, memory: memory.to_vec() })
    }
}

/// The objects of every checkpoint, the manifest last.
pub(crate) fn objects() -> [ObjectId; 2] {
    [1, 0].map(|index| ObjectId { shard: ShardIndex(0), index })
}

/// A position of one shard with two objects.
pub(crate) fn prepare(number: u8) -> Prepare {
    Prepare {
        attempt: AttemptId::from_u128(u128::from(number)),
        endpoint: endpoint(number),
        digest: ManifestDigest::from_bytes([number; 32]),
        shape: Shape::new(&[ShardShape { objects: 2, bytes: 100 }]).unwrap(),
        shards: vec![ShardIndex(0)],
    }
}

pub(crate) fn endpoint(number: u8) -> EndpointId {
    EndpointId::from_u128(0xE00 + u128::from(number))
}

pub(crate) fn turn(number: u8) -> TurnKey {
    TurnKey {
        conversation: pinfold_core::id::ConversationId::from_u128(0xC),
        turn: pinfold_core::id::TurnId::from_u128(0x700 + u128::from(number)),
    }
}
