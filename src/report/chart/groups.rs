//! Parts of the run beside each other, where there are several: endpoints and models.

use super::{Axis, Chart, Named, Point, Scale, Series, named};
use crate::metrics::Metric;
use crate::report::view;
use crate::run_file::schema::{GroupBlock, LevelBlock};
use crate::stats::Quantile;
use crate::summary::GroupKey;

pub(super) fn charts(runs: &[Named<'_>]) -> Vec<Chart> {
    let endpoints = chart(runs, ENDPOINTS).unwrap_or_else(|| Chart {
        empty: Some("one endpoint took all requests: there are none to tell apart".to_owned()),
        ..blank(ENDPOINTS, Vec::new(), Vec::new())
    });
    [Some(endpoints), chart(runs, REPLICAS), chart(runs, MODELS)].into_iter().flatten().collect()
}

/// The name, the heading and the parts of a chart.
type Kind = (&'static str, &'static str, fn(GroupKey) -> bool);

const ENDPOINTS: Kind = ("endpoints", "TTFT by endpoint", |of| matches!(of, GroupKey::Endpoint(_)));
const REPLICAS: Kind = ("replicas", "TTFT by replica", |of| matches!(of, GroupKey::Replica(_)));
const MODELS: Kind = ("models", "TTFT by model", |of| matches!(of, GroupKey::Model(_)));

fn chart(runs: &[Named<'_>], kind: Kind) -> Option<Chart> {
    let is_shown = |group: &&GroupBlock| kind.2(group.of);
    let mut names: Vec<String> = Vec::new();
    let mut series = Vec::new();
    for run in runs {
        // The last level is the one with the most load, as a rule.
        let of_level = |level: &LevelBlock| level.groups.iter().any(|group| is_shown(&group));
        let Some(level) = run.run.levels.iter().rev().find(|level| of_level(level)) else { continue };
        for (name, quantile) in [("p50", Quantile::P50), ("p99", Quantile::P99)] {
            let mut points = Vec::new();
            for group in level.groups.iter().filter(is_shown) {
                let label = view::group_name(run.run, level, group.of);
                let place = names.iter().position(|name| *name == label).unwrap_or_else(|| {
                    names.push(label);
                    names.len() - 1
                });
                let value = group.distributions.get(&Metric::Ttft).and_then(|d| d.quantile(quantile));
                let name = names[place].clone();
                points.push(Point {
                    x: place as f64,
                    y: value.map(|ns| ns / 1e6),
                    band: band(group, quantile),
                    of: format!("{name}, {}, {} requests", level.label, group.counts.ok),
                });
            }
            series.push(Series { name: named(run, name), points, line: false });
        }
    }
    (names.len() > 1).then(|| blank(kind, short(&names), series))
}

fn blank(kind: Kind, names: Vec<String>, series: Vec<Series>) -> Chart {
    Chart {
        id: kind.0,
        title: kind.1,
        reading: "At the last level that tells them apart; bars are intervals that hold together with 95 %."
            .to_owned(),
        x: Axis { title: "", scale: Scale::Names(names) },
        y: Axis { title: "ms", scale: Scale::Linear },
        series,
        heat: None,
        marks: Vec::new(),
        empty: None,
    }
}

/// The interval of the median, ms.
fn band(group: &GroupBlock, quantile: Quantile) -> Option<(f64, f64)> {
    let of =
        group.against.iter().find(|against| against.metric == Metric::Ttft && quantile == Quantile::P50)?;
    of.low.zip(of.high).map(|(low, high)| (low / 1e6, high / 1e6))
}

/// The names without what all of them begin or end with, as far as whole parts of an address go: there is little room
/// below an axis, and a pointer says the whole.
fn short(names: &[String]) -> Vec<String> {
    let bare: Vec<&str> =
        names.iter().map(|name| name.split_once("://").map_or(name.as_str(), |(_, rest)| rest)).collect();
    let Some(first) = bare.first() else { return Vec::new() };
    if bare.iter().all(|name| name.chars().count() <= SHORT_CHARS) {
        return bare.into_iter().map(str::to_owned).collect();
    }
    let ends = |part: &str| bare.iter().all(|name| name.len() > part.len() && name.ends_with(part));
    let begins = |part: &str| bare.iter().all(|name| name.len() > part.len() && name.starts_with(part));
    let bounds = || first.match_indices(['.', ':', '/']).map(|(at, _)| at);
    let tail = bounds().map(|at| &first[at..]).find(|part| ends(part)).unwrap_or_default();
    // Names that are alike but for their end have a beginning in common.
    let head =
        bounds().map(|at| &first[..=at]).rfind(|part| begins(part) && tail.is_empty()).unwrap_or_default();
    bare.iter().map(|name| name[head.len()..name.len() - tail.len()].to_owned()).collect()
}

/// Names that fit below an axis as they are.
const SHORT_CHARS: usize = 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_an_axis_lose_what_they_have_in_common() {
        let of = |names: &[&str]| short(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["http://a:80", "http://b:80"]), ["a:80", "b:80"]);
        let replicas = ["http://replica-1.simulation.invalid:80", "http://replica-2.simulation.invalid:80"];
        assert_eq!(of(&replicas), ["replica-1", "replica-2"]);
        assert_eq!(of(&["http://192.168.100.1:8001", "http://192.168.100.1:8002"]), ["8001", "8002"]);
        assert_eq!(of(&["https://one.example.org:80/a", "https://two.example.com:81/b"]).len(), 2);
        assert_eq!(of(&[]), Vec::<String>::new());
    }
}
