//! `hgrm`: the percentile distributions that HdrHistogram's plotters read, a file for each level and metric.

use std::io::{self, Write};

use super::{Error, Form, Needs, Sink, Source, histograms};
use crate::run_file::schema::{DistributionBlock, Unit};
use crate::stats::Histogram;

pub(super) const FORM: Form = Form {
    name: "hgrm",
    what: "percentile distributions LEVEL-METRIC.hgrm for HdrHistogram's plotter, in ms",
    is_folder: true,
    is_built_in: true,
    needs: Needs::Nothing,
    write,
};

fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    for level in &source.loaded.run.levels {
        for (metric, block) in histograms(level) {
            let Some(histogram) = block.histogram() else { continue };
            // A histogram of speeds counts thousandths of a token per second.
            let per = if Unit::of(metric) == Unit::Nanoseconds { 1e6 } else { 1e3 };
            let name = format!("{}-{}.hgrm", level.ordinal, metric.name());
            sink.file(&name, &mut |out| distribution(&histogram, block, per, out))?;
        }
    }
    Ok(())
}

/// The table of `outputPercentileDistribution`, values divided by `per`.
fn distribution(
    histogram: &Histogram,
    block: &DistributionBlock,
    per: f64,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")?;
    for Row { value, level, count } in rows(histogram) {
        write!(out, "{:12.3} {:2.12} {count:10}", value as f64 / per, level / 100.0)?;
        match level < 100.0 {
            true => writeln!(out, " {:14.2}", 1.0 / (1.0 - level / 100.0))?,
            false => writeln!(out)?,
        }
    }
    // Moments are exact, and the block has them in ns or tokens per second.
    let scale = if per == 1e6 { 1e6 } else { 1.0 };
    let shown = |value: Option<f64>| value.unwrap_or(0.0) / scale;
    let (mean, std, max) = (shown(block.mean), shown(block.std), shown(block.max));
    writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {std:12.3}]")?;
    writeln!(out, "#[Max     = {max:12.3}, Total count    = {:12}]", histogram.n())?;
    writeln!(out, "#[Buckets = {BUCKETS:12}, SubBuckets     = {SUB_BUCKETS:12}]")
}

/// A line of the table: up to `level` percent there are `count` values, none above `value`.
struct Row {
    value: u64,
    level: f64,
    count: u64,
}

/// The lines that HdrHistogram gives: five steps to each halving of what is left to 100 %.
fn rows(histogram: &Histogram) -> Vec<Row> {
    let all = histogram.n();
    let mut rows = Vec::new();
    let (mut count, mut level) = (0, 0.0_f64);
    for bucket in histogram.buckets() {
        count += bucket.count;
        let reached = 100.0 * count as f64 / all as f64;
        while reached >= level {
            rows.push(Row { value: bucket.highest, level, count });
            if level >= 100.0 {
                return rows;
            }
            let halvings = (100.0 / (100.0 - level)).log2().floor() + 1.0;
            level += 100.0 / (STEPS * halvings.exp2());
            if count >= all {
                rows.push(Row { value: bucket.highest, level: 100.0, count });
                return rows;
            }
        }
    }
    rows
}

const STEPS: f64 = 5.0;
/// Buckets of a histogram of three digits up to an hour in ns, and their parts, as HdrHistogram counts them.
const BUCKETS: u32 = 32;
const SUB_BUCKETS: u32 = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    fn text(values_ms: &[u64]) -> String {
        let mut histogram = Histogram::default();
        values_ms.iter().for_each(|ms| histogram.record(ms * 1_000_000));
        let block = DistributionBlock {
            max: values_ms.iter().max().map(|ms| *ms as f64 * 1e6),
            mean: Some(1.5e6),
            std: Some(0.5e6),
            ..DistributionBlock::unknown(Unit::Nanoseconds)
        };
        let mut out = Vec::new();
        distribution(&histogram, &block, 1e6, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_table_is_hdrhistograms() {
        let expected = "       Value     Percentile TotalCount 1/(1-Percentile)\n\
                        \n       1.000 0.000000000000          1           1.00\
                        \n       1.000 0.100000000000          1           1.11\
                        \n       1.000 0.200000000000          1           1.25\
                        \n       1.000 0.300000000000          1           1.43\
                        \n       1.000 0.400000000000          1           1.67\
                        \n       1.000 0.500000000000          1           2.00\
                        \n       2.001 0.550000000000          2           2.22\
                        \n       2.001 1.000000000000          2\
                        \n#[Mean    =        1.500, StdDeviation   =        0.500]\
                        \n#[Max     =        2.000, Total count    =            2]\
                        \n#[Buckets =           32, SubBuckets     =         2048]\n";
        assert_eq!(text(&[1, 2]), expected);
        assert_eq!(text(&[]).lines().count(), 5, "nothing is a table without rows");
    }
}
