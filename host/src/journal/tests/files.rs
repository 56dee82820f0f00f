//! The journal in a real folder: what is made, what is refused, and in which words.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pinfold_core::id::Epoch;
use pinfold_core::journal::record::{FrameWriter, Header};
use tempfile::TempDir;

use super::history::History;
use super::*;

/// Segments of a few frames; the background works on its own threads.
const SMALL: JournalOptions = JournalOptions {
    first_segment_bytes: 512,
    segment_bytes: 1024,
    snapshot_bytes: u64::MAX,
    inline: false,
};

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn create(dir: &Path, options: JournalOptions) -> SegmentLog {
    SegmentLog::create(dir, history().epoch, options).unwrap()
}

fn history() -> History {
    History::of_turns(6)
}

/// A journal of the whole history, in these sizes.
fn written(dir: &Path, options: JournalOptions) -> History {
    let history = history();
    let mut log = create(dir, options);
    for frame in &history.frames {
        log.append(frame).unwrap();
    }
    history
}

fn open(dir: &Path) -> Result<(SegmentLog, Recovered), JournalError> {
    SegmentLog::open(dir, JournalOptions::default())
}

/// Opens the journal, which must hold so many frames of the history.
fn holds(dir: &Path, history: &History, frames: usize) -> SegmentLog {
    let (log, recovered) = open(dir).unwrap();
    let (records, state) = &history.states[frames];
    assert_eq!((log.next_sequence(), recovered.replay.position()), (*records, *records));
    assert!(History::state_of(&recovered.replay) == *state);
    let catalog = recovered.replay.catalog().expect("a genesis");
    assert_eq!(catalog.job().epoch, history.epoch);
    log
}

fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("journal")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(end));
    paths.sort();
    paths
}

fn first_segment(dir: &Path) -> PathBuf {
    dir.join("journal/00000000000000000000.log")
}

/// The bytes of a segment without the zeros behind its last frame.
fn used(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    bytes
}

