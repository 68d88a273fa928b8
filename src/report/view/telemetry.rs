//! What servers, GPUs and the client's machine said meanwhile: two short tables, and a line for whoever said nothing.

use super::{Cell, Column, Note, Row};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{ExporterBlock, LevelBlock};
use crate::summary::telemetry::{Efficiency, Gauge, GpuLevel, LevelTelemetry, Network, ServerLevel};

/// Columns of servers.
pub(super) const SERVER_COLUMNS: [Column; 10] = [
    Column { group: "running", name: "mean" },
    Column { group: "running", name: "max" },
    Column { group: "waiting", name: "mean" },
    Column { group: "waiting", name: "max" },
    Column { group: "KV cache %", name: "max" },
    Column { group: "prefix", name: "hit %" },
    Column { group: "", name: "preempted" },
    Column { group: "mean TTFT ms", name: "server" },
    Column { group: "mean TTFT ms", name: "client" },
    Column { group: "mean TTFT ms", name: "between" },
];
/// Columns of GPUs.
pub(super) const GPU_COLUMNS: [Column; 11] = [
    Column { group: "", name: "n" },
    Column { group: "busy %", name: "mean" },
    Column { group: "memory GB", name: "max" },
    Column { group: "power W", name: "all" },
    Column { group: "°C", name: "max" },
    Column { group: "SM MHz", name: "mean" },
    Column { group: "throttled %", name: "max" },
    Column { group: "output tok", name: "/s/GPU" },
    Column { group: "output tok", name: "/J" },
    Column { group: "GB/s, all", name: "PCIe" },
    Column { group: "GB/s, all", name: "NVLink" },
];

/// A row per level, all servers together, and one for each of several below it.
pub(super) fn servers(run: &RunFile) -> Vec<Row> {
    let told = run.levels.iter().filter_map(|level| Some((level, level.telemetry.as_ref()?)));
    told.filter(|(_, told)| !told.servers.is_empty())
        .flat_map(|(level, told)| of_servers(level, told))
        .collect()
}

fn of_servers(level: &LevelBlock, told: &LevelTelemetry) -> Vec<Row> {
    let network = told.network;
    let Some((first, [])) = told.servers.split_first() else {
        let mut all = vec![Row {
            label: level.label.clone(),
            cells: server_cells(&told.all_servers().unwrap_or_default(), network),
            second: false,
        }];
        all.extend(told.servers.iter().map(|server| Row {
            label: format!("  {}", short(&server.name)),
            cells: server_cells(server, None),
            second: true,
        }));
        return all;
    };
    vec![Row { label: level.label.clone(), cells: server_cells(first, network), second: false }]
}

fn server_cells(server: &ServerLevel, network: Option<Network>) -> Vec<Cell> {
    let mean = |gauge: Option<Gauge>| cell(gauge.map(|gauge| format::rate(gauge.mean)));
    let max = |gauge: Option<Gauge>| cell(gauge.map(|gauge| format::rate(gauge.max)));
    let ms = |ms: f64| format::ms(ms * 1e6);
    let server_ttft = network.map(|network| network.server_ttft_ms).or(server.ttft.map(|ttft| ttft.mean_ms));
    let between = match network {
        Some(Network { difference_ms: Some(difference), .. }) if difference < 0.0 => {
            Cell::Suspect(ms(difference))
        }
        Some(Network { difference_ms, .. }) => cell(difference_ms.map(ms)),
        None => Cell::Absent,
    };
    vec![
        mean(server.running),
        max(server.running),
        mean(server.waiting),
        max(server.waiting),
        cell(server.kv_cache_use.map(|share| format::percent(share.max))),
        cell(server.prefix_hit_share.map(format::percent)),
        match server.preemptions {
            Some(some) if some > 0.0 => Cell::Suspect(format::rate(some)),
            none => cell(none.map(format::rate)),
        },
        cell(server_ttft.map(ms)),
        cell(network.map(|network| ms(network.client_ttft_ms))),
        between,
    ]
}

/// A row per level, all GPUs together.
pub(super) fn gpus(run: &RunFile) -> Vec<Row> {
    let row = |level: &LevelBlock| {
        let told = level.telemetry.as_ref().filter(|told| !told.gpus.is_empty())?;
        Some(Row { label: level.label.clone(), cells: gpu_cells(told), second: false })
    };
    run.levels.iter().filter_map(row).collect()
}

