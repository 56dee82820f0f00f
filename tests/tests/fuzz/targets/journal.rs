//! The bytes of a journal: header, frames, and the events in them.

use crc::{CRC_32_ISCSI, Crc};
use pinfold_core::catalog::{Catalog, Change, Event};
use pinfold_core::engine::{Config, Engine};
use pinfold_core::journal::record::{
    End, FORMAT_VERSION, FRAME_OVERHEAD_BYTES, Frame, FrameWriter, Header, RECORD_VERSION, scan,
};
use pinfold_core::object::Digest;
use pinfold_core::replay::{decode_event, follow};

use super::is_modest;

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
const OVERHEAD: usize = FRAME_OVERHEAD_BYTES as usize;
/// What a frame's head says, and all of its head.
const FIELDS: usize = 21;
const HEAD: usize = 25;

pub(super) fn decode(input: &[u8]) -> bool {
    let accepted = read(input);
    if input.len() >= Header::BYTES {
        let (mended, records) = mended(input);
        read(&mended);
        read(&written(input, &records));
        replay_what_fits(&records);
        replay_what_fits(&edited(&records, Digest::of(input).sum));
    }
    accepted
}

/// Reads a journal file as a host does; whether all of it is good.
fn read(file: &[u8]) -> bool {
    let Ok(Header { epoch, first_sequence }) = Header::decode(file) else { return false };
    let bytes = &file[Header::BYTES..];
    let Ok(scan) = scan(&epoch, first_sequence, bytes) else { return false };
    let (mut next, mut at) = (first_sequence, 0);
    let mut records = Vec::new();
    for frame in scan.frames() {
        assert_eq!(frame.first_sequence(), next);
        next = frame.next_sequence();
        let payload: usize = frame.records().map(|(_, record)| record.len() + 4).sum();
        let whole = &bytes[at..at + payload + OVERHEAD];
        assert_eq!(Frame::decode(&epoch, whole), Ok(frame));
        at += whole.len();
        records.extend(frame.records().map(|(_, record)| record));
    }
    assert_eq!((scan.next_sequence(), scan.good_bytes()), (next, at as u64));
    if !records.iter().all(|record| asks_little(record)) {
        return false;
    }
    let recovered = Engine::recover(Config::default(), records);
    if let Ok(engine) = &recovered {
        engine.catalog().check().unwrap();
    }
    recovered.is_ok() && scan.end() == End::Clean
}

/// A record that cannot be used is passed over here, so that those behind it are tried as well.
fn replay_what_fits(records: &[&[u8]]) {
    let geneses = records.iter().filter_map(|record| match decode_event(record, 0) {
        Ok(Event::Genesis(genesis)) if is_modest(&genesis.limits) => Some(genesis),
        Ok(_) | Err(_) => None,
    });
    let Some(mut catalog) = geneses.filter_map(|genesis| Catalog::new(genesis).ok()).next() else {
        return;
    };
    for record in records.iter().filter(|record| asks_little(record)) {
        // What does not fit changes nothing.
        follow(&mut catalog, record, 1).ok();
    }
    catalog.check().unwrap();
}

/// The records with one of them gone, again elsewhere, or in another's place, as a number says.
///
/// Bytes that change seldom make a record that could be but never was; this does.
fn edited<'a>(records: &[&'a [u8]], number: u64) -> Vec<&'a [u8]> {
    let mut records = records.to_vec();
    let length = records.len() as u64;
    let place = |number: u64| usize::try_from(number % length.max(1)).unwrap();
    let (one, other) = (place(number >> 8), place(number >> 32));
    match number % 4 {
        _ if records.len() < 2 => {}
        0 | 1 => {
            records.remove(one);
        }
        2 => records.insert(other, records[one]),
        _ => records.swap(one, other),
    }
    records
}

/// Whether a record leaves the job's limits as modest as they are.
fn asks_little(record: &[u8]) -> bool {
    match decode_event(record, 0) {
        Ok(Event::Genesis(job)) => is_modest(&job.limits),
        Ok(Event::Decided { change: Change::Configured { limits, .. }, .. }) => is_modest(&limits),
        Ok(_) | Err(_) => true,
    }
}

/// The file with checksums, markers, versions and lengths that fit; the numbers and counts of its
/// frames stay as they are. And the records in it, whatever their count.
fn mended(input: &[u8]) -> (Vec<u8>, Vec<&[u8]>) {
    let mut file = input.to_vec();
    file[..8].copy_from_slice(b"PINFOLDJ");
    file[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    let checksum = CHECKSUM.checksum(&file[..36]);
    file[36..40].copy_from_slice(&checksum.to_le_bytes());
    let (header, mut rest) = file.split_at_mut(Header::BYTES);
    let epoch = &header[12..28];
    let mut records = Vec::new();
    let mut behind = &input[Header::BYTES..];
    while rest.len() >= OVERHEAD {
        let said = u32::from_le_bytes(rest[5..9].try_into().unwrap());
        let payload = usize::try_from(said).unwrap().min(rest.len() - OVERHEAD);
        let (frame, later) = rest.split_at_mut(payload + OVERHEAD);
        rest = later;
        frame[..4].copy_from_slice(b"PFrm");
        frame[4] = RECORD_VERSION;
        frame[5..9].copy_from_slice(&u32::try_from(payload).unwrap().to_le_bytes());
        let of_head = checksum_of(&[epoch, &frame[..FIELDS]]);
        let of_all = checksum_of(&[epoch, &frame[..FIELDS], &frame[HEAD..HEAD + payload]]);
        frame[FIELDS..HEAD].copy_from_slice(&of_head);
        frame[HEAD + payload..].copy_from_slice(&of_all);
        let (said, later) = behind.split_at(payload + OVERHEAD);
        behind = later;
        records.extend(split(&said[HEAD..HEAD + payload]));
    }
    (file, records)
}

fn checksum_of(parts: &[&[u8]]) -> [u8; 4] {
    let mut digest = CHECKSUM.digest();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().to_le_bytes()
}

/// A payload as records, the last one cut where the payload ends.
fn split(mut payload: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    while let Some((length, rest)) = payload.split_first_chunk() {
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap().min(rest.len());
        let (record, rest) = rest.split_at(length);
        records.push(record);
        payload = rest;
    }
    records
}

/// A file of this header's epoch with these records, as a host would have written it.
fn written(input: &[u8], records: &[&[u8]]) -> Vec<u8> {
    let epoch = pinfold_core::id::Epoch::from_bytes(input[12..28].try_into().unwrap());
    let mut file = Header { epoch, first_sequence: 0 }.encode().to_vec();
    let mut frame = FrameWriter::default();
    let mut next = 0;
    for batch in records.chunks(3) {
        frame.begin(next);
        batch.iter().for_each(|record| next = frame.push(record).unwrap() + 1);
        file.extend_from_slice(frame.finish(&epoch));
    }
    file
}
