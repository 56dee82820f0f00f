//! Crashes and failures at every step: nothing acknowledged is lost, and nothing appears that was
//! never written. Protocol 7.

use std::path::Path;
use std::sync::Arc;

use super::history::History;
use super::lossy::{Left, LossyDisk, Mishap};
use super::*;
use crate::disk::Disk;

/// Segments of a few frames, and a snapshot every few segments, each step of it in its place.
const SMALL: JournalOptions = JournalOptions {
    first_segment_bytes: 512,
    segment_bytes: 2048,
    snapshot_bytes: 4096,
    inline: true,
};

const DIR: &str = "/data";

fn create(disk: &LossyDisk, history: &History) -> Result<SegmentLog, JournalError> {
    SegmentLog::create_on(Arc::new(disk.clone()), Path::new(DIR), history.epoch, SMALL)
}

fn open(disk: &LossyDisk) -> Result<(SegmentLog, Recovered), JournalError> {
    SegmentLog::open_on(Arc::new(disk.clone()), Path::new(DIR), SMALL)
}

/// Appends the frames behind the first `from`, up to the first error; how many are acknowledged.
fn append_from(log: &mut SegmentLog, history: &History, from: usize) -> usize {
    let mut acknowledged = from;
    for frame in &history.frames[from..] {
        if log.append(frame).is_err() {
            let again = log.append(frame);
            assert!(matches!(again, Err(AppendError::Poisoned)), "an error is final");
            break;
        }
        acknowledged += 1;
    }
    acknowledged
}

/// Opens what a crash left, and finds the acknowledged frames, or those and the one under way.
/// How many there are now.
fn recover(disk: &LossyDisk, history: &History, acknowledged: usize) -> (SegmentLog, usize) {
    let (log, recovered) = match open(disk) {
        Ok(opened) => opened,
        // A journal whose genesis was never acknowledged may be missing.
        Err(JournalError::Missing { .. }) if acknowledged == 0 => {
            return (create(disk, history).unwrap(), 0);
        }
        Err(error) => panic!("{acknowledged} frames were acknowledged: {error}"),
    };
    let state = History::state_of(&recovered.replay);
    let found = history.states.iter().position(|(records, _)| *records == log.next_sequence());
    let found = found.expect("whole frames");
    assert!((acknowledged..=acknowledged + 1).contains(&found), "{acknowledged}, found {found}");
    assert_eq!(recovered.replay.position(), history.states[found].0);
    assert!(state == history.states[found].1, "another state after {found} frames");
    (log, found)
}

/// Everything that may be left, and some of it in a few different ways.
fn every_left(step: u64) -> impl Iterator<Item = Left> {
    let some = (0..4).map(move |number| Left::Some(step * 4 + number + 1));
    [Left::Nothing, Left::Everything].into_iter().chain(some)
}

fn steps_of_whole_run(history: &History) -> u64 {
    let disk = LossyDisk::default();
    let mut log = create(&disk, history).unwrap();
    assert_eq!(append_from(&mut log, history, 0), history.frames.len());
    let report = log.snapshots().lock().unwrap().clone();
    assert!(report.taken >= 2 && report.failure.is_none(), "{report:?}");
    drop(log);
    let names = disk.files();
    let count =
        |end: &str| names.iter().filter(|path| path.to_string_lossy().ends_with(end)).count();
    assert_eq!((count(".snapshot"), count(".tmp")), (1, 0), "{names:?}");
    assert!(count(".log") < 5, "what is covered is removed: {names:?}");
    disk.steps()
}

/// A crash at every step of appends, rolls, snapshots and cleaning; then the rest is appended to
/// what was left, and all of it is there after another crash.
#[test]
fn a_crash_at_every_step_loses_nothing() {
    let history = History::of_turns(24);
    for step in 1..=steps_of_whole_run(&history) {
        let crashed = LossyDisk::default();
        crashed.in_steps(step, Mishap::Stop);
        let acknowledged =
            create(&crashed, &history).map_or(0, |mut log| append_from(&mut log, &history, 0));
        assert!(crashed.has_stopped());
        for left in every_left(step) {
            let disk = crashed.copy();
            disk.start_again(left);
            let (mut log, found) = recover(&disk, &history, acknowledged);
            assert_eq!(append_from(&mut log, &history, found), history.frames.len());
            disk.start_again(Left::Nothing);
            drop(log);
            let (_, found) = recover(&disk, &history, history.frames.len());
            assert_eq!(found, history.frames.len());
        }
    }
}

/// A crash at every step of a recovery, over and over, changes nothing of what is found.
#[test]
fn a_crash_during_recovery_loses_nothing() {
    let history = History::of_turns(12);
    let steps = steps_of_whole_run(&History::of_turns(24)) / 2;
    for step in (1..steps).step_by(7) {
        let crashed = LossyDisk::default();
        crashed.in_steps(step, Mishap::Stop);
        let acknowledged =
            create(&crashed, &history).map_or(0, |mut log| append_from(&mut log, &history, 0));
        if acknowledged == 0 {
            continue;
        }
        crashed.start_again(Left::Some(step));
        for again in 1.. {
            let disk = crashed.copy();
            disk.in_steps(again, Mishap::Stop);
            if open(&disk).is_ok() {
                break;
            }
            assert!(disk.has_stopped(), "only the crash keeps it from opening");
            disk.start_again(Left::Some(again));
            recover(&disk, &history, acknowledged);
        }
    }
}

