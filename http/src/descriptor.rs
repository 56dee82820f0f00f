//! The descriptor: a file by which those on the same machine find a coordinator.
//!
//! Protects a job from a stranger's address: the file is its owner's alone, it appears whole or not
//! at all, and one that names another job's life is never replaced.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

/// Where a coordinator is, and whose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Its URL.
    pub url: String,
    /// The job's namespace.
    pub namespace: String,
    /// The life of the job that it serves.
    pub epoch: String,
    /// Where its token is, if it asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Where the certificate is that a client has to trust, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

/// Why a descriptor cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum DescriptorError {
    /// The file cannot be written or read.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It holds something else.
    #[error("{path} is no descriptor of a coordinator: {what}", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It is of another life of a job, whose coordinator may run.
    #[error(
        "{path} is of the job {namespace} with epoch {epoch}: remove it if that job is over, or \
         name another file", path = .path.display()
    )]
    OtherJob {
        /// The file.
        path: PathBuf,
        /// That job.
        namespace: String,
        /// Its epoch.
        epoch: String,
    },
}

impl Descriptor {
    /// Reads a descriptor.
    ///
    /// # Errors
    /// [`DescriptorError`] when there is none, or something else.
    pub fn read(path: &Path) -> Result<Self, DescriptorError> {
        let text = fs::read_to_string(path).map_err(at(path))?;
        serde_json::from_str(&text).map_err(|error| {
            let (path, what) = (path.to_path_buf(), error.to_string());
            DescriptorError::Unreadable { path, what }
        })
    }

    /// Writes it for its owner alone: a new file, or in place of one of the same life.
    ///
    /// # Errors
    /// [`DescriptorError`] when the file is of another life, something else, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), DescriptorError> {
        match Self::read(path) {
            Ok(there) if there.epoch != self.epoch => {
                let (path, Self { namespace, epoch, .. }) = (path.to_path_buf(), there);
                return Err(DescriptorError::OtherJob { path, namespace, epoch });
            }
            Err(DescriptorError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {}
            Err(other) => return Err(other),
            Ok(_) => return self.replace(path),
        }
        let new = self.written_beside(path)?;
        new.persist_noclobber(path).map_err(|error| at(path)(error.error))?;
        Ok(())
    }

    /// Puts it in place of the one that is there.
    fn replace(&self, path: &Path) -> Result<(), DescriptorError> {
        self.written_beside(path)?.persist(path).map_err(|error| at(path)(error.error))?;
        Ok(())
    }

    /// A whole new file in the same folder, which nobody else may read and which goes again if it
    /// is not given its name.
    fn written_beside(&self, path: &Path) -> Result<NamedTempFile, DescriptorError> {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(folder).map_err(at(path))?;
        file.write_all(self.text().as_bytes()).map_err(at(path))?;
        Ok(file)
    }

    /// Removes a file that still says what this one says.
    pub fn remove(&self, path: &Path) {
        if Self::read(path).is_ok_and(|there| there == *self) {
            // One that stays is replaced by the next start.
            let _ = fs::remove_file(path);
        }
    }

    fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> DescriptorError {
    move |error| DescriptorError::Io { path: path.to_path_buf(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_private_and_of_one_life() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("job.json");
        let url = "http://127.0.0.1:1".to_string();
        let (namespace, epoch) = ("job".to_string(), "e1".to_string());
        let first = Descriptor { url, namespace, epoch, token_file: None, ca_file: None };
        first.write(&path).unwrap();
        assert_eq!(Descriptor::read(&path).unwrap(), first);
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(
                &fs::metadata(&path).unwrap().permissions(),
            );
            assert_eq!(mode & 0o777, 0o600);
        }
        let again = Descriptor { url: "http://127.0.0.1:2".into(), ..first.clone() };
        again.write(&path).unwrap();
        assert_eq!(Descriptor::read(&path).unwrap(), again);
        let other = Descriptor { epoch: "e2".into(), ..first.clone() };
        let refused = other.write(&path).unwrap_err().to_string();
        assert!(refused.contains("of the job job with epoch e1"), "{refused}");
        first.remove(&path);
        assert!(path.exists(), "it says something else by now");
        again.remove(&path);
        assert!(!path.exists());
        fs::write(&path, "{}").unwrap();
        assert!(matches!(first.write(&path), Err(DescriptorError::Unreadable { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}", "it is nobody's of ours");
    }
}
