//! A load on a coordinator: clients that keep one position after another, without moving a byte.
//!
//! Client k works conversation (i + 4k) mod 64 in its i-th cycle, in a closed loop. A cycle is two
//! requests, each durable when it is answered: it pins the conversation's last position and
//! prepares the next one; then, as if its bytes had moved, it settles, publishes, lets go of both
//! and asks for delete work, which comes with the answer; that of the cycle before is reported as
//! deleted along with it. What it keeps is forgotten in the end, and its owners are retired; their
//! conversations stay known, as all do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pinfold_core::catalog::{
    Command, PROTOCOL_VERSION, Prepare, Register, Role, Shape, ShardShape,
};
use pinfold_core::engine::{Reply, Request};
use pinfold_core::id::{
    AttemptId, ConversationId, EndpointId, Incarnation, ManifestDigest, OpId, OwnerId, PinId,
    ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome, Rejection, TurnKey};

use crate::client::{AsyncClient, ClientError, ClientOptions};

/// Conversations that take turns.
const CONVERSATIONS: u64 = 64;

/// Reports in one request.
const LIST: usize = 32;
/// Between two looks at what is still to come.
const A_MOMENT: Duration = Duration::from_millis(1);
/// Checkpoints that a filling request keeps.
const FILLED: u64 = 16;
/// Turns of a conversation that is filled in.
const FILLED_TURNS: u64 = 8;

/// How much load.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Clients at once.
    pub clients: u32,
    /// For how long.
    pub time: Duration,
    /// How many checkpoints are kept before the clock starts, in conversations of their own, which
    /// are left as they are.
    pub retained: u64,
    /// Tells the identities of this run from those of every other: random.
    pub salt: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LoadReport {
    /// Clients at once.
    pub clients: u32,
    /// For how long they ran.
    pub seconds: f64,
    /// Cycles that were done.
    pub cycles: u64,
    /// Cycles a second.
    pub cycles_per_second: f64,
    /// The time of a whole cycle in milliseconds: half of them took at most so long.
    pub p50_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// 999 of 1000.
    pub p999_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Objects that were reported as deleted.
    pub deleted: u64,
    /// Checkpoints that were kept before the clock started.
    pub retained: u64,
    /// Cycles that ended in each whole second.
    pub by_second: Vec<u64>,
}

/// Why a load ended early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nobody answered.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The coordinator refused what the load asked for.
    #[error("the coordinator refused: {0}")]
    Refused(#[from] Rejection),
    /// It answered something else than was asked.
    #[error("the coordinator's answer is of another kind: {0}")]
    Unexpected(String),
    /// A client's task ended before it was done.
    #[error("a client's task ended: {0}")]
    Task(String),
}

/// What the clients share.
struct Shared {
    options: LoadOptions,
    /// The last published position of each conversation.
    last: Vec<AtomicU64>,
    next: AtomicU64,
    filled: AtomicU64,
    stop: AtomicBool,
    deleted: AtomicU64,
}

impl Shared {
    fn id(&self, number: u64) -> u128 {
        u128::from(self.options.salt) << 64 | u128::from(number)
    }
}

/// Runs a load against a coordinator.
///
/// # Errors
/// [`LoadError`] when the coordinator does not answer, or refuses.
pub fn run(
    url: &str,
    client: &ClientOptions,
    options: LoadOptions,
) -> Result<LoadReport, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ClientError::Thread)?;
    runtime.block_on(load(url, client, options))
}

async fn load(
    url: &str,
    client: &ClientOptions,
    options: LoadOptions,
) -> Result<LoadReport, LoadError> {
    let shared = Arc::new(Shared {
        options,
        last: (0..CONVERSATIONS).map(|_| AtomicU64::new(0)).collect(),
        next: AtomicU64::new(1),
        filled: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        deleted: AtomicU64::new(0),
    });
    let mut workers = Vec::new();
    for number in 0..options.clients {
        let connected = AsyncClient::connect(url, client.clone()).await?;
        workers.push(Worker::register(connected, number, Arc::clone(&shared)).await?);
    }
    let workers = filled(workers).await?;
    let began = Instant::now();
    let tasks: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(worker.run())).collect();
    tokio::time::sleep(options.time).await;
    shared.stop.store(true, Ordering::Relaxed);
    let mut ended = Vec::new();
    for task in tasks {
        ended.extend(task.await??);
    }
    let seconds = began.elapsed().as_secs_f64();
    let operator = AsyncClient::connect(url, client.clone()).await?;
    clear(operator, &shared).await?;
    let deleted = shared.deleted.load(Ordering::Relaxed);
    Ok(report(&options, began, seconds, ended, deleted))
}

impl From<tokio::task::JoinError> for LoadError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Task(error.to_string())
    }
}

/// Keeps as many checkpoints as there are to be, each client its share.
async fn filled(workers: Vec<Worker>) -> Result<Vec<Worker>, LoadError> {
    let tasks: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(worker.fill())).collect();
    let mut workers = Vec::new();
    for task in tasks {
        workers.push(task.await??);
    }
    Ok(workers)
}

