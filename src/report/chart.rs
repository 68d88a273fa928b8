//! What is plotted of a run: series of numbers with their units, all worded, nothing drawn.
//!
//! Owns the choice of what to plot. [`draw`] makes a picture of one chart, by a plotting crate; nothing else does. Every
//! number comes from the run file's blocks, none from the records: a run of millions of requests costs what its bins do.

pub mod draw;
mod groups;
mod load;
mod marks;
mod nines;
mod over_time;
mod slices;
mod telemetry;
mod ticks;

use crate::run_file::RunFile;

/// A run under the name that its series bear.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name; empty where there is one run only.
    pub name: &'a str,
    /// The run.
    pub run: &'a RunFile,
}

/// One picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its name in links and files: `ttft-load`. Letters, digits and hyphens.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// How to read it, in a sentence.
    pub reading: String,
    /// What lies from left to right.
    pub x: Axis,
    /// What lies from below to above.
    pub y: Axis,
    /// The lines, in the order of their colours.
    pub series: Vec<Series>,
    /// Counts over both axes; absent where lines are drawn.
    pub heat: Option<Heat>,
    /// What is marked beside the lines.
    pub marks: Vec<Mark>,
    /// Why nothing is drawn; `None` where there is something.
    pub empty: Option<String>,
}

/// One direction of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit: `output tok/s`.
    pub title: &'static str,
    /// How values become places.
    pub scale: Scale,
}

/// How values become places.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
    /// Evenly, from 0.
    #[default]
    Linear,
    /// Evenly, from 0, marked at whole numbers only: half a user is none.
    Whole,
    /// By their logarithm: each tenfold step is as long as the last.
    Log,
    /// Places 0, 1, ... that have names.
    Names(Vec<String>),
    /// Shares of requests, each further nine as long as the last: 0, 90 %, 99 %, 99.9 %.
    Nines,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Its points, from left to right; a point without a value parts the line.
    pub points: Vec<Point>,
    /// Whether the points are joined.
    pub line: bool,
}

/// A point of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Its place from left to right, in the axis' unit.
    pub x: f64,
    /// Its value; `None` where there is none.
    pub y: Option<f64>,
    /// The ends of the interval that holds it, where both are known.
    pub band: Option<(f64, f64)>,
    /// What it belongs to, in words: the load of a level; empty where the place says it.
    pub of: String,
}

/// Something that was found, or set, with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Where.
    pub at: Place,
    /// What stands beside it: `knee 16`.
    pub name: String,
}

/// Where a mark is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// One place from left to right: an upright line.
    At(f64),
    /// From the one to the other: an upright band.
    Between(f64, f64),
    /// Where something begins: a faint upright line, whose name may be left out for want of room.
    Begins(f64),
    /// A height: a level line.
    Limit(f64),
}

/// Counts over two axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// The fields that hold something.
    pub fields: Vec<Field>,
    /// The most that one holds.
    pub most: u64,
}

/// A rectangle with what it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Left and right edge.
    pub x: (f64, f64),
    /// Lower and upper edge.
    pub y: (f64, f64),
    /// Requests in it.
    pub count: u64,
}

/// The charts of `runs`, which overlay each other, in the order of a report. Charts that concern a part only (several
/// endpoints, slices) are left out where there is no such part; any other that has nothing to show says why.
#[must_use]
pub fn all(runs: &[Named<'_>]) -> Vec<Chart> {
    let mut charts = load::charts(runs);
    charts.extend(nines::charts(runs));
    charts.extend(over_time::charts(runs));
    charts.extend(slices::charts(runs));
    charts.extend(telemetry::charts(runs));
    charts.extend(groups::charts(runs));
    charts.iter_mut().for_each(Chart::settle);
    charts
}

impl Chart {
    /// Drops what cannot be placed (a value of 0 on a logarithmic axis, anything that is no number) and says so where
    /// nothing is left.
    fn settle(&mut self) {
        let (x, y) = (self.x.scale.clone(), self.y.scale.clone());
        for series in &mut self.series {
            series.points.retain(|point| x.places(point.x));
            for point in &mut series.points {
                point.y = point.y.filter(|value| y.places(*value));
                point.band = point.band.filter(|(low, high)| y.places(*low) && y.places(*high));
            }
        }
        self.series.retain(|series| series.points.iter().any(|point| point.y.is_some()));
        self.marks.retain(|mark| match mark.at {
            Place::At(at) | Place::Begins(at) => x.places(at),
            Place::Between(from, to) => x.places(from) && x.places(to),
            Place::Limit(at) => y.places(at),
        });
        let is_blank = self.series.is_empty() && self.heat.as_ref().is_none_or(|heat| heat.fields.is_empty());
        if is_blank && self.empty.is_none() {
            self.empty = Some("nothing of this was measured: no request ended well".to_owned());
        }
        if self.empty.is_some() {
            self.series.clear();
            self.heat = None;
            self.marks.clear();
        }
    }
}

impl Scale {
    /// Whether `value` has a place.
    fn places(&self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Scale::Linear | Scale::Whole | Scale::Names(_) => true,
                Scale::Log => value > 0.0,
                Scale::Nines => (0.0..1.0).contains(&value),
            }
    }
}

impl Place {
    /// The places from left to right.
    fn across(self) -> impl Iterator<Item = f64> {
        let (from, to) = match self {
            Place::At(at) | Place::Begins(at) => (Some(at), None),
            Place::Between(from, to) => (Some(from), Some(to)),
            Place::Limit(_) => (None, None),
        };
        from.into_iter().chain(to)
    }
}

impl Series {
    /// A line through `points`.
    fn line(name: String, points: Vec<Point>) -> Series {
        Series { name, points, line: true }
    }
}

/// `name` of a series of `run`: behind the run's own name, where it has one.
fn named(run: &Named<'_>, name: &str) -> String {
    match (run.name, name) {
        ("", name) => name.to_owned(),
        (run, "") => run.to_owned(),
        (run, name) => format!("{run}: {name}"),
    }
}
