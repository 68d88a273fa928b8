//! How far off the client was, request by request, against what the server did and when. Pure.
//!
//! Both sides' stamps are on `CLOCK_MONOTONIC`, so that each answer can be followed: the client takes the request in
//! hand, hands its last byte to the kernel, the server reads it, sends the first event, the client stamps it. What passes
//! on the client's side is its error: from `start` to `sent`, and from the server's send to the client's stamp. What
//! passes between `sent` and the server's read is the server's or the kernel's, and so is how late the server sends: a slow
//! server is not taken for a slow client. The kernel's way between the two, some 20 us on loopback, counts as error.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::metrics::Record;
use crate::mock::mark;
use crate::stats::Quantile;
use crate::stats::quantile::nearest_rank;
use crate::sys::clock::OnMonotonic;
use crate::time::Stamp;

/// When the server had a request and sent its first and last event, ns on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) arrived: u64,
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Quantiles of an error, ns; negative where the client's value is below the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Off {
    /// Median.
    pub(crate) p50_ns: i64,
    /// 99th percentile.
    pub(crate) p99_ns: i64,
    /// Largest.
    pub(crate) max_ns: i64,
}

/// Errors of the requests that both sides know, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    /// Of TTFT by the user's stamps.
    pub(super) ttft: Vec<i64>,
    /// Of the stamp of the last event.
    pub(super) last: Vec<i64>,
    /// Of TTFT by the kernel's stamps; as many as there are of those.
    pub(super) kernel_ttft: Vec<i64>,
    /// From the last byte handed to the kernel to the server's read: not the client's.
    pub(super) to_server: Vec<i64>,
    /// Requests that ended well and that the server does not know.
    pub(super) unknown: u64,
}

impl Off {
    /// The quantiles of `values`; `None` if there are none.
    pub(super) fn of(mut values: Vec<i64>) -> Option<Off> {
        values.sort_unstable();
        Some(Off {
            p50_ns: nearest_rank(&values, Quantile::P50)?,
            p99_ns: nearest_rank(&values, Quantile::P99)?,
            max_ns: *values.last()?,
        })
    }

    /// The same quantiles of two distributions, one minus the other.
    pub(super) fn between(measured: Off, truth: Off) -> Off {
        Off {
            p50_ns: measured.p50_ns - truth.p50_ns,
            p99_ns: measured.p99_ns - truth.p99_ns,
            max_ns: measured.max_ns - truth.max_ns,
        }
    }
}

impl Errors {
    /// Those of `records`, whose stamps are on `line`. `body` writes the body of a request, by whose mark the server
    /// knows it.
    pub(super) fn of(
        records: &[Record],
        served: &HashMap<u64, Served>,
        line: &OnMonotonic,
        mut body: impl FnMut(u64, &mut Vec<u8>),
    ) -> Errors {
        let mut errors = Errors::default();
        let mut bytes = Vec::new();
        for record in records.iter().filter(|record| record.outcome.is_ok()) {
            bytes.clear();
            body(record.index, &mut bytes);
            match served.get(&mark(&bytes)) {
                Some(served) => errors.add(record, served, line),
                None => errors.unknown += 1,
            }
        }
        errors
    }

    fn add(&mut self, record: &Record, served: &Served, line: &OnMonotonic) {
        let (Some(sent), Some(first), Some(last)) = (record.sent, record.first, record.last) else { return };
        let at = |stamp: Stamp| line.nanos(stamp);
        let since = |later: u64, earlier: u64| later as i64 - earlier as i64;
        let sending = since(at(sent), at(record.start));
        self.ttft.push(sending + since(at(first), served.first));
        self.last.push(since(at(last), served.last));
        self.to_server.push(since(served.arrived, at(sent)));
        if let Some(kernel) = record.kernel_first {
            self.kernel_ttft.push(sending + since(at(kernel), served.first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Outcome;

    const LINE: OnMonotonic = OnMonotonic { epoch_ns: 1_000_000, run_ns: 1, monotonic_ns: 1 };

    fn body(index: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(index.to_string().as_bytes());
    }

    /// Taken in hand at 1000 on our line, sent 30 later, first event at 5000, last at 9000.
    fn record(index: u64) -> Record {
        let at = |ns| Some(Stamp::from_nanos(ns));
        Record {
            outcome: Outcome::ok(200),
            start: Stamp::from_nanos(1_000),
            sent: at(1_030),
            first: at(5_000),
            last: at(9_000),
            kernel_first: at(4_990),
            ..Record::planned(index, Stamp::ZERO)
        }
    }

    #[test]
    fn the_clients_part_of_an_answer_is_its_error() {
        // The server read it 400 after it was sent, sent the first event 100 before it was stamped, the last 7.
        let served = Served { arrived: 1_001_430, first: 1_004_900, last: 1_008_993 };
        let served = HashMap::from([(mark(b"7"), served)]);
        let errors = Errors::of(&[record(7)], &served, &LINE, body);
        let expected = Errors {
            ttft: vec![130],
            last: vec![7],
            kernel_ttft: vec![120],
            to_server: vec![400],
            unknown: 0,
        };
        assert_eq!(errors, expected);
    }

    #[test]
    fn requests_that_one_side_does_not_know_are_counted_or_left_out() {
        let failed = Record { outcome: Record::planned(0, Stamp::ZERO).outcome, ..record(1) };
        let errors = Errors::of(&[record(3), failed], &HashMap::new(), &LINE, body);
        assert_eq!(errors, Errors { unknown: 1, ..Errors::default() });
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let off = Off::of((1..=200).rev().collect()).unwrap();
        assert_eq!(off, Off { p50_ns: 100, p99_ns: 198, max_ns: 200 });
        assert_eq!(Off::between(off, Off { p50_ns: 1, p99_ns: 200, max_ns: 3 }).p99_ns, -2);
        assert_eq!(Off::of(Vec::new()), None);
    }
}
