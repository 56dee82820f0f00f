extern crate std;

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const FIRST: u64 = 7;

fn epoch() -> Epoch {
    Epoch::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff)
}

fn frame_of(epoch: &Epoch, first: u64, records: &[&[u8]]) -> Vec<u8> {
    let mut writer = FrameWriter::default();
    writer.begin(first);
    for record in records {
        writer.push(record).unwrap();
    }
    writer.finish(epoch).to_vec()
}

/// Three frames of 2, 1 and 3 records, numbered from [`FIRST`].
fn frames() -> [Vec<u8>; 3] {
    [
        frame_of(&epoch(), FIRST, &[b"prepare", b""]),
        frame_of(&epoch(), FIRST + 2, &[b"settle"]),
        frame_of(&epoch(), FIRST + 3, &[b"publish", b"release", &[0; 9]]),
    ]
}

fn records_of(scan: &Scan<'_>) -> Vec<(u64, Vec<u8>)> {
    let records = scan.frames().flat_map(|frame| frame.records());
    records.map(|(sequence, record)| (sequence, record.to_vec())).collect()
}

fn scanned(bytes: &[u8]) -> Result<Scan<'_>, Damage> {
    scan(&epoch(), FIRST, bytes)
}

fn damage_of(bytes: &[u8]) -> Damage {
    scanned(bytes).unwrap_err()
}

/// A frame of which a byte of the fields or the records is patched, and all checksums agree.
fn patched(frame: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = frame[..frame.len() - CHECKSUM_BYTES].to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    let fields = *bytes.first_chunk().unwrap();
    let of_head = checksum_of(&epoch(), &fields, &[]);
    bytes[FIELD_BYTES..HEAD_BYTES].copy_from_slice(&of_head.to_le_bytes());
    let checksum = checksum_of(&epoch(), &fields, &bytes[HEAD_BYTES..]);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// What a worker that knows the epoch puts into a record: the good head of a far later frame.
fn planted() -> Vec<u8> {
    let head =
        Head { version: RECORD_VERSION, payload_bytes: 100, first_sequence: u64::MAX, count: 1 };
    [&b"digest "[..], &head.encode(&epoch()), b" and more"].concat()
}

fn hex(bytes: &[u8]) -> std::string::String {
    bytes.iter().map(|byte| std::format!("{byte:02x}")).collect()
}

/// Journal format 1: these bytes never change.
#[test]
fn bytes_are_golden() {
    let header = Header { epoch: epoch(), first_sequence: FIRST };
    let golden = "50494e464f4c444a0100000000112233445566778899aabbccddeeff0700000000000000";
    assert_eq!(hex(&header.encode()), std::format!("{golden}2e7d62c9"));
    let frame = frame_of(&epoch(), FIRST, &[b"prepare", b""]);
    let head = "5046726d010f000000070000000000000002000000706c7f58";
    let records = "070000007072657061726500000000";
    assert_eq!(hex(&frame), std::format!("{head}{records}901bf3c7"));
}

/// The tables stand in two places, for who reads the code and for who reads the page.
#[test]
fn the_page_has_the_same_tables() {
    let rows = |text: &'static str, before: &'static str| {
        let row = move |line: &'static str| line.strip_prefix(before);
        let is_row = |row: &&str| row.starts_with("| ") && row.as_bytes()[2].is_ascii_digit();
        text.lines().filter_map(row).filter(is_row).collect::<Vec<_>>()
    };
    let here = rows(include_str!("../record.rs"), "//! ");
    let page = rows(include_str!("../../../../docs/journal-format.md"), "");
    assert!(here.len() == 13 && page.starts_with(&here), "{here:#?} {page:#?}");
}

/// CRC-32C has a published check value.
#[test]
fn checksum_is_castagnoli() {
    assert_eq!(CASTAGNOLI.checksum(b"123456789"), 0xe306_9283);
}

#[test]
fn headers_survive_the_round_trip_and_nothing_else_is_one() {
    let header = Header { epoch: epoch(), first_sequence: u64::MAX };
    let bytes = header.encode();
    assert_eq!(Header::decode(&bytes), Ok(header));
    for length in 0..bytes.len() {
        assert_eq!(Header::decode(&bytes[..length]), Err(HeaderError::Short));
    }
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Header::decode(&flipped).is_err(), "bit {bit}");
    }
    let mut newer = bytes;
    newer[8] = 2;
    assert_eq!(Header::decode(&newer), Err(HeaderError::UnknownVersion { version: 2 }));
}