fn report(
    options: &LoadOptions,
    began: Instant,
    seconds: f64,
    ended: Vec<(Instant, u64)>,
    deleted: u64,
) -> LoadReport {
    let LoadOptions { clients, retained, .. } = *options;
    let mut by_second = vec![0; usize::try_from(options.time.as_secs()).unwrap_or(0)];
    for (at, _) in &ended {
        let second = usize::try_from(at.duration_since(began).as_secs()).unwrap_or(usize::MAX);
        by_second.get_mut(second).into_iter().for_each(|cycles| *cycles += 1);
    }
    let mut micros: Vec<u64> = ended.into_iter().map(|it| it.1).collect();
    micros.sort_unstable();
    let of_thousand = |part: usize| {
        let place = (micros.len() * part).div_ceil(1000).saturating_sub(1);
        micros.get(place).copied().unwrap_or(0) as f64 / 1000.0
    };
    let cycles = micros.len() as u64;
    LoadReport {
        clients,
        seconds,
        cycles,
        cycles_per_second: cycles as f64 / seconds,
        p50_ms: of_thousand(500),
        p99_ms: of_thousand(990),
        p999_ms: of_thousand(999),
        max_ms: of_thousand(1000),
        deleted,
        retained,
        by_second,
    }
}

/// One owner.
struct Worker {
    client: AsyncClient,
    shared: Arc<Shared>,
    number: u32,
    owner: OwnerId,
    incarnation: Incarnation,
    sequence: u64,
    /// The reports on what was handed out to it last.
    reports: Vec<Command>,
}

type Answers = Vec<Result<Outcome, Rejection>>;

fn owner_name(salt: u64, number: u32) -> OwnerId {
    OwnerId::of_name(&format!("load {salt:016x} client {number}"))
}

impl Worker {
    async fn register(
        client: AsyncClient,
        number: u32,
        shared: Arc<Shared>,
    ) -> Result<Self, LoadError> {
        let owner = owner_name(shared.options.salt, number);
        let start = StartId::from_u128(shared.id(u64::from(number) + 1));
        let incarnation = registered(&client, owner, Role::Worker, start).await?;
        let (sequence, reports) = Default::default();
        Ok(Self { client, shared, number, owner, incarnation, sequence, reports })
    }

    /// Keeps its share of what is retained before the clock starts.
    async fn fill(mut self) -> Result<Self, LoadError> {
        let retained = self.shared.options.retained;
        loop {
            let first = self.shared.filled.fetch_add(FILLED, Ordering::Relaxed);
            if first >= retained {
                return Ok(self);
            }
            let (mut commands, sequence) = (Vec::new(), self.sequence);
            for number in first..(first + FILLED).min(retained) {
                let pin = PinId { op: self.op(sequence + commands.len() as u64 + 1), place: 0 };
                // Numbers that no cycle comes to.
                let id = self.shared.id((1 << 63) | number);
                let conversation = self.shared.id((1 << 62) | (number / FILLED_TURNS));
                let conversation = ConversationId::from_u128(conversation);
                let turn = Some(TurnKey { conversation, turn: TurnId::from_u128(id) });
                let evidence = Evidence::QuiescedSuccess;
                commands.extend([
                    Command::Prepare(prepare(id)?),
                    Command::Settle { pin, shard: None, evidence },
                    Command::Publish { pin, turn },
                    Command::Release { pin },
                ]);
            }
            for answer in self.ask(commands).await? {
                answer?;
            }
        }
    }

    /// Cycles until it is told to stop; when each ended, and how many microseconds it took.
    async fn run(mut self) -> Result<Vec<(Instant, u64)>, LoadError> {
        let mut took = Vec::new();
        for cycle in 0.. {
            if self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let began = Instant::now();
            self.cycle((cycle + 4 * u64::from(self.number)) % CONVERSATIONS).await?;
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            took.push((Instant::now(), micros));
        }
        self.report().await?;
        Ok(took)
    }

