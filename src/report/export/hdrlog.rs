//! `hdrlog`: a log of HdrHistogram's, format 1.3, a line with the whole histogram for each level and metric.

use super::{Error, Form, Needs, Sink, Source, histograms};
use crate::run_file::WallTime;
use crate::run_file::schema::Unit;

pub(super) const FORM: Form = Form {
    name: "hdrlog",
    what: "an HdrHistogram log, tagged LEVEL-METRIC, values in ns",
    is_folder: false,
    is_built_in: true,
    needs: Needs::Nothing,
    write,
};

fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    let run = &source.loaded.run;
    let begun_ns = WallTime::parse(&run.created).map_or(0, WallTime::unix_nanos);
    sink.file("", &mut |out| {
        writeln!(out, "#[Histogram log format version 1.3]")?;
        let seconds = begun_ns as f64 / 1e9;
        writeln!(out, "#[BaseTime: {seconds:.3} (seconds since epoch)]")?;
        writeln!(out, "#[StartTime: {seconds:.3} (seconds since epoch), {}]", run.created)?;
        writeln!(
            out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )?;
        for level in &run.levels {
            let (from, until) = (level.window.start_ns, level.window.end_ns);
            let (start_s, length_s) = (from as f64 / 1e9, until.saturating_sub(from) as f64 / 1e9);
            for (metric, block) in histograms(level) {
                // The greatest value in the unit that readers take for granted.
                let per = if Unit::of(metric) == Unit::Nanoseconds { 1e6 } else { 1.0 };
                let max = block.max.unwrap_or(0.0) / per;
                let (name, histogram) = (metric.name(), block.histogram.as_deref().unwrap_or_default());
                writeln!(
                    out,
                    "Tag={}-{name},{start_s:.3},{length_s:.3},{max:.3},{histogram}",
                    level.ordinal
                )?;
            }
        }
        Ok(())
    })
}
