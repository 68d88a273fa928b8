//! What servers, GPUs and the client's machine said while a level ran, joined to it by time.
//!
//! Gauges are the mean and the extremes of the readings that were taken in the level's measurement window. Counters are the
//! difference of the two readings nearest to its edges, over the time between these. Only what was read is told: a meter
//! without readings is absent.

mod join;
pub mod shares;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::join::{Ours, level};
use crate::metrics::Meter;
use crate::stats::Track;

/// What was taken of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// From one reading to the next as planned, s.
    pub interval_s: f64,
    /// Who was asked.
    pub exporters: Vec<ExporterSeen>,
}

/// What kind of thing an exporter speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A server.
    #[default]
    Server,
    /// GPUs.
    Gpu,
    /// The client's machine.
    Host,
}

/// What one exporter said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExporterSeen {
    /// Of what it speaks.
    pub kind: Kind,
    /// Who it is.
    pub name: String,
    /// How often it was asked.
    pub attempts: u64,
    /// How often it said something that was understood.
    pub answered: u64,
    /// When it did, a gauge of ones.
    pub heard: Track,
    /// What was wrong.
    pub troubles: Vec<Trouble>,
    /// Whom it spoke of.
    pub sources: Vec<Source>,
}

/// What the GPUs that a driver of this machine tells of are called together.
pub const LOCAL_GPUS: &str = "GPUs of this machine";
/// What the client's machine is called.
pub const CLIENT: &str = "client";

/// Lines of trouble that are kept of an exporter; further ones are left out.
pub const TROUBLES_MAX: usize = 8;

/// Something that an exporter did wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// What, in a line.
    pub what: String,
    /// How often.
    pub times: u64,
}

/// A server, GPU or machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// What kind of server or GPU it is.
    pub product: Option<String>,
    /// Its meters; the text is the series of one that was asked for by name, the reason of [`Meter::Throttle`], else empty.
    pub tracks: BTreeMap<(Meter, String), Track>,
}

impl Source {
    /// The track of a meter.
    #[must_use]
    pub fn track(&self, meter: Meter) -> Option<&Track> {
        self.tracks.get(&(meter, String::new()))
    }

    /// The last reading of a meter.
    #[must_use]
    pub fn last(&self, meter: Meter) -> Option<f64> {
        self.track(meter)?.last()
    }
}

/// What was said while a level ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelTelemetry {
    /// Servers that said something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerLevel>,
    /// GPUs that did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuLevel>,
    /// The client's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostLevel>,
    /// The machines of the processes that a merged level was made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostOf>,
    /// The servers' time to the first token beside ours; absent where they do not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What the GPUs did for their energy; absent without GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<Efficiency>,
    /// The course of some of it over the level.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
}

impl LevelTelemetry {
    /// All servers as one: requests, tokens and preemptions added up, the fullest cache, times by how often they were; what
    /// was asked for by name is left out. `None` without any.
    #[must_use]
    pub fn all_servers(&self) -> Option<ServerLevel> {
        let servers = &self.servers;
        let gauges = |of: fn(&ServerLevel) -> Option<Gauge>| {
            let sum = |a: Gauge, b: Gauge| Gauge {
                n: a.n.min(b.n),
                mean: a.mean + b.mean,
                min: a.min + b.min,
                max: a.max + b.max,
            };
            servers.iter().filter_map(of).reduce(sum)
        };
        let counts = |of: fn(&ServerLevel) -> Option<f64>| servers.iter().filter_map(of).reduce(|a, b| a + b);
        let times = |of: fn(&ServerLevel) -> Option<Times>| {
            let sum = |a: Times, b: Times| {
                let n = a.n + b.n;
                Times { n, mean_ms: (a.n * a.mean_ms + b.n * b.mean_ms) / n }
            };
            servers.iter().filter_map(of).reduce(sum)
        };
        // Without the tokens that they are of, shares cannot be put together.
        let hits =
            servers.iter().filter_map(|server| Some((server.prefix_hit_share?, server.prompt_tokens?)));
        let (hits, tokens) =
            hits.fold((0.0, 0.0), |(hits, all), (share, tokens)| (hits + share * tokens, all + tokens));
        let only = if let [only] = servers.as_slice() { only.prefix_hit_share } else { None };
        Some(ServerLevel {
            seen_s: servers.iter().filter_map(|server| server.seen_s).reduce(f64::max),
            resets: servers.iter().map(|server| server.resets).max()?,
            running: gauges(|server| server.running),
            waiting: gauges(|server| server.waiting),
            kv_cache_use: servers
                .iter()
                .filter_map(|server| server.kv_cache_use)
                .max_by(|a, b| a.max.total_cmp(&b.max)),
            prefix_hit_share: only.or_else(|| (tokens > 0.0).then(|| hits / tokens)),
            preemptions: counts(|server| server.preemptions),
            prompt_tokens: counts(|server| server.prompt_tokens),
            output_tokens: counts(|server| server.output_tokens),
            ttft: times(|server| server.ttft),
            itl: times(|server| server.itl),
            e2e: times(|server| server.e2e),
            queue: times(|server| server.queue),
            ..ServerLevel::default()
        })
    }

