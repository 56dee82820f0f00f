//! The disk alone: 100 bytes written behind one another in a file of zeros, each synced.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use pinfold_host::disk::{Disk, SystemDisk};

const RECORD: [u8; 100] = [7; 100];
const FILE_BYTES: usize = 16 << 20;

/// Syncs per second, for one second.
pub(crate) fn syncs_per_second(dir: &Path) -> f64 {
    let path = dir.join("raw");
    let mut file = SystemDisk.create(&path).expect("a file");
    file.write_at(0, &vec![0; FILE_BYTES]).expect("zeros");
    file.sync().expect("a sync");
    let (begin, mut count, mut at) = (Instant::now(), 0_u32, 0);
    while begin.elapsed() < Duration::from_secs(1) {
        file.write_at(at, &RECORD).expect("a write");
        file.sync().expect("a sync");
        at = (at + RECORD.len() as u64) % (FILE_BYTES - RECORD.len()) as u64;
        count += 1;
    }
    drop(file);
    std::fs::remove_file(&path).expect("removed");
    File::open(dir).and_then(|folder| folder.sync_all()).expect("a sync");
    f64::from(count) / begin.elapsed().as_secs_f64()
}
