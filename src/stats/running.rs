//! How many are open, counted while it happens: sums at moments that were fixed beforehand.
//!
//! The counterpart of [`crate::stats::InFlight`], which needs all lives at the end. Nothing is kept of a life but what it
//! adds to the sums, so that the count knows nothing of the records that are made of the same requests.

use crate::stats::inflight::Span;
use crate::stats::little::Counted;

/// Starts and ends of lives, counted as they are seen, in any order.
///
/// Up to a moment E the time that lives were open is the sum of E - start over all starts before it, less the sum of
/// E - end over all ends before it: no order is needed, and counts of several threads add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The moments that were fixed.
    marks: Vec<Mark>,
    /// Up to the end of time.
    all: Mark,
    /// The latest start or end.
    last: u64,
}

/// What was counted up to a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    at: u64,
    open: i64,
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
        let (start, end) = (self.until(window.start)?, self.until(window.end)?);
        if window.nanos() == 0 {
            return None;
        }
        // An end without a start would leave less than nothing open.
        let open = |mark: Mark| mark.open.max(0) as u64;
        Some(Counted {
            mean: (end.open_ns - start.open_ns) as f64 / window.nanos() as f64,
            at_start: open(start),
            at_end: open(end),
        })
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
    fn what_never_ends_is_open_after_everything() {
        let mut running = Running::marking([0]);
        running.on_start(10);
        running.on_start(20);
        running.on_end(30);
        let counted = running.over(Span { start: 0, end: 100 }).unwrap();
        assert_eq!(counted, Counted { mean: (20.0 + 80.0) / 100.0, at_start: 0, at_end: 1 });
    }
}
