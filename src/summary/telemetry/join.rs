//! Readings to one level.

use std::collections::BTreeMap;

use super::{
    Efficiency, ExporterSeen, Gauge, GpuLevel, HostLevel, Kind, LevelTelemetry, Line, Network, Observed,
    ServerLevel, Source, Times,
};
use crate::metrics::Meter;
use crate::metrics::metric::Metric;
use crate::run::{Span, Window};
use crate::stats::track::Gain;
use crate::summary::LevelSummary;
use crate::time::Stamp;

/// What we measured of a level that is set against what others said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ours {
    /// Output tokens per second in the window.
    pub out_tok_s: f64,
    /// Our TTFT: how many, and the mean, ms.
    pub ttft: Option<(u64, f64)>,
}

/// The time that a level is joined by.
#[derive(Clone, Copy)]
struct Within {
    from: Stamp,
    to: Stamp,
}

/// Points of a line at most.
const POINTS_MAX: usize = 120;
/// GPUs whose course is kept.
const GPU_LINES_MAX: usize = 8;
/// How far the servers' number of first tokens may be from ours, as a share of it and in requests: failures, and what was
/// under way at the edges of the window.
const OTHERS: (f64, f64) = (0.2, 4.0);

impl Ours {
    /// Those of a level's numbers.
    #[must_use]
    pub fn of(summary: &LevelSummary) -> Ours {
        let ttft = summary.distribution(Metric::Ttft).filter(|ttft| ttft.n > 0);
        Ours {
            out_tok_s: summary.window_rates.out_tok_s,
            ttft: ttft.map(|ttft| (ttft.n, ttft.sum / ttft.n as f64 / 1e6)),
        }
    }
}

/// What was said of the level with this window; `None` if nothing was.
#[must_use]
pub fn level(observed: &Observed, span: Span, window: Window, ours: &Ours) -> Option<LevelTelemetry> {
    let within = match window.whole_level {
        true => Within { from: span.t0, to: span.t2 },
        false => Within { from: window.start, to: window.end },
    };
    let of = |kind: Kind| observed.exporters.iter().filter(move |exporter| exporter.kind == kind);
    let sources =
        |kind| of(kind).flat_map(|exporter| exporter.sources.iter().map(move |source| (exporter, source)));
    let servers: Vec<ServerLevel> =
        sources(Kind::Server).filter_map(|(exporter, source)| within.server(exporter, source)).collect();
    let several = of(Kind::Gpu).count() > 1;
    let gpus: Vec<GpuLevel> = sources(Kind::Gpu)
        .filter_map(|(exporter, source)| within.gpu(source, several.then_some(exporter.name.as_str())))
        .collect();
    let host = sources(Kind::Host).find_map(|(_, source)| within.host(source));
    let whole = Within { from: span.t0, to: span.t2 };
    let telemetry = LevelTelemetry {
        network: network(&servers, ours),
        efficiency: efficiency(&gpus, within.power_w(&gpus), ours),
        lines: [
            lines(sources(Kind::Server), whole, &SERVER_LINES, usize::MAX),
            lines(sources(Kind::Gpu), whole, &GPU_LINES, GPU_LINES_MAX),
            lines(sources(Kind::Host), whole, &HOST_LINES, 1),
        ]
        .concat(),
        servers,
        gpus,
        host,
        hosts: Vec::new(),
    };
    let has_any = !telemetry.servers.is_empty() || !telemetry.gpus.is_empty() || telemetry.host.is_some();
    has_any.then_some(telemetry)
}

impl LevelTelemetry {
    /// The same beside other numbers of the level: those of all processes that shared it.
    #[must_use]
    pub fn set_against(self, ours: &Ours) -> LevelTelemetry {
        let power_w = self.efficiency.and_then(|efficiency| efficiency.power_w);
        LevelTelemetry {
            network: network(&self.servers, ours),
            efficiency: efficiency(&self.gpus, power_w, ours),
            ..self
        }
    }
}

impl Within {
    fn gauge(self, source: &Source, meter: Meter) -> Option<Gauge> {
        self.gauge_of(source, meter, "")
    }

    fn gauge_of(self, source: &Source, meter: Meter, name: &str) -> Option<Gauge> {
        let track = source.tracks.get(&(meter, name.to_owned()))?;
        let spread = track.spread(self.from, self.to)?;
        Some(Gauge { n: spread.n, mean: spread.mean, min: spread.min, max: spread.max })
    }

    fn gain(self, source: &Source, meter: Meter) -> Option<Gain> {
        source.track(meter)?.gain(self.from, self.to)
    }

