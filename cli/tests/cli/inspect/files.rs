//! What can be seen of a job's folder, and how its files are damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::scene::Scene;

/// Files with their bytes and folders without, each with the time of its last change.
pub(crate) type Tree = BTreeMap<PathBuf, (Vec<u8>, SystemTime)>;

impl Scene {
    /// Everything in the folder of the job.
    pub(crate) fn job(&self) -> Tree {
        let mut found = Tree::new();
        let mut folders = vec![self.path("job")];
        while let Some(folder) = folders.pop() {
            let changed = fs::metadata(&folder).unwrap().modified().unwrap();
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let changed = fs::metadata(&path).unwrap().modified().unwrap();
                    found.insert(path.clone(), (fs::read(&path).unwrap(), changed));
                }
            }
            found.insert(folder, (Vec::new(), changed));
        }
        found
    }

    /// The job's segments, in order.
    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("job/journal")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "log"));
        paths.sort();
        paths
    }
}

/// Changes one byte of a file.
pub(crate) fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Where the bytes of a file that are not zero end.
pub(crate) fn used(path: &Path) -> usize {
    fs::read(path).unwrap().iter().rposition(|byte| *byte != 0).unwrap() + 1
}
