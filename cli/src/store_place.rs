//! Where a store of objects is: a folder, by its path or its URL.
//!
//! Every command that takes `--store` reads it here. It protects whoever types one from a URL that
//! is taken for the name of a folder: a scheme that nobody knows is refused.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use pinfold_host::file_store::{FileStore, FileStoreError};
use pinfold_host::store::ObjectStore;
use url::Url;

use crate::Failure;

/// A folder of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorePlace {
    folder: PathBuf,
}

impl StorePlace {
    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The same as it is read from another folder.
    pub(crate) fn seen_from(self, other: &Path) -> Self {
        Self { folder: other.join(self.folder) }
    }
}

/// The store of a folder that was opened or made, or what is wrong with it.
pub(crate) fn opened(
    folder: &Path,
    store: Result<FileStore, FileStoreError>,
) -> Result<Arc<dyn ObjectStore>, Failure> {
    match store {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(Failure::Input(format!("--store {}: {error}", folder.display()))),
    }
}

impl FromStr for StorePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "a store is a folder, or its URL like file:///var/objects";
        let Some(scheme) = scheme(text) else {
            return match text {
                "" => Err(expected.into()),
                _ => Ok(Self { folder: PathBuf::from(text) }),
            };
        };
        if !scheme.eq_ignore_ascii_case("file") {
            return Err(format!("{scheme} is no store that is known: {expected}"));
        }
        let url = Url::parse(text).map_err(|error| format!("{error}: {expected}"))?;
        let has_more = url.query().is_some() || url.fragment().is_some();
        let is_whole = text.get(scheme.len()..).is_some_and(|rest| rest.starts_with(":///"));
        match url.to_file_path() {
            Ok(folder) if is_whole && !has_more => Ok(Self { folder }),
            _ => Err(format!("{text} names no folder of this machine: {expected}")),
        }
    }
}

/// The scheme of what looks like a URL, and not like a path.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let is_scheme = scheme.bytes().all(fits)
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && (rest.starts_with("//") || scheme.eq_ignore_ascii_case("file"));
    is_scheme.then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_folder_or_its_url() {
        for (text, folder) in [
            ("objects", "objects"),
            ("./a:b", "./a:b"),
            ("a:b", "a:b"),
            ("/var/objects", "/var/objects"),
            ("file:///var/objects", "/var/objects"),
            ("FILE:///var/my%20objects/", "/var/my objects/"),
        ] {
            let place: StorePlace = text.parse().unwrap();
            assert_eq!(place.folder(), Path::new(folder), "{text}");
        }
        let place: StorePlace = "objects".parse().unwrap();
        assert_eq!(place.seen_from(Path::new("/etc")).folder(), Path::new("/etc/objects"));
        let place: StorePlace = "file:///objects".parse().unwrap();
        assert_eq!(place.seen_from(Path::new("/etc")).folder(), Path::new("/objects"));
        for (text, expected) in [
            ("", "a store is a folder"),
            ("s3://bucket/objects", "s3 is no store that is known"),
            ("mooncake://host", "mooncake is no store that is known"),
            ("file://host/objects", "names no folder of this machine"),
            ("file:objects", "names no folder of this machine"),
            ("file:///objects?mode=fast", "names no folder of this machine"),
        ] {
            let refused = text.parse::<StorePlace>().unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
            assert!(refused.contains("file:///"), "{refused}");
        }
    }
}
