//! Parts of the run beside each other, where there are several: endpoints and models.

use super::{Axis, Chart, Named, Point, Scale, Series, named};
use crate::metrics::Metric;
use crate::report::view;
use crate::run_file::schema::{GroupBlock, LevelBlock};
use crate::stats::Quantile;
use crate::summary::GroupKey;

pub(super) fn charts(runs: &[Named<'_>]) -> Vec<Chart> {
    [("endpoints", "TTFT by endpoint", true), ("models", "TTFT by model", false)]
        .into_iter()
        .filter_map(|(id, title, by_endpoint)| chart(runs, id, title, by_endpoint))
        .collect()
}

fn chart(runs: &[Named<'_>], id: &'static str, title: &'static str, by_endpoint: bool) -> Option<Chart> {
    let is_shown = |group: &&GroupBlock| match group.of {
        GroupKey::Endpoint(_) => by_endpoint,
        GroupKey::Model(_) => !by_endpoint,
        GroupKey::SlowReaders => false,
    };
    let mut names: Vec<String> = Vec::new();
    let mut series = Vec::new();
    for run in runs {
        // The last level is the one with the most load, as a rule.
        let of_level = |level: &LevelBlock| level.groups.iter().any(|group| is_shown(&group));
        let Some(level) = run.run.levels.iter().rev().find(|level| of_level(level)) else { continue };
        for (name, quantile) in [("p50", Quantile::P50), ("p99", Quantile::P99)] {
            let mut points = Vec::new();
            for group in level.groups.iter().filter(is_shown) {
                let label = view::group_name(run.run, group.of);
                let place = names.iter().position(|name| *name == label).unwrap_or_else(|| {
                    names.push(label);
                    names.len() - 1
                });
                let value = group.distributions.get(&Metric::Ttft).and_then(|d| d.quantile(quantile));
                points.push(Point {
                    x: place as f64,
                    y: value.map(|ns| ns / 1e6),
                    band: None,
                    of: format!("{}, {} requests", level.label, group.counts.ok),
                });
            }
            series.push(Series { name: named(run, name), points, line: false });
        }
    }
    (names.len() > 1).then(|| Chart {
        id,
        title,
        reading: "At the last level that tells them apart.".to_owned(),
        x: Axis { title: "", scale: Scale::Names(names) },
        y: Axis { title: "ms", scale: Scale::Linear },
        series,
        heat: None,
        marks: Vec::new(),
        empty: None,
    })
}
