//! The metrics by name: for each its unit, its name in files, its direction, and where its value comes from.
//!
//! The formulas are those of [`Record`]; this is the table that lets aggregation treat all alike.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::metrics::record::Record;

/// A per-request or per-gap metric with a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Wait for the concurrency cap.
    CapWait,
    /// Our own lateness.
    ScheduleDelay,
    /// Connection set-up.
    Connect,
    /// First response byte.
    Ttfb,
    /// First content event.
    Ttft,
    /// First content event by the kernel's receive stamp.
    TtftKernel,
    /// First content event that is not reasoning.
    Ttfa,
    /// Last content event.
    E2e,
    /// End of the response.
    Stream,
    /// Time per output token after the first.
    Tpot,
    /// Time per output token after the first content event.
    TpotAdj,
    /// Gap between content events, pooled over requests.
    Itl,
    /// The same by kernel stamps.
    ItlKernel,
    /// Gap per token, where tokens per event are known.
    ItlToken,
    /// Largest gap of a request.
    Stall,
    /// Decode speed of one user.
    UserSpeed,
    /// TTFT from the planned send.
    TtftPlan,
    /// Time to first answer token from the planned send.
    TtfaPlan,
    /// E2E from the planned send.
    E2ePlan,
    /// End of the response from the planned send.
    StreamPlan,
    /// Time to a connection of its own, without TLS; undefined on one that stood.
    TcpConnect,
    /// TLS handshake of a connection of its own; undefined on one that stood.
    TlsHandshake,
}

/// What the values of a metric count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds; shown in milliseconds.
    Nanoseconds,
    /// Tokens per second.
    TokensPerSecond,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// What is written out for each metric: where the metric is known, its formula is a few instructions, and a level has
/// millions of values.
macro_rules! metrics {
    ($($metric:ident),+ $(,)?) => {
        impl Metric {
            /// Every metric, in the order of its places.
            pub const ALL: [Metric; 22] = [$(Metric::$metric),+];

            /// Hands `to` each metric that `record` has a value of, with that value as [`Metric::of`] gives it, in the order
            /// of their places.
            #[inline]
            pub fn each_of(record: &Record, mut to: impl FnMut(Metric, f64)) {
                $(if let Some(value) = Metric::$metric.of(record) {
                    to(Metric::$metric, value);
                })+
            }

            /// Appends to `values` those of the `records` that have one, in their order.
            pub fn append_of(self, records: &[&Record], values: &mut Vec<f64>) {
                match self {
                    $(Metric::$metric => {
                        values.extend(records.iter().filter_map(|record| Metric::$metric.of(record)));
                    })+
                }
            }
        }
    };
}

metrics! {
    CapWait,
    ScheduleDelay,
    Connect,
    Ttfb,
    Ttft,
    TtftKernel,
    Ttfa,
    E2e,
    Stream,
    Tpot,
    TpotAdj,
    Itl,
    ItlKernel,
    ItlToken,
    Stall,
    UserSpeed,
    TtftPlan,
    TtfaPlan,
    E2ePlan,
    StreamPlan,
    TcpConnect,
    TlsHandshake,
}

