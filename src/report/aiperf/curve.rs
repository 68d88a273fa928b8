//! Step functions of time and their statistics, each value weighted by how long it holds.

use super::stats::Stats;
use crate::stats::sort;

/// A function that is 0 before its first step and keeps the value of a step up to the next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Curve {
    /// When it steps, ascending; several steps at once are taken in their order.
    at: Vec<f64>,
    /// The value from there on.
    values: Vec<f64>,
}

impl Curve {
    /// The sum of `changes`, each a time and what is added there. At the same time what ends goes before what begins.
    pub(super) fn of(mut changes: Vec<(f64, f64)>) -> Curve {
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1 > 0.0).cmp(&(b.1 > 0.0))));
        let mut now = 0.0;
        let (at, mut values): (Vec<f64>, Vec<f64>) = changes
            .into_iter()
            .map(|(at, change)| {
                now += change;
                (at, now)
            })
            .unzip();
        // What large numbers leave of each other would be shown as -0.00.
        let most = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        values.iter_mut().filter(|value| value.abs() < 1e-9 * most).for_each(|value| *value = 0.0);
        Curve { at, values }
    }

    /// This over `other`, 0 where `other` is.
    pub(super) fn over(&self, other: &Curve) -> Curve {
        if self.at.is_empty() || other.at.is_empty() {
            return Curve::default();
        }
        let at = merged(&[&self.at, &other.at]);
        let ratio = |(above, below): (f64, f64)| if below > 0.0 { above / below } else { 0.0 };
        let values = self.along(&at).zip(other.along(&at)).map(ratio).collect();
        Curve { at, values }
    }

    /// Its statistics from `from` to `until`, times `scale`; zeros where there is nothing.
    pub(super) fn stats(&self, from: f64, until: f64, scale: f64) -> Stats {
        if self.at.is_empty() {
            return zeros();
        }
        let grid = within(&[&self.at], from, until);
        let pieces = pieces(&grid, self.along(&grid));
        weighted(pieces, scale)
    }

    /// The same over those times alone at which `mask` is above 0.
    pub(super) fn stats_where(&self, mask: &Curve, from: f64, until: f64, scale: f64) -> Stats {
        if self.at.is_empty() || mask.at.is_empty() {
            return zeros();
        }
        let grid = within(&[&self.at, &mask.at], from, until);
        let both = self.along(&grid).zip(mask.along(&grid));
        let active = pieces(&grid, both).into_iter().filter(|(_, (_, mask))| *mask > 0.0);
        weighted(active.map(|(time, (value, _))| (time, value)).collect(), scale)
    }

    /// Its values at `times`, which ascend.
    fn along<'a>(&'a self, times: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let mut next = 0;
        times.iter().map(move |time| {
            while self.at.get(next).is_some_and(|at| at <= time) {
                next += 1;
            }
            next.checked_sub(1).map_or(0.0, |place| self.values[place])
        })
    }
}

/// All times once, ascending.
fn merged(of: &[&[f64]]) -> Vec<f64> {
    let mut all = of.concat();
    all.sort_unstable_by(f64::total_cmp);
    all.dedup();
    all
}

/// The times between the two, and these.
fn within(of: &[&[f64]], from: f64, until: f64) -> Vec<f64> {
    let mut all = merged(of);
    all.retain(|time| (from..=until).contains(time));
    merged(&[&all, &[from, until]])
}

/// How long each value holds up to the next time of the grid.
fn pieces<T>(grid: &[f64], values: impl Iterator<Item = T>) -> Vec<(f64, T)> {
    grid.windows(2).map(|pair| pair[1] - pair[0]).zip(values).collect()
}

