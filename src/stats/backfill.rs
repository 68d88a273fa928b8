//! Back-fill of a histogram from a closed loop: what its client would have seen had it not waited.
//!
//! For imported data only. Our own latencies are measured from planned times and need no assumption (METRICS.md section
//! 11).

use crate::stats::histogram::Histogram;
use crate::stats::totals::{Arithmetic, Totals};

/// The histogram with the requests that a client sending one each `interval_ns` left out while it waited: for each
/// value `v` above the interval also `v - interval`, `v - 2 interval`, ... down to the interval, as wrk2 and
/// HdrHistogram (`copyCorrectedForCoordinatedOmission`) have it. An interval of 0 fills nothing in.
///
/// As in [`Histogram::record_corrected`], but after the fact. A value counts as the highest of its bucket, the last one
/// as the exact maximum where that is known, so that what is filled in is up to 0.1 % too high. Takes some steps for
/// each pair of buckets at most, however small the interval is. The totals are exact for the values so taken.
#[must_use]
pub fn filled(histogram: &Histogram, interval_ns: u64) -> Histogram {
    let mut filled = histogram.clone();
    if interval_ns == 0 {
        return filled;
    }
    let max = histogram.totals().max().unwrap_or(0);
    for bucket in histogram.buckets() {
        fill(&mut filled, bucket.highest.min(max), Every { interval_ns, count: bucket.count });
    }
    filled
}

/// What is filled in below a value.
#[derive(Clone, Copy)]
struct Every {
    interval_ns: u64,
    /// How many there are of the value.
    count: u64,
}

/// Fills in from `value - interval` down to the interval, a bucket at a time.
fn fill(histogram: &mut Histogram, value: u64, every: Every) {
    let Every { interval_ns, count } = every;
    let mut next = value.saturating_sub(interval_ns);
    while next >= interval_ns {
        let code = Histogram::bucket_of(next);
        let end = Histogram::bucket_lowest(code).max(interval_ns);
        // How many of them fall between `end` and `next`, both included.
        let steps = (next - end) / interval_ns + 1;
        let least = next - (steps - 1) * interval_ns;
        histogram.record_bucket(code, steps.saturating_mul(count));
        let values = Arithmetic { least, step: interval_ns, terms: steps };
        histogram.add_totals(&Totals::of_arithmetic(values, count), 0);
        next = least.saturating_sub(interval_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::stats::quantile::Quantile;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|ns| histogram.record(*ns));
        histogram
    }

    /// Value by value, from what the buckets say.
    fn filled_by_steps(histogram: &Histogram, interval_ns: u64) -> Histogram {
        let mut filled = histogram.clone();
        let max = histogram.totals().max().unwrap_or(0);
        for bucket in histogram.buckets() {
            let mut next = bucket.highest.min(max).saturating_sub(interval_ns);
            while next >= interval_ns {
                filled.record_n(next, bucket.count);
                next -= interval_ns;
            }
        }
        filled
    }

    #[test]
    fn filling_by_buckets_is_filling_step_by_step() {
        let mut stream = rng::stream(1, rng::Purpose::Choice, 0);
        for round in 0..60 {
            let reach = 10_u64.pow(2 + round % 6) as f64;
            let values: Vec<u64> = (0..40).map(|_| (rng::unit(&mut stream) * reach) as u64).collect();
            let histogram = of(&values);
            let interval_ns = 1 + (reach / 10_f64.powi(1 + round as i32 % 3)) as u64;
            assert_eq!(filled(&histogram, interval_ns), filled_by_steps(&histogram, interval_ns));
        }
    }

    /// The worked example: 319 requests of 50 ms, one of which waited 2050 ms for a frozen server. 19 are filled in,
    /// and p99 is the fourth largest.
    #[test]
    fn a_stall_of_two_seconds_moves_p99_to_1750_ms() {
        let ms = |ms: u64| ms * 1_000_000;
        let mut closed = Histogram::new();
        closed.record_n(ms(50), 299);
        closed.record(ms(2050));
        let open = filled(&closed, ms(100));
        assert_eq!((closed.n(), open.n()), (300, 319));
        let p99 = open.quantile(Quantile::P99).unwrap();
        assert_eq!(Histogram::bucket_of(p99), Histogram::bucket_of(ms(1750)));
        assert_eq!(open.totals().max(), Some(ms(2050)));
        assert_eq!(open.totals().sum(), u128::from(ms(299 * 50 + (150..=2050).step_by(100).sum::<u64>())));
        assert_eq!(
            closed.quantile(Quantile::P99).map(Histogram::bucket_of),
            Some(Histogram::bucket_of(ms(50)))
        );
    }

    #[test]
    fn nothing_is_filled_in_where_nobody_waited() {
        let histogram = of(&[5, 99, 199]);
        assert_eq!(filled(&histogram, 0), histogram);
        assert_eq!(filled(&histogram, 100), histogram);
        assert_eq!(filled(&histogram, u64::MAX), histogram);
        assert_eq!(filled(&Histogram::new(), 1), Histogram::new());
        assert_eq!(filled(&of(&[200]), 100), of(&[200, 100]));
    }

    /// An hour at every nanosecond: the time taken depends on the buckets.
    #[test]
    fn a_tiny_interval_takes_no_longer() {
        let open = filled(&of(&[Histogram::HIGHEST_NS]), 1);
        assert_eq!(open.n(), Histogram::HIGHEST_NS);
        assert_eq!(open.totals().min(), Some(1));
        let half = Histogram::bucket_of(Histogram::HIGHEST_NS / 2);
        assert_eq!(open.quantile(Quantile::P50).map(Histogram::bucket_of), Some(half));
    }
}
