//! The lines of a log, and what judging them says.

use pinfold_host::log::Head;
use pinfold_workload::foreign_log::{Verdict, verify};

/// A log that is judged holds, is found out, or says what could not be judged; and it is judged the
/// same twice.
pub(super) fn decode(input: &[u8]) -> bool {
    let head = input.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let head = head.and_then(|head| serde_json::from_slice::<Head>(head).ok());
    if head.is_some_and(|head| !super::is_modest(&head.genesis.limits)) {
        return false;
    }
    let Ok(report) = verify(input) else { return false };
    match report.verdict {
        Verdict::Held => assert!(report.finding.is_none() && report.unjudged.is_empty()),
        Verdict::Violated => assert!(report.finding.is_some()),
        Verdict::Incomplete => assert!(report.finding.is_none() && !report.unjudged.is_empty()),
    }
    assert!(report.counts.compared <= report.counts.replies);
    assert_eq!(verify(input).unwrap(), report);
    report.verdict == Verdict::Held
}
