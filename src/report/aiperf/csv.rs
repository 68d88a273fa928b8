//! `profile_export_aiperf.csv`: metrics with percentiles, a blank line, metrics that are one number.

use std::io::{self, Write};

use super::{Figure, Level, Stats};
use crate::stats::sort;

/// Writes the metrics of `level`, by their names in files, with two decimals. Lines end as RFC 4180 has it.
///
/// # Errors
///
/// When `out` fails.
pub fn write(level: &Level, out: &mut impl Write) -> io::Result<()> {
    let mut figures: Vec<(String, &Figure)> =
        level.figures.iter().map(|figure| (figure.tag(), figure)).collect();
    sort::few_by(&mut figures, |a, b| a.0.cmp(&b.0));
    let spread = |figure: &Figure| figure.stats.percentiles.iter().any(Option::is_some);
    let (many, single): (Vec<&Figure>, Vec<&Figure>) =
        figures.into_iter().map(|(_, figure)| figure).partition(|figure| spread(figure));
    if !many.is_empty() {
        write!(out, "Metric")?;
        for (name, _) in Stats::default().columns() {
            write!(out, ",{name}")?;
        }
        write!(out, "\r\n")?;
    }
    for figure in &many {
        write!(out, "{}", name(figure))?;
        for (_, value) in figure.stats.columns() {
            match value {
                Some(value) => write!(out, ",{value:.2}")?,
                None => write!(out, ",")?,
            }
        }
        write!(out, "\r\n")?;
    }
    if !many.is_empty() && !single.is_empty() {
        write!(out, "\r\n")?;
    }
    if !single.is_empty() {
        write!(out, "Metric,Value\r\n")?;
    }
    for figure in &single {
        let value = figure.stats.avg.map_or_else(String::new, |value| format!("{value:.2}"));
        write!(out, "{},{value}\r\n", name(figure))?;
    }
    Ok(())
}

/// Its name, with the unit unless that is a number of requests.
fn name(figure: &Figure) -> String {
    match figure.metric.unit() {
        "requests" => figure.header(),
        unit => format!("{} ({unit})", figure.header()),
    }
}
