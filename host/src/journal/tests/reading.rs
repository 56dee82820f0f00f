//! Looking at a journal from beside: its records one by one, and every file of it.

use std::fs::{self, OpenOptions};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pinfold_core::catalog::Event;
use pinfold_core::journal::record::{self, Header};
use tempfile::TempDir;

use super::history::History;
use super::*;

/// Segments of a few frames; snapshots are taken within the append that makes them due.
const SMALL: JournalOptions = JournalOptions {
    first_segment_bytes: 512,
    segment_bytes: 1024,
    snapshot_bytes: u64::MAX,
    inline: true,
};
const WITH_SNAPSHOTS: JournalOptions = JournalOptions { snapshot_bytes: 2048, ..SMALL };

fn written(turns: u64, options: JournalOptions) -> (TempDir, History) {
    let dir = tempfile::tempdir().unwrap();
    let history = History::of_turns(turns);
    let mut log = SegmentLog::create(dir.path(), history.epoch, options).unwrap();
    for frame in &history.frames {
        log.append(frame).unwrap();
    }
    (dir, history)
}

fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("journal")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(end));
    paths.sort();
    paths
}

/// Where the bytes of a file that are not zero end.
fn used(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}

fn cut(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// What is shown: the records that are in the snapshot, and the numbers of the others.
type Seen = (Vec<(u64, u64)>, Vec<u64>);

fn seen(dir: &Path) -> (Result<(), JournalError>, Seen) {
    let (mut gone, mut numbers) = (Vec::new(), Vec::new());
    let shown = records(dir, &mut |shown| {
        match shown {
            Shown::InSnapshot { first, last } => gone.push((first, last)),
            Shown::Record { sequence, event } => {
                assert_eq!(sequence == 0, matches!(event, Event::Genesis(_)));
                numbers.push(sequence);
            }
        }
        ControlFlow::Continue(())
    });
    (shown, (gone, numbers))
}

#[test]
fn records_are_shown_in_order() {
    let (dir, history) = written(6, SMALL);
    let all = history.states.last().unwrap().0;
    let (shown, numbers) = seen(dir.path());
    shown.unwrap();
    assert_eq!(numbers, (vec![], (0..all).collect()));
    let reading = read(dir.path()).unwrap();
    assert_eq!((reading.records, reading.snapshot_records), (all, 0));
    assert_eq!(reading.segments.len(), files(dir.path(), ".log").len());
    assert_eq!(reading.torn, None);
    // A torn tail is told, and left to the owner.
    let last = files(dir.path(), ".log").pop().unwrap();
    let length = used(&last) - 2;
    cut(&last, length);
    let torn = read(dir.path()).unwrap().torn.expect("a torn tail");
    assert_eq!((&torn.path, torn.offset + torn.bytes), (&last, length));
    assert_eq!(fs::metadata(&last).unwrap().len(), length);
    let (shown, (_, numbers)) = seen(dir.path());
    shown.unwrap();
    assert!(numbers.len() < usize::try_from(all).unwrap() && !numbers.is_empty());
}

/// What a snapshot stands for is said, and every other record shown.
#[test]
fn records_in_the_snapshot_are_said_to_be_there() {
    let (dir, history) = written(40, WITH_SNAPSHOTS);
    let position = read(dir.path()).unwrap().snapshot_records;
    assert!(position > 0);
    let (shown, numbers) = seen(dir.path());
    shown.unwrap();
    let all = history.states.last().unwrap().0;
    assert_eq!(numbers, (vec![(0, position - 1)], (position..all).collect()));
}

/// Records that a snapshot takes away while they are being shown are said to be gone; none is
/// shown twice or left out in silence.
#[test]
fn a_snapshot_may_come_between() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::of_turns(60);
    let mut log = SegmentLog::create(dir.path(), history.epoch, WITH_SNAPSHOTS).unwrap();
    let (early, late) = history.frames.split_at(12);
    for frame in early {
        log.append(frame).unwrap();
    }
    let (mut late, mut next, mut gone) = (Some(late), 0, Vec::new());
    records(dir.path(), &mut |shown| {
        let (first, last) = match shown {
            Shown::InSnapshot { first, last } => {
                gone.push((first, last));
                (first, last)
            }
            Shown::Record { sequence, .. } => (sequence, sequence),
        };
        assert_eq!(first, next);
        next = last + 1;
        for frame in late.take().unwrap_or_default() {
            log.append(frame).unwrap();
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(gone.iter().any(|(first, _)| *first > 0), "{gone:?}");
    assert_eq!(next, history.states.last().unwrap().0);
}

/// Where each frame of a segment begins in the file, and the numbers of its records.
fn frames_of(path: &Path) -> Vec<(usize, Vec<u64>)> {
    let bytes = fs::read(path).unwrap();
    let header = Header::decode(&bytes).unwrap();
    let frames = &bytes[Header::BYTES..];
    let scan = record::scan(&header.epoch, header.first_sequence, frames).unwrap();
    let mut at = Header::BYTES;
    let place = |frame: record::Frame<'_>| {
        let numbers: Vec<_> = frame.records().map(|(number, _)| number).collect();
        let payload: usize = frame.records().map(|(_, record)| record.len() + 4).sum();
        let begin = at;
        at += payload + record::FRAME_OVERHEAD_BYTES as usize;
        (begin, numbers)
    };
    scan.frames().map(place).collect()
}

/// What is in front of damage is shown, then the damage is told; in the middle of a segment too,
/// which may be the only one.
#[test]
fn records_are_shown_up_to_the_damage() {
    let one = JournalOptions { first_segment_bytes: 1 << 20, segment_bytes: 1 << 20, ..SMALL };
    for (options, damaged) in [(SMALL, 1), (one, 0)] {
        let (dir, _) = written(6, options);
        let path = files(dir.path(), ".log").remove(damaged);
        let frames = frames_of(&path);
        let (at, numbers) = &frames[frames.len() / 2];
        assert!(frames.len() > 1 && *at > Header::BYTES, "{frames:?}");
        flip(&path, at + 2);
        let (shown, (_, shown_numbers)) = seen(dir.path());
        let error = shown.unwrap_err();
        assert_eq!((error.path(), error.offset()), (path.as_path(), Some(*at as u64)));
        assert_eq!(shown_numbers, (0..numbers[0]).collect::<Vec<_>>());
        assert!(numbers[0] > 0);
        read(dir.path()).unwrap_err();
    }
}

/// Good checksums over what cannot be followed: the records in front of it are shown.
#[test]
fn records_are_shown_up_to_one_that_cannot_be_followed() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::of_turns(2);
    let options = JournalOptions { first_segment_bytes: 1 << 20, ..SMALL };
    let mut log = SegmentLog::create(dir.path(), history.epoch, options).unwrap();
    let (early, _) = history.frames.split_at(4);
    for frame in early {
        log.append(frame).unwrap();
    }
    let next = history.states[4].0;
    let mut writer = record::FrameWriter::default();
    writer.begin(next);
    writer.push(&[0xFF; 9]).unwrap();
    log.append(writer.finish(&history.epoch)).unwrap();
    let (shown, (_, numbers)) = seen(dir.path());
    assert!(matches!(shown, Err(JournalError::BadRecord { .. })), "{shown:?}");
    assert_eq!(numbers, (0..next).collect::<Vec<_>>());
}

#[test]
fn whoever_breaks_off_is_shown_no_more() {
    let (dir, _) = written(6, SMALL);
    let mut shown = 0;
    records(dir.path(), &mut |_| {
        shown += 1;
        if shown == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!(shown, 3);
}

/// Without a journal it is said what is there instead; one without a record never began, and counts
/// as none.
#[test]
fn where_no_journal_is_something_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let missing = |dir: &Path, expected: Absence| {
        let refused = |error: JournalError| {
            assert!(!error.to_string().contains("create"), "{error}");
            match error {
                JournalError::Missing { dir: named, found } => {
                    assert_eq!((named.as_path(), found), (dir, expected));
                }
                other => panic!("{other:?}"),
            }
        };
        refused(read(dir).unwrap_err());
        refused(verify(dir).unwrap_err());
        refused(seen(dir).0.unwrap_err());
    };
    missing(dir.path(), Absence::OtherFolder);
    missing(&dir.path().join("none"), Absence::Nothing);
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    missing(&file, Absence::File);
    missing(&file.join("below"), Absence::Nothing);
    fs::create_dir(dir.path().join("journal")).unwrap();
    missing(dir.path(), Absence::OtherFolder);
    let epoch = History::of_turns(1).epoch;
    drop(SegmentLog::create(dir.path(), epoch, SMALL).unwrap());
    missing(dir.path(), Absence::NoRecord);
    missing(&dir.path().join("journal"), Absence::JournalItself);
}

/// Every file with what it holds, those included that a snapshot stands for.
#[test]
fn verify_looks_at_every_file() {
    let (dir, history) = written(40, SMALL);
    let all = history.states.last().unwrap().0;
    let verification = verify(dir.path()).unwrap();
    assert_eq!(verification.damage.len(), 0);
    let whole = verification.whole.clone().unwrap();
    assert_eq!(
        whole,
        Whole { epoch: history.epoch, records: all, snapshot_records: 0, torn: None }
    );
    assert_eq!(verification.files.len(), files(dir.path(), "").len() - 1, "all but the lock");

    // A snapshot in front of the last segment, and everything that it covers kept.
    let segments = files(dir.path(), ".log");
    let kept: Vec<_> = segments.iter().map(|path| (path, fs::read(path).unwrap())).collect();
    let place = place::Place::new(std::sync::Arc::new(crate::disk::SystemDisk), dir.path());
    let last = segments.last().unwrap();
    let open: u64 = last.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    snapshots::take(&place, open, &std::sync::atomic::AtomicBool::new(false)).unwrap();
    for (path, bytes) in &kept {
        fs::write(path, bytes).unwrap();
    }
    fs::write(dir.path().join("journal/next.tmp"), [0; 7]).unwrap();
    let verification = verify(dir.path()).unwrap();
    assert_eq!(verification.damage.len(), 0);
    assert_eq!(verification.whole.unwrap().snapshot_records, open);
    let mut next = 0;
    for file in &verification.files {
        assert_eq!(file.length_bytes, fs::metadata(&file.path).unwrap().len());
        match &file.holds {
            Holding::Segment { first_sequence, next_sequence, used_bytes } => {
                assert_eq!((*first_sequence, *used_bytes), (next, used(&file.path)));
                next = *next_sequence;
                assert_eq!(file.covered, file.path != *last);
            }
            Holding::Snapshot { records } => assert_eq!((*records, file.covered), (open, false)),
            Holding::Room => assert_eq!(file.length_bytes, 7),
            Holding::Unfinished => panic!("{file:?}"),
            Holding::Damaged => panic!("{file:?}"),
        }
    }
    assert_eq!((next, verification.files.len()), (all, segments.len() + 2));

    // Damage in what an opening would not need is damage of the disk all the same.
    flip(&segments[0], 50);
    let verification = verify(dir.path()).unwrap();
    assert!(verification.whole.is_some());
    let places: Vec<_> =
        verification.damage.iter().map(|error| (error.path(), error.offset())).collect();
    assert_eq!(places, [(segments[0].as_path(), Some(Header::BYTES as u64))]);
    let damaged = |file: &&FileReading| file.holds == Holding::Damaged;
    assert_eq!(verification.files.iter().filter(damaged).count(), 1);
    read(dir.path()).unwrap();
}

/// All damage is found, each once and with its place.
#[test]
fn verify_finds_all_damage() {
    let (dir, _) = written(40, SMALL);
    let segments = files(dir.path(), ".log");
    flip(&segments[1], Header::BYTES + 30);
    flip(&segments[3], 3);
    let verification = verify(dir.path()).unwrap();
    assert_eq!(verification.whole, None);
    let places: Vec<_> =
        verification.damage.iter().map(|error| (error.path(), error.offset())).collect();
    let header = Header::BYTES as u64;
    assert_eq!(places, [(segments[1].as_path(), Some(header)), (&segments[3], Some(0))]);
    fs::remove_file(&segments[2]).unwrap();
    fs::write(&segments[1], []).unwrap();
    assert_eq!(verify(dir.path()).unwrap().damage[0].offset(), Some(0));
}

#[test]
fn verify_tells_what_would_be_cut() {
    let (dir, _) = written(6, SMALL);
    let last = files(dir.path(), ".log").pop().unwrap();
    let length = used(&last) - 2;
    cut(&last, length);
    let verification = verify(dir.path()).unwrap();
    assert_eq!(verification.damage.len(), 0);
    let torn = verification.whole.unwrap().torn.unwrap();
    assert_eq!((&torn.path, torn.offset + torn.bytes), (&last, length));
    assert_eq!(fs::metadata(&last).unwrap().len(), length, "nothing was cut");
}

/// Beside an owner whose files come and go all the time, every look is of one moment: the figure in
/// all is where the last row ends, nothing is damaged, and nothing is missing.
#[test]
fn verify_is_of_one_moment() {
    let history = History::of_turns(150);
    for options in [SMALL, WITH_SNAPSHOTS] {
        let dir = tempfile::tempdir().unwrap();
        let mut log = SegmentLog::create(dir.path(), history.epoch, options).unwrap();
        log.append(&history.frames[0]).unwrap();
        let done = AtomicBool::new(false);
        let looks = std::thread::scope(|scope| {
            scope.spawn(|| {
                for frame in &history.frames[1..] {
                    log.append(frame).unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
            let (mut looks, mut records) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let verification = verify(dir.path()).unwrap();
                assert!(verification.damage.is_empty(), "{:?}", verification.damage);
                let whole = verification.whole.unwrap();
                let end = |file: &FileReading| match file.holds {
                    Holding::Segment { next_sequence, .. } => Some(next_sequence),
                    Holding::Snapshot { .. }
                    | Holding::Room
                    | Holding::Unfinished
                    | Holding::Damaged => None,
                };
                let last = verification.files.iter().filter_map(end).max();
                assert_eq!(last, Some(whole.records));
                assert!(whole.records >= records);
                records = whole.records;
                looks += 1;
            }
            looks
        });
        assert!(looks > 3, "{looks}");
        let all = history.states.last().unwrap().0;
        assert_eq!(verify(dir.path()).unwrap().whole.unwrap().records, all);
    }
}

/// Files that vanish under the reader are no failure as long as the names change, and one where
/// they do not; damage is told although they change for ever.
#[test]
fn a_reader_waits_for_an_owner_and_for_nobody_else() {
    let (dir, _) = written(2, SMALL);
    let place = place::Place::new(std::sync::Arc::new(crate::disk::SystemDisk), dir.path());
    let busy = |number: u32| {
        let name = |number| dir.path().join(format!("journal/{number}.tmp"));
        fs::write(name(number + 1), b"").unwrap();
        let _ = fs::remove_file(name(number));
    };
    let gone = || {
        let path = dir.path().join("journal/gone");
        Err::<u32, _>(error::io_at("read", &path)(std::io::ErrorKind::NotFound.into()))
    };
    let tries_of = |last: u32, fault: &dyn Fn() -> Result<u32, JournalError>, is_busy: bool| {
        let mut tries = 0;
        let read = || {
            tries += 1;
            if is_busy {
                busy(tries);
            }
            if tries == last { Ok(tries) } else { fault() }
        };
        let seen = read::until_it_rests(&place, read, |seen| seen.as_ref().err());
        (seen.is_ok(), tries)
    };
    assert_eq!(tries_of(100, &gone, true), (true, 100));
    assert_eq!(tries_of(100, &gone, false), (false, 40));
    let damage = || Err(JournalError::Lacking { folder: place.folder.clone(), from: 1 });
    assert_eq!(tries_of(100, &damage, true), (false, 40));
    let refused = || Err(JournalError::Unexpected { path: place.folder.clone() });
    assert_eq!(tries_of(100, &refused, true), (false, 1));
}

/// What is being made is not read, however long it is or whatever lies there under such a name.
#[test]
fn what_is_unfinished_is_only_measured() {
    let (dir, _) = written(2, SMALL);
    let (sparse, folder) = (dir.path().join("journal/next.tmp"), dir.path().join("journal/x.tmp"));
    fs::File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    fs::create_dir(&folder).unwrap();
    let verification = verify(dir.path()).unwrap();
    assert!(verification.damage.is_empty() && verification.whole.is_some());
    let found = verification.files.iter().find(|file| file.path == sparse).unwrap();
    assert_eq!((found.length_bytes, &found.holds), (1 << 40, &Holding::Room));
    let other = verification.files.iter().find(|file| file.path == folder).unwrap();
    assert_eq!(other.holds, Holding::Unfinished);
}
