//! A script against one engine, without workers or network: with a journal in memory, and a store
//! that watches.
//!
//! After every line the engine recounts everything; after every block, replaying the durable
//! records and reading back a snapshot must give the live state. It never moves a byte: a script
//! says what workers ask, and what the store did.
//!
//! The header is the job: `job turns=1 limits.pins=3 owners=op,w1`, where the owners are registered
//! before the first line. A command stands behind its sender, which is `w1`, or with numbers of its
//! own `w1:2#5`. Beside commands and queries there are:
//!
//! | line | what |
//! |---|---|
//! | `register w1 [role= after= start= version= turns=]` | a new incarnation |
//! | `p1 p2 = w1 pin E1 E2` | any command may name the pins that it takes |
//! | `[p1 =] w1 save A1 E1 [C1/T1, unscoped]` | a whole save; released unless the pin is named |
//! | `list`, commands below it indented | sent together |
//! | `repeat w1#3` | the same operation again |
//! | `... epoch=e2` | any of these with another epoch |
//! | `gauges [names]`, `audit` | of these names; of everything that the store holds |
//! | `hold`, `go`, `sync` | ends and begins the sync after every line; one sync |
//! | `take`, `commit [quiet=yes]`, `fail-sync [written=yes]` | a batch by hand |
//! | `crash [written=yes]`, `snapshot` | recover from the durable records; from a snapshot |
//! | `follow-up`, `idle` | one follow-up; all of them |
//! | `put c1 [0/0 ...]`, `remove c1 [0/0 ...]`, `store` | the store that watches |
//! | `delete 1 gone`, `delete 1 0/0 unknown [by= applied=yes]` | does work `d1`, reports |

mod journal;
mod save;
mod store;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::catalog::{Command, Shape};
use pinfold_core::engine::{
    Batch, Config, Effect, Engine, Input, Output, Query, Reply, Request, Ticket,
};
use pinfold_core::id::{CheckpointId, Epoch, Incarnation, OpId, PinId};
use pinfold_core::outcome::{Outcome, Rejection};
use pinfold_core::policy::{Gauges, Genesis, Limits, Policy};

use super::names::Names;
use super::reader::{Fault, Kind, Line, Script};
use super::show::show_gauges;
use super::verbs::{self, Verbs};
use store::{Delete, Store};

/// An owner as its client knows it.
#[derive(Clone, Copy, Debug)]
struct Client {
    incarnation: Incarnation,
    next: u64,
}

/// What a reply answers.
#[derive(Clone, Debug)]
struct Asked {
    /// Who is shown before the arrow.
    label: String,
    request: Request,
    /// Names for the pins that the answer brings.
    binds: Vec<String>,
    /// The gauges that are asked for.
    gauges: Vec<String>,
    /// The commands of a list.
    children: Vec<Self>,
}

impl Asked {
    fn new(label: String, request: Request) -> Self {
        Self { label, request, binds: Vec::new(), gauges: Vec::new(), children: Vec::new() }
    }

    fn command(&self) -> Option<(OpId, &Command)> {
        match &self.request {
            Request::Command(op, command) => Some((*op, command)),
            Request::Register(_) | Request::List(_) | Request::Query(_) => None,
        }
    }
}

/// A job under a script.
struct Bench {
    engine: Engine,
    job: Genesis,
    names: Names,
    store: Store,
    shapes: BTreeMap<CheckpointId, Shape>,
    clients: BTreeMap<String, Client>,
    waiting: BTreeMap<Ticket, Asked>,
    sent: BTreeMap<OpId, Asked>,
    tickets: u64,
    /// Every durable record.
    records: Vec<Vec<u8>>,
    /// A batch that was taken and not committed.
    batch: Option<Batch>,
    holds: bool,
    out: Vec<String>,
    /// Every answer that was seen: the verb's name, the answer's, and whether it is a refusal.
    answers: BTreeSet<(String, String, bool)>,
}

/// What a script observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The lines of each block.
    pub blocks: Vec<Vec<String>>,
    /// Every answer: the verb's name, the answer's, and whether it is a refusal.
    pub answers: BTreeSet<(String, String, bool)>,
    /// The job's epoch, and every durable record.
    pub journal: (Epoch, Vec<Vec<u8>>),
}

