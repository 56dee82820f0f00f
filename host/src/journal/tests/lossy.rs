//! A disk that keeps what was synced, and of everything else whatever it likes.
//!
//! Each call is a step. At the chosen step the machine stops, or the call fails; from a stop on
//! every call fails until the machine starts again, with a state of its disk that the promises of
//! [`Disk`] allow: each unsynced piece of a write, each unsynced length and each unsynced name is
//! there or not, independently. After a failed sync the page cache shows what the disk lost in
//! part, and no later sync brings it back.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::disk::{Disk, DiskFile, Lock};

/// What is written at once, at most: smaller than a frame's head.
const PIECE_BYTES: usize = 16;

/// What happens at the chosen step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mishap {
    /// The machine stops; the call was begun.
    Stop,
    /// The call fails, and the machine goes on.
    Fail,
}

/// What is left of everything unsynced.
#[derive(Clone, Copy, Debug)]
pub(super) enum Left {
    Nothing,
    Everything,
    /// Any of it, by this seed.
    Some(u64),
    /// All but the last write, and of that one so many bytes.
    Bytes(usize),
}

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct LossyDisk(Arc<Mutex<Platter>>);

#[derive(Debug, Default)]
struct Platter {
    inodes: Vec<Inode>,
    /// The names as programs see them.
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<Renaming>,
    steps: u64,
    mishap: Option<(u64, Mishap)>,
    stopped: bool,
    /// Tells handles of an earlier start from those of this one.
    starts: u64,
    locks: BTreeMap<PathBuf, u64>,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    /// As programs see it.
    bytes: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Bytes(at, bytes) => write(file, *at, bytes),
            Self::Length(length) => file.resize(*length, 0),
        }
    }
}

/// Names that change together: none stands for a removal.
type Renaming = Vec<(PathBuf, Option<usize>)>;

impl LossyDisk {
    /// How many steps were taken so far.
    pub(super) fn steps(&self) -> u64 {
        self.with(|platter| platter.steps)
    }

    /// Chooses what happens so many steps from now.
    pub(super) fn in_steps(&self, steps: u64, mishap: Mishap) {
        self.with(|platter| platter.mishap = Some((platter.steps + steps, mishap)));
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.with(|platter| platter.stopped)
    }

    /// Starts the machine again, with so much left.
    pub(super) fn start_again(&self, left: Left) {
        self.with(|platter| platter.start_again(left));
    }

    /// Another disk with the same content.
    pub(super) fn copy(&self) -> Self {
        self.with(|platter| {
            let copy = Platter {
                inodes: platter.inodes.clone(),
                names: platter.names.clone(),
                durable_names: platter.durable_names.clone(),
                unsynced_names: platter.unsynced_names.clone(),
                ..Platter::default()
            };
            Self(Arc::new(Mutex::new(copy)))
        })
    }

    /// The names of files, as programs see them.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.with(|platter| platter.names.keys().cloned().collect())
    }

    fn with<T>(&self, change: impl FnOnce(&mut Platter) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }
}

