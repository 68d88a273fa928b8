//! Little's law as a check of the books: what the lives of requests say against what was counted while they were open.
//!
//! In whole nanoseconds throughout; a quotient is taken last.

use serde::{Deserialize, Serialize};

use crate::stats::inflight::Span;

/// Little's law over a window, `L = lambda W`, as a check of records (METRICS.md section 8).
///
/// Each life counts, whatever became of the request. A life ends in the window if it is open at some moment before the
/// window's end and no longer at it, so that an end at the very end of the window counts and one at its very beginning
/// does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    window_ns: u64,
    /// Sum of the overlaps of the lives with the window.
    open_ns: u128,
    /// Lives that end in the window.
    ended: u64,
    /// Sum of their lengths.
    ended_ns: u128,
    /// Open at the beginning and at the end of the window.
    at_edges: u64,
    /// The longest life that touches the window.
    longest_ns: u64,
}

/// What a running counter of requests in flight saw over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Its time-weighted mean.
    pub mean: f64,
    /// What it stood at when the window began.
    pub at_start: u64,
    /// What it stood at when the window ended.
    pub at_end: u64,
}

/// What Little's law says of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Both sides agree to 5 %.
    Holds,
    /// They differ by more, but no more than lives cut by the window's edges explain: the window is short, or the queue
    /// grows.
    Loose,
    /// They differ by more than that, or the running counter by more than 10^-6: the records are wrong.
    Broken,
}

impl Little {
    /// How far both sides may differ before the window is called short.
    pub const GAP_MAX: f64 = 0.05;
    /// How far the running counter may differ from the overlaps, as a share.
    pub const COUNTER_GAP_MAX: f64 = 1e-6;

    /// Both sides of the law from `lives`, in any order; `None` for an empty window and where nothing was open in it.
    #[must_use]
    pub fn of(lives: impl IntoIterator<Item = Span>, window: Span) -> Option<Little> {
        let empty = Little {
            window_ns: window.nanos(),
            open_ns: 0,
            ended: 0,
            ended_ns: 0,
            at_edges: 0,
            longest_ns: 0,
        };
        let little = lives.into_iter().fold(empty, |sums, life| sums.with(life, window));
        (little.open_ns > 0).then_some(little)
    }

    fn with(mut self, life: Span, window: Span) -> Little {
        let overlap = life.overlap(window);
        self.open_ns += u128::from(overlap);
        // A life that is over at once is open at no moment, but ends all the same.
        if window.start < life.end && life.end <= window.end {
            self.ended += 1;
            self.ended_ns += u128::from(life.nanos());
        }
        self.at_edges += u64::from(life.holds(window.start)) + u64::from(life.holds(window.end));
        if overlap > 0 {
            self.longest_ns = self.longest_ns.max(life.nanos());
        }
        self
    }

    /// L: the mean number open, from the overlaps.
    #[must_use]
    pub fn mean_in_flight(&self) -> f64 {
        self.open_ns as f64 / self.window_ns as f64
    }

    /// lambda: lives that end, per second.
    #[must_use]
    pub fn ended_per_second(&self) -> f64 {
        self.ended as f64 / (self.window_ns as f64 / 1e9)
    }

    /// W: their mean length, s; 0 where none ends.
    #[must_use]
    pub fn mean_life_s(&self) -> f64 {
        if self.ended == 0 { 0.0 } else { self.ended_ns as f64 / self.ended as f64 / 1e9 }
    }

    /// `lambda W / L - 1`: 0 where all lives lie within the window, below 0 where more are open at its end than were at
    /// its beginning.
    #[must_use]
    pub fn gap(&self) -> f64 {
        // The difference first: both are large and nearly equal.
        let difference = self.ended_ns.abs_diff(self.open_ns) as f64 / self.open_ns as f64;
        if self.ended_ns < self.open_ns { -difference } else { difference }
    }