/// Scenario B67: every byte of an append is the last that reached the disk.
#[test]
fn a_crash_at_every_byte_of_an_append() {
    let history = History::of_turns(4);
    let roomy = JournalOptions { first_segment_bytes: 1 << 16, ..SMALL };
    for (number, frame) in history.frames.iter().enumerate().skip(1) {
        let disk = LossyDisk::default();
        let (shared, dir) = (Arc::new(disk.clone()), Path::new(DIR));
        let mut log = SegmentLog::create_on(shared, dir, history.epoch, roomy).unwrap();
        for frame in &history.frames[..number] {
            log.append(frame).unwrap();
        }
        // The first step of an append is the write itself.
        disk.in_steps(1, Mishap::Stop);
        assert!(log.append(frame).is_err());
        for bytes in 0..=frame.len() {
            let disk = disk.copy();
            disk.start_again(Left::Bytes(bytes));
            let (_log, found) = recover(&disk, &history, number);
            assert_eq!(found, number + usize::from(bytes == frame.len()));
        }
    }
}

/// Scenario B68: a call that fails at any step is final for what it was part of. What was
/// acknowledged is found, with the power on and after a cut.
#[test]
fn a_failure_at_every_step_is_final_and_loses_nothing() {
    let history = History::of_turns(24);
    for step in 1..=steps_of_whole_run(&history) {
        let failing = LossyDisk::default();
        failing.in_steps(step, Mishap::Fail);
        let acknowledged =
            create(&failing, &history).map_or(0, |mut log| append_from(&mut log, &history, 0));
        for left in every_left(step) {
            let disk = failing.copy();
            disk.start_again(left);
            let (mut log, found) = recover(&disk, &history, acknowledged);
            assert_eq!(append_from(&mut log, &history, found), history.frames.len());
        }
        // The process starts anew, the machine goes on, and then it is cut off: what the second
        // process handed out as recovered must be there.
        let disk = failing.copy();
        let (mut log, found) = recover(&disk, &history, acknowledged);
        let cut_off = disk.copy();
        cut_off.start_again(Left::Nothing);
        let (_, again) = recover(&cut_off, &history, acknowledged);
        assert_eq!(found, again, "step {step}");
        // And so must be what that process appended.
        assert_eq!(append_from(&mut log, &history, found), history.frames.len());
        disk.start_again(Left::Nothing);
        drop(log);
        let (_, found) = recover(&disk, &history, history.frames.len());
        assert_eq!(found, history.frames.len());
    }
}

/// A snapshot that cannot be taken costs nothing but room: commits go on, and it is told.
#[test]
fn a_failed_snapshot_is_told_and_tried_again() {
    let history = History::of_turns(24);
    let mut failures = 0;
    for step in 1..=steps_of_whole_run(&history) {
        let disk = LossyDisk::default();
        disk.in_steps(step, Mishap::Fail);
        let Ok(mut log) = create(&disk, &history) else { continue };
        let report = log.snapshots();
        for frame in &history.frames {
            if log.append(frame).is_err() {
                break;
            }
            failures += u32::from(report.lock().unwrap().failure.is_some());
        }
        if log.next_sequence() == history.states.last().unwrap().0 {
            let report = report.lock().unwrap();
            assert!(report.taken >= 1, "another one was taken: {report:?}");
        }
    }
    assert!(failures > 0, "some step is a snapshot's");
}

/// One journal, one process: a second opening is refused, until the first one ends.
#[test]
fn the_lock_is_free_after_a_crash() {
    let history = History::of_turns(1);
    let disk = LossyDisk::default();
    let mut log = create(&disk, &history).unwrap();
    append_from(&mut log, &history, 0);
    assert!(matches!(open(&disk), Err(JournalError::Locked { .. })));
    disk.start_again(Left::Nothing);
    assert!(open(&disk).is_ok());
}

/// The disk itself keeps its promises, or none of the above means anything.
#[test]
fn the_lossy_disk_loses_what_was_not_synced() {
    let disk = LossyDisk::default();
    let (path, other) = (Path::new("/d/a"), Path::new("/d/b"));
    let mut file = disk.create(path).unwrap();
    file.write_at(0, b"synced").unwrap();
    file.sync().unwrap();
    disk.sync_folder(Path::new("/d")).unwrap();
    file.write_at(0, b"change").unwrap();
    disk.rename(path, other).unwrap();
    assert_eq!(disk.read(other).unwrap(), b"change");
    for (left, name, bytes) in [
        (Left::Nothing, path, &b"synced"[..]),
        (Left::Everything, other, b"change"),
        (Left::Bytes(2), other, b"chnced"),
    ] {
        let copy = disk.copy();
        copy.start_again(left);
        assert_eq!(copy.files(), [name]);
        assert_eq!(copy.read(name).unwrap(), bytes);
    }
    disk.in_steps(1, Mishap::Fail);
    assert!(file.sync().is_err());
    file.sync().unwrap();
    disk.start_again(Left::Everything);
    assert_eq!(disk.read(other).unwrap(), b"synced", "a failed sync is never made good");
}
