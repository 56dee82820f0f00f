//! The rows of a trace, in every format, and what linking makes of them.

use pinfold_workload::link::{Figures, link};
use pinfold_workload::trace::{read_trace, write_trace};

/// What is accepted keeps what a trace promises; each request follows what it continues.
pub(super) fn decode(input: &[u8]) -> bool {
    let Ok(trace) = read_trace(input) else { return false };
    trace.check().unwrap();
    let links = link(&trace);
    let figures = Figures::of(&trace, &links);
    assert_eq!(figures.requests as usize, trace.requests.len());
    assert_eq!(figures.requests, figures.links + figures.roots);
    for (place, linked) in (0..).zip(&links.requests) {
        assert!(linked.root <= place && linked.parent.is_none_or(|parent| parent < place));
    }
    let mut written = Vec::new();
    if write_trace(&trace, &mut written).is_ok() {
        assert_eq!(read_trace(written.as_slice()).unwrap(), trace);
    }
    true
}
