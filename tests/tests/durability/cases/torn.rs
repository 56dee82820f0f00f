//! A journal's end that did not reach the disk, and a middle that changed there.

use std::fs;
use std::path::Path;

use pinfold_core::journal::record::{self, Header};
use pinfold_host::journal;

use super::FIRST;
use crate::job::{Calls, Owner, endpoint, prepare};
use crate::process::Process;

/// Where the last frame of a job's only segment begins, and where it ends.
fn last_frame(dir: &Path) -> (u64, u64) {
    let reading = journal::read(dir).unwrap();
    let segment = reading.segments.last().unwrap();
    let bytes = fs::read(&segment.path).unwrap();
    let header = Header::decode(&bytes).unwrap();
    let frames = &bytes[Header::BYTES..];
    let scan = record::scan(&header.epoch, header.first_sequence, frames).unwrap();
    let at = Header::BYTES as u64 + scan.last_frame_at().unwrap();
    (at, segment.used_bytes)
}

/// B67: records were appended behind a torn one, and lost with it at the next start. Here the last
/// frame is cut short at many places; the job goes on without it, is killed again, and keeps all
/// that it acknowledged since.
#[test]
fn b67_killed_torn_and_killed_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = Process::node(dir.path());
    node.opened().unwrap();
    let mut worker = Owner::worker("w", &mut node);
    let mut answered = Vec::new();
    for cut in 1..=25 {
        // Its frame will not have reached the disk as a whole, so its answer counts as not heard.
        let torn = worker.next(prepare(endpoint(cut), u128::from(cut)));
        let first = node.answer_to(torn.clone()).unwrap();
        node.kill();
        let (begins, ends) = last_frame(dir.path());
        let path = journal::read(dir.path()).unwrap().segments.last().unwrap().path.clone();
        let length = (ends - 3 * cut).max(begins + 1);
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        let tail = journal::read(dir.path()).unwrap().torn.expect("a torn tail");
        assert_eq!((tail.offset, tail.path), (begins, path));

        node = Process::node(dir.path());
        assert_eq!(node.opened(), Ok(tail.bytes), "cut {cut}");
        assert_eq!(node.answer_to(torn.clone()).unwrap(), first, "decided anew, in the same state");
        answered.push((torn, first));
        for (ask, answer) in answered.iter().rev().take(4) {
            assert_eq!(node.answer_to(ask.clone()).as_ref(), Some(answer));
        }
    }
    node.kill();
    let reading = journal::read(dir.path()).unwrap();
    assert_eq!((reading.torn, reading.catalog.gauges().checkpoints), (None, 25));
    reading.catalog.check().unwrap();
}

/// B67, the other half: what is bad in the middle was durable once. It is refused, named, and left.
#[test]
fn b67_damage_is_not_torn() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = Process::node(dir.path());
    node.opened().unwrap();
    let mut worker = Owner::worker("w", &mut node);
    worker.save(1, &mut node);
    node.kill();
    let (begins, _) = last_frame(dir.path());
    let path = dir.path().join(FIRST);
    let whole = fs::read(&path).unwrap();
    for at in [45, usize::try_from(begins).unwrap() - 10] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let why = Process::node(dir.path()).opened().unwrap_err();
        assert!(why.contains(FIRST) && why.contains("is damaged at byte"), "{why}");
        assert_eq!(fs::read(&path).unwrap(), damaged, "nothing may be changed");
    }
    fs::write(&path, &whole).unwrap();
    Process::node(dir.path()).opened().unwrap();
}