#[test]
fn a_whole_journal_reads_back() {
    let bytes = frames().concat();
    let scan = scanned(&bytes).unwrap();
    assert_eq!(scan.end(), End::Clean);
    assert_eq!((scan.good_bytes(), scan.next_sequence()), (offset(bytes.len()), FIRST + 6));
    assert_eq!(scan.last_frame_at(), Some(offset(bytes.len() - frames()[2].len())));
    let sequences: Vec<u64> = records_of(&scan).iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(sequences, (FIRST..FIRST + 6).collect::<Vec<_>>());
    assert_eq!(records_of(&scan)[0], (FIRST, b"prepare".to_vec()));
    assert_eq!(records_of(&scan)[1], (FIRST + 1, Vec::new()));
}

#[test]
fn nothing_at_all_is_clean() {
    let scan = scanned(&[]).unwrap();
    assert_eq!((scan.end(), scan.good_bytes(), scan.last_frame_at()), (End::Clean, 0, None));
    assert_eq!(scan.next_sequence(), FIRST);
}

/// Protocol 7, scenario B67: torn at every byte, the good frames stay and the rest is cut.
#[test]
fn every_prefix_is_a_prefix_of_the_truth() {
    let frames = frames();
    let bytes = frames.concat();
    let truth = records_of(&scanned(&bytes).unwrap());
    let ends = [0, frames[0].len(), frames[0].len() + frames[1].len(), bytes.len()];
    for length in 0..=bytes.len() {
        let scan = scanned(&bytes[..length]).unwrap();
        let good = *ends.iter().rfind(|end| **end <= length).unwrap();
        assert_eq!(scan.good_bytes(), offset(good));
        assert!(truth.starts_with(&records_of(&scan)));
        let torn = matches!(scan.end(), End::Torn { at, .. } if at == offset(good));
        assert_eq!(torn, good != length, "length {length}");
    }
}

/// A sector that never reached the disk reads as zeros, wherever it lies in the last frame.
#[test]
fn zeros_inside_the_last_frame_are_a_torn_tail() {
    let bytes = frames().concat();
    let good = bytes.len() - frames()[2].len();
    for from in good..bytes.len() {
        for to in from + 1..=bytes.len() {
            let mut torn = bytes.clone();
            torn[from..to].fill(0);
            let scan = scanned(&torn).unwrap();
            assert!(scan.good_bytes() == offset(good) || torn == bytes, "{from}..{to}");
        }
    }
}

/// One flipped bit is refused, or cuts the last frame; it never changes what is read.
#[test]
fn every_flipped_bit_is_found() {
    let bytes = frames().concat();
    let truth = records_of(&scanned(&bytes).unwrap());
    let last_at = bytes.len() - frames()[2].len();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match scanned(&flipped) {
            Ok(scan) => {
                assert!(bit / 8 >= last_at, "bit {bit} passed for a torn tail");
                assert_eq!(scan.good_bytes(), offset(last_at));
                assert_eq!(records_of(&scan), truth[..3]);
            }
            Err(damage) => assert!(damage.at <= offset(bit / 8), "bit {bit}: {damage:?}"),
        }
    }
}

/// The same, with the last frame torn: the flipped one had been synced, so it isn't the tail.
#[test]
fn a_flip_before_a_torn_frame_is_damage() {
    let frames = frames();
    let whole = frames.concat();
    let last_at = whole.len() - frames[2].len();
    let torn = &whole[..last_at + HEAD_BYTES];
    assert!(matches!(scanned(torn).unwrap().end(), End::Torn { .. }));
    for bit in frames[0].len() * 8..last_at * 8 {
        let mut flipped = torn.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(scanned(&flipped).is_err(), "bit {bit}");
    }
}

/// Behind a good head the first byte of a later frame is enough, and any byte is one.
#[test]
fn anything_behind_the_end_of_a_bad_frame_is_damage() {
    let frames = frames();
    let whole = frames.concat();
    let (bad_at, last_at) = (frames[0].len(), whole.len() - frames[2].len());
    let why = DamageKind::NotLast { bad: BadFrame::Checksum, later_bytes: offset(frames[1].len()) };
    let damage = Damage { at: offset(bad_at), why };
    for place in bad_at + HEAD_BYTES..last_at {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        for length in last_at + 1..=whole.len() {
            assert_eq!(damage_of(&bytes[..length]), damage, "byte {place}, {length} bytes");
        }
        // Of the later frame only its last byte reached the disk.
        let end = bytes.len() - 1;
        bytes[last_at..end].fill(0);
        assert_eq!(damage_of(&bytes), damage);
        bytes[end] = 0;
        let torn = End::Torn { at: offset(bad_at), why: BadFrame::Checksum };
        assert_eq!(scanned(&bytes).unwrap().end(), torn, "only zeros follow");
    }
}