fn wait_until(what: impl Fn() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it takes too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn what_was_appended_is_recovered() {
    for options in [JournalOptions::default(), SMALL] {
        let dir = folder();
        let history = written(dir.path(), options);
        holds(dir.path(), &history, history.frames.len());
    }
}

/// A segment is set aside whole, and the next one is twice as large.
#[test]
fn segments_are_set_aside_and_grow() {
    let dir = folder();
    written(dir.path(), SMALL);
    let lengths: Vec<_> =
        files(dir.path(), ".log").iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert!(lengths.len() > 3, "{lengths:?}");
    assert_eq!(lengths[..2], [512, 1024]);
    assert!(lengths[2..].iter().all(|length| *length == 1024));
}

/// A frame that no segment has room for gets one of its own size.
#[test]
fn a_large_frame_gets_a_segment_of_its_own() {
    let dir = folder();
    let tiny = JournalOptions { first_segment_bytes: 64, segment_bytes: 64, ..SMALL };
    let history = written(dir.path(), tiny);
    let log = holds(dir.path(), &history, history.frames.len());
    drop(log);
    // The first, which had no room at all, was replaced.
    assert_eq!(files(dir.path(), ".log").len(), history.frames.len());
}

/// On a thread of its own: what a snapshot covers is removed, and the state is the same.
#[test]
fn snapshots_replace_segments() {
    let dir = folder();
    let history = History::of_turns(40);
    let options = JournalOptions { snapshot_bytes: 2048, ..SMALL };
    let mut log = create(dir.path(), options);
    let report = log.snapshots();
    for frame in &history.frames {
        log.append(frame).unwrap();
    }
    wait_until(|| report.lock().unwrap().taken > 0);
    drop(log);
    let report = report.lock().unwrap().clone();
    assert_eq!(report.failure, None);
    let oldest = dir.path().join(format!("journal/{:020}.log", report.position));
    assert_eq!(files(dir.path(), ".log")[0], oldest, "what it stands for is removed");
    assert_eq!(files(dir.path(), ".snapshot").len(), 1);
    assert_eq!(files(dir.path(), ".tmp"), [] as [PathBuf; 0], "nothing is left half made");
    let (log, recovered) = open(dir.path()).unwrap();
    assert_eq!(recovered.snapshot_records, report.position);
    drop((log, recovered));
    holds(dir.path(), &history, history.frames.len());
}

#[test]
fn an_empty_frame_adds_nothing() {
    let dir = folder();
    create(dir.path(), SMALL).append(&[]).unwrap();
    assert!(!SegmentLog::exists(dir.path()).unwrap());
}

#[test]
fn folders_are_created_and_only_one_journal_in_them() {
    let above = folder();
    let dir = above.path().join("a/b");
    assert!(!SegmentLog::exists(&dir).unwrap());
    assert!(matches!(open(&dir), Err(JournalError::Missing { .. })));
    assert!(matches!(read(&dir), Err(JournalError::Missing { .. })));
    assert!(!dir.exists(), "looking creates nothing");
    // One without a record never began, and gives way to another.
    drop(create(&dir, SMALL));
    assert!(!SegmentLog::exists(&dir).unwrap());
    let history = written(&dir, SMALL);
    assert!(SegmentLog::exists(&dir).unwrap());
    let again = SegmentLog::create(&dir, history.epoch, SMALL);
    assert!(matches!(again, Err(JournalError::AlreadyExists { .. })));
}

#[test]
fn one_process_at_a_time() {
    let dir = folder();
    let log = create(dir.path(), SMALL);
    assert!(matches!(open(dir.path()), Err(JournalError::Locked { .. })));
    let second = SegmentLog::create(dir.path(), history().epoch, SMALL);
    assert!(matches!(second, Err(JournalError::Locked { .. })));
    drop(log);
    assert!(open(dir.path()).is_ok());
}

/// Scenario B67: tear the last frame at every byte, append, crash, replay.
#[test]
fn a_torn_tail_is_cut_before_the_next_append() {
    let dir = folder();
    let history = written(dir.path(), JournalOptions::default());
    let path = first_segment(dir.path());
    let (bytes, frames) = (used(&path), history.frames.len());
    let last = history.frames[frames - 1].len();
    for torn in bytes.len() - last..bytes.len() {
        for segment in files(dir.path(), ".log") {
            fs::remove_file(segment).unwrap();
        }
        fs::write(&path, &bytes[..torn]).unwrap();
        let (mut log, recovered) = open(dir.path()).unwrap();
        let cut = used(&path).len();
        assert_eq!(cut, bytes.len() - last);
        assert!(recovered.cut_bytes <= (torn - cut) as u64);
        log.append(&history.frames[frames - 1]).unwrap();
        drop(log);
        assert_eq!(files(dir.path(), ".log").len(), 2, "what was cut is not written again");
        holds(dir.path(), &history, frames);
    }
}

/// Protocol 7: damage is refused with its place, and nothing is touched.
#[test]
fn damage_is_refused_and_left_alone() {
    let dir = folder();
    written(dir.path(), SMALL);
    for (number, segment) in files(dir.path(), ".log").iter().enumerate() {
        let good = fs::read(segment).unwrap();
        let mut bytes = good.clone();
        bytes[Header::BYTES + 30] ^= 1;
        fs::write(segment, &bytes).unwrap();
        let before = files(dir.path(), "");
        for error in [open(dir.path()).map(|_| ()).unwrap_err(), read(dir.path()).unwrap_err()] {
            assert!(error.is_damage(), "{error}");
            let name = segment.file_name().unwrap().to_string_lossy();
            let text = error.to_string();
            assert!(text.contains(&*name) && text.contains("at byte 40"), "{number}: {text}");
        }
        assert_eq!(fs::read(segment).unwrap(), bytes);
        assert_eq!(files(dir.path(), ""), before);
        fs::write(segment, good).unwrap();
    }
    open(dir.path()).unwrap();
}

/// A segment that is missing, twice, of another job or torn in the middle is named.
#[test]
fn segments_must_fit_together() {
    let dir = folder();
    written(dir.path(), SMALL);
    let segments = files(dir.path(), ".log");
    let refused = || open(dir.path()).map(|_| ()).unwrap_err();
    let moved = |path: &Path, check: &dyn Fn(JournalError)| {
        let bytes = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        check(refused());
        fs::write(path, bytes).unwrap();
    };
    moved(&segments[1], &|error| assert!(matches!(error, JournalError::Lacking { .. }), "{error}"));
    moved(&segments[0], &|error| assert!(matches!(error, JournalError::Lacking { from: 0, .. })));
    let changed = |place: &Path, bytes: &[u8], check: &dyn Fn(&JournalError) -> bool| {
        let good = fs::read(place).unwrap();
        fs::write(place, bytes).unwrap();
        let error = refused();
        assert!(check(&error), "{error}");
        fs::write(place, good).unwrap();
    };
    let other = |name| fs::read(&segments[name]).unwrap();
    let foreign = |error: &JournalError| matches!(error, JournalError::Foreign { .. });
    changed(&segments[2], &other(1), &foreign);
    let mut epoch = other(2);
    let first_sequence = Header::decode(&epoch).unwrap().first_sequence;
    let header = Header { epoch: Epoch::from_u128(9), first_sequence };
    epoch[..Header::BYTES].copy_from_slice(&header.encode());
    epoch.truncate(Header::BYTES);
    changed(&segments[2], &epoch, &foreign);
    let torn = &used(&segments[1]);
    changed(&segments[1], &torn[..torn.len() - 3], &|error| {
        matches!(error, JournalError::TornInside { .. })
    });
    open(dir.path()).unwrap();
}

#[test]
fn unknown_versions_are_refused_by_name() {
    let dir = folder();
    let history = written(dir.path(), JournalOptions::default());
    let path = first_segment(dir.path());
    let bytes = fs::read(&path).unwrap();
    let last_at = used(&path).len() - history.frames.last().unwrap().len();
    for at in [8, last_at + 4] {
        let mut newer = bytes.clone();
        newer[at] = 2;
        fs::write(&path, &newer).unwrap();
        let error = open(dir.path()).unwrap_err();
        assert!(
            matches!(&error, JournalError::UnknownVersion { offset, version: 2, .. }
                if *offset == at as u64),
            "{error:?}"
        );
        assert!(!error.is_damage());
    }
    fs::write(&path, &bytes).unwrap();
    fs::write(dir.path().join("journal/3.log"), b"").unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(&error, JournalError::Unexpected { .. }));
    assert!(error.to_string().contains("may need a newer pinfold"), "{error}");
    let created = SegmentLog::create(dir.path(), history.epoch, SMALL);
    assert!(matches!(created, Err(JournalError::Unexpected { .. })));
}