/// Statistics of values that hold for a time each.
fn weighted(mut pieces: Vec<(f64, f64)>, scale: f64) -> Stats {
    let all: f64 = pieces.iter().map(|(time, _)| time).sum();
    if all <= 0.0 {
        return zeros();
    }
    sort::few_by(&mut pieces, |a, b| a.1.total_cmp(&b.1));
    let mean = pieces.iter().map(|(time, value)| time * value).sum::<f64>() / all;
    let variance = pieces.iter().map(|(time, value)| time * (value - mean).powi(2)).sum::<f64>() / all;
    let mut passed = 0.0;
    let shares: Vec<f64> = pieces
        .iter()
        .map(|(time, _)| {
            passed += time;
            passed / all
        })
        .collect();
    let last = pieces.len() - 1;
    let at = |p: u32| {
        let place = shares.partition_point(|share| *share < f64::from(p) / 100.0);
        pieces[place.min(last)].1 * scale
    };
    Stats {
        avg: Some(mean * scale),
        min: Some(pieces[0].1 * scale),
        max: Some(pieces[last].1 * scale),
        percentiles: Stats::PERCENTILES.map(|p| KNOWN.contains(&p).then(|| at(p))),
        std: Some(variance.sqrt() * scale),
        ..Stats::default()
    }
}

/// What aiperf says where there is nothing.
fn zeros() -> Stats {
    let zero = Some(0.0);
    let percentiles = Stats::PERCENTILES.map(|p| zero.filter(|_| KNOWN.contains(&p)));
    Stats { avg: zero, min: zero, max: zero, percentiles, std: zero, ..Stats::default() }
}

/// The percentiles that aiperf gives of a curve.
const KNOWN: [u32; 4] = [50, 90, 95, 99];

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 up to 1, 2 up to 3, 1 up to 4, 0 from there on.
    fn steps() -> Curve {
        Curve::of(vec![(1.0, 1.0), (1.0, 1.0), (3.0, -1.0), (4.0, -1.0)])
    }

    #[test]
    fn values_count_by_the_time_that_they_hold() {
        let stats = steps().stats(0.0, 8.0, 10.0);
        // 5 s of 0, 1 s of 1, 2 s of 2.
        assert_eq!((stats.avg, stats.min, stats.max), (Some(6.25), Some(0.0), Some(20.0)));
        let variance: f64 = (5.0 * 0.625 * 0.625 + 0.375 * 0.375 + 2.0 * 1.375 * 1.375) / 8.0;
        assert!((stats.std.unwrap() - 10.0 * variance.sqrt()).abs() < 1e-12);
        assert_eq!([1, 50, 90, 99].map(|p| stats.percentile(p)), [None, Some(0.0), Some(20.0), Some(20.0)]);
        let cut = steps().stats(2.0, 3.5, 1.0);
        assert_eq!((cut.avg, cut.min, cut.max), (Some(2.5 / 1.5), Some(1.0), Some(2.0)));
    }

    #[test]
    fn a_mask_leaves_out_idle_times() {
        let busy = steps();
        let stats = busy.stats_where(&busy, 0.0, 8.0, 1.0);
        assert_eq!((stats.avg, stats.min), (Some(5.0 / 3.0), Some(1.0)));
        assert_eq!(busy.stats_where(&Curve::default(), 0.0, 8.0, 1.0), zeros());
        assert_eq!(busy.stats_where(&busy, 5.0, 8.0, 1.0), zeros());
        assert_eq!(busy.stats(3.0, 3.0, 1.0), zeros(), "no time at all");
    }

    #[test]
    fn a_quotient_is_zero_where_nothing_is_divided_by() {
        let rate = Curve::of(vec![(1.0, 6.0), (4.0, -6.0)]);
        let each = rate.over(&steps());
        assert_eq!((each.at.clone(), each.values.clone()), (vec![1.0, 3.0, 4.0], vec![3.0, 6.0, 0.0]));
        assert_eq!(rate.over(&Curve::default()), Curve::default());
    }

    #[test]
    fn rounding_leaves_no_negative_zeros() {
        let curve = Curve::of(vec![(0.0, 0.1), (0.0, 0.2), (1.0, -0.3)]);
        assert_eq!(curve.values.last(), Some(&0.0));
    }
}
