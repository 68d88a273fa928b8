//! The levels as CSV (RFC 4180), for a spreadsheet or a script: `report --format csv` and `--export csv` alike.
//!
//! A line for each level, with unrounded numbers under the names and units that the columns say. A percentile that falls on
//! failed requests is `inf`: they are slower than any that ended. Below such a line there is a second one of the requests
//! that ended well alone; the column `requests` tells the two apart, `all` and `ok`. Lines of the parts of a level (endpoints,
//! replicas, models) follow it, named in the column `part`. What servers and GPUs said of a level stands in the last columns,
//! in runs in which any did. What is not known is empty. Turns and the course over time are in the run file.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::view::{self, Cell, Table};
use crate::metrics::metric::Metric;
use crate::run_file::RunFile;
use crate::run_file::schema::{DistributionBlock, GroupBlock, LevelBlock, Unit};
use crate::stats::Quantile;
use crate::summary::telemetry::LevelTelemetry;
use crate::summary::{Counts, Goodput, Rates};

/// Writes the levels of `run`.
///
/// # Errors
///
/// When `out` fails.
pub fn write(run: &RunFile, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let metrics: Vec<Metric> = Metric::ALL
        .into_iter()
        .filter(|metric| run.levels.iter().any(|level| level.distributions.contains_key(metric)))
        .collect();
    let is_told = run.levels.iter().any(|level| {
        level.telemetry.as_ref().is_some_and(|told| !told.servers.is_empty() || !told.gpus.is_empty())
    });
    let heads = COLUMNS.iter().map(|name| (*name).to_owned());
    let heads = heads.chain(metrics.iter().flat_map(|metric| heads_of(*metric)));
    line(out, heads.chain(TOLD.iter().filter(|_| is_told).map(|(name, _)| (*name).to_owned())))?;
    for level in &run.levels {
        let parts = level.groups.iter().map(|group| Line::of_part(run, level, group));
        for of in std::iter::once(Line::of_level(run, level)).chain(parts) {
            let told = || of.told(is_told);
            line(out, of.cells(&metrics, Requests::All).into_iter().chain(told()))?;
            let has_failing = |block: &DistributionBlock| Quantile::REPORTED.iter().any(|q| block.fails(*q));
            if of.counts.ok > 0 && of.distributions.values().any(has_failing) {
                line(out, of.cells(&metrics, Requests::Ok).into_iter().chain(told()))?;
            }
        }
    }
    Ok(())
}

/// Writes a table of a view: a line for each row, its numbers without marks.
///
/// # Errors
///
/// When `out` fails.
pub fn write_table(table: &Table, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let names = table.columns.iter().map(super::view::Column::full_name);
    line(out, std::iter::once(table.head.to_owned()).chain(names))?;
    for row in &table.rows {
        line(out, std::iter::once(row.label.trim().to_owned()).chain(row.cells.iter().map(value)))?;
    }
    Ok(())
}

/// Which requests the percentiles of a line are of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Requests {
    /// Failed ones are infinitely slow.
    All,
    /// Those that ended well.
    Ok,
}

/// The columns in front of those of the metrics.
const COLUMNS: [&str; 20] = [
    "level",
    "label",
    "part",
    "requests",
    "repeat",
    "interrupted",
    "verdict",
    "planned",
    "ok",
    "failed",
    "cancelled",
    "window_s",
    "offered_s",
    "req_s",
    "out_tok_s",
    "in_tok_s",
    "total_tok_s",
    "goodput_s",
    "attainment",
    "in_flight_mean",
];

/// What a line is of: a level, or one of its parts.
struct Line<'r> {
    level: &'r LevelBlock,
    /// The part's name; empty for the whole level.
    part: String,
    counts: &'r Counts,
    /// `None` for parts of files from before they had rates.
    rates: Option<&'r Rates>,
    goodput: Option<&'r Goodput>,
    distributions: &'r BTreeMap<Metric, DistributionBlock>,
    /// Another tool's file may not speak of tokens at all.
    is_uncounted: bool,
}

