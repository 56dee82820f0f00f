//! Whole-system tests live in `tests/`. What more than one program of this package reads is here.
//!
//! It never judges: it finds what is written down, and says what it says.
#![forbid(unsafe_code)]

use std::path::Path;
use std::{fs, io};

/// A fault that happened elsewhere, as the script of a World in which it goes right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The file below the repository's root, for whoever reads a fault.
    pub path: String,
    /// The script.
    pub text: String,
    /// The mutant under which this very script must fail; empty when its second line names none.
    pub mutant: String,
}

/// The folder of the reports, from the repository's root.
const REPORTS: &str = "tests/testdata/reports";

/// Every report, by its path: what happened to others must not happen here, and a script of it
/// that no bug can break would show nothing.
///
/// # Errors
/// The folder, or one of its files, cannot be read.
pub fn reports() -> io::Result<Vec<Report>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(REPORTS))? {
        let entry = entry?;
        let text = fs::read_to_string(entry.path())?;
        let mutant = text.lines().nth(1).and_then(|line| line.strip_prefix("# Mutant: "));
        let mutant = mutant.unwrap_or_default().to_string();
        let path = format!("{REPORTS}/{}", entry.file_name().to_string_lossy());
        found.push(Report { path, text, mutant });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}
