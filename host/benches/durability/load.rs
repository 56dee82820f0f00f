//! The load: clients that keep one position after another, two acknowledgements a cycle.
//!
//! Client k works conversation (i + 4k) mod 64 in its i-th cycle, in a closed loop, with N = 8. A
//! cycle pins the conversation's last position and prepares the next one; then, as if its bytes
//! had moved, settles, publishes, lets go of both and collects. What collection hands out is
//! reported as deleted with a later cycle.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::catalog::{
    Command, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape,
};
use pinfold_core::engine::{Effect, Reply, Request};
use pinfold_core::id::{
    AttemptId, ConversationId, EndpointId, Epoch, Incarnation, ManifestDigest, OpId, OwnerId,
    PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome, Rejection, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::journal::JournalOptions;
use pinfold_host::node::{Effects, Node, NodeClient};

const CONVERSATIONS: usize = 64;
/// What a job holds before the clock runs is little, so the first cycles are not different.
const WARM_UP: Duration = Duration::from_millis(300);

pub(crate) fn genesis() -> Genesis {
    Genesis {
        namespace: "bench".parse().expect("a namespace"),
        epoch: Epoch::of_name("durability bench"),
        operator: OwnerId::of_name("operator"),
        policy: Policy { turns: 8, ..Policy::default() },
        limits: Limits::default(),
    }
}

/// Cycles per second of so many clients, for so long.
pub(crate) fn cycles_per_second(
    dir: &Path,
    clients: u32,
    time: Duration,
    options: JournalOptions,
) -> f64 {
    let job = dir.join("job");
    let (node, effects) = Node::create_with(&job, genesis(), options).expect("a node");
    let shared = Shared {
        last: (0..CONVERSATIONS).map(|_| AtomicU64::new(0)).collect(),
        next: AtomicU64::new(1),
        effects: Mutex::new(effects),
        stop: AtomicBool::new(false),
        cycles: AtomicU64::new(0),
    };
    let rate = thread::scope(|scope| {
        for number in 0..clients {
            let client = Client::register(node.client(), number, &shared);
            scope.spawn(move || client.run());
        }
        thread::sleep(WARM_UP);
        let (begin, before) = (Instant::now(), shared.cycles.load(Ordering::Relaxed));
        thread::sleep(time);
        let cycles = shared.cycles.load(Ordering::Relaxed) - before;
        let rate = cycles as f64 / begin.elapsed().as_secs_f64();
        shared.stop.store(true, Ordering::Relaxed);
        rate
    });
    let stats = node.client().inspect(|_, stats| stats);
    let report = node.snapshots();
    if std::env::var_os("PINFOLD_BENCH_DETAIL").is_some() {
        eprintln!("{clients} clients: {rate:.0} cycles/s, {stats:?}, {report:?}");
    }
    assert_eq!(report.failure, None);
    node.stop().expect("a good end");
    std::fs::remove_dir_all(&job).expect("removed");
    rate
}

/// What the clients share.
struct Shared {
    /// The last published position of each conversation.
    last: Vec<AtomicU64>,
    next: AtomicU64,
    effects: Mutex<Effects>,
    stop: AtomicBool,
    cycles: AtomicU64,
}

struct Client<'a> {
    client: NodeClient,
    shared: &'a Shared,
    number: usize,
    owner: OwnerId,
    incarnation: Incarnation,
    sequence: u64,
}

impl<'a> Client<'a> {
    fn register(client: NodeClient, number: u32, shared: &'a Shared) -> Self {
        let owner = OwnerId::of_name(&format!("client {number}"));
        let register = Register {
            owner,
            role: Role::Worker,
            after: Incarnation(0),
            start: StartId::of_name(&format!("client {number}")),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        match client.call(Request::Register(register)).expect("a reply") {
            Reply::Command(Ok(Outcome::Registered { incarnation })) => {
                let number = number as usize;
                Self { client, shared, number, owner, incarnation, sequence: 0 }
            }
            other => panic!("not registered: {other:?}"),
        }
    }

    fn run(mut self) {
        for cycle in 0.. {
            if self.shared.stop.load(Ordering::Relaxed) {
                return;
            }
            self.cycle((cycle + 4 * self.number) % CONVERSATIONS);
            self.shared.cycles.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn cycle(&mut self, conversation: usize) {
        let shared = self.shared;
        let last = shared.last[conversation].load(Ordering::Relaxed);
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let mut commands = self.deleted();
        let candidates = vec![EndpointId::from_u128(u128::from(last.max(1)))];
        commands.push(Command::Pin { candidates, limit: 1 });
        commands.push(Command::Prepare(prepare(number)));
        let mut answers = self.ask(commands);
        let save = match answers.pop() {
            Some(Ok(Outcome::Prepared { pin, .. })) => pin,
            other => panic!("not prepared: {other:?}"),
        };
        let load = match answers.pop() {
            // The command in front of the last one took it.
            Some(Ok(Outcome::Pinned(pinned))) => {
                pinned.first().map(|_| PinId { op: self.op(self.sequence - 1), place: 0 })
            }
            other => panic!("not pinned: {other:?}"),
        };
        let turn = TurnKey {
            conversation: ConversationId::from_u128(conversation as u128 + 1),
            turn: TurnId::from_u128(u128::from(number)),
        };
        let success = Evidence::QuiescedSuccess;
        let settle = |pin: PinId| Command::Settle { pin, shard: None, evidence: success };
        let mut commands = vec![settle(save), Command::Publish { pin: save, turn: Some(turn) }];
        commands.push(Command::Release { pin: save });
        commands.extend(load.map(settle));
        commands.push(Command::Collect { limit: 8 });
        for answer in self.ask(commands) {
            assert!(answer.is_ok(), "refused: {answer:?}");
        }
        shared.last[conversation].store(number, Ordering::Relaxed);
    }

    /// Reports what was handed out meanwhile, to whomever, as deleted.
    fn deleted(&self) -> Vec<Command> {
        let effects = self.shared.effects.lock().expect("nobody panicked");
        let report = |effect| {
            let Effect::Delete { checkpoint, objects, .. } = effect;
            let gone = |object| (object, DeleteOutcome::Gone);
            Command::Deleted { checkpoint, outcomes: objects.into_iter().map(gone).collect() }
        };
        effects.try_iter().take(8).map(report).collect()
    }

    const fn op(&self, sequence: u64) -> OpId {
        OpId { owner: self.owner, incarnation: self.incarnation, sequence }
    }

    fn ask(&mut self, commands: Vec<Command>) -> Vec<Result<Outcome, Rejection>> {
        let first = self.sequence + 1;
        let list: Vec<_> = (first..).map(|number| self.op(number)).zip(commands).collect();
        self.sequence += list.len() as u64;
        match self.client.call(Request::List(list)).expect("a reply") {
            Reply::List(answers) => {
                answers.into_iter().map(|answer| answer.expect("an answer")).collect()
            }
            other => panic!("not a list: {other:?}"),
        }
    }
}

/// One shard of four objects.
pub(crate) fn prepare(number: u64) -> Prepare {
    let shard = ShardShape { objects: 4, bytes: 64 << 20 };
    Prepare {
        attempt: AttemptId::from_u128(u128::from(number)),
        endpoint: EndpointId::from_u128(u128::from(number)),
        digest: ManifestDigest::from_bytes([7; 32]),
        shape: Shape::new(&[shard]).expect("a shape"),
        shards: vec![ShardIndex(0)],
    }
}
