//! A disk that is soon full.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What the kernel says of a full disk.
pub(crate) const NO_SPACE: &str = "No space left on device";

/// A file system in memory, of a fixed size.
pub(crate) struct SmallDisk {
    dir: TempDir,
}

impl SmallDisk {
    /// None, and a word about it, where this process may not mount one.
    pub(crate) fn mount(kib: u32) -> Option<Self> {
        let disk = Self { dir: tempfile::tempdir().unwrap() };
        if disk.run("mount", &["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"]) {
            return Some(disk);
        }
        // Past the runner, which shows what a test says only when it fails.
        let what = "no file system may be mounted here: less is tried of a full disk";
        let mut screen = io::stderr();
        writeln!(screen, "full disk: {what}").unwrap();
        None
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let mut command = Command::new(program);
        let output = command.args(arguments).arg(self.path()).output();
        output.is_ok_and(|output| output.status.success())
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Takes all room that is left.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        while file.write_all(&[1; 512]).is_ok() {}
    }

    pub(crate) fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.run("umount", &["--lazy"]);
    }
}
