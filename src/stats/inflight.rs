//! How many were open when, exactly: the step function over lives.
//!
//! In whole nanoseconds throughout; a quotient is taken last.

use crate::stats::sort;

/// A stretch of time `[start, end)`, ns: the life of a request, or a window. Empty unless `start < end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First nanosecond that belongs to it.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
}

impl Span {
    /// Its length, ns.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// How much of it lies in `other`, ns.
    #[must_use]
    pub fn overlap(self, other: Span) -> u64 {
        Span { start: self.start.max(other.start), end: self.end.min(other.end) }.nanos()
    }

    /// Whether it holds the moment `at`.
    #[must_use]
    pub const fn holds(self, at: u64) -> bool {
        self.start <= at && at < self.end
    }
}

/// The number of open lives as a step function of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// When the number changed, and to what, ascending; each differs from the one before.
    steps: Vec<(u64, u64)>,
}

impl InFlight {
    /// The step function over `lives`, in any order. An empty life does not count. One that begins when another ends
    /// takes its place: both are never open at once.
    #[must_use]
    pub fn of(lives: impl IntoIterator<Item = Span>) -> InFlight {
        let (mut starts, mut ends): (Vec<u64>, Vec<u64>) =
            lives.into_iter().filter(|life| life.nanos() > 0).map(|life| (life.start, life.end)).unzip();
        sort::by_key(&mut starts, |at| *at);
        sort::by_key(&mut ends, |at| *at);
        let (mut starts, mut ends) = (starts.into_iter().peekable(), ends.into_iter().peekable());
        let (mut steps, mut open) = (Vec::new(), 0);
        // No life starts behind the last end.
        while let Some(end) = ends.peek() {
            let at = starts.peek().map_or(*end, |start| *start.min(end));
            let before = open;
            while starts.next_if_eq(&at).is_some() {
                open += 1;
            }
            while ends.next_if_eq(&at).is_some() {
                // Never below 0: a life ends after it began.
                open -= 1;
            }
            if open != before {
                steps.push((at, open));
            }
        }
        InFlight { steps }
    }

    /// How many were open at `at`.
    #[must_use]
    pub fn at(&self, at: u64) -> u64 {
        let after = self.steps.partition_point(|step| step.0 <= at);
        after.checked_sub(1).map_or(0, |last| self.steps[last].1)
    }

    /// The most that were open at any moment of `window`; 0 for an empty one.
    #[must_use]
    pub fn max(&self, window: Span) -> u64 {
        self.pieces(window).map(|(_, open)| open).max().unwrap_or(0)
    }

    /// How long lives were open in `window`, together, ns.
    #[must_use]
    pub fn open_ns(&self, window: Span) -> u128 {
        self.pieces(window).map(|(piece, open)| u128::from(piece.nanos()) * u128::from(open)).sum()
    }

    /// The time-weighted mean over `window`; `None` for an empty one.
    #[must_use]
    pub fn mean(&self, window: Span) -> Option<f64> {
        (window.nanos() > 0).then(|| self.open_ns(window) as f64 / window.nanos() as f64)
    }

    /// The means over `n` equal slices of `window`, whose edges are rounded down to nanoseconds: what
    /// [`crate::stats::Trend`] and [`crate::stats::trend::mser5`] look at. Empty where a slice would be.
    #[must_use]
    pub fn slices(&self, window: Span, n: u32) -> Vec<f64> {
        let edge = |i: u32| {
            let offset = u128::from(window.nanos()) * u128::from(i) / u128::from(n);
            // At most the window's length, which fits.
            window.start + offset as u64
        };
        (0..n).map_while(|i| self.mean(Span { start: edge(i), end: edge(i + 1) })).collect()
    }

