//! The peer: what a user would write with SQLite, in WAL mode with `synchronous = FULL`.
//!
//! The same cycle with the same two acknowledgements, each one transaction: tables of checkpoints,
//! pins, turns and expired turns, and a connection that the clients share, because SQLite has one
//! writer at a time.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};

const CONVERSATIONS: u64 = 64;
const TURNS: i64 = 8;
const WARM_UP: Duration = Duration::from_millis(300);

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE checkpoints (id INTEGER PRIMARY KEY, endpoint INTEGER NOT NULL, state INTEGER);
    CREATE INDEX by_endpoint ON checkpoints (endpoint);
    CREATE TABLE objects (checkpoint INTEGER, number INTEGER, PRIMARY KEY (checkpoint, number));
    CREATE TABLE pins (checkpoint INTEGER, owner INTEGER, PRIMARY KEY (checkpoint, owner));
    CREATE TABLE turns (
        conversation INTEGER, place INTEGER, turn INTEGER, checkpoint INTEGER,
        PRIMARY KEY (conversation, place)
    );
    CREATE TABLE expired (conversation INTEGER, turn INTEGER, PRIMARY KEY (conversation, turn));
";

/// Cycles per second of so many clients, for so long.
pub(crate) fn cycles_per_second(dir: &Path, clients: u32, time: Duration) -> f64 {
    let folder = dir.join("sqlite");
    std::fs::create_dir(&folder).expect("a folder");
    let connection = Connection::open(folder.join("catalog.db")).expect("a database");
    connection.execute_batch(SCHEMA).expect("a schema");
    let connection = Mutex::new(connection);
    let (stop, cycles) = (AtomicBool::new(false), AtomicU64::new(0));
    let rate = thread::scope(|scope| {
        for client in 0..u64::from(clients) {
            let (connection, stop, cycles) = (&connection, &stop, &cycles);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    cycle(connection, client, number);
                    cycles.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(WARM_UP);
        let (begin, before) = (Instant::now(), cycles.load(Ordering::Relaxed));
        thread::sleep(time);
        let rate = (cycles.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        rate
    });
    drop(connection);
    std::fs::remove_dir_all(&folder).expect("removed");
    rate
}

fn cycle(connection: &Mutex<Connection>, client: u64, number: u64) {
    let conversation = (number + 4 * client) % CONVERSATIONS;
    let id = (client << 40 | number).cast_signed();
    let (client, conversation) = (client.cast_signed(), conversation.cast_signed());
    let pinned = prepare(connection, client, conversation, id).expect("a first transaction");
    publish(connection, client, conversation, (id, pinned)).expect("a second transaction");
}

fn prepare(
    connection: &Mutex<Connection>,
    client: i64,
    conversation: i64,
    id: i64,
) -> rusqlite::Result<Option<i64>> {
    let mut connection = connection.lock().expect("nobody panicked");
    let work = connection.transaction()?;
    let last: Option<i64> = work
        .prepare_cached(
            "SELECT checkpoint FROM turns WHERE conversation = ? ORDER BY place DESC LIMIT 1",
        )?
        .query_row([conversation], |row| row.get(0))
        .optional()?;
    if let Some(last) = last {
        work.prepare_cached("INSERT OR IGNORE INTO pins VALUES (?, ?)")?.execute([last, client])?;
    }
    work.prepare_cached("INSERT INTO checkpoints VALUES (?, ?, 0)")?.execute([id, id])?;
    for object in 0..4 {
        work.prepare_cached("INSERT INTO objects VALUES (?, ?)")?.execute([id, object])?;
    }
    work.prepare_cached("INSERT INTO pins VALUES (?, ?)")?.execute([id, client])?;
    work.commit()?;
    Ok(last)
}

fn publish(
    connection: &Mutex<Connection>,
    client: i64,
    conversation: i64,
    (id, pinned): (i64, Option<i64>),
) -> rusqlite::Result<()> {
    let mut connection = connection.lock().expect("nobody panicked");
    let work = connection.transaction()?;
    work.prepare_cached("UPDATE checkpoints SET state = 1 WHERE id = ?")?.execute([id])?;
    let place: i64 = work
        .prepare_cached("SELECT coalesce(max(place), 0) + 1 FROM turns WHERE conversation = ?")?
        .query_row([conversation], |row| row.get(0))?;
    work.prepare_cached("INSERT INTO turns VALUES (?, ?, ?, ?)")?.execute(params![
        conversation,
        place,
        id,
        id
    ])?;
    for checkpoint in [Some(id), pinned].into_iter().flatten() {
        work.prepare_cached("DELETE FROM pins WHERE checkpoint = ? AND owner = ?")?
            .execute([checkpoint, client])?;
    }
    let old: Option<(i64, i64)> = work
        .prepare_cached("SELECT turn, checkpoint FROM turns WHERE conversation = ? AND place = ?")?
        .query_row([conversation, place - TURNS], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((turn, checkpoint)) = old {
        work.prepare_cached("DELETE FROM turns WHERE conversation = ? AND place = ?")?
            .execute([conversation, place - TURNS])?;
        work.prepare_cached("INSERT INTO expired VALUES (?, ?)")?.execute([conversation, turn])?;
        work.prepare_cached("DELETE FROM objects WHERE checkpoint = ?")?.execute([checkpoint])?;
        work.prepare_cached("DELETE FROM checkpoints WHERE id = ?")?.execute([checkpoint])?;
    }
    work.commit()
}