impl Metric {
    /// Number of metrics; `metric as usize` is below it.
    pub const COUNT: usize = Metric::ALL.len();

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Metric::CapWait => "cap_wait",
            Metric::ScheduleDelay => "schedule_delay",
            Metric::Connect => "connect",
            Metric::Ttfb => "ttfb",
            Metric::Ttft => "ttft",
            Metric::TtftKernel => "ttft_kernel",
            Metric::Ttfa => "ttfa",
            Metric::E2e => "e2e",
            Metric::Stream => "stream",
            Metric::Tpot => "tpot",
            Metric::TpotAdj => "tpot_adj",
            Metric::Itl => "itl",
            Metric::ItlKernel => "itl_kernel",
            Metric::ItlToken => "itl_token",
            Metric::Stall => "stall",
            Metric::UserSpeed => "user_speed",
            Metric::TtftPlan => "ttft_plan",
            Metric::TtfaPlan => "ttfa_plan",
            Metric::E2ePlan => "e2e_plan",
            Metric::StreamPlan => "stream_plan",
            Metric::TcpConnect => "tcp_connect",
            Metric::TlsHandshake => "tls_handshake",
        }
    }

    /// The unit of its values.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Metric::UserSpeed => Unit::TokensPerSecond,
            _ => Unit::Nanoseconds,
        }
    }

    /// Which way is better.
    #[must_use]
    pub const fn better(self) -> Better {
        match self {
            Metric::UserSpeed => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// Whether a request has at most one value, which its record holds; gaps have many and are pooled.
    #[must_use]
    pub const fn is_per_request(self) -> bool {
        !matches!(self, Metric::Itl | Metric::ItlKernel | Metric::ItlToken)
    }

    /// Whether it is a metric by kernel stamps beside one by user stamps.
    #[must_use]
    pub const fn is_by_kernel(self) -> bool {
        matches!(self, Metric::TtftKernel | Metric::ItlKernel)
    }

    /// Whether its value depends on the stamps of content events.
    #[must_use]
    pub const fn is_stamped(self) -> bool {
        !matches!(
            self,
            Metric::CapWait
                | Metric::ScheduleDelay
                | Metric::Connect
                | Metric::Ttfb
                | Metric::Stream
                | Metric::StreamPlan
                | Metric::TcpConnect
                | Metric::TlsHandshake
        )
    }

    /// The value of one request, in the metric's unit; `None` where it is undefined, and for pooled gaps.
    ///
    /// Durations are whole nanoseconds below 2^53 (104 days), which `f64` holds exactly.
    #[must_use]
    #[inline(always)]
    pub fn of(self, record: &Record) -> Option<f64> {
        let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
        match self {
            Metric::CapWait => whole(Some(record.cap_wait_ns())),
            Metric::ScheduleDelay => whole(Some(record.schedule_delay_ns())),
            Metric::Connect => whole(record.connect_ns()),
            Metric::Ttfb => whole(record.ttfb_ns()),
            Metric::Ttft => whole(record.ttft_ns()),
            Metric::TtftKernel => whole(record.kernel_ttft_ns()),
            Metric::Ttfa => whole(record.ttfa_ns()),
            Metric::E2e => whole(record.e2e_ns()),
            Metric::Stream => whole(Some(record.stream_ns())),
            Metric::Tpot => record.tpot_ns(),
            Metric::TpotAdj => record.tpot_adjusted_ns(),
            Metric::Itl | Metric::ItlKernel | Metric::ItlToken => None,
            Metric::Stall => whole(record.stall_ns.get()),
            Metric::UserSpeed => record.user_speed(),
            Metric::TtftPlan => whole(record.ttft_plan_ns()),
            Metric::TtfaPlan => whole(record.ttfa_plan_ns()),
            Metric::E2ePlan => whole(record.e2e_plan_ns()),
            Metric::StreamPlan => whole(Some(record.stream_plan_ns())),
            Metric::TcpConnect => whole(record.tcp_connect_ns()),
            Metric::TlsHandshake => whole(record.tls_handshake_ns()),
        }
    }

    /// What a histogram counts for `value`: nanoseconds, or thousandths of a token per second, to the nearest.
    #[must_use]
    #[inline]
    pub fn to_ticks(self, value: f64) -> u64 {
        let ticks = value * self.ticks_per_unit();
        // As `round` does it, which is a call where the processor may be an old one. Below 2^53 the rest is exact, and above
        // there is none.
        let whole = ticks as u64;
        whole.saturating_add(u64::from(ticks - whole as f64 >= 0.5))
    }

    /// The value that `ticks` in a histogram stand for.
    #[must_use]
    pub fn from_ticks(self, ticks: f64) -> f64 {
        ticks / self.ticks_per_unit()
    }

    const fn ticks_per_unit(self) -> f64 {
        match self.unit() {
            Unit::Nanoseconds => 1.0,
            Unit::TokensPerSecond => 1000.0,
        }
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    /// Reads the name in files.
    fn from_str(name: &str) -> Result<Metric, UnknownMetric> {
        Metric::ALL.into_iter().find(|metric| metric.name() == name).ok_or(UnknownMetric)
    }
}

/// The name is that of no metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMetric;

impl fmt::Display for UnknownMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the name of a metric")
    }
}