    /// How large the gap can be at most for correct records: as many lives as are open at the two edges of the window,
    /// each as long as the longest, over L T. How many those are the counter says, where there was one.
    #[must_use]
    pub fn gap_bound(&self, counted: Option<Counted>) -> f64 {
        let at_edges =
            counted.map_or(self.at_edges, |counted| counted.at_start.saturating_add(counted.at_end));
        self.gap_bound_of(at_edges)
    }

    /// By how much the counter's mean differs from that of the lives, as a share of the latter.
    #[must_use]
    pub fn counter_gap(&self, counted: Counted) -> f64 {
        (counted.mean / self.mean_in_flight() - 1.0).abs()
    }

    fn gap_bound_of(&self, at_edges: u64) -> f64 {
        at_edges as f64 * self.longest_ns as f64 / self.open_ns as f64
    }

    /// What the law says, given what the running counter of the level saw in the same window, where there was one.
    ///
    /// Against their own number at the edges, lives keep within the bound by arithmetic, whatever they are. So they are
    /// held against the counter, which was kept while the level ran and knows nothing of the records.
    #[must_use]
    pub fn verdict(&self, counted: Option<Counted>) -> Verdict {
        let counter_gap = counted.map_or(0.0, |counted| self.counter_gap(counted));
        // A rounding of the last place is no broken record.
        let bound = self.gap_bound(counted) * (1.0 + 1e-9);
        // A mean that is no number agrees with nothing.
        if counter_gap.is_nan() || counter_gap > Little::COUNTER_GAP_MAX || self.gap().abs() > bound {
            return Verdict::Broken;
        }
        if self.gap().abs() > Little::GAP_MAX { Verdict::Loose } else { Verdict::Holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::inflight::InFlight;
    use crate::stats::inflight::tests::{lives, span};

    /// L T - lambda W T is what the lives open at the end had in the window, less what those open at its beginning
    /// that end in it had before.
    #[test]
    fn the_gap_is_what_the_edges_cut_off() {
        for seed in 0..200 {
            let lives = lives(seed, 25, 100);
            let window = span(30, 40 + seed % 60);
            let Some(little) = Little::of(lives.iter().copied(), window) else { continue };
            let of = |chosen: &dyn Fn(&Span) -> bool, part: &dyn Fn(&Span) -> u64| {
                lives.iter().filter(|life| chosen(life)).map(part).sum::<u64>()
            };
            let open_at_end = of(&|life| life.holds(window.end), &|life| life.overlap(window));
            let before = of(&|life| life.holds(window.start) && life.end <= window.end, &|life| {
                window.start - life.start
            });
            assert_eq!(
                little.open_ns as i128 - little.ended_ns as i128,
                i128::from(open_at_end) - i128::from(before)
            );
            assert!(little.gap().abs() <= little.gap_bound(None) * (1.0 + 1e-12), "seed {seed}");
            let counter = InFlight::of(lives.iter().copied());
            assert_eq!(little.open_ns, counter.open_ns(window));
            assert_eq!(little.at_edges, counter.at(window.start) + counter.at(window.end));
        }
    }

    /// Ten lives of 1 s, one after the other, in 10 s: 1 = 1 x 1.
    #[test]
    fn whole_lives_in_a_window_leave_no_gap() {
        let second = 1_000_000_000;
        let lives = (0..10).map(|i| span(i * second, (i + 1) * second));
        let little = Little::of(lives, span(0, 10 * second)).unwrap();
        assert_eq!(
            (little.mean_in_flight(), little.ended_per_second(), little.mean_life_s()),
            (1.0, 1.0, 1.0)
        );
        assert_eq!((little.gap(), little.verdict(None)), (0.0, Verdict::Holds));
    }

    /// Golden LittleClosedLoop: N users without a slot limit, each step 10 ms, 0.5 ms for each and 10 ms for each that
    /// has no token yet; 50 tokens end a request and Z later comes the next; until 120 s have passed.
    fn closed_loop(users: usize, think_us: u64) -> (Vec<Span>, Span) {
        let (mut now, mut lives) = (0_u64, Vec::new());
        // When each user sends next, and since when and how far the one under way is.
        let mut next = vec![0_u64; users];
        let mut active: Vec<Option<(u64, u32)>> = vec![None; users];
        while now < 120_000_000 {
            for user in 0..users {
                if active[user].is_none() && next[user] <= now {
                    active[user] = Some((next[user], 0));
                }
            }
            let running = active.iter().flatten().count() as u64;
            if running == 0 {
                now = *next.iter().min().unwrap();
                continue;
            }
            let fresh = active.iter().flatten().filter(|(_, tokens)| *tokens == 0).count() as u64;
            now += 10_000 + 500 * running + 10_000 * fresh;
            for user in 0..users {
                if let Some((since, tokens)) = active[user] {
                    active[user] = (tokens < 49).then_some((since, tokens + 1));
                    if active[user].is_none() {
                        lives.push(span(since, now));
                        next[user] = now + think_us;
                    }
                }
            }
        }
        lives.extend(active.iter().flatten().map(|(since, _)| span(*since, u64::MAX)));
        (lives, span(0, now))
    }

    #[test]
    fn little_holds_for_the_closed_loops_of_the_golden() {
        let golden = [
            (1, 0, 1.866_550_007_287_211_1, 0.535, 1.0, 0.998_604_253_900_798),
            (4, 0, 6.232_917_805_479_635, 0.64, 4.0, 3.989_067_395_506_966),
            (16, 0, 15.065_160_150_651_602, 1.06, 16.0, 15.969_069_759_690_699),
            (4, 2, 1.515_151_515_151_515_1, 0.64, 0.969_696_969_696_969_7, 0.969_696_969_696_969_7),
            (16, 2, 5.199_826_672_444_251, 1.06, 5.600_346_655_111_497, 5.511_816_272_790_907),
        ];
        for (users, think_s, lambda, w_s, l, lambda_w) in golden {
            let (lives, window) = closed_loop(users, think_s * 1_000_000);
            let little = Little::of(lives, window).unwrap();
            // The lives are in us where nanoseconds are meant.
            let near =
                |ours: f64, golden: f64| assert!((ours / golden - 1.0).abs() < 1e-9, "{ours} {golden}");
            near(little.ended_per_second() / 1000.0, lambda);
            near(little.mean_life_s() * 1000.0, w_s);
            near(little.mean_in_flight(), l);
            near((1.0 + little.gap()) * l, lambda_w);
            assert_eq!(little.verdict(None), Verdict::Holds);
        }
    }

    #[test]
    fn a_short_window_is_loose_and_a_wrong_counter_breaks_the_books() {
        let lives = [span(0, 100), span(50, 400), span(90, 300)];
        let little = Little::of(lives, span(0, 200)).unwrap();
        assert!(little.gap() < -0.5);
        let counter = Counted { mean: 360.0 / 200.0, at_start: 1, at_end: 2 };
        assert_eq!(little.verdict(None), Verdict::Loose);
        assert_eq!(little.verdict(Some(counter)), Verdict::Loose);
        assert_eq!(little.verdict(Some(Counted { mean: 1.8 * (1.0 + 2e-6), ..counter })), Verdict::Broken);
        assert_eq!(little.verdict(Some(Counted { mean: f64::NAN, ..counter })), Verdict::Broken);
        // Nobody was open at the edges, says the counter: then nothing can have been cut off.
        assert_eq!(little.verdict(Some(Counted { at_start: 0, at_end: 0, ..counter })), Verdict::Broken);
    }

    #[test]
    fn nothing_open_has_no_law() {
        assert_eq!(Little::of([], span(0, 10)), None);
        assert_eq!(Little::of([span(20, 30)], span(0, 10)), None);
        assert_eq!(Little::of([span(0, 30)], span(10, 10)), None);
        // Over at once: it ends, and was open at no moment.
        let little = Little::of([span(5, 5), span(2, 4)], span(0, 10)).unwrap();
        assert_eq!((little.ended, little.open_ns, little.ended_ns), (2, 2, 2));
    }
}
