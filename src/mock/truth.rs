//! What the server did in truth: counts, and how late its events were.
//!
//! Times are taken immediately before a send, so that they hold neither the kernel's part nor the client's.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// What was served. One per thread; added up when the server stops.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Connections accepted.
    pub connections: u64,
    /// Most connections open at once, added over the threads.
    pub connections_max: u64,
    /// Requests of all kinds, refused ones included.
    pub requests: u64,
    /// Generation requests accepted.
    pub generations: u64,
    /// Those of them that asked for a stream.
    pub streams: u64,
    /// Generation requests answered to the end, be it an error event.
    pub completed: u64,
    /// Generation requests whose client went away, or that broke off on purpose.
    pub broken: u64,
    /// Content events sent.
    pub events: u64,
    /// Tokens sent.
    pub tokens: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Sends of which the kernel did not take everything at once.
    pub partial_sends: u64,
    /// How often accepting paused because no descriptor was left.
    pub accept_pauses: u64,
    lateness: Times,
    ttft: Times,
    itl: Times,
}

/// The spread of times, us. All zero if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Number of times.
    pub count: u64,
    /// Mean, us.
    pub mean_us: f64,
    /// Smallest, us.
    pub min_us: f64,
    /// Median, us, nearest rank, as the other quantiles.
    pub p50_us: f64,
    /// 90th percentile, us.
    pub p90_us: f64,
    /// 99th percentile, us.
    pub p99_us: f64,
    /// 99.9th percentile, us.
    pub p999_us: f64,
    /// Largest, us.
    pub max_us: f64,
}

impl Truth {
    pub(super) fn new() -> Truth {
        Truth {
            connections: 0,
            connections_max: 0,
            requests: 0,
            generations: 0,
            streams: 0,
            completed: 0,
            broken: 0,
            events: 0,
            tokens: 0,
            bytes: 0,
            partial_sends: 0,
            accept_pauses: 0,
            lateness: Times::new(),
            ttft: Times::new(),
            itl: Times::new(),
        }
    }

    /// Actual minus due time of every content event sent.
    #[must_use]
    pub fn lateness(&self) -> Spread {
        self.lateness.spread()
    }

    /// From the request's last byte to its first content event.
    #[must_use]
    pub fn ttft(&self) -> Spread {
        self.ttft.spread()
    }

    /// Between the content events of one choice of a stream.
    #[must_use]
    pub fn itl(&self) -> Spread {
        self.itl.spread()
    }

    pub(super) fn on_lateness(&mut self, late: Duration) {
        self.lateness.record(late);
    }

    pub(super) fn on_ttft(&mut self, ttft: Duration) {
        self.ttft.record(ttft);
    }

    pub(super) fn on_itl(&mut self, gap: Duration) {
        self.itl.record(gap);
    }

    pub(super) fn add(&mut self, other: &Truth) {
        self.connections += other.connections;
        self.connections_max += other.connections_max;
        self.requests += other.requests;
        self.generations += other.generations;
        self.streams += other.streams;
        self.completed += other.completed;
        self.broken += other.broken;
        self.events += other.events;
        self.tokens += other.tokens;
        self.bytes += other.bytes;
        self.partial_sends += other.partial_sends;
        self.accept_pauses += other.accept_pauses;
        self.lateness.add(&other.lateness);
        self.ttft.add(&other.ttft);
        self.itl.add(&other.itl);
    }
}

/// Times to four digits or 1 us, whichever is coarser; count, sum, smallest and largest are exact. Above an hour they
/// count as an hour in the quantiles.
#[derive(Clone, Debug)]
struct Times {
    histogram: Histogram<u32>,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

const FINEST_NS: u64 = 1_000;
const LONGEST_NS: u64 = 3_600_000_000_000;

impl Times {
    fn new() -> Times {
        let histogram = Histogram::new_with_bounds(FINEST_NS, LONGEST_NS, 4).expect("the bounds are valid");
        Times { histogram, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    #[inline]
    fn record(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    fn add(&mut self, other: &Times) {
        self.histogram.add(&other.histogram).expect("the bounds are equal");
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn spread(&self) -> Spread {
        let count = self.histogram.len();
        if count == 0 {
            return Spread::default();
        }
        let us = |ns: u64| ns as f64 / 1e3;
        // The histogram gives the upper end of a bucket.
        let at =
            |quantile: f64| us(self.histogram.value_at_quantile(quantile).clamp(self.min_ns, self.max_ns));
        Spread {
            count,
            mean_us: us(self.sum_ns) / count as f64,
            min_us: us(self.min_ns),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: us(self.max_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truths_add_up() {
        let (mut one, mut two) = (Truth::new(), Truth::new());
        one.events = 3;
        two.events = 4;
        for us in 1..=50 {
            one.on_lateness(Duration::from_micros(us));
            two.on_lateness(Duration::from_micros(50 + us));
        }
        one.add(&two);
        assert_eq!(one.events, 7);
        let late = one.lateness();
        assert_eq!(late.count, 100);
        assert!((late.p50_us - 50.0).abs() <= 1.0 && (late.p99_us - 99.0).abs() <= 1.0);
        assert_eq!((late.mean_us, late.min_us, late.max_us), (50.5, 1.0, 100.0));
        assert_eq!(one.itl(), Spread::default());
    }
}