    /// The stretches of `window` in which the number stays the same, with it.
    fn pieces(&self, window: Span) -> impl Iterator<Item = (Span, u64)> {
        let first = self.steps.partition_point(|step| step.0 <= window.start);
        let inside = self.steps[first..].iter().copied().take_while(move |step| step.0 < window.end);
        let starts = std::iter::once((window.start, self.at(window.start))).chain(inside.clone());
        let ends = inside.map(|step| step.0).chain(std::iter::once(window.end));
        let pieces = starts.zip(ends).map(|((start, open), end)| (Span { start, end }, open));
        pieces.filter(|(piece, _)| piece.nanos() > 0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rng;

    pub(in crate::stats) fn span(start: u64, end: u64) -> Span {
        Span { start, end }
    }

    pub(in crate::stats) fn lives(seed: u64, n: usize, reach: u32) -> Vec<Span> {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        (0..n)
            .map(|_| {
                let start = u64::from(rng::below(&mut stream, reach));
                span(start, start + u64::from(rng::below(&mut stream, reach / 3)))
            })
            .collect()
    }

    /// Nanosecond by nanosecond.
    fn open_at(lives: &[Span], at: u64) -> u64 {
        lives.iter().filter(|life| life.start <= at && at < life.end).count() as u64
    }

    #[test]
    fn the_step_function_is_the_count_at_every_nanosecond() {
        for seed in 0..30 {
            let lives = lives(seed, 20, 90);
            let in_flight = InFlight::of(lives.iter().copied());
            let window = span(seed, 60 + seed);
            let open: Vec<u64> = (window.start..window.end).map(|at| open_at(&lives, at)).collect();
            for at in 0..150 {
                assert_eq!(in_flight.at(at), open_at(&lives, at), "seed {seed} at {at}");
            }
            assert_eq!(in_flight.open_ns(window), u128::from(open.iter().sum::<u64>()));
            assert_eq!(in_flight.max(window), *open.iter().max().unwrap());
            assert_eq!(in_flight.mean(window), Some(open.iter().sum::<u64>() as f64 / 60.0));
            let slices: Vec<f64> =
                open.chunks(15).map(|slice| slice.iter().sum::<u64>() as f64 / 15.0).collect();
            assert_eq!(in_flight.slices(window, 4), slices);
        }
    }

    /// By the edges of all lives in one list.
    #[test]
    fn many_lives_make_the_steps_of_their_edges() {
        let lives = lives(7, 5000, 20_000);
        let mut edges: Vec<(u64, i64)> = Vec::new();
        for life in lives.iter().filter(|life| life.nanos() > 0) {
            edges.extend([(life.start, 1), (life.end, -1)]);
        }
        edges.sort_unstable();
        let (mut steps, mut open) = (Vec::new(), 0);
        for moment in edges.chunk_by(|a, b| a.0 == b.0) {
            let change: i64 = moment.iter().map(|edge| edge.1).sum();
            open += change;
            steps.extend((change != 0).then_some((moment[0].0, open as u64)));
        }
        assert_eq!(InFlight::of(lives).steps, steps);
    }

    #[test]
    fn a_successor_takes_the_place_of_the_one_before() {
        let in_flight = InFlight::of([span(5, 9), span(0, 5), span(7, 7), span(9, 8)]);
        assert_eq!(in_flight.max(span(0, 100)), 1);
        assert_eq!((in_flight.at(4), in_flight.at(5), in_flight.at(9)), (1, 1, 0));
        assert_eq!(in_flight.steps, [(0, 1), (9, 0)]);
    }

    #[test]
    fn an_empty_window_has_no_mean() {
        let in_flight = InFlight::of([span(0, 5)]);
        assert_eq!(in_flight.mean(span(3, 3)), None);
        assert_eq!(in_flight.mean(span(4, 3)), None);
        assert_eq!((in_flight.max(span(3, 3)), in_flight.open_ns(span(4, 3))), (0, 0));
        assert!(in_flight.slices(span(3, 3), 20).is_empty() && in_flight.slices(span(0, 5), 0).is_empty());
        assert_eq!(InFlight::default().mean(span(0, 10)), Some(0.0));
        assert_eq!(InFlight::of([span(0, u64::MAX)]).mean(span(0, u64::MAX)), Some(1.0));
    }
}
