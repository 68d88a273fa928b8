//! How many are open, counted while it happens: sums at moments that were fixed beforehand.
//!
//! The counterpart of [`crate::stats::InFlight`], which needs all lives at the end. Nothing is kept of a life but what it
//! adds to the sums, so that the count knows nothing of the records that are made of the same requests.

use serde::{Deserialize, Serialize};

use crate::stats::inflight::Span;
use crate::stats::little::Counted;
use crate::stats::totals::decimal;

/// Starts and ends of lives, counted as they are seen, in any order.
///
/// Up to a moment E the time that lives were open is the sum of E - start over all starts before it, less the sum of
/// E - end over all ends before it: no order is needed, and counts of several threads add up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The moments that were fixed.
    marks: Vec<Mark>,
    /// Up to the end of time.
    all: Mark,
    /// The latest start or end.
    last: u64,
}

/// What was counted up to a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    at: u64,
    open: i64,
    #[serde(with = "decimal")]
    open_ns: i128,
}

impl Running {
    /// A count that will be asked for windows between two of `moments`, or from one of them to after the last end, ns.
    #[must_use]
    pub fn marking(moments: impl IntoIterator<Item = u64>) -> Running {
        Running { marks: moments.into_iter().map(Mark::new).collect(), all: Mark::new(u64::MAX), last: 0 }
    }

    /// Fixes one more moment, ns: the end of a window that was moved while it went on. It must not be before anything
    /// that was counted; such a one is passed over, and then has no answer.
    pub fn mark(&mut self, at: u64) {
        if at >= self.last && self.marks.iter().all(|mark| mark.at != at) {
            self.marks.push(self.as_of(at));
        }
    }

    /// A life begins.
    pub fn on_start(&mut self, at: u64) {
        self.step(at, 1);
    }

    /// A life ends.
    pub fn on_end(&mut self, at: u64) {
        self.step(at, -1);
    }

    fn step(&mut self, at: u64, by: i64) {
        self.last = self.last.max(at);
        self.marks.iter_mut().chain([&mut self.all]).for_each(|mark| mark.step(at, by));
    }

    /// What was open in `window`; `None` for an empty one, and where one of its edges is neither a moment that was
    /// fixed nor after everything that was counted.
    #[must_use]
    pub fn over(&self, window: Span) -> Option<Counted> {
        Running::over_all([self], window)
    }

    /// The same of several counts together; `None` too if one of them has no answer, and of none.
    #[must_use]
    pub fn over_all<'a>(all: impl IntoIterator<Item = &'a Running>, window: Span) -> Option<Counted> {
        let (mut open_ns, mut sum) = (0_i128, None::<Counted>);
        for running in all {
            let (start, end) = (running.until(window.start)?, running.until(window.end)?);
            open_ns += end.open_ns - start.open_ns;
            // An end without a start would leave less than nothing open.
            let open = |mark: Mark| mark.open.max(0) as u64;
            let sum = sum.get_or_insert_default();
            (sum.at_start, sum.at_end) = (sum.at_start + open(start), sum.at_end + open(end));
        }
        // Divided last: so it is the same however many counts the lives were dealt to.
        let mean = (window.nanos() > 0).then(|| open_ns as f64 / window.nanos() as f64)?;
        sum.map(|sum| Counted { mean, ..sum })
    }

    /// The same count on a time line on which everything stands `to - from` ns later, or earlier where that is negative.
    #[must_use]
    pub fn moved(&self, from: u64, to: u64) -> Running {
        let by = |at: u64| to.saturating_add(at.saturating_sub(from)).saturating_sub(from.saturating_sub(at));
        let marks = self.marks.iter().map(|mark| Mark { at: by(mark.at), ..*mark }).collect();
        // The end of time stays where it is: everything open has come nearer to it.
        let nearer = (i128::from(to) - i128::from(from)).saturating_mul(i128::from(self.all.open));
        let all = Mark { open_ns: self.all.open_ns.saturating_sub(nearer), ..self.all };
        Running { marks, all, last: by(self.last) }
    }

    fn until(&self, at: u64) -> Option<Mark> {
        let fixed = self.marks.iter().find(|mark| mark.at == at).copied();
        fixed.or_else(|| (at >= self.last).then(|| self.as_of(at)))
    }

    /// What was counted, up to a moment after all of it.
    fn as_of(&self, at: u64) -> Mark {
        let not_yet = i128::from(self.all.open) * i128::from(u64::MAX - at);
        Mark { at, open: self.all.open, open_ns: self.all.open_ns - not_yet }
    }
}