fn gpu_cells(told: &LevelTelemetry) -> Vec<Cell> {
    let gpus = &told.gpus;
    let clocks: Vec<f64> = gpus.iter().filter_map(|gpu| Some(gpu.sm_clock_mhz?.mean)).collect();
    let clock = (!clocks.is_empty()).then(|| clocks.iter().sum::<f64>() / clocks.len() as f64);
    let most = |of: fn(&GpuLevel) -> Option<Gauge>| {
        gpus.iter().filter_map(of).map(|gauge| gauge.max).reduce(f64::max)
    };
    // Both directions, and all GPUs of which it is known.
    let moved = |of: fn(&GpuLevel) -> Option<f64>| {
        let bytes_s = gpus.iter().filter_map(of).reduce(|a, b| a + b);
        cell(bytes_s.map(|bytes_s| format::rate(bytes_s / 1e9)))
    };
    // Reasons may hold at once; the longest of them is a part of the time in which any did.
    let throttled = gpus.iter().flat_map(|gpu| gpu.throttled.values().copied()).reduce(f64::max);
    let Efficiency { power_w, tok_s_per_gpu, tok_per_joule, .. } = told.efficiency.unwrap_or_default();
    vec![
        Cell::Number(gpus.len().to_string()),
        cell(told.gpu_busy().map(format::percent)),
        cell(most(|gpu| gpu.memory_bytes).map(|bytes| format!("{:.1}", bytes / 1e9))),
        cell(power_w.map(|watts| format!("{watts:.0}"))),
        cell(most(|gpu| gpu.temperature_c).map(|celsius| format!("{celsius:.0}"))),
        cell(clock.map(|mhz| format!("{mhz:.0}"))),
        throttled.map_or_else(|| Cell::Number("0".to_owned()), |share| Cell::Suspect(format::percent(share))),
        Cell::Number(format::rate(tok_s_per_gpu)),
        cell(tok_per_joule.map(significant)),
        moved(|gpu| Some(gpu.pcie_in_bytes_s?.mean + gpu.pcie_out_bytes_s?.mean)),
        moved(|gpu| gpu.nvlink_bytes_s),
    ]
}

/// What the numbers need, and who said nothing.
pub(super) fn notes(run: &RunFile) -> Vec<Note> {
    let say = |text: String| Note { warning: false, text };
    let mut notes: Vec<Note> = run.levels.iter().flat_map(of_level).map(say).collect();
    let exporters = run.telemetry.iter().flat_map(|telemetry| &telemetry.exporters);
    notes.extend(exporters.flat_map(of_exporter).map(|text| Note { warning: true, text }));
    notes
}

fn of_exporter(exporter: &ExporterBlock) -> Vec<String> {
    let lines = exporter.troubles.iter().map(|trouble| {
        let times = if trouble.times > 1 { format!(" ({} times)", trouble.times) } else { String::new() };
        format::one_line(&format!("{}: {}{times}", exporter.name, trouble.what), NOTE_CHARS_MAX)
    });
    lines.collect()
}

fn of_level(level: &LevelBlock) -> Vec<String> {
    let Some(told) = &level.telemetry else { return Vec::new() };
    let mut notes = Vec::new();
    if let Some(Network { server_n, client_n, difference_ms: None, .. }) = told.network {
        notes.push(format!(
            "{}: the servers counted {server_n:.0} first tokens and this client {client_n}: what lies between their TTFT and \
             ours cannot be told",
            level.label
        ));
    }
    for server in &told.servers {
        if server.resets > 0 {
            notes.push(format!(
                "{}: counters of {} began anew: it was restarted, or another server answers there",
                level.label, server.name
            ));
        }
        for (name, gauge) in &server.gauges {
            let (mean, max) = (significant(gauge.mean), significant(gauge.max));
            notes.push(format!("{}: {name} is {mean} on average and {max} at most", level.label));
        }
        for (name, gain) in &server.counters {
            notes.push(format!("{}: {name} grew by {}", level.label, significant(*gain)));
        }
    }
    notes.extend(throttled(level, told));
    notes.into_iter().map(|note| format::one_line(&note, NOTE_CHARS_MAX)).collect()
}

fn throttled(level: &LevelBlock, told: &LevelTelemetry) -> Option<String> {
    let held = |gpu: &GpuLevel| {
        let (reason, share) = gpu.throttled.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some(format!("{} ({reason}, {} %)", gpu.name, format::percent(*share)))
    };
    let all: Vec<String> = told.gpus.iter().filter_map(held).collect();
    (!all.is_empty()).then(|| format!("{}: clocks were held down of {}", level.label, all.join(", ")))
}

fn cell(text: Option<String>) -> Cell {
    text.map_or(Cell::Absent, Cell::Number)
}

/// A URL without its scheme and the usual path.
fn short(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.strip_suffix("/metrics").unwrap_or(rest)
}

/// Three digits, whatever the size.
fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

const NOTE_CHARS_MAX: usize = 300;