/// Bytes that a worker chose do not make a torn frame damage, wherever it is torn behind its head.
#[test]
fn a_head_planted_in_a_record_is_none() {
    let [first, ..] = frames();
    let last = frame_of(&epoch(), FIRST + 2, &[b"settle", &planted(), &planted()]);
    let good = offset(first.len());
    for length in 1..last.len() {
        let mut torn = [&first[..], &last[..length]].concat();
        let cut = End::Torn { at: good, why: BadFrame::Cut };
        assert_eq!(scanned(&torn).unwrap().end(), cut, "{length} bytes");
        // The same with zeros up to the end that the frame was to have, and beyond.
        torn.resize(first.len() + last.len() + 512, 0);
        if length >= HEAD_BYTES && torn[..first.len() + last.len()] != [&first[..], &last].concat()
        {
            let zeros = End::Torn { at: good, why: BadFrame::Checksum };
            assert_eq!(scanned(&torn).unwrap().end(), zeros, "{length} bytes and zeros");
        }
    }
    // Any part of it behind the head may be missing, or hold what was there before.
    for (from, old) in (HEAD_BYTES..last.len()).flat_map(|from| [(from, 0), (from, 0xa5)]) {
        for to in from + 1..=last.len() {
            let mut torn = [&first[..], &last].concat();
            torn[first.len() + from..first.len() + to].fill(old);
            assert_eq!(
                scanned(&torn).unwrap().good_bytes() == offset(torn.len()),
                torn.ends_with(&last)
            );
        }
    }
}

/// With its own head lost, a torn frame with a planted head is refused: never is anything lost.
#[test]
fn a_planted_head_behind_a_torn_one_is_refused() {
    let [first, ..] = frames();
    let last = frame_of(&epoch(), FIRST + 2, &[&planted()]);
    let planted_at = HEAD_BYTES + index(RECORD_OVERHEAD_BYTES) + b"digest ".len();
    for place in (0..HEAD_BYTES).filter(|place| last[*place] != 0) {
        let mut torn = [&first[..], &last].concat();
        torn[first.len() + place] = 0;
        let why = damage_of(&torn).why;
        assert!(
            matches!(why, DamageKind::NotLast { later_bytes, .. }
                if later_bytes == offset(planted_at)),
            "byte {place}: {why:?}"
        );
    }
    // A worker that doesn't know the epoch cannot even do that.
    let foreign =
        Head { version: RECORD_VERSION, payload_bytes: 100, first_sequence: u64::MAX, count: 1 };
    for image in [foreign.encode(&Epoch::from_u128(5)).to_vec(), foreign.fields().to_vec()] {
        let last = frame_of(&epoch(), FIRST + 2, &[&image, b"more"]);
        let torn = [&first[..], &[0; 4], &last[4..]].concat();
        assert!(matches!(scanned(&torn).unwrap().end(), End::Torn { .. }));
    }
}

/// The records of one frame under the head of another: the last checksum belongs to both.
#[test]
fn records_under_another_head_are_bad() {
    let [_, second, _] = frames();
    for (of_epoch, sequence) in [(epoch(), FIRST + 9), (Epoch::from_u128(5), FIRST + 1)] {
        let other = frame_of(&of_epoch, sequence, &[b"permit"]);
        assert_eq!(other.len(), second.len());
        let mixed = [&second[..HEAD_BYTES], &other[HEAD_BYTES..]].concat();
        let bad = Frame::decode(&epoch(), &mixed);
        assert_eq!(bad, Err(FrameError::Bad(BadFrame::Checksum)));
    }
}

#[test]
fn zeros_behind_the_last_frame_are_a_clean_end() {
    let mut bytes = frames().concat();
    let good = bytes.len();
    bytes.resize(good + 4096, 0);
    let scan = scanned(&bytes).unwrap();
    assert_eq!((scan.end(), scan.good_bytes()), (End::Clean, offset(good)));
    bytes[good + 100] = 1;
    let torn = End::Torn { at: offset(good), why: BadFrame::Marker };
    assert_eq!(scanned(&bytes).unwrap().end(), torn);
}