/// Runs all of a script; gives what was observed.
///
/// # Errors
/// The fault names the line that cannot be run, or after which a promise is broken; and a script
/// that is to run in a World is one.
pub fn run(script: &Script) -> Result<Observed, Fault> {
    if script.kind != Kind::Bench {
        return Err(script.header.fault("this script runs in a World: on the bench, write job"));
    }
    let mut bench = Bench::new(&script.header)?;
    let mut blocks = Vec::new();
    for block in &script.blocks {
        for line in &block.commands {
            bench.line(line)?;
            bench.check(line)?;
        }
        bench.check_journal(block.expected_at)?;
        blocks.push(core::mem::take(&mut bench.out));
    }
    let journal = (bench.job.epoch, bench.records);
    Ok(Observed { blocks, answers: bench.answers, journal })
}

impl Bench {
    fn new(header: &Line) -> Result<Self, Fault> {
        let mut names = Names::default();
        let (mut policy, mut limits) = (Policy::default(), Limits::default());
        verbs::set(&mut policy, &mut limits, header, "owners")?;
        let operator = names.owner("op");
        let namespace = "scripts".parse();
        let namespace = namespace.map_err(|error| header.fault(format!("namespace: {error}")))?;
        let job = Genesis { namespace, epoch: Names::epoch("e1"), operator, policy, limits };
        let engine = Engine::create(Config::default(), job.clone());
        let engine = engine.map_err(|error| header.fault(error.to_string()))?;
        let mut bench = Self {
            engine,
            job,
            names,
            store: Store::default(),
            shapes: BTreeMap::new(),
            clients: BTreeMap::new(),
            waiting: BTreeMap::new(),
            sent: BTreeMap::new(),
            tickets: 0,
            records: Vec::new(),
            batch: None,
            holds: false,
            out: Vec::new(),
            answers: BTreeSet::new(),
        };
        bench.sync(header.number)?;
        for name in header.option("owners").into_iter().flat_map(|names| names.split(',')) {
            bench.line(&Line::read(header.number, &format!("register {name}"))?)?;
        }
        bench.out.clear();
        Ok(bench)
    }

    fn line(&mut self, line: &Line) -> Result<(), Fault> {
        match line.words[0].as_str() {
            "hold" => self.holds = true,
            "go" => self.holds = false,
            "sync" => self.sync(line.number)?,
            "take" => self.take(line)?,
            "commit" => return self.commit(line),
            "fail-sync" => self.fail_sync(line)?,
            "crash" => self.crash(line)?,
            "snapshot" => self.snapshot(line)?,
            "follow-up" => {
                self.engine.follow_up();
            }
            "idle" => self.idle(line)?,
            "register" => self.register(line)?,
            "repeat" => self.repeat(line)?,
            "list" => self.list(line)?,
            "delete" => {
                let (by, command) = self.carry_out(line)?;
                self.send(line, by, command)?;
            }
            _ if line.words.get(1).is_some_and(|verb| verb == "save") => self.save(line)?,
            _ if self.watch(line)? => {}
            _ if self.query(line)? => {}
            _ => {
                let (op, command) = self.command(line)?;
                self.send(line, op, command)?;
            }
        }
        if self.holds {
            self.let_out();
            Ok(())
        } else {
            self.sync(line.number)
        }
    }

    fn check(&self, line: &Line) -> Result<(), Fault> {
        self.engine.check().map_err(|broken| line.fault(broken.to_string()))
    }

    // Input.

    /// `w1`, `w1:2`, `w1#5` or `w1:2#5`: an owner, with what is not said as its client counts.
    fn sender(&mut self, line: &Line, text: &str) -> Result<OpId, Fault> {
        let (rest, sequence) = match text.split_once('#') {
            Some((rest, sequence)) => (rest, Some(line.parse(sequence)?)),
            None => (text, None),
        };
        let (name, incarnation) = match rest.split_once(':') {
            Some((name, incarnation)) => (name, Some(Incarnation(line.parse(incarnation)?))),
            None => (rest, None),
        };
        let client = self.clients.get(name).copied();
        let client = client.unwrap_or(Client { incarnation: Incarnation(1), next: 1 });
        let incarnation = incarnation.unwrap_or(client.incarnation);
        let sequence = sequence.unwrap_or(client.next);
        if incarnation == client.incarnation {
            let next = client.next.max(sequence.saturating_add(1));
            self.clients.insert(name.to_string(), Client { incarnation, next });
        }
        Ok(OpId { owner: self.names.owner(name), incarnation, sequence })
    }