impl std::error::Error for UnknownMetric {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::outcome::Outcome;
    use crate::metrics::record::{Flags, Handshake};
    use crate::time::Stamp;

    #[test]
    fn places_and_names_are_those_of_the_table() {
        for (place, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!(metric as usize, place);
            assert_eq!(metric.name().parse(), Ok(metric));
            assert_eq!(serde_json::to_string(&metric).unwrap(), format!("\"{}\"", metric.name()));
        }
        assert_eq!("TTFT".parse::<Metric>(), Err(UnknownMetric));
    }

    #[test]
    fn every_metric_of_a_request_is_its_formula() {
        let at = Stamp::from_millis;
        let mut record = Record::planned(0, at(1000));
        record.outcome = Outcome::ok(200);
        (record.permit, record.start) = (at(1001), at(1003));
        (record.conn, record.byte) = (Some(at(1008)), Some(at(1100)));
        (record.first, record.answer, record.last) = (Some(at(1203)), Some(at(1303)), Some(at(2203)));
        (record.kernel_first, record.end) = (Some(at(1202)), at(2210));
        (record.output_tokens, record.events, record.tokens_after_first) = (Some(41), 30, 50.into());
        record.stall_ns = 77_000_000.into();
        record.flags.insert(Flags::FRESH_CONNECTION);
        record.handshake = Some(Handshake::of(std::time::Duration::from_nanos(1 << 20), false));
        let expected_ms = [
            (Metric::CapWait, 1.0),
            (Metric::ScheduleDelay, 2.0),
            (Metric::Connect, 5.0),
            (Metric::Ttfb, 97.0),
            (Metric::Ttft, 200.0),
            (Metric::TtftKernel, 199.0),
            (Metric::Ttfa, 300.0),
            (Metric::E2e, 1200.0),
            (Metric::Stream, 1207.0),
            (Metric::Tpot, 25.0),
            (Metric::TpotAdj, 20.0),
            (Metric::Stall, 77.0),
            (Metric::TtftPlan, 203.0),
            (Metric::TtfaPlan, 303.0),
            (Metric::E2ePlan, 1203.0),
            (Metric::StreamPlan, 1210.0),
            (Metric::TcpConnect, 3.951_424),
            (Metric::TlsHandshake, 1.048_576),
        ];
        for (metric, ms) in expected_ms {
            assert_eq!(metric.of(&record), Some(ms * 1e6), "{}", metric.name());
        }
        assert_eq!(Metric::UserSpeed.of(&record), Some(40.0));
        let pooled = Metric::ALL.into_iter().filter(|metric| !metric.is_per_request());
        assert_eq!(pooled.filter_map(|metric| metric.of(&record)).count(), 0);
        assert_eq!(expected_ms.len() + 1 + 3, Metric::COUNT);
    }

    #[test]
    fn ticks_keep_three_decimals_of_a_speed() {
        assert_eq!(Metric::UserSpeed.to_ticks(33.4106), 33_411);
        assert_eq!(Metric::UserSpeed.from_ticks(33_411.0), 33.411);
        assert_eq!(Metric::Tpot.to_ticks(1_000_000.6), 1_000_001);
        let odd =
            [0.0, 0.5, 1.5, 2.5, 0.499_999_999_999_999_94, 4_503_599_627_370_495.5, 1e17, 1e30, -0.7, -3.2];
        for value in odd.into_iter().chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]) {
            assert_eq!(Metric::Tpot.to_ticks(value), value.round() as u64, "{value}");
        }
    }
}
