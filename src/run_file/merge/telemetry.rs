//! What servers, GPUs and machines said to the processes of a run, as one.

use super::Member;
use super::level::Parts;
use super::place::Placed;
use crate::run_file::schema::{ExporterBlock, LevelBlock, TelemetryBlock};
use crate::summary::telemetry::shares::{self, OfShare};
use crate::summary::telemetry::{Kind, LevelTelemetry, Ours};

/// What all were told of a level, each of whom they asked being told of once, set against the numbers of all.
pub(super) fn level(parts: &Parts<'_>, placed: &Placed, ours: &Ours) -> Option<LevelTelemetry> {
    let hosts: Vec<String> = parts.all.iter().map(|part| host(part.member)).collect();
    let exporters: Vec<Vec<String>> = parts.all.iter().map(|part| gpu_exporters(part.member)).collect();
    let told = parts.all.iter().enumerate().filter_map(|(place, part)| {
        let later_ns = i128::from(placed.start_of(place).as_nanos()) - i128::from(part.t0().as_nanos());
        Some(OfShare {
            level: part.block.telemetry.as_ref()?,
            host: &hosts[place],
            gpu_exporters: &exporters[place],
            window_s: looked_at_s(part.block),
            later_s: later_ns as f64 / 1e9,
        })
    });
    shares::together(&told.collect::<Vec<_>>(), ours)
}

/// Whom all of them asked, each once: as the process tells it that was answered most often.
pub(super) fn block(members: &[Member]) -> Option<TelemetryBlock> {
    let hosts: Vec<String> = members.iter().map(host).collect();
    let several = shares::are_several(hosts.iter().map(String::as_str));
    let mut all: Option<TelemetryBlock> = None;
    for (member, host) in members.iter().zip(&hosts) {
        let Some(told) = &member.loaded.run.telemetry else { continue };
        let all =
            all.get_or_insert_with(|| TelemetryBlock { interval_s: told.interval_s, exporters: Vec::new() });
        for exporter in &told.exporters {
            let exporter =
                ExporterBlock { name: shares::scoped(&exporter.name, host, several), ..exporter.clone() };
            let known = all
                .exporters
                .iter_mut()
                .find(|known| (known.kind, &known.name) == (exporter.kind, &exporter.name));
            match known {
                None => all.exporters.push(exporter),
                Some(known) if known.answered < exporter.answered => *known = exporter,
                Some(_) => {}
            }
        }
    }
    all
}

/// The machine of a share, or what it is called without a name.
fn host(member: &Member) -> String {
    let name = member.loaded.run.environment.host.clone();
    name.unwrap_or_else(|| format!("the host of share {}", member.share.index))
}

fn gpu_exporters(member: &Member) -> Vec<String> {
    let exporters = member.loaded.run.telemetry.iter().flat_map(|told| &told.exporters);
    exporters.filter(|one| one.kind == Kind::Gpu).map(|one| one.name.clone()).collect()
}

/// How long a level is that was looked at, s.
fn looked_at_s(block: &LevelBlock) -> f64 {
    let (from, to) = match block.window.whole_level {
        true => (block.span.t0_ns, block.span.t2_ns),
        false => (block.window.start_ns, block.window.end_ns),
    };
    to.saturating_sub(from) as f64 / 1e9
}
