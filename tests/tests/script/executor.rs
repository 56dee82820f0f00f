//! Runs a script against the real engine, with a journal in memory and a store that watches.
//!
//! After every line the engine recounts everything; after every block, replaying the durable
//! records and reading back a snapshot must give the live state.

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::catalog::{Command, Shape};
use pinfold_core::engine::{
    Batch, Config, Effect, Engine, Input, Output, Query, Reply, Request, Ticket,
};
use pinfold_core::id::{CheckpointId, Epoch, Incarnation, OpId, PinId};
use pinfold_core::outcome::{Outcome, Rejection};
use pinfold_core::policy::{Genesis, Limits, Policy};

use super::names::Names;
use super::reader::{Fault, Line, Script};
use super::show::show_objects;
use super::store::{Delete, Store};
use super::verbs::{self, Verbs};

/// An owner as its client knows it.
#[derive(Clone, Copy, Debug)]
struct Client {
    incarnation: Incarnation,
    next: u64,
}

/// What a reply answers.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Who is shown before the arrow.
    pub(super) label: String,
    /// The words of a query.
    words: Vec<String>,
    binds: Vec<String>,
    command: Option<(OpId, Command)>,
    children: Vec<Self>,
}

/// A job under a script.
pub(crate) struct World {
    pub(super) engine: Engine,
    pub(super) job: Genesis,
    pub(super) names: Names,
    pub(super) store: Store,
    pub(super) shapes: BTreeMap<CheckpointId, Shape>,
    clients: BTreeMap<String, Client>,
    pub(super) waiting: BTreeMap<Ticket, Asked>,
    sent: BTreeMap<OpId, Asked>,
    tickets: u64,
    /// Every durable record.
    pub(super) records: Vec<Vec<u8>>,
    /// A batch that was taken and not committed.
    pub(super) batch: Option<Batch>,
    holds: bool,
    pub(super) out: Vec<String>,
    /// Every answer that was seen: the verb's name, the answer's, and whether it is a refusal.
    answers: BTreeSet<(String, String, bool)>,
}

/// What a script observed.
pub(crate) struct Observed {
    /// The lines of each block.
    pub(crate) blocks: Vec<Vec<String>>,
    /// Every answer: the verb's name, the answer's, and whether it is a refusal.
    pub(crate) answers: BTreeSet<(String, String, bool)>,
    /// The job's epoch, and every durable record.
    pub(crate) journal: (Epoch, Vec<Vec<u8>>),
}

/// Runs all of a script; gives what was observed.
///
/// # Errors
/// The fault names the line that cannot be run, or after which a promise is broken.
pub(crate) fn run(script: &Script) -> Result<Observed, Fault> {
    let mut world = World::new(&script.job)?;
    let mut blocks = Vec::new();
    for block in &script.blocks {
        for line in &block.commands {
            world.line(line)?;
            world.check(line)?;
        }
        world.check_journal(block.expected_at)?;
        blocks.push(core::mem::take(&mut world.out));
    }
    let journal = (world.job.epoch, world.records);
    Ok(Observed { blocks, answers: world.answers, journal })
}