impl Mark {
    fn new(at: u64) -> Mark {
        Mark { at, open: 0, open_ns: 0 }
    }

    #[inline]
    fn step(&mut self, at: u64, by: i64) {
        if at <= self.at {
            self.open += by;
            self.open_ns += i128::from(by) * i128::from(self.at - at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::stats::inflight::InFlight;

    #[test]
    fn the_count_is_that_of_the_lives_whatever_the_order() {
        for seed in 0..50 {
            let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
            let mut below = |n| u64::from(rng::below(&mut stream, n));
            let lives: Vec<Span> = (0..40)
                .map(|_| {
                    let start = 10 + below(200);
                    Span { start, end: start + below(60) }
                })
                .collect();
            let mut running = Running::marking([10, 50, 150]);
            lives.iter().rev().for_each(|life| running.on_end(life.end));
            lives.iter().for_each(|life| running.on_start(life.start));
            let in_flight = InFlight::of(lives.iter().copied());
            for (start, end) in [(10, 150), (50, 150), (10, 300), (150, 300), (10, 1_000_000)] {
                let window = Span { start, end };
                let counted = running.over(window).unwrap();
                assert!((counted.mean - in_flight.mean(window).unwrap()).abs() < 1e-9, "seed {seed}");
                assert_eq!(counted.at_start, in_flight.at(start));
                assert_eq!(counted.at_end, in_flight.at(end));
            }
            assert_eq!(running.over(Span { start: 11, end: 150 }), None, "not a moment that was fixed");
            assert_eq!(running.over(Span { start: 10, end: 100 }), None);
            assert_eq!(running.over(Span { start: 50, end: 50 }), None);
        }
    }

    #[test]
    fn an_end_may_be_moved_while_it_is_ahead() {
        let mut running = Running::marking([0, 100]);
        running.on_start(10);
        running.on_end(60);
        running.mark(200);
        running.on_start(150);
        running.mark(120);
        running.on_end(250);
        let over = |end| running.over(Span { start: 0, end });
        assert_eq!(over(200), Some(Counted { mean: (50.0 + 50.0) / 200.0, at_start: 0, at_end: 1 }));
        assert_eq!(over(100).map(|counted| counted.mean), Some(0.5));
        assert_eq!(over(120), None, "it was too late for that one");
    }

    #[test]
    fn a_moved_count_says_the_same_of_the_moved_window() {
        let mut running = Running::marking([100, 150]);
        for (start, end) in [(100, 130), (110, 170), (140, 250)] {
            running.on_start(start);
            running.on_end(end);
        }
        running.on_start(260);
        for to in [0, 70, 100, 1_000_000] {
            let moved = running.moved(100, to);
            for (start, end) in [(0, 50), (0, 160), (50, 300)] {
                let before = running.over(Span { start: 100 + start, end: 100 + end });
                assert_eq!(moved.over(Span { start: to + start, end: to + end }), before, "{to}");
            }
            let text = serde_json::to_string(&moved).unwrap();
            assert_eq!(serde_json::from_str::<Running>(&text).unwrap(), moved);
        }
    }

    #[test]
    fn what_never_ends_is_open_after_everything() {
        let mut running = Running::marking([0]);
        running.on_start(10);
        running.on_start(20);
        running.on_end(30);
        let counted = running.over(Span { start: 0, end: 100 }).unwrap();
        assert_eq!(counted, Counted { mean: (20.0 + 80.0) / 100.0, at_start: 0, at_end: 1 });
    }
}
