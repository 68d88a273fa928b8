//! A level in slices of time: the numbers of each, and what drifts over them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::metrics::slices::{Row, Slices};
use crate::run::{LevelResult, Window};
use crate::stats::student::normal_tail;
use crate::stats::{Drift, Quantile, Sparse};

/// A drift is found where chance alone finds one in any figure of a level in one of twenty.
const FAMILY_TAIL: f64 = 0.05;
/// Less over the slices together than this share of its value is left unsaid.
const CHANGE_MIN: f64 = 0.05;
/// For the share of failed requests: less than this is left unsaid.
const FAILED_MIN: f64 = 0.01;
/// The ramp of a level without a window: so many median E2E.
const RAMP_LIVES: f64 = 2.0;

/// The numbers of a slice. Latencies are those of the requests that ended well in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceSummary {
    /// Its start since the level's first planned send, s.
    pub start_s: f64,
    /// Its length, s: of the last one what the level ran of it, and a rest of less than a tenth of a slice belongs to the one
    /// before.
    pub width_s: f64,
    /// It lies within the time in which requests were planned; the ramp is no part of that, nor the drain, but for a short rest
    /// that is counted to it.
    pub steady: bool,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// The former per second.
    pub req_s: f64,
    /// Their output tokens per second.
    pub out_tok_s: f64,
    /// TTFT; `None` without a value.
    pub ttft: Option<SliceLatency>,
    /// TPOT.
    pub tpot: Option<SliceLatency>,
    /// Gaps between content events.
    pub itl: Option<SliceLatency>,
    /// E2E.
    pub e2e: Option<SliceLatency>,
}

/// A latency in a slice, ns; quantiles are the upper ends of their buckets, at most 0.1 % too high.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceLatency {
    /// Number of values.
    pub n: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile; of fewer than a hundred values the greatest.
    pub p99: u64,
}

/// How a figure moves over the steady slices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriftFigure {
    /// Which: `ttft_p50`, `ttft_p99`, `itl_p50`, `itl_p99`, `e2e_p50`, `e2e_p99`, `failed_share` or `req_s`.
    pub figure: String,
    /// Change in an hour: ns, a share, or requests per second.
    pub per_hour: f64,
    /// Lower end of its interval: those of all figures of a level hold together with 95 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Median over the slices.
    pub level: f64,
    /// Kendall's rank statistic against time, as a standard normal variable where nothing drifts.
    pub z: f64,
    /// Steady slices that have a value.
    pub slices: usize,
    /// How many independent ones they are worth.
    pub n_eff: f64,
    /// It drifts: surely, and by enough to matter.
    pub drifts: bool,
}

/// A figure's name, and what it is of a slice of so many seconds.
type Figure = (&'static str, fn(&Row, f64) -> Option<f64>);

/// The figures that are looked at.
const FIGURES: [Figure; 8] = [
    ("ttft_p50", |row, _| at(&row.ttft, Quantile::P50)),
    ("ttft_p99", |row, _| at(&row.ttft, Quantile::P99)),
    ("itl_p50", |row, _| at(&row.itl, Quantile::P50)),
    ("itl_p99", |row, _| at(&row.itl, Quantile::P99)),
    ("e2e_p50", |row, _| at(&row.e2e, Quantile::P50)),
    ("e2e_p99", |row, _| at(&row.e2e, Quantile::P99)),
    ("failed_share", |row, _| (row.ended() > 0).then(|| row.failed as f64 / row.ended() as f64)),
    ("req_s", |row, width_s| Some(row.ok as f64 / width_s)),
];

/// The slices of a level with their numbers; empty where none were asked for. The window is the one that is reported.
#[must_use]
pub fn of(result: &LevelResult, window: &Window) -> Vec<SliceSummary> {
    let Some(slices) = &result.slices else { return Vec::new() };
    let steady = steady(result, window, slices);
    let row = |piece: Piece| SliceSummary {
        start_s: piece.start_s,
        width_s: piece.length_s,
        steady: steady.contains(&piece.places.start),
        ok: piece.row.ok,
        failed: piece.row.failed,
        req_s: piece.rate(piece.row.ok),
        out_tok_s: piece.rate(piece.row.tokens),
        ttft: SliceLatency::of(&piece.row.ttft),
        tpot: SliceLatency::of(&piece.row.tpot),
        itl: SliceLatency::of(&piece.row.itl),
        e2e: SliceLatency::of(&piece.row.e2e),
    };
    pieces(slices, result.span.t2.nanos_since(result.span.t0), 1).into_iter().map(row).collect()
}

/// Neighbouring slices together, and how long they really were.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Their places among the slices.
    pub places: Range<usize>,
    /// Where the first begins, s since the level's first planned send.
    pub start_s: f64,
    /// How long they last, s, above 0: no longer than the level.
    pub length_s: f64,
    /// All that ended in them.
    pub row: Row,
}