/// A snapshot that is damaged, newer, misnamed, or without the segments behind it.
#[test]
fn snapshots_must_be_good() {
    let dir = folder();
    let history = History::of_turns(40);
    let options = JournalOptions { snapshot_bytes: 2048, inline: true, ..SMALL };
    let mut log = create(dir.path(), options);
    for frame in &history.frames {
        log.append(frame).unwrap();
    }
    drop(log);
    let snapshot = files(dir.path(), ".snapshot").pop().unwrap();
    let good = fs::read(&snapshot).unwrap();
    let refused = || open(dir.path()).map(|_| ()).unwrap_err();
    let mut bytes = good.clone();
    bytes[60] ^= 1;
    fs::write(&snapshot, &bytes).unwrap();
    assert!(matches!(refused(), JournalError::BadSnapshot { .. }));
    bytes.clone_from(&good);
    bytes[8] = 9;
    fs::write(&snapshot, &bytes).unwrap();
    assert!(matches!(refused(), JournalError::UnknownVersion { version: 9, offset: 8, .. }));
    fs::remove_file(&snapshot).unwrap();
    assert!(matches!(refused(), JournalError::Lacking { from: 0, .. }));
    let misnamed = dir.path().join("journal/00000000000000000001.snapshot");
    fs::write(&misnamed, &good).unwrap();
    assert!(matches!(refused(), JournalError::Foreign { .. }));
    fs::remove_file(&misnamed).unwrap();
    fs::write(&snapshot, &good).unwrap();
    for segment in files(dir.path(), ".log") {
        fs::rename(&segment, segment.with_extension("kept")).unwrap();
    }
    let error = refused();
    assert!(matches!(error, JournalError::Lacking { .. }) && error.is_damage(), "{error}");
    for segment in files(dir.path(), ".kept") {
        fs::rename(&segment, segment.with_extension("log")).unwrap();
    }
    holds(dir.path(), &history, history.frames.len());
}