impl<'r> Line<'r> {
    fn of_level(run: &RunFile, level: &'r LevelBlock) -> Line<'r> {
        Line {
            level,
            part: String::new(),
            counts: &level.counts,
            rates: Some(&level.rates.window),
            goodput: level.goodput.as_ref(),
            distributions: &level.distributions,
            is_uncounted: run.imported.is_some() && level.tokens.is_uncounted(),
        }
    }

    fn of_part(run: &RunFile, level: &'r LevelBlock, group: &'r GroupBlock) -> Line<'r> {
        Line {
            part: view::group_name(run, level, group.of),
            counts: &group.counts,
            rates: group.rates.as_ref(),
            goodput: group.goodput.as_ref(),
            distributions: &group.distributions,
            ..Line::of_level(run, level)
        }
    }

    fn cells(&self, metrics: &[Metric], of: Requests) -> Vec<String> {
        let &Line { level, counts, goodput, .. } = self;
        // What lasted nobody knows how long has nothing per second.
        let rate = |of: fn(&Rates) -> f64| known(self.rates.filter(|rates| rates.span_s > 0.0).map(of));
        let tokens = |of: fn(&Rates) -> f64| if self.is_uncounted { String::new() } else { rate(of) };
        // These are known of the level alone.
        let whole = |cell: String| if self.part.is_empty() { cell } else { String::new() };
        let mut cells: Vec<String> = vec![
            level.ordinal.to_string(),
            level.exact_label(),
            self.part.clone(),
            if of == Requests::All { "all" } else { "ok" }.to_owned(),
            level.repeat.to_string(),
            level.interrupted.to_string(),
            whole(level.verdict.map_or_else(String::new, |verdict| verdict.word().to_owned())),
            counts.planned.to_string(),
            counts.ok.to_string(),
            counts.failed.to_string(),
            counts.cancelled.to_string(),
            rate(|rates| rates.span_s),
            rate(|rates| rates.offered_s),
            rate(|rates| rates.req_s),
            tokens(|rates| rates.out_tok_s),
            tokens(|rates| rates.in_tok_s),
            tokens(|rates| rates.total_tok_s),
            known(goodput.map(|goodput| goodput.good_s)),
            known(goodput.map(|goodput| goodput.attainment)),
            whole(known(level.in_flight.as_ref().map(|in_flight| in_flight.mean))),
        ];
        debug_assert_eq!(cells.len(), COLUMNS.len());
        for metric in metrics {
            cells.extend(self.cells_of(*metric, of));
        }
        cells
    }

    /// What servers and GPUs said meanwhile, if anything is said in this run; of parts it is not known.
    fn told(&self, is_told: bool) -> impl Iterator<Item = String> {
        let told = self.level.telemetry.as_ref().filter(|_| self.part.is_empty());
        TOLD.iter().filter(move |_| is_told).map(move |(_, of)| known(told.and_then(*of)))
    }

    /// Mean, percentiles and greatest value of a metric, in the order of its heads.
    fn cells_of(&self, metric: Metric, of: Requests) -> Vec<String> {
        let block = self.distributions.get(&metric);
        let per = match Unit::of(metric) {
            Unit::Nanoseconds => 1e6,
            Unit::TokensPerSecond => 1.0,
        };
        let in_unit = |value: Option<f64>| known(value.map(|value| value / per));
        // A metric that no request has because all failed is as slow as they are.
        let failed = self.counts.ranked_failed();
        // Of parts less is kept than of the level.
        let is_kept = self.part.is_empty()
            || self.level.groups.iter().any(|other| other.distributions.contains_key(&metric));
        let is_hopeless = is_kept
            && block.is_none()
            && failed > 0
            && failed == self.counts.ranked()
            && metric.is_per_request()
            && Unit::of(metric) == Unit::Nanoseconds;
        let quantile = |quantile: Quantile| match block {
            Some(block) if of == Requests::All && block.fails(quantile) => INFINITE.to_owned(),
            Some(block) => in_unit(block.quantile(quantile)),
            None if is_hopeless => INFINITE.to_owned(),
            None => String::new(),
        };
        let mut cells = vec![in_unit(block.and_then(|block| block.mean))];
        cells.extend(Quantile::REPORTED.into_iter().map(quantile));
        cells.push(in_unit(block.and_then(|block| block.max)));
        cells
    }
}