    /// Mean busy share of all GPUs, 0..=1; `None` where none tells it.
    #[must_use]
    pub fn gpu_busy(&self) -> Option<f64> {
        let all: Vec<f64> = self.gpus.iter().filter_map(|gpu| Some(gpu.busy?.mean)).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }
}

/// A gauge over a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gauge {
    /// Readings.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// Times that a server took, of its own histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many.
    pub n: f64,
    /// Their mean, ms.
    pub mean_ms: f64,
}

/// What a server said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerLevel {
    /// Which exporter.
    pub name: String,
    /// What kind of server it is, where its names are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Time between the two readings that counters are differences of, s; absent where no two tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_s: Option<f64>,
    /// Times that a counter began anew meanwhile: the server was restarted, or another answered.
    pub resets: u64,
    /// Requests that it worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Gauge>,
    /// Requests that waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Gauge>,
    /// Share of the KV cache in use, 0..=1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_cache_use: Option<Gauge>,
    /// Share of the prompt tokens that its prefix cache had, 0..=1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_hit_share: Option<f64>,
    /// Requests put aside for want of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptions: Option<f64>,
    /// Prompt tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<f64>,
    /// Tokens generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<f64>,
    /// Times to the first token, from its own arrival of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft: Option<Times>,
    /// Times between tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub itl: Option<Times>,
    /// Times of whole requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e2e: Option<Times>,
    /// Times in its queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Times>,
    /// Series that were asked for by name: a gauge's mean and extremes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, Gauge>,
    /// And what counters gained.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
}

/// What a GPU said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuLevel {
    /// Which.
    pub name: String,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Share of time in which it worked, 0..=1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<Gauge>,
    /// Memory in use, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Gauge>,
    /// All of it, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_all_bytes: Option<f64>,
    /// Power, W.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<Gauge>,
    /// Energy over the window, J, by its counter, or by its mean power where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The energy is by mean power.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub energy_by_power: bool,
    /// Temperature, °C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<Gauge>,
    /// Clock of the multiprocessors, MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<Gauge>,
    /// Clock of the memory, MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<Gauge>,
    /// Received over PCIe, bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_in_bytes_s: Option<Gauge>,
    /// Sent over PCIe, bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_out_bytes_s: Option<Gauge>,
    /// Over NVLink in both directions, bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvlink_bytes_s: Option<f64>,
    /// Share of the readings at which its clocks were held down, by reason, 0..=1; reasons that never held are absent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub throttled: BTreeMap<String, f64>,
}

/// What one of several machines said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostOf {
    /// Which.
    pub name: String,
    /// What it said.
    #[serde(flatten)]
    pub level: HostLevel,
}

/// What the client's machine said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLevel {
    /// Busy share of its CPUs, 0..=1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_busy: Option<Gauge>,
    /// Share that other guests took, 0..=1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_steal: Option<Gauge>,
    /// Memory in use, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Gauge>,
    /// Bytes per second that its network interfaces but loopback received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_in_bytes_s: Option<f64>,
    /// And sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_out_bytes_s: Option<f64>,
}

/// The servers' TTFT beside ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Times that the servers counted.
    pub server_n: f64,
    /// Their mean, ms.
    pub server_ttft_ms: f64,
    /// Requests that our TTFT is of.
    pub client_n: u64,
    /// Its mean, ms.
    pub client_ttft_ms: f64,
    /// Ours minus theirs, ms: the network, gateways and the server's own way in and out. `None` where the servers counted so
    /// many more or fewer that they speak of other requests.
    pub difference_ms: Option<f64>,
}

/// What the GPUs did for their energy. They are all that were read, idle ones among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// GPUs.
    pub gpus: u64,
    /// Output tokens per second and GPU.
    pub tok_s_per_gpu: f64,
    /// Power of all of them, W, where each tells it.
    pub power_w: Option<f64>,
    /// Output tokens per joule, which is tokens per second and watt.
    pub tok_per_joule: Option<f64>,
}

/// What was read, over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// What: `running`, `waiting`, `kv_cache_use`, `gpu_busy`, `power_w`, `cpu_busy`.
    pub what: String,
    /// Of whom.
    pub of: String,
    /// When, s since the run's epoch; as many as values.
    pub at_s: Vec<f64>,
    /// The values.
    pub values: Vec<f64>,
}
