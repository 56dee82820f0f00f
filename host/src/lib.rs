//! What a host of pinfold needs on a real machine: a durable journal, and stores for the objects.
//!
//! It does the I/O that the core only asks for, and decides nothing.
#![forbid(unsafe_code)]

pub mod file_store;
pub mod journal_file;
pub mod node;
pub mod store;

/// Folders whose entries survive a power cut.
mod folder {
    use std::fs::{self, File};
    use std::io;
    use std::path::Path;

    /// Creates the folder and what is missing above it; syncs every folder that got an entry.
    pub(crate) fn create_durably(folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let above = match folder.parent() {
            Some(above) if !above.as_os_str().is_empty() => {
                create_durably(above)?;
                above
            }
            Some(_) | None => Path::new("."),
        };
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => sync(above),
        }
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
}