/// The slices of a level that took `level_ns` from its first planned send to the end of its last request, so many `together`
/// (0 is taken as 1).
///
/// The level seldom ends with a slice. Its last piece is as long as the level ran of it, so that a rate does not seem to
/// fall at the end. Where that is less than a tenth of a slice a rate would be that of a few answers over next to no time, so
/// they are counted to the piece before, which becomes as much longer.
#[must_use]
pub fn pieces(slices: &Slices, level_ns: u64, together: usize) -> Vec<Piece> {
    let (rows, width, together) = (slices.rows(), slices.width_ns(), together.max(1));
    let at = |place: usize| width.saturating_mul(place as u64);
    let mut firsts: Vec<usize> = (0..rows.len()).step_by(together).collect();
    if firsts.len() > 1 && firsts.last().is_some_and(|first| level_ns.saturating_sub(at(*first)) < width / 10)
    {
        firsts.pop();
    }
    let piece = |(nth, first): (usize, &usize)| {
        let places = *first..firsts.get(nth + 1).copied().unwrap_or(rows.len());
        let (begin, end) = (at(places.start), at(places.end));
        // A level of no time, or a damaged file: whole slices then.
        let end = if level_ns > begin { end.min(level_ns) } else { end };
        let mut row = Row::default();
        rows[places.clone()].iter().for_each(|one| row.merge(one));
        Piece { places, start_s: begin as f64 / 1e9, length_s: (end - begin) as f64 / 1e9, row }
    };
    firsts.iter().enumerate().map(piece).collect()
}

impl Piece {
    /// So many of something in it, per second.
    #[must_use]
    pub fn rate(&self, count: u64) -> f64 {
        count as f64 / self.length_s
    }
}

/// What drifts over the steady slices of a level: every figure that can be judged, those that do not drift as well. Empty
/// where there are too few slices, and where the load itself is planned to change.
#[must_use]
pub fn drift(result: &LevelResult, window: &Window) -> Vec<DriftFigure> {
    let Some(slices) = &result.slices else { return Vec::new() };
    let steady = steady(result, window, slices);
    let width_s = slices.width_ns() as f64 / 1e9;
    let rows = slices.rows().get(steady).unwrap_or_default();
    let tail = FAMILY_TAIL / FIGURES.len() as f64 / 2.0;
    let per_hour = 3600.0 / width_s;
    let figure = |(name, of): &Figure| {
        let values: Vec<Option<f64>> = rows.iter().map(|row| of(row, width_s)).collect();
        let drift = Drift::of(&values, tail)?;
        let change = drift.slope.abs() * rows.len() as f64;
        let least = if *name == "failed_share" { FAILED_MIN } else { CHANGE_MIN * drift.level.abs() };
        Some(DriftFigure {
            figure: (*name).to_owned(),
            per_hour: drift.slope * per_hour,
            low: drift.low * per_hour,
            high: drift.high * per_hour,
            level: drift.level,
            z: drift.z,
            slices: drift.n,
            n_eff: drift.n_eff,
            drifts: normal_tail(drift.z.abs()) < tail && change >= least,
        })
    };
    FIGURES.iter().filter_map(figure).collect()
}

