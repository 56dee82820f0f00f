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

mod answers;
mod journal;
mod save;
mod store;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use pinfold_core::catalog::{Command, Shape};
use pinfold_core::engine::{Batch, Config, Engine, Input, Query, Request, Ticket};
use pinfold_core::id::{CheckpointId, Epoch, Incarnation, OpId};
use pinfold_core::policy::{Gauges, Genesis, Limits, Policy};

use super::names::Names;
use super::reader::{Fault, Kind, Line, Script};
use super::verbs::{self, Verbs};
use store::Store;

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
    /// What was named, to show the journal's events with.
    pub names: Names,
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
    Ok(Observed { blocks, answers: bench.answers, journal, names: bench.names })
}

/// The verbs of the bench, each with its fewest words and with what is to be written.
const FORMS: [(&str, usize, &str); 22] = [
    ("register", 2, "register OWNER ... [role=worker after=0 start=START version=1 turns=5]"),
    ("list", 1, "list, and commands below it, indented"),
    ("repeat", 2, "repeat SENDER#SEQUENCE"),
    ("job", 1, "job"),
    ("gauges", 1, "gauges [NAME ...]"),
    ("blockers", 2, "blockers CHECKPOINT"),
    ("audit", 1, "audit [CHECKPOINT/SHARD/INDEX ...]"),
    ("hold", 1, "hold"),
    ("go", 1, "go"),
    ("sync", 1, "sync"),
    ("take", 1, "take"),
    ("commit", 1, "commit [quiet=yes]"),
    ("fail-sync", 1, "fail-sync [written=yes]"),
    ("crash", 1, "crash [written=yes]"),
    ("snapshot", 1, "snapshot"),
    ("follow-up", 1, "follow-up"),
    ("idle", 1, "idle"),
    ("put", 2, "put CHECKPOINT [SHARD/INDEX ...]"),
    ("remove", 2, "remove CHECKPOINT [SHARD/INDEX ...]"),
    ("store", 1, "store"),
    ("delete", 3, "delete WORK OUTCOME, or SHARD/INDEX OUTCOME ... [by=SENDER applied=yes]"),
    ("save", 4, "SENDER save ATTEMPT ENDPOINT [CONVERSATION/TURN] [shape=2x100 digest=DIGEST]"),
];

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
        if let Some(child) = line.children.first()
            && line.words[0] != "list"
        {
            return Err(child.fault("only a list has lines below it: do not indent"));
        }
        let is_save = line.words.get(1).is_some_and(|verb| verb == "save");
        let verb = if is_save { "save" } else { line.words[0].as_str() };
        if let Some((_, fewest, form)) = FORMS.iter().find(|(known, ..)| *known == verb) {
            line.word(fewest - 1)
                .and_then(|_| verbs::check_options(line, form))
                .map_err(|fault| line.fault(format!("{}: write {form}", fault.what)))?;
        }
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
            _ if is_save => self.save(line)?,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(commands: &str) -> Result<Vec<Vec<String>>, Fault> {
        let text = format!("# A rule.\njob turns=1 owners=op,w1\n{commands}----\n");
        run(&Script::read(&text).unwrap()).map(|observed| observed.blocks)
    }

    #[test]
    fn a_script_observes_what_leaves_the_engine() {
        let blocks = observed("p1 = w1 prepare A1 E1\nw1 settle p1 success\nw1 publish p1 C1/T1\n");
        let lines = ["w1#1 -> prepared p1 on c1", "w1#2 -> settled success", "w1#3 -> published"];
        assert_eq!(blocks.unwrap(), [lines]);
    }

    #[test]
    fn nothing_leaves_before_the_sync() {
        let commands = "hold\nw1 collect 1\n----\n\nsync\n";
        let blocks = observed(commands).unwrap();
        assert_eq!(blocks, [vec![], vec!["w1#1 -> collected 0 objects".to_string()]]);
    }

    #[test]
    fn a_fault_names_its_line_and_what_to_write() {
        let fault = |commands: &str| observed(commands).unwrap_err().to_string();
        for (commands, what) in [
            ("w1 colect 1\n", "line 3: unknown verb: colect: write one of prepare"),
            ("sync\ncolect\n", "line 4: no verb of the bench: colect: write SENDER VERB"),
            ("gauges pin\n", "line 3: no such gauge: pin: known are bytes"),
            ("crash writen=yes\n", "line 3: no such option: writen: write crash [written=yes]"),
            ("blockers c9\n", "line 3: no checkpoint has the name c9"),
            ("w1 save A1\n", "line 3: w1 save A1: word 3 is missing: write SENDER save ATTEMPT"),
            ("repeat w1#9\n", "line 3: never sent: write repeat"),
            ("delete 1 gone\n", "line 3: no work has this number"),
            ("commit\n", "line 3: no batch is out: write take above"),
            ("sync\n  w1 collect 1\n", "line 4: only a list has lines below it"),
        ] {
            assert!(fault(commands).starts_with(what), "{}", fault(commands));
        }
    }

    #[test]
    fn a_job_that_cannot_begin_is_a_fault_of_the_header() {
        let script = Script::read("# A rule.\n\njob turns=0\nsync\n----\n").unwrap();
        assert_eq!(run(&script).unwrap_err().line, 3);
        let script = Script::read("# A rule.\nworld\nheal\n").unwrap();
        assert_eq!(run(&script).unwrap_err().line, 2);
    }
}
