//! Whether a level had a steady state, and where it begins.

use std::borrow::Cow;
use std::time::Duration;

use crate::metrics::{Class, Record};
use crate::plan::SteadyCut;
use crate::run::Window;
use crate::stats::inflight::Span;
use crate::stats::trend::{is_saturated, mser5};
use crate::stats::{InFlight, Trend};
use crate::summary::Input;
use crate::summary::statistics::{Level, SteadyStatistics, TrendStatistics, stretch};
use crate::time::Stamp;

/// Samples of a level from which a cut is found: to a hundredth of its length, as MSER-5 takes means of five.
const SAMPLES: u32 = 500;
/// The ramp of a level without a cut: so many median E2E, at most half of the level.
const RAMP_LIVES: u64 = 2;
/// A level without a cut is too short to speak of a trend unless it is so many times as long as its quick requests.
const SHORT_LIVES: u64 = 4;

/// The window of a level by the rule of its plan.
#[derive(Clone, Copy, Debug)]
pub(in crate::summary) struct Cut {
    /// As the engine had it.
    pub(in crate::summary) fixed: Window,
    /// As it is reported.
    pub(in crate::summary) window: Window,
    /// Whether a steady state was looked for and found.
    pub(super) found: Option<bool>,
}

/// Where the window begins. MSER-5 needs the whole level, so that it can only be found now; a level without a cut has
/// none by any rule.
pub(in crate::summary) fn cut(input: &Input<'_>, in_flight: &InFlight) -> Cut {
    let fixed = input.window;
    if fixed.whole_level || input.steady_cut != SteadyCut::Mser5 {
        return Cut { fixed, window: fixed, found: None };
    }
    let (start, end) = (input.span.t0, fixed.end);
    let samples = in_flight.slices(Span { start: start.as_nanos(), end: end.as_nanos() }, SAMPLES);
    let Some(samples_cut) = mser5(&samples) else {
        return Cut { fixed, window: fixed, found: Some(false) };
    };
    let offset = u128::from(end.nanos_since(start)) * samples_cut as u128 / u128::from(SAMPLES);
    // At most half of the level.
    let start = Stamp::from_nanos(start.as_nanos() + offset as u64);
    Cut { fixed, window: Window { start, ..fixed }, found: Some(true) }
}

/// What a server was asked for in a window, and what it did in it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::summary) struct Served {
    planned: u64,
    completed: u64,
}

impl Served {
    pub(in crate::summary) fn add(&mut self, record: &Record, window: &Window) {
        self.planned += u64::from(window.contains(record.plan) && record.outcome.class != Class::Cancelled);
        self.completed += u64::from(is_completed(record) && window.contains(record.end));
    }
}

pub(super) fn of(level: &Level<'_>) -> SteadyStatistics {
    let Level { input, cut, .. } = level;
    let trend = trend(level);
    let Served { planned, completed } = level.served;
    let saturated = (input.from_plan && !input.window.whole_level).then(|| is_saturated(completed, planned));
    let growing = trend.is_some_and(|trend| trend.growing);
    SteadyStatistics {
        cut: input.steady_cut,
        found: cut.found,
        fixed_start_ns: cut.fixed.start.as_nanos(),
        trend,
        completed,
        planned,
        saturated,
        latency_grows: input.from_plan && (growing || saturated == Some(true)),
    }
}

/// Whether the server ended it, or the network, and not we.
fn is_completed(record: &Record) -> bool {
    !matches!(
        record.outcome.class,
        Class::Cancelled
            | Class::TimeoutConnect
            | Class::TimeoutFirst
            | Class::TimeoutGap
            | Class::TimeoutTotal
            | Class::Unfinished
    )
}

fn trend(level: &Level<'_>) -> Option<TrendStatistics> {
    let slices = under_way(level).slices(trend_span(level)?, Trend::SLICES as u32);
    // The edges of a stretch of some nanoseconds leave slices empty.
    let whole = (slices.len() == Trend::SLICES).then_some(slices)?;
    Trend::of(&whole).map(TrendStatistics::from)
}

/// The requests under way. Where a cap held some back, from their planned sends: the queue then stands before it.
fn under_way<'a>(level: &Level<'a>) -> Cow<'a, InFlight> {
    let held_back = || level.measured.iter().any(|record| record.permit > record.plan);
    if !(level.input.from_plan && held_back()) {
        return Cow::Borrowed(level.in_flight);
    }
    let life = |record: &&Record| Span { start: record.plan.as_nanos(), end: record.end.as_nanos() };
    Cow::Owned(InFlight::of(level.measured.iter().map(life)))
}

/// The window as long as requests were planned; of a whole level without its ramp. Nothing of a load that grows as
/// planned.
fn trend_span(level: &Level<'_>) -> Option<Span> {
    let input = &level.input;
    let end = input.window.end.min(input.span.t1).as_nanos();
    let lead_in = Duration::try_from_secs_f64(input.steady_from_s?).unwrap_or(Duration::MAX);
    let steady = (input.span.t0 + lead_in).as_nanos();
    if !input.window.whole_level {
        let Span { start, .. } = stretch(&input.window);
        return Some(Span { start: start.max(steady), end });
    }
    let start = steady.min(end);
    let length = end.saturating_sub(start);
    let ok = level.measured.iter().filter(|record| record.outcome.is_ok());
    let mut lives: Vec<u64> = ok.map(|record| record.stream_plan_ns()).collect();
    if lives.is_empty() {
        return None;
    }
    let last = lives.len() - 1;
    let median = *lives.select_nth_unstable(last / 2).1;
    let quick = *lives.select_nth_unstable(last / 10).1;
    if length < quick.saturating_mul(SHORT_LIVES) {
        return None;
    }
    let ramp = median.saturating_mul(RAMP_LIVES).min(length / 2);
    Some(Span { start: start + ramp, end })
}