    fn label(&self, op: OpId) -> String {
        let name = self.names.show_owner(op.owner);
        let current = self.clients.get(&name).map(|client| client.incarnation);
        let OpId { incarnation, sequence, .. } = op;
        if current == Some(incarnation) {
            format!("{name}#{sequence}")
        } else {
            format!("{name}:{incarnation}#{sequence}")
        }
    }

    fn command(&mut self, line: &Line) -> Result<(OpId, Command), Fault> {
        let mut rest = line.clone();
        rest.words.remove(0);
        if rest.words.is_empty() {
            let what = format!("no verb of the bench: {}: write SENDER VERB ...", line.words[0]);
            return Err(line.fault(what));
        }
        let mut verbs = Verbs { names: &mut self.names, job: &self.job };
        let command = verbs.command(&rest)?;
        Ok((self.sender(line, &line.words[0])?, command))
    }

    fn send(&mut self, line: &Line, op: OpId, command: Command) -> Result<(), Fault> {
        let asked = self.asked(line, op, command);
        self.submit(line, asked)
    }

    /// A command as it is asked; what is sent first under an operation id may be repeated.
    fn asked(&mut self, line: &Line, op: OpId, command: Command) -> Asked {
        let mut asked = Asked::new(self.label(op), Request::Command(op, command));
        asked.binds.clone_from(&line.binds);
        self.sent.entry(op).or_insert_with(|| asked.clone());
        asked
    }

    fn submit(&mut self, line: &Line, asked: Asked) -> Result<(), Fault> {
        let epoch = line.option("epoch").map_or(self.job.epoch, Names::epoch);
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let request = asked.request.clone();
        self.waiting.insert(ticket, asked);
        self.engine.submit(Input { ticket, epoch, request });
        Ok(())
    }

    fn register(&mut self, line: &Line) -> Result<(), Fault> {
        for name in &line.words[1..] {
            let known = self.clients.get(name).map(|client| client.incarnation);
            let mut verbs = Verbs { names: &mut self.names, job: &self.job };
            let register = verbs.register(line, name, known.unwrap_or_default())?;
            self.submit(line, Asked::new(name.clone(), Request::Register(register)))?;
        }
        Ok(())
    }

    /// `repeat w1#3`: the same operation with the same content once more.
    fn repeat(&mut self, line: &Line) -> Result<(), Fault> {
        let op = self.sender(line, line.word(1)?)?;
        let never = || line.fault("never sent: write repeat SENDER#SEQUENCE of a line above");
        let asked = self.sent.get(&op).cloned().ok_or_else(never)?;
        self.submit(line, Asked { label: self.label(op), ..asked })
    }

    fn list(&mut self, line: &Line) -> Result<(), Fault> {
        let mut children = Vec::new();
        for child in &line.children {
            let (op, command) = self.command(child)?;
            children.push(self.asked(child, op, command));
        }
        let commands = children.iter().filter_map(Asked::command);
        let commands = commands.map(|(op, command)| (op, command.clone())).collect();
        let asked = Asked::new("list".to_string(), Request::List(commands));
        self.submit(line, Asked { children, ..asked })
    }

    fn query(&mut self, line: &Line) -> Result<bool, Fault> {
        let mut line = line.clone();
        if line.words == ["audit"] {
            // Without words: everything that the store holds.
            for (checkpoint, object) in self.store.objects() {
                line.words.push(format!("{}/{object}", self.names.show_checkpoint(checkpoint)));
            }
        }
        let mut verbs = Verbs { names: &mut self.names, job: &self.job };
        let Some(query) = verbs.query(&line)? else { return Ok(false) };
        let gauges = if query == Query::Gauges { line.words[1..].to_vec() } else { Vec::new() };
        let fields = serde_json::to_value(Gauges::default());
        let fields = fields.map_err(|error| line.fault(error.to_string()))?;
        if let Some(unknown) = gauges.iter().find(|name| fields.get(name.as_str()).is_none()) {
            let known = verbs::known_fields(&fields);
            return Err(line.fault(format!("no such gauge: {unknown}: known are {known}")));
        }
        let asked = Asked::new(line.words[0].clone(), Request::Query(query));
        self.submit(&line, Asked { gauges, ..asked })?;
        Ok(true)
    }

