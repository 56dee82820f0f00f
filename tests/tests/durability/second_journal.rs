//! The same history on two journals that share no code: segments, and a table of redb.
//!
//! Protects the segments' format from a fault that writer and reader have in common.

use std::path::Path;
use std::sync::mpsc::TryIter;

use pinfold_core::engine::{Config, Effect, Engine};
use pinfold_core::id::Epoch;
use pinfold_core::journal::record::Frame;
use pinfold_core::journal::snapshot;
use pinfold_host::journal::{AppendError, Journal};
use pinfold_host::node::{Effects, Node, NodeClient, NodeError};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::job::{self, Calls};
use crate::load::{Client, Draws, Shared};
use crate::wire::{Answer, Ask};

/// Records by their numbers.
const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");
const STEPS: u32 = 600;
const CLIENTS: u8 = 3;

/// A journal that keeps each record as a row.
struct Table {
    database: Database,
    epoch: Epoch,
}

impl Table {
    /// The table of a file, which is created when it is missing, and its records.
    fn open(path: &Path, epoch: Epoch) -> Result<(Self, Vec<Vec<u8>>), redb::Error> {
        let database = Database::create(path)?;
        let writes = database.begin_write()?;
        writes.open_table(RECORDS)?;
        writes.commit()?;
        let table = database.begin_read()?.open_table(RECORDS)?;
        let rows = table.iter()?.map(|row| row.map(|(_, record)| record.value().to_vec()));
        let records = rows.collect::<Result<_, _>>()?;
        Ok((Self { database, epoch }, records))
    }

    fn keep(&self, frame: &Frame<'_>) -> Result<(), redb::Error> {
        let writes = self.database.begin_write()?;
        {
            let mut table = writes.open_table(RECORDS)?;
            for (number, record) in frame.records() {
                table.insert(number, record)?;
            }
        }
        // It syncs, which is redb's default.
        Ok(writes.commit()?)
    }
}

impl Journal for Table {
    fn append(&mut self, frame: &[u8]) -> Result<(), AppendError> {
        let frame = Frame::decode(&self.epoch, frame).map_err(AppendError::NotAFrame)?;
        self.keep(&frame).map_err(|error| AppendError::Other(Box::new(error)))
    }
}

/// One of the two nodes.
struct Half {
    node: Node,
    client: NodeClient,
    effects: Effects,
}

impl Half {
    fn new((node, effects): (Node, Effects)) -> Self {
        let client = node.client();
        Self { node, client, effects }
    }

    fn on_segments(dir: &Path) -> Self {
        let agreed = |_: &_| Ok::<_, NodeError>(());
        let (node, effects, recovery) = Node::open_with(dir, job::SMALL, agreed).unwrap();
        assert_eq!(recovery.cut_bytes, 0);
        Self::new((node, effects))
    }

    fn on_a_table(path: &Path, epoch: Epoch) -> Self {
        let (table, records) = Table::open(path, epoch).unwrap();
        let records = records.iter().map(Vec::as_slice);
        let engine = Engine::recover(Config::default(), records).unwrap();
        Self::new(Node::with_journal(engine, Box::new(table)).unwrap())
    }

    fn call(&mut self, ask: &Ask) -> Answer {
        self.client.answer_to(ask.clone()).expect("a node that runs")
    }

    fn effects(&self) -> TryIter<'_, Effect> {
        self.effects.try_iter()
    }

    /// The state once nothing is due any more, as the bytes of a snapshot.
    fn state(&self) -> Vec<u8> {
        loop {
            let look = |engine: &Engine, _| {
                engine.check().unwrap();
                let is_at_rest = engine.catalog().next_follow_up().is_none();
                is_at_rest.then(|| snapshot::encode(engine.catalog(), engine.position()))
            };
            if let Some(state) = self.client.inspect(look).unwrap() {
                return state;
            }
        }
    }
}

/// I11: both recover the same state, byte for byte of its canonical form, whenever they restart.
#[test]
fn two_journals_give_one_state() {
    for seed in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let (segments, table) = (dir.path().join("job"), dir.path().join("records.redb"));
        live_twice(seed, &segments, &table);
    }
}

fn live_twice(seed: u64, segments: &Path, table: &Path) {
    let genesis = job::genesis(&format!("two journals, {seed}"));
    let epoch = genesis.epoch;
    let left = Node::create_with(segments, genesis.clone(), job::SMALL).unwrap();
    let engine = Engine::create(Config::default(), genesis).unwrap();
    let (rows, none) = Table::open(table, epoch).unwrap();
    assert_eq!(none.len(), 0);
    let right = Node::with_journal(engine, Box::new(rows)).unwrap();
    let (mut left, mut right) = (Half::new(left), Half::new(right));
    let mut draws = Draws::new(seed);
    let mut clients: Vec<_> = (0..CLIENTS).map(|number| Client::new(number, seed)).collect();
    let mut shared = Shared::default();
    let (mut restarts, mut snapshots) = (0, 0);
    for step in 0..STEPS {
        let client = &mut clients[draws.below(u32::from(CLIENTS)) as usize];
        let ask = client.next(&mut shared);
        let answer = left.call(&ask);
        assert_eq!(right.call(&ask), answer, "seed {seed}, step {step}: {ask:?}");
        client.heard(answer, &mut shared).unwrap();
        let work: Vec<_> = left.effects().collect();
        assert_eq!(right.effects().collect::<Vec<_>>(), work, "seed {seed}, step {step}");
        for Effect::Delete { checkpoint, objects, .. } in work {
            shared.work.push((checkpoint, objects));
        }
        let state = left.state();
        assert!(right.state() == state, "seed {seed}, step {step}: {ask:?}");
        if draws.below(50) == 0 {
            snapshots += left.node.snapshots().taken;
            left.node.stop().unwrap();
            right.node.stop().unwrap();
            left = Half::on_segments(segments);
            right = Half::on_a_table(table, epoch);
            // A record says that they recovered, so both moved on by one.
            assert!(right.state() == left.state(), "seed {seed}, restarted after step {step}");
            assert!(
                snapshot::decode(&left.state()).unwrap().0 == snapshot::decode(&state).unwrap().0
            );
            restarts += 1;
        }
    }
    assert!(restarts > 3 && snapshots > 0, "{restarts} restarts, {snapshots} snapshots");
}
