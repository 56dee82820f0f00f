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

use pinfold_host::journal;

use crate::job::{Owner, turn};
use crate::judge;
use crate::life::Life;
use crate::load::Draws;
use crate::process::Process;
use crate::wire::Told;

/// A folder's life, in kills.
const KILLS_PER_FOLDER: u32 = 30;
/// How long a node may run before it is killed.
const LOAD_MICROS: u32 = 120_000;

/// What happened, so that a run that tries nothing is seen.
#[derive(Debug, Default)]
struct Happened {
    kills_of_recoveries: u32,
    kills_at_rest: u32,
    kills_under_load: u32,
    acknowledged: usize,
    under_way: usize,
    snapshots: u64,
    rolls: u64,
    records: u64,
    leftovers: u32,
    /// How long the last start took that was not killed.
    opening_micros: u32,
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
            let lived = live(&mut life, dir.path(), &mut happened);
            lived.unwrap_or_else(|why| panic!("seed {seed}, folder {folder}, kill {kill}: {why}"));
        }
        let ended = end(&mut life, dir.path(), &mut happened);
        ended.unwrap_or_else(|why| panic!("seed {seed}, folder {folder}, at the end: {why}"));
    }
    eprintln!("{happened:?}");
    assert!(happened.kills_of_recoveries * 10 > kills, "too few recoveries are killed");
    assert!(happened.kills_under_load * 2 > kills, "too few nodes are killed under load");
    assert!(happened.acknowledged > 10 * kills as usize, "too little is asked");
    assert!(happened.under_way > kills as usize, "too little is under way");
    assert!(happened.rolls > 0 && happened.snapshots > 0, "the journal is too small");
    assert!(happened.leftovers > 0, "no kill leaves anything to clean up");
}

/// A job that is killed while it begins is there or is none, and the next start goes on with it or
/// begins it.
#[test]
fn a_job_killed_while_it_begins_is_whole_or_none() {
    let mut draws = Draws::new(number_of("PINFOLD_SEED", 0x5eed));
    let mut begin_micros = 1;
    let mut there = [0, 0];
    for kill in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let mut node = Process::node(dir.path());
        node.starts();
        thread::sleep(Duration::from_micros(u64::from(draws.below(2 * begin_micros))));
        let said = node.kill();
        let is_there = judge::exists(dir.path());
        assert!(is_there || said.is_empty(), "kill {kill}: {said:?}, and there is no journal");
        there[usize::from(is_there)] += 1;

        let mut node = Process::node(dir.path());
        node.starts();
        let starts = Instant::now();
        node.opened().unwrap();
        if !is_there {
            begin_micros = u32::try_from(starts.elapsed().as_micros()).unwrap();
        }
        let mut worker = Owner::worker("w", &mut node);
        assert!(worker.publish(1, turn(1, 1), &mut node).1.is_ok());
        node.kill();
        let reading = journal::read(dir.path()).unwrap();
        assert_eq!(reading.catalog.gauges().turns, 1, "kill {kill}");
    }
    assert!(there[0] > 0 && there[1] > 0, "without and with a journal: {there:?}");
}

/// From one start of a node to its kill, and what must be true then.
fn live(life: &mut Life<'_>, dir: &Path, happened: &mut Happened) -> Result<(), String> {
    let mut node = Process::node(dir);
    node.starts();
    let starts = Instant::now();
    if life.draws.below(3) == 0 {
        thread::sleep(Duration::from_micros(u64::from(life.draws.below(happened.opening_micros))));
        match &node.kill()[..] {
            [] => happened.kills_of_recoveries += 1,
            [Told::Opened { .. }] => happened.kills_at_rest += 1,
            told => return Err(format!("a node that nobody asked said {told:?}")),
        }
    } else {
        node.opened().map_err(|why| format!("not opened: {why}"))?;
        happened.opening_micros = u32::try_from(starts.elapsed().as_micros()).unwrap_or(u32::MAX);
        life.resume(&mut node)?;
        if life.draws.below(4) == 0 {
            life.judge_at_rest(&mut node)?;
        }
        let until = Duration::from_micros(u64::from(life.draws.below(LOAD_MICROS)));
        life.load(&mut node, Instant::now() + until)?;
        for told in node.kill() {
            life.hear(told)?;
        }
        happened.kills_under_load += 1;
    }
    happened.under_way += life.under_way();
    happened.leftovers += u32::from(has_leftovers(dir));
    life.judge_journal()
}

/// Once more with a node that lives on.
fn end(life: &mut Life<'_>, dir: &Path, happened: &mut Happened) -> Result<(), String> {
    let mut node = Process::node(dir);
    node.opened().map_err(|why| format!("not opened: {why}"))?;
    life.resume(&mut node)?;
    life.judge_at_rest(&mut node)?;
    let said = node.end();
    if !said.is_empty() {
        return Err(format!("a node that had ended said {said:?}"));
    }
    life.judge_journal()?;
    happened.acknowledged += life.judge.acknowledged();
    happened.snapshots += life.judge.snapshots;
    happened.rolls += life.judge.rolls;
    happened.records += life.judge.records;
    Ok(())
}

/// Whether a kill left something under a temporary name: room set aside, or a half-made file.
fn has_leftovers(dir: &Path) -> bool {
    let names = std::fs::read_dir(dir.join("journal")).into_iter().flatten().flatten();
    names.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"))
}
