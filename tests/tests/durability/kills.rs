//! A node is killed again and again, under load and while it recovers, and loses nothing that it
//! acknowledged.
//!
//! Clients live in the test and outlive their node, as workers do. What was under way is asked once
//! more, under the same id. `PINFOLD_KILLS` is how often, `PINFOLD_SEED` where the random numbers
//! start; what the clients ask follows from the seed, the moment of a kill only roughly.

use std::env;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::judge::{self, Judge};
use crate::load::{Client, Draws, Shared};
use crate::process::Process;
use crate::wire::{Ask, Told};

const CLIENTS: u8 = 5;
/// A folder's life, in kills.
const KILLS_PER_FOLDER: u32 = 30;
/// How long a node may run before it is killed.
const LOAD_MICROS: u32 = 120_000;
/// How long follow-ups may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What happened, so that a run that tries nothing is seen.
#[derive(Debug, Default)]
struct Happened {
    kills_before_it_opened: u32,
    kills_under_load: u32,
    acknowledged: usize,
    under_way: usize,
    snapshots: u64,
    rolls: u64,
    records: u64,
    half_made: u32,
}

fn number_of(variable: &str, otherwise: u64) -> u64 {
    env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Protocol 7, I10, I14: whatever was acknowledged before a SIGKILL is there after it.
#[test]
fn nothing_acknowledged_is_lost_by_a_kill() {
    let seed = number_of("PINFOLD_SEED", 0x5eed);
    let kills = u32::try_from(number_of("PINFOLD_KILLS", 210)).expect("not that many");
    eprintln!("PINFOLD_SEED={seed} PINFOLD_KILLS={kills}");
    let mut happened = Happened::default();
    for folder in 0..kills.div_ceil(KILLS_PER_FOLDER) {
        let dir = tempfile::tempdir().unwrap();
        let mut life = Life::new(dir.path(), seed.wrapping_add(u64::from(folder)));
        for kill in 0..KILLS_PER_FOLDER {
            let lived = life.live(&mut happened);
            lived.unwrap_or_else(|why| panic!("seed {seed}, folder {folder}, kill {kill}: {why}"));
        }
        let ended = life.end(&mut happened);
        ended.unwrap_or_else(|why| panic!("seed {seed}, folder {folder}, at the end: {why}"));
    }
    eprintln!("{happened:?}");
    assert!(happened.kills_before_it_opened * 10 > kills, "too few recoveries are killed");
    assert!(happened.kills_under_load * 2 > kills, "too few nodes are killed under load");
    assert!(happened.acknowledged as u32 > kills * 10, "too little is asked");
    assert!(happened.under_way as u32 > kills, "too little is under way");
    assert!(happened.rolls > 0 && happened.snapshots > 0, "the journal is too small");
}

/// One folder's life.
struct Life<'a> {
    dir: &'a Path,
    draws: Draws,
    clients: Vec<Client>,
    shared: Shared,
    judge: Judge,
}

impl<'a> Life<'a> {
    fn new(dir: &'a Path, seed: u64) -> Self {
        Self {
            dir,
            draws: Draws::new(seed),
            clients: (0..CLIENTS).map(|number| Client::new(number, seed)).collect(),
            shared: Shared::default(),
            judge: Judge::default(),
        }
    }

    /// From one start of a node to its kill, and what must be true then.
    fn live(&mut self, happened: &mut Happened) -> Result<(), String> {
        let mut node = Process::node(self.dir);
        if self.draws.below(4) == 0 {
            // A start takes some milliseconds, most of them before the journal is touched.
            thread::sleep(Duration::from_micros(u64::from(self.draws.below(40_000))));
            for told in node.kill() {
                match told {
                    Told::Opened { .. } => happened.kills_under_load += 1,
                    other => return Err(format!("a node that nobody asked said {other:?}")),
                }
            }
            happened.kills_before_it_opened += 1;
        } else {
            node.opened().map_err(|why| format!("not opened: {why}"))?;
            self.resume(&mut node)?;
            if self.draws.below(4) == 0 {
                self.judge_at_rest(&mut node)?;
            }
            let until = Duration::from_micros(u64::from(self.draws.below(LOAD_MICROS)));
            self.load(&mut node, Instant::now() + until)?;
            for told in node.kill() {
                self.hear(told)?;
            }
            happened.kills_under_load += 1;
        }
        happened.under_way += self.clients.iter().filter(|it| it.under_way.is_some()).count();
        happened.half_made += u32::from(is_half_made(self.dir));
        if judge::exists(self.dir) {
            self.judge.judge(self.dir, &self.clients).map(drop)
        } else if self.judge.acknowledged() == 0 {
            Ok(())
        } else {
            Err("the journal is gone".into())
        }
    }