/// The heads of a metric's columns: `ttft_mean_ms`, `ttft_p99_ms`, `user_speed_max_tok_s`.
fn heads_of(metric: Metric) -> Vec<String> {
    let unit = match Unit::of(metric) {
        Unit::Nanoseconds => "ms",
        Unit::TokensPerSecond => "tok_s",
    };
    let quantiles = Quantile::REPORTED.iter().map(|quantile| format!("p{quantile}"));
    let whats = std::iter::once("mean".to_owned()).chain(quantiles).chain(["max".to_owned()]);
    whats.map(|what| format!("{}_{what}_{unit}", metric.name())).collect()
}

/// The columns behind those of the metrics, in runs in which a server or a GPU said something.
const TOLD: [(&str, Told); 12] = [
    ("server_running_mean", |told| Some(told.all_servers()?.running?.mean)),
    ("server_waiting_mean", |told| Some(told.all_servers()?.waiting?.mean)),
    ("server_kv_cache_use_max", |told| Some(told.all_servers()?.kv_cache_use?.max)),
    ("server_prefix_hit_share", |told| told.all_servers()?.prefix_hit_share),
    ("server_preemptions", |told| told.all_servers()?.preemptions),
    ("server_ttft_mean_ms", |told| Some(told.all_servers()?.ttft?.mean_ms)),
    ("network_ms", |told| told.network?.difference_ms),
    ("gpus", |told| Some(told.efficiency?.gpus as f64)),
    ("gpu_busy_mean", LevelTelemetry::gpu_busy),
    ("gpu_power_w", |told| told.efficiency?.power_w),
    ("out_tok_s_per_gpu", |told| Some(told.efficiency?.tok_s_per_gpu)),
    ("out_tok_per_joule", |told| told.efficiency?.tok_per_joule),
];

/// A number out of what was said.
type Told = fn(&LevelTelemetry) -> Option<f64>;

/// What readers of CSV take for infinity.
const INFINITE: &str = "inf";

/// A number as it is; nothing for one that is none.
fn known(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

fn value(cell: &Cell) -> String {
    match cell {
        Cell::Absent | Cell::Blank => String::new(),
        Cell::Failed => INFINITE.to_owned(),
        Cell::Failures(text)
        | Cell::Growing(text)
        | Cell::Number(text)
        | Cell::Suspect(text)
        | Cell::Unsupported(text) => text.clone(),
    }
}

pub(super) fn line(out: &mut (impl Write + ?Sized), fields: impl Iterator<Item = String>) -> io::Result<()> {
    for (place, field) in fields.enumerate() {
        if place > 0 {
            write!(out, ",")?;
        }
        write!(out, "{}", quoted(&field))?;
    }
    // The line break of the RFC.
    write!(out, "\r\n")
}

/// A cell that may hold anything, as RFC 4180 has it.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_their_commas_and_what_is_no_number_is_empty() {
        assert_eq!([quoted("2 users"), quoted("a, \"b\"")], ["2 users", "\"a, \"\"b\"\"\""]);
        assert_eq!([0.5, f64::NAN, f64::INFINITY].map(|value| known(Some(value))), ["0.5", "", ""]);
    }

    #[test]
    fn every_column_has_a_head() {
        assert_eq!(heads_of(Metric::Ttft).len(), 2 + Quantile::REPORTED.len());
        assert_eq!(heads_of(Metric::UserSpeed)[0], "user_speed_mean_tok_s");
    }
}
