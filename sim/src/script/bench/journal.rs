//! The bench's journal, in memory: syncs that succeed or fail, crashes, snapshots, follow-ups.

use pinfold_core::catalog::{Catalog, Event};
use pinfold_core::engine::{Config, Engine};
use pinfold_core::journal::record::Frame;
use pinfold_core::journal::snapshot;
use pinfold_core::policy::Genesis;
use pinfold_core::replay::{Replay, decode_event, follow};

use super::super::reader::{Fault, Line};
use super::Bench;

impl Bench {
    /// Makes everything durable, and shows what leaves and which follow-ups were done.
    pub(super) fn sync(&mut self, line: usize) -> Result<(), Fault> {
        let mut follow_ups = Vec::new();
        while let Some(batch) = self.engine.take_batch() {
            let records = self.decode(batch.bytes(), line)?;
            for (record, position) in records.iter().zip(self.records.len() as u64..) {
                let event = decode_event(record, position);
                match event.map_err(|error| Fault::new(line, error.to_string()))? {
                    Event::FollowedUp(follow_up) => follow_ups.push(follow_up),
                    Event::Genesis(_)
                    | Event::Recovered
                    | Event::Registered { .. }
                    | Event::Decided { .. } => {}
                }
            }
            self.records.extend(records);
            self.engine.commit(batch);
        }
        self.let_out();
        for follow_up in follow_ups {
            self.out.push(self.names.show_follow_up(&follow_up));
        }
        Ok(())
    }

    fn decode(&self, bytes: &[u8], line: usize) -> Result<Vec<Vec<u8>>, Fault> {
        let frame = Frame::decode(&self.job.epoch, bytes);
        let frame = frame.map_err(|error| Fault::new(line, error.to_string()))?;
        Ok(frame.records().map(|(_, record)| record.to_vec()).collect())
    }

    /// Takes a batch, which a host would now append and sync while the next one fills.
    pub(super) fn take(&mut self, line: &Line) -> Result<(), Fault> {
        let nothing = || line.fault("nothing to take: write hold and a command above");
        let batch = self.engine.take_batch().ok_or_else(nothing)?;
        self.batch = Some(batch);
        self.let_out();
        Ok(())
    }

    /// The batch that was taken is on disk; with `quiet=yes` nobody asks yet for what may leave.
    pub(super) fn commit(&mut self, line: &Line) -> Result<(), Fault> {
        let batch =
            self.batch.take().ok_or_else(|| line.fault("no batch is out: write take above"))?;
        let records = self.decode(batch.bytes(), line.number)?;
        self.records.extend(records);
        self.engine.commit(batch);
        if line.option("quiet") != Some("yes") {
            self.let_out();
        }
        Ok(())
    }

    /// The append fails; with `written=yes` the bytes are on disk all the same.
    pub(super) fn fail_sync(&mut self, line: &Line) -> Result<(), Fault> {
        let batch = self.batch.take().or_else(|| self.engine.take_batch());
        let batch =
            batch.ok_or_else(|| line.fault("nothing to sync: write hold and a command above"))?;
        if line.option("written") == Some("yes") {
            let records = self.decode(batch.bytes(), line.number)?;
            self.records.extend(records);
        }
        self.engine.fail(batch);
        self.let_out();
        Ok(())
    }

    /// The process ends; another recovers from the durable records. With `written=yes` the batch
    /// that was taken is among them.
    pub(super) fn crash(&mut self, line: &Line) -> Result<(), Fault> {
        let lost: Vec<_> = self.waiting.values().map(|asked| asked.label.clone()).collect();
        let lost = if lost.is_empty() { "nothing".to_string() } else { lost.join(", ") };
        self.waiting.clear();
        if let Some(batch) = self.batch.take()
            && line.option("written") == Some("yes")
        {
            let records = self.decode(batch.bytes(), line.number)?;
            self.records.extend(records);
        }
        let records = self.records.iter().map(Vec::as_slice);
        let engine = Engine::recover(Config::default(), records);
        self.engine = engine.map_err(|error| line.fault(error.to_string()))?;
        self.job = self.engine.catalog().job().clone();
        self.out.push(format!("crashed, unanswered: {lost}"));
        Ok(())
    }

    /// Goes on from the bytes of a snapshot; nothing that can be observed changes.
    pub(super) fn snapshot(&mut self, line: &Line) -> Result<(), Fault> {
        if !self.engine.is_idle() {
            return Err(line.fault("a snapshot needs everything durable: write sync above"));
        }
        let position = self.engine.position();
        let bytes = snapshot::encode(self.engine.catalog(), position);
        let (catalog, at) =
            snapshot::decode(&bytes).map_err(|error| line.fault(error.to_string()))?;
        let engine = Engine::resume(Config::default(), Replay::from_snapshot(catalog, at));
        self.engine = engine.map_err(|error| line.fault(error.to_string()))?;
        self.out.push("continued from a snapshot".into());
        Ok(())
    }

    /// Does follow-ups until none waits.
    pub(super) fn idle(&mut self, line: &Line) -> Result<(), Fault> {
        for _ in 0..10_000 {
            if !self.engine.follow_up() {
                return Ok(());
            }
        }
        Err(line.fault("the follow-ups never end"))
    }

    /// I11: the durable records, and a snapshot, give the live state.
    pub(super) fn check_journal(&self, line: usize) -> Result<(), Fault> {
        let replayed = self.replayed(line)?;
        let position = self.records.len() as u64;
        let bytes = snapshot::encode(&replayed, position);
        if self.engine.is_idle() && bytes != snapshot::encode(self.engine.catalog(), position) {
            return Err(Fault::new(line, "replaying the journal gives another state"));
        }
        let (restored, at) =
            snapshot::decode(&bytes).map_err(|error| Fault::new(line, error.to_string()))?;
        restored.check().map_err(|broken| Fault::new(line, format!("restored: {broken}")))?;
        if at != position || snapshot::encode(&restored, at) != bytes {
            return Err(Fault::new(line, "a snapshot's state has another snapshot"));
        }
        Ok(())
    }

    fn replayed(&self, line: usize) -> Result<Catalog, Fault> {
        let mut catalog =
            Catalog::new(self.genesis(line)?).map_err(|bad| Fault::new(line, bad.to_string()))?;
        for (record, position) in self.records.iter().zip(0..).skip(1) {
            follow(&mut catalog, record, position)
                .map_err(|error| Fault::new(line, error.to_string()))?;
        }
        Ok(catalog)
    }

    fn genesis(&self, line: usize) -> Result<Genesis, Fault> {
        match self.records.first().map(|record| decode_event(record, 0)) {
            Some(Ok(Event::Genesis(genesis))) => Ok(genesis),
            _ => Err(Fault::new(line, "no genesis")),
        }
    }
}