    /// Once more with a node that lives on.
    fn end(&mut self, happened: &mut Happened) -> Result<(), String> {
        let mut node = Process::node(self.dir);
        node.opened().map_err(|why| format!("not opened: {why}"))?;
        self.resume(&mut node)?;
        self.judge_at_rest(&mut node)?;
        node.end();
        self.judge.judge(self.dir, &self.clients)?;
        happened.acknowledged += self.judge.acknowledged();
        happened.snapshots += self.judge.snapshots;
        happened.rolls += self.judge.rolls;
        happened.records += self.judge.records;
        Ok(())
    }

    /// Asks once more for what is under way, and for what was answered.
    fn resume(&mut self, node: &mut Process) -> Result<(), String> {
        for client in &self.clients {
            if let Some(ask) = &client.under_way {
                node.send(client.number, ask.clone());
            }
        }
        while self.clients.iter().any(|client| client.under_way.is_some()) {
            let told = node.told();
            self.hear(told)?;
        }
        for client in &self.clients {
            for (ask, first) in client.repetitions() {
                node.send(client.number, ask.clone());
                match node.told() {
                    Told::Answer { answer: Some(again), .. } if again == first => {}
                    other => return Err(format!("I14: {ask:?} gave {first:?}, now {other:?}")),
                }
            }
        }
        Ok(())
    }

    /// Everything is answered: once no follow-up waits, exactly the turns that must stay do.
    fn judge_at_rest(&mut self, node: &mut Process) -> Result<(), String> {
        let began = Instant::now();
        let catalog = loop {
            let catalog = self.judge.judge(self.dir, &self.clients)?;
            if catalog.next_follow_up().is_none() {
                break catalog;
            }
            if began.elapsed() > PATIENCE {
                return Err("the follow-ups never end".into());
            }
        };
        if let Some(told) = node.told_within(Duration::ZERO) {
            return Err(format!("nobody asked for {told:?}"));
        }
        let expected = self.clients.iter().flat_map(Client::live_turns).collect();
        let found = judge::retained(&catalog);
        if found == expected {
            return Ok(());
        }
        let missing: Vec<_> = expected.difference(&found).collect();
        let extra: Vec<_> = found.difference(&expected).collect();
        Err(format!("I6: not retained: {missing:?}; retained though expired: {extra:?}"))
    }

    fn load(&mut self, node: &mut Process, until: Instant) -> Result<(), String> {
        for number in 0..self.clients.len() {
            self.ask(number, node);
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let Some(told) = node.told_within(left) else { continue };
            if let Some(number) = self.hear(told)? {
                self.ask(number, node);
            }
        }
    }

    fn ask(&mut self, number: usize, node: &mut Process) {
        let ask: Ask = self.clients[number].next(&mut self.shared);
        self.judge.sends(&ask);
        node.send(self.clients[number].number, ask);
    }

    /// Who got an answer, if somebody did.
    fn hear(&mut self, told: Told) -> Result<Option<usize>, String> {
        match told {
            Told::Answer { client, answer: Some(answer) } => {
                let number = usize::from(client);
                let client = &mut self.clients[number];
                let ask = client.under_way.clone().ok_or("an answer to nothing")?;
                self.judge.answers(&ask, answer);
                client.heard(answer, &mut self.shared)?;
                Ok(Some(number))
            }
            Told::Work { checkpoint, objects } => {
                self.shared.work.push((checkpoint, objects));
                Ok(None)
            }
            other => Err(format!("unexpected: {other:?}")),
        }
    }
}

/// Whether a kill left something under a temporary name.
fn is_half_made(dir: &Path) -> bool {
    let names = std::fs::read_dir(dir.join("journal")).into_iter().flatten().flatten();
    names.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"))
}
