//! `profile_export_aiperf_timeslices.csv` and `.json`: the metrics of each slice of time.
//!
//! aiperf gives a request to the slice in which it was started, which is not how our own slices count.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::{About, Answer, Figure, Level, Saved, config, figures, json as object};

/// The metrics of a slice, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeslice {
    /// Its place, from 0 for that of the first start.
    pub index: u64,
    /// Its metrics.
    pub figures: Vec<Figure>,
}

/// The slices of `level`, each `slice_ns` long; those in which no request was started are left out, as aiperf does.
#[must_use]
pub fn of(level: &Level, slice_ns: u64) -> Vec<Timeslice> {
    let slice_ns = slice_ns.max(1);
    let Some(first) = level.answers.iter().map(|answer| answer.start_ns).min() else { return Vec::new() };
    let index = |answer: &Answer| answer.start_ns.saturating_sub(first) / slice_ns;
    let mut answers: Vec<&Answer> = level.answers.iter().collect();
    answers.sort_by_key(|answer| index(answer));
    let slice = |together: &[&Answer]| {
        let index = together.first().map_or(0, |answer| index(answer));
        let begun_ns = first.saturating_add(index.saturating_mul(slice_ns));
        let about = About {
            begun_ns,
            ended_ns: begun_ns.saturating_add(slice_ns),
            gaps: None,
            ..level.about.clone()
        };
        let own: Vec<Answer> = together.iter().map(|answer| (*answer).clone()).collect();
        Timeslice { index, figures: figures::of(&own, &about) }
    };
    answers.chunk_by(|a, b| index(a) == index(b)).map(slice).collect()
}

/// Writes a line for each number of each metric of each slice, values with two decimals.
///
/// # Errors
///
/// When `out` fails.
pub fn write_csv(slices: &[Timeslice], out: &mut impl Write) -> io::Result<()> {
    write!(out, "Timeslice,Metric,Unit,Stat,Value\r\n")?;
    for Timeslice { index, figures } in slices {
        for figure in figures {
            let known = figure.stats.columns().into_iter().filter_map(|(name, value)| Some((name, value?)));
            for (name, value) in known {
                write!(out, "{index},{},{},{name},{value:.2}\r\n", figure.header(), figure.metric.unit())?;
            }
        }
    }
    Ok(())
}

/// All slices in one object.
#[must_use]
pub fn to_json(slices: &[Timeslice], saved: &Saved) -> Map<String, Value> {
    let slice = |slice: &Timeslice| {
        let mut own = Map::new();
        own.insert("timeslice_index".to_owned(), json!(slice.index));
        own.extend(object::blocks(&slice.figures));
        Value::Object(own)
    };
    let mut all = Map::new();
    all.insert("timeslices".to_owned(), Value::Array(slices.iter().map(slice).collect()));
    if let Some(config) = config::input(saved) {
        all.insert("input_config".to_owned(), config);
    }
    all
}