impl World {
    fn new(options: &[(String, String)]) -> Result<Self, Fault> {
        let mut names = Names::default();
        let (mut policy, mut limits) = (Policy::default(), Limits::default());
        let (owners, options): (Vec<_>, Vec<_>) =
            options.iter().cloned().partition(|(key, _)| key == "owners");
        verbs::set(&mut policy, &mut limits, 1, &options)?;
        let operator = names.owner("op");
        let namespace = "scripts".parse().map_err(|_| Fault::new(1, "namespace"))?;
        let job = Genesis { namespace, epoch: Names::epoch("e1"), operator, policy, limits };
        let engine = Engine::create(Config::default(), job.clone());
        let engine = engine.map_err(|error| Fault::new(1, error.to_string()))?;
        let mut world = Self {
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
        world.sync(1)?;
        for name in owners.iter().flat_map(|(_, names)| names.split(',')) {
            world.line(&Line::read(1, &format!("register {name}"))?)?;
        }
        world.out.clear();
        Ok(world)
    }

    pub(super) fn line(&mut self, line: &Line) -> Result<(), Fault> {
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
    pub(super) fn sender(&mut self, line: &Line, text: &str) -> Result<OpId, Fault> {
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
        let is_verb =
            rest.words.first().is_some_and(|verb| verbs::COMMANDS.contains(&verb.as_str()));
        if !is_verb {
            return Err(line.fault(format!("unknown verb: {}", line.words.join(" "))));
        }
        let mut verbs = Verbs { names: &mut self.names, job: &self.job };
        let command = verbs.command(&rest)?;
        Ok((self.sender(line, &line.words[0])?, command))
    }

    fn send(&mut self, line: &Line, op: OpId, command: Command) -> Result<(), Fault> {
        let asked = self.asked(line, op, command.clone());
        self.sent.entry(op).or_insert_with(|| asked.clone());
        self.submit(line, asked, Request::Command(op, command))
    }

    fn asked(&self, line: &Line, op: OpId, command: Command) -> Asked {
        Asked {
            label: self.label(op),
            words: Vec::new(),
            binds: line.binds.clone(),
            command: Some((op, command)),
            children: Vec::new(),
        }
    }

    fn submit(&mut self, line: &Line, asked: Asked, request: Request) -> Result<(), Fault> {
        let epoch = match line.option("epoch") {
            Some("empty") => Epoch::default(),
            Some(name) => Names::epoch(name),
            None => self.job.epoch,
        };
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.waiting.insert(ticket, asked);
        self.engine.submit(Input { ticket, epoch, request });
        Ok(())
    }

    fn register(&mut self, line: &Line) -> Result<(), Fault> {
        for name in &line.words[1..] {
            let known = self.clients.get(name).map(|client| client.incarnation);
            let mut verbs = Verbs { names: &mut self.names, job: &self.job };
            let register = verbs.register(line, name, known.unwrap_or_default())?;
            let asked = Asked {
                label: name.clone(),
                words: Vec::new(),
                binds: Vec::new(),
                command: None,
                children: Vec::new(),
            };
            self.submit(line, asked, Request::Register(register))?;
        }
        Ok(())
    }

    /// `repeat w1#3`: the same operation with the same content once more.
    fn repeat(&mut self, line: &Line) -> Result<(), Fault> {
        let op = self.sender(line, line.word(1)?)?;
        let asked = self.sent.get(&op).cloned().ok_or_else(|| line.fault("never sent"))?;
        let asked = Asked { label: self.label(op), ..asked };
        match asked.command.clone() {
            Some((op, command)) => self.submit(line, asked, Request::Command(op, command)),
            None => Err(line.fault("nothing to repeat")),
        }
    }

    fn list(&mut self, line: &Line) -> Result<(), Fault> {
        let mut children = Vec::new();
        let mut commands = Vec::new();
        for child in &line.children {
            let (op, command) = self.command(child)?;
            let asked = self.asked(child, op, command.clone());
            self.sent.entry(op).or_insert_with(|| asked.clone());
            children.push(asked);
            commands.push((op, command));
        }
        let label = "list".to_string();
        let asked = Asked { label, words: Vec::new(), binds: Vec::new(), command: None, children };
        self.submit(line, asked, Request::List(commands))
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
        let query: Option<Query> = verbs.query(&line)?;
        let Some(query) = query else { return Ok(false) };
        let asked = Asked {
            label: line.words[0].clone(),
            words: line.words.clone(),
            binds: Vec::new(),
            command: None,
            children: Vec::new(),
        };
        self.submit(&line, asked, Request::Query(query))?;
        Ok(true)
    }

    // Output.

    /// Shows what leaves the engine.
    pub(super) fn let_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Effect(Effect::Delete { by, checkpoint, objects }) => {
                    let shown = show_objects(&objects);
                    let name = self.names.show_checkpoint(checkpoint);
                    let number = self.store.take_work(Delete { by, checkpoint, objects });
                    self.out.push(format!("d{number}: delete {name} {shown}"));
                }
                Output::Reply(ticket, reply) => match self.waiting.remove(&ticket) {
                    Some(asked) => self.answered(&asked, &reply),
                    None => self.out.push("a reply that nobody waits for".into()),
                },
            }
        }
    }

    fn answered(&mut self, asked: &Asked, reply: &Reply) {
        if let Some(lines) = self.names.show_query(&asked.words, reply)
            && asked.command.is_none()
            && asked.children.is_empty()
        {
            self.out.extend(lines);
            return;
        }
        match reply {
            Reply::Command(answer) => self.answered_one(asked, answer),
            Reply::List(answers) => {
                for (child, answer) in asked.children.iter().zip(answers) {
                    match answer {
                        Some(answer) => self.answered_one(child, answer),
                        None => self.out.push(format!("{} -> not tried", child.label)),
                    }
                }
            }
            Reply::Poisoned => self.out.push(format!("{} -> poisoned", asked.label)),
            Reply::Job(_)
            | Reply::Gauges(_)
            | Reply::Blockers(_)
            | Reply::Audit(_)
            | Reply::WrongEpoch => self.out.push(format!("{} -> {reply:?}", asked.label)),
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
                if let Some((_, Command::Prepare(prepare))) = &asked.command {
                    self.shapes.entry(*checkpoint).or_insert_with(|| prepare.shape.clone());
                }
            }
            Ok(Outcome::Pinned(answers)) => {
                for (answer, place) in answers.iter().zip(0..) {
                    if let Some((op, _)) = asked.command {
                        self.bind(asked, PinId { op, place }, answer.checkpoint);
                    }
                }
            }
            Ok(Outcome::Configured) => {
                if let Some((_, Command::Configure { policy, limits })) = &asked.command {
                    (self.job.policy, self.job.limits) = (*policy, *limits);
                }
            }
            Ok(_) | Err(_) => {}
        }
        let verb = asked.command.as_ref().map(|(_, command)| format!("{command:?}"));
        let verb = variant_name(&verb.unwrap_or_else(|| "Register".into()));
        let name = match answer {
            Ok(outcome) => variant_name(&format!("{outcome:?}")),
            Err(rejection) => variant_name(&format!("{rejection:?}")),
        };
        self.answers.insert((verb, name, answer.is_err()));
        let op = asked.command.as_ref().map(|(op, _)| *op);
        self.out.push(format!("{} -> {}", asked.label, self.names.show_answer(op, answer)));
    }

    /// Remembers a checkpoint, and gives its pin the name that the line has for it.
    fn bind(&mut self, asked: &Asked, pin: PinId, checkpoint: CheckpointId) {
        self.names.see(checkpoint);
        if let Some(name) = asked.binds.get(usize::from(pin.place)) {
            self.names.bind_pin(name, pin);
        }
    }
}

/// The first word of a value's debug text: the name of its variant.
fn variant_name(text: &str) -> String {
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}
