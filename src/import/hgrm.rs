//! HdrHistogram's tables of percentiles, `.hgrm`, as wrk2 and HdrHistogram's own tools print them.
//!
//! A table has the percentiles of its lines and, below them, mean, deviation, maximum and count; the values between two lines
//! are not in it. Of a folder that our export wrote, `LEVEL-METRIC.hgrm`, all tables are read.

use std::collections::BTreeMap;

use super::{Error, File, Level, Numbers, Result, TimeUnit, Tool};
use crate::metrics::Metric;
use crate::metrics::metric::Unit as Counts;
use crate::run_file::schema::{DistributionBlock, Unit};
use crate::stats::Quantile;
use crate::summary::QuantileValue;

pub(super) fn read(
    file: File<'_>,
    unit: Option<TimeUnit>,
    beside: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> std::result::Result<Result, Error> {
    let unit = unit.unwrap_or(TimeUnit::Milliseconds);
    let mut levels = Vec::new();
    let mut files = Vec::new();
    if of_folder(file.name).is_some() {
        for ordinal in 0..LEVELS_MAX {
            let mut distributions = Vec::new();
            for metric in Metric::ALL {
                let name = format!("{ordinal}-{}.hgrm", metric.name());
                let bytes = if name == file.name { Some(file.bytes.to_vec()) } else { beside(&name) };
                let Some(bytes) = bytes else { continue };
                distributions.push((metric, table(&bytes, metric, unit)?));
                files.push(name);
            }
            let is_named = of_folder(file.name).is_some_and(|(level, _)| level > ordinal);
            match distributions.is_empty() {
                true if !is_named => break,
                true => {}
                false => levels.push(level(format!("level {ordinal}"), distributions)),
            }
        }
    }
    // A number of a level beyond all that a folder has is a name like any other.
    if levels.is_empty() {
        let stem = file.name.rsplit_once('.').map_or(file.name, |(stem, _)| stem);
        let metric = stem.parse::<Metric>().unwrap_or(Metric::E2e);
        levels.push(level(stem.to_owned(), vec![(metric, table(file.bytes, metric, unit)?)]));
        files = vec![file.name.to_owned()];
    }
    let note = format!(
        "values are taken for {} (--unit), and for E2E where no file is named after a metric of ours: the tables do not \
         say; how long it took they do not say either, so that there are no rates",
        unit.name()
    );
    Ok(Result::of_histograms(Tool::Hgrm, files, levels, vec![note]))
}

/// More levels no run has.
const LEVELS_MAX: u32 = 1000;

/// `3-ttft.hgrm`.
fn of_folder(name: &str) -> Option<(u32, Metric)> {
    let (level, metric) = name.strip_suffix(".hgrm")?.split_once('-')?;
    Some((level.parse().ok().filter(|level| *level < LEVELS_MAX)?, metric.parse().ok()?))
}

fn level(label: String, distributions: Vec<(Metric, DistributionBlock)>) -> Level {
    let per_request = distributions.iter().filter(|(metric, _)| metric.is_per_request());
    let ok = per_request.map(|(_, block)| block.n).max().unwrap_or(0);
    Level {
        label,
        load: None,
        units: None,
        numbers: Numbers { ok, ..Numbers::default() },
        distributions,
        details: None,
        printed: BTreeMap::new(),
    }
}

/// A line: up to this share there are `count` values, none above `value`.
struct Line {
    value: f64,
    count: u64,
}

fn table(bytes: &[u8], metric: Metric, unit: TimeUnit) -> std::result::Result<DistributionBlock, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::NotText)?;
    let factor = if metric.unit() == Counts::TokensPerSecond { 1.0 } else { unit.nanos() as f64 };
    let mut lines: Vec<Line> = Vec::new();
    let mut begun = false;
    let mut summary: BTreeMap<String, f64> = BTreeMap::new();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if !begun {
            begun = line.contains("Percentile") && line.contains("TotalCount");
        } else if let Some(comment) = line.strip_prefix("#[") {
            summary.extend(named(comment));
        } else if !line.is_empty() && !summary.contains_key("Total count") {
            let wrong =
                |what: &str| Error::Value { key: format!("line {}", place + 1), wrong: what.to_owned() };
            let numbers: Option<Vec<f64>> = line
                .split([' ', '\t', ','])
                .filter(|part| !part.is_empty())
                // The last column of the last line, 1/(1-1), is infinite in some versions.
                .take(3)
                .map(|part| part.parse::<f64>().ok().filter(|number| number.is_finite()))
                .collect();
            let Some([value, share, count]) = numbers.as_deref() else {
                return Err(wrong("is no line of a value, a percentile and a count"));
            };
            if *value < 0.0 || !(0.0..=1.0).contains(share) || *count < 0.0 {
                return Err(wrong("holds what no percentile can be"));
            }
            let line = Line { value: *value, count: *count as u64 };
            if lines.last().is_some_and(|last| last.value > line.value || last.count > line.count) {
                return Err(wrong("is below the line before it, and percentiles rise"));
            }
            lines.push(line);
        }
    }
    if !begun {
        return Err(Error::Missing { key: "the line of columns, Value Percentile TotalCount".to_owned() });
    }
    let Some(n) = summary.get("Total count").map(|count| *count as u64) else {
        let wrong = "ends before its last lines, which have Mean, Max and Total count".to_owned();
        return Err(Error::Value { key: "the table".to_owned(), wrong });
    };
    let reached = lines.last().map_or(0, |line| line.count);
    if reached != n {
        let wrong = format!("its lines reach {reached} of {n} values: some were left out");
        return Err(Error::Value { key: "the table".to_owned(), wrong });
    }
    let of = |name: &str| summary.get(name).filter(|_| n > 0).map(|value| value * factor);
    let quantile = |quantile: Quantile| {
        let line = lines.iter().find(|line| line.count >= quantile.rank(n))?;
        Some(QuantileValue { parts: quantile.parts(), value: Some(line.value * factor) })
    };
    Ok(DistributionBlock {
        n,
        // The mean is printed to three decimals.
        mean: of("Mean"),
        std: of("StdDeviation"),
        max: of("Max"),
        quantiles: if n > 0 {
            Quantile::REPORTED.into_iter().filter_map(quantile).collect()
        } else {
            Vec::new()
        },
        ..DistributionBlock::unknown(Unit::of(metric))
    })
}

/// `Mean    =        1.500, StdDeviation   =        0.500]`.
fn named(comment: &str) -> Vec<(String, f64)> {
    let pairs = comment.trim_end_matches(']').split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .filter_map(|(name, value)| {
            let value =
                value.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)?;
            Some((name.trim().to_owned(), value))
        })
        .collect()
}
