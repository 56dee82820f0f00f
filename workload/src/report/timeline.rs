//! What a job held while it was serving: a bounded number of points, evenly over the requests.

use std::time::Duration;

use pinfold_core::policy::Gauges;
use serde::Serialize;

use super::{Tally, millis};

/// The most points that a timeline has, the first and the last one aside.
pub const POINTS: u32 = 400;

/// What the job held at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Requests done by then.
    pub requests: u32,
    /// Bytes that live turns refer to, each checkpoint once.
    pub bytes_retained: u64,
    /// Bytes of all checkpoints with a record.
    pub bytes: u64,
    /// Checkpoints with a record.
    pub checkpoints: u64,
    /// Checkpoints collected by then.
    pub checkpoints_collected: u64,
    /// Bytes of those.
    pub bytes_collected: u64,
}

/// Takes points while requests are done, each step of a fixed number of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    step: u32,
    next: u32,
    points: Vec<Point>,
    at_ms: Vec<u64>,
}

impl Timeline {
    /// For so many requests.
    pub(crate) fn of(requests: u32) -> Self {
        let step = requests.div_ceil(POINTS).max(1);
        Self { step, next: step, points: Vec::new(), at_ms: Vec::new() }
    }

    /// Whether a point is due now that so many requests are done; then it is the caller's to take.
    pub(crate) fn is_due(&mut self, requests: u32) -> bool {
        let due = requests >= self.next;
        if due {
            self.next = requests.saturating_add(self.step);
        }
        due
    }

    /// Adds a point, unless a later one was added before, which another thread may have done.
    pub(crate) fn add(&mut self, requests: u32, gauges: &Gauges, tally: &Tally, at: Duration) {
        let point = Point {
            requests,
            bytes_retained: gauges.bytes_retained,
            bytes: gauges.bytes,
            checkpoints: gauges.checkpoints,
            checkpoints_collected: tally.checkpoints_collected,
            bytes_collected: tally.bytes_collected,
        };
        let at_ms = millis(at);
        let last = self.points.last().zip(self.at_ms.last());
        if last.is_none_or(|(last, ms)| last.requests <= requests && *ms <= at_ms) {
            self.points.push(point);
            self.at_ms.push(at_ms);
        }
    }

    /// The points, and when each was taken, in milliseconds.
    pub(crate) fn into_points(self) -> (Vec<Point>, Vec<u64>) {
        (self.points, self.at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(requests: u32) -> Vec<u32> {
        let mut timeline = Timeline::of(requests);
        for done in 1..=requests {
            if timeline.is_due(done) {
                let at = Duration::from_millis(done.into());
                timeline.add(done, &Gauges::default(), &Tally::default(), at);
            }
        }
        let (points, at_ms) = timeline.into_points();
        assert!(points.iter().zip(at_ms).all(|(point, ms)| u64::from(point.requests) == ms));
        points.iter().map(|point| point.requests).collect()
    }

    #[test]
    fn points_are_bounded_and_even() {
        assert!(taken(0).is_empty());
        assert_eq!(taken(3), [1, 2, 3]);
        assert_eq!(taken(401)[..3], [2, 4, 6]);
        for requests in [400, 401, 12_031] {
            let points = taken(requests);
            assert!((200..=400).contains(&points.len()), "{requests}: {}", points.len());
        }
    }

    /// Of two threads that take a point at once, one comes too late.
    #[test]
    fn a_late_point_is_left_out() {
        let mut timeline = Timeline::of(10);
        for (requests, ms) in [(5, 50), (4, 51), (6, 49), (6, 52)] {
            let at = Duration::from_millis(ms);
            timeline.add(requests, &Gauges::default(), &Tally::default(), at);
        }
        assert_eq!(timeline.into_points().1, [50, 52]);
    }
}
