use pinfold_core::journal::record::FrameWriter;
use tempfile::TempDir;

use super::*;

fn epoch() -> Epoch {
    Epoch::from_u128(0xE1)
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn frame_of(epoch: Epoch, first: u64, records: &[&str]) -> Vec<u8> {
    let mut writer = FrameWriter::default();
    writer.begin(first);
    for record in records {
        writer.push(record.as_bytes()).unwrap();
    }
    writer.finish(&epoch).to_vec()
}

fn append(journal: &mut JournalFile, records: &[&str]) -> Result<(), AppendError> {
    let frame = frame_of(journal.epoch(), journal.next_sequence(), records);
    journal.append(&frame)
}

/// A journal of the frames (0, 1) and (2).
fn written(dir: &Path) {
    let mut journal = JournalFile::create(dir, epoch()).unwrap();
    append(&mut journal, &["register", "prepare"]).unwrap();
    append(&mut journal, &["settle"]).unwrap();
}

fn read(recovered: &Recovered) -> Vec<(u64, String)> {
    let text =
        |(sequence, record): (u64, &[u8])| (sequence, String::from_utf8(record.to_vec()).unwrap());
    recovered.records().map(text).collect()
}

fn reopened(dir: &Path) -> Vec<(u64, String)> {
    read(&JournalFile::open(dir).unwrap().1)
}

fn numbered(records: &[&str]) -> Vec<(u64, String)> {
    (0..).zip(records.iter().map(ToString::to_string)).collect()
}

fn log_of(dir: &Path) -> PathBuf {
    dir.join("journal/00000000000000000000.log")
}

#[test]
fn what_was_appended_is_recovered() {
    let dir = folder();
    written(dir.path());
    let (journal, recovered) = JournalFile::open(dir.path()).unwrap();
    assert_eq!((journal.epoch(), recovered.epoch), (epoch(), epoch()));
    assert_eq!((journal.next_sequence(), recovered.next_sequence), (3, 3));
    assert_eq!(read(&recovered), numbered(&["register", "prepare", "settle"]));
    assert_eq!(recovered.cut_bytes, 0);
    assert_eq!(journal.length_bytes(), fs::metadata(log_of(dir.path())).unwrap().len());
}

#[test]
fn an_empty_frame_adds_nothing() {
    let dir = folder();
    let mut journal = JournalFile::create(dir.path(), epoch()).unwrap();
    journal.append(&[]).unwrap();
    drop(journal);
    assert_eq!(reopened(dir.path()), []);
}

#[test]
fn folders_are_created_and_only_one_journal_in_them() {
    let above = folder();
    let dir = above.path().join("a/b");
    assert!(!JournalFile::exists(&dir).unwrap());
    assert!(matches!(JournalFile::open(&dir), Err(JournalError::Missing { .. })));
    assert!(!dir.exists(), "looking creates nothing");
    // One without a record never began, and gives way to another.
    drop(JournalFile::create(&dir, epoch()).unwrap());
    assert!(!JournalFile::exists(&dir).unwrap());
    let mut journal = JournalFile::create(&dir, epoch()).unwrap();
    append(&mut journal, &["genesis"]).unwrap();
    drop(journal);
    assert!(JournalFile::exists(&dir).unwrap());
    let again = JournalFile::create(&dir, epoch());
    assert!(matches!(again, Err(JournalError::AlreadyExists { .. })));
}

/// A crash inside `create` leaves a file without its name, which counts as no journal.
#[test]
fn a_crash_during_creation_leaves_no_journal() {
    let dir = folder();
    let journal = dir.path().join("journal");
    fs::create_dir(&journal).unwrap();
    let header = Header { epoch: Epoch::from_u128(7), first_sequence: 0 }.encode();
    for length in [0, 9, header.len()] {
        fs::write(journal.join("new.tmp"), &header[..length]).unwrap();
        assert!(!JournalFile::exists(dir.path()).unwrap());
        assert!(matches!(JournalFile::open(dir.path()), Err(JournalError::Missing { .. })));
    }
    drop(JournalFile::create(dir.path(), epoch()).unwrap());
    assert_eq!(JournalFile::open(dir.path()).unwrap().1.epoch, epoch());
}

#[test]
fn one_process_at_a_time() {
    let dir = folder();
    let journal = JournalFile::create(dir.path(), epoch()).unwrap();
    assert!(matches!(JournalFile::open(dir.path()), Err(JournalError::Locked { .. })));
    let second = JournalFile::create(dir.path(), epoch());
    assert!(matches!(second, Err(JournalError::Locked { .. })));
    drop(journal);
    assert!(JournalFile::open(dir.path()).is_ok());
}

/// Scenario B67: tear at every byte of the last frame, append, crash, replay.
#[test]
fn a_torn_tail_is_cut_before_the_next_append() {
    let dir = folder();
    written(dir.path());
    let bytes = fs::read(log_of(dir.path())).unwrap();
    let last = frame_of(epoch(), 2, &["settle"]).len();
    for torn in bytes.len() - last..bytes.len() {
        fs::write(log_of(dir.path()), &bytes[..torn]).unwrap();
        let (mut journal, recovered) = JournalFile::open(dir.path()).unwrap();
        assert_eq!(read(&recovered), numbered(&["register", "prepare"]));
        assert_eq!(recovered.cut_bytes, offset(torn + last - bytes.len()));
        append(&mut journal, &["x"]).unwrap();
        drop(journal);
        let (_, recovered) = JournalFile::open(dir.path()).unwrap();
        assert_eq!(read(&recovered), numbered(&["register", "prepare", "x"]));
        assert_eq!(recovered.cut_bytes, 0, "the shorter frame has nothing of the tail behind it");
    }
}

/// Room that was set aside and never written is cut too, so that the file has one end.
#[test]
fn zeros_behind_the_last_frame_are_cut() {
    let dir = folder();
    written(dir.path());
    let length = fs::metadata(log_of(dir.path())).unwrap().len();
    let file = OpenOptions::new().write(true).open(log_of(dir.path())).unwrap();
    file.set_len(length + 5000).unwrap();
    let (mut journal, recovered) = JournalFile::open(dir.path()).unwrap();
    assert_eq!((recovered.cut_bytes, recovered.next_sequence), (5000, 3));
    append(&mut journal, &["release"]).unwrap();
    drop(journal);
    assert_eq!(reopened(dir.path()), numbered(&["register", "prepare", "settle", "release"]));
}

/// Protocol 7: damage is refused with its place, and nothing is touched.
#[test]
fn damage_is_refused_and_left_alone() {
    let dir = folder();
    written(dir.path());
    let mut bytes = fs::read(log_of(dir.path())).unwrap();
    bytes[Header::BYTES + 30] ^= 1;
    fs::write(log_of(dir.path()), &bytes).unwrap();
    let error = JournalFile::open(dir.path()).unwrap_err();
    assert!(matches!(&error, JournalError::Damaged { offset: 40, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("00000000000000000000.log is damaged at byte 40: the frame is bad"));
    assert_eq!(fs::read(log_of(dir.path())).unwrap(), bytes);
}

#[test]
fn unknown_versions_are_refused_by_name() {
    let dir = folder();
    written(dir.path());
    let bytes = fs::read(log_of(dir.path())).unwrap();
    let last_at = bytes.len() - frame_of(epoch(), 2, &["settle"]).len();
    for (at, place) in [(8, 0), (last_at + 4, last_at)] {
        let mut newer = bytes.clone();
        newer[at] = 2;
        fs::write(log_of(dir.path()), &newer).unwrap();
        let error = JournalFile::open(dir.path()).unwrap_err();
        let expected = offset(place);
        assert!(
            matches!(&error, JournalError::UnknownVersion { offset, version: 2, .. }
                if *offset == expected),
            "{error:?}"
        );
    }
}

#[test]
fn a_second_file_belongs_to_a_newer_version() {
    let dir = folder();
    written(dir.path());
    fs::write(dir.path().join("journal/00000000000000000003.log"), b"").unwrap();
    assert!(matches!(JournalFile::open(dir.path()), Err(JournalError::Unexpected { .. })));
    fs::remove_file(log_of(dir.path())).unwrap();
    assert!(JournalFile::exists(dir.path()).unwrap());
    let created = JournalFile::create(dir.path(), epoch());
    assert!(matches!(created, Err(JournalError::AlreadyExists { .. })));
}

#[test]
fn something_else_is_no_journal() {
    let dir = folder();
    written(dir.path());
    for bytes in [&b""[..], b"PINFOLDJ", b"something else altogether, and long enough to be one"] {
        fs::write(log_of(dir.path()), bytes).unwrap();
        let error = JournalFile::open(dir.path()).unwrap_err();
        assert!(matches!(error, JournalError::BadHeader { .. }), "{error:?}");
    }
}

/// A frame that would make the journal unreadable is refused before it is written.
#[test]
fn only_the_next_frame_is_taken() {
    let good = frame_of(epoch(), 3, &["x"]);
    let foreign = frame_of(Epoch::from_u128(9), 3, &["x"]);
    let [gap, repeat] = [4, 2].map(|first| frame_of(epoch(), first, &["x"]));
    for wrong in [foreign, gap, repeat, good[1..].to_vec(), [good.clone(), good].concat()] {
        let dir = folder();
        written(dir.path());
        let (mut journal, _) = JournalFile::open(dir.path()).unwrap();
        let refused = journal.append(&wrong).unwrap_err();
        assert!(matches!(refused, AppendError::NotAFrame(_) | AppendError::NotNext { .. }));
        assert!(matches!(append(&mut journal, &["x"]), Err(AppendError::Poisoned)));
        drop(journal);
        assert_eq!(reopened(dir.path()), numbered(&["register", "prepare", "settle"]));
    }
}

/// Scenario B68: the first failure ends the journal's life; a sync is never tried again.
#[cfg(target_os = "linux")]
#[test]
fn a_failed_write_or_sync_poisons() {
    // Writing to the one device fails; to the other it goes well, and syncing fails.
    for (device, failing) in [("/dev/full", "write"), ("/dev/null", "sync")] {
        let dir = folder();
        let mut journal = JournalFile::create(dir.path(), epoch()).unwrap();
        append(&mut journal, &["register"]).unwrap();
        let broken = OpenOptions::new().write(true).open(device).unwrap();
        let whole = std::mem::replace(&mut journal.file, broken);
        let error = append(&mut journal, &["prepare"]).unwrap_err();
        assert!(matches!(&error, AppendError::Io { doing, .. } if *doing == failing), "{error}");
        journal.file = whole;
        for _ in 0..2 {
            assert!(matches!(append(&mut journal, &["prepare"]), Err(AppendError::Poisoned)));
        }
        drop(journal);
        assert_eq!(reopened(dir.path()), numbered(&["register"]));
    }
}