    fn amount(self, source: &Source, meter: Meter) -> Option<f64> {
        self.gain(source, meter).map(|gain| gain.amount)
    }

    fn rate(self, source: &Source, meter: Meter) -> Option<f64> {
        self.gain(source, meter).map(|gain| gain.amount / gain.seconds())
    }

    fn times(self, source: &Source, sum: Meter, count: Meter) -> Option<Times> {
        let n = self.amount(source, count).filter(|n| *n >= 1.0)?;
        Some(Times { n, mean_ms: self.amount(source, sum)? / n * 1e3 })
    }

    fn server(self, exporter: &ExporterSeen, source: &Source) -> Option<ServerLevel> {
        let gains = || source.tracks.values().filter_map(|track| track.gain(self.from, self.to));
        let queries = self.amount(source, Meter::PrefixQueries).filter(|queries| *queries > 0.0);
        let hits = self.amount(source, Meter::PrefixHits);
        // A share that a server averages itself is as old as it likes; counters are the level's own.
        let counted = queries.and_then(|queries| Some((hits? / queries).min(1.0)));
        let said = || self.gauge(source, Meter::PrefixHitShare).map(|share| share.mean);
        let level = ServerLevel {
            name: exporter.name.clone(),
            product: source.product.clone(),
            seen_s: gains().map(|gain| gain.seconds()).reduce(f64::max),
            resets: gains().map(|gain| gain.resets).max().unwrap_or(0),
            running: self.gauge(source, Meter::Running),
            waiting: self.gauge(source, Meter::Waiting),
            kv_cache_use: self.gauge(source, Meter::KvCacheUse),
            prefix_hit_share: counted.or_else(said),
            preemptions: self.amount(source, Meter::Preemptions),
            prompt_tokens: self.amount(source, Meter::PromptTokens),
            output_tokens: self.amount(source, Meter::OutputTokens),
            ttft: self.times(source, Meter::TtftSum, Meter::TtftCount),
            itl: self.times(source, Meter::ItlSum, Meter::ItlCount),
            e2e: self.times(source, Meter::E2eSum, Meter::E2eCount),
            queue: self.times(source, Meter::QueueSum, Meter::QueueCount),
            gauges: named(source, Meter::Other)
                .filter_map(|name| Some((name.to_owned(), self.gauge_of(source, Meter::Other, name)?)))
                .collect(),
            counters: source
                .tracks
                .iter()
                .filter(|((meter, _), _)| *meter == Meter::OtherCount)
                .filter_map(|((_, name), track)| Some((name.clone(), track.gain(self.from, self.to)?.amount)))
                .collect(),
        };
        let heard = exporter.heard.spread(self.from, self.to).is_some();
        (heard || level.seen_s.is_some()).then_some(level)
    }

    fn gpu(self, source: &Source, exporter: Option<&str>) -> Option<GpuLevel> {
        let power_w = self.gauge(source, Meter::Power);
        let window_s = self.seconds();
        let counted = self.rate(source, Meter::Energy).map(|watts| watts * window_s);
        let level = GpuLevel {
            name: exporter
                .map_or_else(|| source.name.clone(), |exporter| format!("{} ({exporter})", source.name)),
            product: source.product.clone(),
            busy: self.gauge(source, Meter::GpuUse),
            memory_bytes: self.gauge(source, Meter::GpuMemory),
            memory_all_bytes: self.gauge(source, Meter::GpuMemoryAll).map(|all| all.max),
            power_w,
            energy_j: counted.or_else(|| Some(power_w?.mean * window_s)),
            energy_by_power: counted.is_none() && power_w.is_some(),
            temperature_c: self.gauge(source, Meter::Temperature),
            sm_clock_mhz: self.gauge(source, Meter::SmClock),
            memory_clock_mhz: self.gauge(source, Meter::MemoryClock),
            pcie_in_bytes_s: self.gauge(source, Meter::PcieIn),
            pcie_out_bytes_s: self.gauge(source, Meter::PcieOut),
            nvlink_bytes_s: self.rate(source, Meter::Nvlink),
            throttled: self.throttled(source),
        };
        let bare =
            GpuLevel { name: level.name.clone(), product: level.product.clone(), ..GpuLevel::default() };
        (level != bare).then_some(level)
    }

    fn throttled(self, source: &Source) -> BTreeMap<String, f64> {
        let share = |name: &str| {
            let held = self.gauge_of(source, Meter::Throttle, name).filter(|held| held.max > 0.0)?;
            Some((name.to_owned(), held.mean))
        };
        named(source, Meter::Throttle).filter_map(share).collect()
    }

