//! The bytes of a snapshot, and the catalog that goes on from it.

use crc::{CRC_32_ISCSI, Crc};
use pinfold_core::engine::{Config, Engine};
use pinfold_core::journal::snapshot::{VERSION, decode as decode_snapshot, encode};
use pinfold_core::policy::Genesis;
use pinfold_core::replay::Replay;

use super::is_modest;

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
const HEAD: usize = 41;

pub(super) fn decode(input: &[u8]) -> bool {
    let accepted = read(input);
    if input.len() >= HEAD + 4 {
        read(&mended(input));
    }
    accepted
}

/// What is accepted encodes to bytes that are read as the same, and the job can go on from it.
///
/// Not always to the same bytes: a number may be written longer than it has to be, which nobody
/// does, and is read as that number.
fn read(bytes: &[u8]) -> bool {
    let job = bytes.get(HEAD..).map(postcard::take_from_bytes::<Genesis>);
    if let Some(Ok((job, _))) = job
        && !is_modest(&job.limits)
    {
        return false;
    }
    let Ok((catalog, position)) = decode_snapshot(bytes) else { return false };
    let encoded = encode(&catalog, position);
    assert!(encoded == bytes || encoded.len() < bytes.len(), "it encodes to other rows");
    assert!(decode_snapshot(&encoded) == Ok((catalog.clone(), position)));
    let Ok(mut engine) =
        Engine::resume(Config::default(), Replay::from_snapshot(catalog, position))
    else {
        return position == u64::MAX;
    };
    for _ in 0..20 {
        if !engine.follow_up() {
            break;
        }
        engine.catalog().check().unwrap();
    }
    true
}

/// The same with magic, version, length and checksum that fit.
fn mended(input: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    let (body, checksum) = bytes.split_last_chunk_mut::<4>().unwrap();
    body[..8].copy_from_slice(b"PINFOLDS");
    body[8] = VERSION;
    let payload = (body.len() - HEAD) as u64;
    body[33..41].copy_from_slice(&payload.to_le_bytes());
    *checksum = CHECKSUM.checksum(body).to_le_bytes();
    bytes
}
