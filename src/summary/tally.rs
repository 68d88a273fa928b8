//! A level without records: what its histograms and its series can give.
//!
//! Quantiles are those of histograms. Rates over the whole level are exact; a window within it is cut from the series,
//! whose bins are taken as even. Goodput and the step function of requests in flight need records.

use crate::metrics::metric::Metric;
use crate::metrics::tally::Population;
use crate::plan::Timestamps;
use crate::summary::rates::{Amounts, level_nanos};
use crate::summary::{Distribution, Input, LevelSummary, by_stamps};
use crate::time::Stamp;

pub(super) fn summarise(input: &Input<'_>) -> LevelSummary {
    let tally = input.tally;
    let whole_level = Amounts::of(tally.whole());
    let (population, in_window) = if input.window.whole_level {
        (tally.whole(), whole_level)
    } else {
        (tally.window(), from_series(input))
    };
    let failed = population.counts.ranked_failed();
    let distribution = |metric: Metric| {
        if !metric.is_per_request() {
            return Distribution::pooled(metric, tally);
        }
        Distribution::of_histogram(metric, tally.histogram(metric), Some(failed))
    };
    LevelSummary {
        window: input.window,
        distributions: Metric::ALL.into_iter().filter_map(distribution).collect(),
        groups: Vec::new(),
        window_rates: in_window.over(input.window.nanos()),
        level_rates: whole_level.over(level_nanos(&input.span, tally.last_end())),
        goodput: None,
        in_flight: None,
        statistics: None,
        cache_split: None,
        counts: population.counts.clone(),
        tokens: population.tokens.clone(),
        stamp_pairs: match input.timestamps {
            Timestamps::Both => by_stamps::pairs_of(tally, &BOTH),
            Timestamps::Kernel | Timestamps::User => Vec::new(),
        },
        turns: Vec::new(),
    }
}

/// The metrics that a tally has by both stamps.
const BOTH: [(Metric, Metric); 2] = [(Metric::Ttft, Metric::TtftKernel), (Metric::Itl, Metric::ItlKernel)];

impl Amounts {
    fn of(population: &Population) -> Amounts {
        Amounts {
            planned: population.counts.planned as f64,
            ok: population.counts.ok as f64,
            output: population.tokens.output as f64,
            prompt: population.tokens.prompt as f64,
        }
    }
}

/// The amounts in the window, a bin that it cuts counting by the share inside.
///
/// The series counts content events where tokens are not known, and those of failed requests as well: its tokens are
/// scaled to those of the requests that ended well. Prompts count as their mean at each first content event.
fn from_series(input: &Input<'_>) -> Amounts {
    let (series, whole) = (input.tally.series(), input.tally.whole());
    let offset_s = |at: Stamp| at.nanos_since(input.tally.start()) as f64 / 1e9;
    let (from, to) = (offset_s(input.window.start), offset_s(input.window.end));
    let mut inside = Amounts { planned: input.tally.window().counts.planned as f64, ..Amounts::default() };
    let (mut firsts, mut counted) = (0.0, 0.0);
    for slice in series.slices() {
        let overlap_s = to.min(slice.start_s + slice.width_s) - from.max(slice.start_s);
        let share = (overlap_s / slice.width_s).max(0.0);
        inside.ok += share * slice.ok as f64;
        inside.output += share * slice.tokens as f64;
        firsts += share * slice.ttft.n() as f64;
        counted += slice.tokens as f64;
    }
    let ratio = |amount: u64, over: f64| if over > 0.0 { amount as f64 / over } else { 0.0 };
    inside.output *= ratio(whole.tokens.output, counted);
    inside.prompt = firsts * ratio(whole.tokens.prompt, whole.counts.ok as f64);
    inside
}
