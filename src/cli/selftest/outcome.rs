//! What a selftest found, as it is printed in JSON and stored, and what follows from it.

use serde::{Deserialize, Serialize};

use super::errors::Off;
use super::ladder::Step;
use super::shares::Cores;
use crate::run_file::schema::SelftestBlock;
use crate::sys::host::Host;

/// A whole selftest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Selftest {
    /// Always [`SCHEMA`].
    pub(crate) schema: String,
    /// Version of the form.
    pub(crate) version: u32,
    /// When it began, RFC 3339 in UTC.
    pub(crate) created: String,
    /// The program and the machine that it is true of.
    pub(crate) machine: Machine,
    /// Cores of client and server.
    pub(crate) cores: Cores,
    /// The error that is still small enough, ns.
    pub(crate) error_max_ns: i64,
    /// The loads that were tried, by their streams.
    pub(crate) steps: Vec<StepBlock>,
    /// The sends at a constant rate.
    pub(crate) sends: Option<SendBlock>,
    /// The largest load at which the error stayed small enough.
    pub(crate) limit: Option<Limit>,
    /// What was left out or is to be known, a sentence each.
    pub(crate) remarks: Vec<String>,
}

/// What a selftest is true of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Version of this program.
    pub(crate) tokload: String,
    /// CPU model.
    pub(crate) cpu_model: Option<String>,
    /// Cores that the process may use.
    pub(crate) cores: u32,
    /// Kernel release.
    pub(crate) kernel: Option<String>,
}

/// One load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StepBlock {
    /// The load and the server's times.
    pub(crate) step: Step,
    /// Requests that ended well.
    pub(crate) requests: u64,
    /// The others.
    pub(crate) failed: u64,
    /// Of those that ended well, how many the server did not account for.
    pub(crate) unknown: u64,
    /// Content events.
    pub(crate) events: u64,
    /// Content events per second, over the whole load.
    pub(crate) events_s: u64,
    /// CPU time of the client's shards, ns.
    pub(crate) cpu_ns: u64,
    /// Busy share of all CPUs of the machine, whoever used them, 0..=1.
    pub(crate) busy_share: Option<f64>,
    /// Error of TTFT, request by request.
    pub(crate) ttft: Option<Off>,
    /// Lateness of the stamp of the last event, request by request.
    pub(crate) last: Option<Off>,
    /// Quantiles of ITL, minus those of the server's gaps.
    pub(crate) itl: Option<Off>,
    /// The same by the kernel's stamps, where there are any.
    pub(crate) by_kernel: Option<ByKernel>,
    /// How late the server sent its events, which is not the client's error.
    pub(crate) server_late: Off,
    /// From the last byte of a request to the server's read of it, which is not either.
    pub(crate) to_server: Option<Off>,
}

/// Errors by the kernel's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByKernel {
    /// Of TTFT.
    pub(crate) ttft: Option<Off>,
    /// Of ITL.
    pub(crate) itl: Option<Off>,
}

/// Sends at a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SendBlock {
    /// Sends per second.
    pub(crate) rate: f64,
    /// Number of sends.
    pub(crate) sends: u64,
    /// How late they were.
    pub(crate) delay: Off,
}

/// The largest load at which the error stayed small enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limit {
    /// Streams at once.
    pub(crate) streams: u32,
    /// Most events per second of the loads up to there.
    pub(crate) events_s: u64,
    /// The smallest load above at which it did not; `None`: none was tried.
    pub(crate) fails_at: Option<u32>,
}

pub(super) const SCHEMA: &str = "tokload.selftest";
pub(super) const VERSION: u32 = 1;
/// A millisecond: what the measurement spec tolerates of a client.
pub(super) const ERROR_MAX_NS: i64 = 1_000_000;

impl StepBlock {
    /// The 99th percentile of the client's error, the worst of TTFT, ITL and the last event, ns; `None` if that is not
    /// known of all requests.
    pub(super) fn error_p99_ns(&self) -> Option<i64> {
        if self.failed > 0 || self.unknown > 0 {
            return None;
        }
        let errors = [self.ttft?.p99_ns, self.itl?.p99_ns, self.last?.p99_ns];
        errors.into_iter().map(i64::abs).max()
    }

    /// Whether it stayed small enough.
    pub(super) fn holds(&self) -> bool {
        self.error_p99_ns().is_some_and(|error| error <= ERROR_MAX_NS)
    }

    /// Events per second of CPU time: what a core of the client could take at this load.
    pub(super) fn events_s_core(&self) -> Option<u64> {
        (self.cpu_ns > 0).then(|| (self.events as f64 * 1e9 / self.cpu_ns as f64).round() as u64)
    }
}

impl Machine {
    /// This program on this machine, `usable` being the number of cores that it may use.
    pub(super) fn this(usable: usize) -> Machine {
        let host = Host::read();
        Machine {
            tokload: env!("CARGO_PKG_VERSION").to_owned(),
            cpu_model: host.cpu_model,
            cores: u32::try_from(usable).unwrap_or(u32::MAX),
            kernel: host.kernel,
        }
    }

    /// In what `other` differs, for a reader.
    pub(super) fn differences(&self, other: &Machine) -> Vec<String> {
        let facts = [
            ("version", self.tokload == other.tokload),
            ("CPU", self.cpu_model == other.cpu_model),
            ("number of cores", self.cores == other.cores),
            ("kernel", self.kernel == other.kernel),
        ];
        facts.into_iter().filter(|(_, same)| !same).map(|(fact, _)| fact.to_owned()).collect()
    }
}