    fn host(self, source: &Source) -> Option<HostLevel> {
        let level = HostLevel {
            cpu_busy: self.gauge(source, Meter::CpuBusy),
            cpu_steal: self.gauge(source, Meter::CpuSteal),
            memory_bytes: self.gauge(source, Meter::HostMemory),
            net_in_bytes_s: self.rate(source, Meter::NetIn),
            net_out_bytes_s: self.rate(source, Meter::NetOut),
        };
        (level != HostLevel::default()).then_some(level)
    }

    /// Power of all GPUs, where each tells its own.
    fn power_w(self, gpus: &[GpuLevel]) -> Option<f64> {
        let energy_j = gpus.iter().map(|gpu| gpu.energy_j).sum::<Option<f64>>()?;
        Some(energy_j / self.seconds()).filter(|watts| *watts > 0.0 && watts.is_finite())
    }

    fn seconds(self) -> f64 {
        self.to.nanos_since(self.from) as f64 / 1e9
    }
}

/// The texts under which a source has a meter.
fn named(source: &Source, meter: Meter) -> impl Iterator<Item = &str> {
    source.tracks.keys().filter(move |(of, _)| *of == meter).map(|(_, name)| name.as_str())
}

/// All servers together: whoever answered, its time counts as often as it did.
fn network(servers: &[ServerLevel], ours: &Ours) -> Option<Network> {
    let (client_n, client_ttft_ms) = ours.ttft?;
    let known = || servers.iter().filter_map(|server| server.ttft);
    let server_n: f64 = known().map(|ttft| ttft.n).sum();
    if server_n <= 0.0 {
        return None;
    }
    let server_ttft_ms = known().map(|ttft| ttft.n * ttft.mean_ms).sum::<f64>() / server_n;
    let slack = client_n as f64 * OTHERS.0 + OTHERS.1;
    let same = (server_n - client_n as f64).abs() <= slack && server_ttft_ms.is_finite();
    let difference_ms = same.then_some(client_ttft_ms - server_ttft_ms);
    Some(Network { server_n, server_ttft_ms, client_n, client_ttft_ms, difference_ms })
}

fn efficiency(gpus: &[GpuLevel], power_w: Option<f64>, ours: &Ours) -> Option<Efficiency> {
    if gpus.is_empty() {
        return None;
    }
    let per_joule = power_w.map(|watts| ours.out_tok_s / watts);
    Some(Efficiency {
        gpus: gpus.len() as u64,
        tok_s_per_gpu: ours.out_tok_s / gpus.len() as f64,
        power_w,
        tok_per_joule: per_joule.filter(|per_joule| per_joule.is_finite()),
    })
}

const SERVER_LINES: [(Meter, &str); 3] =
    [(Meter::Running, "running"), (Meter::Waiting, "waiting"), (Meter::KvCacheUse, "kv_cache_use")];
const GPU_LINES: [(Meter, &str); 2] = [(Meter::GpuUse, "gpu_busy"), (Meter::Power, "power_w")];
const HOST_LINES: [(Meter, &str); 1] = [(Meter::CpuBusy, "cpu_busy")];

fn lines<'a>(
    sources: impl Iterator<Item = (&'a ExporterSeen, &'a Source)>,
    within: Within,
    meters: &[(Meter, &str)],
    most: usize,
) -> Vec<Line> {
    let mut lines = Vec::new();
    for (_, source) in sources.take(most) {
        for (meter, what) in meters {
            lines.extend(source.track(*meter).and_then(|_| line(source, *meter, what, within)));
        }
    }
    lines
}

fn line(source: &Source, meter: Meter, what: &str, within: Within) -> Option<Line> {
    let bins: Vec<_> = source
        .track(meter)?
        .bins()
        .filter(|bin| bin.first_at >= within.from && bin.last_at <= within.to)
        .collect();
    let mut line = Line { what: what.to_owned(), of: source.name.clone(), ..Line::default() };
    // A point is all bins that lie together in it.
    for together in bins.chunks(bins.len().div_ceil(POINTS_MAX).max(1)) {
        let (first, last) = (together.first()?, together.last()?);
        let n: u64 = together.iter().map(|bin| bin.n).sum();
        let middle_s = (first.first_at.as_secs_f64() + last.last_at.as_secs_f64()) / 2.0;
        line.at_s.push((middle_s * 1e3).round() / 1e3);
        line.values.push(short(together.iter().map(|bin| bin.sum).sum::<f64>() / n as f64));
    }
    (!line.values.is_empty()).then_some(line)
}

/// Six digits, which no chart shows more of.
fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