#[test]
fn something_else_is_no_journal() {
    let dir = folder();
    written(dir.path(), SMALL);
    for bytes in [&b""[..], b"PINFOLDJ", b"something else altogether, and long enough to be one"] {
        fs::write(first_segment(dir.path()), bytes).unwrap();
        let error = open(dir.path()).unwrap_err();
        assert!(matches!(error, JournalError::BadHeader { .. }), "{error:?}");
    }
}

/// A frame that would make the journal unreadable is refused before it is written.
#[test]
fn only_the_next_frame_is_taken() {
    let history = history();
    let frames = &history.frames;
    let mut foreign = FrameWriter::default();
    foreign.begin(history.states[3].0);
    foreign.push(b"record").unwrap();
    let foreign = foreign.finish(&Epoch::from_u128(9)).to_vec();
    let two = [frames[3].clone(), frames[4].clone()].concat();
    for wrong in [foreign, frames[4].clone(), frames[2].clone(), frames[3][1..].to_vec(), two] {
        let dir = folder();
        let mut log = create(dir.path(), SMALL);
        for frame in &frames[..3] {
            log.append(frame).unwrap();
        }
        let refused = log.append(&wrong).unwrap_err();
        assert!(matches!(refused, AppendError::NotAFrame(_) | AppendError::NotNext { .. }));
        assert!(matches!(log.append(&frames[3]), Err(AppendError::Poisoned)));
        drop(log);
        holds(dir.path(), &history, 3);
    }
}

/// A reader takes no lock, changes nothing, and sees what the owner has made durable.
#[test]
fn a_reader_looks_on_from_beside() {
    let dir = folder();
    let history = History::of_turns(60);
    let options = JournalOptions { snapshot_bytes: 4096, ..SMALL };
    let mut log = create(dir.path(), options);
    log.append(&history.frames[0]).unwrap();
    let (mut seen, mut appended) = (0, 1);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut readings = Vec::new();
            while readings
                .last()
                .is_none_or(|(records, _)| *records < history.states.last().unwrap().0)
            {
                let reading = read(dir.path()).unwrap();
                assert_eq!(reading.epoch, history.epoch);
                let state = pinfold_core::journal::snapshot::encode(&reading.catalog, 0);
                readings.push((reading.records, state));
            }
            readings
        });
        for frame in &history.frames[1..] {
            log.append(frame).unwrap();
            appended += 1;
        }
        for (records, state) in reader.join().unwrap() {
            assert!(records >= seen, "a reader never goes back");
            let known = history.states.iter().find(|(there, _)| *there == records);
            assert!(known.expect("whole frames").1.as_ref() == Some(&state));
            seen = records;
        }
    });
    assert_eq!(appended, history.frames.len());
    log.append(&[]).unwrap();
}
