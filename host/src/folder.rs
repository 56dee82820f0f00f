//! Folders whose entries survive a power cut.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Creates the folder and what is missing above it, and makes durable that it is there.
///
/// What is there already may have been created a moment ago by somebody who has not synced it,
/// or never will; so every folder above is synced, too.
pub(crate) fn create_durably(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return sync_above(folder);
    }
    let above = match folder.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        Some(_) | None => Path::new("."),
    };
    create_durably(above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => sync(above),
    }
}

/// Makes durable that a folder is there, as far as this process may say so.
pub(crate) fn sync_above(folder: &Path) -> io::Result<()> {
    for above in fs::canonicalize(folder)?.ancestors().skip(1) {
        match sync(above) {
            Err(error) if !is_of_others(error.kind()) => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// A folder that this process may not even list, or that cannot be synced at all, is one of
/// the system's, and was there long before.
fn is_of_others(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};

    matches!(kind, PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported)
}

/// Syncs a folder that is not empty, and those above it up to the root. Each time anew, for any of
/// them may have been removed and created again since the last.
pub(crate) fn sync_up_to(root: &Path, folder: &Path) -> io::Result<()> {
    for folder in folder.ancestors() {
        sync(folder)?;
        if folder == root {
            break;
        }
    }
    Ok(())
}

/// Syncs a folder; when it is removed already, the one that had it, and so on up to the root.
pub(crate) fn sync_nearest(root: &Path, folder: &Path) -> io::Result<()> {
    for folder in folder.ancestors() {
        match sync(folder) {
            Err(error) if is_absence(error.kind()) && folder != root => {}
            synced => return synced,
        }
    }
    Ok(())
}

/// There is none of that name; a part of its path may be a file instead of a folder.
pub(crate) fn is_absence(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Makes the entries of a folder durable, as a file created or renamed in it needs.
#[cfg(unix)]
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Elsewhere a folder cannot be opened as a file, and its entries are durable with the file.
#[cfg(not(unix))]
pub(crate) fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_created_once() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        for _ in 0..2 {
            create_durably(&deep).unwrap();
            assert!(deep.is_dir());
        }
        create_durably(Path::new(".")).unwrap();
        create_durably(Path::new("/")).unwrap();
        fs::write(dir.path().join("file"), b"").unwrap();
        assert!(create_durably(&dir.path().join("file/below")).is_err());
    }

    #[test]
    fn what_is_removed_is_synced_above() {
        let dir = tempfile::tempdir().unwrap();
        let (root, gone) = (dir.path(), dir.path().join("a/b"));
        sync_nearest(root, &gone).unwrap();
        assert!(sync_up_to(root, &gone).is_err());
        fs::create_dir_all(&gone).unwrap();
        sync_up_to(root, &gone).unwrap();
        let missing = root.join("none");
        assert!(sync_nearest(&missing, &missing.join("a")).is_err(), "the root itself is gone");
    }
}
