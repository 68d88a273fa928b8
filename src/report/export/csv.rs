//! `csv`: a row per level with its counts, rates and distributions, for spreadsheets. It needs no records.

use super::{Error, Form, Needs, Sink, Source};
use crate::metrics::metric::Metric;
use crate::report::csv::quoted;
use crate::run_file::schema::{LevelBlock, Unit};
use crate::stats::Quantile;
use crate::summary::telemetry::LevelTelemetry;

pub(super) const FORM: Form = Form {
    name: "csv",
    what: "a row per level: counts, rates, percentiles in ms",
    is_folder: false,
    needs: Needs::Nothing,
    write,
};

fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    let levels = &source.loaded.run.levels;
    let metrics: Vec<Metric> = Metric::ALL
        .into_iter()
        .filter(|metric| levels.iter().any(|level| level.distributions.contains_key(metric)))
        .collect();
    let told = levels.iter().any(|level| {
        level.telemetry.as_ref().is_some_and(|told| !told.servers.is_empty() || !told.gpus.is_empty())
    });
    sink.file("", &mut |out| {
        for (place, level) in levels.iter().enumerate() {
            let row = row(level, &metrics, told);
            if place == 0 {
                let heads: Vec<&str> = row.iter().map(|(head, _)| head.as_str()).collect();
                write!(out, "{}\r\n", heads.join(","))?;
            }
            let cells: Vec<String> = row.into_iter().map(|(_, cell)| cell).collect();
            write!(out, "{}\r\n", cells.join(","))?;
        }
        Ok(())
    })
}

fn row(level: &LevelBlock, metrics: &[Metric], told: bool) -> Vec<(String, String)> {
    let (rates, counts) = (&level.rates.window, &level.counts);
    let goodput = level.goodput.as_ref();
    let known = |value: Option<f64>| value.map_or_else(String::new, number);
    let mut row: Vec<(String, String)> = [
        ("level", level.ordinal.to_string()),
        ("label", quoted(&level.label)),
        ("repeat", level.repeat.to_string()),
        ("interrupted", level.interrupted.to_string()),
        ("verdict", level.verdict.map_or_else(String::new, |verdict| verdict.word().to_owned())),
        ("planned", counts.planned.to_string()),
        ("ok", counts.ok.to_string()),
        ("failed", counts.failed.to_string()),
        ("cancelled", counts.cancelled.to_string()),
        ("window_s", number(rates.span_s)),
        ("offered_s", number(rates.offered_s)),
        ("req_s", number(rates.req_s)),
        ("out_tok_s", number(rates.out_tok_s)),
        ("in_tok_s", number(rates.in_tok_s)),
        ("total_tok_s", number(rates.total_tok_s)),
        ("goodput_s", known(goodput.map(|goodput| goodput.good_s))),
        ("attainment", known(goodput.map(|goodput| goodput.attainment))),
        ("in_flight_mean", known(level.in_flight.as_ref().map(|in_flight| in_flight.mean))),
    ]
    .map(|(head, cell)| (head.to_owned(), cell))
    .to_vec();
    for metric in metrics {
        let block = level.distributions.get(metric);
        let (unit, per) = match Unit::of(*metric) {
            Unit::Nanoseconds => ("ms", 1e6),
            Unit::TokensPerSecond => ("tok_s", 1.0),
        };
        let mut put = |what: &str, value: Option<f64>| {
            row.push((format!("{}_{what}_{unit}", metric.name()), known(value.map(|value| value / per))));
        };
        put("mean", block.and_then(|block| block.mean));
        for quantile in Quantile::REPORTED {
            put(&format!("p{quantile}"), block.and_then(|block| block.quantile(quantile)));
        }
        put("max", block.and_then(|block| block.max));
    }
    if told {
        row.extend(of_others(level).map(|(head, value)| (head.to_owned(), known(value))));
    }
    row
}

/// What servers and GPUs said meanwhile.
fn of_others(level: &LevelBlock) -> impl Iterator<Item = (&'static str, Option<f64>)> {
    let told = level.telemetry.as_ref();
    let servers = told.and_then(LevelTelemetry::all_servers).unwrap_or_default();
    let network = told.and_then(|told| told.network);
    let efficiency = told.and_then(|told| told.efficiency);
    [
        ("server_running_mean", servers.running.map(|gauge| gauge.mean)),
        ("server_waiting_mean", servers.waiting.map(|gauge| gauge.mean)),
        ("server_kv_cache_use_max", servers.kv_cache_use.map(|gauge| gauge.max)),
        ("server_prefix_hit_share", servers.prefix_hit_share),
        ("server_preemptions", servers.preemptions),
        ("server_ttft_mean_ms", servers.ttft.map(|times| times.mean_ms)),
        ("network_ms", network.and_then(|network| network.difference_ms)),
        ("gpus", efficiency.map(|efficiency| efficiency.gpus as f64)),
        ("gpu_busy_mean", told.and_then(LevelTelemetry::gpu_busy)),
        ("gpu_power_w", efficiency.and_then(|efficiency| efficiency.power_w)),
        ("out_tok_s_per_gpu", efficiency.map(|efficiency| efficiency.tok_s_per_gpu)),
        ("out_tok_per_joule", efficiency.and_then(|efficiency| efficiency.tok_per_joule)),
    ]
    .into_iter()
}

/// A number; nothing for one that is none.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_their_commas_and_what_is_no_number_is_empty() {
        assert_eq!([quoted("2 users"), quoted("a, \"b\"")], ["2 users", "\"a, \"\"b\"\"\""]);
        assert_eq!([number(0.5), number(f64::NAN), number(f64::INFINITY)], ["0.5", "", ""]);
    }
}