impl Selftest {
    /// The step with most events per second: at it the client's cost of an event is best known.
    pub(super) fn busiest(&self) -> Option<&StepBlock> {
        self.steps.iter().max_by_key(|step| step.events_s)
    }

    /// What others keep busy of the machine, 0..=1: with a few streams client and server need next to nothing.
    pub(super) fn others_share(&self) -> Option<f64> {
        self.steps.first().filter(|step| step.step.streams <= 10)?.busy_share
    }

    /// Takes in `step`, in its place.
    pub(super) fn add(&mut self, step: StepBlock) {
        let place = self.steps.partition_point(|other| other.step.streams <= step.step.streams);
        self.steps.insert(place, step);
    }

    /// What is quoted of it in a run on `here`.
    pub(super) fn block(&self, here: &Machine) -> SelftestBlock {
        SelftestBlock {
            created: self.created.clone(),
            error_max_us: u64::try_from(self.error_max_ns / 1_000).unwrap_or(0),
            streams: self.limit.map(|limit| limit.streams),
            events_s: self.limit.map(|limit| limit.events_s),
            at_least: self.limit.is_some_and(|limit| limit.fails_at.is_none()),
            events_s_core: self.busiest().and_then(StepBlock::events_s_core),
            send_delay_us_p99: self.sends.map(|sends| u64::try_from(sends.delay.p99_ns / 1_000).unwrap_or(0)),
            others_percent: self.others_share().map(|share| (share * 100.0).round() as u32),
            differs: self.machine.differences(here),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cli::selftest::ladder::Effort;

    /// A step whose TTFT is off by `us` at p99.
    pub(in crate::cli::selftest) fn step(streams: u32, events_s: u64, us: i64) -> StepBlock {
        let cores = Cores { client: vec![0], server: vec![1], shared: false };
        let off = |us: i64| Off { p50_ns: us * 500, p99_ns: us * 1_000, max_ns: us * 2_000 };
        StepBlock {
            step: Step::of(streams, &Effort::FULL, &cores),
            requests: 10,
            failed: 0,
            unknown: 0,
            events: 1_000,
            events_s,
            cpu_ns: 5_000_000,
            busy_share: Some(0.1),
            ttft: Some(off(us)),
            last: Some(off(20)),
            itl: Some(off(-30)),
            by_kernel: Some(ByKernel { ttft: Some(off(10)), itl: Some(off(5)) }),
            server_late: off(50),
            to_server: Some(off(60)),
        }
    }

    pub(in crate::cli::selftest) fn selftest() -> Selftest {
        Selftest {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            created: "2026-12-01T00:00:00.000000000Z".to_owned(),
            machine: Machine {
                tokload: env!("CARGO_PKG_VERSION").to_owned(),
                cpu_model: Some("Some CPU".to_owned()),
                cores: 2,
                kernel: Some("6.18".to_owned()),
            },
            cores: Cores { client: vec![0], server: vec![1], shared: false },
            error_max_ns: ERROR_MAX_NS,
            steps: vec![step(1, 45, 90), step(1_000, 48_000, 400), step(10_000, 40_000, 3_000)],
            sends: Some(SendBlock {
                rate: 500.0,
                sends: 1_500,
                delay: Off { p50_ns: 1_000, p99_ns: 9_000, max_ns: 80_000 },
            }),
            limit: Some(Limit { streams: 1_000, events_s: 48_000, fails_at: Some(10_000) }),
            remarks: Vec::new(),
        }
    }

    #[test]
    fn the_error_of_a_load_is_its_worst_and_needs_every_request() {
        assert_eq!(
            (step(1, 1, 400).error_p99_ns(), step(1, 1, 25).error_p99_ns()),
            (Some(400_000), Some(30_000))
        );
        assert!(step(1, 1, 1_000).holds() && !step(1, 1, 1_001).holds() && !step(1, 1, -1_001).holds());
        assert_eq!(StepBlock { failed: 1, ..step(1, 1, 1) }.error_p99_ns(), None);
        assert!(!StepBlock { unknown: 1, ..step(1, 1, 1) }.holds());
        assert!(!StepBlock { itl: None, ..step(1, 1, 1) }.holds());
        assert_eq!(step(1, 1, 1).events_s_core(), Some(200_000));
    }

    #[test]
    fn steps_stand_in_the_order_of_their_streams() {
        let mut selftest = selftest();
        selftest.add(step(3_162, 50_000, 700));
        let streams: Vec<u32> = selftest.steps.iter().map(|step| step.step.streams).collect();
        assert_eq!(streams, [1, 1_000, 3_162, 10_000]);
    }

    #[test]
    fn a_run_quotes_the_limit_and_what_differs() {
        let selftest = selftest();
        let here = Machine { kernel: Some("6.19".to_owned()), cores: 4, ..selftest.machine.clone() };
        let block = selftest.block(&here);
        assert_eq!((block.streams, block.events_s, block.at_least), (Some(1_000), Some(48_000), false));
        assert_eq!((block.error_max_us, block.send_delay_us_p99), (1_000, Some(9)));
        assert_eq!((block.events_s_core, block.others_percent), (Some(200_000), Some(10)));
        assert_eq!(block.differs, ["number of cores", "kernel"]);
        assert_eq!(selftest.block(&selftest.machine).differs, [""; 0]);
    }
}
