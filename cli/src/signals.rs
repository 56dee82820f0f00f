//! Being told to end, by Ctrl-C, a polite kill or a closed terminal.
//!
//! Protects what is under way: the first signal asks, and only a second one, which is no echo of
//! the first, ends the program at once.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

use crate::Failure;

/// How long the first signal's echoes are taken for it: `timeout` and the like send one to the
/// program and one to its group, within moments.
const ECHOES: Duration = Duration::from_millis(100);

/// A flag that Ctrl-C, a polite kill or a closed terminal sets; one that comes later than the
/// echoes of the first ends the program at once.
pub(crate) fn signals() -> Result<Arc<AtomicBool>, Failure> {
    hear().map_err(|error| Failure::Incomplete(format!("no signal can be heard: {error}")))
}

fn hear() -> io::Result<Arc<AtomicBool>> {
    let (stop, ends) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (mut heard, hears) = UnixStream::pair()?;
    let hangup = (!ignores_hangup()).then_some(SIGHUP);
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        flag::register_conditional_default(signal, Arc::clone(&ends))?;
        flag::register(signal, Arc::clone(&stop))?;
        pipe::register(signal, hears.try_clone()?)?;
    }
    let arm = move || {
        // Whatever else there is to read is an echo.
        if heard.read_exact(&mut [0]).is_ok() {
            thread::sleep(ECHOES);
            ends.store(true, Ordering::Relaxed);
        }
    };
    thread::Builder::new().name("pinfold-signals".into()).spawn(arm)?;
    Ok(stop)
}

/// Whether whoever started this wants it to outlive the terminal, as `nohup` does.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}
