//! Listing the objects of a folder, in memory that its depth bounds.

use std::fs::{self, DirEntry, ReadDir};
use std::io;
use std::path::Path;

use super::{MAX_PARTS, is_absence, is_key, why_at};
use crate::store::ListError;

/// Visits every plain file whose path from `root` is a key.
pub(super) fn walk(root: &Path, visit: &mut dyn FnMut(&str, u64)) -> Result<(), ListError> {
    let entries = fs::read_dir(root).map_err(|error| list_error(root, error))?;
    let mut open = vec![Level { prefix: String::new(), entries }];
    while let Some(level) = open.last_mut() {
        match level.entries.next() {
            None => drop(open.pop()),
            Some(entry) => {
                let entry = entry.map_err(|error| list_error(root, error))?;
                let below = level.visit(&entry, visit)?;
                open.extend(below.filter(|below| below.parts() < MAX_PARTS));
            }
        }
    }
    Ok(())
}

/// A folder that is being listed; one stays open for each part of a key, never more.
struct Level {
    prefix: String,
    entries: ReadDir,
}

impl Level {
    /// Visits an object, or returns the folder to go on with; skips what is neither.
    fn visit(
        &self,
        entry: &DirEntry,
        visit: &mut dyn FnMut(&str, u64),
    ) -> Result<Option<Self>, ListError> {
        let path = entry.path();
        let key = format!("{}{}", self.prefix, entry.file_name().display());
        if !is_key(&key) {
            return Ok(None);
        }
        let found = match fs::symlink_metadata(&path) {
            Err(error) if is_absence(error.kind()) => return Ok(None),
            found => found.map_err(|error| list_error(&path, error))?,
        };
        if found.is_file() {
            visit(&key, found.len());
        }
        if !found.is_dir() {
            return Ok(None);
        }
        match fs::read_dir(&path) {
            Ok(entries) => Ok(Some(Self { prefix: format!("{key}/"), entries })),
            Err(error) if is_absence(error.kind()) => Ok(None),
            Err(error) => Err(list_error(&path, error)),
        }
    }

    fn parts(&self) -> usize {
        self.prefix.split_terminator('/').count()
    }
}

fn list_error(path: &Path, error: io::Error) -> ListError {
    ListError(why_at("list", path)(error))
}