/// Protocol 7: unknown versions are refused by name, with or without a good checksum.
#[test]
fn an_unknown_version_is_refused_by_name() {
    let [first, second, _] = frames();
    let at = offset(first.len());
    let refused = Damage { at, why: DamageKind::UnknownVersion { version: 9 } };
    let mut unchecked = second.clone();
    unchecked[4] = 9;
    assert_eq!(damage_of(&[first.clone(), unchecked.clone()].concat()), refused);
    assert_eq!(damage_of(&[first.clone(), unchecked[..5].to_vec()].concat()), refused);
    assert_eq!(damage_of(&[first, patched(&second, 4, &[9])].concat()), refused);
    assert!(refused.to_string().contains("version 9"));
    let alone = Frame::decode(&epoch(), &unchecked);
    assert_eq!(alone, Err(FrameError::UnknownVersion { version: 9 }));
}

/// Scenario B67: a frame appended behind garbage isn't lost with it.
#[test]
fn a_good_frame_behind_a_bad_one_is_damage() {
    let [first, second, _] = frames();
    let bytes = [first.clone(), vec![0xa5; 10], second].concat();
    let why = DamageKind::NotLast { bad: BadFrame::Marker, later_bytes: 10 };
    assert_eq!(damage_of(&bytes), Damage { at: offset(first.len()), why });
}

/// A record may hold the image of a frame; torn, it is no later frame that began.
#[test]
fn the_image_of_a_frame_does_not_make_a_torn_one_damage() {
    let frames = frames();
    for image in &frames {
        let last = frame_of(&epoch(), FIRST + 2, &[image]);
        for length in 1..last.len() {
            let torn = [&frames[0][..], &last[..length]].concat();
            assert_eq!(scanned(&torn).unwrap().good_bytes(), offset(frames[0].len()));
        }
    }
}

#[test]
fn gaps_and_repeats_are_damage() {
    let [first, second, third] = frames();
    let at = offset(first.len());
    let gap = DamageKind::Gap { expected: FIRST + 2, found: FIRST + 3 };
    assert_eq!(damage_of(&[first.clone(), third].concat()), Damage { at, why: gap });
    let repeat = DamageKind::Repeat { expected: FIRST + 2, found: FIRST };
    assert_eq!(damage_of(&[first.clone(), first].concat()), Damage { at, why: repeat });
    let early = DamageKind::Gap { expected: FIRST, found: FIRST + 2 };
    // Torn, too: no frame begins before all in front of it are durable.
    for length in HEAD_BYTES..=second.len() {
        assert_eq!(damage_of(&second[..length]), Damage { at: 0, why: early });
    }
}

/// Protocol 6: another epoch's frames change nothing here; they never count, not even as begun.
#[test]
fn frames_of_another_epoch_are_none() {
    let other = Epoch::from_u128(5);
    let foreign = |first, record: &[u8]| frame_of(&other, first, &[record]);
    let [first, second, _] = frames();
    let run = [foreign(FIRST + 2, b"one"), foreign(FIRST + 3, b"two")].concat();
    let torn = End::Torn { at: offset(first.len()), why: BadFrame::Head };
    assert_eq!(scanned(&[&first[..], &run].concat()).unwrap().end(), torn);
    let why = DamageKind::NotLast { bad: BadFrame::Head, later_bytes: offset(run.len()) };
    let behind = [&first[..], &run, &second].concat();
    assert_eq!(damage_of(&behind), Damage { at: offset(first.len()), why });
    let alone = foreign(FIRST, b"one");
    assert_eq!(Frame::decode(&epoch(), &alone), Err(FrameError::Bad(BadFrame::Head)));
}

#[test]
fn records_that_do_not_add_up_are_damage() {
    let [first, ..] = frames();
    let malformed = Damage { at: 0, why: DamageKind::Malformed };
    for count in [0_u32, 1, 3, u32::MAX] {
        let wrong = patched(&first, 17, &count.to_le_bytes());
        assert_eq!(damage_of(&wrong), malformed);
        assert_eq!(Frame::decode(&epoch(), &wrong), Err(FrameError::Malformed));
    }
    for length in [0_u32, 7, MAX_PAYLOAD_BYTES + 1, u32::MAX] {
        assert_eq!(damage_of(&patched(&first, 5, &length.to_le_bytes())), malformed);
    }
    assert_eq!(damage_of(&patched(&first, HEAD_BYTES, &u32::MAX.to_le_bytes())), malformed);
    let overflow = patched(&first, 9, &(u64::MAX - 1).to_le_bytes());
    assert_eq!(scan(&epoch(), u64::MAX - 1, &overflow), Err(malformed));
}

