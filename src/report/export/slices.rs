//! `slices`: a row for each slice of time of each level, as CSV. It needs no records. The last slice of a level is as long
//! as the level ran of it, which `width_s` says.

use std::io::{self, Write};

use super::{Error, Form, Needs, Sink, Source};
use crate::report::csv;
use crate::report::view::slices_of;
use crate::run_file::RunFile;
use crate::summary::{SliceLatency, SliceSummary};

pub(super) const FORM: Form = Form {
    name: "slices",
    what: "a row per slice of --slice-duration: counts, rates, percentiles in ms",
    is_folder: false,
    is_built_in: true,
    needs: Needs::Slices,
    write,
};

fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    sink.file("", &mut |out| rows(&source.loaded.run, out))
}

/// Columns in front of those of the latencies.
const COLUMNS: [&str; 10] =
    ["level", "label", "slice", "start_s", "width_s", "steady", "ok", "failed", "req_s", "out_tok_s"];
const LATENCIES: [&str; 4] = ["ttft", "tpot", "itl", "e2e"];

fn rows(run: &RunFile, out: &mut dyn Write) -> io::Result<()> {
    let of =
        |metric: &&str| ["n", "mean_ms", "p50_ms", "p90_ms", "p99_ms"].map(|name| format!("{metric}_{name}"));
    let heads = COLUMNS.iter().map(|name| (*name).to_owned());
    csv::line(out, heads.chain(LATENCIES.iter().flat_map(of)))?;
    for (level, block) in slices_of(run) {
        for (place, row) in block.rows.iter().enumerate() {
            let first = [level.ordinal.to_string(), level.exact_label(), place.to_string()];
            csv::line(out, first.into_iter().chain(cells(row)))?;
        }
    }
    Ok(())
}

fn cells(row: &SliceSummary) -> impl Iterator<Item = String> {
    let own = [
        row.start_s.to_string(),
        row.width_s.to_string(),
        row.steady.to_string(),
        row.ok.to_string(),
        row.failed.to_string(),
        row.req_s.to_string(),
        row.out_tok_s.to_string(),
    ];
    own.into_iter().chain([row.ttft, row.tpot, row.itl, row.e2e].into_iter().flat_map(latency))
}

fn latency(of: Option<SliceLatency>) -> [String; 5] {
    let Some(SliceLatency { n, mean, p50, p90, p99 }) = of else { return Default::default() };
    let ms = |ns: f64| (ns / 1e6).to_string();
    [n.to_string(), ms(mean), ms(p50 as f64), ms(p90 as f64), ms(p99 as f64)]
}