/// The places of the slices that lie wholly within the time in which the load is what was asked for.
fn steady(result: &LevelResult, window: &Window, slices: &Slices) -> Range<usize> {
    let Some(lead_in_s) = result.level.load.steady_from_s() else { return 0..0 };
    let (t0, width) = (result.span.t0, slices.width_ns());
    let ramp_ns = if window.whole_level {
        let mut e2e = Sparse::default();
        slices.rows().iter().for_each(|row| e2e.merge(&row.e2e));
        RAMP_LIVES * e2e.quantile(Quantile::P50).unwrap_or(0) as f64
    } else {
        window.start.nanos_since(t0) as f64
    };
    let from = ramp_ns.max(lead_in_s * 1e9) as u64;
    let end = if window.whole_level { result.span.t1 } else { window.end.min(result.span.t1) };
    let first = usize::try_from(from.div_ceil(width)).unwrap_or(usize::MAX);
    let last = usize::try_from(end.nanos_since(t0) / width).unwrap_or(usize::MAX).min(slices.rows().len());
    first.min(last)..last
}

impl SliceLatency {
    fn of(values: &Sparse) -> Option<SliceLatency> {
        Some(SliceLatency {
            n: values.n(),
            mean: values.mean()?,
            p50: values.quantile(Quantile::P50)?,
            p90: values.quantile(Quantile::P90)?,
            p99: values.quantile(Quantile::P99)?,
        })
    }
}

fn at(values: &Sparse, quantile: Quantile) -> Option<f64> {
    values.quantile(quantile).map(|ns| ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::metrics::slices::Added;
    use crate::time::Stamp;

    /// Slices of a second with so many good requests each.
    fn slices(ok: &[u64]) -> Slices {
        let mut slices = Slices::new(Stamp::ZERO, Duration::from_secs(1));
        for (place, ok) in ok.iter().enumerate() {
            slices.add_news(Added { doublings: 0, place, row: Row { ok: *ok, ..Row::default() } });
        }
        slices
    }

    fn shown(ok: &[u64], level_ms: u64, together: usize) -> Vec<(f64, f64, u64, f64)> {
        let pieces = pieces(&slices(ok), level_ms * 1_000_000, together);
        pieces.iter().map(|one| (one.start_s, one.length_s, one.row.ok, one.rate(one.row.ok))).collect()
    }

    #[test]
    fn the_last_piece_is_as_long_as_the_level_ran_of_it() {
        assert_eq!(
            shown(&[10, 10, 5], 2500, 1),
            [(0.0, 1.0, 10, 10.0), (1.0, 1.0, 10, 10.0), (2.0, 0.5, 5, 10.0)]
        );
        assert_eq!(shown(&[10, 10, 5], 2500, 2), [(0.0, 2.0, 20, 10.0), (2.0, 0.5, 5, 10.0)]);
        assert_eq!(shown(&[10, 10, 10, 5], 3500, 2), [(0.0, 2.0, 20, 10.0), (2.0, 1.5, 15, 10.0)]);
        assert_eq!(shown(&[3], 250, 1), [(0.0, 0.25, 3, 12.0)]);
    }

    #[test]
    fn a_rest_of_no_length_is_no_piece_of_its_own() {
        // The last request ended in the very moment at which a slice begins, or 50 ms later.
        assert_eq!(shown(&[10, 9, 1], 2000, 1), [(0.0, 1.0, 10, 10.0), (1.0, 1.0, 10, 10.0)]);
        assert_eq!(shown(&[10, 20, 1], 2050, 1), [(0.0, 1.0, 10, 10.0), (1.0, 1.05, 21, 20.0)]);
        assert_eq!(shown(&[10, 20, 1], 2050, 2), [(0.0, 2.05, 31, 31.0 / 2.05)]);
    }

    #[test]
    fn a_level_of_no_time_has_whole_slices() {
        assert_eq!(shown(&[2], 0, 1), [(0.0, 1.0, 2, 2.0)]);
        assert_eq!(shown(&[], 0, 1), []);
        // Of a damaged file, which says more than can be.
        assert_eq!(shown(&[2, 2, 2], 500, 0), [(0.0, 0.5, 2, 4.0), (1.0, 2.0, 4, 2.0)]);
    }
}
