//! Time and memory that a check may take, and what is left of them.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::explore::Progress;

/// How often somebody hears of the progress.
const SHOWS: Duration = Duration::from_millis(200);
/// Bytes of a page of memory, where the system does not say.
const PAGE_BYTES: u64 = 4096;

/// What a check may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Time.
    pub time: Option<Duration>,
    /// Memory of the whole process.
    pub memory_bytes: Option<u64>,
}

/// Which budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Time.
    Time,
    /// Memory.
    Memory,
}

/// Looks at a check from its side. See the [module](self).
#[derive(Debug)]
pub(crate) struct Watchdog {
    limits: Limits,
    began: Instant,
    spent: Mutex<Option<Spent>>,
    shown: Mutex<Instant>,
}

impl Watchdog {
    pub(crate) fn new(limits: Limits) -> Self {
        let began = Instant::now();
        Self { limits, began, spent: Mutex::new(None), shown: Mutex::new(began) }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Resident memory of this process; what is known to be held, where the system does not say.
    pub(crate) fn memory_bytes(&self, held: usize) -> u64 {
        let pages = fs::read_to_string("/proc/self/statm").ok();
        let resident = pages.and_then(|it| it.split_whitespace().nth(1)?.parse::<u64>().ok());
        resident.map_or(held as u64, |pages| pages * PAGE_BYTES)
    }

    /// True when somebody should hear of the progress now.
    pub(crate) fn is_due(&self) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = shown.elapsed() >= SHOWS;
        if is_due {
            *shown = Instant::now();
        }
        is_due
    }

    /// Looks whether a budget is spent, and remembers it.
    pub(crate) fn is_spent(&self, progress: &Progress) -> bool {
        let Limits { time, memory_bytes } = self.limits;
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if time.is_some_and(|most| progress.elapsed >= most) {
            *spent = Some(Spent::Time);
        } else if memory_bytes.is_some_and(|most| progress.memory_bytes >= most) {
            *spent = Some(Spent::Memory);
        }
        spent.is_some()
    }

    pub(crate) fn spent(&self) -> Option<Spent> {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
