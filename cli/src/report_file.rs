//! The file of `--report`: judged before anything is served, written whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A place where a page can be written.
pub(crate) struct ReportFile {
    /// As it was typed, for messages.
    typed: PathBuf,
    /// What it stands for, links followed.
    path: PathBuf,
}

impl ReportFile {
    /// Judges a place: its folder is there and can be written, and it is no folder, device or such.
    ///
    /// # Errors
    /// Words that say what is wrong with it.
    pub(crate) fn at(typed: &Path) -> Result<Self, String> {
        let wrong = |what: String| format!("--report {}: {what}", typed.display());
        let link = fs::symlink_metadata(typed).is_ok();
        let path = if link {
            let path = fs::canonicalize(typed).map_err(|error| wrong(error.to_string()))?;
            if !path.is_file() {
                return Err(wrong("is there, and is no file: name another one".to_string()));
            }
            // Whoever protected it does not want another in its place.
            let writable = fs::OpenOptions::new().append(true).open(&path);
            writable.map_err(|error| wrong(error.to_string()))?;
            path
        } else {
            if typed.file_name().is_none() || typed.as_os_str().to_string_lossy().ends_with('/') {
                return Err(wrong("is no name of a file".to_string()));
            }
            typed.to_path_buf()
        };
        let file = Self { typed: typed.to_path_buf(), path };
        let folder = file.folder().display();
        if !file.folder().is_dir() {
            return Err(wrong(format!(
                "there is no folder {folder}: make it, or name another one"
            )));
        }
        // It is removed at once: what is left is the certainty that one can be made. The kind of
        // the error says all; its words would name that file.
        file.temporary().map_err(|error| {
            wrong(format!("nothing can be written into the folder {folder}: {}", error.kind()))
        })?;
        Ok(file)
    }

    /// Whether another path is the same file.
    pub(crate) fn is(&self, other: &Path) -> bool {
        match (fs::canonicalize(&self.path), fs::canonicalize(other)) {
            (Ok(own), Ok(other)) => own == other,
            _ => false,
        }
    }

    /// Writes the page in place of what was there.
    ///
    /// # Errors
    /// Words that name the file; what was there before is as it was.
    pub(crate) fn write(&self, page: &str) -> Result<(), String> {
        let write = || {
            let mut file = self.temporary()?;
            file.write_all(page.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(|error| error.error)?;
            Ok::<_, io::Error>(())
        };
        write().map_err(|error| format!("--report {}: {error}", self.typed.display()))
    }

    /// The folder that it lies in.
    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|above| !above.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }

    /// A file beside it, which is removed unless it takes its place.
    fn temporary(&self) -> io::Result<NamedTempFile> {
        let mut builder = Builder::new();
        builder.prefix(".pinfold-report-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As any other file of this person's: the mask takes away from it.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(self.folder())
    }
}
