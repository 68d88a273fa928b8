//! What servers, GPUs and the client's machine say of themselves while levels run; and, the other way round, an endpoint that
//! tells a Prometheus how the run goes.
//!
//! Each exporter has an ordinary thread of its own with its own cadence, never a shard's: one that hangs delays nobody.
//! Readings are stamped on the run's clock when they are asked for, and kept in [`Track`](crate::stats::Track)s of bounded
//! size. Owns the asking; what the readings mean for a level is [`summary::telemetry`](crate::summary::telemetry)'s business.
//! Whatever an exporter does wrong becomes one line, [`Trouble`](crate::summary::telemetry::Trouble), and costs no more.

mod dcgm;
mod exporter;
mod host;
mod known;
mod listen;
mod nvml;
pub mod prometheus;
mod scrape;

use std::time::Duration;

use self::exporter::Exporter;
pub use self::known::matches;
pub use self::listen::Endpoint;
pub use self::nvml::Library;
pub use self::scrape::Page;
use crate::summary::telemetry::{ExporterSeen, Kind, Observed};
use crate::sys::clock::RunClock;

/// Whom to ask.
#[derive(Debug)]
pub enum Whom {
    /// The `/metrics` of a server.
    Server(Page),
    /// The page of a DCGM exporter.
    Dcgm(Page),
    /// The GPUs of this machine.
    Gpus(Library),
    /// This machine.
    Host,
}

/// One to ask.
#[derive(Debug)]
pub struct Ask {
    /// Who it is, in words: its URL without secrets, `local GPUs`, `client`.
    pub name: String,
    /// How.
    pub whom: Whom,
    /// Nobody named it: if it says nothing that is understood, it is not spoken of.
    pub quietly: bool,
}

/// What telemetry is to be taken.
#[derive(Debug)]
pub struct Setup {
    /// The run's clock.
    pub clock: RunClock,
    /// From one reading to the next.
    pub interval: Duration,
    /// Whom to ask.
    pub asks: Vec<Ask>,
}

/// Telemetry that is being taken; ends with [`Telemetry::finish`], or when it is dropped.
#[derive(Debug)]
pub struct Telemetry {
    clock: RunClock,
    interval: Duration,
    exporters: Vec<Exporter>,
}

/// How long a level waits at most, before it begins, for those who usually answer.
pub const CUT_PATIENCE: Duration = Duration::from_millis(500);

/// The last readings, for a live display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Requests that servers say they work on; `None` if none says it.
    pub running: Option<f64>,
    /// Requests that wait there.
    pub waiting: Option<f64>,
    /// The fullest KV cache, 0..=1.
    pub kv_cache_use: Option<f64>,
    /// GPUs that are read.
    pub gpus: usize,
    /// Mean share of time in which they work, 0..=1.
    pub gpu_use: Option<f64>,
    /// Power of all of them, W.
    pub power_w: Option<f64>,
}

impl Telemetry {
    /// Begins. A thread that cannot be started is a trouble of its exporter.
    #[must_use]
    pub fn start(setup: Setup) -> Telemetry {
        let Setup { clock, interval, asks } = setup;
        let exporters = asks.into_iter().map(|ask| Exporter::start(ask, clock, interval)).collect();
        Telemetry { clock, interval, exporters }
    }

    /// Something begins that will be looked at apart: everybody is asked now, and what they say is kept apart from what was
    /// before. Whoever answered last time is waited for, [`CUT_PATIENCE`] at most over all of them, so that what begins then
    /// is not in what they say.
    pub fn cut(&self) {
        self.exporters.iter().for_each(Exporter::cut);
        self.each_within(CUT_PATIENCE, Exporter::wait_if_it_answers);
    }

    /// Something ends: everybody is asked now. Returns at once.
    pub fn look(&self) {
        self.exporters.iter().for_each(Exporter::look);
    }

    /// The last readings.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.viewer().snapshot()
    }

    /// Who reads them from another thread, also when it has ended.
    #[must_use]
    pub fn viewer(&self) -> Viewer {
        Viewer { exporters: self.exporters.clone() }
    }

    /// Ends it, after what was asked last has been answered, or `patience` is over: who hangs is left to hang.
    #[must_use]
    pub fn finish(self, patience: Duration) -> Observed {
        self.each_within(patience, Exporter::wait);
        let exporters = self.exporters.iter().filter_map(Exporter::end).collect();
        Observed { interval_s: self.interval.as_secs_f64(), exporters }
    }
}

/// The last readings of a [`Telemetry`], for a thread of somebody else's.
#[derive(Clone, Debug)]
pub struct Viewer {
    exporters: Vec<Exporter>,
}

impl Viewer {
    /// The last readings.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        snapshot(&self.exporters.iter().map(Exporter::seen).collect::<Vec<_>>())
    }
}

impl Telemetry {
    /// Waits for each, over all of them `patience` at most.
    fn each_within(&self, patience: Duration, wait: fn(&Exporter, Duration)) {
        let until = self.clock.now() + patience;
        for exporter in &self.exporters {
            wait(exporter, Duration::from_nanos(until.nanos_since(self.clock.now())));
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.exporters.iter().for_each(Exporter::stop);
    }
}

fn snapshot(exporters: &[ExporterSeen]) -> Snapshot {
    use crate::metrics::Meter::{GpuUse, KvCacheUse, Power, Running, Waiting};
    let of = |kind: Kind| {
        exporters.iter().filter(move |exporter| exporter.kind == kind).flat_map(|exporter| &exporter.sources)
    };
    let servers = |meter| of(Kind::Server).filter_map(move |source| source.last(meter));
    let gpus = |meter| of(Kind::Gpu).filter_map(move |source| source.last(meter));
    let sum = |a: f64, b: f64| a + b;
    let used: Vec<f64> = gpus(GpuUse).collect();
    Snapshot {
        running: servers(Running).reduce(sum),
        waiting: servers(Waiting).reduce(sum),
        kv_cache_use: servers(KvCacheUse).reduce(f64::max),
        gpus: of(Kind::Gpu).count(),
        gpu_use: (!used.is_empty()).then(|| used.iter().sum::<f64>() / used.len() as f64),
        power_w: gpus(Power).reduce(sum),
    }
}