#[test]
fn a_tail_longer_than_a_frame_is_damage() {
    let written = index(MAX_FRAME_BYTES) + 1;
    let bytes = vec![1; written];
    let why = DamageKind::TailTooLong { bad: BadFrame::Marker, bytes: offset(written) };
    assert_eq!(damage_of(&bytes), Damage { at: 0, why });
    assert!(scanned(&bytes[1..]).is_ok());
}

#[test]
fn a_frame_is_bounded() {
    let mut writer = FrameWriter::default();
    writer.begin(0);
    let largest = vec![3; index(MAX_PAYLOAD_BYTES - RECORD_OVERHEAD_BYTES)];
    assert_eq!(writer.push(&vec![3; largest.len() + 1]), Err(FrameFull));
    assert_eq!(writer.push(&largest), Ok(0));
    assert_eq!(writer.push(b""), Err(FrameFull));
    let bytes = writer.finish(&epoch());
    assert_eq!(bytes.len(), index(MAX_FRAME_BYTES));
    assert_eq!(scan(&epoch(), 0, bytes).unwrap().next_sequence(), 1);
    let mut claims = bytes.to_vec();
    claims[5..9].copy_from_slice(&u32::MAX.to_le_bytes());
    let torn = End::Torn { at: 0, why: BadFrame::Head };
    assert_eq!(scan(&epoch(), 0, &claims).unwrap().end(), torn);
}

#[test]
fn numbers_do_not_run_over() {
    let mut writer = FrameWriter::default();
    writer.begin(u64::MAX - 1);
    assert_eq!(writer.push(b"last"), Ok(u64::MAX - 1));
    assert_eq!(writer.push(b"none"), Err(FrameFull));
    let bytes = writer.finish(&epoch()).to_vec();
    let scan = scan(&epoch(), u64::MAX - 1, &bytes).unwrap();
    assert_eq!(scan.next_sequence(), u64::MAX);
    assert_eq!(records_of(&scan), [(u64::MAX - 1, b"last".to_vec())]);
}

#[test]
fn the_buffer_is_used_again() {
    let mut writer = FrameWriter::default();
    writer.begin(0);
    writer.push(&[1; 500]).unwrap();
    let room = writer.finish(&epoch()).as_ptr();
    writer.begin(FIRST);
    assert_eq!((writer.count(), writer.finish(&epoch()).len()), (0, 0));
    writer.push(b"prepare").unwrap();
    writer.finish(&epoch());
    assert_eq!(writer.push(b""), Ok(FIRST + 1));
    assert_eq!(writer.finish(&epoch()), frames()[0]);
    assert_eq!(writer.finish(&epoch()), frames()[0]);
    assert_eq!(writer.finish(&epoch()).as_ptr(), room);
}

#[test]
fn a_frame_decodes_alone_and_only_whole() {
    let [first, second, _] = frames();
    let frame = Frame::decode(&epoch(), &first).unwrap();
    assert_eq!((frame.first_sequence(), frame.next_sequence()), (FIRST, FIRST + 2));
    assert_eq!(Frame::decode(&epoch(), &[first, second].concat()), Err(FrameError::Trailing));
    assert_eq!(Frame::decode(&epoch(), &[]), Err(FrameError::Bad(BadFrame::Cut)));
}

proptest! {
    /// No input panics, and what is called good reads the same a second time.
    #[test]
    fn random_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        head in any::<bool>(),
        first in any::<u64>(),
    ) {
        let bytes = if head { [&MARKER[..], &[RECORD_VERSION], &bytes].concat() } else { bytes };
        let _ = Header::decode(&bytes);
        let _ = Frame::decode(&epoch(), &bytes);
        let _ = frames_in(&bytes).flat_map(|frame| frame.records()).count();
        if let Ok(scan) = scan(&epoch(), first, &bytes) {
            prop_assert!(scan.good_bytes() <= offset(bytes.len()));
        }
    }

    /// Cut anywhere and patched anywhere, a journal tells a prefix of the truth or nothing.
    #[test]
    fn a_spoilt_journal_never_lies(
        records in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..12),
        spoil in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        for (sequence, record) in (FIRST..).zip(&records) {
            bytes.extend(frame_of(&epoch(), sequence, &[record]));
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        for (at, byte) in spoil {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(scan) = scanned(&bytes) {
            let truth: Vec<(u64, Vec<u8>)> = (FIRST..).zip(records).collect();
            prop_assert!(truth.starts_with(&records_of(&scan)));
        }
    }
}
