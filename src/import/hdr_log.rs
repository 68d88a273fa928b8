//! Logs of HdrHistogram's, formats 1.2 and 1.3: lines of a start, a length, a maximum and a compressed histogram, each with
//! or without a tag.
//!
//! The lines of a tag are added up. A tag `LEVEL-METRIC`, as our own export writes it, says what was measured; what any
//! other log has measured it does not say, and its values are taken for E2E.

use std::collections::BTreeMap;

use super::values::of_histogram;
use super::{Error, File, Level, Numbers, Result, TimeUnit, Tool};
use crate::metrics::Metric;
use crate::metrics::metric::Unit;
use crate::run_file::WallTime;
use crate::stats::Histogram;
use crate::stats::sort;

/// The lines of one level and metric.
struct Series {
    level: String,
    metric: Metric,
    from_s: f64,
    until_s: f64,
    histogram: Histogram,
}

pub(super) fn read(file: File<'_>, unit: Option<TimeUnit>) -> std::result::Result<Result, Error> {
    let text = std::str::from_utf8(file.bytes).map_err(|_| Error::NotText)?;
    let unit = unit.unwrap_or(TimeUnit::Nanoseconds);
    let mut all: Vec<Series> = Vec::new();
    let mut created = String::new();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            created = started(comment).unwrap_or(created);
            continue;
        }
        if line.is_empty() || line.starts_with('"') {
            continue;
        }
        let read =
            series(line, unit).map_err(|wrong| Error::Value { key: format!("line {}", place + 1), wrong })?;
        match all.iter_mut().find(|known| known.level == read.level && known.metric == read.metric) {
            Some(known) => {
                known.histogram.merge(&read.histogram);
                known.from_s = known.from_s.min(read.from_s);
                known.until_s = known.until_s.max(read.until_s);
            }
            None => all.push(read),
        }
    }
    if all.is_empty() {
        return Err(Error::Missing { key: "a line with a histogram".to_owned() });
    }
    let mut levels: Vec<Level> = Vec::new();
    for series in &all {
        let distribution = of_histogram(series.metric, &series.histogram);
        let number = place_of(&mut levels, series);
        levels[number].distributions.extend(distribution);
    }
    levels.iter_mut().for_each(|level| sort::few_by_key(&mut level.distributions, |(metric, _)| *metric));
    let mut notes = vec![format!(
        "values are taken for {} (--unit), which the log does not say; of a tag that names no metric of ours they are taken for E2E",
        unit.name()
    )];
    if all.iter().any(|series| series.histogram.overflow() > 0) {
        notes.push("values above an hour count as an hour in the percentiles: another --unit?".to_owned());
    }
    Ok(Result { created, ..Result::of_histograms(Tool::HdrLog, vec![file.name.to_owned()], levels, notes) })
}

/// The place of the level of `series`, which is made where there is none yet.
fn place_of(levels: &mut Vec<Level>, series: &Series) -> usize {
    let length_s = (series.until_s - series.from_s).max(0.0);
    // A request has one of it, where there are pooled gaps as well.
    let values = if series.metric.is_per_request() { series.histogram.n() } else { 0 };
    let place = levels.iter().position(|level| level.label == series.level).unwrap_or_else(|| {
        levels.push(Level {
            label: series.level.clone(),
            load: None,
            units: None,
            numbers: Numbers::default(),
            distributions: Vec::new(),
            details: None,
            printed: BTreeMap::new(),
        });
        levels.len() - 1
    });
    let numbers = &mut levels[place].numbers;
    numbers.duration_s = numbers.duration_s.max(length_s);
    numbers.ok = numbers.ok.max(values);
    numbers.req_s = (numbers.duration_s > 0.0).then(|| numbers.ok as f64 / numbers.duration_s);
    place
}

fn series(line: &str, unit: TimeUnit) -> std::result::Result<Series, String> {
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(tagged) => tagged.split_once(',').ok_or("a tag without a histogram: the log was cut off")?,
        None => ("", line),
    };
    let fields: Vec<&str> = rest.split(',').collect();
    let [start, length, _, histogram] = fields[..] else {
        return Err(format!(
            "{} fields where a start, a length, a maximum and a histogram are wanted: the log was cut off, or is none",
            fields.len()
        ));
    };
    let seconds = |text: &str, what: &str| {
        let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        number
            .ok_or_else(|| format!("'{}' is no {what} in seconds", text.chars().take(40).collect::<String>()))
    };
    let (from_s, length_s) = (seconds(start, "start")?, seconds(length, "length")?);
    let (level, metric) = meaning(tag);
    // Our own histograms of speeds count thousandths, whatever the unit of times.
    let scale = if metric.unit() == Unit::TokensPerSecond { 1 } else { unit.nanos() };
    let histogram =
        Histogram::from_foreign(histogram, scale).map_err(|error| format!("{error}, or was cut off"))?;
    Ok(Series { level, metric, from_s, until_s: from_s + length_s, histogram })
}

/// The level and the metric that a tag names.
fn meaning(tag: &str) -> (String, Metric) {
    if let Some((level, name)) = tag.rsplit_once('-')
        && let Ok(metric) = name.parse::<Metric>()
    {
        return (format!("level {level}"), metric);
    }
    match tag.parse::<Metric>() {
        Ok(metric) => ("untagged".to_owned(), metric),
        Err(_) if tag.is_empty() => ("untagged".to_owned(), Metric::E2e),
        Err(_) => (tag.to_owned(), Metric::E2e),
    }
}

/// `[StartTime: 1441812279.474 (seconds since epoch), ...]` as a time in the form of run files.
fn started(comment: &str) -> Option<String> {
    let rest = comment.trim().strip_prefix("[StartTime:")?;
    let seconds: f64 = rest.split_whitespace().next()?.parse().ok()?;
    (seconds > 0.0 && seconds < SECONDS_MAX)
        .then(|| WallTime::from_unix_nanos((seconds * 1e3).round() as u64 * 1_000_000).to_string())
}

/// The year 2262.
const SECONDS_MAX: f64 = 9.2e9;
