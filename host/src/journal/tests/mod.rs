//! The journal in a real folder, and on a disk that loses what was not synced.

mod crashes;
mod files;
mod history;
mod lossy;
mod reading;

use super::*;