impl Platter {
    /// Counts a step; the error, if it is the chosen one.
    fn step(&mut self) -> io::Result<()> {
        if self.stopped {
            return Err(io::Error::other("the machine has stopped"));
        }
        self.steps += 1;
        match self.mishap {
            Some((step, Mishap::Stop)) if step == self.steps => {
                self.stopped = true;
                Err(io::Error::other("the machine stops"))
            }
            Some((step, Mishap::Fail)) if step == self.steps => {
                Err(io::Error::other("an input or output error"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn inode(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn change(&mut self, inode: usize, change: Change) {
        let inode = &mut self.inodes[inode];
        change.apply(&mut inode.bytes);
        inode.unsynced.push(change);
    }

    fn rename(&mut self, renaming: Renaming) {
        apply(&mut self.names, &renaming);
        self.unsynced_names.push(renaming);
    }

    fn start_again(&mut self, left: Left) {
        let mut chance = Chance::of(left);
        let last = self.last_write();
        for (number, inode) in self.inodes.iter_mut().enumerate() {
            let unsynced = std::mem::take(&mut inode.unsynced);
            let count = unsynced.len();
            for (place, change) in unsynced.into_iter().enumerate() {
                let bytes = match left {
                    Left::Bytes(bytes) if last == Some(number) && place + 1 == count => Some(bytes),
                    _ => None,
                };
                chance.keep(&mut inode.durable, change, bytes);
            }
            inode.bytes.clone_from(&inode.durable);
        }
        for renaming in std::mem::take(&mut self.unsynced_names) {
            if chance.is_kept() {
                apply(&mut self.durable_names, &renaming);
            }
        }
        self.names.clone_from(&self.durable_names);
        self.stopped = false;
        self.mishap = None;
        self.starts += 1;
        self.locks.clear();
    }

    /// The file that has an unsynced write, when one is under way.
    fn last_write(&self) -> Option<usize> {
        self.inodes
            .iter()
            .position(|inode| matches!(inode.unsynced.last(), Some(Change::Bytes(..))))
    }
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, renaming: &Renaming) {
    for (path, inode) in renaming {
        match inode {
            Some(inode) => names.insert(path.clone(), *inode),
            None => names.remove(path),
        };
    }
}

fn write(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    file.resize(file.len().max(at + bytes.len()), 0);
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Decides what of the unsynced is there.
struct Chance {
    left: Left,
    random: u64,
}

impl Chance {
    fn of(left: Left) -> Self {
        let seed = match left {
            Left::Some(seed) => seed,
            Left::Nothing | Left::Everything | Left::Bytes(_) => 0,
        };
        Self { left, random: seed.wrapping_mul(2).wrapping_add(1) }
    }

    fn is_kept(&mut self) -> bool {
        match self.left {
            Left::Nothing => false,
            Left::Everything | Left::Bytes(_) => true,
            Left::Some(_) => {
                // Xorshift: any bit of it will do.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                self.random >> 40 & 1 == 1
            }
        }
    }

    fn keep(&mut self, file: &mut Vec<u8>, change: Change, only: Option<usize>) {
        match (change, only) {
            (Change::Length(length), _) if self.is_kept() => file.resize(length, 0),
            (Change::Length(_), _) => {}
            (Change::Bytes(at, bytes), Some(only)) => {
                write(file, at, bytes.get(..only).unwrap_or(&bytes));
            }
            (Change::Bytes(at, bytes), None) => {
                for (number, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
                    if self.is_kept() {
                        write(file, at + number * PIECE_BYTES, piece);
                    }
                }
            }
        }
    }
}

impl Disk for LossyDisk {
    fn create_folder(&self, _: &Path) -> io::Result<()> {
        self.with(Platter::step)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.with(|platter| {
            platter.step()?;
            let inside = platter.names.keys().filter(|path| path.parent() == Some(folder));
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            Ok(inside.map(name).collect())
        })
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.with(|platter| {
            platter.step()?;
            let inode = match platter.inode(path) {
                // One that is there is emptied, and keeps its place.
                Ok(inode) => {
                    platter.change(inode, Change::Length(0));
                    inode
                }
                Err(_) => {
                    platter.inodes.push(Inode::default());
                    let inode = platter.inodes.len() - 1;
                    platter.rename(vec![(path.to_path_buf(), Some(inode))]);
                    inode
                }
            };
            Ok(Box::new(Handle { disk: self.clone(), inode, start: platter.starts }) as _)
        })
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.with(|platter| {
            platter.step()?;
            let inode = platter.inode(path)?;
            Ok(Box::new(Handle { disk: self.clone(), inode, start: platter.starts }) as _)
        })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.with(|platter| {
            platter.step()?;
            let inode = platter.inode(path)?;
            Ok(platter.inodes[inode].bytes.clone())
        })
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.read(path).map(|bytes| bytes.len() as u64)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut file = self.open(path)?;
        file.sync()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.with(|platter| {
            let stopped = platter.step();
            let inode = platter.inode(from)?;
            // One that fails has not happened; one that was under way may have.
            if stopped.is_ok() || platter.stopped {
                platter.rename(vec![(from.to_path_buf(), None), (to.to_path_buf(), Some(inode))]);
            }
            stopped
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.with(|platter| {
            let stopped = platter.step();
            platter.inode(path)?;
            if stopped.is_ok() || platter.stopped {
                platter.rename(vec![(path.to_path_buf(), None)]);
            }
            stopped
        })
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.with(|platter| {
            platter.step()?;
            let (synced, rest): (Vec<_>, Vec<_>) =
                std::mem::take(&mut platter.unsynced_names).into_iter().partition(|renaming| {
                    renaming.iter().any(|(path, _)| path.parent() == Some(folder))
                });
            for renaming in &synced {
                apply(&mut platter.durable_names, renaming);
            }
            platter.unsynced_names = rest;
            Ok(())
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        self.with(|platter| {
            platter.step()?;
            let start = platter.starts;
            if platter.locks.contains_key(path) {
                return Ok(None);
            }
            platter.locks.insert(path.to_path_buf(), start);
            Ok(Some(Box::new(Held { disk: self.clone(), path: path.to_path_buf(), start }) as _))
        })
    }
}

#[derive(Debug)]
struct Held {
    disk: LossyDisk,
    path: PathBuf,
    start: u64,
}

impl Lock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        self.disk.with(|platter| {
            if platter.starts == self.start {
                platter.locks.remove(&self.path);
            }
        });
    }
}

#[derive(Debug)]
struct Handle {
    disk: LossyDisk,
    inode: usize,
    start: u64,
}

impl Handle {
    fn change(&self, change: Change) -> io::Result<()> {
        self.disk.with(|platter| {
            assert_eq!(platter.starts, self.start, "a handle does not outlive its machine");
            let was_stopped = platter.stopped;
            let stopped = platter.step();
            if was_stopped {
                return stopped;
            }
            // Any part of a write that was under way may be there, and of one that failed a part.
            let change = match change {
                Change::Bytes(at, mut bytes) if stopped.is_err() && !platter.stopped => {
                    bytes.truncate(bytes.len() / 2 + 3);
                    Change::Bytes(at, bytes)
                }
                change => change,
            };
            platter.change(self.inode, change);
            stopped
        })
    }
}

impl DiskFile for Handle {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        self.change(Change::Bytes(at, bytes.to_vec()))
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.change(Change::Length(usize::try_from(bytes).unwrap()))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.with(|platter| {
            let stopped = platter.step();
            if platter.stopped {
                return stopped;
            }
            // After an error the kernel counts the pages as clean, too, and some were written.
            let mut chance = Chance::of(Left::Some(platter.steps));
            let inode = &mut platter.inodes[self.inode];
            for change in std::mem::take(&mut inode.unsynced) {
                if stopped.is_ok() {
                    change.apply(&mut inode.durable);
                } else {
                    chance.keep(&mut inode.durable, change, None);
                }
            }
            stopped
        })
    }
}
