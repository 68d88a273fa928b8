//! `csv`: a row per level with its counts, rates and distributions, and one for each of its parts, for spreadsheets. It
//! needs no records.

use std::collections::BTreeMap;

use super::{Error, Form, Needs, Sink, Source};
use crate::metrics::metric::Metric;
use crate::report::csv::quoted;
use crate::report::view;
use crate::run_file::RunFile;
use crate::run_file::schema::{DistributionBlock, GroupBlock, LevelBlock, Unit};
use crate::stats::Quantile;

pub(super) const FORM: Form = Form {
    name: "csv",
    what: "a row per level, and per endpoint, replica or model where there are several: counts, rates, percentiles in ms",
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
    sink.file("", &mut |out| {
        let rows = levels.iter().flat_map(|level| {
            let parts = level.groups.iter().map(|group| part(&source.loaded.run, level, group, &metrics));
            std::iter::once(row(level, &metrics)).chain(parts).collect::<Vec<_>>()
        });
        for (place, row) in rows.enumerate() {
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

fn row(level: &LevelBlock, metrics: &[Metric]) -> Vec<(String, String)> {
    let (rates, counts) = (&level.rates.window, &level.counts);
    let goodput = level.goodput.as_ref();
    let known = |value: Option<f64>| value.map_or_else(String::new, number);
    let mut row: Vec<(String, String)> = [
        ("level", level.ordinal.to_string()),
        ("label", quoted(&level.label)),
        ("part", String::new()),
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
    distributions(&level.distributions, metrics, &mut row);
    row
}

/// The row of a part of a level: an endpoint, a replica, a model. What is only known of the level is empty.
fn part(run: &RunFile, level: &LevelBlock, group: &GroupBlock, metrics: &[Metric]) -> Vec<(String, String)> {
    let (rates, goodput) = (group.rates.as_ref(), group.goodput.as_ref());
    let known = |value: Option<f64>| value.map_or_else(String::new, number);
    let cell = |head: &str, cell: String| match head {
        "level" | "label" | "repeat" => cell,
        "part" => quoted(&view::group_name(run, level, group.of)),
        "planned" => group.counts.planned.to_string(),
        "ok" => group.counts.ok.to_string(),
        "failed" => group.counts.failed.to_string(),
        "cancelled" => group.counts.cancelled.to_string(),
        "window_s" => known(rates.map(|rates| rates.span_s)),
        "offered_s" => known(rates.map(|rates| rates.offered_s)),
        "req_s" => known(rates.map(|rates| rates.req_s)),
        "out_tok_s" => known(rates.map(|rates| rates.out_tok_s)),
        "in_tok_s" => known(rates.map(|rates| rates.in_tok_s)),
        "total_tok_s" => known(rates.map(|rates| rates.total_tok_s)),
        "goodput_s" => known(goodput.map(|goodput| goodput.good_s)),
        "attainment" => known(goodput.map(|goodput| goodput.attainment)),
        _ => String::new(),
    };
    let whole = row(level, &[]);
    let mut row: Vec<_> =
        whole.into_iter().map(|(head, of_level)| (head.clone(), cell(&head, of_level))).collect();
    distributions(&group.distributions, metrics, &mut row);
    row
}

fn distributions(
    of: &BTreeMap<Metric, DistributionBlock>,
    metrics: &[Metric],
    row: &mut Vec<(String, String)>,
) {
    let known = |value: Option<f64>| value.map_or_else(String::new, number);
    for metric in metrics {
        let block = of.get(metric);
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