    // Output.

    /// Shows what leaves the engine.
    fn let_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Effect(effect) => {
                    let shown = self.names.show_effect(&effect);
                    let Effect::Delete { by, checkpoint, objects } = effect;
                    let number = self.store.take_work(Delete { by, checkpoint, objects });
                    self.out.push(format!("d{number}: {shown}"));
                }
                Output::Reply(ticket, reply) => match self.waiting.remove(&ticket) {
                    Some(asked) => self.answered(&asked, &reply),
                    None => self.out.push("a reply that nobody waits for".into()),
                },
            }
        }
    }

    fn answered(&mut self, asked: &Asked, reply: &Reply) {
        match (&asked.request, reply) {
            (_, Reply::Command(answer)) => self.answered_one(asked, answer),
            (_, Reply::List(answers)) => {
                for (child, answer) in asked.children.iter().zip(answers) {
                    match answer {
                        Some(answer) => self.answered_one(child, answer),
                        None => self.out.push(format!("{} -> not tried", child.label)),
                    }
                }
            }
            (Request::Query(_), Reply::Gauges(gauges)) => {
                self.out.push(show_gauges(&asked.gauges, gauges));
            }
            (Request::Query(query), _) => self.out.extend(self.names.show_query(query, reply)),
            (Request::Register(_) | Request::Command(..) | Request::List(_), Reply::Poisoned) => {
                self.out.push(format!("{} -> poisoned", asked.label));
            }
            (Request::Register(_) | Request::Command(..) | Request::List(_), _) => {
                self.out.push(format!("{} -> the reply to a query: {reply:?}", asked.label));
            }
        }
    }

    fn answered_one(&mut self, asked: &Asked, answer: &Result<Outcome, Rejection>) {
        match answer {
            Ok(Outcome::Registered { incarnation }) => {
                let name = asked.label.clone();
                let known = self.clients.get(&name).map(|client| client.incarnation);
                if known != Some(*incarnation) {
                    self.clients.insert(name, Client { incarnation: *incarnation, next: 1 });
                }
            }
            Ok(
                Outcome::Prepared { pin, checkpoint }
                | Outcome::AlreadyPublished { pin, checkpoint },
            ) => {
                self.bind(asked, *pin, *checkpoint);
                if let Some((_, Command::Prepare(prepare))) = asked.command() {
                    self.shapes.entry(*checkpoint).or_insert_with(|| prepare.shape.clone());
                }
            }
            Ok(Outcome::Pinned(answers)) => {
                for (answer, place) in answers.iter().zip(0..) {
                    if let Some((op, _)) = asked.command() {
                        self.bind(asked, PinId { op, place }, answer.checkpoint);
                    }
                }
            }
            Ok(Outcome::Configured) => {
                if let Some((_, Command::Configure { policy, limits })) = asked.command() {
                    (self.job.policy, self.job.limits) = (*policy, *limits);
                }
            }
            Ok(_) | Err(_) => {}
        }
        let verb = asked.command().map(|(_, command)| format!("{command:?}"));
        let verb = variant_name(&verb.unwrap_or_else(|| "Register".into()));
        let name = match answer {
            Ok(outcome) => variant_name(&format!("{outcome:?}")),
            Err(rejection) => variant_name(&format!("{rejection:?}")),
        };
        self.answers.insert((verb, name, answer.is_err()));
        let op = asked.command().map(|(op, _)| op);
        self.out.push(format!("{} -> {}", asked.label, self.names.show_answer(op, answer)));
    }

    /// Remembers a checkpoint, and gives its pin the name that the line has for it.
    fn bind(&mut self, asked: &Asked, pin: PinId, checkpoint: CheckpointId) {
        self.names.see_checkpoint(checkpoint);
        if let Some(name) = asked.binds.get(usize::from(pin.place)) {
            self.names.bind_pin(name, pin);
        }
    }
}

/// The first word of a value's debug text: the name of its variant.
fn variant_name(text: &str) -> String {
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}
