//! One data folder's life: its clients, which outlive every node, and its judge.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::judge::{self, Judge};
use crate::load::{Client, Draws, Shared};
use crate::process::Process;
use crate::wire::{Ask, Told};

const CLIENTS: u8 = 5;
/// How long follow-ups may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// See the [module](self).
pub(crate) struct Life<'a> {
    dir: &'a Path,
    pub(crate) draws: Draws,
    clients: Vec<Client>,
    shared: Shared,
    pub(crate) judge: Judge,
}

impl<'a> Life<'a> {
    pub(crate) fn new(dir: &'a Path, seed: u64) -> Self {
        Self {
            dir,
            draws: Draws::new(seed),
            clients: (0..CLIENTS).map(|number| Client::new(number, seed)).collect(),
            shared: Shared::default(),
            judge: Judge::default(),
        }
    }

    /// How many clients wait for an answer.
    pub(crate) fn under_way(&self) -> usize {
        self.clients.iter().filter(|client| client.under_way.is_some()).count()
    }

    /// Judges what a node has left, or has made durable so far.
    pub(crate) fn judge_journal(&mut self) -> Result<(), String> {
        if judge::exists(self.dir) {
            self.judge.judge(self.dir, &self.clients).map(drop)
        } else if self.judge.acknowledged() == 0 {
            Ok(())
        } else {
            Err("the journal is gone".into())
        }
    }

    /// Asks once more for what is under way, and for what was answered.
    pub(crate) fn resume(&mut self, node: &mut Process) -> Result<(), String> {
        self.ask_again(node);
        while self.under_way() > 0 {
            self.hear(node.told())?;
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
    pub(crate) fn judge_at_rest(&mut self, node: &mut Process) -> Result<(), String> {
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

    pub(crate) fn load(&mut self, node: &mut Process, until: Instant) -> Result<(), String> {
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

    /// Lets every client ask until the node is gone for all of them.
    pub(crate) fn load_until_gone(&mut self, node: &mut Process) -> Result<(), String> {
        for number in 0..self.clients.len() {
            self.ask(number, node);
        }
        let mut gone = 0;
        while gone < self.clients.len() {
            match node.told() {
                Told::Answer { answer: None, .. } => gone += 1,
                told => {
                    if let Some(number) = self.hear(told)? {
                        self.ask(number, node);
                    }
                }
            }
        }
        Ok(())
    }

    /// Asks once more for what is under way; the node may be gone before it answers.
    pub(crate) fn resume_until_gone(&mut self, node: &mut Process) -> Result<(), String> {
        self.ask_again(node);
        for _ in 0..self.under_way() {
            match node.told() {
                Told::Answer { answer: None, .. } => {}
                told => {
                    self.hear(told)?;
                }
            }
        }
        Ok(())
    }

    fn ask_again(&self, node: &mut Process) {
        for client in &self.clients {
            if let Some(ask) = &client.under_way {
                node.send(client.number, ask.clone());
            }
        }
    }

    fn ask(&mut self, number: usize, node: &mut Process) {
        let ask: Ask = self.clients[number].next(&mut self.shared);
        self.judge.sends(&ask);
        node.send(self.clients[number].number, ask);
    }

    /// Who got an answer, if somebody did.
    pub(crate) fn hear(&mut self, told: Told) -> Result<Option<usize>, String> {
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