    async fn cycle(&mut self, conversation: u64) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        let last = &shared.last[usize::try_from(conversation).unwrap_or(0)];
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let candidate = shared.id(last.load(Ordering::Relaxed).max(1));
        let pin = Command::Pin { candidates: vec![EndpointId::from_u128(candidate)], limit: 1 };
        let prepare = Command::Prepare(prepare(shared.id(number))?);
        let answers = self.ask(vec![pin, prepare]).await?;
        let (load, save) = match answers.as_slice() {
            [Ok(Outcome::Pinned(pinned)), Ok(Outcome::Prepared { pin, .. })] => {
                let load = PinId { op: self.op(self.sequence - 1), place: 0 };
                (pinned.first().map(|_| load), *pin)
            }
            other => return Err(LoadError::Unexpected(format!("{other:?}"))),
        };
        let turn = TurnKey {
            conversation: ConversationId::from_u128(shared.id(conversation + 1)),
            turn: TurnId::from_u128(shared.id(number)),
        };
        let evidence = Evidence::QuiescedSuccess;
        let settle = |pin: PinId| Command::Settle { pin, shard: None, evidence };
        let mut commands = vec![settle(save), Command::Publish { pin: save, turn: Some(turn) }];
        commands.push(Command::Release { pin: save });
        commands.extend(load.map(settle));
        commands.append(&mut self.reports);
        commands.push(Command::Collect { limit: 8 });
        for answer in self.ask(commands).await? {
            answer?;
        }
        last.store(number, Ordering::Relaxed);
        Ok(())
    }

    /// Reports what it was handed out last.
    async fn report(&mut self) -> Result<(), LoadError> {
        let mut reports = std::mem::take(&mut self.reports);
        while !reports.is_empty() {
            let rest = reports.split_off(reports.len().min(LIST));
            for answer in self.ask(std::mem::replace(&mut reports, rest)).await? {
                answer?;
            }
        }
        Ok(())
    }

    /// Waits until a conversation that was forgotten holds no turn any more: they expire a few at
    /// a time, and until then nobody is handed out what they hold.
    async fn until_over(&self, conversation: ConversationId) -> Result<(), LoadError> {
        let path = format!("/v1/conversations/{conversation}");
        loop {
            let ledger = self.client.view(&path).await?;
            match ledger["turns"].as_array() {
                Some(turns) if turns.is_empty() => return Ok(()),
                Some(_) => tokio::time::sleep(A_MOMENT).await,
                None => return Err(LoadError::Unexpected(ledger.to_string())),
            }
        }
    }

    const fn op(&self, sequence: u64) -> OpId {
        OpId { owner: self.owner, incarnation: self.incarnation, sequence }
    }

    /// Asks a list, whose answers are all there; as if what that hands out were deleted at once.
    async fn ask(&mut self, commands: Vec<Command>) -> Result<Answers, LoadError> {
        let first = self.sequence + 1;
        let list: Vec<_> = (first..).map(|number| self.op(number)).zip(commands).collect();
        self.sequence += list.len() as u64;
        let (reply, work) = self.client.ask_with_work(&Request::List(list)).await?;
        self.reports.extend(work.iter().map(|item| item.report(|_| DeleteOutcome::Gone)));
        let objects = work.iter().map(|it| it.objects.len() as u64).sum();
        self.shared.deleted.fetch_add(objects, Ordering::Relaxed);
        match reply {
            Reply::List(answers) => Ok(answers.into_iter().flatten().collect()),
            Reply::Command(Err(rejection)) => Err(rejection.into()),
            other => Err(LoadError::Unexpected(format!("{other:?}"))),
        }
    }
}

async fn registered(
    client: &AsyncClient,
    owner: OwnerId,
    role: Role,
    start: StartId,
) -> Result<Incarnation, LoadError> {
    let mut after = Incarnation(0);
    loop {
        let version = PROTOCOL_VERSION;
        let register = Register { owner, role, after, start, version, expected_policy: None };
        match client.ask(&Request::Register(register)).await? {
            Reply::Command(Ok(Outcome::Registered { incarnation })) => return Ok(incarnation),
            Reply::Command(Err(Rejection::StaleIncarnation { current })) if current > after => {
                after = current;
            }
            Reply::Command(Err(rejection)) => return Err(rejection.into()),
            other => return Err(LoadError::Unexpected(format!("{other:?}"))),
        }
    }
}

/// Forgets the conversations of this run, and its owners.
async fn clear(client: AsyncClient, shared: &Arc<Shared>) -> Result<(), LoadError> {
    let owner = OwnerId::of_name("operator");
    let start = StartId::from_u128(shared.id(u64::MAX));
    let incarnation = registered(&client, owner, Role::Operator, start).await?;
    let (number, shared) = (u32::MAX, Arc::clone(shared));
    let (sequence, reports) = Default::default();
    let mut operator = Worker { client, shared, number, owner, incarnation, sequence, reports };
    let LoadOptions { salt, clients, .. } = operator.shared.options;
    for conversation in 1..=CONVERSATIONS {
        let conversation = ConversationId::from_u128(operator.shared.id(conversation));
        operator.ask(vec![Command::Forget { conversation }]).await?;
        operator.until_over(conversation).await?;
    }
    // What they held is handed out and reported, round by round.
    loop {
        let answers = operator.ask(vec![Command::Collect { limit: 256 }]).await?;
        let [Ok(Outcome::Collected { objects, more })] = answers.as_slice() else {
            return Err(LoadError::Unexpected(format!("{answers:?}")));
        };
        let (objects, more) = (*objects, *more);
        operator.report().await?;
        if objects == 0 && !more {
            break;
        }
    }
    for number in 0..clients {
        operator.ask(vec![Command::Retire { owner: owner_name(salt, number) }]).await?;
    }
    Ok(())
}

/// One shard of four objects.
fn prepare(id: u128) -> Result<Prepare, LoadError> {
    let shape = Shape::new(&[ShardShape { objects: 4, bytes: 64 << 20 }]);
    Ok(Prepare {
        attempt: AttemptId::from_u128(id),
        endpoint: EndpointId::from_u128(id),
        digest: ManifestDigest::from_bytes([7; 32]),
        shape: shape.map_err(|error| LoadError::Unexpected(error.to_string()))?,
        shards: vec![ShardIndex(0)],
    })
}
